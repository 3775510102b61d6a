//! Poles of code: the own time of a pole in parts, by the function that computes and by the function that waits.
//!
//! ```text
//! process   ├── parse ──┤├ fsync ┤├ parse ┤├─ child ─┤├ exit ┤
//! parts     parse ======            ======                        computes
//!           insert_one   ~~~~~~~~                                 waits for the disk, by `fsync`
//!           rest                                       ======
//! ```
//!
//! 1. [`crate::time::activity`] knows what a node does at a moment. A time in which it computes is that of its nearest sample. A wait has a stack
//!    of its own. Few short waits are sampled: the others have the stack of the nearest one.
//! 2. A stack counts for the innermost function of the program that has enough time on the path: what it calls of others, and its own helpers
//!    that take little, are its time.
//! 3. Functions with less than a twentieth of the run, and what has no name, are the rest.
//! 4. In a process of several threads, what a part saves is replayed over them ([`ThreadGraph`]): another thread may hold up the process as
//!    well.
//! 5. The time in which a process waits for work is a part of its own, however short, and no pole.
//!
//! A pole stays whole where its name says more: an operation of a trace, or a process below the first whose functions have no source file, that
//! is nearly all one part; such a process of a tool of the system; an operation with one known part; and one that is known for less than half of
//! its time.

use std::collections::HashMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::{FunctionId, Id, Nanos, NodeId, SampleId, StackId, StateKind, WaitKind};

use crate::code::functions::Function;
use crate::code::origin::CodeOrigin;
use crate::intervals;
use crate::link::waits::NodeWait;
use crate::report::Report;
use crate::report::thread_pieces::{Doing, ThreadPiece, Told};
use crate::schedule::own_work::OwnWork;
use crate::schedule::poles::{PartKind, Pole, PolePart, Poles, Replays};
use crate::schedule::servers::within;
use crate::time::activity::{Activity, Stretch};
use crate::time::short_waits::{self, nearest_short};
use crate::time::thread_graph::{LineId, ThreadGraph};

/// A part is a pole from this part of the run on.
pub(super) const LEAST_PART: i64 = 20;

/// A pole stays whole if one part holds this much of it.
const WHOLE_PERCENT: i64 = 80;

/// Where the programs of the system are, and not somebody's own.
const TOOL_FOLDERS: [&str; 5] = ["/usr/bin/", "/usr/lib", "/usr/sbin/", "/bin/", "/sbin/"];

/// A wait for work, in any function.
const IDLE: PartKind = PartKind::Waits(WaitKind::Idle, None);

/// A piece of a node's own time.
#[derive(Debug, Clone, Copy)]
struct CodePiece {
    node: NodeId,
    from: Nanos,
    to: Nanos,
    told: Told,
}

/// The parts of a pole that are poles.
pub(super) struct Kept {
    /// What they are, and how long each is on the path; the rest is one more.
    pub(super) kinds: HashMap<PartKind, Nanos>,
    /// Whether the rest is all but the time in which it was idle.
    pub(super) is_whole: bool,
}

impl Report {
    /// These poles, split where code tells more.
    pub(super) fn split_by_code(&self, poles: Poles, replays: &dyn Replays) -> Poles {
        if self.are_samples_untimed() || (self.recording.samples.is_empty() && self.recording.waits.is_empty()) {
            return poles;
        }
        let parts = |pole: &Pole| match &self.run_graph {
            Some(graph) => self.parts_of_threads(graph, pole),
            None => self.parts(pole),
        };
        poles.with_parts(&self.forest, &self.path, replays, parts)
    }

