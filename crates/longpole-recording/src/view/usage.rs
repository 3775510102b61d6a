//! What processes used: CPU, memory, storage.

use longpole_analysis::time::usage::{PeakFrom, UsageFinding};
use longpole_analysis::{Report, words};
use longpole_model::{IoBytes, Monotonic, ProcessRow};
use serde::{Deserialize, Serialize};

use super::shared::{nanos, node_handle};

/// What a process used; each number is null where longpole did not see it. Bytes are those of the process itself: what the kernel counts
/// for it, less the counts of its children at their last reading, because the kernel adds these when it waits for them.
#[derive(Debug, Clone, Serialize)]
pub struct UsageView {
    /// User and system time of all its threads, at the last reading.
    pub cpu_nanos: Option<u64>,
    /// Peak of its resident memory.
    pub peak_resident_bytes: Option<u64>,
    /// Where the peak comes from.
    pub peak_from: Option<PeakFromView>,
    /// Page faults that needed no storage.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for storage.
    pub major_faults: Option<u64>,
    /// Bytes that its calls read: files in memory, pipes and terminals included; sockets only where it reads them like files.
    pub read_bytes: Option<u64>,
    /// Bytes that its calls wrote, counted alike.
    pub written_bytes: Option<u64>,
    /// Bytes fetched from storage.
    pub storage_read_bytes: Option<u64>,
    /// Bytes to be written to storage.
    pub storage_written_bytes: Option<u64>,
    /// How long before its end the last reading was: the figures omit what it used after that. 0 if it outlived the recording.
    pub read_before_end_nanos: Option<i64>,
    /// Set if its memory grew steadily: it lived for 2 s or longer, and each eighth of its life added at least a quarter of an even share.
    pub grows: Option<GrowthView>,
    /// Its memory over time.
    pub readings: ReadingColumns,
}

/// Where a peak of memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakFromView {
    /// The kernel reported it at the end of the process: exact.
    Exit,
    /// The last reading: it omits what the process took after that.
    Reading,
}

/// Steady growth of memory.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct GrowthView {
    /// Resident bytes after the first eighth of its life.
    pub from_bytes: u64,
    /// Resident bytes at its last reading.
    pub to_bytes: u64,
}

/// Readings of one process, by time. Memory stays as a reading says until the next one.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReadingColumns {
    /// When.
    pub time_nanos: Vec<i64>,
    /// Resident bytes.
    pub resident_bytes: Vec<u64>,
}

/// A notable use of memory or storage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotableView {
    /// The kind of use.
    pub code: NotableCodeView,
    /// Handle of the span that stands for the process; null where none does.
    pub handle: Option<String>,
    /// Name of the process; null where it is unknown which process it was.
    pub process: Option<String>,
    /// Bytes, or page faults.
    pub amount: u64,
    /// The same for people.
    pub text: String,
}

/// The kind of a notable use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotableCodeView {
    /// Its memory grows steadily.
    Grows,
    /// Its memory has a high peak.
    Peak,
    /// A process that longpole did not read then has a high peak.
    PeakOfSome,
    /// It reads from or writes to storage.
    Storage,
    /// It waits for its memory to come from storage.
    Faults,
}

/// A moment as an offset from the start of the run.
pub(super) fn offset(report: &Report, time: Monotonic) -> Option<i64> {
    report.recording().clock.to_unix(time).map(|at| at.nanos_since(report.origin()))
}

impl UsageView {
    /// What a process used; `None` where nothing of it is known.
    pub(super) fn new(report: &Report, row: ProcessRow) -> Option<Self> {
        let model = report.recording();
        let figure = report.figures().get(row)?;
        let process = &model.processes[row];
        let last = figure.last(model);
        if last.is_none() && figure.peak_resident_bytes.is_none() {
            return None;
        }
        let io = |part: fn(IoBytes) -> u64| figure.io.map(part);
        let mut readings = ReadingColumns::default();
        for usage in figure.readings.iter().map(|&reading| &model.process_usage[reading]) {
            if let (Some(time), Some(memory)) = (offset(report, usage.time), usage.memory) {
                readings.time_nanos.push(time);
                readings.resident_bytes.push(memory.resident_bytes);
            }
        }
        Some(UsageView {
            cpu_nanos: last.map(|last| last.cpu_nanos),
            peak_resident_bytes: figure.peak_resident_bytes.map(|(bytes, _)| bytes),
            peak_from: figure.peak_resident_bytes.map(|(_, from)| from.into()),
            minor_faults: last.map(|last| last.minor_faults),
            major_faults: last.map(|last| last.major_faults),
            read_bytes: io(|io| io.read),
            written_bytes: io(|io| io.written),
            storage_read_bytes: io(|io| io.storage_read),
            storage_written_bytes: io(|io| io.storage_written),
            // The bytes may come from an older reading.
            read_before_end_nanos: figure
                .last_with_io(model)
                .or(last)
                .map(|last| process.end.map_or(0, |end| nanos(end.nanos_since(last.time)))),
            grows: figure.growth.map(|growth| GrowthView { from_bytes: growth.from_bytes, to_bytes: growth.to_bytes }),
            readings,
        })
    }
}

impl NotableView {
    /// All that is worth a line.
    pub(super) fn all(report: &Report) -> Vec<Self> {
        report.notable_usage().into_iter().map(|notable| NotableView::new(report, notable)).collect()
    }

