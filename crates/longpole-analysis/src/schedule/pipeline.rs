//! Processes that wait for each other's output: `cat | gzip | md5sum`.
//!
//! ```text
//! cat      ▓·▓···▓·····▓·····▓····▓┤             ▓ on a CPU   · blocked on a pipe
//! gzip     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓┤        faster, and all three would be
//! md5sum   ├·····▓····▓·····▓····▓·····▓┤
//! ```
//!
//! A shell starts all parts of a pipeline at once and in order, and waits for the end of all of them. A reader of a pipe waits for the
//! part before it, a writer for the part after it, and if that part is blocked the same way at that moment, for the next one. So each
//! moment in which a part is blocked on a pipe belongs to the part that runs then ([`Pipelines::stalls`]): a faster one would have
//! shortened it. A part that read from a pipe when the part before it ended waited for that end ([`Pipelines::ends`]).
//!
//! Without a recorded wait for a pipe, a process that hardly ran is assumed to wait for the end of the sibling that started together
//! with it, ran, and ended before it. That is a guess, so the saving is a range that covers both cases.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use longpole_model::{AddNanos, CpuSlice, Id, IdVec, Monotonic, Nanos, NodeId, ProcessRow, Recording, SumNanos, Wait, WaitKind};

use crate::tree::forest::{Forest, NodeSource};

/// Waits of one process that are compared with a moment: the latest. A thread is in one at a time.
const OPEN_MAX: usize = 256;

/// A shell starts all parts of a pipeline at once; so far apart at most.
const STARTED_TOGETHER_NANOS: Nanos = Nanos(50_000_000);

/// Parts of a pipeline; what has more is none.
const PARTS_MAX: usize = 32;

/// A process closes its pipes before it has ended, and who reads from them has a CPU soon after that.
const CLOSED_BEFORE_NANOS: Nanos = Nanos(20_000_000);
const RELEASED_WITHIN_NANOS: Nanos = Nanos(20_000_000);

/// Up to this share of its life on a CPU a process may have waited for another one.
const WAITED_PERCENT: i64 = 50;

/// The other one has at least this multiple of its CPU time, or they are equals.
const BUSIER_FACTOR: i64 = 2;

/// Lives shorter than this number of sampling periods say nothing.
const PERIODS_MIN: i64 = 20;

/// Siblings that ended before a process, and that it may have waited for.
const ASKED_MAX: usize = 16;

/// Waits and slices of all parts together. Processes of one pid that lived at the same time, as a damaged file may say, have them several
/// times; beyond this they are blocked on nothing.
const COMPARED_MAX: usize = 50_000_000;

/// A moment of each node.
type Times = IdVec<NodeId, Nanos>;

/// An end that waited for another node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndWait {
    pub(crate) waiting: NodeId,
    pub(crate) busy: NodeId,
    /// Whether it may as well have waited for nothing.
    pub(crate) by_chance: bool,
}

/// Which processes waited for each other's output.
#[derive(Debug, Default)]
pub(crate) struct Pipelines {
    pub(crate) ends: Vec<EndWait>,
    /// For nodes that were blocked on a pipe: for which nodes, and how long.
    pub(crate) stalls: BTreeMap<NodeId, Vec<(NodeId, Nanos)>>,
}

/// What is blocked on a pipe waits for the part before it, or for the one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

/// A part of what may be a pipeline.
struct Part {
    node: NodeId,
    /// Stretches in which it was blocked on a pipe, by time.
    stalls: Vec<Stall>,
    /// Whether most of its sampled waits were for something else.
    waits_for_others: bool,
}

#[derive(Debug, Clone, Copy)]
struct Stall {
    from: Nanos,
    to: Nanos,
    side: Side,
}

