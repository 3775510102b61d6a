//! Out: what a span says beside its fields and attributes, as tags and texts.

use std::borrow::Cow;

use longpole_model::attribute::{Attribute, AttributeValue};
use longpole_model::resource::Resource;
use longpole_model::resource_event;
use longpole_model::span::{Span, SpanEvent, SpanKind, StatusCode};

use super::keys::{
    DROPPED_ATTRIBUTES, DROPPED_EVENTS, DROPPED_LINKS, ERROR, FLAGS, KIND, LINK_PREFIX, RESOURCE_PREFIX, SCOPE_NAME, SCOPE_VERSION,
    SERVICE_NAME, STATUS_CODE, STATUS_DESCRIPTION, TRACE_STATE, UNFINISHED, typed,
};
use super::losses::{CannotHold, TYPES};
use crate::{attribute_json, json_writer, pulumi_payload};

/// What a span says beside its fields and attributes, as tags; see the table at the top of this file. The kind is not
/// among them: some formats have a field for it.
pub(crate) fn said_in_tags(span: &Span, channel: &str, lost: &mut CannotHold) -> Vec<(Cow<'static, str>, String)> {
    let mut tags = Vec::new();
    let mut tag = |key: &'static str, value: String| tags.push((Cow::Borrowed(key), value));
    let status = &span.status;
    match status.code {
        StatusCode::Error => {
            tag(STATUS_CODE, "ERROR".to_owned());
            tag(ERROR, if status.message.is_empty() { "true".to_owned() } else { status.message.to_string() });
        }
        StatusCode::Ok => tag(STATUS_CODE, "OK".to_owned()),
        StatusCode::Unset => {}
    }
    if !status.message.is_empty() {
        tag(STATUS_DESCRIPTION, status.message.to_string());
    }
    if span.scope.name != channel || !span.scope.version.is_empty() {
        tag(SCOPE_NAME, span.scope.name.clone());
        if !span.scope.version.is_empty() {
            tag(SCOPE_VERSION, span.scope.version.clone());
        }
    }
    lost.count(!span.scope.attributes.0.is_empty(), "attributes of scopes");
    if !span.trace_state.is_empty() {
        tag(TRACE_STATE, span.trace_state.to_string());
    }
    for (key, count) in
        [(DROPPED_ATTRIBUTES, span.dropped_attributes), (DROPPED_EVENTS, span.dropped_events), (DROPPED_LINKS, span.dropped_links)]
    {
        if count > 0 {
            tag(key, count.to_string());
        }
    }
    tags
}

/// Flags of the span as a tag, for formats without a field for them.
pub(crate) fn flags_tag(span: &Span) -> Option<(Cow<'static, str>, String)> {
    (span.flags != 0).then(|| (Cow::Borrowed(FLAGS), span.flags.to_string()))
}

/// The kind of the span as a tag, for formats without a field for it.
pub(crate) fn kind_tag(span: &Span) -> Option<(Cow<'static, str>, String)> {
    (span.kind != SpanKind::Unspecified).then(|| (Cow::Borrowed(KIND), span.kind.as_str().to_owned()))
}

/// Links of the span as tags, for formats without links.
pub(crate) fn link_tags(span: &Span, lost: &mut CannotHold) -> Vec<(Cow<'static, str>, String)> {
    let mut tags = Vec::with_capacity(span.links.len());
    for (index, link) in span.links.iter().enumerate() {
        let mut text = format!("{}|{}||{{", link.trace_id, link.span_id);
        lost.count(!attribute_json::write_members(&mut text, &link.attributes.0), TYPES);
        text.push_str("}|0");
        tags.push((Cow::Owned(format!("{LINK_PREFIX}{index}")), text));
    }
    tags
}

/// Attributes of the resource other than the name of the service as tags, for formats without them.
///
/// These say them with every span, where OTLP says them once: 64 KiB beside 20,000 spans would be a gigabyte and a half. So after
/// `LONG_RESOURCES_BYTES_MAX` of long ones each span has [`RESOURCE_BYTES`] of its own.
pub(crate) fn resource_tags(span: &Span, lost: &mut CannotHold) -> Vec<(Cow<'static, str>, String)> {
    let (_, others) = service_and_others(&span.resource);
    let tag = |attribute: &Attribute, lost: &mut CannotHold| {
        (Cow::Owned(format!("{RESOURCE_PREFIX}{}", attribute.key)), text_of(&attribute.value, lost).into_owned())
    };
    let mut tags: Vec<_> = others.map(|attribute| tag(attribute, lost)).collect();
    let size = |(key, value): &(Cow<'static, str>, String)| key.len() + value.len();
    let bytes: usize = tags.iter().map(size).sum();
    if bytes <= RESOURCE_BYTES {
        return tags;
    }
    match lost.long_resources_left.checked_sub(bytes) {
        Some(left) => lost.long_resources_left = left,
        None => {
            let mut left = RESOURCE_BYTES;
            tags.retain(|tag| {
                left.checked_sub(size(tag)).is_some_and(|rest| {
                    left = rest;
                    true
                })
            });
            lost.count(true, LONG_RESOURCES);
        }
    }
    tags
}

/// Bytes of its resource that a span has in any case, in formats that repeat it.
const RESOURCE_BYTES: usize = 4 << 10;

/// Why a span comes back with a part of its resource.
const LONG_RESOURCES: &str = "spans whose resource is longer than 4 KiB, after 64 MiB of them: the format repeats it with each span";

/// The name of the service, which has a place of its own in every format, and the other attributes of a resource. Where a
/// resource has several names, only the first one counts, so that their order comes back.
pub(crate) fn service_and_others(resource: &Resource) -> (Option<&str>, impl Iterator<Item = &Attribute>) {
    let attributes = &resource.attributes.0;
    let at = attributes.iter().position(|attribute| attribute.key == SERVICE_NAME);
    let service = at.and_then(|at| attributes[at].value.as_str()).filter(|name| !name.is_empty());
    let skipped = at.filter(|_| service.is_some());
    let others = attributes.iter().enumerate().filter(move |(index, _)| Some(*index) != skipped).map(|(_, attribute)| attribute);
    (service, others)
}

/// The value of an attribute as a text. Two of ours come back as what they are.
pub(crate) fn attribute_text<'a>(attribute: &'a Attribute, lost: &mut CannotHold) -> Cow<'a, str> {
    let is_ours = matches!(&*attribute.key, UNFINISHED | resource_event::DEPENDENCIES);
    let text = attribute_json::as_text(&attribute.value);
    if is_ours && typed(&attribute.key, AttributeValue::Str(text.as_ref().into())) == attribute.value {
        return text;
    }
    text_of(&attribute.value, lost)
}

/// A value as a text, which is what it comes back as.
pub(crate) fn text_of<'v>(value: &'v AttributeValue, lost: &mut CannotHold) -> Cow<'v, str> {
    lost.count(value.as_str().is_none(), TYPES);
    attribute_json::as_text(value)
}

/// An event as the text of a log.
pub(crate) fn event_text(event: &SpanEvent, lost: &mut CannotHold) -> String {
    if event.attributes.0.is_empty() && !event.name.trim_start().starts_with('{') && pulumi_payload::find(&event.name).is_none() {
        return event.name.to_string();
    }
    let mut text = String::from("{\"event\":");
    json_writer::write_text(&mut text, &event.name);
    if !event.attributes.0.is_empty() {
        text.push(',');
        lost.count(!attribute_json::write_members(&mut text, &event.attributes.0), TYPES);
    }
    text.push('}');
    text
}