    /// The parts of a pole on the path, all of it; none where it stays whole.
    fn parts(&self, pole: &Pole) -> Vec<PolePart> {
        let least = self.wall() / LEAST_PART;
        let is_server = self.is_server(&pole.nodes);
        // What a server does in answer to a call is the server's.
        let answered = OwnWork::new(pole.nodes.iter().filter(|_| !is_server).flat_map(|&node| self.answered(node)));
        let is_called = is_server || !answered.is_empty();
        if pole.on_path < least && !is_called {
            return Vec::new();
        }
        let stretches = self.stretches_on_path(&pole.nodes);
        let on_path = OwnWork::new(stretches.iter().map(|it| (it.node, it.from, it.to)));
        let activity = self.activity();
        // Stacks repeat, and a long recording has millions of pieces: what each is of is decided by stack, and the pieces are made twice.
        let mut of_stack: FastMap<Told, Nanos> = FastMap::default();
        let mut add = |piece: CodePiece| *of_stack.entry(piece.told).or_default() += on_path.between(piece.node, piece.from, piece.to);
        pole.nodes.iter().for_each(|&node| self.each_piece(&activity, node, &mut add));
        let beside_path = |graph| {
            let mut pieces = self.thread_pieces(graph, &[graph.node()]);
            pieces.retain(|piece| !piece.on_path);
            (graph, pieces)
        };
        let beside: Vec<(&ThreadGraph, Vec<ThreadPiece>)> =
            pole.nodes.iter().filter_map(|&node| self.graph_of(node)).map(beside_path).collect();
        beside.iter().flat_map(|(_, pieces)| pieces).for_each(|piece| {
            of_stack.entry(piece.told).or_default();
        });
        let kinds = self.kinds(&of_stack, least);
        let mut sums: HashMap<PartKind, Nanos> = HashMap::new();
        for (told, nanos) in &of_stack {
            *sums.entry(kinds[told]).or_default() += *nanos;
        }
        let Some(Kept { kinds: sums, is_whole }) = self.keep(pole, sums, least, is_called) else { return Vec::new() };
        let mut of_part: HashMap<PartKind, Vec<(NodeId, Nanos, Nanos)>> = HashMap::new();
        let mut keep = |piece: CodePiece| {
            let kind = kinds[&piece.told];
            if !sums.contains_key(&kind) {
                return;
            }
            let pieces = of_part.entry(kind).or_default();
            match pieces.last_mut() {
                Some((node, _, to)) if *node == piece.node && *to == piece.from => *to = piece.to,
                _ => pieces.push((piece.node, piece.from, piece.to)),
            }
        };
        pole.nodes.iter().for_each(|&node| self.each_piece(&activity, node, &mut keep));
        let of = |node: NodeId| move |(from, to): (Nanos, Nanos)| (node, from, to);
        let known = &OwnWork::new(of_part.values().flatten().copied());
        // Nobody waits for the end of a server, but others wait for what it does: without it they would not.
        let calls = if is_server { self.calls_of(&pole.nodes) } else { Vec::new() };
        let by_itself = |(node, from, to): (NodeId, Nanos, Nanos)| answered.gaps(node, from, to).map(of(node));
        let in_time = |work: OwnWork| {
            if is_server {
                OwnWork::new(calls_during(&calls, work.pieces()).into_iter())
            } else {
                OwnWork::new(work.pieces().flat_map(by_itself))
            }
        };
        // All of a part in the threads of the processes.
        let of_threads = |kind: PartKind, work: &OwnWork| {
            let of = |(graph, pieces): &(&ThreadGraph, Vec<ThreadPiece>)| {
                let node = graph.node();
                let own = pieces.iter().filter(|piece| kinds[&piece.told] == kind).map(|piece| (piece.line, piece.from, piece.to));
                let on_path = graph.by_thread(work.pieces_between(node, Nanos::MIN, Nanos::MAX));
                own.chain(on_path).map(move |(line, from, to)| (node, line.place(), from, to)).collect::<Vec<_>>()
            };
            beside.iter().flat_map(of).collect::<Vec<_>>()
        };
        let whole = |kind: PartKind, work: OwnWork, on_path: Vec<(NodeId, Nanos, Nanos)>| {
            let of_threads = of_threads(kind, &work);
            let work = in_time(self.gone_without(work, &of_threads));
            PolePart { kind, work, of_threads, on_path }
        };
        let part = |(kind, pieces): (PartKind, Vec<(NodeId, Nanos, Nanos)>)| {
            let work = OwnWork::new(pieces.into_iter());
            let within = |it: &Stretch| work.pieces_between(it.node, it.from, it.to).map(of(it.node));
            let on_path = stretches.iter().flat_map(within).collect();
            whole(kind, work, on_path)
        };
        let mut parts: Vec<PolePart> = of_part.into_iter().map(part).collect();
        // The rest is all that they leave out.
        let schedule = self.replay.schedule();
        let own = |&node: &NodeId| {
            let gaps = schedule.cover.gaps(node, schedule.start[node], schedule.end[node]);
            gaps.flat_map(move |(from, to)| known.gaps(node, from, to)).map(of(node))
        };
        let work = OwnWork::new(pole.nodes.iter().flat_map(own));
        let left = |it: &Stretch| known.gaps(it.node, it.from, it.to).map(of(it.node));
        let on_path = stretches.iter().flat_map(left).collect();
        let rest = whole(PartKind::Rest, work, on_path);
        parts.push(PolePart { kind: if is_whole { PartKind::Busy } else { PartKind::Rest }, ..rest });
        parts.retain(|part| !part.on_path.is_empty());
        parts.sort_by_key(|part| part.on_path.first().map(|(_, from, _)| *from));
        parts
    }

