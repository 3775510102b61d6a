//! Ground truth for the recorder: this binary also plays programs with known work, and each test compares a recording with that work. As root, a user
//! without privilege runs all tests once more.

#![allow(unsafe_code)]

mod cpu;
mod figures;
mod privilege;
mod processes;
mod program;
mod recorded;
mod refusals;
mod stacks;
mod threads;
mod waits;

use crate::program::{MILLI, ROLE, burn_leaf, clock, fact, process_cpu, thread_cpu};

/// Entry of every played program; as a test of its own it does nothing.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let start = clock(libc::CLOCK_MONOTONIC);
    match role.as_str() {
        "shares" => cpu::role_shares(),
        "threads" => threads::role_threads(),
        "chain" => processes::role_chain(),
        "leaf" => burn_leaf(thread_cpu() + 200 * MILLI),
        "deep" => stacks::role_deep(),
        "deeper" => stacks::role_deeper(),
        "deleted" => stacks::role_deleted(),
        "short" => processes::role_short(),
        "survivor" => processes::role_survivor(),
        "switches" => cpu::role_switches(),
        "spin" => figures::role_spin(),
        "execs" => figures::role_execs(),
        "anonymous" => stacks::role_anonymous(),
        "signal" => stacks::role_signal(),
        "waits" => waits::role_waits(),
        "disk" => waits::role_disk(),
        "naps" => waits::role_naps(),
        "kernel" => cpu::role_kernel(),
        "dozes" => waits::role_dozes(),
        "grows" => processes::role_grows(),
        "without-files" => refusals::role_without_files(),
        "without-system-call" => refusals::role_without_system_call(),
        "without-memory" => refusals::role_without_memory(),
        other => panic!("no role {other}"),
    }
    fact("wall", clock(libc::CLOCK_MONOTONIC) - start);
    fact("cpu-of-all", process_cpu());
}
