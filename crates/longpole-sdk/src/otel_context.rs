//! Our current span and OpenTelemetry's context, in both directions.
//!
//! OpenTelemetry tells an observer of each context that a thread attaches or leaves. What is current there then is what the
//! context record says, whoever attached it: `tracing-opentelemetry`, the OpenTelemetry API, or our layer, if it shares contexts.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Once};

use opentelemetry::context::{ContextObserver, GlobalContextObserver};
use opentelemetry::trace::{SpanContext as OtelSpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry::{Context, ContextGuard};

use crate::current_span;
use crate::propagation::Carried;
use crate::span_context::{ContextWords, SpanContext};
use crate::span_stack::Key;

/// OpenTelemetry's current span among those that a thread is inside of: one, whatever is below it there.
const OTEL: Key = Key { layer: u32::MAX, span: 0 };

/// Publishes the current span of OpenTelemetry's context as the current one of each thread, from now on, for the whole program.
///
/// For programs that make their spans with the OpenTelemetry API and a provider of their own; [`builder`](crate::builder) does
/// this where one of OpenTelemetry's span processors is chosen. OpenTelemetry has one place for such an observer: if somebody
/// else took it, nothing is published.
pub fn publish_opentelemetry_context() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| GlobalContextObserver::set(Arc::new(Publisher)));
}

struct Publisher;

thread_local! {
    /// What this thread published for OpenTelemetry. Without a destructor, so that a context that is left while the thread ends
    /// finds it.
    static PUBLISHED: Cell<Option<SpanContext>> = const { Cell::new(None) };
}

/// The context changes hands inside of a borrow of OpenTelemetry's: nothing here may ask for it.
impl ContextObserver for Publisher {
    fn on_context_enter(&self, _from: &Context, to: &Context) {
        publish(to);
    }

    fn on_context_exit(&self, _from: &Context, to: &Context) {
        publish(to);
    }
}

fn publish(current: &Context) {
    let span = current.span();
    let now = current.has_active_span().then(|| from_otel(span.span_context())).flatten();
    let words = |now| {
        let words = ContextWords::new(&now);
        // A server attaches the span that called it before it begins its own.
        if span.span_context().is_remote() { words.remote() } else { words }
    };
    let before = PUBLISHED.replace(now);
    match (before, now) {
        // Baggage, say, was attached to it.
        (before, now) if before == now => {}
        (Some(_), Some(now)) => current_span::replace_words(OTEL, words(now)),
        (None, Some(now)) => current_span::enter_words(OTEL, words(now), ""),
        (_, None) => current_span::exit(OTEL),
    }
}

/// OpenTelemetry's ids as ours; `None` where they are no span's.
pub(crate) fn from_otel(context: &OtelSpanContext) -> Option<SpanContext> {
    context.is_valid().then(|| SpanContext {
        trace_id: context.trace_id().to_bytes(),
        span_id: context.span_id().to_bytes(),
        flags: context.trace_flags().to_u8(),
    })
}

/// Our ids as OpenTelemetry's. Another process' state that cannot be read is left out, as W3C asks.
pub(crate) fn to_otel(context: SpanContext, is_remote: bool, carried: Option<&Carried>) -> OtelSpanContext {
    let state = carried.and_then(|carried| carried.tracestate.as_deref()).and_then(|state| state.parse::<TraceState>().ok());
    OtelSpanContext::new(
        TraceId::from_bytes(context.trace_id),
        SpanId::from_bytes(context.span_id),
        TraceFlags::new(context.flags),
        is_remote,
        state.unwrap_or_default(),
    )
}

/// The span of this thread's context.
pub(crate) fn current() -> Option<SpanContext> {
    Context::map_current(|context| context.has_active_span().then(|| from_otel(context.span().span_context())).flatten())
}

thread_local! {
    /// Contexts that our layer attached, by its spans, innermost last.
    static ATTACHED: RefCell<Vec<(Key, ContextGuard)>> = const { RefCell::new(Vec::new()) };
}

/// Makes the span the current one in OpenTelemetry's context.
pub(crate) fn attach(key: Key, context: SpanContext, carried: Option<&Carried>) {
    let span = to_otel(context, false, carried);
    let guard = Context::map_current(|current| current.with_remote_span_context(span)).attach();
    // Fails while the thread tears its local storage down: the guard then leaves the context at once.
    let _ = ATTACHED.try_with(|attached| attached.borrow_mut().push((key, guard)));
}

/// Leaves the span in OpenTelemetry's context.
pub(crate) fn detach(key: Key) {
    let left = ATTACHED.try_with(|attached| {
        let mut attached = attached.borrow_mut();
        let at = attached.iter().rposition(|(other, _)| *other == key)?;
        Some(attached.remove(at))
    });
    // Dropped here, where nothing is borrowed: what ends with a context may be the program's code.
    drop(left);
}

/// Gives the innermost span other ids. One further out keeps those that it was attached with.
pub(crate) fn replace(key: Key, context: SpanContext, carried: Option<&Carried>) {
    let is_innermost = ATTACHED.try_with(|attached| attached.borrow().last().is_some_and(|(other, _)| *other == key));
    if is_innermost == Ok(true) {
        detach(key);
        attach(key, context, carried);
    }
}
