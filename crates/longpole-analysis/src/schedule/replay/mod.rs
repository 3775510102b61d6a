//! What fixing something saves: the recorded schedule is replayed with that work made shorter.
//!
//! Every unit of work starts a fixed gap after the last thing it waited for. Units are the start of a node, the end of a
//! node after its last child, and the work of a parent between its children. A gap is the work of the parent; it shrinks
//! with the parent. Waiting is not work: what a shortened node waits for outside of itself it still waits for.
//!
//! # What a start waited for
//!
//! *Declared.* If any child of a parent carries a link to a span that ended before it started, the children of that parent
//! declare: each waited for the spans its links name (anywhere in the recording) and for the start of its parent; one
//! without links for its parent only, or, where everything before it was over, for the phase before (`Schedule` draws
//! that). The answer is one number.
//!
//! *Inferred.* Otherwise order inside the same parent is all there is, and the answer is a range. Both ends replay with a
//! rule of their own for the start of a child `c`:
//!
//! ```text
//! parent  ├──────────────────────────────────────────────
//!   a       ├──────┤
//!   b         ├───────────────┤
//!   d           ├──────────────┤
//!   c                            ├───────
//!
//! low     new start = latest new end of a, b, d + (c − d)     everything that had ended counts as waited for
//! high    new start = new end of d + (c − d)                  only the last one counts
//! ```
//!
//! - *Chance.* If even the last sibling ended much longer before than is usual, its order may be chance: a timer, a request
//!   from outside. The low end then keeps the start where it is, relative to the parent. Usual is up to
//!   [`CHANCE_GAP_FACTOR`] times the median gap between the starts of this parent's children and the last end before them,
//!   and always up to [`CHANCE_GAP_NANOS`].
//! - *Serial.* No chance is assumed where children follow each other without a single overlap and fill so much of their
//!   parent that as many pieces thrown there blindly would overlap (probability of none below [`SERIAL_CHANCE`]). That is
//!   the script with long steps of its own between its children.
//! - *Slots.* Where the number in flight has a ceiling, the replay is repeated with slots, see `slots`; the range spans both
//!   readings, and a note says so. That holds for declared children too: their links do not tell of slots.
//!
//! The end of a parent waited for all its children that ended before it. The part of a pipeline that was blocked on a pipe is shorter by
//! as much as the part that it waited for, as far as it did (`pipeline`). Where nothing is known of pipes, the end of a process waited for
//! the one that ran, or, at the low end, for nothing.
//!
//! A true schedule in which each start waited for the last thing that ended before it, and for whatever else had ended,
//! lies between the two rules, for all arithmetic is sums, maxima and minima: monotone. How well the rules do on schedules
//! that keep to no rule, `tests/replay.rs` counts: 1,000 random graphs (resources, scripts, fan-outs, lanes, pools, workers,
//! nested; parents that work beside their children; children nobody waits for), ten predictions each, links removed.
//!
//! ```text
//!                                truth in range    width of the range, of wall: median   mean
//! as it is                            96.7 %                                     0.00 %   1.18 %
//! factor 4                            96.1 %                                     0.00 %   1.80 %
//! factor 8                            96.5 %                                     0.00 %   1.36 %
//! factor 32                           96.7 %                                     0.00 %   1.10 %
//! without "serial"                    96.9 %                                     0.00 %   2.47 %
//! without slots                       94.0 %                                     0.00 %   1.10 %
//! only graphs that keep the rules     99.9 %                                     0.00 %   1.20 %
//! ```
//!
//! One replay is one pass over the events in their recorded order, without those that it cannot change: a subtree in which
//! nothing is made shorter, and which nothing but its start and its end ties to the rest, moves as one piece (see [`Part`]).
//! Linear in what is left, and at most in nodes and links.
//!
//! # What limits a saving
//!
//! Work that takes no time any more often saves less than it took, because something beside it is there to be waited for. Which
//! it is, the new schedule tells as the recorded one tells the critical path: from the end backwards, each event leads to the
//! last it waited for. The first end met of something that stood beside the recorded path is the limit.
//!
//! ```text
//! recorded   ├──── bundle ────┤├─ upload ─┤        path: bundle, upload
//!            ├ bucket ┤
//! replayed   ├ bucket ┤├─ upload ─┤                upload waits for bucket: that ends last, where the bundle was
//! ```

use std::collections::HashMap;

use longpole_model::{Recording, SumNanos};

use crate::note::{self, Note};
use crate::schedule::concurrency_limit::{self, Ceiling, Opening, Pool};
use crate::schedule::critical_path::{CriticalPath, OnPath};
use crate::schedule::recorded::{NONE, Schedule, StartedUnder, Waited};
use crate::tree::forest::Forest;

/// What is done to the work of a pole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It and all below it takes no time.
    Zero,
    /// It and all below it takes half its time.
    Half,
    /// Its own time, outside its children, is nothing; the children stay as they are.
    OwnZero,
}

/// How much earlier the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Saving {
    /// At least.
    pub low_nanos: i64,
    /// At most.
    pub high_nanos: i64,
}

