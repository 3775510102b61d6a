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
//!   `CHANCE_GAP_FACTOR` times the median gap between the starts of this parent's children and the last end before them,
//!   and always up to `CHANCE_GAP_NANOS`.
//! - *Serial.* No chance is assumed where children follow each other without a single overlap and fill so much of their
//!   parent that as many pieces thrown there blindly would overlap (probability of none below `SERIAL_CHANCE`). That is
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

mod infer;
mod limit;
mod plan;
mod walk;

use std::collections::HashMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, Nanos, NodeId, Recording};

use self::infer::Inferred;
use self::plan::{Part, Slot, StepId, Times};
use self::walk::{Bound, Work};
use crate::note::Note;
use crate::schedule::concurrency_limit::{Ceiling, LimitedJobs};
use crate::schedule::critical_path::{CriticalPath, OnPath};
use crate::schedule::own_work::OwnWork;
use crate::schedule::recorded::{Schedule, Waited};
use crate::schedule::saving::{Change, Saving, ScheduleEvidence};
use crate::tree::forest::Forest;

/// Replays of the slots after the first: each takes its durations from the one before, so that slots inside slots settle.
const POOL_ROUNDS: usize = 2;

/// A saving that falls short of the time on the path by less than this part of it is limited by nothing that is worth a name.
pub(crate) const LIMITED_PART: i64 = 50;

/// The recorded schedule, ready to be replayed.
#[derive(Debug)]
pub struct Replay {
    schedule: Schedule,
    /// Whether the order of a start may be chance.
    chance: IdVec<NodeId, bool>,
    /// Where it may be: the end of a longer phase that the start surely followed.
    after_phase: FastMap<NodeId, NodeId>,
    /// Whether the node and all below it move as one piece where nothing in it is changed.
    rigid: IdVec<NodeId, bool>,
    /// Jobs that share slots.
    pools: Vec<LimitedJobs>,
    /// See [`Replay::evidence`].
    is_inferred: IdVec<NodeId, bool>,
    /// Pools by the node whose start opens them.
    pools_of: HashMap<NodeId, Vec<usize>>,
    notes: Vec<Note>,
    /// Processes and the spans that each may be inside of, where it hangs above several.
    maybe_inside: Vec<(NodeId, NodeId)>,
}

/// What a replay shows while it is under way.
enum Replayed<'a> {
    Schedule {
        bound: Bound,
        times: &'a Times,
        work: &'a IdVec<Slot, Work>,
    },
    /// With limited slots the run ends at another moment.
    SlotsMoveTheEnd,
}

impl Replay {
    /// Reads the schedule of a recording.
    pub fn new(recording: &Recording, forest: &Forest) -> Replay {
        let schedule = Schedule::new(recording, forest);
        let Inferred { chance, after_phase, ordered, pools, notes } = infer::infer(&schedule, recording, forest);
        let mut pools_of: HashMap<NodeId, Vec<usize>> = HashMap::new();
        for (i, pool) in pools.iter().enumerate() {
            pools_of.entry(pool.host).or_default().push(i);
        }
        let rigid = plan::rigid(&schedule, &pools);
        let is_inferred = infer::is_inferred(&schedule, &ordered);
        Replay { schedule, chance, after_phase, rigid, pools, is_inferred, pools_of, notes, maybe_inside: forest.maybe_inside().to_vec() }
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
        self.pools.iter().map(LimitedJobs::ceiling).collect()
    }

    /// What the replay found out about the schedule: limited slots.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Processes that may be inside of these nodes but hang elsewhere: changed with them at the upper end of the range, and left as they are at
    /// the lower one.
    fn maybe_inside(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        if self.maybe_inside.is_empty() {
            return Vec::new();
        }
        // Ends of the subtrees of these nodes and of all before them: what lies in one of them lies before the last.
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        let ends: Vec<NodeId> = sorted
            .iter()
            .scan(NodeId::RUN, |end, &node| {
                *end = self.schedule.subtree_end[node].max(*end);
                Some(*end)
            })
            .collect();
        let is_below = |node: NodeId| {
            let before = sorted.partition_point(|&changed| changed <= node);
            before.checked_sub(1).is_some_and(|last| node < ends[last])
        };
        let inside = self.maybe_inside.iter().filter(|&&(process, span)| is_below(span) && !is_below(process));
        let mut processes: Vec<NodeId> = inside.map(|&(process, _)| process).collect();
        processes.dedup();
        processes
    }

