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
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use longpole_model::{Id, IdVec, Nanos, NodeId, Recording, SpanKind, Timestamp, ids};

use crate::intervals;
use crate::lists::Lists;
use crate::pulumi::call::is_measurement;
use crate::pulumi::engine;
use crate::pulumi::resources::Resources;
use crate::schedule::background::background;
use crate::schedule::phases;
use crate::schedule::pipeline::Pipelines;
use crate::schedule::servers::{Servers, servers};
use crate::tree::forest::Forest;

ids! {
    /// The start or the end of a node.
    pub(crate) struct Event;
    /// The end of a node that has a host, by its place in [`Schedule::ended`].
    pub(crate) struct EndedId;
}

impl Event {
    /// The start of a node.
    pub(crate) fn start_of(node: NodeId) -> Event {
        Event::at(2 * node.place())
    }

    /// The end of a node.
    pub(crate) fn end_of(node: NodeId) -> Event {
        Event::at(2 * node.place() + 1)
    }

    /// Whose start or end it is.
    pub(crate) fn node(self) -> NodeId {
        NodeId::at(self.place() / 2)
    }

    /// Whether it is an end.
    pub(crate) fn is_end(self) -> bool {
        self.place() % 2 == 1
    }
}

/// Ancestors visited to find a host; past that the run is the host. Only skewed clocks and asynchronous children walk at
/// all, and a forest built to hurt must not make the walk quadratic.
const WALK_MAX: usize = 64;

/// Offsets are kept inside ±73 years, so that sums of three cannot overflow.
const OFFSET_MAX: i64 = i64::MAX / 4;

/// Where a moment lies from the start of the run.
pub(crate) fn offset(at: Timestamp, origin: Timestamp) -> Nanos {
    Nanos(at.nanos_since(origin).clamp(-OFFSET_MAX, OFFSET_MAX))
}

/// A stretch of a node: that its children cover, or of a part of its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Covered {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    /// Nanoseconds in such stretches of the node before `start`.
    pub(crate) before: Nanos,
}

/// Nanoseconds of these stretches, which stand by time, before a moment.
pub(crate) fn covered_before(stretches: &[Covered], at: Nanos) -> Nanos {
    let next = stretches.partition_point(|c| c.start < at);
    match next.checked_sub(1).map(|i| stretches[i]) {
        Some(c) => c.before + (at.min(c.end) - c.start),
        None => Nanos::ZERO,
    }
}

/// For each node, where its children are.
#[derive(Debug, Default)]
pub(crate) struct Cover(Option<Lists<NodeId, Covered>>);

impl Cover {
    fn of(&self, node: NodeId) -> &[Covered] {
        self.0.as_ref().map_or(&[], |lists| lists.get(node))
    }

    /// Nanoseconds of the node, from its start to `at`, in which one of its children was there.
    pub(crate) fn covered_before(&self, node: NodeId, at: Nanos) -> Nanos {
        covered_before(self.of(node), at)
    }

