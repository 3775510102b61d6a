//! Long poles: groups of nodes on the critical path, ranked by what fixing them saves.
//!
//! A group holds the nodes of one service and name that belong to the same *piece of work*: "Create of the database" and
//! "Create of the bundle" are two poles, but 48 calls of `postEngineEventBatch` in sequence are one. The *context* identifies the
//! piece of work: it is the ancestor of a node whose parent has the most differently named children, at least [`CONTEXT_SIBLINGS`];
//! if several have as many, the nearest.
//!
//! ```text
//! up
//! ├─ create web     ◄─ context of the Create below: its parent has three differently named children
//! │  └─ Create
//! ├─ create db
//! │  └─ Create
//! └─ create dns
//! ```
//!
//! Where spans say which cloud resource they work on, that is the context of them and of all below them.
//!
//! Poles lie inside each other: `up` takes no time if `Create` takes none. Ranked by own time the inner one stands first, and the
//! outer one says whose saving its own contains.
//!
//! An operation that holds most of its group's time, and many times as much as the next one, is a pole of its own: whoever makes the
//! others faster gains next to nothing.
//!
//! The run itself, which is the first process, is a pole by its own time: by what it does while it waits for none of the others, if that is
//! more than a twentieth of the run. Between the spans of a file there is no run, and of processes that ran before and after the recording it
//! is a pole only if most of the time is its own.
//!
//! Where samples and waits tell what the own time of a pole was ([`PolePart`]), its parts are poles in its place: the function that computes, the
//! function that waits.
//!
//! The time in which a process waits for work is no pole: it says how long nobody called.
//!
//! No time is missing: the times of all poles on the path, of the groups that are left out, of idle processes, and of no pole add up to the run.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use longpole_model::fast_hash::{FastMap, FastState};
use longpole_model::{CaptureMode, FunctionId, IdVec, Nanos, NodeId, PoleId, Recording, ThreadKey, Timestamp, WaitKind, ids};

use crate::intervals;
use crate::pulumi::urn::{title_of_urn, urn_of};
use crate::schedule::critical_path::{CriticalPath, OnPath};
use crate::schedule::own_work::OwnWork;
use crate::schedule::replay::Replay;
use crate::schedule::saving::{Saving, ScheduleEvidence};
use crate::tree::forest::Forest;

/// Differently named children that make each of them a piece of work.
pub const CONTEXT_SIBLINGS: usize = 3;

/// An operation of a group stands out if it takes this many times as long as the next one, and more than half of the group's time on the path.
const OUTLIER_FACTOR: i64 = 4;

/// The run's own time is a pole if it is more than this part of the run.
const RUN_PART: i64 = 20;

/// Groups that are replayed, at most: those with the most time on the path. A replay walks the whole forest.
pub const CANDIDATES_MAX: usize = 64;

/// Groups that are replayed however large the forest is.
pub const CANDIDATES_MIN: usize = 8;

/// Groups times nodes, beyond [`CANDIDATES_MIN`] groups: with up to 18 walks for each group (three changes, two ends of the
/// range, and slots) at some 20 ns for each node, this is about three seconds.
const REPLAYED_NODES_MAX: usize = 4_000_000;

ids! {
    /// A group of nodes that may be a pole.
    struct GroupId;
}

/// What all replays of one group say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savings {
    /// If the nodes and all below them took no time.
    pub if_zero: Saving,
    /// If they took half.
    pub if_half: Saving,
    /// If only their own time were nothing.
    pub own: Saving,
    /// `Declared` where links say what the nodes waited for and all three are one number.
    pub evidence: ScheduleEvidence,
}

impl Savings {
    /// The same, if no more can be saved than this.
    #[must_use]
    pub fn at_most(self, most: Nanos) -> Savings {
        let [if_zero, if_half, own] = [self.if_zero, self.if_half, self.own].map(|saving| saving.at_most(most));
        Savings { if_zero, if_half, own, ..self }
    }

    /// Replays the three changes of these nodes.
    pub fn of(replay: &dyn Replays, nodes: &[NodeId]) -> Savings {
        Savings::new(replay, nodes, replay.saves_all(nodes))
    }

