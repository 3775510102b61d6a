//! Limited slots: work that waited for its turn, not for anybody's result.
//!
//! A deployment engine told to do four things at once, a test runner with two workers: a job starts because *some* job
//! ended. No link says so. Taken for a dependency, such an order predicts too much or too little, because a job that got
//! faster hands its slot to whoever is next.
//!
//! ```text
//! slot 1  ├── a ──┤├──── c ────┤├─ f ─┤        at most two in flight, and every start but the first two
//! slot 2  ├─ b ─┤├─ d ─┤├─── e ───┤            follows an end at once: two slots
//! ```
//!
//! The slots can be a property of the parent (the jobs are its children) or be spans themselves (the jobs are the children
//! of workers). Fixed lanes look the same, so the slots are a second reading of the schedule beside the first: the range
//! spans both.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use longpole_model::{IdVec, Nanos, NodeId, Recording};

use crate::lists::Lists;
use crate::schedule::recorded::Schedule;
use crate::schedule::slots::{self, Slots};
use crate::tree::forest::Forest;

/// Jobs beyond the first round that a parent must have before their order says anything about slots.
const LATE_MIN: usize = 4;

/// Share of the late jobs that slots must explain.
const EXPLAINED_PERCENT: usize = 90;

/// Share of a worker's life that its jobs fill.
const WORKER_BUSY_PERCENT: i64 = 80;

/// A job that was ready this long before it started did not just start slowly: it waited for something.
const WAIT_NANOS: Nanos = Nanos(1_000_000);

/// The same, as a part of the longest wait of all: a worker may take a while to fetch its first job.
const WAIT_PART: i64 = 16;

/// Jobs that share slots.
#[derive(Debug)]
pub(crate) struct LimitedJobs {
    /// Whose start opens the pool.
    pub(crate) host: NodeId,
    /// How many run at once.
    pub(crate) slots: usize,
    /// Whether the jobs declare what else they waited for.
    declared: bool,
    jobs: Vec<Job>,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    node: NodeId,
    /// Between the moment it could start and its start.
    gap: Nanos,
    /// Own time of its host in that gap.
    own: Nanos,
    /// Whether its start follows a slot that became free; else the slots do not explain it.
    handed: bool,
}

/// The pools of a schedule. `limit` is the longest gap that is usual under a host.
pub(crate) fn find(
    recording: &Recording,
    forest: &Forest,
    s: &Schedule,
    started_under: &Lists<NodeId, NodeId>,
    limit: &IdVec<NodeId, Nanos>,
) -> Vec<LimitedJobs> {
    let mut pools = Vec::new();
    for (host, children) in started_under.iter() {
        if s.declares[host] {
            pools.extend(find_declared(s, host, children));
        } else {
            pools.extend(find_inferred(s, host, children, limit[host]));
            pools.extend(find_workers(recording, forest, s, host, children, started_under, limit));
        }
    }
    pools
}

/// Gives the jobs to this number of slots, and returns for each when its slot became free.
fn slot_free(s: &Schedule, jobs: &[NodeId], slots: usize) -> Vec<Option<Nanos>> {
    let free = slots::slot_free(slots, jobs.iter().map(|&job| (s.end[job], job)));
    free.into_iter().map(|free| free.map(|(at, _)| at)).collect()
}

fn peak(s: &Schedule, jobs: &[NodeId]) -> usize {
    slots::peak(jobs.iter().map(|&job| (s.start[job], s.end[job])))
}

/// Jobs without declared dependencies: nearly every late start follows the end that made room for it.
fn find_inferred(s: &Schedule, host: NodeId, jobs: &[NodeId], limit: Nanos) -> Option<LimitedJobs> {
    if jobs.len() < LATE_MIN + 2 {
        return None;
    }
    let slots = peak(s, jobs);
    let late = jobs.len() - slots;
    if slots < 2 || late < LATE_MIN.max(slots) {
        return None;
    }
    let free = slot_free(s, jobs, slots);
    let list: Vec<Job> = jobs
        .iter()
        .zip(&free)
        .map(|(&node, &free)| {
            let free = free.unwrap_or(s.start[host]);
            let gap = s.start[node] - free;
            Job { node, gap, own: s.own_between(s.host[node], free, s.start[node]), handed: (Nanos::ZERO..=limit).contains(&gap) }
        })
        .collect();
    let explained = list.iter().zip(&free).filter(|(job, free)| free.is_some() && job.handed).count();
    let list = list.into_iter().zip(free).map(|(job, free)| Job { handed: job.handed && free.is_some(), ..job }).collect();
    (explained * 100 >= late * EXPLAINED_PERCENT).then_some(LimitedJobs { host, slots, declared: false, jobs: list })
}

