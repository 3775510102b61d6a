//! Which threads matter, and why.

use std::collections::HashMap;

use longpole_model::{FunctionId, IdVec, Nanos, PoleId, Recording, SampleId, StackId, Thread, ThreadKey, UnsignedNanos, WaitKind};

use crate::intervals;
use crate::report::Report;
use crate::schedule::poles::{PartKind, Pole};
use crate::time::lanes::{Lane, LaneBins};
use crate::time::threads::{self, Importance, ThreadLife};

/// What of a process is in a pole: all of it, or a part.
struct Code<'a> {
    report: &'a Report,
    part: Option<PartKind>,
    /// The parts that are poles of their own, if this one is the rest of them.
    others: Vec<PartKind>,
    /// Which stacks have the functions of these parts.
    stacks: HashMap<FunctionId, IdVec<StackId, bool>>,
}

impl<'a> Code<'a> {
    fn of(report: &'a Report, pole: &Pole) -> Code<'a> {
        let part = pole.part.as_ref().map(|part| part.kind);
        let same = || report.poles().iter().filter(|other| other.nodes == pole.nodes).filter_map(|other| Some(other.part.as_ref()?.kind));
        let others: Vec<PartKind> =
            if part == Some(PartKind::Rest) { same().filter(|kind| Some(*kind) != part).collect() } else { Vec::new() };
        let function = |kind: &PartKind| match kind {
            PartKind::Computes(function) | PartKind::Waits(_, Some(function)) => Some(*function),
            PartKind::Waits(_, None) | PartKind::Rest | PartKind::Busy => None,
        };
        let functions = part.iter().chain(&others).filter_map(function);
        let stacks = functions.map(|function| (function, report.functions.stacks_with(&report.recording, function))).collect();
        Code { report, part, others, stacks }
    }

    fn has(&self, function: FunctionId, stack: Option<StackId>) -> bool {
        stack.is_some_and(|stack| self.stacks.get(&function).and_then(|stacks| stacks.get(stack)) == Some(&true))
    }

    fn computes(&self, kind: PartKind, stack: StackId) -> bool {
        matches!(kind, PartKind::Computes(function) if self.has(function, Some(stack)))
    }

    fn waits(&self, kind: PartKind, waited: WaitKind, stack: Option<StackId>) -> bool {
        matches!(kind, PartKind::Waits(kind, function) if kind == waited && function.is_none_or(|function| self.has(function, stack)))
    }

    /// Whether a sample with this stack is in it.
    fn holds_sample(&self, stack: StackId) -> bool {
        match self.part {
            None | Some(PartKind::Busy) => true,
            Some(PartKind::Rest) => !self.others.iter().any(|&kind| self.computes(kind, stack)),
            Some(kind) => self.computes(kind, stack),
        }
    }

    /// Whether a wait is in it.
    fn holds_wait(&self, wait: longpole_model::WaitId) -> bool {
        let wait = &self.report.recording.waits[wait];
        match self.part {
            None => true,
            Some(PartKind::Busy) => wait.kind != WaitKind::Idle,
            Some(PartKind::Rest) => !self.others.iter().any(|&kind| self.waits(kind, wait.kind, wait.stack)),
            Some(kind) => self.waits(kind, wait.kind, wait.stack),
        }
    }
}

impl Report {
    /// What makes each of these threads matter.
    pub fn importance_of_threads(&self, lives: &[ThreadLife]) -> Vec<Importance> {
        let mut in_pole: HashMap<(ThreadKey, PoleId), UnsignedNanos> = HashMap::new();
        let activity = self.activity();
        for (pole, about) in self.poles().enumerated().take(threads::POLES_MAX) {
            let code = Code::of(self, about);
            for stretch in self.stretches_of_pole(about) {
                for &sample in activity.samples_in(stretch) {
                    let sample = &self.recording.samples[sample];
                    if code.holds_sample(sample.stack) {
                        *in_pole.entry((sample.thread(), pole)).or_default() += UnsignedNanos(sample.weight_nanos);
                    }
                }
                for part in activity.waits_in(stretch).filter(|part| code.holds_wait(part.wait)) {
                    let wait = &self.recording.waits[part.wait];
                    *in_pole.entry((wait.thread(), pole)).or_default() += UnsignedNanos((part.to - part.from).magnitude());
                }
            }
        }
        threads::importance(&self.recording, self.waits.idle(), lives, &in_pole)
    }

