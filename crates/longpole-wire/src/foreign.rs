//! What the formats share that are not OTLP: how a span of theirs becomes one of the model, and how one of the model is
//! said in tags where they have no field for it.
//!
//! ```text
//! in   tags, logs ──► Building ──► Span ──► deliver ──► sink
//! out  Span ──► said_in_tags, event_text ──► the format's own writer, and CannotHold: what got lost
//! ```
//!
//! | tag | is | known to |
//! |---|---|---|
//! | `span.kind` | kind | OpenTracing, Jaeger |
//! | `error`, `otel.status_code`, `otel.status_description` | status | OpenTelemetry's rules for Zipkin and Jaeger |
//! | `otel.scope.name`, `otel.scope.version` | scope | the same |
//! | `otel.dropped_attributes_count`, `…events…`, `…links…` | what the emitter dropped | the same |
//! | `w3c.tracestate` | trace state | Jaeger, the Collector |
//! | `otlp.link.0`, … | link: `trace id\|span id\|state\|attributes as JSON\|dropped` | the Collector |
//! | `otel.resource.KEY` | attribute of the resource | us |
//! | `longpole.flags`, `longpole.trace_id` | flags; a trace id that is longer than the format's | us |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::id::{SpanId, TraceId};
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource::{Resource, Scope};
use longpole_model::resource_event;
use longpole_model::sink::{EventRef, LinkRef, SpanRef, SpanSink, ValueRef};
use longpole_model::span::{Span, SpanEvent, SpanKind, SpanLink, Status, StatusCode};
use longpole_model::texts::Text;
use longpole_model::time::Timestamp;

use crate::emitter::CUT;
use crate::json;
use crate::limits::Limits;
use crate::plain::{self, Plain, PlainObject};
use crate::pulumi_payload::{self, Identity};

/// Attribute of a span whose end never came. Its end is the last that is known of it.
pub const UNFINISHED: &str = "longpole.unfinished";
/// Attribute of a span with a time that no [`Timestamp`] of OTLP's holds; its value is the time as it was sent. A key for
/// each such time.
pub const TIME_CLAMPED: &str = "longpole.time_clamped";
/// What is said of such times, by whatever way they came.
pub(crate) const TIMES_MOVED: &str = "times before 1970 or after 2262, moved to the nearest that a recording can hold";
/// Tag that holds the trace id where the format has only 64 bits for it.
pub(crate) const TRACE_ID: &str = "longpole.trace_id";

const KIND: &str = "span.kind";
const ERROR: &str = "error";
const STATUS_CODE: &str = "otel.status_code";
const STATUS_DESCRIPTION: &str = "otel.status_description";
const SCOPE_NAME: &str = "otel.scope.name";
const SCOPE_VERSION: &str = "otel.scope.version";
const DROPPED_ATTRIBUTES: &str = "otel.dropped_attributes_count";
const DROPPED_EVENTS: &str = "otel.dropped_events_count";
const DROPPED_LINKS: &str = "otel.dropped_links_count";
const TRACE_STATE: &str = "w3c.tracestate";
const FLAGS: &str = "longpole.flags";
const LINK_PREFIX: &str = "otlp.link.";
const RESOURCE_PREFIX: &str = "otel.resource.";
const SERVICE_NAME: &str = "service.name";

/// Attributes of a resource that many spans share, up to which a span with an attribute of its own for it has a copy. OpenTelemetry's
/// resources have some twenty. Beyond, the span keeps the tag as it came.
const COPIED_MAX: usize = 128;

/// Name of a log's field that names the event.
const EVENT: &str = "event";

/// A span under construction.
pub(crate) struct Building {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) parent_span_id: Option<SpanId>,
    pub(crate) name: Text,
    pub(crate) kind: SpanKind,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) attributes: Attributes,
    pub(crate) events: Vec<SpanEvent>,
    pub(crate) links: Vec<SpanLink>,
    pub(crate) flags: u32,
    pub(crate) resource: Attributes,
    /// The resource, where many spans have the same.
    pub(crate) shared_resource: Option<Arc<Resource>>,
    /// Times that were moved to the nearest that OTLP can spell.
    pub(crate) moved: u64,
    trace_state: Text,
    dropped: [u32; 3],
    scope: Scope,
    status_code: Option<StatusCode>,
    description: Option<Text>,
    error: Option<AttributeValue>,
    identity: Identity,
}

