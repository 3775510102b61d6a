//! The recorded schedule as plain arrays: who could have waited for whom. Shared by the critical path and the replay.
//!
//! Every node has two events, its start and its end. `order` lists all events so that whatever an event can have waited
//! for stands before it:
//!
//! ```text
//! start of the parent ─► start of the child ─► end of the child ─► end of the parent
//!                                └─ link:  end of the other ─► start of the child
//! ```
//!
//! Children may stick out of their parent (asynchronous work, clock skew). Then not the parent is their *host* but the
//! lowest ancestor that was there: a child that ends after its parent delays the first ancestor that lasts longer, and a
//! child that starts before its parent is anchored at the first ancestor that had started.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use longpole_model::{Nanos, Recording, Timestamp};

use crate::intervals;
use crate::pulumi::call::is_measurement;
use crate::pulumi::engine;
use crate::pulumi::resources::Resources;
use crate::schedule::background::background;
use crate::schedule::pipeline::Pipelines;
use crate::tree::forest::Forest;

/// "No node".
pub(crate) const NONE: u32 = u32::MAX;

/// Ancestors visited to find a host; past that the run is the host. Only skewed clocks and asynchronous children walk at
/// all, and a forest built to hurt must not make the walk quadratic.
const WALK_MAX: usize = 64;

/// Offsets are kept inside ±73 years, so that sums of three cannot overflow.
const OFFSET_MAX: i64 = i64::MAX / 4;

/// Where a moment lies from the start of the run.
pub(crate) fn offset(at: Timestamp, origin: Timestamp) -> Nanos {
    Nanos(at.nanos_since(origin).clamp(-OFFSET_MAX, OFFSET_MAX))
}

/// A stretch of a node that its children cover.
#[derive(Debug, Clone, Copy)]
struct Covered {
    start: Nanos,
    end: Nanos,
    /// Covered nanoseconds of the node before `start`.
    before: Nanos,
}

/// For each node, where its children are.
#[derive(Debug)]
pub(crate) struct Cover {
    base: Vec<u32>,
    stretches: Vec<Covered>,
}

impl Cover {
    fn of(&self, node: usize) -> &[Covered] {
        &self.stretches[self.base[node] as usize..self.base[node + 1] as usize]
    }

    /// Nanoseconds of the node, from its start to `at`, in which one of its children was there.
    pub(crate) fn covered_before(&self, node: usize, at: Nanos) -> Nanos {
        let stretches = self.of(node);
        let next = stretches.partition_point(|c| c.start < at);
        match next.checked_sub(1).map(|i| stretches[i]) {
            Some(c) => c.before + (at.min(c.end) - c.start),
            None => Nanos::ZERO,
        }
    }

