//! `span`: one span, or all of a name: states, savings, code.

use anyhow::Result;
use longpole_analysis::time::usage::bytes_words;
use longpole_analysis::{Handle, Report};
use longpole_model::SumNanos;
use longpole_server::view;

use super::recording::{Setting, in_order, is_handle, load, own_name, print, print_json, quoted};
use crate::args::{Format, SpanArguments};
use crate::failure::{Failure, Kind};
use crate::screen::Screen;
use crate::terminal::{Style, TimeUnit, WIDTH, count, counted, duration, fit, function_words, percent, range, right, width};

/// Attributes shown as text; `--format json` has all.
const ATTRIBUTES_SHOWN: usize = 24;

/// The failure for a handle that names nothing.
pub(crate) fn not_found(recording: &str, handle: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no span {handle} in {recording}"))
        .hint(format!("{own} tree {recording} lists s1, s2, …; {own} poles {recording} lists p1, p2, …", own = own_name()))
}

/// The failure for spans of which there are none.
pub(crate) fn none_chosen(recording: &str, chosen: view::Chosen<'_>) -> Failure {
    match chosen {
        view::Chosen::Handle(handle) => not_found(recording, handle),
        view::Chosen::Name(_) | view::Chosen::Trace(_) => Failure::new(Kind::NotFound, format!("there is no {chosen} in {recording}"))
            .hint(format!(
                "{own} tree {recording} shows the names; {own} span HANDLE {recording} --format json says the trace of a span",
                own = own_name()
            )),
    }
}

/// Where more of the same is to be seen.
pub(crate) fn same_name_line(recording: &str, all: &view::SameNameView) -> String {
    format!(
        "All {} of this name have {}: {} flame {recording} --name {}",
        counted(all.spans, "span", "spans"),
        counted(all.samples, "sample", "samples"),
        own_name(),
        quoted(&all.name)
    )
}

/// Prints one span.
pub(crate) fn span(setting: &Setting, arguments: &SpanArguments) -> Result<()> {
    let (handle, recording) = in_order(&arguments.handle, &arguments.recording);
    let (name, report) = load(setting, recording)?;
    let handle = match is_handle(handle) {
        true => handle.to_owned(),
        false => match spans_of_name(setting, arguments, (&name, &report), handle)? {
            Some(handle) => handle,
            None => return Ok(()),
        },
    };
    let view = view::SpanView::new(&name, &report, &handle).ok_or_else(|| not_found(&name, &handle))?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&text(&view, sees_cpus(&report), setting.style())),
    }
}

/// Whether anything tells when a thread was on a CPU.
fn sees_cpus(report: &Report) -> bool {
    let recording = report.recording();
    !recording.samples.is_empty() || !recording.cpu_slices.is_empty() || !recording.current_spans.is_empty()
}

/// Prints all spans of a name; the handle of the span where only one is called so.
fn spans_of_name(setting: &Setting, arguments: &SpanArguments, (recording, report): (&str, &Report), name: &str) -> Result<Option<String>> {
    let (exact, similar) = report.names_like(name);
    let Some(exact) = exact else {
        let failure = Failure::new(Kind::NotFound, format!("there is no span called “{name}” in {recording}"));
        let hint = if !similar.is_empty() {
            similar_names(&similar)
        } else if let [function, ..] = report.functions().named(name)[..] {
            format!(
                "there is a function {}: {} frame {}",
                quoted(&report.functions().list[function].function),
                own_name(),
                Handle::Function(function)
            )
        } else {
            format!("{} tree {recording} shows the names", own_name())
        };
        return Err(failure.hint(hint).into());
    };
    if let [node] = report.nodes_of_name(exact)[..] {
        return Ok(Some(Handle::Node(node).to_string()));
    }
    let view = view::SpansView::new(recording, report, exact).ok_or_else(|| none_chosen(recording, view::Chosen::Name(exact)))?;
    match arguments.format {
        Format::Json => print_json(&view)?,
        Format::Text => print(&text_of_spans(&view, setting.style()))?,
    }
    Ok(None)
}

