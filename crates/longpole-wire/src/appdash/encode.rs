//! Spans as AppDash has them: as packets, and as a file that Pulumi's `view-trace` and `convert-trace` read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use longpole_model::attribute::AttributeValue;
use longpole_model::loss::Loss;
use longpole_model::span::Span;

use super::SCOPE;
use super::annotations::{END, MSG, NAME, Pair, SCHEMA_LOG, SCHEMA_NAME, SCHEMA_TIMESPAN, SERVER_NAME, START, TIME, is_spoken_for};
use super::gob::{BYTES, STRING, UINT, put_bytes, put_int, put_uint};
use crate::convert::{self, BEFORE_1970, CannotHold, NAMES, TRACE_ID};
use crate::leb128;
use crate::rfc3339;

/// The trace id in 64 bits, and whether a tag must tell the rest.
fn trace_of(span: &Span) -> (u64, bool) {
    let (high, low) = convert::halves(span.trace_id);
    if low == 0 { (high, true) } else { (low, high != 0) }
}

/// The packets of a span, each a list of annotations, in the order in which clients send them.
fn packets(span: &Span, lost: &mut CannotHold) -> Vec<Vec<Pair>> {
    let pair = |key: &str, value: &[u8]| (key.as_bytes().to_vec(), value.to_vec());
    let mut packets = vec![vec![pair(NAME, span.name.as_bytes()), pair(SCHEMA_NAME, b"")]];
    for event in &span.events {
        lost.count(event.time.unix_nanos() < 0, BEFORE_1970);
        let (text, time) = (convert::event_text(event, lost), rfc3339::print(event.time));
        packets.push(vec![pair(MSG, text.as_bytes()), pair(TIME, time.as_bytes()), pair(SCHEMA_LOG, b"")]);
    }
    let mut tags = Vec::new();
    if let (Some(service), _) = convert::service_and_others(&span.resource) {
        tags.push((Cow::Borrowed(SERVER_NAME), service.to_owned()));
    }
    tags.extend(convert::said_in_tags(span, SCOPE, lost));
    tags.extend(convert::kind_tag(span));
    tags.extend(convert::flags_tag(span));
    tags.extend(convert::link_tags(span, lost));
    tags.extend(convert::resource_tags(span, lost));
    if trace_of(span).1 {
        tags.push((Cow::Borrowed(TRACE_ID), span.trace_id.to_string()));
    }
    for (key, value) in &tags {
        packets.push(vec![pair(key, value.as_bytes())]);
    }
    for attribute in span.attributes.iter() {
        let is_ours = convert::is_spoken_for(&attribute.key);
        lost.count(is_ours || is_spoken_for(&attribute.key), NAMES);
        if is_spoken_for(&attribute.key) || is_ours && tags.iter().any(|(key, _)| *key == attribute.key) {
            continue;
        }
        packets.push(vec![match &attribute.value {
            AttributeValue::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => pair(&attribute.key, bytes),
            _ => pair(&attribute.key, convert::attribute_text(attribute, lost).as_bytes()),
        }]);
    }
    lost.count(span.start.unix_nanos() < 0 || span.end.unix_nanos() < 0, BEFORE_1970);
    let (start, end) = (rfc3339::print(span.start), rfc3339::print(span.end));
    packets.push(vec![pair(START, start.as_bytes()), pair(END, end.as_bytes()), pair(SCHEMA_TIMESPAN, b"")]);
    packets
}

