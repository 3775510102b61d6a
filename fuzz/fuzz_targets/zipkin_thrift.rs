//! Zipkin v1 in thrift: taken whole or not at all, and what was taken comes back by every format.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/doors.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod doors;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| doors::zipkin(bytes, longpole_wire::zipkin::Format::V1Thrift));