impl Building {
    /// A span that came by this channel, which is its scope unless a tag names one.
    pub(crate) fn new(channel: &str, trace_id: TraceId, span_id: SpanId) -> Self {
        Building {
            trace_id,
            span_id,
            parent_span_id: None,
            name: Text::new(),
            kind: SpanKind::Unspecified,
            start: Timestamp::default(),
            end: Timestamp::default(),
            attributes: Attributes::default(),
            events: Vec::new(),
            links: Vec::new(),
            flags: 0,
            resource: Attributes::default(),
            shared_resource: None,
            moved: 0,
            trace_state: Text::new(),
            dropped: [0; 3],
            scope: Scope { name: channel.to_owned(), ..Scope::default() },
            status_code: None,
            description: None,
            error: None,
            identity: Identity::default(),
        }
    }

    /// The name of the service that emitted it, where the format says one.
    pub(crate) fn service(&mut self, name: &str) {
        if !name.is_empty() {
            self.resource.push(SERVICE_NAME, AttributeValue::Str(name.into()));
        }
    }

    /// One tag: what the table above names goes to its place, the rest is an attribute.
    pub(crate) fn tag(&mut self, key: &str, value: AttributeValue) {
        if !is_spoken_for(key) || !self.take(key, &value) {
            if key == ERROR && self.error.is_none() {
                self.error = Some(value);
            } else {
                self.attributes.push(key, typed(key, value));
            }
        }
    }

    /// Whether the tag had the value of its place.
    fn take(&mut self, key: &str, value: &AttributeValue) -> bool {
        let text = value.as_str();
        let number = value.as_int().and_then(|number| u32::try_from(number).ok());
        let into = |slot: &mut u32| number.map(|number| *slot = number).is_some();
        match key {
            KIND => match text.and_then(kind_of) {
                Some(kind) => self.kind = kind,
                None => return false,
            },
            STATUS_CODE => match status_of(value) {
                Some(code) => self.status_code = Some(code),
                None => return false,
            },
            STATUS_DESCRIPTION => self.description = Some(plain::as_text(value).into()),
            SCOPE_NAME => self.scope.name = plain::as_text(value).into_owned(),
            SCOPE_VERSION => self.scope.version = plain::as_text(value).into_owned(),
            TRACE_STATE => self.trace_state = plain::as_text(value).into(),
            FLAGS => return into(&mut self.flags),
            DROPPED_ATTRIBUTES => return into(&mut self.dropped[0]),
            DROPPED_EVENTS => return into(&mut self.dropped[1]),
            DROPPED_LINKS => return into(&mut self.dropped[2]),
            TRACE_ID => match text.and_then(|text| text.parse().ok()) {
                Some(id) => self.trace_id = id,
                None => return false,
            },
            _ if key.starts_with(LINK_PREFIX) => match text.and_then(link_of) {
                Some(link) => self.links.push(link),
                None => return false,
            },
            _ => match key.strip_prefix(RESOURCE_PREFIX) {
                Some(key) => self.resource.push(key, value.clone()),
                None => return false,
            },
        }
        true
    }

    /// A log of fields, as OpenTracing has it.
    pub(crate) fn log(&mut self, time: Timestamp, mut fields: Vec<Attribute>) {
        let mut name = None;
        for field in &mut fields {
            if let Some(key) = pulumi_payload::KEYS.into_iter().find(|key| *key == field.key) {
                let body = plain::as_text(&field.value);
                if pulumi_payload::is_left_out(&body) {
                    continue;
                }
                self.identity.merge(Identity::of_body(&body));
                let left_out = pulumi_payload::left_out(body.len());
                field.value = AttributeValue::Str(left_out.into());
                name = Some(key.into());
            }
        }
        let named = fields.iter().position(|field| field.key == EVENT && field.value.as_str().is_some());
        if let Some(AttributeValue::Str(text)) = named.map(|at| fields.remove(at).value) {
            name = Some(text);
        }
        self.events.push(SpanEvent { time, name: name.unwrap_or_else(|| "log".into()), attributes: Attributes(fields) });
    }

