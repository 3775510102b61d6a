//! Maps of names that runtimes leave behind.
#![no_main]

#[path = "../../crates/longpole-symbols/tests/it/oracle_perf_map.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::perf_map(bytes));
