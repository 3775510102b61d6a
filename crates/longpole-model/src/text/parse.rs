//! Text → recording.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::times::{moment, monotonic, stretch, wall, whole_stretch};
use super::tokens::{Token, join, number, tokens};
use super::{ORIGIN, ORIGIN_MONOTONIC, span_id, trace_id};
use crate::attribute::{AttributeValue, Attributes};
use crate::process::{CpuSlice, Process, Thread};
use crate::recording::Recording;
use crate::resource::{Resource, Scope};
use crate::run::{CaptureMode, Exit, Run};
use crate::sample::{ContextRecord, CurrentSpan, Sample};
use crate::span::{Span, SpanKind, SpanLink};
use crate::stack::{Frame, Location, LocationId, LocationKind, Mapping, MappingId, Stack, StackId};
use crate::thin_vec::ThinVec;
use crate::time::{Clock, ClockAnchor, TimeRange};
use crate::wait::{Futex, Wait, WaitKind};
use crate::{AbsAddr, SpanId, Text, TraceId, VirtOffset};

/// Why a text is not a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Lower-case fragment for people.
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TextError {}

/// Samples that one line may stand for: a slip of the pen must not fill the memory.
const REPEAT_MAX: u64 = 1_000_000;

/// The recording that the text spells.
///
/// # Errors
///
/// The first line that is not in the notation, with its number.
pub fn parse(text: &str) -> Result<Recording, TextError> {
    let mut reader = Reader::default();
    for (i, raw) in text.lines().enumerate() {
        reader.line(raw).map_err(|message| TextError { line: i + 1, message })?;
    }
    reader.finish()
}

/// What a name or a label stands for.
type Names = HashMap<String, (TraceId, SpanId)>;

struct PendingSample {
    line: usize,
    context: String,
    samples: std::ops::Range<usize>,
}

#[derive(Default)]
struct Reader {
    lines: usize,
    run: Option<(i64, Option<i64>, u32)>,
    command: Vec<String>,
    trace: u64,
    spans: Vec<Span>,
    /// Lines of the spans above the next one: indentation, index in `spans` (`None`: the run).
    above: Vec<(usize, Option<usize>)>,
    names: Names,
    pending_links: Vec<(usize, usize, Vec<String>)>,
    pending_contexts: Vec<PendingSample>,
    resources: HashMap<(String, Option<u32>), Arc<Resource>>,
    scopes: HashMap<String, Arc<Scope>>,
    processes: Vec<Process>,
    samples: Vec<Sample>,
    waits: Vec<Wait>,
    pending_waits: Vec<(usize, String, usize)>,
    threads: Vec<Thread>,
    cpu_slices: Vec<CpuSlice>,
    current_spans: Vec<CurrentSpan>,
    pending_currents: Vec<(usize, String, usize)>,
    stacks: HashMap<Vec<LocationId>, StackId>,
    stack_list: Vec<Stack>,
    locations: HashMap<String, LocationId>,
    location_list: Vec<Location>,
}

/// Reads what stands behind the first word of a line.
type ReadLine = fn(&mut Reader, &str) -> Result<(), String>;