    /// A log as a text: a JSON object of fields, or a name.
    pub(crate) fn log_text(&mut self, time: Timestamp, text: &str, limits: &Limits) {
        let fields = text.trim_start().starts_with('{').then(|| json::parse::<PlainObject>(text.as_bytes(), limits));
        match fields {
            Some(Ok(PlainObject(fields))) if !fields.is_empty() => self.log(time, fields),
            _ => match pulumi_payload::find(text) {
                // Cut off, or otherwise not JSON.
                Some(payload) => {
                    self.identity.merge(payload.identity);
                    let body = AttributeValue::Str(pulumi_payload::left_out(payload.body_bytes).into());
                    let attributes = Attributes(vec![Attribute { key: payload.key.into(), value: body }]);
                    self.events.push(SpanEvent { time, name: payload.key.into(), attributes });
                }
                None => self.events.push(SpanEvent { time, name: text.into(), attributes: Attributes::default() }),
            },
        }
    }

    /// Nanoseconds since the Unix epoch as a time. What OTLP cannot spell (before 1970, after 2262) becomes the nearest time
    /// that it can, and the span is marked with what was sent.
    pub(crate) fn time(&mut self, nanos: i128, sent: impl FnOnce() -> String) -> Timestamp {
        let time = nanos.clamp(0, i128::from(i64::MAX)) as i64;
        if i128::from(time) != nanos {
            self.moved += 1;
            self.attributes.push(TIME_CLAMPED, AttributeValue::Str(sent().into()));
        }
        Timestamp(time)
    }

    /// The same for microseconds.
    pub(crate) fn micros(&mut self, micros: i128) -> Timestamp {
        self.time(micros.saturating_mul(1000), || format!("{micros} us"))
    }

    /// Marks a span whose end never came.
    pub(crate) fn unfinished(&mut self) {
        if self.attributes.get(UNFINISHED).is_none() {
            self.attributes.push(UNFINISHED, AttributeValue::Bool(true));
        }
    }

    /// The span.
    pub(crate) fn finish(mut self) -> Span {
        let status = self.status();
        let resource = self.resource();
        self.identity.attach(&mut self.attributes);
        Span {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent_span_id: self.parent_span_id,
            trace_state: self.trace_state,
            flags: self.flags,
            name: self.name,
            kind: self.kind,
            start: self.start,
            end: self.end,
            attributes: self.attributes,
            dropped_attributes: self.dropped[0],
            events: self.events.into(),
            dropped_events: self.dropped[1],
            links: self.links.into(),
            dropped_links: self.dropped[2],
            status,
            pid: None,
            resource,
            scope: Arc::new(self.scope),
        }
    }

    /// The shared resource, unless a tag said something of this span's own.
    fn resource(&mut self) -> Arc<Resource> {
        let own = std::mem::take(&mut self.resource.0);
        match self.shared_resource.take() {
            Some(shared) if own.is_empty() => shared,
            // A copy of all that a process says, for each span that adds a word to it, may be any number of times the file.
            Some(shared) if shared.attributes.0.len() > COPIED_MAX => {
                let own = own.into_iter().map(|it| Attribute { key: format!("{RESOURCE_PREFIX}{}", it.key).into(), ..it });
                self.attributes.0.extend(own);
                shared
            }
            Some(shared) => Arc::new(Resource { attributes: Attributes(shared.attributes.0.iter().cloned().chain(own).collect()) }),
            None => Arc::new(Resource { attributes: Attributes(own) }),
        }
    }

    /// With a status code, `error` only repeats it; alone, it is `true`, `false`, or why.
    fn status(&mut self) -> Status {
        let error = self.error.take();
        if let Some(code) = self.status_code {
            let why = error.filter(|error| said(error).is_none());
            let message = self.description.take().or_else(|| why.map(|why| plain::as_text(&why).into()));
            return Status { code, message: message.unwrap_or_default() };
        }
        let message = self.description.take();
        match error.as_ref().map(|error| (said(error), error)) {
            None => Status { code: StatusCode::Unset, message: message.unwrap_or_default() },
            Some((Some(true), _)) => Status { code: StatusCode::Error, message: message.unwrap_or_default() },
            Some((Some(false), error)) => {
                self.attributes.push(ERROR, error.clone());
                Status { code: StatusCode::Unset, message: message.unwrap_or_default() }
            }
            Some((None, error)) => Status { code: StatusCode::Error, message: message.unwrap_or_else(|| plain::as_text(error).into()) },
        }
    }
}

/// What an `error` tag says, where it does not say why.
fn said(error: &AttributeValue) -> Option<bool> {
    match error {
        AttributeValue::Bool(truth) => Some(*truth),
        AttributeValue::Str(text) if text == "true" || text.is_empty() => Some(true),
        AttributeValue::Str(text) if text == "false" => Some(false),
        AttributeValue::Empty => Some(true),
        _ => None,
    }
}