fn similar_names(names: &[&str]) -> String {
    let list: Vec<String> = names.iter().take(NAMES_SHOWN).map(|name| quoted(name)).collect();
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("names like it: {}{more}", list.join(", "))
}

/// Names that are told where none is meant exactly.
const NAMES_SHOWN: usize = 8;

/// Spans of a name that are listed.
const SPANS_SHOWN: usize = 10;

fn text_of_spans(view: &view::SpansView, style: Style) -> Screen {
    let services = fit(&view.services.join(", "), 30);
    let title = style.strong(&format!("{} ×{}", fit(&view.name, 60), count(view.count)));
    let mut out = vec![format!("{title}  {}  {}", style.faint(&services), style.faint(&view.recording))];
    let lengths = &view.durations;
    let unit = TimeUnit::of(lengths.max_nanos);
    out.push(format!(
        "{} together; each {} to {}, half of them below {}",
        duration(lengths.sum_nanos),
        unit.show(lengths.min_nanos),
        unit.show(lengths.max_nanos),
        unit.show(lengths.median_nanos)
    ));
    if view.errors > 0 {
        out.push(style.warning(&format!("{} of them failed", count(view.errors))));
    }
    out.push(String::new());
    out.push(format!("{}  {}", style.strong("STATES"), style.faint(&format!("of all of them, added up; {}", how_known(&view.states)))));
    let (states, unit) = (&view.states, TimeUnit::of(lengths.sum_nanos));
    for (i, (name, nanos, meaning)) in state_rows(states).into_iter().enumerate() {
        if i == 0 || nanos > 0 {
            let share = right(&percent(nanos, lengths.sum_nanos), 5);
            out.push(format!("  {name:20} {}  {share}  {}", right(&unit.show(nanos), 9), style.faint(meaning)));
        }
    }
    out.push(String::new());
    out.extend(waits_section(&view.waits, style));
    let unit = TimeUnit::of(view.savings.saves_if_zero_nanos[1]);
    let known = if view.savings.evidence == "declared" { "declared" } else { "inferred" };
    out.push(format!("{} (what they waited for is {known})", style.strong("SAVES")));
    out.push(format!("  if all took no time      {}", range(unit, view.savings.saves_if_zero_nanos)));
    out.push(format!("  if all took half         {}", range(unit, view.savings.saves_if_half_nanos)));
    out.push(format!("  if only their own time went {}", range(unit, view.savings.saves_own_nanos)));
    out.push(format!("  innermost on the critical path for {}", duration(view.savings.on_path_nanos)));
    out.push(String::new());
    out.push(format!("{} {} their own", style.strong("CODE"), counted(view.samples, "sample", "samples")));
    out.extend(frame_rows(&view.top_frames, style));
    out.push(String::new());
    out.push(style.strong("SPANS"));
    let unit = TimeUnit::of(lengths.max_nanos);
    out.push(style.faint(&format!("  {}  {}  span", right("duration", 9), right("at", 9))));
    for span in view.spans.iter().take(SPANS_SHOWN) {
        let failed = if span.error { style.warning("  failed") } else { String::new() };
        // One that was under way before the recording began starts before it.
        let sign = if span.start_nanos < 0 { "" } else { "+" };
        let start = format!("{sign}{}", duration(span.start_nanos));
        let (length, handle) = (right(&unit.show(span.duration_nanos), 9), style.handle(&span.handle));
        out.push(format!("  {length}  {}  {handle} {}{failed}", right(&start, 9), style.faint(&fit(&span.service, 30))));
    }
    let more = view.spans.len().saturating_sub(SPANS_SHOWN) + view.truncated;
    if more > 0 {
        out.push(style.faint(&format!("  … {} more, shorter ones (--format json)", count(more as u64))));
    }
    let handle = view.spans.first().map_or("", |span| span.handle.as_str());
    let (own, name) = (own_name(), quoted(&view.name));
    out.push(style.faint(&format!("one of them: {own} span {handle} {0}; the code of all: {own} flame {0} --name {name}", view.recording)));
    out.into_iter().collect()
}

