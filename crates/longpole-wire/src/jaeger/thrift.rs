//! Jaeger's thrift: a batch as the body of an HTTP request, and the call `emitBatch` as a packet of the agent.
//!
//! ```text
//! 82 81 01 09 "emitBatch"         compact: one-way call, sequence number 1
//! 1c                              field 1, struct: the batch
//!    1c                              field 1, struct: the process
//!       18 04 "shop"                    field 1, text: name of the service
//!       00
//!    19 1c                           field 2, list of one struct: the spans
//!       16 02  16 00  16 04             fields 1, 2, 3, i64: trace id 1 in two halves, span id 2
//!       …
//!       00
//!    16 02                           field 3, i64: number of the batch, 1
//!    00
//! 00
//! ```
//!
//! A body of HTTP is only the batch, in the binary protocol.

use std::borrow::Cow;

use longpole_model::attribute::Attribute;
use longpole_model::sink::SpanSink;

use super::raw::{RawLog, RawProcess, RawReference, RawSpan, RawTag, TagType, ref_type};
use super::walk::{self, SpanVisitor};
use crate::convert::{Losses, span_id, trace_id};
use crate::error::DecodeError;
use crate::limits::Limits;
use crate::thrift::{ThriftProtocol, ThriftReader, ThriftType};

/// Tag of a process that names the client; its batches are numbered.
const CLIENT_UUID: &str = "client-uuid";

/// What to call a packet in an error.
const PACKET: &str = "packet";

/// What a packet says beside its spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentBatch {
    /// Number of the batch in the sequence of its client. A gap is a lost packet.
    pub seq_no: Option<i64>,
    /// The client that numbers its batches: the tag `client-uuid` of the process.
    pub client_uuid: Option<String>,
    /// Spans that the client dropped.
    pub stats: Option<ClientStats>,
}

/// Spans that a client dropped since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientStats {
    /// Its queue was full.
    pub full_queue_dropped_spans: i64,
    /// They did not fit into a packet.
    pub too_large_dropped_spans: i64,
    /// The operating system refused their packets.
    pub failed_to_emit_spans: i64,
}

/// Gives the spans of a body of `POST /api/traces` to the sink: a `Batch` of Jaeger in thrift's binary protocol.
///
/// On an error the sink was not called. A span without valid ids, and a reference that is none, is counted and left out; a span without a
/// duration ends where it starts and is marked (`longpole.unfinished`).
///
/// # Errors
///
/// The body is no such batch, or exceeds the limits.
pub fn decode_thrift(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    walk::deliver(sink, |losses, each| {
        let reader = ThriftReader::new(bytes, ThriftProtocol::Binary, "batch");
        let mut batches = BatchReader { reader, values: 0, values_max: limits.values_max, losses };
        let batch = batches.batch(each)?;
        batches.reader.end("bytes after the end of the batch")?;
        Ok((batch.process, ()))
    })
}

/// Gives the spans of a packet of Jaeger's agent to the sink: the call `emitBatch`, in the compact protocol (port 6831) or the binary
/// protocol (port 6832), which the first byte shows.
///
/// As [`decode_thrift`] otherwise.
///
/// # Errors
///
/// The packet is no such call, or exceeds the limits. The call `emitZipkinBatch`, which only the oldest clients make, is not supported.
pub fn decode_agent_packet(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<AgentBatch, DecodeError> {
    let Some(protocol) = ThriftProtocol::of_message(bytes) else {
        let problem = "neither the compact nor the binary protocol";
        return Err(DecodeError::Thrift { problem, document: PACKET, offset: 0 });
    };
    let reader = ThriftReader::new(bytes, protocol, PACKET);
    walk::deliver(sink, |losses, each| {
        let mut batches = BatchReader { reader, values: 0, values_max: limits.values_max, losses };
        let batch = batches.call(each)?;
        batches.reader.end("bytes after the end of the message")?;
        let tags = batch.process.as_ref().map_or(&[][..], |process| &process.tags[..]);
        let client_uuid = tags.iter().find(|tag| tag.key == CLIENT_UUID).and_then(|tag| tag.value.as_str());
        let more = AgentBatch { seq_no: batch.seq_no, client_uuid: client_uuid.map(str::to_owned), stats: batch.stats };
        Ok((batch.process, more))
    })
}

/// A batch without its spans.
#[derive(Default)]
struct BatchParts<'a> {
    process: Option<RawProcess<'a>>,
    seq_no: Option<i64>,
    stats: Option<ClientStats>,
}

struct BatchReader<'a, 'l> {
    reader: ThriftReader<'a>,
    /// Tags, logs and references of the span or process under way.
    values: u32,
    values_max: u32,
    losses: &'l mut Losses,
}

