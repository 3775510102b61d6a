//! The source of a function: the lines around those with time, each with what lies on it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use longpole_analysis::call_tree::LineWeight;
use longpole_analysis::{Handle, Report};
use longpole_model::stack::LocationKind;
use serde::Serialize;

use super::build::nanos;
use crate::source_file;

/// Lines with time that are shown, those with the most first: what has less is in the sum only.
const HOT_LINES_MAX: usize = 60;

/// Lines shown before and after each.
const CONTEXT_LINES: u32 = 2;

/// Characters of a line: generated code has very long ones.
const LINE_CHARS_MAX: usize = 400;

/// The source of a function.
#[derive(Debug, Clone, Serialize)]
pub struct SourceView {
    /// `r7`.
    pub recording: String,
    /// `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file as the program names it, empty where it names none.
    pub file: String,
    /// Where it was found.
    pub path: Option<String>,
    /// `read`; `changed` (read, and changed since: its lines may be others); `missing` (it is not on this machine); `unknown` (the
    /// program does not say its lines).
    pub state: &'static str,
    /// Why it is not simply read, for people.
    pub detail: Option<String>,
    /// Time on CPUs in the function and in what it calls.
    pub total_nanos: i64,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Waits in it and in what it calls, of all threads together.
    pub waited_nanos: i64,
    /// Lines with time and those around them, by number.
    pub lines: Vec<SourceLineView>,
    /// Lines with time that are left out: those with the least.
    pub truncated: usize,
}

/// A line of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLineView {
    /// Its number, from 1.
    pub line: u32,
    /// Its text; null where the file is not there, or ends before it.
    pub text: Option<String>,
    /// Time on CPUs there, and in what is called from there.
    pub total_nanos: i64,
    /// Time on CPUs there itself.
    pub self_nanos: i64,
    /// Waits there, and in what is called from there.
    pub waited_nanos: i64,
}

/// What was found of a source.
struct Found {
    path: Option<PathBuf>,
    state: &'static str,
    detail: Option<String>,
    lines: Vec<String>,
}

impl Found {
    fn nothing(state: &'static str, detail: String) -> Found {
        Found { path: None, state, detail: Some(detail), lines: Vec::new() }
    }
}

impl SourceView {
    /// The source of the function of this handle; `None` where there is none. Reads the file.
    pub fn new(recording: impl Display, report: &Report, handle: &str) -> Option<Self> {
        let Handle::Function(index) = handle.parse().ok()? else { return None };
        let function = report.functions().list.get(index)?;
        let found = find(report, index);
        let mut hot = report.lines_of(index);
        let waited = report.nodes_with(index).waited_nanos;
        let truncated = hot.len().saturating_sub(HOT_LINES_MAX);
        hot.truncate(HOT_LINES_MAX);
        Some(SourceView {
            recording: recording.to_string(),
            handle: handle.to_owned(),
            function: function.function.clone(),
            file: function.file.clone(),
            path: found.path.map(|path| path.display().to_string()),
            state: found.state,
            detail: found.detail,
            total_nanos: nanos(function.weight.total_nanos),
            self_nanos: nanos(function.weight.self_nanos),
            waited_nanos: nanos(waited),
            lines: around(&hot, &found.lines),
            truncated,
        })
    }
}

/// The lines with time and those around them; without a text those with time alone.
fn around(hot: &[LineWeight], text: &[String]) -> Vec<SourceLineView> {
    let mut lines: BTreeMap<u32, LineWeight> = BTreeMap::new();
    if !text.is_empty() {
        let last = u32::try_from(text.len()).unwrap_or(u32::MAX);
        for it in hot.iter().filter(|it| it.line <= last) {
            for line in it.line.saturating_sub(CONTEXT_LINES).max(1)..=it.line.saturating_add(CONTEXT_LINES).min(last) {
                lines.entry(line).or_insert(LineWeight { line, ..LineWeight::default() });
            }
        }
    }
    lines.extend(hot.iter().map(|it| (it.line, *it)));
    let view = |it: LineWeight| SourceLineView {
        line: it.line,
        text: text.get(it.line as usize - 1).map(|text| text.chars().take(LINE_CHARS_MAX).collect()),
        total_nanos: nanos(it.total_nanos),
        self_nanos: nanos(it.self_nanos),
        waited_nanos: nanos(it.waited_nanos),
    };
    lines.into_values().filter(|it| it.line > 0).map(view).collect()
}

