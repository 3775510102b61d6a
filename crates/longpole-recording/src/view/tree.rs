//! The whole tree of spans and processes, in columns.

use std::fmt::Display;

use longpole_analysis::Report;
use longpole_analysis::pulumi::urn::title_of_urn;
use longpole_analysis::tree::forest::{Edge, NodeSource};
use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, NodeId, StatusCode};
use serde::Serialize;

use super::shared::{QualityView, unix_nano};
use super::summarised::SummarisedView;

/// Bits of the flags of a row.
mod flag {
    pub(super) const ERROR: u32 = 1;
    pub(super) const PARENT_INFERRED: u32 = 2;
    pub(super) const PROCESS: u32 = 4;
    pub(super) const ORPHAN: u32 = 8;
    pub(super) const CLAMPED: u32 = 16;
    pub(super) const CYCLE_BROKEN: u32 = 32;
}

/// The tree of spans and processes, in columns.
#[derive(Debug, Clone, Serialize)]
pub struct TreeView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Start of the run, in nanoseconds since 1970.
    pub origin_unix_nano: String,
    /// How long the run took.
    pub wall_nanos: i64,
    /// The services, by index.
    pub services: Vec<String>,
    /// The operations, by index.
    pub names: Vec<String>,
    /// Type and name of the cloud resources, by index.
    pub resources: Vec<String>,
    /// The rows.
    pub spans: TreeColumns,
    /// The critical path, from start to end.
    pub critical_path: PathColumns,
    /// What is unusual about the tree.
    pub notes: Vec<QualityView>,
    /// What it is of.
    #[serde(skip)]
    pub of: SummarisedView,
}

/// Columns of a tree in pre-order; row `i` has the handle `s{i+1}`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TreeColumns {
    /// Row of the parent; -1 for the root.
    pub parent: Vec<i64>,
    /// Level; 0 for the root.
    pub depth: Vec<u32>,
    /// Number of descendants: the rows that follow.
    pub subtree: Vec<u64>,
    /// Start.
    pub start_nanos: Vec<i64>,
    /// Length.
    pub duration_nanos: Vec<i64>,
    /// Index into the services.
    pub service: Vec<u32>,
    /// Index into the names.
    pub name: Vec<u32>,
    /// Index into the resources: the one that the row works on; -1 for none.
    pub resource: Vec<i64>,
    /// Bits: 1 error, 2 parent inferred, 4 made from a process, 8 orphan (its parent is not in the recording), 16 its times were
    /// clamped, 32 longpole broke a cycle here.
    pub flags: Vec<u32>,
    /// Time of the critical path in which the row was the innermost.
    pub on_path_nanos: Vec<i64>,
    /// Samples of the row itself.
    pub samples: Vec<u64>,
}

/// The critical path in columns, by time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PathColumns {
    /// Row of the tree.
    pub span: Vec<u64>,
    /// Start of the stretch.
    pub start_nanos: Vec<i64>,
    /// End of the stretch.
    pub end_nanos: Vec<i64>,
}

impl TreeView {
    /// The tree of a recording.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        let labels = report.labels();
        let (resources, resource) = resources(report);
        TreeView {
            recording: recording.to_string(),
            origin_unix_nano: unix_nano(report.origin()),
            wall_nanos: report.wall().0,
            services: labels.services.as_slice().to_vec(),
            names: labels.names.as_slice().to_vec(),
            resources,
            spans: TreeColumns { resource, ..TreeColumns::new(report) },
            critical_path: PathColumns::new(report),
            notes: report.notes().map(QualityView::new).collect(),
            of: SummarisedView::new(report),
        }
    }
}

impl TreeColumns {
    fn new(report: &Report) -> Self {
        let (forest, labels, origin) = (report.forest(), report.labels(), report.origin());
        let mut columns = TreeColumns::default();
        for (id, node) in forest.nodes.enumerated() {
            columns.parent.push(node.parent.map_or(-1, |parent| parent.place() as i64));
            columns.depth.push(node.depth);
            columns.subtree.push(id.next().until(node.subtree_end).len() as u64);
            columns.start_nanos.push(node.range.start.nanos_since(origin));
            columns.duration_nanos.push(node.range.nanos());
            columns.service.push(number(labels.service[id]));
            columns.name.push(number(labels.name[id]));
            columns.flags.push(flags(report, id));
            columns.on_path_nanos.push(report.critical_path().on_path[id].0);
            columns.samples.push(report.own_samples(id).len() as u64);
        }
        columns
    }
}

/// Titles of the resources, in order of their first row, and for each row the place of its resource; -1 for none.
fn resources(report: &Report) -> (Vec<String>, Vec<i64>) {
    let mut titles = Vec::new();
    let mut places: FastMap<&str, i64> = FastMap::default();
    let mut place = |urn| {
        *places.entry(urn).or_insert_with(|| {
            titles.push(title_of_urn(urn));
            titles.len() as i64 - 1
        })
    };
    let rows = report.forest().ids().map(|node| report.resource(node).map_or(-1, &mut place)).collect();
    (titles, rows)
}

/// The place of an entry in its list.
fn number(id: impl Id) -> u32 {
    u32::try_from(id.place()).unwrap_or(u32::MAX)
}

fn flags(report: &Report, id: NodeId) -> u32 {
    let node = &report.forest()[id];
    let failed = matches!(node.source, NodeSource::Span(span) if report.recording().spans[span].status.code == StatusCode::Error);
    [
        (failed, flag::ERROR),
        (node.edge == Edge::Inferred, flag::PARENT_INFERRED),
        (report.is_process(id), flag::PROCESS),
        (node.orphan, flag::ORPHAN),
        (node.clamped, flag::CLAMPED),
        (node.cycle_broken, flag::CYCLE_BROKEN),
    ]
    .into_iter()
    .filter(|(set, _)| *set)
    .fold(0, |flags, (_, bit)| flags | bit)
}

impl PathColumns {
    fn new(report: &Report) -> Self {
        let origin = report.origin();
        let mut columns = PathColumns::default();
        for segment in &report.critical_path().segments {
            columns.span.push(segment.node.place() as u64);
            columns.start_nanos.push(segment.range.start.nanos_since(origin));
            columns.end_nanos.push(segment.range.end.nanos_since(origin));
        }
        columns
    }
}
