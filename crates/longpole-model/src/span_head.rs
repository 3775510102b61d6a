//! What a tree of spans is made of, without the spans.
//!
//! ```text
//! heads     a 10..90   b 20..30   c 40..80   d 41..60       ids and times, of each span
//!              │          │          │          │
//! examples  deploy      create ◄─────┘        bundle        name, kind and emitter, once for all that share them
//! ```
//!
//! A million spans have a few hundred names and emitters; their ids and times alone differ.

use crate::id::{SpanId, TraceId};
use crate::index::SpanRow;
use crate::span::Span;
use crate::time::Timestamp;

/// Anything that has a place in a tree, and a time.
pub trait InTree {
    /// Trace it belongs to.
    fn trace_id(&self) -> TraceId;
    /// Its id within the trace.
    fn span_id(&self) -> SpanId;
    /// Parent, `None` for a root.
    fn parent_span_id(&self) -> Option<SpanId>;
    /// Start by the emitter's clock.
    fn start(&self) -> Timestamp;
    /// End by the emitter's clock.
    fn end(&self) -> Timestamp;
}

/// Ids and times of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanHead {
    /// Trace it belongs to.
    pub trace_id: TraceId,
    /// Its id within the trace.
    pub span_id: SpanId,
    /// Parent, `None` for a root.
    pub parent_span_id: Option<SpanId>,
    /// Start by the emitter's clock.
    pub start: Timestamp,
    /// End by the emitter's clock.
    pub end: Timestamp,
    /// Its example, in a list that stands beside the heads.
    pub example: SpanRow,
}

/// Spans with only the fields that make their tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpanOutline {
    /// Ids and times of each.
    pub heads: Vec<SpanHead>,
    /// Spans that stand for others of their name, kind and emitter, under nobody's ids. But one that links to others, or that
    /// another one links to, is an example for itself alone, with its ids. Attributes and events are not there.
    pub examples: Vec<Span>,
}

impl InTree for SpanHead {
    fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    fn span_id(&self) -> SpanId {
        self.span_id
    }

    fn parent_span_id(&self) -> Option<SpanId> {
        self.parent_span_id
    }

    fn start(&self) -> Timestamp {
        self.start
    }

    fn end(&self) -> Timestamp {
        self.end
    }
}

impl InTree for Span {
    fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    fn span_id(&self) -> SpanId {
        self.span_id
    }

    fn parent_span_id(&self) -> Option<SpanId> {
        self.parent_span_id
    }

    fn start(&self) -> Timestamp {
        self.start
    }

    fn end(&self) -> Timestamp {
        self.end
    }
}