    fn new(report: &Report, notable: UsageFinding) -> Self {
        let (model, forest) = (report.recording(), report.forest());
        let (code, process, amount) = match notable {
            UsageFinding::Grows(process, growth) => (NotableCodeView::Grows, Some(process), growth.to_bytes),
            UsageFinding::Peak(process, bytes) => (NotableCodeView::Peak, Some(process), bytes),
            UsageFinding::PeakOfSome(bytes) => (NotableCodeView::PeakOfSome, None, bytes),
            UsageFinding::Storage(process, io) => (NotableCodeView::Storage, Some(process), io.storage_read.max(io.storage_written)),
            UsageFinding::Faults(process, faults) => (NotableCodeView::Faults, Some(process), faults),
        };
        let program = process.map(|process| forest.program(model, process));
        NotableView {
            code,
            handle: process.and_then(|process| forest.node_of_process(process)).map(node_handle),
            process: program.map(str::to_owned),
            amount,
            text: words::usage(&notable, program),
        }
    }
}

impl From<PeakFrom> for PeakFromView {
    fn from(it: PeakFrom) -> Self {
        match it {
            PeakFrom::Exit => PeakFromView::Exit,
            PeakFrom::Reading => PeakFromView::Reading,
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::{Exit, ProcessMemory, ProcessUsage, RunUsage, text};
    use serde_json::json;

    use super::*;
    use crate::view::{ProcessesView, SpanView, SummaryView};

    fn make() -> Report {
        let run = "run make 0..100ms pid 1\nprocess cc1 10..60ms pid 3 under 2\nprocess gcc 5..70ms pid 2 under 1\n";
        let mut recording = text::parse(run).unwrap();
        let reading = |pid, millis: u64, memory: Option<u64>, read| ProcessUsage {
            pid,
            time: Monotonic(text::ORIGIN_MONOTONIC.0 + millis * 1_000_000),
            memory: memory.map(|bytes| ProcessMemory { resident_bytes: bytes, peak_resident_bytes: bytes + 5 }),
            cpu_nanos: 7,
            minor_faults: 8,
            major_faults: 9,
            io: Some(IoBytes { read, written: 1, storage_read: 3_000_000_000, storage_written: 20_000_000 }),
        };
        recording.process_usage =
            vec![reading(3, 20, Some(800_000_000), 1), reading(3, 50, Some(900_000_000), 10), reading(2, 65, None, 30)];
        recording.run.usage = Some(RunUsage { peak_resident_bytes: Some(900_000_010), minor_faults: 20, major_faults: 9 });
        let cc1 = recording.processes.iter_mut().find(|process| process.pid == 3).unwrap();
        (cc1.exit, cc1.arguments) = (Some(Exit::Signal(9)), ["cc1".to_owned(), "a.c".to_owned()].into());
        Report::new(recording)
    }

    #[test]
    fn processes_stand_behind_their_parents_with_what_they_used() {
        let view = serde_json::to_value(ProcessesView::new("r7", &make())).unwrap();
        let names: Vec<String> =
            view["processes"].as_array().unwrap().iter().map(|it| format!("{} {} {}", it["depth"], it["name"], it["handle"])).collect();
        assert_eq!(names, ["0 \"make\" \"s1\"", "1 \"gcc\" \"s2\"", "2 \"cc1\" \"s3\""]);
        let ms = 1_000_000;
        assert_eq!(
            view["processes"][2],
            json!({
                "handle": "s3", "pid": 3, "parent_pid": 2, "depth": 2, "name": "cc1", "executable": "", "arguments": ["cc1", "a.c"],
                "start_nanos": 10 * ms, "duration_nanos": 50 * ms, "outlived": false, "exit": { "code": null, "signal": 9 }, "cpu_nanos": 7,
                "usage": {
                    "cpu_nanos": 7, "peak_resident_bytes": 900_000_005u64, "peak_from": "reading", "minor_faults": 8, "major_faults": 9,
                    "read_bytes": 10, "written_bytes": 1, "storage_read_bytes": 3_000_000_000u64, "storage_written_bytes": 20_000_000,
                    "read_before_end_nanos": 10 * ms, "grows": null,
                    "readings": { "time_nanos": [20 * ms, 50 * ms], "resident_bytes": [800_000_000, 900_000_000] },
                },
            })
        );
        assert_eq!((&view["processes"][0]["usage"], &view["peak_resident_bytes"]), (&json!(null), &json!(900_000_010u64)));
        let gcc = &view["processes"][1]["usage"];
        assert_eq!(
            (&gcc["read_bytes"], &gcc["peak_resident_bytes"], &gcc["readings"]["time_nanos"]),
            (&json!(20), &json!(null), &json!([]))
        );
    }

    #[test]
    fn what_is_notable_stands_in_the_summary_and_a_span_has_that_of_its_process() {
        let report = make();
        let texts: Vec<String> =
            SummaryView::new("r7", &report).usage.into_iter().map(|it| format!("{} {}", it.handle.unwrap(), it.text)).collect();
        assert_eq!(texts, ["s3 cc1 peaks at 900MB", "s3 cc1 reads 3.0GB from storage"]);
        let process = SpanView::new("r7", &report, "s3").unwrap().process.unwrap();
        assert_eq!((process.usage.unwrap().peak_resident_bytes, process.exit.unwrap().signal), (Some(900_000_005), Some(9)));
    }
}
