//! What a start may have waited for, where no link says so: by order, by chance, or by a ceiling of work in flight.

use std::collections::HashMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::{IdVec, Nanos, NodeId, Recording};

use crate::note::{FirstOf, Note, SlotLimit};
use crate::schedule::concurrency_limit::{self, LimitedJobs};
use crate::schedule::recorded::{Schedule, started_under};
use crate::tree::forest::Forest;

/// Gaps up to this are never so long that order may be chance.
const CHANCE_GAP_NANOS: Nanos = Nanos(1_000_000);

/// A gap of this multiple of its parent's usual one may follow by chance.
const CHANCE_GAP_FACTOR: i64 = 16;

/// A start that ends a silence follows what ended in the last twentieth of it: by chance it would with less than this probability.
///
/// ```text
/// a  ├──────────────────────────────┤
/// b  ├──┤   nothing starts            ├── c ──┤     c waited for a
/// ```
const SILENCE_PART: i64 = 20;

/// Starts in the wake of a silence that show that their host was blocked: by chance each would be in it as likely as in the silence.
const WAKE_MIN: usize = 5;

/// Children of a name that make its usual gap.
const OF_NAME_MIN: usize = 4;

/// Children that follow each other without overlap by chance with less than this probability were ordered.
const SERIAL_CHANCE: f64 = 0.05;

/// What order says about a schedule.
pub(super) struct Inferred {
    /// For each node whether the order of its start may be chance.
    pub(super) chance: IdVec<NodeId, bool>,
    /// Where it may be: the end of a longer phase that it surely followed, if there is one.
    pub(super) after_phase: FastMap<NodeId, NodeId>,
    /// For each node whether order told what some child of it waited for.
    pub(super) ordered: IdVec<NodeId, bool>,
    /// Jobs that share slots.
    pub(super) pools: Vec<LimitedJobs>,
    /// What a reader must know of them.
    pub(super) notes: Vec<Note>,
}

/// The median gap between the starts under a host and the last end before them (before the first end: the host's start).
fn usual_gap(s: &Schedule, host: NodeId, children: &[NodeId]) -> Nanos {
    let gap = |&c: &NodeId| s.start[c] - s.last_ended_before(c).map_or(s.start[host], |last| s.end[last]);
    let mut gaps: Vec<Nanos> = children.iter().map(gap).collect();
    let middle = gaps.len() / 2;
    *gaps.select_nth_unstable(middle).1
}

/// The longest gap that is usual before children of a name, for those names that several have: an engine that does two kinds of things
/// does each at its own pace.
fn limits_by_name<'a>(s: &Schedule, host: NodeId, children: &[NodeId], name: impl Fn(NodeId) -> &'a str) -> HashMap<&'a str, Nanos> {
    let mut named: HashMap<&str, Vec<NodeId>> = HashMap::new();
    children.iter().for_each(|&c| named.entry(name(c)).or_default().push(c));
    named.retain(|_, of_name| of_name.len() >= OF_NAME_MIN && of_name.len() < children.len());
    named.into_iter().map(|(name, of_name)| (name, usual_gap(s, host, &of_name) * CHANCE_GAP_FACTOR)).collect()
}

/// Whether children stand one after the other, and too densely for that to be chance.
fn is_serial(s: &Schedule, host: NodeId, children: &[NodeId]) -> bool {
    let length = (s.end[host] - s.start[host]).max(Nanos(1));
    let free = s.own_total(host).0 as f64 / length.0 as f64;
    // Exponents beyond this make no difference.
    let pieces = i32::try_from(children.len()).unwrap_or(i32::MAX).min(1000);
    free.powi(pieces) < SERIAL_CHANCE && children.iter().all(|&c| s.in_flight[c] == 0)
}

/// The end of a phase: a moment at which nothing ran under a host any more.
struct PhaseEnd {
    at: Nanos,
    /// What ended last.
    last: NodeId,
    /// How long it was since the phase before.
    length: Nanos,
}

