//! Code and tests wait for a condition, not for a time.

use super::House;
use super::source::Source;

/// Files that pace themselves on purpose, each says why beside the call; and the programs with scripted waits.
const MAY_SLEEP: &[&str] = &[
    "crates/longpole-capture/src/recorder/drain.rs",
    "crates/longpole-capture/tests/recorder/waits.rs",
    // At the exit of a process its owner may be the thread that asks: a lock can only be tried again.
    "crates/longpole-sdk/src/locks.rs",
    "crates/longpole/tests/timing/account_for_the_time.rs",
    "crates/longpole/tests/stories/name_who_holds_a_lock.rs",
    "crates/longpole/tests/stories/see_what_coroutines_wait_for.rs",
    "crates/longpole/tests/stories/see_what_goroutines_wait_for.rs",
];

pub(super) fn waits(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    let files = house.rust().filter(|file| file.path.starts_with("crates/") && !file.path.contains("/examples/"));
    for file in files.filter(|file| !MAY_SLEEP.contains(&file.path.as_str())) {
        for (index, line) in Source::new(&file.text).code.lines().enumerate() {
            if line.contains("thread::sleep(") {
                found.push(file.finding(index + 1, "sleeps for a fixed time; wait for a condition"));
            }
        }
    }
    found
}
