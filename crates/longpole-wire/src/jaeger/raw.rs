//! A span as Jaeger has it, in any of its encodings, and what it is in the model.

use std::borrow::Cow;
use std::sync::Arc;

use longpole_model::attribute::{Attribute, AttributeValue, Attributes};
use longpole_model::id::{SpanId, TraceId};
use longpole_model::resource::Resource;
use longpole_model::span::{Span, SpanLink};
use longpole_model::time::Timestamp;

use super::{CHILD_OF, FOLLOWS_FROM, REF_TYPE, SCOPE, WARNINGS};
use crate::convert::{Building, Losses};
use crate::emitter::fit_resource;

/// A span as it was sent.
#[derive(Default)]
pub(super) struct RawSpan<'a> {
    pub(super) trace_id: Option<TraceId>,
    pub(super) span_id: Option<SpanId>,
    /// The parent, beside the references.
    pub(super) parent: Option<SpanId>,
    pub(super) parent_invalid: bool,
    pub(super) name: Cow<'a, str>,
    pub(super) flags: u32,
    pub(super) references: Vec<RawReference<'a>>,
    /// Nanoseconds since the Unix epoch. Only protobuf has more than microseconds.
    pub(super) start_nanos: i128,
    /// `None` if the span has no end.
    pub(super) duration_nanos: Option<i128>,
    pub(super) tags: Vec<Attribute>,
    pub(super) logs: Vec<RawLog>,
    /// A process of the span's own.
    pub(super) process: Option<RawProcess<'a>>,
    /// A list of texts, or nothing.
    pub(super) warnings: AttributeValue,
}

/// The parent, or a link.
pub(super) struct RawReference<'a> {
    /// `CHILD_OF`, `FOLLOWS_FROM`, or another.
    pub(super) ref_type: Cow<'a, str>,
    pub(super) trace_id: Option<TraceId>,
    pub(super) span_id: Option<SpanId>,
}

/// Fields at a time.
pub(super) struct RawLog {
    pub(super) nanos: i128,
    pub(super) fields: Vec<Attribute>,
}

/// The emitter of a span.
#[derive(Default)]
pub(super) struct RawProcess<'a> {
    pub(super) service_name: Cow<'a, str>,
    pub(super) tags: Vec<Attribute>,
}

/// The type of a tag's value.
#[derive(Clone, Copy, Default)]
pub(super) enum TagType {
    #[default]
    String,
    Bool,
    Int64,
    Float64,
    Binary,
}

/// A tag with a field for each type, as thrift and protobuf have it.
#[derive(Default)]
pub(super) struct RawTag<'a> {
    pub(super) key: Cow<'a, str>,
    /// Which of the fields counts.
    pub(super) value_type: TagType,
    pub(super) string: Cow<'a, str>,
    pub(super) bool: bool,
    pub(super) int64: i64,
    pub(super) float64: f64,
    pub(super) binary: &'a [u8],
}

impl RawTag<'_> {
    pub(super) fn into_attribute(self) -> Attribute {
        let value = match self.value_type {
            TagType::String => AttributeValue::Str(self.string.into()),
            TagType::Bool => AttributeValue::Bool(self.bool),
            TagType::Int64 => AttributeValue::Int(self.int64),
            TagType::Float64 => AttributeValue::Double(self.float64),
            TagType::Binary => AttributeValue::Bytes(self.binary.to_vec().into()),
        };
        Attribute { key: self.key.into(), value }
    }
}

/// The reference type of this number, in thrift and in protobuf.
pub(super) fn ref_type(number: i32) -> Cow<'static, str> {
    match number {
        0 => Cow::Borrowed(CHILD_OF),
        1 => Cow::Borrowed(FOLLOWS_FROM),
        other => Cow::Owned(other.to_string()),
    }
}

impl RawProcess<'_> {
    pub(super) fn into_resource(self, losses: &mut Losses) -> Arc<Resource> {
        let mut attributes = Attributes::default();
        if !self.service_name.is_empty() {
            attributes.push("service.name", AttributeValue::Str(self.service_name.into()));
        }
        attributes.0.extend(self.tags);
        let mut resource = Resource { attributes };
        losses.cut += fit_resource(&mut resource);
        Arc::new(resource)
    }
}

impl RawSpan<'_> {
    /// The span of the model, of this process unless it has its own; `None`, counted, if its ids are not valid.
    pub(super) fn build(self, process: Option<&Arc<Resource>>, losses: &mut Losses) -> Option<Span> {
        let (Some(trace_id), Some(span_id)) = (self.trace_id, self.span_id) else {
            losses.spans += 1;
            return None;
        };
        let mut span = Building::new(SCOPE, trace_id, span_id);
        span.name = self.name.into();
        span.flags = self.flags;
        span.shared_resource = self.process.map(|process| process.into_resource(losses)).or_else(|| process.cloned());
        span.parent_span_id = self.parent;
        losses.references += u64::from(self.parent_invalid);
        for reference in self.references {
            refer(&mut span, reference, losses);
        }
        span.start = time(&mut span, self.start_nanos);
        span.end = match self.duration_nanos {
            Some(duration) => time(&mut span, self.start_nanos.saturating_add(duration)),
            None => {
                span.unfinished();
                span.start
            }
        };
        for log in self.logs {
            let at = time(&mut span, log.nanos);
            span.log(at, log.fields);
        }
        for Attribute { key, value } in self.tags {
            span.tag(&key, value);
        }
        if matches!(&self.warnings, AttributeValue::Array(warnings) if !warnings.is_empty()) {
            span.attributes.push(WARNINGS, self.warnings);
        }
        losses.times_of(&span);
        Some(span.finish())
    }
}

/// Adds a reference as the parent or as a link; counts it if it is neither.
fn refer(span: &mut Building, reference: RawReference<'_>, losses: &mut Losses) {
    let (Some(trace_id), Some(span_id)) = (reference.trace_id, reference.span_id) else {
        losses.references += 1;
        return;
    };
    let is_child = reference.ref_type == CHILD_OF;
    if is_child && trace_id == span.trace_id && span.parent_span_id.is_none_or(|parent| parent == span_id) {
        span.parent_span_id = Some(span_id);
        return;
    }
    let mut attributes = Attributes::default();
    if reference.ref_type != FOLLOWS_FROM {
        attributes.push(REF_TYPE, AttributeValue::Str(reference.ref_type.to_ascii_lowercase().into()));
    }
    span.links.push(SpanLink { trace_id, span_id, attributes });
}

/// A time of the span. What was sent is named in microseconds if it was sent so.
fn time(span: &mut Building, nanos: i128) -> Timestamp {
    span.time(nanos, || if nanos % 1000 == 0 { format!("{} us", nanos / 1000) } else { format!("{nanos} ns") })
}
