//! The part of a schedule that a change can reach, laid out for one walk: steps, their times, and the pieces that move as one.

use std::num::NonZeroU32;

use longpole_model::{Id, IdVec, Nanos, NodeId, ids};

use super::Replay;
use crate::schedule::concurrency_limit::LimitedJobs;
use crate::schedule::own_work::OwnWork;
use crate::schedule::recorded::{Event, Schedule, Waited};

ids! {
    /// A node that is there, by its place in a part; places stand in tree order.
    pub(super) struct Slot;
    /// An event of a part, by its place in the order of events.
    pub(super) struct StepId;
    /// The start or the end of a slot.
    struct SlotEvent;
}

impl Slot {
    /// The run.
    pub(super) const RUN: Slot = Slot(NonZeroU32::MIN);
}

impl SlotEvent {
    fn of(event: Waited<Slot>) -> SlotEvent {
        match event {
            Waited::Start(slot) => SlotEvent::at(2 * slot.place()),
            Waited::End(slot) => SlotEvent::at(2 * slot.place() + 1),
        }
    }
}

/// New times of all slots of a part, as far as the replay has come; beyond, those of the replay before.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) start: IdVec<Slot, Nanos>,
    pub(super) end: IdVec<Slot, Nanos>,
    /// The latest new end among this one and those that ended before it under the same host.
    pub(super) latest: IdVec<Slot, Nanos>,
}

impl Clone for Times {
    fn clone(&self) -> Self {
        Times { start: self.start.clone(), end: self.end.clone(), latest: self.latest.clone() }
    }

    fn clone_from(&mut self, from: &Self) {
        self.start.clone_from(&from.start);
        self.end.clone_from(&from.end);
        self.latest.clone_from(&from.latest);
    }
}

impl Times {
    /// Times for this number of slots, all 0.
    pub(super) fn zero(slots: usize) -> Times {
        let zero = || IdVec::filled(Nanos::ZERO, slots);
        Times { start: zero(), end: zero(), latest: zero() }
    }
}

/// What an event waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// A start that follows the start of its host.
    Host,
    /// A start that follows the end of a sibling.
    Sibling,
    /// The same, but the order may be chance.
    SiblingByChance,
    /// A start that follows the end of a whole phase.
    Phase,
    /// A start that follows what its links name, or the start of its anchor.
    Links,
    /// An end that follows the node's start or its last child.
    End,
}

/// One event of the schedule and all that a replay must know of it, side by side in memory: a replay is one walk over them.
/// Nodes are named by their slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) waits: Waits,
    pub(super) slot: Slot,
    /// Whose work lies between what is waited for and the event: the host, the anchor, or the node itself.
    pub(super) worker: Slot,
    /// Whose end is waited for, with all that ended before it under the same host.
    pub(super) last: Option<Slot>,
    /// Which one ended before this end under the same host; `None` for the first, and for starts.
    pub(super) before: Option<Slot>,
    /// That work.
    pub(super) gap: Nanos,
    /// How much of it is the worker's own time.
    pub(super) own: Nanos,
    /// A start that opens a pool.
    pub(super) opens_pool: bool,
    /// An end that may not have waited for anything: the part of a pipeline that seemed to.
    pub(super) by_chance: bool,
    /// The end of what was blocked on a pipe.
    pub(super) stalls: bool,
}

/// The part of the schedule that changes of some nodes can reach.
///
/// ```text
/// run     ├───────────────────────────────────────┤     is there
///   a       ├──────────┤                                 is one piece, its children are not there
///     …
///   b         ├─────────────────────┤                    is there
///     b1        ├──────┤                                 is one piece
///     b2                ├─────────┤                      is changed, so all below it is there
///       …
/// ```
///
/// What is left out moves with its piece, by as much: inside of it everything happens so long after its start as it was
/// recorded. Each node that is there has a slot, in tree order.
pub(super) struct Part {
    /// The node of each slot.
    pub(super) nodes: IdVec<Slot, NodeId>,
    /// The slot of each node of the schedule; `None` for what is left out.
    slots: IdVec<NodeId, Option<Slot>>,
    /// The events, in their recorded order.
    pub(super) steps: IdVec<StepId, Step>,
    /// Where in `steps` each event stands.
    step_of: IdVec<SlotEvent, StepId>,
    /// Processes that may be inside of what changes, and hang elsewhere.
    pub(super) maybe: Vec<NodeId>,
    /// The times of the recording itself, which every replay begins with.
    pub(super) recorded: Times,
    /// The part of the nodes' own time that changes; without it all of it does.
    pub(super) only: Option<OwnWork>,
}

