//! The processes of a recording.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Display;
use std::sync::Arc;

use longpole_analysis::Report;
use longpole_analysis::time::usage::{self, ProcessFigures};
use longpole_model::{IdVec, Process, ProcessRow};
use serde::Serialize;

use super::shared::{ExitView, json_bytes, listed, node_handle, serialize_shared};
use super::usage::{UsageView, offset};

/// Bytes of paths and arguments that forks have of their parents, at most. A recording has them once, JSON once for each of them.
const SHARED_BYTES_MAX: u64 = 256 << 20;

/// Stands for what a process shares with others, past that.
const LEFT_OUT: &str = "…";

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
    /// Path of the executable; empty where unknown. Past 256 MiB of what forks share with their parents, it is cut after 4 KiB.
    #[serde(serialize_with = "serialize_shared")]
    pub executable: Arc<str>,
    /// Its arguments; past 256 MiB of what forks share with their parents, `…`.
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
        let mut programs = Programs::of(SHARED_BYTES_MAX);
        ProcessesView {
            recording: recording.to_string(),
            peak_resident_bytes: of_all.and_then(|usage| usage.peak_resident_bytes),
            minor_faults: of_all.map(|usage| usage.minor_faults),
            major_faults: of_all.map(|usage| usage.major_faults),
            processes: rows
                .into_iter()
                .map(|(process, depth)| {
                    let program = programs.of_process(&model.processes[process]);
                    ProcessRowView::new(report, process, depth, cpu[process], program)
                })
                .collect(),
        }
    }
}

/// The paths and arguments of processes, as far as there is room for those that come again.
struct Programs {
    left: u64,
    /// The bytes of each path and of each list of arguments so far, by address.
    known: HashMap<usize, u64>,
    left_out: Arc<[String]>,
}

impl Programs {
    fn of(left: u64) -> Programs {
        Programs { left, known: HashMap::new(), left_out: Arc::new([LEFT_OUT.to_owned()]) }
    }

    fn of_process(&mut self, process: &Process) -> (Arc<str>, Arc<[String]>) {
        let Process { executable, arguments, .. } = process;
        let in_list = |argument: &String| json_bytes(argument) + 3;
        let again = self.again(executable.as_ptr().addr(), || json_bytes(executable))
            + self.again(arguments.as_ptr().addr(), || arguments.iter().map(in_list).sum());
        if again > self.left {
            self.left = 0;
            return (listed(executable).into(), Arc::clone(&self.left_out));
        }
        self.left -= again;
        (Arc::clone(executable), Arc::clone(arguments))
    }

    /// The bytes of what lies there, if it was there before.
    fn again(&mut self, address: usize, bytes: impl FnOnce() -> u64) -> u64 {
        match self.known.entry(address) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                new.insert(bytes());
                0
            }
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
    fn new(report: &Report, row: ProcessRow, depth: u32, cpu_nanos: Option<u64>, program: (Arc<str>, Arc<[String]>)) -> Self {
        let (model, forest) = (report.recording(), report.forest());
        let process = &model.processes[row];
        let (executable, arguments) = program;
        let start_nanos = offset(report, process.start);
        let end_nanos = process.end.and_then(|end| offset(report, end)).unwrap_or(report.wall().0);
        ProcessRowView {
            handle: forest.node_of_process(row).map(node_handle),
            pid: process.pid,
            parent_pid: process.parent_pid,
            depth,
            name: listed(forest.program(model, row)),
            executable,
            arguments,
            start_nanos,
            duration_nanos: start_nanos.map_or(0, |start| end_nanos.saturating_sub(start).max(0)),
            outlived: process.end.is_none(),
            exit: process.exit.map(ExitView::new),
            cpu_nanos,
            usage: UsageView::new(report, row),
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    #[test]
    fn what_forks_share_is_listed_as_far_as_there_is_room() {
        let shared = text::parse("run x 0..9ms\nprocess sh 1..2ms pid 2 under 1\n").unwrap().processes.remove(0);
        let process = Process { executable: "/bin/sh".into(), arguments: ["x".repeat(100), "\n".into()].into(), ..shared };
        let other = Process { arguments: ["y".repeat(1_000)].into(), ..process.clone() };
        // 103 and 9 bytes, and 7 for the path: the first one has them anyhow.
        let mut programs = Programs::of(2 * 119 + 118);
        let mut listed = |process: &Process| programs.of_process(process).1[0].len();
        assert_eq!([&process, &process, &process, &other, &process, &process].map(&mut listed), [100, 100, 100, 1_000, 3, 3]);
        assert_eq!(programs.of_process(&process).1[0], LEFT_OUT);
        let long = Process { executable: "/x".repeat(10_000).into(), ..other.clone() };
        assert_eq!(programs.of_process(&long).0.len(), 4096 + "…".len());
    }
}
