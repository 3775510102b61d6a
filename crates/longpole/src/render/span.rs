//! One span.

use longpole_model::units::{self, TimeUnit, count, counted, duration, range};
use longpole_recording::view;

use super::functions::frame_rows;
use super::next_steps::same_name_line;
use super::service::service_column;
use super::states::state_lines;
use super::waits::{callee_lines, waits_section};
use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, right};

/// Attributes shown as text; `--format json` has all.
const ATTRIBUTES_SHOWN: usize = 24;

/// Memory, CPU time, faults and bytes of a process.
fn usage_lines(usage: &view::UsageView) -> Vec<String> {
    let ago = |nanos: i64| if nanos > 0 { format!(", {} before its end", duration(nanos)) } else { String::new() };
    let last = usage.read_before_end_nanos.map(ago).unwrap_or_default();
    let peak = usage.peak_resident_bytes.map(|peak| match usage.peak_from {
        Some(view::PeakFromView::Exit) => format!("peak memory           {} (at its exit)", units::bytes(peak)),
        _ => format!("peak memory           {} (when last read{last})", units::bytes(peak)),
    });
    let grows = usage.grows.map(|growth| {
        let (from, to) = (units::bytes(growth.from_bytes), units::bytes(growth.to_bytes));
        format!("memory keeps growing  from {from} to {to}")
    });
    let cpu = usage
        .cpu_nanos
        .map(|cpu| format!("CPU time              {} (counted by the kernel)", duration(i64::try_from(cpu).unwrap_or(i64::MAX))));
    let faults = usage
        .minor_faults
        .zip(usage.major_faults)
        .map(|(minor, major)| format!("page faults           {} minor, {} major", count(minor), count(major)));
    let both = |what: &str, read: Option<u64>, written: Option<u64>| {
        read.zip(written).map(|(read, written)| format!("{what:21} {} read, {} written", units::bytes(read), units::bytes(written)))
    };
    let calls = both("read and write calls", usage.read_bytes, usage.written_bytes);
    let seen = calls.or_else(|| usage.minor_faults.map(|_| "read and write calls  unknown: another user's process".to_owned()));
    let storage = both("storage", usage.storage_read_bytes, usage.storage_written_bytes);
    [peak, grows, cpu, faults, seen, storage].into_iter().flatten().map(|line| format!("  {line}")).collect()
}

/// `3 spans`, or `3 processes` if these are processes without spans.
fn nodes_words(view: &view::SpanView, count: u64) -> String {
    let (one, many) = if view.is_process { ("process", "processes") } else { ("span", "spans") };
    counted(count, one, many)
}

/// `both processes`, `all 3 spans`.
fn all_words(nodes: String, count: u64) -> String {
    if count == 2 { format!("both {}", nodes.trim_start_matches("2 ")) } else { format!("all {nodes}") }
}

/// Which waits are listed of spans that have children.
pub(crate) const OWN_WAITS: &str = "in its own time, outside child spans";

/// Which waits are listed of processes that have children.
pub(crate) const OWN_WAITS_OF_PROCESSES: &str = "in its own time, outside its children";

/// Which waits are listed.
fn of_waits(view: &view::SpanView) -> &'static str {
    match view.children {
        0 => "",
        _ if view.is_process => OWN_WAITS_OF_PROCESSES,
        _ => OWN_WAITS,
    }
}