/// Whether a tag of this name means something else than an attribute.
pub(crate) fn is_spoken_for(key: &str) -> bool {
    const KEYS: [&str; 11] = [
        KIND,
        ERROR,
        STATUS_CODE,
        STATUS_DESCRIPTION,
        SCOPE_NAME,
        SCOPE_VERSION,
        DROPPED_ATTRIBUTES,
        DROPPED_EVENTS,
        DROPPED_LINKS,
        TRACE_STATE,
        FLAGS,
    ];
    KEYS.contains(&key) || key == TRACE_ID || key.starts_with(LINK_PREFIX) || key.starts_with(RESOURCE_PREFIX)
}

fn kind_of(text: &str) -> Option<SpanKind> {
    const KINDS: [SpanKind; 5] = [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
    KINDS.into_iter().find(|kind| kind.as_str() == text)
}

fn status_of(value: &AttributeValue) -> Option<StatusCode> {
    match value {
        AttributeValue::Str(text) => match &**text {
            "OK" => Some(StatusCode::Ok),
            "ERROR" => Some(StatusCode::Error),
            "UNSET" => Some(StatusCode::Unset),
            _ => None,
        },
        // Early exporters wrote the number.
        AttributeValue::Int(number @ 0..=2) => Some(StatusCode::from_otlp(*number as i32)),
        _ => None,
    }
}

/// `trace id|span id|state|attributes|dropped`; the attributes may hold bars themselves.
fn link_of(text: &str) -> Option<SpanLink> {
    let mut parts = text.splitn(4, '|');
    let (trace_id, span_id, _state) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    let (attributes, _dropped) = parts.next()?.rsplit_once('|')?;
    let PlainObject(attributes) = json::parse(attributes.as_bytes(), &Limits::default()).ok()?;
    Some(SpanLink { trace_id, span_id, attributes: Attributes(attributes) })
}

/// A 64-bit trace id as one of 128 bits.
pub(crate) fn trace_id(high: u64, low: u64) -> Option<TraceId> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    TraceId::new(bytes)
}

/// A span id, `None` for zero.
pub(crate) fn span_id(number: u64) -> Option<SpanId> {
    SpanId::new(number.to_be_bytes())
}

/// The two halves of a trace id.
pub(crate) fn halves(id: TraceId) -> (u64, u64) {
    let number = u128::from_be_bytes(id.bytes());
    ((number >> 64) as u64, number as u64)
}

/// The number of a span id.
pub(crate) fn number(id: SpanId) -> u64 {
    u64::from_be_bytes(id.bytes())
}

/// Hex of up to 32 digits without the zeroes before it, as Jaeger writes ids. `None` where it is no id; zero is one here.
pub(crate) fn hex_id(text: &str) -> Option<u128> {
    if text.is_empty() || text.len() > 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// An id that a text names: none, a wrong one, or one.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum HexId {
    #[default]
    None,
    Invalid,
    Valid(u128),
}

impl HexId {
    pub(crate) fn trace_id(self) -> Option<TraceId> {
        match self {
            HexId::Valid(number) => TraceId::new(number.to_be_bytes()),
            HexId::None | HexId::Invalid => None,
        }
    }

    pub(crate) fn span_id(self) -> Option<SpanId> {
        match self {
            HexId::Valid(number) => span_id(u64::try_from(number).ok()?),
            HexId::None | HexId::Invalid => None,
        }
    }

    /// Whether a reference was meant that names nothing.
    pub(crate) fn is_bad_reference(self) -> bool {
        self != HexId::None && self.span_id().is_none()
    }
}

impl<'de> json::Json<'de> for HexId {
    const EXPECTED: &'static str = "an id in hex";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(match hex_id(&text) {
            Some(0) => HexId::None,
            Some(number) => HexId::Valid(number),
            None if text.is_empty() => HexId::None,
            None => HexId::Invalid,
        })
    }
}

/// What of a good document could not be kept.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) spans: u64,
    pub(crate) references: u64,
    pub(crate) texts: u64,
    pub(crate) times: u64,
    pub(crate) cut: u64,
}

impl Losses {
    pub(crate) fn report(self, sink: &mut dyn SpanSink) {
        let losses = [
            (LossKind::SpansInvalid, self.spans, "spans without a valid trace or span id"),
            (LossKind::ReferencesInvalid, self.references, "parents or links that are not a valid trace and span id"),
            (LossKind::TextReplaced, self.texts, "texts that are not utf-8"),
            (LossKind::AttributesCut, self.cut, CUT),
            (LossKind::FormatCannotHold, self.times, TIMES_MOVED),
        ];
        for (kind, count, detail) in losses {
            if count > 0 {
                sink.loss(Loss::new(kind, count, detail));
            }
        }
    }
}

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