    fn new(replay: &dyn Replays, nodes: &[NodeId], [if_zero, if_half, own]: [Saving; 3]) -> Savings {
        let points = [if_zero, if_half, own].iter().all(|s| s.low == s.high);
        let declared = points && nodes.iter().all(|&n| replay.evidence(n) == ScheduleEvidence::Declared);
        Savings { if_zero, if_half, own, evidence: if declared { ScheduleEvidence::Declared } else { ScheduleEvidence::Inferred } }
    }
}

/// What changes of poles save: by the schedule of nodes, or by the threads of the run.
pub trait Replays {
    /// The three changes of these nodes, in the order of [`Change`](crate::schedule::saving::Change).
    fn saves_all(&self, nodes: &[NodeId]) -> [Saving; 3];

    /// The same, and what limits the first.
    fn saves_nodes(&self, nodes: &[NodeId], on_path: &OnPath) -> ([Saving; 3], Option<LimitedBy>);

    /// If a part takes no time, and if it takes half; and what limits the first. `takes` is how long it is on the path.
    fn saves_part(&self, part: &PolePart, takes: Nanos, on_path: &OnPath) -> ([Saving; 2], Option<LimitedBy>);

    /// How it is known what a node waited for.
    fn evidence(&self, node: NodeId) -> ScheduleEvidence;

    /// Whether a node serves others, so that nobody waits for its end.
    fn is_server(&self, node: NodeId) -> bool;

    /// What of a saving decides how poles are ranked.
    fn rank(&self, saving: Saving) -> Nanos {
        saving.low + saving.high
    }
}

impl Replays for Replay {
    fn saves_all(&self, nodes: &[NodeId]) -> [Saving; 3] {
        Replay::saves_all(self, nodes)
    }

    fn saves_nodes(&self, nodes: &[NodeId], on_path: &OnPath) -> ([Saving; 3], Option<LimitedBy>) {
        let (saves, limit) = self.saves_all_and_limit(nodes, on_path);
        (saves, limit.map(LimitedBy::Node))
    }

    fn saves_part(&self, part: &PolePart, takes: Nanos, on_path: &OnPath) -> ([Saving; 2], Option<LimitedBy>) {
        let (saves, limit) = self.saves_work(&part.work, takes, on_path);
        (saves, limit.map(LimitedBy::Node))
    }

    fn evidence(&self, node: NodeId) -> ScheduleEvidence {
        Replay::evidence(self, node)
    }

    fn is_server(&self, node: NodeId) -> bool {
        self.schedule().servers.contains(node)
    }
}

/// Replays that stop: from then on every saving is nothing, and the poles are of no use.
pub(crate) struct UntilStopped<'a> {
    pub(crate) replays: &'a dyn Replays,
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
}

impl UntilStopped<'_> {
    fn unless_stopped<T: Default>(&self, replay: impl FnOnce(&dyn Replays) -> T) -> T {
        if (self.is_stopped)() { T::default() } else { replay(self.replays) }
    }
}

impl Replays for UntilStopped<'_> {
    fn saves_all(&self, nodes: &[NodeId]) -> [Saving; 3] {
        self.unless_stopped(|replays| replays.saves_all(nodes))
    }

    fn saves_nodes(&self, nodes: &[NodeId], on_path: &OnPath) -> ([Saving; 3], Option<LimitedBy>) {
        self.unless_stopped(|replays| replays.saves_nodes(nodes, on_path))
    }

    fn saves_part(&self, part: &PolePart, takes: Nanos, on_path: &OnPath) -> ([Saving; 2], Option<LimitedBy>) {
        self.unless_stopped(|replays| replays.saves_part(part, takes, on_path))
    }

    fn evidence(&self, node: NodeId) -> ScheduleEvidence {
        self.replays.evidence(node)
    }

    fn is_server(&self, node: NodeId) -> bool {
        self.replays.is_server(node)
    }

    fn rank(&self, saving: Saving) -> Nanos {
        self.replays.rank(saving)
    }
}

/// Why one operation is a pole without the others of its service, name and context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlier {
    /// How many operations there are, this one included.
    pub of: usize,
    /// How long the next longest takes.
    pub next: Nanos,
}

/// What a part of the own time of a pole's nodes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A function computes, with what it calls of others.
    Computes(FunctionId),
    /// A function waits; `None` if which one is unknown.
    Waits(WaitKind, Option<FunctionId>),
    /// Everything else.
    Rest,
    /// Everything but the time in which they were idle, or a server worked for them: whole because its name says more than its functions.
    Busy,
}

