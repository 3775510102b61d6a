//! longpole's own logs on standard error and own spans to the user's OTLP endpoint.
//!
//! Off by default. On with `--tracing-level debug` or a `RUST_LOG` that names longpole (`RUST_LOG=longpole=debug`). Other parts of
//! `RUST_LOG` are for the command under `run` and change nothing here. While off, a span costs one comparison.
//!
//! `longpole-sdk` sends the spans, as service `longpole`, to `OTEL_EXPORTER_OTLP_ENDPOINT` of longpole's own environment. Only the
//! command learns the endpoint that a run opens, so longpole never receives its own spans.

use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::TracingLevel;
use crate::terminal::screen::LogLines;

/// Time limit for sending the last spans.
const END_MAX: Duration = Duration::from_secs(2);

/// Starts logging and sending spans if enabled, with one more thread.
pub(crate) fn begin(level: Option<TracingLevel>) {
    let Some(directives) = directives(level, std::env::var("RUST_LOG").ok().as_deref()) else { return };
    let spans = longpole_sdk::layer_from(|name| match name {
        // The variable names the command's service, not ours.
        "OTEL_SERVICE_NAME" => Some("longpole".to_owned()),
        _ => std::env::var(name).ok(),
    });
    // One line for each step that ends, with its duration.
    let logs = tracing_subscriber::fmt::layer().with_writer(|| LogLines).with_ansi(false).with_span_events(FmtSpan::CLOSE);
    let filter = EnvFilter::builder().parse_lossy(directives);
    // Nothing else in this program installs one.
    let _ = tracing_subscriber::registry().with(filter).with(spans).with(logs).try_init();
}

/// Sends the remaining spans. All spans must have ended.
pub(crate) fn end() {
    longpole_sdk::shutdown(END_MAX);
}

/// The filter for our own spans and logs. The flag wins over `RUST_LOG`; only its parts that name longpole count.
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