/// What an export could not say, by reason.
#[derive(Debug)]
pub(crate) struct CannotHold {
    reasons: BTreeMap<&'static str, u64>,
    /// What resources that are long may still take.
    long_resources_left: usize,
}

impl Default for CannotHold {
    fn default() -> Self {
        CannotHold { reasons: BTreeMap::new(), long_resources_left: LONG_RESOURCES_BYTES_MAX }
    }
}

impl CannotHold {
    /// One more, where it is so.
    pub(crate) fn count(&mut self, is_so: bool, reason: &'static str) {
        if is_so {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.reasons.into_iter().map(|(reason, count)| Loss::new(LossKind::FormatCannotHold, count, reason)).collect()
    }
}

/// What a span says beside its fields and attributes, as tags; see the table at the top of this file. The kind is not
/// among them: some formats have a field for it.
pub(crate) fn said_in_tags(span: &Span, channel: &str, lost: &mut CannotHold) -> Vec<(Cow<'static, str>, String)> {
    let mut tags = Vec::new();
    let mut tag = |key: &'static str, value: String| tags.push((Cow::Borrowed(key), value));
    let status = &span.status;
    match status.code {
        StatusCode::Error => {
            tag(STATUS_CODE, "ERROR".to_owned());
            tag(ERROR, if status.message.is_empty() { "true".to_owned() } else { status.message.to_string() });
        }
        StatusCode::Ok => tag(STATUS_CODE, "OK".to_owned()),
        StatusCode::Unset => {}
    }
    if !status.message.is_empty() {
        tag(STATUS_DESCRIPTION, status.message.to_string());
    }
    if span.scope.name != channel || !span.scope.version.is_empty() {
        tag(SCOPE_NAME, span.scope.name.clone());
        if !span.scope.version.is_empty() {
            tag(SCOPE_VERSION, span.scope.version.clone());
        }
    }
    lost.count(!span.scope.attributes.0.is_empty(), "attributes of scopes");
    if !span.trace_state.is_empty() {
        tag(TRACE_STATE, span.trace_state.to_string());
    }
    for (key, count) in
        [(DROPPED_ATTRIBUTES, span.dropped_attributes), (DROPPED_EVENTS, span.dropped_events), (DROPPED_LINKS, span.dropped_links)]
    {
        if count > 0 {
            tag(key, count.to_string());
        }
    }
    tags
}

/// Flags of the span as a tag, for formats without a field for them.
pub(crate) fn flags_tag(span: &Span) -> Option<(Cow<'static, str>, String)> {
    (span.flags != 0).then(|| (Cow::Borrowed(FLAGS), span.flags.to_string()))
}

/// The kind of the span as a tag, for formats without a field for it.
pub(crate) fn kind_tag(span: &Span) -> Option<(Cow<'static, str>, String)> {
    (span.kind != SpanKind::Unspecified).then(|| (Cow::Borrowed(KIND), span.kind.as_str().to_owned()))
}

/// Links of the span as tags, for formats without links.
pub(crate) fn link_tags(span: &Span, lost: &mut CannotHold) -> Vec<(Cow<'static, str>, String)> {
    let mut tags = Vec::with_capacity(span.links.len());
    for (index, link) in span.links.iter().enumerate() {
        let mut text = format!("{}|{}||{{", link.trace_id, link.span_id);
        lost.count(!plain::write_members(&mut text, &link.attributes.0), TYPES);
        text.push_str("}|0");
        tags.push((Cow::Owned(format!("{LINK_PREFIX}{index}")), text));
    }
    tags
}

/// Attributes of the resource other than the name of the service as tags, for formats without them.
///
/// These say them with every span, where OTLP says them once: 64 KiB beside 20,000 spans would be a gigabyte and a half. So after
/// [`LONG_RESOURCES_BYTES_MAX`] of long ones each span has [`RESOURCE_BYTES`] of its own.
pub(crate) fn resource_tags(span: &Span, lost: &mut CannotHold) -> Vec<(Cow<'static, str>, String)> {
    let (_, others) = service_and_others(&span.resource);
    let tag = |attribute: &Attribute, lost: &mut CannotHold| {
        (Cow::Owned(format!("{RESOURCE_PREFIX}{}", attribute.key)), text_of(&attribute.value, lost).into_owned())
    };
    let mut tags: Vec<_> = others.map(|attribute| tag(attribute, lost)).collect();
    let size = |(key, value): &(Cow<'static, str>, String)| key.len() + value.len();
    let bytes: usize = tags.iter().map(size).sum();
    if bytes <= RESOURCE_BYTES {
        return tags;
    }
    match lost.long_resources_left.checked_sub(bytes) {
        Some(left) => lost.long_resources_left = left,
        None => {
            let mut left = RESOURCE_BYTES;
            tags.retain(|tag| {
                left.checked_sub(size(tag)).is_some_and(|rest| {
                    left = rest;
                    true
                })
            });
            lost.count(true, LONG_RESOURCES);
        }
    }
    tags
}

/// Bytes of its resource that a span has in any case, in formats that repeat it.
const RESOURCE_BYTES: usize = 4 << 10;

/// Bytes of longer resources in one file or request of such a format: 6,500 spans of a Java program with a class path of 10 KB.
const LONG_RESOURCES_BYTES_MAX: usize = 64 << 20;

/// Why a span comes back with a part of its resource.
const LONG_RESOURCES: &str = "spans whose resource is longer than 4 KiB, behind 64 MiB of them: the format repeats it with each span";

/// The name of the service, which has a place of its own in every format, and the other attributes of a resource. Where a
/// resource has several names, only the first one counts, so that their order comes back.
pub(crate) fn service_and_others(resource: &Resource) -> (Option<&str>, impl Iterator<Item = &Attribute>) {
    let attributes = &resource.attributes.0;
    let at = attributes.iter().position(|attribute| attribute.key == SERVICE_NAME);
    let service = at.and_then(|at| attributes[at].value.as_str()).filter(|name| !name.is_empty());
    let skipped = at.filter(|_| service.is_some());
    let others = attributes.iter().enumerate().filter(move |(index, _)| Some(*index) != skipped).map(|(_, attribute)| attribute);
    (service, others)
}

/// Why a value comes back as another type.
pub(crate) const TYPES: &str = "types of values that are not texts";
/// Why an attribute comes back as something else.
pub(crate) const NAMES: &str = "attributes whose name means something else in this format";
/// Why a time comes back rounded down.
pub(crate) const NANOS: &str = "times more precise than a microsecond";

/// Why a time does not come back.
pub(crate) const BEFORE_1970: &str = "times before 1970";

/// The value of an attribute as a text. Two of ours come back as what they are.
pub(crate) fn attribute_text<'a>(attribute: &'a Attribute, lost: &mut CannotHold) -> Cow<'a, str> {
    let is_ours = matches!(&*attribute.key, UNFINISHED | resource_event::DEPENDENCIES);
    let text = plain::as_text(&attribute.value);
    if is_ours && typed(&attribute.key, AttributeValue::Str(text.as_ref().into())) == attribute.value {
        return text;
    }
    text_of(&attribute.value, lost)
}