impl Pipelines {
    pub(crate) fn new(recording: &Recording, forest: &Forest, start: &Times, end: &Times) -> Pipelines {
        let mut found = Pipelines::default();
        if recording.samples.is_empty() && recording.cpu_slices.is_empty() {
            return found;
        }
        let lone = |&n: &NodeId| matches!(forest[n].source, NodeSource::Process(_)) && forest[n].subtree_end == n.next();
        let mut families: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        for parent in forest.ids().filter(|&i| forest[i].subtree_end > i.next().next()) {
            let mut lone: Vec<NodeId> = forest.children(parent).filter(lone).collect();
            if lone.len() > 1 {
                lone.sort_by_key(|&n| (start[n], n));
                families.push((parent, lone));
            }
        }
        if families.is_empty() {
            return found;
        }
        let at_once = |&a: &NodeId, &b: &NodeId| start[b] - start[a] <= STARTED_TOGETHER_NANOS && start[b] < end[a];
        let groups = families.iter().flat_map(|(_, lone)| lone.chunk_by(at_once));
        let groups: Vec<&[NodeId]> = groups.filter(|group| (2..=PARTS_MAX).contains(&group.len())).collect();
        let rows = Rows::of(recording, forest, &groups);
        let mut wait_for_others = HashSet::new();
        for group in groups {
            let parts: Vec<Part> = group.iter().map(|&node| rows.part(recording, forest, node)).collect();
            wait_for_others.extend(parts.iter().filter(|part| part.waits_for_others).map(|part| part.node));
            found.add(&parts, start, end);
        }
        found.guess(recording, forest, (start, end), (families, &wait_for_others));
        found
    }

    /// Adds what the parts of one pipeline tell of each other.
    fn add(&mut self, parts: &[Part], start: &Times, end: &Times) {
        let mut moments: Vec<Nanos> = parts.iter().flat_map(|part| &part.stalls).flat_map(|stall| [stall.from, stall.to]).collect();
        if moments.is_empty() {
            return;
        }
        moments.extend(parts.iter().flat_map(|part| [start[part.node], end[part.node]]));
        moments.sort_unstable();
        moments.dedup();
        let mut sums: BTreeMap<(NodeId, NodeId), Nanos> = BTreeMap::new();
        let mut next = vec![0; parts.len()];
        let mut sides = vec![None; parts.len()];
        for pair in moments.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            for (place, part) in parts.iter().enumerate() {
                while part.stalls.get(next[place]).is_some_and(|stall| stall.to <= from) {
                    next[place] += 1;
                }
                sides[place] = part.stalls.get(next[place]).filter(|stall| stall.from <= from).map(|stall| stall.side);
            }
            let lives = |at: &usize| start[parts[*at].node] <= from && end[parts[*at].node] >= to;
            for (place, side) in sides.iter().enumerate().filter_map(|(place, side)| Some((place, (*side)?))) {
                let mut at = side.of(place, parts.len()).filter(lives);
                while let Some(other) = at.filter(|&other| sides[other] == Some(side)) {
                    at = side.of(other, parts.len()).filter(lives);
                }
                // Two that wait for each other are about to go on.
                if let Some(busy) = at.filter(|&other| sides[other].is_none()) {
                    *sums.entry((parts[place].node, parts[busy].node)).or_default() += to - from;
                }
            }
        }
        let stalled = |waiting: NodeId, busy: NodeId| sums.get(&(waiting, busy)).copied().unwrap_or_default();
        for pair in parts.windows(2) {
            let (busy, waiting) = (pair[0].node, pair[1].node);
            let (since, until) = (end[busy] - CLOSED_BEFORE_NANOS, end[busy] + RELEASED_WITHIN_NANOS);
            let last = pair[1].stalls.iter().rev().find(|stall| stall.from <= end[busy]);
            let read_to_its_end = last.is_some_and(|stall| stall.side == Side::Before && (since..=until).contains(&stall.to));
            // A writer that fills a pipe faster than it is read has waited for its reader, and reaches its end first all the same.
            let is_faster = stalled(busy, waiting) < stalled(waiting, busy);
            if read_to_its_end && is_faster && (end[busy], busy) < (end[waiting], waiting) {
                self.ends.push(EndWait { waiting, busy, by_chance: false });
            }
        }
        for ((waiting, busy), nanos) in sums {
            self.stalls.entry(waiting).or_default().push((busy, nanos));
        }
    }

    /// Adds ends that may have waited for another one where nothing is known of pipes.
    fn guess(
        &mut self,
        recording: &Recording,
        forest: &Forest,
        (start, end): (&Times, &Times),
        (families, wait_for_others): (Vec<(NodeId, Vec<NodeId>)>, &HashSet<NodeId>),
    ) {
        let cpu = cpu_of_processes(recording);
        let cpu_of = |n: NodeId| match forest[n].source {
            NodeSource::Process(p) => cpu[p],
            _ => Nanos::ZERO,
        };
        let shortest = Nanos(1_000_000_000 / i64::from(recording.run.rate_hz.max(1)) * PERIODS_MIN);
        for (parent, mut lone) in families {
            lone.sort_by_key(|&n| (end[n], n));
            let siblings: Vec<NodeId> = forest.children(parent).collect();
            for (place, &waiting) in lone.iter().enumerate() {
                let life = end[waiting] - start[waiting];
                let is_known = self.stalls.contains_key(&waiting) || wait_for_others.contains(&waiting);
                if is_known || life < shortest || cpu_of(waiting) > life / 100 * WAITED_PERCENT {
                    continue;
                }
                let busy = lone[..place].iter().rev().take(ASKED_MAX).copied().find(|&other| {
                    let together = (start[other] - start[waiting]).magnitude() <= STARTED_TOGETHER_NANOS.magnitude();
                    let ran = cpu_of(other) > (end[other] - start[other]) / 100 * WAITED_PERCENT;
                    // What was started after it ended waited for that too, or for something else: this is no pipeline.
                    let next = siblings.partition_point(|&s| start[s] < end[other]);
                    let last = siblings.get(next).is_none_or(|&s| start[s] >= end[waiting]);
                    together && ran && last && cpu_of(other) >= cpu_of(waiting) * BUSIER_FACTOR
                });
                self.ends.extend(busy.map(|busy| EndWait { waiting, busy, by_chance: true }));
            }
        }
    }
}