/// A part of the own time of a pole's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolePart {
    /// What it is.
    pub kind: PartKind,
    /// What is gone without it.
    pub(crate) work: OwnWork,
    /// All of it in the threads of a process whose threads are known: its node, the place of the thread, from and to.
    pub(crate) of_threads: Vec<(NodeId, usize, Nanos, Nanos)>,
    /// What of it is on the path: node, from and to, by time.
    pub(crate) on_path: Vec<(NodeId, Nanos, Nanos)>,
}

impl PolePart {
    /// How long it is on the path.
    fn takes(&self) -> Nanos {
        self.on_path.iter().map(|(_, from, to)| *to - *from).sum()
    }
}

/// A group of nodes, or a part of their own time, and what fixing it saves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pole {
    /// The nodes, in tree order; also those of the group that are not on the path.
    pub nodes: Vec<NodeId>,
    /// Their service.
    pub service: String,
    /// Their name.
    pub name: String,
    /// Which piece of work they belong to: the cloud resource they work on, or else an ancestor; `None` where nothing tells.
    pub context: Option<String>,
    /// URN of that resource.
    pub resource: Option<String>,
    /// The part of their own time that the pole is; without it the pole is all of it, with what they call.
    pub part: Option<PolePart>,
    /// Time of the critical path in which one of them was the innermost, and in this part.
    pub on_path: Nanos,
    /// Set if the pole is one operation that stands out among others.
    pub outlier: Option<Outlier>,
    /// What the run saves.
    pub savings: Savings,
    /// The pole inside this one that saves the most: what this one saves "if it took no time" is, to that part, the
    /// other's. `None` where none lies inside.
    pub contains: Option<PoleId>,
    /// Whether that one lies inside in time as well: an operation may go on after its parent.
    pub contains_all: bool,
    /// What comes after this pole would have to wait for that if the pole took no time: why it saves less than it takes. `None` where it does not, and
    /// where that is uncertain.
    pub limited_by: Option<LimitedBy>,
}

/// What is on the path if a pole takes no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    /// A node.
    Node(NodeId),
    /// Another thread of the pole's own process, which is this node.
    Thread(NodeId, ThreadKey),
}

/// The poles of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Poles {
    /// Ranked: by what their own time saves, then by time on the path.
    pub poles: IdVec<PoleId, Pole>,
    /// Groups on the path that were not replayed, because they have too little time there.
    pub truncated: usize,
    /// Their time on the path.
    pub truncated_on_path: Nanos,
    /// Time of the path in no pole and in none of these groups: between the operations.
    pub between: Nanos,
    /// Time of the path in which processes waited for work to arrive. Nobody can shorten it.
    pub idle: Nanos,
}

/// For each node the ancestor that tells which piece of work it belongs to; `None` where none does.
fn contexts(recording: &Recording, forest: &Forest) -> IdVec<NodeId, Option<NodeId>> {
    // The best so far for what stands below a node: names of siblings, and the ancestor.
    let mut below: IdVec<NodeId, (u32, Option<NodeId>)> = IdVec::filled((0, None), forest.len());
    let mut out = IdVec::filled(None, forest.len());
    let mut names: HashSet<&str, FastState> = HashSet::default();
    for parent in forest.ids() {
        let children = forest.children(parent);
        names.clear();
        if children.clone().nth(CONTEXT_SIBLINGS - 1).is_some() {
            // One by one: space for as many as there are children would be cleared for each parent again.
            children.clone().for_each(|c| {
                names.insert(forest.name(recording, c));
            });
        }
        let distinct = u32::try_from(names.len()).unwrap_or(u32::MAX);
        for child in children {
            out[child] = below[parent].1;
            let tells = names.len() >= CONTEXT_SIBLINGS && distinct >= below[parent].0;
            below[child] = if tells { (distinct, Some(child)) } else { below[parent] };
        }
    }
    out
}

/// For each node the resource that it, or the nearest node above it that works on one, works on; no list where none works on any.
fn urns<'a>(recording: &'a Recording, forest: &Forest) -> IdVec<NodeId, Option<&'a str>> {
    if !forest.has_placement_rules() {
        return IdVec::default();
    }
    let mut out: IdVec<NodeId, Option<&str>> = IdVec::filled(None, forest.len());
    for node in forest.ids().skip(1) {
        let own = forest.span(recording, node).and_then(urn_of);
        out[node] = own.or(forest[node].parent.and_then(|p| out[p]));
    }
    out
}

