//! OTLP/JSON: the same requests as text.
//!
//! What proto3's JSON mapping and OTLP's own rules allow is taken: names in lowerCamelCase or as the schema spells them,
//! ids in hex of either case, 64-bit integers as texts or numbers, enums as numbers or names, `null` for "not set",
//! unknown names ignored, bytes in base64. A name that stands twice is taken as it stands last.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use longpole_model::attribute::Attributes;
use longpole_model::id::{IdError, SpanId, TraceId};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{EventRef, LinkRef, SpanRef, SpanSink, ValueRef};
use longpole_model::span::{SpanKind, StatusCode};
use longpole_model::time::Timestamp;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::base64;
use super::common::PairRef;
use super::trace::Losses;
use crate::error::DecodeError;
use crate::limits::Limits;

/// Gives the spans of a request to the sink. What [`trace::decode`](super::trace::decode) says of errors and losses holds
/// here too; a text that is not UTF-8 is not JSON, though, and refuses the request.
///
/// Beyond the limits, serde_json refuses more than 128 open brackets.
pub fn decode(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    let request: Request<'_> = parse(bytes, limits)?;
    let mut losses = Losses::default();
    let mut scratch = Scratch::default();
    for of_resource in &request.resource_spans.kept {
        let resource = &of_resource.resource;
        losses.dropped += u64::from(resource.dropped_attributes_count);
        sink.resource(Resource { attributes: owned(&resource.attributes) });
        for of_scope in &of_resource.scope_spans.kept {
            let scope = &of_scope.scope;
            losses.dropped += u64::from(scope.dropped_attributes_count);
            sink.scope(Scope { name: scope.name.to_string(), version: scope.version.to_string(), attributes: owned(&scope.attributes) });
            losses.spans += of_scope.spans.left_out;
            for span in &of_scope.spans.kept {
                lend(span, &mut scratch, &mut losses, sink);
            }
        }
    }
    losses.report(sink);
    Ok(())
}

/// Reads a whole text as this message.
pub(super) fn parse<'de, T: Json<'de>>(bytes: &'de [u8], limits: &Limits) -> Result<T, DecodeError> {
    let values = Cell::new(0);
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let context = Context { limits, values: &values, depth: 0 };
    T::read(&mut text, context).and_then(|message| text.end().map(|()| message)).map_err(refused)
}

fn refused(error: serde_json::Error) -> DecodeError {
    let (line, column) = (error.line(), error.column());
    let mut problem = error.to_string();
    // serde_json ends its message with the position, which has fields of its own here.
    if let Some(position) = problem.rfind(" at line ") {
        problem.truncate(position);
    }
    DecodeError::Json { problem, line, column }
}

/// What a reader of a part of the request has to know of the rest of it.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    limits: &'c Limits,
    /// Values of the span, resource or scope under way.
    values: &'c Cell<u32>,
    /// Attribute values around this one.
    depth: u32,
}

impl Context<'_> {
    /// Called at the start of each message.
    fn enter<E: serde::de::Error>(&self, role: Role) -> Result<(), E> {
        match role {
            Role::Container => Ok(()),
            Role::Owner => {
                self.values.set(0);
                Ok(())
            }
            Role::Value => self.count_value(),
        }
    }

    fn count_value<E: serde::de::Error>(&self) -> Result<(), E> {
        let values = self.values.get() + 1;
        self.values.set(values);
        if values > self.limits.values_max {
            return Err(E::custom(format_args!("more than {} values in one span, resource or scope", self.limits.values_max)));
        }
        Ok(())
    }

    fn nested<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > self.limits.nesting_max {
            return Err(E::custom(format_args!("values nested deeper than {}", self.limits.nesting_max)));
        }
        Ok(Context { depth, ..self })
    }
}

/// What the limits have to know of a message.
enum Role {
    /// Holds others.
    Container,
    /// Starts a new count of values.
    Owner,
    /// Counts as a value.
    Value,
}