impl<'a> BatchReader<'a, '_> {
    /// Reads a message: its header, and the struct of the arguments, whose field 1 is the batch.
    fn call(&mut self, each: &mut SpanVisitor<'_>) -> Result<BatchParts<'a>, DecodeError> {
        let header = self.reader.message()?;
        if !header.is_call() {
            return Err(self.reader.error("a message that is not a call"));
        }
        match header.name {
            b"emitBatch" => {}
            b"emitZipkinBatch" => return Err(self.reader.error("emitZipkinBatch is not supported (send Zipkin spans to /api/v1/spans)")),
            _ => return Err(self.reader.error("a method other than emitBatch")),
        }
        let mut batch = None;
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::Struct, 1) if batch.is_some() => return Err(self.reader.error("a second batch")),
                (ThriftType::Struct, 1) => batch = Some(self.batch(each)?),
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        batch.ok_or_else(|| self.reader.error("emitBatch without a batch"))
    }

    fn batch(&mut self, each: &mut SpanVisitor<'_>) -> Result<BatchParts<'a>, DecodeError> {
        let mut batch = BatchParts::default();
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::Struct, 1) => batch.process = Some(self.process()?),
                (ThriftType::List, 2) => {
                    for _ in 0..self.reader.list_of_structs()? {
                        let span = self.span()?;
                        each(span, self.losses);
                    }
                }
                (ThriftType::I64, 3) => batch.seq_no = Some(self.reader.i64()?),
                (ThriftType::Struct, 4) => batch.stats = Some(self.stats()?),
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(batch)
    }

    fn process(&mut self) -> Result<RawProcess<'a>, DecodeError> {
        self.values = 0;
        let mut process = RawProcess::default();
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::String, 1) => process.service_name = self.text()?,
                (ThriftType::List, 2) => process.tags = self.tags()?,
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(process)
    }

    fn stats(&mut self) -> Result<ClientStats, DecodeError> {
        let mut stats = ClientStats::default();
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I64, 1) => stats.full_queue_dropped_spans = self.reader.i64()?,
                (ThriftType::I64, 2) => stats.too_large_dropped_spans = self.reader.i64()?,
                (ThriftType::I64, 3) => stats.failed_to_emit_spans = self.reader.i64()?,
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(stats)
    }

    fn span(&mut self) -> Result<RawSpan<'a>, DecodeError> {
        self.values = 0;
        let mut span = RawSpan::default();
        let (mut low, mut high) = (0, 0);
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I64, 1) => low = self.id()?,
                (ThriftType::I64, 2) => high = self.id()?,
                (ThriftType::I64, 3) => span.span_id = span_id(self.id()?),
                (ThriftType::I64, 4) => span.parent = span_id(self.id()?),
                (ThriftType::String, 5) => span.name = self.text()?,
                (ThriftType::List, 6) => span.references = self.list(Self::reference)?,
                (ThriftType::I32, 7) => span.flags = self.reader.i32()?.cast_unsigned(),
                (ThriftType::I64, 8) => span.start_nanos = self.nanos()?,
                (ThriftType::I64, 9) => span.duration_nanos = Some(self.nanos()?),
                (ThriftType::List, 10) => span.tags = self.tags()?,
                (ThriftType::List, 11) => span.logs = self.list(Self::log)?,
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        span.trace_id = trace_id(high, low);
        Ok(span)
    }

    fn reference(&mut self) -> Result<RawReference<'a>, DecodeError> {
        let (mut number, mut low, mut high, mut id) = (0, 0, 0, 0);
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I32, 1) => number = self.reader.i32()?,
                (ThriftType::I64, 2) => low = self.id()?,
                (ThriftType::I64, 3) => high = self.id()?,
                (ThriftType::I64, 4) => id = self.id()?,
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(RawReference { ref_type: ref_type(number), trace_id: trace_id(high, low), span_id: span_id(id) })
    }

    fn log(&mut self) -> Result<RawLog, DecodeError> {
        let mut log = RawLog { nanos: 0, fields: Vec::new() };
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::I64, 1) => log.nanos = self.nanos()?,
                (ThriftType::List, 2) => log.fields = self.tags()?,
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(log)
    }

    fn tags(&mut self) -> Result<Vec<Attribute>, DecodeError> {
        self.list(Self::tag)
    }

    fn tag(&mut self) -> Result<Attribute, DecodeError> {
        let mut tag = RawTag::default();
        let mut previous = 0;
        while let Some(field) = self.reader.field(&mut previous)? {
            match field {
                (ThriftType::String, 1) => tag.key = self.text()?,
                (ThriftType::I32, 2) => tag.value_type = tag_type(self.reader.i32()?),
                (ThriftType::String, 3) => tag.string = self.text()?,
                (ThriftType::Double, 4) => tag.float64 = self.reader.double()?,
                (ThriftType::Bool, 5) => tag.bool = self.reader.truth()?,
                (ThriftType::I64, 6) => tag.int64 = self.reader.i64()?,
                (ThriftType::String, 7) => tag.binary = self.reader.string()?,
                (kind, _) => self.reader.skip(kind)?,
            }
        }
        Ok(tag.into_attribute())
    }

    /// A list of structs; each counts as a value.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
        let mut values = Vec::new();
        for _ in 0..self.reader.list_of_structs()? {
            self.values += 1;
            if self.values > self.values_max {
                return Err(self.reader.error("too many values in one span or process"));
            }
            values.push(read(self)?);
        }
        Ok(values)
    }

    fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        Ok(self.losses.text(self.reader.string()?))
    }

    fn id(&mut self) -> Result<u64, DecodeError> {
        Ok(self.reader.i64()?.cast_unsigned())
    }

    /// Nanoseconds of a field in microseconds.
    fn nanos(&mut self) -> Result<i128, DecodeError> {
        Ok(i128::from(self.reader.i64()?) * 1000)
    }
}

/// The type of this number; protobuf counts otherwise. A number without a type is a text.
fn tag_type(number: i32) -> TagType {
    match number {
        1 => TagType::Float64,
        2 => TagType::Bool,
        3 => TagType::Int64,
        4 => TagType::Binary,
        _ => TagType::String,
    }
}
