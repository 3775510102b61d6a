//! Recording → text.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::{ORIGIN, ORIGIN_MONOTONIC, ROOT_SPAN, span_number, trace_number};
use crate::attribute::AttributeValue;
use crate::recording::Recording;
use crate::sample::{ContextRecord, Sample};
use crate::span::{Span, SpanKind};
use crate::stack::{Frame, StackId};
use crate::time::Monotonic;
use crate::wait::Futex;
use crate::{SpanId, TraceId};

/// The recording in the notation. What the notation has no words for (most values of attributes, events, totals of threads, losses) is left out;
/// what it has words for is read back by [`super::parse()`] as it was, as long as spans stand in the order of their tree.
pub fn print(recording: &Recording) -> String {
    let mut out = String::new();
    let run = &recording.run;
    if let Some(pid) = run.root_pid {
        let command: String = run.command.iter().map(|word| format!(" {}", quoted(word))).collect();
        let times = stretch(run.start.nanos_since(ORIGIN), run.end.map(|end| end.nanos_since(ORIGIN)));
        let pid = if pid == 1 { String::new() } else { format!("  pid {pid}") };
        let _ = writeln!(out, "run{command}  {times}{pid}");
    }
    print_spans(recording, &mut out);
    for process in &recording.processes {
        if Some(process.pid) == run.root_pid && process.parent_pid.is_none() {
            continue;
        }
        let times = stretch(offset(process.start), process.end.map(offset));
        let under = process.parent_pid.map(|pid| format!(" under {pid}")).unwrap_or_default();
        let forked = if process.execed { "" } else { " forked" };
        let listens: String = process.listens.iter().map(|address| format!(" listens {address}")).collect();
        let _ = writeln!(out, "process {}  {times}  pid {}{under}{forked}{listens}", quoted(&process.name), process.pid);
    }
    print_samples(recording, &mut out);
    print_waits(recording, &mut out);
    print_threads(recording, &mut out);
    out
}

fn offset(at: Monotonic) -> i64 {
    at.0 as i64 - ORIGIN_MONOTONIC.0 as i64
}

/// Words that a name must not look like.
fn looks_special(text: &str) -> bool {
    const KEYWORDS: [&str; 18] = [
        "pid", "tid", "id", "parent", "kind", "scope", "<-", "run", "process", "sample", "wait", "trace", "thread", "cpu", "current", "-",
        "under", "forked",
    ];
    KEYWORDS.contains(&text) || text.contains("..") || text.contains('=') || text.starts_with(['@', '#', '[']) || text.ends_with(',')
}

fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && text.trim() == text
        && !text.contains("  ")
        && !text.contains(['"', '\\', '\n', '\r', '\t'])
        && text.split(' ').all(|word| !looks_special(word));
    if plain { text.to_owned() } else { always_quoted(text) }
}

fn always_quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
    format!("\"{escaped}\"")
}

fn unit_of(nanos: i64) -> (i64, &'static str) {
    match nanos {
        n if n % 1_000_000_000 == 0 => (1_000_000_000, "s"),
        n if n % 1_000_000 == 0 => (1_000_000, "ms"),
        n if n % 1_000 == 0 => (1_000, "us"),
        _ => (1, "ns"),
    }
}

fn moment(nanos: i64) -> String {
    let (unit, name) = unit_of(nanos);
    format!("{}{name}", nanos / unit)
}

fn stretch(start: i64, end: Option<i64>) -> String {
    let Some(end) = end else { return format!("{}..", moment(start)) };
    let (unit, name) = if start == 0 { unit_of(end) } else { unit_of(start).min(unit_of(end)) };
    format!("{}..{}{name}", start / unit, end / unit)
}

/// How links and contexts call each span: its name where no other has it, else a label.
fn references(recording: &Recording) -> HashMap<(TraceId, SpanId), (String, bool)> {
    let mut count: HashMap<&str, u32> = HashMap::new();
    for span in &recording.spans {
        *count.entry(span.name.as_str()).or_default() += 1;
    }
    let wanted: HashSet<(TraceId, SpanId)> = recording
        .spans
        .iter()
        .flat_map(|s| s.links.iter().map(|l| (l.trace_id, l.span_id)))
        .chain(recording.samples.iter().map(|s| s.context).chain(recording.waits.iter().map(|w| w.context)).filter_map(|context| {
            match context {
                ContextRecord::Span { trace_id, span_id } => Some((trace_id, span_id)),
                _ => None,
            }
        }))
        .chain(recording.current_spans.iter().filter_map(|current| current.span))
        .collect();
    let mut out = HashMap::new();
    for (i, span) in recording.spans.iter().enumerate() {
        let id = (span.trace_id, span.span_id);
        if wanted.contains(&id) {
            let odd = quoted(&span.name) != span.name || span.name.contains([',', ']']);
            let label = count[span.name.as_str()] > 1 || odd;
            out.entry(id).or_insert_with(|| if label { (format!("s{}", i + 1), true) } else { (span.name.to_string(), false) });
        }
    }
    out
}

