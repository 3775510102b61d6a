//! What tests of several crates share: who measures time runs alone, what noise can disturb holds `k` of `n` times and its rate is kept,
//! nothing is skipped in silence, and random numbers come from a seed.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "rates, skips and names of tests are for people")]

pub mod random;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names the file that lists what was skipped: `test: reason`, a line each.
const SKIPPED_TESTS: &str = "LONGPOLE_SKIPPED_TESTS";

/// Names the file that keeps pass rates: `trial TAB held TAB made TAB share of CPU time that the host took`, a line each.
const PASS_RATES: &str = "LONGPOLE_PASS_RATES";

/// While the host of a virtual machine takes more than this share of its CPUs, no test can measure times within one per cent.
const STOLEN_SHARE_MAX: f64 = 0.005;

/// Waits until no other test of this process holds it.
///
/// Whoever measures time holds it: tests of one binary run beside each other, and disturb each other's clocks.
#[must_use = "the turn is over when it is dropped"]
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has ended its turn.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requires that `attempt` holds `k` times of `n`, prints the rate, and keeps it in `target/pass-rates.tsv` under `cargo xtask test`.
///
/// Makes no more attempts than decide it. Where it does not hold while the host takes CPUs away, which no clock in the virtual machine sees,
/// the trial is listed as skipped.
///
/// # Panics
///
/// Where it holds less often, with what every failed attempt said.
pub fn holds(k: usize, n: usize, trial: &str, attempt: impl FnMut() -> Result<(), String>) {
    let before = cpu_times();
    let (held, wrong) = attempts(k, n, attempt);
    let stolen = stolen_share(before, cpu_times());
    let (made, percent, wrong_list) = (held + wrong.len(), stolen * 100.0, wrong.join("\n"));
    eprintln!("{trial}: held {held} of {made}, {k} of {n} required; the host took {percent:.1} % of the CPUs");
    append(PASS_RATES, &format!("{trial}\t{held}\t{made}\t{stolen:.4}"));
    match held == k {
        true => {}
        false if stolen > STOLEN_SHARE_MAX => {
            eprintln!("{wrong_list}");
            skip(trial, &format!("held {held} of {made} while the host took {percent:.1} % of the CPUs"));
        }
        false => panic!("{trial} held {held} of {made} times, {k} of {n} are required:\n{wrong_list}"),
    }
}

/// How many held, and what the others said; ends as soon as `k` hold or no `k` of `n` can.
fn attempts(k: usize, n: usize, mut attempt: impl FnMut() -> Result<(), String>) -> (usize, Vec<String>) {
    let (mut held, mut wrong) = (0, Vec::new());
    while held < k && wrong.len() <= n - k {
        match attempt() {
            Ok(()) => held += 1,
            Err(why) => wrong.push(why),
        }
    }
    (held, wrong)
}

/// Lists a test that this machine cannot run, for the end of `cargo xtask test`.
pub fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    append(SKIPPED_TESTS, &format!("{test}: {why}"));
}

/// Runs the tests of a program that has a `main` of its own: one after the other, in this order, and says their names as libtest does. The
/// first argument that is no option chooses those that have it in their name.
///
/// # Panics
///
/// Where a test does.
pub fn run_named(tests: &[(&str, fn())]) {
    let chosen = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&chosen)) {
        eprintln!("test {name} ...");
        test();
        eprintln!("test {name} ... ok");
    }
}

/// Where the tests of a child process, which may be another user's, keep their skips and rates: variables for its environment.
#[must_use = "they are for the environment of the child"]
pub fn lists_in(folder: &Path) -> [(&'static str, PathBuf); 2] {
    [SKIPPED_TESTS, PASS_RATES].map(|variable| (variable, folder.join(variable)))
}

/// Takes over what a child process kept there.
///
/// # Panics
///
/// Where a list of ours cannot be written.
pub fn take_over(folder: &Path) {
    for (variable, path) in lists_in(folder) {
        // Where nothing was skipped nobody made it.
        let lines = std::fs::read_to_string(path).unwrap_or_default();
        lines.lines().for_each(|line| append(variable, line));
    }
}

/// # Panics
///
/// Where the file cannot be written: its line would be missing in silence.
fn append(variable: &str, line: &str) {
    let Some(path) = std::env::var_os(variable) else { return };
    let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.write_all(format!("{line}\n").as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Since the boot, of all CPUs: what the host took, and all; in ticks.
fn cpu_times() -> (u64, u64) {
    parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// The first line: user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of user and nice.
fn parse(stat: &str) -> (u64, u64) {
    let ticks: Vec<u64> = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    (ticks.get(7).copied().unwrap_or_default(), ticks.iter().sum())
}

fn stolen_share(before: (u64, u64), after: (u64, u64)) -> f64 {
    let all = after.1.saturating_sub(before.1).max(1);
    after.0.saturating_sub(before.0) as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_host_is_between_two_looks() {
        let before = parse("cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1 1\n");
        assert_eq!(before, (35, 1000));
        assert_eq!(stolen_share(before, parse("cpu 150 0 50 840 10 0 5 45 7 7\n")), 0.1);
        assert_eq!((parse(""), stolen_share(before, before)), ((0, 0), 0.0));
    }

    #[test]
    fn no_more_attempts_are_made_than_decide() {
        let made = |answers: &[bool], k, n| {
            let mut left = answers.iter();
            let (held, wrong) = attempts(k, n, || if *left.next().unwrap() { Ok(()) } else { Err("no".to_owned()) });
            assert_eq!(left.len(), 0);
            (held, wrong.len())
        };
        assert_eq!(made(&[true, true], 2, 3), (2, 0));
        assert_eq!(made(&[true, false, true], 2, 3), (2, 1));
        assert_eq!(made(&[false, false], 2, 3), (0, 2));
        assert_eq!(made(&[true, false, false], 2, 3), (1, 2));
        assert_eq!(made(&[false], 1, 1), (0, 1));
    }
}
