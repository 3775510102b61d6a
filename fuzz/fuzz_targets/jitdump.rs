//! Dumps that runtimes make of the code they compile.
#![no_main]

#[path = "../../crates/longpole-symbols/tests/it/oracle_jitdump.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::jitdump(bytes));
