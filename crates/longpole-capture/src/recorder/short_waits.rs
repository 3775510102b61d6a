//! Short waits: of those that are over before a thread can be looked at, some have a stack, copied as the thread left its CPU.
//!
//! ```text
//! thread     ===|      |=====|   |====|       |===
//! sampled      ▲                     ▲                 by the kernel, now and then; registers, stack, and its own call chain
//! sample          |------|              |-------|        its times are those of the switch records: exact
//! ```
//!
//! Longer ones are looked at while they last, which tells more: the descriptors of a `poll`, the arguments of a call. What a sample waits for
//! is told by the functions of the kernel that it left its CPU in, once their names are read.

use longpole_model::{ContextRecord, Monotonic, Observation, StackId, Wait, WaitKind};

use crate::frames::kernel::Kernel;
use crate::number_map::NumberMap;
use crate::sink::ObservationWriter;

/// Most waits that wait for names: 3 MB. Beyond it names are read at once.
const HELD_MAX: usize = 10_000;

/// A thread that leaves its CPU, or has left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffCpuSample {
    pub(crate) pid: u32,
    pub(crate) stack: Option<StackId>,
    pub(crate) context: ContextRecord,
    /// Where the kernel was.
    pub(crate) chain: Vec<u64>,
    /// When it was switched out; `None` until its record comes.
    pub(crate) since: Option<u64>,
}

/// Those that are sampled.
#[derive(Debug, Default)]
pub(crate) struct ShortWaits {
    /// By thread, the last one.
    falling: NumberMap<u32, OffCpuSample>,
    /// Over, and not told.
    held: Vec<(Wait, Vec<u64>)>,
}

impl ShortWaits {
    /// A thread is about to leave its CPU.
    pub(crate) fn sampled(&mut self, tid: u32, sample: OffCpuSample) {
        self.falling.insert(tid, sample);
    }

    /// It has left it; where it had to, it does not wait for anything.
    pub(crate) fn switched_out(&mut self, tid: u32, time: u64, preempted: bool) {
        if let Some(sample) = self.falling.get_mut(&tid) {
            sample.since = Some(time);
            if preempted {
                self.falling.remove(&tid);
            }
        }
    }

    /// It has its CPU again.
    pub(crate) fn over(&mut self, tid: u32) -> Option<OffCpuSample> {
        self.falling.remove(&tid).filter(|sample| sample.since.is_some())
    }

    /// Keeps one that is over until what it waited for is known.
    pub(crate) fn keep(&mut self, tid: u32, sample: OffCpuSample, end: u64) {
        let OffCpuSample { pid, stack, context, chain, since } = sample;
        let Some(since) = since else { return };
        let (start, end) = (Monotonic(since), Monotonic(end));
        let (kind, syscall) = (WaitKind::Other, String::new());
        self.held.push((Wait { pid, tid, start, end, kind, syscall, stack, context, futex: None }, chain));
    }

    /// Whether no more can be held.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() >= HELD_MAX
    }

    /// Tells those that are over; how many were kept.
    pub(crate) fn report(&mut self, kernel: &mut Kernel, out: &mut ObservationWriter) -> u64 {
        let mut kept = 0;
        for (mut wait, chain) in self.held.drain(..) {
            (wait.kind, wait.syscall) = kernel.wait(&chain);
            kept += u64::from(out.give(Observation::Wait(wait)));
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doze_is_between_its_own_switches_and_was_no_choice_of_others() {
        let sample = |pid| OffCpuSample { pid, stack: None, context: ContextRecord::Absent, chain: Vec::new(), since: None };
        let mut waits = ShortWaits::default();
        assert_eq!(waits.over(7), None);
        waits.sampled(7, sample(1));
        assert_eq!(waits.over(7), None, "the record of its leaving was lost");
        waits.sampled(7, sample(2));
        waits.switched_out(7, 100, true);
        assert_eq!(waits.over(7), None);
        waits.sampled(7, sample(3));
        waits.switched_out(7, 200, false);
        let over = waits.over(7).unwrap();
        assert_eq!((over.pid, over.since), (3, Some(200)));
        waits.keep(7, over, 300);
        assert_eq!((waits.held.len(), waits.held[0].0.nanos(), waits.is_full()), (1, 100, false));
    }
}
