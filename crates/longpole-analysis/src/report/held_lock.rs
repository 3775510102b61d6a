//! The lock that a pole holds while other threads wait for it: moving the pole's work out of the lock lets them go on.

use std::collections::{HashMap, HashSet};

use longpole_model::units::whole_percent;
use longpole_model::{Id, Nanos, NodeId, ThreadKey, Wait, WaitKind};

use crate::intervals;
use crate::report::Report;
use crate::schedule::poles::{PartKind, Pole};
use crate::time::blocked_by::TOLD_WAITS_MAX;
use crate::time::blockers::{BlockedOn, Relation, Sources};
use crate::time::thread_graph::LineId;

/// From this share of a pole's time on the path the lock is worth a word.
const LEAST_PERCENT: i64 = 15;

/// A lock that a pole held while other threads waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLock<'a> {
    /// How many threads waited for it.
    pub threads: usize,
    /// For how long at least one of them did, while the pole was on the path.
    pub nanos: Nanos,
    /// The function in which most of that was.
    pub function: Option<&'a str>,
}

/// The times of one thread in which a pole is on the path.
type TimesOfThreads = HashMap<ThreadKey, Vec<(Nanos, Nanos)>>;

impl Report {
    /// The lock that a pole holds; `None` if the threads of the run are not known, or hardly anybody waited for one.
    pub(super) fn held_lock(&self, pole: &Pole) -> Option<HeldLock<'_>> {
        let times = self.times_on_path(pole)?;
        let on_path = &pole.part.as_ref()?.on_path;
        let nodes: HashSet<NodeId> = pole.nodes.iter().copied().collect();
        let waits = nodes.iter().flat_map(|&node| self.waits.whole_of_node(node)).map(|&wait| &self.recording.waits[wait]);
        // Whom each wait was for takes long to find out: only of those that the pole can have held up.
        let meets = |wait: &Wait| {
            let (from, to) = (self.offset(wait.start)?, self.offset(wait.end)?);
            let next = on_path.get(on_path.partition_point(|(.., end)| *end <= from))?;
            (next.1 < to).then_some(())
        };
        let for_locks = waits.filter(|wait| wait.kind == WaitKind::Lock && meets(wait).is_some());
        let for_locks = for_locks.filter(|wait| self.blockers().relation(wait) == Some(Relation::Holds));
        let sources = Sources { recording: &self.recording, timelines: &self.timelines, origin: self.origin() };
        let (mut threads, mut stretches) = (HashSet::new(), Vec::new());
        let mut of_functions: HashMap<Option<&str>, Nanos> = HashMap::new();
        for wait in for_locks.take(TOLD_WAITS_MAX) {
            for part in self.blockers().parts(&sources, wait) {
                let BlockedOn::Thread { tid, .. } = part.who else { continue };
                let holder = ThreadKey::new(wait.pid, tid);
                let (Some(from), Some(to), Some(held)) = (self.offset(part.from), self.offset(part.to), times.get(&holder)) else {
                    continue;
                };
                let first = held.partition_point(|(_, end)| *end <= from);
                for both in held[first..].iter().map_while(|time| intervals::clip(*time, (from, to))).filter(|_| holder != wait.thread()) {
                    threads.insert(wait.thread());
                    stretches.push(both);
                    *of_functions.entry(self.named_wait(wait, None).function).or_default() += both.1 - both.0;
                }
            }
        }
        let nanos: Nanos = intervals::union(stretches).into_iter().map(|(from, to)| to - from).sum();
        if whole_percent(nanos.0, pole.on_path.0) < LEAST_PERCENT {
            return None;
        }
        let most = of_functions.into_iter().max_by_key(|(function, nanos)| (*nanos, *function));
        Some(HeldLock { threads: threads.len(), nanos, function: most.and_then(|(function, _)| function) })
    }

    fn times_on_path(&self, pole: &Pole) -> Option<TimesOfThreads> {
        let graph = self.run_graph.as_ref()?;
        let part = pole.part.as_ref().filter(|part| matches!(part.kind, PartKind::Computes(_) | PartKind::Waits(..)))?;
        let on_path: HashSet<(NodeId, Nanos, Nanos)> = part.on_path.iter().copied().collect();
        let mut times = TimesOfThreads::new();
        for &(node, line, from, to) in &part.of_threads {
            if on_path.contains(&(node, from, to)) {
                times.entry(graph.thread(LineId::at(line)).0).or_default().push((from, to));
            }
        }
        times.values_mut().for_each(|times| *times = intervals::union(std::mem::take(times)));
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    #[test]
    fn the_lock_of_what_is_on_the_path_is_named_if_others_wait_for_it() {
        // The main thread waits from 10 to 70 ms for the lock of thread 3, which sleeps from 12 ms on.
        let rows = "\
run x 0..100ms
thread x 0..100ms pid 1 tid 1
thread t 5..70ms pid 1 tid 3
cpu 0..10ms pid 1 tid 1
wait 10..70ms pid 1 tid 1 lock at 0x10 holder 3 main;update;std::sys::Mutex::lock_contended
cpu 70..100ms pid 1 tid 1
cpu 5..12ms pid 1 tid 3
wait 12..69ms pid 1 tid 3 sleep holder;slow_io
cpu 69..70ms pid 1 tid 3
sample 0ms x10 pid 1 tid 1 main;parse
sample 71ms x28 pid 1 tid 1 main;save
";
        let report = Report::new(text::parse(rows).unwrap());
        let of = |pole: &Pole| {
            let held = report.held_lock(pole);
            held.map(|it| format!("{} thread in {} for {}", it.threads, it.function.unwrap_or("?"), it.nanos.0 / 1_000_000))
        };
        let found: Vec<String> = report.poles().iter().take(2).map(|pole| of(pole).unwrap_or_else(|| "nobody".to_owned())).collect();
        assert_eq!(found, ["1 thread in update for 57", "nobody"]);
    }
}
