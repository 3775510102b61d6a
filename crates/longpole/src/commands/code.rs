//! `top`, `frame`, `threads`: the code of a recording, by function and by thread.

use anyhow::Result;
use longpole_analysis::code::functions::Functions;
use longpole_analysis::code::origin::CodeOrigin;
use longpole_analysis::{Handle, Report};
use longpole_model::SumNanos;
use longpole_server::source_file::{Origin, SourceAccess};
use longpole_server::view;

use super::recording::{Setting, chosen, file, in_order, is_handle, load, own_name, print, print_json, resolve, source_consent};
use super::span::{none_chosen, waits_section};
use super::summary::missing_lines;
use crate::args::{Format, FrameArguments, SourceArguments, ThreadsArguments, TopArguments};
use crate::failure::{Failure, Kind};
use crate::screen::Screen;
use crate::terminal::{Style, TimeUnit, WIDTH, count, counted, cut, duration, fit, fold, function_words, pad, percent, right, width};

/// Spans listed for a function.
const SPANS_SHOWN: usize = 20;

/// Functions listed where a name is of several.
const CANDIDATES_SHOWN: usize = 8;

/// Lines named for a function.
const LINES_SHOWN: usize = 3;

/// Other threads named for a thread, of those that it waited for.
const OTHERS_SHOWN: usize = 3;

/// Kinds of waits named for a thread.
const KINDS_SHOWN: usize = 3;

/// Prints the functions with the most time in themselves.
pub(crate) fn top(setting: &Setting, arguments: &TopArguments) -> Result<()> {
    let (chosen, recording) = chosen(&arguments.spans, &arguments.recording);
    let (name, report) = load(setting, recording)?;
    let options = view::TopOptions {
        by_total: arguments.total,
        limit: arguments.limit,
        time: arguments.time.time(),
        all_threads: arguments.time.all_threads,
        all_functions: arguments.all_functions,
    };
    let none = || none_chosen(&name, chosen.unwrap_or(view::Chosen::Handle("")));
    let view = view::TopView::new(&name, &report, chosen, options).ok_or_else(none)?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&top_text(&view, setting.style())),
    }
}

/// Of what has no sample.
pub(super) const NO_SAMPLE: &str =
    "No sample of a CPU fell into it: it waited (--off-cpu), it was shorter than the sampling period, or its process was not sampled.";

fn top_text(view: &view::TopView, style: Style) -> Screen {
    let what = [&view.span, &view.name, &view.trace_id].into_iter().flatten().next();
    let what = what.map_or_else(String::new, |what| format!("{}  ", fit(what, 60)));
    let (counted_words, of) = match view.time {
        "off_cpu" => (counted(view.samples, "wait", "waits"), "of blocked time"),
        "wall" => (counted(view.samples, "sample or wait", "samples and waits"), "of time on CPUs and blocked time"),
        _ => (counted(view.samples, "sample", "samples"), "of time on CPUs"),
    };
    let all = format!("{} {of}, all threads together", duration(view.weight_nanos));
    let mut out = Screen::of(format!("{}{counted_words}  {}  {}", style.handle(&what), style.faint(&all), style.faint(&view.recording)));
    // Times of functions are as whole as the samples that they are of.
    let missing = |out: &mut Screen| out.extend(missing_lines(&view.quality, view.all_samples, &view.recording, style));
    if view.functions.is_empty() {
        out.line(if view.time == "off_cpu" { "No wait of 5 ms or longer was seen in it, idle workers left out." } else { NO_SAMPLE });
        out.extend(left_out(view, style));
        missing(&mut out);
        return out;
    }
    function_rows(&view.functions, view.weight_nanos, style).iter().for_each(|row| out.line(row));
    if view.truncated > 0 {
        out.line(style.faint(&format!("… {} more (--limit 0)", count(view.truncated as u64))));
    }
    if view.hidden > 0 {
        let hidden = counted(view.hidden as u64, "function", "functions");
        out.line(style.faint(&format!("… {hidden} that only start threads, call others or interpret (--all-functions)")));
    }
    out.extend(left_out(view, style));
    missing(&mut out);
    out
}