/// The packets of these spans, as a client would send them over TCP.
pub fn encode_frames(spans: &[Span]) -> Vec<u8> {
    let mut lost = CannotHold::default();
    let mut out = Vec::new();
    for span in spans {
        let mut ids = vec![0x0b];
        let parent = span.parent_span_id.map_or(0, convert::number);
        for (key, id) in [(0x11, trace_of(span).0), (0x19, convert::number(span.span_id)), (0x21, parent)] {
            ids.push(key);
            ids.extend_from_slice(&id.to_le_bytes());
        }
        ids.push(0x0c);
        for packet in packets(span, &mut lost) {
            let mut frame = ids.clone();
            for (key, value) in packet {
                frame.push(0x2b);
                put_field(&mut frame, 0x32, &key);
                // Markers have no value at all.
                if !(value.is_empty() && key.starts_with(b"_schema:")) {
                    put_field(&mut frame, 0x3a, &value);
                }
                frame.push(0x2c);
            }
            leb128::put(&mut out, frame.len() as u64);
            out.extend_from_slice(&frame);
        }
    }
    out
}

fn put_field(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    out.push(key);
    leb128::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Ids of the types in our files; any from 64 on would do.
const TYPE_TOP: i64 = 64;
const TYPE_TREE: i64 = 65;
const TYPE_SPAN: i64 = 66;
const TYPE_ID: i64 = 67;
const TYPE_ANNOTATION: i64 = 68;
const TYPE_ANNOTATIONS: i64 = 69;
const TYPE_TREES: i64 = 70;
const TYPE_TRACES: i64 = 71;

/// Writes a file of these spans, and returns what it cannot hold: reading it gives the same spans except for that.
///
/// The second map of the file, which repeats every span once for each of its ancestors, is left out; readers need only the
/// first.
///
/// # Errors
///
/// Those of `out`.
pub fn encode_file(spans: &[Span], out: &mut dyn Write) -> std::io::Result<Vec<Loss>> {
    let mut lost = CannotHold::default();
    out.write_all(&definitions())?;

    let mut traces: Vec<(u64, Vec<usize>)> = Vec::new();
    let mut positions: HashMap<u64, usize> = HashMap::new();
    for (index, span) in spans.iter().enumerate() {
        let trace = trace_of(span).0;
        let position = *positions.entry(trace).or_insert_with(|| {
            traces.push((trace, Vec::new()));
            traces.len() - 1
        });
        traces[position].1.push(index);
    }
    let mut value = Vec::new();
    put_int(&mut value, TYPE_TOP);
    if !traces.is_empty() {
        value.push(1);
        put_uint(&mut value, traces.len() as u64);
    }
    for (trace, members) in &traces {
        put_uint(&mut value, *trace);
        put_tree(&mut value, spans, members, &mut lost);
    }
    value.push(0);
    let mut length = Vec::new();
    put_uint(&mut length, value.len() as u64);
    out.write_all(&length)?;
    out.write_all(&value)?;
    Ok(lost.into_losses())
}

fn definitions() -> Vec<u8> {
    let mut out = Vec::new();
    let mut message = |id: i64, kind: u8, name: &str, fill: &dyn Fn(&mut Vec<u8>)| {
        let mut body = Vec::new();
        put_int(&mut body, -id);
        // The kind is a field of wireType; it starts with the common part: name and id.
        body.extend([kind + 1, 1, 1]);
        put_bytes(&mut body, name.as_bytes());
        body.push(1);
        put_int(&mut body, id);
        body.push(0);
        fill(&mut body);
        body.extend([0, 0]);
        put_uint(&mut out, body.len() as u64);
        out.extend(body);
    };
    let fields = |fields: &'static [(&'static str, i64)]| {
        move |body: &mut Vec<u8>| {
            body.push(1);
            put_uint(body, fields.len() as u64);
            for (name, id) in fields {
                body.push(1);
                put_bytes(body, name.as_bytes());
                body.push(1);
                put_int(body, *id);
                body.push(0);
            }
        }
    };
    let types = |types: &'static [i64]| {
        move |body: &mut Vec<u8>| {
            for id in types {
                body.push(1);
                put_int(body, *id);
            }
        }
    };
    const LIST: u8 = 1;
    const STRUCT: u8 = 2;
    const MAP: u8 = 3;
    message(TYPE_TOP, STRUCT, "memoryStoreData", &fields(&[("Trace", TYPE_TRACES)]));
    message(TYPE_TREE, STRUCT, "Trace", &fields(&[("Span", TYPE_SPAN), ("Sub", TYPE_TREES)]));
    message(TYPE_SPAN, STRUCT, "Span", &fields(&[("ID", TYPE_ID), ("Annotations", TYPE_ANNOTATIONS)]));
    message(TYPE_ID, STRUCT, "SpanID", &fields(&[("Trace", UINT), ("Span", UINT), ("Parent", UINT)]));
    message(TYPE_ANNOTATION, STRUCT, "Annotation", &fields(&[("Key", STRING), ("Value", BYTES)]));
    message(TYPE_ANNOTATIONS, LIST, "Annotations", &types(&[TYPE_ANNOTATION]));
    message(TYPE_TREES, LIST, "[]*appdash.Trace", &types(&[TYPE_TREE]));
    message(TYPE_TRACES, MAP, "map[appdash.ID]*appdash.Trace", &types(&[UINT, TYPE_TREE]));
    out
}

