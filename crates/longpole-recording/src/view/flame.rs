//! A flame graph.

use std::fmt::Display;

use longpole_analysis::report::{Excerpt, Flame, FlameTime};
use longpole_analysis::{Handle, Report};
use longpole_model::units::TimeUnit;
use longpole_model::{FunctionId, IdVec};
use serde::Serialize;

use super::functions::{RuntimeView, WhoseView};
use super::select::{Chosen, PartOfView, SameNameView, roots_of, same_name};
use super::shared::{LinksView, Unsampled, nanos};
use super::waits::WaitKindView;

/// A flame graph of the whole run, or of spans with their descendants.
#[derive(Debug, Clone, Serialize)]
pub struct FlameView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Handle of the span, or of a pole of several spans or of a part; null for the whole run, and for spans chosen by name or trace.
    pub span: Option<String>,
    /// For a pole that is a part of an operation, the operation. The graph then shows the part, without descendants of the operation.
    pub part_of: Option<PartOfView>,
    /// The requested name of spans.
    pub name: Option<String>,
    /// Id of the requested trace.
    pub trace_id: Option<String>,
    /// The range of time that it is limited to, from the start of the run; null for all of it.
    pub from_nanos: Option<i64>,
    /// The end of that range.
    pub to_nanos: Option<i64>,
    /// The thread that it is limited to; null for all of them.
    pub tid: Option<u32>,
    /// What it shows, for people.
    pub title: String,
    /// Which time it shows.
    pub time: FlameTimeView,
    /// Its samples and waits.
    pub samples: u64,
    /// Waits of threads that work for no span, idle workers among them, which the graph of the whole run omits.
    pub left_out_waits: u64,
    /// Samples and waits whose innermost functions are omitted: a graph has at most 2,097,152 paths.
    pub cut_samples: u64,
    /// The time that its samples and waits stand for.
    pub weight_nanos: i64,
    /// Whether these samples are too few for reliable shares.
    pub few_samples: bool,
    /// For a span with too few samples: all spans of its name, if they have more.
    pub same_name: Option<SameNameView>,
    /// Its samples, without waits, by how they were linked.
    pub links: LinksView,
    /// What its waits were for, longest first.
    pub waits: Vec<FlameWaitsView>,
    /// Functions that the nodes name.
    pub frames: Vec<FlameFrameView>,
    /// The boxes.
    pub nodes: FlameColumns,
    /// Why it may have no samples.
    #[serde(skip)]
    pub unsampled: Unsampled,
}

/// Which time a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlameTimeView {
    /// On a CPU, by samples.
    OnCpu,
    /// Blocked: waits whose stack is known, which are those of 5 ms or longer and a sample of shorter ones, of threads that work for a
    /// span or process. Omits idle workers; `threads=all`, for the whole run, adds the waits of all other threads.
    OffCpu,
    /// Both.
    Wall,
}

/// Waits of one kind in a flame graph.
#[derive(Debug, Clone, Serialize)]
pub struct FlameWaitsView {
    /// What the waits were for.
    pub kind: WaitKindView,
    /// How long.
    pub nanos: i64,
}

/// A function of a flame graph.
#[derive(Debug, Clone, Serialize)]
pub struct FlameFrameView {
    /// Handle, such as `f12`.
    pub handle: String,
    /// Name for people.
    pub function: String,
    /// Source file; empty where unknown.
    pub file: String,
    /// Source line; 0 where unknown.
    pub line: u32,
    /// For people: why it has no name.
    pub reason: Option<String>,
    /// What runs the function; null for code of a binary of the process.
    pub runtime: Option<RuntimeView>,
    /// Whose code it is.
    pub whose: WhoseView,
}

/// Boxes of a flame graph in pre-order, children by total, largest first; node 0 is the root.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FlameColumns {
    /// Node of the parent; -1 for the root.
    pub parent: Vec<i64>,
    /// Level; 0 for the root.
    pub depth: Vec<u32>,
    /// Index into the frames; -1 for the root.
    pub frame: Vec<i64>,
    /// Where the box starts.
    pub offset_nanos: Vec<i64>,
    /// Its width.
    pub total_nanos: Vec<i64>,
    /// Time in the function itself.
    pub self_nanos: Vec<i64>,
    /// How much of the width is waits.
    pub waited_nanos: Vec<i64>,
    /// Index into the waits of what most of them were for; -1 without waits.
    pub wait: Vec<i64>,
    /// The line of the function with the most time here; 0 where unknown.
    pub line: Vec<u32>,
}