/// Functions as rows of a table, with its head; shares are of `weight_nanos`.
pub(super) fn function_rows(functions: &[view::TopFrameView], weight_nanos: i64, style: Style) -> Vec<String> {
    let unit = TimeUnit::of(functions.iter().map(|function| function.total_nanos).max().unwrap_or_default());
    let head = style.faint(&format!("{}  {}  {}  function", right("self", 9), right("share", 5), right("total", 9)));
    let row = |function: &view::TopFrameView| {
        let place = place(&function.file, function.line);
        let room = WIDTH.saturating_sub(30 + function.handle.len() + width(&place)).max(20);
        format!(
            "{}  {}  {}  {} {}{}",
            right(&unit.show(function.self_nanos), 9),
            right(&percent(function.self_nanos, weight_nanos), 5),
            right(&unit.show(function.total_nanos), 9),
            style.handle(&function.handle),
            fit(&function_words(&function.function, function.runtime), room),
            style.faint(&place)
        )
    };
    [head].into_iter().chain(functions.iter().map(row)).collect()
}

/// What of the whole run's waits is not shown, and how to see it.
fn left_out(view: &view::TopView, style: Style) -> Option<String> {
    (view.left_out_waits > 0).then(|| {
        style.faint(&format!(
            "… {} of idle workers and of threads that work for no span (--all-threads)",
            counted(view.left_out_waits, "wait", "waits")
        ))
    })
}

fn place(file: &str, line: u32) -> String {
    if file.is_empty() { String::new() } else { format!("  {}:{line}", file.rsplit('/').next().unwrap_or_default()) }
}

/// Prints a function and the spans it ran in, or its source.
pub(crate) fn frame(setting: &Setting, arguments: &FrameArguments) -> Result<()> {
    let (text, recording) = in_order(&arguments.handle, &arguments.recording);
    let (name, report) = load(setting, recording)?;
    let handle = function_of(&name, &report, text)?;
    let style = setting.style();
    let none = || no_function(&name, &handle);
    if arguments.source {
        // What goes into a file or to another program has no text of this machine's files, unless somebody asks for it.
        let reads = arguments.format == Format::Text || arguments.source_text;
        let access = if reads { Some(source_access(setting, recording, &report, &arguments.allow)?) } else { None };
        let view = view::SourceView::new(&name, &report, &handle, access.as_ref()).ok_or_else(none)?;
        return match arguments.format {
            Format::Json => print_json(&view),
            Format::Text => print(&source_text(&view, style)),
        };
    }
    let view = view::FrameView::new(&name, &report, &handle).ok_or_else(none)?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&frame_text(&view, style)),
    }
}

/// Which of the files that a recording names may be read.
fn source_access(setting: &Setting, recording: &str, report: &Report, allow: &SourceArguments) -> Result<SourceAccess> {
    let origin = match file(setting, recording) {
        Some(_) => Origin::Others,
        None => {
            let store = setting.open_store()?;
            Origin::of(&store.recording(resolve(&store, recording)?)?, &report.recording().run)
        }
    };
    Ok(SourceAccess { origin, consent: source_consent(allow)? })
}

fn no_line(recording: &str, file: &str, line: u32) -> Failure {
    let hint = format!("`{} frame NAME {recording} --source` shows the lines of a function at which something was", own_name());
    Failure::new(Kind::NotFound, format!("nothing was seen at line {line} of {file} in {recording}")).hint(hint)
}

fn no_function(recording: &str, what: &str) -> Failure {
    let hint = format!("`{} top {recording} --wall` lists functions with their handles", own_name());
    Failure::new(Kind::NotFound, format!("there is no function {what} in {recording}")).hint(hint)
}

/// The handle of the function that is meant, by handle, by name, or by file and line.
fn function_of(recording: &str, report: &Report, text: &str) -> Result<String> {
    if is_handle(text) {
        return Ok(text.to_owned());
    }
    let at = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let mut found = match at {
        Some((file, line)) => report.functions_at(file, line),
        None => report.functions().named(text),
    };
    // What people wrote is what they ask for; of code that was copied to several places, what has a line.
    let list = &report.functions().list;
    let ways: [&dyn Fn(usize) -> bool; 2] = [&|index| list[index].whose == CodeOrigin::Program, &|index| list[index].line > 0];
    for is_meant in ways {
        if found.iter().any(|&index| is_meant(index)) {
            found.retain(|&index| is_meant(index));
        }
    }
    let words = |&index: &usize| {
        let function = &report.functions().list[index];
        format!("{} {}{}", Handle::Function(index), fit(&function.function, 60), place(&function.file, function.line))
    };
    let several = |what: &str| {
        let mut list: Vec<String> = found.iter().take(CANDIDATES_SHOWN).map(words).collect();
        if found.len() > CANDIDATES_SHOWN {
            list.push(format!("… {} more", found.len() - CANDIDATES_SHOWN));
        }
        let failure = Failure::new(Kind::NotFound, what.to_owned());
        Err(failure.hint("say which by its handle:").list(list).into())
    };
    let is_called = |index: usize| at.is_some() || Functions::is_called(&list[index].function, text);
    match &found[..] {
        [] if let Some((file, line)) = at => Err(no_line(recording, file, line).into()),
        [] if report.recording().samples.is_empty() => {
            let hint = format!("no samples were taken, so only functions that waited are known: {} top {recording} --off-cpu", own_name());
            Err(Failure::new(Kind::NotFound, format!("there is no function called “{text}” in {recording}")).hint(hint).into())
        }
        [] => Err(no_function(recording, &format!("called “{text}”")).into()),
        [one] if is_called(*one) || list[*one].whose == CodeOrigin::Program => Ok(Handle::Function(*one).to_string()),
        [_] => several(&format!("no function of {recording} is called “{text}”; one has it in its name")),
        all => several(&format!("{} functions of {recording} fit “{text}”", all.len())),
    }
}

