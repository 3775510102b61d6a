//! The emitters of the spans: each resource, scope and process once. Spans share them, so a question about an emitter is answered a few
//! times, not a million.

use std::sync::Arc;

use longpole_model::{IdVec, Span, ids};

use crate::tree::span_list::{ListedSpan, SpanList};
use longpole_model::fast_hash::FastMap;

ids! {
    /// An emitter.
    pub(crate) struct EmitterId;
}

/// The emitters of a recording.
#[derive(Debug, Default)]
pub(crate) struct Emitters {
    /// The emitter of each span.
    pub(crate) of_span: IdVec<ListedSpan, EmitterId>,
    /// The first span of each emitter.
    first: IdVec<EmitterId, ListedSpan>,
}

impl Emitters {
    pub(crate) fn of(spans: SpanList<'_>) -> Emitters {
        let (mut of_span, mut first) = (IdVec::with_capacity(spans.len()), IdVec::default());
        let mut known = FastMap::default();
        for id in spans.ids() {
            let span = spans.example(id);
            let emitter = (Arc::as_ptr(&span.resource) as usize, Arc::as_ptr(&span.scope) as usize, span.pid);
            of_span.push(*known.entry(emitter).or_insert_with(|| first.push(id)));
        }
        Emitters { of_span, first }
    }

    /// A span of each emitter.
    pub(crate) fn examples<'a>(&'a self, spans: SpanList<'a>) -> impl Iterator<Item = &'a Span> {
        self.first.iter().map(move |&i| spans.example(i))
    }
}