    /// The parts of a time of the node in which none of its children was there.
    pub(crate) fn gaps(&self, node: NodeId, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> {
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
    pub(crate) fn contains(&self, node: NodeId, at: Nanos) -> bool {
        let stretches = self.of(node);
        let next = stretches.partition_point(|c| c.start <= at);
        next.checked_sub(1).is_some_and(|i| at < stretches[i].end)
    }
}

/// What an event waited for last; a node, or a slot in a part of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited<Node = NodeId> {
    /// The start of a node.
    Start(Node),
    /// The end of a node.
    End(Node),
}

/// The schedule. Times are nanoseconds from the start of the run. The run has no ancestors: it is its own anchor and host.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) start: IdVec<NodeId, Nanos>,
    pub(crate) end: IdVec<NodeId, Nanos>,
    /// `None` for the run.
    pub(crate) parent: IdVec<NodeId, Option<NodeId>>,
    pub(crate) subtree_end: IdVec<NodeId, NodeId>,
    /// Lowest ancestor that had started when the node started.
    pub(crate) anchor: IdVec<NodeId, NodeId>,
    /// Lowest ancestor that was there when the node started.
    pub(crate) host: IdVec<NodeId, NodeId>,
    /// Lowest ancestor that still was there when the node ended; `None` where even the run was over.
    pub(crate) end_host: IdVec<NodeId, Option<NodeId>>,
    /// Events in an order in which each stands after all it can have waited for.
    pub(crate) order: Vec<Event>,
    /// Whether the children of the node declare what they waited for: by links, as resources that depend on each other, or as
    /// steps of Pulumi's engine.
    pub(crate) declares: IdVec<NodeId, bool>,
    /// Whether the end of the node is only guessed to have waited for another one's, see `pipeline`.
    pub(crate) end_by_chance: IdVec<NodeId, bool>,
    /// For nodes that were blocked on a pipe: time that is shorter if the work of another node is, see `pipeline`.
    pub(crate) stalls: BTreeMap<NodeId, Vec<(NodeId, Nanos)>>,
    /// What each node is declared to have waited for; `None` where no node is, as in most recordings.
    links: Option<Lists<NodeId, NodeId>>,
    /// Where in `ended` the nodes of each host begin, and one more.
    ended_base: IdVec<NodeId, EndedId>,
    /// Nodes by the host of their end, and there in order of their end.
    pub(crate) ended: IdVec<EndedId, NodeId>,
    /// Where in `ended` a node stands; `None` without a host.
    pub(crate) position: IdVec<NodeId, Option<EndedId>>,
    /// One past the last entry of `ended`, among those of the node's host, that stands before the node's start.
    pub(crate) ended_before: IdVec<NodeId, EndedId>,
    /// How many others that started under the same host had not ended when the node started.
    pub(crate) in_flight: IdVec<NodeId, u32>,
    /// As `ended_before`, at the last moment at which nothing was in flight under the host. Empty if no span declares dependencies.
    quiet_before: IdVec<NodeId, EndedId>,
    pub(crate) cover: Cover,
    /// Processes that serve others of the run.
    pub(crate) servers: Servers,
}

