//! A flame graph.

use std::fmt::Display;

use longpole_analysis::report::{Flame, FlameTime};
use longpole_analysis::{Handle, Report};
use longpole_model::Runtime;
use serde::Serialize;

use super::select::{Chosen, SameNameView, roots_of, same_name};
use super::shared::{LinksView, nanos};

/// A flame graph.
#[derive(Debug, Clone, Serialize)]
pub struct FlameView {
    /// `r7`.
    pub recording: String,
    /// Handle of the span; null for the whole run, and where spans are meant by name or trace.
    pub span: Option<String>,
    /// Name of the spans, where they were asked for by it.
    pub name: Option<String>,
    /// Id of the trace, where it was asked for.
    pub trace_id: Option<String>,
    /// What it is of, for people.
    pub title: String,
    /// Which time it shows: `on_cpu`, `off_cpu` (blocked, as far as it was looked at), `wall` (both).
    pub time: &'static str,
    /// Samples in it, and waits.
    pub samples: u64,
    /// Waits of threads that work for no span, idle workers among them, which the whole run's leaves out.
    pub left_out_waits: u64,
    /// Samples and waits whose innermost functions are left out: more paths than 2,097,152 are not told apart.
    pub cut_samples: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Whether that is too few to measure with.
    pub few_samples: bool,
    /// Of a span with too few samples: all of its name, where they have more.
    pub same_name: Option<SameNameView>,
    /// How they are tied.
    pub links: LinksView,
    /// Functions that the nodes name.
    pub frames: Vec<FlameFrameView>,
    /// The boxes.
    pub nodes: FlameColumns,
}

/// A function of a flame graph.
#[derive(Debug, Clone, Serialize)]
pub struct FlameFrameView {
    /// `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file, empty where unknown.
    pub file: String,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// Why it has no name, where it has none.
    pub reason: Option<String>,
    /// What runs it, where no binary of the process holds it: `python`, `node`, `jvm`, `other`, `kernel`.
    pub runtime: Option<&'static str>,
    /// Whose code it is: `program`, `library`, `language`, `interpreter`, `system`, `kernel`.
    pub whose: &'static str,
}

/// Boxes of a flame graph in pre-order; node 0 is the root.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FlameColumns {
    /// Node of the parent, -1 for the root.
    pub parent: Vec<i64>,
    /// Level, 0 for the root.
    pub depth: Vec<u32>,
    /// Index into the frames, -1 for the root.
    pub frame: Vec<i64>,
    /// Where the box starts.
    pub offset_nanos: Vec<i64>,
    /// Its width.
    pub total_nanos: Vec<i64>,
    /// Time in the function itself.
    pub self_nanos: Vec<i64>,
    /// The line of it with the most time here, 0 where unknown.
    pub line: Vec<u32>,
}

impl FlameView {
    /// The whole run; with the waits of all threads, or only of those that work for spans.
    pub fn of_run(recording: impl Display, report: &Report, time: FlameTime, all_threads: bool) -> Self {
        let flame = if all_threads { report.flame_of_all_threads(time) } else { report.flame(None, time) };
        let title = if all_threads { "the whole run, all threads" } else { "the whole run" };
        Self::of_flame(recording, report, &flame, None, title.to_owned())
    }

    /// A span and its descendants; for a pole all its spans. `None` where the handle names neither.
    pub fn of_span(recording: impl Display, report: &Report, handle: &str, time: FlameTime) -> Option<Self> {
        Self::of_spans(recording, report, Chosen::Handle(handle), time)
    }

    /// These spans and their descendants; `None` where there are none.
    pub fn of_spans(recording: impl Display, report: &Report, chosen: Chosen<'_>, time: FlameTime) -> Option<Self> {
        let roots = roots_of(report, chosen)?;
        let flame = report.flame(Some(&roots.nodes), time);
        let same_name = match roots.nodes[..] {
            [node] if flame.few_samples() => same_name(report, node, flame.tree.samples),
            _ => None,
        };
        let view = Self::of_flame(recording, report, &flame, roots.handle.map(|handle| handle.to_string()), roots.title);
        Some(FlameView { name: roots.name, trace_id: roots.trace_id, same_name, ..view })
    }

    fn of_flame(recording: impl Display, report: &Report, flame: &Flame, span: Option<String>, title: String) -> Self {
        let tree = &flame.tree;
        let mut frames = Vec::new();
        let mut places = vec![-1i64; report.functions().list.len()];
        let mut nodes = FlameColumns::default();
        for row in 0..tree.len() {
            nodes.parent.push(tree.parent[row].map_or(-1, |parent| parent as i64));
            nodes.depth.push(tree.depth[row]);
            nodes.offset_nanos.push(nanos(tree.offset_nanos[row]));
            nodes.total_nanos.push(nanos(tree.total_nanos[row]));
            nodes.self_nanos.push(nanos(tree.self_nanos[row]));
            nodes.line.push(tree.line[row]);
            nodes.frame.push(tree.function[row].map_or(-1, |function| {
                if places[function] < 0 {
                    places[function] = frames.len() as i64;
                    frames.push(FlameFrameView::new(report, function));
                }
                places[function]
            }));
        }
        FlameView {
            recording: recording.to_string(),
            span,
            name: None,
            trace_id: None,
            title,
            time: flame.time.as_str(),
            samples: tree.samples,
            left_out_waits: flame.left_out_waits,
            cut_samples: tree.cut,
            weight_nanos: nanos(tree.total_nanos[0]),
            few_samples: flame.few_samples(),
            same_name: None,
            links: flame.links.into(),
            frames,
            nodes,
        }
    }
}

impl FlameFrameView {
    fn new(report: &Report, index: usize) -> Self {
        let function = &report.functions().list[index];
        FlameFrameView {
            handle: Handle::Function(index).to_string(),
            function: function.function.clone(),
            file: function.file.clone(),
            line: function.line,
            reason: function.reason.clone(),
            runtime: function.runtime.map(Runtime::as_str),
            whose: function.whose.as_str(),
        }
    }
}