impl Side {
    /// The part on that side.
    fn of(self, place: usize, parts: usize) -> Option<usize> {
        match self {
            Side::Before => place.checked_sub(1),
            Side::Behind => Some(place + 1).filter(|&next| next < parts),
        }
    }

    /// Where the other end of the pipe is that this call waits at.
    fn of_call(syscall: &str) -> Side {
        if matches!(syscall, "write" | "writev" | "sendfile") { Side::Behind } else { Side::Before }
    }
}

/// What is recorded of processes that may be parts of a pipeline, by process id and time.
struct Rows<'a> {
    slices: HashMap<u32, Vec<&'a CpuSlice>>,
    /// Rows of main threads.
    waits: HashMap<u32, Vec<&'a Wait>>,
    /// Rows of all parts so far.
    compared: Cell<usize>,
}

impl<'a> Rows<'a> {
    fn of(recording: &'a Recording, forest: &Forest, groups: &[&[NodeId]]) -> Rows<'a> {
        let nodes = groups.iter().flat_map(|group| group.iter());
        let pids: HashSet<u32> = nodes.filter_map(|&node| Some(forest.process(recording, node)?.pid)).collect();
        let mut rows = Rows { slices: HashMap::new(), waits: HashMap::new(), compared: Cell::new(0) };
        // Helper threads may sit in a read for long, as one that waits for a token of `make`.
        for wait in recording.waits.iter().filter(|wait| wait.tid == wait.pid && pids.contains(&wait.pid)) {
            if wait.kind == WaitKind::Pipe {
                rows.slices.entry(wait.pid).or_default();
            }
            rows.waits.entry(wait.pid).or_default().push(wait);
        }
        if !rows.slices.is_empty() {
            for slice in &recording.cpu_slices {
                if let Some(slices) = rows.slices.get_mut(&slice.pid) {
                    slices.push(slice);
                }
            }
        }
        rows.slices.values_mut().for_each(|slices| slices.sort_by_key(|slice| slice.start));
        rows.waits.values_mut().for_each(|waits| waits.sort_by_key(|wait| wait.start));
        rows
    }

    fn part(&self, recording: &Recording, forest: &Forest, node: NodeId) -> Part {
        let mut part = Part { node, stalls: Vec::new(), waits_for_others: false };
        let Some(process) = forest.process(recording, node) else { return part };
        let lived = process.start..=process.end.unwrap_or(Monotonic(u64::MAX));
        let waits = within_life(self.waits.get(&process.pid), &lived, |wait| wait.start);
        let sum = |fits: &dyn Fn(&Wait) -> bool| waits.iter().filter(|wait| fits(wait)).map(|wait| wait.nanos()).sum_nanos::<u64>();
        let on_pipes = sum(&|wait| wait.kind == WaitKind::Pipe);
        part.waits_for_others = sum(&is_for_others) > on_pipes;
        let slices = within_life(self.slices.get(&process.pid).filter(|_| on_pipes > 0), &lived, |slice| slice.start);
        self.compared.set(self.compared.get().saturating_add(waits.len() + slices.len()));
        if slices.is_empty() || self.compared.get() > COMPARED_MAX {
            return part;
        }
        let behind = sum(&|wait| wait.kind == WaitKind::Pipe && Side::of_call(&wait.syscall) == Side::Behind);
        let mut side = if behind > on_pipes - behind { Side::Behind } else { Side::Before };
        let origin = forest.run_range().start;
        let offset = |at: Monotonic| recording.clock.to_unix(at).map_or(Nanos::ZERO, |at| Nanos(at.nanos_since(origin)));
        let mut open: Vec<&Wait> = Vec::new();
        let mut begun = waits.iter().peekable();
        for (from, to) in gaps(slices.iter()) {
            open.retain(|wait| wait.end > from);
            open.extend(std::iter::from_fn(|| begun.next_if(|wait| wait.start <= from)).filter(|wait| wait.end > from));
            open.drain(..open.len().saturating_sub(OPEN_MAX));
            match open.iter().find(|wait| wait.kind == WaitKind::Pipe) {
                Some(wait) => side = Side::of_call(&wait.syscall),
                // Few short waits are sampled: those of a process that mostly waits for pipes are for pipes.
                None if part.waits_for_others || open.iter().any(|wait| is_for_others(wait)) => continue,
                None => {}
            }
            part.stalls.push(Stall { from: offset(from), to: offset(to), side });
        }
        part
    }
}

/// Those of these rows, by start, that started in a life. A pid can have had many processes, one after the other.
fn within_life<'r, 'a, R>(rows: Option<&'r Vec<&'a R>>, lived: &RangeInclusive<Monotonic>, start: impl Fn(&R) -> Monotonic) -> &'r [&'a R] {
    let rows = rows.map_or(&[][..], Vec::as_slice);
    let rows = &rows[rows.partition_point(|row| start(row) < *lived.start())..];
    &rows[..rows.partition_point(|row| start(row) <= *lived.end())]
}

