//! What each process used: its peak of memory, page faults, bytes, and whether it grew all the time.
//!
//! ```text
//! memory                        ▁▂▃▄▅▆▇█   grows all the time: each eighth of its life added its part
//! own bytes of sh               what the kernel counts for sh, less what it counts for the children that sh waited for
//! ```

use std::collections::HashMap;

use longpole_model::{AddNanos, IdVec, IoBytes, Monotonic, ProcessRow, ProcessUsage, Recording};

use crate::window;

/// A process that did not live so long is not said to grow: each one grows while it begins.
const GROWTH_LIFE_MIN_NANOS: u64 = 2_000_000_000;

/// Parts of a life that each have to add their share.
const GROWTH_PARTS: u64 = 8;

/// Many a program gives all back before it ends: what comes after its peak does not count, where that was in this part or later.
const GROWTH_PARTS_UNTIL_MOST: u64 = 6;

/// Less is no growth worth a line.
const GROWTH_BYTES_MIN: u64 = 32 << 20;

/// From this peak a process is worth a line: what a machine of 8 GB has for each of 16 jobs.
const NOTABLE_PEAK_BYTES: u64 = 500_000_000;

/// From this number of bytes to or from storage a process is worth a line: a second of a good disk.
const NOTABLE_STORAGE_BYTES: u64 = 500_000_000;

/// From this number of page faults that waited for storage a process is worth a line: at 0.1 ms each they took a second.
const NOTABLE_FAULTS: u64 = 10_000;

/// Where the peak of a process is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeakFrom {
    /// What the kernel told at its end: exact.
    Exit,
    /// The last reading while it lived: what it took after that is not in it.
    Reading,
}

impl PeakFrom {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            PeakFrom::Exit => "exit",
            PeakFrom::Reading => "reading",
        }
    }
}

/// Steady growth of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// In RAM at the end of the first eighth of its life.
    pub from_bytes: u64,
    /// The most it had in RAM, or what it had at its last reading.
    pub to_bytes: u64,
}

/// What a process used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessFigures {
    /// The process that forked it, in `recording.processes`.
    pub parent: Option<ProcessRow>,
    /// Its readings, by time: indices into `recording.process_usage`.
    pub readings: Vec<usize>,
    /// The most it had in RAM.
    pub peak_resident_bytes: Option<(u64, PeakFrom)>,
    /// Bytes it read and wrote itself.
    pub io: Option<IoBytes>,
    /// Where it grew all the time.
    pub growth: Option<Growth>,
}

impl ProcessFigures {
    /// The last reading.
    pub fn last<'a>(&self, recording: &'a Recording) -> Option<&'a ProcessUsage> {
        self.readings.last().map(|&reading| &recording.process_usage[reading])
    }

    /// The last reading with bytes: some kernels show those of a process that has ended to root alone.
    pub fn last_with_io<'a>(&self, recording: &'a Recording) -> Option<&'a ProcessUsage> {
        self.readings.iter().rev().map(|&reading| &recording.process_usage[reading]).find(|usage| usage.io.is_some())
    }
}

/// Something about what a process used that is worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageFinding {
    /// It grew all the time.
    Grows(ProcessRow, Growth),
    /// It had much memory.
    Peak(ProcessRow, u64),
    /// One of the run's processes had much memory, and it was seen only by who waited for it.
    PeakOfSome(u64),
    /// It fetched from storage, or brought to it, much.
    Storage(ProcessRow, IoBytes),
    /// It waited for memory to come from storage, so often.
    Faults(ProcessRow, u64),
}

/// The processes of a recording by pid, to find one by the time.
struct ByPid<'a> {
    recording: &'a Recording,
    of_pid: HashMap<u32, Vec<ProcessRow>>,
}

impl<'a> ByPid<'a> {
    fn new(recording: &'a Recording) -> Self {
        let mut of_pid: HashMap<u32, Vec<ProcessRow>> = HashMap::new();
        for (i, process) in recording.process_rows().zip(&recording.processes) {
            of_pid.entry(process.pid).or_default().push(i);
        }
        for list in of_pid.values_mut() {
            list.sort_by_key(|&i| recording.processes[i].start);
        }
        ByPid { recording, of_pid }
    }

