//! OTLP in JSON: nothing panics, and what was read can be written and read again.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/oracle.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    oracle::traces_json(bytes);
    oracle::counts(bytes);
});