impl Schedule {
    pub(crate) fn new(recording: &Recording, forest: &Forest) -> Schedule {
        let count = forest.len();
        let origin = forest.run_range().start;
        let offset = |at| offset(at, origin);
        let start: IdVec<NodeId, Nanos> = forest.nodes.iter().map(|n| offset(n.range.start)).collect();
        let mut end: IdVec<NodeId, Nanos> = forest.nodes.iter().map(|n| offset(n.range.end)).collect();
        let parent: IdVec<NodeId, Option<NodeId>> = forest.nodes.iter().map(|n| n.parent).collect();
        end_with_callers(recording, forest, &start, &mut end);
        let subtree_end = forest.nodes.iter().map(|n| n.subtree_end).collect();

        let climb = |node: NodeId, fits: &dyn Fn(NodeId) -> bool| {
            let ancestors = std::iter::successors(parent[node], |&at| parent[at]);
            ancestors.take(WALK_MAX).find(|&at| fits(at)).unwrap_or(NodeId::RUN)
        };
        let mut anchor: IdVec<NodeId, NodeId> = IdVec::filled(NodeId::RUN, count);
        let mut host: IdVec<NodeId, NodeId> = IdVec::filled(NodeId::RUN, count);
        let mut end_host: IdVec<NodeId, Option<NodeId>> = IdVec::filled(None, count);
        for i in forest.ids().skip(1) {
            anchor[i] = climb(i, &|p| start[p] <= start[i]);
            host[i] = climb(i, &|p| start[p] <= start[i] && start[i] <= end[p]);
            let until = climb(i, &|p| end[i] <= end[p]);
            let waits_for_it = end[i] <= end[until] && !forest.span(recording, i).is_some_and(is_measurement);
            end_host[i] = waits_for_it.then_some(until);
        }

        let mut background = background(recording, forest);
        let servers = servers(recording, forest, offset);
        background.extend(&servers.list);
        background.sort_unstable();
        background.dedup();
        background.retain(|&node| end_host[node] == parent[node]);
        background.iter().for_each(|&node| end_host[node] = None);

        let mut end_by_chance: IdVec<NodeId, bool> = IdVec::filled(false, count);
        let Pipelines { ends, stalls } = Pipelines::new(recording, forest, &start, &end);
        for wait in ends {
            end_host[wait.busy] = Some(wait.waiting);
            end_by_chance[wait.waiting] = wait.by_chance;
        }

        let waited_for = declared(recording, forest, &end_host, (&start, &end));
        let mut declares: IdVec<NodeId, bool> = IdVec::filled(false, count);
        for parent in waited_for.iter().filter_map(|&(node, _)| parent[node]) {
            declares[parent] = true;
        }
        let links = (!waited_for.is_empty()).then(|| Lists::group(count, waited_for.iter().copied()));
        drop(waited_for);

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
            links,
            ended_base: IdVec::default(),
            ended: IdVec::default(),
            position: IdVec::default(),
            ended_before: IdVec::default(),
            in_flight: IdVec::default(),
            quiet_before: IdVec::default(),
            cover,
            servers,
        };
        schedule.order_events();
        schedule.list_ended();
        schedule
    }

    pub(crate) fn len(&self) -> usize {
        self.start.len()
    }

    /// All nodes, in tree order.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone + use<> {
        self.start.ids()
    }

    /// Own time of a node between two moments.
    pub(crate) fn own_between(&self, node: NodeId, from: Nanos, to: Nanos) -> Nanos {
        self.own_time(None).between(node, from, to)
    }

    /// Own time of a node.
    pub(crate) fn own_total(&self, node: NodeId) -> Nanos {
        self.own_time(None).total(node)
    }

    /// What this one is declared to have waited for: spans that its links name and that ended before it started, and the work on
    /// resources that it depends on.
    pub(crate) fn links(&self, node: NodeId) -> &[NodeId] {
        self.links.as_ref().map_or(&[], |links| links.get(node))
    }

    /// First entry of `ended` that belongs to this host.
    pub(crate) fn ended_base(&self, host: NodeId) -> EndedId {
        self.ended_base[host]
    }

    /// Nodes whose end this host waited for, in order of their end.
    pub(crate) fn ended_under(&self, host: NodeId) -> &[NodeId] {
        self.ended.between(self.ended_base[host], self.ended_base[host.next()])
    }

    /// Whether links declare what this node waited for.
    pub(crate) fn is_declared(&self, node: NodeId) -> bool {
        self.parent[node].is_some_and(|parent| self.declares[parent])
    }

    /// The last sibling that ended before this node started.
    pub(crate) fn last_ended_before(&self, node: NodeId) -> Option<NodeId> {
        self.ended.between(self.ended_base(self.host[node]), self.ended_before[node]).last().copied()
    }

    /// What a child without links waited for under a parent whose children declare: usually nothing but the parent. But if
    /// everything that ran before had ended when the node, or the first of those it runs beside, started, then there was a
    /// phase before this one: the last node that ended in that phase.
    ///
    /// ```text
    /// parent  ├───────────────────────────────────────────────────────┤
    ///   plan    ├──────┤
    ///   a                ├────────┤              no links: after plan
    ///   b                 ├──┤                   no links: it runs beside a, so after plan too
    ///   c                       ├──────────┤     linked to b
    ///   stop                                  ├──┤   no links: after all of them
    /// ```
    pub(crate) fn phase_before(&self, node: NodeId) -> Option<NodeId> {
        let host = self.host[node];
        let last = *self.ended.between(self.ended_base(host), self.quiet_before[node].max(self.ended_base(host))).last()?;
        (self.end[last] >= self.start[host]).then_some(last)
    }

    /// The last thing the start of a node waited for: by its links where its parent declares, else by order.
    pub(crate) fn start_waited_for(&self, node: NodeId) -> Waited {
        if self.is_declared(node) && !self.links(node).is_empty() {
            let anchor = self.anchor[node];
            let last = self.links(node).iter().copied().max_by_key(|&x| (self.end[x], Reverse(x)));
            return match last.filter(|&x| self.end[x] >= self.start[anchor]) {
                Some(x) => Waited::End(x),
                None => Waited::Start(anchor),
            };
        }
        let host = self.host[node];
        let last = if self.is_declared(node) {
            self.phase_before(node)
        } else {
            self.last_ended_before(node).filter(|&last| self.end[last] >= self.start[host])
        };
        last.map_or(Waited::Start(host), Waited::End)
    }

    /// The last thing the end of a node waited for: its last child, or its own start.
    pub(crate) fn end_waited_for(&self, node: NodeId) -> Waited {
        match self.ended_under(node).last().copied().filter(|&x| self.end[x] >= self.start[node]) {
            Some(x) => Waited::End(x),
            None => Waited::Start(node),
        }
    }

    /// Orders the events: by time, and at one moment so that what ends makes room for what starts.
    fn order_events(&mut self) {
        let count = self.len();
        let mut waits: IdVec<Event, u32> = IdVec::filled(0, 2 * count);
        let (nodes, links) = (self.nodes(), self.links.take());
        let links_of = |node: NodeId| links.as_ref().map_or(&[][..], |links| links.get(node));
        // Most recordings have no links. Successors by links, as a list per node whose end is waited for; those of the tree follow from
        // the arrays.
        let linked = || nodes.clone().skip(1).flat_map(|node| links_of(node).iter().map(move |&other| (other, node)));
        let followers = links.as_ref().map(|_| Lists::group(count, linked()));
        let mut link_waits: IdVec<NodeId, u32> = IdVec::filled(0, if links.is_some() { count } else { 0 });
        linked().for_each(|(_, node)| link_waits[node] += 1);
        let waits_for_links = |link_waits: &IdVec<NodeId, u32>, node: NodeId| link_waits.get(node).is_some_and(|waits| *waits > 0);
        // A start comes after those of its anchor and of its host; with skewed clocks one does not imply the other.
        let before_start = |i: NodeId| {
            let (anchor, host) = (self.anchor[i], self.host[i]);
            [Some(anchor), Some(host).filter(|h| *h != anchor)].into_iter().flatten()
        };
        let anchored = Lists::group(count, nodes.clone().skip(1).flat_map(|i| before_start(i).map(move |above| (above, i))));
        for i in nodes.clone() {
            if i != NodeId::RUN {
                waits[Event::start_of(i)] = 1 + u32::from(self.anchor[i] != self.host[i]);
            }
            waits[Event::end_of(i)] += 1;
            if let Some(host) = self.end_host[i] {
                waits[Event::end_of(host)] += 1;
            }
        }

        // Ends of what took time come first, inner ones before outer ones; then starts in pre-order.
        let key = |event: Event| {
            let node = event.node();
            let time = if event.is_end() { self.end[node] } else { self.start[node] };
            if event.is_end() && self.end[node] > self.start[node] {
                (time, 0u8, count - node.place(), event)
            } else {
                (time, 1u8, node.place(), event)
            }
        };
        let mut ready = BinaryHeap::new();
        let mut order = Vec::with_capacity(2 * count);
        // Once links were dropped: those that each node waits for no more.
        let mut dropped: IdVec<NodeId, bool> = IdVec::default();
        let mut kept = None;
        ready.push(Reverse(key(Event::start_of(NodeId::RUN))));
        loop {
            while let Some(Reverse((.., event))) = ready.pop() {
                order.push(event);
                let node = event.node();
                let mut release = |event: Event, waits: &mut IdVec<Event, u32>| {
                    waits[event] -= 1;
                    if waits[event] == 0 && (event.is_end() || !waits_for_links(&link_waits, event.node())) {
                        ready.push(Reverse(key(event)));
                    }
                };
                if !event.is_end() {
                    release(Event::end_of(node), &mut waits);
                    anchored.get(node).iter().for_each(|&child| release(Event::start_of(child), &mut waits));
                    continue;
                }
                if let Some(host) = self.end_host[node] {
                    release(Event::end_of(host), &mut waits);
                }
                for &f in followers.as_ref().map_or(&[][..], |followers| followers.get(node)) {
                    if dropped.is_empty() || !(dropped[f] && self.end[node] == self.start[f]) {
                        link_waits[f] -= 1;
                        if link_waits[f] == 0 && waits[Event::start_of(f)] == 0 {
                            ready.push(Reverse(key(Event::start_of(f))));
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
            let mut done: IdVec<NodeId, bool> = IdVec::filled(false, count);
            for event in order.iter().filter(|event| event.is_end()) {
                done[event.node()] = true;
            }
            dropped = IdVec::filled(false, count);
            let mut left: Vec<(NodeId, NodeId)> = Vec::new();
            for i in nodes.clone() {
                for &x in links_of(i) {
                    if self.end[x] == self.start[i] && !done[x] {
                        dropped[i] = true;
                        link_waits[i] -= 1;
                    } else {
                        left.push((i, x));
                    }
                }
                if dropped[i] && link_waits[i] == 0 && waits[Event::start_of(i)] == 0 {
                    ready.push(Reverse(key(Event::start_of(i))));
                }
            }
            kept = Some(Lists::group(count, left.into_iter()));
            if ready.is_empty() {
                debug_assert!(false, "events that wait for each other without a link");
                break;
            }
        }
        self.order = order;
        self.links = kept.or(links);
    }

    fn list_ended(&mut self) {
        let count = self.len();
        let mut ended_under: IdVec<NodeId, u32> = IdVec::filled(0, count);
        self.end_host.iter().flatten().for_each(|&host| ended_under[host] += 1);
        let mut base: IdVec<NodeId, EndedId> = IdVec::with_capacity(count + 1);
        let mut all = 0;
        for &ended in &ended_under {
            base.push(EndedId::at(all));
            all += ended as usize;
        }
        base.push(EndedId::at(all));
        drop(ended_under);
        let mut fill = base.clone();
        (self.position, self.in_flight) = (IdVec::filled(None, count), IdVec::filled(0, count));
        self.ended_before = IdVec::filled(EndedId::at(0), count);
        let declared = self.declares.iter().any(|declares| *declares);
        self.quiet_before = IdVec::filled(EndedId::at(0), if declared { count } else { 0 });
        let mut ended: IdVec<EndedId, NodeId> = IdVec::filled(NodeId::RUN, all);
        // How many started under a host, and how many of those ended anywhere.
        let mut open: IdVec<NodeId, u32> = IdVec::filled(0, count);
        let mut quiet = if declared { fill.clone() } else { IdVec::default() };
        for &event in &self.order {
            let node = event.node();
            if event.is_end() {
                if let Some(end_host) = self.end_host[node] {
                    open[self.host[node]] -= 1;
                    let at = &mut fill[end_host];
                    ended[*at] = node;
                    self.position[node] = Some(*at);
                    *at = at.next();
                }
            } else if node != NodeId::RUN {
                let host = self.host[node];
                self.ended_before[node] = fill[host];
                self.in_flight[node] = open[host];
                if declared {
                    if open[host] == 0 {
                        quiet[host] = fill[host];
                    }
                    self.quiet_before[node] = quiet[host];
                }
                // What nobody waits for holds no phase open.
                open[host] += u32::from(self.end_host[node].is_some());
            }
        }
        self.ended = ended;
        self.ended_base = base;
    }
}

/// Resources that all operations together are known to have waited for, and how many of one at least: those that ended last, for what ended long
/// before them matters only once all of these are gone. Each replay visits all.
const NEEDED_MAX: usize = 200_000;
const NEEDED_MIN: usize = 16;

/// Declared waits: the node that waited, and the one it waited for.
fn declared(
    recording: &Recording,
    forest: &Forest,
    end_host: &IdVec<NodeId, Option<NodeId>>,
    (start, end): (&IdVec<NodeId, Nanos>, &IdVec<NodeId, Nanos>),
) -> Vec<(NodeId, NodeId)> {
    let mut out = Vec::new();
    let is_possible = |i: NodeId, other: NodeId| other != i && other != NodeId::RUN && end[other] <= start[i];
    let mut add = |i: NodeId, other: NodeId| {
        if is_possible(i, other) {
            out.push((i, other));
        }
    };
    // In the order of the spans, for they lie in memory so.
    for (row, span) in recording.span_rows().zip(&recording.spans).filter(|(_, span)| !span.links.is_empty()) {
        if let Some(i) = forest.node_of_span(row) {
            span.links.iter().filter_map(|l| forest.node_of_id(recording, l.trace_id, l.span_id)).for_each(|other| add(i, other));
        }
    }
    let resources = Resources::of(recording, forest, end);
    let most = (NEEDED_MAX / resources.count().max(1)).max(NEEDED_MIN);
    let needed = resources.waits(start, most);
    let besides = phases::waits(&needed, forest, end_host, (start, end));
    needed.into_iter().chain(besides).for_each(|(i, other)| add(i, other));
    engine::waits(recording, forest, start, end).into_iter().for_each(|(i, other)| add(i, other));
    out.sort_unstable();
    out.dedup();
    out
}

/// Nodes by the host of their start, and there in order of their start.
pub(crate) fn started_under(s: &Schedule) -> Lists<NodeId, NodeId> {
    let starts = s.order.iter().filter(|event| !event.is_end()).map(|event| event.node()).filter(|node| *node != NodeId::RUN);
    Lists::group(s.len(), starts.map(|node| (s.host[node], node)))
}

/// A server closes its span after it has answered, and its caller may have the answer by then: 0.2 ms after 5 s. Such a span, and what ends as late
/// below it, ends with the caller, which did wait for it.
///
/// ```text
/// client  ├──────────────────┤
/// server    ├─────────────────┤
/// ```
///
/// Where the caller has no span of its own for the call, its next call stands for that: it began when the answer was there.
///
/// ```text
/// caller  ├────────────────────────────┤
/// server    ├─────────────┤
/// server                 ├──────┤
/// ```
fn end_with_callers(recording: &Recording, forest: &Forest, start: &IdVec<NodeId, Nanos>, end: &mut IdVec<NodeId, Nanos>) {
    let kind = |node| forest.span(recording, node).map(|span| span.kind);
    let mut moved: HashSet<NodeId> = HashSet::new();
    let is_unseen_call = |node: NodeId| {
        let (Some(span), Some(caller)) = (forest.span(recording, node), forest[node].parent) else { return false };
        let caller = forest.span(recording, caller);
        span.kind == SpanKind::Server && caller.is_some_and(|by| by.kind != SpanKind::Client && by.service_name() != span.service_name())
    };
    for parent in forest.ids() {
        let mut starts: Option<Vec<Nanos>> = None;
        for node in forest.children(parent).filter(|&node| is_unseen_call(node)) {
            let starts = starts.get_or_insert_with(|| {
                let mut starts: Vec<Nanos> = forest.children(parent).map(|child| start[child]).collect();
                starts.sort_unstable();
                starts
            });
            let tolerance = LATE_ANSWER_NANOS.min((end[node] - start[node]) / LATE_ANSWER_PART);
            let next = starts.get(starts.partition_point(|&at| at <= end[node] - tolerance)).copied();
            if let Some(next) = next.filter(|&next| next < end[node]) {
                end[node] = next;
                moved.insert(node);
            }
        }
    }
    for node in forest.ids().skip(1) {
        let Some(caller) = forest[node].parent else { continue };
        let late = end[node] - end[caller];
        let is_short = Nanos::ZERO < late && late <= LATE_ANSWER_NANOS.min((end[caller] - start[caller]) / LATE_ANSWER_PART);
        if is_short
            && start[node] <= end[caller]
            && (moved.contains(&caller) || kind(caller) == Some(SpanKind::Client) && kind(node) == Some(SpanKind::Server))
        {
            end[node] = end[caller];
            moved.insert(node);
        }
    }
}

/// A server that ends later than this did not only close its span.
const LATE_ANSWER_NANOS: Nanos = Nanos(5_000_000);

/// Nor one that ends later than this part of the call.
const LATE_ANSWER_PART: i64 = 20;

/// Where the children of each node are that it can have waited for: those of the tree, and deeper ones that outlived their parents.
fn cover(
    forest: &Forest,
    start: &IdVec<NodeId, Nanos>,
    end: &IdVec<NodeId, Nanos>,
    (end_host, background): (&IdVec<NodeId, Option<NodeId>>, &[NodeId]),
) -> Cover {
    let mut overhanging: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (i, &host) in end_host.enumerated().skip(1) {
        if let Some(host) = host.filter(|_| forest[i].parent != host) {
            overhanging.entry(host).or_default().push(i);
        }
    }
    let mut cover = Lists::default();
    let (mut children, mut stretches) = (Vec::new(), Vec::<Covered>::new());
    for node in forest.ids() {
        children.clear();
        children.extend(forest.children(node).filter(|child| background.binary_search(child).is_err()));
        if let Some(more) = overhanging.get(&node) {
            children.extend_from_slice(more);
            children.sort_by_key(|&i| start[i]);
        }
        let mut before = Nanos::ZERO;
        for &child in &children {
            let Some((from, to)) = intervals::clip((start[child], end[child]), (start[node], end[node])) else { continue };
            match stretches.last_mut() {
                Some(last) if from <= last.end => {
                    before += (to - last.end).or_zero();
                    last.end = last.end.max(to);
                }
                _ => {
                    stretches.push(Covered { start: from, end: to, before });
                    before += to - from;
                }
            }
        }
        cover.push(stretches.drain(..));
    }
    Cover(Some(cover))
}