impl Part {
    pub(super) fn step_of_event(&self, event: Waited<Slot>) -> StepId {
        self.step_of[SlotEvent::of(event)]
    }

    /// The slot of a node that is there. All are that what is changed can reach.
    pub(super) fn slot(&self, node: NodeId) -> Slot {
        debug_assert!(self.slots[node].is_some(), "{node:?} is left out");
        self.slots[node].unwrap_or(Slot::RUN)
    }

    /// The slot of a node, `None` for one that is left out.
    pub(super) fn slot_if_there(&self, node: NodeId) -> Option<Slot> {
        self.slots[node]
    }
}

/// Nodes that are tied to others, so that no piece may hold one without the other.
struct Ties {
    /// The first and the last node in tree order that each node is tied to.
    reach: IdVec<NodeId, Option<Reach>>,
    /// Nodes that no piece may hold at all.
    loose: IdVec<NodeId, bool>,
}

/// The first and the last of some nodes in tree order.
#[derive(Debug, Clone, Copy)]
struct Reach {
    low: NodeId,
    high: NodeId,
}

impl Reach {
    /// Those of both.
    fn join(to: &mut Option<Reach>, other: Option<Reach>) {
        *to = match (*to, other) {
            (Some(a), Some(b)) => Some(Reach { low: a.low.min(b.low), high: a.high.max(b.high) }),
            (a, b) => a.or(b),
        };
    }
}

impl Ties {
    fn of(s: &Schedule, pools: &[LimitedJobs]) -> Ties {
        let mut ties = Ties { reach: IdVec::filled(None, s.len()), loose: IdVec::filled(false, s.len()) };
        for node in s.nodes().skip(1) {
            ties.tie(node, s.host[node]);
            ties.tie(node, s.anchor[node]);
            if let Some(host) = s.end_host[node] {
                ties.tie(node, host);
                // The end of a part of a pipeline waits for what is not below it.
                ties.loose[host] |= node < host || node >= s.subtree_end[host];
            }
            for &other in s.links(node) {
                ties.tie(node, other);
                ties.tie(other, node);
            }
        }
        for host in s.nodes() {
            // Where ends were not in order, whoever waits for the last of them waits for an earlier one.
            ties.loose[host] |= !s.ended_under(host).is_sorted_by_key(|&node| s.end[node]);
        }
        for pool in pools {
            // Slots are given out in rounds, and what was in flight in the round before counts.
            ties.loose[pool.host] = true;
            pool.jobs().for_each(|job| ties.tie(job, pool.host));
        }
        ties
    }

    fn tie(&mut self, node: NodeId, other: NodeId) {
        Reach::join(&mut self.reach[node], Some(Reach { low: other, high: other }));
    }

    /// Which nodes are one piece with all below them: only their own start and end are tied to anything outside.
    fn rigid(mut self, s: &Schedule) -> IdVec<NodeId, bool> {
        let mut rigid = IdVec::filled(false, s.len());
        // What is tied to the nodes below each node; they stand behind it.
        let mut below: IdVec<NodeId, Option<Reach>> = IdVec::filled(None, s.len());
        for node in s.nodes().rev() {
            let Some(parent) = s.parent[node] else { continue };
            rigid[node] = !self.loose[node] && below[node].is_none_or(|reach| reach.low >= node && reach.high < s.subtree_end[node]);
            let reach = below[node];
            Reach::join(&mut below[parent], reach);
            Reach::join(&mut below[parent], self.reach[node]);
            self.loose[parent] |= self.loose[node];
        }
        rigid
    }
}

/// Which nodes are one piece with all below them.
pub(super) fn rigid(s: &Schedule, pools: &[LimitedJobs]) -> IdVec<NodeId, bool> {
    Ties::of(s, pools).rigid(s)
}

