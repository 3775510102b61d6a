//! What processes did that ran before and after the recording.

use longpole_analysis::Report;
use serde::{Deserialize, Serialize};

use super::states::BlockedView;
use super::threads::{ThreadView, thread_views};
use super::waits::WaitView;

/// Threads, and kinds of waits, that the answer of `attach` lists at most.
const ATTACHED_MAX: usize = 10;

/// What processes did while longpole was attached to them: the recording began and ended while they ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AttachedView {
    /// The process that the user named.
    pub pid: Option<u32>,
    /// How many threads longpole saw.
    pub threads_seen: u64,
    /// The 10 threads that matter most.
    pub threads: Vec<ThreadView>,
    /// On CPUs, summed over all threads.
    pub on_cpu_nanos: i64,
    /// Ready to run while others had the CPUs, summed over all threads.
    pub ready_nanos: i64,
    /// Blocked, by what they waited for, summed over all threads.
    pub blocked_nanos: BlockedView,
    /// Blocked in waits that were not sampled, summed over all threads.
    pub blocked_unseen_nanos: i64,
    /// The 10 longest waits. Omits idle workers and, in processes that send spans, threads that work for none.
    pub waits: Vec<WaitView>,
}

impl AttachedView {
    /// The view of a recording that began and ended while its processes ran; `None` for others.
    pub(super) fn new(report: &Report) -> Option<Self> {
        if !report.is_attached() {
            return None;
        }
        let mut threads = thread_views(report, None);
        let seen = threads.len() as u64;
        let sum = |of: fn(&ThreadView) -> i64| threads.iter().map(of).fold(0, i64::saturating_add);
        let (on_cpu_nanos, ready_nanos) = (sum(|it| it.on_cpu_nanos), sum(|it| it.ready_nanos));
        let blocked_unseen_nanos = sum(|it| it.blocked_unseen_nanos);
        let blocked_nanos = threads.iter().fold(BlockedView::default(), |all, it| all.plus(&it.blocked_nanos));
        threads.retain(|thread| thread.rank < ATTACHED_MAX);
        let waits = report.whole_waits(report.waits_below(None).into_iter());
        Some(AttachedView {
            pid: report.recording().run.root_pid,
            threads_seen: seen,
            threads,
            on_cpu_nanos,
            ready_nanos,
            blocked_nanos,
            blocked_unseen_nanos,
            waits: waits.iter().take(ATTACHED_MAX).map(|sum| WaitView::with_blockers(report, sum)).collect(),
        })
    }
}