    /// The last process with this pid that had started.
    fn at(&self, pid: u32, time: Monotonic) -> Option<ProcessRow> {
        let list = self.of_pid.get(&pid)?;
        // A file of others may give one pid to a hundred thousand.
        let started = list.partition_point(|&i| self.recording.processes[i].start <= time);
        Some(list[started.checked_sub(1)?])
    }
}

/// The figures of each process of a recording.
pub fn figures(recording: &Recording) -> IdVec<ProcessRow, ProcessFigures> {
    let mut figures: IdVec<ProcessRow, ProcessFigures> = IdVec::filled(ProcessFigures::default(), recording.processes.len());
    let by_pid = ByPid::new(recording);
    for (process, figure) in recording.processes.iter().zip(figures.iter_mut()) {
        figure.parent = process.parent_pid.and_then(|parent| by_pid.at(parent, process.start));
    }
    for (i, usage) in recording.process_usage.iter().enumerate() {
        if let Some(process) = by_pid.at(usage.pid, usage.time) {
            figures[process].readings.push(i);
        }
    }
    // What the kernel adds to a parent: all that a child had, its own children included.
    let mut of_children: IdVec<ProcessRow, IoBytes> = IdVec::filled(IoBytes::default(), figures.len());
    for (process, figure) in recording.processes.iter().zip(&figures) {
        let Some(end) = process.end else { continue };
        let Some(parent) = figure.parent else { continue };
        let counted = figures[parent].last_with_io(recording).is_some_and(|last| last.time >= end);
        if let Some(io) = figure.last_with_io(recording).and_then(|last| last.io).filter(|_| counted) {
            of_children[parent] = of_children[parent].saturating_add(io);
        }
    }
    for (figure, children) in figures.iter_mut().zip(of_children) {
        let readings = || figure.readings.iter().map(|&reading| &recording.process_usage[reading]);
        let peak = readings().filter_map(|usage| Some(usage.memory?.peak_resident_bytes)).max();
        figure.peak_resident_bytes = peak.map(|peak| (peak, PeakFrom::Reading));
        figure.io = figure.last_with_io(recording).and_then(|last| last.io).map(|io| io.saturating_sub(children));
        figure.growth = growth(&readings().filter_map(|usage| Some((usage.time, usage.memory?.resident_bytes))).collect::<Vec<_>>());
    }
    let only = if figures.len() == 1 { figures.iter_mut().next() } else { None };
    if let (Some(only), Some(peak)) = (only, recording.run.usage.and_then(|usage| usage.peak_resident_bytes)) {
        let read = only.peak_resident_bytes.map_or(0, |(peak, _)| peak);
        only.peak_resident_bytes = Some((peak.max(read), PeakFrom::Exit));
    }
    figures
}

/// Where memory grew all the time: in each part of the time but the first, by a quarter of an even share at least.
fn growth(memory: &[(Monotonic, u64)]) -> Option<Growth> {
    let (first, last) = (memory.first()?, memory.last()?);
    let life = last.0.nanos_since(first.0);
    if life < GROWTH_LIFE_MIN_NANOS {
        return None;
    }
    let most = (0..memory.len()).max_by_key(|&i| (memory[i].1, i))?;
    let until_most = memory[most].0.nanos_since(first.0);
    let gives_back = until_most >= life / GROWTH_PARTS * GROWTH_PARTS_UNTIL_MOST;
    let (memory, life) = if gives_back { (&memory[..=most], until_most) } else { (memory, life) };
    let ends = (1..=GROWTH_PARTS).map(|part| {
        let since_first = u128::from(life) * u128::from(part) / u128::from(GROWTH_PARTS);
        Monotonic(first.0.0.saturating_add(u64::try_from(since_first).unwrap_or(u64::MAX)))
    });
    // Memory stays as it is while a process is not read, because then it did not run.
    let levels: Vec<u64> =
        ends.filter_map(|end| memory[..memory.partition_point(|(time, _)| *time <= end)].last().map(|it| it.1)).collect();
    let (from_bytes, to_bytes) = (*levels.first()?, *levels.last()?);
    let grown = to_bytes.checked_sub(from_bytes).filter(|grown| *grown >= GROWTH_BYTES_MIN && *grown >= to_bytes / 4)?;
    let least = grown / (GROWTH_PARTS - 1) / 4;
    levels.windows(2).all(|pair| pair[1] >= pair[0].saturating_add(least)).then_some(Growth { from_bytes, to_bytes })
}

