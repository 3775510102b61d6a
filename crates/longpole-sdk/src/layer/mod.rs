//! The bridge from `tracing`: its spans become OTLP's, and the one that runs becomes the thread's current span.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::config::{Config, Limits, ProcessFacts, Sampler};
use crate::context::{SAMPLED, SpanContext, TraceparentError, new_span_id, new_trace_id};
use crate::diagnostic::tell;
use crate::encode::{self, Value};
use crate::exporter::{Exporter, SpanCounts, is_own_thread};
use crate::propagation::Carried;
use crate::shelter::{self, Inside};
use crate::span_stack::{self, Key};
use crate::thread_context;

/// Most bytes that attributes, events and links of one span take; what is more is counted as dropped. A span that lives as long
/// as the program and gets an event per request would otherwise grow without end where the count limits were lifted.
const MAX_SPAN_BYTES: usize = 1 << 20;

/// Buffers of ended spans that a thread keeps for its next ones: as many as spans are commonly open at a time, and none that
/// grew large.
const MAX_KEPT_BUFFERS: usize = 16;
const MAX_KEPT_BUFFER_BYTES: usize = 4 << 10;

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
            thread_context::publish_process(config.resource.process_context());
        }
        let exporter = config.export.and_then(|export| match Exporter::start(export) {
            Ok(exporter) => Some(exporter),
            Err(error) => {
                tell(&format!("no thread to send spans with: {error}; no spans are sent"));
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

    /// What is needed to end it: a layer cannot be asked once it is part of a subscriber.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.core))
    }

    fn key(&self, id: &Id) -> Key {
        Key { layer: self.number, span: id.into_u64() }
    }
}

pub(crate) fn process_facts() -> ProcessFacts {
    let executable = std::env::current_exe().ok();
    let host = if cfg!(target_os = "linux") {
        std::fs::read_to_string("/proc/sys/kernel/hostname").ok()
    } else {
        std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok()
    };
    ProcessFacts {
        pid: std::process::id(),
        executable: executable.map(|path| path.to_string_lossy().into_owned()),
        host: host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()),
    }
}

/// Nanoseconds of the monotonic clock since the layer was made. Wall-clock time is this plus an offset that a local root takes
/// when it begins and its descendants inherit: so the times within a tree are those of one clock that never steps.
struct Clock {
    base: Instant,
    /// Unix time minus monotonic time, and when that was found out.
    offset: AtomicI64,
    offset_taken: AtomicI64,
}

impl Clock {
    /// How long an offset is good for. Short, because a wall clock may be set, and a machine may sleep, which the monotonic clock
    /// does not notice; long enough that a busy program reads one clock per span.
    const OFFSET_AGE_MAX: i64 = 100_000_000;

    /// Two monotonic readings around one of the wall clock that lie further apart than this were interrupted.
    const READING_MAX: i64 = 10_000;

    fn new() -> Self {
        Self { base: Instant::now(), offset: AtomicI64::new(0), offset_taken: AtomicI64::new(i64::MIN) }
    }

    fn now(&self) -> i64 {
        self.at(Instant::now())
    }

    fn at(&self, time: Instant) -> i64 {
        // 2^63 ns are 292 years.
        time.saturating_duration_since(self.base).as_nanos() as i64
    }

    /// The offset, now.
    fn offset(&self, now: i64) -> i64 {
        if now.saturating_sub(self.offset_taken.load(Acquire)) <= Self::OFFSET_AGE_MAX {
            return self.offset.load(Relaxed);
        }
        let offset = self.take_offset();
        // Threads that come here together store about the same.
        self.offset.store(offset, Relaxed);
        self.offset_taken.store(now, Release);
        offset
    }

    #[cold]
    fn take_offset(&self) -> i64 {
        let mut best = (i64::MAX, 0);
        for _ in 0..3 {
            let before = self.now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
            let after = self.now();
            if after - before < best.0 {
                best = (after - before, wall - (before + after) / 2);
            }
            if best.0 <= Self::READING_MAX {
                break;
            }
        }
        best.1
    }
}

