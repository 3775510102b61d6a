//! Jaeger's protobuf: `jaeger.api_v2.PostSpansRequest` of its gRPC collector.
//!
//! ```text
//! 0a 2b                         field 1 of the request: the batch
//!    0a 21                         field 1, repeated: a span
//!       0a 10 <16 bytes>              field 1: trace id, the highest byte first
//!       12 08 <8 bytes>               field 2: span id
//!       1a 03 "get"                   field 3: name
//!    12 06 0a 04 "shop"            field 2: the process, of the spans without their own
//! ```

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::sink::SpanSink;

use super::raw::{RawLog, RawProcess, RawReference, RawSpan, RawTag, TagType, ref_type};
use super::walk::{self, SpanVisitor};
use crate::convert::{Losses, span_id_of_bytes, trace_id_of_bytes};
use crate::error::{DecodeError, Problem};
use crate::limits::Limits;
use crate::number::{int32, row, uint32};
use crate::protobuf::{MessageCount, Reader, Value, unexpected};

/// Gives the spans of a request of `jaeger.api_v2.CollectorService/PostSpans` to the sink.
///
/// On an error the sink was not called. A span without valid ids, and a reference that is none, is counted and left out; a span without a
/// duration ends where it starts and is marked (`longpole.unfinished`); a span without a process has the process of the batch.
///
/// # Errors
///
/// The bytes are no such message, or exceed the limits.
pub fn decode_post_spans(bytes: &[u8], limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    walk::deliver(sink, |losses, each| {
        let count = MessageCount::of(bytes.len());
        let mut messages = Messages { values: 0, values_max: limits.values_max, count, losses };
        let process = messages.request(Reader::new(bytes), each)?;
        Ok((process, ()))
    })
}

/// Reads the messages of a request. If a message stands twice, the parts merge, as in all readers of protobuf.
struct Messages<'l> {
    /// Tags, logs, references and warnings of the span or process under way.
    values: u32,
    values_max: u32,
    /// All messages so far.
    count: MessageCount,
    losses: &'l mut Losses,
}

