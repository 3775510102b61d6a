//! The exact time of spans, against the same rules applied to every single nanosecond.

use longpole_analysis::Report;
use longpole_analysis::time::states::{StateEvidence, States};
use longpole_analysis::tree::forest::NodeSource;
use longpole_model::{CpuSlice, IdVec, Nanos, NodeId, Recording, SpanKind, StateKind, WaitKind, text};
use proptest::prelude::*;

/// One span: its parent among those before it (0: the run), where it starts and ends in it in percent, which process emitted it,
/// whether it is a client's.
type SpanLine = (usize, i64, i64, u32, bool);
/// One stretch of a journal: length, and 0 a hole, 1 no span, 2.. a span.
type CurrentLine = (i64, usize);
/// One time on a CPU: how long after the last, length, whether it had to leave, and of the wait before it: kind, offset, length.
type CpuLine = (i64, i64, bool, Option<(usize, i64, i64)>);
/// The thread of process 1; those of process 7, with their journals.
type ThreadLines = (Vec<CpuLine>, Vec<(Vec<CpuLine>, Vec<CurrentLine>)>);

const RUN: i64 = 90;

fn spelled(spans: &[SpanLine], (only, journaled): &ThreadLines) -> Recording {
    let mut out = format!("run x  0..{RUN}ns\n");
    let mut ranges = vec![(0, RUN)];
    for (i, (parent, start, end, pid, client)) in spans.iter().enumerate() {
        let parent = parent % ranges.len();
        let (from, to) = ranges[parent];
        let at = |percent: i64| from + (to - from) * percent / 100;
        let (start, end) = (at(*start.min(end)), at(*start.max(end)));
        let kind = if *client { " kind client" } else { "" };
        out.push_str(&format!("n{i} {start}..{end}ns svc id {} parent {parent} pid {pid}{kind}\n", i + 1));
        ranges.push((start, end));
    }
    let journaling: Vec<usize> = (0..spans.len()).filter(|&i| spans[i].3 == 7).collect();
    let mut waits = String::new();
    out.push_str(&format!("thread x 0..{RUN}ns pid 1 tid 1\nthread a 0..70ns pid 7 tid 8\nthread b 5..80ns pid 7 tid 9\n"));
    let mut threads = vec![(1, 1, only, &[][..])];
    threads.extend(journaled.iter().enumerate().map(|(i, (cpu, journal))| (7, 8 + i, cpu, &journal[..])));
    for (pid, tid, cpu, journal) in threads {
        let (mut at, mut blocked) = (0, false);
        for (off, on, preempted, wait) in cpu {
            if let Some((kind, from, length)) = wait.filter(|_| blocked) {
                let (from, to) = ((at + from).min(at + off), (at + from + length).min(at + off));
                if from < to {
                    let kind = WaitKind::ALL[kind % WaitKind::ALL.len()].as_str();
                    waits.push_str(&format!("wait {from}..{to}ns pid {pid} tid {tid} {kind} ?\n"));
                }
            }
            let how = if *preempted { " preempted" } else { "" };
            out.push_str(&format!("cpu {}..{}ns pid {pid} tid {tid}{how}\n", at + off, at + off + on));
            at += off + on;
            blocked = !preempted;
        }
        let mut at = 0;
        for (length, whose) in journal {
            match whose {
                0 => {}
                1 => out.push_str(&format!("current {at}..{}ns pid {pid} tid {tid} -\n", at + length)),
                whose => {
                    let name = journaling.get(whose % journaling.len().max(1)).map_or("-".to_owned(), |i| format!("n{i}"));
                    out.push_str(&format!("current {at}..{}ns pid {pid} tid {tid} {name}\n", at + length));
                }
            }
            at += length;
        }
    }
    text::parse(&(out + &waits)).expect("the notation")
}

fn any_recording() -> impl Strategy<Value = Recording> {
    let span = (0usize..8, 0i64..101, 0i64..101, prop_oneof![Just(1u32), Just(7)], prop::bool::weighted(0.2));
    let wait = prop::option::of((0usize..8, 0i64..4, 1i64..6));
    let cpu = || prop::collection::vec((0i64..8, 1i64..9, any::<bool>(), wait.clone()), 0..9);
    let journal = || prop::collection::vec((1i64..14, prop_oneof![1 => Just(0usize), 3 => Just(1), 12 => 2usize..10]), 0..9);
    let threads = (cpu(), prop::collection::vec((cpu(), journal()), 2..3));
    (prop::collection::vec(span, 0..8), threads).prop_map(|(spans, threads)| spelled(&spans, &threads))
}

