//! Short waits, which end before they can be probed: some of them have a stack, copied as the thread left its CPU.
//!
//! ```text
//! thread     ===|      |=====|   |====|       |===
//! sample       ▲                     ▲                 by the kernel, about 10 a second: registers, stack, and its own call chain
//! wait          |------|              |-------|        its times come from the switch records: exact
//! ```
//!
//! Longer waits are probed, which shows more: the descriptors of a `poll`, the arguments of a call. The kernel's functions show what a short
//! wait is for, once their names are read.

use longpole_model::{ContextRecord, Monotonic, Observation, StackId, Wait, WaitKind};

use crate::frames::kernel::Kernel;
use crate::sink::ObservationWriter;
use longpole_model::fast_hash::FastMap;

/// Most waits that are kept until names are read: 3 MB. Beyond it names are read at once.
const HELD_MAX: usize = 10_000;

/// A thread that was sampled as it left its CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffCpuSample {
    pub(crate) pid: u32,
    pub(crate) stack: Option<StackId>,
    pub(crate) context: ContextRecord,
    /// The kernel's call chain, innermost first.
    pub(crate) chain: Vec<u64>,
    /// When it was switched out; `None` until that record has its turn.
    pub(crate) since: Option<u64>,
}

/// The sampled short waits.
#[derive(Debug, Default)]
pub(crate) struct ShortWaits {
    /// The last sample of each thread.
    falling: FastMap<u32, OffCpuSample>,
    /// Waits that are over, not yet reported, with the call chain of each.
    held: Vec<(Wait, Vec<u64>)>,
}

impl ShortWaits {
    /// A thread was sampled as it leaves its CPU.
    pub(crate) fn sampled(&mut self, tid: u32, sample: OffCpuSample) {
        self.falling.insert(tid, sample);
    }

    /// It was switched out. A preempted thread waits for nothing.
    pub(crate) fn switched_out(&mut self, tid: u32, time: u64, preempted: bool) {
        if let Some(sample) = self.falling.get_mut(&tid) {
            sample.since = Some(time);
            if preempted {
                self.falling.remove(&tid);
            }
        }
    }

    /// It has a CPU again.
    pub(crate) fn over(&mut self, tid: u32) -> Option<OffCpuSample> {
        self.falling.remove(&tid).filter(|sample| sample.since.is_some())
    }

    /// Keeps a wait that is over until names are read.
    pub(crate) fn keep(&mut self, tid: u32, sample: OffCpuSample, end: u64) {
        let OffCpuSample { pid, stack, context, chain, since } = sample;
        let Some(since) = since else { return };
        let (start, end) = (Monotonic(since), Monotonic(end));
        let (kind, syscall) = (WaitKind::Other, String::new());
        self.held.push((Wait { pid, tid, start, end, kind, syscall, stack, context, futex: None }, chain));
    }

    /// Whether no more can be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() >= HELD_MAX
    }

    /// Reports the waits that are over; how many the sink kept.
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
    fn a_short_wait_lies_between_two_switches_and_was_no_preemption() {
        let sample = |pid| OffCpuSample { pid, stack: None, context: ContextRecord::Absent, chain: Vec::new(), since: None };
        let mut waits = ShortWaits::default();
        assert_eq!(waits.over(7), None);
        waits.sampled(7, sample(1));
        assert_eq!(waits.over(7), None, "the switch record was lost");
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
