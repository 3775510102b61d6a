//! What must hold for any jitdump. The fuzz target and the tests call this same function; this file is compiled into both.

use std::io::Cursor;

use longpole_symbols::jitdump;

/// Every address is answered, in the order of time; without times by one function at most; a fault lies within the file.
pub(crate) fn jitdump(bytes: &[u8]) {
    let addresses: Vec<u64> = (0..0x400).step_by(0x15).chain([0x7ff6_a002_3b80, u64::MAX - 1, u64::MAX]).collect();
    for now in [None, Some(1 << 40)] {
        let read = jitdump::read(Cursor::new(bytes), &addresses, now);
        assert_eq!(read.code.len(), addresses.len());
        assert!(read.fault.as_ref().is_none_or(|fault| fault.offset <= bytes.len() as u64), "{:?}", read.fault);
        for stretches in &read.code {
            assert!(stretches.first().is_none_or(|first| first.since == 0));
            assert!(stretches.windows(2).all(|pair| pair[0].since < pair[1].since && pair[0].code != pair[1].code), "{stretches:?}");
            assert!(now.is_some() || stretches.len() <= 1);
            for code in stretches.iter().filter_map(|it| it.code.as_deref()) {
                assert!(!code.function.is_empty() || code.runtime.is_some(), "{code:?}");
                assert!(code.function.len() + code.file.len() <= 6 * bytes.len() + 16);
            }
        }
    }
}