    /// Whether anything is known of a thread.
    pub fn has_thread(&self, tid: u32) -> bool {
        let Recording { threads, samples, waits, .. } = &self.recording;
        threads.iter().any(|thread| thread.tid == tid)
            || samples.iter().any(|sample| sample.tid == tid)
            || waits.iter().any(|wait| wait.tid == tid)
    }

    /// The threads that lived in a range of time, with what they did in it, those with the most time on a CPU first.
    pub fn lives_in(&self, (from, to): (Nanos, Nanos)) -> Vec<ThreadLife> {
        let origin = self.origin();
        threads::lives_in(&self.recording, (origin.plus_nanos(from.0), origin.plus_nanos(to.0)))
    }

    /// What threads did in a range of time, in `bins` equal pieces: of those that lived in it the first `limit` by how much they matter, and
    /// how many the limit leaves out.
    pub fn lanes(&self, range: (Nanos, Nanos), bins: usize, limit: usize) -> (Vec<Lane>, usize) {
        let recording = &self.recording;
        let life = |thread: &Thread| Some((self.offset(thread.start)?, thread.end.and_then(|end| self.offset(end)).unwrap_or(range.1)));
        let mut shown: Vec<(usize, usize, (Nanos, Nanos))> = Vec::new();
        for (rank, &thread) in self.threads_by_rank().iter().enumerate() {
            let lived = life(&recording.threads[thread]).and_then(|life| intervals::clip(life, range));
            shown.extend(lived.map(|lived| (rank, thread, lived)));
        }
        let left_out = shown.len().saturating_sub(limit);
        shown.truncate(limit);
        let lane = |(_, thread, lived): (usize, usize, (Nanos, Nanos))| {
            let key = recording.threads[thread].thread();
            let mut sums = LaneBins::new(range, bins);
            let pieces = self.timelines.pieces_of_thread(key, lived);
            for piece in pieces.iter().flatten() {
                sums.add(*piece);
            }
            if pieces.is_none() {
                let samples = self.samples_of_thread(key);
                let at = |sample: SampleId| self.sample_offsets[sample];
                let first = samples.partition_point(|&sample| at(sample) < lived.0);
                for &sample in samples[first..].iter().take_while(|&&sample| at(sample) < lived.1) {
                    sums.add_sample(at(sample), Nanos::from_u64(recording.samples[sample].weight_nanos));
                }
            }
            sums.lane(thread, pieces.is_some())
        };
        (shown.into_iter().map(lane).collect(), left_out)
    }

    /// The places of threads in the recording, the most important first.
    fn threads_by_rank(&self) -> &[usize] {
        self.thread_ranks.get_or_init(|| {
            let lives = threads::lives(&self.recording);
            let importance = self.importance_of_threads(&lives);
            let mut ranked: Vec<(usize, usize)> = importance.iter().zip(&lives).map(|(about, life)| (about.rank, life.thread)).collect();
            ranked.sort_unstable();
            ranked.into_iter().map(|(_, thread)| thread).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::{Id, text};

    use crate::Report;
    use crate::time::threads;

    #[test]
    fn a_thread_has_the_poles_whose_code_it_runs_or_waits_in() {
        let rows = "\
run x 0..100ms
thread x 0..100ms pid 1 tid 1
thread t 10..100ms pid 1 tid 3
cpu 0..60ms pid 1 tid 1
wait 60..100ms pid 1 tid 1 network main;fetch
cpu 10..55ms pid 1 tid 3
cpu 95..100ms pid 1 tid 3
sample 1ms x58 pid 1 tid 1 main;parse
sample 11ms x44 pid 1 tid 3 background;burn
sample 96ms x4 pid 1 tid 3 background;burn
";
        let report = Report::new(text::parse(rows).unwrap());
        let lives = threads::lives(report.recording());
        let mut found: Vec<(u32, Vec<usize>)> = report
            .importance_of_threads(&lives)
            .into_iter()
            .zip(&lives)
            .map(|(about, life)| (report.recording().threads[life.thread].tid, about.poles.iter().map(|pole| pole.place()).collect()))
            .collect();
        found.sort_unstable();
        // `parse` and `fetch` are the poles of the main thread, `burn` that of the other one.
        assert_eq!(found, [(1, vec![0, 1]), (3, vec![2])]);
    }
}
