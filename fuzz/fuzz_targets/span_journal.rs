//! Journals of spans, which programs write while we read.
#![no_main]

#[path = "../../crates/longpole-capture/tests/journals/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::span_journal(bytes));