impl FlameView {
    /// The whole run, or an excerpt of it; with the waits of all threads, or only of those that work for spans. A thread that is chosen has
    /// all of its own.
    pub fn of_run(recording: impl Display, report: &Report, time: FlameTime, all_threads: bool, excerpt: Excerpt) -> Self {
        let all_waits = all_threads || excerpt.tid.is_some();
        let flame = if all_waits { report.flame_of_all_threads(time, excerpt) } else { report.flame(None, time, excerpt) };
        let title = match (excerpt.is_whole(), all_threads) {
            (true, true) => "the whole run, all threads".to_owned(),
            (true, false) => "the whole run".to_owned(),
            (false, _) => excerpt_in_words(excerpt),
        };
        Self::of_flame(recording, report, &flame, None, title, excerpt)
    }

    /// These spans and their descendants; `None` if there are none.
    pub fn of_spans(recording: impl Display, report: &Report, chosen: Chosen<'_>, time: FlameTime, excerpt: Excerpt) -> Option<Self> {
        let roots = roots_of(report, chosen)?;
        let flame = roots.flame(report, time, excerpt);
        let same_name = match roots.nodes[..] {
            [node] if roots.part.is_none() && excerpt.is_whole() && flame.few_samples() => same_name(report, node, flame.tree.samples),
            _ => None,
        };
        let part_of = roots.part_of(report);
        let title = if excerpt.is_whole() { roots.title } else { format!("{}, {}", roots.title, excerpt_in_words(excerpt)) };
        let view = Self::of_flame(recording, report, &flame, roots.handle.map(|handle| handle.to_string()), title, excerpt);
        Some(FlameView { part_of, name: roots.name, trace_id: roots.trace_id, same_name, ..view })
    }

    fn of_flame(recording: impl Display, report: &Report, flame: &Flame, span: Option<String>, title: String, excerpt: Excerpt) -> Self {
        let tree = &flame.tree;
        let mut frames = Vec::new();
        let mut places: IdVec<FunctionId, i64> = IdVec::filled(-1, report.functions().list.len());
        let mut nodes = FlameColumns::default();
        for row in 0..tree.len() {
            nodes.parent.push(tree.parent[row].map_or(-1, |parent| parent as i64));
            nodes.depth.push(tree.depth[row]);
            nodes.offset_nanos.push(nanos(tree.offset_nanos[row]));
            nodes.total_nanos.push(nanos(tree.total_nanos[row]));
            nodes.self_nanos.push(nanos(tree.self_nanos[row]));
            nodes.waited_nanos.push(nanos(flame.waited.nanos[row]));
            nodes.wait.push(flame.waited.kind[row].map_or(-1, |kind| kind as i64));
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
            part_of: None,
            name: None,
            trace_id: None,
            from_nanos: excerpt.range.map(|range| range.0.0),
            to_nanos: excerpt.range.map(|range| range.1.0),
            tid: excerpt.tid,
            title,
            time: flame.time.into(),
            samples: tree.samples,
            left_out_waits: flame.left_out_waits,
            cut_samples: tree.cut,
            weight_nanos: nanos(tree.total_nanos[0]),
            few_samples: flame.few_samples(),
            same_name: None,
            links: flame.links.into(),
            waits: flame.waited.kinds.iter().map(|&(kind, sum)| FlameWaitsView { kind: kind.into(), nanos: nanos(sum) }).collect(),
            frames,
            nodes,
            unsampled: Unsampled::of(report),
        }
    }
}

/// `1.20 s to 1.40 s, thread 7`.
pub(super) fn excerpt_in_words(excerpt: Excerpt) -> String {
    let range = excerpt.range.map(|(from, to)| {
        let unit = TimeUnit::of(to.0);
        format!("{} to {}", unit.show(from.0), unit.show(to.0))
    });
    let thread = excerpt.tid.map(|tid| format!("thread {tid}"));
    range.into_iter().chain(thread).collect::<Vec<_>>().join(", ")
}

impl FlameFrameView {
    fn new(report: &Report, id: FunctionId) -> Self {
        let function = &report.functions().list[id];
        FlameFrameView {
            handle: Handle::Function(id).to_string(),
            function: function.function.clone(),
            file: function.file.clone(),
            line: function.line,
            reason: function.reason.clone(),
            runtime: function.runtime.map(RuntimeView::from),
            whose: function.whose.into(),
        }
    }
}

impl From<FlameTime> for FlameTimeView {
    fn from(it: FlameTime) -> Self {
        match it {
            FlameTime::OnCpu => FlameTimeView::OnCpu,
            FlameTime::OffCpu => FlameTimeView::OffCpu,
            FlameTime::Wall => FlameTimeView::Wall,
        }
    }
}
