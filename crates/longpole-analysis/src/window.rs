//! A recording of processes that ran before it: what it has of the time before its start and after its end, it has by chance. The counters that
//! the kernel keeps since a process began, and the lives and stretches that the recorder found while it attached, become those of the recording.

use std::collections::{HashMap, HashSet};

use longpole_model::{Monotonic, ProcessUsage, Recording};

/// Whether the recorder attached to processes that ran before and after. What other tools recorded cost no recorder of ours.
pub(crate) fn is_attached(recording: &Recording) -> bool {
    let run = &recording.run;
    run.end.is_some() && run.exit.is_none() && run.recorder_cost.is_some()
}

/// Keeps what such a recording has of its own time. A second call changes nothing.
pub(crate) fn keep_to(recording: &mut Recording) {
    if !is_attached(recording) {
        return;
    }
    let (clock, start) = (recording.clock.clone(), recording.run.start);
    let end = recording.run.end.unwrap_or(start);
    let is_outside = |from: Monotonic, to: Monotonic| {
        clock.to_unix(to).is_some_and(|to| to < start) || clock.to_unix(from).is_some_and(|from| from > end)
    };
    let within = |at: Monotonic| match clock.to_unix(at) {
        Some(unix) if unix < start => Monotonic(at.0.saturating_add_signed(start.nanos_since(unix))),
        Some(unix) if unix > end => Monotonic(at.0.saturating_add_signed(end.nanos_since(unix))),
        _ => at,
    };
    let there: HashSet<u32> =
        recording.processes.iter().filter(|it| clock.to_unix(it.start).is_some_and(|at| at <= start)).map(|it| it.pid).collect();
    let readings = recording.process_usage.iter_mut().filter(|usage| there.contains(&usage.pid));
    rebase(readings);
    recording.processes.iter_mut().for_each(|process| process.start = within(process.start));
    recording.threads.iter_mut().for_each(|thread| thread.start = within(thread.start));
    recording.cpu_slices.retain(|slice| !is_outside(slice.start, slice.end));
    recording.cpu_slices.iter_mut().for_each(|slice| (slice.start, slice.end) = (within(slice.start), within(slice.end)));
    recording.current_spans.retain(|current| !is_outside(current.start, current.end));
    recording.current_spans.iter_mut().for_each(|current| (current.start, current.end) = (within(current.start), within(current.end)));
    // Links stand in the order of these.
    if recording.wait_links.is_empty() {
        recording.waits.retain(|wait| !is_outside(wait.start, wait.end));
    }
    recording.waits.iter_mut().for_each(|wait| (wait.start, wait.end) = (within(wait.start), within(wait.end)));
    if recording.sample_links.is_empty() {
        recording.samples.retain(|sample| !is_outside(sample.time, sample.time));
    }
}

/// Counts from the first reading of each process on, and takes for the peak of its memory the most that a reading found.
fn rebase<'a>(readings: impl Iterator<Item = &'a mut ProcessUsage>) {
    let mut first: HashMap<u32, ProcessUsage> = HashMap::new();
    let mut peaks: HashMap<u32, u64> = HashMap::new();
    for usage in readings {
        let base = *first.entry(usage.pid).or_insert(*usage);
        usage.cpu_nanos = usage.cpu_nanos.saturating_sub(base.cpu_nanos);
        usage.minor_faults = usage.minor_faults.saturating_sub(base.minor_faults);
        usage.major_faults = usage.major_faults.saturating_sub(base.major_faults);
        usage.io = usage.io.map(|io| io.saturating_sub(base.io.unwrap_or_default()));
        if let Some(memory) = &mut usage.memory {
            let peak = peaks.entry(usage.pid).or_default();
            *peak = memory.resident_bytes.max(*peak);
            memory.peak_resident_bytes = *peak;
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::{IoBytes, ProcessMemory, RecorderCost, text};

    use super::*;

    #[test]
    fn an_attached_process_has_no_past() {
        let mut recording = text::parse(
            "\
run x 100..200ms
process x 70..200ms pid 1
thread x 70..200ms pid 1 tid 1
cpu 70..90ms pid 1
cpu 95..110ms pid 1
wait 60..99ms pid 1 sleep main;nap
wait 90..120ms pid 1 tid 2 sleep main;nap
",
        )
        .unwrap();
        let io = |read| Some(IoBytes { read, ..IoBytes::default() });
        let usage = |read, resident_bytes| ProcessUsage {
            pid: 1,
            time: recording.processes[0].start,
            memory: Some(ProcessMemory { resident_bytes, peak_resident_bytes: 900 }),
            cpu_nanos: read,
            minor_faults: read,
            major_faults: 7,
            io: io(read),
        };
        recording.process_usage = vec![usage(500, 90), usage(510, 80), usage(560, 95)];
        let whole = recording.clone();
        keep_to(&mut recording);
        assert_eq!(recording, whole, "the run of a command has all of its time");
        (recording.run.exit, recording.run.recorder_cost) = (None, Some(RecorderCost { cpu_nanos: 1, rss_bytes_max: 1 }));
        keep_to(&mut recording);
        let starts = |starts: &[Monotonic]| {
            starts.iter().map(|at| recording.clock.to_unix(*at).unwrap().nanos_since(recording.run.start)).collect::<Vec<_>>()
        };
        let all: Vec<Monotonic> = [recording.processes[0].start, recording.threads[0].start]
            .into_iter()
            .chain(recording.cpu_slices.iter().map(|it| it.start))
            .chain(recording.waits.iter().map(|it| it.start))
            .collect();
        assert_eq!(starts(&all), [0, 0, 0, 0], "one slice and one wait are left");
        let counted: Vec<_> = recording
            .process_usage
            .iter()
            .map(|it| (it.io, it.cpu_nanos, it.minor_faults, it.major_faults, it.memory.unwrap().peak_resident_bytes))
            .collect();
        assert_eq!(counted, [(io(0), 0, 0, 0, 90), (io(10), 10, 10, 0, 90), (io(60), 60, 60, 0, 95)]);
        let once = recording.clone();
        keep_to(&mut recording);
        assert_eq!(recording, once);
    }
}
