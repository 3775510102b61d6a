//! Tags that mean something other than an attribute.

use longpole_model::attribute::AttributeValue;
use longpole_model::resource_event;

use crate::attribute_json::Plain;
use crate::json;
use crate::limits::Limits;

/// Attribute of a span whose end never came. Its end is the last that is known of it.
pub(crate) const UNFINISHED: &str = "longpole.unfinished";

/// Tag that holds the trace id where the format has only 64 bits for it.
pub(crate) const TRACE_ID: &str = "longpole.trace_id";

pub(super) const KIND: &str = "span.kind";

pub(super) const ERROR: &str = "error";

pub(super) const STATUS_CODE: &str = "otel.status_code";

pub(super) const STATUS_DESCRIPTION: &str = "otel.status_description";

pub(super) const SCOPE_NAME: &str = "otel.scope.name";

pub(super) const SCOPE_VERSION: &str = "otel.scope.version";

pub(super) const DROPPED_ATTRIBUTES: &str = "otel.dropped_attributes_count";

pub(super) const DROPPED_EVENTS: &str = "otel.dropped_events_count";

pub(super) const DROPPED_LINKS: &str = "otel.dropped_links_count";

pub(super) const TRACE_STATE: &str = "w3c.tracestate";

pub(super) const FLAGS: &str = "longpole.flags";

pub(super) const LINK_PREFIX: &str = "otlp.link.";

pub(super) const RESOURCE_PREFIX: &str = "otel.resource.";

pub(super) const SERVICE_NAME: &str = "service.name";

/// Name of a log's field that names the event.
pub(super) const EVENT: &str = "event";

/// Whether a tag of this name means something other than an attribute.
pub(crate) fn is_spoken_for(key: &str) -> bool {
    const KEYS: [&str; 11] = [
        KIND,
        ERROR,
        STATUS_CODE,
        STATUS_DESCRIPTION,
        SCOPE_NAME,
        SCOPE_VERSION,
        DROPPED_ATTRIBUTES,
        DROPPED_EVENTS,
        DROPPED_LINKS,
        TRACE_STATE,
        FLAGS,
    ];
    KEYS.contains(&key) || key == TRACE_ID || key.starts_with(LINK_PREFIX) || key.starts_with(RESOURCE_PREFIX)
}

/// Our own attributes that are no texts have their type back where a format made them texts.
pub(super) fn typed(key: &str, value: AttributeValue) -> AttributeValue {
    match (key, &value) {
        (UNFINISHED, AttributeValue::Str(text)) if text == "true" => AttributeValue::Bool(true),
        (resource_event::DEPENDENCIES, AttributeValue::Str(text)) if text.starts_with('[') => {
            json::parse::<Plain>(text.as_bytes(), &Limits::default()).map_or(value, |Plain(value)| value)
        }
        _ => value,
    }
}
