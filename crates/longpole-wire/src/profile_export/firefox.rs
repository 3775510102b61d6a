//! Code and spans in the Firefox Profiler's processed format, which its page and `profiler-cli` read.
//!
//! Version 61 of the format: newer readers take older versions, and in this one the tables are shared by all threads.
//!
//! ```text
//! "threads":[{"pid":"12","tid":14,"name":"gz-1",
//!    "samples":{"stack":[7,9,9],"time":[20.1,21.1,41.1],"weight":[1.001,20.0,0],"threadCPUDelta":[1001001,0,0], …},
//!    "markers":{"name":[3],"startTime":[20.0],"endTime":[41.5],"data":[{"type":"Span","span_id":"00f0…"}], …}}]
//! "shared":{"stackTable":{"frame":[4],"prefix":[null]},"frameTable":{"func":[2],"line":[12]},"funcTable":{"name":[0]}, …}
//! ```
//!
//! A sample weighs the milliseconds that it stands for. A wait is a sample at its start, which has the weight, and one at its end, so
//! that it is drawn from one to the other; a frame below the function that waits says what for.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use longpole_model::stack::LocationKind;
use longpole_model::time::Timestamp;
use longpole_model::{
    AddNanos, Attribute, Location, LocationId, Loss, MappingId, Monotonic, Runtime, Span, StackId, StatusCode, Wait, WaitKind,
};

use super::tracks::{Moment, Track, Tracks};
use super::{NO_STACK, ProfileExport, Tree, frames, lose, wait_frame};
use crate::attribute_json::write_members;
use crate::json_writer::{Members, push_display, write_list, write_text};
use crate::number::row;

/// Version of the processed format.
const VERSION: u32 = 61;

/// Version of the format that Firefox itself writes; readers look at the one above, and want this one to be there.
const GECKO_VERSION: u32 = 31;

/// Categories of frames, which the page colours; the first grey one is the default. Runtimes have the one of their name, and readers
/// find that of idle threads by its name.
const CATEGORIES: [(&str, &str); 8] = [
    ("Other", "grey"),
    ("User", "yellow"),
    ("Kernel", "orange"),
    ("Python", "green"),
    ("Node", "lightblue"),
    ("JVM", "brown"),
    ("Idle", "transparent"),
    ("Blocked", "blue"),
];
const OTHER: usize = 0;
const USER: usize = 1;
const IDLE: usize = 6;
const BLOCKED: usize = 7;

/// What markers are, and what they hold.
const MARKERS: [(&str, &[(&str, &str)]); 2] = [
    (
        "Span",
        &[
            ("service", "Service"),
            ("trace_id", "Trace id"),
            ("span_id", "Span id"),
            ("parent_span_id", "Parent span id"),
            ("kind", "Kind"),
            ("status", "Status"),
            ("attributes", "Attributes"),
            ("links", "Links"),
        ],
    ),
    ("SpanEvent", &[("span_id", "Span id"), ("attributes", "Attributes")]),
];

/// A marker that lasts, and one that does not.
const PHASE_INSTANT: u8 = 0;
const PHASE_INTERVAL: u8 = 1;

/// A resource that is a library.
const RESOURCE_LIBRARY: u8 = 1;

/// Nodes of the tree of stacks: 4 million, which take a quarter of a gigabyte. Small files can hold more, where stacks differ at the root.
const NODES_MAX: usize = 1 << 22;

/// Writes the file; returns what it has no place for.
///
/// # Errors
///
/// Those of `out`.
pub fn encode(export: &ProfileExport<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let tracks = Tracks::new(export);
    let origin = export.origin();
    let mut tables = SharedTables::default();
    let mut text = String::from("{\"meta\":");
    meta(&mut text, export, origin);
    text.push_str(",\"pages\":[],\"counters\":[],\"threads\":[");
    let slices = slices(export);
    for (number, thread) in threads(export, &tracks, &slices).iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        write_thread(&mut text, export, thread, origin, &mut tables);
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    text.push_str("],\"libs\":");
    tables.write_libs(&mut text, export);
    text.push_str(",\"shared\":");
    tables.write(&mut text);
    text.push('}');
    out.write_all(text.as_bytes())?;

    let mut losses = export.losses();
    lose(&mut losses, tracks.threads_without, "threads without a sample or a sampled wait");
    lose(&mut losses, tables.stacks_left_out, "stacks after the first 4 194 304 nodes of their tree");
    let links = export.samples.iter().filter_map(|sample| export.recording.sample_link(*sample)).filter(|link| link.span.is_some());
    lose(&mut losses, links.count() as u64, "links of samples to spans: a marker and a sample have their thread and time in common");
    Ok(losses)
}

