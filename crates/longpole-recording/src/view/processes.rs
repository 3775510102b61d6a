//! The processes of a recording.

use longpole_model::{IdVec, ProcessRow};
use std::fmt::Display;
use std::sync::Arc;

use longpole_analysis::Report;
use longpole_analysis::time::usage::{self, ProcessFigures};
use serde::Serialize;

use super::shared::{ExitView, node_handle, serialize_shared};
use super::usage::{UsageView, offset};

/// The processes of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessesView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// The largest peak of resident memory of the command and of all processes that it waited for, as `wait4` reported; null where
    /// nobody waited.
    pub peak_resident_bytes: Option<u64>,
    /// Page faults of all these processes that needed no storage.
    pub minor_faults: Option<u64>,
    /// Page faults of all these processes that waited for storage.
    pub major_faults: Option<u64>,
    /// The processes as a tree, in pre-order, children by start.
    pub processes: Vec<ProcessRowView>,
}

/// A process of the list.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessRowView {
    /// Handle of the span that stands for it; null where none does.
    pub handle: Option<String>,
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent_pid: Option<u32>,
    /// Level; 0 for the command.
    pub depth: u32,
    /// Its name.
    pub name: String,
    /// Path of the executable; empty where unknown.
    #[serde(serialize_with = "serialize_shared")]
    pub executable: Arc<str>,
    /// Its arguments.
    #[serde(serialize_with = "serialize_shared")]
    pub arguments: Arc<[String]>,
    /// Start; null where the recorder read no clock.
    pub start_nanos: Option<i64>,
    /// How long it lived; to the end of the recording, if it outlived that.
    pub duration_nanos: i64,
    /// Whether it outlived the recording.
    pub outlived: bool,
    /// How it ended; null where nobody saw it.
    pub exit: Option<ExitView>,
    /// User and system time of all its threads.
    pub cpu_nanos: Option<u64>,
    /// What it used; null where longpole never read it.
    pub usage: Option<UsageView>,
}

impl ProcessesView {
    /// Every process.
    pub fn new(recording: impl Display, report: &Report) -> Self {
        let model = report.recording();
        let of_all = model.run.usage;
        let cpu = usage::cpu_nanos(model, report.figures());
        let rows = pre_order(report.figures());
        ProcessesView {
            recording: recording.to_string(),
            peak_resident_bytes: of_all.and_then(|usage| usage.peak_resident_bytes),
            minor_faults: of_all.map(|usage| usage.minor_faults),
            major_faults: of_all.map(|usage| usage.major_faults),
            processes: rows.into_iter().map(|(process, depth)| ProcessRowView::new(report, process, depth, cpu[process])).collect(),
        }
    }
}

/// The processes with their levels, each behind its parent, children by start.
fn pre_order(figures: &IdVec<ProcessRow, ProcessFigures>) -> Vec<(ProcessRow, u32)> {
    let mut children: IdVec<ProcessRow, Vec<ProcessRow>> = IdVec::filled(Vec::new(), figures.len());
    let mut open: Vec<(ProcessRow, u32)> = Vec::new();
    for (process, figure) in figures.enumerated() {
        match figure.parent {
            // A parent begins before; what says otherwise is no tree.
            Some(parent) if parent < process => children[parent].push(process),
            _ => open.push((process, 0)),
        }
    }
    open.reverse();
    let mut rows = Vec::with_capacity(figures.len());
    while let Some((process, depth)) = open.pop() {
        rows.push((process, depth));
        open.extend(children[process].iter().rev().map(|&child| (child, depth + 1)));
    }
    rows
}

impl ProcessRowView {
    fn new(report: &Report, row: ProcessRow, depth: u32, cpu_nanos: Option<u64>) -> Self {
        let (model, forest) = (report.recording(), report.forest());
        let process = &model.processes[row];
        let start_nanos = offset(report, process.start);
        let end_nanos = process.end.and_then(|end| offset(report, end)).unwrap_or(report.wall().0);
        ProcessRowView {
            handle: forest.node_of_process(row).map(node_handle),
            pid: process.pid,
            parent_pid: process.parent_pid,
            depth,
            name: forest.program(model, row).to_owned(),
            executable: Arc::clone(&process.executable),
            arguments: Arc::clone(&process.arguments),
            start_nanos,
            duration_nanos: start_nanos.map_or(0, |start| end_nanos.saturating_sub(start).max(0)),
            outlived: process.end.is_none(),
            exit: process.exit.map(ExitView::new),
            cpu_nanos,
            usage: UsageView::new(report, row),
        }
    }
}
