//! OTLP in protobuf: the scanner against the generated messages.
#![no_main]

#[path = "../../crates/longpole-wire/tests/it/oracle.rs"]
#[allow(dead_code, reason = "each target calls its part")]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    oracle::traces_protobuf(bytes);
    oracle::counts(bytes);
});
