//! `search`: the traces of a server.

use std::time::Duration;

use anyhow::Result;
use longpole_recording::view::{ServiceSpansView, TraceRowView, TracesView};
use serde_json::{Map, Value};

use crate::args::{Format, SearchArguments};
use crate::failure::{Failure, Kind};
use crate::input::server::{Server, query_value};
use crate::invocation::Invocation;
use crate::next_command::{at_server, quoted};
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};
use crate::terminal::stderr::note;
use longpole_model::units::duration;

/// Traces among which the longest are searched: as many as a server sends.
const LONGEST_OF: usize = 1_500;

/// Traces of a list without `--limit`.
const LIMIT: usize = 20;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The path of the list.
const SUMMARIES: &str = "/api/v3/trace-summaries";

/// Lists traces. Jaeger's third API has all that the list needs.
pub(crate) fn search(invocation: &Invocation, arguments: &SearchArguments) -> Result<()> {
    let server = Server::new(&arguments.at.at);
    let mut traces = traces_of(&server, arguments, asked(arguments))?;
    let truncated = traces.len() >= asked(arguments);
    if arguments.longest {
        traces.sort_by_key(|trace| std::cmp::Reverse(trace.wall_nanos));
        if truncated {
            note(format!("these are the longest of the newest {} that match; a filter, or a shorter --since, finds others", traces.len()));
        }
        traces.truncate(limit_of(arguments));
    }
    let view = TracesView { traces, truncated: truncated && !arguments.longest, next: None };
    match arguments.at.format {
        Format::Json => print_json(&view),
        Format::Text if view.traces.is_empty() => print_line(nothing_found(&server, arguments)?),
        Format::Text => {
            let poles = again(arguments, &arguments.service, &arguments.operation);
            print(&render::traces::traces(&view, |trace_id| server.page_of(trace_id), &poles, invocation.style()))
        }
    }
}

/// The newest traces that match, the newest first.
pub(super) fn traces_of(server: &Server, arguments: &SearchArguments, limit: usize) -> Result<Vec<TraceRowView>> {
    let summaries = server.list(&[format!("{SUMMARIES}?{}", query_of(arguments, limit))], &["summaries"])?;
    let rows: Option<Vec<TraceRowView>> = summaries.iter().map(row).collect();
    let mut traces = rows.ok_or_else(|| server.not_of_the_api(SUMMARIES))?;
    // Times of one length in nanoseconds.
    traces.sort_by(|a, b| b.start_unix_nano.cmp(&a.start_unix_nano));
    Ok(traces)
}

/// The command that prints the poles of the same search, of this operation.
pub(super) fn again(arguments: &SearchArguments, service: &Option<String>, operation: &Option<String>) -> String {
    let mut command = at_server("search", &arguments.at.at);
    let mut add = |option: &str, value: &str| command.push_str(&format!(" --{option} {}", quoted(value)));
    service.iter().for_each(|service| add("service", service));
    operation.iter().for_each(|operation| add("operation", operation));
    arguments.attributes.iter().for_each(|(key, value)| add("attribute", &format!("{key}={value}")));
    for (option, value) in [("min", arguments.min), ("max", arguments.max)] {
        value.iter().for_each(|time| add(option, &exactly(*time)));
    }
    if arguments.since != HOUR {
        add("since", &as_option(arguments.since));
    }
    let errors = if arguments.errors { " --errors" } else { "" };
    format!("{command}{errors} --poles")
}

/// The attributes of a span that matches, as JSON.
pub(super) fn attributes_of(arguments: &SearchArguments) -> Option<String> {
    let mut tags: Map<String, Value> = arguments.attributes.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    if arguments.errors {
        tags.insert("error".to_owned(), Value::from("true"));
    }
    (!tags.is_empty()).then(|| Value::Object(tags).to_string())
}

/// Why there may be nothing, and what to try.
///
/// # Errors
///
/// The service has never sent anything, or has no such operation.
pub(super) fn nothing_found(server: &Server, arguments: &SearchArguments) -> Result<String> {
    let services = at_server("services", &arguments.at.at);
    let known = |service: &String| server.service_names().ok().map(|names| names.contains(service));
    if let Some(service) = arguments.service.as_ref().filter(|service| known(service) == Some(false)) {
        let failure = Failure::new(Kind::NotFound, format!("the server knows no service {service}"));
        return Err(failure.hint(format!("{services} lists them")).into());
    }
    if let (Some(service), Some(operation)) = (&arguments.service, &arguments.operation)
        && server.operations(service).is_ok_and(|names| !names.contains(operation))
    {
        let failure = Failure::new(Kind::NotFound, format!("the service {service} has no operation {operation}"));
        return Err(failure.hint(format!("{services} lists the operations of each service")).into());
    }
    let SearchArguments { service, operation, attributes, errors, min, max, .. } = arguments;
    let conditions = [service.is_some(), operation.is_some(), *errors, min.is_some() || max.is_some()];
    let count = conditions.iter().filter(|is_asked| **is_asked).count() + attributes.len();
    let one_span = if count > 1 { " All conditions must hold for one span." } else { "" };
    let further = if arguments.since < DAY { "Use --since 1d" } else { "Use a longer --since" };
    Ok(format!("No traces found in the last {}.{one_span} {further} to look further back.", as_option(arguments.since)))
}

