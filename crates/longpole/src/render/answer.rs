//! The answer in the terminal: at most 40 lines of 100 columns, the same on every machine, naming only commands that exist.

use std::fmt::Write as _;

use longpole_model::units::{count, counted, duration, percent};
use longpole_recording::view;

use super::command::{exit_words, fit_command};
use super::functions::function_rows;
use super::next_steps::{knows_only_the_command, next_lines};
use super::poles::{legend, none, path_rest, pole_table, poles_shown};
use super::quality::quality_lines;
use super::threads::{ThreadList, thread_rows};
use super::waits::waits_section;
use super::{LABEL_WIDTH, line};
use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{self, Style, cut, fit, fold, pad, right};

/// The whole answer.
pub(crate) fn answer(view: &view::SummaryView, style: Style) -> Screen {
    if let Some(attached) = &view.attached {
        return answer_of_attached(view, attached, style);
    }
    let mut out = Screen::default();
    headline(&mut out, view, style);
    // A profile of sums has no critical path.
    if !is_profile(view) && (!view.poles.is_empty() || view.spans > 0 || view.samples > 0) {
        line(&mut out, &path_line(view, style));
        parallel_lines(view, style).iter().for_each(|text| line(&mut out, text));
        if let Some(deployment) = &view.deployment {
            line(&mut out, &deployment_line(deployment, view.wall_nanos, style));
        }
    }
    if let Some(text) = failed_line(&view.failed, style) {
        line(&mut out, &text);
    }
    for text in usage_lines(&view.usage, style) {
        line(&mut out, &text);
    }
    if !view.functions.is_empty() {
        function_table(&mut out, view, style);
    } else if knows_only_the_command(view) {
        line(&mut out, "");
        line(&mut out, "Nothing to rank: no spans arrived, and there is no profile.");
    } else if view.poles.is_empty() {
        line(&mut out, "");
        line(&mut out, none(view.of));
    } else {
        line(&mut out, "");
        let shown = poles_shown(view);
        pole_table(&mut out, &view.poles, shown, style);
        let more = view::PolesTruncated {
            poles: view.poles.len() - shown + view.truncated.poles,
            on_path_nanos: view.truncated.on_path_nanos + view.poles[shown..].iter().map(|pole| pole.on_path_nanos).sum::<i64>(),
        };
        let all = format!("{} poles {} --limit 0", own_name(), quoted(&view.recording));
        path_rest(&mut out, more, &all, (view.between_nanos, view.idle_nanos, view.wall_nanos), style);
        legend(&mut out, &view.poles[..shown], style);
        // Without spans the processes are the operations, and only functions show what happens inside.
        if view.spans == 0
            && let Some(pole) = view.poles.iter().find(|pole| !pole.few_samples && pole.reason.code != view::ReasonCodeView::Waits)
        {
            hot_functions(pole, style).iter().for_each(|text| line(&mut out, text));
        }
    }
    line(&mut out, "");
    for text in quality_lines(view, style) {
        line(&mut out, &text);
    }
    out.extend(next_lines(view, style));
    out
}

/// Waits and threads in the answer of `attach`.
const ATTACHED_SHOWN: usize = 5;

