//! The W3C header: what is read prints as something that reads the same.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/oracle.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::traceparent(bytes));