/// The ranges of nodes that these nodes and all below them are.
fn subtrees(forest: &Forest, nodes: &[NodeId]) -> Vec<Range<NodeId>> {
    let mut out: Vec<Range<NodeId>> = Vec::new();
    for &n in nodes {
        let end = forest[n].subtree_end;
        match out.last_mut() {
            Some(last) if n < last.end => {}
            Some(last) if n == last.end => last.end = end,
            _ => out.push(n..end),
        }
    }
    out
}

/// By what their own time saves (see [`Replays::rank`]), then by time on the path.
fn rank(poles: &mut [Pole], replay: &dyn Replays) {
    let own = |p: &Pole| replay.rank(p.savings.own);
    poles.sort_by_key(|p| (Reverse(own(p)), Reverse(p.on_path), p.nodes[0]));
}

/// Says for each pole which of the others lies inside it and saves the most.
fn find_contained(forest: &Forest, poles: &mut IdVec<PoleId, Pole>) {
    let ranges: IdVec<PoleId, Vec<Range<NodeId>>> = poles.iter().map(|p| subtrees(forest, &p.nodes)).collect();
    let inside = |inner: PoleId, outer: PoleId| {
        let ranges_of = &ranges[outer];
        ranges[inner].iter().all(|r| {
            let before = ranges_of.partition_point(|o| o.start <= r.start);
            before.checked_sub(1).is_some_and(|i| r.end <= ranges_of[i].end)
        })
    };
    let zero = |p: &Pole| p.savings.if_zero.low + p.savings.if_zero.high;
    for outer in poles.ids() {
        // All lies inside the run, whose savings are those of its own time; inside a part of own time lies nothing.
        if poles[outer].nodes[0] == NodeId::RUN || poles[outer].part.is_some() {
            (poles[outer].contains, poles[outer].contains_all) = (None, false);
            continue;
        }
        let inner = poles.ids().filter(|&inner| inner != outer && inside(inner, outer) && !inside(outer, inner));
        let contains = inner.filter(|&i| zero(&poles[i]) > Nanos::ZERO).max_by_key(|&i| (zero(&poles[i]), Reverse(i)));
        poles[outer].contains = contains;
        poles[outer].contains_all = contains.is_some_and(|inner| is_inside_in_time(forest, &poles[inner].nodes, &poles[outer].nodes));
    }
}

/// Whether these nodes begin and end while one of the others is open.
fn is_inside_in_time(forest: &Forest, inner: &[NodeId], outer: &[NodeId]) -> bool {
    let times = |nodes: &[NodeId]| intervals::union(nodes.iter().map(|&node| (forest[node].range.start, forest[node].range.end)).collect());
    let outer = times(outer);
    let holds = |(from, to): (Timestamp, Timestamp)| {
        let after = outer.partition_point(|(start, _)| *start <= from);
        after.checked_sub(1).is_some_and(|place| to <= outer[place].1)
    };
    times(inner).into_iter().all(holds)
}

/// Nodes that make a pole.
struct PoleNodes {
    on_path: Nanos,
    /// In tree order.
    nodes: Vec<NodeId>,
    outlier: Option<Outlier>,
}

/// The outermost nodes of a pole, each with those of the pole below it.
struct Operation {
    nodes: Range<NodeId>,
    length: Nanos,
    on_path: Nanos,
}

impl PoleNodes {
    /// The operation that stands out, then the others; all of them where none does. What lies inside another one is that one's.
    fn without_outlier(self, forest: &Forest, path: &CriticalPath) -> Vec<PoleNodes> {
        let mut operations: Vec<Operation> = Vec::new();
        for &n in &self.nodes {
            match operations.last_mut() {
                Some(last) if n < last.nodes.end => last.on_path += path.on_path[n],
                _ => operations.push(Operation {
                    nodes: n..forest[n].subtree_end,
                    length: Nanos(forest[n].range.nanos()),
                    on_path: path.on_path[n],
                }),
            }
        }
        let Some(first) = operations.iter().max_by_key(|it| (it.length, Reverse(it.nodes.start))) else { return vec![self] };
        let others = operations.iter().filter(|it| it.nodes.start != first.nodes.start);
        let Some(next) = others.map(|it| it.length).max() else { return vec![self] };
        if first.on_path <= self.on_path / 2 || first.length / OUTLIER_FACTOR < next {
            return vec![self];
        }
        let (nodes, rest): (Vec<NodeId>, Vec<NodeId>) = self.nodes.into_iter().partition(|n| first.nodes.contains(n));
        let rest = PoleNodes { on_path: self.on_path - first.on_path, nodes: rest, outlier: None };
        let outlier = PoleNodes { on_path: first.on_path, nodes, outlier: Some(Outlier { of: operations.len(), next }) };
        std::iter::once(outlier).chain((rest.on_path > Nanos::ZERO).then_some(rest)).collect()
    }
}

