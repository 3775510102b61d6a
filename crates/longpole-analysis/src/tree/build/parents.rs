//! What the parent id of each span says, and where the span hangs then.

use longpole_model::{IdVec, ProcessRow, Recording, SpanHead};

use super::{Builder, Entity};
use crate::note::Note;
use crate::tree::forest::Edge;
use crate::tree::placement::{PlacementRules, SpanAliases};
use crate::tree::span_list::{ListedSpan, SpanList};

/// Where something hangs, before nodes have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParentRef {
    Run,
    Entity(Entity),
}

/// What a span's parent id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParentClaim {
    Nothing,
    Run,
    Span(ListedSpan),
    /// A span of another tracer without a known parent, and the span that covers it.
    Covered {
        by: ListedSpan,
        orphan: bool,
    },
    Unknown,
}

impl ParentClaim {
    /// The span that it names.
    pub(super) fn span(self) -> Option<ListedSpan> {
        if let ParentClaim::Span(parent) = self { Some(parent) } else { None }
    }

    /// Whether it names a span that the recording does not hold.
    pub(super) fn is_orphan(self) -> bool {
        matches!(self, ParentClaim::Unknown | ParentClaim::Covered { orphan: true, .. })
    }
}

/// The claim of each span.
pub(super) fn read(
    recording: &Recording,
    spans: SpanList<'_>,
    aliases: &SpanAliases,
    rules: Option<&dyn PlacementRules>,
    notes: &mut Vec<Note>,
) -> IdVec<ListedSpan, ParentClaim> {
    let run = &recording.run;
    let index = spans.index();
    notes.extend(Note::counted(spans.len() - index.len(), Note::DuplicateIds));
    let mut by_alias = 0;
    // Only whole spans have aliases.
    let covered = |span: ListedSpan, orphan: bool| match aliases.hosts.get(&span.row()) {
        Some(&by) => ParentClaim::Covered { by: ListedSpan::of_row(by), orphan },
        None if orphan => ParentClaim::Unknown,
        None => ParentClaim::Nothing,
    };
    let is_of_other_tracer = |id: ListedSpan| rules.is_some_and(|rules| rules.is_of_other_tracer(spans.example(id)));
    let mut read = |id: ListedSpan| {
        let SpanHead { trace_id, parent_span_id, .. } = spans.head(id);
        match parent_span_id {
            None => covered(id, false),
            Some(parent) if trace_id == run.trace_id && parent == run.root_span_id => ParentClaim::Run,
            Some(parent) => {
                if let Some(parent) = spans.find(&index, trace_id, parent) {
                    ParentClaim::Span(parent)
                } else if let Some(&parent) = aliases.by_id.get(&parent).filter(|&&parent| parent != id.row()) {
                    by_alias += u64::from(!is_of_other_tracer(id));
                    ParentClaim::Span(ListedSpan::of_row(parent))
                } else {
                    covered(id, true)
                }
            }
        }
    };
    let claims: IdVec<ListedSpan, ParentClaim> = spans.ids().map(&mut read).collect();
    if aliases.pairs + by_alias > 0 {
        notes.push(Note::LegacyJoined { pairs: aliases.pairs, by_legacy_id: by_alias });
    }
    notes.extend(Note::counted(claims.iter().filter(|claim| claim.is_orphan()).count(), Note::Orphans));
    claims
}

impl Builder<'_> {
    /// Where a span hangs by its claim and its process.
    pub(super) fn place_span(&self, span: ListedSpan) -> (ParentRef, Edge) {
        let own = self.process_of(span);
        let node_of = |process: ProcessRow| self.processes.node_ref(process, self.spans);
        match self.claims[span] {
            ParentClaim::Span(parent) => (ParentRef::Entity(Entity::of_span(parent)), Edge::Declared),
            ParentClaim::Covered { by, .. } => (ParentRef::Entity(Entity::of_span(by)), Edge::Inferred),
            ParentClaim::Nothing | ParentClaim::Unknown => (own.and_then(node_of).unwrap_or(ParentRef::Run), Edge::Inferred),
            ParentClaim::Run => {
                // Every process of the run inherits the run's `TRACEPARENT`, so this says no more than "inside the run".
                // A shell or a build tool between the command and this process has a node, which is the better place.
                match own.and_then(|process| self.processes.above.node[process]).and_then(node_of) {
                    None | Some(ParentRef::Run) => (ParentRef::Run, Edge::Declared),
                    Some(place) => (place, Edge::Inferred),
                }
            }
        }
    }
}
