//! States of time, in words.

use longpole_model::StateKind;

use crate::words::wait::wait_kind;

/// A state: `on-CPU`, `blocked on the disk`.
pub fn state(kind: StateKind) -> &'static str {
    match kind {
        StateKind::OnCpu => "on-CPU",
        StateKind::Blocked(wait) => wait_kind(wait),
        StateKind::Runnable => "runnable",
        StateKind::BlockedUnseen => "blocked (not sampled)",
        StateKind::InChild => "in a child",
        StateKind::Awaiting => "awaiting",
        StateKind::Remote => "remote",
        StateKind::Unaccounted => "unaccounted",
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::WaitKind;

    use super::*;

    #[test]
    fn each_state_has_its_word() {
        use StateKind::{Awaiting, Blocked, BlockedUnseen, InChild, OnCpu, Remote, Runnable, Unaccounted};
        let kinds = [OnCpu, Runnable, BlockedUnseen, InChild, Awaiting, Remote, Unaccounted];
        assert_eq!(kinds.map(state), ["on-CPU", "runnable", "blocked (not sampled)", "in a child", "awaiting", "remote", "unaccounted"]);
        use WaitKind::{Child, Disk, Join, Lock, Network, Other, PageFault, Pipe, Sleep};
        assert_eq!(
            [Lock, Join, Disk, Network, Sleep, PageFault, Child, Pipe, Other].map(|wait| state(Blocked(wait))),
            [
                "blocked on a lock",
                "waiting for a thread to end",
                "blocked on the disk",
                "blocked on the network",
                "asleep",
                "blocked on a page fault",
                "waiting for a child process",
                "blocked on a pipe",
                "blocked",
            ]
        );
    }
}
