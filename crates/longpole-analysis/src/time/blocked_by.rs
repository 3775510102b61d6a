//! Whom waits were for, and what those threads did meanwhile.

use std::cmp::Reverse;
use std::collections::HashMap;

use longpole_model::units::whole_percent;
use longpole_model::{Id, IdVec, Monotonic, Nanos, SampleId, ThreadKey, Timestamp, UnsignedNanos, Wait, WaitId};

use crate::intervals;
use crate::time::blockers::{BlockedOn, BlockerEvidence, Relation, Sources};
use crate::time::thread_names::ThreadNames;
use crate::time::timelines::Timelines;
use crate::time::wait_groups::{WaitGroups, WaitPart, WaitSum};

/// A thread that others waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocker<'a> {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own.
    pub name: Option<&'a str>,
    /// What it was for them.
    pub relation: Relation,
    /// How that is known; of several waits the weakest.
    pub evidence: BlockerEvidence,
    /// For how long of the waits.
    pub nanos: Nanos,
    /// Its samples in that time.
    pub samples: Vec<SampleId>,
    /// What it waited for then, longest first.
    pub waits: Vec<WaitSum<'a>>,
}

/// Whom some waits were for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BlockedBy<'a> {
    /// Those that are known, of a hundredth of the waits or more, longest first, at most [`BLOCKERS_MAX`].
    pub list: Vec<Blocker<'a>>,
    /// How many are known, also beyond that number.
    pub threads: usize,
    /// For how long it was one of several, and how many these were at most.
    pub one_of: Option<(Nanos, u32)>,
}

/// A thread that another one waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitedFor<'a> {
    /// The thread.
    pub tid: u32,
    /// What it is called, where it has a name of its own.
    pub name: Option<&'a str>,
    /// What it was for the other one.
    pub relation: Relation,
    /// How that is known; of several waits the weakest.
    pub evidence: BlockerEvidence,
    /// For how long.
    pub nanos: UnsignedNanos,
}

/// Waits whose blocker is searched for the list of all threads: a tenth of a second's work.
pub const TOLD_WAITS_MAX: usize = 20_000;

/// Threads that are named for one kind of wait: looking at what each did takes a walk over the recording.
pub const BLOCKERS_MAX: usize = 5;

/// Stretches of waits that were for one thread, before those that overlap are joined.
const APART_MAX: usize = 1 << 10;

/// What of some waits was for one thread.
struct Held {
    /// The weakest.
    evidence: BlockerEvidence,
    /// All waits together.
    nanos: Nanos,
    /// When any of them was for it.
    stretches: Vec<(Nanos, Nanos)>,
    /// How many of them there were when they were joined last.
    joined: usize,
}

impl Held {
    fn new(evidence: BlockerEvidence) -> Held {
        Held { evidence, nanos: Nanos::ZERO, stretches: Vec::new(), joined: 0 }
    }

    /// Adds a part of a wait. Thousands may wait for one thread at a time, each in hundreds of parts.
    fn add(&mut self, evidence: BlockerEvidence, (from, to): (Nanos, Nanos)) {
        self.evidence = self.evidence.max(evidence);
        self.nanos += to - from;
        self.stretches.push((from, to));
        if self.stretches.len() > self.joined.saturating_mul(2).max(APART_MAX) {
            self.stretches = intervals::union(std::mem::take(&mut self.stretches));
            self.joined = self.stretches.len();
        }
    }
}

/// What the answer is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitedForThreads<'a> {
    pub(crate) groups: WaitGroups<'a>,
    pub(crate) timelines: &'a Timelines,
    /// The start of the run, which offsets count from.
    pub(crate) origin: Timestamp,
    /// When each sample was, in nanoseconds from there.
    pub(crate) sample_offsets: &'a IdVec<SampleId, Nanos>,
    pub(crate) names: ThreadNames<'a>,
}

