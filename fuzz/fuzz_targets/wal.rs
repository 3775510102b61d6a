//! The log of a recording: replayed and put together.
#![no_main]

#[path = "../../crates/longpole-store/tests/log/oracle.rs"]
mod oracle;

use std::cell::LazyCell;

thread_local! {
    static LOG: LazyCell<oracle::Log> = LazyCell::new(|| oracle::Log::new(&std::env::temp_dir()));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| LOG.with(|log| log.wal(bytes)));
