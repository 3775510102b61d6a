//! Payload logs of Pulumi: only what looks like a urn or a token comes out.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/doors.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod doors;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doors::pulumi_payload(bytes));
