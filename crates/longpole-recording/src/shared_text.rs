//! Long texts that spans share. A recording has each of them once; files of other tools have them once for each span.
//!
//! ```text
//! span 1   name ──┐
//! span 2   name ──┴─► 100,000 bytes      in a file: 200,000
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use longpole_model::fast_hash::FastState;
use longpole_model::{AttributeValue, Attributes, Resource, Span, Text};

use crate::view::json_bytes;

/// Shorter texts do not count: a million spans may share names and queries.
const LONG_BYTES_MIN: usize = 512;

/// Bytes of long texts that came before, in JSON. What makes a file in memory takes twice as much while it grows.
const SHARED_BYTES_MAX: u64 = 512 << 20;

/// Counts long texts that come again.
#[derive(Debug, Default)]
pub(crate) struct SharedText {
    /// By address.
    known: HashSet<usize, FastState>,
    bytes: u64,
}

impl SharedText {
    /// How many of these spans there is room for: all before the first one past the limit. `of_each` says whether each has its resource in the
    /// file, else neighbours share it.
    pub(crate) fn spans_within(self, spans: &[Span], of_each: bool) -> usize {
        self.spans_up_to(SHARED_BYTES_MAX, spans, of_each)
    }

    fn spans_up_to(mut self, most: u64, spans: &[Span], of_each: bool) -> usize {
        let mut last: Option<&Arc<Resource>> = None;
        for (place, span) in spans.iter().enumerate() {
            if of_each || last.is_none_or(|last| !Arc::ptr_eq(last, &span.resource)) {
                self.attributes(&span.resource.attributes);
            }
            last = Some(&span.resource);
            self.span(span);
            if self.bytes > most {
                return place;
            }
        }
        spans.len()
    }

    fn span(&mut self, span: &Span) {
        [&span.name, &span.trace_state, &span.status.message].into_iter().for_each(|text| self.text(text));
        self.attributes(&span.attributes);
        for event in &span.events {
            self.text(&event.name);
            self.attributes(&event.attributes);
        }
        span.links.iter().for_each(|link| self.attributes(&link.attributes));
    }

    fn attributes(&mut self, attributes: &Attributes) {
        for attribute in attributes.iter() {
            self.text(&attribute.key);
            self.value(&attribute.value);
        }
    }

    fn value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::Str(text) => self.text(text),
            AttributeValue::Array(values) => values.iter().for_each(|value| self.value(value)),
            AttributeValue::KeyValues(pairs) => {
                for pair in pairs {
                    self.text(&pair.key);
                    self.value(&pair.value);
                }
            }
            AttributeValue::Empty
            | AttributeValue::Bool(_)
            | AttributeValue::Int(_)
            | AttributeValue::Double(_)
            | AttributeValue::Bytes(_) => {}
        }
    }

    fn text(&mut self, text: &Text) {
        if text.len() >= LONG_BYTES_MIN && !self.known.insert(text.as_ptr().addr()) {
            self.bytes = self.bytes.saturating_add(json_bytes(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    #[test]
    fn spans_that_share_a_long_text_fit_up_to_a_limit() {
        let mut spans = text::parse("run x 0..9ms\n  a 1..2ms svc\n").unwrap().spans;
        let span = spans.remove(0);
        let name = Text::from("x".repeat(1_000));
        let shared: Vec<Span> = (0..10).map(|_| Span { name: name.clone(), ..span.clone() }).collect();
        // The first one has it anyhow.
        assert_eq!(SharedText::default().spans_up_to(3_500, &shared, false), 4);
        assert_eq!(SharedText::default().spans_within(&shared, false), 10);
        let own: Vec<Span> = (0..10).map(|_| Span { name: "x".repeat(1_000).into(), ..span.clone() }).collect();
        assert_eq!(SharedText::default().spans_up_to(0, &own, false), 10);
        let nested = |text: &Text| AttributeValue::Array(vec![AttributeValue::Str(text.clone())].into());
        let deep: Vec<Span> = (0..10)
            .map(|_| {
                let mut span = span.clone();
                span.attributes.push("prompt", nested(&name));
                span
            })
            .collect();
        assert_eq!(SharedText::default().spans_up_to(3_500, &deep, false), 4);
        let mut resource = (*span.resource).clone();
        resource.attributes.push("process.command", AttributeValue::Str(name));
        let resource = Arc::new(resource);
        let of_one: Vec<Span> = (0..10).map(|_| Span { resource: Arc::clone(&resource), ..span.clone() }).collect();
        assert_eq!([false, true].map(|of_each| SharedText::default().spans_up_to(3_500, &of_one, of_each)), [10, 4]);
    }
}
