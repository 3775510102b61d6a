//! The bridge from `tracing`: its spans become OTLP's, and the one that runs becomes the thread's current span.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

mod buffers;
mod clock;
mod field_encoder;
mod span_ext;
mod span_state;

use self::buffers::{append_thread_attributes, give_buffer, take_buffer};
use self::clock::Clock;
use self::field_encoder::{FieldEncoder, Role, cut};
pub use self::span_ext::SpanExt;
use self::span_state::{Overrides, SpanState, Tally, otlp_flags};
use crate::config::{Config, Limits, Sampler};
use crate::diagnostic::tell;
use crate::encode::{self, Value};
use crate::exporter::Exporter;
use crate::registry_guard::{self, Inside};
use crate::span_context::{SAMPLED, SpanContext, new_span_id, new_trace_id};
use crate::span_counts::SpanCounts;
use crate::span_stack::Key;
use crate::{current_span, own_threads, process_context};

/// OTLP's `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// OTLP's `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The layer: add it to a `tracing_subscriber::registry()`. Made by [`layer`](crate::layer()).
///
/// It stands on [`tracing_subscriber::Registry`]; [`SpanExt`] finds spans through it.
pub struct Layer {
    core: Arc<Core>,
    /// Tells its spans from those of other layers on the same thread.
    number: u32,
    sampler: Sampler,
    limits: Limits,
    remote_parent: Option<SpanContext>,
    clock: Clock,
    /// Whether OpenTelemetry's context follows ours, and ours begins in it.
    #[cfg(feature = "opentelemetry")]
    shares_context: bool,
}

struct Core {
    disabled: bool,
    exporter: Option<Exporter>,
}

/// Ends and counts what a [`Layer`] sends; can be kept when the layer has gone into a subscriber.
#[derive(Clone)]
pub struct Handle(Arc<Core>);

impl Handle {
    /// Sends the spans that have ended and stops the exporter, waiting for no longer than `within`; spans that end later are
    /// counted as late. A second call only reports.
    pub fn shutdown(&self, within: Duration) -> SpanCounts {
        self.0.exporter.as_ref().map(|exporter| exporter.shutdown(within)).unwrap_or_default()
    }

    /// Sends the spans that have ended by now, waiting for no longer than `within`, and goes on. It does not wait after an attempt that
    /// failed, nor for a collector that was waited for in vain and has not answered since.
    pub fn flush(&self, within: Duration) -> SpanCounts {
        self.0.exporter.as_ref().map(|exporter| exporter.flush(within)).unwrap_or_default()
    }

    /// How long the end of the process waits for the collector.
    pub(crate) fn set_exit_within(&self, within: Duration) {
        if let Some(exporter) = &self.0.exporter {
            exporter.set_exit_within(within);
        }
    }

    /// What became of the spans so far.
    pub fn counts(&self) -> SpanCounts {
        self.0.exporter.as_ref().map(Exporter::counts).unwrap_or_default()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("counts", &self.counts()).finish()
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("number", &self.number).field("counts", &self.handle().counts()).finish()
    }
}