impl<'a> WaitedForThreads<'a> {
    fn sources(&self) -> Sources<'a> {
        Sources { recording: self.groups.recording, timelines: self.timelines, origin: self.origin }
    }

    /// When it was, from the start of the run.
    fn offset(&self, at: Monotonic) -> Option<Nanos> {
        self.groups.recording.clock.to_unix(at).map(|at| Nanos(at.nanos_since(self.origin)))
    }

    /// Whom these waits were for, and what that did meanwhile.
    pub(crate) fn blocked_by(&self, sum: &WaitSum<'_>) -> BlockedBy<'a> {
        let mut out = BlockedBy::default();
        let Some(relation) = sum.relation else { return out };
        let sources = self.sources();
        let mut found: HashMap<ThreadKey, Held> = HashMap::new();
        for part in &sum.parts {
            let wait = &self.groups.recording.waits[part.wait];
            for held in self.groups.blockers.parts(&sources, wait) {
                let (Some(from), Some(to)) = (self.offset(held.from), self.offset(held.to)) else { continue };
                let Some((from, to)) = intervals::clip((from, to), (part.from, part.to)) else { continue };
                match held.who {
                    BlockedOn::Thread { tid, evidence } => {
                        found.entry(ThreadKey::new(wait.pid, tid)).or_insert(Held::new(evidence)).add(evidence, (from, to));
                    }
                    BlockedOn::OneOf(threads) => {
                        let (nanos, most) = out.one_of.unwrap_or_default();
                        out.one_of = Some((nanos + (to - from), most.max(threads)));
                    }
                    BlockedOn::Nobody => {}
                }
            }
        }
        let mut found: Vec<(ThreadKey, Held)> = found.into_iter().collect();
        found.retain(|(_, held)| whole_percent(held.nanos.0, sum.nanos.0) > 0);
        found.sort_by_key(|(thread, held)| (Reverse(held.nanos), *thread));
        out.threads = found.len();
        let blocker = |(thread, Held { evidence, nanos, stretches, .. }): (ThreadKey, Held)| {
            let (samples, waits) = self.of_thread_in(thread, &intervals::union(stretches));
            let name = self.names.of(thread);
            Blocker { pid: thread.pid.0, tid: thread.tid.0, name, relation, evidence, nanos, samples, waits }
        };
        out.list = found.into_iter().take(BLOCKERS_MAX).map(blocker).collect();
        out
    }

    /// What a thread ran and waited for in these stretches of time, which stand in order and do not overlap.
    fn of_thread_in(&self, thread: ThreadKey, stretches: &[(Nanos, Nanos)]) -> (Vec<SampleId>, Vec<WaitSum<'a>>) {
        let mut samples = Vec::new();
        for &(from, to) in stretches {
            let place = |at: Nanos| SampleId::at(self.sample_offsets.partition_point(|sample| *sample < at));
            let is_its = |sample: &SampleId| self.groups.recording.samples[*sample].thread() == thread;
            samples.extend(place(from).until(place(to)).filter(is_its));
        }
        let mut waits = Vec::new();
        let recording = self.groups.recording;
        // A thread waits for one thing at a time, but in a file of others each of its waits may be as long as the run.
        let mut until = Nanos::MIN;
        for (id, wait) in recording.wait_ids().zip(&recording.waits).filter(|(_, wait)| wait.thread() == thread) {
            let (Some(start), Some(end)) = (self.offset(wait.start), self.offset(wait.end)) else { continue };
            let start = start.max(until);
            until = until.max(end);
            let first = stretches.partition_point(|(_, to)| *to <= start);
            for &(from, to) in stretches[first..].iter().take_while(|(from, _)| *from < end) {
                let (from, to) = (from.max(start), to.min(end));
                waits.push(WaitPart { wait: id, from, to, nanos: to - from });
            }
        }
        (samples, self.groups.sums(waits.into_iter(), |parts| parts.iter().map(|part| part.nanos).sum()))
    }

    /// Whom each thread waited for, by process and thread, longest first; of the [`TOLD_WAITS_MAX`] longest waits. Workers that wait for
    /// work wait for nobody.
    pub(crate) fn threads_waited_for(&self, idle: &IdVec<WaitId, bool>) -> HashMap<ThreadKey, Vec<WaitedFor<'a>>> {
        let waits = self.groups.recording.waits.iter().zip(idle).filter(|(_, idle)| !**idle).map(|(wait, _)| wait);
        let waits = waits.filter_map(|wait| Some((wait, self.groups.blockers.relation(wait)?)));
        let mut waits: Vec<(&Wait, Relation)> = waits.collect();
        waits.sort_by_key(|(wait, _)| (Reverse(wait.nanos()), wait.start, wait.tid));
        waits.truncate(TOLD_WAITS_MAX);
        let sources = self.sources();
        let mut sums: HashMap<(ThreadKey, u32, Relation), (UnsignedNanos, BlockerEvidence)> = HashMap::new();
        for (wait, relation) in waits {
            for part in self.groups.blockers.parts(&sources, wait) {
                if let BlockedOn::Thread { tid, evidence } = part.who {
                    let (nanos, weakest) = sums.entry((wait.thread(), tid, relation)).or_insert((UnsignedNanos::ZERO, evidence));
                    *nanos += UnsignedNanos(part.to.nanos_since(part.from));
                    *weakest = (*weakest).max(evidence);
                }
            }
        }
        let mut out: HashMap<ThreadKey, Vec<WaitedFor<'a>>> = HashMap::new();
        // Thousands may have waited for one thread.
        let mut names: HashMap<ThreadKey, Option<&str>> = HashMap::new();
        for ((waiter, tid, relation), (nanos, evidence)) in sums {
            let thread = ThreadKey::new(waiter.pid.0, tid);
            let name = *names.entry(thread).or_insert_with(|| self.names.of(thread));
            out.entry(waiter).or_default().push(WaitedFor { tid, name, relation, evidence, nanos });
        }
        out.values_mut().for_each(|list| list.sort_by_key(|it| (Reverse(it.nanos), it.tid, it.relation)));
        out
    }
}
