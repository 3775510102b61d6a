//! Processes that serve others of the run: nobody waits for their end, but whoever calls them waits for their answer.
//!
//! ```text
//! script   ├─ curl ┤├─ sleep ─┤├─ curl ┤ kill
//! curl      ·waits·             ·waits·           · on the network
//! server  ··▓▓▓▓▓▓············▓▓▓▓▓▓▓▓···┤        ▓ at work, · idle
//! path      server   sleep     server
//! ```
//!
//! A server waits for work between its requests, and still does when it is ended. Which call it answers is inferred from time: whoever waits for
//! the network while it works waits for it.

use std::collections::{HashMap, HashSet};

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, Monotonic, Nanos, NodeId, Pid, ProcessRow, Recording, ThreadKey, Timestamp, WaitKind, ids};

use crate::interval_index::{IntervalIndex, Timed};
use crate::intervals;
use crate::link::waits::is_call;
use crate::tree::forest::{Forest, NodeSource};

/// How long before its end a process that is ended may have stopped to wait for work.
const ENDED_NANOS: Nanos = Nanos(100_000_000);

/// Others wait for a server for at least this part of what it works.
const CALLED_PART: i64 = 4;

/// Processes that were idle times calls, threads and nodes, and waits, threads, nodes and calls that are compared with processes: with more of
/// them nothing is a server.
const COMPARED_MAX: usize = 50_000_000;

ids! {
    /// Waits of a process for work, or those of one of its threads.
    struct IdleList;
}

/// A wait, or the life of a thread: from, to and the thread.
#[derive(Debug, Clone, Copy)]
struct Stretch(Nanos, Nanos, ThreadKey);

impl Timed for Stretch {
    type Time = Nanos;

    fn start(&self) -> Nanos {
        self.0
    }

    fn end(&self) -> Nanos {
        self.1
    }
}

/// Waits for work, and the threads of the processes that wait so. A pid can have had many processes, one after the other.
struct Idle {
    of_pid: HashMap<Pid, IdleList>,
    of_thread: HashMap<ThreadKey, IdleList>,
    waits: IntervalIndex<IdleList, Stretch>,
    threads: IntervalIndex<IdleList, Stretch>,
}

impl Idle {
    /// All of these waits.
    fn of(recording: &Recording, waits: &[Stretch], at: impl Fn(Monotonic) -> Option<Nanos>) -> Idle {
        let mut count = 0;
        let mut next = || {
            count += 1;
            IdleList::at(count - 1)
        };
        let (mut of_pid, mut of_thread) = (HashMap::new(), HashMap::new());
        let mut by_list: Vec<(IdleList, Stretch)> = Vec::with_capacity(2 * waits.len());
        for &wait in waits {
            by_list.push((*of_pid.entry(wait.2.pid).or_insert_with(&mut next), wait));
            by_list.push((*of_thread.entry(wait.2).or_insert_with(&mut next), wait));
        }
        let threads = recording.threads.iter().filter_map(|thread| {
            let list = *of_pid.get(&thread.thread().pid)?;
            let gone = thread.end.and_then(&at).unwrap_or(Nanos::MAX);
            Some((list, Stretch(at(thread.start)?, gone, thread.thread())))
        });
        let threads: Vec<(IdleList, Stretch)> = threads.collect();
        Idle { of_pid, of_thread, waits: IntervalIndex::new(count, &by_list), threads: IntervalIndex::new(count, &threads) }
    }
}

/// Times in which a server was at work in one call, all calls and servers together: with more of them nothing is a server. The search for
/// the answer visits each of them, and keeps those of the server that answers.
const ANSWERS_MAX: usize = 5_000_000;

/// Comparisons that may still be made.
struct Compared {
    left: usize,
    answers: usize,
}

impl Compared {
    /// Counts some of them; `None` if there are too many.
    fn take(&mut self, count: usize) -> Option<()> {
        self.left = self.left.saturating_sub(count);
        (self.left > 0).then_some(())
    }
}

/// When a server was at work: from, to and its node.
#[derive(Debug, Clone, Copy)]
struct Work(Nanos, Nanos, NodeId);

impl Timed for Work {
    type Time = Nanos;

