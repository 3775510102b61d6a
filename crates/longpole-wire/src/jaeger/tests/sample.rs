//! A batch as a value, and the four ways in which Jaeger writes it.

use longpole_model::attribute::AttributeValue;
use serde_json::{Value, json};

use crate::base64;
use crate::protobuf::{put_bytes, put_fixed64, put_integer, put_message};
use crate::thrift::writer::ThriftWriter;
use crate::thrift::{ThriftProtocol, ThriftType};

/// A key, and a value of one of the five types that Jaeger has.
pub(super) type SampleTag = (String, AttributeValue);

#[derive(Debug, Clone, Default)]
pub(super) struct SampleReference {
    pub(super) ref_type: i32,
    pub(super) trace_id: (u64, u64),
    pub(super) span_id: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SampleSpan {
    /// The upper and the lower half.
    pub(super) trace_id: (u64, u64),
    pub(super) span_id: u64,
    pub(super) parent: u64,
    pub(super) name: String,
    pub(super) references: Vec<SampleReference>,
    pub(super) flags: u32,
    pub(super) start_micros: i64,
    pub(super) duration_micros: Option<i64>,
    pub(super) tags: Vec<SampleTag>,
    /// Microseconds and fields.
    pub(super) logs: Vec<(i64, Vec<SampleTag>)>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SampleBatch {
    pub(super) service: String,
    pub(super) process_tags: Vec<SampleTag>,
    pub(super) spans: Vec<SampleSpan>,
    pub(super) seq_no: Option<i64>,
    /// Full queue, too large, failed to emit.
    pub(super) stats: Option<[i64; 3]>,
}

impl SampleBatch {
    /// The struct `Batch`.
    pub(super) fn thrift(&self, protocol: ThriftProtocol) -> Vec<u8> {
        let mut out = ThriftWriter::new(protocol);
        self.write(&mut out);
        out.out
    }

    /// The one-way call `emitBatch`.
    pub(super) fn packet(&self, protocol: ThriftProtocol) -> Vec<u8> {
        self.message(protocol, 4, "emitBatch")
    }

    pub(super) fn message(&self, protocol: ThriftProtocol, kind: u8, name: &str) -> Vec<u8> {
        let mut out = ThriftWriter::new(protocol);
        out.message(kind, name, 1);
        out.structure(|out| {
            out.field(ThriftType::Struct, 1);
            self.write(out);
        });
        out.out
    }

    fn write(&self, out: &mut ThriftWriter) {
        out.structure(|out| {
            out.field(ThriftType::Struct, 1);
            out.structure(|out| {
                out.field(ThriftType::String, 1);
                out.string(self.service.as_bytes());
                write_tags(out, 2, &self.process_tags);
            });
            out.field(ThriftType::List, 2);
            out.list(ThriftType::Struct, self.spans.len() as u32);
            self.spans.iter().for_each(|span| span.write(out));
            if let Some(number) = self.seq_no {
                out.field(ThriftType::I64, 3);
                out.i64(number);
            }
            if let Some(stats) = self.stats {
                out.field(ThriftType::Struct, 4);
                out.structure(|out| write_i64s(out, 1, &stats));
            }
        });
    }

    /// The message `PostSpansRequest`; the process is in the batch, or in each span.
    pub(super) fn protobuf(&self, is_process_in_spans: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let put_process = |out: &mut Vec<u8>, number| {
            put_message(out, number, |out| {
                put_bytes(out, 1, self.service.as_bytes());
                put_tags(out, 2, &self.process_tags);
            });
        };
        put_message(&mut out, 1, |out| {
            for span in &self.spans {
                put_message(out, 1, |out| {
                    span.put(out);
                    if is_process_in_spans {
                        put_process(out, 10);
                    }
                });
            }
            if !is_process_in_spans {
                put_process(out, 2);
            }
        });
        out
    }

    /// The document of the query API.
    pub(super) fn json(&self) -> Vec<u8> {
        let spans: Vec<Value> = self.spans.iter().map(SampleSpan::json).collect();
        let process = json!({ "serviceName": self.service, "tags": json_tags(&self.process_tags) });
        json!({ "data": [{ "spans": spans, "processes": { "p1": process } }] }).to_string().into_bytes()
    }
}

impl SampleSpan {
    fn write(&self, out: &mut ThriftWriter) {
        out.structure(|out| {
            let (high, low) = self.trace_id;
            write_i64s(out, 1, &[low, high, self.span_id, self.parent].map(u64::cast_signed));
            out.field(ThriftType::String, 5);
            out.string(self.name.as_bytes());
            out.field(ThriftType::List, 6);
            out.list(ThriftType::Struct, self.references.len() as u32);
            for reference in &self.references {
                out.structure(|out| {
                    out.field(ThriftType::I32, 1);
                    out.i32(reference.ref_type);
                    let (high, low) = reference.trace_id;
                    write_i64s(out, 2, &[low, high, reference.span_id].map(u64::cast_signed));
                });
            }
            out.field(ThriftType::I32, 7);
            out.i32(self.flags.cast_signed());
            write_i64s(out, 8, &[self.start_micros]);
            if let Some(duration) = self.duration_micros {
                write_i64s(out, 9, &[duration]);
            }
            write_tags(out, 10, &self.tags);
            out.field(ThriftType::List, 11);
            out.list(ThriftType::Struct, self.logs.len() as u32);
            for (micros, fields) in &self.logs {
                out.structure(|out| {
                    write_i64s(out, 1, &[*micros]);
                    write_tags(out, 2, fields);
                });
            }
        });
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, &id_bytes(self.trace_id));
        put_bytes(out, 2, &self.span_id.to_be_bytes());
        put_bytes(out, 3, self.name.as_bytes());
        let parent = SampleReference { ref_type: 0, trace_id: self.trace_id, span_id: self.parent };
        for reference in (self.parent != 0).then_some(&parent).into_iter().chain(&self.references) {
            put_message(out, 4, |out| {
                put_bytes(out, 1, &id_bytes(reference.trace_id));
                put_bytes(out, 2, &reference.span_id.to_be_bytes());
                put_integer(out, 3, i64::from(reference.ref_type).cast_unsigned());
            });
        }
        put_integer(out, 5, u64::from(self.flags));
        put_time(out, 6, self.start_micros);
        if let Some(duration) = self.duration_micros {
            put_time(out, 7, duration);
        }
        put_tags(out, 8, &self.tags);
        for (micros, fields) in &self.logs {
            put_message(out, 9, |out| {
                put_time(out, 1, *micros);
                put_tags(out, 2, fields);
            });
        }
    }

    fn json(&self) -> Value {
        let hex = |(high, low): (u64, u64)| format!("{high:016x}{low:016x}");
        let ref_type = |number| match number {
            0 => "CHILD_OF".to_owned(),
            1 => "FOLLOWS_FROM".to_owned(),
            other => i32::to_string(&other),
        };
        let references: Vec<Value> = (self.references.iter())
            .map(|it| json!({ "refType": ref_type(it.ref_type), "traceID": hex(it.trace_id), "spanID": format!("{:x}", it.span_id) }))
            .collect();
        let logs: Vec<Value> =
            self.logs.iter().map(|(micros, fields)| json!({ "timestamp": micros, "fields": json_tags(fields) })).collect();
        json!({
            "traceID": hex(self.trace_id), "spanID": format!("{:x}", self.span_id), "parentSpanID": format!("{:x}", self.parent),
            "flags": self.flags, "operationName": self.name, "references": references, "startTime": self.start_micros,
            "duration": self.duration_micros, "tags": json_tags(&self.tags), "logs": logs, "processID": "p1",
        })
    }
}

fn write_i64s(out: &mut ThriftWriter, first: i16, numbers: &[i64]) {
    for (index, number) in numbers.iter().enumerate() {
        out.field(ThriftType::I64, first + index as i16);
        out.i64(*number);
    }
}

fn write_tags(out: &mut ThriftWriter, number: i16, tags: &[SampleTag]) {
    out.field(ThriftType::List, number);
    out.list(ThriftType::Struct, tags.len() as u32);
    for (key, value) in tags {
        out.structure(|out| {
            out.field(ThriftType::String, 1);
            out.string(key.as_bytes());
            out.field(ThriftType::I32, 2);
            match value {
                AttributeValue::Str(text) => {
                    out.i32(0);
                    out.field(ThriftType::String, 3);
                    out.string(text.as_bytes());
                }
                AttributeValue::Double(number) => {
                    out.i32(1);
                    out.field(ThriftType::Double, 4);
                    out.double(*number);
                }
                AttributeValue::Bool(truth) => {
                    out.i32(2);
                    out.truth_field(5, *truth);
                }
                AttributeValue::Int(number) => {
                    out.i32(3);
                    write_i64s(out, 6, &[*number]);
                }
                AttributeValue::Bytes(bytes) => {
                    out.i32(4);
                    out.field(ThriftType::String, 7);
                    out.string(bytes);
                }
                other => panic!("{other:?}"),
            }
        });
    }
}

fn id_bytes((high, low): (u64, u64)) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn put_time(out: &mut Vec<u8>, number: u32, micros: i64) {
    put_message(out, number, |out| {
        put_integer(out, 1, micros.div_euclid(1_000_000).cast_unsigned());
        put_integer(out, 2, (micros.rem_euclid(1_000_000) * 1000).cast_unsigned());
    });
}

fn put_tags(out: &mut Vec<u8>, number: u32, tags: &[SampleTag]) {
    for (key, value) in tags {
        put_message(out, number, |out| {
            put_bytes(out, 1, key.as_bytes());
            match value {
                AttributeValue::Str(text) => put_bytes(out, 3, text.as_bytes()),
                AttributeValue::Bool(truth) => {
                    put_integer(out, 2, 1);
                    put_integer(out, 4, u64::from(*truth));
                }
                AttributeValue::Int(number) => {
                    put_integer(out, 2, 2);
                    put_integer(out, 5, number.cast_unsigned());
                }
                AttributeValue::Double(number) => {
                    put_integer(out, 2, 3);
                    put_fixed64(out, 6, number.to_bits());
                }
                AttributeValue::Bytes(bytes) => {
                    put_integer(out, 2, 4);
                    put_bytes(out, 7, bytes);
                }
                other => panic!("{other:?}"),
            }
        });
    }
}

fn json_tags(tags: &[SampleTag]) -> Vec<Value> {
    let tag = |(key, value): &SampleTag| {
        let (value_type, value) = match value {
            AttributeValue::Str(text) => ("string", json!(text.as_str())),
            AttributeValue::Bool(truth) => ("bool", json!(truth)),
            AttributeValue::Int(number) => ("int64", json!(number.to_string())),
            AttributeValue::Double(number) if number.is_finite() => ("float64", json!(number)),
            AttributeValue::Double(number) if number.is_nan() => ("float64", json!("NaN")),
            AttributeValue::Double(number) => ("float64", json!(if *number > 0.0 { "+Inf" } else { "-Inf" })),
            AttributeValue::Bytes(bytes) => ("binary", json!(base64::encode(bytes))),
            other => panic!("{other:?}"),
        };
        json!({ "key": key, "type": value_type, "value": value })
    };
    tags.iter().map(tag).collect()
}