/// What a kind of wait means.
fn blocked_on(kind: &str) -> &'static str {
    match kind {
        "lock" => "on a lock, or until another thread goes on",
        "join" => "until another thread ends",
        "disk" => "on a file",
        "network" => "on a socket",
        "sleep" => "for time to pass",
        "page fault" => "for memory to be brought in",
        "child" => "for a child process",
        "pipe" => "on a pipe",
        _ => "on something else",
    }
}

/// What a process used.
fn usage_lines(usage: &view::UsageView) -> Vec<String> {
    let ago = |nanos: i64| if nanos > 0 { format!(", {} before its end", duration(nanos)) } else { String::new() };
    let last = usage.read_before_end_nanos.map(ago).unwrap_or_default();
    let peak = usage.peak_resident_bytes.map(|peak| match usage.peak_from {
        Some("exit") => format!("peak of memory        {} (told at its end)", bytes_words(peak)),
        _ => format!("peak of memory        {} (when it was read last{last})", bytes_words(peak)),
    });
    let grows = usage.grows.map(|growth| {
        let (from, to) = (bytes_words(growth.from_bytes), bytes_words(growth.to_bytes));
        format!("grows all the time    from {from} to {to}")
    });
    let cpu = usage.cpu_nanos.map(|cpu| format!("CPU time              {}", duration(i64::try_from(cpu).unwrap_or(i64::MAX))));
    let faults = usage
        .minor_faults
        .zip(usage.major_faults)
        .map(|(minor, major)| format!("page faults           {}, {} more waited for storage", count(minor), count(major)));
    let both = |what: &str, read: Option<u64>, written: Option<u64>| {
        read.zip(written).map(|(read, written)| format!("{what:21} {} read, {} written", bytes_words(read), bytes_words(written)))
    };
    let calls = both("bytes of its calls", usage.read_bytes, usage.written_bytes);
    let seen = calls.or_else(|| usage.minor_faults.map(|_| "bytes of its calls    may not be seen: another user's process".to_owned()));
    let storage = both("bytes of storage", usage.storage_read_bytes, usage.storage_written_bytes);
    [peak, grows, cpu, faults, seen, storage].into_iter().flatten().map(|line| format!("  {line}")).collect()
}

/// Functions of a process that is called, or of a thread that is waited for.
const OTHERS_FRAMES_SHOWN: usize = 5;

/// Waits that are shorter than this part of the longest are only counted.
const SHORT_PART: i64 = 1000;

/// What was waited for and for whom, with an empty line behind; nothing where there are no waits.
pub(crate) fn waits_section(waits: &[view::WaitView], style: Style) -> Vec<String> {
    if waits.is_empty() {
        return Vec::new();
    }
    let mut out = vec![style.strong("WAITS")];
    let longest = waits.iter().map(|wait| wait.nanos).max().unwrap_or_default();
    let unit = TimeUnit::of(longest);
    let (shown, short): (Vec<_>, Vec<_>) = waits.iter().partition(|wait| wait.nanos >= longest / SHORT_PART);
    for wait in shown {
        out.extend(wait_lines(wait, unit));
        if let Some(blocked) = &wait.blocked_by {
            out.push(style.faint(&format!("  {:9}  {}", "", fit(&blocked.text, WIDTH - 13))));
        }
    }
    if !short.is_empty() {
        out.push(style.faint(&format!("  {:9}  … {} more, each less than a thousandth of the longest", "", short.len())));
    }
    out.push(String::new());
    let blockers = blocker_lines(waits, style);
    if !blockers.is_empty() {
        out.push(blocker_title(waits, style));
        out.extend(blockers);
        out.push(String::new());
    }
    out
}

