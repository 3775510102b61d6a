//! What limits a saving: the replayed schedule, walked backwards from its end.

use longpole_model::{IdVec, Nanos, NodeId};

use super::Replay;
use super::plan::{Part, Slot, Step, Times, Waits};
use super::walk::{Bound, Work};
use crate::schedule::critical_path::OnPath;
use crate::schedule::recorded::Waited;

/// Ends at one moment among which one that a change leaves alone is looked for.
const EQUAL_ENDS_MAX: usize = 64;

impl Part {
    /// The slot whose end is the latest of this one and all that ended before it under the same host.
    fn latest_ended(&self, last: Slot, times: &Times, work: &IdVec<Slot, Work>) -> Slot {
        let at = times.latest[last];
        let before = |&slot: &Slot| {
            let before = self.steps[self.step_of_event(Waited::End(slot))].before;
            before.filter(|&before| times.latest[before] == at)
        };
        let mut equals = std::iter::successors(Some(last), before).filter(|&slot| times.end[slot] == at);
        let Some(first) = equals.next() else { return last };
        let keeps = |&slot: &Slot| work[slot] == Work::Keep;
        std::iter::once(first).chain(equals.take(EQUAL_ENDS_MAX)).find(keeps).unwrap_or(first)
    }
}

impl Replay {
    /// Walks a replayed schedule from the end of the run backwards, to the first end of something that is not part of the change,
    /// takes time, and has none of the recorded path in it: a node.
    pub(super) fn limit_in(&self, part: &Part, bound: Bound, times: &Times, work: &IdVec<Slot, Work>, on_path: &OnPath) -> Option<NodeId> {
        let s = &self.schedule;
        let mut at = Waited::End(Slot::RUN);
        let mut step = part.step_of_event(at);
        loop {
            if let Waited::End(slot) = at {
                let node = part.nodes[slot];
                if work[slot] == Work::Keep && times.end[slot] > times.start[slot] {
                    // The recorded path begins with the run. Whether this was on it is unknown, and what is inside of it does not end last.
                    if s.start[node] < Nanos::ZERO {
                        return None;
                    }
                    if on_path.between(node, s.subtree_end[node]) == Nanos::ZERO {
                        return Some(node);
                    }
                }
            }
            at = self.waited_for(part, &part.steps[step], bound, times, work)?;
            let before = part.step_of_event(at);
            // Links among spans of no length at one moment may lead in a circle.
            if before >= step {
                return None;
            }
            step = before;
        }
    }

    /// The last thing that an event of a replayed schedule waited for: what decides in [`Replay::walk`]. `None` for the start of
    /// the run. Among several at one moment, one that the change leaves alone. Nodes are named by their slots.
    fn waited_for(&self, part: &Part, step: &Step, bound: Bound, times: &Times, work: &IdVec<Slot, Work>) -> Option<Waited<Slot>> {
        let (slot, worker) = (step.slot, step.worker);
        let since = times.start[worker];
        // The latest of all that had ended there, else the start of the worker.
        let latest = || match step.last.filter(|&last| times.latest[last] >= since) {
            Some(last) => Waited::End(part.latest_ended(last, times, work)),
            None => Waited::Start(worker),
        };
        Some(match step.waits {
            Waits::End => {
                let last = step.last.map_or(since, |last| since.max(times.latest[last]));
                let by_itself = step.lasts_alone(bound) && times.end[slot] > (last + work[worker].apply(step.gap, step.own));
                if by_itself { Waited::Start(slot) } else { latest() }
            }
            Waits::Host if slot == Slot::RUN => return None,
            Waits::Host => Waited::Start(worker),
            Waits::SiblingByChance if bound == Bound::Low => {
                let phase = self.after_phase.get(&part.nodes[slot]).and_then(|&phase| part.slot_if_there(phase));
                match phase.filter(|&phase| times.latest[phase] >= since) {
                    Some(phase) => Waited::End(part.latest_ended(phase, times, work)),
                    None => Waited::Start(worker),
                }
            }
            Waits::Phase => latest(),
            Waits::Sibling | Waits::SiblingByChance if bound == Bound::Low => latest(),
            Waits::Sibling | Waits::SiblingByChance => {
                step.last.filter(|&last| times.end[last] >= since).map_or(Waited::Start(worker), Waited::End)
            }
            Waits::Links => {
                let links = self.schedule.links(part.nodes[slot]).iter().map(|&x| part.slot(x));
                let last = links.max_by_key(|&x| (times.end[x], work[x] == Work::Keep)).filter(|&x| times.end[x] >= since);
                last.map_or(Waited::Start(worker), Waited::End)
            }
        })
    }
}
