//! What processes did that ran before and after the recording.

use longpole_analysis::Report;
use serde::Serialize;

use super::states::BlockedView;
use super::threads::{ThreadView, thread_views};
use super::waits::WaitView;

/// Threads and kinds of waits in the answer of what was looked at for a while.
const ATTACHED_MAX: usize = 10;

/// What processes did that were looked at for a while.
#[derive(Debug, Clone, Serialize)]
pub struct AttachedView {
    /// The process that was asked for.
    pub pid: Option<u32>,
    /// How many threads were seen.
    pub threads_seen: u64,
    /// Those that matter most.
    pub threads: Vec<ThreadView>,
    /// On CPUs, of all threads together.
    pub on_cpu_nanos: i64,
    /// They could have run, and others had the CPUs.
    pub ready_nanos: i64,
    /// Blocked, by what for, of all threads together.
    pub blocked_nanos: BlockedView,
    /// Blocked, and not looked at.
    pub blocked_unseen_nanos: i64,
    /// What they waited for, longest first; workers that wait for work are left out where others wait.
    pub waits: Vec<WaitView>,
}

impl AttachedView {
    /// Of a recording that began and ended while its processes ran.
    pub(super) fn new(report: &Report) -> Option<Self> {
        if !report.is_attached() {
            return None;
        }
        let mut threads = thread_views(report);
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
