//! A profile that longpole fetched, on its way to the ingester.

use longpole_wire::profile_import::Profile;
use longpole_wire::pyroscope::profile_type::SeriesType;

/// Which values of a profile are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScrapedValues {
    /// All of them.
    All,
    /// States.
    States,
    /// What was counted in the seconds before.
    Counts,
}

/// A profile that was fetched: whose it is, and what of it counts.
#[derive(Debug)]
pub(super) struct ScrapedProfile {
    pub(super) labels: Vec<(String, String)>,
    /// The name of its types.
    pub(super) name: &'static str,
    pub(super) kept: ScrapedValues,
}

impl ScrapedProfile {
    /// Leaves only the values that count.
    ///
    /// # Errors
    ///
    /// It counts from the start of the process, so that each profile would count the same again.
    pub(super) fn keep_own_values(&self, profile: &mut Profile, types: &[SeriesType]) -> Result<(), String> {
        if self.kept == ScrapedValues::Counts && profile.duration_nanos == 0 {
            return Err("it counts from the start of the process; Go limits it to `?seconds=` from version 1.16 on".to_owned());
        }
        let is_kept = |kind: &SeriesType| match self.kept {
            ScrapedValues::All => true,
            ScrapedValues::States => kind.profile_type.is_state(),
            ScrapedValues::Counts => !kind.profile_type.is_state(),
        };
        let left_out: Vec<usize> = (0..types.len()).filter(|place| !is_kept(&types[*place])).collect();
        for sample in &mut profile.samples {
            for place in &left_out {
                sample.values.get_mut(*place).into_iter().for_each(|value| *value = 0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use longpole_wire::profile_import::{ProfileSample, ValueType};
    use longpole_wire::pyroscope::profile_type::of_pprof;

    use super::*;

    #[test]
    fn memory_is_a_state_of_one_profile_and_a_count_of_another() {
        let kind = |name: &str, unit: &str| ValueType { name: name.to_owned(), unit: unit.to_owned() };
        let heap = |duration_nanos| Profile {
            types: vec![kind("alloc_space", "bytes"), kind("inuse_space", "bytes")],
            duration_nanos,
            samples: vec![ProfileSample { values: vec![7, 9], ..ProfileSample::default() }],
            ..Profile::default()
        };
        let values = |kept, duration_nanos| {
            let mut profile = heap(duration_nanos);
            let types = of_pprof(Some("memory"), &profile);
            let scraped = ScrapedProfile { labels: Vec::new(), name: "memory", kept };
            scraped.keep_own_values(&mut profile, &types).map(|()| profile.samples.remove(0).values)
        };
        assert_eq!(values(ScrapedValues::States, 0), Ok(vec![0, 9]));
        assert_eq!(values(ScrapedValues::Counts, 14_000_000_000), Ok(vec![7, 0]));
        assert_eq!(values(ScrapedValues::All, 0), Ok(vec![7, 9]));
        assert!(values(ScrapedValues::Counts, 0).unwrap_err().contains("start of the process"));
    }
}
