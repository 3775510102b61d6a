//! What samples cannot show of a command: its time in the kernel, and its time ready to run without a CPU.
//!
//! Both come from switch records, which say to the nanosecond when each thread was on a CPU and whether it left
//! by itself or had to. Where the kernel is not sampled (an unprivileged user may not), time on a CPU that no sample stands
//! for was spent there. A thread that had to leave is ready until it comes back.

use std::collections::HashMap;

use longpole_model::{AddNanos, CaptureMode, Monotonic, Nanos, Recording, SumNanos, ThreadKey};

use crate::note::Note;

/// Below this share of the time on a CPU, and of the run, there is nothing worth saying: samples have their error too.
const WORTH_SAYING_PERCENT: u64 = 10;

/// Time of all threads together, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTime {
    /// On a CPU.
    pub on_cpu_nanos: u64,
    /// On a CPU, and without a sample that stands for it: in the kernel, unless samples were lost.
    pub unsampled_nanos: u64,
    /// Ready, and without a CPU because others had it.
    pub ready_nanos: u64,
}

impl ThreadTime {
    /// Sums up the switch records and the samples of a recording.
    pub fn of(recording: &Recording) -> ThreadTime {
        let mut time = ThreadTime::default();
        let mut had_to_leave: HashMap<ThreadKey, Monotonic> = HashMap::new();
        for slice in &recording.cpu_slices {
            time.on_cpu_nanos.add_nanos(slice.end.0.saturating_sub(slice.start.0));
            if let Some(left) = had_to_leave.remove(&slice.thread()) {
                time.ready_nanos.add_nanos(slice.start.0.saturating_sub(left.0));
            }
            if slice.preempted {
                had_to_leave.insert(slice.thread(), slice.end);
            }
        }
        let sampled: u64 = recording.samples.iter().map(|sample| sample.weight_nanos).sum_nanos();
        time.unsampled_nanos = time.on_cpu_nanos.saturating_sub(sampled);
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
            && is_worth_saying(self.unsampled_nanos, self.on_cpu_nanos)
            && !recording.samples.is_empty()
        {
            notes.push(Note::KernelTime { unsampled: self.unsampled_nanos, on_cpu: self.on_cpu_nanos, why: why.clone() });
        }
        if is_worth_saying(self.ready_nanos, wall.magnitude()) {
            notes.push(Note::CpuBusy(self.ready_nanos));
        }
        notes
    }
}

fn is_worth_saying(part: u64, whole: u64) -> bool {
    u128::from(part) * 100 > u128::from(whole) * u128::from(WORTH_SAYING_PERCENT)
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
        assert_eq!(time, ThreadTime { on_cpu_nanos: 40, unsampled_nanos: 40, ready_nanos: 15 });
    }

    #[test]
    fn only_a_run_with_samples_has_notes() {
        let mut recording = text::parse("run x 0..100ms\n").unwrap();
        let time = ThreadTime { on_cpu_nanos: 50_000_000, unsampled_nanos: 0, ready_nanos: 90_000_000 };
        recording.run.mode = CaptureMode::Perf;
        let notes = time.notes(&recording, Nanos(100_000_000));
        assert_eq!(notes, [Note::CpuBusy(90_000_000)]);
        recording.run.mode = CaptureMode::Off;
        assert!(time.notes(&recording, Nanos(100_000_000)).is_empty());
    }
}
