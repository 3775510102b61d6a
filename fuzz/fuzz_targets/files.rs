//! Files of whatever format they seem to be: cut off, broken or whole.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/doors.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod doors;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doors::any_file(bytes));
