//! Roots that lie inside a span of another trace: one piece of work in several traces.
//!
//! A program that ignores the trace context it was given begins a trace of its own, and so does each step of a tool that never
//! heard of one. Their spans are then roots beside the operation that started them:
//!
//! ```text
//! trace A   cli   ├──────────────────────────────────┤
//! trace B   plan     ├─────────────────────────────┤        hangs under cli
//! trace C   load        ├─────┤                             hangs under plan
//! ```
//!
//! Time alone says where such a root belongs, so it is believed only where it leaves no choice:
//!
//! - *One cover.* From the outermost spans inwards, exactly one open span of each level lasts at least as long as the root. Where
//!   two do, the root stays at the level above.
//! - *Never across.* Operations that run beside each other meet at random, and then some begin inside and end outside of each other.
//!   If any two of a pair of names cross like that, the names are independent, also where others happen to lie inside.
//! - *Requests stay apart.* A server's or a consumer's span answers somebody else. It hangs under a command, and never under another
//!   request.
//! - *No operation inside itself.* A root never hangs below an outermost span of its own name.
//!
//! Only spans whose process is not known, or is no node because it works for others, are placed like this; the tree of processes says more
//! than time does.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use longpole_model::{Id, IdVec, SpanKind, Timestamp, ids};

use super::parents::{ParentClaim, ParentRef};
use super::{Builder, Entity};
use crate::tree::forest::Edge;
use crate::tree::span_list::ListedSpan;

/// Levels of spans descended to find where a root belongs.
const DESCENT_MAX: usize = 256;

/// Spans that are compared with one that starts while they are open: beyond, who crosses whom is known.
const CROSSING_MAX: usize = 64;

/// Two clocks, or the moment in which an operation ends what it called: who ends so much later still lies inside.
const SLACK_NANOS: i64 = 1_000_000;

ids! {
    /// A service and a name of its outermost spans.
    struct Operation;
}

/// Open spans of each level by end; `None` is the level of the outermost spans.
type Open = HashMap<Option<Entity>, BTreeSet<(Timestamp, ListedSpan)>>;

