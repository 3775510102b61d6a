//! `span`: one span, or all of a name: states, savings, hot functions.

use anyhow::Result;
use longpole_analysis::{Handle, Report};
use longpole_recording::view;

use crate::args::{Format, SpanArguments};
use crate::failure::{Failure, Kind};
use crate::input::load::load;
use crate::input::select::{in_order, is_handle, none_chosen, not_found};
use crate::invocation::Invocation;
use crate::next_command::{own_name, quoted};
use crate::render;
use crate::terminal::screen::{print, print_json};

/// Prints one span.
pub(crate) fn span(invocation: &Invocation, arguments: &SpanArguments) -> Result<()> {
    let (handle, recording) = in_order(&arguments.handle, &arguments.recording);
    let (name, report) = load(invocation, recording)?;
    let handle = match is_handle(handle) {
        true => handle.to_owned(),
        false => match spans_of_name(invocation, arguments, (&name, &report), handle)? {
            Some(handle) => handle,
            None => return Ok(()),
        },
    };
    let view = view::SpanView::new(&name, &report, &handle).ok_or_else(|| not_found(&name, &report, &handle))?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::span::span(&view, sees_cpus(&report), invocation.style())),
    }
}

/// Whether the recording knows when threads were on a CPU.
fn sees_cpus(report: &Report) -> bool {
    let recording = report.recording();
    !recording.samples.is_empty() || !recording.cpu_slices.is_empty() || !recording.current_spans.is_empty()
}

/// Prints all spans of a name. Returns the handle instead if there is only one.
fn spans_of_name(
    invocation: &Invocation,
    arguments: &SpanArguments,
    (recording, report): (&str, &Report),
    name: &str,
) -> Result<Option<String>> {
    let (exact, similar) = report.names_like(name);
    let Some(exact) = exact else {
        let failure = Failure::new(Kind::NotFound, format!("there is no span called “{name}” in {recording}"));
        let hint = if !similar.is_empty() {
            similar_names(&similar)
        } else if let [function, ..] = report.functions().named(name)[..] {
            format!(
                "there is a function {}: {} frame {} {}",
                quoted(&report.functions().list[function].function),
                own_name(),
                Handle::Function(function),
                quoted(recording)
            )
        } else {
            format!("{} tree {} shows the names", own_name(), quoted(recording))
        };
        return Err(failure.hint(hint).into());
    };
    if let [node] = report.nodes_of_name(exact)[..] {
        return Ok(Some(Handle::Node(node).to_string()));
    }
    let view = view::SpansView::new(recording, report, exact).ok_or_else(|| none_chosen(recording, report, view::Chosen::Name(exact)))?;
    match arguments.format {
        Format::Json => print_json(&view)?,
        Format::Text => print(&render::spans::spans(&view, sees_cpus(report), invocation.style()))?,
    }
    Ok(None)
}

fn similar_names(names: &[&str]) -> String {
    let list: Vec<String> = names.iter().take(NAMES_SHOWN).map(|name| quoted(name)).collect();
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("names like it: {}{more}", list.join(", "))
}

/// Similar names to list if none is equal.
const NAMES_SHOWN: usize = 8;
