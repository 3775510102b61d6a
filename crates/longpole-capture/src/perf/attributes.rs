//! The attributes of each event (perf_event_open(2)).

use std::collections::BTreeSet;

use perf_event_open_sys::bindings::{self, perf_event_attr};

use super::options::SampleClock;
use super::record::{REGISTER_MASK, SAMPLER_FORMAT, TRACKER_FORMAT};
use crate::refusal::Refused;
use crate::sys::limits::page_bytes;

/// Fewest useful bytes of stack.
const STACK_BYTES_MIN: u32 = 1 << 10;

/// Most bytes of stack: the size of a record has 16 bits, and its other fields need some of them.
const STACK_BYTES_MAX: u32 = 63 << 10;

/// About how often the switcher samples each thread that leaves its CPU: the kernel picks switches for each thread on its own, so a thread
/// that switches 10,000 times a second costs no more than one that switches ten times.
const SWITCH_RATE_HZ: u64 = 10;

/// Bytes of stack that the switcher copies: few, because there may be many threads.
const SWITCH_STACK_BYTES: u32 = 8 << 10;

/// Pages of the switcher's ring buffer: room for 31 stacks.
pub(super) const SWITCH_RING_PAGES: usize = 64;

/// What to request from the kernel, given what it refused.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) clock: SampleClock,
    pub(crate) rate_hz: u32,
    pub(crate) stack_bytes: u32,
    /// How often the stack dumps have grown.
    pub(crate) generation: u32,
    /// Whether each event counts its lost records (Linux 6.0).
    pub(crate) count_lost: bool,
    /// Whether to begin with the next exec; else at once, or when enabled.
    pub(crate) on_exec: bool,
    /// Whether to sample the kernel; if not, why.
    pub(crate) kernel: Result<(), Refused>,
    /// Whether events are on CPUs, whatever runs there.
    pub(crate) whole_cpus: bool,
    /// Whether to record the switches of threads.
    pub(crate) switches: bool,
    /// Threads that run already and may not be sampled.
    pub(crate) closed: BTreeSet<u32>,
}

impl Wanted {
    /// The period of `CpuClock`. It has a nanosecond more for each generation, to distinguish their samples.
    pub(crate) fn period_nanos(&self) -> u64 {
        1_000_000_000 / u64::from(self.rate_hz) + u64::from(self.generation)
    }
}

/// The bytes of stack to copy, within what is useful and what the kernel can do.
pub(crate) fn stack_bytes_within(bytes: u32) -> u32 {
    bytes.clamp(STACK_BYTES_MIN, STACK_BYTES_MAX) & !7
}

/// What all events have in common.
fn attribute(wanted: &Wanted) -> perf_event_attr {
    let mut attr = perf_event_attr::default();
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.set_disabled(u64::from(wanted.on_exec));
    attr.set_enable_on_exec(u64::from(wanted.on_exec));
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    // Events of whole CPUs meet the idle task, which is no work.
    attr.set_exclude_idle(u64::from(wanted.whole_cpus));
    attr.set_sample_id_all(1);
    attr.set_watermark(1);
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    if wanted.count_lost {
        attr.read_format = u64::from(bindings::PERF_FORMAT_LOST);
    }
    attr
}

/// The sampler. One of a later generation starts disabled.
pub(crate) fn sampler_attribute(wanted: &Wanted, wakeup_bytes: usize) -> perf_event_attr {
    let mut attr = attribute(wanted);
    match wanted.clock {
        SampleClock::CpuClock => attr.config = u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK),
        SampleClock::Cycles => {
            attr.type_ = bindings::PERF_TYPE_HARDWARE;
            attr.config = u64::from(bindings::PERF_COUNT_HW_CPU_CYCLES);
        }
    }
    if wanted.generation > 0 {
        attr.set_disabled(1);
    }
    match wanted.clock {
        SampleClock::CpuClock => attr.__bindgen_anon_1.sample_period = wanted.period_nanos(),
        SampleClock::Cycles => {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = u64::from(wanted.rate_hz);
        }
    }
    attr.sample_type = SAMPLER_FORMAT;
    attr.set_exclude_kernel(u64::from(wanted.kernel.is_err()));
    // The registers and the stack of user space yield more than its frame pointers.
    attr.set_exclude_callchain_user(1);
    attr.sample_regs_user = REGISTER_MASK;
    attr.sample_stack_user = wanted.stack_bytes;
    attr.set_context_switch(u64::from(wanted.switches));
    attr.__bindgen_anon_2.wakeup_watermark = u32::try_from(wakeup_bytes).unwrap_or(u32::MAX);
    attr
}

pub(super) fn switcher_attribute(wanted: &Wanted) -> perf_event_attr {
    let wakeup_bytes = SWITCH_RING_PAGES * page_bytes() / 4;
    let mut attr = sampler_attribute(wanted, wakeup_bytes);
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.config = u64::from(bindings::PERF_COUNT_SW_CONTEXT_SWITCHES);
    attr.set_freq(1);
    attr.__bindgen_anon_1.sample_freq = SWITCH_RATE_HZ;
    attr.sample_stack_user = SWITCH_STACK_BYTES;
    attr.set_context_switch(0);
    attr
}

pub(super) fn tracker_attribute(wanted: &Wanted) -> perf_event_attr {
    let mut attr = attribute(wanted);
    attr.config = u64::from(bindings::PERF_COUNT_SW_DUMMY);
    attr.sample_type = TRACKER_FORMAT;
    attr.set_task(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    // Only mappings that may be executed: `mmap_data` stays off.
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.__bindgen_anon_2.wakeup_watermark = 1;
    attr
}
