//! The states of spans, and what each means.

use longpole_model::units::{TimeUnit, percent};
use longpole_recording::view;

use crate::terminal::{Style, fold, right};

/// What a thread waits for, by the kind of wait.
fn blocked_on(kind: view::WaitKindView) -> &'static str {
    match kind {
        view::WaitKindView::Lock => "on a lock",
        view::WaitKindView::Queue => "until another thread wakes it",
        view::WaitKindView::Join => "until another thread exits",
        view::WaitKindView::Disk => "on the disk",
        view::WaitKindView::Network => "on the network",
        view::WaitKindView::Sleep => "in a sleep",
        view::WaitKindView::PageFault => "on a page fault",
        view::WaitKindView::Child => "on a child process",
        view::WaitKindView::Pipe => "on a pipe",
        view::WaitKindView::Idle => "until work arrives",
        view::WaitKindView::Other => "on something else",
    }
}

/// The name of time that the recording does not show.
pub(crate) const UNACCOUNTED: &str = "unaccounted";

/// What that is where nothing shows what threads did.
pub(crate) const UNSEEN: &str = "not recorded: own work, waits for others";

/// The name of blocked time of an unknown kind.
const NOT_SAMPLED: &str = "blocked: not sampled";

/// Where the states come from; `is_process` if they are those of a process without spans, `sees_cpus` where the recording knows when threads were on a CPU.
pub(crate) fn how_known(states: &view::StatesView, is_process: bool, sees_cpus: bool) -> &'static str {
    if !sees_cpus {
        return "from spans alone: there are no samples and no context switches";
    }
    match (states.evidence, states.exact) {
        (view::StateEvidenceView::Journal, true) => "exact, from span journals and context switches",
        (view::StateEvidenceView::Inferred, true) if is_process => "exact, from context switches",
        (view::StateEvidenceView::Inferred, true) => "from context switches; exact if its process worked only for this span",
        (view::StateEvidenceView::Samples, _) => "≈ estimated from samples of running code and of waits",
        _ => "incomplete: some journal or context-switch records were lost",
    }
}

/// Why the time of a span is unaccounted.
fn unaccounted(states: &view::StatesView) -> &'static str {
    match (states.evidence, states.runnable_nanos) {
        (view::StateEvidenceView::Samples, 0) => "between samples: short waits, or waiting for a CPU",
        (view::StateEvidenceView::Samples, _) => "between samples: short waits",
        _ => "not recorded",
    }
}

/// Each state: name, time, meaning. Only processes, not spans, are stages of pipelines.
pub(crate) fn state_rows(states: &view::StatesView, is_process: bool) -> Vec<(String, i64, &'static str)> {
    let in_child = if is_process { "a child, or a later stage of its pipeline, ran" } else { "a child span or process was running" };
    let mut rows = vec![
        ("on-CPU".to_owned(), states.on_cpu_nanos, "running on a CPU"),
        ("runnable".to_owned(), states.runnable_nanos, "ready to run while others had the CPUs"),
        ("in a child".to_owned(), states.in_child_nanos, in_child),
    ];
    rows.extend(
        states.blocked_nanos.parts().into_iter().map(|(kind, nanos)| (format!("blocked: {}", kind.words()), nanos, blocked_on(kind))),
    );
    rows.extend([
        (NOT_SAMPLED.to_owned(), states.blocked_unseen_nanos, "it waited, mostly for less than 5ms; cause unknown"),
        ("awaiting".to_owned(), states.awaiting_nanos, "open, but no thread worked for it"),
        ("remote".to_owned(), states.remote_nanos, "a call; no thread here worked or waited"),
        (UNACCOUNTED.to_owned(), states.unaccounted_nanos, unaccounted(states)),
    ]);
    rows
}

/// Each state: name, time of the span itself, time with descendants, meaning.
fn rows_of_both(own: &view::StatesView, all: &view::StatesView, is_process: bool) -> Vec<(String, i64, i64, &'static str)> {
    let (own, all) = (state_rows(own, is_process), state_rows(all, is_process));
    let time = |rows: &[(String, i64, &str)], name: &str| rows.iter().find(|row| row.0 == name).map_or(0, |row| row.1);
    let only_below = all.iter().filter(|row| own.iter().all(|own| own.0 != row.0));
    let not_sampled = own.iter().position(|row| row.0 == NOT_SAMPLED).unwrap_or(own.len());
    let rows = own[..not_sampled].iter().chain(only_below).chain(&own[not_sampled..]);
    rows.map(|(name, _, meaning)| (name.clone(), time(&own, name), time(&all, name), *meaning)).collect()
}

/// The states that occurred: of the span itself, and with descendants if it has some.
pub(crate) fn state_lines(view: &view::SpanView, sees_cpus: bool, style: Style) -> Vec<String> {
    let (own, all) = (&view.states, &view.states_with_descendants);
    let whole = view.duration_nanos;
    let unit = TimeUnit::of(whole.max(all.cpu_nanos));
    let cell = |nanos: i64| format!("{}  {}", right(&unit.show(nanos), 9), right(&percent(nanos, whole), 5));
    let columns = |own: String, all: String| if view.children > 0 { format!("{own}  {all}") } else { own };
    let mut out = vec![format!("{}  {}", style.strong("STATES"), style.faint(how_known(own, view.is_process, sees_cpus)))];
    if view.children > 0 {
        out.push(style.faint(&format!("  {:20} {}  {}", "", right("own", 16), right("with descendants", 16))));
    }
    for (i, (name, own, all, meaning)) in rows_of_both(own, all, view.is_process).into_iter().enumerate() {
        let meaning = if name == UNACCOUNTED && !sees_cpus { UNSEEN } else { meaning };
        // States that did not occur are left out, except on-CPU, which readers look for.
        if i == 0 && !sees_cpus {
            out.push(format!("  {name:20} {}  {}", right("unknown", 9), style.faint("no samples and no context switches")));
        } else if i == 0 || own > 0 || all > 0 && view.children > 0 {
            out.push(format!("  {name:20} {}  {}", columns(cell(own), cell(all)), style.faint(meaning)));
        }
    }
    // With one thread at a time it equals on-CPU.
    let differs =
        |states: &view::StatesView| states.cpu_nanos.saturating_sub(states.on_cpu_nanos).saturating_mul(100) > states.on_cpu_nanos;
    if differs(own) || differs(all) {
        let cell = |nanos: i64| format!("{:16}", right(&unit.show(nanos), 9));
        out.push(format!(
            "  {:20} {}  {}",
            "CPU time",
            columns(cell(own.cpu_nanos), cell(all.cpu_nanos)),
            style.faint(if own.evidence == view::StateEvidenceView::Samples {
                "all threads together, from samples"
            } else {
                "all threads together, from context switches"
            })
        ));
    }
    if view.states_follow_threads {
        out.push(style.faint("  several threads: at each moment, the state of the thread that the process was waiting for"));
    }
    if view.children > 0 {
        let known = if all.exact == own.exact { String::new() } else { format!("; {}", how_known(all, view.is_process, sees_cpus)) };
        let meaning = "at each moment, on-CPU if the span or any descendant was, else runnable, else blocked";
        let lines = fold(&format!("with descendants: {meaning}{known}"), style.width() - 2);
        out.extend(lines.iter().map(|text| style.faint(&format!("  {text}"))));
    }
    out
}
