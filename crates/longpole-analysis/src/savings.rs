//! savings (first version, docs follow)

use std::collections::HashMap;

use longpole_model::Recording;

use crate::schedule::{NONE, Schedule};
use crate::slots::{self, Opening, Pool};
use crate::trace_tree::{Forest, Note};

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
    /// Span links, or there was nothing it could have waited for but its parent.
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
pub const CHANCE_GAP_FACTOR: i64 = 8;

/// Siblings that are looked at one by one as what a start may have waited for.
const WINDOW_MAX: usize = 8;

/// Children that follow each other without overlap by chance with less than this probability were ordered.
const SERIAL_CHANCE: f64 = 0.05;

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
    /// First entry of `ended` that a start may have waited for as its last, per node.
    window: Vec<u32>,
    /// Whether what ended before this node's start may have done so by chance.
    chance: Vec<bool>,
    /// Jobs that share slots.
    pools: Vec<Pool>,
    /// Pools by the node whose start opens them.
    pools_of: HashMap<usize, Vec<usize>>,
    notes: Vec<Note>,
}

/// New times of all nodes.
struct Times {
    start: Vec<i64>,
    end: Vec<i64>,
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

impl Replay {
    /// Reads the schedule of a recording.
    pub fn new(recording: &Recording, forest: &Forest) -> Replay {
        let schedule = Schedule::new(recording, forest);
        let count = schedule.len();
        let mut replay = Replay {
            schedule,
            window: vec![0; count],
            chance: vec![false; count],
            pools: Vec::new(),
            pools_of: HashMap::new(),
            notes: Vec::new(),
        };
        replay.infer(recording, forest);
        replay
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What the replay found out about the schedule: limited slots.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn infer(&mut self, recording: &Recording, forest: &Forest) {
        let s = &self.schedule;
        let count = s.len();
        let mut by_host: Vec<Vec<u32>> = vec![Vec::new(); count];
        for &event in s.order.iter().filter(|e| **e % 2 == 0 && **e != 0) {
            by_host[s.host[event as usize / 2] as usize].push(event / 2);
        }
        let mut gaps: Vec<i64> = Vec::new();
        let mut limits = vec![CHANCE_GAP_NANOS; count];
        for (host, children) in by_host.iter().enumerate() {
            if children.is_empty() {
                continue;
            }
            gaps.clear();
            let gap = |c: usize| {
                let before = s.ended_before(c);
                match before.clone().next_back() {
                    Some(last) => s.start[c] - s.end[s.ended[last] as usize],
                    None => s.start[c] - s.start[host],
                }
            };
            gaps.extend(children.iter().map(|&c| gap(c as usize)));
            let middle = gaps.len() / 2;
            let usual = *gaps.select_nth_unstable(middle).1;
            let limit = CHANCE_GAP_NANOS.max(usual.saturating_mul(CHANCE_GAP_FACTOR));
            limits[host] = limit;
            let length = (s.end[host] - s.start[host]).max(1);
            let busy = 1.0 - s.own_total[host] as f64 / length as f64;
            let serial = children.iter().all(|&c| s.in_flight[c as usize] == 0) && (1.0 - busy).powi(children.len() as i32) < SERIAL_CHANCE;
            for &c in children {
                let c = c as usize;
                let before = s.ended_before(c);
                let Some(last) = before.clone().next_back() else { continue };
                let near = |i: usize| s.start[c] - s.end[s.ended[i] as usize] <= limit;
                self.chance[c] = !near(last) && !serial;
                let mut first = last;
                if !serial {
                    while first > before.start && last - first + 1 < WINDOW_MAX && near(first - 1) {
                        first -= 1;
                    }
                }
                self.window[c] = first as u32;
            }
        }
        let pools = slots::find(recording, forest, s, &by_host, &limits);
        if !pools.is_empty() {
            self.notes.push(Note { code: "limited_slots", count: pools.len() as u64, detail: String::new() });
        }
        for (i, pool) in pools.iter().enumerate() {
            self.pools_of.entry(pool.host).or_default().push(i);
        }
        self.pools = pools;
    }

    fn work(&self, nodes: &[usize], change: Change) -> Vec<Work> {
        let count = self.schedule.len();
        let mut work = vec![Work::Keep; count];
        if change == Change::OwnZero {
            for &n in nodes {
                work[n] = Work::OwnZero;
            }
            return work;
        }
        let to = if change == Change::Zero { Work::Zero } else { Work::Half };
        let mut delta = vec![0i32; count + 1];
        for &n in nodes {
            delta[n] += 1;
            delta[self.schedule.subtree_end[n] as usize] -= 1;
        }
        let mut inside = 0;
        for (w, d) in work.iter_mut().zip(&delta) {
            inside += d;
            if inside > 0 {
                *w = to;
            }
        }
        work
    }

    /// How much earlier the run ends if this is done to these nodes.
    pub fn saves(&self, nodes: &[usize], change: Change) -> Saving {
        let work = self.work(nodes, change);
        let (mut earliest, mut latest) = (i64::MAX, i64::MIN);
        for bound in [Bound::Low, Bound::High] {
            let mut times = self.run(&work, bound, None);
            let mut see = |end: i64| {
                earliest = earliest.min(end);
                latest = latest.max(end);
            };
            see(times.end[0]);
            if !self.pools.is_empty() {
                for _ in 0..POOL_ROUNDS {
                    times = self.run(&work, bound, Some(times));
                }
                see(times.end[0]);
            }
        }
        let end = self.schedule.end[0];
        Saving { low_nanos: (end - latest).max(0), high_nanos: (end - earliest).max(0) }
    }

    /// New times of everything. With the times of a replay before, jobs that share slots are scheduled anew with the
    /// durations they had there.
    fn run(&self, work: &[Work], bound: Bound, before: Option<Times>) -> Times {
        let s = &self.schedule;
        let count = s.len();
        let (mut start, mut end) = match &before {
            Some(times) => (times.start.clone(), times.end.clone()),
            None => (vec![0i64; count], vec![0i64; count]),
        };
        let duration: Vec<i64> = before.iter().flat_map(|t| t.end.iter().zip(&t.start).map(|(end, start)| end - start)).collect();
        let mut forced = vec![i64::MIN; if before.is_some() { count } else { 0 }];
        // Latest new end among the first entries of each host's part of `ended`.
        let mut latest = vec![i64::MIN; s.ended.len()];
        for &event in &s.order {
            let node = event as usize / 2;
            if event % 2 == 1 {
                let last = s.ended_under(node).len().checked_sub(1).map(|i| s.ended_base(node) + i);
                let (mut at, mut was, mut own) = (start[node], s.start[node], 0);
                if let Some(last) = last {
                    at = at.max(latest[last]);
                    let x = s.ended[last] as usize;
                    if s.end[x] > was {
                        was = s.end[x];
                        own = s.own_at_end[x];
                    }
                }
                end[node] = at + work[node].apply(s.end[node] - was, s.own_total[node] - own);
                if s.position[node] != NONE {
                    let p = s.position[node] as usize;
                    let base = s.ended_base(s.end_host[node] as usize);
                    latest[p] = if p > base { latest[p - 1].max(end[node]) } else { end[node] };
                }
                continue;
            }
            if node != 0 {
                start[node] = match forced.get(node) {
                    Some(&at) if at != i64::MIN => at.max(start[s.anchor[node] as usize]),
                    _ => self.new_start(node, work, bound, &start, &end, &latest),
                };
            }
            if before.is_some() {
                for &pool in self.pools_of.get(&node).map_or(&[] as &[usize], |p| p) {
                    let opening =
                        Opening { start: &start, end: &end, duration: &duration, work: &|node, gap, own| work[node].apply(gap, own) };
                    self.pools[pool].schedule(s, &opening, &mut |job, at| forced[job] = at);
                }
            }
        }
        Times { start, end }
    }

    fn new_start(&self, c: usize, work: &[Work], bound: Bound, start: &[i64], end: &[i64], latest: &[i64]) -> i64 {
        let s = &self.schedule;
        if s.is_declared(c) {
            let anchor = s.anchor[c] as usize;
            let (mut at, mut was) = (start[anchor], s.start[anchor]);
            for &x in s.links(c) {
                at = at.max(end[x as usize]);
                was = was.max(s.end[x as usize]);
            }
            let own = if s.host[c] as usize == anchor {
                let until = was.clamp(s.start[anchor], s.end[anchor]);
                s.own_at_start[c] - (until - s.start[anchor] - s.cover.covered_before(anchor, until))
            } else {
                0
            };
            return at + work[anchor].apply(s.start[c] - was, own);
        }
        let host = s.host[c] as usize;
        let w = work[host];
        let before = s.ended_before(c);
        let alone = start[host] + w.apply(s.start[c] - s.start[host], s.own_at_start[c]);
        if before.is_empty() {
            return alone;
        }
        let after = |i: usize| {
            let x = s.ended[i] as usize;
            w.apply(s.start[c] - s.end[x], s.own_at_start[c] - s.own_at_end[x])
        };
        let first = self.window[c] as usize;
        match bound {
            Bound::Low if self.chance[c] => alone,
            Bound::Low => {
                let mut at = start[host];
                for i in first..before.end {
                    at = at.max(end[s.ended[i] as usize] + after(i));
                }
                if first > before.start {
                    at = at.max(latest[first - 1] + after(first));
                }
                at
            }
            Bound::High => (first..before.end).map(|i| end[s.ended[i] as usize] + after(i)).min().unwrap_or(alone).max(start[host]),
        }
    }

    /// Whether what this node waited for is declared.
    pub fn evidence(&self, node: usize) -> Evidence {
        let s = &self.schedule;
        let mut at = node;
        while s.parent[at] != NONE {
            let parent = s.parent[at] as usize;
            if s.declares[parent] {
                return Evidence::Declared;
            }
            if s.subtree_end[at] != s.subtree_end[parent] || at != parent + 1 {
                return Evidence::Inferred;
            }
            at = parent;
        }
        Evidence::Declared
    }
}