/// How long, in which call, in which function, and where that stands; below it the lines, where there are several.
pub(crate) fn wait_lines(wait: &view::WaitView, unit: TimeUnit) -> Vec<String> {
    let call = wait.syscall.clone().unwrap_or_else(|| wait.kind.replace('_', " "));
    let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    let several = wait.places.len() > 1;
    let place = match (name(&wait.file), wait.line) {
        _ if several => String::new(),
        (file, 0) if file.is_empty() => String::new(),
        (_, 0) => String::new(),
        (file, line) => format!("  {file}:{line}"),
    };
    let threads = if wait.threads > 1 { format!("  ({} threads)", wait.threads) } else { String::new() };
    let room = (WIDTH - 36).saturating_sub(width(&place) + width(&threads));
    let whose = wait.function.as_deref().map(|function| format!("  in {}{place}", fit(function, room))).unwrap_or_default();
    let mut out = vec![format!("  {}  {call:16}{whose}{threads}", right(&unit.show(wait.nanos), 9))];
    if several {
        let line = |place: &view::PlaceView| {
            let (share, at) = (right(&percent(place.nanos, wait.nanos), 4), format!("{}:{}", name(&place.file), place.line));
            format!("  {}  {:16}  {share} at {}", right(&unit.show(place.nanos), 9), "", fit(&at, WIDTH - 42))
        };
        out.extend(wait.places.iter().map(line));
    }
    out
}

/// Who answers a call, and what it did meanwhile where no span of it says so.
fn callee_lines(callee: &view::CalleeView, style: Style) -> Vec<String> {
    let Some(first) = callee.processes.first() else {
        return vec![format!("  {}, where no process of the run was seen to listen", callee.address)];
    };
    let more = match callee.processes.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let spans = if callee.answers { ", which answers with a span" } else { "; no span of it answers, but meanwhile:" };
    let mut out = vec![format!("  {}, in process {} (pid {}){more}{spans}", callee.address, fit(&first.name, 30), first.pid)];
    if callee.answers {
        return out;
    }
    out.extend(meanwhile_lines(&callee.waits, (callee.samples, callee.weight_nanos), &callee.top_frames, style));
    out
}

/// What somebody else waited for, and ran: samples, and what they stand for.
fn meanwhile_lines(waits: &[view::WaitView], on_cpu: (u64, i64), frames: &[view::TopFrameView], style: Style) -> Vec<String> {
    let (samples, weight_nanos) = on_cpu;
    let unit = TimeUnit::of(waits.iter().map(|wait| wait.nanos).chain([weight_nanos]).max().unwrap_or_default());
    let mut out: Vec<String> = waits.iter().take(OTHERS_FRAMES_SHOWN).flat_map(|wait| wait_lines(wait, unit)).collect();
    if samples > 0 {
        out.push(format!("  {}  {:16}  {}", right(&unit.show(weight_nanos), 9), "on-CPU", counted(samples, "sample", "samples")));
    }
    for frame in frames.iter().take(OTHERS_FRAMES_SHOWN).filter(|frame| frame.self_nanos > 0) {
        let function = fit(&function_words(&frame.function, frame.runtime), WIDTH - 36);
        out.push(format!("  {}  {:16}  in {} {function}", right(&unit.show(frame.self_nanos), 9), "", style.handle(&frame.handle)));
    }
    out
}

/// The threads that the longest of these waits for others was for, and what each did meanwhile.
fn blocker_lines(waits: &[view::WaitView], style: Style) -> Vec<String> {
    let Some((wait, blocked)) = waits.iter().find_map(|wait| Some((wait, wait.blocked_by.as_ref()?))) else { return Vec::new() };
    let mut out = Vec::new();
    for thread in &blocked.threads {
        let name = thread.name.as_ref().map(|name| format!("{} ", fit(name, 30))).unwrap_or_default();
        let waiting = if wait.threads > 1 { format!(" of {} threads' waits, added up", wait.threads) } else { String::new() };
        let known = if thread.evidence == "futex" { "the lock itself names it" } else { "inferred from who ran when the wait was over" };
        let known = if blocked.relation == "ends" && thread.evidence == "futex" { "the thread that is to end" } else { known };
        let did = meanwhile_lines(&thread.waits, (thread.samples, thread.weight_nanos), &thread.top_frames, style);
        let meanwhile = if did.is_empty() { "; what it did meanwhile was not seen" } else { "; meanwhile:" };
        out.push(format!("  thread {name}(tid {}) for {}{waiting}, {known}{meanwhile}", thread.tid, duration(thread.nanos)));
        out.extend(did);
    }
    if let Some(one_of) = blocked.one_of {
        out.push(format!("  one of {} threads, for {}: nothing says which", one_of.threads, duration(one_of.nanos)));
    }
    out
}

