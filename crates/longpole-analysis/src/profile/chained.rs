//! A state of several processes as one line: what a process that lives all the time would have.
//!
//! ```text
//! process a   200 204 208 212   4   8  12        it began anew, and lost 208
//! process b           60  64  68  72             it came later, and is smaller
//! chained     200 204 208 212 216 220 224        changes alone, each the average of the processes that are there
//! ```
//!
//! An average of the processes would fall with b, and with the restart of a, and hide that both grow.

use std::collections::BTreeMap;

/// A fall takes back at least this part of what a process gained since the one before it,
const FALL_OF_GAIN_MIN: f64 = 0.5;

/// is at least this part of its value,
const FALL_OF_VALUE_MIN: f64 = 0.05;

/// and at least this many times its usual change.
const FALL_CHANGES_MIN: f64 = 5.0;

/// Changes for each fall, at least: what falls more often keeps its level.
const CHANGES_PER_FALL_MIN: usize = 6;

/// Values of a process, by the number of the part of the time that they are in.
pub type ProcessValues = BTreeMap<usize, f64>;

/// The line.
#[derive(Debug, Clone, PartialEq)]
pub struct Chained {
    /// By part; its last value is as far from the first as the changes add up to.
    pub values: ProcessValues,
    /// The average of the processes in the last part.
    pub now: f64,
    /// The process that has gained most of those that are there at last, since it began or fell: how much it gained, and its last value.
    pub held: [f64; 2],
}

impl Chained {
    /// The line of some processes; `None` without a value.
    pub fn of(processes: &[ProcessValues]) -> Option<Chained> {
        let falls: Vec<Vec<usize>> = processes.iter().map(falls).collect();
        let changes = processes.iter().map(|process| process.len().saturating_sub(1)).sum::<usize>();
        let leaves_out = falls.iter().map(Vec::len).sum::<usize>() * CHANGES_PER_FALL_MIN <= changes;
        let mut parts: BTreeMap<usize, (f64, f64, usize)> = BTreeMap::new();
        for (process, falls) in processes.iter().zip(&falls) {
            let mut before = None;
            for (part, value) in process {
                let sum = parts.entry(*part).or_default();
                let is_fall = leaves_out && falls.contains(part);
                let change = before.map_or(0.0, |before| if is_fall { 0.0 } else { value - before });
                (sum.0, sum.1, sum.2) = (sum.0 + change, sum.1 + value, sum.2 + 1);
                before = Some(*value);
            }
        }
        let ends: Vec<(usize, usize)> =
            processes.iter().filter_map(|it| Some((*it.first_key_value()?.0, *it.last_key_value()?.0))).collect();
        let there = |part: usize| ends.iter().filter(|(first, last)| (*first..=*last).contains(&part)).count().max(1) as f64;
        let average = |sum: &(f64, f64, usize)| sum.1 / sum.2.max(1) as f64;
        let now = average(parts.last_key_value()?.1);
        let mut level = average(parts.first_key_value()?.1);
        let values = parts.iter().map(|(part, sum)| {
            level += sum.0 / there(*part);
            (*part, level)
        });
        let last = *parts.last_key_value()?.0;
        let held = processes.iter().zip(&falls).filter(|(process, _)| process.contains_key(&last)).map(|(process, falls)| {
            let begins = falls.last().copied().unwrap_or(0);
            let least = process.range(begins..).map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
            let value = process.get(&last).copied().unwrap_or(0.0);
            [value - least, value]
        });
        let held = held.max_by(|a, b| a[0].total_cmp(&b[0])).unwrap_or([0.0, now]);
        Some(Chained { values: values.collect(), now, held })
    }

    /// The last value.
    pub fn end(&self) -> f64 {
        self.values.last_key_value().map_or(0.0, |(_, value)| *value)
    }
}

/// Parts in which a process begins anew, or loses in another way most of what it gained.
fn falls(process: &ProcessValues) -> Vec<usize> {
    let values: Vec<(usize, f64)> = process.iter().map(|(part, value)| (*part, *value)).collect();
    let mut sizes: Vec<f64> = values.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let mut least = values.first().map_or(0.0, |(_, value)| *value);
    let mut falls = Vec::new();
    for pair in values.windows(2) {
        let [(_, before), (part, value)] = [pair[0], pair[1]];
        let lost = before - value;
        let is_fall = lost > 0.0
            && lost >= FALL_OF_GAIN_MIN * (before - least)
            && lost >= FALL_OF_VALUE_MIN * before.abs()
            && lost >= FALL_CHANGES_MIN * usual;
        if is_fall {
            falls.push(part);
            least = value;
        }
        least = least.min(value);
    }
    falls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(from: usize, values: impl IntoIterator<Item = f64>) -> ProcessValues {
        (from..).zip(values).collect()
    }

    fn line(processes: &[ProcessValues]) -> Vec<f64> {
        Chained::of(processes).unwrap().values.into_values().collect()
    }

    #[test]
    fn a_restart_and_a_small_new_process_hide_no_growth() {
        let rising = |from: f64, count: usize| (0..count).map(move |step| from + 4.0 * step as f64).collect::<Vec<f64>>();
        let expected = rising(200.0, 20);
        assert_eq!(line(&[process(0, rising(200.0, 20))]), expected);
        // It begins anew at part 15, and another one comes at 10.
        let restarted = [rising(200.0, 15), rising(200.0, 5)].concat();
        assert_eq!(line(&[process(0, restarted.clone())]), [&expected[..15], &expected[14..19]].concat());
        let chained = Chained::of(&[process(0, restarted)]).unwrap();
        assert_eq!((chained.now, chained.held), (216.0, [16.0, 216.0]));
        let scaled = Chained::of(&[process(0, rising(200.0, 20)), process(19, [60.0])]).unwrap();
        assert_eq!((scaled.now, scaled.held), (168.0, [76.0, 276.0]));
        assert_eq!(line(&[process(0, rising(200.0, 20)), process(10, rising(60.0, 10))])[..10], expected[..10]);
        let both = line(&[process(0, rising(200.0, 20)), process(10, rising(60.0, 10))]);
        // In its first part the new one has no change yet.
        assert_eq!(both[10..].windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [4.0; 9]);
    }

    #[test]
    fn processes_whose_profiles_come_in_turns_count_once() {
        let [a, b] = [0, 1].map(|first| (first..20).step_by(2).map(|part| (part, 100.0 + part as f64)).collect::<ProcessValues>());
        let both = line(&[a, b]);
        assert!((both[18] - both[2] - 16.0).abs() < 1e-9, "{both:?}");
    }

    #[test]
    fn what_falls_often_keeps_its_level() {
        let teeth = (0..48).map(|part| 100.0 + 8.0 * f64::from(part % 4));
        let line = line(&[process(0, teeth)]);
        assert!(line.iter().all(|value| (100.0..=124.0).contains(value)), "{line:?}");
        assert_eq!(Chained::of(&[]), None);
        assert_eq!(Chained::of(&[ProcessValues::new()]), None);
    }
}