    fn start(&self) -> Nanos {
        self.0
    }

    fn end(&self) -> Nanos {
        self.1
    }
}

/// The servers of a run, and who calls them.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Their nodes, in tree order.
    pub(crate) list: Vec<NodeId>,
    /// When one of the threads of each was at work: no stretch touches another one of that server.
    works: IntervalIndex<NodeId, Work>,
    /// The same of each of the list.
    works_of: Vec<Vec<(Nanos, Nanos)>>,
    /// For each process when a thread of it waits for an answer and none is on a CPU: by time, those that touch are one.
    pub(crate) calls: HashMap<u32, Vec<(Nanos, Nanos)>>,
}

impl Servers {
    /// Whether this is a server.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.list.binary_search(&node).is_ok()
    }

    /// The servers that are at work in a time, and how long each of them is.
    pub(crate) fn at_work(&self, time: (Nanos, Nanos)) -> FastMap<NodeId, Nanos> {
        let mut found: FastMap<NodeId, Nanos> = FastMap::default();
        if self.list.is_empty() {
            return found;
        }
        for &Work(from, to, server) in self.works.within(NodeId::RUN, time) {
            if let Some((from, to)) = intervals::clip((from, to), time) {
                *found.entry(server).or_default() += to - from;
            }
        }
        found
    }

    /// When a server is at work in a time.
    pub(crate) fn work_of(&self, server: NodeId, time: (Nanos, Nanos)) -> impl Iterator<Item = (Nanos, Nanos)> {
        let works = self.list.binary_search(&server).map_or(&[][..], |place| &self.works_of[place]);
        within(works, time)
    }
}

/// The servers among the processes of a run. `offset` says where a moment lies from its start.
pub(crate) fn servers(recording: &Recording, forest: &Forest, offset: impl Fn(Timestamp) -> Nanos) -> Servers {
    servers_within(recording, forest, offset, &mut Compared { left: COMPARED_MAX, answers: ANSWERS_MAX })
}

fn servers_within(recording: &Recording, forest: &Forest, offset: impl Fn(Timestamp) -> Nanos, compared: &mut Compared) -> Servers {
    let at = |time| recording.clock.to_unix(time).map(&offset);
    let mut idle: Vec<Stretch> = Vec::new();
    let mut calls: HashMap<u32, Vec<(Nanos, Nanos)>> = HashMap::new();
    for wait in &recording.waits {
        let (Some(from), Some(to)) = (at(wait.start), at(wait.end)) else { continue };
        if wait.kind == WaitKind::Idle {
            idle.push(Stretch(from, to, wait.thread()));
        } else if is_call(wait) {
            calls.entry(wait.pid).or_default().push((from, to));
        }
    }
    if idle.is_empty() || calls.is_empty() {
        return Servers::default();
    }
    let idle = Idle::of(recording, &idle, at);
    let each = calls.values().map(Vec::len).sum::<usize>() + recording.threads.len() + forest.len();
    if idle.of_pid.len().saturating_mul(each) > COMPARED_MAX {
        return Servers::default();
    }
    let mut busy: HashMap<u32, Vec<(Nanos, Nanos)>> = HashMap::new();
    for slice in recording.cpu_slices.iter().filter(|slice| calls.contains_key(&slice.pid)) {
        busy.entry(slice.pid).or_default().extend(at(slice.start).zip(at(slice.end)));
    }
    for (pid, calls) in &mut calls {
        let busy = intervals::union(busy.remove(pid).unwrap_or_default());
        let alone = intervals::union(std::mem::take(calls)).into_iter().flat_map(|call| without(&busy, call));
        *calls = alone.collect();
    }
    let all_calls: usize = calls.values().map(Vec::len).sum();
    let mut server = |node: NodeId| {
        let NodeSource::Process(row) = forest[node].source else { return None };
        let (at_work, first) = at_work(recording, row, &idle, at, compared)?;
        compared.take(forest.subtree(node).len() + all_calls)?;
        // Its own processes work for it.
        let below: HashSet<u32> =
            node.until(forest[node].subtree_end).filter_map(|below| Some(forest.process(recording, below)?.pid)).collect();
        let calls = calls.iter().filter(|(pid, _)| !below.contains(pid)).flat_map(|(_, calls)| calls.iter().copied()).collect();
        let called = overlap(&intervals::union(calls), &at_work);
        // Its start is no work for others, as a rule.
        let works: Nanos = within(&at_work, (first, Nanos::MAX)).map(|(from, to)| to - from).sum();
        (called > Nanos::ZERO && called >= works / CALLED_PART).then_some((node, at_work))
    };
    let found: Vec<(NodeId, Vec<(Nanos, Nanos)>)> = forest.ids().skip(1).filter_map(&mut server).collect();
    if found.is_empty() || compared.left == 0 {
        return Servers::default();
    }
    // A span finds its own.
    let of_spans = recording.waits.iter().zip(&recording.wait_links).filter(|(wait, link)| link.span.is_some() && is_call(wait));
    let of_spans: Vec<(Nanos, Nanos)> = of_spans.filter_map(|(wait, _)| at(wait.start).zip(at(wait.end))).collect();
    let mut answers = 0_usize;
    for (_, at_work) in &found {
        if compared.take(all_calls + of_spans.len()).is_none() {
            return Servers::default();
        }
        for call in calls.values().flatten().chain(&of_spans) {
            let first = at_work.partition_point(|(_, to)| *to <= call.0);
            answers = answers.saturating_add(at_work[first..].partition_point(|(from, _)| *from < call.1));
        }
    }
    if answers > compared.answers {
        return Servers::default();
    }
    let work = |(node, at_work): &(NodeId, Vec<(Nanos, Nanos)>)| {
        let node = *node;
        at_work.clone().into_iter().map(move |(from, to)| (NodeId::RUN, Work(from, to, node)))
    };
    let works: Vec<(NodeId, Work)> = found.iter().flat_map(work).collect();
    let (list, works_of) = found.into_iter().unzip();
    Servers { list, works: IntervalIndex::new(1, &works), works_of, calls }
}

