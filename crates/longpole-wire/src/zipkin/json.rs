//! v1 and v2 in JSON, by one reader: a span may have the members of both.

use std::borrow::Cow;

use longpole_model::attribute::AttributeValue;
use longpole_model::span::SpanKind;
use serde::de::{Error, MapAccess, SeqAccess};

use super::raw::{Endpoint, Note, Raw, Tag, known};
use crate::attribute_json::Plain;
use crate::convert::HexId;
use crate::error::DecodeError;
use crate::json::{self, Context, Element, Json, List, Micros, message};
use crate::limits::Limits;

/// Reads a whole body: a list of spans, a list of such lists (a download of several traces), or one span.
pub(super) fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Vec<Raw<'a>>, DecodeError> {
    let Body(spans) = json::parse(bytes, limits)?;
    Ok(spans.into_iter().map(SpanMessage::into_raw).collect())
}

#[derive(Default)]
struct Body<'de>(Vec<SpanMessage<'de>>);

impl<'de> Json<'de> for Body<'de> {
    const EXPECTED: &'static str = "a list of spans";

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut spans = Vec::new();
        let (inner, spans_max) = (context.nested()?, context.limits().zipkin_spans_max);
        while let Some(Body(mut some)) = json::element(&mut list, inner)? {
            spans.append(&mut some);
            if spans.len() > spans_max {
                return Err(A::Error::custom(format_args!("more than {spans_max} spans")));
            }
        }
        Ok(Body(spans))
    }

    fn object<A: MapAccess<'de>>(object: A, context: Context<'_>) -> Result<Self, A::Error> {
        Ok(Body(vec![SpanMessage::object(object, context)?]))
    }
}

message!(SpanMessage<'de>, Owner, {
    trace_id: HexId = "traceId" | "trace_id",
    id: HexId = "id",
    parent_id: HexId = "parentId" | "parent_id",
    name: Cow<'de, str> = "name",
    kind: NamedKind<'de> = "kind",
    timestamp: Micros = "timestamp",
    duration: Option<Micros> = "duration",
    local_endpoint: Option<EndpointMessage<'de>> = "localEndpoint" | "local_endpoint",
    remote_endpoint: Option<EndpointMessage<'de>> = "remoteEndpoint" | "remote_endpoint",
    annotations: List<NoteMessage<'de>> = "annotations",
    tags: Tags<'de> = "tags",
    binary_annotations: List<TagMessage<'de>> = "binaryAnnotations" | "binary_annotations",
    debug: bool = "debug",
    shared: bool = "shared",
});
message!(EndpointMessage<'de>, Value, {
    service_name: Cow<'de, str> = "serviceName" | "service_name",
    ipv4: Cow<'de, str> = "ipv4",
    ipv6: Cow<'de, str> = "ipv6",
    port: u32 = "port",
});
message!(NoteMessage<'de>, Value, {
    timestamp: Micros = "timestamp",
    value: Plain = "value",
    endpoint: Option<EndpointMessage<'de>> = "endpoint",
});
message!(TagMessage<'de>, Value, {
    key: Cow<'de, str> = "key",
    value: Plain = "value",
    endpoint: Option<EndpointMessage<'de>> = "endpoint",
});

impl Element for NoteMessage<'_> {}
impl Element for TagMessage<'_> {}

/// A kind by its name, and the name where nobody knows it.
#[derive(Default)]
pub(crate) struct NamedKind<'de>(SpanKind, Option<Cow<'de, str>>);

impl<'de> Json<'de> for NamedKind<'de> {
    const EXPECTED: &'static str = "a span kind";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(match &*text {
            "" => NamedKind::default(),
            "CLIENT" => NamedKind(SpanKind::Client, None),
            "SERVER" => NamedKind(SpanKind::Server, None),
            "PRODUCER" => NamedKind(SpanKind::Producer, None),
            "CONSUMER" => NamedKind(SpanKind::Consumer, None),
            _ => NamedKind(SpanKind::Unspecified, Some(text)),
        })
    }
}

/// The members of `tags`, in order; a name may stand twice.
#[derive(Default)]
pub(crate) struct Tags<'de>(Vec<(Cow<'de, str>, AttributeValue)>);

impl<'de> Json<'de> for Tags<'de> {
    const EXPECTED: &'static str = "an object";

    fn object<A: MapAccess<'de>>(mut object: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut tags = Vec::new();
        while let Some(key) = json::name(&mut object, context)? {
            context.count_value()?;
            let Plain(value) = json::member(&mut object, context)?;
            tags.push((key, value));
        }
        Ok(Tags(tags))
    }
}

impl<'de> EndpointMessage<'de> {
    fn into_endpoint(self) -> Endpoint<'de> {
        let address = if self.ipv4.is_empty() { self.ipv6 } else { self.ipv4 };
        Endpoint { service: self.service_name, address, port: self.port }
    }
}

impl<'de> SpanMessage<'de> {
    fn into_raw(self) -> Raw<'de> {
        let mut tags: Vec<_> = self.tags.0.into_iter().map(|(key, value)| Tag { key, value, by: None }).collect();
        if let NamedKind(_, Some(unknown)) = self.kind {
            tags.push(Tag { key: Cow::Borrowed("span.kind"), value: AttributeValue::Str(unknown.into()), by: None });
        }
        tags.extend(self.binary_annotations.kept.into_iter().map(|tag| Tag {
            key: tag.key,
            value: tag.value.0,
            by: tag.endpoint.map(EndpointMessage::into_endpoint),
        }));
        let notes = self.annotations.kept.into_iter().map(|note| Note {
            micros: note.timestamp.0,
            text: Cow::Owned(crate::attribute_json::as_text(&note.value.0).into_owned()),
            by: note.endpoint.map(EndpointMessage::into_endpoint),
        });
        Raw {
            trace_id: self.trace_id.trace_id(),
            span_id: self.id.span_id(),
            parent: self.parent_id.span_id(),
            parent_invalid: self.parent_id.is_bad_reference(),
            name: self.name,
            kind: self.kind.0,
            start_micros: known(self.timestamp.0),
            duration_micros: self.duration.map(|duration| duration.0),
            local: self.local_endpoint.map(EndpointMessage::into_endpoint),
            remote: self.remote_endpoint.map(EndpointMessage::into_endpoint),
            notes: notes.collect(),
            tags,
            debug: self.debug,
            shared: self.shared,
        }
    }
}
