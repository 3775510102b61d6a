//! Traces: `ExportTraceServiceRequest` in protobuf.

use std::sync::Arc;

use longpole_model::id::{SpanId, TraceId};
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{EventRef, LinkRef, SpanRef, SpanSink};
use longpole_model::span::{Span, SpanEvent, SpanKind, StatusCode};
use longpole_model::time::Timestamp;

use super::common::{self, PairRef, text};
use super::schema;
pub use super::schema::UnreadParts;
use crate::convert::TIMES_MOVED;
use crate::emitter::{CUT, fit_resource, fit_scope};
use crate::error::DecodeError;
use crate::limits::Limits;
use crate::number::{int32, uint32};
use crate::protobuf::{Reader, Value, put_bytes, put_fixed32, put_fixed64, put_integer, put_message};

/// Gives the spans of a request to the sink.
///
/// On an error the sink was not called: a request is taken whole or not at all. Inside a good request,
///
/// - a span without a valid trace or span id is left out and counted ([`LossKind::SpansInvalid`]);
/// - a link, or a parent id, that is no valid id is left out of its span ([`LossKind::ReferencesInvalid`]); a parent id of
///   zeroes is the usual spelling of "none" and no loss;
/// - bytes of a text that are not UTF-8 become `?` each, and the text is counted ([`LossKind::TextReplaced`]): the spans
///   of a program that puts a file name into an attribute are worth more than the purity of the encoding;
/// - a time after 2262, as OTLP can say it, is the last that a [`Timestamp`] holds, and counted ([`LossKind::FormatCannotHold`]);
/// - attributes of a resource or scope beyond [`EMITTER_ATTRIBUTES_MAX`](crate::limits::EMITTER_ATTRIBUTES_MAX) and its neighbours
///   are left out, longer texts cut, and counted ([`LossKind::AttributesCut`]);
/// - attributes that the emitter says it dropped from a resource, scope, event or link are counted
///   ([`LossKind::DroppedByEmitter`]); what it dropped from the span itself is in the span.
///
/// Unknown fields are skipped, unknown enum numbers are "unspecified".
///
/// # Errors
///
/// The bytes are no protobuf, a field has another type than OTLP gives it, or the request exceeds the limits; with the offset in bytes.
pub fn decode(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    decode_and_say_unread(bytes, limits, sink).map(|_| ())
}

/// [`decode`], and what of the request was not read.
///
/// # Errors
///
/// Those of [`decode`].
pub fn decode_and_say_unread(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<UnreadParts, DecodeError> {
    let survey = schema::survey(bytes, &schema::TRACES, limits)?;
    let mut losses = Losses { texts: survey.bad_texts.len() as u64, ..Losses::default() };
    if survey.bad_texts.is_empty() {
        request(Reader::new(bytes), sink, &mut losses)?;
    } else {
        request(Reader::new(&schema::repaired(bytes, &survey.bad_texts)), sink, &mut losses)?;
    }
    losses.report(sink);
    Ok(survey.unread)
}

/// What of a good request could not be kept.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) spans: u64,
    pub(super) references: u64,
    pub(super) texts: u64,
    pub(super) dropped: u64,
    pub(super) cut: u64,
    pub(super) times: u64,
}

impl Losses {
    /// A time, as far as it can be held.
    pub(super) fn time(&mut self, nanos: u64) -> Timestamp {
        self.times += u64::from(i64::try_from(nanos).is_err());
        Timestamp::from_unix_nanos(nanos)
    }

    /// Tells the sink.
    pub(super) fn report(self, sink: &mut dyn SpanSink) {
        let losses = [
            (LossKind::SpansInvalid, self.spans, "spans without a valid trace or span id"),
            (LossKind::ReferencesInvalid, self.references, "parents or links that are not a valid trace and span id"),
            (LossKind::TextReplaced, self.texts, "strings that are not UTF-8"),
            (LossKind::AttributesCut, self.cut, CUT),
            (LossKind::FormatCannotHold, self.times, TIMES_MOVED),
            (LossKind::DroppedByEmitter, self.dropped, "attributes of resources, scopes, events or links over the emitter's limits"),
        ];
        for (kind, count, detail) in losses {
            if count > 0 {
                sink.loss(Loss::new(kind, count, detail));
            }
        }
    }
}

