//! What processes publish of themselves and of their threads, in OpenTelemetry's words.
#![no_main]

#[path = "../../crates/longpole-capture/tests/otel/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::otel_context(bytes));
