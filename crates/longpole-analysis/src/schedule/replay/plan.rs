//! The part of a schedule that a change can reach, laid out for one walk: steps, their times, and the pieces that move as one.

use longpole_model::{Id, IdVec, Nanos};

use super::Replay;
use crate::schedule::concurrency_limit::LimitedJobs;
use crate::schedule::recorded::{NONE, Schedule, Waited};

/// A node that is there, by its place in a part; places stand in tree order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u32);

impl Slot {
    /// The run.
    pub(super) const RUN: Slot = Slot(0);
    /// A node that is not there, or no node.
    const NONE: Slot = Slot(NONE);

    /// The slot, unless it is none.
    pub(super) fn there(self) -> Option<Slot> {
        Some(self).filter(|slot| *slot != Slot::NONE)
    }
}

impl Id for Slot {
    fn at(place: usize) -> Slot {
        Slot(place as u32)
    }

    fn place(self) -> usize {
        self.0 as usize
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
    /// Whose end is waited for, with all that ended before it under the same host; none without one.
    pub(super) last: Slot,
    /// Which one ended before this end under the same host; none for the first, and for starts.
    pub(super) before: Slot,
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
    pub(super) nodes: IdVec<Slot, u32>,
    /// The slot of each node of the schedule; none for what is left out.
    pub(super) slots: Vec<Slot>,
    /// The events, in their recorded order.
    pub(super) steps: Vec<Step>,
    /// Where in `steps` each event stands: `2 * slot`, its end `+ 1`.
    pub(super) step_of: Vec<u32>,
    /// The times of the recording itself, which every replay begins with.
    pub(super) recorded: Times,
}

impl Part {
    pub(super) fn step_of_event(&self, event: Waited<Slot>) -> usize {
        let event = match event {
            Waited::Start(slot) => 2 * slot.place(),
            Waited::End(slot) => 2 * slot.place() + 1,
        };
        self.step_of[event] as usize
    }

    pub(super) fn slot(&self, node: usize) -> Slot {
        self.slots[node]
    }
}

/// Nodes that are tied to others, so that no piece may hold one without the other.
struct Ties {
    /// The first and the last node in tree order that each node is tied to.
    low: Vec<u32>,
    high: Vec<u32>,
    /// Nodes that no piece may hold at all.
    loose: Vec<bool>,
}

impl Ties {
    fn of(s: &Schedule, pools: &[LimitedJobs]) -> Ties {
        let mut ties = Ties { low: vec![NONE; s.len()], high: vec![0; s.len()], loose: vec![false; s.len()] };
        for node in 1..s.len() {
            ties.tie(node, s.host[node] as usize);
            ties.tie(node, s.anchor[node] as usize);
            if s.end_host[node] != NONE {
                let host = s.end_host[node] as usize;
                ties.tie(node, host);
                // The end of a part of a pipeline waits for what is not below it.
                ties.loose[host] |= node < host || node >= s.subtree_end[host] as usize;
            }
            for &other in s.links(node) {
                ties.tie(node, other as usize);
                ties.tie(other as usize, node);
            }
        }
        for host in 0..s.len() {
            // Where ends were not in order, whoever waits for the last of them waits for an earlier one.
            ties.loose[host] |= !s.ended_under(host).is_sorted_by_key(|&node| s.end[node as usize]);
        }
        for pool in pools {
            // Slots are given out in rounds, and what was in flight in the round before counts.
            ties.loose[pool.host] = true;
            pool.jobs().for_each(|job| ties.tie(job, pool.host));
        }
        ties
    }

    fn tie(&mut self, node: usize, other: usize) {
        self.low[node] = self.low[node].min(other as u32);
        self.high[node] = self.high[node].max(other as u32);
    }

