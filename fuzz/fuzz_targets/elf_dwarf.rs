//! Binaries and their debug information: every address gets a frame, whatever the file says.
#![no_main]

#[path = "../../crates/longpole-symbols/tests/it/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::elf_dwarf(bytes));