impl Poles {
    /// Finds, replays and ranks.
    pub fn new(recording: &Recording, forest: &Forest, path: &CriticalPath, replay: &dyn Replays) -> Poles {
        // A profile of sums has no times; the spans that it was linked to have.
        if recording.run.mode == CaptureMode::Imported && recording.spans.is_empty() {
            return Poles { between: path.on_path.iter().sum(), ..Poles::default() };
        }
        let contexts = contexts(recording, forest);
        let urns = urns(recording, forest);
        // A server and its clients are different work, even if one program is both.
        let is_server = |n: NodeId| replay.is_server(n);
        let key = |n: NodeId| {
            let urn = urns.get(n).copied().flatten();
            let told = contexts[n].map(|context| forest.name(recording, context));
            let context = urn.or(told);
            (forest.service(recording, n), forest.name(recording, n), context, urn.is_some(), is_server(n))
        };
        // Between the spans of a file nobody worked.
        let own = path.on_path[NodeId::RUN];
        let is_worth_naming = recording.run.exit.is_some() && own > Nanos(forest.run_range().nanos()) / RUN_PART;
        let run_counts = forest.len() == 1 || (!recording.processes.is_empty() && (is_worth_naming || path.is_mostly_of_run(forest)));
        let counted = || forest.ids().skip(usize::from(!run_counts));
        // For each group its time on the path and its first node, and for each node its group.
        let mut groups: IdVec<GroupId, (Nanos, NodeId)> = IdVec::default();
        let mut known = FastMap::default();
        for n in counted().filter(|&n| path.on_path[n] > Nanos::ZERO) {
            let group = *known.entry(key(n)).or_insert_with(|| groups.push((Nanos::ZERO, n)));
            groups[group].0 += path.on_path[n];
        }
        let mut group_of: IdVec<NodeId, Option<GroupId>> = IdVec::filled(None, forest.len());
        for n in counted() {
            if let Some(&group) = known.get(&key(n)) {
                group_of[n] = Some(group);
                groups[group].1 = groups[group].1.min(n);
            }
        }
        drop(known);
        let mut ranked: Vec<GroupId> = groups.ids().collect();
        ranked.sort_by_key(|&group| (Reverse(groups[group].0), groups[group].1));
        let candidates = (REPLAYED_NODES_MAX / forest.len()).clamp(CANDIDATES_MIN, CANDIDATES_MAX);
        let omitted = ranked.split_off(ranked.len().min(candidates));
        let (truncated, truncated_on_path) = (omitted.len(), omitted.iter().map(|&group| groups[group].0).sum());
        let between = if run_counts { Nanos::ZERO } else { own };
        let mut nodes: FastMap<GroupId, Vec<NodeId>> = ranked.iter().map(|&group| (group, Vec::new())).collect();
        for (n, group) in group_of.enumerated() {
            if let Some(nodes) = group.and_then(|group| nodes.get_mut(&group)) {
                nodes.push(n);
            }
        }
        drop(group_of);
        let mut parts: Vec<PoleNodes> = Vec::new();
        for (rank, group) in ranked.into_iter().enumerate() {
            let Some(nodes) = nodes.remove(&group) else { continue };
            let whole = PoleNodes { on_path: groups[group].0, nodes, outlier: None };
            // Each part is replayed.
            if rank < CANDIDATES_MIN { parts.extend(whole.without_outlier(forest, path)) } else { parts.push(whole) }
        }
        let paths = OnPath::new(path);
        let mut poles: Vec<Pole> = parts
            .into_iter()
            .map(|PoleNodes { on_path, nodes, outlier }| {
                let (service, name, context, is_urn, _) = key(nodes[0]);
                let (savings, limited_by) = replay.saves_nodes(&nodes, &paths);
                Pole {
                    savings: Savings::new(replay, &nodes, savings),
                    nodes,
                    service: service.to_owned(),
                    name: name.to_owned(),
                    context: context.map(|c| if is_urn { title_of_urn(c) } else { c.to_owned() }),
                    resource: context.filter(|_| is_urn).map(str::to_owned),
                    part: None,
                    on_path,
                    outlier,
                    contains: None,
                    contains_all: false,
                    limited_by,
                }
            })
            .collect();
        rank(&mut poles, replay);
        let mut poles: IdVec<PoleId, Pole> = poles.into();
        find_contained(forest, &mut poles);
        Poles { poles, truncated, truncated_on_path, between, idle: Nanos::ZERO }
    }