/// Prints the source of a function, line by line.
fn source_text(view: &view::SourceView, style: Style) -> Screen {
    let function = fit(&view.function, 70);
    let mut out = Screen::of(format!("{}  {}  {}", style.handle(&view.handle), style.strong(&function), style.faint(&view.recording)));
    let path = view.path.as_deref().unwrap_or(&view.file);
    if !path.is_empty() {
        out.line(style.faint(path));
    }
    if let Some(detail) = &view.detail {
        let is_wrong = view.state != "read";
        out.line(if is_wrong { style.warning(detail) } else { style.faint(detail) });
    }
    if view.lines.is_empty() {
        return out;
    }
    let unit = TimeUnit::of(view.lines.iter().map(|line| line.total_nanos.max(line.waited_nanos)).max().unwrap_or_default());
    let has_waits = view.lines.iter().any(|line| line.waited_nanos > 0);
    let waited = |text: String| if has_waits { format!("  {}", right(&text, 9)) } else { String::new() };
    out.line("");
    out.line(style.faint(&format!("{}  {}{}", right("self", 9), right("total", 9), waited("waited".to_owned()))));
    let show = |nanos: i64| if nanos > 0 { unit.show(nanos) } else { String::new() };
    let number_width = view.lines.iter().map(|line| line.line.to_string().len()).max().unwrap_or(1);
    let mut before = None;
    for line in &view.lines {
        if before.is_some_and(|before: u32| before + 1 < line.line) {
            out.line(style.faint("        ⋮"));
        }
        before = Some(line.line);
        let numbers =
            format!("{}  {}{}", right(&show(line.self_nanos), 9), right(&show(line.total_nanos), 9), waited(show(line.waited_nanos)));
        let text = line.text.as_deref().unwrap_or_default().replace('\t', "    ");
        let number = right(&line.line.to_string(), number_width);
        let room = WIDTH.saturating_sub(width(&numbers) + number_width + 4).max(20);
        let row = format!("{numbers}  {}  {}", style.faint(&number), cut(&text, room));
        out.line(row.trim_end());
    }
    if view.truncated > 0 {
        out.line(style.faint(&format!("… {} more with less time", counted(view.truncated as u64, "line", "lines"))));
    }
    let on_lines: i64 = view.lines.iter().map(|line| line.self_nanos).sum_nanos();
    let on_none = view.self_nanos.saturating_sub(on_lines);
    if view.truncated == 0 && on_none.saturating_mul(100) > view.self_nanos {
        out.line(style.faint(&format!("{}  of its own are on no line that is known", right(&unit.show(on_none), 9))));
    }
    let (what, limit) = if has_waits { ("total and waited", "; of waits below 5 ms few are seen") } else { ("total", "") };
    out.line(style.faint(&format!("self: time on CPUs on the line itself; {what}: with what it calls from there{limit}")));
    out
}