fn meta(out: &mut String, export: &ProfileExport<'_>, origin: Timestamp) {
    let run = &export.recording.run;
    let mut meta = Members::begin(out);
    millis(meta.member("interval"), i64::try_from(export.period_nanos()).unwrap_or(0).max(1));
    millis(meta.member("startTime"), origin.unix_nanos());
    meta.raw("processType", 0);
    meta.raw("stackwalk", 1);
    meta.raw("version", GECKO_VERSION);
    meta.raw("preprocessedProfileVersion", VERSION);
    meta.raw("symbolicated", true);
    meta.raw("usesOnlyOneStackType", true);
    meta.raw("sourceCodeIsNotOnSearchfox", true);
    meta.raw("keepProfileThreadOrder", true);
    let program = run.command.first().map_or("longpole", |program| program.rsplit('/').next().unwrap_or(program));
    meta.text("product", program);
    meta.text("arguments", &run.command.join(" "));
    meta.text("oscpu", "Linux");
    meta.raw("logicalCPUs", run.cpus);
    meta.raw("sampleUnits", r#"{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"}"#);
    meta.raw("extensions", r#"{"length":0,"baseURL":[],"id":[],"name":[]}"#);
    meta.list("categories", CATEGORIES.iter().enumerate(), |out, (number, (name, color))| {
        let mut category = Members::begin(out);
        category.text("name", name);
        category.text("color", color);
        let kinds = if number == BLOCKED { &WaitKind::ALL[..] } else { &[] };
        category.list("subcategories", std::iter::once("Other").chain(kinds.iter().map(|kind| kind.as_str())), write_text);
        category.end();
    });
    meta.list("markerSchema", MARKERS, |out, (name, fields)| {
        let mut schema = Members::begin(out);
        schema.text("name", name);
        for label in ["chartLabel", "tableLabel", "tooltipLabel"] {
            schema.text(label, "{marker.name}");
        }
        schema.raw("display", r#"["marker-chart","marker-table","timeline-overview"]"#);
        schema.list("fields", fields, |out, (key, label)| {
            let mut field = Members::begin(out);
            field.text("key", key);
            field.text("label", label);
            field.text("format", "string");
            field.end();
        });
        schema.end();
    });
    let sections = usize::from(!export.notes.is_empty());
    meta.list("extra", std::iter::repeat_n((), sections), |out, ()| {
        let mut section = Members::begin(out);
        section.text("label", "Missing");
        section.list("entries", &export.notes, |out, note| {
            let mut entry = Members::begin(out);
            entry.text("label", "Loss");
            entry.text("format", "string");
            entry.text("value", note);
            entry.end();
        });
        section.end();
    });
    meta.end();
}

/// Milliseconds with what is left of nanoseconds behind the point.
fn millis(out: &mut String, nanos: i64) {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    push_display(out, format_args!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000));
}

fn nullable(out: &mut String, number: Option<u32>) {
    match number {
        Some(number) => push_display(out, number),
        None => out.push_str("null"),
    }
}

/// A thread of the file: a track, or the spans of a process whose code was not seen.
struct FirefoxThread<'l, 'a> {
    pid: String,
    tid: u32,
    process_name: &'l str,
    name: &'l str,
    is_main: bool,
    track: Option<&'l Track<'a>>,
    spans: Vec<&'a Span>,
    /// When it was on a CPU, by start.
    slices: &'l [(Monotonic, Monotonic)],
}

/// When threads were on a CPU, by pid and tid.
type Slices = HashMap<(u32, u32), Vec<(Monotonic, Monotonic)>>;

fn slices(export: &ProfileExport<'_>) -> Slices {
    let mut slices = Slices::new();
    for slice in &export.recording.cpu_slices {
        slices.entry((slice.pid, slice.tid)).or_default().push((slice.start, slice.end));
    }
    slices
}

/// The slices of a track. Where the kernel used a thread id again, those of the threads before are not its own.
fn slices_of<'l>(slices: &'l Slices, track: &Track<'_>, is_again: bool) -> &'l [(Monotonic, Monotonic)] {
    let all = slices.get(&(track.pid, track.tid)).map_or(&[][..], |slices| slices);
    let before = track.thread.filter(|_| is_again).map_or(0, |thread| all.partition_point(|(_, end)| *end <= thread.start));
    &all[before..]
}

fn threads<'l, 'a>(export: &ProfileExport<'a>, tracks: &'l Tracks<'a>, slices: &'l Slices) -> Vec<FirefoxThread<'l, 'a>>
where
    'a: 'l,
{
    let mut of_pid: HashMap<u32, usize> = HashMap::new();
    let mut seen: HashSet<(u32, u32)> = HashSet::new();
    let mut list = Vec::new();
    for (track, pid) in tracks.list.iter().zip(tracks.process_ids()) {
        // Tracks of a process stand together, its main thread first. Where the kernel used its id again, spans are the last one's.
        let is_first = list.last().is_none_or(|last: &FirefoxThread<'l, 'a>| last.pid != pid);
        if is_first {
            of_pid.insert(track.pid, list.len());
        }
        list.push(FirefoxThread {
            pid,
            tid: track.tid,
            process_name: track.process_name(),
            name: track.thread_name(),
            is_main: track.is_main(),
            track: Some(track),
            spans: Vec::new(),
            slices: slices_of(slices, track, !seen.insert((track.pid, track.tid))),
        });
    }
    let mut of_service: HashMap<(&str, Option<u32>), usize> = HashMap::new();
    for span in &export.recording.spans {
        let known = span.pid.and_then(|pid| of_pid.get(&pid)).copied();
        let number = known.unwrap_or_else(|| {
            let next = list.len();
            let number = *of_service.entry((span.service_name(), span.pid)).or_insert(next);
            if number == next {
                list.push(FirefoxThread {
                    pid: span.pid.map_or_else(|| format!("service-{next}"), |pid| pid.to_string()),
                    tid: span.pid.unwrap_or(0),
                    process_name: span.service_name(),
                    name: span.service_name(),
                    is_main: true,
                    track: None,
                    spans: Vec::new(),
                    slices: &[],
                });
            }
            number
        });
        list[number].spans.push(span);
    }
    list
}

/// A sample of the file.
struct SampleRow {
    time: Monotonic,
    stack: Option<u32>,
    weight_nanos: u64,
    on_cpu_nanos: u64,
}

fn entries<'a>(export: &ProfileExport<'a>, thread: &FirefoxThread<'_, 'a>, tables: &mut SharedTables<'a>) -> Vec<SampleRow> {
    let recording = export.recording;
    let mut entries = Vec::new();
    for moment in thread.track.map_or(&[][..], |track| &track.moments) {
        match moment {
            Moment::Sample(number) => {
                let sample = &recording.samples[*number];
                let stack = tables.stack(export, sample.stack);
                entries.push(SampleRow { time: sample.time, stack, weight_nanos: sample.weight_nanos, on_cpu_nanos: sample.weight_nanos });
            }
            Moment::Wait(number) => {
                let wait = &recording.waits[*number];
                let stack = tables.wait(export, wait, export.is_idle.get(*number).copied().unwrap_or(false));
                entries.push(SampleRow { time: wait.start, stack, weight_nanos: wait.nanos(), on_cpu_nanos: 0 });
                entries.push(SampleRow { time: wait.end, stack, weight_nanos: 0, on_cpu_nanos: 0 });
            }
        }
    }
    entries.sort_by_key(|entry| entry.time);
    // What the switches say is exact; a file without them has the samples alone.
    let mut slices = thread.slices.iter().peekable();
    if slices.peek().is_some() {
        let (mut before, mut done) = (0, 0);
        for entry in &mut entries {
            while let Some((start, end)) = slices.next_if(|(_, end)| *end <= entry.time) {
                done.add_nanos(end.nanos_since(*start));
            }
            let running = slices.peek().map_or(0, |(start, _)| entry.time.nanos_since(*start));
            entry.on_cpu_nanos = done.saturating_add(running).saturating_sub(before);
            before = done.saturating_add(running);
        }
    }
    entries
}

fn write_thread<'a>(
    out: &mut String,
    export: &ProfileExport<'a>,
    thread: &FirefoxThread<'_, 'a>,
    origin: Timestamp,
    tables: &mut SharedTables<'a>,
) {
    let entries = entries(export, thread, tables);
    let since = |at: Timestamp| at.nanos_since(origin);
    let known = |at: Option<Monotonic>| at.map(|at| since(export.time(at)));
    let process = thread.track.and_then(|track| track.process);
    let about = thread.track.and_then(|track| track.thread);
    let mut object = Members::begin(out);
    object.text("processType", "default");
    object.text("processName", thread.process_name);
    object.text("name", thread.name);
    object.raw("isMainThread", thread.is_main);
    object.text("pid", &thread.pid);
    object.raw("tid", thread.tid);
    for (name, start) in [("processStartupTime", process.map(|it| it.start)), ("registerTime", about.map(|it| it.start))] {
        millis(object.member(name), known(start).unwrap_or(0));
    }
    for (name, end) in [("processShutdownTime", process.and_then(|it| it.end)), ("unregisterTime", about.and_then(|it| it.end))] {
        match known(end) {
            Some(end) => millis(object.member(name), end),
            None => object.raw(name, "null"),
        }
    }
    object.raw("pausedRanges", "[]");
    object.raw("showMarkersInTimeline", true);
    let mut samples = Members::begin(object.member("samples"));
    samples.raw("length", entries.len());
    samples.list("stack", &entries, |out, entry| nullable(out, entry.stack));
    samples.list("time", &entries, |out, entry| millis(out, since(export.time(entry.time))));
    samples.list("weight", &entries, |out, entry| millis(out, i64::try_from(entry.weight_nanos).unwrap_or(i64::MAX)));
    samples.text("weightType", "tracing-ms");
    samples.list("threadCPUDelta", &entries, |out, entry| push_display(out, entry.on_cpu_nanos));
    samples.end();
    write_markers(object.member("markers"), &thread.spans, origin, tables);
    object.end();
}