/// The answer of `attach`: what the processes did meanwhile. They did not end, so nothing would have ended earlier, except their
/// requests if they send spans.
fn answer_of_attached(view: &view::SummaryView, attached: &view::AttachedView, style: Style) -> Screen {
    let mut out = Screen::default();
    let pid = attached.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    let facts = [
        format!("recorded for {}", duration(view.wall_nanos)),
        counted(view.processes, "process", "processes"),
        counted(attached.threads_seen, "thread", "threads"),
        counted(view.spans, "span", "spans"),
        counted(view.samples, "sample", "samples"),
    ];
    head(&mut out, view, &format!("process{pid} "), &facts, style);
    line(&mut out, &time_line(attached, style));
    for text in usage_lines(&view.usage, style) {
        line(&mut out, &text);
    }
    if !view.functions.is_empty() {
        function_table(&mut out, view, style);
    }
    if !attached.waits.is_empty() {
        line(&mut out, "");
        let shown = &attached.waits[..attached.waits.len().min(ATTACHED_SHOWN)];
        let mut section = waits_section(shown, "", style);
        // The next section begins with an empty line of its own.
        section.pop();
        section.iter().for_each(|text| line(&mut out, text));
    }
    if !attached.threads.is_empty() {
        line(&mut out, "");
        let list = ThreadList { limit: ATTACHED_SHOWN, names_poles: view.spans > 0, is_of_range: false, names_functions: false };
        thread_rows(&attached.threads, list, style).iter().for_each(|text| line(&mut out, text));
        let more = attached.threads_seen.saturating_sub(ATTACHED_SHOWN as u64);
        if more > 0 {
            line(&mut out, &style.faint(&format!("… {} more ({} threads {})", count(more), own_name(), quoted(&view.recording))));
        }
    }
    if view.spans > 0 && !view.poles.is_empty() {
        line(&mut out, "");
        let shown = poles_shown(view);
        pole_table(&mut out, &view.poles, shown, style);
        legend(&mut out, &view.poles[..shown], style);
    }
    line(&mut out, "");
    for text in quality_lines(view, style) {
        line(&mut out, &text);
    }
    out.extend(next_lines(view, style));
    out
}

/// What the threads of an attached process did, with as many kinds of waits as fit on the line.
fn time_line(attached: &view::AttachedView, style: Style) -> String {
    let kinds = (0..=KINDS_SHOWN).rev();
    let fits = |kinds: &usize| terminal::width(&time_text(attached, *kinds, Style::plain())) <= style.width();
    time_text(attached, kinds.into_iter().find(fits).unwrap_or(0), style)
}

fn time_text(attached: &view::AttachedView, kinds: usize, style: Style) -> String {
    let blocked = attached.blocked_nanos.sum().saturating_add(attached.blocked_unseen_nanos);
    let all = attached.on_cpu_nanos.saturating_add(attached.ready_nanos).saturating_add(blocked);
    let (label, on_cpu) = (style.faint("time"), percent(attached.on_cpu_nanos, all));
    let mut text = format!("{label}      {} of all threads together: on-CPU {on_cpu}", duration(all));
    path_part(&mut text, "runnable", attached.ready_nanos, all);
    let mut shown = blocked_kinds(&attached.blocked_nanos, attached.blocked_unseen_nanos, all);
    shown.truncate(kinds);
    path_part(&mut text, "blocked", blocked, all);
    if !shown.is_empty() {
        let _ = write!(text, " ({})", shown.join(", "));
    }
    text
}

/// Whether it is an imported profile of sums, without times.
fn is_profile(view: &view::SummaryView) -> bool {
    view.of == view::SummarisedView::Profile
}

fn headline(out: &mut Screen, view: &view::SummaryView, style: Style) {
    let mut facts = Vec::new();
    // A file or a trace of a server names no command that could have ended.
    if !is_profile(view) && (view.exit.is_some() || view.processes > 0) {
        facts.push(exit_words(view.exit.as_ref()));
    }
    if !is_profile(view) || view.wall_nanos > 0 {
        facts.push(format!("{} wall", duration(view.wall_nanos)));
    }
    if let Some(cpu) = view.cpu_nanos {
        facts.push(format!("{} CPU", duration(cpu as i64)));
    }
    if is_profile(view) {
        facts.push(format!("{} in samples", duration(view.weight_nanos)));
    } else {
        // Without a profile, longpole records no processes.
        if view.processes > 0 {
            facts.push(processes_words(view));
        }
        facts.push(counted(view.spans, "span", "spans"));
    }
    if view.rate_hz > 0 || view.samples > 0 {
        facts.push(counted(view.samples, "sample", "samples"));
    }
    head(out, view, "", &facts, style);
}