/// What the threads were that it waited for, and in which function it did.
fn blocker_title(waits: &[view::WaitView], style: Style) -> String {
    let wait = waits.iter().find(|wait| wait.blocked_by.is_some());
    let title = match wait.and_then(|wait| wait.blocked_by.as_ref()).map(|blocked| blocked.relation) {
        Some("holds") => "HELD BY",
        Some("ends") => "UNTIL THE END OF",
        _ => "WOKEN BY",
    };
    let function = wait.and_then(|wait| wait.function.as_deref()).map(|function| format!("  for {}", fit(function, 60)));
    format!("{}{}", style.strong(title), style.faint(&function.unwrap_or_default()))
}

/// How the states are known.
fn how_known(states: &view::StatesView) -> &'static str {
    match (states.evidence, states.exact) {
        ("journal", true) => "exact: journals of its threads, and switch records",
        ("inferred", true) => "exact, if its process has no other work: switch records; of several threads those count that do the work",
        ("samples", _) => "≈ an estimate, from samples and from waits that were looked at",
        _ => "incomplete: records of a journal or of switches were lost",
    }
}

/// Functions as rows of a table, with its head.
fn frame_rows(frames: &[view::TopFrameView], style: Style) -> Vec<String> {
    if frames.is_empty() {
        return Vec::new();
    }
    let unit = TimeUnit::of(frames.iter().map(|f| f.total_nanos).max().unwrap_or_default());
    let mut out = vec![style.faint(&format!("  {}  {}  function", right("self", 9), right("total", 9)))];
    for frame in frames {
        // One that stands twice in a stack is on two lines at once.
        let are_apart = frame.lines.iter().map(|line| line.total_nanos).sum_nanos::<i64>() <= frame.total_nanos;
        let lines: Vec<String> = match &frame.lines[..] {
            // Where one line has nearly all, it says enough.
            [most, second, ..] if frame.whose == "program" && second.total_nanos.saturating_mul(5) >= most.total_nanos && are_apart => {
                frame.lines.iter().map(|line| format!("{} ({})", line.line, percent(line.total_nanos, frame.total_nanos))).collect()
            }
            _ => vec![frame.line.to_string()],
        };
        let file = frame.file.rsplit('/').next().unwrap_or_default();
        let place = if file.is_empty() { String::new() } else { format!("  {file}:{}", lines.join(", ")) };
        let room = WIDTH.saturating_sub(26 + frame.handle.len() + width(&place)).max(20);
        out.push(format!(
            "  {}  {}  {} {}{}",
            right(&unit.show(frame.self_nanos), 9),
            right(&unit.show(frame.total_nanos), 9),
            style.handle(&frame.handle),
            fit(&function_words(&frame.function, frame.runtime), room),
            style.faint(&place)
        ));
    }
    out
}

/// What each state is, how long it was, and what it means.
fn state_rows(states: &view::StatesView) -> Vec<(String, i64, &'static str)> {
    let missing = if states.evidence == "samples" { "short waits, runnable, or not seen" } else { "no record says what it did" };
    let mut rows = vec![
        ("on-CPU".to_owned(), states.on_cpu_nanos, "running code of its own"),
        ("runnable".to_owned(), states.runnable_nanos, "ready, and others had the CPUs"),
        ("in child".to_owned(), states.in_child_nanos, "covered by child spans"),
    ];
    rows.extend(states.blocked_nanos.parts().into_iter().map(|(kind, nanos)| (format!("blocked: {kind}"), nanos, blocked_on(kind))));
    rows.extend([
        ("blocked: not seen".to_owned(), states.blocked_unseen_nanos, "on what was not looked at: short waits"),
        ("awaiting".to_owned(), states.awaiting_nanos, "open, and no thread works for it"),
        ("remote".to_owned(), states.remote_nanos, "the network or another host works for it"),
        ("unaccounted".to_owned(), states.unaccounted_nanos, missing),
    ]);
    rows
}