fn print_spans(recording: &Recording, out: &mut String) {
    let references = references(recording);
    let mut width = 0;
    // A span stands under its parent only where the parent is the nearest line above with less indentation; else it says
    // `parent`. Walking in order with a stack of open lines finds that out without recursion.
    let mut open: Vec<(TraceId, SpanId, Option<u32>)> = Vec::new();
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut trace = trace_number(recording.run.trace_id);
    let mut in_run = false;
    for (i, span) in recording.spans.iter().enumerate() {
        let at_run = span.parent_span_id == Some(recording.run.root_span_id)
            && span.trace_id == recording.run.trace_id
            && recording.run.root_pid.is_some();
        let depth = match span.parent_span_id {
            _ if at_run => Some(0),
            Some(parent) => open.iter().rposition(|&(t, s, _)| t == span.trace_id && s == parent).map(|d| d + 1),
            None => Some(0),
        };
        open.truncate(depth.unwrap_or(0));
        let inherited = open.last().and_then(|&(_, _, pid)| pid);
        if open.is_empty() {
            in_run = at_run;
        }
        let indent = open.len() + usize::from(in_run);
        if indent == 0 && trace_number(span.trace_id) != trace {
            trace = trace_number(span.trace_id);
            lines.push((format!("trace {trace}"), String::new()));
        }
        let head = format!("{}{}", "  ".repeat(indent), quoted(&span.name));
        width = width.max(head.chars().count());
        lines.push((head, tail(span, i, depth.is_none(), inherited, &references)));
        open.push((span.trace_id, span.span_id, span.pid));
    }
    for (head, tail) in lines {
        if tail.is_empty() {
            let _ = writeln!(out, "{head}");
        } else {
            let _ = writeln!(out, "{head:width$}  {tail}");
        }
    }
}

fn tail(span: &Span, index: usize, detached: bool, inherited: Option<u32>, names: &HashMap<(TraceId, SpanId), (String, bool)>) -> String {
    let mut tail = stretch(span.start.nanos_since(ORIGIN), Some(span.end.nanos_since(ORIGIN)));
    if let Some(service) = span.resource.attributes.get_str("service.name") {
        let word = if service.contains(' ') { always_quoted(service) } else { quoted(service) };
        let _ = write!(tail, "  {word}");
    }
    match span.pid {
        pid if pid == inherited => {}
        Some(pid) => tail.push_str(&format!("  pid {pid}")),
        None => tail.push_str("  pid -"),
    }
    let number = span_number(span.span_id);
    if number != index as u64 + 1 {
        let _ = write!(tail, "  id {}", if number == ROOT_SPAN { 0 } else { number });
    }
    if let Some(parent) = span.parent_span_id.filter(|_| detached) {
        let number = span_number(parent);
        let _ = write!(tail, "  parent {}", if number == ROOT_SPAN { 0 } else { number });
    }
    if span.kind != SpanKind::Internal {
        let _ = write!(tail, "  kind {}", span.kind.as_str());
    }
    if !span.scope.name.is_empty() {
        let _ = write!(tail, "  scope {}", always_plain(&span.scope.name));
    }
    for attribute in span.attributes.iter() {
        if let Some(value) = attribute_value(&attribute.value).filter(|_| is_key(&attribute.key)) {
            let _ = write!(tail, "  {}={value}", attribute.key);
        }
    }
    if let Some((label, true)) = names.get(&(span.trace_id, span.span_id)) {
        let _ = write!(tail, "  @{label}");
    }
    let links: Vec<&str> = span.links.iter().filter_map(|l| names.get(&(l.trace_id, l.span_id)).map(|(name, _)| name.as_str())).collect();
    if !links.is_empty() {
        let _ = write!(tail, "  <- {}", links.join(", "));
    }
    tail
}

/// The name of a scope as one word.
fn always_plain(text: &str) -> String {
    if text.contains(char::is_whitespace) { always_quoted(text) } else { quoted(text) }
}

fn is_word(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || c == '"')
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && is_word(key) && !key.contains('=') && !looks_special(key)
}

