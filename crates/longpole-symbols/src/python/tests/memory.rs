//! How much memory it takes to read an interpreter that was made to fill it.

use super::*;
use crate::made_up::peak_bytes_alone;

#[test]
fn a_list_that_all_attributes_of_a_gathering_are_is_taken_once() {
    let run = || {
        let version = Version::three(12);
        let mut made = asyncio(version);
        made.image.bytes.resize(1 << 20, 0);
        let object = made.object("object", &[0; 2]);
        let children = made.list(&[object; 1024]);
        let gathering = made.gathering(&[object]);
        let dict = made.object("dict", &[0; 4]);
        // 128 bytes of places.
        let mut keys = vec![1, u64::from_le_bytes([7, 7, 1, 0, 0, 0, 0, 0]), 0, 100];
        keys.extend([u64::MAX; 16]);
        keys.extend([object, children].repeat(100));
        let keys = made.table(&keys);
        made.image.word(dict + DICT_KEYS, keys);
        made.image.word(gathering + FIRST + 24, dict);
        let mut awaited = made.object("_asyncio.FutureIter", &[gathering]);
        for _ in 0..250 {
            awaited = made.coroutine("deep", OWN, &[awaited]);
        }
        let main = made.task(awaited);
        let found = explained(&made.running(main, &[]), version).unwrap().unwrap();
        assert_eq!(found[1].split(' ').count(), 250);
    };
    let peak = peak_bytes_alone("python::tests::memory::a_list_that_all_attributes_of_a_gathering_are_is_taken_once", run);
    // 1 GB if each child had its callers for itself.
    assert!(peak.is_none_or(|peak| peak < 100 << 20), "{peak:?}");
}