fn find(report: &Report, index: usize) -> Found {
    let (recording, function) = (report.recording(), &report.functions().list[index]);
    let file = function.file.as_str();
    if file.is_empty() {
        let why = "the program does not say which lines its code is of: build it with debug information (`-g`; for Rust, \
                   `debug = \"line-tables-only\"` in its profile)";
        return Found::nothing("unknown", function.reason.clone().map_or_else(|| why.to_owned(), |reason| format!("{reason}; {why}")));
    }
    if file == "<string>" {
        let texts = program_texts(report);
        return match &texts[..] {
            [text] => Found {
                path: None,
                state: "read",
                detail: Some("the text that stood behind `-c`".to_owned()),
                lines: text.lines().map(str::to_owned).collect(),
            },
            _ => Found::nothing("missing", "the program was given as text, and which is not known".to_owned()),
        };
    }
    if file.starts_with('<') || file.starts_with("node:") {
        return Found::nothing("missing", format!("`{file}` is part of the interpreter, and no file"));
    }
    let path = Path::new(file);
    let folder = Path::new(&recording.run.working_directory);
    let candidates = if path.is_absolute() { vec![path.to_owned()] } else { vec![folder.join(path), path.to_owned()] };
    let source = match source_file::read(&candidates) {
        Ok(source) => source,
        Err(why) => return Found::nothing("missing", missing_words(report, file, &why)),
    };
    let recorded = UNIX_EPOCH + Duration::from_nanos(u64::try_from(recording.run.start.unix_nanos()).unwrap_or(0));
    let built = binary_of(report, index).and_then(|binary| source_file::changed(Path::new(&binary)));
    let detail = match source.changed {
        Some(changed) if changed > recorded => Some("it was changed since the recording: times may stand on other lines".to_owned()),
        Some(changed) if built.is_some_and(|built| changed > built) => {
            Some("it was changed after the program was built: times may stand on other lines".to_owned())
        }
        _ => None,
    };
    Found { path: Some(source.path), state: if detail.is_some() { "changed" } else { "read" }, detail, lines: source.lines }
}

fn missing_words(report: &Report, file: &str, why: &str) -> String {
    let host = report.recording().run.host.as_str();
    if file.starts_with("/rustc/") {
        "it is of Rust's standard library, whose source was where that was built".to_owned()
    } else if !why.is_empty() {
        format!("it could not be read: {why}")
    } else if host.is_empty() {
        "there is no such file on this machine".to_owned()
    } else {
        format!("there is no such file on this machine; it was recorded on {host}")
    }
}

/// Different texts that processes of the recording were given as their program: `python3 -c TEXT`.
fn program_texts(report: &Report) -> Vec<String> {
    let text = |arguments: &[String]| {
        let at = arguments.iter().position(|word| word == "-c")?;
        arguments.get(at + 1).cloned()
    };
    let mut texts: Vec<String> = report.recording().processes.iter().filter_map(|process| text(&process.arguments)).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// The binary that a function is in.
fn binary_of(report: &Report, index: usize) -> Option<String> {
    let recording = report.recording();
    let (function, list) = (&report.functions().list[index], &recording.locations);
    let is_of = |frame: &longpole_model::Frame| frame.function == function.function && frame.file == function.file;
    let location = list.iter().find(|location| location.frames.iter().any(is_of))?;
    let LocationKind::Code { mapping, .. } = &location.kind else { return None };
    recording.mappings.get(mapping.0 as usize).map(|mapping| mapping.path.clone())
}