/// Where the knowledge of what a node waited for comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Span links, or there was nothing that it could have waited for but its parent.
    Declared,
    /// Order inside the same parent.
    Inferred,
}

impl Evidence {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Declared => "declared",
            Evidence::Inferred => "inferred",
        }
    }
}

/// Gaps up to this are never so long that order may be chance.
pub const CHANCE_GAP_NANOS: i64 = 1_000_000;

/// A gap that is so many times its parent's usual one may follow by chance.
pub const CHANCE_GAP_FACTOR: i64 = 16;

/// Children that follow each other without overlap by chance with less than this probability were ordered.
pub const SERIAL_CHANCE: f64 = 0.05;

/// Ends at one moment among which one that a change leaves alone is looked for.
const EQUAL_ENDS_MAX: usize = 64;

/// Which end of the range a replay computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Low,
    High,
}

/// The recorded schedule, ready to be replayed.
#[derive(Debug)]
pub struct Replay {
    schedule: Schedule,
    /// Whether the order of a start may be chance.
    chance: Vec<bool>,
    /// Whether the node and all below it move as one piece where nothing in it is changed.
    rigid: Vec<bool>,
    /// Jobs that share slots.
    pools: Vec<Pool>,
    /// Whether order told what some child of the node waited for.
    ordered: Vec<bool>,
    /// See [`Replay::evidence`].
    is_inferred: Vec<bool>,
    /// Pools by the node whose start opens them.
    pools_of: HashMap<usize, Vec<usize>>,
    notes: Vec<Note>,
}

/// New times of all slots of a part, as far as the replay has come; beyond, those of the replay before.
#[derive(Debug, Default)]
struct Times {
    start: Vec<i64>,
    end: Vec<i64>,
    /// The latest new end among this one and those that ended before it under the same host.
    latest: Vec<i64>,
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

/// What a replay shows while it is under way.
enum Replayed<'a> {
    Schedule {
        bound: Bound,
        times: &'a Times,
        work: &'a [Work],
    },
    /// With limited slots the run ends at another moment.
    SlotsMoveTheEnd,
}

/// What an event waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
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
struct Step {
    waits: Waits,
    slot: u32,
    /// Whose work lies between what is waited for and the event: the host, the anchor, or the node itself.
    worker: u32,
    /// Whose end is waited for, with all that ended before it under the same host; `NONE` without one.
    last: u32,
    /// Which one ended before this end under the same host; `NONE` for the first, and for starts.
    before: u32,
    /// That work.
    gap: i64,
    /// How much of it is the worker's own time.
    own: i64,
    /// A start that opens a pool.
    opens_pool: bool,
    /// An end that may not have waited for anything: the part of a pipeline that seemed to.
    by_chance: bool,
    /// The end of what was blocked on a pipe.
    stalls: bool,
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
struct Part {
    nodes: Vec<u32>,
    /// The slot of each node of the schedule; `NONE` for what is left out.
    slots: Vec<u32>,
    /// The events, in their recorded order.
    steps: Vec<Step>,
    /// Where in `steps` each event stands: `2 * slot`, its end `+ 1`.
    step_of: Vec<u32>,
    /// The times of the recording itself, which every replay begins with.
    recorded: Times,
}

impl Step {
    /// Whether it is an end that is not only due so long after another one, but also so long after its own start.
    fn lasts_alone(&self, bound: Bound) -> bool {
        self.stalls || self.by_chance && bound == Bound::Low
    }
}

impl Part {
    fn step_of_event(&self, event: Waited) -> usize {
        let event = match event {
            Waited::Start(slot) => 2 * slot,
            Waited::End(slot) => 2 * slot + 1,
        };
        self.step_of[event] as usize
    }

    /// The slot whose end is the latest of this one and all that ended before it under the same host.
    fn latest_ended(&self, last: usize, times: &Times, work: &[Work]) -> usize {
        let at = times.latest[last];
        let before = |&slot: &usize| match self.steps[self.step_of_event(Waited::End(slot))].before {
            NONE => None,
            before => Some(before as usize).filter(|&before| times.latest[before] == at),
        };
        let mut equals = std::iter::successors(Some(last), before).filter(|&slot| times.end[slot] == at);
        let Some(first) = equals.next() else { return last };
        let keeps = |&slot: &usize| work[slot] == Work::Keep;
        std::iter::once(first).chain(equals.take(EQUAL_ENDS_MAX)).find(keeps).unwrap_or(first)
    }

    fn slot(&self, node: usize) -> usize {
        self.slots[node] as usize
    }
}

/// Replays of the slots after the first: each takes its durations from the one before, so that slots inside slots settle.
const POOL_ROUNDS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Keep,
    Half,
    Zero,
    OwnZero,
}