/// Whether it is no wait for another part of a pipeline, and none for another thread, which has a wait of its own.
fn is_for_others(wait: &Wait) -> bool {
    !matches!(wait.kind, WaitKind::Pipe | WaitKind::Lock | WaitKind::Queue | WaitKind::Join)
}

/// When no thread of a process was on a CPU or had to leave it, from the first slice to the last. Slices come by their start.
fn gaps<'a>(slices: impl Iterator<Item = &'a &'a CpuSlice>) -> impl Iterator<Item = (Monotonic, Monotonic)> {
    // Threads that had to leave their CPU, and until when any was on one.
    let mut waiting = HashSet::new();
    let mut until: Option<Monotonic> = None;
    slices.filter_map(move |slice| {
        let was_waiting = !waiting.is_empty();
        waiting.remove(&slice.tid);
        if slice.preempted {
            waiting.insert(slice.tid);
        }
        let before = until.replace(until.map_or(slice.end, |until| until.max(slice.end)));
        before.filter(|before| !was_waiting && *before < slice.start).map(|before| (before, slice.start))
    })
}

/// CPU time of each process: from switch records, which are exact, or else from samples.
fn cpu_of_processes(recording: &Recording) -> IdVec<ProcessRow, Nanos> {
    let processes = &recording.processes;
    let mut of_pid: HashMap<u32, Vec<ProcessRow>> = HashMap::new();
    for (i, process) in recording.process_rows().zip(processes) {
        of_pid.entry(process.pid).or_default().push(i);
    }
    for list in of_pid.values_mut() {
        list.sort_by_key(|&i| (processes[i].start, i));
    }
    let process_at = |pid: u32, at: Monotonic| {
        let list = of_pid.get(&pid)?;
        list.partition_point(|&i| processes[i].start <= at).checked_sub(1).map(|last| list[last])
    };
    let none = || IdVec::<ProcessRow, u64>::filled(0, processes.len());
    let (mut exact, mut sampled) = (none(), none());
    for slice in &recording.cpu_slices {
        if let Some(p) = process_at(slice.pid, slice.start) {
            exact[p].add_nanos(slice.end.nanos_since(slice.start));
        }
    }
    for sample in &recording.samples {
        if let Some(p) = process_at(sample.pid, sample.time) {
            sampled[p].add_nanos(sample.weight_nanos);
        }
    }
    let longer = |(exact, sampled): (u64, u64)| Nanos::from_u64(exact.max(sampled));
    exact.into_iter().zip(sampled).map(longer).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use longpole_model::{Nanos, text};

    use super::*;
    use crate::Report;

    /// Poles as `name on-path low-high`, in milliseconds.
    fn check(input: &str, expected: &[&str]) {
        let report = Report::new(text::parse(input).unwrap());
        let millis = |nanos: Nanos| nanos.0 / 1_000_000;
        let drawn: Vec<String> = report
            .poles()
            .iter()
            .map(|p| {
                let zero = p.savings.if_zero;
                format!("{} {} {}-{}", p.name, millis(p.on_path), millis(zero.low), millis(zero.high))
            })
            .collect();
        assert_eq!(drawn, expected);
    }

    const LIVES: &str = "\
run sh  0..1000ms
process seq     1..300ms  pid 2 under 1
process sort    2..980ms  pid 3 under 1
process md5sum  3..990ms  pid 4 under 1
";

    #[test]
    fn the_part_of_a_pipeline_that_runs_is_named_before_the_one_that_waits() {
        let busy = "sample 2ms x250 pid 2 m\nsample 2ms x950 pid 3 m\nsample 900ms x40 pid 4 m\n";
        check(&format!("{LIVES}{busy}"), &["sort 978 0-690", "md5sum 10 10-10"]);
    }

    #[test]
    fn without_samples_or_where_all_run_the_last_to_end_is_named() {
        check(LIVES, &["md5sum 987 10-10"]);
        check(&format!("{LIVES}sample 2ms x950 pid 3 m\nsample 3ms x900 pid 4 m\n"), &["md5sum 987 10-10"]);
    }

    /// Three that are blocked on each other's pipes; the one in the middle works.
    const STAGES: &str = "\
run sh  0..1000ms
process cat     1..900ms  pid 2 under 1
process gzip    2..980ms  pid 3 under 1
process md5sum  3..990ms  pid 4 under 1
cpu 1..2ms pid 2 tid 2\nwait 2..850ms pid 2 tid 2 pipe in write m\ncpu 850..900ms pid 2 tid 2
cpu 2..980ms pid 3 tid 3
cpu 3..4ms pid 4 tid 4\nwait 4..500ms pid 4 tid 4 pipe in read m\ncpu 500..560ms pid 4 tid 4
";

    /// Twice the length of its waits in `write` was more than can be counted.
    #[test]
    fn waits_as_long_as_can_be_are_compared() {
        let wait = "wait 2..850ms pid 2 tid 2 pipe in write m\n";
        let mut recording = text::parse(&STAGES.replace(wait, &wait.repeat(3))).unwrap();
        recording.waits.iter_mut().for_each(|wait| wait.end = Monotonic(wait.start.0 + (1 << 62) - 1));
        assert!(!Report::new(recording).poles().is_empty());
    }

    /// For each process all waits and slices of its pid were searched: 2,700,000,000 steps.
    #[test]
    fn each_process_of_a_pid_is_compared_with_its_own_rows() {
        const COUNT: u64 = 30_000;
        let mut said = format!("run sh 0..{}ms\n", 20 * COUNT + 20);
        for number in 0..COUNT {
            let at = 20 * number + 1;
            writeln!(said, "process cat {at}..{}ms pid 2 under 1\nprocess wc {at}..{}ms pid {} under 1", at + 15, at + 16, 10 + number)
                .unwrap();
            writeln!(said, "cpu {at}..{}ms pid 2 tid 2\nwait {}..{}ms pid 2 tid 2 pipe in write m", at + 1, at + 1, at + 9).unwrap();
            writeln!(said, "cpu {}..{}ms pid 2 tid 2", at + 9, at + 10).unwrap();
        }
        let recording = text::parse(&said).unwrap();
        let forest = Forest::build(&recording);
        let nodes: Vec<NodeId> = forest.ids().skip(1).collect();
        let rows = Rows::of(&recording, &forest, &[&nodes]);
        let stalls = nodes.iter().map(|&node| rows.part(&recording, &forest, node).stalls.len());
        assert_eq!(stalls.sum::<usize>() as u64, COUNT);
        assert_eq!(rows.compared.get() as u64, 3 * COUNT);
    }

    #[test]
    fn who_is_blocked_on_a_pipe_is_faster_with_whom_it_waits_for() {
        let last = "wait 560..985ms pid 4 tid 4 pipe in read m\ncpu 985..990ms pid 4 tid 4\n";
        let found = ["gzip 978 916-916", "md5sum 10 10-10"];
        check(&format!("{STAGES}{last}"), &found);
        // Which of the last two ends first is chance.
        let turned =
            format!("{STAGES}{last}").replace("gzip    2..980", "gzip    2..995").replace("3 tid 3\ncpu 2..980", "3 tid 3\ncpu 2..995");
        check(&turned, &["gzip 993 926-926"]);
        // Most waits are short, and few of these are sampled.
        let short: String = (0..40).map(|i| format!("cpu {0}..{1}ms pid 4 tid 4\n", 570 + i * 10, 571 + i * 10)).collect();
        check(&format!("{STAGES}{short}{}", last.replace("560", "961")), &["gzip 978 876-876", "md5sum 10 10-10"]);
    }

    #[test]
    fn the_reader_of_who_waits_for_it_does_not_wait_for_its_end() {
        // The last that it reads is there before the other one ends.
        let rest = "cpu 2..895ms pid 3 tid 3\nwait 895..900ms pid 3 tid 3 pipe in read m\ncpu 900..980ms pid 3 tid 3";
        let last = "wait 560..980ms pid 4 tid 4 pipe in read m\ncpu 980..990ms pid 4 tid 4\n";
        check(&format!("{}{last}", STAGES.replace("cpu 2..980ms pid 3 tid 3", rest)), &["gzip 978 911-911", "md5sum 10 10-10"]);
    }

    #[test]
    fn a_part_that_works_when_its_input_has_ended_limits_what_that_saves() {
        let rows = "\
run sh  0..1000ms
process gzip    1..400ms  pid 2 under 1
process sort    2..900ms  pid 3 under 1
process uniq    3..910ms  pid 4 under 1
cpu 1..400ms pid 2 tid 2
cpu 2..102ms pid 3 tid 3\nwait 102..400ms pid 3 tid 3 pipe in read m\ncpu 400..900ms pid 3 tid 3
cpu 3..4ms pid 4 tid 4\nwait 4..900ms pid 4 tid 4 pipe in read m\ncpu 900..910ms pid 4 tid 4
";
        check(rows, &["sort 500 500-500", "gzip 399 298-298", "sh 91 91-91", "uniq 10 10-10"]);
    }

    #[test]
    fn who_is_asleep_or_waits_for_a_disk_is_no_part_of_a_pipeline() {
        let rows = "\
run sh  0..1000ms
process sleep   1..990ms  pid 2 under 1
process build   2..980ms  pid 3 under 1
cpu 1..2ms pid 2 tid 2\nwait 2..989ms pid 2 tid 2 sleep m\ncpu 989..990ms pid 2 tid 2
cpu 2..980ms pid 3 tid 3
sample 2ms x970 pid 3 m
";
        check(rows, &["sleep 989 10-10"]);
    }

    #[test]
    fn a_script_with_something_idle_beside_it_is_no_pipeline() {
        check(
            "\
run sh  0..1000ms
process sleep   1..990ms  pid 2 under 1
process build   2..700ms  pid 3 under 1
process test  701..980ms  pid 4 under 1
sample 2ms x690 pid 3 m
sample 702ms x270 pid 4 m
",
            &["sleep 989 10-10"],
        );
    }
}
