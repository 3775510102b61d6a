//! A span as Jaeger says it, in either of its encodings.

use std::borrow::Cow;

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::id::{SpanId, TraceId};
use longpole_model::span::{Span, SpanEvent};

use super::{CHILD_OF, FOLLOWS_FROM, REF_TYPE, SCOPE, WARNINGS};
use crate::convert::{self, CannotHold, NAMES};

/// The flags of W3C's trace context.
const TRACE_FLAGS: u32 = 0xff;

/// What of a span has another shape in Jaeger.
pub(super) struct Outgoing<'a> {
    /// The flags of the trace. OTLP's have two bits more: whether the parent is of another process, and whether somebody knows.
    pub(super) flags: u32,
    /// The parent, then the links: their type, trace and span.
    pub(super) references: Vec<(&'static str, TraceId, SpanId)>,
    pub(super) tags: Vec<(Cow<'a, str>, Cow<'a, AttributeValue>)>,
    /// A list of texts.
    pub(super) warnings: Option<&'a AttributeValue>,
}

impl<'a> Outgoing<'a> {
    /// Counts what Jaeger cannot say of it.
    pub(super) fn of(span: &'a Span, lost: &mut CannotHold) -> Outgoing<'a> {
        let flags = span.flags & TRACE_FLAGS;
        lost.count(flags != span.flags, "flags of spans other than those of the trace");
        let parent = span.parent_span_id.map(|parent| (CHILD_OF, span.trace_id, parent));
        let links = span.links.iter().map(|link| {
            let is_child = matches!(&link.attributes.0[..], [only] if only.key == REF_TYPE && only.value.as_str() == Some("child_of"));
            let is_parent = is_child && link.trace_id == span.trace_id && (parent.is_none() || span.parent_span_id == Some(link.span_id));
            lost.count(is_parent || !(is_child || link.attributes.0.is_empty()), "attributes of links");
            (if is_child && !is_parent { CHILD_OF } else { FOLLOWS_FROM }, link.trace_id, link.span_id)
        });
        let references = parent.into_iter().chain(links).collect();

        let mut said = convert::said_in_tags(span, SCOPE, lost);
        said.extend(convert::kind_tag(span));
        let is_warnings = |attribute: &Attribute| {
            attribute.key == WARNINGS
                && matches!(&attribute.value, AttributeValue::Array(texts) if !texts.is_empty() && texts.iter().all(|text| text.as_str().is_some()))
        };
        // The last, so that of several each but one stays a tag.
        let warnings = span.attributes.iter().rev().find(|attribute| is_warnings(attribute));
        let mut tags: Vec<(Cow<'a, str>, Cow<'a, AttributeValue>)> = Vec::new();
        for (key, value) in &said {
            // A viewer looks for a truth value; why stands in the description of the status.
            let value = if key == "error" { AttributeValue::Bool(true) } else { AttributeValue::Str(value.into()) };
            tags.push((Cow::Owned(key.to_string()), Cow::Owned(value)));
        }
        for attribute in span.attributes.iter() {
            if warnings.is_some_and(|warnings| std::ptr::eq(warnings, attribute)) {
                continue;
            }
            let is_spoken_for = convert::is_spoken_for(&attribute.key);
            lost.count(is_spoken_for, NAMES);
            if is_spoken_for && said.iter().any(|(key, _)| *key == attribute.key) {
                continue;
            }
            tags.push((Cow::Borrowed(&attribute.key), Cow::Borrowed(&attribute.value)));
        }
        Outgoing { flags, references, tags, warnings: warnings.map(|warnings| &warnings.value) }
    }
}

/// The fields of a log: the name of the event, and its attributes.
pub(super) fn fields_of(event: &SpanEvent) -> impl Iterator<Item = (&str, Cow<'_, AttributeValue>)> {
    let name = ("event", Cow::Owned(AttributeValue::Str(event.name.clone())));
    let attributes = event.attributes.iter().map(|attribute| (&*attribute.key, Cow::Borrowed(&attribute.value)));
    std::iter::once(name).chain(attributes)
}