/// A duration as the option takes it, without a loss.
fn exactly(time: Duration) -> String {
    let nanos = time.as_nanos();
    if nanos.is_multiple_of(1_000_000) { format!("{}ms", nanos / 1_000_000) } else { format!("{nanos}ns") }
}

/// A time as the option takes it: `1h`, `90s`.
pub(super) fn as_option(time: Duration) -> String {
    let secs = time.as_secs();
    let units = [(DAY.as_secs(), "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let whole = units.into_iter().find(|(unit, _)| time.subsec_nanos() == 0 && secs > 0 && secs.is_multiple_of(*unit));
    whole.map_or_else(|| duration(time.as_nanos()), |(unit, letter)| format!("{}{letter}", secs / unit))
}

/// How many traces to list.
fn limit_of(arguments: &SearchArguments) -> usize {
    arguments.limit.unwrap_or(LIMIT)
}

/// How many traces the server is to send: of the longest nothing is known before.
fn asked(arguments: &SearchArguments) -> usize {
    if arguments.longest { limit_of(arguments).max(LONGEST_OF) } else { limit_of(arguments) }
}

fn query_of(arguments: &SearchArguments, limit: usize) -> String {
    let now = jiff::Timestamp::now();
    let from = now.checked_sub(arguments.since).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let nanos = |duration: Duration| format!("{}ns", duration.as_nanos());
    let parameters = [
        ("serviceName", arguments.service.clone()),
        ("operationName", arguments.operation.clone()),
        ("attributes", attributes_of(arguments)),
        ("startTimeMin", Some(from.to_string())),
        ("startTimeMax", Some(now.to_string())),
        ("durationMin", arguments.min.map(nanos)),
        ("durationMax", arguments.max.map(nanos)),
        ("searchDepth", Some(limit.to_string())),
    ];
    let pairs = parameters.into_iter().filter_map(|(name, value)| Some(format!("query.{name}={}", query_value(&value?))));
    pairs.collect::<Vec<_>>().join("&")
}

/// A trace of an answer. What is missing there is 0 or empty, but not the times. `None` if it is none.
fn row(summary: &Value) -> Option<TraceRowView> {
    let text = |name: &str| summary.get(name).and_then(Value::as_str).unwrap_or_default();
    let count = |of: &Value, name: &str| match of.get(name) {
        Some(Value::String(count)) => count.parse().ok(),
        Some(count) => u32::try_from(count.as_u64()?).ok(),
        None => Some(0),
    };
    let nanos = |name: &str| text(name).parse::<i64>().ok();
    let services = summary.get("services").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let service = |of: &Value| {
        let name = of.get("name").and_then(Value::as_str)?.to_owned();
        Some(ServiceSpansView { name, spans: count(of, "spanCount")? })
    };
    Some(TraceRowView {
        trace_id: summary.get("traceId")?.as_str()?.to_owned(),
        service: text("rootServiceName").to_owned(),
        name: text("rootOperationName").to_owned(),
        start_unix_nano: text("minStartTimeUnixNano").to_owned(),
        wall_nanos: nanos("maxEndTimeUnixNano")?.saturating_sub(nanos("minStartTimeUnixNano")?).max(0),
        spans: count(summary, "spanCount")?,
        errors: count(summary, "errorSpanCount")?,
        services: services.iter().map(service).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_is_written_as_the_option_takes_it() {
        let written = [3_600_000, 86_400_000, 5_400_000, 45_000, 1_500].map(|millis| as_option(Duration::from_millis(millis)));
        assert_eq!(written, ["1h", "1d", "90m", "45s", "1.50s"]);
    }

    #[test]
    fn a_trace_has_its_id_and_its_times() {
        let summary = json!({ "traceId": "4f1c", "minStartTimeUnixNano": "10", "maxEndTimeUnixNano": "25", "spanCount": 3, "services": [{ "name": "web" }] });
        let trace = row(&summary).unwrap();
        assert_eq!((trace.wall_nanos, trace.spans, trace.errors, trace.services.len()), (15, 3, 0, 1));
        for (name, value) in
            [("traceId", json!(7)), ("maxEndTimeUnixNano", json!(null)), ("spanCount", json!(1e300)), ("services", json!([{}]))]
        {
            let mut other = summary.clone();
            other[name] = value;
            assert!(row(&other).is_none(), "{other}");
        }
    }
}
