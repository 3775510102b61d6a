//! AppDash over TCP: the pieces that the bytes arrive in change no span.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/doors.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod doors;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doors::appdash_frames(bytes));
