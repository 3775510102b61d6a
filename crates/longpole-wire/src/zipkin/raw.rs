//! A span as Zipkin has it, of whichever version, and what it is in the model.

use std::borrow::Cow;

use longpole_model::attribute::AttributeValue;
use longpole_model::id::{SpanId, TraceId};
use longpole_model::span::{Span, SpanKind};
use longpole_model::time::Timestamp;

use super::SCOPE;
use crate::convert::{Building, Losses, number, span_id};
use crate::limits::Limits;

/// Attributes of endpoints, named by OpenTelemetry's conventions.
pub(super) const LOCAL_ADDRESS: &str = "network.local.address";
pub(super) const LOCAL_PORT: &str = "network.local.port";
pub(super) const PEER_SERVICE: &str = "peer.service";
pub(super) const PEER_ADDRESS: &str = "network.peer.address";
pub(super) const PEER_PORT: &str = "network.peer.port";
/// Attribute of a span that was sampled by request (the debug flag).
pub(super) const DEBUG: &str = "zipkin.debug";
/// Attribute of a server's half of a span that caller and server share.
pub(super) const SHARED: &str = "zipkin.shared";

/// How far a core annotation (`cs`, `sr`, …) may be from the start or end of its span to say nothing of its own: clients
/// take and round the two apart.
const CORE_SLACK_MICROS: u128 = 1000;

/// One side of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Endpoint<'a> {
    pub(super) service: Cow<'a, str>,
    pub(super) address: Cow<'a, str>,
    pub(super) port: u32,
}

/// A timed note.
pub(super) struct Note<'a> {
    pub(super) micros: i128,
    pub(super) text: Cow<'a, str>,
    /// The host that noted it; v1 only.
    pub(super) by: Option<Endpoint<'a>>,
}

/// A pair.
pub(super) struct Tag<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) value: AttributeValue,
    /// The host that recorded it; v1 only.
    pub(super) by: Option<Endpoint<'a>>,
}

/// A span as it was sent. A start of zero is absent, as everywhere in Zipkin.
#[derive(Default)]
pub(super) struct Raw<'a> {
    pub(super) trace_id: Option<TraceId>,
    pub(super) span_id: Option<SpanId>,
    pub(super) parent: Option<SpanId>,
    pub(super) parent_invalid: bool,
    pub(super) name: Cow<'a, str>,
    pub(super) kind: SpanKind,
    pub(super) start_micros: Option<i128>,
    pub(super) duration_micros: Option<i128>,
    pub(super) local: Option<Endpoint<'a>>,
    pub(super) remote: Option<Endpoint<'a>>,
    pub(super) notes: Vec<Note<'a>>,
    pub(super) tags: Vec<Tag<'a>>,
    pub(super) debug: bool,
    pub(super) shared: bool,
}

/// What a core annotation of v1 says: the side, and whether it is the start.
fn core(note: &Note<'_>) -> Option<(SpanKind, bool)> {
    // In v2 nobody signs an annotation, and a "cs" is a text like any other.
    note.by.as_ref()?;
    match &*note.text {
        "cs" => Some((SpanKind::Client, true)),
        "cr" => Some((SpanKind::Client, false)),
        "sr" => Some((SpanKind::Server, true)),
        "ss" => Some((SpanKind::Server, false)),
        "ms" => Some((SpanKind::Producer, true)),
        "mr" => Some((SpanKind::Consumer, true)),
        _ => None,
    }
}

