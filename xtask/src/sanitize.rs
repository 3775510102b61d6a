//! The files with `unsafe`, run where their mistakes show: under Miri what touches memory only, under AddressSanitizer what calls the
//! kernel. Both need a nightly toolchain, which the tests of everybody do not ask for.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command::run_in;
use crate::need;
use crate::paths::{root, target_dir};

/// What Miri can run of the unsafe files: a package, and the tests by the beginning of their names. Miri knows no perf events, no
/// `process_vm_readv` and no `fork`, so `capture::sys` is left to AddressSanitizer.
const UNDER_MIRI: [(&str, &str); 2] = [("longpole-capture", "perf::ring"), ("longpole-sdk", "thread_context")];

/// The packages whose tests run under AddressSanitizer, every crate with an unsafe file; and tests that hold the recorder against sizes, times and
/// stacks of a program which is this test itself, and has others under the sanitizer.
const UNDER_ADDRESS_SANITIZER: [(&str, &[&str]); 2] = [
    (
        "longpole-capture",
        &[
            "a_larger_copy_holds_the_deeper_stack",
            "everything_works_without_privilege",
            "more_is_copied_of_each_stack_once_many_are_deeper_and_no_sample_counts_twice",
            "waits_have_a_kind_a_length_and_the_function_that_waits",
            "what_a_process_uses_is_seen_while_it_grows_and_how_it_ended_after",
        ],
    ),
    ("longpole-sdk", &[]),
];

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs what can run here, and says what cannot.
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
        // The recorder leaves its event descriptors and maps to the end of the process; leaks are not what this looks for. The record of a main thread
        // stands on its stack, so that has to be where the kernel says.
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
