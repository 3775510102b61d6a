//! Functions with their lines and their share of samples.

use longpole_analysis::code::functions::{FunctionWeight, LineWeight};
use longpole_analysis::{Handle, Report};
use longpole_model::{Runtime, SumNanos};
use serde::Serialize;

use super::shared::nanos;

/// Functions named for a pole.
pub(super) const POLE_FRAMES_MAX: usize = 5;

/// Lines named for a function in a list.
const LINES_NAMED_MAX: usize = 3;

/// A function with its share of some samples.
#[derive(Debug, Clone, Serialize)]
pub struct TopFrameView {
    /// `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file, empty where unknown.
    pub file: String,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// What runs it, where no binary of the process holds it: `python`, `node`, `jvm`, `other`, `kernel`.
    pub runtime: Option<&'static str>,
    /// Whose code it is: `program`, `library`, `language`, `interpreter`, `system`, `kernel`.
    pub whose: &'static str,
    /// Time in the function itself.
    pub self_nanos: i64,
    /// Time in it and what it called.
    pub total_nanos: i64,
    /// Samples that contain it.
    pub samples: u64,
    /// The lines of it with the most time here, at most three.
    pub lines: Vec<LineView>,
}

/// What lies on a line of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LineView {
    /// The line.
    pub line: u32,
    /// Time on CPUs there, and in what it called from there.
    pub total_nanos: i64,
    /// Time on CPUs there itself.
    pub self_nanos: i64,
    /// Waits there, and in what it called from there.
    pub waited_nanos: i64,
}

impl LineView {
    pub(super) fn new(weight: &LineWeight) -> Self {
        LineView {
            line: weight.line,
            total_nanos: nanos(weight.total_nanos),
            self_nanos: nanos(weight.self_nanos),
            waited_nanos: nanos(weight.waited_nanos),
        }
    }
}

/// Functions, with their lines in these samples and waits.
pub(super) fn top_frames(report: &Report, functions: &[FunctionWeight], samples: &[u32], waits: &[u32]) -> Vec<TopFrameView> {
    let places: Vec<usize> = functions.iter().map(|weighed| weighed.function).collect();
    let lines = report.lines(&places, samples, waits);
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
                runtime: function.runtime.map(Runtime::as_str),
                whose: function.whose.as_str(),
                self_nanos: nanos(weighed.weight.self_nanos),
                total_nanos: nanos(weighed.weight.total_nanos),
                samples: weighed.weight.samples,
                lines: lines.iter().take(LINES_NAMED_MAX).map(LineView::new).collect(),
            }
        })
        .collect()
}

/// What samples stand for.
pub(super) fn weight(report: &Report, samples: &[u32]) -> i64 {
    nanos(samples.iter().map(|&sample| report.recording().samples[sample as usize].weight_nanos).sum_nanos())
}
