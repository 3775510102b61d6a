//! The emitters of the spans: each resource, scope and process once. Spans share them, so a question about an emitter is answered a few
//! times, not a million.

use std::sync::Arc;

use longpole_model::Span;

use crate::tree::span_list::SpanList;
use longpole_model::fast_hash::FastMap;

/// The emitters of a recording.
#[derive(Debug, Default)]
pub(crate) struct Emitters {
    /// For each span the number of its emitter.
    pub(crate) of_span: Vec<u32>,
    /// The first span of each emitter.
    first: Vec<usize>,
}

impl Emitters {
    pub(crate) fn of(spans: SpanList<'_>) -> Emitters {
        let mut out = Emitters { of_span: Vec::with_capacity(spans.len()), first: Vec::new() };
        let mut number = FastMap::default();
        for i in 0..spans.len() {
            let span = spans.example(i);
            let emitter = (Arc::as_ptr(&span.resource) as usize, Arc::as_ptr(&span.scope) as usize, span.pid);
            let n = *number.entry(emitter).or_insert_with(|| {
                out.first.push(i);
                out.first.len() as u32 - 1
            });
            out.of_span.push(n);
        }
        out
    }

    /// A span of each emitter.
    pub(crate) fn examples<'a>(&'a self, spans: SpanList<'a>) -> impl Iterator<Item = &'a Span> {
        self.first.iter().map(move |&i| spans.example(i))
    }
}