fn write_markers<'a>(out: &mut String, spans: &[&'a Span], origin: Timestamp, tables: &mut SharedTables<'a>) {
    let events = || spans.iter().flat_map(|span| span.events.iter().map(move |event| (span, event)));
    let names = spans.iter().map(|span| &span.name).chain(events().map(|(_, event)| &event.name));
    let names: Vec<u32> = names.map(|name| tables.text(name)).collect();
    let since = |at: Timestamp| at.nanos_since(origin);
    let starts = spans.iter().map(|span| span.start).chain(events().map(|(_, event)| event.time)).map(since);
    let ends = spans.iter().map(|span| Some(since(span.end.max(span.start)))).chain(events().map(|_| None));
    let mut markers = Members::begin(out);
    markers.raw("length", names.len());
    markers.list("name", &names, push_display);
    markers.list("startTime", starts, millis);
    markers.list("endTime", ends, |out, end| match end {
        Some(end) => millis(out, end),
        None => out.push_str("null"),
    });
    let phases = spans.iter().map(|_| PHASE_INTERVAL).chain(events().map(|_| PHASE_INSTANT));
    markers.list("phase", phases, push_display);
    markers.list("category", &names, |out, _| push_display(out, OTHER));
    let data = markers.member("data");
    data.push('[');
    for (number, span) in spans.iter().enumerate() {
        if number > 0 {
            data.push(',');
        }
        write_span(data, span);
    }
    for (span, event) in events() {
        data.push(',');
        let mut object = Members::begin(data);
        object.text("type", MARKERS[1].0);
        object.text("span_id", &span.span_id.to_string());
        object.text("attributes", &as_json(&event.attributes.0));
        object.end();
    }
    data.push(']');
    markers.end();
}

