//! Cuts cycles and lays the tree out in pre-order.

use std::cmp::Reverse;
use std::sync::OnceLock;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, NodeId, ProcessRow, SpanRow, Timestamp};

use super::parents::ParentRef;
use super::{Builder, Entity, MadeFrom};
use crate::lists::Lists;
use crate::note::Note;
use crate::tree::clock_skew::SKEW_NANOS;
use crate::tree::forest::{Edge, Forest, Node, NodeSource};
use crate::tree::placement::SpanAliases;
use crate::tree::span_list::{ListedSpan, SpanList};

impl Builder<'_> {
    /// What decides between siblings, and which edge of a cycle is cut: never the order of arrival.
    fn key(&self, entity: Entity) -> (Timestamp, bool, [u8; 24], Entity) {
        let mut id = [0; 24];
        match entity.made_from(self.spans) {
            MadeFrom::Span(span) => {
                let span = self.spans.head(span);
                id[..16].copy_from_slice(&span.trace_id.bytes());
                id[16..].copy_from_slice(&span.span_id.bytes());
                (self.start(entity), true, id, entity)
            }
            MadeFrom::Process(process) => {
                id[..4].copy_from_slice(&self.recording.processes[process].pid.to_be_bytes());
                (self.start(entity), false, id, entity)
            }
        }
    }

    /// Cuts each cycle at its earliest member, which then hangs under the run.
    pub(super) fn break_cycles(
        &mut self,
        place: &mut IdVec<Entity, ParentRef>,
        edge: &mut IdVec<Entity, Edge>,
        present: &IdVec<Entity, bool>,
    ) -> IdVec<Entity, bool> {
        const NEW: u8 = 0;
        const ON_WALK: u8 = 1;
        const DONE: u8 = 2;
        let mut state: IdVec<Entity, u8> = IdVec::filled(NEW, place.len());
        let mut broken: IdVec<Entity, bool> = IdVec::filled(false, place.len());
        let mut walk = Vec::new();
        for first in place.ids().filter(|&e| present[e]) {
            let mut at = first;
            while state[at] == NEW {
                state[at] = ON_WALK;
                walk.push(at);
                match place[at] {
                    ParentRef::Run => break,
                    ParentRef::Entity(next) => at = next,
                }
            }
            if state[at] == ON_WALK
                && let ParentRef::Entity(_) = place[at]
                && let Some(begin) = walk.iter().position(|&e| e == at)
                && let Some(&cut) = walk[begin..].iter().min_by_key(|&&e| self.key(e))
            {
                place[cut] = ParentRef::Run;
                edge[cut] = Edge::Inferred;
                broken[cut] = true;
            }
            for e in walk.drain(..) {
                state[e] = DONE;
            }
        }
        let count = broken.iter().filter(|b| **b).count();
        self.notes.extend(Note::counted(count, Note::Cycles));
        broken
    }

    pub(super) fn lay_out(
        mut self,
        place: &IdVec<Entity, ParentRef>,
        edge: &IdVec<Entity, Edge>,
        present: &IdVec<Entity, bool>,
        cycle_broken: &IdVec<Entity, bool>,
        maybe: &[(ProcessRow, ListedSpan)],
        aliases: &SpanAliases,
        has_placement_rules: bool,
    ) -> Forest {
        let mut order: Vec<Entity> = place.ids().filter(|&e| present[e]).collect();
        // The whole key only where starts are equal: it is longer than what it decides.
        order.sort_by(|&a, &b| self.start(a).cmp(&self.start(b)).then_with(|| self.key(a).cmp(&self.key(b))));
        // Children of each entity, in that order; those of the run stand under the entity that would come next.
        let run = place.next_id();
        let above = |entity: &Entity| match place[*entity] {
            ParentRef::Run => (run, *entity),
            ParentRef::Entity(parent) => (parent, *entity),
        };
        let children = Lists::group(place.len() + 1, order.iter().map(above));
        let count = order.len() + 1;
        drop(order);

        let mut nodes: IdVec<NodeId, Node> = IdVec::with_capacity(count);
        nodes.push(Node {
            range: self.run,
            source: NodeSource::Root,
            parent: None,
            subtree_end: NodeId::RUN,
            depth: 0,
            edge: Edge::Root,
            orphan: false,
            cycle_broken: false,
            clamped: false,
        });
        let mut node_of: IdVec<Entity, NodeId> = IdVec::filled(NodeId::RUN, place.len());
        let mut stack: Vec<(Entity, NodeId)> = children.get(run).iter().rev().map(|&e| (e, NodeId::RUN)).collect();
        while let Some((e, parent)) = stack.pop() {
            let (source, range, orphan, clamped) = match e.made_from(self.spans) {
                MadeFrom::Span(span) => {
                    let head = self.spans.head(span);
                    (NodeSource::Span(head.example), self.span_ranges[span], self.claims[span].is_orphan(), head.end < head.start)
                }
                MadeFrom::Process(process) => {
                    (NodeSource::Process(process), self.processes.ranges[process].unwrap_or(self.run), false, false)
                }
            };
            let node = nodes.push(Node {
                range,
                source,
                parent: Some(parent),
                subtree_end: NodeId::RUN,
                depth: nodes[parent].depth + 1,
                edge: edge[e],
                orphan,
                cycle_broken: cycle_broken[e],
                clamped,
            });
            node_of[e] = node;
            stack.extend(children.get(e).iter().rev().map(|&child| (child, node)));
        }
        drop(children);
        for node in nodes.ids().rev() {
            let end = nodes[node].subtree_end.max(node.next());
            nodes[node].subtree_end = end;
            if let Some(parent) = nodes[node].parent {
                nodes[parent].subtree_end = nodes[parent].subtree_end.max(end);
            }
        }

        let clamped = nodes.iter().filter(|n| n.clamped).count();
        self.notes.extend(Note::counted(clamped, Note::EndsClamped));
        let skewed = nodes.iter().filter(|n| {
            let early = n.parent.map_or(0, |p| nodes[p].range.start.nanos_since(n.range.start));
            n.edge == Edge::Declared && n.parent != Some(NodeId::RUN) && early > SKEW_NANOS
        });
        let skewed = skewed.count();
        self.notes.extend(Note::counted(skewed, Note::ClockSkew));

        let mut span_of_alias = FastMap::default();
        for &(id, span) in &aliases.ids {
            span_of_alias.entry(id).or_insert(span);
        }
        let node_of_process = |p: ProcessRow| {
            let program = self.processes.above.program[p]?;
            let is_root = Some(program) == self.processes.root;
            let own = || self.processes.takes_part[program].then(|| node_of[Entity::of_process(program, self.spans)]);
            if is_root { Some(NodeId::RUN) } else { own() }
        };
        let node_of_process: IdVec<ProcessRow, Option<NodeId>> = self.recording.process_rows().map(node_of_process).collect();
        let node_of_pair = |&(process, span): &(ProcessRow, ListedSpan)| {
            (node_of[Entity::of_process(process, self.spans)], node_of[Entity::of_span(span)])
        };
        let mut maybe_inside: Vec<(NodeId, NodeId)> = maybe.iter().map(node_of_pair).collect();
        maybe_inside.sort_unstable();
        let node_of_listed = node_of.into_iter().take(self.spans.len());
        let node_of_span = match self.spans {
            SpanList::Whole(_) => node_of_listed.collect(),
            SpanList::Outline { heads, examples } => {
                // A span that links name is an example for itself alone.
                let mut nodes: IdVec<SpanRow, NodeId> = IdVec::filled(NodeId::RUN, examples.len());
                heads.iter().zip(node_of_listed).for_each(|(head, node)| nodes[head.example] = node);
                nodes
            }
        };
        // Notes of one code say one thing; the earliest word order is kept.
        self.notes.sort_by_key(|note| Reverse(note.count()));
        self.notes.sort_by_key(Note::code);
        Forest {
            nodes,
            notes: self.notes,
            run_id: (self.recording.run.trace_id, self.recording.run.root_span_id),
            span_index: OnceLock::new(),
            span_of_alias,
            has_placement_rules,
            maybe_inside,
            node_of_span,
            node_of_process,
            processes_of_pid: self.processes.of_pid,
            process_ranges: self.processes.ranges,
            root_process: self.processes.root,
        }
    }
}
