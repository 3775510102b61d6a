//! When threads could run and programs outside the run had the CPUs.
//!
//! ```text
//! two CPUs   thread 7  |=======|::::::|=======|      had to leave its CPU, and is not back
//!            thread 8  |======================|      the other CPU
//! others                       |======|              the time of thread 7 that they had
//! ```
//!
//! A thread can run and has no CPU while all CPUs are busy. If the run's own threads do not use all of them then, others have one that the thread
//! would have had on a free machine: there the run would not have lost that time, whatever is fixed.

use longpole_model::{IdVec, Nanos};

use super::LineId;
use crate::schedule::own_work::TimeSet;
use crate::time::timelines::ThreadLine;

/// A smaller part of a time without a CPU says nothing of others: the kernel moves threads.
const LENT_PART: i64 = 10;

/// For each of these threads, on a machine with this number of CPUs: from the end of each time without a CPU as much as others had.
pub(super) fn lent(threads: &[ThreadLine<'_>], cpus: u32) -> IdVec<LineId, TimeSet> {
    let on_cpus = OnCpus::new(threads);
    let of = |line: &ThreadLine<'_>| {
        let waits = line.slices.windows(2).filter(|pair| pair[0].preempted).map(|pair| (pair[0].to, pair[1].from));
        let of_others = |(from, to): (Nanos, Nanos)| {
            let length = to - from;
            let all = i128::from(length.0) * i128::from(cpus);
            let own = on_cpus.area(to) - on_cpus.area(from);
            // One of these CPUs would have been enough.
            let lent = Nanos(i64::try_from((all - own).max(0)).unwrap_or(i64::MAX)).min(length);
            (lent > length / LENT_PART).then_some((to - lent, to))
        };
        TimeSet::new(waits.filter_map(of_others).collect())
    };
    threads.iter().map(of).collect()
}

/// How much time all threads together spent on CPUs before a moment.
struct OnCpus {
    /// Moments, the time before each, and how many were on CPUs from there.
    steps: Vec<(Nanos, i128, i64)>,
}

impl OnCpus {
    fn new(threads: &[ThreadLine<'_>]) -> OnCpus {
        let slices = threads.iter().flat_map(|line| line.slices);
        let mut changes: Vec<(Nanos, i64)> = slices.flat_map(|slice| [(slice.from, 1), (slice.to, -1)]).collect();
        changes.sort_unstable();
        let mut steps: Vec<(Nanos, i128, i64)> = Vec::with_capacity(changes.len());
        for (at, change) in changes {
            let (since, area, count) = steps.last().copied().unwrap_or((at, 0, 0));
            steps.push((at, area + i128::from((at - since).0) * i128::from(count), count + change));
        }
        OnCpus { steps }
    }

    fn area(&self, at: Nanos) -> i128 {
        let before = self.steps.partition_point(|(step, ..)| *step <= at).checked_sub(1);
        before.map_or(0, |last| {
            let (since, area, count) = self.steps[last];
            area + i128::from((at - since).0) * i128::from(count)
        })
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use crate::Report;

    #[test]
    fn what_other_programs_had_of_the_cpus_is_not_saved_on_a_free_machine() {
        // A program needs a CPU for 40 ms. It gets that in 80 ms, because another program has the machine's only CPU for the other half.
        let rows = "thread x 0..100ms pid 1 tid 1\ncpu 0..20ms pid 1 tid 1 preempted\ncpu 40..60ms pid 1 tid 1 preempted\n\
            cpu 80..100ms pid 1 tid 1\nsample 0ms x20 pid 1 tid 1 main;encode\nsample 40ms x20 pid 1 tid 1 main;encode\n\
            sample 80ms x20 pid 1 tid 1 main;write\n";
        let savings = |cpus: u32, others: &str| {
            let mut recording = text::parse(&format!("run x 0..100ms\n{rows}{others}")).unwrap();
            recording.run.cpus = cpus;
            let report = Report::new(recording);
            let pole = report.poles().iter().next().unwrap();
            [pole.savings.own.low, pole.savings.own.high].map(|nanos| nanos.0 / 1_000_000)
        };
        assert_eq!(savings(1, ""), [40, 69]);
        // Another thread of the run has it.
        let own = "thread y 0..90ms pid 1 tid 7\ncpu 20..40ms pid 1 tid 7 preempted\ncpu 60..80ms pid 1 tid 7\n";
        assert_eq!(savings(1, own), [69, 69]);
    }
}