/// What we keep with an open span.
struct SpanState {
    context: SpanContext,
    parent: Option<[u8; 8]>,
    parent_is_remote: bool,
    /// Somebody has taken our ids as its parent's.
    has_children: AtomicBool,
    /// Whether fields, events and links are kept. A local root keeps them even where it is not sampled: a remote parent, whose
    /// decision it would follow, may be set later.
    keeps_fields: bool,
    start: i64,
    unix_offset: i64,
    /// What came along with the ids of a remote parent, for its descendants.
    carried: Option<Arc<Carried>>,
    overrides: Overrides,
    /// Fields of OTLP's `Span`: attributes, events and links, in the order they came.
    fields: Vec<u8>,
    /// One bit per field of the macro whose value is kept.
    recorded: u64,
    kept: Tally,
    dropped: Tally,
}

#[derive(Default, Clone, Copy)]
struct Tally {
    attributes: u32,
    events: u32,
    links: u32,
}

/// The fields that are not attributes, as `tracing-opentelemetry` spells them.
#[derive(Default)]
struct Overrides {
    name: Option<Box<str>>,
    kind: u8,
    status: u8,
    status_message: Option<Box<str>>,
}

impl SpanState {
    fn has_room(&self, more: usize) -> bool {
        self.fields.len() + more <= MAX_SPAN_BYTES
    }

    fn add_link(&mut self, to: &SpanContext, flags: u32, limits: &Limits) {
        if !self.keeps_fields {
            return;
        }
        if self.kept.links >= limits.links || !self.has_room(64) {
            self.dropped.links += 1;
            return;
        }
        self.kept.links += 1;
        encode::span_link(&mut self.fields, &to.trace_id, &to.span_id, flags);
    }
}

fn otlp_flags(flags: u8, is_remote: bool) -> u32 {
    u32::from(flags) | encode::FLAG_HAS_IS_REMOTE | if is_remote { encode::FLAG_IS_REMOTE } else { 0 }
}

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
    static THREAD_ATTRIBUTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn take_buffer() -> Vec<u8> {
    BUFFERS.try_with(|buffers| buffers.borrow_mut().pop()).ok().flatten().unwrap_or_else(|| Vec::with_capacity(512))
}

fn give_buffer(mut buffer: Vec<u8>) {
    if buffer.capacity() > MAX_KEPT_BUFFER_BYTES || buffer.capacity() == 0 {
        return;
    }
    buffer.clear();
    let _ = BUFFERS.try_with(|buffers| {
        let mut buffers = buffers.borrow_mut();
        if buffers.len() < MAX_KEPT_BUFFERS {
            buffers.push(buffer);
        }
    });
}

/// Lends `text` the thread's scratch string. `fill` is the program's code (a `Debug` of its own), which may make spans in turn:
/// no borrow is held meanwhile, and the inner call finds an empty string of its own.
fn with_text<T>(fill: impl FnOnce(&mut String), text: impl FnOnce(&str) -> T) -> T {
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    Inside::pause(|| fill(&mut scratch));
    let result = text(&scratch);
    scratch.shrink_to(MAX_KEPT_BUFFER_BYTES);
    let _ = SCRATCH.try_with(|slot| slot.set(scratch));
    result
}

/// Appends `thread.id` (the kernel's, as profilers have it) and `thread.name`, encoded once per thread.
fn append_thread_attributes(fields: &mut Vec<u8>) {
    let _ = THREAD_ATTRIBUTES.try_with(|encoded| {
        let mut encoded = encoded.borrow_mut();
        if encoded.is_empty() {
            if let Some(id) = thread_context::thread_id() {
                encode::attribute(&mut encoded, encode::span::ATTRIBUTES, "thread.id", Value::Int(i64::from(id)));
            }
            let name = std::thread::current().name().unwrap_or("").to_owned();
            encode::attribute(&mut encoded, encode::span::ATTRIBUTES, "thread.name", Value::Str(&name));
        }
        fields.extend_from_slice(&encoded);
    });
}

/// Turns the values of a macro into encoded attributes.
struct FieldEncoder<'a> {
    out: &'a mut Vec<u8>,
    /// Field of the message in `out` that attributes are.
    number: u32,
    limits: &'a Limits,
    kept: u32,
    dropped: u32,
    /// Bits of the fields whose values were kept.
    recorded: u64,
    role: Role<'a>,
}

/// Whose values they are.
enum Role<'a> {
    Span {
        overrides: &'a mut Overrides,
        /// Bits of the fields that have a value from before.
        already: u64,
        /// Keys of those that get another one now.
        replaced: &'a mut Vec<&'static str>,
    },
    Event {
        message: &'a mut Option<String>,
        exception: &'a mut Option<String>,
    },
}

