//! OTLP/JSON: the same requests as text.
//!
//! What proto3's JSON mapping and OTLP's own rules allow is taken: names in lowerCamelCase or as the schema spells them,
//! ids in hex of either case, 64-bit integers as texts or numbers, enums as numbers or names, `null` for "not set",
//! unknown names ignored, bytes in base64. A name that stands twice is taken as it stands last.

use std::borrow::Cow;
use std::str::FromStr;

use longpole_model::attribute::Attributes;
use longpole_model::id::{IdError, SpanId, TraceId};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{EventRef, LinkRef, SpanRef, SpanSink, ValueRef};
use longpole_model::span::{SpanKind, StatusCode};
use serde::de::{Error as _, IgnoredAny, MapAccess};

use super::common::PairRef;
pub use super::json_encode::encode;
use super::trace::Losses;
use crate::base64;
use crate::emitter::{fit_resource, fit_scope};
use crate::error::DecodeError;
pub use crate::json::UnreadMembers;
use crate::json::{Context, Element, Json, List, Role, member, message, name, parse_request};
use crate::limits::Limits;

/// Gives the spans of a request to the sink. What [`trace::decode`](super::trace::decode) says of errors and losses holds
/// here too; a text that is not UTF-8 is not JSON, though, and refuses the request.
///
/// Beyond the limits, serde_json refuses more than 128 open brackets.
///
/// # Errors
///
/// The text is no JSON, no request, or exceeds the limits.
pub fn decode(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    decode_and_say_unread(bytes, limits, sink).map(|_| ())
}

/// [`decode`], and what of the request has no place in the model.
///
/// # Errors
///
/// Those of [`decode`].
pub fn decode_and_say_unread(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<UnreadMembers, DecodeError> {
    let (request, unread): (Request<'_>, UnreadMembers) = parse_request(bytes, limits)?;
    let mut losses = Losses::default();
    let mut scratch = Scratch::default();
    for of_resource in &request.resource_spans.kept {
        let resource = &of_resource.resource;
        losses.dropped += u64::from(resource.dropped_attributes_count);
        let mut resource = Resource { attributes: owned(&resource.attributes) };
        losses.cut += fit_resource(&mut resource);
        sink.resource(resource);
        for of_scope in &of_resource.scope_spans.kept {
            let scope = &of_scope.scope;
            losses.dropped += u64::from(scope.dropped_attributes_count);
            let attributes = owned(&scope.attributes);
            let mut scope = Scope { name: scope.name.to_string(), version: scope.version.to_string(), attributes };
            losses.cut += fit_scope(&mut scope);
            sink.scope(scope);
            losses.spans += of_scope.spans.left_out;
            for span in &of_scope.spans.kept {
                lend(span, &mut scratch, &mut losses, sink);
            }
        }
    }
    losses.report(sink);
    Ok(unread)
}

/// A number or a name of an enum; what OTLP does not define is "unspecified", as it is in protobuf.
macro_rules! enumeration {
    ($type:ty, $expected:literal, $($name:literal => $value:expr),+) => {
        impl<'de> Json<'de> for $type {
            const EXPECTED: &'static str = $expected;

            fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
                Ok(i32::try_from(number).map(Self::from_otlp).unwrap_or_default())
            }

            fn keeps(text: &str) -> bool {
                [$($name),+].contains(&text)
            }

            fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
                Ok(match &*text {
                    $($name => $value,)+
                    _ => Self::default(),
                })
            }
        }
    };
}

enumeration!(SpanKind, "a span kind",
    "SPAN_KIND_INTERNAL" => SpanKind::Internal,
    "SPAN_KIND_SERVER" => SpanKind::Server,
    "SPAN_KIND_CLIENT" => SpanKind::Client,
    "SPAN_KIND_PRODUCER" => SpanKind::Producer,
    "SPAN_KIND_CONSUMER" => SpanKind::Consumer
);
enumeration!(StatusCode, "a status code", "STATUS_CODE_OK" => StatusCode::Ok, "STATUS_CODE_ERROR" => StatusCode::Error);

/// An id, which may be absent or wrong without making the request wrong.
#[derive(Default)]
pub(crate) enum Id<T> {
    #[default]
    None,
    Invalid,
    Valid(T),
}

impl<T: Copy> Id<T> {
    pub(super) fn valid(&self) -> Option<T> {
        match self {
            Id::Valid(id) => Some(*id),
            Id::None | Id::Invalid => None,
        }
    }
}

impl<'de, T: FromStr<Err = IdError>> Json<'de> for Id<T> {
    const EXPECTED: &'static str = "an id in hex";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(match text.parse() {
            Ok(id) => Id::Valid(id),
            Err(IdError::Zero) => Id::None,
            // Nothing but zeros names nothing, as in protobuf, whatever its length.
            Err(_) if text.bytes().all(|digit| digit == b'0') => Id::None,
            Err(_) => Id::Invalid,
        })
    }
}

