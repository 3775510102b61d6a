//! The answer in the terminal: at most 40 lines of 100 columns, the same on every machine, naming only commands that exist.

use std::fmt::Write as _;

use longpole_server::view;

use super::code::function_rows;
use super::recording::own_name;
use crate::screen::Screen;
use crate::terminal::{self, Style, TimeUnit, count, counted, cut, duration, end_of, fit, fold, pad, percent, range, right};

/// Poles in the answer; `longpole poles` has the rest.
const POLES_SHOWN: usize = 6;

/// A pole matters that is on the path for this part of the run, or would save as much.
const POLE_PART: i64 = 200;

/// Lines of the data-quality part; the page and `--format json` have the rest.
const QUALITY_SHOWN: usize = 6;

/// The whole answer.
pub(crate) fn summary(view: &view::SummaryView, style: Style) -> Screen {
    if let Some(attached) = &view.attached {
        return answer_of_attached(view, attached, style);
    }
    let mut out = Screen::default();
    line(&mut out, &headline(view, style));
    // A profile that is sums has no path through time.
    if !is_profile(view) && (!view.poles.is_empty() || view.spans > 0 || view.samples > 0) {
        line(&mut out, &path_line(view, style));
        if let Some(parallel) = parallel_line(view, style) {
            line(&mut out, &parallel);
        }
        if let Some(deployment) = &view.deployment {
            line(&mut out, &deployment_line(deployment, view.wall_nanos, style));
        }
    }
    for text in usage_lines(&view.usage, style) {
        line(&mut out, &text);
    }
    if !view.functions.is_empty() {
        function_table(&mut out, view, style);
    } else if view.poles.is_empty() {
        line(&mut out, "");
        line(&mut out, "No long poles: no span and no process of this run has time of its own on the critical path.");
    } else {
        line(&mut out, "");
        let shown = poles_shown(view);
        pole_table(&mut out, &view.poles, shown, style);
        let more = view.poles.len() - shown + view.truncated.poles;
        if more > 0 {
            line(&mut out, &style.faint(&format!("     … {more} more ({} poles {} --limit 0)", own_name(), view.recording)));
        }
        // Without spans the processes are the operations, and what is inside of one only its functions tell.
        if view.spans == 0
            && let Some(pole) = view.poles.iter().find(|pole| !pole.few_samples && pole.reason.code != "waits")
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

/// Waits and threads in the answer of what was looked at for a while.
const ATTACHED_SHOWN: usize = 5;

/// The answer of what ran before and after: what it did meanwhile. It did not end, so there is nothing that would have ended earlier,
/// but for its requests, if it sends spans.
fn answer_of_attached(view: &view::SummaryView, attached: &view::AttachedView, style: Style) -> Screen {
    let mut out = Screen::default();
    let pid = attached.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    let facts = [
        format!("looked at for {}", duration(view.wall_nanos)),
        counted(view.processes, "process", "processes"),
        counted(attached.threads_seen, "thread", "threads"),
        counted(view.spans, "span", "spans"),
        counted(view.samples, "sample", "samples"),
    ];
    let facts = facts.join("  ");
    let used = "longpole    process  ".len() + view.recording.len() + pid.len() + 2 + terminal::width(&facts);
    let command = fit_command(&view.command, terminal::WIDTH.saturating_sub(used).max(12));
    let (longpole, recording) = (style.strong("longpole"), style.handle(&view.recording));
    line(&mut out, &format!("{longpole}  {recording}  process{pid} {command}  {facts}"));
    let blocked = attached.blocked_nanos.sum().saturating_add(attached.blocked_unseen_nanos);
    let all = attached.on_cpu_nanos.saturating_add(attached.ready_nanos).saturating_add(blocked);
    let mut text = format!("{}      on-CPU {}", style.faint("time"), percent(attached.on_cpu_nanos, all));
    path_part(&mut text, "runnable", attached.ready_nanos, all);
    let kinds = attached.blocked_nanos.parts().into_iter().chain([("not seen", attached.blocked_unseen_nanos)]);
    let kinds: Vec<String> = kinds
        .filter(|(_, nanos)| *nanos > 0 && nanos.saturating_mul(100) >= all)
        .map(|(kind, nanos)| format!("{kind} {}", percent(nanos, all)))
        .collect();
    if !kinds.is_empty() {
        let _ = write!(text, "  blocked {} ({})", percent(blocked, all), kinds.join(", "));
    }
    line(&mut out, &format!("{text} {}", style.faint("of the time of its threads, added up")));
    for text in usage_lines(&view.usage, style) {
        line(&mut out, &text);
    }
    if !view.functions.is_empty() {
        function_table(&mut out, view, style);
    }
    if !attached.waits.is_empty() {
        line(&mut out, "");
        let shown = &attached.waits[..attached.waits.len().min(ATTACHED_SHOWN)];
        let mut section = super::span::waits_section(shown, style);
        // The empty line behind it comes with what follows.
        section.pop();
        section.iter().for_each(|text| line(&mut out, text));
    }
    if !attached.threads.is_empty() {
        line(&mut out, "");
        super::code::thread_rows(&attached.threads, ATTACHED_SHOWN, view.spans > 0, style).iter().for_each(|text| line(&mut out, text));
        let more = attached.threads_seen.saturating_sub(ATTACHED_SHOWN as u64);
        if more > 0 {
            line(&mut out, &style.faint(&format!("… {} more ({} threads {})", count(more), own_name(), view.recording)));
        }
    }
    if view.spans > 0 && !view.poles.is_empty() {
        line(&mut out, "");
        pole_table(&mut out, &view.poles, poles_shown(view), style);
    }
    line(&mut out, "");
    for text in quality_lines(view, style) {
        line(&mut out, &text);
    }
    out.extend(next_lines(view, style));
    out
}

fn line(out: &mut Screen, text: &str) {
    out.line(text.trim_end());
}

/// Whether it came from a file of sums: nobody saw when anything was.
fn is_profile(view: &view::SummaryView) -> bool {
    view.mode == "imported" && view.spans == 0
}

fn headline(view: &view::SummaryView, style: Style) -> String {
    let mut facts = Vec::new();
    if !is_profile(view) {
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
        facts.push(counted(view.processes, "process", "processes"));
        facts.push(counted(view.spans, "span", "spans"));
    }
    if view.rate_hz > 0 || view.samples > 0 {
        facts.push(counted(view.samples, "sample", "samples"));
    }
    let facts = facts.join("  ");
    let room = terminal::WIDTH.saturating_sub("longpole  ".len() + view.recording.len() + 4 + terminal::width(&facts)).max(12);
    format!("{}  {}  {}  {facts}", style.strong("longpole"), style.handle(&view.recording), fit_command(&view.command, room))
}

/// [`command_words`] of at most so many characters: of a program given as text the beginning says most, of others both ends.
pub(crate) fn fit_command(command: &[String], width: usize) -> String {
    let words = command_words(command);
    if command.iter().any(|word| word.contains('\n')) { cut(&words, width) } else { fit(&words, width) }
}

/// The command as it is known by: its program without the folder, and its arguments.
pub(crate) fn command_words(command: &[String]) -> String {
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let name = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or(program);
    // A program given as text has many lines; each argument is known by its first.
    let words = arguments.iter().map(|word| terminal::first_line(word));
    std::iter::once(name.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// `exit 0`, `killed by signal 9`, `still running`.
pub(crate) fn exit_words(exit: Option<&view::ExitView>) -> String {
    match exit {
        None => "no exit seen".to_owned(),
        Some(view::ExitView { signal: Some(signal), .. }) => format!("killed by signal {signal}"),
        Some(view::ExitView { code, .. }) => format!("exit {}", code.unwrap_or_default()),
    }
}

/// Characters of the name of what limits a saving.
const LIMIT_WIDTH: usize = 28;

/// Kinds of waits in the header.
const KINDS_SHOWN: usize = 3;

/// Where the time of the path went, with as many kinds of waits as the line has room for.
fn path_line(view: &view::SummaryView, style: Style) -> String {
    let fits = |kinds: &usize| path_text(view, *kinds, Style::plain()).chars().count() <= terminal::WIDTH;
    path_text(view, (1..=KINDS_SHOWN).rev().find(fits).unwrap_or(0), style)
}

fn path_text(view: &view::SummaryView, kinds: usize, style: Style) -> String {
    let wall = view.wall_nanos;
    let states = &view.states;
    let mut text = format!("{}      ", style.faint("path"));
    let sees_cpus = view.rate_hz > 0 || view.samples > 0 || states.exact;
    let all_blocked = states.blocked_nanos.sum().saturating_add(states.blocked_unseen_nanos);
    if !sees_cpus && all_blocked == 0 {
        let _ = write!(text, "no samples, so on-CPU time is not known");
    } else if view.mode == "imported" {
        let _ = write!(text, "no samples with a time, so on-CPU time along the path is not known");
    } else {
        if sees_cpus {
            let _ = write!(text, "on-CPU {}", percent(states.on_cpu_nanos, wall));
        } else {
            let _ = write!(text, "on-CPU not known");
        }
        path_part(&mut text, "runnable", states.runnable_nanos, wall);
        let blocked: Vec<String> = states
            .blocked_nanos
            .parts()
            .into_iter()
            .chain([("not seen", states.blocked_unseen_nanos)])
            .filter(|(_, nanos)| nanos.saturating_mul(100) >= wall && *nanos > 0)
            .map(|(kind, nanos)| format!("{kind} {}", percent(nanos, wall)))
            .collect();
        if !blocked.is_empty() {
            let _ = write!(text, "  blocked {}", percent(all_blocked, wall));
        }
        if !blocked.is_empty() && kinds > 0 {
            let _ = write!(text, " ({})", blocked[..kinds.min(blocked.len())].join(", "));
        }
        path_part(&mut text, "awaiting", states.awaiting_nanos, wall);
        path_part(&mut text, "remote", states.remote_nanos, wall);
        let of = if states.exact { "of wall" } else { "of wall, ≈" };
        let _ = write!(text, "  unaccounted {} {}", percent(states.unaccounted_nanos, wall), style.faint(of));
    }
    text
}

/// One state of the path, where it was a hundredth of it.
fn path_part(text: &mut String, name: &str, nanos: i64, wall: i64) {
    if nanos > 0 && nanos.saturating_mul(100) >= wall {
        let _ = write!(text, "  {name} {}", percent(nanos, wall));
    }
}

fn parallel_line(view: &view::SummaryView, style: Style) -> Option<String> {
    let parallel = &view.parallelism;
    // One process after the other says nothing of the threads in them.
    let says_something = parallel.peak > 1 || (parallel.peak > 0 && view.spans > 0);
    says_something.then(|| {
        let mut text =
            format!("{}  {:.1} operations in flight on average, {} at the peak", style.faint("parallel"), parallel.mean, parallel.peak);
        if parallel.span_nanos > 0 {
            let most = parallel.work_nanos as f64 / parallel.span_nanos as f64;
            let _ = write!(text, "; what waits for what would allow {most:.1}");
        }
        text
    })
}

/// Is it the cloud, or Pulumi itself?
fn deployment_line(time: &view::DeploymentView, wall: i64, style: Style) -> String {
    let parts = [
        ("cloud", time.cloud_wait_nanos),
        ("providers", time.provider_nanos),
        ("Pulumi's engine", time.engine_nanos),
        ("language host", time.language_host_nanos),
        ("plug-in start", time.plugin_start_nanos),
        ("state", time.state_backend_nanos),
        ("compiling", time.compile_nanos),
        ("idle", time.idle_nanos),
    ];
    let words: Vec<String> =
        parts.iter().filter(|(_, nanos)| *nanos > 0).map(|(name, nanos)| format!("{name} {}", percent(*nanos, wall))).collect();
    format!("{}    {}", style.faint("pulumi"), words.join("  "))
}

/// What processes used that is worth a line: one for memory, one for storage.
fn usage_lines(notable: &[view::NotableView], style: Style) -> Vec<String> {
    let words = |label: &str, codes: &[&str]| {
        let told = notable.iter().filter(|it| codes.contains(&it.code));
        let told = told.map(|it| it.handle.as_ref().map_or_else(|| it.text.clone(), |handle| format!("{} ({handle})", it.text)));
        let text = told.collect::<Vec<_>>().join("; ");
        (!text.is_empty()).then(|| format!("{}{}", style.faint(&pad(label, LABEL_WIDTH)), cut(&text, terminal::WIDTH - LABEL_WIDTH)))
    };
    [words("memory", &["grows", "peak", "peak_of_some"]), words("storage", &["storage", "faults"])].into_iter().flatten().collect()
}

/// Width of the words in front of a line.
const LABEL_WIDTH: usize = 10;

/// Characters of a pole's service.
const SERVICE_WIDTH: usize = 16;

/// Poles in the answer: those behind the last that matters are only counted.
fn poles_shown(view: &view::SummaryView) -> usize {
    let matters = |pole: &view::PoleView| pole.on_path_nanos.max(pole.saves_if_zero_nanos[1]) >= view.wall_nanos / POLE_PART;
    view.poles.iter().take(POLES_SHOWN).rposition(matters).map_or(1, |last| last + 1).min(view.poles.len())
}

/// Numbers of a pole: on the path, saved at nothing, at half, and with all poles above it.
const COLUMNS: usize = 4;

/// The poles as a table, `shown` of them: a line of numbers each, and below it why it takes its time.
pub(crate) fn pole_table(out: &mut Screen, poles: &[view::PoleView], shown: usize, style: Style) {
    let poles = &poles[..shown];
    let unit = |values: &mut dyn Iterator<Item = i64>| TimeUnit::of(values.max().unwrap_or_default());
    let with_those_before = |p: &view::PoleView| p.saves_with_those_before_nanos.unwrap_or(p.saves_if_zero_nanos);
    let unit = unit(&mut poles.iter().flat_map(|p| [p.on_path_nanos, with_those_before(p)[1]]));
    let cells: Vec<[String; COLUMNS]> = poles
        .iter()
        .map(|p| {
            let together = p.saves_with_those_before_nanos.map(|nanos| range(unit, nanos)).unwrap_or_default();
            [unit.show(p.on_path_nanos), range(unit, p.saves_if_zero_nanos), range(unit, p.saves_if_half_nanos), together]
        })
        .collect();
    let heads = ["on path", "saves(0)", "saves(½)", "+ all above"];
    let widths: Vec<usize> = (0..COLUMNS)
        .map(|i| cells.iter().map(|row| terminal::width(&row[i])).chain([terminal::width(heads[i])]).max().unwrap_or_default())
        .collect();
    let handle_width = poles.iter().map(|p| p.handle.len()).max().unwrap_or(2);
    let fixed = handle_width + 3 + widths.iter().map(|w| w + 3).sum::<usize>();
    // Of whom it is says something where there are several.
    let says_service = poles.iter().any(|p| p.service != poles[0].service);
    let name = |p: &view::PoleView| {
        let service = Some(p.service.as_str()).filter(|service| says_service && !service.is_empty());
        service.map_or_else(|| pole_name(p), |service| format!("{} · {}", pole_name(p), fit(service, SERVICE_WIDTH)))
    };
    let longest = poles.iter().map(|p| terminal::width(&name(p))).max().unwrap_or_default();
    let name_width = longest.min(terminal::WIDTH.saturating_sub(fixed)).max(NAME_WIDTH_MIN);
    let mut head = pad("LONG POLES", handle_width + 3 + name_width);
    heads.iter().zip(&widths).for_each(|(text, width)| head.extend(["   ", &right(text, *width)]));
    line(out, &style.strong(&head));
    let indent = handle_width + 3;
    for (pole, row) in poles.iter().zip(&cells) {
        let text = format!(
            "{} {} {}   {}   {}   {}   {}",
            style.handle(&pad(&pole.handle, handle_width)),
            evidence_mark(pole),
            pad(&name(pole), name_width),
            right(&row[0], widths[0]),
            style.strong(&right(&row[1], widths[1])),
            right(&row[2], widths[2]),
            right(&row[3], widths[3]),
        );
        line(out, &text);
        let about = if !pole.states.exact && STATES_REASONS.contains(&pole.reason.code) { "≈ " } else { "" };
        let why = match &pole.contains {
            Some(inner) => format!("contains {inner}; {about}{}", pole.reason.text),
            None => format!("{about}{}", pole.reason.text),
        };
        let limit = pole.limited_by.as_ref();
        let limit = limit.map(|limit| format!("then {} ({}) ends last", fit(&limit.name, LIMIT_WIDTH), limit.handle));
        let function = pole.reason.function.as_deref();
        let mostly_in = pole.reason.mostly_in.as_deref();
        let names = [mostly_in, function];
        let room = terminal::WIDTH - indent;
        let beside = limit.as_ref().map_or(0, |limit| "; ".len() + terminal::width(limit));
        let why = match pole.blocked_by.as_ref().map(|blocked| format!("{why}; {}", blocked.text)) {
            Some(with_whom) if terminal::width(&with_whom) <= room => with_whom,
            _ => why,
        };
        let mut below = |text: &str| line(out, &style.faint(&format!("{}{text}", " ".repeat(indent))));
        let is_said = pole.blocked_by.as_ref().is_none_or(|blocked| why.ends_with(&blocked.text));
        match limit {
            // On one line where both fit.
            Some(limit) if least_width(&why, &names) + beside <= room => {
                below(&fit(&format!("{}; {limit}", fit_reason(why, &names, room - beside)), room));
            }
            limit => {
                let short = fit_reason(why.clone(), &names, room);
                // On two lines there is room for whole names.
                let parts = if terminal::width(&short) <= room { vec![short] } else { fold(&why, room) };
                parts.iter().for_each(|part| below(part));
                limit.iter().for_each(|limit| below(limit));
            }
        }
        if let Some(blocked) = pole.blocked_by.as_ref().filter(|_| !is_said) {
            below(&fit(&blocked.text, room));
        }
        // Where it waits for somebody who tells nothing, what is to be fixed is there.
        if let Some(text) = pole.callee.as_ref().and_then(|callee| callee.text.as_ref()).filter(|_| pole.states.blocked_nanos.network > 0) {
            below(&fit(&format!("the other side is {text}"), room));
        }
    }
}

/// Reasons that are shares of a time.
const STATES_REASONS: [&str; 3] = ["on_cpu", "waits", "mixed"];

/// Least of a function's name that is left of it.
const FUNCTION_WIDTH_MIN: usize = 20;

/// Characters that a reason cannot do without.
fn least_width(reason: &str, names: &[Option<&str>]) -> usize {
    let spare = |name: &str| terminal::width(name).saturating_sub(FUNCTION_WIDTH_MIN);
    terminal::width(reason).saturating_sub(names.iter().flatten().map(|name| spare(name)).sum::<usize>())
}

/// A reason in so many characters, if it can be. What gives way in a long one is the beginning of the names of its functions, where
/// their modules stand; of the first name first.
fn fit_reason(mut reason: String, names: &[Option<&str>], width: usize) -> String {
    for name in names.iter().flatten() {
        let beyond = terminal::width(&reason).saturating_sub(width);
        if beyond > 0 {
            let left = terminal::width(name).saturating_sub(beyond).max(FUNCTION_WIDTH_MIN);
            let end = end_of(name, left);
            // Whole modules or none of them.
            let whole = end.split_once("::").map(|(_, rest)| format!("…{rest}")).filter(|_| left < terminal::width(name));
            reason = reason.replacen(name, &whole.unwrap_or(end), 1);
        }
    }
    reason
}

/// Functions named of a process.
const FUNCTIONS_SHOWN: usize = 3;

/// The functions in which a pole is on CPUs most, with their shares of that and its time.
fn hot_functions(pole: &view::PoleView, style: Style) -> Vec<String> {
    let mut frames: Vec<&view::TopFrameView> = pole.top_frames.iter().filter(|frame| frame.self_nanos > 0).collect();
    frames.sort_by_key(|frame| std::cmp::Reverse(frame.self_nanos));
    let mut label = pad("functions", LABEL_WIDTH);
    let lines = frames.into_iter().take(FUNCTIONS_SHOWN).map(|frame| {
        let label = std::mem::replace(&mut label, " ".repeat(LABEL_WIDTH));
        let share = right(&percent(frame.self_nanos, pole.weight_nanos), 4);
        let time = terminal::duration(frame.self_nanos);
        let what = format!("{} of {} on-CPU in {} ", right(&time, 7), pole.handle, frame.handle);
        let room = terminal::WIDTH.saturating_sub(LABEL_WIDTH + 5 + terminal::width(&what) + " itself".len());
        format!("{}{share} {what}{} itself", style.faint(&label), fit(&terminal::function_words(&frame.function, frame.runtime), room))
    });
    lines.collect()
}

/// The functions with most time in themselves, below an empty line.
fn function_table(out: &mut Screen, view: &view::SummaryView, style: Style) {
    line(out, "");
    line(out, &style.strong("HOT FUNCTIONS"));
    function_rows(&view.functions, view.weight_nanos, style).iter().for_each(|row| line(out, row));
}

/// Least width of the names, so that the head of the table fits above them.
const NAME_WIDTH_MIN: usize = 24;

/// ◆ what it waited for is declared, ◇ inferred from order.
fn evidence_mark(pole: &view::PoleView) -> &'static str {
    if pole.evidence == "declared" { "◆" } else { "◇" }
}

/// `create web-bundle › bundle ×3`: the piece of work, the operation, how often. A name that contains the piece of work says
/// enough by itself.
fn pole_name(pole: &view::PoleView) -> String {
    let mut text = match &pole.context {
        Some(context) if !pole.name.contains(context.as_str()) => format!("{context} › {}", pole.name),
        _ => pole.name.clone(),
    };
    if pole.count > 1 {
        let _ = write!(text, " ×{}", pole.count);
    }
    text
}

fn quality_lines(view: &view::SummaryView, style: Style) -> Vec<String> {
    let mut texts = quality_texts(&view.quality, view.samples, &view.recording);
    let ranges = view.poles.iter().any(|p| p.saves_if_zero_nanos[0] != p.saves_if_zero_nanos[1]);
    if ranges {
        texts.push("a saving is a range where what an operation waited for is not declared (span links) but inferred".to_owned());
    }
    if texts.is_empty() {
        let text = match (view.rate_hz, view.spans + view.samples + view.processes) {
            (1.., _) => "nothing lost",
            (0, 1..) => "nothing lost; no samples were asked for",
            (0, 0) => {
                "nothing was recorded: no span came, and no samples were asked for; without --no-profile there are processes, code and waits"
            }
        };
        texts.push(text.to_owned());
    }
    labelled(&texts, style)
}

/// What is missing, below a view of a part of the recording; nothing where nothing is.
pub(super) fn missing_lines(quality: &[view::QualityView], samples: u64, recording: &str, style: Style) -> Vec<String> {
    labelled(&quality_texts(quality, samples, recording), style)
}

fn quality_texts(quality: &[view::QualityView], samples: u64, recording: &str) -> Vec<String> {
    let mut texts: Vec<String> = quality.iter().take(QUALITY_SHOWN).map(|q| fit(&quality_words(q, samples), terminal::WIDTH * 4)).collect();
    let more = quality.len().saturating_sub(QUALITY_SHOWN);
    if more > 0 {
        texts.push(format!("{more} more ({} show {recording} --format json)", own_name()));
    }
    texts
}

fn labelled(texts: &[String], style: Style) -> Vec<String> {
    let label = |index: usize| if index == 0 { style.faint("quality") + "   " } else { " ".repeat(10) };
    let mut out = Vec::new();
    for text in texts {
        for part in fold(text, terminal::WIDTH - 10) {
            out.push(label(out.len()) + &part);
        }
    }
    out
}

/// Losses that are counted in samples.
const OF_SAMPLES: [&str; 3] = ["stacks_truncated", "stacks_unwind_failed", "context_torn"];

fn quality_words(item: &view::QualityView, samples: u64) -> String {
    let what = item.code.replace('_', " ");
    if OF_SAMPLES.contains(&item.code.as_str()) {
        let of = format!("{what}: {} of {}", count(item.count), counted(samples, "sample", "samples"));
        return if item.detail.is_empty() { of } else { format!("{of}, {}", item.detail) };
    }
    match (item.count, item.detail.is_empty()) {
        (0 | 1, true) => what,
        (0 | 1, false) => format!("{what}: {}", item.detail),
        (n, true) => format!("{what} ×{}", count(n)),
        (n, false) => format!("{what} ×{}: {}", count(n), item.detail),
    }
}

fn next_lines(view: &view::SummaryView, style: Style) -> Vec<String> {
    let (own, recording) = (own_name(), &view.recording);
    let mut next = Vec::new();
    if view.attached.is_some() {
        next.push(format!("{own} top {recording} --wall"));
        next.push(format!("{own} flame {recording} --wall"));
        next.push(format!("{own} threads {recording}"));
    } else if !view.functions.is_empty() {
        next.push(format!("{own} top {recording}"));
        next.push(format!("{own} flame {recording}"));
    } else if let Some(pole) = view.poles.first() {
        // A process has no attributes and no events: what is to be seen of it is its code.
        if view.spans == 0 && pole.samples > 0 && pole.reason.code != "waits" {
            next.push(format!("{own} top {recording} --span {}", pole.handle));
        } else {
            next.push(format!("{own} span {} {recording}", pole.handle));
        }
        // Where it waits, its samples show what it hardly does.
        if pole.reason.code == "waits" && pole.states.blocked_nanos.sum() > 0 {
            next.push(format!("{own} flame {recording} --off-cpu --span {}", pole.handle));
        } else if pole.samples > 0 {
            next.push(format!("{own} flame {recording} --span {}", pole.handle));
        }
        if !view.usage.is_empty() {
            next.push(format!("{own} processes {recording}"));
        }
    } else if view.samples > 0 {
        next.push(format!("{own} flame {recording}"));
    }
    next.push(format!("{own} open {recording}"));
    // On one line where they fit, else on a line each.
    let width = 7 + next.iter().map(|command| terminal::width(command) + 3).sum::<usize>();
    let next: Vec<String> = next.iter().map(|command| style.handle(command)).collect();
    let lines = if width <= terminal::WIDTH { vec![next.join("   ")] } else { next };
    let label = |index: usize| if index == 0 { style.faint("next") + "      " } else { " ".repeat(LABEL_WIDTH) };
    lines.iter().enumerate().map(|(index, line)| label(index) + line).collect()
}
