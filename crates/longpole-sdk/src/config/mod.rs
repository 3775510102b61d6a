//! What the environment asks for: OpenTelemetry's variables, read once. A value that cannot be used is replaced by the default
//! and told once; nothing here fails.

use crate::options::SpanProcessor;
use crate::span_context::SpanContext;

mod export;
#[cfg(all(feature = "heap", target_os = "linux", not(target_arch = "arm")))]
mod heap;
mod program;
mod reader;
mod resource;
mod sampler;

pub(crate) use self::export::{ExportConfig, TlsFiles};
use self::export::{read_export, read_processor};
#[cfg(all(feature = "heap", target_os = "linux", not(target_arch = "arm")))]
pub(crate) use self::heap::{HeapConfig, HeapProgram, HeapPush};
pub(crate) use self::program::Program;
use self::reader::Variables;
#[cfg(feature = "opentelemetry")]
pub(crate) use self::resource::ResourceValue;
use self::resource::read_resource;
pub(crate) use self::resource::{ProcessFacts, Resource};
pub(crate) use self::sampler::Sampler;
use self::sampler::read_sampler;

/// The whole configuration of a layer.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `OTEL_SDK_DISABLED`: no ids, no record, no export.
    pub(crate) disabled: bool,
    /// `None`: there is no endpoint.
    pub(crate) export: Option<ExportConfig>,
    #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code, reason = "there is one"))]
    pub(crate) processor: SpanProcessor,
    pub(crate) sampler: Sampler,
    /// `TRACEPARENT`: the parent of the spans that have none in this process.
    pub(crate) remote_parent: Option<SpanContext>,
    pub(crate) limits: Limits,
    /// The resource of the spans, also where there is no endpoint.
    pub(crate) resource: Resource,
    /// What could not be used, for people.
    pub(crate) complaints: Vec<String>,
}

/// How much a span may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) attributes: u32,
    pub(crate) events: u32,
    pub(crate) links: u32,
    /// Bytes of a text; longer ones are cut at a character.
    pub(crate) value_bytes: usize,
}

impl Config {
    /// Reads the variables through `get`.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>, facts: &ProcessFacts, program: &Program) -> Self {
        let mut reader = Variables { get, complaints: Vec::new() };
        let disabled = reader.flag("OTEL_SDK_DISABLED");
        let remote_parent = reader.text("TRACEPARENT").and_then(|text| match SpanContext::from_traceparent(&text) {
            Ok(context) => Some(context),
            Err(error) => {
                reader.complaints.push(format!("TRACEPARENT={text} is ignored: {error}"));
                None
            }
        });
        let processor = read_processor(&mut reader, program);
        let resource = if disabled { Resource(Vec::new()) } else { read_resource(&mut reader, facts, program) };
        let export = if disabled { None } else { read_export(&mut reader, program, processor, &resource) };
        let sampler = read_sampler(&mut reader);
        let limits = Limits {
            attributes: reader.parsed(&["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"], 128, |_| true),
            events: reader.parsed(&["OTEL_SPAN_EVENT_COUNT_LIMIT"], 128, |_| true),
            links: reader.parsed(&["OTEL_SPAN_LINK_COUNT_LIMIT"], 128, |_| true),
            value_bytes: reader.parsed(
                &["OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"],
                usize::MAX,
                |_| true,
            ),
        };
        Self { disabled, export, processor, sampler, remote_parent, limits, resource, complaints: reader.complaints }
    }
}

#[cfg(test)]
mod tests;
