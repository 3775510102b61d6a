//! Which of several waits stands for all: that of a process with several threads blocked at once.

use longpole_model::WaitKind;

/// Which wait stands for a node with threads blocked on several things: what comes from outside before what other threads of the
/// program have to do, for who waits for another thread waits for what that one waits for. It is idle only if all its threads are.
const BLOCKED_ORDER: [WaitKind; WaitKind::ALL.len()] = [
    WaitKind::Disk,
    WaitKind::Network,
    WaitKind::PageFault,
    WaitKind::Child,
    WaitKind::Pipe,
    WaitKind::Sleep,
    WaitKind::Lock,
    WaitKind::Queue,
    WaitKind::Join,
    WaitKind::Other,
    WaitKind::Idle,
];

/// The call by which threads wait for each other.
pub(crate) const FUTEX: &str = "futex";

/// Its place in that order.
pub(crate) fn blocked_rank(kind: WaitKind) -> usize {
    BLOCKED_ORDER.iter().position(|known| *known == kind).unwrap_or(BLOCKED_ORDER.len())
}
