//! In: tags and logs become a span.

use std::sync::Arc;

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::id::{SpanId, TraceId};
use longpole_model::interned_text::Text;
use longpole_model::resource::{Resource, Scope};
use longpole_model::span::{Span, SpanEvent, SpanKind, SpanLink, Status, StatusCode};
use longpole_model::time::Timestamp;

use super::keys::{
    DROPPED_ATTRIBUTES, DROPPED_EVENTS, DROPPED_LINKS, ERROR, EVENT, FLAGS, KIND, LINK_PREFIX, RESOURCE_PREFIX, SCOPE_NAME, SCOPE_VERSION,
    SERVICE_NAME, STATUS_CODE, STATUS_DESCRIPTION, TRACE_ID, TRACE_STATE, UNFINISHED, is_spoken_for, typed,
};
use crate::attribute_json::PlainObject;
use crate::limits::Limits;
use crate::pulumi_payload::Identity;
use crate::{attribute_json, json, pulumi_payload};

/// Attribute of a span with a time that no [`Timestamp`] of OTLP's holds; its value is the time as it was sent. A key for
/// each such time.
const TIME_CLAMPED: &str = "longpole.time_clamped";

/// Attributes of a resource that many spans share, up to which a span with an attribute of its own for it has a copy. OpenTelemetry's
/// resources have some twenty. Beyond, the span keeps the tag as it came.
const COPIED_MAX: usize = 128;

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
            STATUS_DESCRIPTION => self.description = Some(attribute_json::as_text(value).into()),
            SCOPE_NAME => self.scope.name = attribute_json::as_text(value).into_owned(),
            SCOPE_VERSION => self.scope.version = attribute_json::as_text(value).into_owned(),
            TRACE_STATE => self.trace_state = attribute_json::as_text(value).into(),
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
                let body = attribute_json::as_text(&field.value);
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
        let time = i64::try_from(nanos.max(0)).unwrap_or(i64::MAX);
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

    pub(super) fn is_unfinished(&self) -> bool {
        self.attributes.get(UNFINISHED) == Some(&AttributeValue::Bool(true))
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
    pub(super) fn resource(&mut self) -> Arc<Resource> {
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
    pub(super) fn status(&mut self) -> Status {
        let error = self.error.take();
        if let Some(code) = self.status_code {
            let why = error.filter(|error| said(error).is_none());
            let message = self.description.take().or_else(|| why.map(|why| attribute_json::as_text(&why).into()));
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
            Some((None, error)) => {
                Status { code: StatusCode::Error, message: message.unwrap_or_else(|| attribute_json::as_text(error).into()) }
            }
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
        AttributeValue::Int(number @ 0..=2) => i32::try_from(*number).ok().map(StatusCode::from_otlp),
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