    /// Which parts of a pole are poles of their own, by how long each is on the path; `None` where the pole stays as it is.
    pub(super) fn keep(&self, pole: &Pole, mut sums: HashMap<PartKind, Nanos>, least: Nanos, is_called: bool) -> Option<Kept> {
        let idle = sums.remove(&IDLE).filter(|nanos| *nanos > Nanos::ZERO);
        sums.retain(|kind, nanos| *kind != PartKind::Rest && *nanos >= least);
        let (most, known): (Nanos, Nanos) = (sums.values().copied().max().unwrap_or_default(), sums.values().copied().sum());
        let is_run = pole.nodes[0] == NodeId::RUN;
        let least_parts = if self.is_process(pole.nodes[0]) { 1 } else { 2 };
        let busy = pole.on_path - idle.unwrap_or_default();
        // A program whose source is known is somebody's own: its function says more than its name.
        let is_known = |kind: &PartKind| match kind {
            PartKind::Computes(function) | PartKind::Waits(_, Some(function)) => !self.functions.list[*function].file.is_empty(),
            PartKind::Waits(_, None) | PartKind::Rest | PartKind::Busy => false,
        };
        let is_own = is_run || (self.is_process(pole.nodes[0]) && sums.keys().any(is_known));
        // A tool of the system is what it is called.
        let is_tool = !is_own && pole.nodes.iter().all(|&node| self.runs_tool(node));
        let stays_whole = is_tool || (most >= busy / 100 * WHOLE_PERCENT && !is_own);
        let is_whole = stays_whole || sums.len() < least_parts || known < busy / 2;
        if is_whole {
            sums.clear();
        }
        match idle {
            Some(idle) => sums.insert(IDLE, idle),
            None if is_whole && !is_called => return None,
            None => None,
        };
        Some(Kept { kinds: sums, is_whole })
    }

    /// What a node does in its own time, each with the stack that tells of it.
    fn each_piece(&self, activity: &Activity<'_>, node: NodeId, each: &mut impl FnMut(CodePiece)) {
        let samples: Vec<SampleId> = activity.telling_samples(self.whole_stretch(node)).collect();
        let waits: Vec<_> = activity.waits_in(self.whole_stretch(node)).collect();
        let short: Vec<NodeWait> = short_waits::telling(&self.recording, waits.iter().copied(), |wait| wait.wait);
        for piece in activity.own_pieces(node) {
            let (from, to) = (piece.from, piece.to);
            let mut push = |from: Nanos, to: Nanos, doing: Doing, stack: Option<StackId>| {
                if from < to {
                    each(CodePiece { node, from, to, told: (doing, stack) });
                }
            };
            match piece.state {
                StateKind::OnCpu | StateKind::Runnable => self.by_nearest_sample(&samples, (from, to), |from, to, stack| {
                    push(from, to, Doing::Computes, stack);
                }),
                StateKind::Blocked(kind) => {
                    let mut at = from;
                    let first = waits.partition_point(|wait| wait.to <= from);
                    for wait in waits[first..].iter().take_while(|wait| wait.from < to) {
                        let recorded = &self.recording.waits[wait.wait];
                        let (start, end) = (wait.from.max(at), wait.to.min(to));
                        if recorded.kind == kind && start < end {
                            push(at, start, Doing::Waits(kind), None);
                            push(start, end, Doing::Waits(kind), recorded.stack);
                            at = end;
                        }
                    }
                    push(at, to, Doing::Waits(kind), None);
                }
                StateKind::BlockedUnseen => {
                    let nearest = nearest_short(&short, from, |wait| (wait.from, wait.to)).map(|wait| &self.recording.waits[wait.wait]);
                    push(from, to, nearest.map_or(Doing::Unknown, |wait| Doing::Waits(wait.kind)), nearest.and_then(|wait| wait.stack));
                }
                _ => push(from, to, Doing::Unknown, None),
            }
        }
    }

