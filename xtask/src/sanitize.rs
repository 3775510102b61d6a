//! The files with `unsafe` under tools that show their mistakes: Miri for code that touches memory only, AddressSanitizer for code that calls
//! the kernel. Both need a nightly toolchain, which `cargo xtask test` does not.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command::run_in;
use crate::need;
use crate::paths::{root, target_dir};

/// The unsafe files that Miri can run: a package, and the beginning of the names of its tests. Miri knows no perf events, no
/// `process_vm_readv` and no `fork`, so `capture::sys` is left to AddressSanitizer.
const UNDER_MIRI: [(&str, &str); 2] = [("longpole-capture", "perf::ring"), ("longpole-sdk", "thread_context")];

/// The packages with unsafe files, whose tests run under AddressSanitizer; and the tests to skip there: they compare a recording with the sizes, times
/// and stacks of this very process, which the sanitizer changes.
const UNDER_ADDRESS_SANITIZER: [(&str, &[&str]); 2] = [
    (
        "longpole-capture",
        &[
            "a_larger_dump_holds_the_deeper_stack",
            "everything_works_without_privilege",
            "memory_is_read_while_it_grows_and_the_end_of_a_process_after_it",
            "some_short_waits_have_a_stack",
            "stack_dumps_grow_and_no_sample_counts_twice",
            "waits_have_a_kind_a_length_and_the_function_that_waits",
        ],
    ),
    ("longpole-sdk", &[]),
];

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs both tools; reports the one that this machine lacks.
pub(crate) fn sanitize() -> Result<()> {
    if !has(&["+nightly", "--version"]) {
        bail!("a sanitizer needs a nightly toolchain: `rustup toolchain install nightly --component miri`");
    }
    let dir = target_dir().join("sanitize");
    let dir = dir.to_string_lossy();
    for (package, other_there) in UNDER_ADDRESS_SANITIZER {
        let mut args = vec!["+nightly", "test", "-p", package, "--lib", "--tests", "--target", TARGET, "--target-dir", &dir];
        if !other_there.is_empty() {
            args.push("--");
            args.extend(other_there.iter().flat_map(|test| ["--skip", test]));
        }
        // The recorder leaves its event descriptors and maps to the end of the process, so leaks are no finding. The record of a main thread stands on its
        // stack, which therefore has to be where the kernel put it.
        run_in(
            &root(),
            "cargo",
            &args,
            &[("RUSTFLAGS", "-Zsanitizer=address"), ("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")],
        )?;
    }
    if !has(&["+nightly", "miri", "--version"]) {
        eprintln!("xtask: skipped Miri: `rustup component add --toolchain nightly miri` is not there");
        return Ok(());
    }
    for (package, tests) in UNDER_MIRI {
        let args = ["+nightly", "miri", "test", "-p", package, "--lib", tests];
        run_in(&root(), "cargo", &args, &[("MIRIFLAGS", "-Zmiri-disable-isolation")])?;
    }
    Ok(())
}

fn has(args: &[&str]) -> bool {
    let answer = Command::new("cargo").args(args).output();
    need::answers("rustup") && answer.is_ok_and(|out| out.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that was renamed would run where it cannot pass.
    #[test]
    fn what_is_skipped_exists() {
        for (package, skipped) in UNDER_ADDRESS_SANITIZER {
            let folder = root().join("crates").join(package).join("tests/recorder");
            let sources: String = std::fs::read_dir(&folder)
                .map(|entries| entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect())
                .unwrap_or_default();
            for test in skipped {
                assert!(sources.contains(&format!("fn {test}()")), "{package} has no test {test}");
            }
        }
    }
}