/// The states that occurred: of the span itself, and with its descendants where it has some.
fn state_lines(view: &view::SpanView, sees_cpus: bool, style: Style) -> Vec<String> {
    let (own, all) = (&view.states, &view.states_with_descendants);
    let whole = view.duration_nanos;
    let unit = TimeUnit::of(whole.max(all.cpu_nanos));
    let missing = match own.evidence {
        _ if !sees_cpus => "on a CPU, runnable, or short waits: nothing tells",
        "samples" => "short waits, runnable, or not seen",
        _ => "no record says what it did",
    };
    let mut rows = vec![
        ("on-CPU".to_owned(), own.on_cpu_nanos, all.on_cpu_nanos, "running code of its own"),
        ("runnable".to_owned(), own.runnable_nanos, all.runnable_nanos, "ready, and others had the CPUs"),
        ("in child".to_owned(), own.in_child_nanos, all.in_child_nanos, "covered by child spans"),
    ];
    let of_descendants = all.blocked_nanos.parts();
    let mut kinds = own.blocked_nanos.parts();
    kinds.extend(
        of_descendants.iter().filter(|(kind, _)| !own.blocked_nanos.parts().iter().any(|(own, _)| own == kind)).map(|(kind, _)| (*kind, 0)),
    );
    rows.extend(kinds.into_iter().map(|(kind, nanos)| {
        let below = of_descendants.iter().find(|(of, _)| *of == kind).map_or(0, |(_, nanos)| *nanos);
        (format!("blocked: {kind}"), nanos, below, blocked_on(kind))
    }));
    rows.extend([
        ("blocked: not seen".to_owned(), own.blocked_unseen_nanos, all.blocked_unseen_nanos, "on what was not looked at: short waits"),
        ("awaiting".to_owned(), own.awaiting_nanos, all.awaiting_nanos, "open, and no thread works for it"),
        ("remote".to_owned(), own.remote_nanos, all.remote_nanos, "the network or another host works for it"),
        ("unaccounted".to_owned(), own.unaccounted_nanos, all.unaccounted_nanos, missing),
    ]);
    let cell = |nanos: i64| format!("{}  {}", right(&unit.show(nanos), 9), right(&percent(nanos, whole), 5));
    let columns = |own: String, all: String| if view.children > 0 { format!("{own}  {all}") } else { own };
    let mut out = vec![format!("{}  {}", style.strong("STATES"), style.faint(how_known(own)))];
    if view.children > 0 {
        out.push(style.faint(&format!("  {:20} {}  {}", "", right("own", 16), right("with descendants", 16))));
    }
    for (i, (name, own, all, meaning)) in rows.into_iter().enumerate() {
        // A state that never was takes no room, but on-CPU is what one looks for.
        if i == 0 && !sees_cpus {
            out.push(format!("  {name:20} {}  {}", right("not known", 9), style.faint("no samples, and no records of switches")));
        } else if i == 0 || own > 0 || all > 0 && view.children > 0 {
            out.push(format!("  {name:20} {}  {}", columns(cell(own), cell(all)), style.faint(meaning)));
        }
    }
    // Where one thread at a time had it, it is what on-CPU says.
    let differs =
        |states: &view::StatesView| states.cpu_nanos.saturating_sub(states.on_cpu_nanos).saturating_mul(100) > states.on_cpu_nanos;
    if differs(own) || differs(all) {
        let cell = |nanos: i64| format!("{:16}", right(&unit.show(nanos), 9));
        out.push(format!(
            "  {:20} {}  {}",
            "CPU time",
            columns(cell(own.cpu_nanos), cell(all.cpu_nanos)),
            style.faint("of all threads together")
        ));
    }
    if view.children > 0 {
        let known = if all.exact == own.exact { String::new() } else { format!("; {}", how_known(all)) };
        let meaning = "each moment once: on-CPU if anybody is, else runnable, else blocked";
        out.push(style.faint(&format!("  with descendants: {meaning}{known}")));
    }
    out
}

