//! The memory of an interpreter of Python, which it changes while it is read.
#![no_main]

#[path = "../../crates/longpole-symbols/tests/it/oracle_python.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::python_memory(bytes));