impl Replay {
    /// The part that changes of these nodes, and of all below them, can reach; without its recorded times.
    pub(super) fn plan(&self, nodes: &[NodeId], only: Option<OwnWork>) -> Part {
        let s = &self.schedule;
        let mut changed = nodes.to_vec();
        changed.sort_unstable();
        let mut changed = changed.into_iter().peekable();
        let mut part = Part {
            nodes: IdVec::default(),
            slots: IdVec::filled(None, s.len()),
            steps: IdVec::default(),
            step_of: IdVec::default(),
            maybe: Vec::new(),
            recorded: Times::default(),
            only,
        };
        let mut node = NodeId::RUN;
        // All before this is below something that is changed.
        let mut changed_to = NodeId::RUN;
        while node < s.start.next_id() {
            part.slots[node] = Some(part.nodes.push(node));
            let end = s.subtree_end[node];
            while changed.next_if_eq(&node).is_some() {
                changed_to = changed_to.max(end);
            }
            let is_piece = self.rigid[node] && node >= changed_to && changed.peek().is_none_or(|&next| next >= end);
            node = if is_piece { end } else { node.next() };
        }
        // A piece is known by the nodes missing behind it.
        let is_piece = |node: NodeId| s.subtree_end[node] > node.next() && part.slots[node.next()].is_none();
        // In one piece: of a part with a million nodes, growing would take as much memory again.
        let mut steps = IdVec::with_capacity(2 * part.nodes.len());
        for &event in &s.order {
            if let Some(slot) = part.slots[event.node()] {
                steps.push(self.step(event, slot, &part, is_piece(event.node())));
            }
        }
        part.step_of = IdVec::filled(StepId::at(0), 2 * part.nodes.len());
        for (id, step) in steps.enumerated() {
            let is_end = step.waits == Waits::End;
            part.step_of[SlotEvent::of(if is_end { Waited::End(step.slot) } else { Waited::Start(step.slot) })] = id;
        }
        part.steps = steps;
        part
    }

    /// What a replay must know of an event; for the end of a piece, how long it takes.
    fn step(&self, event: Event, slot: Slot, part: &Part, is_piece: bool) -> Step {
        let (s, slots) = (&self.schedule, &part.slots);
        let own_time = s.own_time(part.only.as_ref());
        let node = event.node();
        let mut step = Step {
            waits: Waits::Host,
            slot,
            worker: Slot::RUN,
            last: None,
            before: None,
            gap: Nanos::ZERO,
            own: Nanos::ZERO,
            opens_pool: false,
            by_chance: false,
            stalls: false,
        };
        let there = |node: NodeId| slots[node].unwrap_or(Slot::RUN);
        if event.is_end() {
            step.waits = Waits::End;
            step.worker = slot;
            step.by_chance = s.end_by_chance[node];
            step.stalls = s.stalls.contains_key(&node);
            if let (Some(position), Some(host)) = (s.position[node], s.end_host[node]) {
                step.before = s.ended.between(s.ended_base(host), position).last().and_then(|&before| slots[before]);
            }
            let (mut since, mut own) = (s.start[node], Nanos::ZERO);
            if let Some(&last) = s.ended_under(node).last().filter(|_| !is_piece) {
                step.last = slots[last];
                if s.end[last] > since {
                    (since, own) = (s.end[last], own_time.at_end(last));
                }
            }
            (step.gap, step.own) = (s.end[node] - since, own_time.total(node) - own);
            return step;
        }
        step.opens_pool = !self.rigid[node] && self.pools_of.contains_key(&node);
        if !s.links(node).is_empty() {
            let anchor = s.anchor[node];
            let since = s.links(node).iter().map(|&x| s.end[x]).fold(s.start[anchor], Nanos::max);
            step.waits = Waits::Links;
            step.worker = there(anchor);
            step.gap = s.start[node] - since;
            step.own = own_time.between(anchor, since, s.start[node]);
        } else if node != NodeId::RUN {
            let host = s.host[node];
            step.worker = there(host);
            (step.gap, step.own) = (s.start[node] - s.start[host], own_time.at_start(node));
            let last = if s.is_declared(node) { s.phase_before(node) } else { s.last_ended_before(node) };
            if let Some(last) = last {
                step.waits = match (self.chance[node], s.is_declared(node)) {
                    (true, _) => Waits::SiblingByChance,
                    (false, true) => Waits::Phase,
                    (false, false) => Waits::Sibling,
                };
                step.last = slots[last];
                (step.gap, step.own) = own_time.gap_after(last, node);
            }
        }
        step
    }
}
