//! Ids of spans, and what travels with them, through `tracing-opentelemetry`.

use std::collections::HashMap;
use std::sync::Arc;

use opentelemetry::Context;
use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::{SpanBuilder, TraceContextExt, Tracer};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::otel_context;
use crate::propagation::Carried;
use crate::span_context::{SpanContext, TraceparentError};

/// W3C's `traceparent`, `tracestate` and `baggage`, for clients and servers that ask the OpenTelemetry API.
pub(crate) fn set_global_propagators() {
    opentelemetry::global::set_text_map_propagator(TextMapCompositePropagator::new(vec![
        Box::new(TraceContextPropagator::new()),
        Box::new(BaggagePropagator::new()),
    ]));
}

/// A tracer whose spans without a parent are children of the span that `TRACEPARENT` of the environment names.
#[derive(Debug)]
pub(super) struct RootedTracer {
    pub(super) tracer: SdkTracer,
    pub(super) remote_parent: Option<SpanContext>,
}

impl Tracer for RootedTracer {
    type Span = Span;

    fn build_with_context(&self, builder: SpanBuilder, parent: &Context) -> Span {
        match self.remote_parent {
            Some(remote) if !parent.has_active_span() => {
                let parent = parent.with_remote_span_context(otel_context::to_otel(remote, true, None));
                self.tracer.build_with_context(builder, &parent)
            }
            _ => self.tracer.build_with_context(builder, parent),
        }
    }
}

/// The ids of a span that the bridge made.
pub(crate) fn context_of(span: &tracing::Span) -> Option<SpanContext> {
    // Asking starts the span; without the bridge the answer is an empty context.
    otel_context::from_otel(span.context().span().span_context())
}

/// The ids of a span that the bridge made, and what travels with them.
pub(crate) fn carried_by(span: &tracing::Span) -> Option<(SpanContext, Option<Arc<Carried>>)> {
    let context = span.context();
    let ids = otel_context::from_otel(context.span().span_context())?;
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut headers);
    BaggagePropagator::new().inject_context(&context, &mut headers);
    let carried = Carried::read(&|name| headers.get(name).cloned());
    Some((ids, carried.map(Arc::new)))
}

/// Makes a span of the bridge a child of a span of another process. Does nothing where there is no bridge.
pub(crate) fn set_parent(span: &tracing::Span, get: &dyn Fn(&str) -> Option<String>) -> Result<(), TraceparentError> {
    let headers = ["traceparent", "tracestate", "baggage"].into_iter().filter_map(|name| Some((name.to_owned(), get(name)?)));
    let headers: HashMap<String, String> = headers.collect();
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let context = BaggagePropagator::new().extract_with_context(&context, &headers);
    match span.set_parent(context) {
        Err(tracing_opentelemetry::SetParentError::AlreadyStarted) => Err(TraceparentError::TooLate),
        _ => Ok(()),
    }
}

/// Links a span of the bridge to another one. Does nothing where there is no bridge.
pub(crate) fn add_link(span: &tracing::Span, to: SpanContext) {
    OpenTelemetrySpanExt::add_link(span, otel_context::to_otel(to, true, None));
}
