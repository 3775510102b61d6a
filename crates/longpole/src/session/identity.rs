//! The identity of a run: its ids, its machine, and everything else that is fixed before the command starts.

use anyhow::{Context, Result};
use longpole_model::{CaptureMode, Run, SpanId, TraceId};
use longpole_wire::traceparent::{FLAG_SAMPLED, TraceParent};

use super::moment::now;
use crate::env_vars;

/// The trace context of the run: in the user's trace if there is one, with a new id for the span of the run; and the parent of that span.
pub(crate) fn identity() -> Result<(TraceParent, Option<SpanId>)> {
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"));
    let inherited = std::env::var(env_vars::TRACEPARENT).ok().and_then(|text| text.parse::<TraceParent>().ok());
    let (mut trace, mut span) = ([0; TraceId::BYTES], [0; SpanId::BYTES]);
    random(&mut trace)?;
    random(&mut span)?;
    // An id of zeros is invalid.
    trace[0] |= 1;
    span[0] |= 1;
    let fresh = TraceId::new(trace).context("an id of zero bytes")?;
    let own = TraceParent {
        trace_id: inherited.map_or(fresh, |parent| parent.trace_id),
        span_id: SpanId::new(span).context("an id of zero bytes")?,
        flags: FLAG_SAMPLED,
    };
    Ok((own, inherited.map(|parent| parent.span_id)))
}

/// The secret id of a run: it authorises processes to send to its receiver, and serves nothing else.
pub(crate) fn secret() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A run that starts now, on this machine.
pub(crate) fn new_run(command: Vec<String>, traceparent: TraceParent, rate_hz: u32) -> Run {
    Run {
        command,
        working_directory: std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default(),
        host: host(),
        cpus: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        trace_id: traceparent.trace_id,
        root_span_id: traceparent.span_id,
        root_pid: None,
        start: now(),
        end: None,
        exit: None,
        rate_hz,
        mode: CaptureMode::Off,
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    }
}

/// The name of this machine.
pub(crate) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}