    /// The part that changes of these nodes, and of all below them, can reach, with its recorded times.
    fn part(&self, nodes: &[NodeId], only: Option<OwnWork>) -> Part {
        let maybe = if only.is_some() { Vec::new() } else { self.maybe_inside(nodes) };
        let mut part = if maybe.is_empty() { self.plan(nodes, only) } else { self.plan(&[nodes, &maybe].concat(), only) };
        part.maybe = maybe;
        let mut times = Times::zero(part.nodes.len());
        self.walk(&part, &IdVec::filled(Work::Keep, part.nodes.len()), Bound::Low, StepId::at(0), &mut times, None);
        part.recorded = times;
        part
    }

    /// How much earlier the run ends if this is done to these nodes.
    pub fn saves(&self, nodes: &[NodeId], change: Change) -> Saving {
        self.saves_in(&self.part(nodes, None), &mut Times::default(), nodes, change, &mut |_| ())
    }

    /// The three changes, in the order of [`Change`].
    pub(crate) fn saves_all(&self, nodes: &[NodeId]) -> [Saving; 3] {
        let part = self.part(nodes, None);
        // One buffer for all replays: to fetch fresh memory costs as much as to walk it.
        let mut times = Times::default();
        [Change::Zero, Change::Half, Change::OwnZero].map(|change| self.saves_in(&part, &mut times, nodes, change, &mut |_| ()))
    }

    /// Beside the savings of [`Replay::saves_all`], what limits the first of them: if these nodes and all below them took no time.
    /// `None` where they save nearly all the time that the path spends in them, where the two ends of the range have two answers, and
    /// where limited slots have a say.
    pub(crate) fn saves_all_and_limit(&self, nodes: &[NodeId], on_path: &OnPath) -> ([Saving; 3], Option<NodeId>) {
        let part = self.part(nodes, None);
        let mut times = Times::default();
        let (if_zero, limit) = self.saves_and_limit(&part, &mut times, nodes, on_path);
        let [if_half, own] = [Change::Half, Change::OwnZero].map(|change| self.saves_in(&part, &mut times, nodes, change, &mut |_| ()));
        let takes = on_path.in_subtrees(&self.schedule, nodes);
        ([if_zero, if_half, own], limit.filter(|_| if_zero.high < takes - takes / LIMITED_PART))
    }

    /// What the run saves if this work takes no time, and if it takes half; and what limits the first, as [`Replay::saves_all_and_limit`] does.
    /// `takes` is how long the path spends in it.
    pub(crate) fn saves_work(&self, work: &OwnWork, takes: Nanos, on_path: &OnPath) -> ([Saving; 2], Option<NodeId>) {
        let nodes = work.nodes();
        let part = self.part(&nodes, Some(work.clone()));
        let mut times = Times::default();
        let (if_zero, limit) = self.saves_and_limit(&part, &mut times, &nodes, on_path);
        let if_half = self.saves_in(&part, &mut times, &nodes, Change::Half, &mut |_| ());
        ([if_zero, if_half], limit.filter(|_| if_zero.high < takes - takes / LIMITED_PART))
    }

    /// What the run saves if these nodes and all below them take no time, and this work of others neither.
    pub(crate) fn saves_together(&self, nodes: &[NodeId], work: &OwnWork) -> Saving {
        if nodes.contains(&NodeId::RUN) {
            // The run's own time.
            let run = self.schedule.cover.gaps(NodeId::RUN, Nanos::ZERO, self.schedule.end[NodeId::RUN]);
            let run = run.map(|(from, to)| (NodeId::RUN, from, to));
            let nodes: Vec<NodeId> = nodes.iter().copied().filter(|&node| node != NodeId::RUN).collect();
            return self.saves_together(&nodes, &OwnWork::new(work.pieces().chain(run)));
        }
        let of_work = work.nodes();
        if of_work.is_empty() {
            return self.saves(nodes, Change::Zero);
        }
        let all = [nodes, &of_work].concat();
        let part = self.part(&all, Some(work.clone()));
        let mut new_work = self.work(&part, &of_work, Change::OwnZero);
        self.reach_below(&part, nodes, Work::Zero, &mut new_work);
        self.replayed(&part, &mut Times::default(), &all, [&new_work, &new_work], &mut |_| ())
    }

