//! The log of a recording: replayed and put together. SQLite is linked, which defines a name twice that the sanitizer finds: run it with
//! `ASAN_OPTIONS=detect_odr_violation=0`.
#![no_main]

#[path = "../../crates/longpole-store/tests/log/oracle.rs"]
mod oracle;

use std::cell::LazyCell;

thread_local! {
    static LOG: LazyCell<oracle::Log> = LazyCell::new(|| oracle::Log::new(&std::env::temp_dir()));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| LOG.with(|log| log.wal(bytes)));