/// User and system time of each process: what its threads had of CPUs, exact. The kernel's own counts replace it where they are larger, because
/// then switch records are missing: the totals of its threads, and the last reading of a process that started in the recording.
pub fn cpu_nanos(recording: &Recording, figures: &IdVec<ProcessRow, ProcessFigures>) -> IdVec<ProcessRow, Option<u64>> {
    if recording.cpu_slices.is_empty() {
        return figures.iter().map(|figure| figure.last(recording).map(|last| last.cpu_nanos)).collect();
    }
    let by_pid = ByPid::new(recording);
    let mut sums: IdVec<ProcessRow, Option<u64>> = IdVec::filled(Some(0), figures.len());
    for slice in &recording.cpu_slices {
        if let Some(sum) = by_pid.at(slice.pid, slice.start).and_then(|process| sums[process].as_mut()) {
            sum.add_nanos(slice.end.nanos_since(slice.start));
        }
    }
    // Threads that the kernel took out of the recording have slices of their beginning only.
    let mut totals: IdVec<ProcessRow, u64> = IdVec::filled(0, figures.len());
    for thread in &recording.threads {
        if let Some(process) = by_pid.at(thread.pid, thread.start) {
            totals[process].add_nanos(thread.totals.map_or(0, |totals| totals.on_cpu_nanos));
        }
    }
    // Before the recording, processes that longpole attached to had time on CPUs that is in their readings.
    let are_whole = !window::is_attached(recording);
    let read = |figure: &ProcessFigures| figure.last(recording).filter(|_| are_whole).map_or(0, |last| last.cpu_nanos);
    let most = |((sum, totals), figure): ((Option<u64>, u64), &ProcessFigures)| sum.map(|sum| sum.max(totals).max(read(figure)));
    sums.into_iter().zip(totals).zip(figures).map(most).collect()
}

/// CPU time that the switch records may have beyond the kernel's sum: at most this, and an eighth of that.
const COUNTED_OTHERWISE_NANOS: u64 = 10_000_000;

/// CPU time of the command. The kernel adds up the children that their parents waited for; those that were killed with their parents, or left
/// behind, are in the switch records only.
pub fn cpu_of_run(recording: &Recording) -> Option<u64> {
    let counted = recording.run.cpu_nanos?;
    if window::is_attached(recording) {
        return Some(counted);
    }
    let mut of_slices: u64 = 0;
    recording.cpu_slices.iter().for_each(|slice| of_slices.add_nanos(slice.end.nanos_since(slice.start)));
    let most = counted.saturating_add(counted / 8).saturating_add(COUNTED_OTHERWISE_NANOS);
    Some(if of_slices > most { of_slices } else { counted })
}