/// The value as one word, where it is a text or a list of texts without blanks.
fn attribute_value(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::Str(text) if is_word(text) && !(text.starts_with('[') && text.ends_with(']')) => Some(text.to_string()),
        AttributeValue::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(AttributeValue::as_str).collect();
            let texts = texts.filter(|texts| texts.iter().all(|t| is_word(t) && !t.contains(',') && !t.is_empty()))?;
            Some(format!("[{}]", texts.join(",")))
        }
        _ => None,
    }
}

fn print_samples(recording: &Recording, out: &mut String) {
    let names = references(recording);
    let mut next = 0;
    while let Some(first) = recording.samples.get(next) {
        // Samples that follow each other by their own weight, alike in everything else, share a line.
        let same = |i: usize, s: &Sample| {
            let time = Monotonic(first.time.0.saturating_add(first.weight_nanos.saturating_mul(i as u64)));
            *s == Sample { time, ..*first } && first.weight_nanos > 0
        };
        let repeat = recording.samples[next..].iter().enumerate().take_while(|(i, s)| *i == 0 || same(*i, s)).count();
        next += repeat;
        let _ = write!(out, "sample {}", moment(offset(first.time)));
        if repeat > 1 {
            let _ = write!(out, " x{repeat}");
        }
        let _ = write!(out, " every {} pid {} tid {}", moment(first.weight_nanos as i64), first.pid, first.tid);
        match first.context {
            ContextRecord::Absent => {}
            ContextRecord::NoSpan => out.push_str(" [-]"),
            ContextRecord::Torn => out.push_str(" [~]"),
            ContextRecord::Span { trace_id, span_id } => {
                let name = names.get(&(trace_id, span_id)).map_or("?", |(name, _)| name.as_str());
                let _ = write!(out, " [{name}]");
            }
        }
        let _ = writeln!(out, " {}", stack(recording, first.stack));
    }
}

fn print_waits(recording: &Recording, out: &mut String) {
    let names = references(recording);
    for wait in &recording.waits {
        let range = |at: Monotonic| moment(offset(at));
        let _ = write!(out, "wait {}..{} pid {} tid {} {}", range(wait.start), range(wait.end), wait.pid, wait.tid, wait.kind.as_str());
        if !wait.syscall.is_empty() {
            let _ = write!(out, " in {}", wait.syscall);
        }
        if let Some(Futex { address, holder }) = wait.futex {
            let _ = write!(out, " at {address}");
            holder.iter().for_each(|tid| out.push_str(&format!(" holder {tid}")));
        }
        match wait.context {
            ContextRecord::Absent | ContextRecord::Torn => {}
            ContextRecord::NoSpan => out.push_str(" [-]"),
            ContextRecord::Span { trace_id, span_id } => {
                let name = names.get(&(trace_id, span_id)).map_or("?", |(name, _)| name.as_str());
                let _ = write!(out, " [{name}]");
            }
        }
        let _ = writeln!(out, " {}", wait.stack.map_or_else(|| "?".to_owned(), |id| stack(recording, id)));
    }
}

fn print_threads(recording: &Recording, out: &mut String) {
    for thread in &recording.threads {
        let times = stretch(offset(thread.start), thread.end.map(offset));
        let _ = writeln!(out, "thread {}  {times}  pid {} tid {}", quoted(&thread.name), thread.pid, thread.tid);
    }
    let range = |start: Monotonic, end: Monotonic| format!("{}..{}", moment(offset(start)), moment(offset(end)));
    for slice in &recording.cpu_slices {
        let how = if slice.preempted { " preempted" } else { "" };
        let _ = writeln!(out, "cpu {} pid {} tid {}{how}", range(slice.start, slice.end), slice.pid, slice.tid);
    }
    let names = references(recording);
    for current in &recording.current_spans {
        let name = current.span.map_or("-", |id| names.get(&id).map_or("?", |(name, _)| name.as_str()));
        let _ = writeln!(out, "current {} pid {} tid {} {name}", range(current.start, current.end), current.pid, current.tid);
    }
}

fn stack(recording: &Recording, id: StackId) -> String {
    let Some(stack) = recording.stacks.get(id.0 as usize) else { return "?".to_owned() };
    let locations = stack.locations.iter().rev().map(|id| {
        let frames = recording.locations.get(id.0 as usize).map_or(&[] as &[Frame], |l| &l.frames);
        frames.iter().rev().map(frame).collect::<Vec<_>>().join("|")
    });
    locations.collect::<Vec<_>>().join(";")
}

fn frame(frame: &Frame) -> String {
    match (frame.file.is_empty(), frame.line) {
        (true, _) => frame.function.to_string(),
        (false, 0) => format!("{}@{}", frame.function, frame.file),
        (false, line) => format!("{}@{}:{line}", frame.function, frame.file),
    }
}