/// How many spans failed, and where it began: `3 spans failed, first POST /charge · payment (s3): timeout`.
fn failed_line(failed: &view::FailedSpansView, style: Style) -> Option<String> {
    let first = failed.first.as_ref()?;
    let service = if first.service.is_empty() { String::new() } else { format!(" · {}", first.service) };
    let message = if first.message.is_empty() { String::new() } else { format!(": {}", first.message) };
    let what = if failed.count == 1 { "1 span failed:".to_owned() } else { format!("{} spans failed, first", count(failed.count as u64)) };
    let text = fit(&format!("{what} {}{service} ({}){message}", first.name, first.handle), style.width().saturating_sub(LABEL_WIDTH));
    Some(format!("{}{text}", style.faint(&pad("errors", LABEL_WIDTH))))
}

/// `23 processes and 21 forks`: a fork that ran no program of its own is no row of the tree.
fn processes_words(view: &view::SummaryView) -> String {
    let folded: u64 = view.quality.iter().filter(|note| note.code == FORKS_FOLDED).map(|note| note.count).sum();
    let words = counted(view.processes.saturating_sub(folded), "process", "processes");
    if folded == 0 { words } else { format!("{words} and {}", counted(folded, "fork", "forks")) }
}

/// The note on forks that count as their parent.
const FORKS_FOLDED: &str = "forks_folded";

/// Least columns of the command in the first line.
const COMMAND_WIDTH_MIN: usize = 24;

/// The recording, the command, and the facts; on a second line those that have no room on the first.
fn head(out: &mut Screen, view: &view::SummaryView, what: &str, facts: &[String], style: Style) {
    let width_of = |facts: &[String]| facts.iter().map(|fact| "  ".len() + terminal::width(fact)).sum::<usize>();
    let room = style.width().saturating_sub("longpole    ".len() + view.recording.len() + what.len());
    let least = COMMAND_WIDTH_MIN.min(terminal::width(&fit_command(&view.command, room)));
    let fits = |count: &usize| width_of(&facts[..*count]) + least <= room;
    let (first, second) = facts.split_at((0..=facts.len()).rev().find(fits).unwrap_or_default());
    let command = fit_command(&view.command, room.saturating_sub(width_of(first)).max(COMMAND_WIDTH_MIN));
    let (longpole, recording) = (style.strong("longpole"), style.handle(&view.recording));
    let first: String = first.iter().flat_map(|fact| ["  ", fact]).collect();
    line(out, &format!("{longpole}  {recording}  {what}{command}{first}"));
    if !second.is_empty() {
        line(out, &format!("{}{}", " ".repeat(LABEL_WIDTH), second.join("  ")));
    }
}

/// Kinds of waits on the path line.
const KINDS_SHOWN: usize = 3;

/// The states of the critical path, with as many kinds of waits as fit on the line.
fn path_line(view: &view::SummaryView, style: Style) -> String {
    let fits = |kinds: &usize| terminal::width(&path_text(view, *kinds, Style::plain())) <= style.width();
    path_text(view, (1..=KINDS_SHOWN).rev().find(fits).unwrap_or(0), style)
}

