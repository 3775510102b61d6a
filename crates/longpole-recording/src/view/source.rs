//! The source of a function: the lines around those with time, each with what lies on it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use longpole_analysis::code::functions::LineWeight;
use longpole_analysis::{Handle, Report};
use longpole_model::stack::LocationKind;
use serde::Serialize;

use super::shared::nanos;
use crate::source_file::{self, SourceAccess, Unread};
use longpole_model::FunctionId;

/// Lines with time that are shown, those with the most first: what has less is in the sum only.
const HOT_LINES_MAX: usize = 60;

/// Lines shown before and after each.
const CONTEXT_LINES: u32 = 2;

/// Characters of a line: generated code has very long ones.
const LINE_CHARS_MAX: usize = 400;

/// The source of a function: its lines with time (the 60 with the most), and two lines before and after each, by number.
///
/// longpole reads, from a recording that this store's recorder made on this machine, any file that it names. From any other recording
/// (a file, an import, another machine) it reads files below the working directory of `frame` or `open`, but no hidden ones (a part of
/// the path below it begins with a dot) and none with a second hard link, and files below a folder that `--allow-source DIR` names. It
/// resolves links and `..` first. In every case it reads only regular files of at most 16 MiB, in at most 3 s, and nothing below
/// `/proc`, `/sys` and `/dev`. The store notes beside an imported recording that it was imported (`recordings/r7/imported`), not in
/// it: no file can claim that it was made here.
#[derive(Debug, Clone, Serialize)]
pub struct SourceView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Handle, such as `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file as the program names it; empty where it names none. The text of a program given as text (`python3 -c`) comes from
    /// its arguments.
    pub file: String,
    /// Where longpole found it.
    pub path: Option<String>,
    /// Whether longpole read the text.
    pub state: SourceStateView,
    /// For people: why the text is missing, or may differ from what ran.
    pub detail: Option<String>,
    /// Time on CPUs in the function and in what it calls.
    pub total_nanos: i64,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Waits in it and in what it calls, summed over all threads.
    pub waited_nanos: i64,
    /// Lines with time and those around them, by number.
    pub lines: Vec<SourceLineView>,
    /// How many lines with time the list omits: those with the least.
    pub truncated: usize,
}

/// Whether longpole read the text of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStateView {
    /// Read.
    Read,
    /// Read, but the file changed after the recording began or after the program was built: times may belong to other lines.
    Changed,
    /// The file is not on this machine.
    Missing,
    /// longpole refuses to read it.
    Refused,
    /// The caller did not request the text (`frame --source --format json` without `--source-text`): lines have numbers only.
    LeftOut,
    /// The program does not name its lines.
    Unknown,
}

/// A line of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLineView {
    /// Its number, from 1.
    pub line: u32,
    /// Its text; null where the file is missing, or ends before it.
    pub text: Option<String>,
    /// Time on CPUs there and in what it calls from there.
    pub total_nanos: i64,
    /// Time on CPUs on the line itself.
    pub self_nanos: i64,
    /// Waits there and in what it calls from there.
    pub waited_nanos: i64,
}

/// What was found of a source.
struct SourceText {
    path: Option<PathBuf>,
    state: SourceStateView,
    detail: Option<String>,
    lines: Vec<String>,
}

impl SourceText {
    fn nothing(state: SourceStateView, detail: String) -> SourceText {
        SourceText { path: None, state, detail: Some(detail), lines: Vec::new() }
    }
}

impl SourceView {
    /// The source of the function of this handle; `None` where there is none. Reads the file, as far as it may be read; without access
    /// there are numbers only.
    pub fn new(recording: impl Display, report: &Report, handle: &str, access: Option<&SourceAccess>) -> Option<Self> {
        let Handle::Function(id) = handle.parse().ok()? else { return None };
        let function = report.functions().list.get(id)?;
        let found = match access {
            Some(access) => find(report, id, access),
            None => SourceText::nothing(SourceStateView::LeftOut, "the request leaves out the text of its lines".to_owned()),
        };
        let mut hot = report.lines_of(id);
        let waited = report.nodes_with(id).waited;
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
            total_nanos: nanos(function.weight.total.0),
            self_nanos: nanos(function.weight.self_time.0),
            waited_nanos: nanos(waited.0),
            lines: around(&hot, &function.function, &found.lines),
            truncated,
        })
    }
}

/// How far above its first line with time the head of a function is looked for.
const HEAD_LINES_MAX: usize = 400;

/// Words that stand before a call, and before no definition.
const OF_CALLS: [&str; 9] = ["return", "await", "yield", "new", "throw", "in", "not", "and", "or"];

/// The line on which a function of this name begins, above one of its lines: the nearest that stands further out and says a word (`def`,
/// `fn`, a type) and the name. `None` where there is none, as for closures and generated code.
fn head(function: &str, first: u32, text: &[String]) -> Option<u32> {
    let name = function.rsplit("::").next()?.split(['<', '(']).next()?.rsplit(['.', ' ']).next().filter(|name| !name.is_empty())?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let defines = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let (before, behind) = (&line[..at], &line[at + name.len()..]);
            let word = before.trim_end().rsplit(|c| !is_word(c)).next().unwrap_or_default();
            !before.ends_with(is_word) && !behind.starts_with(is_word) && !word.is_empty() && !OF_CALLS.contains(&word)
        })
    };
    let depth = |line: &str| line.len() - line.trim_start().len();
    let first = (first as usize).checked_sub(1)?;
    let inside = depth(text.get(first)?);
    let mut above = text[..first].iter().enumerate().rev().take(HEAD_LINES_MAX);
    above.find(|(_, line)| depth(line) < inside && defines(line)).and_then(|(at, _)| u32::try_from(at + 1).ok())
}

/// The head of the function, the lines with time and those around them; without a text those with time alone.
fn around(hot: &[LineWeight], function: &str, text: &[String]) -> Vec<SourceLineView> {
    let mut lines: BTreeMap<u32, LineWeight> = BTreeMap::new();
    if !text.is_empty() {
        let first = hot.iter().map(|it| it.line).filter(|line| *line > 0).min();
        if let Some(line) = first.and_then(|first| head(function, first, text)) {
            lines.insert(line, LineWeight { line, ..LineWeight::default() });
        }
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
        total_nanos: nanos(it.total.0),
        self_nanos: nanos(it.self_time.0),
        waited_nanos: nanos(it.waited.0),
    };
    lines.into_values().filter(|it| it.line > 0).map(view).collect()
}

fn find(report: &Report, id: FunctionId, access: &SourceAccess) -> SourceText {
    let (recording, function) = (report.recording(), &report.functions().list[id]);
    let file = function.file.as_str();
    if file.is_empty() {
        let why = "the program has no line tables: build it with debug information (`-g`; for Rust, `debug = \"line-tables-only\"` in its \
                   profile)";
        return SourceText::nothing(
            SourceStateView::Unknown,
            function.reason.clone().map_or_else(|| why.to_owned(), |reason| format!("{reason}; {why}")),
        );
    }
    if file == "<string>" {
        let texts = program_texts(report);
        return match &texts[..] {
            [text] => SourceText {
                path: None,
                state: SourceStateView::Read,
                detail: Some("the program text after `-c`".to_owned()),
                lines: text.lines().map(str::to_owned).collect(),
            },
            _ => SourceText::nothing(
                SourceStateView::Missing,
                "the code came from a `-c` argument, and the recording does not show which one".to_owned(),
            ),
        };
    }
    if file.starts_with('<') || file.starts_with("node:") {
        return SourceText::nothing(SourceStateView::Missing, format!("`{file}` is part of the interpreter, not a file"));
    }
    let path = Path::new(file);
    let folder = Path::new(&recording.run.working_directory);
    let candidates = if path.is_absolute() { vec![path.to_owned()] } else { vec![folder.join(path), path.to_owned()] };
    let binary = binary_of(report, id).map(PathBuf::from);
    let source = match source_file::read(candidates, binary, access) {
        Ok(source) => source,
        Err(Unread::Missing(why)) => return SourceText::nothing(SourceStateView::Missing, missing_words(report, file, &why)),
        Err(Unread::Refused(why)) => return SourceText::nothing(SourceStateView::Refused, why),
    };
    let recorded = UNIX_EPOCH + Duration::from_nanos(u64::try_from(recording.run.start.unix_nanos()).unwrap_or(0));
    let detail = match source.changed {
        Some(changed) if changed > recorded => Some("it changed after the recording: times may appear on the wrong lines".to_owned()),
        Some(changed) if source.binary_changed.is_some_and(|built| changed > built) => {
            Some("it changed after the program was built: times may appear on the wrong lines".to_owned())
        }
        _ => None,
    };
    SourceText {
        path: Some(source.path),
        state: if detail.is_some() { SourceStateView::Changed } else { SourceStateView::Read },
        detail,
        lines: source.lines,
    }
}