/// Workers that are spans: siblings of one name that are busy with one job after the other.
fn find_workers(
    recording: &Recording,
    forest: &Forest,
    s: &Schedule,
    host: NodeId,
    children: &[NodeId],
    started_under: &Lists<NodeId, NodeId>,
    limit: &IdVec<NodeId, Nanos>,
) -> Vec<LimitedJobs> {
    let mut by_name: HashMap<(&str, &str), Vec<NodeId>> = HashMap::new();
    for &worker in children {
        let jobs = started_under.get(worker);
        let length = s.end[worker] - s.start[worker];
        let busy = (length - s.own_total(worker)) / WORKER_BUSY_PERCENT >= length / 100;
        if busy && !jobs.is_empty() && !s.declares[worker] && jobs.iter().all(|&j| s.in_flight[j] == 0) {
            by_name.entry((forest.service(recording, worker), forest.name(recording, worker))).or_default().push(worker);
        }
    }
    let mut groups: Vec<Vec<NodeId>> = by_name.into_values().collect();
    groups.sort();
    groups
        .into_iter()
        .filter_map(|workers| {
            let mut jobs: Vec<NodeId> = workers.iter().flat_map(|&w| started_under.get(w).iter().copied()).collect();
            jobs.sort_by_key(|&j| (s.start[j], j));
            let slots = workers.len();
            if slots < 2 || jobs.len() < slots + LATE_MIN.max(slots) || peak(s, &jobs) != slots {
                return None;
            }
            let limit = workers.iter().map(|&w| limit[w]).max()?;
            find_inferred(s, host, &jobs, limit)
        })
        .collect()
}

/// Nodes whose ends a declared node waited for: those of its links, or the last of the phase before.
fn waits_for(s: &Schedule, node: NodeId) -> impl Iterator<Item = NodeId> {
    let phase = if s.links(node).is_empty() { s.phase_before(node) } else { None };
    s.links(node).iter().copied().chain(phase)
}

/// Jobs that declare what they depend on, where some were ready long before they started: those follow an end that
/// made room.
fn find_declared(s: &Schedule, host: NodeId, jobs: &[NodeId]) -> Option<LimitedJobs> {
    let slots = peak(s, jobs);
    if slots < 2 || jobs.len() < slots + LATE_MIN {
        return None;
    }
    let ready = |node: NodeId| waits_for(s, node).map(|x| s.end[x]).fold(s.start[s.anchor[node]], Nanos::max);
    // First come, first served: slots are taken in order of being ready.
    let mut order: Vec<NodeId> = jobs.to_vec();
    order.sort_by_key(|&j| (ready(j), s.start[j], j));
    let free = slot_free(s, &order, slots);
    let longest = order.iter().map(|&node| s.start[node] - ready(node)).max().unwrap_or(Nanos::ZERO);
    let slow_start = WAIT_NANOS.max(longest / WAIT_PART);
    let (mut waiting, mut explained) = (0, 0);
    let list: Vec<Job> = order
        .iter()
        .zip(free)
        .map(|(&node, free)| {
            let since = free.map_or(ready(node), |free| free.max(ready(node)));
            let (waited, gap) = (s.start[node] - ready(node), s.start[node] - since);
            let handed = gap >= Nanos::ZERO;
            if waited > slow_start {
                waiting += 1;
                explained += usize::from(handed && gap <= waited / 4);
            }
            let (gap, since) = if handed { (gap, since) } else { (waited, ready(node)) };
            Job { node, gap, own: s.own_between(s.host[node], since, s.start[node]), handed }
        })
        .collect();
    (waiting >= LATE_MIN && explained * 100 >= waiting * EXPLAINED_PERCENT).then_some(LimitedJobs {
        host,
        slots,
        declared: true,
        jobs: list,
    })
}

