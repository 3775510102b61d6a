//! Gives spans to a sink.

use std::sync::Arc;

use longpole_model::attribute::Attributes;
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{EventRef, LinkRef, SpanRef, SpanSink, ValueRef};
use longpole_model::span::Span;

/// Gives spans to the sink: a resource and a scope where they are not those of the span before.
#[derive(Default)]
pub(crate) struct Deliver {
    last: Option<(Arc<Resource>, Arc<Scope>)>,
    /// Spans given so far.
    pub(crate) spans: u64,
}

impl Deliver {
    pub(crate) fn span(&mut self, span: &Span, sink: &mut dyn SpanSink) {
        let (same_resource, same_scope) = match &self.last {
            Some((resource, scope)) => (same(resource, &span.resource), same(scope, &span.scope)),
            None => (false, false),
        };
        if !same_resource {
            sink.shared_resource(&span.resource);
        }
        if !same_resource || !same_scope {
            sink.scope((*span.scope).clone());
            self.last = Some((Arc::clone(&span.resource), Arc::clone(&span.scope)));
        }
        self.spans += 1;
        let attributes = lend(&span.attributes);
        let events: Vec<_> = (span.events.iter())
            .map(|event| EventRef { time: event.time, name: &event.name, attributes: lend(&event.attributes) })
            .collect();
        let links: Vec<_> = (span.links.iter())
            .map(|link| LinkRef { trace_id: link.trace_id, span_id: link.span_id, attributes: lend(&link.attributes) })
            .collect();
        sink.span(SpanRef {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent_span_id: span.parent_span_id,
            trace_state: &span.trace_state,
            flags: span.flags,
            name: &span.name,
            kind: span.kind,
            start: span.start,
            end: span.end,
            attributes: &attributes,
            dropped_attributes: span.dropped_attributes,
            events: &events,
            dropped_events: span.dropped_events,
            links: &links,
            dropped_links: span.dropped_links,
            status: span.status.code,
            status_message: &span.status.message,
        });
    }
}

fn same<T: PartialEq>(a: &Arc<T>, b: &Arc<T>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

fn lend(attributes: &Attributes) -> Vec<(&str, ValueRef<'_>)> {
    attributes.0.iter().map(|pair| (&*pair.key, (&pair.value).into())).collect()
}