fn missing_words(report: &Report, file: &str, why: &str) -> String {
    let host = report.recording().run.host.as_str();
    if file.starts_with("/rustc/") {
        "it belongs to Rust's standard library, whose source is on the machine that built it".to_owned()
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
fn binary_of(report: &Report, id: FunctionId) -> Option<String> {
    let recording = report.recording();
    let (function, list) = (&report.functions().list[id], &recording.locations);
    let is_of = |frame: &longpole_model::Frame| frame.function == function.function && frame.file == function.file;
    let location = list.iter().find(|location| location.frames.iter().any(is_of))?;
    let LocationKind::Code { mapping, .. } = &location.kind else { return None };
    recording.mapping(*mapping).map(|mapping| mapping.path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(function: &str, first: u32, text: &str) -> Option<u32> {
        head(function, first, &text.lines().map(str::to_owned).collect::<Vec<String>>())
    }

    #[test]
    fn the_head_of_a_function_is_found_in_several_languages() {
        let python = "import time\n\ndef nap(s):\n    time.sleep(s)\n\ndef work(n):\n    for i in range(n):\n        nap(i)\n";
        assert_eq!(head_of("work", 8, python), Some(6));
        assert_eq!(head_of("Worker.nap", 4, python), Some(3));
        let rust = "impl Bundle {\n    pub fn pack(&self) -> Size {\n        self.pack_all();\n        pack(2)\n    }\n}\n";
        assert_eq!(head_of("<shop::Bundle as Pack>::pack", 4, rust), Some(2));
        assert_eq!(head_of("shop::Bundle::pack::{{closure}}", 4, rust), None);
        let c = "static int other(void)\n{\n\treturn work(1);\n}\n\nint work(int n)\n{\n\twhile (n--)\n\t\tspin();\n}\n";
        assert_eq!(head_of("work", 9, c), Some(6));
        assert_eq!(head_of("spin", 9, c), None);
    }

    #[test]
    fn a_line_that_the_file_does_not_have_has_no_head() {
        assert_eq!(head_of("work", 0, "def work():\n"), None);
        assert_eq!(head_of("work", 9, "def work():\n"), None);
        assert_eq!(head_of("", 1, "def work():\n"), None);
    }
}
