//! `search --poles`: what to fix first in all traces that match. A server that is no longpole sends its traces, and they are read here.

use std::time::Duration;

use anyhow::Result;
use longpole_analysis::many_traces::ManyTraces;
use longpole_recording::import;
use longpole_recording::view::SharedPolesView;
use longpole_wire::jaeger;

use super::search::{again, attributes_of, nothing_found, traces_of};
use crate::args::{Format, SearchArguments};
use crate::input::server::{Server, query_value};
use crate::invocation::Invocation;
use crate::render;
use crate::terminal::screen::{print, print_json, print_line};
use crate::terminal::stderr::note;

/// As many traces as a server reads: `--limit 0`.
const TRACES_MAX: usize = 5_000;

/// Traces to read of another server: each is a request.
const TRACES_OF_ANOTHER: usize = 100;

/// A trace with more spans is no request of a service.
const SPANS_MAX: u32 = 20_000;

/// Prints the poles.
pub(crate) fn shared_poles(invocation: &Invocation, arguments: &SearchArguments) -> Result<()> {
    let server = &Server::new(&arguments.at.at);
    let view = match server.view_of_longpole(&format!("/longpole/v1/traces/poles?{}", query_of(arguments)))? {
        Some(view) => view,
        None => of_another(arguments, server)?,
    };
    match arguments.at.format {
        Format::Json => print_json(&view),
        Format::Text if view.operations.is_empty() && view.left_out == 0 => print_line(nothing_found(server, arguments)?),
        Format::Text => {
            let alone = |service: &str, operation: &str| again(arguments, &Some(service.to_owned()), &Some(operation.to_owned()));
            print(&render::shared_poles::shared_poles(
                &view,
                arguments.service.as_deref(),
                |trace_id| server.page_of(trace_id),
                alone,
                invocation.style(),
            ))
        }
    }
}

/// The same of a Jaeger.
fn of_another(arguments: &SearchArguments, server: &Server) -> Result<SharedPolesView> {
    let limit = arguments.limit.unwrap_or(TRACES_OF_ANOTHER);
    let found = traces_of(server, arguments, limit)?;
    note(format!("the server is no longpole: reading {} traces of it", found.len()));
    let (mut many, mut left_out) = (ManyTraces::default(), 0);
    for row in &found {
        let Some(trace_id) = jaeger::trace_id(&row.trace_id).filter(|_| row.spans <= SPANS_MAX) else {
            left_out += 1;
            continue;
        };
        let report = import::report(import::of_trace(server.trace(&row.trace_id)?.spans));
        many.add(trace_id, (&row.service, &row.name), &report);
    }
    Ok(SharedPolesView::new(&many.operations(), (found.len() - left_out, found.len() >= limit, left_out)))
}

/// The same conditions as parameters of the page's search.
fn query_of(arguments: &SearchArguments) -> String {
    let now = jiff::Timestamp::now();
    let from = now.checked_sub(arguments.since).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let nanos = |duration: Duration| format!("{}ns", duration.as_nanos());
    let parameters = [
        ("service", arguments.service.clone()),
        ("operation", arguments.operation.clone()),
        ("tags", attributes_of(arguments)),
        ("start", Some(from.as_microsecond().to_string())),
        ("end", Some(now.as_microsecond().to_string())),
        ("minDuration", arguments.min.map(nanos)),
        ("maxDuration", arguments.max.map(nanos)),
        ("limit", arguments.limit.map(|limit| if limit == 0 { TRACES_MAX } else { limit }.to_string())),
    ];
    let pairs = parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", query_value(&value?))));
    pairs.collect::<Vec<_>>().join("&")
}
