//! What clients of AppDash send, as docs/formats/imports.md describes it.

use super::recent_rfc3339;

/// A packet with annotations of span 5 of trace 5, behind its length.
pub(crate) fn frame(annotations: &[(&str, &str)]) -> Vec<u8> {
    let mut packet = vec![0x0b];
    for (tag, id) in [(0x11u8, 5u64), (0x19, 5), (0x21, 0)] {
        packet.push(tag);
        packet.extend(id.to_le_bytes());
    }
    packet.push(0x0c);
    for (key, value) in annotations {
        packet.push(0x2b);
        text(&mut packet, 0x32, key);
        text(&mut packet, 0x3a, value);
        packet.push(0x2c);
    }
    let mut framed = Vec::new();
    length(&mut framed, packet.len());
    framed.extend(packet);
    framed
}

/// The packets of a span of this service and name.
pub(crate) fn one_span(name: &str) -> Vec<u8> {
    let (start, end) = (recent_rfc3339(0), recent_rfc3339(1));
    let times = [("Span.Start", start.as_str()), ("Span.End", &end), ("_schema:Timespan", "")];
    [frame(&[("Name", name), ("_schema:name", "")]), frame(&times)].concat()
}

fn text(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    length(out, text.len());
    out.extend(text.as_bytes());
}

fn length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}