    /// Whether a node is a process that runs a program of the system.
    fn runs_tool(&self, node: NodeId) -> bool {
        let process = self.forest.process(&self.recording, node).filter(|_| self.is_process(node) && node != NodeId::RUN);
        process.is_some_and(|process| TOOL_FOLDERS.iter().any(|folder| process.executable.starts_with(folder)))
    }

    /// What is gone of this work if this is gone of what the threads of the processes did: a process ends earlier as far as no other thread
    /// of it holds it up.
    pub(super) fn gone_without(&self, work: OwnWork, of_threads: &[(NodeId, usize, Nanos, Nanos)]) -> OwnWork {
        let mut of_threads = of_threads.to_vec();
        of_threads.sort_unstable();
        of_threads.chunk_by(|a, b| a.0 == b.0).fold(work, |work, same| {
            let node = same[0].0;
            let Some(graph) = self.graph_of(node) else { return work };
            let gone = graph.without(same.iter().map(|&(_, line, from, to)| (LineId::at(line), from, to))).gone();
            let others = work.pieces().filter(|(other, ..)| *other != node);
            OwnWork::new(others.chain(gone.into_iter().map(|(from, to)| (node, from, to))))
        })
    }

    fn graph_of(&self, node: NodeId) -> Option<&ThreadGraph> {
        self.graphs.get(&node)
    }

    /// What part each stack is of, by how long it is on the path.
    pub(super) fn kinds(&self, of_stack: &FastMap<Told, Nanos>, least: Nanos) -> FastMap<Told, PartKind> {
        let mut chains: FastMap<StackId, Vec<FunctionId>> = FastMap::default();
        let mut sums: HashMap<(Doing, FunctionId), Nanos> = HashMap::new();
        for (&(doing, stack), nanos) in of_stack {
            let Some(stack) = stack else { continue };
            for &function in &*chains.entry(stack).or_insert_with(|| self.telling_functions(stack)) {
                *sums.entry((doing, function)).or_default() += *nanos;
            }
        }
        let function = |(doing, stack): Told| chains.get(&stack?)?.iter().copied().find(|&function| sums[&(doing, function)] >= least);
        let kind = |told: Told| match told.0 {
            Doing::Unknown => PartKind::Rest,
            Doing::Computes => function(told).map_or(PartKind::Rest, PartKind::Computes),
            Doing::Waits(WaitKind::Idle) => IDLE,
            Doing::Waits(kind) => PartKind::Waits(kind, function(told)),
        };
        of_stack.keys().map(|&told| (told, kind(told))).collect()
    }

    /// Functions of a stack that an answer may name, innermost first, each once: the program's own, from the one that
    /// [`Functions::own_of_stack`](crate::code::functions::Functions::own_of_stack) names; without any, those of libraries.
    fn telling_functions(&self, stack: StackId) -> Vec<FunctionId> {
        let functions = &self.functions;
        let all = || functions.of_stack(&self.recording, stack);
        // `<listcomp>` and `<lambda>` of Python are part of the function around them.
        let is_inside = |it: &Function| it.runtime.is_some() && it.function.ends_with('>') && it.function != "<module>";
        let has_name = |function: &FunctionId| {
            let function = &functions.list[*function];
            function.reason.is_none() && !is_inside(function)
        };
        let own = functions.own_of_stack(&self.recording, stack).map(|(own, _)| own);
        let own = all().skip_while(|function| Some(*function) != own);
        let own: Vec<FunctionId> = own.filter(|function| functions.list[*function].whose == CodeOrigin::Program).collect();
        let mut chain: Vec<FunctionId> = own.iter().copied().filter(has_name).collect();
        if chain.is_empty() {
            // Its own name tells the function around it, whose frame was not read.
            chain = own.into_iter().filter(|function| functions.list[*function].reason.is_none()).collect();
        }
        if chain.is_empty() {
            let is_library = |function: &FunctionId| functions.list[*function].whose == CodeOrigin::Library && has_name(function);
            chain = all().filter(is_library).collect();
        }
        let mut seen = std::collections::HashSet::new();
        chain.retain(|function| seen.insert(*function));
        chain
    }

    fn whole_stretch(&self, node: NodeId) -> Stretch {
        let schedule = self.replay.schedule();
        Stretch { node, from: schedule.start[node], to: schedule.end[node] }
    }
}