fn frame_text(view: &view::FrameView, style: Style) -> Screen {
    let unit = TimeUnit::of(view.total_nanos);
    let mut out = Screen::of(format!(
        "{}  {}  {}",
        style.handle(&view.handle),
        style.strong(&function_words(&view.function, view.runtime)),
        style.faint(&view.recording)
    ));
    if !view.file.is_empty() {
        out.line(style.faint(&format!("{}{}", view.file, lines_words(view))));
    }
    if view.samples == 0 && view.waits > 0 {
        out.line("no sample of a CPU fell into it: it only waited");
    } else {
        out.line(format!(
            "{} on a CPU in it and what it calls, {} in itself, {}",
            unit.show(view.total_nanos),
            unit.show(view.self_nanos),
            counted(view.samples, "sample", "samples")
        ));
    }
    if view.waits > 0 {
        let waited = duration(view.waited_nanos);
        out.line(format!("{waited} blocked in it and what it calls, {}", counted(view.waits, "wait", "waits")));
    }
    out.line("");
    out.extend(waits_section(&view.waited_for, style));
    if view.spans.is_empty() {
        out.append(&unlinked(view));
        return out;
    }
    if view.operations.iter().any(|operation| operation.spans > 1) {
        out.line(style.strong("OPERATIONS IT RAN IN"));
        let unit = TimeUnit::of(view.operations.iter().map(|it| it.total_nanos).max().unwrap_or_default());
        out.line(style.faint(&format!(
            "{}  {}  {}  {}  operation",
            right("on-CPU", 9),
            right("share", 5),
            right("of its CPU", 10),
            right("spans", 6)
        )));
        for operation in view.operations.iter().take(SPANS_SHOWN) {
            out.line(format!(
                "{}  {}  {}  {}  {}  {}",
                right(&unit.show(operation.total_nanos), 9),
                right(&percent(operation.total_nanos, view.total_nanos), 5),
                right(&format!("{:.0}%", operation.share * 100.0), 10),
                right(&count(operation.spans), 6),
                fit(&operation.name, 40),
                style.faint(&fit(&operation.service, 20))
            ));
        }
        let more = view.operations.len().saturating_sub(SPANS_SHOWN);
        if more > 0 {
            out.line(style.faint(&format!("… {more} more (--format json)")));
        }
        out.line("");
    }
    out.line(style.strong("SPANS IT RAN IN"));
    let unit = TimeUnit::of(view.spans.iter().map(|span| span.total_nanos.max(span.waited_nanos)).max().unwrap_or_default());
    let has_waits = view.waited_nanos > 0;
    let waited = |text: &str| if has_waits { format!("  {}", right(text, 9)) } else { String::new() };
    out.line(style.faint(&format!("{}{}  of its CPU  span", right("on-CPU", 9), waited("blocked"))));
    for span in view.spans.iter().take(SPANS_SHOWN) {
        out.line(format!(
            "{}{}  {}  {} {}  {}",
            right(&unit.show(span.total_nanos), 9),
            waited(&unit.show(span.waited_nanos)),
            right(&format!("{:.0}%", span.share * 100.0), 10),
            style.handle(&span.handle),
            fit(&span.name, 50),
            style.faint(&fit(&span.service, 20))
        ));
    }
    out.line(style.faint("of its CPU: the share of the function in what the span itself, without child spans, ran"));
    let more = view.spans.len().saturating_sub(SPANS_SHOWN) + view.truncated.spans;
    if more > 0 {
        out.line(style.faint(&format!("… {more} more (--format json)")));
    }
    out.append(&unlinked(view));
    out
}

/// `:12 (80%), :14 (20%)`: where it is when it is on a CPU or waits.
fn lines_words(view: &view::FrameView) -> String {
    let time = |line: &view::LineView| line.total_nanos.saturating_add(line.waited_nanos);
    let all = view.total_nanos.saturating_add(view.waited_nanos);
    let words: Vec<String> =
        view.lines.iter().take(LINES_SHOWN).map(|line| format!(":{} ({})", line.line, percent(time(line), all))).collect();
    let more = view.lines.len().saturating_sub(LINES_SHOWN);
    let more = if more > 0 { format!(" and {more} more lines (--source)") } else { String::new() };
    words.join(", ") + &more
}

/// What of a function belongs to no span, or nobody can say to which.
fn unlinked(view: &view::FrameView) -> Screen {
    let mut out = Screen::default();
    if view.unlinked_samples > 0 {
        let ambiguous = match view.ambiguous_samples {
            0 => String::new(),
            some => format!(", of which {} could belong to several", count(some)),
        };
        out.line(format!("{} of it belong to no span{ambiguous}", counted(view.unlinked_samples, "sample", "samples")));
    }
    if view.unlinked_waited_nanos > 0 {
        out.line(format!("{} of its blocked time belong to no span", duration(view.unlinked_waited_nanos)));
    }
    out
}

/// Prints where the life of each thread went.
pub(crate) fn threads(setting: &Setting, arguments: &ThreadsArguments) -> Result<()> {
    let (name, report) = load(setting, &arguments.recording)?;
    let view = view::ThreadsView::new(&name, &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&threads_text(&view, arguments.limit, setting.style())),
    }
}

