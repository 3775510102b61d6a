//! The kernel's list of its symbols.
#![no_main]

#[path = "../../crates/longpole-symbols/tests/it/oracle_kernel.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::kernel_symbols(bytes));
