//! Finding the spans that the user named by handle, name or trace, and the failures if there are none.

use longpole_analysis::Report;
use longpole_model::SpanId;
use longpole_recording::view::Chosen;
use longpole_store::RecordingName;

use crate::args::SpansArguments;
use crate::failure::{Failure, Kind};
use crate::input::load::possible_file;
use crate::next_command::{own_name, quoted};

/// Handle or name, and recording, typed in either order: `p1 r7`, `r7 p1`, `r7 nap`.
pub(crate) fn in_order<'a>(handle: &'a str, recording: &'a str) -> (&'a str, &'a str) {
    let is_swapped = !is_handle(handle) && (is_handle(recording) || (is_recording(handle) && !is_recording(recording)));
    if is_swapped { (recording, handle) } else { (handle, recording) }
}

/// Whether a text can only mean a recording or a file. A tag does not count: it may be the name of a span as well.
fn is_recording(text: &str) -> bool {
    text == "last" || RecordingName::parse(text).is_some() || possible_file(text).is_some()
}

/// The chosen spans, if any, and the recording. `flame p1` is short for `flame --span p1`.
pub(crate) fn chosen<'a>(spans: &'a SpansArguments, recording: &'a str) -> (Option<Chosen<'a>>, &'a str) {
    let handle = spans.span.as_deref().map(handle_or_name);
    let name = spans.name.as_deref().map(Chosen::Name);
    let trace = spans.trace.as_deref().map(Chosen::Trace);
    match handle.or(name).or(trace) {
        None if is_handle(recording) => (Some(Chosen::Handle(recording)), "last"),
        chosen => (chosen, recording),
    }
}

/// Spans by handle, or by name.
pub(crate) fn handle_or_name(text: &str) -> Chosen<'_> {
    if is_handle(text) { Chosen::Handle(text) } else { Chosen::Name(text) }
}

/// Whether it is a handle: `s12`, `p1`, `f3`, or the id of a span. No recording has such a name.
pub(crate) fn is_handle(text: &str) -> bool {
    text.parse::<longpole_analysis::Handle>().is_ok() || text.parse::<SpanId>().is_ok()
}

/// The failure for a handle that does not exist.
pub(crate) fn not_found(recording: &str, report: &Report, handle: &str) -> Failure {
    if report.is_profile() {
        let failure =
            Failure::new(Kind::NotFound, format!("there is no {handle} in {recording}: a profile has no spans and no long poles"));
        return failure.hint(format!("{} top {} lists its functions", own_name(), quoted(recording)));
    }
    let what = if handle.starts_with('p') { "long pole" } else { "span" };
    Failure::new(Kind::NotFound, format!("there is no {what} {handle} in {recording}")).hint(format!(
        "{own} tree {0} lists s1, s2, …; {own} poles {0} lists p1, p2, …",
        quoted(recording),
        own = own_name()
    ))
}

/// The failure for spans that do not exist.
pub(crate) fn none_chosen(recording: &str, report: &Report, chosen: Chosen<'_>) -> Failure {
    match chosen {
        Chosen::Handle(handle) => not_found(recording, report, handle),
        Chosen::Name(_) => Failure::new(Kind::NotFound, format!("there is no {chosen} in {recording}")).hint(format!(
            "{} tree {} shows the names",
            own_name(),
            quoted(recording)
        )),
        Chosen::Trace(_) => Failure::new(Kind::NotFound, format!("there is no {chosen} in {recording}")).hint(format!(
            "{} span HANDLE {} --format json prints the trace of a span",
            own_name(),
            quoted(recording)
        )),
    }
}