fn path_text(view: &view::SummaryView, kinds: usize, style: Style) -> String {
    let wall = view.wall_nanos;
    let states = &view.states;
    let mut text = format!("{}      ", style.faint("path"));
    let sees_cpus = view.rate_hz > 0 || view.samples > 0 || states.exact;
    let all_blocked = states.blocked_nanos.sum().saturating_add(states.blocked_unseen_nanos);
    if !sees_cpus && all_blocked == 0 {
        let _ = write!(text, "no samples, so on-CPU time is unknown");
    } else if view.mode == view::CaptureModeView::Imported {
        let _ = write!(text, "the samples have no timestamps, so on-CPU time on the path is unknown");
    } else {
        let _ = write!(text, "{}: {}", duration(wall), if states.exact { "" } else { "≈ " });
        if sees_cpus {
            let _ = write!(text, "on-CPU {}", percent(states.on_cpu_nanos, wall));
        } else {
            let _ = write!(text, "on-CPU unknown");
        }
        path_part(&mut text, "runnable", states.runnable_nanos, wall);
        path_part(&mut text, "in a child", states.in_child_nanos, wall);
        let blocked = blocked_kinds(&states.blocked_nanos, states.blocked_unseen_nanos, wall);
        if !blocked.is_empty() {
            let _ = write!(text, "  blocked {}", percent(all_blocked, wall));
        }
        if !blocked.is_empty() && kinds > 0 {
            let _ = write!(text, " ({})", blocked[..kinds.min(blocked.len())].join(", "));
        }
        path_part(&mut text, "awaiting", states.awaiting_nanos, wall);
        path_part(&mut text, "remote", states.remote_nanos, wall);
        let _ = write!(text, "  unaccounted {}", percent(states.unaccounted_nanos, wall));
    }
    text
}

/// `sleep 34%`, `not sampled 2%`: the kinds of waits that are at least 1% of this time, longest first.
fn blocked_kinds(blocked: &view::BlockedView, unseen: i64, all: i64) -> Vec<String> {
    let parts = blocked.parts().into_iter().map(|(kind, nanos)| (kind.words(), nanos));
    let mut parts: Vec<(&str, i64)> = parts.chain([("not sampled", unseen)]).collect();
    parts.retain(|(_, nanos)| *nanos > 0 && nanos.saturating_mul(100) >= all);
    parts.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    parts.into_iter().map(|(kind, nanos)| format!("{kind} {}", percent(nanos, all))).collect()
}

/// Adds a state of the path if it is at least 1% of it.
fn path_part(text: &mut String, name: &str, nanos: i64, wall: i64) {
    if nanos > 0 && nanos.saturating_mul(100) >= wall {
        let _ = write!(text, "  {name} {}", percent(nanos, wall));
    }
}

/// How many operations were open at once, how many CPUs they used, and how many could have been open. Open ones may all wait. One with an open
/// child does not count: it mostly waits for that.
fn parallel_lines(view: &view::SummaryView, style: Style) -> Vec<String> {
    let parallel = &view.parallelism;
    // Processes one after the other do not show how parallel the threads in them are.
    let says_something = parallel.peak > 1 || (parallel.peak > 0 && view.spans > 0);
    if !says_something {
        return Vec::new();
    }
    let operations = if view.spans == 0 { "processes" } else { "operations" };
    let mean = format!("{:.1}", parallel.mean);
    let mut text = format!("{mean} {operations} at once on average");
    // Processes without spans do not show what they depend on.
    if parallel.span_nanos > 0 && view.spans > 0 {
        let most = parallel.work_nanos as f64 / parallel.span_nanos as f64;
        let words = format!("{most:.1}");
        // Operations that only wait for others count as work of one of them.
        if most >= parallel.mean && words != mean {
            let _ = write!(text, " ({words} if each started as soon as its dependencies allow)");
        }
    }
    let _ = write!(text, ", {} at peak", parallel.peak);
    if let Some(cpu) = view.cpu_nanos.filter(|_| view.wall_nanos > 0) {
        let _ = write!(text, "; {:.1} CPUs used", cpu as f64 / view.wall_nanos as f64);
    }
    let parts = fold(&text, style.width().saturating_sub(LABEL_WIDTH));
    let label = |index: usize| if index == 0 { style.faint("parallel") + "  " } else { " ".repeat(LABEL_WIDTH) };
    parts.iter().enumerate().map(|(index, part)| label(index) + part).collect()
}

