//! Which series a selector finds.

use std::borrow::Cow;

use longpole_model::Text;
use longpole_model::profile::{ProfileSeries, SERVICE_LABEL};
use longpole_wire::pyroscope::selector::{MatchOp, Matcher, parse};
use regex::{Regex, RegexBuilder};

use crate::serve::query_error::QueryError;

/// Memory of a regular expression, compiled.
const REGEX_BYTES_MAX: usize = 256 << 10;

/// Conditions of all selectors of a query, and how many of them may be regular expressions. Grafana sends one for each label that is chosen.
const MATCHERS_MAX: usize = 128;
const REGEXES_MAX: usize = 64;

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
    /// The selectors of these texts.
    pub(in crate::serve) fn of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<Selector>, QueryError> {
        let matchers = texts.map(|text| parse(text).map_err(|error| QueryError::Bad(error.to_string())));
        Selector::of_all(matchers.collect::<Result<_, _>>()?)
    }

    /// The selector with these conditions.
    pub(in crate::serve) fn of_matchers(matchers: Vec<Matcher>) -> Result<Selector, QueryError> {
        Ok(Selector::of_all(vec![matchers])?.pop().unwrap_or_default())
    }

    fn of_all(selectors: Vec<Vec<Matcher>>) -> Result<Vec<Selector>, QueryError> {
        let all = || selectors.iter().flatten();
        let regexes = all().filter(|matcher| matches!(matcher.op, MatchOp::Match | MatchOp::NotMatch)).count();
        for (count, most, of) in [(all().count(), MATCHERS_MAX, "conditions"), (regexes, REGEXES_MAX, "regular expressions")] {
            if count > most {
                return Err(QueryError::Bad(format!("the query has {count} {of}; longpole takes {most} at most")));
            }
        }
        selectors.into_iter().map(Selector::compiled).collect()
    }

    fn compiled(matchers: Vec<Matcher>) -> Result<Selector, QueryError> {
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
                Condition::Equal(wanted) => value == wanted.as_str(),
                Condition::NotEqual(wanted) => value != wanted.as_str(),
                Condition::Match(regex) => regex.is_match(&value),
                Condition::NotMatch(regex) => !regex.is_match(&value),
            }
        })
    }
}

/// A regular expression for a whole value.
fn whole(text: &str) -> Result<Regex, QueryError> {
    let regex = RegexBuilder::new(&format!("^(?:{text})$")).size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build();
    regex.map_err(|error| QueryError::Bad(format!("{text} is no regular expression: {error}")))
}

/// The value of a label of a series, or of its type; empty without one.
pub(in crate::serve) fn value_of<'a>(series: &'a ProfileSeries, name: &str) -> Cow<'a, str> {
    let of_type = &series.profile_type;
    let text = match name {
        TYPE_LABEL => return Cow::Owned(of_type.to_string()),
        NAME_LABEL => Some(&of_type.name),
        "__type__" => Some(&of_type.sample_type),
        "__unit__" => Some(&of_type.sample_unit),
        "__period_type__" => Some(&of_type.period_type),
        "__period_unit__" => Some(&of_type.period_unit),
        "__service_name__" => series.label(SERVICE_LABEL),
        name => series.label(name),
    };
    Cow::Borrowed(text.map_or("", Text::as_str))
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
        let finds = |text: &str| Selector::of_texts([text].into_iter()).unwrap()[0].finds(&series());
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
        assert!(Selector::of_texts([r#"{env=~"("}"#].into_iter()).unwrap_err().to_string().contains("no regular expression"));
    }

    #[test]
    fn a_query_has_a_number_of_conditions() {
        let many = |op: &str, count: usize| format!("{{{}}}", vec![format!(r#"env{op}"a""#); count].join(","));
        let checked = |texts: &[String]| Selector::of_texts(texts.iter().map(String::as_str)).map(drop);
        assert!(checked(&[many("=", 64), many("=~", 64)]).is_ok());
        assert!(checked(&[many("=", 65), many("=~", 64)]).unwrap_err().to_string().contains("129 conditions"));
        assert!(checked(&[many("=~", 33), many("!~", 32)]).unwrap_err().to_string().contains("65 regular expressions"));
        assert!(checked(&[r#"{env=~"(a{500}){500}"}"#.to_owned()]).unwrap_err().to_string().contains("size limit"));
    }
}
