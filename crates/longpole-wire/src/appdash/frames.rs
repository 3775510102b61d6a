//! The TCP protocol: one direction, no handshake, no answer.
//!
//! ```text
//! 59                           uvarint: 89 bytes follow
//!   0b                         group 1: the span
//!     11 8877665544332211      field 2, eight bytes: trace id
//!     19 c300000000000000      field 3: span id
//!     21 b200000000000000      field 4: parent id, 0 for a root
//!   0c
//!   2b                         group 5, repeated: an annotation
//!     32 04 "Name"             field 6: key
//!     3a 22 "/pulumirpc.…"     field 7: value, absent for markers
//!   2c
//! ```
//!
//! A client sends the packets of a span in a row when the span ends: the name, each log, each tag, and last the times.

use std::collections::BTreeMap;

use longpole_model::loss::{Loss, LossKind};
use longpole_model::sink::SpanSink;

use super::annotations::{Annotated, Pair, Placing, is_last};
use crate::error::{DecodeError, Problem};
use crate::limits::{Limits, WAITING_BYTES_MAX, WAITING_SPANS_MAX};
use crate::protobuf::{Reader, Value};

/// Reads one connection.
///
/// Groups packets by span, and gives a span to the sink when the packet with its times came. A span that is finished twice
/// (Pulumi does that to `pulumi-plan`) is given twice, with the same id. Packets that cannot be read or are larger than
/// [`PACKET_BYTES_MAX`](crate::limits::PACKET_BYTES_MAX) are counted and skipped.
pub struct FrameReader {
    limits: Limits,
    /// Bytes of the frame under way.
    buffer: Vec<u8>,
    /// Bytes of a frame that is too large, still to come.
    skipping: u64,
    /// Spans whose times have not come.
    open: BTreeMap<(u64, u64), Annotated>,
    open_bytes: usize,
    placing: Placing,
    /// Whether a packet could be read: until then, this may not be AppDash at all.
    is_appdash: bool,
    /// Packets that came to their end.
    packets: u64,
}

impl FrameReader {
    /// A reader at the start of a connection.
    pub fn new(limits: &Limits) -> Self {
        FrameReader {
            limits: *limits,
            buffer: Vec::new(),
            skipping: 0,
            open: BTreeMap::new(),
            open_bytes: 0,
            placing: Placing::new(limits, false),
            is_appdash: false,
            packets: 0,
        }
    }

    /// Takes what was received. After an error the connection is of no use: it does not speak AppDash.
    ///
    /// # Errors
    ///
    /// The first packet is not one of AppDash.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
        self.buffer.extend_from_slice(bytes);
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = self.frames(&buffer, sink);
        self.placing.report(sink);
        buffer.drain(..done.as_ref().map_or(0, |done| *done));
        self.buffer = buffer;
        done.map(|_| ())
    }

    /// Reads the whole frames at the start of these bytes; returns their length.
    fn frames(&mut self, bytes: &[u8], sink: &mut dyn SpanSink) -> Result<usize, DecodeError> {
        let mut at = 0;
        loop {
            let skipped = bytes.len().saturating_sub(at).min(usize::try_from(self.skipping).unwrap_or(usize::MAX));
            self.skipping -= skipped as u64;
            at += skipped;
            let Some((length, prefix)) = uvarint(&bytes[at..])? else { return Ok(at) };
            let Some(length) = usize::try_from(length).ok().filter(|length| *length <= self.limits.packet_bytes_max) else {
                lose(sink, "appdash packets larger than the limit");
                self.skipping = length;
                at += prefix;
                continue;
            };
            let Some(frame) = bytes.get(at + prefix..at + prefix + length) else { return Ok(at) };
            match packet(frame, &self.limits) {
                Ok(packet) => {
                    self.is_appdash = true;
                    self.take(packet, sink);
                }
                Err(error) if !self.is_appdash => return Err(error),
                Err(_) => lose(sink, "appdash packets that could not be read"),
            }
            at += prefix + length;
            self.packets += 1;
        }
    }

    /// Bytes of the packet that has not come to its end, and of spans that have not.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len() + self.open_bytes + self.open.len() * OPEN_SPAN_BYTES
    }

    /// Packets that came to their end, readable or not.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether a packet began and has not come to its end.
    pub fn is_inside_packet(&self) -> bool {
        !self.buffer.is_empty() || self.skipping > 0
    }

    fn take(&mut self, packet: Annotated, sink: &mut dyn SpanSink) {
        let key = (packet.trace, packet.span);
        let is_complete = packet.pairs.iter().any(|(key, _)| is_last(key));
        self.open_bytes += bytes_of(&packet);
        let span = self.open.entry(key).or_insert(Annotated { pairs: Vec::new(), ..packet });
        if span.parent == 0 {
            span.parent = packet.parent;
        }
        span.pairs.extend(packet.pairs);
        let is_over = is_complete || span.pairs.len() > self.limits.values_max as usize;
        let over = is_over.then(|| self.open.remove(&key)).flatten();
        over.into_iter().for_each(|span| self.give(span, sink));
        while self.open_bytes > WAITING_BYTES_MAX || self.open.len() > WAITING_SPANS_MAX {
            let Some((_, span)) = self.open.pop_first() else { break };
            self.give(span, sink);
        }
    }

    /// Gives a span to the sink that waits no longer.
    fn give(&mut self, span: Annotated, sink: &mut dyn SpanSink) {
        self.open_bytes = self.open_bytes.saturating_sub(bytes_of(&span));
        self.placing.span(span, sink);
    }

    /// Takes the end of the connection: spans whose times never came are given with the attribute `longpole.unfinished`.
    pub fn finish(mut self, sink: &mut dyn SpanSink) {
        if !self.buffer.is_empty() || self.skipping > 0 {
            lose(sink, "appdash packets that were cut off by the end of the connection");
        }
        for (_, span) in std::mem::take(&mut self.open) {
            self.placing.span(span, sink);
        }
        self.placing.finish(sink);
    }
}

