use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A dump as its writer makes it.
struct Dump(Vec<u8>);

impl Dump {
    fn new(flags: u64) -> Dump {
        let mut bytes = Vec::new();
        for word in [MAGIC, VERSION, HEADER_BYTES as u32, 62, 0, 7] {
            bytes.extend(word.to_ne_bytes());
        }
        // V8 writes the wall clock here, in microseconds.
        for word in [1_795_336_920_321_360, flags] {
            bytes.extend(u64::to_ne_bytes(word));
        }
        Dump(bytes)
    }

    fn record(mut self, kind: u32, time: u64, body: &[u8]) -> Dump {
        self.0.extend(kind.to_ne_bytes());
        self.0.extend((RECORD_HEADER_BYTES as u32 + body.len() as u32).to_ne_bytes());
        self.0.extend(time.to_ne_bytes());
        self.0.extend(body);
        self
    }

    fn load(self, time: u64, start: u64, bytes: u64, index: u64, name: &str) -> Dump {
        let mut body = words(&[7 << 32 | 7, start, start, bytes, index]);
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(vec![0xcc; bytes as usize]);
        self.record(kind::LOAD, time, &body)
    }

    fn moves(self, time: u64, before: u64, start: u64, bytes: u64, index: u64) -> Dump {
        self.record(kind::MOVE, time, &words(&[7 << 32 | 7, start, before, start, bytes, index]))
    }