/// The parts of a deployment: the cloud, or Pulumi itself.
fn deployment_line(time: &view::DeploymentView, wall: i64, style: Style) -> String {
    let parts = [
        ("cloud", time.cloud_wait_nanos),
        ("providers", time.provider_nanos),
        ("Pulumi's engine", time.engine_nanos),
        ("language host", time.language_host_nanos),
        ("plug-in start", time.plugin_start_nanos),
        ("state", time.state_backend_nanos),
        ("compiling", time.compile_nanos),
        ("nothing running", time.idle_nanos),
    ];
    let words: Vec<String> =
        parts.iter().filter(|(_, nanos)| *nanos > 0).map(|(name, nanos)| format!("{name} {}", percent(*nanos, wall))).collect();
    format!("{}    {}", style.faint("pulumi"), words.join("  "))
}

/// Notable memory and storage use of processes, a line each.
fn usage_lines(notable: &[view::NotableView], style: Style) -> Vec<String> {
    use view::NotableCodeView as Code;
    let words = |label: &str, codes: &[Code]| {
        let told = notable.iter().filter(|it| codes.contains(&it.code));
        let told = told.map(|it| it.handle.as_ref().map_or_else(|| it.text.clone(), |handle| format!("{} ({handle})", it.text)));
        let text = told.collect::<Vec<_>>().join("; ");
        (!text.is_empty()).then(|| format!("{}{}", style.faint(&pad(label, LABEL_WIDTH)), cut(&text, style.width() - LABEL_WIDTH)))
    };
    [words("memory", &[Code::Grows, Code::Peak, Code::PeakOfSome]), words("storage", &[Code::Storage, Code::Faults])]
        .into_iter()
        .flatten()
        .collect()
}

/// Functions of a process in the answer.
const FUNCTIONS_SHOWN: usize = 3;

/// The functions with the most on-CPU time of a pole, under a label that names the pole: `self time in p1  f10 __strcmp_evex  224.2ms  49% of p1's
/// on-CPU time on the path`.
fn hot_functions(pole: &view::PoleView, style: Style) -> Vec<String> {
    let mut frames: Vec<&view::TopFrameView> = pole.top_frames.iter().filter(|frame| frame.self_nanos > 0).collect();
    frames.sort_by_key(|frame| std::cmp::Reverse(frame.self_nanos));
    frames.truncate(FUNCTIONS_SHOWN);
    let label = format!("self time in {}  ", pole.handle);
    let label_width = terminal::width(&label);
    let cells: Vec<[String; 3]> = frames
        .iter()
        .map(|frame| {
            let name = format!("{} {}", frame.handle, terminal::function_words(&frame.function, frame.runtime));
            [name, duration(frame.self_nanos), percent(frame.self_nanos, pole.weight_nanos)]
        })
        .collect();
    let widest = |column: usize| cells.iter().map(|row: &[String; 3]| terminal::width(&row[column])).max().unwrap_or_default();
    // The head of the shares, behind that of the first row.
    let of = format!(" of {}'s on-CPU time on the path", pole.handle);
    let fixed = label_width + 2 + widest(1) + 2 + widest(2) + of.len();
    let name_width = widest(0).min(style.width().saturating_sub(fixed));
    let lines = cells.iter().enumerate().map(|(index, [name, time, share])| {
        let is_first = index == 0;
        let label = if is_first { style.faint(&label) } else { " ".repeat(label_width) };
        let of = if is_first { of.as_str() } else { "" };
        format!("{label}{}  {}  {}{of}", pad(&fit(name, name_width), name_width), right(time, widest(1)), right(share, widest(2)))
    });
    lines.collect()
}

/// The functions with the most self time, below an empty line.
fn function_table(out: &mut Screen, view: &view::SummaryView, style: Style) {
    line(out, "");
    line(out, &style.strong("HOT FUNCTIONS"));
    function_rows(&view.functions, view.weight_nanos, false, style).iter().for_each(|row| line(out, row));
}
