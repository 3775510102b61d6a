//! What `tracing` has no words for.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tracing_core::span::Id;
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan;

use super::Layer;
use super::span_state::SpanState;
use crate::current_span;
use crate::propagation::Carried;
use crate::span_context::{SpanContext, TraceparentError};

/// What `tracing` has no words for: a span's ids as they travel, and its ties to spans of other processes.
///
/// A span that is switched off, or that is no [`Layer`]'s, has no ids; calls on it do nothing. With one of OpenTelemetry's span
/// processors ([`Builder::span_processor`](crate::Builder::span_processor)) the same calls reach `tracing-opentelemetry`.
pub trait SpanExt {
    /// The span as a `traceparent`, to send with a request. `None` where the span is switched off.
    fn traceparent(&self) -> Option<String>;

    /// Makes the span a child of a span of another process. Fails where the text is no `traceparent`, and where the span has
    /// children by now.
    ///
    /// # Errors
    ///
    /// [`TraceparentError::Malformed`] if the text is no `traceparent`, [`TraceparentError::TooLate`] if the span has children already.
    fn set_parent_traceparent(&self, traceparent: &str) -> Result<(), TraceparentError>;

    /// Makes the span a child of the span that a request came from, by its headers, which `get` returns the values of by their
    /// names in lower case: `traceparent`, `tracestate` and `baggage`. The latter two go on to whatever this span and its
    /// descendants call ([`SpanExt::inject`]); `tracestate` is sent along with the span. Without a `traceparent` nothing happens.
    ///
    /// # Errors
    ///
    /// [`TraceparentError::Malformed`] if the header is no `traceparent`, [`TraceparentError::TooLate`] if the span has children already.
    fn set_parent_from(&self, get: impl Fn(&str) -> Option<String>) -> Result<(), TraceparentError>;

    /// Gives the headers that a request made for this span carries to `set`: name and value, in the form of W3C.
    fn inject(&self, set: impl FnMut(&'static str, &str));

    /// Links the span to another span, of this process or of another, open or ended. To longpole, a link to a span that ended
    /// before says: this one waited for it.
    ///
    /// # Errors
    ///
    /// [`TraceparentError::Malformed`] if the text is no `traceparent`.
    fn add_link(&self, traceparent: &str) -> Result<(), TraceparentError>;
}

impl SpanExt for tracing::Span {
    fn traceparent(&self) -> Option<String> {
        let context = with_state(self, |state, _, _| state.context);
        #[cfg(feature = "opentelemetry")]
        let context = context.or_else(|| crate::otel_sdk::context_of(self));
        context.map(SpanContext::to_traceparent)
    }

    fn set_parent_traceparent(&self, traceparent: &str) -> Result<(), TraceparentError> {
        self.set_parent_from(|name| (name == "traceparent").then(|| traceparent.to_owned()))
    }

    fn set_parent_from(&self, get: impl Fn(&str) -> Option<String>) -> Result<(), TraceparentError> {
        let Some(parent) = get("traceparent") else { return Ok(()) };
        let parent = SpanContext::from_traceparent(&parent)?;
        let set = with_state(self, |state, layer, id| {
            if state.has_children.load(Relaxed) {
                return Err(TraceparentError::TooLate);
            }
            state.context.trace_id = parent.trace_id;
            state.context.flags = layer.sampler.flags(&parent.trace_id, Some(&parent));
            state.parent = Some(parent.span_id);
            state.parent_is_remote = true;
            state.carried = Carried::read(&get).map(Arc::new);
            Ok((layer.key(id), state.context, state.carried.clone()))
        });
        #[cfg(feature = "opentelemetry")]
        if set.is_none() {
            return crate::otel_sdk::set_parent(self, &get);
        }
        if let Some((key, context, _carried)) = set.transpose()? {
            #[cfg(feature = "opentelemetry")]
            crate::otel_context::replace(key, context, _carried.as_deref());
            current_span::replace(key, context);
        }
        Ok(())
    }

    fn inject(&self, mut set: impl FnMut(&'static str, &str)) {
        let ours = with_state(self, |state, _, _| (state.context, state.carried.clone()));
        #[cfg(feature = "opentelemetry")]
        let ours = ours.or_else(|| crate::otel_sdk::carried_by(self));
        let Some((context, carried)) = ours else { return };
        set("traceparent", &context.to_traceparent());
        if let Some(carried) = carried {
            carried.write(set);
        }
    }

    fn add_link(&self, traceparent: &str) -> Result<(), TraceparentError> {
        let to = SpanContext::from_traceparent(traceparent)?;
        let added = with_state(self, |state, layer, _| {
            // Ids that come as text may come from anywhere: the link does not say whose they are.
            state.add_link(&to, u32::from(to.flags), &layer.limits);
        });
        #[cfg(feature = "opentelemetry")]
        if added.is_none() {
            crate::otel_sdk::add_link(self, to);
        }
        let _ = added;
        Ok(())
    }
}

/// Reaches what the layer keeps with a span of any subscriber.
fn with_state<T>(span: &tracing::Span, read: impl FnOnce(&mut SpanState, &Layer, &Id) -> T) -> Option<T> {
    span.with_subscriber(|(id, dispatch)| {
        let layer = dispatch.downcast_ref::<Layer>()?;
        let registry = dispatch.downcast_ref::<Registry>()?;
        let data = registry.span(id)?;
        let mut extensions = data.extensions_mut();
        let state = extensions.get_mut::<SpanState>()?;
        Some(read(state, layer, id))
    })
    .flatten()
}
