//! `unsafe` stands in a few files, and every other crate forbids it.

use super::House;
use super::source::Source;

/// The only files with `unsafe`: kernel calls and shared memory of the recorder, the record of the SDK, its allocator and the unwinder, the one method that
/// a subscriber in front of another one cannot do without, and the test programs that must do to themselves what no safe wrapper does.
const UNSAFE_FILES: &[&str] = &[
    "crates/longpole-capture/src/sys/clock.rs",
    "crates/longpole-capture/src/sys/fork_exec.rs",
    "crates/longpole-capture/src/sys/descriptors.rs",
    "crates/longpole-capture/src/sys/handler.rs",
    "crates/longpole-capture/src/sys/inherited.rs",
    "crates/longpole-capture/src/sys/job_control.rs",
    "crates/longpole-capture/src/sys/leave.rs",
    "crates/longpole-capture/src/sys/limits.rs",
    "crates/longpole-capture/src/sys/perf.rs",
    "crates/longpole-capture/src/sys/pidfd.rs",
    "crates/longpole-capture/src/sys/remote_memory.rs",
    "crates/longpole-capture/src/sys/signal.rs",
    "crates/longpole-capture/src/sys/thread.rs",
    "crates/longpole-capture/src/sys/wait.rs",
    "crates/longpole-capture/src/sys/signal_witness.rs",
    "crates/longpole-capture/src/perf/ring.rs",
    "crates/longpole-sdk/src/heap/allocator.rs",
    "crates/longpole-sdk/src/heap/recorder/backtrace.rs",
    "crates/longpole-sdk/src/process_context/linux.rs",
    "crates/longpole-sdk/src/registry_guard.rs",
    "crates/longpole-sdk/src/sys/linux.rs",
    "crates/longpole-sdk/src/thread_context/otel_symbol.rs",
    "crates/longpole-sdk/src/thread_context/slot.rs",
];

/// Test code may open `unsafe` here: pseudo-terminals, raw signals, thread-local records.
const UNSAFE_TEST_DIRS: &[&str] = &["crates/longpole/tests/", "crates/longpole-capture/tests/", "crates/longpole-sdk/tests/"];

/// Crates whose `lib.rs` cannot forbid unsafe code.
const UNSAFE_CRATES: &[&str] = &["longpole-capture", "longpole-sdk"];

pub(super) fn unsafe_files(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in house.rust() {
        let library = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/src/lib.rs"));
        if library.is_some_and(|krate| !UNSAFE_CRATES.contains(&krate)) && !file.text.contains("#![forbid(unsafe_code)]") {
            found.push(file.finding(1, "does not forbid unsafe code"));
        }
        if UNSAFE_FILES.contains(&file.path.as_str()) || UNSAFE_TEST_DIRS.iter().any(|dir| file.path.starts_with(dir)) {
            continue;
        }
        for number in opens_unsafe(&file.text) {
            found.push(file.finding(number, "unsafe code outside the files that may hold it"));
        }
    }
    found
}

/// The numbers of the lines that open a block, a function, an implementation or a foreign block.
fn opens_unsafe(text: &str) -> Vec<usize> {
    let openings = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    let source = Source::new(text);
    let lines = source.code.lines().enumerate();
    lines.filter(|(_, line)| openings.iter().any(|opening| line.contains(opening))).map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_in_a_string_or_a_comment_is_no_code() {
        let text = "// unsafe {\nlet text = \"unsafe { }\";\nunsafe { f() };\n";
        assert_eq!(opens_unsafe(text), [3]);
    }
}