impl<'a> Messages<'_> {
    fn request(&mut self, mut reader: Reader<'a>, each: &mut SpanVisitor<'_>) -> Result<Option<RawProcess<'a>>, DecodeError> {
        let mut process = None;
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(batch)) => {
                    self.count.add(&reader, field.offset)?;
                    self.batch(batch.named("batch"), &mut process, each)?;
                }
                (1, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(process)
    }

    fn batch(
        &mut self,
        mut reader: Reader<'a>,
        process: &mut Option<RawProcess<'a>>,
        each: &mut SpanVisitor<'_>,
    ) -> Result<(), DecodeError> {
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(span)) => {
                    self.count.add(&reader, field.offset)?;
                    let span = self.span(span.named("span"))?;
                    each(span, self.losses);
                }
                (2, Value::Bytes(inner)) => {
                    let process = process.get_or_insert_default();
                    self.values = row(process.tags.len());
                    self.process(inner, process)?;
                }
                (1 | 2, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(())
    }

    fn process(&mut self, reader: Reader<'a>, process: &mut RawProcess<'a>) -> Result<(), DecodeError> {
        let mut reader = reader.named("process");
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(name)) => process.service_name = self.losses.text(name.bytes()),
                (2, Value::Bytes(inner)) => process.tags.push(self.tag(inner)?),
                (1 | 2, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(())
    }

    fn span(&mut self, mut reader: Reader<'a>) -> Result<RawSpan<'a>, DecodeError> {
        self.values = 0;
        let mut span = RawSpan::default();
        let (mut start, mut duration) = (SecondsAndNanos::default(), None::<SecondsAndNanos>);
        let mut warnings = Vec::new();
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(id)) => span.trace_id = trace_id_of_bytes(id.bytes()),
                (2, Value::Bytes(id)) => span.span_id = span_id_of_bytes(id.bytes()),
                (3, Value::Bytes(name)) => span.name = self.losses.text(name.bytes()),
                (4, Value::Bytes(inner)) => span.references.push(self.reference(inner)?),
                (5, Value::Varint(flags)) => span.flags = uint32(flags),
                (6, Value::Bytes(inner)) => start.read(inner)?,
                (7, Value::Bytes(inner)) => duration.get_or_insert_default().read(inner)?,
                (8, Value::Bytes(inner)) => span.tags.push(self.tag(inner)?),
                (9, Value::Bytes(inner)) => span.logs.push(self.log(inner)?),
                (10, Value::Bytes(inner)) => self.process(inner, span.process.get_or_insert_default())?,
                (12, Value::Bytes(text)) => {
                    self.count_value(&text)?;
                    warnings.push(AttributeValue::Str(self.losses.text(text.bytes()).into()));
                }
                (1..=10 | 12, _) => return Err(unexpected(&reader, field)),
                // Field 11 is an id of a process, which only answers of the query service have.
                _ => {}
            }
        }
        span.start_nanos = start.nanos();
        span.duration_nanos = duration.map(|duration| duration.nanos());
        span.warnings = AttributeValue::Array(warnings.into());
        Ok(span)
    }

    fn reference(&mut self, reader: Reader<'a>) -> Result<RawReference<'a>, DecodeError> {
        let mut reader = reader.named("reference");
        self.count_value(&reader)?;
        let mut reference = RawReference { ref_type: ref_type(0), trace_id: None, span_id: None };
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(id)) => reference.trace_id = trace_id_of_bytes(id.bytes()),
                (2, Value::Bytes(id)) => reference.span_id = span_id_of_bytes(id.bytes()),
                (3, Value::Varint(number)) => reference.ref_type = ref_type(int32(number)),
                (1..=3, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(reference)
    }

    fn log(&mut self, reader: Reader<'a>) -> Result<RawLog, DecodeError> {
        let mut reader = reader.named("log");
        self.count_value(&reader)?;
        let (mut time, mut fields) = (SecondsAndNanos::default(), Vec::new());
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(inner)) => time.read(inner)?,
                (2, Value::Bytes(inner)) => fields.push(self.tag(inner)?),
                (1 | 2, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(RawLog { nanos: time.nanos(), fields })
    }

    fn tag(&mut self, reader: Reader<'a>) -> Result<Attribute, DecodeError> {
        let mut reader = reader.named("tag");
        self.count_value(&reader)?;
        let mut tag = RawTag::default();
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(key)) => tag.key = self.losses.text(key.bytes()),
                (2, Value::Varint(number)) => tag.value_type = tag_type(int32(number)),
                (3, Value::Bytes(text)) => tag.string = self.losses.text(text.bytes()),
                (4, Value::Varint(truth)) => tag.bool = truth != 0,
                (5, Value::Varint(number)) => tag.int64 = number.cast_signed(),
                (6, Value::Fixed64(bits)) => tag.float64 = f64::from_bits(bits),
                (7, Value::Bytes(bytes)) => tag.binary = bytes.bytes(),
                (1..=7, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(tag.into_attribute())
    }

    /// Counts the value that begins here.
    fn count_value(&mut self, reader: &Reader<'_>) -> Result<(), DecodeError> {
        self.count.add(reader, reader.offset())?;
        self.values += 1;
        if self.values > self.values_max {
            return Err(reader.error_at(reader.offset(), Problem::TooMany { limit: self.values_max }));
        }
        Ok(())
    }
}

/// `google.protobuf.Timestamp` and `google.protobuf.Duration`.
#[derive(Clone, Copy, Default)]
struct SecondsAndNanos {
    seconds: i64,
    nanos: i32,
}

impl SecondsAndNanos {
    fn read(&mut self, reader: Reader<'_>) -> Result<(), DecodeError> {
        let mut reader = reader.named("time");
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Varint(seconds)) => self.seconds = seconds.cast_signed(),
                (2, Value::Varint(nanos)) => self.nanos = int32(nanos),
                (1 | 2, _) => return Err(unexpected(&reader, field)),
                _ => {}
            }
        }
        Ok(())
    }

    fn nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }
}

/// The type of this number; thrift counts otherwise. A number without a type is a text.
fn tag_type(number: i32) -> TagType {
    match number {
        1 => TagType::Bool,
        2 => TagType::Int64,
        3 => TagType::Float64,
        4 => TagType::Binary,
        _ => TagType::String,
    }
}