/// Something that can be read out of a JSON text. `null` reads as the default, which is how proto3 spells "not set".
pub(super) trait Json<'de>: Default {
    /// What a person should have written, for "expected …".
    const EXPECTED: &'static str;

    /// Reads it.
    fn read<D: Deserializer<'de>>(input: D, context: Context<'_>) -> Result<Self, D::Error> {
        input.deserialize_any(Reader { context, read: PhantomData })
    }

    /// From a text.
    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Err(E::invalid_type(serde::de::Unexpected::Str(&text), &Self::EXPECTED))
    }

    /// From a number with a sign.
    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        Err(E::custom(format_args!("invalid type: integer `{number}`, expected {}", Self::EXPECTED)))
    }

    /// From a number that is not whole, or too large for an integer.
    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        Err(E::invalid_type(serde::de::Unexpected::Float(number), &Self::EXPECTED))
    }

    /// From `true` or `false`.
    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        Err(E::invalid_type(serde::de::Unexpected::Bool(truth), &Self::EXPECTED))
    }

    /// From a list.
    fn list<A: SeqAccess<'de>>(_list: A, _context: Context<'_>) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &Self::EXPECTED))
    }

    /// From an object.
    fn object<A: MapAccess<'de>>(_object: A, _context: Context<'_>) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(serde::de::Unexpected::Map, &Self::EXPECTED))
    }
}

/// Hands what serde found to the matching method of [`Json`].
struct Reader<'c, T> {
    context: Context<'c>,
    read: PhantomData<T>,
}

impl<'de, T: Json<'de>> Visitor<'de> for Reader<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<T, E> {
        T::truth(truth)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        T::integer(i128::from(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        T::integer(i128::from(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        T::double(number)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<T, E> {
        T::text(Cow::Borrowed(text))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        T::text(Cow::Owned(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list, self.context)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::object(object, self.context)
    }
}

impl<'de, T: Json<'de>> DeserializeSeed<'de> for Reader<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<T, D::Error> {
        T::read(input, self.context)
    }
}

/// The next value of an object.
pub(super) fn member<'de, T: Json<'de>, A: MapAccess<'de>>(object: &mut A, context: Context<'_>) -> Result<T, A::Error> {
    object.next_value_seed(Reader { context, read: PhantomData })
}

/// The next element of a list.
pub(super) fn element<'de, T: Json<'de>, A: SeqAccess<'de>>(list: &mut A, context: Context<'_>) -> Result<Option<T>, A::Error> {
    list.next_element_seed(Reader { context, read: PhantomData })
}

/// The next name of an object.
pub(super) fn name<'de, A: MapAccess<'de>>(object: &mut A, context: Context<'_>) -> Result<Option<Cow<'de, str>>, A::Error> {
    object.next_key_seed(Reader { context, read: PhantomData })
}

impl<'de> Json<'de> for Cow<'de, str> {
    const EXPECTED: &'static str = "a text";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(text)
    }
}

impl Json<'_> for bool {
    const EXPECTED: &'static str = "true or false";

    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        Ok(truth)
    }
}

impl<'de> Json<'de> for f64 {
    const EXPECTED: &'static str = "a number";

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        Ok(number as f64)
    }

    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        Ok(number)
    }

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        match &*text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            // Rust would also take "inf" and "nan", which proto3 does not.
            other if other.ends_with(|c: char| c.is_ascii_digit()) => {
                other.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(other), &Self::EXPECTED))
            }
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &Self::EXPECTED)),
        }
    }
}

/// A double is a whole number where it has no fraction and every whole number of its size is one.
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() <= 2f64.powi(64)).then_some(number as i128)
}

macro_rules! integer {
    ($type:ty, $expected:literal) => {
        impl<'de> Json<'de> for $type {
            const EXPECTED: &'static str = $expected;

            fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
                Self::try_from(number).map_err(|_| E::custom(format_args!("{number} is out of range for {}", Self::EXPECTED)))
            }

            fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
                match whole(number) {
                    Some(number) => Self::integer(number),
                    None => Err(E::invalid_type(serde::de::Unexpected::Float(number), &Self::EXPECTED)),
                }
            }

            fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
                match text.parse::<i128>() {
                    Ok(number) => Self::integer(number),
                    Err(_) => match text.parse::<f64>().ok().and_then(whole) {
                        Some(number) => Self::integer(number),
                        None => Err(E::invalid_value(serde::de::Unexpected::Str(&text), &Self::EXPECTED)),
                    },
                }
            }
        }
    };
}