    /// The same with the parts of poles in their place, where `parts` has some. They must be all of the pole's own time on the path.
    pub(crate) fn with_parts(
        self,
        forest: &Forest,
        path: &CriticalPath,
        replay: &dyn Replays,
        parts: impl Fn(&Pole) -> Vec<PolePart>,
    ) -> Poles {
        let paths = OnPath::new(path);
        let (mut is_split, mut idle) = (false, Nanos::ZERO);
        let mut poles = Vec::with_capacity(self.poles.len());
        for pole in self.poles {
            let mut parts = parts(&pole);
            if parts.is_empty() {
                poles.push(pole);
                continue;
            }
            is_split = true;
            parts.retain(|part| {
                let is_idle = matches!(part.kind, PartKind::Waits(WaitKind::Idle, _));
                idle += if is_idle { part.takes() } else { Nanos::ZERO };
                !is_idle
            });
            for part in parts {
                let on_path = part.takes();
                let ([if_zero, if_half], limited_by) = replay.saves_part(&part, on_path, &paths);
                let savings = Savings { if_zero, if_half, own: if_zero, evidence: pole.savings.evidence };
                poles.push(Pole { part: Some(part), on_path, savings, contains: None, contains_all: false, limited_by, ..pole.clone() });
            }
        }
        if !is_split {
            return Poles { poles: poles.into(), ..self };
        }
        rank(&mut poles, replay);
        let mut poles: IdVec<PoleId, Pole> = poles.into();
        find_contained(forest, &mut poles);
        Poles { poles, idle, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{Id, text};

    /// Each pole as `name @context ×count on-path own-saving evidence`, in milliseconds.
    fn check(input: &str, expected: &[&str]) {
        let recording = text::parse(input).unwrap();
        let forest = Forest::build(&recording);
        let path = CriticalPath::new(&recording, &forest);
        let poles = Poles::new(&recording, &forest, &path, &Replay::new(&recording, &forest));
        let millis = |nanos: Nanos| nanos.0 / 1_000_000;
        let drawn: Vec<String> = poles
            .poles
            .iter()
            .map(|p| {
                let context = p.context.as_ref().map(|c| format!(" @{c}")).unwrap_or_default();
                let own = p.savings.own;
                let (name, count, evidence) = (&p.name, p.nodes.len(), p.savings.evidence.as_str());
                format!("{name}{context} ×{count} {} {}-{} {evidence}", millis(p.on_path), millis(own.low), millis(own.high))
            })
            .collect();
        assert_eq!(drawn, expected);
    }

    #[test]
    fn pieces_of_work_are_poles_of_their_own() {
        check(
            "\
run up  0..100ms
  up  0..100ms  engine
    create web  0..40ms  engine
      Create  1..39ms  aws
    create db  41..99ms  engine  <- create web
      Create  42..98ms  aws
    create dns  0..5ms  engine
      Create  1..4ms  aws
",
            &[
                "Create @create db ×1 56 56-56 declared",
                "Create @create web ×1 38 38-38 declared",
                "up ×1 2 2-2 declared",
                "create web ×1 2 2-2 declared",
                "create db ×1 2 2-2 declared",
            ],
        );
    }

    #[test]
    fn a_pole_says_which_other_one_explains_it() {
        let contained = |input: &str| -> Vec<String> {
            let report = crate::Report::new(text::parse(input).unwrap());
            let name = |i: PoleId| format!("p{} {}", i.place() + 1, report.poles()[i].name);
            let inner = |p: &Pole| format!("{}{}", if p.contains_all { "" } else { "part of " }, p.contains.map(name).unwrap_or_default());
            let line = |(i, p): (PoleId, &Pole)| match p.contains {
                None => format!("{} contains nothing", name(i)),
                Some(_) => format!("{} contains {}", name(i), inner(p)),
            };
            report.poles().enumerated().map(line).collect()
        };
        assert_eq!(
            contained(
                "run x 0..100ms\n  deploy 0..100ms\n    plan 1..10ms\n    create web 11..80ms\n      bundle 12..79ms\n      send 79..80ms\n"
            ),
            [
                "p1 bundle contains nothing",
                "p2 deploy contains p4 create web",
                "p3 plan contains nothing",
                "p4 create web contains p1 bundle",
                "p5 send contains nothing",
            ]
        );
        // One of the calls lies outside.
        assert_eq!(
            contained("run x 0..100ms\n  outer 0..60ms\n    call 1..50ms\n  call 61..99ms\n"),
            ["p1 call contains nothing", "p2 outer contains nothing"]
        );
        // A call goes on after its caller.
        assert_eq!(
            contained("run x 0..100ms\n  outer 0..60ms\n    call 1..90ms\n"),
            ["p1 call contains nothing", "p2 x contains nothing", "p3 outer contains part of p1 call"]
        );
        // A recursion lies inside itself.
        assert_eq!(contained("run x 0..9ms\n  a 0..9ms\n    a 1..8ms\n"), ["p1 a contains nothing"]);
    }

    #[test]
    fn calls_in_sequence_are_one_pole() {
        let mut text = "run up  0..100ms\n  up 0..100ms engine\n".to_owned();
        for i in 0..48 {
            text.push_str(&format!("    postEngineEventBatch {}..{}ms engine\n", 2 * i + 1, 2 * i + 3));
        }
        check(&text, &["postEngineEventBatch ×48 96 96-96 inferred", "up ×1 4 4-4 declared"]);
    }

    #[test]
    fn a_call_that_stands_out_is_a_pole_without_the_others() {
        let mut text = "run up  0..1000ms\n  up 0..1000ms engine\n".to_owned();
        for i in 0..20 {
            text.push_str(&format!("    Create {}..{}ms engine\n", 10 * i + 1, 10 * i + 9));
        }
        text.push_str("    Create 201..999ms engine\n");
        check(&text, &["Create ×1 798 798-798 inferred", "Create ×20 160 160-160 inferred", "up ×1 42 42-42 declared"]);
        // Three times as long as the next: there is more than one to fix.
        let near =
            "run up  0..100ms\n  up 0..100ms engine\n    Create 1..10ms engine\n    Create 10..30ms engine\n    Create 30..99ms engine\n";
        check(near, &["Create ×3 98 98-98 inferred", "up ×1 2 2-2 declared"]);
        // Those that run beside it count as well.
        let beside = "run x  0..100ms\n  a 0..100ms svc\n    call 1..99ms svc\n    call 1..50ms svc\n";
        check(beside, &["call ×2 98 98-98 declared", "a ×1 2 2-2 declared"]);
        let short = "run x  0..100ms\n  a 0..100ms svc\n    call 1..99ms svc\n      call 2..98ms svc\n    call 1..20ms svc\n";
        check(short, &["call ×2 98 79-79 declared", "a ×1 2 2-2 declared"]);
    }

    #[test]
    fn the_run_is_a_pole_by_its_own_time() {
        check("run x 0..100ms\n", &["x ×1 100 100-100 declared"]);
        check("run x 0..100ms\n  tiny 10..11ms\n", &["x ×1 99 99-99 declared", "tiny ×1 1 1-1 declared"]);
        // Two runs in a file.
        check("one 10..13ms\ntwo 90..91ms\n", &["one ×1 3 3-3 inferred", "two ×1 1 1-1 inferred"]);
        check("run x 0..100ms\n  most 10..90ms\n", &["most ×1 80 80-80 declared", "x ×1 20 20-20 declared"]);
        check("run x 0..100ms\n  most 1..97ms\n", &["most ×1 96 96-96 declared"]);
    }

    #[test]
    fn what_is_off_the_path_is_no_pole() {
        check("run x 0..100ms\n  long 0..100ms\n  short 0..50ms\n", &["long ×1 100 50-50 declared"]);
    }
}