fn request(mut reader: Reader<'_>, sink: &mut dyn SpanSink, losses: &mut Losses) -> Result<(), DecodeError> {
    let mut scratch = Scratch::default();
    while let Some(field) = reader.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            resource_spans(inner, sink, losses, &mut scratch)?;
        }
    }
    Ok(())
}

/// Protobuf allows fields in any order, and the sink wants the resource before its spans: so the fields are read twice,
/// which skips over the spans by their lengths.
fn resource_spans<'a>(
    reader: Reader<'a>,
    sink: &mut dyn SpanSink,
    losses: &mut Losses,
    scratch: &mut Scratch<'a>,
) -> Result<(), DecodeError> {
    let mut resource = Resource::default();
    let mut dropped = 0;
    let mut fields = reader;
    while let Some(field) = fields.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            dropped = common::resource(inner, &mut resource)?.unwrap_or(dropped);
        }
    }
    losses.dropped += u64::from(dropped);
    losses.cut += fit_resource(&mut resource);
    sink.resource(resource);

    let mut fields = reader;
    while let Some(field) = fields.next()? {
        if let (2, Value::Bytes(inner)) = (field.number, field.value) {
            scope_spans(inner, sink, losses, scratch)?;
        }
    }
    Ok(())
}

fn scope_spans<'a>(reader: Reader<'a>, sink: &mut dyn SpanSink, losses: &mut Losses, scratch: &mut Scratch<'a>) -> Result<(), DecodeError> {
    let mut scope = Scope::default();
    let mut dropped = 0;
    let mut fields = reader;
    while let Some(field) = fields.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            dropped = common::scope(inner, &mut scope)?.unwrap_or(dropped);
        }
    }
    losses.dropped += u64::from(dropped);
    losses.cut += fit_scope(&mut scope);
    sink.scope(scope);

    let mut fields = reader;
    while let Some(field) = fields.next()? {
        if let (2, Value::Bytes(inner)) = (field.number, field.value) {
            span(inner, sink, losses, scratch)?;
        }
    }
    Ok(())
}

/// Lists of the span under way, whose memory serves the next span too.
#[derive(Default)]
struct Scratch<'a> {
    attributes: Vec<PairRef<'a>>,
    events: Vec<EventRef<'a>>,
    links: Vec<LinkRef<'a>>,
    /// Emptied attribute lists of events and links of spans before.
    spare: Vec<Vec<PairRef<'a>>>,
}

impl Scratch<'_> {
    fn clear(&mut self) {
        self.attributes.clear();
        let lists = self.events.drain(..).map(|event| event.attributes).chain(self.links.drain(..).map(|link| link.attributes));
        for mut list in lists {
            if list.capacity() > 0 && self.spare.len() < SPARE_LISTS_MAX {
                list.clear();
                self.spare.push(list);
            }
        }
    }
}

/// Emptied lists that are kept for the next spans. SDKs keep 128 events and 128 links of a span.
const SPARE_LISTS_MAX: usize = 256;

