//! Losses of the recorder, counted until they are reported.

use longpole_model::{Loss, LossKind};

use crate::frames::stacks::Truncation;
use longpole_model::fast_hash::FastMap;

/// Losses not yet reported, by kind and reason.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) lost: u64,
    pub(super) throttled: u64,
    pub(super) torn: u64,
    pub(super) out_of_reach: u64,
    pub(super) undecodable: u64,
    pub(super) waits_skipped: u64,
    pub(super) long_waits_skipped: u64,
    pub(super) waits_refused: u64,
    pub(super) cut: FastMap<Truncation, u64>,
}

impl Losses {
    pub(super) fn into_list(self) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut add = |kind, count, detail: &str| {
            if count > 0 {
                Loss::new(kind, count, detail).merge_into(&mut losses);
            }
        };
        add(
            LossKind::SamplesLost,
            self.lost,
            "records the kernel dropped because its buffer was full: samples, or switches between threads",
        );
        add(LossKind::SamplesLost, self.undecodable, "records that could not be decoded");
        add(LossKind::SamplesThrottled, self.throttled, "the kernel throttled sampling (kernel.perf_cpu_time_max_percent)");
        add(LossKind::ContextTorn, self.torn, "");
        add(
            LossKind::ContextNotSeen,
            self.out_of_reach,
            "samples whose context record (OTEP 4947) is not in the copied part of the stack: on the heap, on the main thread, or too deep",
        );
        add(LossKind::WaitsNotSeen, self.waits_skipped, "of 5 to 20 ms; too short, or too many threads waited at once");
        add(
            LossKind::WaitsNotSeen,
            self.long_waits_skipped,
            "of more than 20 ms; the recorder was busy, or too many threads waited at once",
        );
        add(
            LossKind::WaitsNotSeen,
            self.waits_refused,
            "of threads that longpole may not inspect: another user's, or protected by kernel.yama.ptrace_scope or by the program itself",
        );
        for (cut, count) in self.cut {
            let kind = match cut {
                Truncation::Walk(end) if end.is_truncated() => LossKind::StacksTruncated,
                Truncation::KernelDeep => LossKind::StacksTruncated,
                _ => LossKind::StacksUnwindFailed,
            };
            add(kind, count, &cut.to_string());
        }
        losses
    }
}