impl FieldEncoder<'_> {
    fn attribute(&mut self, field: &Field, value: Value<'_>) {
        let value = match value {
            Value::Str(text) => Value::Str(cut(text, self.limits.value_bytes)),
            other => other,
        };
        let mut takes_a_place = true;
        if let Role::Span { overrides, already, replaced } = &mut self.role {
            if field.name().strip_prefix("otel.").is_some_and(|name| overrides.set(name, value)) {
                return;
            }
            if *already & field_bit(field) != 0 {
                replaced.push(field.name());
                takes_a_place = false;
            }
        }
        if (takes_a_place && self.kept >= self.limits.attributes) || self.out.len() > MAX_SPAN_BYTES {
            self.dropped += 1;
            return;
        }
        self.recorded |= field_bit(field);
        self.kept += 1;
        encode::attribute(self.out, self.number, field.name(), value);
    }

    fn text(&mut self, field: &Field, fill: impl FnOnce(&mut String)) {
        with_text(fill, |text| self.record_str(field, text));
    }
}

/// The fields of a macro are numbered from 0, and few; those past 63 share the last bit, which only means that an attribute
/// may be looked for in vain.
fn field_bit(field: &Field) -> u64 {
    1 << field.index().min(63)
}

/// The first `limit` bytes of a text, or fewer, to end at a character.
fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    &text[..text.floor_char_boundary(limit)]
}

impl Overrides {
    /// Takes the value of `otel.<name>`; says whether that is one of the special ones.
    fn set(&mut self, name: &str, value: Value<'_>) -> bool {
        let Value::Str(text) = value else { return false };
        match name {
            "name" => self.name = Some(text.into()),
            "kind" => {
                let kinds = ["internal", "server", "client", "producer", "consumer"];
                self.kind = kinds.iter().position(|kind| text.eq_ignore_ascii_case(kind)).map_or(self.kind, |at| at as u8 + 1);
            }
            "status_code" => {
                let codes = ["unset", "ok", "error"];
                self.status = codes.iter().position(|code| text.eq_ignore_ascii_case(code)).map_or(self.status, |at| at as u8);
            }
            "status_description" | "status_message" => self.status_message = Some(text.into()),
            _ => return false,
        }
        true
    }
}