impl<'a> Raw<'a> {
    /// The span, or, where caller and server reported into one object, as old storages hand it out, the two of them.
    pub(super) fn halves(mut self) -> Vec<Raw<'a>> {
        let sides = |wanted| self.notes.iter().find(|note| core(note).is_some_and(|(kind, _)| kind == wanted));
        let (Some(client), Some(server)) = (sides(SpanKind::Client), sides(SpanKind::Server)) else { return vec![self] };
        let (client_end, server_end) = (client.by.clone(), server.by.clone());
        let of_server = |by: &Option<Endpoint<'_>>| *by == server_end && *by != client_end;
        let (server_notes, notes) = std::mem::take(&mut self.notes)
            .into_iter()
            .partition(|note| core(note).map_or_else(|| of_server(&note.by), |(kind, _)| kind == SpanKind::Server));
        let (server_tags, tags) = std::mem::take(&mut self.tags).into_iter().partition(|tag| of_server(&tag.by));
        let server = Raw {
            trace_id: self.trace_id,
            span_id: self.span_id,
            name: self.name.clone(),
            notes: server_notes,
            tags: server_tags,
            shared: true,
            ..Raw::default()
        };
        self.notes = notes;
        self.tags = tags;
        vec![self, server]
    }

    /// The span of the model; `None`, counted, where its ids are not valid.
    pub(super) fn build(mut self, limits: &Limits, losses: &mut Losses) -> Option<Span> {
        let (Some(trace_id), Some(span_id)) = (self.trace_id, self.span_id) else {
            losses.spans += 1;
            return None;
        };
        losses.references += u64::from(self.parent_invalid);
        let mut span = Building::new(SCOPE, trace_id, span_id);
        span.parent_span_id = self.parent;
        span.name = std::mem::take(&mut self.name).into();
        let was_v1 = self.read_core();
        span.kind = self.kind;
        // Servers that joined the span of their caller sent no times in v1.
        let joined = was_v1 && self.kind == SpanKind::Server && self.start_micros.is_none();
        if self.shared || joined {
            span.parent_span_id = Some(span_id);
            span.span_id = id_of_server_half(span_id);
            span.attributes.push(SHARED, AttributeValue::Bool(true));
        }
        self.place(&mut span);
        self.endpoints(&mut span);
        for note in &self.notes {
            let time = span.micros(note.micros);
            span.log_text(time, &note.text, limits);
        }
        for tag in self.tags {
            span.tag(&tag.key, tag.value);
        }
        if self.debug {
            span.attributes.push(DEBUG, AttributeValue::Bool(true));
        }
        losses.times_of(&span);
        Some(span.finish())
    }

    /// Takes kind and endpoints out of what v1 says in annotations. Returns whether there was any.
    fn read_core(&mut self) -> bool {
        let mut found = None;
        for note in &self.notes {
            if let Some((kind, _)) = core(note) {
                found = found.or(Some(kind));
            }
            if self.local.is_none() {
                self.local.clone_from(&note.by);
            }
        }
        let (mut remote, mut remote_kind) = (None, SpanKind::Unspecified);
        self.tags.retain_mut(|tag| {
            let is_address = tag.by.is_some() && matches!(&*tag.key, "sa" | "ca" | "ma") && tag.value == AttributeValue::Bool(true);
            if is_address {
                remote_kind = if tag.key == "ca" { SpanKind::Server } else { SpanKind::Client };
                remote = tag.by.take();
            }
            !is_address
        });
        for tag in &self.tags {
            if self.local.is_none() {
                self.local.clone_from(&tag.by);
            }
        }
        // A component that is only the service again, which is what Jaeger's client puts there.
        let service = self.local.as_ref().map(|local| local.service.clone()).unwrap_or_default();
        self.tags.retain(|tag| tag.by.is_none() || tag.key != "lc" || tag.value.as_str() != Some(&*service));
        self.remote = self.remote.take().or(remote);
        if self.kind == SpanKind::Unspecified {
            self.kind = found.unwrap_or(remote_kind);
        }
        found.is_some()
    }

    /// Start and end, out of the fields, else out of the core annotations, else out of what was noted in between.
    fn place(&mut self, span: &mut Building) {
        let noted = |starts| self.notes.iter().find(|note| core(note).is_some_and(|(_, is_start)| is_start == starts));
        let core_start = noted(true).map(|note| note.micros);
        let core_end = noted(false).map(|note| note.micros);
        let first_noted = self.notes.iter().map(|note| note.micros).min();
        let start = self.start_micros.or(core_start).or(first_noted).unwrap_or(0);
        let end = self.duration_micros.map(|duration| start.saturating_add(duration)).or(core_end);
        self.notes.retain(|note| match core(note) {
            Some((_, is_start)) => {
                let edge = if is_start { start } else { end.unwrap_or(start) };
                note.micros.saturating_sub(edge).unsigned_abs() > CORE_SLACK_MICROS
            }
            None => true,
        });
        span.start = span.micros(start);
        match end {
            Some(end) => span.end = span.micros(end),
            None => {
                span.end = span.start;
                span.unfinished();
            }
        }
    }

    fn endpoints(&mut self, span: &mut Building) {
        let text = |text: Cow<'_, str>| AttributeValue::Str(text.into());
        if let Some(local) = self.local.take() {
            span.service(&local.service);
            if !local.address.is_empty() {
                span.attributes.push(LOCAL_ADDRESS, text(local.address));
            }
            if local.port != 0 {
                span.attributes.push(LOCAL_PORT, AttributeValue::Int(i64::from(local.port)));
            }
        }
        if let Some(remote) = self.remote.take() {
            if !remote.service.is_empty() {
                span.attributes.push(PEER_SERVICE, text(remote.service));
            }
            if !remote.address.is_empty() {
                span.attributes.push(PEER_ADDRESS, text(remote.address));
            }
            if remote.port != 0 {
                span.attributes.push(PEER_PORT, AttributeValue::Int(i64::from(remote.port)));
            }
        }
    }
}

/// The id of the server's half of a shared span: the same for the same span whenever and however it comes. A bijection that
/// changes every id, by an odd multiplier and a shift.
pub(super) fn id_of_server_half(id: SpanId) -> SpanId {
    let mixed = number(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let derived = mixed ^ mixed >> 32;
    // The multiplier is odd and the shift is undone by itself, so that only zero becomes zero.
    span_id(derived).unwrap_or(id)
}

/// Zipkin's zero is "not known".
pub(super) fn known(micros: i128) -> Option<i128> {
    (micros != 0).then_some(micros)
}

/// An address of four bytes, or of sixteen.
pub(super) fn address(bytes: &[u8]) -> Cow<'static, str> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return if four == [0; 4] { Cow::Borrowed("") } else { Cow::Owned(std::net::Ipv4Addr::from(four).to_string()) };
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(sixteen) if sixteen != [0; 16] => Cow::Owned(std::net::Ipv6Addr::from(sixteen).to_string()),
        _ => Cow::Borrowed(""),
    }
}

/// Start of a span as microseconds, rounded down, so that what was inside stays inside.
pub(super) fn floor_micros(time: Timestamp) -> i64 {
    time.unix_nanos().div_euclid(1000)
}
