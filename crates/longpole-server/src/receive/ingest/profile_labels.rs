//! Labels of series of profiles: without credentials, under names that a query can write.
//!
//! ```text
//! as it came       http.target="/cart?token=abc"  ─ judged, each pair once ─►  http.target="/cart?token=[redacted]"
//! as it is kept                                   ─ renamed ──────────────►  http_target="/cart?token=[redacted]"
//! ```

use std::collections::HashMap;

use longpole_model::profile::{ProfileSeries, ProfileType, SERVICE_LABEL};
use longpole_model::{Attribute, AttributeValue, Attributes, Text};
use longpole_wire::limits::{LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_MAX};
use longpole_wire::redact::Redactor;

/// The service of profiles that name none, as Pyroscope calls it.
const UNKNOWN_SERVICE: &str = "unspecified";

/// Labels that begin like this are for the way, not for the series: `__name__`, `__session_id__`.
const HIDDEN_LABEL: &str = "__";

/// Labels with their values.
pub(super) type Labels = Vec<(Text, Text)>;

/// Makes the labels of the series of a request.
#[derive(Debug)]
pub(super) struct LabelMaker<'a> {
    /// `None` where credentials are kept.
    redactor: Option<&'a mut Redactor>,
    /// Labels as they came, and as they are kept: programs repeat them in each profile.
    known: HashMap<(Text, Text), (Text, Text)>,
    types: HashMap<ProfileType, ProfileType>,
    redacted: u64,
}

impl<'a> LabelMaker<'a> {
    pub(super) fn new(redactor: Option<&'a mut Redactor>) -> Self {
        LabelMaker { redactor, known: HashMap::new(), types: HashMap::new(), redacted: 0 }
    }

    /// Bytes of a profile follow, and may be judged.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.redactor.iter_mut().for_each(|redactor| redactor.begin_request(bytes));
    }

    /// Labels that had credentials.
    pub(super) fn redacted(&self) -> u64 {
        self.redacted
    }

    /// The labels that a sender gave a series; those for the way are left out.
    ///
    /// # Errors
    ///
    /// There are too many, or one is too long.
    pub(super) fn of_sender(&mut self, labels: &[(String, String)]) -> Result<Labels, String> {
        let is_shown = |(name, value): &&(String, String)| !name.starts_with(HIDDEN_LABEL) && !value.is_empty();
        let shown: Vec<&(String, String)> = labels.iter().filter(is_shown).collect();
        if shown.len() > LABELS_MAX {
            return Err(format!("a series has {} labels; longpole takes {LABELS_MAX} at most", shown.len()));
        }
        for (name, value) in &shown {
            for (text, of, most) in [(name, "name", LABEL_NAME_BYTES_MAX), (value, "value", LABEL_VALUE_BYTES_MAX)] {
                if text.len() > most {
                    return Err(format!("the {of} of a label has {} bytes; longpole takes {most} at most", text.len()));
                }
            }
        }
        let shown: Labels = shown.into_iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
        Ok(self.kept(&shown))
    }

    /// A series: what its profile and its sample say, each label once.
    pub(super) fn series(&mut self, profile_type: &ProfileType, of_profile: &Labels, of_sample: &[(Text, Text)]) -> ProfileSeries {
        let mut labels = self.kept(of_sample);
        labels.retain(|(name, _)| !name.starts_with(HIDDEN_LABEL));
        for (name, value) in of_profile {
            if !labels.iter().any(|(known, _)| known == name) {
                labels.push((name.clone(), value.clone()));
            }
        }
        if !labels.iter().any(|(name, _)| name == SERVICE_LABEL) {
            labels.push((SERVICE_LABEL.into(), UNKNOWN_SERVICE.into()));
        }
        labels.sort();
        labels.dedup_by(|a, b| a.0 == b.0);
        ProfileSeries { profile_type: self.profile_type(profile_type), labels }
    }

    /// Labels as they are kept. The service comes first: what follows must not take the steps that it needs.
    fn kept(&mut self, labels: &[(Text, Text)]) -> Labels {
        let (service, others): (Vec<_>, Vec<_>) = labels.iter().partition(|(name, _)| label_name(name) == SERVICE_LABEL);
        service.into_iter().chain(others).map(|(name, value)| self.label(name, value)).collect()
    }

    /// A label as it is kept.
    fn label(&mut self, name: &Text, value: &Text) -> (Text, Text) {
        let key = (name.clone(), value.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let (mut kept_name, mut kept_value) = key.clone();
        if let Some(redactor) = &mut self.redactor {
            let mut pair = Attributes(vec![Attribute { key: kept_name, value: AttributeValue::Str(kept_value) }]);
            self.redacted += redactor.attributes(&mut pair);
            (kept_name, kept_value) = pair.0.pop().map_or_else(Default::default, |Attribute { key, value }| match value {
                AttributeValue::Str(text) => (key, text),
                _ => (key, Text::new()),
            });
        }
        let kept = (label_name(&kept_name), kept_value);
        self.known.insert(key, kept.clone());
        kept
    }

    fn profile_type(&mut self, profile_type: &ProfileType) -> ProfileType {
        let Some(redactor) = &mut self.redactor else { return profile_type.clone() };
        if let Some(known) = self.types.get(profile_type) {
            return known.clone();
        }
        let mut kept = profile_type.clone();
        let ProfileType { name, sample_type, sample_unit, period_type, period_unit } = &mut kept;
        let texts = [name, sample_type, sample_unit, period_type, period_unit];
        self.redacted += texts.into_iter().map(|text| redactor.text(text)).sum::<u64>();
        self.types.insert(profile_type.clone(), kept.clone());
        kept
    }
}