impl Builder<'_> {
    /// Hangs roots below the spans that cover them; the number of those.
    pub(super) fn nest_roots(&self, place: &mut IdVec<Entity, ParentRef>, edge: &mut IdVec<Entity, Edge>) -> usize {
        let is_root = |span: ListedSpan, place: &IdVec<Entity, ParentRef>| {
            place[Entity::of_span(span)] == ParentRef::Run
                && matches!(self.claims[span], ParentClaim::Nothing | ParentClaim::Unknown)
                && self.process_of(span).is_none_or(|process| !self.processes.takes_part[process])
        };
        // Roots, and spans whose parent is the run itself.
        let outermost: Vec<ListedSpan> = self.spans.ids().filter(|&span| place[Entity::of_span(span)] == ParentRef::Run).collect();
        // Requests alone, as in the traces of a service, have no command to hang under.
        let has_roots = outermost.iter().any(|&span| is_root(span, place));
        if !has_roots || outermost.len() < 2 || outermost.iter().all(|&span| self.is_request(span)) {
            return 0;
        }
        let operations = self.operations(&outermost);
        let crossing = self.crossing(&outermost, &operations);

        let mut starts: Vec<ListedSpan> = self.spans.ids().collect();
        starts.sort_by_key(|&i| self.opening_key(i));
        let mut ends = starts.clone();
        ends.sort_by_key(|&i| (self.end(i), Reverse(self.opening_key(i))));
        let mut ends = ends.into_iter().peekable();
        let mut open = Open::new();
        let mut nested = 0;
        for span in starts {
            let start = self.span_ranges[span].start;
            while let Some(ended) = ends.next_if(|&ended| self.end(ended) < start) {
                self.close(ended, place, &mut open);
            }
            let entity = Entity::of_span(span);
            if is_root(span, place)
                && let Some(cover) = self.cover(span, &open, &operations, &crossing)
            {
                place[entity] = ParentRef::Entity(Entity::of_span(cover));
                edge[entity] = Edge::Inferred;
                nested += 1;
            }
            open.entry(level(place[entity])).or_default().insert((self.end(span), span));
        }
        nested
    }

    /// The innermost span that alone can be the parent of a root.
    fn cover(
        &self,
        root: ListedSpan,
        open: &Open,
        operations: &HashMap<ListedSpan, Operation>,
        crossing: &HashSet<(Operation, Operation)>,
    ) -> Option<ListedSpan> {
        let range = self.span_ranges[root];
        let (own, is_request) = (operations[&root], self.is_request(root));
        let until = range.end.plus_nanos(-SLACK_NANOS.min(range.nanos() / 100));
        let mut found: Option<ListedSpan> = None;
        for _ in 0..DESCENT_MAX {
            let mut covers =
                open.get(&found.map(Entity::of_span)).into_iter().flat_map(|level| level.iter().rev().take_while(|(end, _)| *end >= until));
            let (Some(&(_, only)), None) = (covers.next(), covers.next()) else { break };
            let independent = |&other: &Operation| other == own || crossing.contains(&(own.min(other), own.max(other)));
            if operations.get(&only).is_some_and(independent) || (is_request && self.is_request(only)) {
                break;
            }
            found = Some(only);
        }
        found
    }

    /// The operation of each outermost span.
    fn operations(&self, outermost: &[ListedSpan]) -> HashMap<ListedSpan, Operation> {
        let mut numbers: HashMap<(&str, &str), Operation> = HashMap::new();
        let mut number = |span: ListedSpan| {
            let example = self.spans.example(span);
            let next = Operation::at(numbers.len());
            *numbers.entry((example.service_name(), &example.name)).or_insert(next)
        };
        outermost.iter().map(|&span| (span, number(span))).collect()
    }

    /// Pairs of operations, the smaller number first: one began inside the other and ended outside of it.
    fn crossing(&self, outermost: &[ListedSpan], operations: &HashMap<ListedSpan, Operation>) -> HashSet<(Operation, Operation)> {
        let mut by_start = outermost.to_vec();
        by_start.sort_by_key(|&i| self.opening_key(i));
        let mut open: BTreeSet<(Timestamp, ListedSpan)> = BTreeSet::new();
        let mut crossing = HashSet::new();
        for span in by_start {
            let range = self.span_ranges[span];
            while open.first().is_some_and(|&(end, _)| end <= range.start.plus_nanos(SLACK_NANOS)) {
                open.pop_first();
            }
            let own = operations[&span];
            for &(end, other) in open.iter().take(CROSSING_MAX) {
                if end.plus_nanos(SLACK_NANOS) >= range.end {
                    break;
                }
                let other = operations[&other];
                crossing.insert((own.min(other), own.max(other)));
            }
            open.insert((range.end, span));
        }
        crossing
    }

    /// Longer spans first where several start at one moment; never the order of arrival.
    fn opening_key(&self, span: ListedSpan) -> impl Ord {
        let head = self.spans.head(span);
        let range = self.span_ranges[span];
        (range.start, Reverse(range.end), head.trace_id, head.span_id, span)
    }

    fn end(&self, span: ListedSpan) -> Timestamp {
        self.span_ranges[span].end
    }

    fn close(&self, span: ListedSpan, place: &IdVec<Entity, ParentRef>, open: &mut Open) {
        let level = level(place[Entity::of_span(span)]);
        if let Some(spans) = open.get_mut(&level) {
            spans.remove(&(self.end(span), span));
            if spans.is_empty() {
                open.remove(&level);
            }
        }
    }

    /// Whether the span answers somebody else.
    fn is_request(&self, span: ListedSpan) -> bool {
        matches!(self.spans.example(span).kind, SpanKind::Server | SpanKind::Consumer)
    }
}

fn level(place: ParentRef) -> Option<Entity> {
    match place {
        ParentRef::Run => None,
        ParentRef::Entity(parent) => Some(parent),
    }
}