    /// Which nodes are one piece with all below them: only their own start and end are tied to anything outside.
    fn rigid(mut self, s: &Schedule) -> Vec<bool> {
        let mut rigid = vec![false; s.len()];
        // What is tied to the nodes below each node; they stand behind it.
        let (mut low, mut high) = (vec![NONE; s.len()], vec![0; s.len()]);
        for node in (1..s.len()).rev() {
            rigid[node] = !self.loose[node] && low[node] >= node as u32 && high[node] < s.subtree_end[node];
            let parent = s.parent[node] as usize;
            low[parent] = low[parent].min(low[node]).min(self.low[node]);
            high[parent] = high[parent].max(high[node]).max(self.high[node]);
            self.loose[parent] |= self.loose[node];
        }
        rigid
    }
}

/// Which nodes are one piece with all below them.
pub(super) fn rigid(s: &Schedule, pools: &[LimitedJobs]) -> Vec<bool> {
    Ties::of(s, pools).rigid(s)
}

impl Replay {
    /// The part that changes of these nodes, and of all below them, can reach; without its recorded times.
    pub(super) fn plan(&self, nodes: &[usize]) -> Part {
        let s = &self.schedule;
        let mut changed = nodes.to_vec();
        changed.sort_unstable();
        let mut changed = changed.into_iter().peekable();
        let mut part = Part {
            nodes: IdVec::default(),
            slots: vec![Slot::NONE; s.len()],
            steps: Vec::new(),
            step_of: Vec::new(),
            recorded: Times::default(),
        };
        let mut node = 0;
        // All before this is below something that is changed.
        let mut changed_to = 0;
        while node < s.len() {
            part.slots[node] = part.nodes.push(node as u32);
            let end = s.subtree_end[node] as usize;
            while changed.next_if_eq(&node).is_some() {
                changed_to = changed_to.max(end);
            }
            let is_piece = self.rigid[node] && node >= changed_to && changed.peek().is_none_or(|&next| next >= end);
            node = if is_piece { end } else { node + 1 };
        }
        // A piece is known by the nodes missing behind it.
        let is_piece = |node: usize| s.subtree_end[node] as usize > node + 1 && part.slots[node + 1] == Slot::NONE;
        let events = s.order.iter().filter(|&&event| part.slots[event as usize / 2] != Slot::NONE);
        // In one piece: of a part with a million nodes, growing would take as much memory again.
        part.steps = Vec::with_capacity(2 * part.nodes.len());
        for &event in events {
            part.steps.push(self.step(event, &part.slots, is_piece(event as usize / 2)));
        }
        part.step_of = vec![0; 2 * part.nodes.len()];
        for (i, step) in part.steps.iter().enumerate() {
            part.step_of[2 * step.slot.place() + usize::from(step.waits == Waits::End)] = i as u32;
        }
        part
    }

    /// What a replay must know of an event; for the end of a piece, how long it takes.
    fn step(&self, event: u32, slots: &[Slot], is_piece: bool) -> Step {
        let s = &self.schedule;
        let node = event as usize / 2;
        let slot = slots[node];
        let entry = |i: usize| s.ended[i] as usize;
        let mut step = Step {
            waits: Waits::Host,
            slot,
            worker: Slot::RUN,
            last: Slot::NONE,
            before: Slot::NONE,
            gap: Nanos::ZERO,
            own: Nanos::ZERO,
            opens_pool: false,
            by_chance: false,
            stalls: false,
        };
        if event % 2 == 1 {
            step.waits = Waits::End;
            step.worker = slot;
            step.by_chance = s.end_by_chance[node];
            step.stalls = s.stalls.contains_key(&node);
            let position = s.position[node];
            if position != NONE && position as usize > s.ended_base(s.end_host[node] as usize) {
                step.before = slots[entry(position as usize - 1)];
            }
            let (mut since, mut own) = (s.start[node], Nanos::ZERO);
            if let Some(&last) = s.ended_under(node).last().filter(|_| !is_piece) {
                step.last = slots[last as usize];
                if s.end[last as usize] > since {
                    (since, own) = (s.end[last as usize], s.own_at_end(last as usize));
                }
            }
            (step.gap, step.own) = (s.end[node] - since, s.own_total(node) - own);
            return step;
        }
        step.opens_pool = !self.rigid[node] && self.pools_of.contains_key(&node);
        if !s.links(node).is_empty() {
            let anchor = s.anchor[node] as usize;
            let since = s.links(node).iter().map(|&x| s.end[x as usize]).fold(s.start[anchor], Nanos::max);
            step.waits = Waits::Links;
            step.worker = slots[anchor];
            step.gap = s.start[node] - since;
            step.own = s.own_between(anchor, since, s.start[node]);
        } else if node != 0 {
            let host = s.host[node] as usize;
            step.worker = slots[host];
            (step.gap, step.own) = (s.start[node] - s.start[host], s.own_at_start(node));
            let last = if s.is_declared(node) { s.phase_before(node) } else { s.ended_before(node).next_back() };
            if let Some(last) = last.map(entry) {
                step.waits = match (self.chance[node], s.is_declared(node)) {
                    (true, _) => Waits::SiblingByChance,
                    (false, true) => Waits::Phase,
                    (false, false) => Waits::Sibling,
                };
                step.last = slots[last];
                (step.gap, step.own) = (s.start[node] - s.end[last].max(s.start[host]), s.own_at_start(node) - s.own_at_end(last));
            }
        }
        step
    }
}