/// The first of several that are true at once. Time in a child has no place here.
fn first(candidates: impl Iterator<Item = StateKind>) -> Option<StateKind> {
    use WaitKind::{Child, Disk, Join, Lock, Network, Other, PageFault, Pipe, Queue, Sleep};
    let kinds = [Disk, Network, PageFault, Child, Pipe, Sleep, Lock, Queue, Join, Other].map(StateKind::Blocked);
    let order = [
        &[StateKind::OnCpu, StateKind::Runnable][..],
        &kinds,
        &[StateKind::BlockedUnseen, StateKind::Remote, StateKind::Awaiting, StateKind::Unaccounted],
    ]
    .concat();
    let rank = |state: &StateKind| order.iter().position(|known| known == state).expect("a state of a thread");
    candidates.min_by_key(rank)
}

/// Everything about one recording, asked one nanosecond at a time.
struct Slowly<'a> {
    report: &'a Report,
    recording: &'a Recording,
}

impl Slowly<'_> {
    fn range(&self, node: NodeId) -> (i64, i64) {
        let range = self.report.forest()[node].range;
        (range.start.nanos_since(text::ORIGIN), range.end.nanos_since(text::ORIGIN))
    }

    fn is_open(&self, node: NodeId, at: i64) -> bool {
        let (start, end) = self.range(node);
        start <= at && at < end
    }

    fn pid(&self, node: NodeId) -> Option<u32> {
        self.report.forest().span(self.recording, node).and_then(|span| span.pid)
    }

    /// Whether a child that `counts` is open.
    fn has_open_child(&self, node: NodeId, at: i64, counts: impl Fn(NodeId) -> bool) -> bool {
        self.report.forest().children(node).any(|child| counts(child) && self.is_open(child, at))
    }

    fn monotonic(at: i64) -> u64 {
        text::ORIGIN_MONOTONIC.0 + at as u64
    }

    fn thread(&self, pid: u32, tid: u32, at: i64) -> StateKind {
        let at = Self::monotonic(at);
        let slices: Vec<&CpuSlice> = self.recording.cpu_slices.iter().filter(|s| (s.pid, s.tid) == (pid, tid)).collect();
        if slices.iter().any(|slice| slice.start.0 <= at && at < slice.end.0) {
            return StateKind::OnCpu;
        }
        let is_last = !slices.iter().any(|slice| slice.start.0 > at);
        let thread = self.recording.threads.iter().find(|t| (t.pid, t.tid) == (pid, tid)).expect("a thread");
        match slices.iter().rfind(|slice| slice.end.0 <= at) {
            None if thread.start.0 > text::ORIGIN_MONOTONIC.0 && thread.start.0 <= at => StateKind::Runnable,
            None => StateKind::Unaccounted,
            Some(before) if before.preempted => {
                if is_last {
                    StateKind::Unaccounted
                } else {
                    StateKind::Runnable
                }
            }
            Some(_) if is_last && thread.end.is_some_and(|end| end.0 <= at) => StateKind::Unaccounted,
            Some(_) => {
                let mut waits = self.recording.waits.iter().filter(|w| (w.pid, w.tid) == (pid, tid));
                let wait = waits.find(|wait| wait.start.0 <= at && at < wait.end.0);
                wait.map_or(StateKind::BlockedUnseen, |wait| StateKind::Blocked(wait.kind))
            }
        }
    }

    /// The spans of process 1 that could have its thread.
    fn leaves(&self, at: i64) -> Vec<NodeId> {
        let of_one = |node: NodeId| self.pid(node) == Some(1);
        let open = self.report.forest().ids().skip(1).filter(|&node| of_one(node) && self.is_open(node, at));
        open.filter(|&node| !self.has_open_child(node, at, of_one)).collect()
    }

    fn switched(&self, pid: u32, tid: u32) -> bool {
        self.recording.cpu_slices.iter().any(|slice| (slice.pid, slice.tid) == (pid, tid))
    }

    fn stretches(&self, node: NodeId) -> impl Iterator<Item = (u32, u64, u64)> {
        let span = self.report.forest().span(self.recording, node);
        let id = span.map(|span| (span.trace_id, span.span_id));
        let of_node = self.recording.current_spans.iter().filter(move |current| id.is_some() && current.span == id);
        of_node.map(|current| (current.tid, current.start.0, current.end.0))
    }

    /// How it is known; `None` where it is an estimate.
    fn evidence(&self, node: NodeId) -> Option<StateEvidence> {
        if self.stretches(node).next().is_some() {
            return self.stretches(node).all(|(tid, ..)| self.switched(7, tid)).then_some(StateEvidence::Journal);
        }
        let is_root = self.report.forest()[node].source == NodeSource::Root;
        let has_the_thread = is_root || self.pid(node) == Some(1);
        let beside = |at: i64| self.leaves(at).len() > 1 && self.leaves(at).contains(&node);
        (has_the_thread && self.switched(1, 1) && !(0..RUN).any(beside)).then_some(StateEvidence::Inferred)
    }

    /// Whether records of a journal are missing at a moment.
    fn in_hole(&self, at: i64) -> bool {
        let at = Self::monotonic(at);
        [8, 9].into_iter().any(|tid| {
            let of_thread = || self.recording.current_spans.iter().filter(move |current| current.tid == tid);
            let (before, after) = (of_thread().any(|c| c.end.0 <= at), of_thread().any(|c| c.start.0 > at));
            before && after && !of_thread().any(|c| c.start.0 <= at && at < c.end.0)
        })
    }

    fn state(&self, node: NodeId, evidence: StateEvidence, at: i64) -> StateKind {
        let now = Self::monotonic(at);
        let threads: Vec<StateKind> = match evidence {
            StateEvidence::Journal => {
                let current = self.stretches(node).filter(|(_, start, end)| *start <= now && now < *end);
                current.map(|(tid, ..)| self.thread(7, tid, at)).collect()
            }
            _ => {
                let leaves = self.leaves(at);
                let has_it = leaves == [node] || (leaves.is_empty() && node == NodeId::RUN);
                has_it.then(|| self.thread(1, 1, at)).into_iter().collect()
            }
        };
        let calls = self.report.forest().span(self.recording, node).is_some_and(|span| span.kind == SpanKind::Client);
        match first(threads.into_iter()) {
            Some(state @ (StateKind::OnCpu | StateKind::Runnable)) => state,
            _ if self.has_open_child(node, at, |_| true) => StateKind::InChild,
            Some(state) => state,
            None if evidence != StateEvidence::Journal || self.in_hole(at) => StateKind::Unaccounted,
            None if calls => StateKind::Remote,
            None => StateKind::Awaiting,
        }
    }

    fn states(states_in_order: impl Iterator<Item = StateKind>) -> States {
        let mut states = States::default();
        for state in states_in_order {
            states.parts[state] += Nanos(1);
        }
        states
    }
}