impl Visit for FieldEncoder<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attribute(field, Value::Double(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attribute(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.attribute(field, Value::Int(value)),
            // OTLP has no larger integers: digits lose nothing.
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.attribute(field, Value::Int(value)),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match i64::try_from(value) {
            Ok(value) => self.attribute(field, Value::Int(value)),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attribute(field, Value::Bool(value));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.attribute(field, Value::Bytes(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if let Role::Event { message, exception } = &mut self.role {
            match field.name() {
                "message" => {
                    **message = Some(cut(value, self.limits.value_bytes).to_owned());
                    return;
                }
                // What `#[instrument(err)]` names the error it logs.
                "error" => **exception = Some(value.to_owned()),
                _ => {}
            }
        }
        self.attribute(field, Value::Str(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.text(field, |text| {
            let _ = write!(text, "{value}");
        });
        // Its causes, outermost first, bounded because nothing says that the chain ends.
        let causes = std::iter::successors(value.source(), |cause| cause.source()).take(16);
        let causes = || causes.map(|cause| cut(&cause.to_string(), self.limits.value_bytes).to_owned()).collect::<Vec<_>>();
        let causes = Inside::pause(causes);
        if !causes.is_empty() && self.kept < self.limits.attributes && self.out.len() <= MAX_SPAN_BYTES {
            self.kept += 1;
            encode::attribute(self.out, self.number, &format!("{}.chain", field.name()), Value::Texts(&causes));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, |text| {
            let _ = write!(text, "{value:?}");
        });
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
        shelter::admits_callsite(metadata)
    }

    fn on_new_span(&self, attrs: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        if shelter::is_ending() {
            return;
        }
        shelter::has_number();
        let _inside = Inside::begin();
        // What our own threads do on the way to the collector is not the program's, and would never end.
        if self.core.disabled || is_own_thread() {
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
        // The values are the program's code: they are asked before the span is locked, for they may use the span.
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
        shelter::has_stack();
        let Some(span) = ctx.span(id) else { return };
        let Some(context) = span.extensions().get::<SpanState>().map(|state| state.context) else { return };
        #[cfg(feature = "opentelemetry")]
        if self.shares_context {
            // Whoever watches OpenTelemetry's context publishes it.
            let carried = span.extensions().get::<SpanState>().and_then(|state| state.carried.clone());
            crate::otel_context::attach(self.key(id), context, carried.as_deref());
            return;
        }
        span_stack::enter(self.key(id), context);
    }

    fn on_exit(&self, id: &Id, _ctx: Context<'_, S>) {
        #[cfg(feature = "opentelemetry")]
        if self.shares_context {
            crate::otel_context::detach(self.key(id));
            return;
        }
        span_stack::exit(self.key(id));
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let _inside = Inside::begin();
        let Some(span) = ctx.span(&id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(state) = extensions.get_mut::<SpanState>() else { return };
        let end = shelter::closed_at().map_or_else(|| self.clock.now(), |at| self.clock.at(at));
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

impl Overrides {
    fn merge(&mut self, later: Overrides) {
        if later.name.is_some() {
            self.name = later.name;
        }
        if later.kind != 0 {
            self.kind = later.kind;
        }
        if later.status != 0 {
            self.status = later.status;
        }
        if later.status_message.is_some() {
            self.status_message = later.status_message;
        }
    }
}

impl SpanState {
    /// Completes the fields of OTLP's `Span`.
    fn finish(&self, mut fields: Vec<u8>, name: &str, end: i64) -> Vec<u8> {
        use encode::span;
        let out = &mut fields;
        encode::bytes(out, span::TRACE_ID, &self.context.trace_id);
        encode::bytes(out, span::SPAN_ID, &self.context.span_id);
        if let Some(parent) = &self.parent {
            encode::bytes(out, span::PARENT_SPAN_ID, parent);
        }
        if let Some(state) = self.carried.as_ref().and_then(|carried| carried.tracestate.as_deref()) {
            encode::bytes(out, span::TRACE_STATE, state.as_bytes());
        }
        encode::bytes(out, span::NAME, self.overrides.name.as_deref().unwrap_or(name).as_bytes());
        encode::uint(out, span::KIND, u64::from(self.overrides.kind));
        encode::fixed64(out, span::START_TIME, (self.start + self.unix_offset) as u64);
        encode::fixed64(out, span::END_TIME, (end + self.unix_offset) as u64);
        encode::status(out, self.overrides.status, self.overrides.status_message.as_deref().unwrap_or(""));
        encode::fixed32(out, span::FLAGS, otlp_flags(self.context.flags, self.parent_is_remote));
        let dropped = [
            (span::DROPPED_ATTRIBUTES, self.dropped.attributes),
            (span::DROPPED_EVENTS, self.dropped.events),
            (span::DROPPED_LINKS, self.dropped.links),
        ];
        for (field, count) in dropped {
            if count > 0 {
                encode::uint(out, field, u64::from(count));
            }
        }
        fields
    }
}

/// What `tracing` has no words for: a span's ids as they travel, and its ties to spans of other processes.
///
/// A span that is switched off, or that is no [`Layer`]'s, has no ids; calls on it do nothing. With one of OpenTelemetry's span
/// processors ([`Builder::span_processor`](crate::Builder::span_processor)) the same calls reach `tracing-opentelemetry`.
pub trait SpanExt {
    /// The span as a `traceparent`, to send with a request. `None` where the span is switched off.
    fn traceparent(&self) -> Option<String>;

    /// Makes the span a child of a span of another process. Fails where the text is no `traceparent`, and where the span has
    /// children by now.
    fn set_parent_traceparent(&self, traceparent: &str) -> Result<(), TraceparentError>;

    /// Makes the span a child of the span that a request came from, by its headers, which `get` returns the values of by their
    /// names in lower case: `traceparent`, `tracestate` and `baggage`. The latter two go on to whatever this span and its
    /// descendants call ([`SpanExt::inject`]); `tracestate` is sent along with the span. Without a `traceparent` nothing happens.
    fn set_parent_from(&self, get: impl Fn(&str) -> Option<String>) -> Result<(), TraceparentError>;

    /// Gives the headers that a request made for this span carries to `set`: name and value, in the form of W3C.
    fn inject(&self, set: impl FnMut(&'static str, &str));

    /// Links the span to another span, of this process or of another, open or ended. To longpole, a link to a span that ended
    /// before says: this one waited for it.
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
            span_stack::replace(key, context);
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
            // Ids that come as text may come from anywhere: nothing is said about whose they are.
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

/// The ids of the span that an event belongs to, for its line in the log.
pub(crate) fn context_in(extensions: &tracing_subscriber::registry::Extensions<'_>) -> Option<SpanContext> {
    extensions.get::<SpanState>().map(|state| state.context)
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