fn span<'a>(mut reader: Reader<'a>, sink: &mut dyn SpanSink, losses: &mut Losses, scratch: &mut Scratch<'a>) -> Result<(), DecodeError> {
    scratch.clear();
    let (mut trace_id, mut span_id, mut parent_span_id): (&[u8], &[u8], &[u8]) = (&[], &[], &[]);
    let (mut trace_state, mut name, mut status_message) = ("", "", "");
    let (mut start, mut end, mut flags) = (0, 0, 0);
    let (mut kind, mut status) = (0, 0);
    let (mut dropped_attributes, mut dropped_events, mut dropped_links) = (0, 0, 0);
    let mut dropped_inside = 0;
    let mut links_invalid = 0;
    let times_before = losses.times;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(id)) => trace_id = id.bytes(),
            (2, Value::Bytes(id)) => span_id = id.bytes(),
            (3, Value::Bytes(state)) => trace_state = text(&state),
            (4, Value::Bytes(id)) => parent_span_id = id.bytes(),
            (5, Value::Bytes(bytes)) => name = text(&bytes),
            (6, Value::Varint(number)) => kind = int32(number),
            (7, Value::Fixed64(nanos)) => start = nanos,
            (8, Value::Fixed64(nanos)) => end = nanos,
            (9, Value::Bytes(inner)) => scratch.attributes.push(common::pair(inner)?),
            (10, Value::Varint(count)) => dropped_attributes = uint32(count),
            (11, Value::Bytes(inner)) => {
                let attributes = scratch.spare.pop().unwrap_or_default();
                let (event, dropped) = event(inner, attributes, losses)?;
                scratch.events.push(event);
                dropped_inside += u64::from(dropped);
            }
            (12, Value::Varint(count)) => dropped_events = uint32(count),
            (13, Value::Bytes(inner)) => {
                let attributes = scratch.spare.pop().unwrap_or_default();
                match link(inner, attributes)? {
                    (Some(link), dropped) => {
                        scratch.links.push(link);
                        dropped_inside += u64::from(dropped);
                    }
                    (None, _) => links_invalid += 1,
                }
            }
            (14, Value::Varint(count)) => dropped_links = uint32(count),
            (15, Value::Bytes(mut inner)) => {
                while let Some(field) = inner.next()? {
                    match (field.number, field.value) {
                        (2, Value::Bytes(message)) => status_message = text(&message),
                        (3, Value::Varint(number)) => status = int32(number),
                        _ => {}
                    }
                }
            }
            (16, Value::Fixed32(bits)) => flags = bits,
            _ => {}
        }
    }
    let (Some(trace_id), Some(span_id)) = (TraceId::from_slice(trace_id), SpanId::from_slice(span_id)) else {
        losses.spans += 1;
        losses.times = times_before;
        return Ok(());
    };
    let parent = SpanId::from_slice(parent_span_id);
    let parent_invalid = parent.is_none() && parent_span_id.iter().any(|byte| *byte != 0);
    losses.references += links_invalid + u64::from(parent_invalid);
    losses.dropped += dropped_inside;
    sink.span(SpanRef {
        trace_id,
        span_id,
        parent_span_id: parent,
        trace_state,
        flags,
        name,
        kind: SpanKind::from_otlp(kind),
        start: losses.time(start),
        end: losses.time(end),
        attributes: &scratch.attributes,
        dropped_attributes,
        events: &scratch.events,
        dropped_events,
        links: &scratch.links,
        dropped_links,
        status: StatusCode::from_otlp(status),
        status_message,
    });
    Ok(())
}

fn event<'a>(mut reader: Reader<'a>, attributes: Vec<PairRef<'a>>, losses: &mut Losses) -> Result<(EventRef<'a>, u32), DecodeError> {
    let mut event = EventRef { attributes, ..EventRef::default() };
    let mut dropped = 0;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Fixed64(nanos)) => event.time = losses.time(nanos),
            (2, Value::Bytes(name)) => event.name = text(&name),
            (3, Value::Bytes(inner)) => event.attributes.push(common::pair(inner)?),
            (4, Value::Varint(count)) => dropped = uint32(count),
            _ => {}
        }
    }
    Ok((event, dropped))
}