/// The parts, without evidence and completeness.
fn parts(states: &States) -> States {
    States { cpu: Nanos::ZERO, evidence: StateEvidence::default(), incomplete: false, ..*states }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn states_are_those_of_every_nanosecond(recording in any_recording()) {
        let report = Report::new(recording);
        let slowly = Slowly { report: &report, recording: report.recording() };
        let forest = report.forest();
        let evidence: IdVec<NodeId, Option<StateEvidence>> = forest.ids().map(|node| slowly.evidence(node)).collect();
        for node in forest.ids() {
            let (start, end) = slowly.range(node);
            let (own, all) = (report.node_states(node), report.node_states_with_descendants(node));
            prop_assert_eq!((own.sum().0, all.sum().0, all.of(StateKind::InChild).0), (end - start, end - start, 0));
            prop_assert_eq!(own.evidence, evidence[node].unwrap_or(StateEvidence::Samples), "{}", report.name(node));
            let Some(known) = evidence[node] else { continue };
            let expected = Slowly::states((start..end).map(|at| slowly.state(node, known, at)));
            prop_assert_eq!(parts(&own), expected, "{} of {}", report.name(node), text::print(report.recording()));
            prop_assert!(!own.is_exact() || own.evidence != StateEvidence::Journal || !(start..end).any(|at| slowly.in_hole(at)));
            if forest.subtree(node).any(|below| evidence[below].is_none()) {
                continue;
            }
            let merged = (start..end).map(|at| {
                let below = forest.subtree(node).filter(|&below| slowly.is_open(below, at));
                let candidates = below.map(|below| slowly.state(below, evidence[below].unwrap_or_default(), at));
                first(candidates.filter(|state| *state != StateKind::InChild)).unwrap_or(StateKind::Unaccounted)
            });
            prop_assert_eq!(parts(&all), Slowly::states(merged), "{} with all below", report.name(node));
        }
        prop_assert_eq!(report.path_states().sum(), report.wall());
    }
}