pub(crate) fn span(view: &view::SpanView, sees_cpus: bool, style: Style) -> Screen {
    let mut out = Vec::new();
    if let Some(part) = &view.part {
        let (on_path, name) = (duration(part.on_path_nanos), fit(&view.name, 30));
        let unit = TimeUnit::of(part.saves_if_zero_nanos[1]);
        let (zero, half) = (range(unit, part.saves_if_zero_nanos), range(unit, part.saves_if_half_nanos));
        let group = view.pole.as_ref().filter(|pole| pole.count > 1).map(|pole| all_words(nodes_words(view, pole.count), pole.count));
        let nodes = group.as_ref().map_or_else(String::new, |all| format!(" in {all}"));
        out.push(format!("{}  {}", style.handle(&part.handle), style.strong(&format!("{name} › {}", fit(&part.text, 40)))));
        out.push(format!("{on_path} on path{nodes}; saves {zero} if it took no time, {half} if 2× faster"));
        let recording = quoted(&view.recording);
        let alone = |flag: &str| format!("{} flame {recording}{flag} --span {}", own_name(), part.handle);
        match part.kind {
            view::PartKindView::Computes => out.push(format!("its code alone: {}", style.handle(&alone("")))),
            view::PartKindView::Waits => out.push(format!("its waits alone: {}", style.handle(&alone(" --off-cpu")))),
            view::PartKindView::Rest | view::PartKindView::Busy => {}
        }
        out.push(String::new());
        let whole = match &group {
            Some(all) => format!(
                "a part of {name} ({all}). Everything below is about all of {}, which is on the path for the longest time.",
                view.handle
            ),
            None => format!("a part of {name}. Everything below is about all of {name}."),
        };
        out.push(style.faint(&format!("{} is {whole}", part.handle)));
    }
    out.push(format!(
        "{}  {}{}  {}",
        style.handle(&view.handle),
        style.strong(&fit(&view.name, 60)),
        style.faint(&fit(&service_column(&view.service), 27)),
        style.faint(&view.recording)
    ));
    let mut facts = format!("{} at +{}", duration(view.duration_nanos), duration(view.start_nanos));
    if let Some(parent) = &view.parent {
        facts.push_str(&format!(
            ", child of {}{}",
            parent.handle,
            if parent.edge == view::EvidenceView::Inferred { " (inferred)" } else { "" }
        ));
    }
    if let Some(process) = &view.process {
        facts.push_str(&format!(", process {} {}", process.pid, fit(&process.name, 20)));
    }
    out.push(facts);
    if let Some(view::PoleOfSpanView { handle, count, .. }) = view.pole.as_ref().filter(|_| view.part.is_none()) {
        let all = nodes_words(view, *count);
        out.push(style.faint(&format!(
            "{handle} groups {all}; this one is on the critical path for the longest time. `flame {} --span {handle}` shows the code of all of them.",
            quoted(&view.recording)
        )));
    }
    if view.status.code == view::StatusCodeView::Error {
        out.push(style.warning(&format!("error: {}", fit(&view.status.message, 80))));
    }
    out.push(String::new());
    out.extend(state_lines(view, sees_cpus, style));
    out.push(String::new());
    out.extend(waits_section(&view.waits, of_waits(view), style));
    if let Some(callee) = &view.callee {
        out.push(style.strong("CALLS"));
        out.extend(callee_lines(callee, style));
        out.push(String::new());
    }
    let savings = &view.savings;
    let of_pole = view.pole.as_ref().map(|pole| (pole, pole.saves_if_zero_nanos));
    let unit = TimeUnit::of(of_pole.map_or(savings.saves_if_zero_nanos, |(_, saves)| saves)[1]);
    out.push(format!(
        "{}{} ({})",
        style.strong("SAVES"),
        if view.part.is_some() { format!("  {} {} as a whole", view.handle, view.name) } else { String::new() },
        if savings.evidence == view::EvidenceView::Declared { "its dependencies are certain" } else { "its dependencies are inferred" }
    ));
    if let Some((pole, saves)) = of_pole.filter(|_| view.part.is_none()) {
        out.push(format!(
            "  {} of {} together: {} if they took no time; this one by itself:",
            all_words(nodes_words(view, pole.count), pole.count),
            pole.handle,
            range(unit, saves)
        ));
    }
    if view.is_run {
        // Without its children nothing would be left of the run.
        out.push(format!("  if its own time were zero  {}", range(unit, savings.saves_own_nanos)));
        out.push(format!("  if its own time were half  {}", range(unit, savings.saves_if_half_nanos)));
    } else {
        out.push(format!("  if it took no time         {}", range(unit, savings.saves_if_zero_nanos)));
        out.push(format!("  if 2× faster               {}", range(unit, savings.saves_if_half_nanos)));
        out.push(format!("  if its own time were zero  {}", range(unit, savings.saves_own_nanos)));
    }
    out.push(format!("  own time on the path       {}", duration(savings.on_path_nanos)));
    out.push(String::new());
    let links = &view.samples.links;
    let is_tied = links.record + links.journal + links.label + links.inferred + links.ambiguous > 0;
    let ties = if view.samples.own == 0 {
        String::new()
    } else if view.is_process || !is_tied {
        " (matched by process)".to_owned()
    } else {
        let exact = match (links.record + links.journal, links.label) {
            (exact, 0) => format!("{} exact", count(exact)),
            (0, label) => format!("{} by label", count(label)),
            (exact, label) => format!("{} exact, {} by label", count(exact), count(label)),
        };
        format!(" ({exact}, {} inferred, {} ambiguous)", count(links.inferred), count(links.ambiguous))
    };
    out.push(format!(
        "{} {} of its own{ties}, {} with its descendants",
        style.strong("CODE"),
        counted(view.samples.own, "sample", "samples"),
        count(view.samples.with_descendants),
    ));
    if view.samples.own == 0 && sees_cpus {
        out.push("  no samples: it was never on a CPU long enough, or its process was not sampled".to_owned());
    } else if view.few_samples && view.samples.own > 0 {
        out.push(format!("  {}", style.warning("fewer than 20 samples: a hint, not a measurement")));
    }
    if let Some(all) = &view.same_name {
        out.push(format!("  {}", same_name_line(&view.recording, all)));
    }
    if !view.top_frames.is_empty() {
        out.extend(frame_rows(&view.top_frames, style));
    }
    if let Some(usage) = view.process.as_ref().and_then(|process| process.usage.as_ref()) {
        out.push(String::new());
        out.push(style.strong("PROCESS"));
        out.extend(usage_lines(usage));
    }
    if !view.attributes.is_empty() {
        out.push(String::new());
        out.push(style.strong("ATTRIBUTES"));
        for attribute in view.attributes.iter().take(ATTRIBUTES_SHOWN) {
            let value = match &attribute.value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            out.push(format!("  {}  {}", fit(&attribute.key, 40), fit(&value, style.width() - 44)));
        }
        if view.attributes.len() > ATTRIBUTES_SHOWN {
            out.push(format!("  … {} more (--format json)", view.attributes.len() - ATTRIBUTES_SHOWN));
        }
    }
    if !view.events.is_empty() {
        out.push(String::new());
        out.push(style.strong("EVENTS"));
        let unit = TimeUnit::of(view.events.iter().map(|event| event.time_nanos).max().unwrap_or_default());
        out.extend(
            view.events
                .iter()
                .map(|event| format!("  {}  {}", right(&unit.show(event.time_nanos), 9), fit(&event.name, style.width() - 13))),
        );
    }
    if !view.links.is_empty() {
        out.push(String::new());
        out.push(style.strong("LINKS"));
        for link in &view.links {
            let target = link.handle.clone().unwrap_or_else(|| format!("{} {} (not in this recording)", link.trace_id, link.span_id));
            out.push(format!("  linked to {target}"));
        }
    }
    out.into_iter().collect()
}