    fn lines(self, start: u64, lines: &[(u64, u32, &[u8])]) -> Dump {
        let mut body = words(&[start, lines.len() as u64]);
        for (address, line, file) in lines {
            body.extend(address.to_ne_bytes());
            body.extend(line.to_ne_bytes());
            body.extend(0u32.to_ne_bytes());
            body.extend(*file);
            body.push(0);
        }
        // V8 fills up to eight bytes.
        body.resize(body.len().next_multiple_of(8), 0);
        self.record(kind::LINES, 0, &body)
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// What is read, as text: for each address `since function file:line`.
fn shown(dump: &[u8], addresses: &[u64], now: Option<u64>) -> Vec<String> {
    let read = read(Cursor::new(dump), addresses, now);
    assert_eq!(read.fault, None);
    let stretch = |it: &Stretch| match it.code.as_deref() {
        Some(Described { function, file, line, .. }) => format!("{} {function} {file}:{line}", it.since),
        None => format!("{} -", it.since),
    };
    read.code.iter().map(|stretches| stretches.iter().map(stretch).collect::<Vec<_>>().join(", ")).collect()
}

#[test]
fn an_address_that_is_used_again_has_the_function_of_its_time() {
    let dump = Dump::new(0)
        .load(100, 0x1000, 0x100, 0, "first")
        .load(150, 0x1080, 0x10, 1, "first")
        .load(300, 0x1040, 0x80, 3, "third")
        .load(200, 0x1040, 0x80, 2, "second")
        .load(400, 0x1040, 0x80, 4, "third");
    let found = shown(&dump.0, &[0xfff, 0x1000, 0x1045, 0x1085, 0x10bf, 0x10c0, 0x1100], Some(1_000));
    let reused = "0 first :0, 200 second :0, 300 third :0";
    assert_eq!(found, ["", "0 first :0", reused, reused, reused, "0 first :0", ""]);
}

#[test]
fn what_is_moved_is_known_where_it_came_to_lie_and_not_where_it_was() {
    let dump = Dump::new(0)
        .lines(0x5000, &[(0x5000, 3, b"a.lua"), (0x5010, 4, SAME_FILE)])
        .load(10, 0x5000, 0x20, 9, "wanders")
        .moves(20, 0x5000, 0x6000, 0x20, 9)
        .moves(30, 0x6000, 0x6010, 0x20, 9)
        .moves(40, 0x9000, 0x6000, 0x8, 77);
    let found = shown(&dump.0, &[0x5011, 0x6001, 0x6011, 0x6021], Some(1_000));
    assert_eq!(found, ["0 wanders a.lua:4, 20 -", "0 wanders a.lua:3, 30 -", "0 wanders a.lua:4, 30 wanders a.lua:3", "0 wanders a.lua:4"]);
}

#[test]
fn lines_are_those_of_the_address() {
    let dump = Dump::new(0)
        .lines(0x1000, &[(0x1008, 8, b"/srv/a.rb"), (0x1010, 9, SAME_FILE), (0x1020, 2, b"/srv/b.rb")])
        .load(1, 0x1000, 0x40, 0, "work")
        // These belong to another function than the one that follows.
        .lines(0x7000, &[(0x2000, 1, b"c.rb")])
        .load(2, 0x2000, 0x40, 1, "other")
        // What V8 writes: 64 bytes further on, behind what is named by its own line.
        .lines(0x3000, &[(0x3040, 5, b"file:///srv/t.mjs"), (0x3050, 6, b"file:///srv/t.mjs")])
        .load(3, 0x3000, 0x20, 2, "JS:*burn file:///srv/t.mjs:4:14")
        // What Node 20 writes: the names are what lay in freed memory.
        .lines(0x4000, &[(0x4040, 5, b"zu\x02\0\0\0\0\0\0\0\0\0"), (0x4050, 6, b"zu\x02\0\0\0\0\0\0\0\0\0")])
        .load(4, 0x4000, 0x20, 3, "JS:*hash /srv/t.js:7:14")
        .lines(0x5000, &[(0x5040, 8, b"8u\x02")])
        .load(5, 0x5000, 0x20, 4, "JS:^sort /srv/t.js:9:14");
    let found = shown(&dump.0, &[0x1000, 0x1008, 0x101f, 0x103f, 0x2000, 0x3000, 0x3015, 0x4015, 0x5001], Some(1_000));
    assert_eq!(
        found,
        [
            "0 work :0",
            "0 work /srv/a.rb:8",
            "0 work /srv/a.rb:9",
            "0 work /srv/b.rb:2",
            "0 other :0",
            "0 burn /srv/t.mjs:5",
            "0 burn /srv/t.mjs:6",
            "0 hash /srv/t.js:7",
            "0 sort /srv/t.js:8"
        ]
    );
}

#[test]
fn without_a_common_clock_the_last_was_always_there() {
    let of = |flags| Dump::new(flags).load(300, 0x1000, 8, 0, "first").load(200, 0x1000, 8, 1, "last").0;
    assert_eq!(shown(&of(0), &[0x1000], Some(300)), ["0 last :0, 300 first :0"]);
    for (flags, now) in [(FLAG_ARCH_TIME, Some(1_000)), (0, None), (0, Some(299))] {
        assert_eq!(shown(&of(flags), &[0x1000], now), ["0 last :0"]);
    }
}

#[test]
fn a_fault_has_its_offset_and_records_before_it_hold() {
    let whole = Dump::new(0).load(1, 0x1000, 8, 0, "f").record(9, 2, b"of another day");
    let (loaded, length) = (HEADER_BYTES + RECORD_HEADER_BYTES + LOAD_BYTES + 2 + 8, whole.0.len());
    let fault = |bytes: &[u8]| {
        let read = read(Cursor::new(bytes), &[0x1000], Some(1_000));
        (read.fault.map(|fault| fault.to_string()).unwrap_or_default(), read.code[0].len())
    };
    let is = |text: &str, known| (text.to_owned(), known);
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.0.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(fault(&whole.0), is("", 1));
    assert_eq!(fault(b""), is("at offset 0, expected a header of 40 bytes where 0 are", 0));
    assert_eq!(fault(&changed(0, b'X')), is("at offset 0, expected the magic number of a jitdump", 0));
    assert_eq!(fault(&changed(4, 2)), is("at offset 4, it has version 2; longpole reads version 1", 0));
    assert_eq!(fault(&changed(8, 39)), is("at offset 8, its header has 39 bytes of 136", 0));
    let mut swapped = whole.0.clone();
    swapped[..4].reverse();
    assert_eq!(fault(&swapped), is("at offset 0, it was written on a machine with another byte order", 0));
    assert_eq!(fault(&changed(HEADER_BYTES + 4, 15)), is("at offset 40, a record has 15 bytes", 0));
    assert_eq!(fault(&changed(HEADER_BYTES + 4, 55)), is("at offset 40, a record of kind 0 has 55 bytes, which is too few", 0));
    assert_eq!(fault(&whole.0[..length - 1]), is(&format!("at offset {loaded}, a record has 30 bytes where 29 are left"), 1));
    assert_eq!(fault(&whole.0[..loaded + 7]), is(&format!("at offset {loaded}, the last 7 bytes are not a whole record"), 1));
    let closed = Dump::new(0).record(kind::CLOSE, 1, b"").load(2, 0x1000, 8, 0, "f");
    assert_eq!(fault(&closed.0), is("", 0));
}

#[test]
fn what_would_take_too_much_memory_is_left_out_and_said() {
    let addresses: Vec<u64> = (0..1 << 12).collect();
    let mut dump = Dump::new(0);
    for time in 0..=(STRETCHES_MAX >> 12) as u64 {
        let mut body = words(&[0, 0, 0, u64::MAX, time]);
        body.extend(format!("f{time}\0").into_bytes());
        dump = dump.record(kind::LOAD, time, &body);
    }
    let read = read(Cursor::new(&dump.0), &addresses, Some(u64::MAX));
    assert!(read.fault.unwrap().problem.contains("more often than longpole tracks"));
    assert_eq!(read.code[0].len(), STRETCHES_MAX >> 12);
    // A function that is moved to and fro, with a long name each time.
    let name = "x".repeat(NAME_BYTES_MAX);
    let mut dump = Dump::new(0).load(1, 0x1000, 8, 7, &name);
    for time in 2..600_000 {
        let (before, start) = if time % 2 == 0 { (0x1000, 0x2000) } else { (0x2000, 0x1000) };
        dump = dump.moves(time, before, start, 8, 7);
    }
    let read = super::read(Cursor::new(&dump.0), &[0x1000, 0x2000], Some(u64::MAX));
    assert!(read.fault.unwrap().problem.contains("more than 128 MiB"));
    // Functions that are moved once, each with the lines of a megabyte.
    let lines = vec![(0, 1, &b""[..]); 60_000];
    let dump = (0..200).fold(Dump::new(0), |dump, index| dump.lines(0, &lines).load(1, 0, 8, index, "f").moves(2, 0, 0x1000, 8, index));
    let read = super::read(Cursor::new(&dump.0), &[0x1000], Some(u64::MAX));
    assert!(read.fault.unwrap().problem.contains("more than 128 MiB"));
}

proptest! {
    #[test]
    fn a_dump_that_was_written_is_read(
        loads in prop::collection::vec((0u64..1_000, 0u64..400, 1u64..64, "[a-z]{1,8}"), 1..30),
        addresses in prop::collection::btree_set(0u64..500, 1..20),
    ) {
        let mut dump = Dump::new(0);
        for (index, (time, start, bytes, name)) in loads.iter().enumerate() {
            dump = dump.load(*time, *start, *bytes, index as u64, name);
        }
        let addresses: Vec<u64> = addresses.into_iter().collect();
        let read = read(Cursor::new(&dump.0), &addresses, Some(1_000));
        for (address, stretches) in addresses.iter().zip(&read.code) {
            let of_it: Vec<_> = loads.iter().filter(|(_, start, bytes, _)| (*start..start + bytes).contains(address)).collect();
            for (time, ..) in &of_it {
                // The last of those that came no later than then.
                let expected = of_it.iter().filter(|(other, ..)| other <= time).max_by_key(|(time, ..)| *time).map(|it| it.3.as_str());
                let found = stretches.iter().rfind(|it| it.since <= *time).and_then(|it| it.code.as_deref()).map(|code| code.function.as_str());
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(stretches.is_empty(), of_it.is_empty());
        }
    }
}

/// Seeds for the fuzz target `jitdump`; written with `LONGPOLE_UPDATE_SEEDS=1`.
#[test]
fn seeds() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/jitdump");
    let loads = Dump::new(0).load(100, 0x100, 0x80, 0, "first").load(200, 0x140, 0x80, 1, "JS:*second /srv/t.js:4:14");
    let moved = Dump::new(FLAG_ARCH_TIME)
        .lines(0x100, &[(0x100, 3, b"a.lua"), (0x110, 4, SAME_FILE)])
        .load(10, 0x100, 0x20, 9, "wanders")
        .moves(20, 0x100, 0x200, 0x20, 9)
        .record(4, 30, &words(&[8, 4, 0, 1]))
        .record(kind::CLOSE, 40, b"");
    for (name, dump) in [("loads.seed", loads), ("moved.seed", moved)] {
        let path = folder.join(name);
        if std::env::var_os("LONGPOLE_UPDATE_SEEDS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &dump.0).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == dump.0, "{} is another dump", path.display());
    }
}
