//! The spans that a forest is made of: all that is known of them, or an outline.

use longpole_model::{Span, SpanHead, SpanId, SpanIndex, TraceId};

/// Spans by their number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SpanList<'a> {
    /// `recording.spans`.
    Whole(&'a [Span]),
    /// Heads, and `recording.spans` are their examples.
    Outline { heads: &'a [SpanHead], examples: &'a [Span] },
}

impl<'a> SpanList<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            SpanList::Whole(spans) => spans.len(),
            SpanList::Outline { heads, .. } => heads.len(),
        }
    }

    /// Ids and times of a span, and the place of its example in `recording.spans`: of a whole one, its own.
    #[inline]
    pub(crate) fn head(self, span: usize) -> SpanHead {
        match self {
            SpanList::Whole(spans) => {
                let &Span { trace_id, span_id, parent_span_id, start, end, .. } = &spans[span];
                SpanHead { trace_id, span_id, parent_span_id, start, end, example: span as u32 }
            }
            SpanList::Outline { heads, .. } => heads[span],
        }
    }

    pub(crate) fn heads(self) -> impl Iterator<Item = SpanHead> {
        (0..self.len()).map(move |span| self.head(span))
    }

    /// A span of the same name, kind and emitter.
    #[inline]
    pub(crate) fn example(self, span: usize) -> &'a Span {
        match self {
            SpanList::Whole(spans) => &spans[span],
            SpanList::Outline { heads, examples } => &examples[heads[span].example as usize],
        }
    }

    pub(crate) fn index(self) -> SpanIndex {
        match self {
            SpanList::Whole(spans) => SpanIndex::of(spans),
            SpanList::Outline { heads, .. } => SpanIndex::of(heads),
        }
    }

    /// The span with these ids.
    pub(crate) fn find(self, index: &SpanIndex, trace: TraceId, span: SpanId) -> Option<usize> {
        match self {
            SpanList::Whole(spans) => index.get(spans, trace, span),
            SpanList::Outline { heads, .. } => index.get(heads, trace, span),
        }
    }
}
