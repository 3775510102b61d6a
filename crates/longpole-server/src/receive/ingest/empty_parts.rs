//! Parts of spans that say nothing: attributes without a key and a value, events without a time, a name and attributes.
//!
//! In a request such a part takes two bytes, in the model 24 or 40. A megabyte that gzip makes of millions of them would take gigabytes once
//! the recording is sealed, so they are left out, and counted.

use longpole_model::sink::{EventRef, SpanRef, ValueRef};
use longpole_model::thin_vec::ThinVec;
use longpole_model::{Attribute, AttributeValue, Span, SpanEvent, Timestamp};

/// What the loss says.
pub(super) const EMPTY: &str = "attributes and events that say nothing";

/// How many values there are, and how many of them say nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) values: u64,
    pub(super) empty: u64,
}

impl Census {
    pub(super) fn of(span: &SpanRef<'_>) -> Census {
        let mut census = Census::default();
        census.pairs(span.attributes);
        for EventRef { time, name, attributes } in span.events {
            let before = census;
            census.pairs(attributes);
            census.values += 1;
            // Its attributes count for themselves.
            let has_any = census.values - before.values - 1 > census.empty - before.empty;
            census.empty += u64::from(!has_any && name.is_empty() && *time == Timestamp(0));
        }
        for link in span.links {
            census.values += 1;
            census.pairs(&link.attributes);
        }
        census
    }

    fn pairs(&mut self, pairs: &[(&str, ValueRef<'_>)]) {
        for (key, value) in pairs {
            self.values += 1;
            match value {
                ValueRef::Empty => self.empty += u64::from(key.is_empty()),
                ValueRef::Array(_) | ValueRef::KeyValues(_) => self.nested(value),
                _ => {}
            }
        }
    }

    /// Recursion ends: values nest no deeper than the limit of the decoder that made them.
    fn nested(&mut self, value: &ValueRef<'_>) {
        match value {
            ValueRef::Array(values) => {
                self.values += values.len() as u64;
                values.iter().for_each(|value| self.nested(value));
            }
            ValueRef::KeyValues(pairs) => self.pairs(pairs),
            _ => {}
        }
    }
}

/// Leaves such parts out of a span.
pub(super) fn leave_out(span: &mut Span) {
    leave_out_of(&mut span.attributes.0);
    for link in &mut *span.links {
        leave_out_of(&mut link.attributes.0);
    }
    for event in &mut *span.events {
        leave_out_of_event(event);
    }
    if span.events.iter().any(says_nothing) {
        let events = std::mem::take(&mut span.events);
        span.events = events.into_iter().filter(|event| !says_nothing(event)).collect();
    }
}

/// Leaves such attributes out of an event; says how many.
pub(super) fn leave_out_of_event(event: &mut SpanEvent) -> u64 {
    leave_out_of(&mut event.attributes.0)
}

fn says_nothing(event: &SpanEvent) -> bool {
    event.time == Timestamp(0) && event.name.is_empty() && event.attributes.0.is_empty()
}

fn is_empty(pair: &Attribute) -> bool {
    pair.key.is_empty() && pair.value == AttributeValue::Empty
}

fn leave_out_of(pairs: &mut Vec<Attribute>) -> u64 {
    let before = pairs.len();
    pairs.retain(|pair| !is_empty(pair));
    (before - pairs.len()) as u64 + pairs.iter_mut().map(|pair| leave_out_inside(&mut pair.value)).sum::<u64>()
}

/// Recursion ends: values nest no deeper than the limit of the decoder that made them.
fn leave_out_inside(value: &mut AttributeValue) -> u64 {
    match value {
        // Where an element of a list stands says something.
        AttributeValue::Array(values) => values.iter_mut().map(leave_out_inside).sum(),
        AttributeValue::KeyValues(pairs) => {
            let empty = pairs.iter().filter(|pair| is_empty(pair)).count() as u64;
            if empty > 0 {
                let all = std::mem::take(pairs);
                *pairs = all.into_iter().filter(|pair| !is_empty(pair)).collect::<ThinVec<_>>();
            }
            empty + pairs.iter_mut().map(|pair| leave_out_inside(&mut pair.value)).sum::<u64>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::sink::SpanSink;
    use longpole_model::{SpanBatch, SpanId, SpanKind, StatusCode, TraceId};

    use super::*;

    #[test]
    fn what_says_nothing_is_counted_and_left_out_wherever_it_stands() {
        let empty = || ("", ValueRef::Empty);
        let inside = ValueRef::Array(vec![ValueRef::Empty, ValueRef::KeyValues(vec![empty(), ("b", ValueRef::Empty)])]);
        let attributes = [empty(), ("a", ValueRef::KeyValues(vec![empty(), ("", inside), empty()])), ("", ValueRef::Int(1))];
        let event = |name, attributes| EventRef { time: Timestamp(0), name, attributes };
        let events = [event("", vec![]), event("", vec![empty()]), event("e", vec![empty()]), event("", vec![("k", ValueRef::Empty)])];
        let span = SpanRef {
            trace_id: TraceId::MAX,
            span_id: SpanId::MAX,
            parent_span_id: None,
            trace_state: "",
            flags: 0,
            name: "",
            kind: SpanKind::Server,
            start: Timestamp(1),
            end: Timestamp(2),
            attributes: &attributes,
            dropped_attributes: 0,
            events: &events,
            dropped_events: 0,
            links: &[],
            dropped_links: 0,
            status: StatusCode::Unset,
            status_message: "",
        };
        assert_eq!(Census::of(&span), Census { values: 17, empty: 8 });
        let mut batch = SpanBatch::default();
        batch.span(span);
        let mut span = batch.spans.remove(0);
        leave_out(&mut span);
        let left = span.attributes.iter().map(|pair| &*pair.key).collect::<Vec<_>>();
        assert_eq!((left, span.events.len()), (vec!["a", ""], 2), "{span:?}");
        let AttributeValue::KeyValues(pairs) = &span.attributes.0[0].value else { panic!("{span:?}") };
        let AttributeValue::Array(values) = &pairs[0].value else { panic!("{span:?}") };
        assert_eq!((pairs.len(), values.len()), (1, 2), "{span:?}");
        assert_eq!(span.events[0].attributes.0.len() + span.events[1].attributes.0.len(), 1, "{span:?}");
    }
}
