//! Records of the kernel's ring.
#![no_main]

#[path = "../../crates/longpole-capture/tests/records/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::perf_records(bytes));
