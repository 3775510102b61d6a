#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| longpole_fuzz_targets::pyroscope_querier(bytes));