/// What a replay knows when a pool opens, of jobs, of those that they waited for, and of the nodes above them.
pub(crate) struct Opening<'a> {
    /// New start of a node that has started, and of all others as of the replay before.
    pub(crate) start: &'a dyn Fn(NodeId) -> Nanos,
    /// New end, as of the replay before.
    pub(crate) end: &'a dyn Fn(NodeId) -> Nanos,
    /// New duration, as of the replay before.
    pub(crate) duration: &'a dyn Fn(NodeId) -> Nanos,
    /// How long a stretch of a node's own work takes now: node, nanoseconds, how many of them are its own time.
    pub(crate) work: &'a dyn Fn(NodeId, Nanos, Nanos) -> Nanos,
}

/// A ceiling of work in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// Under whom.
    pub node: NodeId,
    /// How many run at once.
    pub slots: usize,
    /// How many jobs share them.
    pub jobs: usize,
    /// How many of those seem to have started because a slot became free.
    pub waited: usize,
}

impl LimitedJobs {
    /// Nodes that share the slots.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = NodeId> {
        self.jobs.iter().map(|job| job.node)
    }

    /// The ceiling as it is reported.
    pub(crate) fn ceiling(&self) -> Ceiling {
        let waited = self.jobs.iter().filter(|j| j.handed).count().saturating_sub(if self.declared { self.slots } else { 0 });
        Ceiling { node: self.host, slots: self.slots, jobs: self.jobs.len(), waited }
    }

    /// New starts of the jobs that slots explain, given their new durations.
    pub(crate) fn schedule(&self, s: &Schedule, now: &Opening<'_>, starts: &mut dyn FnMut(NodeId, Nanos)) {
        if self.declared { self.schedule_declared(s, now, starts) } else { self.schedule_in_order(s, now, starts) }
    }

    /// Nothing is known of the jobs but their order: the next one takes the next free slot.
    fn schedule_in_order(&self, s: &Schedule, now: &Opening<'_>, starts: &mut dyn FnMut(NodeId, Nanos)) {
        let mut slots = Slots::new(self.slots);
        for job in &self.jobs {
            let start = match slots.take() {
                Some((at, _)) if job.handed => {
                    let start = at + (now.work)(s.host[job.node], job.gap, job.own);
                    starts(job.node, start);
                    start
                }
                _ => (now.start)(job.node),
            };
            slots.give_back(start + (now.duration)(job.node), job.node);
        }
    }

    /// The job that is ready first takes the slot that is free first.
    fn schedule_declared(&self, s: &Schedule, now: &Opening<'_>, starts: &mut dyn FnMut(NodeId, Nanos)) {
        let index: HashMap<NodeId, usize> = self.jobs.iter().enumerate().map(|(i, job)| (job.node, i)).collect();
        let mut followers: Vec<Vec<usize>> = vec![Vec::new(); self.jobs.len()];
        let mut missing = vec![0usize; self.jobs.len()];
        let mut ready_at = vec![Nanos::ZERO; self.jobs.len()];
        for (i, job) in self.jobs.iter().enumerate() {
            ready_at[i] = (now.start)(s.anchor[job.node]);
            for x in waits_for(s, job.node) {
                match index.get(&x) {
                    Some(&before) => {
                        followers[before].push(i);
                        missing[i] += 1;
                    }
                    None => ready_at[i] = ready_at[i].max((now.end)(x)),
                }
            }
        }
        // Jobs stand in the order in which they were ready in the recording; it decides between equals.
        let mut ready: BinaryHeap<Reverse<(Nanos, usize)>> =
            (0..self.jobs.len()).filter(|&i| missing[i] == 0).map(|i| Reverse((ready_at[i], i))).collect();
        let mut slots = Slots::new(self.slots);
        while let Some(Reverse((at, i))) = ready.pop() {
            let job = &self.jobs[i];
            let slot = slots.take().map_or(at, |(free, _)| free);
            let since = if job.handed { at.max(slot) } else { at };
            let start = since + (now.work)(s.anchor[job.node], job.gap, job.own);
            starts(job.node, start);
            let end = start + (now.duration)(job.node);
            slots.give_back(end, i);
            for &f in &followers[i] {
                ready_at[f] = ready_at[f].max(end);
                missing[f] -= 1;
                if missing[f] == 0 {
                    ready.push(Reverse((ready_at[f], f)));
                }
            }
        }
    }
}
