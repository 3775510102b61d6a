//! One walk over the steps of a part: new times out of changed work.

use longpole_model::{Id, IdVec, Nanos, NodeId};

use super::Replay;
use super::plan::{Part, Slot, Step, StepId, Times, Waits};
use crate::schedule::concurrency_limit::Opening;
use crate::schedule::saving::Change;

/// Which end of the range a replay computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Low,
    High,
}

/// What is done to the work of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Keep,
    Half,
    Zero,
    OwnHalf,
    OwnZero,
}

impl Work {
    pub(super) fn apply(self, gap: Nanos, own: Nanos) -> Nanos {
        if gap <= Nanos::ZERO {
            return gap;
        }
        match self {
            Work::Keep => gap,
            Work::Half => gap / 2,
            Work::Zero => Nanos::ZERO,
            Work::OwnHalf => gap - own.clamp(Nanos::ZERO, gap) / 2,
            Work::OwnZero => gap - own.clamp(Nanos::ZERO, gap),
        }
    }
}

impl Step {
    /// Whether it is an end that is not only due so long after another one, but also so long after its own start.
    pub(super) fn lasts_alone(&self, bound: Bound) -> bool {
        self.stalls || self.by_chance && bound == Bound::Low
    }
}

impl Replay {
    /// What is done to the work of each slot. A change of the run, and of a part of own time, reaches own time only: "all takes no time" is no
    /// answer.
    pub(super) fn work(&self, part: &Part, nodes: &[NodeId], change: Change) -> IdVec<Slot, Work> {
        let mut work = IdVec::filled(Work::Keep, part.nodes.len());
        let own = if change == Change::Half { Work::OwnHalf } else { Work::OwnZero };
        let is_own = |node: NodeId| change == Change::OwnZero || part.only.is_some() || node == NodeId::RUN;
        for &node in nodes.iter().filter(|&&node| is_own(node)) {
            work[part.slot(node)] = own;
        }
        let whole: Vec<NodeId> = nodes.iter().copied().filter(|&node| !is_own(node)).collect();
        self.reach_below(part, &whole, if change == Change::Zero { Work::Zero } else { Work::Half }, &mut work);
        work
    }

    /// Does this to the work of nodes and of all below them.
    pub(super) fn reach_below(&self, part: &Part, nodes: &[NodeId], to: Work, work: &mut IdVec<Slot, Work>) {
        // All below a changed node are there, behind it.
        let mut changed: Vec<Slot> = nodes.iter().map(|&n| part.slot(n)).collect();
        changed.sort_unstable();
        let mut done = Slot::RUN;
        for first in changed {
            let node = part.nodes[first];
            let end = Slot::at(first.place() + node.until(self.schedule.subtree_end[node]).len());
            first.max(done).until(end).for_each(|slot| work[slot] = to);
            done = done.max(end);
        }
    }

    /// How much less a node is blocked on pipes, because whom it waits for takes less time.
    fn stalls_less(&self, part: &Part, work: &IdVec<Slot, Work>, node: NodeId) -> Nanos {
        let own_time = self.schedule.own_time(part.only.as_ref());
        let less = |(busy, nanos): &(NodeId, Nanos)| {
            // A part of its own time makes it no faster than that part is long.
            let own = if part.only.is_some() { own_time.total(*busy).min(*nanos) } else { *nanos };
            let now = |slot: Slot| work[slot].apply(*nanos, own);
            part.slot_if_there(*busy).map_or(Nanos::ZERO, |slot| *nanos - now(slot))
        };
        self.schedule.stalls.get(&node).map_or(Nanos::ZERO, |stalls| stalls.iter().map(less).sum())
    }

    /// Gives every event from this step on its new time. With the durations of a walk before, jobs that share slots are
    /// scheduled anew when their pool opens.
    pub(super) fn walk(
        &self,
        part: &Part,
        work: &IdVec<Slot, Work>,
        bound: Bound,
        from: StepId,
        times: &mut Times,
        durations: Option<&IdVec<Slot, Nanos>>,
    ) {
        let s = &self.schedule;
        let own_time = s.own_time(part.only.as_ref());
        // New starts of jobs whose pool is open.
        let mut forced = IdVec::filled(Nanos::MIN, if durations.is_some() { part.nodes.len() } else { 0 });
        for step in part.steps.between(from, part.steps.next_id()) {
            let Step { slot, worker, .. } = *step;
            let done = || work[worker].apply(step.gap, step.own);
            let since = times.start[worker];
            let at = match step.waits {
                Waits::End => {
                    let last = step.last.map_or(since, |last| since.max(times.latest[last]));
                    let mut at = last + done();
                    if step.lasts_alone(bound) {
                        let node = part.nodes[slot];
                        let recorded = s.end[node] - s.start[node] - self.stalls_less(part, work, node);
                        let alone = since + work[worker].apply(recorded, own_time.total(node));
                        at = if step.last.is_some() { at.max(alone) } else { alone };
                    }
                    times.end[slot] = at;
                    times.latest[slot] = step.before.map_or(at, |before| at.max(times.latest[before]));
                    continue;
                }
                Waits::Host => since + done(),
                Waits::SiblingByChance if bound == Bound::Low => {
                    let (node, host) = (part.nodes[slot], part.nodes[worker]);
                    match self.after_phase.get(&node).and_then(|&phase| Some((phase, part.slot_if_there(phase)?))) {
                        Some((phase, there)) => {
                            let (gap, own) = own_time.gap_after(phase, node);
                            since.max(times.latest[there]) + work[worker].apply(gap, own)
                        }
                        None => since + work[worker].apply(s.start[node] - s.start[host], own_time.at_start(node)),
                    }
                }
                Waits::Phase => step.last.map_or(since, |last| since.max(times.latest[last])) + done(),
                Waits::Sibling | Waits::SiblingByChance => {
                    let ends = if bound == Bound::Low { &times.latest } else { &times.end };
                    step.last.map_or(since, |last| since.max(ends[last])) + done()
                }
                Waits::Links => {
                    let ends = s.links(part.nodes[slot]).iter().map(|&x| times.end[part.slot(x)]);
                    ends.fold(since, Nanos::max) + done()
                }
            };
            times.start[slot] = at;
            let Some(duration) = durations else { continue };
            if forced[slot] != Nanos::MIN {
                let anchor = part.slot(s.anchor[part.nodes[slot]]);
                times.start[slot] = forced[slot].max(times.start[anchor]);
            }
            if step.opens_pool {
                for &pool in &self.pools_of[&part.nodes[slot]] {
                    let now = Opening {
                        start: &|node| times.start[part.slot(node)],
                        end: &|node| times.end[part.slot(node)],
                        duration: &|node| duration[part.slot(node)],
                        work: &|node, gap, own| work[part.slot(node)].apply(gap, own),
                    };
                    self.pools[pool].schedule(s, &now, &mut |job, at| forced[part.slot(job)] = at);
                }
            }
        }
    }
}
