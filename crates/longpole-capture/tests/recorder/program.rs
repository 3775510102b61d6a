//! What the played programs are made of: clocks, facts for the test, and functions that work.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const ROLE: &str = "LONGPOLE_RECORDER_ROLE";

pub(crate) const FACTS: &str = "LONGPOLE_RECORDER_FACTS";

pub(crate) const MILLI: u64 = 1_000_000;

pub(crate) fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure it is given.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

pub(crate) fn process_cpu() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub(crate) fn gettid() -> u32 {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::gettid() as u32 }
}

/// Tells the test something.
pub(crate) fn fact(name: &str, value: impl std::fmt::Display) {
    let path = std::env::var_os(FACTS).unwrap();
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(format!("{name} {value}\n").as_bytes()).unwrap();
}

#[inline(never)]
pub(crate) fn mix(rounds: u64, seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x)
}

macro_rules! burner {
    ($name:ident, $salt:literal) => {
        /// Works until its thread has had so much CPU time.
        #[inline(never)]
        pub(crate) fn $name(until: u64) {
            while thread_cpu() < until {
                black_box(mix(20_000, $salt));
            }
            black_box(());
        }
    };
}

burner!(burn_three, 3);
burner!(burn_one, 1);
burner!(burn_leaf, 7);
burner!(burn_even, 11);
burner!(burn_odd, 13);

/// A command line of this binary in a role.
pub(crate) fn role_command(program: &Path, role: &str, facts: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]).env(ROLE, role).env(FACTS, facts);
    command
}

pub(crate) fn me() -> PathBuf {
    std::env::current_exe().unwrap()
}
