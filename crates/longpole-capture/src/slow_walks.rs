//! Time for the stacks of processes that take long to unwind.
//!
//! A process chooses its unwind information, and so how long its stacks take: up to some 100 ms, where others take some 10 µs. So each process
//! has a budget, and only its own stacks are cut to one frame when it is used up. A thread's CPU time is read by a system call, so it is read
//! only for processes that were slow once.

use std::collections::HashMap;

use crate::cpu_budget::CpuBudget;
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};

/// A walk that takes longer may be slow; a busy machine can also have interrupted it.
const SLOW_NANOS: u64 = 1_000_000;

/// The part of a CPU that the stacks of a slow process may take, and what it saves up. Ten thousand honest stacks take that.
const WALKS_PART: i64 = 20;
const WALKS_NANOS_AT_ONCE: i64 = 100_000_000;

/// Slow processes that are remembered. Beyond it all begin anew.
const PROCESSES_MAX: usize = 4_096;

/// The budgets of processes whose stacks took long.
#[derive(Debug, Default)]
pub(crate) struct SlowWalks(HashMap<u32, CpuBudget>);

impl SlowWalks {
    /// Walks a stack of the process; `None` without a walk if its budget is used up at `now`.
    pub(crate) fn walk<T>(&mut self, pid: u32, now: u64, walk: impl FnOnce() -> T) -> Option<T> {
        if let Some(budget) = self.0.get_mut(&pid) {
            if !budget.has_some(now) {
                return None;
            }
            let before = thread_cpu_nanos();
            let walked = walk();
            budget.spend(thread_cpu_nanos().saturating_sub(before));
            return Some(walked);
        }
        let before = monotonic_nanos();
        let walked = walk();
        if monotonic_nanos().saturating_sub(before) > SLOW_NANOS {
            if self.0.len() >= PROCESSES_MAX {
                self.0.clear();
            }
            let mut budget = CpuBudget::new(WALKS_PART, WALKS_NANOS_AT_ONCE);
            // What it has saved up is from before.
            budget.has_some(now);
            self.0.insert(pid, budget);
        }
        Some(walked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_whose_stacks_take_long_loses_some() {
        let mut walks = SlowWalks::default();
        let slow = || {
            let until = thread_cpu_nanos() + 5_000_000;
            while thread_cpu_nanos() < until {}
        };
        // A sample each millisecond: the first is free, 100 ms are saved up, and each second earns 50 ms.
        let walked = (0..1_000).filter(|millis| walks.walk(7, millis * 1_000_000, slow).is_some()).count();
        assert!((15..=40).contains(&walked), "{walked}");
        assert!((0..1_000).all(|millis| walks.walk(8, millis * 1_000_000, || ()).is_some()));
        assert!(walks.walk(7, 10_000_000_000, slow).is_some(), "it has earned some again");
    }
}
