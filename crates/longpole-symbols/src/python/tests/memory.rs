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

#[test]
fn tables_of_a_megabyte_are_read_in_several_looks() {
    let run = || {
        let version = Version::three(12);
        let layout = Layout::of(version).unwrap();
        let (mut image, _) = working(version);
        image.bytes.resize(4 << 20, 0);
        let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
        let mut threads = Vec::new();
        interpreter.read(&image, &mut threads).unwrap();
        let leaf = threads[0].frames[0];
        let kind = u64::from_le_bytes(*image.bytes[(leaf.code + layout.object_type - BASE) as usize..].first_chunk().unwrap());
        let frames: Vec<FrameRead> = (0..200)
            .map(|number| {
                let code = image.code(&layout, kind, "f", "/srv/app.py", 1);
                let table = image.allocate(layout.bytes_data + 16);
                image.word(table + layout.object_size, (1 << 20) - number);
                image.word(code + layout.code_lines, table);
                FrameRead { code, ..leaf }
            })
            .collect();
        let mut codes = Codes::default();
        let mut looks = 0;
        while codes.list().len() < frames.len() {
            looks += 1;
            interpreter.read(&image, &mut threads).unwrap();
            let known = codes.list().len();
            let found = frames.iter().try_for_each(|frame| codes.identify(&image, &mut interpreter, frame, true).map(|_| ()));
            assert!(found.is_ok() || found == Err(ReadError::Torn) && codes.list().len() > known, "{found:?}");
            interpreter.end_look();
        }
        assert!(looks > 10, "{looks}");
        // Half of the room is for lines, beside some texts.
        let lineless = codes.list().iter().filter(|code| code.lacks_lines).count();
        assert!((72..75).contains(&lineless), "{lineless}");
    };
    let peak = peak_bytes_alone("python::tests::memory::tables_of_a_megabyte_are_read_in_several_looks", run);
    assert!(peak.is_none_or(|peak| peak < 220 << 20), "{peak:?}");
}