/// The parts of calls, which stand by start, that lie in the time of these pieces.
fn calls_during(calls: &[(NodeId, Nanos, Nanos)], pieces: impl Iterator<Item = (NodeId, Nanos, Nanos)>) -> Vec<(NodeId, Nanos, Nanos)> {
    let times = intervals::union(pieces.map(|(_, from, to)| (from, to)).collect());
    calls.iter().flat_map(|&(node, from, to)| within(&times, (from, to)).map(move |(from, to)| (node, from, to))).collect()
}

#[cfg(test)]
mod tests {
    use longpole_model::{PoleId, text};

    use super::*;

    /// Each pole as `name › part on-path saved saved-with-those-before`, in milliseconds.
    fn poles(text: &str) -> Vec<String> {
        let report = Report::new(text::parse(text).unwrap());
        let millis = |nanos: Nanos| nanos.0 / 1_000_000;
        let name = |function: FunctionId| report.functions.list[function].function.clone();
        let together = report.saves_with_those_before(report.poles().len());
        for (pole, together) in report.poles().ids().zip(&together) {
            let with_those_before: Vec<PoleId> = report.poles().ids().filter(|other| *other <= pole).collect();
            assert_eq!(report.saves_without(&with_those_before), *together);
        }
        let sum: Nanos = report.poles().iter().map(|pole| pole.on_path).sum();
        assert_eq!(sum + report.truncated_on_path() + report.between_operations() + report.idle_on_path(), report.wall());
        let line = |(pole, together): (&Pole, crate::schedule::saving::Saving)| {
            let part = match pole.part.as_ref().map(|part| part.kind) {
                None => String::new(),
                Some(PartKind::Computes(function)) => format!(" › {}", name(function)),
                Some(PartKind::Waits(kind, function)) => {
                    format!(" › {} in {}", kind.as_str(), function.map_or("?".to_owned(), name))
                }
                Some(PartKind::Rest) => " › rest".to_owned(),
                Some(PartKind::Busy) => " at work".to_owned(),
            };
            let zero = pole.savings.if_zero;
            assert_eq!(pole.savings.own, zero);
            format!("{}{part} {} {}-{} {}", pole.name, millis(pole.on_path), millis(zero.low), millis(zero.high), millis(together.high))
        };
        report.poles().iter().zip(together).map(line).collect()
    }

    #[test]
    fn a_process_is_its_functions_and_its_waits() {
        let lone = "\
run x 0..100ms
cpu 0..60ms pid 1
wait 60..90ms pid 1 disk main;insert_one;fsync
cpu 90..100ms pid 1
sample 1ms x40 pid 1 main;parse_rules
sample 41ms x9 pid 1 main;render
sample 50ms x10 pid 1 main;parse_rules;trim
sample 91ms x3 pid 1 main
sample 95ms x5 pid 1 main;render
";
        assert_eq!(
            poles(lone),
            [
                "x › parse_rules 40 40-40 40",
                "x › disk in fsync 30 30-30 70",
                "x › render 15 15-15 85",
                "x › trim 10 10-10 96",
                "x › rest 4 4-4 100",
            ]
        );
    }

    #[test]
    fn the_time_after_the_end_of_a_thread_has_no_name_from_its_short_waits() {
        let ends_early = "\
run x 0..100ms
thread x 0..70ms pid 1 tid 1
cpu 0..50ms pid 1
wait 50..53ms pid 1 lock main;take
cpu 53..54ms pid 1
wait 54..57ms pid 1 lock main;take
cpu 57..58ms pid 1
wait 58..61ms pid 1 lock main;take
cpu 61..70ms pid 1
sample 1ms x48 pid 1 main;parse
sample 62ms x8 pid 1 main;parse
";
        assert_eq!(poles(ends_early), ["x › parse 61 61-61 61", "x › lock in take 9 9-9 70", "x › rest 30 0-0 70"]);
    }

    #[test]
    fn what_a_process_does_while_it_waits_for_a_child_is_no_part() {
        let beside = "\
run x 0..100ms
process helper 10..80ms pid 2 under 1
cpu 0..50ms pid 1
wait 50..80ms pid 1 child main;wait
cpu 80..100ms pid 1
cpu 10..80ms pid 2
sample 1ms x48 pid 1 main;parse
sample 81ms x18 pid 1 main;render
";
        // Without the helper it parses for as long as it did.
        assert_eq!(poles(beside), ["helper 70 30-30 30", "x › render 20 20-20 50", "x › parse 10 10-10 100"]);
    }