/// Our own attributes that are no texts have their type back where a format made them texts.
fn typed(key: &str, value: AttributeValue) -> AttributeValue {
    match (key, &value) {
        (UNFINISHED, AttributeValue::Str(text)) if text == "true" => AttributeValue::Bool(true),
        (resource_event::DEPENDENCIES, AttributeValue::Str(text)) if text.starts_with('[') => {
            json::parse::<Plain>(text.as_bytes(), &Limits::default()).map_or(value, |Plain(value)| value)
        }
        _ => value,
    }
}

/// A value as a text, which is what it comes back as.
pub(crate) fn text_of<'v>(value: &'v AttributeValue, lost: &mut CannotHold) -> Cow<'v, str> {
    lost.count(value.as_str().is_none(), TYPES);
    plain::as_text(value)
}

/// An event as the text of a log.
pub(crate) fn event_text(event: &SpanEvent, lost: &mut CannotHold) -> String {
    if event.attributes.0.is_empty() && !event.name.trim_start().starts_with('{') && pulumi_payload::find(&event.name).is_none() {
        return event.name.to_string();
    }
    let mut text = String::from("{\"event\":");
    plain::write_text(&mut text, &event.name);
    if !event.attributes.0.is_empty() {
        text.push(',');
        lost.count(!plain::write_members(&mut text, &event.attributes.0), TYPES);
    }
    text.push('}');
    text
}