message!(Request<'de>, Container, {
    resource_spans: List<ResourceSpans<'de>> = "resourceSpans" | "resource_spans",
});
message!(ResourceSpans<'de>, Container, {
    resource: ResourceMessage<'de> = "resource",
    scope_spans: List<ScopeSpans<'de>> = "scopeSpans" | "scope_spans",
});
message!(ResourceMessage<'de>, Owner, {
    attributes: List<KeyValue<'de>> = "attributes",
    dropped_attributes_count: u32 = "droppedAttributesCount" | "dropped_attributes_count",
});
message!(ScopeSpans<'de>, Container, {
    scope: ScopeMessage<'de> = "scope",
    spans: List<SpanMessage<'de>> = "spans",
});
message!(ScopeMessage<'de>, Owner, {
    name: Cow<'de, str> = "name",
    version: Cow<'de, str> = "version",
    attributes: List<KeyValue<'de>> = "attributes",
    dropped_attributes_count: u32 = "droppedAttributesCount" | "dropped_attributes_count",
});
message!(SpanMessage<'de>, Owner, {
    trace_id: Id<TraceId> = "traceId" | "trace_id",
    span_id: Id<SpanId> = "spanId" | "span_id",
    trace_state: Cow<'de, str> = "traceState" | "trace_state",
    parent_span_id: Id<SpanId> = "parentSpanId" | "parent_span_id",
    flags: u32 = "flags",
    name: Cow<'de, str> = "name",
    kind: SpanKind = "kind",
    start_time_unix_nano: u64 = "startTimeUnixNano" | "start_time_unix_nano",
    end_time_unix_nano: u64 = "endTimeUnixNano" | "end_time_unix_nano",
    attributes: List<KeyValue<'de>> = "attributes",
    dropped_attributes_count: u32 = "droppedAttributesCount" | "dropped_attributes_count",
    events: List<EventMessage<'de>> = "events",
    dropped_events_count: u32 = "droppedEventsCount" | "dropped_events_count",
    links: List<LinkMessage<'de>> = "links",
    dropped_links_count: u32 = "droppedLinksCount" | "dropped_links_count",
    status: StatusMessage<'de> = "status",
});
message!(EventMessage<'de>, Value, {
    time_unix_nano: u64 = "timeUnixNano" | "time_unix_nano",
    name: Cow<'de, str> = "name",
    attributes: List<KeyValue<'de>> = "attributes",
    dropped_attributes_count: u32 = "droppedAttributesCount" | "dropped_attributes_count",
});
message!(LinkMessage<'de>, Value, {
    trace_id: Id<TraceId> = "traceId" | "trace_id",
    span_id: Id<SpanId> = "spanId" | "span_id",
    attributes: List<KeyValue<'de>> = "attributes",
    dropped_attributes_count: u32 = "droppedAttributesCount" | "dropped_attributes_count",
});
message!(StatusMessage<'de>, Container, {
    message: Cow<'de, str> = "message",
    code: StatusCode = "code",
});
message!(KeyValue<'de>, Value, {
    key: Cow<'de, str> = "key",
    value: AnyValue<'de> = "value",
});
message!(ArrayValue<'de>, Value, {
    values: List<AnyValue<'de>> = "values",
});
message!(KeyValueList<'de>, Value, {
    values: List<KeyValue<'de>> = "values",
});

impl Element for ResourceSpans<'_> {
    fn is_worth_keeping(&self) -> bool {
        !self.scope_spans.kept.is_empty() || self.resource.dropped_attributes_count > 0
    }
}

impl Element for ScopeSpans<'_> {
    fn is_worth_keeping(&self) -> bool {
        !self.spans.kept.is_empty() || self.spans.left_out > 0 || self.scope.dropped_attributes_count > 0
    }
}

impl Element for SpanMessage<'_> {
    fn is_worth_keeping(&self) -> bool {
        self.trace_id.valid().is_some() && self.span_id.valid().is_some()
    }
}

impl Element for LinkMessage<'_> {
    fn is_worth_keeping(&self) -> bool {
        self.trace_id.valid().is_some() && self.span_id.valid().is_some()
    }
}

impl Element for EventMessage<'_> {}
impl Element for KeyValue<'_> {}
impl Element for AnyValue<'_> {}

