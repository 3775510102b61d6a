//! What samples cannot show of a command: its time in the kernel, and its time ready to run without a CPU.
//!
//! Both come from switch records, which say to the nanosecond when each thread was on a CPU and whether it left
//! by itself or had to. Where the kernel is not sampled (an unprivileged user may not), time on a CPU that no sample stands
//! for was spent there. A thread that had to leave is ready until it comes back.

use std::collections::HashMap;

use longpole_model::{CaptureMode, Monotonic, Nanos, Recording, ThreadKey, UnsignedNanos};

use crate::note::{BusySavings, CpusUsed, Note};
use crate::time::usage;

/// Below this share of the time on a CPU, and of the run, there is nothing worth saying: samples have their error too.
const WORTH_SAYING_PERCENT: u64 = 10;

/// Time of all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTime {
    /// On a CPU.
    pub on_cpu: UnsignedNanos,
    /// On a CPU, and without a sample that stands for it: in the kernel, unless samples were lost.
    pub unsampled: UnsignedNanos,
    /// Ready, and without a CPU because others had it.
    pub ready: UnsignedNanos,
}

impl ThreadTime {
    /// Sums up the switch records and the samples of a recording.
    pub fn of(recording: &Recording) -> ThreadTime {
        let mut time = ThreadTime::default();
        let mut had_to_leave: HashMap<ThreadKey, Monotonic> = HashMap::new();
        for slice in &recording.cpu_slices {
            time.on_cpu += UnsignedNanos(slice.end.nanos_since(slice.start));
            if let Some(left) = had_to_leave.remove(&slice.thread()) {
                time.ready += UnsignedNanos(slice.start.nanos_since(left));
            }
            if slice.preempted {
                had_to_leave.insert(slice.thread(), slice.end);
            }
        }
        let sampled = recording.samples.iter().map(|sample| UnsignedNanos(sample.weight_nanos)).sum();
        time.unsampled = time.on_cpu - sampled;
        time
    }

    /// What a reader must know of it; nothing where there are no samples to misread.
    pub fn notes(&self, recording: &Recording, wall: Nanos) -> Vec<Note> {
        let mut notes = Vec::new();
        let why_not_kernel = match &recording.run.mode {
            CaptureMode::User { why_not_kernel } => Some(why_not_kernel),
            CaptureMode::Perf => None,
            CaptureMode::Imported | CaptureMode::Off => return notes,
            CaptureMode::Refused { .. } => {
                if !recording.processes.is_empty() {
                    notes.push(Note::Watched);
                }
                return notes;
            }
        };
        if let Some(why) = why_not_kernel
            && is_worth_saying(self.unsampled, self.on_cpu)
            && !recording.samples.is_empty()
        {
            notes.push(Note::KernelTime { unsampled: self.unsampled, on_cpu: self.on_cpu, why: why.clone() });
        }
        if is_worth_saying(self.ready, UnsignedNanos(wall.magnitude())) {
            let cpu = usage::cpu_of_run(recording).map_or(self.on_cpu, UnsignedNanos);
            let wall = u128::from(wall.magnitude().max(1));
            let tenths = (u128::from(cpu.0) * 20 + wall) / (wall * 2);
            let used = CpusUsed { tenths: u64::try_from(tenths).unwrap_or(u64::MAX), cpus: recording.run.cpus };
            let used = Some(used).filter(|used| used.cpus > 0);
            let is_in_ranges = recording.spans.is_empty() && used.is_some();
            let savings = if is_in_ranges { BusySavings::LowEnds } else { BusySavings::TooLarge };
            notes.push(Note::CpuBusy { ready: self.ready, used, savings: Some(savings) });
        }
        notes
    }
}

fn is_worth_saying(part: UnsignedNanos, whole: UnsignedNanos) -> bool {
    u128::from(part.0) * 100 > u128::from(whole.0) * u128::from(WORTH_SAYING_PERCENT)
}

#[cfg(test)]
mod tests {
    use longpole_model::{CpuSlice, text};

    use super::*;

    fn slice(tid: u32, start: u64, end: u64, preempted: bool) -> CpuSlice {
        CpuSlice { pid: 1, tid, start: Monotonic(start), end: Monotonic(end), preempted }
    }

    #[test]
    fn a_thread_that_had_to_leave_is_ready_until_it_is_back() {
        let mut recording = text::parse("run x 0..100ms\n").unwrap();
        recording.cpu_slices = vec![slice(1, 0, 10, true), slice(2, 5, 20, false), slice(1, 25, 30, false), slice(1, 50, 60, true)];
        let time = ThreadTime::of(&recording);
        assert_eq!(time, ThreadTime { on_cpu: UnsignedNanos(40), unsampled: UnsignedNanos(40), ready: UnsignedNanos(15) });
    }

    #[test]
    fn only_a_run_with_samples_has_notes() {
        let mut recording = text::parse("run x 0..100ms\n").unwrap();
        let (on_cpu, ready) = (UnsignedNanos(50_000_000), UnsignedNanos(90_000_000));
        let time = ThreadTime { on_cpu, unsampled: UnsignedNanos::ZERO, ready };
        recording.run.mode = CaptureMode::Perf;
        let notes = time.notes(&recording, Nanos(100_000_000));
        let (used, savings) = (Some(CpusUsed { tenths: 5, cpus: 2 }), Some(BusySavings::LowEnds));
        assert_eq!(notes, [Note::CpuBusy { ready, used, savings }]);
        recording.run.mode = CaptureMode::Off;
        assert!(time.notes(&recording, Nanos(100_000_000)).is_empty());
    }
}
