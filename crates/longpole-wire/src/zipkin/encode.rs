//! v2 JSON out.

use std::net::{Ipv4Addr, Ipv6Addr};

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::loss::Loss;
use longpole_model::span::{Span, SpanKind};

use super::SCOPE;
use super::raw::{DEBUG, LOCAL_ADDRESS, LOCAL_PORT, PEER_ADDRESS, PEER_PORT, PEER_SERVICE, SHARED, floor_micros, id_of_server_half};
use crate::convert::{self, BEFORE_1970, CannotHold, NAMES, NANOS, UNFINISHED};
use crate::json_size::buffer_for;
use crate::json_writer::{Members, write_list};

/// A list of these spans, and what it cannot hold: reading it gives the same spans except for that.
pub fn encode_v2_json(spans: &[Span]) -> (Vec<u8>, Vec<Loss>) {
    let mut lost = CannotHold::default();
    let mut out = buffer_for(spans);
    write_list(&mut out, spans, |out, span| write_span(out, span, &mut lost));
    (out.into_bytes(), lost.into_losses())
}

/// One side of a call, as attributes have it.
#[derive(Default)]
struct Endpoint<'a> {
    service: Option<&'a str>,
    address: Option<&'a str>,
    port: Option<u16>,
}

impl Endpoint<'_> {
    fn write(&self, span: &mut Members<'_>, name: &str) {
        if self.service.is_none() && self.address.is_none() && self.port.is_none() {
            return;
        }
        let mut endpoint = Members::begin(span.member(name));
        if let Some(service) = self.service {
            endpoint.text("serviceName", service);
        }
        if let Some(address) = self.address {
            endpoint.text(if address.parse::<Ipv4Addr>().is_ok() { "ipv4" } else { "ipv6" }, address);
        }
        if let Some(port) = self.port {
            endpoint.raw("port", port);
        }
        endpoint.end();
    }
}

/// The attributes that Zipkin has fields for.
#[derive(Default)]
struct Fields<'a> {
    local: Endpoint<'a>,
    remote: Endpoint<'a>,
    debug: bool,
    shared: bool,
    unfinished: bool,
}

impl<'a> Fields<'a> {
    /// Whether the attribute went to a field.
    fn take(&mut self, span: &Span, attribute: &'a Attribute) -> bool {
        let is_true = attribute.value == AttributeValue::Bool(true);
        let text = attribute.value.as_str().filter(|text| !text.is_empty());
        let address = text.filter(|text| text.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok());
        let port = match attribute.value {
            AttributeValue::Int(port) => u16::try_from(port).ok().filter(|port| *port != 0),
            _ => None,
        };
        let set = |flag: &mut bool, may: bool| {
            let taken = is_true && may && !*flag;
            *flag |= taken;
            taken
        };
        match &*attribute.key {
            LOCAL_ADDRESS => fill(&mut self.local.address, address),
            LOCAL_PORT => fill(&mut self.local.port, port),
            PEER_SERVICE => fill(&mut self.remote.service, text),
            PEER_ADDRESS => fill(&mut self.remote.address, address),
            PEER_PORT => fill(&mut self.remote.port, port),
            DEBUG => set(&mut self.debug, true),
            SHARED => set(&mut self.shared, span.parent_span_id.is_some_and(|parent| id_of_server_half(parent) == span.span_id)),
            UNFINISHED => set(&mut self.unfinished, span.start == span.end),
            _ => false,
        }
    }
}

fn fill<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    if slot.is_some() || value.is_none() {
        return false;
    }
    *slot = value;
    true
}

fn write_span(out: &mut String, span: &Span, lost: &mut CannotHold) {
    let mut fields = Fields::default();
    let attributes: Vec<_> = span.attributes.iter().filter(|attribute| !fields.take(span, attribute)).collect();
    fields.local.service = convert::service_and_others(&span.resource).0;

    let mut tags = convert::said_in_tags(span, SCOPE, lost);
    tags.extend(convert::flags_tag(span));
    tags.extend(convert::link_tags(span, lost));
    tags.extend(convert::resource_tags(span, lost));
    let kind = match span.kind {
        SpanKind::Client => Some("CLIENT"),
        SpanKind::Server => Some("SERVER"),
        SpanKind::Producer => Some("PRODUCER"),
        SpanKind::Consumer => Some("CONSUMER"),
        SpanKind::Unspecified | SpanKind::Internal => {
            tags.extend(convert::kind_tag(span));
            None
        }
    };

    let mut json = Members::begin(out);
    let (high, low) = convert::halves(span.trace_id);
    if high == 0 {
        json.raw("traceId", format_args!("\"{low:016x}\""));
    } else {
        json.raw("traceId", format_args!("\"{}\"", span.trace_id));
    }
    // The server's half goes back under the id that it shares with its caller.
    let shared_id = span.parent_span_id.filter(|_| fields.shared);
    if let Some(parent) = span.parent_span_id.filter(|_| !fields.shared) {
        json.raw("parentId", format_args!("\"{parent}\""));
    }
    json.raw("id", format_args!("\"{}\"", shared_id.unwrap_or(span.span_id)));
    if let Some(kind) = kind {
        json.text("kind", kind);
    }
    json.text("name", &span.name);
    let (start, end) = (floor_micros(span.start), floor_micros(span.end));
    lost.count(span.start.unix_nanos() % 1000 != 0 || span.end.unix_nanos() % 1000 != 0, NANOS);
    // A start of zero is read as none.
    lost.count(start < 0 || end < 0 || start == 0 && !span.events.is_empty(), BEFORE_1970);
    json.raw("timestamp", start);
    if !fields.unfinished {
        json.raw("duration", end.saturating_sub(start));
    }
    fields.local.write(&mut json, "localEndpoint");
    fields.remote.write(&mut json, "remoteEndpoint");
    if !span.events.is_empty() {
        json.list("annotations", &span.events, |out, event| {
            let nanos = event.time.unix_nanos();
            lost.count(nanos % 1000 != 0, NANOS);
            lost.count(nanos < 0, BEFORE_1970);
            let mut note = Members::begin(out);
            note.raw("timestamp", floor_micros(event.time));
            note.text("value", &convert::event_text(event, lost));
            note.end();
        });
    }
    if !tags.is_empty() || !attributes.is_empty() {
        let mut object = Members::begin(json.member("tags"));
        for (key, value) in &tags {
            object.text(key, value);
        }
        for attribute in attributes {
            let is_spoken_for = convert::is_spoken_for(&attribute.key);
            lost.count(is_spoken_for, NAMES);
            if !(is_spoken_for && tags.iter().any(|(key, _)| *key == attribute.key)) {
                object.text(&attribute.key, &convert::attribute_text(attribute, lost));
            }
        }
        object.end();
    }
    if fields.debug {
        json.raw("debug", true);
    }
    if fields.shared {
        json.raw("shared", true);
    }
    json.end();
}