fn lose(sink: &mut dyn SpanSink, detail: &str) {
    sink.loss(Loss::new(LossKind::RequestsRefused, 1, detail));
}

/// What annotations cost while they wait, each with its two lists.
fn bytes_of(span: &Annotated) -> usize {
    span.pairs.iter().map(|(key, value)| key.len() + value.len() + size_of::<Pair>()).sum()
}

/// What a span that waits takes beside them: its place among others, in a tree that is half full.
const OPEN_SPAN_BYTES: usize = 2 * size_of::<((u64, u64), Annotated)>();

/// A length and how many bytes it takes; `None` where it has not all come.
fn uvarint(bytes: &[u8]) -> Result<Option<(u64, usize)>, DecodeError> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if index == 9 && byte > 1 {
            return Err(DecodeError::Protobuf { problem: Problem::Varint, message: "frame", offset: 0 });
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok(Some((value, index + 1)));
        }
    }
    Ok(None)
}

fn packet(bytes: &[u8], limits: &Limits) -> Result<Annotated, DecodeError> {
    let mut packet = Annotated::default();
    let mut reader = Reader::new(bytes).named("packet");
    let mut has_ids = false;
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Group(ids) | Value::Bytes(ids)) => {
                has_ids = true;
                let mut ids = ids.named("span id");
                while let Some(field) = ids.next()? {
                    match (field.number, field.value) {
                        (2, Value::Fixed64(id)) => packet.trace = id,
                        (3, Value::Fixed64(id)) => packet.span = id,
                        (4, Value::Fixed64(id)) => packet.parent = id,
                        _ => {}
                    }
                }
            }
            (5, Value::Group(pair) | Value::Bytes(pair)) => {
                if packet.pairs.len() >= limits.values_max as usize {
                    return Err(reader.error_at(field.offset, Problem::TooMany { limit: limits.values_max }));
                }
                let mut pair = pair.named("annotation");
                let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
                while let Some(field) = pair.next()? {
                    match (field.number, field.value) {
                        (6, Value::Bytes(bytes)) => key = bytes.bytes(),
                        (7, Value::Bytes(bytes)) => value = bytes.bytes(),
                        _ => {}
                    }
                }
                packet.pairs.push((key.to_vec(), value.to_vec()));
            }
            _ => {}
        }
    }
    if has_ids { Ok(packet) } else { Err(reader.error_at(0, Problem::Truncated)) }
}
