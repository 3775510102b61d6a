//! Versions of services, as labels of profiles name them.

use std::collections::BTreeMap;

use longpole_model::profile::ProfileSeries;
use longpole_model::{Text, Timestamp};

/// Labels that name a version.
const NAMES: [&str; 9] =
    ["app_version", "commit", "git_ref", "image", "release", "service_git_ref", "service_version", "vcs_ref_head_revision", "version"];

/// Whether a label names a version.
pub(super) fn is_one(label: &str) -> bool {
    NAMES.contains(&label)
}

/// Versions that an answer names.
const BEGAN_MAX: usize = 100;

/// When the first profiles of each version came.
#[derive(Debug, Default)]
pub(super) struct Versions(BTreeMap<(Text, Text), Timestamp>);

impl Versions {
    /// Notes a profile of a series.
    pub(super) fn note(&mut self, series: &ProfileSeries, at: Timestamp) {
        for (name, value) in series.labels.iter().filter(|(name, _)| is_one(name)) {
            let first = self.0.entry((name.clone(), value.clone())).or_insert(at);
            *first = at.min(*first);
        }
    }

    /// Versions whose first profiles came between two times, the second of them too late, and later than those of another one: by time.
    pub(super) fn began(&self, [from, until]: [Timestamp; 2]) -> Vec<(String, Timestamp)> {
        let mut earliest: BTreeMap<&Text, Timestamp> = BTreeMap::new();
        for ((name, _), first) in &self.0 {
            let known = earliest.entry(name).or_insert(*first);
            *known = (*first).min(*known);
        }
        let has_earlier = |name: &Text, at: Timestamp| earliest.get(name).is_some_and(|first| *first < at);
        let began = self.0.iter().filter(|((name, _), first)| (from..until).contains(*first) && has_earlier(name, **first));
        let mut began: Vec<(String, Timestamp)> = began.map(|((name, value), first)| (format!("{name}=\"{value}\""), *first)).collect();
        began.sort_by_key(|(_, first)| *first);
        began.truncate(BEGAN_MAX);
        began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_begins_if_there_was_another() {
        let series = |version: &str| ProfileSeries { labels: vec![("version".into(), version.into())], ..ProfileSeries::default() };
        let mut versions = Versions::default();
        for (version, at) in [("1.8", 50), ("1.7", 10), ("1.8", 40), ("1.7", 60)] {
            versions.note(&series(version), Timestamp(at));
        }
        assert_eq!(versions.began([Timestamp(0), Timestamp(100)]), [("version=\"1.8\"".to_owned(), Timestamp(40))]);
        assert!(versions.began([Timestamp(41), Timestamp(100)]).is_empty());
    }
}
