//! Functions with their lines and their share of samples.

use longpole_analysis::code::functions::{FunctionWeight, LineWeight};
use longpole_analysis::code::origin::CodeOrigin;
use longpole_analysis::report::CutWait;
use longpole_analysis::{Handle, Report};
use longpole_model::{FunctionId, Runtime, SampleId, SumNanos};
use serde::{Deserialize, Serialize};

use super::shared::nanos;

/// Functions named for a pole.
pub(super) const POLE_FRAMES_MAX: usize = 5;

/// Lines named for a function in a list.
const LINES_NAMED_MAX: usize = 3;

/// A function with its share of some samples. Lists of these omit functions that only start the program or a thread and call it, and
/// the loops of interpreters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TopFrameView {
    /// Handle, such as `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file; empty where unknown.
    pub file: String,
    /// Source line with the most time in what the list describes; 0 where unknown.
    pub line: u32,
    /// What runs the function; null for code of a binary of the process.
    pub runtime: Option<RuntimeView>,
    /// Whose code it is.
    pub whose: WhoseView,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Time in it and in what it called.
    pub total_nanos: i64,
    /// Samples that contain it.
    pub samples: u64,
    /// Its lines with the most time in what the list describes, at most three.
    pub lines: Vec<LineView>,
}

/// What runs a function that no binary of the process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeView {
    /// CPython.
    Python,
    /// Node.js, or another program around V8.
    Node,
    /// A Java virtual machine.
    Jvm,
    /// Another program that compiles code while it runs.
    Other,
    /// The kernel, below the functions that called it.
    Kernel,
}

/// Whose code a function is, as far as its name, its source file and its binary tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoseView {
    /// The program's own, and code about which nothing is known.
    Program,
    /// A library's.
    Library,
    /// The language's standard library and runtime.
    Language,
    /// An interpreter's.
    Interpreter,
    /// The system's: the C library, the linker.
    System,
    /// The kernel's.
    Kernel,
}

/// Time on one line of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineView {
    /// The line.
    pub line: u32,
    /// Time on CPUs there and in what it called from there.
    pub total_nanos: i64,
    /// Time on CPUs on the line itself.
    pub self_nanos: i64,
    /// Waits there and in what it called from there.
    pub waited_nanos: i64,
}

impl LineView {
    pub(super) fn new(weight: &LineWeight) -> Self {
        LineView {
            line: weight.line,
            total_nanos: nanos(weight.total.0),
            self_nanos: nanos(weight.self_time.0),
            waited_nanos: nanos(weight.waited.0),
        }
    }
}

/// Functions, with their lines in these samples and waits.
pub(super) fn top_frames(report: &Report, functions: &[FunctionWeight], samples: &[SampleId], waits: &[CutWait]) -> Vec<TopFrameView> {
    let ids: Vec<FunctionId> = functions.iter().map(|weighed| weighed.function).collect();
    let lines = report.lines(&ids, samples, waits);
    functions
        .iter()
        .zip(lines)
        .map(|(weighed, lines)| {
            let function = &report.functions().list[weighed.function];
            TopFrameView {
                handle: Handle::Function(weighed.function).to_string(),
                function: function.function.clone(),
                file: function.file.clone(),
                line: lines.first().map_or(function.line, |most| most.line),
                runtime: function.runtime.map(RuntimeView::from),
                whose: function.whose.into(),
                self_nanos: nanos(weighed.weight.self_time.0),
                total_nanos: nanos(weighed.weight.total.0),
                samples: weighed.weight.samples,
                lines: lines.iter().take(LINES_NAMED_MAX).map(LineView::new).collect(),
            }
        })
        .collect()
}

/// What samples stand for.
pub(super) fn weight(report: &Report, samples: &[SampleId]) -> i64 {
    nanos(samples.iter().map(|&sample| report.recording().samples[sample].weight_nanos).sum_nanos())
}

impl From<Runtime> for RuntimeView {
    fn from(it: Runtime) -> Self {
        match it {
            Runtime::Python => RuntimeView::Python,
            Runtime::Node => RuntimeView::Node,
            Runtime::Jvm => RuntimeView::Jvm,
            Runtime::Other => RuntimeView::Other,
            Runtime::Kernel => RuntimeView::Kernel,
        }
    }
}

impl From<CodeOrigin> for WhoseView {
    fn from(it: CodeOrigin) -> Self {
        match it {
            CodeOrigin::Program => WhoseView::Program,
            CodeOrigin::Library => WhoseView::Library,
            CodeOrigin::Language => WhoseView::Language,
            CodeOrigin::Interpreter => WhoseView::Interpreter,
            CodeOrigin::System => WhoseView::System,
            CodeOrigin::Kernel => WhoseView::Kernel,
        }
    }
}
