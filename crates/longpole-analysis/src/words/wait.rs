//! Waits in words.

use longpole_model::WaitKind;

use crate::report::names::NamedWait;
use crate::time::blockers::Relation;
use crate::words::phrase::Words;

/// A kind of wait: `blocked on the disk`.
pub(super) fn wait_kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "blocked on a lock",
        WaitKind::Queue => "waiting for another thread",
        WaitKind::Join => "waiting for a thread to end",
        WaitKind::Disk => "blocked on the disk",
        WaitKind::Network => "blocked on the network",
        WaitKind::Sleep => "asleep",
        WaitKind::PageFault => "blocked on a page fault",
        WaitKind::Child => "waiting for a child process",
        WaitKind::Pipe => "blocked on a pipe",
        WaitKind::Idle => "idle, waiting for work",
        WaitKind::Other => "blocked",
    }
}

/// A wait and the function that waits: `asleep, in look_up`.
pub(super) fn wait(wait: NamedWait<'_>) -> Words {
    let words = Words::plain(match wait.relation {
        Some(Relation::Wakes) => "waiting for another thread",
        _ => wait_kind(wait.kind),
    });
    match wait.function {
        Some(function) => words.text(", in ").waiting_function(function),
        None => words,
    }
}
