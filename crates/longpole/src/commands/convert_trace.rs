//! Pulumi's `convert-trace`: converts a trace file to a profile of wall time, or sends it to a collector.

use std::time::Duration;

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_analysis::report::FlameTime;
use longpole_model::units::counted;
use longpole_recording::export::{self, Selection};
use longpole_server::forward;

use crate::args::ConvertTraceArguments;
use crate::export::export_file::{nanos, write_to};
use crate::failure::{Failure, Kind};
use crate::input::import_file;
use crate::next_command::own_name;
use crate::session::spans_target;
use crate::terminal::stderr::note;

/// Spans in a request of `convert-trace --otel`, as many as batch processors send. gRPC servers refuse more than 4 MiB.
const SPANS_PER_REQUEST: usize = 512;

/// Time limit of a request of `convert-trace --otel`.
const SEND_MAX: Duration = Duration::from_secs(10);

/// OpenTelemetry's default endpoint for gRPC.
const ENDPOINT_DEFAULT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317");

/// Span names of Pulumi's log calls, in the older tracing and the newer one.
const LOG_SPANS: [&str; 2] = ["/pulumirpc.Engine/Log", "pulumirpc.Engine/Log"];

/// Writes a profile of wall time to standard output, or with `--otel` sends the spans to the endpoint in the environment.
pub(crate) fn convert_trace(arguments: &ConvertTraceArguments) -> Result<()> {
    let mut recording = import_file::read(&arguments.file)?.recording();
    if arguments.ignore_log_spans {
        recording.spans.retain(|span| !LOG_SPANS.contains(&span.name.as_str()));
    }
    if !arguments.otel {
        let format = export::Format::PprofOfSpans { granularity_nanos: nanos(arguments.granularity) };
        return write_to(&Report::new(recording), format, &Selection::of_run(FlameTime::Wall, false), None);
    }
    let mut environment: Vec<_> = std::env::vars_os().collect();
    let target = spans_target(&environment).or_else(|| {
        environment.push((ENDPOINT_DEFAULT.0.into(), ENDPOINT_DEFAULT.1.into()));
        spans_target(&environment)
    });
    let Some(target) = target else {
        let failure =
            Failure::new(Kind::Usage, "the environment turns sending spans off: OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER or the sampler");
        return Err(failure.hint(format!("{} doctor names the variable", own_name())).into());
    };
    let origin = target.origin();
    for spans in recording.spans.chunks(SPANS_PER_REQUEST) {
        forward::send_once(target.clone(), spans, SEND_MAX).with_context(|| format!("failed to send the spans to {origin}"))?;
    }
    note(format!("sent {} to {origin}", counted(recording.spans.len() as u64, "span", "spans")));
    Ok(())
}