/// When a process was at work, and when it was first seen idle; `None` where it was not idle in the end, and so ended its work by itself. It
/// may have been idle before, for a moment: what calls it then, its first requests, is answered before the first idle time that was sampled.
fn at_work(
    recording: &Recording,
    row: ProcessRow,
    idle: &Idle,
    at: impl Fn(Monotonic) -> Option<Nanos>,
    compared: &mut Compared,
) -> Option<(Vec<(Nanos, Nanos)>, Nanos)> {
    let process = &recording.processes[row];
    let list = *idle.of_pid.get(&Pid(process.pid))?;
    let (start, end) = (at(process.start)?, process.end.and_then(&at).unwrap_or(Nanos::MAX));
    let (mut first, mut last, mut count) = (Nanos::MAX, Nanos::MIN, 0);
    for &Stretch(from, to, _) in idle.waits.within(list, (start, end)) {
        (first, last, count) = (first.min(from), last.max(to), count + 1);
    }
    compared.take(count)?;
    if count == 0 || (process.end.is_some() && end - last > ENDED_NANOS) {
        return None;
    }
    let mut busy = Vec::new();
    for &Stretch(born, gone, thread) in idle.threads.within(list, (start, end)) {
        let gone = gone.min(end);
        let own = idle.of_thread.get(&thread).map(|&own| idle.waits.within(own, (start, end)));
        let own: Vec<(Nanos, Nanos)> = own.into_iter().flatten().map(|&Stretch(from, to, _)| (from, to)).collect();
        compared.take(1 + own.len())?;
        // A thread that never waits for work and is there for most of the time does not work for requests.
        if own.is_empty() && gone - born > (end.min(last) - start) / 2 {
            continue;
        }
        let mut since = born.max(start);
        for (from, to) in own {
            busy.push((since, from));
            since = since.max(to);
        }
        // The one that ends it does not call it.
        if gone < last {
            busy.push((since, gone));
        }
    }
    busy.retain(|(from, to)| from < to);
    Some((intervals::union(busy), first))
}

/// How long the stretches of two lists, each by time and without overlap, are there together.
fn overlap(a: &[(Nanos, Nanos)], b: &[(Nanos, Nanos)]) -> Nanos {
    a.iter().map(|&(from, to)| within(b, (from, to)).map(|(from, to)| to - from).sum::<Nanos>()).sum()
}

