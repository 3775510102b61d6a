//! Which series a selector finds.

use longpole_model::profile::{ProfileSeries, SERVICE_LABEL};
use longpole_wire::pyroscope::selector::{MatchOp, Matcher, parse};
use regex::{Regex, RegexBuilder};

use crate::serve::query_error::QueryError;

/// Memory of a regular expression, compiled.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Labels that are in no series and can be selected: the type of a profile, whole and in parts.
pub(in crate::serve) const TYPE_LABEL: &str = "__profile_type__";
pub(in crate::serve) const NAME_LABEL: &str = "__name__";
const OTHER_TYPE_LABELS: [&str; 5] = ["__type__", "__unit__", "__period_type__", "__period_unit__", "__service_name__"];

/// The conditions of a selector: all must hold.
#[derive(Debug, Clone, Default)]
pub(in crate::serve) struct Selector(Vec<(String, Condition)>);

/// How a value must be.
#[derive(Debug, Clone)]
enum Condition {
    Equal(String),
    NotEqual(String),
    Match(Regex),
    NotMatch(Regex),
}

impl Selector {
    /// The selector of this text.
    pub(in crate::serve) fn of(text: &str) -> Result<Selector, QueryError> {
        let matchers = parse(text).map_err(|error| QueryError::Bad(error.to_string()))?;
        Selector::of_matchers(matchers)
    }

    pub(in crate::serve) fn of_matchers(matchers: Vec<Matcher>) -> Result<Selector, QueryError> {
        let conditions = matchers.into_iter().map(|Matcher { name, op, value }| {
            let condition = match op {
                MatchOp::Equal => Condition::Equal(value),
                MatchOp::NotEqual => Condition::NotEqual(value),
                MatchOp::Match => Condition::Match(whole(&value)?),
                MatchOp::NotMatch => Condition::NotMatch(whole(&value)?),
            };
            Ok((name, condition))
        });
        conditions.collect::<Result<_, QueryError>>().map(Selector)
    }

    /// Whether it finds a series.
    pub(in crate::serve) fn finds(&self, series: &ProfileSeries) -> bool {
        self.0.iter().all(|(name, condition)| {
            let value = value_of(series, name);
            match condition {
                Condition::Equal(wanted) => value == *wanted,
                Condition::NotEqual(wanted) => value != *wanted,
                Condition::Match(regex) => regex.is_match(&value),
                Condition::NotMatch(regex) => !regex.is_match(&value),
            }
        })
    }
}

/// A regular expression for a whole value.
fn whole(text: &str) -> Result<Regex, QueryError> {
    let regex = RegexBuilder::new(&format!("^(?:{text})$")).size_limit(REGEX_BYTES_MAX).build();
    regex.map_err(|error| QueryError::Bad(format!("{text} is no regular expression: {error}")))
}

/// The value of a label of a series, or of its type; empty without one.
pub(in crate::serve) fn value_of(series: &ProfileSeries, name: &str) -> String {
    let of_type = &series.profile_type;
    match name {
        TYPE_LABEL => of_type.to_string(),
        NAME_LABEL => of_type.name.as_str().to_owned(),
        "__type__" => of_type.sample_type.as_str().to_owned(),
        "__unit__" => of_type.sample_unit.as_str().to_owned(),
        "__period_type__" => of_type.period_type.as_str().to_owned(),
        "__period_unit__" => of_type.period_unit.as_str().to_owned(),
        "__service_name__" => series.label(SERVICE_LABEL).map_or_else(String::new, |value| value.as_str().to_owned()),
        name => series.label(name).map_or_else(String::new, |value| value.as_str().to_owned()),
    }
}

/// Names of the labels of a series, those of its type among them.
pub(in crate::serve) fn names_of(series: &ProfileSeries) -> impl Iterator<Item = &str> {
    let of_type = [TYPE_LABEL, NAME_LABEL].into_iter().chain(OTHER_TYPE_LABELS);
    of_type.chain(series.labels.iter().map(|(name, _)| name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> ProfileSeries {
        ProfileSeries {
            profile_type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse().unwrap(),
            labels: vec![("env".into(), "prod-1".into()), ("service_name".into(), "cart".into())],
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let finds = |text: &str| Selector::of(text).unwrap().finds(&series());
        for found in [
            "",
            "{}",
            r#"{service_name="cart"}"#,
            r#"{service_name="cart",env=~"prod.*"}"#,
            r#"{region=""}"#,
            r#"{region!="eu"}"#,
            r#"{env!~"test|canary"}"#,
            r#"{__profile_type__="process_cpu:cpu:nanoseconds:cpu:nanoseconds"}"#,
            r#"{__name__="process_cpu",__type__="cpu"}"#,
        ] {
            assert!(finds(found), "{found}");
        }
        for other in [r#"{service_name="cart",env="test"}"#, r#"{env=~"prod"}"#, r#"{region=~".+"}"#, r#"{env!~"prod.*"}"#] {
            assert!(!finds(other), "{other}");
        }
        assert!(Selector::of(r#"{env=~"("}"#).unwrap_err().to_string().contains("no regular expression"));
    }
}
