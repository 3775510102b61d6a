//! A part of a recording beside its spans: a range of time, a thread, or both.

use longpole_model::{Monotonic, Nanos, SampleId, StackId, WaitId, WaitKind};

use crate::intervals;
use crate::report::Report;

/// What a view is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// From the start of the run; the end is outside.
    pub range: Option<(Nanos, Nanos)>,
    /// Number of a thread.
    pub tid: Option<u32>,
}

/// A wait, as far as it is in an excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutWait {
    /// The wait.
    pub wait: WaitId,
    /// How much of it.
    pub nanos: u64,
}

impl Excerpt {
    /// Whether it is the whole recording.
    pub fn is_whole(&self) -> bool {
        *self == Excerpt::default()
    }
}

impl Report {
    /// Those of these samples that are in the excerpt. Samples without a time are in no range.
    pub fn samples_within(&self, excerpt: Excerpt, mut samples: Vec<SampleId>) -> Vec<SampleId> {
        if let Some((from, to)) = excerpt.range {
            samples.retain(|&sample| (from..to).contains(&self.sample_offsets[sample]));
        }
        if let Some(tid) = excerpt.tid {
            samples.retain(|&sample| self.recording.samples[sample].tid == tid);
        }
        samples
    }

    /// These waits, cut to the excerpt.
    pub fn waits_within(&self, excerpt: Excerpt, waits: impl IntoIterator<Item = WaitId>) -> Vec<CutWait> {
        let cut = |wait: WaitId| {
            let it = &self.recording.waits[wait];
            let nanos = match excerpt.range {
                None => it.nanos(),
                Some(range) => self.nanos_within((it.start, it.end), range),
            };
            (excerpt.tid.is_none_or(|tid| it.tid == tid) && (excerpt.range.is_none() || nanos > 0)).then_some(CutWait { wait, nanos })
        };
        waits.into_iter().filter_map(cut).collect()
    }

    /// How much of a time is in a range.
    pub(crate) fn nanos_within(&self, (start, end): (Monotonic, Monotonic), range: (Nanos, Nanos)) -> u64 {
        let time = self.offset(start).zip(self.offset(end)).and_then(|time| intervals::clip(time, range));
        time.map_or(0, |(from, to)| (to - from).magnitude())
    }

    /// The stacks of these waits, as far as they are known, each with how long it was.
    pub(super) fn stacks_of_waits<'a>(&'a self, waits: &'a [CutWait]) -> impl Iterator<Item = (StackId, u64)> + 'a {
        waits.iter().filter_map(|cut| Some((self.recording.waits[cut.wait].stack?, cut.nanos)))
    }

    /// The same, each with what it was for.
    pub(super) fn kinds_of_waits<'a>(&'a self, waits: &'a [CutWait]) -> impl Iterator<Item = (StackId, WaitKind, u64)> + 'a {
        waits.iter().filter_map(|cut| {
            let wait = &self.recording.waits[cut.wait];
            Some((wait.stack?, wait.kind, cut.nanos))
        })
    }

    /// How many of these waits have a stack.
    pub fn count_sampled(&self, waits: &[CutWait]) -> usize {
        self.stacks_of_waits(waits).count()
    }

    /// The same of all waits in the excerpt.
    pub fn sampled_waits_within(&self, excerpt: Excerpt) -> usize {
        self.count_sampled(&self.waits_within(excerpt, self.all_waits()))
    }

    /// A range from its ends, as far as they are given, cut at the end of the run; `None` for the whole run.
    ///
    /// # Errors
    ///
    /// The ends, if the first is not before the second.
    pub fn range(&self, from: Option<Nanos>, to: Option<Nanos>) -> Result<Option<(Nanos, Nanos)>, (Nanos, Nanos)> {
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        let (from, to) = (from.unwrap_or(Nanos::ZERO), to.unwrap_or(Nanos::MAX).min(self.wall()));
        if from < to { Ok(Some((from, to))) } else { Err((from, to)) }
    }

    /// These waits, whole.
    pub fn uncut(&self, waits: impl IntoIterator<Item = WaitId>) -> Vec<CutWait> {
        self.waits_within(Excerpt::default(), waits)
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::{Nanos, text};

    use super::Excerpt;
    use crate::Report;
    use crate::report::FlameTime;

    #[test]
    fn an_excerpt_has_its_samples_and_the_part_of_each_wait_that_is_inside() {
        let rows = "\
run x 0..100ms
  a 0..100ms svc pid 1
cpu 0..30ms pid 1
cpu 0..100ms pid 1 tid 2
wait 30..100ms pid 1 network [a] main;fetch
sample 1ms x29 pid 1 [a] main;parse
sample 1ms x99 pid 1 tid 2 [a] burn
";
        let report = Report::new(text::parse(rows).unwrap());
        let millis = |from: i64, to: i64| Some((Nanos(from * 1_000_000), Nanos(to * 1_000_000)));
        let weight = |range, tid, time| {
            let tree = report.flame(None, time, Excerpt { range, tid }).tree;
            (tree.samples, tree.total_nanos[0] / 1_000_000)
        };
        assert_eq!(weight(None, None, FlameTime::OnCpu), (128, 128));
        assert_eq!(weight(millis(10, 20), None, FlameTime::OnCpu), (20, 20));
        assert_eq!(weight(millis(10, 20), Some(2), FlameTime::OnCpu), (10, 10));
        assert_eq!(weight(millis(10, 40), Some(1), FlameTime::OffCpu), (1, 10));
        assert_eq!(weight(millis(40, 50), None, FlameTime::Wall), (11, 20));
        assert_eq!(weight(millis(0, 10), None, FlameTime::OffCpu), (0, 0));
    }
}
