//! What must hold for any map of names. The fuzz target and the tests call this same function; this file is compiled into both.

use longpole_symbols::perf_map;

/// Every address is answered; a name is part of the map, and its parts say nothing that it does not.
pub(crate) fn perf_map(bytes: &[u8]) {
    let addresses: Vec<u64> = (0..0x4000).step_by(0x35).chain([0x7fc6_f8ec_7620, u64::MAX - 1, u64::MAX]).collect();
    let names = perf_map::names(bytes, &addresses);
    assert_eq!(names.len(), addresses.len());
    for name in names.into_iter().flatten() {
        assert!(!name.is_empty() && name.len() <= bytes.len() * 3);
        let described = perf_map::describe(&name);
        assert!(!described.function.is_empty() || described.runtime.is_some(), "{name}");
        // What is long is cut, and ends with a mark.
        let says = |part: &str| name.contains(part) || name.contains(part.trim_end_matches('…'));
        assert!(described.function == "(anonymous)" || says(&described.function), "{name}: {described:?}");
        assert!(says(&described.file), "{name}: {described:?}");
        assert!(described.function.len().max(described.file.len()) <= 512 + '…'.len_utf8(), "{name}: {described:?}");
    }
}
