//! What longpole itself does, as logs on standard error and as spans to the endpoint of the environment.
//!
//! Off unless somebody asks: `--tracing-level debug`, or a `RUST_LOG` that names longpole (`RUST_LOG=longpole=debug`). A `RUST_LOG`
//! for the command under `run` is the command's and changes nothing here. Off, a span costs the look at one number.
//!
//! Spans go where `OTEL_EXPORTER_OTLP_ENDPOINT` of *our* environment points, through `longpole-sdk`, as service `longpole`. The
//! endpoint that a run opens is told to the command only, so nothing of ours comes back to us as if it were the command's.

use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::TracingLevel;
use crate::terminal::screen::LogLines;

/// How long the collector is waited for at the end.
const END_MAX: Duration = Duration::from_secs(2);

/// Begins, where it is asked for: then there is one more thread.
pub(crate) fn begin(level: Option<TracingLevel>) {
    let Some(directives) = directives(level, std::env::var("RUST_LOG").ok().as_deref()) else { return };
    let spans = longpole_sdk::layer_from(|name| match name {
        // The variable names the command's service, not ours.
        "OTEL_SERVICE_NAME" => Some("longpole".to_owned()),
        _ => std::env::var(name).ok(),
    });
    // A step is one line, when it is over, with how long it took.
    let logs = tracing_subscriber::fmt::layer().with_writer(|| LogLines).with_ansi(false).with_span_events(FmtSpan::CLOSE);
    let filter = EnvFilter::builder().parse_lossy(directives);
    // Nobody else installs one in this program.
    let _ = tracing_subscriber::registry().with(filter).with(spans).with(logs).try_init();
}

/// Sends what is left. Nothing may be open any more.
pub(crate) fn end() {
    longpole_sdk::shutdown(END_MAX);
}

/// What of ours is to be seen: the flag wins over the variable, of which only what names longpole counts.
fn directives(level: Option<TracingLevel>, rust_log: Option<&str>) -> Option<String> {
    match level {
        Some(TracingLevel::Off) => None,
        Some(level) => Some(format!("longpole={}", level.as_str())),
        None => {
            let ours: Vec<&str> = rust_log?.split(',').map(str::trim).filter(|directive| directive.starts_with("longpole")).collect();
            (!ours.is_empty()).then(|| ours.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_longpole_is_ours() {
        assert_eq!(directives(None, None), None);
        assert_eq!(directives(None, Some("debug,myapp=trace")), None);
        assert_eq!(
            directives(None, Some("debug, longpole=debug,longpole_server=trace")).as_deref(),
            Some("longpole=debug,longpole_server=trace")
        );
        assert_eq!(directives(Some(TracingLevel::Debug), Some("longpole=trace")).as_deref(), Some("longpole=debug"));
        assert_eq!(directives(Some(TracingLevel::Off), Some("longpole=trace")), None);
    }
}