/// Writes the spans of one trace as one tree: under its first root hang all that have no other parent here.
fn put_tree(out: &mut Vec<u8>, spans: &[Span], members: &[usize], lost: &mut CannotHold) {
    let (root, children) = tree_of(spans, members);
    // What is open: a span, and how many of its children have been written.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut next = Some(root);
    loop {
        if let Some(at) = next.take() {
            put_span(out, &spans[members[at]], lost);
            if !children[at].is_empty() {
                out.push(1);
                put_uint(out, children[at].len() as u64);
            }
            open.push((at, 0));
        }
        let Some((at, written)) = open.last_mut() else { return };
        match children[*at].get(*written) {
            Some(child) => {
                *written += 1;
                next = Some(*child);
            }
            None => {
                out.push(0);
                open.pop();
            }
        }
    }
}

/// The root of these spans and the children of each, by position.
fn tree_of(spans: &[Span], members: &[usize]) -> (usize, Vec<Vec<usize>>) {
    let mut by_id = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        by_id.entry((spans[*member].trace_id, spans[*member].span_id)).or_insert(at);
    }
    let mut parents: Vec<Option<usize>> =
        (members.iter()).map(|member| by_id.get(&(spans[*member].trace_id, spans[*member].parent_span_id?)).copied()).collect();
    // Each span is walked upwards once, and where the walk meets itself the circle is opened.
    let mut walks = vec![0; members.len()];
    for start in 0..members.len() {
        let mut at = start;
        while walks[at] == 0 {
            walks[at] = start + 1;
            match parents[at] {
                Some(parent) if walks[parent] == start + 1 => parents[at] = None,
                Some(parent) => at = parent,
                None => {}
            }
        }
    }
    // Every walk ended at a span without a parent, so there is one.
    let root = parents.iter().position(Option::is_none).unwrap_or(0);
    let mut children = vec![Vec::new(); members.len()];
    for (at, parent) in parents.iter().enumerate() {
        if at != root {
            children[parent.unwrap_or(root)].push(at);
        }
    }
    (root, children)
}

/// Writes the first field of a tree, its span.
fn put_span(out: &mut Vec<u8>, span: &Span, lost: &mut CannotHold) {
    out.extend([1, 1, 1]);
    put_uint(out, trace_of(span).0);
    out.push(1);
    put_uint(out, convert::number(span.span_id));
    if let Some(parent) = span.parent_span_id {
        out.push(1);
        put_uint(out, convert::number(parent));
    }
    out.push(0);
    let annotations: Vec<Pair> = packets(span, lost).into_iter().flatten().collect();
    out.push(1);
    put_uint(out, annotations.len() as u64);
    for (key, value) in annotations {
        // Empty fields do not appear, and the next says how far it is.
        let mut distance = 1;
        for bytes in [key, value] {
            if bytes.is_empty() {
                distance += 1;
            } else {
                out.push(distance);
                put_bytes(out, &bytes);
                distance = 1;
            }
        }
        out.push(0);
    }
    out.push(0);
}
