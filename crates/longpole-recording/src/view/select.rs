//! Which spans a view is of: a handle, a name or a trace.

use std::fmt::Display;

use longpole_analysis::report::{Excerpt, Flame, FlameTime};
use longpole_analysis::schedule::poles::Pole;
use longpole_analysis::{Handle, Report, words};
use longpole_model::{NodeId, PoleId, SampleId, TraceId, WaitId};
use serde::Serialize;

use super::shared::node_handle;

/// Which spans a view is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen<'a> {
    /// A span, also by its id, or the spans of a pole: `s12`, `00f067aa0ba902b7`, `p1`.
    Handle(&'a str),
    /// All spans of a name.
    Name(&'a str),
    /// All spans of a trace, by its id or so much of its beginning that no other trace has it.
    Trace(&'a str),
}

impl Display for Chosen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Chosen::Handle(handle) => f.write_str(handle),
            Chosen::Name(name) => write!(f, "span called “{name}”"),
            Chosen::Trace(id) => write!(f, "single trace {id}"),
        }
    }
}

/// Spans, none below another; or a part of their own time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots {
    pub(crate) nodes: Vec<NodeId>,
    /// The pole that is only a part of them.
    pub(super) part: Option<PoleId>,
    /// What to call them by, where they are a span or a pole.
    pub(super) handle: Option<Handle>,
    pub(super) name: Option<String>,
    pub(super) trace_id: Option<String>,
    /// What they are, for people.
    pub(super) title: String,
}

impl Roots {
    /// The samples that count: of the part, or of the spans and all below them.
    pub(crate) fn samples(&self, report: &Report) -> Vec<SampleId> {
        match self.part {
            Some(pole) => report.samples_of_part(&report.poles()[pole]),
            None => report.samples_below(Some(&self.nodes)),
        }
    }

    /// The same for waits.
    pub(crate) fn waits(&self, report: &Report) -> Vec<WaitId> {
        match self.part {
            Some(pole) => report.waits_of_part(&report.poles()[pole]),
            None => report.waits_below(Some(&self.nodes)),
        }
    }

    pub(super) fn flame(&self, report: &Report, time: FlameTime, excerpt: Excerpt) -> Flame {
        match self.part {
            Some(pole) => report.flame_of_part(&report.poles()[pole], time, excerpt),
            None => report.flame(Some(&self.nodes), time, excerpt),
        }
    }

    /// What they are a part of.
    pub(super) fn part_of(&self, report: &Report) -> Option<PartOfView> {
        let name = report.poles()[self.part?].name.clone();
        Some(PartOfView { handle: if let [node] = self.nodes[..] { Some(node_handle(node)) } else { None }, name })
    }
}

/// The operation that a view shows a part of, while the part was on the critical path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartOfView {
    /// Its handle; null if it is several spans.
    pub handle: Option<String>,
    /// Its name.
    pub name: String,
}

/// The words for a pole that is only a part of its spans.
pub(super) fn words_of_part(report: &Report, pole: &Pole) -> Option<String> {
    report.part_of(pole).map(words::part).filter(|words| !words.is_empty())
}

/// The spans that are meant; `None` where there are none.
pub(crate) fn roots_of(report: &Report, chosen: Chosen<'_>) -> Option<Roots> {
    let counted = |nodes: &[NodeId], what: &str| if let [_] = nodes { what.to_owned() } else { format!("{what} ×{}", nodes.len()) };
    let none = Roots { nodes: Vec::new(), part: None, handle: None, name: None, trace_id: None, title: String::new() };
    let roots = match chosen {
        Chosen::Handle(handle) => match handle.parse().ok().or_else(|| node_of(report, handle).map(Handle::Node))? {
            Handle::Node(node) => {
                let handle = Some(Handle::Node(node));
                Roots { nodes: vec![report.node_of(Handle::Node(node))?], handle, title: report.name(node).to_owned(), ..none }
            }
            Handle::Pole(id) => {
                let pole = report.poles().get(id)?;
                let title = counted(&pole.nodes, &pole.name);
                match (words_of_part(report, pole), &pole.nodes[..]) {
                    (Some(part), _) => {
                        let (part, title) = (Some(id), format!("{part} in {title}"));
                        Roots { nodes: pole.nodes.clone(), part, handle: Some(Handle::Pole(id)), title, ..none }
                    }
                    (None, [node]) => Roots { nodes: vec![*node], handle: Some(Handle::Node(*node)), title, ..none },
                    (None, nodes) => Roots { nodes: nodes.to_vec(), handle: Some(Handle::Pole(id)), title, ..none },
                }
            }
            Handle::Function(_) => return None,
        },
        Chosen::Name(name) => {
            let nodes = report.nodes_of_name(name);
            Roots { title: counted(&nodes, name), nodes, name: Some(name.to_owned()), ..none }
        }
        Chosen::Trace(id) => {
            let trace = trace_of(report, id)?;
            let nodes = report.nodes_of_trace(trace);
            Roots { title: format!("trace {trace}"), nodes, trace_id: Some(trace.to_string()), ..none }
        }
    };
    // One inside another brings nothing that the outer one did not bring.
    (!roots.nodes.is_empty()).then(|| Roots { nodes: report.outermost(roots.nodes), ..roots })
}

/// The trace whose id is this, or alone begins with it.
fn trace_of(report: &Report, id: &str) -> Option<TraceId> {
    let id = id.to_ascii_lowercase();
    let mut traces: Vec<TraceId> = report.recording().spans.iter().map(|span| span.trace_id).collect();
    traces.sort_unstable();
    traces.dedup();
    traces.retain(|trace| trace.to_string().starts_with(&id));
    if let [trace] = traces[..] { Some(trace) } else { None }
}

/// The nodes of a pole, most time on the path first. The first is the span that a handle such as `p1` stands for.
pub(super) fn by_time_on_path(report: &Report, pole: &Pole) -> Vec<NodeId> {
    let mut nodes = pole.nodes.clone();
    nodes.sort_by_key(|node| std::cmp::Reverse(report.critical_path().on_path[*node]));
    nodes
}

/// The node that a handle `s12` or `p1` names, or the id of a span.
pub(super) fn node_of(report: &Report, handle: &str) -> Option<NodeId> {
    if let Ok(id) = handle.parse() {
        return report.node_of_span_id(id);
    }
    match handle.parse().ok()? {
        Handle::Pole(pole) => by_time_on_path(report, report.poles().get(pole)?).first().copied(),
        handle => report.node_of(handle),
    }
}

/// All spans of one name, with their descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SameNameView {
    /// The name.
    pub name: String,
    /// How many spans.
    pub spans: u64,
    /// Their samples.
    pub samples: u64,
}

/// What all spans of this one's name have, where they are more and have more samples.
pub(super) fn same_name(report: &Report, node: NodeId, samples: u64) -> Option<SameNameView> {
    let name = report.name(node);
    let nodes = report.nodes_of_name(name);
    let spans = nodes.len() as u64;
    let all = report.samples_below(Some(&report.outermost(nodes))).len() as u64;
    (spans > 1 && all > samples).then(|| SameNameView { name: name.to_owned(), spans, samples: all })
}
