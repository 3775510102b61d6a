//! All spans of a name.

use longpole_analysis::tree::forest::RUN_SERVICE;
use longpole_analysis::tree::labels::method_of_call;
use longpole_model::units::{TimeUnit, count, counted, duration, percent, range};
use longpole_recording::view;

use super::command::fit_command;
use super::functions::frame_rows;
use super::service::{named_service, service_column};
use super::span::{OWN_WAITS, OWN_WAITS_OF_PROCESSES};
use super::states::{UNACCOUNTED, UNSEEN, how_known, state_rows};
use super::waits::waits_section;
use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, right};

/// Spans listed of a name.
const SPANS_SHOWN: usize = 10;

/// Columns of the list before a command, without the handle.
const LIST_INDENT: usize = 25;

pub(crate) fn spans(view: &view::SpansView, sees_cpus: bool, style: Style) -> Screen {
    let services: Vec<&str> = view.services.iter().map(|service| named_service(service)).filter(|service| !service.is_empty()).collect();
    let services = service_column(&fit(&services.join(", "), 30));
    let title = style.strong(&format!("{} ×{}", fit(&view.name, 60), count(view.count)));
    let mut out = vec![format!("{title}{}  {}", style.faint(&services), style.faint(&view.recording))];
    let lengths = &view.durations;
    let unit = TimeUnit::of(lengths.max_nanos);
    out.push(format!(
        "{} in total{}; {} to {} each, median {}",
        duration(lengths.sum_nanos),
        if view.outermost < view.count { ", counting nested ones once" } else { "" },
        unit.show(lengths.min_nanos),
        unit.show(lengths.max_nanos),
        unit.show(lengths.median_nanos)
    ));
    if view.errors > 0 {
        out.push(style.warning(&format!("{} of them failed", count(view.errors))));
    }
    out.push(String::new());
    out.push(format!(
        "{}  {}",
        style.strong("STATES"),
        style.faint(&format!("of {}; {}", whose(view), how_known(&view.states, view.are_processes, sees_cpus)))
    ));
    let (states, unit) = (&view.states, TimeUnit::of(lengths.sum_nanos));
    for (i, (name, nanos, meaning)) in state_rows(states, view.are_processes).into_iter().enumerate() {
        let meaning = if name == UNACCOUNTED && !sees_cpus { UNSEEN } else { meaning };
        if i == 0 && !sees_cpus {
            out.push(format!("  {name:20} {}", right("unknown", 9)));
        } else if i == 0 || nanos > 0 {
            let share = right(&percent(nanos, lengths.sum_nanos), 5);
            out.push(format!("  {name:20} {}  {share}  {}", right(&unit.show(nanos), 9), style.faint(meaning)));
        }
    }
    out.push(String::new());
    out.extend(waits_section(&view.waits, if view.are_processes { OWN_WAITS_OF_PROCESSES } else { OWN_WAITS }, style));
    let unit = TimeUnit::of(view.savings.saves_if_zero_nanos[1]);
    let known = match view.savings.evidence {
        view::EvidenceView::Declared => "certain",
        view::EvidenceView::Inferred => "inferred",
    };
    let has_command = view.are_processes && view.spans.iter().any(|span| span.service == RUN_SERVICE);
    let of_command = if has_command { " (of the command itself, only its own time)" } else { "" };
    out.push(format!("{} (their dependencies are {known})", style.strong("SAVES")));
    out.push(format!("  if all took no time         {}{of_command}", range(unit, view.savings.saves_if_zero_nanos)));
    out.push(format!("  if all 2× faster            {}", range(unit, view.savings.saves_if_half_nanos)));
    out.push(format!("  if their own time were zero {}", range(unit, view.savings.saves_own_nanos)));
    out.push(format!("  own time on the path       {}", duration(view.savings.on_path_nanos)));
    out.push(String::new());
    out.push(format!("{} {} of their own", style.strong("CODE"), counted(view.samples, "sample", "samples")));
    out.extend(frame_rows(&view.top_frames, style));
    out.push(String::new());
    out.push(style.strong(if view.are_processes { "PROCESSES" } else { "SPANS" }));
    let unit = TimeUnit::of(lengths.max_nanos);
    let (one, _) = nouns(view);
    out.push(style.faint(&format!("  {}  {}  {one}", right("duration", 9), right("at", 9))));
    for span in view.spans.iter().take(SPANS_SHOWN) {
        let failed = if span.error { style.warning("  failed") } else { String::new() };
        // A span may start before the recording.
        let sign = if span.start_nanos < 0 { "" } else { "+" };
        let start = format!("{sign}{}", duration(span.start_nanos));
        let (length, handle) = (right(&unit.show(span.duration_nanos), 9), style.handle(&span.handle));
        let name = match &span.arguments[..] {
            [] if span.name == view.name => String::new(),
            [] => format!(" {}", fit(method_of_call(&span.name).unwrap_or(&span.name), 44)),
            command => format!(" {}", fit_command(command, style.width().saturating_sub(LIST_INDENT + span.handle.len()).max(20))),
        };
        let service = if span.arguments.is_empty() { style.faint(&format!(" {}", fit(&span.service, 30))) } else { String::new() };
        out.push(format!("  {length}  {}  {handle}{name}{service}{failed}", right(&start, 9)));
    }
    let more = view.spans.len().saturating_sub(SPANS_SHOWN) + view.truncated;
    if more > 0 {
        out.push(style.faint(&format!("  … {} more, all shorter (--format json)", count(more as u64))));
    }
    let handle = view.spans.first().map_or("", |span| span.handle.as_str());
    let (own, name) = (own_name(), quoted(&view.name));
    out.push(
        style.faint(&format!(
            "one of them: {own} span {handle} {0}; the code of all: {own} flame {0} --name {name}",
            quoted(&view.recording)
        )),
    );
    out.into_iter().collect()
}

/// What one of them is, and several.
fn nouns(view: &view::SpansView) -> (&'static str, &'static str) {
    if view.are_processes { ("process", "processes") } else { ("span", "spans") }
}

/// The spans that the states are of.
fn whose(view: &view::SpansView) -> String {
    let (_, many) = nouns(view);
    if view.outermost < view.count {
        format!("the outermost of these {many} ({} of {})", count(view.outermost), count(view.count))
    } else {
        format!("all {many} together")
    }
}
