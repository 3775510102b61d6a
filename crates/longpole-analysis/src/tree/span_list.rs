//! The spans that a forest is made of: all that is known of them, or an outline.

use std::borrow::Borrow;

use longpole_model::{Id, Span, SpanHead, SpanId, SpanIndex, SpanRow, TraceId, ids};

ids! {
    /// A span of a list: of whole spans its row, of an outline the place of its head.
    pub(crate) struct ListedSpan;
}

impl ListedSpan {
    /// A span of the whole list.
    pub(crate) fn of_row(row: SpanRow) -> ListedSpan {
        ListedSpan::at(row.place())
    }

    /// Its row, where the list is the whole one.
    pub(crate) fn row(self) -> SpanRow {
        SpanRow::at(self.place())
    }
}

/// The spans of a whole list with their rows.
pub(crate) fn rows<S: Borrow<Span>>(spans: &[S]) -> impl DoubleEndedIterator<Item = (SpanRow, &Span)> + ExactSizeIterator {
    spans.iter().enumerate().map(|(place, span)| (SpanRow::at(place), span.borrow()))
}

/// The spans of a forest.
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

    /// All of them, in order.
    pub(crate) fn ids(self) -> impl DoubleEndedIterator<Item = ListedSpan> + ExactSizeIterator {
        (0..self.len()).map(ListedSpan::at)
    }

    /// Ids and times of a span, and its example: of a whole one, itself.
    #[inline]
    pub(crate) fn head(self, span: ListedSpan) -> SpanHead {
        match self {
            SpanList::Whole(spans) => {
                let &Span { trace_id, span_id, parent_span_id, start, end, .. } = &spans[span.place()];
                SpanHead { trace_id, span_id, parent_span_id, start, end, example: span.row() }
            }
            SpanList::Outline { heads, .. } => heads[span.place()],
        }
    }

    pub(crate) fn heads(self) -> impl Iterator<Item = SpanHead> {
        self.ids().map(move |span| self.head(span))
    }

    /// A span of the same name, kind and emitter.
    #[inline]
    pub(crate) fn example(self, span: ListedSpan) -> &'a Span {
        match self {
            SpanList::Whole(spans) => &spans[span.place()],
            SpanList::Outline { heads, examples } => &examples[heads[span.place()].example.place()],
        }
    }

    pub(crate) fn index(self) -> SpanIndex {
        match self {
            SpanList::Whole(spans) => SpanIndex::of(spans),
            SpanList::Outline { heads, .. } => SpanIndex::of(heads),
        }
    }

    /// The span with these ids.
    pub(crate) fn find(self, index: &SpanIndex, trace: TraceId, span: SpanId) -> Option<ListedSpan> {
        let place = match self {
            SpanList::Whole(spans) => index.get(spans, trace, span),
            SpanList::Outline { heads, .. } => index.get(heads, trace, span),
        };
        place.map(ListedSpan::at)
    }
}
