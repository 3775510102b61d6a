//! Which traces are recorded: OpenTelemetry's `OTEL_TRACES_SAMPLER`.

use super::reader::Variables;
use crate::span_context::{SAMPLED, SpanContext};

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// Follow the decision of the parent where there is one.
    pub(crate) parent_based: bool,
    /// Share of the traces that begin here, in units of 2^-63; all of them at 2^63.
    threshold: u64,
}

#[cfg(feature = "opentelemetry")]
impl Sampler {
    /// The share again, 0 to 1.
    pub(crate) fn ratio(&self) -> f64 {
        self.threshold as f64 / ALL_TRACES as f64
    }
}

const ALL_TRACES: u64 = 1 << 63;

impl Sampler {
    pub(super) const DEFAULT: Self = Self { parent_based: true, threshold: ALL_TRACES };

    /// Whether a trace that begins here is recorded. Decides by the id alone, so that all processes of a trace agree.
    pub(crate) fn samples(&self, trace_id: &[u8; 16]) -> bool {
        let random = trace_id[8..].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)) >> 1;
        random < self.threshold
    }

    /// Flags of a span of this trace with this parent.
    pub(crate) fn flags(&self, trace_id: &[u8; 16], parent: Option<&SpanContext>) -> u8 {
        let sampled = match parent {
            Some(parent) if self.parent_based => parent.sampled(),
            _ => self.samples(trace_id),
        };
        if sampled { SAMPLED } else { 0 }
    }
}

pub(super) fn read_sampler(reader: &mut Variables<'_>) -> Sampler {
    let Some(name) = reader.text("OTEL_TRACES_SAMPLER") else { return Sampler::DEFAULT };
    let (parent_based, root) = match name.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, name.as_str()),
    };
    let threshold = match root {
        "always_on" => ALL_TRACES,
        "always_off" => 0,
        "traceidratio" => {
            let ratio = reader.parsed(&["OTEL_TRACES_SAMPLER_ARG"], 1.0_f64, |ratio| (0.0..=1.0).contains(ratio));
            (ratio * ALL_TRACES as f64) as u64
        }
        _ => {
            reader.complaints.push(format!("OTEL_TRACES_SAMPLER={name} is not supported; using parentbased_always_on"));
            return Sampler::DEFAULT;
        }
    };
    Sampler { parent_based, threshold }
}
