//! Cuts cycles and lays the tree out in pre-order.

use std::cmp::Reverse;
use std::sync::OnceLock;

use longpole_model::Timestamp;
use longpole_model::fast_hash::FastMap;

use super::Builder;
use super::parents::ParentRef;
use crate::note::Note;
use crate::tree::clock_skew::SKEW_NANOS;
use crate::tree::forest::{Edge, Forest, NONE, Node};
use crate::tree::placement::SpanAliases;
use crate::tree::span_list::SpanList;

impl Builder<'_> {
    /// What decides between siblings, and which edge of a cycle is cut: never the order of arrival.
    fn key(&self, entity: usize) -> (Timestamp, bool, [u8; 24], usize) {
        let spans = self.spans.len();
        let mut id = [0; 24];
        if entity < spans {
            let span = self.spans.head(entity);
            id[..16].copy_from_slice(&span.trace_id.bytes());
            id[16..].copy_from_slice(&span.span_id.bytes());
            (self.start(entity), true, id, entity)
        } else {
            let process = entity - spans;
            id[..4].copy_from_slice(&self.recording.processes[process].pid.to_be_bytes());
            (self.start(entity), false, id, entity)
        }
    }

    /// Cuts each cycle at its earliest member, which then hangs under the run.
    pub(super) fn break_cycles(&mut self, place: &mut [ParentRef], edge: &mut [Edge], present: &[bool]) -> Vec<bool> {
        const NEW: u8 = 0;
        const ON_WALK: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; place.len()];
        let mut broken = vec![false; place.len()];
        let mut walk = Vec::new();
        for first in (0..place.len()).filter(|&e| present[e]) {
            let mut at = first;
            while state[at] == NEW {
                state[at] = ON_WALK;
                walk.push(at);
                match place[at] {
                    ParentRef::Run => break,
                    ParentRef::Entity(next) => at = next as usize,
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
        place: &[ParentRef],
        edge: &[Edge],
        present: &[bool],
        cycle_broken: &[bool],
        aliases: &SpanAliases,
        has_placement_rules: bool,
    ) -> Forest {
        let spans = self.spans.len();
        let mut order: Vec<u32> = (0..place.len() as u32).filter(|&e| present[e as usize]).collect();
        // The whole key only where starts are equal: it is longer than what it decides.
        order.sort_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            self.start(a).cmp(&self.start(b)).then_with(|| self.key(a).cmp(&self.key(b)))
        });
        // Children of each entity, then of the run, in that order: one counting pass, one filling pass.
        let run_slot = place.len();
        let slot = |e: usize| match place[e] {
            ParentRef::Run => run_slot,
            ParentRef::Entity(parent) => parent as usize,
        };
        let mut starts = vec![0u32; run_slot + 2];
        for &e in &order {
            starts[slot(e as usize) + 1] += 1;
        }
        for i in 0..=run_slot {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let mut children = vec![0u32; order.len()];
        for &e in &order {
            let at = &mut fill[slot(e as usize)];
            children[*at as usize] = e;
            *at += 1;
        }
        drop((order, fill));
        let children_of = |slot: usize| children[starts[slot] as usize..starts[slot + 1] as usize].iter().map(|&e| e as usize);

        let mut nodes = Vec::with_capacity(children.len() + 1);
        nodes.push(Node {
            range: self.run,
            source: NONE,
            parent: NONE,
            subtree_end: 0,
            depth: 0,
            is_process: true,
            edge: Edge::Root,
            orphan: false,
            cycle_broken: false,
            clamped: false,
        });
        let mut node_of = vec![0u32; place.len()];
        let mut stack: Vec<(u32, u32)> = children_of(run_slot).rev().map(|e| (e as u32, 0)).collect();
        while let Some((e, parent)) = stack.pop() {
            let e = e as usize;
            let (source, range, clamped) = if e < spans {
                let head = self.spans.head(e);
                (head.example, self.span_ranges[e], head.end < head.start)
            } else {
                ((e - spans) as u32, self.processes.ranges[e - spans].unwrap_or(self.run), false)
            };
            let index = nodes.len() as u32;
            node_of[e] = index;
            nodes.push(Node {
                range,
                source,
                parent,
                subtree_end: 0,
                depth: nodes[parent as usize].depth + 1,
                is_process: e >= spans,
                edge: edge[e],
                orphan: e < spans && self.claims[e].is_orphan(),
                cycle_broken: cycle_broken[e],
                clamped,
            });
            stack.extend(children_of(e).rev().map(|child| (child as u32, index)));
        }
        drop((children, starts));
        for i in (0..nodes.len()).rev() {
            nodes[i].subtree_end = nodes[i].subtree_end.max(i as u32 + 1);
            if let Some(parent) = nodes[i].parent() {
                nodes[parent].subtree_end = nodes[parent].subtree_end.max(nodes[i].subtree_end);
            }
        }

        let clamped = nodes.iter().filter(|n| n.clamped).count();
        self.notes.extend(Note::counted(clamped, Note::EndsClamped));
        let skewed = nodes.iter().filter(|n| {
            let early = n.parent().map_or(0, |p| nodes[p].range.start.nanos_since(n.range.start));
            n.edge == Edge::Declared && n.parent() != Some(0) && early > SKEW_NANOS
        });
        let skewed = skewed.count();
        self.notes.extend(Note::counted(skewed, Note::ClockSkew));

        let mut span_of_alias = FastMap::default();
        for &(id, span) in &aliases.ids {
            span_of_alias.entry(id).or_insert(span as u32);
        }
        let node_of_process = (0..self.recording.processes.len())
            .map(|p| {
                let mut program = Some(p);
                while let Some(q) = program.filter(|&q| self.processes.folded[q]) {
                    program = self.processes.parent[q];
                }
                let program = program?;
                let is_root = Some(program) == self.processes.root;
                if is_root { Some(0) } else { self.processes.takes_part[program].then(|| node_of[spans + program] as usize) }
            })
            .collect();
        let mut node_of_span = node_of;
        node_of_span.truncate(spans);
        if let SpanList::Outline { heads, examples } = self.spans {
            // A span that links name is an example for itself alone.
            let mut nodes = vec![0; examples.len()];
            heads.iter().zip(node_of_span).for_each(|(head, node)| nodes[head.example as usize] = node);
            node_of_span = nodes;
        }
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
            node_of_span,
            node_of_process,
            processes_of_pid: self.processes.of_pid,
            process_ranges: self.processes.ranges,
        }
    }
}
