//! Files of others, the whole way: bytes, recording, report, every view, every export and what these give when they are read.
#![no_main]

use std::cell::RefCell;

#[path = "../../crates/longpole-recording/tests/whole_way/way.rs"]
#[allow(dead_code, reason = "the tests count their runs")]
mod way;

thread_local! {
    static PLACE: RefCell<way::Place> = RefCell::new(way::Place::new("fuzz"));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    PLACE.with_borrow(|place| {
        way::whole_way(bytes, place, bytes.len() % 32 == 0);
    });
});