/// For children in order of their start: the last phase in whose wake each started, which is within a twentieth of its length. By chance it
/// would with less than that probability.
///
/// ```text
/// a  ├─────────────────────────┤
/// b     ├──────────┤             ├┤ log   ├┤ log   ├── c ──┤     c followed a
/// ```
///
/// So did all that started in the wake of a silence, as long after it as it was long, if they are several: a host that begins one thing after
/// the other and then nothing for so long is blocked.
fn phases(s: &Schedule, children: &[NodeId], mut found: impl FnMut(NodeId, Option<NodeId>)) {
    let mut ended: Vec<PhaseEnd> = Vec::new();
    let mut open: Option<(Nanos, NodeId)> = None;
    let mut started = children.first().map_or(Nanos::ZERO, |&first| s.start[first]);
    for (i, &c) in children.iter().enumerate() {
        let silence = s.start[c] - std::mem::replace(&mut started, s.start[c]);
        if let Some((since, last)) = open.filter(|&(_, last)| s.end[last] <= s.start[c]) {
            ended.push(PhaseEnd { at: s.end[last], last, length: s.end[last] - since });
            open = None;
        }
        if let Some(last) = s.last_ended_before(c).filter(|&last| s.start[c] - s.end[last] <= silence / SILENCE_PART) {
            let wake = children[i..].partition_point(|&later| s.start[later] <= s.end[last] + silence);
            if wake >= WAKE_MIN {
                ended.push(PhaseEnd { at: s.end[last], last, length: silence * SILENCE_PART });
            }
        }
        // Those left are few: each is as long as all that came after it, or longer.
        ended.retain(|phase| s.start[c] - phase.at <= phase.length / SILENCE_PART);
        found(c, ended.last().map(|phase| phase.last));
        // What nobody waits for holds no phase open.
        if s.end_host[c].is_some() {
            open = Some(match open {
                Some((since, last)) => (since, if s.end[c] > s.end[last] { c } else { last }),
                None => (s.start[c], c),
            });
        }
    }
}

/// Finds for every start what it may have waited for.
pub(super) fn infer(s: &Schedule, recording: &Recording, forest: &Forest) -> Inferred {
    let (mut chance, mut ordered) = (IdVec::filled(false, s.len()), IdVec::filled(false, s.len()));
    let mut after_phase = FastMap::default();
    let started_under = started_under(s);
    let mut limit: IdVec<NodeId, Nanos> = IdVec::filled(CHANCE_GAP_NANOS, s.len());
    for (host, children) in started_under.iter().filter(|(_, c)| !c.is_empty()) {
        limit[host] = CHANCE_GAP_NANOS.max(usual_gap(s, host, children) * CHANCE_GAP_FACTOR);
        let serial = is_serial(s, host, children);
        // Few hosts have a child that comes so late, and only there do names and phases matter.
        let mut limit_of_name = None;
        let mut by_chance = false;
        let mut started = s.start[host];
        for &c in children {
            let silence = s.start[c] - std::mem::replace(&mut started, s.start[c]);
            let last = if s.is_declared(c) { s.phase_before(c) } else { s.last_ended_before(c) };
            let Some(last) = last else { continue };
            ordered[host] = true;
            let gap = s.start[c] - s.end[last];
            if serial || gap <= limit[host] || gap <= silence / SILENCE_PART {
                continue;
            }
            let name = |c| forest.name(recording, c);
            let limits = limit_of_name.get_or_insert_with(|| limits_by_name(s, host, children, name));
            chance[c] = limits.get(name(c)).is_none_or(|&usual| gap > usual);
            by_chance |= chance[c];
        }
        if by_chance {
            phases(s, children, |c, phase| after_phase.extend(phase.filter(|_| chance[c]).map(|phase| (c, phase))));
        }
    }
    // The order of their starts says which process is at the other end of a pipe.
    for parent in s.stalls.keys().filter_map(|&node| s.parent[node]) {
        ordered[parent] = true;
    }
    let pools = concurrency_limit::find(recording, forest, s, &started_under, &limit);
    let limit = |pool: &LimitedJobs| SlotLimit { slots: pool.slots, host: forest.name(recording, pool.host).to_owned() };
    let limits: FirstOf<SlotLimit> = pools.iter().map(limit).collect();
    let notes = if limits.all > 0 { vec![Note::LimitedSlots(limits)] } else { Vec::new() };
    Inferred { chance, after_phase, ordered, pools, notes }
}

/// For each node whether what it waited for is inferred. Once for all: a chain of spans may be as deep as there are spans.
pub(super) fn is_inferred(s: &Schedule, ordered: &IdVec<NodeId, bool>) -> IdVec<NodeId, bool> {
    let mut inferred: IdVec<NodeId, bool> = IdVec::filled(false, s.len());
    for node in s.nodes() {
        if let Some(parent) = s.parent[node] {
            inferred[node] = !s.declares[parent] && (ordered[parent] || inferred[parent]);
        }
    }
    inferred
}