fn write_span(out: &mut String, span: &Span) {
    let mut object = Members::begin(out);
    object.text("type", MARKERS[0].0);
    object.text("service", span.service_name());
    object.text("trace_id", &span.trace_id.to_string());
    object.text("span_id", &span.span_id.to_string());
    if let Some(parent) = span.parent_span_id {
        object.text("parent_span_id", &parent.to_string());
    }
    object.text("kind", span.kind.as_str());
    if span.status.code != StatusCode::Unset {
        object.text("status", format!("{} {}", span.status.code.as_str(), span.status.message).trim_end());
    }
    if !span.attributes.0.is_empty() {
        object.text("attributes", &as_json(&span.attributes.0));
    }
    if !span.links.is_empty() {
        let links: Vec<String> = span.links.iter().map(|link| format!("{} {}", link.trace_id, link.span_id)).collect();
        object.text("links", &links.join(", "));
    }
    object.end();
}

fn as_json(attributes: &[Attribute]) -> String {
    let mut out = String::from("{");
    write_members(&mut out, attributes);
    out.push('}');
    out
}

/// One row of the frame table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameRow {
    /// -1 for none.
    address: i64,
    inline_depth: u32,
    category: usize,
    subcategory: usize,
    function: u32,
    /// 0 for none.
    line: u32,
}