/// What stretches leave out of a time. They stand by time and do not overlap.
fn without(stretches: &[(Nanos, Nanos)], time: (Nanos, Nanos)) -> impl Iterator<Item = (Nanos, Nanos)> {
    let ends = within(stretches, time).chain([(time.1, time.1)]);
    ends.scan(time.0, |at, (from, to)| Some((std::mem::replace(at, to), from))).filter(|(from, to)| from < to)
}

/// The parts of stretches that lie in a time. They stand by time and do not overlap.
pub(crate) fn within(stretches: &[(Nanos, Nanos)], time: (Nanos, Nanos)) -> impl Iterator<Item = (Nanos, Nanos)> {
    let first = stretches.partition_point(|&(_, to)| to <= time.0);
    stretches[first..].iter().take_while(move |(from, _)| *from < time.1).filter_map(move |&stretch| intervals::clip(stretch, time))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use longpole_model::{Process, Thread, text};

    use super::*;
    use crate::Report;

    /// Processes of pid 2, one after the other, each 10 ms long and idle twice; the command waits for each.
    fn servers_of_one_pid(count: u64) -> Recording {
        let mut said = format!("run x 0..{}ms\n", 10 * count + 10);
        for number in 0..count {
            let at = 10 * number + 1;
            writeln!(said, "process web {at}..{}ms pid 2 under 1", at + 9).unwrap();
            writeln!(said, "wait {}..{}ms pid 2 idle main;accept", at + 1, at + 2).unwrap();
            writeln!(said, "wait {}..{}ms pid 2 idle main;accept", at + 7, at + 9).unwrap();
            writeln!(said, "wait {at}..{}ms pid 1 network main;recv", at + 8).unwrap();
        }
        let mut recording = text::parse(&said).unwrap();
        let thread = |process: &Process| Thread {
            pid: process.pid,
            tid: process.pid,
            name: String::new(),
            start: process.start,
            end: process.end,
            totals: None,
            ident: None,
        };
        recording.threads = recording.processes.iter().map(thread).collect();
        recording
    }

    /// For each process all waits and all threads of its pid were searched, and for each of the threads all its waits: 128,000,000,000 steps.
    #[test]
    fn each_process_of_a_pid_is_compared_with_its_own_waits() {
        const COUNT: usize = 4_000;
        let recording = servers_of_one_pid(COUNT as u64);
        let report = Report::new(recording.clone());
        let forest = report.forest();
        let origin = forest.run_range().start;
        let mut compared = Compared { left: COMPARED_MAX, answers: ANSWERS_MAX };
        let found = servers_within(&recording, forest, |at| Nanos(at.nanos_since(origin)), &mut compared);
        assert_eq!(found.list.len(), COUNT);
        let ms = |number: i64| Nanos(number * 1_000_000);
        let time = (ms(15), ms(30));
        assert_eq!(found.at_work(time), FastMap::from_iter([(found.list[1], ms(3)), (found.list[2], ms(6))]));
        assert!(found.work_of(found.list[2], time).eq([(ms(21), ms(22)), (ms(23), ms(28))]));
        // What is left are the calls, which may be those of any server: to find the servers, and to count what they answer.
        let steps = COMPARED_MAX - compared.left - 2 * COUNT * COUNT;
        assert!(steps < 10 * COUNT, "{steps}");

        let few = servers_within(
            &recording,
            forest,
            |at| Nanos(at.nanos_since(origin)),
            &mut Compared { left: COUNT * COUNT / 2, answers: ANSWERS_MAX },
        );
        assert!(few.list.is_empty() && few.at_work((ms(15), ms(30))).is_empty());
        // Each call has two times of the server in it: those before and after it was idle.
        let within = |answers| {
            let mut compared = Compared { left: COMPARED_MAX, answers };
            servers_within(&recording, forest, |at| Nanos(at.nanos_since(origin)), &mut compared).list.len()
        };
        assert_eq!([within(2 * COUNT - 1), within(2 * COUNT)], [0, COUNT]);
    }
}
