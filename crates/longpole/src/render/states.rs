//! The states of spans, and what each means.

use longpole_model::units::{TimeUnit, percent};
use longpole_server::view;

use crate::terminal::{Style, right};

/// What a thread waits for, by the kind of wait.
fn blocked_on(kind: &str) -> &'static str {
    match kind {
        "lock" => "on a lock or a signal of another thread",
        "join" => "until another thread ends",
        "disk" => "on a file",
        "network" => "on a socket",
        "sleep" => "until a set time",
        "page fault" => "until memory is loaded",
        "child" => "for a child process",
        "pipe" => "on a pipe",
        _ => "on something else",
    }
}

/// Where the states come from.
pub(crate) fn how_known(states: &view::StatesView) -> &'static str {
    match (states.evidence, states.exact) {
        ("journal", true) => "exact, from span journals and context switches",
        ("inferred", true) => "exact from context switches, assuming the process does nothing else (worker threads only)",
        ("samples", _) => "≈ estimated from samples and sampled waits",
        _ => "incomplete: some journal or context-switch records were lost",
    }
}

/// Each state: name, time, meaning.
pub(crate) fn state_rows(states: &view::StatesView) -> Vec<(String, i64, &'static str)> {
    let missing = if states.evidence == "samples" { "short waits, runnable, or not seen" } else { "no records of what it did" };
    let mut rows = vec![
        ("on-CPU".to_owned(), states.on_cpu_nanos, "running code of its own"),
        ("runnable".to_owned(), states.runnable_nanos, "ready, but the CPUs were busy"),
        ("in child".to_owned(), states.in_child_nanos, "covered by child spans"),
    ];
    rows.extend(states.blocked_nanos.parts().into_iter().map(|(kind, nanos)| (format!("blocked: {kind}"), nanos, blocked_on(kind))));
    rows.extend([
        ("blocked: not seen".to_owned(), states.blocked_unseen_nanos, "in waits too short to inspect"),
        ("awaiting".to_owned(), states.awaiting_nanos, "open, but no thread works on it"),
        ("remote".to_owned(), states.remote_nanos, "waits for the network or another host"),
        ("unaccounted".to_owned(), states.unaccounted_nanos, missing),
    ]);
    rows
}

/// The states that occurred: of the span itself, and with descendants if it has some.
pub(crate) fn state_lines(view: &view::SpanView, sees_cpus: bool, style: Style) -> Vec<String> {
    let (own, all) = (&view.states, &view.states_with_descendants);
    let whole = view.duration_nanos;
    let unit = TimeUnit::of(whole.max(all.cpu_nanos));
    let missing = match own.evidence {
        _ if !sees_cpus => "on-CPU, runnable or short waits: not recorded",
        "samples" => "short waits, runnable, or not seen",
        _ => "no records of what it did",
    };
    let mut rows = vec![
        ("on-CPU".to_owned(), own.on_cpu_nanos, all.on_cpu_nanos, "running code of its own"),
        ("runnable".to_owned(), own.runnable_nanos, all.runnable_nanos, "ready, but the CPUs were busy"),
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
        ("blocked: not seen".to_owned(), own.blocked_unseen_nanos, all.blocked_unseen_nanos, "in waits too short to inspect"),
        ("awaiting".to_owned(), own.awaiting_nanos, all.awaiting_nanos, "open, but no thread works on it"),
        ("remote".to_owned(), own.remote_nanos, all.remote_nanos, "waits for the network or another host"),
        ("unaccounted".to_owned(), own.unaccounted_nanos, all.unaccounted_nanos, missing),
    ]);
    let cell = |nanos: i64| format!("{}  {}", right(&unit.show(nanos), 9), right(&percent(nanos, whole), 5));
    let columns = |own: String, all: String| if view.children > 0 { format!("{own}  {all}") } else { own };
    let mut out = vec![format!("{}  {}", style.strong("STATES"), style.faint(how_known(own)))];
    if view.children > 0 {
        out.push(style.faint(&format!("  {:20} {}  {}", "", right("own", 16), right("with descendants", 16))));
    }
    for (i, (name, own, all, meaning)) in rows.into_iter().enumerate() {
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
            style.faint("all threads together")
        ));
    }
    if view.children > 0 {
        let known = if all.exact == own.exact { String::new() } else { format!("; {}", how_known(all)) };
        let meaning = "each moment counts once: on-CPU if any of them is, else runnable, else blocked";
        out.push(style.faint(&format!("  with descendants: {meaning}{known}")));
    }
    out
}