/// The name of a label: what is no letter, digit or `_` becomes `_`, as Pyroscope and Prometheus write it.
pub(super) fn label_name(name: &str) -> Text {
    let is_kept = |c: char| c.is_alphanumeric() || c == '_';
    if name.chars().all(is_kept) { Text::from(name) } else { Text::from(name.replace(|c: char| !is_kept(c), "_").as_str()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(labels: &[(&str, &str)]) -> Vec<(String, String)> {
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn credentials_are_found_before_a_name_is_rewritten() {
        let mut redactor = Redactor::default();
        let mut maker = LabelMaker::new(Some(&mut redactor));
        maker.begin(1_000);
        let labels =
            maker.of_sender(&pairs(&[("x-api-key", "9f8b7c6d5e4f3a2b1c0d"), ("http.route", "/cart"), ("__name__", "cpu")])).unwrap();
        assert_eq!(labels, [("x_api_key".into(), "[redacted]".into()), ("http_route".into(), "/cart".into())]);
        let of_type = ProfileType::of_parts(["cpu", "https://u:hunter22secret@host/", "count", "", ""]);
        let series = maker.series(&of_type, &labels, &[]);
        assert!(!series.profile_type.to_string().contains("hunter22"), "{series:?}");
        assert_eq!(maker.redacted(), 2);
    }

    #[test]
    fn the_service_is_judged_before_the_steps_are_gone() {
        let mut redactor = Redactor::default();
        let mut maker = LabelMaker::new(Some(&mut redactor));
        maker.begin(0);
        let hard = format!("{}=", "password".repeat(200));
        let mut labels: Vec<(String, String)> = (0..50).map(|number| (format!("a{number}"), format!("{number}{hard}"))).collect();
        labels.push((SERVICE_LABEL.to_owned(), "cart".to_owned()));
        let labels = maker.of_sender(&labels).unwrap();
        assert_eq!(labels[0], (SERVICE_LABEL.into(), "cart".into()));
    }

    #[test]
    fn a_series_has_a_number_of_labels() {
        let mut maker = LabelMaker::new(None);
        let many: Vec<(String, String)> = (0..=LABELS_MAX).map(|number| (format!("a{number}"), "b".to_owned())).collect();
        assert_eq!(maker.of_sender(&many).unwrap_err(), "a series has 65 labels; longpole takes 64 at most");
        let long = "x".repeat(LABEL_VALUE_BYTES_MAX + 1);
        assert_eq!(
            maker.of_sender(&pairs(&[("a", &long)])).unwrap_err(),
            "the value of a label has 2049 bytes; longpole takes 2048 at most"
        );
        assert!(maker.of_sender(&pairs(&[("__hidden__", &long)])).unwrap().is_empty());
    }
}
