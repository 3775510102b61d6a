//! The emitter of a span (resource) and the instrumentation that made it (scope).

use crate::attribute::{AttributeValue, Attributes};
use crate::interned_text::Text;

/// The entity that emitted: a process of a service on a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resource {
    /// Attributes such as `service.name`, `process.pid`, `host.name`.
    pub attributes: Attributes,
}

impl Resource {
    /// `service.name`, or OpenTelemetry's `unknown_service`.
    pub fn service_name(&self) -> &str {
        self.attributes.get_str("service.name").filter(|name| !name.is_empty()).unwrap_or("unknown_service")
    }

    /// The same, shared with the attribute.
    pub fn service(&self) -> Text {
        match self.attributes.get("service.name") {
            Some(AttributeValue::Str(name)) if !name.is_empty() => name.clone(),
            _ => Text::from(self.service_name()),
        }
    }

    /// `process.pid`, where the emitter said it.
    pub fn process_pid(&self) -> Option<u32> {
        self.attributes.get("process.pid").and_then(AttributeValue::as_int)?.try_into().ok()
    }
}

/// The instrumentation scope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    /// Name of the library.
    pub name: String,
    /// Its version, empty where not said.
    pub version: String,
    /// Attributes of the scope.
    pub attributes: Attributes,
}