/// The tables that all threads share.
#[derive(Default)]
struct SharedTables<'a> {
    texts: Vec<String>,
    text_numbers: HashMap<String, u32>,
    libs: Vec<MappingId>,
    lib_numbers: HashMap<MappingId, u32>,
    /// Texts with the names of the libraries.
    lib_names: Vec<u32>,
    /// Texts with the paths of files.
    sources: Vec<u32>,
    source_numbers: HashMap<&'a str, u32>,
    /// Name, library, file.
    functions: Vec<(u32, Option<u32>, Option<u32>)>,
    function_numbers: HashMap<(u32, Option<u32>, Option<u32>), u32>,
    frames: Vec<FrameRow>,
    /// Frames of each location, outermost first.
    of_location: HashMap<LocationId, Vec<u32>>,
    of_label: HashMap<(String, usize), u32>,
    tree: Tree,
    of_stack: HashMap<StackId, Option<u32>>,
    /// Stacks behind the most nodes.
    stacks_left_out: u64,
}

impl<'a> SharedTables<'a> {
    fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.text_numbers.get(text) {
            return *number;
        }
        let number = row(self.texts.len());
        self.texts.push(text.to_owned());
        self.text_numbers.insert(text.to_owned(), number);
        number
    }

    fn function(&mut self, name: &str, lib: Option<u32>, file: &'a str) -> u32 {
        let name = self.text(name);
        let source = (!file.is_empty()).then(|| match self.source_numbers.get(file) {
            Some(number) => *number,
            None => {
                let path = self.text(file);
                let number = row(self.sources.len());
                self.sources.push(path);
                self.source_numbers.insert(file, number);
                number
            }
        });
        let next = row(self.functions.len());
        let number = *self.function_numbers.entry((name, lib, source)).or_insert(next);
        if number == next {
            self.functions.push((name, lib, source));
        }
        number
    }

    fn frame(&mut self, frame: FrameRow) -> u32 {
        let number = row(self.frames.len());
        self.frames.push(frame);
        number
    }

    /// The frames of a location, outermost first.
    fn location(&mut self, export: &ProfileExport<'a>, location: &'a Location) -> &[u32] {
        if !self.of_location.contains_key(&location.id) {
            let rows = self.rows(export, location);
            let numbers = rows.into_iter().map(|row| self.frame(row)).collect();
            self.of_location.insert(location.id, numbers);
        }
        &self.of_location[&location.id]
    }

    fn rows(&mut self, export: &ProfileExport<'a>, location: &'a Location) -> Vec<FrameRow> {
        let (lib, address, category) = match &location.kind {
            LocationKind::Code { mapping, address } => {
                (Some(self.lib(export, *mapping)), i64::from(i32::try_from(address.0).unwrap_or(-1)), USER)
            }
            LocationKind::Unmapped { .. } => (None, -1, USER),
            LocationKind::Named { runtime, .. } => (None, -1, category_of(*runtime)),
            LocationKind::Cut { .. } => (None, -1, OTHER),
        };
        let row_of = |function, depth, line| FrameRow { address, inline_depth: depth, category, subcategory: 0, function, line };
        if location.frames.is_empty() {
            let name = frames(location)[0].function.clone();
            return vec![row_of(self.function(&name, lib, ""), 0, 0)];
        }
        let outermost_first = (0u32..).zip(location.frames.iter().rev());
        outermost_first.map(|(depth, frame)| row_of(self.function(&frame.function, lib, &frame.file), depth, frame.line)).collect()
    }

    fn lib(&mut self, export: &ProfileExport<'a>, mapping: MappingId) -> u32 {
        let next = row(self.libs.len());
        let number = *self.lib_numbers.entry(mapping).or_insert(next);
        if number == next {
            let path = export.recording.mappings.get(mapping.0 as usize).map_or("", |mapping| mapping.path.as_str());
            let name = self.text(path.rsplit('/').next().unwrap_or(path));
            self.lib_names.push(name);
            self.libs.push(mapping);
        }
        number
    }

    /// A frame that is no code.
    fn label(&mut self, name: &str, category: usize, subcategory: usize) -> u32 {
        if let Some(number) = self.of_label.get(&(name.to_owned(), category)) {
            return *number;
        }
        let function = self.function(name, None, "");
        let number = self.frame(FrameRow { address: -1, inline_depth: 0, category, subcategory, function, line: 0 });
        self.of_label.insert((name.to_owned(), category), number);
        number
    }

    fn frames_of(&mut self, export: &ProfileExport<'a>, stack: StackId) -> Vec<u32> {
        let mut numbers = Vec::new();
        for location in export.stack(stack).rev() {
            numbers.extend_from_slice(self.location(export, location));
        }
        numbers
    }

    fn stack(&mut self, export: &ProfileExport<'a>, stack: StackId) -> Option<u32> {
        if let Some(node) = self.of_stack.get(&stack) {
            return *node;
        }
        let node = if self.tree.nodes.len() < NODES_MAX {
            let frames = self.frames_of(export, stack);
            self.tree.node(frames)
        } else {
            self.stacks_left_out += 1;
            None
        };
        self.of_stack.insert(stack, node);
        node
    }

    fn wait(&mut self, export: &ProfileExport<'a>, wait: &Wait, is_idle: bool) -> Option<u32> {
        let (category, subcategory) = if is_idle { (IDLE, 0) } else { (BLOCKED, wait.kind as usize + 1) };
        let at = match wait.stack {
            Some(stack) => self.stack(export, stack),
            None => {
                let unseen = self.label(NO_STACK, OTHER, 0);
                Some(self.tree.child(None, unseen))
            }
        };
        let label = self.label(&wait_frame(wait), category, subcategory);
        Some(self.tree.child(at, label))
    }

    fn write_libs(&self, out: &mut String, export: &ProfileExport<'_>) {
        let mappings = self.libs.iter().map(|mapping| export.recording.mappings.get(mapping.0 as usize));
        write_list(out, mappings, |out, mapping| {
            let (path, build_id) = mapping.map_or(("", &[][..]), |mapping| (mapping.path.as_str(), &mapping.build_id));
            let name = path.rsplit('/').next().unwrap_or(path);
            let mut lib = Members::begin(out);
            for (key, value) in [("name", name), ("path", path), ("debugName", name), ("debugPath", path), ("arch", "")] {
                lib.text(key, value);
            }
            lib.text("breakpadId", &breakpad_id(build_id));
            if build_id.is_empty() {
                lib.raw("codeId", "null")
            } else {
                lib.text("codeId", &hex(build_id))
            }
            lib.end();
        });
    }

    fn write(&self, out: &mut String) {
        let nothing = |out: &mut String, _: usize| out.push_str("null");
        let mut shared = Members::begin(out);
        shared.list("stringArray", &self.texts, |out, text| write_text(out, text));

        let nodes = &self.tree.nodes;
        let mut table = Members::begin(shared.member("stackTable"));
        table.raw("length", nodes.len());
        table.list("frame", nodes, |out, (_, frame)| push_display(out, frame));
        table.list("prefix", nodes, |out, (prefix, _)| nullable(out, *prefix));
        table.end();

        let mut table = Members::begin(shared.member("frameTable"));
        table.raw("length", self.frames.len());
        table.list("address", &self.frames, |out, row| push_display(out, row.address));
        table.list("inlineDepth", &self.frames, |out, row| push_display(out, row.inline_depth));
        table.list("category", &self.frames, |out, row| push_display(out, row.category));
        table.list("subcategory", &self.frames, |out, row| push_display(out, row.subcategory));
        table.list("func", &self.frames, |out, row| push_display(out, row.function));
        table.list("line", &self.frames, |out, row| nullable(out, (row.line > 0).then_some(row.line)));
        table.list("column", 0..self.frames.len(), nothing);
        table.list("nativeSymbol", 0..self.frames.len(), nothing);
        table.list("innerWindowID", 0..self.frames.len(), |out, _| out.push('0'));
        table.end();

        let functions = &self.functions;
        let mut table = Members::begin(shared.member("funcTable"));
        table.raw("length", functions.len());
        table.list("name", functions, |out, (name, _, _)| push_display(out, name));
        table.list("isJS", functions, |out, _| out.push_str("false"));
        table.list("relevantForJS", functions, |out, _| out.push_str("false"));
        table.list("resource", functions, |out, (_, lib, _)| push_display(out, lib.map_or(-1, i64::from)));
        table.list("source", functions, |out, (_, _, source)| nullable(out, *source));
        table.list("lineNumber", 0..functions.len(), nothing);
        table.list("columnNumber", 0..functions.len(), nothing);
        table.end();

        // A resource for each library, of the same number.
        let mut table = Members::begin(shared.member("resourceTable"));
        table.raw("length", self.libs.len());
        table.list("lib", 0..self.libs.len(), push_display);
        table.list("name", &self.lib_names, push_display);
        table.list("host", 0..self.libs.len(), nothing);
        table.list("type", 0..self.libs.len(), |out, _| push_display(out, RESOURCE_LIBRARY));
        table.end();

        shared.raw("nativeSymbols", r#"{"length":0,"libIndex":[],"address":[],"name":[],"functionSize":[]}"#);

        let mut table = Members::begin(shared.member("sources"));
        table.raw("length", self.sources.len());
        table.list("id", 0..self.sources.len(), nothing);
        table.list("filename", &self.sources, push_display);
        table.list("startLine", 0..self.sources.len(), |out, _| out.push('1'));
        table.list("startColumn", 0..self.sources.len(), |out, _| out.push('1'));
        table.list("sourceMapURL", 0..self.sources.len(), nothing);
        table.end();
        shared.end();
    }
}

fn category_of(runtime: Runtime) -> usize {
    let of_its_name = CATEGORIES.iter().position(|(category, _)| category.eq_ignore_ascii_case(runtime.as_str()));
    of_its_name.filter(|category| *category != OTHER).unwrap_or(USER)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What symbol servers call a binary: a GUID of the first 16 bytes, whose first three parts are little-endian, and an age of 0.
fn breakpad_id(build_id: &[u8]) -> String {
    if build_id.is_empty() {
        return String::new();
    }
    let mut guid = [0; 16];
    guid.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    format!("{}0", hex(&guid).to_uppercase())
}
