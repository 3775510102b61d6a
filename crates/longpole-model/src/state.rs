//! What a span, or one of its threads, does at a moment.

use std::ops::{Index, IndexMut};

use crate::wait::WaitKind;

/// A state. One moment of a span has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateKind {
    /// A thread runs its code on a CPU.
    OnCpu,
    /// A thread could run its code, and other threads have the CPUs.
    Runnable,
    /// A child is open.
    InChild,
    /// A thread is blocked, and the recorder sampled on what.
    Blocked(WaitKind),
    /// A thread is blocked, and the recorder did not sample on what.
    BlockedUnseen,
    /// No thread works for it.
    Awaiting,
    /// No thread here works for it, and it is the calling side of something that the network or another host does.
    Remote,
    /// Nothing of these is known.
    Unaccounted,
}

/// Number of states.
const COUNT: usize = 7 + WaitKind::ALL.len();

impl StateKind {
    /// All states; kinds of waits in the order of [`WaitKind::ALL`].
    pub const ALL: [StateKind; COUNT] = {
        let mut all = [StateKind::OnCpu; COUNT];
        all[1] = StateKind::Runnable;
        all[2] = StateKind::InChild;
        let mut kind = 0;
        while kind < WaitKind::ALL.len() {
            all[3 + kind] = StateKind::Blocked(WaitKind::ALL[kind]);
            kind += 1;
        }
        all[3 + kind] = StateKind::BlockedUnseen;
        all[4 + kind] = StateKind::Awaiting;
        all[5 + kind] = StateKind::Remote;
        all[6 + kind] = StateKind::Unaccounted;
        all
    };

    /// Its place in [`StateKind::ALL`].
    pub fn place(self) -> usize {
        let kinds = WaitKind::ALL.len();
        match self {
            StateKind::OnCpu => 0,
            StateKind::Runnable => 1,
            StateKind::InChild => 2,
            StateKind::Blocked(kind) => 3 + kind as usize,
            StateKind::BlockedUnseen => 3 + kinds,
            StateKind::Awaiting => 4 + kinds,
            StateKind::Remote => 5 + kinds,
            StateKind::Unaccounted => 6 + kinds,
        }
    }

    /// The word JSON and the page use; a wait has its kind beside it.
    pub fn as_str(self) -> &'static str {
        match self {
            StateKind::OnCpu => "on_cpu",
            StateKind::Runnable => "runnable",
            StateKind::InChild => "in_child",
            StateKind::Blocked(_) => "blocked",
            StateKind::BlockedUnseen => "blocked_unseen",
            StateKind::Awaiting => "awaiting",
            StateKind::Remote => "remote",
            StateKind::Unaccounted => "unaccounted",
        }
    }
}

/// A value for each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByState<T>([T; COUNT]);

impl<T> ByState<T> {
    /// The states with their values, in the order of [`StateKind::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (StateKind, &T)> {
        StateKind::ALL.into_iter().zip(&self.0)
    }

    /// The same, to change the values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (StateKind, &mut T)> {
        StateKind::ALL.into_iter().zip(&mut self.0)
    }
}

impl<T> Index<StateKind> for ByState<T> {
    type Output = T;

    fn index(&self, state: StateKind) -> &T {
        &self.0[state.place()]
    }
}

impl<T> IndexMut<StateKind> for ByState<T> {
    fn index_mut(&mut self, state: StateKind) -> &mut T {
        &mut self.0[state.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_place() {
        let places: Vec<usize> = StateKind::ALL.iter().map(|state| state.place()).collect();
        assert_eq!(places, (0..COUNT).collect::<Vec<usize>>());
        let mut names = ByState::<&str>::default();
        names[StateKind::Blocked(WaitKind::Disk)] = "disk";
        assert_eq!(names.iter().filter(|(_, name)| !name.is_empty()).collect::<Vec<_>>(), [(StateKind::Blocked(WaitKind::Disk), &"disk")]);
    }
}