    #[test]
    fn only_threads_that_something_waits_for_are_named() {
        let detached = "\
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
        assert_eq!(poles(detached), ["x › parse 60 60-60 60", "x › network in fetch 35 35-35 95", "x › burn 5 5-5 100"]);
        let joined = "\
run x 0..100ms
thread x 0..100ms pid 1 tid 1
thread t 10..90ms pid 1 tid 3
cpu 0..40ms pid 1 tid 1
wait 40..90ms pid 1 tid 1 join at 0x10 holder 3 main
cpu 90..100ms pid 1 tid 1
cpu 10..90ms pid 1 tid 3
sample 1ms x38 pid 1 tid 1 main;parse
sample 11ms x78 pid 1 tid 3 worker;encode
sample 91ms x8 pid 1 tid 1 main;write
";
        // Without `encode` the main thread parses for 30 ms beside the worker, as it did.
        assert_eq!(poles(joined), ["x › encode 80 50-50 50", "x › parse 10 10-10 90", "x › write 10 10-10 100"]);
        // No futex names whose end it was: it was the only thread that ran then.
        let unnamed = joined.replace(" at 0x10 holder 3", "");
        assert_eq!(poles(&unnamed), poles(joined));
    }

    #[test]
    fn an_operation_stays_whole_where_its_name_says_more() {
        let of = |rows: &str| poles(&format!("run x 0..100ms\n  Create 0..100ms svc pid 1\n{rows}"));
        assert_eq!(of("sample 0ms x90 pid 1 [Create] main;parse\n"), ["Create 100 100-100 100"]);
        assert_eq!(of("sample 0ms x40 pid 1 [Create] main;parse\n"), ["Create 100 100-100 100"]);
        let two = "sample 0ms x60 pid 1 [Create] main;parse\nsample 60ms x40 pid 1 [Create] main;render\n";
        assert_eq!(of(two), ["Create › parse 60 60-60 60", "Create › render 40 40-40 100"]);
    }

    /// A script that calls a server twice, and pauses; then it ends the server.
    const CALLS: &str = "\
run sh 0..100ms
process server 0..99ms pid 4 under 1
process curl 10..30ms pid 2 under 1
process curl 60..80ms pid 3 under 1
thread server 0..99ms pid 4 tid 4
wait 10..30ms pid 1 child main;wait4
wait 31..60ms pid 1 sleep main;pause
wait 61..80ms pid 1 child main;wait4
wait 81..98ms pid 1 sleep main;pause
cpu 0..10ms pid 1
cpu 30..31ms pid 1
cpu 60..61ms pid 1
cpu 80..81ms pid 1
cpu 98..100ms pid 1
cpu 10..12ms pid 2
wait 12..28ms pid 2 network main;fetch
cpu 28..30ms pid 2
cpu 60..62ms pid 3
wait 62..78ms pid 3 network main;fetch
cpu 78..80ms pid 3
cpu 0..1ms pid 4
wait 1..12ms pid 4 idle main;serve;accept
cpu 12..28ms pid 4
wait 28..62ms pid 4 idle main;serve;accept
cpu 62..78ms pid 4
wait 78..99ms pid 4 idle main;serve;accept
sample 12ms x16 pid 4 main;serve;render
sample 62ms x16 pid 4 main;serve;render
";

    #[test]
    fn what_clients_wait_for_is_what_a_server_does() {
        assert_eq!(poles(CALLS), ["sh › sleep in pause 46 46-46 46", "server 32 32-32 78", "sh › rest 14 14-14 92", "curl 8 8-8 100"]);
    }

    #[test]
    fn idle_time_is_no_pole() {
        let service = "\
run x 0..100ms
wait 0..60ms pid 1 idle main;serve;accept
cpu 60..80ms pid 1
wait 80..100ms pid 1 disk main;store;fsync
sample 60ms x20 pid 1 main;serve;render
";
        assert_eq!(poles(service), ["x › render 20 20-20 20", "x › disk in fsync 20 20-20 40"]);
        let report = Report::new(text::parse(service).unwrap());
        assert_eq!(report.idle_on_path(), Nanos(60_000_000));
    }
}