/// What is worth a line, at most one of each kind.
pub fn findings(recording: &Recording, figures: &IdVec<ProcessRow, ProcessFigures>) -> Vec<UsageFinding> {
    let all = || figures.enumerated();
    let grows =
        all().filter_map(|(i, it)| Some((i, it.growth?))).max_by_key(|(_, growth)| growth.to_bytes.saturating_sub(growth.from_bytes));
    let peak = all().filter_map(|(i, it)| Some((i, it.peak_resident_bytes?.0))).max_by_key(|(_, bytes)| *bytes);
    let of_some = recording.run.usage.and_then(|usage| usage.peak_resident_bytes).unwrap_or(0);
    let read = peak.map_or(0, |(_, bytes)| bytes);
    let storage = |io: IoBytes| io.storage_read.max(io.storage_written);
    let stored = all().filter_map(|(i, it)| Some((i, it.io?))).max_by_key(|(_, io)| storage(*io));
    let faults = all().filter_map(|(i, it)| Some((i, it.last(recording)?.major_faults))).max_by_key(|(_, faults)| *faults);
    let mut findings = Vec::new();
    findings.extend(grows.map(|(i, growth)| UsageFinding::Grows(i, growth)));
    // One tenth is what a process may well take at its very end.
    if of_some >= NOTABLE_PEAK_BYTES && of_some / 10 > read / 9 {
        findings.push(UsageFinding::PeakOfSome(of_some));
    } else {
        let told = grows.map(|(i, _)| i);
        findings.extend(
            peak.filter(|(i, bytes)| *bytes >= NOTABLE_PEAK_BYTES && Some(*i) != told).map(|(i, bytes)| UsageFinding::Peak(i, bytes)),
        );
    }
    findings.extend(stored.filter(|(_, io)| storage(*io) >= NOTABLE_STORAGE_BYTES).map(|(i, io)| UsageFinding::Storage(i, io)));
    findings.extend(faults.filter(|(_, faults)| *faults >= NOTABLE_FAULTS).map(|(i, faults)| UsageFinding::Faults(i, faults)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_nobody_waited_for_count_for_the_run() {
        let rows = "run x 0..900ms\nprocess w 0..900ms pid 7 under 1\ncpu 0..500ms pid 7\ncpu 0..2ms pid 1\n";
        let mut recording = longpole_model::text::parse(rows).unwrap();
        assert_eq!(cpu_of_run(&recording), None);
        for (counted, expected) in [(2_000_000, 502_000_000), (495_000_000, 495_000_000), (600_000_000, 600_000_000)] {
            recording.run.cpu_nanos = Some(counted);
            assert_eq!(cpu_of_run(&recording), Some(expected));
        }
    }
    use longpole_model::{Id, Process, ProcessMemory, RunUsage, text};

    const MB: u64 = 1_000_000;

    fn at(millis: u64) -> Monotonic {
        Monotonic(text::ORIGIN_MONOTONIC.0 + millis * 1_000_000)
    }

    fn usage(pid: u32, millis: u64, resident_mb: u64, written_mb: u64) -> ProcessUsage {
        ProcessUsage {
            pid,
            time: at(millis),
            memory: Some(ProcessMemory { resident_bytes: resident_mb * MB, peak_resident_bytes: resident_mb * MB + MB }),
            cpu_nanos: millis * 1_000_000,
            minor_faults: 1,
            major_faults: 0,
            io: Some(IoBytes { read: 0, written: written_mb * MB, storage_read: 0, storage_written: written_mb * MB }),
        }
    }

    fn grown(levels: &[(u64, u64)]) -> Option<(u64, u64)> {
        let memory: Vec<(Monotonic, u64)> = levels.iter().map(|&(millis, megabytes)| (at(millis), megabytes * MB)).collect();
        growth(&memory).map(|growth| (growth.from_bytes / MB, growth.to_bytes / MB))
    }

    #[test]
    fn steady_growth_differs_from_a_large_start() {
        let each = |level: fn(u64) -> u64| (0..=100).map(|i| (i * 100, level(i))).collect::<Vec<_>>();
        assert_eq!(grown(&each(|i| 10 + i)), Some((22, 110)));
        assert_eq!(grown(&each(|i| 10 + i / 10 * 10)), Some((20, 110)), "in steps");
        assert_eq!(grown(&each(|i| if i > 80 { 20 } else { 10 + i })), Some((20, 90)), "it gave back all before its end");
        assert_eq!(grown(&each(|i| if i < 5 { i * 100 } else { 500 })), None, "it was full soon");
        assert_eq!(grown(&each(|i| 500 + i / 20)), None, "a hundredth is nothing");
        assert_eq!(grown(&each(|i| 10 + (i % 50) * 4)), None, "it gave back");
        assert_eq!(grown(&each(|i| if i > 50 { 300 + i } else { 10 + i / 10 })), None, "half of its life it did not");
        assert_eq!(grown(&[(0, 10), (100, 50), (200, 90), (1_900, 900)]), None, "it is young");
        assert_eq!(grown(&[(0, 10)]), None);
    }

    #[test]
    fn a_process_had_at_least_the_cpu_time_of_its_last_reading() {
        let mut recording =
            text::parse("run make 0..100ms pid 1\nprocess as 10..40ms pid 2 under 1\ncpu 0..2ms pid 1\ncpu 10..11ms pid 2\n").unwrap();
        recording.process_usage = vec![usage(1, 1, 1, 0), usage(2, 39, 3, 0)];
        let cpu = |recording: &Recording| {
            cpu_nanos(recording, &figures(recording)).iter().map(|nanos| nanos.unwrap() / 1_000_000).collect::<Vec<_>>()
        };
        // The switch records of `as` end after a millisecond.
        assert_eq!(cpu(&recording), [2, 39]);
    }

    #[test]
    fn bytes_are_those_of_the_process_itself_and_the_latest_of_a_pid_is_meant() {
        let mut recording = text::parse(
            "run sh 0..100ms pid 1\nprocess dd 10..40ms pid 2 under 1\nprocess cp 15..30ms pid 3 under 2\nprocess dd 50..90ms pid 2 under 1\n",
        )
        .unwrap();
        recording.process_usage = vec![
            usage(1, 5, 3, 1),
            usage(3, 30, 5, 7),
            usage(2, 39, 9, 20),
            usage(1, 45, 3, 21),
            usage(2, 60, 11, 100),
            usage(1, 80, 3, 22),
        ];
        let figures = figures(&recording);
        let own: Vec<(&str, u64, u64, usize)> = recording
            .processes
            .iter()
            .zip(&figures)
            .map(|(process, it)| {
                (process.name.as_str(), it.io.unwrap().written / MB, it.peak_resident_bytes.unwrap().0 / MB, it.readings.len())
            })
            .collect();
        // What is read of cp when it has ended has no bytes for a plain user: those before count.
        recording.process_usage.insert(2, ProcessUsage { io: None, memory: None, ..usage(3, 31, 0, 0) });
        let cp = ProcessRow::at(2);
        assert_eq!(super::figures(&recording)[cp].io, figures[cp].io);
        // The second dd has not ended when sh is read last, so sh has nothing of it.
        assert_eq!(own, [("sh", 2, 4, 3), ("dd", 13, 10, 1), ("cp", 7, 6, 1), ("dd", 100, 12, 1)]);
        assert_eq!(findings(&recording, &figures), []);
    }

    /// A file of others may say so. Each looked through all that had the pid.
    #[test]
    fn many_processes_with_one_pid_are_found_by_their_start() {
        let mut recording = text::parse("run x 0..100ms pid 1\nprocess a 1..90ms pid 7 under 1\n").unwrap();
        let first = recording.processes.pop().unwrap();
        let before = recording.processes.len();
        let count = 300_000;
        let child = |i: u64| Process { start: Monotonic(first.start.0 + i), parent_pid: Some(7), ..first.clone() };
        recording.processes.extend((0..count).map(child));
        let began = std::time::Instant::now();
        let figures = figures(&recording);
        // Each is found by its own pid at its own start.
        assert!(figures.enumerated().skip(before).all(|(own, it)| it.parent == Some(own)));
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn who_waited_knows_the_peak_of_the_only_process_or_of_some() {
        let mut recording = text::parse("run x 0..100ms pid 1\n").unwrap();
        recording.process_usage = vec![usage(1, 5, 3, 600)];
        recording.run.usage = Some(RunUsage { peak_resident_bytes: Some(700 * MB), minor_faults: 0, major_faults: 0 });
        let (one, first) = (figures(&recording), ProcessRow::at(0));
        assert_eq!(one[first].peak_resident_bytes, Some((700 * MB, PeakFrom::Exit)));
        let io = one[first].io.unwrap();
        assert_eq!(findings(&recording, &one), [UsageFinding::Peak(first, 700 * MB), UsageFinding::Storage(first, io)]);
        recording.processes.push(recording.processes[0].clone());
        recording.processes[1].pid = 2;
        let two = figures(&recording);
        assert_eq!(two[first].peak_resident_bytes, Some((4 * MB, PeakFrom::Reading)));
        assert_eq!(findings(&recording, &two), [UsageFinding::PeakOfSome(700 * MB), UsageFinding::Storage(first, io)]);
    }
}