fn text(view: &view::SpanView, sees_cpus: bool, style: Style) -> Screen {
    let mut out = Vec::new();
    out.push(format!(
        "{}  {}  {}  {}",
        style.handle(&view.handle),
        style.strong(&fit(&view.name, 60)),
        style.faint(&fit(&view.service, 25)),
        style.faint(&view.recording)
    ));
    let mut facts = format!("{} at +{}", duration(view.duration_nanos), duration(view.start_nanos));
    if let Some(parent) = &view.parent {
        facts.push_str(&format!(", child of {}{}", parent.handle, if parent.edge == "inferred" { " (inferred)" } else { "" }));
    }
    if let Some(process) = &view.process {
        facts.push_str(&format!(", process {} {}", process.pid, fit(&process.name, 20)));
    }
    out.push(facts);
    if let Some(view::PoleOfSpanView { handle, count, .. }) = &view.pole {
        let all = counted(*count, "span", "spans");
        out.push(
            style.faint(&format!(
                "{handle} is {all}; this one is longest on the critical path. `flame {handle}` is the code of all of them."
            )),
        );
    }
    if view.status.code == "error" {
        out.push(style.warning(&format!("error: {}", fit(&view.status.message, 80))));
    }
    out.push(String::new());
    out.extend(state_lines(view, sees_cpus, style));
    out.push(String::new());
    out.extend(waits_section(&view.waits, style));
    if let Some(callee) = &view.callee {
        out.push(style.strong("CALLS"));
        out.extend(callee_lines(callee, style));
        out.push(String::new());
    }
    let savings = &view.savings;
    let of_pole = view.pole.as_ref().map(|pole| (pole, pole.saves_if_zero_nanos));
    let unit = TimeUnit::of(of_pole.map_or(savings.saves_if_zero_nanos, |(_, saves)| saves)[1]);
    out.push(format!(
        "{} ({})",
        style.strong("SAVES"),
        if savings.evidence == "declared" { "what it waited for is declared, if anything" } else { "what it waited for is inferred" }
    ));
    if let Some((pole, saves)) = of_pole {
        out.push(format!(
            "  all {} of {} together  {}  if they took no time; of this one alone:",
            pole.count,
            pole.handle,
            range(unit, saves)
        ));
    }
    out.push(format!("  if it took no time       {}", range(unit, savings.saves_if_zero_nanos)));
    out.push(format!("  if it took half          {}", range(unit, savings.saves_if_half_nanos)));
    out.push(format!("  if only its own time went {}", range(unit, savings.saves_own_nanos)));
    out.push(format!("  innermost on the critical path for {}", duration(savings.on_path_nanos)));
    out.push(String::new());
    let links = &view.samples.links;
    let is_tied = links.record + links.journal + links.label + links.inferred + links.ambiguous > 0;
    let ties = if view.span_id.is_none() || (view.samples.own > 0 && !is_tied) {
        "tied to it by its process".to_owned()
    } else {
        let exact = match (links.record + links.journal, links.label) {
            (exact, 0) => format!("{} exact", count(exact)),
            (0, label) => format!("{} by label", count(label)),
            (exact, label) => format!("{} exact, {} by label", count(exact), count(label)),
        };
        format!("of its own {exact}, {} inferred, {} ambiguous", count(links.inferred), count(links.ambiguous))
    };
    out.push(format!(
        "{} {} its own, {} with its descendants; {ties}",
        style.strong("CODE"),
        counted(view.samples.own, "sample", "samples"),
        count(view.samples.with_descendants),
    ));
    if view.few_samples {
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
        out.push(style.strong("ITS PROCESS"));
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
            out.push(format!("  {}  {}", fit(&attribute.key, 40), fit(&value, WIDTH - 44)));
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
            view.events.iter().map(|event| format!("  {}  {}", right(&unit.show(event.time_nanos), 9), fit(&event.name, WIDTH - 13))),
        );
    }
    if !view.links.is_empty() {
        out.push(String::new());
        out.push(style.strong("LINKS"));
        for link in &view.links {
            let target = link.handle.clone().unwrap_or_else(|| format!("{} {} (not in this recording)", link.trace_id, link.span_id));
            out.push(format!("  waited for, or linked to, {target}"));
        }
    }
    out.into_iter().collect()
}