/// Trace state and flags of a link have no place in the model and are skipped.
fn link<'a>(mut reader: Reader<'a>, mut attributes: Vec<PairRef<'a>>) -> Result<(Option<LinkRef<'a>>, u32), DecodeError> {
    let (mut trace_id, mut span_id): (&[u8], &[u8]) = (&[], &[]);
    let mut dropped = 0;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(id)) => trace_id = id.bytes(),
            (2, Value::Bytes(id)) => span_id = id.bytes(),
            (4, Value::Bytes(inner)) => attributes.push(common::pair(inner)?),
            (5, Value::Varint(count)) => dropped = uint32(count),
            _ => {}
        }
    }
    let link = match (TraceId::from_slice(trace_id), SpanId::from_slice(span_id)) {
        (Some(trace_id), Some(span_id)) => Some(LinkRef { trace_id, span_id, attributes }),
        _ => None,
    };
    Ok((link, dropped))
}

/// A request that holds these spans in this order. Neighbours that share a resource, or a scope, are sent under one.
pub fn encode(spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::new();
    for of_resource in spans.chunk_by(|a, b| same(&a.resource, &b.resource)) {
        put_message(&mut out, 1, |out| {
            put_message(out, 1, |out| common::put_attributes(out, 1, &of_resource[0].resource.attributes));
            for of_scope in of_resource.chunk_by(|a, b| same(&a.scope, &b.scope)) {
                put_message(out, 2, |out| {
                    let scope = &of_scope[0].scope;
                    put_message(out, 1, |out| {
                        put_bytes(out, 1, scope.name.as_bytes());
                        put_bytes(out, 2, scope.version.as_bytes());
                        common::put_attributes(out, 3, &scope.attributes);
                    });
                    for span in of_scope {
                        put_message(out, 2, |out| put_span(out, span));
                    }
                });
            }
        });
    }
    out
}

/// A request whose only span carries an event of the span with these ids, and says nothing else of it.
pub fn encode_span_event(trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, 1, |out| {
        put_message(out, 2, |out| {
            put_message(out, 2, |out| {
                put_bytes(out, 1, &trace_id.bytes());
                put_bytes(out, 2, &span_id.bytes());
                put_message(out, 11, |out| put_event(out, &event));
            });
        });
    });
    out
}

fn put_event(out: &mut Vec<u8>, event: &SpanEvent) {
    put_fixed64(out, 1, unix_nanos(event.time));
    put_bytes(out, 2, event.name.as_bytes());
    common::put_attributes(out, 3, &event.attributes);
}

pub(super) fn same<T: PartialEq>(a: &Arc<T>, b: &Arc<T>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Times before 1970 have no spelling in OTLP and become 0, which is its "unknown".
pub(super) fn unix_nanos(time: Timestamp) -> u64 {
    u64::try_from(time.unix_nanos()).unwrap_or(0)
}

fn put_span(out: &mut Vec<u8>, span: &Span) {
    put_bytes(out, 1, &span.trace_id.bytes());
    put_bytes(out, 2, &span.span_id.bytes());
    put_bytes(out, 3, span.trace_state.as_bytes());
    if let Some(parent) = span.parent_span_id {
        put_bytes(out, 4, &parent.bytes());
    }
    put_bytes(out, 5, span.name.as_bytes());
    put_integer(out, 6, span.kind.to_otlp() as u64);
    put_fixed64(out, 7, unix_nanos(span.start));
    put_fixed64(out, 8, unix_nanos(span.end));
    common::put_attributes(out, 9, &span.attributes);
    put_integer(out, 10, u64::from(span.dropped_attributes));
    for event in &span.events {
        put_message(out, 11, |out| put_event(out, event));
    }
    put_integer(out, 12, u64::from(span.dropped_events));
    for link in &span.links {
        put_message(out, 13, |out| {
            put_bytes(out, 1, &link.trace_id.bytes());
            put_bytes(out, 2, &link.span_id.bytes());
            common::put_attributes(out, 4, &link.attributes);
        });
    }
    put_integer(out, 14, u64::from(span.dropped_links));
    if span.status != longpole_model::span::Status::default() {
        put_message(out, 15, |out| {
            put_bytes(out, 2, span.status.message.as_bytes());
            put_integer(out, 3, span.status.code.to_otlp() as u64);
        });
    }
    put_fixed32(out, 16, span.flags);
}