impl Reader {
    /// Lines that are no spans, by their first word.
    const LINES: [(&'static str, ReadLine); 6] = [
        ("sample ", Reader::sample),
        ("wait ", Reader::wait),
        ("process ", Reader::process),
        ("thread ", Reader::thread),
        ("cpu ", Reader::cpu),
        ("current ", Reader::current),
    ];

    fn line(&mut self, raw: &str) -> Result<(), String> {
        self.lines += 1;
        let line = raw.trim_end();
        let indent = line.len() - line.trim_start().len();
        let body = line.trim_start();
        if body.is_empty() || body.starts_with('#') {
            return Ok(());
        }
        if indent == 0 {
            for (word, read) in Self::LINES {
                if let Some(rest) = body.strip_prefix(word) {
                    return read(self, rest);
                }
            }
            if let Some(rest) = body.strip_prefix("trace ") {
                self.trace = rest.trim().parse().map_err(|_| format!("`{rest}` is not the number of a trace"))?;
                return Ok(());
            }
        }
        let tokens = tokens(body)?;
        let at = tokens
            .iter()
            .position(|w| !w.quoted && stretch(&w.text).is_some())
            .ok_or_else(|| "no times such as 2..14ms in this line".to_owned())?;
        let name = join(&tokens[..at]);
        let (start, end) = stretch(&tokens[at].text).unwrap_or_default();
        let first = self.run.is_none() && self.spans.is_empty();
        if indent == 0 && first && tokens[0].is("run") {
            return self.run_line(&tokens[1..at], start, end, &tokens[at + 1..]);
        }
        if name.is_empty() {
            return Err("a span without a name".to_owned());
        }
        let end = end.ok_or_else(|| "a span needs an end".to_owned())?;
        self.span(indent, name, start, end, &tokens[at + 1..])
    }

    fn run_line(&mut self, command: &[Token], start: i64, end: Option<i64>, rest: &[Token]) -> Result<(), String> {
        let mut pid = 1;
        let mut rest = rest.iter();
        while let Some(token) = rest.next() {
            match token.text.as_str() {
                "pid" => pid = number(rest.next(), "pid")?,
                other => return Err(format!("`{other}` is not said of a run")),
            }
        }
        self.command = command.iter().map(|token| token.text.clone()).collect();
        self.run = Some((start, end, pid));
        self.above = vec![(0, None)];
        self.processes.push(Process {
            pid,
            parent_pid: None,
            name: self.command.first().cloned().unwrap_or_else(|| "run".to_owned()),
            executable: "".into(),
            arguments: self.command.as_slice().into(),
            start: monotonic(start),
            end: end.map(monotonic),
            execed: true,
            exit: None,
            listens: Vec::new(),
            resource: Resource::default(),
        });
        Ok(())
    }

    fn span(&mut self, indent: usize, name: String, start: i64, end: i64, rest: &[Token]) -> Result<(), String> {
        while self.above.last().is_some_and(|&(above, _)| above >= indent) {
            self.above.pop();
        }
        if indent > 0 && self.above.is_empty() {
            return Err("indented, but nothing above it is indented less".to_owned());
        }
        let above = self.above.last().map(|&(_, span)| span);
        let mut id = self.spans.len() as u64 + 1;
        let (mut parent, mut pid, trace) = match above {
            None => (None, None, trace_id(self.trace.max(1))),
            Some(None) => (Some(span_id(0)), None, trace_id(1)),
            Some(Some(i)) => (Some(self.spans[i].span_id), self.spans[i].pid, self.spans[i].trace_id),
        };
        let mut service = String::new();
        let mut label = None;
        let mut links = Vec::new();
        let (mut kind, mut scope, mut attributes) = (SpanKind::Internal, String::new(), Attributes::default());
        let mut tokens = rest.iter();
        while let Some(token) = tokens.next() {
            match token.text.as_str() {
                "pid" if !token.quoted => {
                    let value = tokens.next();
                    pid = if value.is_some_and(|v| v.is("-")) { None } else { Some(number(value, "pid")?) };
                }
                "id" if !token.quoted => id = number(tokens.next(), "id")?,
                "parent" if !token.quoted => parent = Some(span_id(number(tokens.next(), "parent")?)),
                "kind" if !token.quoted => {
                    let value = tokens.next().map_or("", |token| token.text.as_str());
                    kind = SpanKind::from_name(value).ok_or_else(|| format!("`{value}` is not the kind of a span"))?;
                }
                "scope" if !token.quoted => scope = tokens.next().ok_or("a scope needs a name")?.text.clone(),
                "<-" if !token.quoted => {
                    let rest: Vec<Token> = tokens.by_ref().cloned().collect();
                    links = link_names(&rest);
                }
                text if !token.quoted && text.contains('=') => attribute(text, &mut attributes),
                text if !token.quoted && text.starts_with('@') => label = Some(text[1..].to_owned()),
                text if service.is_empty() => service = text.to_owned(),
                text => return Err(format!("`{text}` is not said of a span")),
            }
        }
        let index = self.spans.len();
        let span_id = span_id(id);
        self.names.insert(name.clone(), (trace, span_id));
        if let Some(label) = label {
            self.names.insert(label, (trace, span_id));
        }
        if !links.is_empty() {
            self.pending_links.push((self.lines, index, links));
        }
        let resource = self.resources.entry((service.clone(), pid)).or_insert_with(|| Arc::new(resource(&service))).clone();
        let scope = self.scopes.entry(scope).or_insert_with_key(|name| Arc::new(Scope { name: name.clone(), ..Scope::default() })).clone();
        self.spans.push(Span {
            parent_span_id: parent,
            flags: 1,
            kind,
            attributes,
            resource,
            scope,
            pid,
            ..Span::new(trace, span_id, name, TimeRange { start: wall(start), end: wall(end) })
        });
        self.above.push((indent, Some(index)));
        Ok(())
    }

    fn process(&mut self, rest: &str) -> Result<(), String> {
        let tokens = tokens(rest)?;
        let at = tokens
            .iter()
            .position(|w| !w.quoted && stretch(&w.text).is_some())
            .ok_or_else(|| "no times such as 2..14ms in this line".to_owned())?;
        let (start, end) = stretch(&tokens[at].text).unwrap_or_default();
        let mut process = Process {
            pid: 0,
            parent_pid: None,
            name: join(&tokens[..at]),
            executable: "".into(),
            arguments: [].into(),
            start: monotonic(start),
            end: end.map(monotonic),
            execed: true,
            exit: None,
            listens: Vec::new(),
            resource: Resource::default(),
        };
        let mut tokens = tokens[at + 1..].iter();
        while let Some(token) = tokens.next() {
            match token.text.as_str() {
                "pid" => process.pid = number(tokens.next(), "pid")?,
                "under" => process.parent_pid = Some(number(tokens.next(), "under")?),
                "forked" => process.execed = false,
                "listens" => {
                    let address = tokens.next().and_then(|token| token.text.parse().ok());
                    process.listens.push(address.ok_or("`listens` needs an address such as 127.0.0.1:80")?);
                }
                other => return Err(format!("`{other}` is not said of a process")),
            }
        }
        if process.pid == 0 {
            return Err("a process needs a pid".to_owned());
        }
        self.processes.push(process);
        Ok(())
    }

    /// `thread worker 0..90ms pid 7 tid 8`.
    fn thread(&mut self, rest: &str) -> Result<(), String> {
        let tokens = tokens(rest)?;
        let at = tokens
            .iter()
            .position(|w| !w.quoted && stretch(&w.text).is_some())
            .ok_or_else(|| "no times such as 2..14ms in this line".to_owned())?;
        let (start, end) = stretch(&tokens[at].text).unwrap_or_default();
        let (of, rest) = of_thread(&tokens[at + 1..])?;
        if let Some(token) = rest.first() {
            return Err(format!("`{}` is not said of a thread", token.text));
        }
        let (start, end) = (monotonic(start), end.map(monotonic));
        self.threads.push(Thread { pid: of.pid, tid: of.tid, name: join(&tokens[..at]), start, end, totals: None, ident: None });
        Ok(())
    }

    /// `cpu 2..20ms pid 7 tid 8 preempted`.
    fn cpu(&mut self, rest: &str) -> Result<(), String> {
        let tokens = tokens(rest)?;
        let (start, end) = whole_stretch(tokens.first())?;
        let (of, rest) = of_thread(&tokens[1..])?;
        let preempted = match rest {
            [] => false,
            [token] if token.is("preempted") => true,
            [token, ..] => return Err(format!("`{}` is not said of a time on a CPU", token.text)),
        };
        self.cpu_slices.push(CpuSlice { pid: of.pid, tid: of.tid, start, end, preempted });
        Ok(())
    }

    /// `current 2..14ms pid 7 tid 8 GET /picture`.
    fn current(&mut self, rest: &str) -> Result<(), String> {
        let tokens = tokens(rest)?;
        let (start, end) = whole_stretch(tokens.first())?;
        let (of, rest) = of_thread(&tokens[1..])?;
        let name = join(rest);
        if name.is_empty() {
            return Err("what is current needs a name, or `-`".to_owned());
        }
        if name != "-" {
            let name = name.strip_prefix('@').unwrap_or(&name).to_owned();
            self.pending_currents.push((self.lines, name, self.current_spans.len()));
        }
        self.current_spans.push(CurrentSpan { pid: of.pid, tid: of.tid, start, end, span: None, is_sent: false });
        Ok(())
    }

    fn sample(&mut self, rest: &str) -> Result<(), String> {
        let mut rest = rest.trim_start();
        let mut take = || {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            rest = tail.trim_start();
            word
        };
        let word = take();
        let time = moment(word).ok_or_else(|| format!("`{word}` is not a moment such as 20ms"))?;
        let (mut repeat, mut weight, mut pid, mut tid, mut context) = (1u64, 1_000_000i64, 1u32, None, None);
        let stack = loop {
            let word = take();
            if word.is_empty() {
                return Err("a sample needs a stack".to_owned());
            } else if word == "pid" || word == "tid" {
                let value = take();
                let value: u32 = value.parse().map_err(|_| format!("`{value}` is not a {word}"))?;
                if word == "pid" {
                    pid = value;
                } else {
                    tid = Some(value);
                }
            } else if word == "every" {
                let value = take();
                weight = moment(value).filter(|w| *w >= 0).ok_or_else(|| format!("`{value}` is not a weight such as 1ms"))?;
            } else if let Some(times) = word.strip_prefix('x').and_then(|t| t.parse::<u64>().ok()) {
                repeat = times;
            } else if word.starts_with('[') {
                let mut text = word.to_owned();
                while !text.ends_with(']') {
                    let more = take();
                    if more.is_empty() {
                        return Err("a bracket is not closed".to_owned());
                    }
                    text.push(' ');
                    text.push_str(more);
                }
                context = Some(text[1..text.len() - 1].to_owned());
            } else {
                break format!("{word} {rest}");
            }
        };
        if repeat > REPEAT_MAX {
            return Err(format!("more than {REPEAT_MAX} samples in one line"));
        }
        let stack = self.stack(stack.trim_end());
        let first = self.samples.len();
        let known = match context.as_deref() {
            None => ContextRecord::Absent,
            Some("~") => ContextRecord::Torn,
            Some(_) => ContextRecord::NoSpan,
        };
        for i in 0..repeat {
            self.samples.push(Sample {
                time: monotonic(time.saturating_add(weight.saturating_mul(i as i64))),
                pid,
                tid: tid.unwrap_or(pid),
                cpu: 0,
                stack,
                weight_nanos: weight as u64,
                context: known,
            });
        }
        if let Some(context) = context.filter(|c| c != "-" && c != "~") {
            self.pending_contexts.push(PendingSample { line: self.lines, context, samples: first..self.samples.len() });
        }
        Ok(())
    }

    /// `wait 10..50ms pid 7 tid 8 lock at 0x7f10 holder 9 [web] main;lock_it`.
    fn wait(&mut self, rest: &str) -> Result<(), String> {
        let (before, context, stack) = match (rest.find('['), rest.find(']')) {
            (Some(open), Some(close)) if open < close => (&rest[..open], Some(rest[open + 1..close].to_owned()), rest[close + 1..].trim()),
            _ => {
                let (before, stack) = rest.trim().rsplit_once(' ').ok_or_else(|| "a wait needs a stack, or `?`".to_owned())?;
                (before, None, stack)
            }
        };
        let mut words = before.split_whitespace();
        let (start, end) = words.next().and_then(stretch).ok_or_else(|| "no times such as 2..14ms in this line".to_owned())?;
        let end = end.ok_or_else(|| "a wait needs an end".to_owned())?;
        let (mut pid, mut tid, mut kind) = (1u32, None, WaitKind::Other);
        let (mut address, mut holder) = (None, None);
        let mut syscall = "";
        while let Some(word) = words.next() {
            if let Some(known) = WaitKind::from_code(word) {
                kind = known;
            } else if word == "in" {
                syscall = words.next().ok_or_else(|| "`in` needs a system call".to_owned())?;
            } else if word == "at" {
                let hex = words.next().and_then(|value| u64::from_str_radix(value.strip_prefix("0x")?, 16).ok());
                address = Some(hex.map(AbsAddr).ok_or_else(|| "`at` needs an address such as 0x7f10".to_owned())?);
            } else if word == "holder" {
                let tid = words.next().and_then(|value| value.parse().ok());
                holder = Some(tid.ok_or_else(|| "`holder` needs a number".to_owned())?);
            } else if word == "pid" || word == "tid" {
                let value: u32 = words.next().and_then(|value| value.parse().ok()).ok_or_else(|| format!("`{word}` needs a number"))?;
                if word == "pid" { pid = value } else { tid = Some(value) }
            } else {
                return Err(format!("`{word}` is not said of a wait"));
            }
        }
        if holder.is_some() && address.is_none() {
            return Err("`holder` needs an `at` before it".to_owned());
        }
        let stack = (stack != "?").then(|| self.stack(stack));
        let published = if context.as_deref() == Some("-") { ContextRecord::NoSpan } else { ContextRecord::Absent };
        self.waits.push(Wait {
            pid,
            tid: tid.unwrap_or(pid),
            start: monotonic(start),
            end: monotonic(end),
            kind,
            syscall: syscall.to_owned(),
            stack,
            context: published,
            futex: address.map(|address| Futex { address, holder }),
        });
        if let Some(context) = context.filter(|c| c != "-") {
            self.pending_waits.push((self.lines, context, self.waits.len() - 1));
        }
        Ok(())
    }

    fn stack(&mut self, text: &str) -> StackId {
        let mut ids = Vec::new();
        for part in text.rsplit(';') {
            let next = LocationId(self.location_list.len() as u32);
            let id = *self.locations.entry(part.to_owned()).or_insert(next);
            if id == next {
                let frames = part.rsplit('|').map(frame).collect();
                let kind = LocationKind::Code { mapping: MappingId(0), address: VirtOffset(u64::from(id.0) + 1) };
                self.location_list.push(Location { id, kind, frames });
            }
            ids.push(id);
        }
        let next = StackId(self.stack_list.len() as u32);
        let id = *self.stacks.entry(ids.clone()).or_insert(next);
        if id == next {
            self.stack_list.push(Stack { id, locations: ids });
        }
        id
    }

    fn finish(mut self) -> Result<Recording, TextError> {
        for (line, index, names) in std::mem::take(&mut self.pending_links) {
            for name in names {
                let Some(&(trace_id, span_id)) = self.names.get(&name) else {
                    return Err(TextError { line, message: format!("no span is called `{name}`") });
                };
                self.spans[index].links.push(SpanLink { trace_id, span_id, attributes: Attributes::default() });
            }
        }
        for pending in std::mem::take(&mut self.pending_contexts) {
            let Some(&(trace_id, span_id)) = self.names.get(&pending.context) else {
                return Err(TextError { line: pending.line, message: format!("no span is called `{}`", pending.context) });
            };
            for sample in &mut self.samples[pending.samples] {
                sample.context = ContextRecord::Span { trace_id, span_id };
            }
        }
        for (line, name, wait) in std::mem::take(&mut self.pending_waits) {
            let Some(&(trace_id, span_id)) = self.names.get(&name) else {
                return Err(TextError { line, message: format!("no span is called `{name}`") });
            };
            self.waits[wait].context = ContextRecord::Span { trace_id, span_id };
        }
        for (line, name, current) in std::mem::take(&mut self.pending_currents) {
            let Some(&id) = self.names.get(&name) else {
                return Err(TextError { line, message: format!("no span is called `{name}`") });
            };
            self.current_spans[current].span = Some(id);
        }
        self.threads.sort_by_key(|t| t.start);
        self.cpu_slices.sort_by_key(|s| s.start);
        self.current_spans.sort_by_key(|c| c.start);
        self.waits.sort_by_key(|w| w.start);
        self.samples.sort_by_key(|s| s.time);
        self.processes.sort_by_key(|p| p.start);
        let seen = self.spans.iter().map(|s| s.end.max(s.start).nanos_since(ORIGIN)).max().unwrap_or(0);
        let (start, end, root_pid) = match self.run {
            Some((start, end, pid)) => (start, end, Some(pid)),
            None => (0, Some(seen.max(0)), None),
        };
        let mappings = match self.location_list.is_empty() {
            true => Vec::new(),
            false => vec![Mapping { id: MappingId(0), path: "program".to_owned(), build_id: Vec::new() }],
        };
        Ok(Recording {
            run: Run {
                command: self.command,
                working_directory: String::new(),
                host: String::new(),
                cpus: 2,
                version: String::new(),
                trace_id: trace_id(1),
                root_span_id: span_id(0),
                root_pid,
                start: wall(start),
                end: end.map(wall),
                exit: end.map(|_| Exit::Code(0)),
                rate_hz: 1000,
                mode: CaptureMode::User { why_not_kernel: String::new() },
                cpu_nanos: None,
                usage: None,
                recorder_cost: None,
            },
            clock: Clock::new(vec![ClockAnchor { monotonic: ORIGIN_MONOTONIC, unix: ORIGIN, bracket_nanos: 0 }]),
            spans: self.spans,
            processes: self.processes,
            threads: self.threads,
            cpu_slices: self.cpu_slices,
            current_spans: self.current_spans,
            process_usage: Vec::new(),
            samples: self.samples,
            sample_links: Vec::new(),
            waits: self.waits,
            wait_links: Vec::new(),
            stacks: self.stack_list,
            locations: self.location_list,
            mappings,
            losses: Vec::new(),
        })
    }
}

/// Whose thread a line is about.
struct OfThread {
    pid: u32,
    tid: u32,
}

/// `pid 7 tid 8` in front of the rest of the line; the process's first thread where no `tid` is, the run's where no `pid` is.
fn of_thread(tokens: &[Token]) -> Result<(OfThread, &[Token]), String> {
    let (mut pid, mut tid, mut rest) = (None, None, tokens);
    loop {
        match rest {
            [token, value @ ..] if token.is("pid") && pid.is_none() => {
                pid = Some(number(value.first(), "pid")?);
                rest = &rest[2..];
            }
            [token, value @ ..] if token.is("tid") && tid.is_none() => {
                tid = Some(number(value.first(), "tid")?);
                rest = &rest[2..];
            }
            _ => break,
        }
    }
    let pid = pid.unwrap_or(1);
    Ok((OfThread { pid, tid: tid.unwrap_or(pid) }, rest))
}

/// Names behind `<-`: separated by commas; a name may have several words.
fn link_names(tokens: &[Token]) -> Vec<String> {
    let mut names = Vec::new();
    let mut name: Vec<String> = Vec::new();
    for token in tokens {
        let (text, last) = match token.text.strip_suffix(',') {
            Some(text) if !token.quoted => (text, true),
            _ => (token.text.as_str(), false),
        };
        if token.quoted && text == "," {
            continue;
        }
        if !text.is_empty() {
            name.push(text.trim_start_matches(|c| c == '@' && !token.quoted).to_owned());
        }
        if last {
            names.push(std::mem::take(&mut name).join(" "));
        }
    }
    names.push(name.join(" "));
    names.retain(|n| !n.is_empty());
    names
}

fn resource(service: &str) -> Resource {
    let mut resource = Resource::default();
    if !service.is_empty() {
        resource.attributes.push("service.name", AttributeValue::Str(service.into()));
    }
    resource
}

/// `key=text`, or `key=[text,text]` for a list.
fn attribute(text: &str, attributes: &mut Attributes) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let value = match value.strip_prefix('[').and_then(|v| v.strip_suffix(']')) {
        Some("") => AttributeValue::Array(ThinVec::new()),
        Some(list) => AttributeValue::Array(list.split(',').map(|item| AttributeValue::Str(item.into())).collect()),
        None => AttributeValue::Str(value.into()),
    };
    attributes.push(key, value);
}

/// `name`, or `name@file:line`.
fn frame(text: &str) -> Frame {
    let plain = |function: &str| Frame { function: function.into(), file: Text::new(), line: 0, reason: None };
    let Some((function, place)) = text.split_once('@') else { return plain(text) };
    match place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => Frame { function: function.into(), file: file.into(), line, reason: None },
        None => Frame { file: place.into(), ..plain(function) },
    }
}