    /// The parts of a time of the node in which none of its children was there.
    pub(crate) fn gaps(&self, node: usize, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
        let stretches = self.of(node);
        let mut covered = stretches[stretches.partition_point(|c| c.end <= from)..].iter();
        let mut at = from;
        std::iter::from_fn(move || {
            while at < to {
                let (start, end) = covered.next().map_or((to, to), |c| (c.start.min(to), c.end));
                let gap = (at, start);
                at = at.max(end);
                if gap.0 < gap.1 {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Whether a child of the node was there at that moment.
    pub(crate) fn contains(&self, node: usize, at: Nanos) -> bool {
        let stretches = self.of(node);
        let next = stretches.partition_point(|c| c.start <= at);
        next.checked_sub(1).is_some_and(|i| at < stretches[i].end)
    }
}

/// What an event waited for last; a node, by its place in the schedule or in a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited<Node = usize> {
    /// The start of a node.
    Start(Node),
    /// The end of a node.
    End(Node),
}

/// The schedule. Times are nanoseconds from the start of the run; indices are nodes of the forest.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) start: Vec<Nanos>,
    pub(crate) end: Vec<Nanos>,
    pub(crate) parent: Vec<u32>,
    pub(crate) subtree_end: Vec<u32>,
    /// Lowest ancestor that had started when the node started.
    pub(crate) anchor: Vec<u32>,
    /// Lowest ancestor that was there when the node started.
    pub(crate) host: Vec<u32>,
    /// Lowest ancestor that still was there when the node ended; `NONE` where even the run was over.
    pub(crate) end_host: Vec<u32>,
    /// Events in an order in which each stands after all it can have waited for: `2 * node`, its end `+ 1`.
    pub(crate) order: Vec<u32>,
    /// Whether the children of the node declare what they waited for: by links, as resources that depend on each other, or as
    /// steps of Pulumi's engine.
    pub(crate) declares: Vec<bool>,
    /// Whether the end of the node is only guessed to have waited for another one's, see `pipeline`.
    pub(crate) end_by_chance: Vec<bool>,
    /// For nodes that were blocked on a pipe: time that is shorter if the work of another node is, see `pipeline`.
    pub(crate) stalls: BTreeMap<usize, Vec<(usize, Nanos)>>,
    link_base: Vec<u32>,
    links: Vec<u32>,
    ended_base: Vec<u32>,
    /// Nodes by the host of their end, and there in order of their end.
    pub(crate) ended: Vec<u32>,
    /// Where in `ended` a node stands; `NONE` without a host.
    pub(crate) position: Vec<u32>,
    /// One past the last entry of `ended`, among those of the node's host, that stands before the node's start.
    pub(crate) ended_before: Vec<u32>,
    /// How many others that started under the same host had not ended when the node started.
    pub(crate) in_flight: Vec<u32>,
    /// As `ended_before`, at the last moment at which nothing was in flight under the host. Empty if no span declares dependencies.
    quiet_before: Vec<u32>,
    pub(crate) cover: Cover,
}

impl Schedule {
    pub(crate) fn new(recording: &Recording, forest: &Forest) -> Schedule {
        let count = forest.len();
        let origin = forest.run_range().start;
        let offset = |at| offset(at, origin);
        let start: Vec<Nanos> = forest.nodes.iter().map(|n| offset(n.range.start)).collect();
        let end: Vec<Nanos> = forest.nodes.iter().map(|n| offset(n.range.end)).collect();
        let parent: Vec<u32> = forest.nodes.iter().map(|n| n.parent().map_or(NONE, |p| p as u32)).collect();
        let subtree_end = forest.nodes.iter().map(|n| n.subtree_end() as u32).collect();

        let climb = |node: usize, fits: &dyn Fn(usize) -> bool| {
            let mut at = parent[node];
            for _ in 0..WALK_MAX {
                if at == NONE || fits(at as usize) {
                    return at;
                }
                at = parent[at as usize];
            }
            0
        };
        let mut anchor = vec![NONE; count];
        let mut host = vec![NONE; count];
        let mut end_host = vec![NONE; count];
        for i in 1..count {
            let found = |at: u32| if at == NONE { 0 } else { at };
            anchor[i] = found(climb(i, &|p| start[p] <= start[i]));
            host[i] = found(climb(i, &|p| start[p] <= start[i] && start[i] <= end[p]));
            let until = found(climb(i, &|p| end[i] <= end[p]));
            let waits_for_it = end[i] <= end[until as usize] && !forest.span(recording, i).is_some_and(is_measurement);
            end_host[i] = if waits_for_it { until } else { NONE };
        }

        let mut background = background(recording, forest);
        background.retain(|&node| end_host[node] == parent[node]);
        background.iter().for_each(|&node| end_host[node] = NONE);

        let mut end_by_chance = vec![false; count];
        let Pipelines { ends, stalls } = Pipelines::new(recording, forest, &start, &end);
        for wait in ends {
            end_host[wait.busy] = wait.waiting as u32;
            end_by_chance[wait.waiting] = wait.by_chance;
        }

        let waited_for = declared(recording, forest, &start, &end);
        // Most recordings have none.
        let mut link_base = vec![0u32; if waited_for.is_empty() { 0 } else { count + 1 }];
        let mut declares = vec![false; count];
        for &(i, _) in &waited_for {
            link_base[i as usize + 1] += 1;
            declares[parent[i as usize] as usize] = true;
        }
        for i in 1..link_base.len() {
            link_base[i] += link_base[i - 1];
        }
        let links = waited_for.into_iter().map(|(_, other)| other).collect();

        let cover = cover(forest, &start, &end, (&end_host, &background));
        let mut schedule = Schedule {
            start,
            end,
            parent,
            subtree_end,
            anchor,
            host,
            end_host,
            order: Vec::new(),
            declares,
            end_by_chance,
            stalls,
            link_base,
            links,
            ended_base: Vec::new(),
            ended: Vec::new(),
            position: Vec::new(),
            ended_before: Vec::new(),
            in_flight: Vec::new(),
            quiet_before: Vec::new(),
            cover,
        };
        schedule.order_events();
        schedule.list_ended();
        schedule
    }

    pub(crate) fn len(&self) -> usize {
        self.start.len()
    }

    /// Own time of a node before a moment.
    fn own_before(&self, node: usize, at: Nanos) -> Nanos {
        let at = at.min(self.end[node]).max(self.start[node]);
        (at - self.start[node]) - self.cover.covered_before(node, at)
    }

    /// Own time of a node between two moments.
    pub(crate) fn own_between(&self, node: usize, from: Nanos, to: Nanos) -> Nanos {
        self.own_before(node, to) - self.own_before(node, from)
    }

    /// Own time of a node.
    pub(crate) fn own_total(&self, node: usize) -> Nanos {
        self.own_before(node, self.end[node])
    }

    /// Own time of the node's host before its start.
    pub(crate) fn own_at_start(&self, node: usize) -> Nanos {
        self.own_before(self.host[node] as usize, self.start[node])
    }

    /// Own time of the host of the node's end before that; of a node whose end has one.
    pub(crate) fn own_at_end(&self, node: usize) -> Nanos {
        self.own_before(self.end_host[node] as usize, self.end[node])
    }

    /// What this one is declared to have waited for: spans that its links name and that ended before it started, and the work on
    /// resources that it depends on.
    pub(crate) fn links(&self, node: usize) -> &[u32] {
        if self.links.is_empty() {
            return &[];
        }
        &self.links[self.link_base[node] as usize..self.link_base[node + 1] as usize]
    }

    /// First entry of `ended` that belongs to this host.
    pub(crate) fn ended_base(&self, host: usize) -> usize {
        self.ended_base[host] as usize
    }

    /// Nodes whose end this host waited for, in order of their end.
    pub(crate) fn ended_under(&self, host: usize) -> &[u32] {
        &self.ended[self.ended_base[host] as usize..self.ended_base[host + 1] as usize]
    }

    /// Whether links declare what this node waited for.
    pub(crate) fn is_declared(&self, node: usize) -> bool {
        self.parent[node] != NONE && self.declares[self.parent[node] as usize]
    }

    /// Siblings that ended before this node started, in order of their end: entries of `ended`.
    pub(crate) fn ended_before(&self, node: usize) -> std::ops::Range<usize> {
        self.ended_base(self.host[node] as usize)..self.ended_before[node] as usize
    }

    /// What a child without links waited for under a parent whose children declare: usually nothing but the parent. But if
    /// everything that ran before had ended when the node, or the first of those it runs beside, started, then there was a
    /// phase before this one: the last entry of `ended` of that phase.
    ///
    /// ```text
    /// parent  ├───────────────────────────────────────────────────────┤
    ///   plan    ├──────┤
    ///   a                ├────────┤              no links: after plan
    ///   b                 ├──┤                   no links: it runs beside a, so after plan too
    ///   c                       ├──────────┤     linked to b
    ///   stop                                  ├──┤   no links: after all of them
    /// ```
    pub(crate) fn phase_before(&self, node: usize) -> Option<usize> {
        let host = self.host[node] as usize;
        let last = (self.quiet_before[node] as usize).checked_sub(1).filter(|&last| last >= self.ended_base(host))?;
        (self.end[self.ended[last] as usize] >= self.start[host]).then_some(last)
    }

    /// The last thing the start of a node waited for: by its links where its parent declares, else by order.
    pub(crate) fn start_waited_for(&self, node: usize) -> Waited {
        if self.is_declared(node) && !self.links(node).is_empty() {
            let anchor = self.anchor[node] as usize;
            let last = self.links(node).iter().map(|&x| x as usize).max_by_key(|&x| (self.end[x], Reverse(x)));
            return match last.filter(|&x| self.end[x] >= self.start[anchor]) {
                Some(x) => Waited::End(x),
                None => Waited::Start(anchor),
            };
        }
        let host = self.host[node] as usize;
        let last = if self.is_declared(node) {
            self.phase_before(node)
        } else {
            self.ended_before(node).next_back().filter(|&i| self.end[self.ended[i] as usize] >= self.start[host])
        };
        last.map_or(Waited::Start(host), |i| Waited::End(self.ended[i] as usize))
    }

    /// The last thing the end of a node waited for: its last child, or its own start.
    pub(crate) fn end_waited_for(&self, node: usize) -> Waited {
        match self.ended_under(node).last().map(|&x| x as usize).filter(|&x| self.end[x] >= self.start[node]) {
            Some(x) => Waited::End(x),
            None => Waited::Start(node),
        }
    }

    /// Orders the events: by time, and at one moment so that what ends makes room for what starts.
    fn order_events(&mut self) {
        let count = self.len();
        let mut waits = vec![0u32; 2 * count];
        // Most recordings have no links.
        let linked = if self.links.is_empty() { 0 } else { count };
        let mut link_waits = vec![0u32; linked];
        // Successors by links, as a list per node whose end is waited for; those of the tree follow from the arrays.
        let mut follower_base = vec![0u32; linked + 1];
        for &x in &self.links {
            follower_base[x as usize + 1] += 1;
        }
        for i in 0..linked {
            follower_base[i + 1] += follower_base[i];
        }
        let mut fill = follower_base.clone();
        let mut followers = vec![0u32; self.links.len()];
        // A start comes after those of its anchor and of its host; with skewed clocks one does not imply the other.
        let before_start = |i: usize| {
            let (anchor, host) = (self.anchor[i], self.host[i]);
            [Some(anchor), Some(host).filter(|h| *h != anchor)].into_iter().flatten()
        };
        let mut anchored_base = vec![0u32; count + 1];
        for i in 1..count {
            for above in before_start(i) {
                waits[2 * i] += 1;
                anchored_base[above as usize + 1] += 1;
            }
            for &x in self.links(i) {
                followers[fill[x as usize] as usize] = i as u32;
                fill[x as usize] += 1;
                link_waits[i] += 1;
            }
        }
        for i in 0..count {
            waits[2 * i + 1] += 1;
            if self.end_host[i] != NONE {
                waits[2 * self.end_host[i] as usize + 1] += 1;
            }
            anchored_base[i + 1] += anchored_base[i];
        }
        let mut fill = anchored_base.clone();
        let mut anchored = vec![0u32; anchored_base[count] as usize];
        for i in 1..count {
            for above in before_start(i) {
                let at = &mut fill[above as usize];
                anchored[*at as usize] = i as u32;
                *at += 1;
            }
        }
        drop(fill);
        let links_waited = |link_waits: &[u32], i: usize| link_waits.get(i).copied().unwrap_or_default();

        // Ends of what took time come first, inner ones before outer ones; then starts in pre-order.
        let key = |event: u32| {
            let (node, is_end) = (event as usize / 2, event % 2 == 1);
            let time = if is_end { self.end[node] } else { self.start[node] };
            if is_end && self.end[node] > self.start[node] {
                (time, 0u8, (count - node) as u32, event)
            } else {
                (time, 1u8, node as u32, event)
            }
        };
        let mut ready = BinaryHeap::new();
        let mut order = Vec::with_capacity(2 * count);
        let mut dropped: Vec<bool> = Vec::new();
        ready.push(Reverse(key(0)));
        loop {
            while let Some(Reverse((.., event))) = ready.pop() {
                order.push(event);
                let node = event as usize / 2;
                let mut release = |event: usize, waits: &mut [u32], link_waits: &[u32]| {
                    waits[event] -= 1;
                    if waits[event] == 0 && (event % 2 == 1 || links_waited(link_waits, event / 2) == 0) {
                        ready.push(Reverse(key(event as u32)));
                    }
                };
                if event % 2 == 0 {
                    release(2 * node + 1, &mut waits, &link_waits);
                    for &child in &anchored[anchored_base[node] as usize..anchored_base[node + 1] as usize] {
                        release(2 * child as usize, &mut waits, &link_waits);
                    }
                } else {
                    if self.end_host[node] != NONE {
                        release(2 * self.end_host[node] as usize + 1, &mut waits, &link_waits);
                    }
                    let following = if linked == 0 { 0..0 } else { follower_base[node] as usize..follower_base[node + 1] as usize };
                    for &f in &followers[following] {
                        let f = f as usize;
                        if dropped.is_empty() || !(dropped[f] && self.end[node] == self.start[f]) {
                            link_waits[f] -= 1;
                            if link_waits[f] == 0 && waits[2 * f] == 0 {
                                ready.push(Reverse(key(2 * f as u32)));
                            }
                        }
                    }
                }
            }
            if order.len() == 2 * count {
                break;
            }
            // Links among spans of no length at one moment can wait for each other in a circle. Those links say nothing
            // about time, so all that are still waited for at their own moment are dropped, once; what is left runs
            // forward in time.
            let mut done = vec![false; count];
            for &event in order.iter().filter(|e| **e % 2 == 1) {
                done[event as usize / 2] = true;
            }
            dropped = vec![false; count];
            let mut kept = Vec::with_capacity(self.links.len());
            let mut base = vec![0u32; count + 1];
            for i in 0..count {
                for &x in self.links(i) {
                    if self.end[x as usize] == self.start[i] && !done[x as usize] {
                        dropped[i] = true;
                        link_waits[i] -= 1;
                    } else {
                        kept.push(x);
                    }
                }
                base[i + 1] = kept.len() as u32;
                if dropped[i] && link_waits[i] == 0 && waits[2 * i] == 0 {
                    ready.push(Reverse(key(2 * i as u32)));
                }
            }
            self.links = kept;
            self.link_base = base;
            if ready.is_empty() {
                debug_assert!(false, "events that wait for each other without a link");
                break;
            }
        }
        self.order = order;
    }

    fn list_ended(&mut self) {
        let count = self.len();
        let mut base = vec![0u32; count + 1];
        for &host in self.end_host.iter().filter(|h| **h != NONE) {
            base[host as usize + 1] += 1;
        }
        for i in 0..count {
            base[i + 1] += base[i];
        }
        (self.position, self.ended_before, self.in_flight) = (vec![NONE; count], vec![0; count], vec![0; count]);
        let declared = self.declares.contains(&true);
        self.quiet_before = vec![0; if declared { count } else { 0 }];
        let mut fill = base.clone();
        let mut ended = vec![0u32; base[count] as usize];
        // How many started under a host, and how many of those ended anywhere.
        let mut open = vec![0u32; count];
        let mut quiet = if declared { base.clone() } else { Vec::new() };
        for &event in &self.order {
            let node = event as usize / 2;
            if event % 2 == 1 {
                if self.end_host[node] != NONE {
                    open[self.host[node] as usize] -= 1;
                    let at = &mut fill[self.end_host[node] as usize];
                    ended[*at as usize] = node as u32;
                    self.position[node] = *at;
                    *at += 1;
                }
            } else if node != 0 {
                let host = self.host[node] as usize;
                self.ended_before[node] = fill[host];
                self.in_flight[node] = open[host];
                if declared {
                    if open[host] == 0 {
                        quiet[host] = fill[host];
                    }
                    self.quiet_before[node] = quiet[host];
                }
                // What nobody waits for holds no phase open.
                open[host] += u32::from(self.end_host[node] != NONE);
            }
        }
        self.ended = ended;
        self.ended_base = base;
    }
}

/// Declared waits: the node that waited, and the one it waited for.
fn declared(recording: &Recording, forest: &Forest, start: &[Nanos], end: &[Nanos]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    let mut add = |i: usize, other: usize| {
        if other != i && other != 0 && end[other] <= start[i] {
            out.push((i as u32, other as u32));
        }
    };
    // In the order of the spans, for they lie in memory so.
    for (s, span) in recording.spans.iter().enumerate().filter(|(_, span)| !span.links.is_empty()) {
        if let Some(i) = forest.node_of_span(s) {
            span.links.iter().filter_map(|l| forest.node_of_id(recording, l.trace_id, l.span_id)).for_each(|other| add(i, other));
        }
    }
    let resources = Resources::of(recording, forest, end);
    for i in resources.nodes() {
        resources.waited_for(i, start[i]).into_iter().for_each(|other| add(i, other));
    }
    engine::waits(recording, forest, start, end).into_iter().for_each(|(i, other)| add(i, other));
    out.sort_unstable();
    out.dedup();
    out
}

/// Nodes by the host of their start, and there in order of their start.
pub(crate) struct StartedUnder {
    base: Vec<u32>,
    list: Vec<u32>,
}

impl StartedUnder {
    pub(crate) fn of(s: &Schedule) -> StartedUnder {
        let mut base = vec![0u32; s.len() + 1];
        for &host in &s.host[1..] {
            base[host as usize + 1] += 1;
        }
        for i in 0..s.len() {
            base[i + 1] += base[i];
        }
        let mut fill = base.clone();
        let mut list = vec![0u32; s.len() - 1];
        for &event in s.order.iter().filter(|e| **e % 2 == 0 && **e != 0) {
            let at = &mut fill[s.host[event as usize / 2] as usize];
            list[*at as usize] = event / 2;
            *at += 1;
        }
        StartedUnder { base, list }
    }

    pub(crate) fn of_host(&self, host: usize) -> &[u32] {
        &self.list[self.base[host] as usize..self.base[host + 1] as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..self.base.len() - 1).map(|host| (host, self.of_host(host)))
    }
}

/// Where the children of each node are that it can have waited for: those of the tree, and deeper ones that outlived their parents.
fn cover(forest: &Forest, start: &[Nanos], end: &[Nanos], (end_host, background): (&[u32], &[usize])) -> Cover {
    let mut overhanging: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, &host) in end_host.iter().enumerate().skip(1) {
        if host != NONE && forest.nodes[i].parent() != Some(host as usize) {
            overhanging.entry(host).or_default().push(i);
        }
    }
    let mut cover = Cover { base: vec![0], stretches: Vec::new() };
    let mut children = Vec::new();
    for node in 0..forest.len() {
        children.clear();
        children.extend(forest.children(node).filter(|child| background.binary_search(child).is_err()));
        if let Some(more) = overhanging.get(&(node as u32)) {
            children.extend_from_slice(more);
            children.sort_by_key(|&i| start[i]);
        }
        let first = cover.stretches.len();
        let mut before = Nanos::ZERO;
        for &child in &children {
            let Some((from, to)) = intervals::clip((start[child], end[child]), (start[node], end[node])) else { continue };
            match cover.stretches[first..].last_mut() {
                Some(last) if from <= last.end => {
                    before += (to - last.end).or_zero();
                    last.end = last.end.max(to);
                }
                _ => {
                    cover.stretches.push(Covered { start: from, end: to, before });
                    before += to - from;
                }
            }
        }
        cover.base.push(cover.stretches.len() as u32);
    }
    cover
}