integer!(u64, "an unsigned 64-bit integer");
integer!(i64, "a 64-bit integer");
integer!(u32, "an unsigned 32-bit integer");

/// A number or a name of an enum; what OTLP does not define is "unspecified", as it is in protobuf.
macro_rules! enumeration {
    ($type:ty, $expected:literal, $($name:literal => $value:expr),+) => {
        impl<'de> Json<'de> for $type {
            const EXPECTED: &'static str = $expected;

            fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
                Ok(i32::try_from(number).map(Self::from_otlp).unwrap_or_default())
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
enum Id<T> {
    #[default]
    None,
    Invalid,
    Valid(T),
}

impl<T: Copy> Id<T> {
    fn valid(&self) -> Option<T> {
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
            Err(_) if text.is_empty() => Id::None,
            Err(_) => Id::Invalid,
        })
    }
}

/// A field where `null` differs from the default: the members of a oneof.
impl<'de, T: Json<'de>> Json<'de> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        T::text(text).map(Some)
    }

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        T::integer(number).map(Some)
    }

    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        T::double(number).map(Some)
    }

    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        T::truth(truth).map(Some)
    }

    fn object<A: MapAccess<'de>>(object: A, context: Context<'_>) -> Result<Self, A::Error> {
        T::object(object, context).map(Some)
    }
}

/// A repeated field, and how many of its elements are not worth keeping.
struct List<T> {
    kept: Vec<T>,
    left_out: u64,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { kept: Vec::new(), left_out: 0 }
    }
}

/// What may stand in a list. A message is far larger than the `{}` that it may be written as; that a request of 64 MiB
/// does not become ten gigabytes, those that say nothing are left out at once.
trait Element {
    fn is_worth_keeping(&self) -> bool {
        true
    }
}

impl<'de, T: Json<'de> + Element> Json<'de> for List<T> {
    const EXPECTED: &'static str = "a list";

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut elements = List::default();
        while let Some(element) = element::<T, A>(&mut list, context)? {
            if element.is_worth_keeping() {
                elements.kept.push(element);
            } else {
                elements.left_out += 1;
            }
        }
        Ok(elements)
    }
}

/// Declares a message: what it is to the limits, and its fields with their types and two names.
macro_rules! message {
    ($type:ident<$life:lifetime>, $role:ident, { $($field:ident: $value:ty = $camel:literal $(| $snake:literal)?),+ $(,)? }) => {
        #[derive(Default)]
        struct $type<$life> {
            $($field: $value),+
        }

        impl<$life> Json<$life> for $type<$life> {
            const EXPECTED: &'static str = "an object";

            fn object<A: MapAccess<$life>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
                context.enter(Role::$role)?;
                let mut message = Self::default();
                while let Some(name) = name(&mut object, context)? {
                    match &*name {
                        $($camel $(| $snake)? => message.$field = member(&mut object, context)?,)+
                        _ => {
                            object.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(message)
            }
        }
    };
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
enum AnyValue<'de> {
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
    fn lend(&'t self) -> ValueRef<'t> {
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

fn lend_pairs<'t>(pairs: &'t [KeyValue<'t>]) -> impl Iterator<Item = PairRef<'t>> {
    pairs.iter().map(|pair| (&*pair.key, pair.value.lend()))
}

fn owned(pairs: &List<KeyValue<'_>>) -> Attributes {
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
            time: Timestamp::from_unix_nanos(event.time_unix_nano),
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
        start: Timestamp::from_unix_nanos(span.start_time_unix_nano),
        end: Timestamp::from_unix_nanos(span.end_time_unix_nano),
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