impl Layer {
    /// Starts what the configuration asks for, and tells what it could not use.
    pub(crate) fn new(config: Config) -> Self {
        static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);
        for complaint in &config.complaints {
            tell(complaint);
        }
        if !config.disabled {
            process_context::publish(config.resource.process_context());
        }
        let exporter = config.export.and_then(|export| match Exporter::start(export) {
            Ok(exporter) => Some(exporter),
            Err(error) => {
                tell(&format!("no thread to send spans with: {error}; sending no spans"));
                None
            }
        });
        Self {
            core: Arc::new(Core { disabled: config.disabled, exporter }),
            number: NEXT_NUMBER.fetch_add(1, Relaxed),
            sampler: config.sampler,
            limits: config.limits,
            remote_parent: config.remote_parent,
            clock: Clock::new(),
            #[cfg(feature = "opentelemetry")]
            shares_context: false,
        }
    }

    /// Makes `opentelemetry::Context::current()` carry the span that is entered, and a span without a parent of ours begin in
    /// that context: for programs that use the OpenTelemetry API beside `tracing`. It costs some hundred nanoseconds per span.
    #[cfg(feature = "opentelemetry")]
    pub fn with_opentelemetry_context(mut self, shared: bool) -> Self {
        self.shares_context = shared;
        if shared {
            crate::otel_context::publish_opentelemetry_context();
        }
        self
    }

    /// The span that one without a parent of ours is a child of, if OpenTelemetry's context names one.
    #[cfg(feature = "opentelemetry")]
    fn outer_context(&self) -> Option<SpanContext> {
        self.shares_context.then(crate::otel_context::current).flatten()
    }

    #[cfg(not(feature = "opentelemetry"))]
    fn outer_context(&self) -> Option<SpanContext> {
        None
    }

    /// The handle that ends it: a layer is out of reach once it is part of a subscriber.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.core))
    }

    fn key(&self, id: &Id) -> Key {
        Key { layer: self.number, span: id.into_u64() }
    }
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // `enabled` decides each time whether this thread may make spans.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        registry_guard::admits_callsite(metadata)
    }

    fn on_new_span(&self, attrs: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        if registry_guard::is_ending() {
            return;
        }
        registry_guard::has_number();
        let _inside = Inside::begin();
        // What our own threads do on the way to the collector is not the program's, and would never end.
        if self.core.disabled || own_threads::is_own() {
            return;
        }
        let Some(span) = ctx.span(id) else { return };
        let mut carried = None;
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let state = extensions.get::<SpanState>()?;
            state.has_children.store(true, Relaxed);
            carried.clone_from(&state.carried);
            Some((state.context, state.unix_offset, state.keeps_fields && state.context.sampled()))
        });
        let outer = if parent.is_none() { self.outer_context() } else { None };
        let remote_parent = outer.or(self.remote_parent);
        let parent_context = parent.map(|(context, ..)| context).or(remote_parent);
        let trace_id = parent_context.map_or_else(new_trace_id, |parent| parent.trace_id);
        let flags = match parent {
            // Within a process a trace is recorded whole or not at all.
            Some((context, ..)) => context.flags & SAMPLED,
            None => self.sampler.flags(&trace_id, remote_parent.as_ref()),
        };
        let context = SpanContext { trace_id, span_id: new_span_id(), flags };
        let keeps_fields = self.core.exporter.is_some() && parent.is_none_or(|(_, _, recording)| recording);
        let mut state = SpanState {
            context,
            parent: parent_context.map(|parent| parent.span_id),
            parent_is_remote: parent.is_none() && outer.is_none() && parent_context.is_some(),
            has_children: AtomicBool::new(false),
            keeps_fields,
            start: 0,
            unix_offset: 0,
            carried,
            overrides: Overrides { kind: INTERNAL, ..Overrides::default() },
            fields: Vec::new(),
            recorded: 0,
            kept: Tally::default(),
            dropped: Tally::default(),
        };
        if keeps_fields {
            state.fields = take_buffer();
            append_thread_attributes(&mut state.fields);
            let mut encoder = FieldEncoder {
                out: &mut state.fields,
                number: encode::span::ATTRIBUTES,
                limits: &self.limits,
                kept: 0,
                dropped: 0,
                recorded: 0,
                role: Role::Span { overrides: &mut state.overrides, already: 0, replaced: &mut Vec::new() },
            };
            attrs.record(&mut encoder);
            (state.kept.attributes, state.dropped.attributes, state.recorded) = (encoder.kept, encoder.dropped, encoder.recorded);
            state.start = self.clock.now();
            state.unix_offset = parent.map_or_else(|| self.clock.offset(state.start), |(_, offset, _)| offset);
        }
        span.extensions_mut().replace(state);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        let _inside = Inside::begin();
        let Some(span) = ctx.span(id) else { return };
        let Some((already, so_far)) = keeps_fields(&span).then(|| recorded(&span)).flatten() else { return };
        // The values are the program's code: they run before the span is locked, for they may use the span.
        let mut fields = take_buffer();
        let mut overrides = Overrides::default();
        let mut replaced = Vec::new();
        let mut encoder = FieldEncoder {
            out: &mut fields,
            number: encode::span::ATTRIBUTES,
            limits: &self.limits,
            kept: so_far,
            dropped: 0,
            recorded: 0,
            role: Role::Span { overrides: &mut overrides, already, replaced: &mut replaced },
        };
        values.record(&mut encoder);
        let (kept, dropped, newly) = (encoder.kept, encoder.dropped, encoder.recorded);
        if let Some(state) = span.extensions_mut().get_mut::<SpanState>() {
            for key in replaced {
                if encode::remove_attribute(&mut state.fields, key) {
                    state.kept.attributes = state.kept.attributes.saturating_sub(1);
                }
            }
            if state.has_room(fields.len()) {
                state.fields.extend_from_slice(&fields);
                state.kept.attributes += kept - so_far;
                state.dropped.attributes += dropped;
            } else {
                state.dropped.attributes += kept - so_far + dropped;
            }
            state.recorded |= newly;
            state.overrides.merge(overrides);
        }
        give_buffer(fields);
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, ctx: Context<'_, S>) {
        let _inside = Inside::begin();
        let Some(to) = ctx.span(follows).and_then(|span| span.extensions().get::<SpanState>().map(|state| state.context)) else {
            return;
        };
        let Some(span) = ctx.span(id) else { return };
        if let Some(state) = span.extensions_mut().get_mut::<SpanState>() {
            state.add_link(&to, otlp_flags(to.flags, false), &self.limits);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let _inside = Inside::begin();
        let Some(span) = ctx.event_span(event) else { return };
        if !keeps_fields(&span) {
            return;
        }
        let metadata = event.metadata();
        let time = self.clock.now();
        let mut attributes = take_buffer();
        let (mut message, mut exception) = (None, None);
        let mut encoder = FieldEncoder {
            out: &mut attributes,
            number: encode::event::ATTRIBUTES,
            limits: &self.limits,
            kept: 0,
            dropped: 0,
            recorded: 0,
            role: Role::Event { message: &mut message, exception: &mut exception },
        };
        event.record(&mut encoder);
        encode::attribute(&mut attributes, encode::event::ATTRIBUTES, "level", Value::Str(metadata.level().as_str()));
        encode::attribute(&mut attributes, encode::event::ATTRIBUTES, "target", Value::Str(metadata.target()));
        if let Some(text) = &exception {
            let text = cut(text, self.limits.value_bytes);
            encode::attribute(&mut attributes, encode::event::ATTRIBUTES, "exception.message", Value::Str(text));
        }
        // An event without a message has only its place for a name; an error has OpenTelemetry's.
        let name = match (&message, &exception) {
            (Some(message), _) => message.as_str(),
            (None, Some(_)) => "exception",
            (None, None) => metadata.name(),
        };
        if let Some(state) = span.extensions_mut().get_mut::<SpanState>() {
            let len = 9 + encode::message_len(encode::event::NAME, name.len()) + attributes.len();
            if state.kept.events < self.limits.events && state.has_room(len) {
                state.kept.events += 1;
                let unix_time = (time + state.unix_offset) as u64;
                encode::message(&mut state.fields, encode::span::EVENTS, len);
                encode::fixed64(&mut state.fields, encode::event::TIME, unix_time);
                encode::bytes(&mut state.fields, encode::event::NAME, name.as_bytes());
                state.fields.extend_from_slice(&attributes);
            } else {
                state.dropped.events += 1;
            }
            if *metadata.level() == Level::ERROR && state.overrides.status == 0 {
                state.overrides.status = ERROR;
                state.overrides.status_message = message.or(exception).map(String::into_boxed_str);
            }
        }
        give_buffer(attributes);
    }

    fn on_enter(&self, id: &Id, ctx: Context<'_, S>) {
        registry_guard::has_stack();
        let Some(span) = ctx.span(id) else { return };
        let Some(context) = span.extensions().get::<SpanState>().map(|state| state.context) else { return };
        #[cfg(feature = "opentelemetry")]
        if self.shares_context {
            // Whoever watches OpenTelemetry's context publishes it.
            let carried = span.extensions().get::<SpanState>().and_then(|state| state.carried.clone());
            crate::otel_context::attach(self.key(id), context, carried.as_deref());
            return;
        }
        current_span::enter_named(self.key(id), context, span.metadata().name());
    }

    fn on_exit(&self, id: &Id, _ctx: Context<'_, S>) {
        #[cfg(feature = "opentelemetry")]
        if self.shares_context {
            crate::otel_context::detach(self.key(id));
            return;
        }
        current_span::exit(self.key(id));
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let _inside = Inside::begin();
        let Some(span) = ctx.span(&id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(state) = extensions.get_mut::<SpanState>() else { return };
        let end = registry_guard::closed_at().map_or_else(|| self.clock.now(), |at| self.clock.at(at));
        let fields = std::mem::take(&mut state.fields);
        let (Some(exporter), true, true) = (&self.core.exporter, state.keeps_fields, state.context.sampled()) else {
            give_buffer(fields);
            return;
        };
        let metadata = span.metadata();
        let fields = state.finish(fields, metadata.name(), end);
        drop(extensions);
        exporter.push(&fields, metadata);
        give_buffer(fields);
    }
}

/// Whether values that are about to come are worth the work.
fn keeps_fields<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>) -> bool {
    span.extensions().get::<SpanState>().is_some_and(|state| state.keeps_fields)
}

/// Which fields have a value, and how many attributes there are.
fn recorded<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>) -> Option<(u64, u32)> {
    span.extensions().get::<SpanState>().map(|state| (state.recorded, state.kept.attributes))
}

/// The ids of the span that an event belongs to, for its line in the log.
pub(crate) fn context_in(extensions: &tracing_subscriber::registry::Extensions<'_>) -> Option<SpanContext> {
    extensions.get::<SpanState>().map(|state| state.context)
}