/// `lock held by flush 93.1ms`, in the words of what the other thread was.
fn waited_for(thread: &view::ThreadView, other: &view::WaitedForView, unit: TimeUnit) -> String {
    let who = match &other.name {
        Some(name) => fit(name, 20),
        None if other.tid == thread.pid => "the main thread".to_owned(),
        None => format!("thread {}", other.tid),
    };
    let nanos = format!("{}{}", unit.show(other.nanos), if other.evidence == "inferred" { " (inferred)" } else { "" });
    match other.relation {
        "holds" => format!("lock held by {who} {nanos}"),
        "ends" => format!("until {who} ended {nanos}"),
        _ => format!("until woken by {who} {nanos}"),
    }
}

fn threads_text(view: &view::ThreadsView, limit: usize, style: Style) -> Screen {
    if view.threads.is_empty() {
        return Screen::of(format!("{} has no threads: they come with the profile", view.recording));
    }
    let mut out: Screen = thread_rows(&view.threads, limit, true, style).into_iter().collect();
    let unit = TimeUnit::of(view.threads.iter().map(|thread| thread.nanos).max().unwrap_or_default());
    let hidden: Vec<_> = view.threads.iter().filter(|thread| limit != 0 && thread.rank >= limit).collect();
    if !hidden.is_empty() {
        let on_cpu = unit.show(hidden.iter().map(|thread| thread.on_cpu_nanos).sum_nanos::<i64>());
        let in_poles = hidden.iter().filter(|thread| thread.pole.is_some()).count();
        let poles = if in_poles > 0 { format!("{in_poles} of them in long poles") } else { "none of them in a long pole".to_owned() };
        out.line(style.faint(&format!("… {} more, together {on_cpu} on-CPU, {poles} (--limit 0)", count(hidden.len() as u64))));
    }
    out
}

/// The threads that matter most, at most so many (0: all), with a head; with the pole that each works in, where poles are named.
pub(crate) fn thread_rows(threads: &[view::ThreadView], limit: usize, names_poles: bool, style: Style) -> Vec<String> {
    let unit = TimeUnit::of(threads.iter().map(|thread| thread.nanos).max().unwrap_or_default());
    let mut out = vec![style.strong(&format!(
        "{}  {}  {}  {}  {}  blocked for",
        pad("THREAD", 30),
        right("lived", 9),
        right("on-CPU", 9),
        right("runnable", 9),
        right("blocked", 9)
    ))];
    for thread in threads.iter().filter(|thread| limit == 0 || thread.rank < limit) {
        let own = Some(&thread.name).filter(|name| !name.is_empty() && **name != thread.process);
        let name = match own.or(thread.entry.as_ref()) {
            Some(name) => format!("{} › {name}", thread.process),
            None => thread.process.clone(),
        };
        let blocked = thread.blocked_nanos.sum().saturating_add(thread.blocked_unseen_nanos);
        let parts = thread.blocked_nanos.parts();
        let others: i64 = parts.iter().skip(KINDS_SHOWN).map(|(_, nanos)| nanos).sum_nanos();
        let shown = parts.into_iter().take(KINDS_SHOWN).chain([("others", others), ("not seen", thread.blocked_unseen_nanos)]);
        let kinds: Vec<String> = shown
            .filter(|(_, nanos)| *nanos >= blocked / 100 && *nanos > 0)
            .map(|(kind, nanos)| format!("{kind} {}", percent(nanos, blocked)))
            .collect();
        let works = thread.pole.as_ref().filter(|_| names_poles).map(|pole| format!("works in {pole}")).unwrap_or_default();
        let id = format!(" {}", thread.tid);
        let named = format!("{}{id}", fit(&name, 30_usize.saturating_sub(id.len())));
        out.push(format!(
            "{}  {}  {}  {}  {}  {}",
            pad(&named, 30),
            right(&unit.show(thread.nanos), 9),
            right(&unit.show(thread.on_cpu_nanos), 9),
            right(&unit.show(thread.ready_nanos), 9),
            right(&unit.show(blocked), 9),
            style.faint(&[kinds.join(", "), works].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; "))
        ));
        // What is a hundredth of the longest of them tells nothing.
        let most = thread.waited_for.first().map_or(0, |other| other.nanos);
        let others = thread.waited_for.iter().take(OTHERS_SHOWN).filter(|other| other.nanos.saturating_mul(100) > most);
        let others: Vec<String> = others.map(|other| waited_for(thread, other, unit)).collect();
        if !others.is_empty() {
            out.extend(fold(&others.join(", "), WIDTH - 2).iter().map(|part| style.faint(&format!("  {part}"))));
        }
    }
    out
}