impl Work {
    fn apply(self, gap: i64, own: i64) -> i64 {
        if gap <= 0 {
            return gap;
        }
        match self {
            Work::Keep => gap,
            Work::Half => gap / 2,
            Work::Zero => 0,
            Work::OwnZero => gap - own.clamp(0, gap),
        }
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
    fn of(s: &Schedule, pools: &[Pool]) -> Ties {
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

/// The median gap between the starts under a host and the last end before them (before the first end: the host's start).
fn usual_gap(s: &Schedule, host: usize, children: &[u32]) -> i64 {
    let gap = |&c: &u32| {
        let c = c as usize;
        match s.ended_before(c).next_back() {
            Some(last) => s.start[c] - s.end[s.ended[last] as usize],
            None => s.start[c] - s.start[host],
        }
    };
    let mut gaps: Vec<i64> = children.iter().map(gap).collect();
    let middle = gaps.len() / 2;
    *gaps.select_nth_unstable(middle).1
}

/// Whether children stand one after the other, and too densely for that to be chance.
fn is_serial(s: &Schedule, host: usize, children: &[u32]) -> bool {
    let length = (s.end[host] - s.start[host]).max(1);
    let free = s.own_total(host) as f64 / length as f64;
    // Exponents beyond this make no difference, and fit.
    let pieces = children.len().min(1000) as i32;
    free.powi(pieces) < SERIAL_CHANCE && children.iter().all(|&c| s.in_flight[c as usize] == 0)
}

impl Replay {
    /// Reads the schedule of a recording.
    pub fn new(recording: &Recording, forest: &Forest) -> Replay {
        let schedule = Schedule::new(recording, forest);
        let count = schedule.len();
        let mut replay = Replay {
            schedule,
            chance: vec![false; count],
            rigid: Vec::new(),
            pools: Vec::new(),
            ordered: vec![false; count],
            is_inferred: Vec::new(),
            pools_of: HashMap::new(),
            notes: Vec::new(),
        };
        replay.infer(recording, forest);
        replay
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The critical path of the recorded schedule.
    pub fn critical_path(&self, forest: &Forest) -> CriticalPath {
        CriticalPath::of(&self.schedule, forest)
    }

    /// Ceilings of work in flight.
    pub fn ceilings(&self) -> Vec<Ceiling> {
        self.pools.iter().map(Pool::ceiling).collect()
    }

    /// What the replay found out about the schedule: limited slots.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Finds for every start what it may have waited for.
    fn infer(&mut self, recording: &Recording, forest: &Forest) {
        let s = &self.schedule;
        let started_under = StartedUnder::of(s);
        let mut limit = vec![CHANCE_GAP_NANOS; s.len()];
        for (host, children) in started_under.iter().filter(|(_, c)| !c.is_empty()) {
            limit[host] = CHANCE_GAP_NANOS.max(usual_gap(s, host, children).saturating_mul(CHANCE_GAP_FACTOR));
            let serial = is_serial(s, host, children);
            for &c in children {
                let c = c as usize;
                let last = if s.is_declared(c) { s.phase_before(c) } else { s.ended_before(c).next_back() };
                let Some(last) = last else { continue };
                self.ordered[host] = true;
                self.chance[c] = !serial && s.start[c] - s.end[s.ended[last] as usize] > limit[host];
            }
        }
        // Who is at the other end of a pipe is told by the order in which they started.
        for &node in s.stalls.keys() {
            self.ordered[s.parent[node] as usize] = true;
        }
        self.pools = concurrency_limit::find(recording, forest, s, &started_under, &limit);
        for (i, pool) in self.pools.iter().enumerate() {
            self.pools_of.entry(pool.host).or_default().push(i);
        }
        drop((started_under, limit));
        self.rigid = Ties::of(s, &self.pools).rigid(s);
        self.is_inferred = Self::inferred(s, &self.ordered);
        let limits: Vec<(usize, &str)> = self.pools.iter().map(|p| (p.slots, forest.name(recording, p.host))).collect();
        self.notes.extend(note::limited_slots(&limits));
    }

    /// The part that changes of these nodes, and of all below them, can reach.
    fn part(&self, nodes: &[usize]) -> Part {
        let s = &self.schedule;
        let mut changed = nodes.to_vec();
        changed.sort_unstable();
        let mut changed = changed.into_iter().peekable();
        let mut part =
            Part { nodes: Vec::new(), slots: vec![NONE; s.len()], steps: Vec::new(), step_of: Vec::new(), recorded: Times::default() };
        let mut node = 0;
        // All before this is below something that is changed.
        let mut changed_to = 0;
        while node < s.len() {
            part.slots[node] = part.nodes.len() as u32;
            part.nodes.push(node as u32);
            let end = s.subtree_end[node] as usize;
            while changed.next_if_eq(&node).is_some() {
                changed_to = changed_to.max(end);
            }
            let is_piece = self.rigid[node] && node >= changed_to && changed.peek().is_none_or(|&next| next >= end);
            node = if is_piece { end } else { node + 1 };
        }
        // A piece is told by what is missing behind it.
        let is_piece = |node: usize| s.subtree_end[node] as usize > node + 1 && part.slots[node + 1] == NONE;
        let events = s.order.iter().filter(|&&event| part.slots[event as usize / 2] != NONE);
        // In one piece: of a part with a million nodes, growing would take as much memory again.
        part.steps = Vec::with_capacity(2 * part.nodes.len());
        for &event in events {
            part.steps.push(self.step(event, &part.slots, is_piece(event as usize / 2)));
        }
        part.step_of = vec![0; 2 * part.nodes.len()];
        for (i, step) in part.steps.iter().enumerate() {
            part.step_of[2 * step.slot as usize + usize::from(step.waits == Waits::End)] = i as u32;
        }
        let none = || vec![0; part.nodes.len()];
        let mut times = Times { start: none(), end: none(), latest: none() };
        self.walk(&part, &vec![Work::Keep; part.nodes.len()], Bound::Low, 0, &mut times, None);
        part.recorded = times;
        part
    }

    /// What a replay must know of an event. Of the end of a piece: how long it takes.
    fn step(&self, event: u32, slots: &[u32], is_piece: bool) -> Step {
        let s = &self.schedule;
        let node = event as usize / 2;
        let slot = slots[node];
        let entry = |i: usize| s.ended[i] as usize;
        let mut step = Step {
            waits: Waits::Host,
            slot,
            worker: 0,
            last: NONE,
            before: NONE,
            gap: 0,
            own: 0,
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
            let (mut since, mut own) = (s.start[node], 0);
            if let Some(&last) = s.ended_under(node).last().filter(|_| !is_piece) {
                step.last = slots[last as usize];
                if s.end[last as usize] > since {
                    (since, own) = (s.end[last as usize], s.own_at_end(last as usize));
                }
            }
            (step.gap, step.own) = (s.end[node] - since, s.own_total(node).saturating_sub(own));
            return step;
        }
        step.opens_pool = !self.rigid[node] && self.pools_of.contains_key(&node);
        if !s.links(node).is_empty() {
            let anchor = s.anchor[node] as usize;
            let since = s.links(node).iter().map(|&x| s.end[x as usize]).fold(s.start[anchor], i64::max);
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

    /// What is done to the work of each slot.
    fn work(&self, part: &Part, nodes: &[usize], change: Change) -> Vec<Work> {
        let mut work = vec![Work::Keep; part.nodes.len()];
        if change == Change::OwnZero {
            for &n in nodes {
                work[part.slot(n)] = Work::OwnZero;
            }
            return work;
        }
        let to = if change == Change::Zero { Work::Zero } else { Work::Half };
        // All below a changed node are there, behind it.
        let mut changed: Vec<usize> = nodes.iter().map(|&n| part.slot(n)).collect();
        changed.sort_unstable();
        let mut done = 0;
        for first in changed {
            let node = part.nodes[first] as usize;
            let end = first + (self.schedule.subtree_end[node] as usize - node);
            work[first.max(done)..end.max(done)].fill(to);
            done = done.max(end);
        }
        work
    }

    /// How much earlier the run ends if this is done to these nodes.
    pub fn saves(&self, nodes: &[usize], change: Change) -> Saving {
        self.saves_in(&self.part(nodes), &mut Times::default(), nodes, change, &mut |_| ())
    }

    /// The three changes, in the order of [`Change`].
    pub(crate) fn saves_all(&self, nodes: &[usize]) -> [Saving; 3] {
        let part = self.part(nodes);
        // One buffer for all replays: to fetch fresh memory costs as much as to walk it.
        let mut times = Times::default();
        [Change::Zero, Change::Half, Change::OwnZero].map(|change| self.saves_in(&part, &mut times, nodes, change, &mut |_| ()))
    }

    /// Beside the savings of [`Replay::saves_all`], what limits the first of them: if these nodes and all below them took no time.
    /// `None` where they save all the time that the path spends in them, where the two ends of the range have two answers, and
    /// where limited slots have a say.
    pub(crate) fn saves_all_and_limit(&self, nodes: &[usize], on_path: &OnPath) -> ([Saving; 3], Option<usize>) {
        let part = self.part(nodes);
        let mut times = Times::default();
        let mut limits = Vec::new();
        let if_zero = self.saves_in(&part, &mut times, nodes, Change::Zero, &mut |replayed| {
            limits.push(match replayed {
                Replayed::Schedule { bound, times, work } => self.limit_in(&part, bound, times, work, on_path),
                Replayed::SlotsMoveTheEnd => None,
            });
        });
        let [if_half, own] = [Change::Half, Change::OwnZero].map(|change| self.saves_in(&part, &mut times, nodes, change, &mut |_| ()));
        let limit = limits.first().copied().flatten().filter(|first| limits.iter().all(|limit| *limit == Some(*first)));
        ([if_zero, if_half, own], limit.filter(|_| if_zero.high_nanos < on_path.in_subtrees(&self.schedule, nodes)))
    }

    /// Walks a replayed schedule from the end of the run backwards, to the first end of something that is not part of the change,
    /// takes time, and has none of the recorded path in it: a node.
    fn limit_in(&self, part: &Part, bound: Bound, times: &Times, work: &[Work], on_path: &OnPath) -> Option<usize> {
        let s = &self.schedule;
        let mut at = Waited::End(0);
        let mut step = part.step_of_event(at);
        loop {
            if let Waited::End(slot) = at {
                let node = part.nodes[slot] as usize;
                let takes_time = times.end[slot] > times.start[slot];
                if work[slot] == Work::Keep && takes_time && on_path.between(node, s.subtree_end[node] as usize) == 0 {
                    return Some(node);
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
    /// the run. Of several at one moment, one that the change leaves alone. Nodes are named by their slots.
    fn waited_for(&self, part: &Part, step: &Step, bound: Bound, times: &Times, work: &[Work]) -> Option<Waited> {
        let (slot, worker) = (step.slot as usize, step.worker as usize);
        let since = times.start[worker];
        // The latest of all that had ended there, or else the start of whose work it is.
        let latest = || match step.last {
            last if last != NONE && times.latest[last as usize] >= since => Waited::End(part.latest_ended(last as usize, times, work)),
            _ => Waited::Start(worker),
        };
        Some(match step.waits {
            Waits::End => {
                let last = if step.last == NONE { since } else { since.max(times.latest[step.last as usize]) };
                let by_itself = step.lasts_alone(bound) && times.end[slot] > last.saturating_add(work[worker].apply(step.gap, step.own));
                if by_itself { Waited::Start(slot) } else { latest() }
            }
            Waits::Host if slot == 0 => return None,
            Waits::Host => Waited::Start(worker),
            Waits::SiblingByChance if bound == Bound::Low => Waited::Start(worker),
            Waits::Phase => latest(),
            Waits::Sibling | Waits::SiblingByChance if bound == Bound::Low => latest(),
            Waits::Sibling | Waits::SiblingByChance => {
                let last = step.last as usize;
                if times.end[last] >= since { Waited::End(last) } else { Waited::Start(worker) }
            }
            Waits::Links => {
                let links = self.schedule.links(part.nodes[slot] as usize).iter().map(|&x| part.slot(x as usize));
                let last = links.max_by_key(|&x| (times.end[x], work[x] == Work::Keep)).filter(|&x| times.end[x] >= since);
                last.map_or(Waited::Start(worker), Waited::End)
            }
        })
    }

    /// `look` is shown each end of the range as it is without slots, and told where those move the end.
    fn saves_in(&self, part: &Part, times: &mut Times, nodes: &[usize], change: Change, look: &mut dyn FnMut(Replayed<'_>)) -> Saving {
        let work = self.work(part, nodes, change);
        let start_of = |node: usize| part.step_of[2 * part.slot(node)];
        // Nothing changes before the first of them starts.
        let Some(from) = nodes.iter().map(|&n| start_of(n)).min() else { return Saving::default() };
        let pools_from = self.pools.iter().map(|p| start_of(p.host)).min().unwrap_or(from).min(from);
        let (mut earliest, mut latest) = (i64::MAX, i64::MIN);
        for bound in [Bound::Low, Bound::High] {
            times.clone_from(&part.recorded);
            self.walk(part, &work, bound, from as usize, times, None);
            (earliest, latest) = (earliest.min(times.end[0]), latest.max(times.end[0]));
            look(Replayed::Schedule { bound, times, work: &work });
            if !self.pools.is_empty() {
                let without_slots = times.end[0];
                for _ in 0..POOL_ROUNDS {
                    let duration: Vec<i64> = times.end.iter().zip(&times.start).map(|(end, start)| end.saturating_sub(*start)).collect();
                    self.walk(part, &work, bound, pools_from as usize, times, Some(&duration));
                }
                (earliest, latest) = (earliest.min(times.end[0]), latest.max(times.end[0]));
                if times.end[0] != without_slots {
                    look(Replayed::SlotsMoveTheEnd);
                }
            }
        }
        let end = self.schedule.end[0];
        Saving { low_nanos: end.saturating_sub(latest).max(0), high_nanos: end.saturating_sub(earliest).max(0) }
    }

    /// How much less a node is blocked on pipes, because whom it waits for takes less time.
    fn stalls_less(&self, part: &Part, work: &[Work], node: usize) -> i64 {
        let less = |(busy, nanos): &(usize, i64)| match part.slots[*busy] {
            NONE => 0,
            slot => nanos.saturating_sub(work[slot as usize].apply(*nanos, *nanos)),
        };
        self.schedule.stalls.get(&node).map_or(0, |stalls| stalls.iter().map(less).sum_nanos())
    }

    /// Gives every event from this step on its new time. With the durations of a walk before, jobs that share slots are
    /// scheduled anew when their pool opens.
    fn walk(&self, part: &Part, work: &[Work], bound: Bound, from: usize, times: &mut Times, durations: Option<&[i64]>) {
        let s = &self.schedule;
        // New starts of jobs whose pool is open.
        let mut forced = vec![i64::MIN; if durations.is_some() { part.nodes.len() } else { 0 }];
        for step in &part.steps[from..] {
            let slot = step.slot as usize;
            let worker = step.worker as usize;
            let done = || work[worker].apply(step.gap, step.own);
            let since = times.start[worker];
            let at = match step.waits {
                Waits::End => {
                    let last = if step.last == NONE { since } else { since.max(times.latest[step.last as usize]) };
                    let mut at = last.saturating_add(done());
                    if step.lasts_alone(bound) {
                        let node = part.nodes[slot] as usize;
                        let alone = since.saturating_add(
                            work[worker]
                                .apply((s.end[node] - s.start[node]).saturating_sub(self.stalls_less(part, work, node)), s.own_total(node)),
                        );
                        at = if step.last == NONE { alone } else { at.max(alone) };
                    }
                    times.end[slot] = at;
                    times.latest[slot] = if step.before == NONE { at } else { at.max(times.latest[step.before as usize]) };
                    continue;
                }
                Waits::Host => since.saturating_add(done()),
                Waits::SiblingByChance if bound == Bound::Low => {
                    let (node, host) = (part.nodes[slot] as usize, part.nodes[worker] as usize);
                    since.saturating_add(work[worker].apply(s.start[node] - s.start[host], s.own_at_start(node)))
                }
                Waits::Phase => since.max(times.latest[step.last as usize]).saturating_add(done()),
                Waits::Sibling | Waits::SiblingByChance => {
                    let last = step.last as usize;
                    since.max(if bound == Bound::Low { times.latest[last] } else { times.end[last] }).saturating_add(done())
                }
                Waits::Links => {
                    let ends = s.links(part.nodes[slot] as usize).iter().map(|&x| times.end[part.slot(x as usize)]);
                    ends.fold(since, i64::max).saturating_add(done())
                }
            };
            times.start[slot] = at;
            let Some(duration) = durations else { continue };
            if forced[slot] != i64::MIN {
                let anchor = part.slot(s.anchor[part.nodes[slot] as usize] as usize);
                times.start[slot] = forced[slot].max(times.start[anchor]);
            }
            if step.opens_pool {
                for &pool in &self.pools_of[&(part.nodes[slot] as usize)] {
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

    /// Whether what this node waited for is declared: by the nearest parent above it whose children waited for each other at
    /// all. Where none did, there is nothing to infer.
    pub fn evidence(&self, node: usize) -> Evidence {
        if self.is_inferred[node] { Evidence::Inferred } else { Evidence::Declared }
    }

    /// For each node whether what it waited for is inferred. Once for all: a chain of spans may be as deep as there are spans.
    fn inferred(s: &Schedule, ordered: &[bool]) -> Vec<bool> {
        let mut inferred = vec![false; s.len()];
        for node in 0..s.len() {
            if s.parent[node] != NONE {
                let parent = s.parent[node] as usize;
                inferred[node] = !s.declares[parent] && (ordered[parent] || inferred[parent]);
            }
        }
        inferred
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;
    use proptest::prelude::*;

    struct Case {
        recording: Recording,
        forest: Forest,
        replay: Replay,
    }

    fn case(input: &str) -> Case {
        let recording = text::parse(input).unwrap();
        let forest = Forest::build(&recording);
        let replay = Replay::new(&recording, &forest);
        Case { recording, forest, replay }
    }

    impl Case {
        fn node(&self, name: &str) -> usize {
            (0..self.forest.len()).find(|&i| self.forest.name(&self.recording, i) == name).unwrap()
        }

        /// What limits the saving of these nodes.
        fn limit(&self, names: &[&str]) -> &str {
            let nodes: Vec<usize> = names.iter().map(|n| self.node(n)).collect();
            let path = self.replay.critical_path(&self.forest);
            let (savings, limit) = self.replay.saves_all_and_limit(&nodes, &OnPath::new(&path));
            assert_eq!(savings, self.replay.saves_all(&nodes));
            limit.map_or("nothing", |node| self.forest.name(&self.recording, node))
        }

        /// `zero half own` in milliseconds, a range as `low-high`.
        fn saves(&self, names: &[&str]) -> String {
            let nodes: Vec<usize> = names.iter().map(|n| self.node(n)).collect();
            let one = |change| {
                let s = self.replay.saves(&nodes, change);
                let millis = |nanos: i64| nanos as f64 / 1e6;
                if s.low_nanos == s.high_nanos {
                    format!("{}", millis(s.low_nanos))
                } else {
                    format!("{}-{}", millis(s.low_nanos), millis(s.high_nanos))
                }
            };
            [Change::Zero, Change::Half, Change::OwnZero].map(one).join(" ")
        }
    }

    #[test]
    fn a_declared_chain_saves_until_the_next_chain_is_longer() {
        let c = case("run x 0..50ms\n  web 4..14ms\n  db 16..44ms <- web\n  dns 5..30ms\n");
        assert_eq!(c.limit(&["db"]), "dns");
        assert_eq!(c.limit(&["web"]), "nothing", "all of its 10 ms are saved");
        assert_eq!(c.limit(&["db", "dns"]), "nothing");
        assert_eq!(c.saves(&["web"]), "10 5 10");
        assert_eq!(c.saves(&["db"]), "14 14 14", "dns still ends at 30");
        assert_eq!(c.saves(&["dns"]), "0 0 0");
        assert_eq!(c.saves(&["db", "dns"]), "28 14 28");
        assert_eq!(c.replay.evidence(c.node("db")), Evidence::Declared);
    }

    #[test]
    fn order_alone_gives_a_range() {
        // Either db waited for web alone, or for dns too.
        let c = case("run x 0..50ms\n  web 4..14ms\n  dns 5..10ms\n  db 15..44ms\n");
        assert_eq!(c.saves(&["web"]), "4-10 4-5 4-10");
        assert_eq!(c.limit(&["web"]), "nothing", "one end of the range says dns, the other that all is saved");
        assert_eq!(c.replay.evidence(c.node("db")), Evidence::Inferred);
    }

    #[test]
    fn a_long_gap_may_be_chance_unless_the_parent_is_serial() {
        let quick = "run x 0..2s\n  a 1..2ms\n  b 2.1..3ms\n  c 3.1..4ms\n  d 4.1..5ms\n";
        let c = case(&format!("{quick}  late 500..510ms\n"));
        assert_eq!(c.saves(&["a"]), "0-1 0-0.5 0-1");
        let c = case("run x 0..2s\n  a 1..500ms\n  b 501..800ms\n  c 801..900ms\n  late 1500..1999ms\n");
        assert_eq!(c.saves(&["a"]), "499 249.5 499", "one after the other, and filling the run");
    }

    #[test]
    fn own_time_is_what_no_child_covers() {
        let c = case("run x 0..100ms\n  p 10..90ms\n    one 20..40ms\n    two 50..60ms <- one\n");
        assert_eq!(c.saves(&["p"]), "80 40 50");
        assert_eq!(c.saves(&["x"]), "100 50 20");
    }

    #[test]
    fn what_a_shortened_span_waits_for_outside_it_still_waits_for() {
        let c = case("run x 0..100ms\n  a 1..50ms\n  b 2..90ms\n    inner 51..89ms <- a\n    first 3..4ms\n");
        assert_eq!(c.saves(&["b"]), "40 20 2", "a ends at 50 all the same");
    }

    #[test]
    fn a_child_nobody_waits_for_saves_nothing_and_one_that_outlives_its_parent_does() {
        let c = case("run x 0..30ms\n  send 1..3ms\n    deliver 2..25ms\n  after 26..29ms <- deliver\n");
        assert_eq!(c.saves(&["deliver"]), "23 11.5 23");
        let c = case("run x 0..30ms\n  late 5..40ms\n");
        assert_eq!(c.saves(&["late"]), "0 0 0");
    }

    #[test]
    fn limited_slots_are_recognised_said_and_widen_the_range() {
        let mut text = "run x 0..61ms\n  a 0..60ms\n  b 0..10ms\n".to_owned();
        for i in 1..6 {
            text.push_str(&format!("  j{i} {}..{}ms\n", i * 10, i * 10 + 10));
        }
        let c = case(&text);
        assert_eq!(c.replay.notes()[0].detail, "never more at once than 2 in x: taken for slots, which makes savings there ranges");
        assert_eq!(c.saves(&["a"]), "0-30 0-10 0-30", "a free slot takes half of the jobs");
        assert_eq!(c.limit(&["a"]), "nothing", "slots do, and no job alone");
    }

    #[test]
    fn what_limits_a_saving_is_the_outermost_that_stood_beside_the_path() {
        let c = case(
            "run x 0..90ms\n  bundle 1..60ms\n    compress 2..59ms\n  bucket 1..20ms\n    Create 2..19ms\n  upload 61..80ms <- bundle, bucket\n",
        );
        assert_eq!(c.saves(&["compress"]), "40 28.5 40");
        assert_eq!([c.limit(&["compress"]), c.limit(&["bundle"])], ["bucket", "bucket"]);
        // A limit inside of the path's own parent.
        let c = case("run x 0..90ms\n  up 1..80ms\n    a 2..70ms\n    b 3..50ms\n");
        assert_eq!([c.limit(&["a"]), c.limit(&["up"])], ["b", "nothing"]);
    }

    #[test]
    fn many_that_end_at_one_moment_are_no_trouble() {
        let mut text = "run x 0..90ms\n  long 1..80ms\n".to_owned();
        for i in 0..500 {
            text.push_str(&format!("  w{i} 1..40ms\n"));
        }
        assert_ne!(case(&text).limit(&["long"]), "nothing", "any of them");
    }

    #[test]
    fn links_among_spans_of_no_length_at_one_moment_do_not_stop_the_replay() {
        let c = case("run x 0..9ms\n  a 5..5ms <- b\n  b 5..5ms <- c\n  c 5..5ms <- a\n  d 6..8ms <- a\n");
        assert_eq!(c.replay.saves(&[], Change::Zero), Saving::default());
        assert_eq!(c.saves(&["d"]), "2 1 2");
    }

    #[test]
    fn a_deployment_with_phases_around_its_declared_resources() {
        let c = case(
            "\
run deploy 0..2920ms
  deploy 10..2910ms
    run program 12..60ms
    start cloud 13..40ms
    start compute 14..45ms
    create bundle 50..1250ms <- start cloud, start compute
    create bucket 50..200ms <- start cloud, start compute
    create upload 1251..1351ms <- create bundle, create bucket
    create service 1352..1952ms <- create upload
    create certificate 1953..2753ms <- create service
    create balancer 1954..2254ms <- create service
    create record 2755..2855ms <- create certificate, create balancer
    stop 2857..2900ms
",
        );
        assert_eq!(c.saves(&["create bundle"]), "1050 600 1050", "the bucket takes 150");
        assert_eq!(c.saves(&["create certificate"]), "499 400 499", "the balancer takes 300, and starts a moment later");
        assert_eq!(c.saves(&["create balancer"]), "0 0 0");
        assert_eq!(c.saves(&["stop"]), "43 21.5 43");
        assert_eq!(c.saves(&["start compute"]), "5 5 5", "the other one ends 5 before");
        let limits = ["create bundle", "create certificate", "start compute", "stop"].map(|name| c.limit(&[name]));
        assert_eq!(limits, ["create bucket", "create balancer", "start cloud", "nothing"]);
    }

    /// Trees with lanes, links, children that outlive their parents and children of skewed clocks.
    fn any_recording() -> impl Strategy<Value = Recording> {
        // Parent, start and length in the parent's time, whether it follows the sibling before, link.
        let span = (any::<prop::sample::Index>(), -5..100i64, 0..60i64, 0..8u8, prop::option::weighted(0.1, any::<prop::sample::Index>()));
        prop::collection::vec(span, 1..60).prop_map(|spans| {
            let mut recording = text::parse("run x 0..1s\n  n 0..1ms\n").unwrap();
            let template = recording.spans.remove(0);
            let mut times = vec![(0, 1_000_000_000i64)];
            let mut last_end: HashMap<usize, i64> = HashMap::new();
            for (i, (parent, start, length, follows, link)) in spans.into_iter().enumerate() {
                let parent = parent.index(i + 1);
                let (from, to) = times[parent];
                let percent = (to - from) / 100;
                let start = match last_end.get(&parent) {
                    Some(end) if follows > 1 => end + percent / 50,
                    _ => from + start * percent,
                };
                let end = start + length / (1 + i64::from(follows)) * percent;
                times.push((start, end));
                last_end.insert(parent, end);
                let linked = link.map(|other| longpole_model::SpanLink {
                    trace_id: template.trace_id,
                    span_id: text::span_id(1 + other.index(i + 1) as u64),
                    attributes: Default::default(),
                });
                recording.spans.push(longpole_model::Span {
                    span_id: text::span_id(1 + i as u64),
                    parent_span_id: Some(text::span_id(parent as u64)),
                    name: format!("n{}", i % 3).into(),
                    start: text::ORIGIN.plus_nanos(start),
                    end: text::ORIGIN.plus_nanos(end),
                    links: linked.into_iter().collect(),
                    ..template.clone()
                });
            }
            recording
        })
    }

    proptest! {
        #[test]
        fn what_moves_as_one_piece_changes_no_answer(
            recording in any_recording(),
            chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        ) {
            let forest = Forest::build(&recording);
            let in_pieces = Replay::new(&recording, &forest);
            let mut whole = Replay::new(&recording, &forest);
            whole.rigid.fill(false);
            let nodes: Vec<usize> = chosen.iter().map(|node| node.index(forest.len())).collect();
            let answer = |replay: &Replay| replay.saves_all_and_limit(&nodes, &OnPath::new(&replay.critical_path(&forest)));
            prop_assert_eq!(answer(&in_pieces), answer(&whole));
        }
    }

    #[test]
    fn only_what_a_change_reaches_is_replayed() {
        let mut text = "run x 0..9s\n".to_owned();
        for i in 0..100 {
            text.push_str(&format!(
                "  trace {}..{}ms\n    a {}..{}ms\n      b {}..{}ms\n",
                i * 10,
                i * 10 + 9,
                i * 10 + 1,
                i * 10 + 5,
                i * 10 + 2,
                i * 10 + 4
            ));
        }
        let c = case(&text);
        assert_eq!(c.replay.part(&[c.node("a")]).nodes.len(), 1 + 100 + 2, "the run, the traces, and what is below the one");
    }

    #[test]
    fn without_links_beside_those_with_links_a_quiet_moment_begins_a_phase() {
        let c = case("run x 0..90ms\n  plan 1..21ms\n  a 22..40ms\n  b 23..30ms\n  c 31..80ms <- b\n  stop 82..89ms\n");
        assert_eq!(c.saves(&["plan"]), "20 10 20");
        assert_eq!(c.saves(&["c"]), "40 24.5 40", "a ends at 40 all the same");
    }
}