/// `AnyValue`: an object with one member, or none.
#[derive(Default)]
pub(crate) enum AnyValue<'de> {
    #[default]
    Empty,
    Str(Cow<'de, str>),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(Vec<u8>),
    Array(Vec<AnyValue<'de>>),
    KeyValues(Vec<KeyValue<'de>>),
}

impl<'de> Json<'de> for AnyValue<'de> {
    const EXPECTED: &'static str = "an object with one value";

    fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
        context.enter(Role::Value)?;
        let context = context.nested()?;
        let mut value = AnyValue::Empty;
        while let Some(name) = name(&mut object, context)? {
            let found = match &*name {
                "stringValue" | "string_value" => member::<Option<_>, A>(&mut object, context)?.map(AnyValue::Str),
                "boolValue" | "bool_value" => member::<Option<_>, A>(&mut object, context)?.map(AnyValue::Bool),
                "intValue" | "int_value" => member::<Option<_>, A>(&mut object, context)?.map(AnyValue::Int),
                "doubleValue" | "double_value" => member::<Option<_>, A>(&mut object, context)?.map(AnyValue::Double),
                "bytesValue" | "bytes_value" => member::<Option<Base64>, A>(&mut object, context)?.map(|bytes| AnyValue::Bytes(bytes.0)),
                "arrayValue" | "array_value" => {
                    member::<Option<ArrayValue<'de>>, A>(&mut object, context)?.map(|list| AnyValue::Array(list.values.kept))
                }
                "kvlistValue" | "kvlist_value" => {
                    member::<Option<KeyValueList<'de>>, A>(&mut object, context)?.map(|list| AnyValue::KeyValues(list.values.kept))
                }
                _ => {
                    object.next_value::<IgnoredAny>()?;
                    context.passed_over();
                    None
                }
            };
            match (found, &value) {
                (None, _) => {}
                (Some(found), AnyValue::Empty) => value = found,
                // In protobuf the last one would win, but the members of a JSON object have no order.
                (Some(_), _) => return Err(A::Error::custom(format_args!("`{name}` beside another value of the same attribute"))),
            }
        }
        Ok(value)
    }
}

impl<'t> AnyValue<'t> {
    pub(super) fn lend(&'t self) -> ValueRef<'t> {
        match self {
            AnyValue::Empty => ValueRef::Empty,
            AnyValue::Str(text) => ValueRef::Str(text),
            AnyValue::Bool(truth) => ValueRef::Bool(*truth),
            AnyValue::Int(number) => ValueRef::Int(*number),
            AnyValue::Double(number) => ValueRef::Double(*number),
            AnyValue::Bytes(bytes) => ValueRef::Bytes(bytes),
            AnyValue::Array(values) => ValueRef::Array(values.iter().map(AnyValue::lend).collect()),
            AnyValue::KeyValues(pairs) => ValueRef::KeyValues(lend_pairs(pairs).collect()),
        }
    }
}

#[derive(Default)]
struct Base64(Vec<u8>);

impl<'de> Json<'de> for Base64 {
    const EXPECTED: &'static str = "bytes in base64";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        base64::decode(&text).map(Base64).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(&text), &Self::EXPECTED))
    }
}

pub(super) fn lend_pairs<'t>(pairs: &'t [KeyValue<'t>]) -> impl Iterator<Item = PairRef<'t>> {
    pairs.iter().map(|pair| (&*pair.key, pair.value.lend()))
}

pub(super) fn owned(pairs: &List<KeyValue<'_>>) -> Attributes {
    let mut attributes = Attributes::default();
    for (key, value) in lend_pairs(&pairs.kept) {
        attributes.push(key, value.to_owned());
    }
    attributes
}

/// Lists of the span under way, whose memory serves the next span too.
#[derive(Default)]
struct Scratch<'t> {
    attributes: Vec<PairRef<'t>>,
    events: Vec<EventRef<'t>>,
    links: Vec<LinkRef<'t>>,
}

/// Gives one span to the sink.
fn lend<'t>(span: &'t SpanMessage<'t>, scratch: &mut Scratch<'t>, losses: &mut Losses, sink: &mut dyn SpanSink) {
    // Others have been left out of the list.
    let (Some(trace_id), Some(span_id)) = (span.trace_id.valid(), span.span_id.valid()) else { return };
    scratch.attributes.clear();
    scratch.attributes.extend(lend_pairs(&span.attributes.kept));
    scratch.events.clear();
    for event in &span.events.kept {
        losses.dropped += u64::from(event.dropped_attributes_count);
        scratch.events.push(EventRef {
            time: losses.time(event.time_unix_nano),
            name: &event.name,
            attributes: lend_pairs(&event.attributes.kept).collect(),
        });
    }
    scratch.links.clear();
    losses.references += span.links.left_out + u64::from(matches!(span.parent_span_id, Id::Invalid));
    for link in &span.links.kept {
        if let (Some(trace_id), Some(span_id)) = (link.trace_id.valid(), link.span_id.valid()) {
            losses.dropped += u64::from(link.dropped_attributes_count);
            scratch.links.push(LinkRef { trace_id, span_id, attributes: lend_pairs(&link.attributes.kept).collect() });
        }
    }
    sink.span(SpanRef {
        trace_id,
        span_id,
        parent_span_id: span.parent_span_id.valid(),
        trace_state: &span.trace_state,
        flags: span.flags,
        name: &span.name,
        kind: span.kind,
        start: losses.time(span.start_time_unix_nano),
        end: losses.time(span.end_time_unix_nano),
        attributes: &scratch.attributes,
        dropped_attributes: span.dropped_attributes_count,
        events: &scratch.events,
        dropped_events: span.dropped_events_count,
        links: &scratch.links,
        dropped_links: span.dropped_links_count,
        status: span.status.code,
        status_message: &span.status.message,
    });
}