    /// What the run saves if these nodes take no time, and what limits that; `None` where the ends of the range have two answers.
    fn saves_and_limit(&self, part: &Part, times: &mut Times, nodes: &[NodeId], on_path: &OnPath) -> (Saving, Option<NodeId>) {
        let mut limits = Vec::new();
        let if_zero = self.saves_in(part, times, nodes, Change::Zero, &mut |replayed| {
            limits.push(match replayed {
                Replayed::Schedule { bound, times, work } => self.limit_in(part, bound, times, work, on_path),
                Replayed::SlotsMoveTheEnd => None,
            });
        });
        (if_zero, limits.first().copied().flatten().filter(|first| limits.iter().all(|limit| *limit == Some(*first))))
    }

    /// `look` is shown each end of the range as it is without slots, and told where those move the end.
    fn saves_in(&self, part: &Part, times: &mut Times, nodes: &[NodeId], change: Change, look: &mut dyn FnMut(Replayed<'_>)) -> Saving {
        let of_low = self.work(part, nodes, change);
        let is_wider = !part.maybe.is_empty() && change != Change::OwnZero;
        let of_high = is_wider.then(|| self.work(part, &[nodes, &part.maybe].concat(), change));
        self.replayed(part, times, nodes, [&of_low, of_high.as_ref().unwrap_or(&of_low)], look)
    }

    /// The same for changed work, at the lower end of the range and at the upper one.
    fn replayed(
        &self,
        part: &Part,
        times: &mut Times,
        nodes: &[NodeId],
        [of_low, of_high]: [&IdVec<Slot, Work>; 2],
        look: &mut dyn FnMut(Replayed<'_>),
    ) -> Saving {
        let start_of = |node: NodeId| part.step_of_event(Waited::Start(part.slot(node)));
        // Nothing changes before the first of them starts.
        let Some(from) = nodes.iter().chain(&part.maybe).map(|&n| start_of(n)).min() else { return Saving::default() };
        let pools_from = self.pools.iter().map(|p| start_of(p.host)).min().unwrap_or(from).min(from);
        let (mut earliest, mut latest) = (Nanos::MAX, Nanos::MIN);
        for bound in [Bound::Low, Bound::High] {
            let work = if bound == Bound::High { of_high } else { of_low };
            times.clone_from(&part.recorded);
            self.walk(part, work, bound, from, times, None);
            (earliest, latest) = (earliest.min(times.end[Slot::RUN]), latest.max(times.end[Slot::RUN]));
            look(Replayed::Schedule { bound, times, work });
            if !self.pools.is_empty() {
                let without_slots = times.end[Slot::RUN];
                for _ in 0..POOL_ROUNDS {
                    let duration: IdVec<Slot, Nanos> = times.end.iter().zip(times.start.iter()).map(|(end, start)| *end - *start).collect();
                    self.walk(part, work, bound, pools_from, times, Some(&duration));
                }
                (earliest, latest) = (earliest.min(times.end[Slot::RUN]), latest.max(times.end[Slot::RUN]));
                if times.end[Slot::RUN] != without_slots {
                    look(Replayed::SlotsMoveTheEnd);
                }
            }
        }
        let end = self.schedule.end[NodeId::RUN];
        Saving { low: (end - latest).or_zero(), high: (end - earliest).or_zero() }
    }

    /// Whether what this node waited for is declared: by the nearest parent above it whose children waited for each other at
    /// all. Where none did, there is nothing to infer.
    pub fn evidence(&self, node: NodeId) -> ScheduleEvidence {
        if self.is_inferred[node] { ScheduleEvidence::Inferred } else { ScheduleEvidence::Declared }
    }
}

#[cfg(test)]
mod tests;
