//! AppDash files: what stands before a fault is given, and comes back by every format.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/doors.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod doors;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doors::appdash_file(bytes));
