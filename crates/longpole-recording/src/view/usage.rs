//! What processes used: CPU, memory, storage.

use longpole_analysis::Report;
use longpole_analysis::time::usage::{UsageFinding, bytes_words};
use longpole_model::{IoBytes, Monotonic};
use serde::Serialize;

use super::shared::{nanos, node_handle};

/// What a process used.
#[derive(Debug, Clone, Serialize)]
pub struct UsageView {
    /// User and system time of all its threads, when it was read last.
    pub cpu_nanos: Option<u64>,
    /// The most it had in RAM.
    pub peak_resident_bytes: Option<u64>,
    /// `exit` (told at its end, exact) or `reading` (what it took after it was read last is not in it).
    pub peak_from: Option<&'static str>,
    /// Page faults that were served from memory.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for storage.
    pub major_faults: Option<u64>,
    /// Bytes of its calls that read; null where they may not be seen.
    pub read_bytes: Option<u64>,
    /// Bytes of its calls that write.
    pub written_bytes: Option<u64>,
    /// Bytes fetched from storage.
    pub storage_read_bytes: Option<u64>,
    /// Bytes to be brought to storage.
    pub storage_written_bytes: Option<u64>,
    /// How long before its end it was read last: what it did then is not in the figures. Null where it was never read.
    pub read_before_end_nanos: Option<i64>,
    /// Set where its memory grew all the time.
    pub grows: Option<GrowthView>,
    /// Its memory over time.
    pub readings: ReadingColumns,
}

/// Steady growth of memory.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct GrowthView {
    /// After the first eighth of its life.
    pub from_bytes: u64,
    /// At its last reading.
    pub to_bytes: u64,
}

/// Readings of one process, by time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReadingColumns {
    /// When.
    pub time_nanos: Vec<i64>,
    /// In RAM; it stays so until the next.
    pub resident_bytes: Vec<u64>,
}

/// Something about what a process used that is worth a line.
#[derive(Debug, Clone, Serialize)]
pub struct NotableView {
    /// `grows`, `peak`, `peak_of_some`, `storage` or `faults`.
    pub code: &'static str,
    /// Handle of the span that stands for the process; null where none does.
    pub handle: Option<String>,
    /// What the process is called; null where it is not known which it was.
    pub process: Option<String>,
    /// Bytes, or page faults.
    pub amount: u64,
    /// For people.
    pub text: String,
}

/// A moment as an offset from the start of the run.
pub(super) fn offset(report: &Report, time: Monotonic) -> Option<i64> {
    report.recording().clock.to_unix(time).map(|at| at.nanos_since(report.origin()))
}

impl UsageView {
    /// What `recording.processes[index]` used; `None` where nothing of it is known.
    pub(super) fn new(report: &Report, index: usize) -> Option<Self> {
        let model = report.recording();
        let figure = report.figures().get(index)?;
        let process = model.processes.get(index)?;
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
            peak_from: figure.peak_resident_bytes.map(|(_, from)| from.as_str()),
            minor_faults: last.map(|last| last.minor_faults),
            major_faults: last.map(|last| last.major_faults),
            read_bytes: io(|io| io.read),
            written_bytes: io(|io| io.written),
            storage_read_bytes: io(|io| io.storage_read),
            storage_written_bytes: io(|io| io.storage_written),
            // Of the reading that the bytes are from, where that is an older one.
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
        let name = |process: usize| forest.program(model, process);
        let (code, process, amount, text) = match notable {
            UsageFinding::Grows(process, growth) => {
                let (from, to) = (bytes_words(growth.from_bytes), bytes_words(growth.to_bytes));
                ("grows", Some(process), growth.to_bytes, format!("{} grows all the time, from {from} to {to}", name(process)))
            }
            UsageFinding::Peak(process, bytes) => {
                ("peak", Some(process), bytes, format!("{} peaks at {}", name(process), bytes_words(bytes)))
            }
            UsageFinding::PeakOfSome(bytes) => {
                let text = format!("a process peaks at {}, and it was not read then", bytes_words(bytes));
                ("peak_of_some", None, bytes, text)
            }
            UsageFinding::Storage(process, io) => {
                let (read, written) = (io.storage_read, io.storage_written);
                let fetched = (read > written / 10).then(|| format!("fetches {} from storage", bytes_words(read)));
                let brought = (written > read / 10).then(|| format!("brings {} to it", bytes_words(written)));
                let done = match (fetched, brought) {
                    (Some(fetched), Some(brought)) => format!("{fetched} and {brought}"),
                    (Some(fetched), None) => fetched,
                    (None, _) => format!("brings {} to storage", bytes_words(written)),
                };
                ("storage", Some(process), read.max(written), format!("{} {done}", name(process)))
            }
            UsageFinding::Faults(process, faults) => {
                ("faults", Some(process), faults, format!("{} waits {faults} times for its memory to come from storage", name(process)))
            }
        };
        NotableView {
            code,
            handle: process.and_then(|process| forest.node_of_process(process)).map(node_handle),
            process: process.map(|process| name(process).to_owned()),
            amount,
            text,
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
        (cc1.exit, cc1.arguments) = (Some(Exit::Signal(9)), vec!["cc1".to_owned(), "a.c".to_owned()]);
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
        assert_eq!(texts, ["s3 cc1 peaks at 900 MB", "s3 cc1 fetches 3.0 GB from storage"]);
        let process = SpanView::new("r7", &report, "s3").unwrap().process.unwrap();
        assert_eq!((process.usage.unwrap().peak_resident_bytes, process.exit.unwrap().signal), (Some(900_000_005), Some(9)));
    }
}
