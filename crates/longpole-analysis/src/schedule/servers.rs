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

use longpole_model::{Id, Monotonic, Nanos, NodeId, ProcessRow, Recording, Timestamp, WaitKind};

use crate::intervals;
use crate::link::waits::is_call;
use crate::tree::forest::{Forest, NodeSource};

/// How long before its end a process that is ended may have stopped to wait for work.
const ENDED_NANOS: Nanos = Nanos(100_000_000);

/// Others wait for a server for at least this part of what it works.
const CALLED_PART: i64 = 4;

/// Processes that were idle times calls, threads and nodes: with more of them nothing is a server.
const COMPARED_MAX: usize = 50_000_000;

/// The waits of a process for work, by thread.
type IdleWaits = HashMap<u32, Vec<(Nanos, Nanos)>>;

/// A process that serves others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Its node.
    pub(crate) node: NodeId,
    /// When one of its threads was at work after it had first waited for work, by time: it has no stretch that touches another.
    pub(crate) at_work: Vec<(Nanos, Nanos)>,
}

/// The servers of a run, and who calls them.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// In tree order.
    pub(crate) list: Vec<Server>,
    /// For each process when a thread of it waits for an answer and none is on a CPU: by time, those that touch are one.
    pub(crate) calls: HashMap<u32, Vec<(Nanos, Nanos)>>,
}

impl Servers {
    /// Whether this is a server.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.list.binary_search_by_key(&node, |server| server.node).is_ok()
    }
}

/// The servers among the processes of a run. `offset` says where a moment lies from its start.
pub(crate) fn servers(recording: &Recording, forest: &Forest, offset: impl Fn(Timestamp) -> Nanos) -> Servers {
    let at = |time| recording.clock.to_unix(time).map(&offset);
    let mut idle: HashMap<u32, IdleWaits> = HashMap::new();
    let mut calls: HashMap<u32, Vec<(Nanos, Nanos)>> = HashMap::new();
    for wait in &recording.waits {
        let (Some(from), Some(to)) = (at(wait.start), at(wait.end)) else { continue };
        if wait.kind == WaitKind::Idle {
            idle.entry(wait.pid).or_default().entry(wait.tid).or_default().push((from, to));
        } else if is_call(wait) {
            calls.entry(wait.pid).or_default().push((from, to));
        }
    }
    let compared = calls.values().map(Vec::len).sum::<usize>() + recording.threads.len() + forest.len();
    if idle.is_empty() || calls.is_empty() || idle.len().saturating_mul(compared) > COMPARED_MAX {
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
    let server = |node: NodeId| {
        let NodeSource::Process(row) = forest[node].source else { return None };
        let idle = idle.get(&recording.processes[row].pid)?;
        let at_work = at_work(recording, row, idle, at)?;
        // Its own processes work for it.
        let below: HashSet<u32> =
            node.until(forest[node].subtree_end).filter_map(|below| Some(forest.process(recording, below)?.pid)).collect();
        let calls = calls.iter().filter(|(pid, _)| !below.contains(pid)).flat_map(|(_, calls)| calls.iter().copied()).collect();
        let called = overlap(&intervals::union(calls), &at_work);
        let works: Nanos = at_work.iter().map(|(from, to)| *to - *from).sum();
        (called > Nanos::ZERO && called >= works / CALLED_PART).then_some(Server { node, at_work })
    };
    let list: Vec<Server> = forest.ids().skip(1).filter_map(server).collect();
    if list.is_empty() { Servers::default() } else { Servers { list, calls } }
}

/// When a process was at work after it had first been idle; `None` where it was not idle in the end, and so ended its work by itself.
fn at_work(
    recording: &Recording,
    row: ProcessRow,
    idle: &IdleWaits,
    at: impl Fn(Monotonic) -> Option<Nanos>,
) -> Option<Vec<(Nanos, Nanos)>> {
    let process = &recording.processes[row];
    let (start, end) = (at(process.start)?, process.end.and_then(&at).unwrap_or(Nanos::MAX));
    let in_life = |(from, to): &&(Nanos, Nanos)| *from < end && start < *to;
    let all = || idle.values().flatten().filter(in_life);
    let first = all().map(|(from, _)| *from).min()?;
    let last = all().map(|(_, to)| *to).max()?;
    if process.end.is_some() && end - last > ENDED_NANOS {
        return None;
    }
    let mut busy = Vec::new();
    for thread in recording.threads.iter().filter(|thread| thread.pid == process.pid) {
        let Some(born) = at(thread.start) else { continue };
        let gone = thread.end.and_then(&at).unwrap_or(end).min(end);
        let mut own: Vec<(Nanos, Nanos)> = idle.get(&thread.tid).into_iter().flatten().filter(in_life).copied().collect();
        // A thread that never waits for work and is there for most of the time does not work for requests.
        if own.is_empty() && gone - born > (end.min(last) - start) / 2 {
            continue;
        }
        own.sort_unstable();
        let mut since = born.max(first);
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
    Some(intervals::union(busy))
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
