//! A machine that is laid out by hand: one heap of code, an interpreter, two methods.

use std::sync::{Arc, Mutex};

use super::method::{Rows, class_name};
use super::scopes::Numbers;
use super::*;
use crate::made_code::{MadeCaller, MadeCode, MadeFrame, MadeId, Stack};
#[cfg(target_arch = "x86_64")]
use crate::made_up::peak_bytes_alone;
use crate::memory::{Memory, MemoryPart, Unreadable, copy_found};

const BASE: u64 = 0x10_0000;
const BYTES: usize = 128 << 10;
/// The heap of code: 16 KiB in segments of 64 bytes.
const CODE: u64 = BASE + 0x1_0000;
const CODE_BYTES: u64 = 16 << 10;
/// Where native code lies, as far as these tests go.
const NATIVE: std::ops::Range<u64> = 0x7000_0000..0x7001_0000;
const HEADER: u64 = 16;

#[derive(Clone)]
struct Image(Arc<Mutex<Vec<u8>>>);

impl Memory for Image {
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable> {
        let image = self.0.lock().unwrap();
        copy_found(parts, bytes, |address, length| {
            let at = usize::try_from(address.checked_sub(BASE)?).ok()?;
            image.get(at..at.checked_add(length)?)
        });
        Ok(())
    }
}

struct Machine {
    memory: Image,
    free: u64,
    symbols: HotSpotSymbols,
    segments: u64,
    /// Methods `Shop.pay` and `Shop.main`.
    methods: [u64; 2],
}

impl Machine {
    fn put(&self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.memory.0.lock().unwrap()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&self, address: u64, word: u64) {
        self.put(address, &word.to_le_bytes());
    }

    fn int(&self, address: u64, int: i32) {
        self.put(address, &int.to_le_bytes());
    }

    fn half(&self, address: u64, half: u16) {
        self.put(address, &half.to_le_bytes());
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.free;
        self.free += bytes.next_multiple_of(8);
        assert!(self.free <= CODE);
        address
    }

    fn text(&mut self, text: &str) -> u64 {
        let address = self.allocate(text.len() as u64 + 1);
        self.put(address, text.as_bytes());
        address
    }

    fn symbol(&mut self, text: &str) -> u64 {
        let address = self.allocate(6 + text.len() as u64);
        self.half(address + 4, text.len() as u16);
        self.put(address + 6, text.as_bytes());
        address
    }

    /// A machine as Java 17 describes it.
    fn new() -> Machine {
        let memory = Image(Arc::new(Mutex::new(vec![0; BYTES])));
        let mut it = Machine { memory, free: BASE, symbols: HotSpotSymbols([0; SYMBOLS.len()]), segments: 0, methods: [0; 2] };
        let (heaps, stub, version) = (it.allocate(8), it.allocate(8), it.allocate(8));
        it.word(stub, 0xdead_0000);
        it.int(version, 17);
        let fields: [(&str, &str, u64, u64); 36] = [
            ("Abstract_VM_Version", "_vm_major_version", 0, version),
            ("CodeCache", "_heaps", 0, heaps),
            ("StubRoutines", "_call_stub_return_address", 0, stub),
            ("GrowableArrayBase", "_len", 0, 0),
            ("GrowableArray<int>", "_data", 8, 0),
            ("CodeHeap", "_memory", 8, 0),
            ("CodeHeap", "_segmap", 24, 0),
            ("CodeHeap", "_log2_segment_size", 40, 0),
            ("VirtualSpace", "_low_boundary", 0, 0),
            ("VirtualSpace", "_high_boundary", 8, 0),
            ("CodeBlob", "_name", 0, 0),
            ("CodeBlob", "_size", 8, 0),
            ("CodeBlob", "_frame_size", 12, 0),
            ("CodeBlob", "_frame_complete_offset", 16, 0),
            ("CodeBlob", "_code_begin", 24, 0),
            ("CompiledMethod", "_method", 32, 0),
            ("CompiledMethod", "_scopes_data_begin", 40, 0),
            ("nmethod", "_metadata_offset", 48, 0),
            ("nmethod", "_scopes_pcs_offset", 52, 0),
            ("nmethod", "_dependencies_offset", 56, 0),
            ("Method", "_constMethod", 8, 0),
            ("ConstMethod", "_constants", 0, 0),
            ("ConstMethod", "_constMethod_size", 8, 0),
            ("ConstMethod", "_flags", 12, 0),
            ("ConstMethod", "_code_size", 14, 0),
            ("ConstMethod", "_name_index", 16, 0),
            ("ConstantPool", "_pool_holder", 0, 0),
            ("ConstantPool", "_length", 8, 0),
            ("ConstantPool", "_source_file_name_index", 12, 0),
            ("InstanceKlass", "_constants", 8, 0),
            ("Klass", "_name", 0, 0),
            ("Symbol", "_length", 4, 0),
            ("Symbol", "_body", 6, 0),
            ("Thread", "_osthread", 99, 0),
            ("Klass", "_super", 99, 0),
            ("Method", "_flags", 99, 0),
        ];
        let rows = it.allocate(48 * (fields.len() as u64 + 1));
        for (number, (owner, field, offset, address)) in (0..).zip(fields) {
            let (owner, field, row) = (it.text(owner), it.text(field), rows + number * 48);
            for (at, word) in [(0, owner), (8, field), (32, offset), (40, address)] {
                it.word(row + at, word);
            }
            it.int(row + 24, i32::from(address != 0));
        }
        let sizes = [("CodeBlob", 32), ("nmethod", 64), ("ConstMethod", 24), ("ConstantPool", 16), ("HeapBlock", HEADER)];
        let types = it.allocate(16 * (sizes.len() as u64 + 1));
        for (number, (name, bytes)) in (0..).zip(sizes) {
            let name = it.text(name);
            it.word(types + number * 16, name);
            it.word(types + number * 16 + 8, bytes);
        }
        for (number, value) in [rows, 48, 0, 8, 16, 24, 32, 40, types, 16, 0, 8].into_iter().enumerate() {
            it.symbols.0[number] = it.allocate(8);
            it.word(it.symbols.0[number], value);
        }
        let (list, heap, pointers) = (it.allocate(16), it.allocate(48), it.allocate(8));
        it.segments = it.allocate(CODE_BYTES / 64);
        it.word(heaps, list);
        it.int(list, 1);
        it.word(list + 8, pointers);
        it.word(pointers, heap);
        for (at, word) in [(8, CODE), (16, CODE + CODE_BYTES), (24, it.segments), (32, it.segments + CODE_BYTES / 64)] {
            it.word(heap + at, word);
        }
        it.int(heap + 40, 6);
        it.put(it.segments, &[0xff; (CODE_BYTES / 64) as usize]);
        // The class and its pool: index 1 the file, 2 and 3 the methods.
        let (class, pool) = (it.allocate(16), it.allocate(16 + 4 * 8));
        let name = it.symbol("org/example/Shop");
        it.word(class, name);
        it.word(class + 8, pool);
        it.word(pool, class);
        it.int(pool + 8, 4);
        it.half(pool + 12, 1);
        for (index, text) in [(1, "Shop.java"), (2, "pay"), (3, "main")] {
            let symbol = it.symbol(text);
            it.word(pool + 16 + index * 8, symbol);
        }
        for index in 0..2u16 {
            let (method, constant) = (it.allocate(16), it.allocate(48));
            it.word(method + 8, constant);
            it.word(constant, pool);
            it.int(constant + 8, 6);
            it.half(constant + 12, 1);
            it.half(constant + 14, 16);
            it.half(constant + 16, 2 + index);
            // Bytecode 5 is in line 11 (21), bytecode 15 in line 13 (23).
            it.put(constant + 24 + 16, &[0xff, 5 << 1, (11 + 10 * index as u8) << 1, 10 << 3 | 2, 0]);
            it.methods[usize::from(index)] = method;
        }
        it
    }

    /// Puts a blob into the heap: its name, bytes and frame. Returns where its code begins.
    fn blob(&mut self, segment: u64, name: &str, bytes: i32, frame_words: i32, method: u64) -> u64 {
        let (block, name) = (CODE + segment * 64, self.text(name));
        let start = block + HEADER;
        let segments: Vec<u8> = (0..(HEADER + bytes as u64).div_ceil(64)).map(|i| i as u8).collect();
        self.put(self.segments + segment, &segments);
        self.word(start, name);
        self.int(start + 8, bytes);
        self.int(start + 12, frame_words);
        self.int(start + 16, 8);
        self.word(start + 24, start + 64);
        self.word(start + 32, method);
        start + 64
    }

    /// `Shop.pay` inlined into `Shop.main` at its bytecode 15. Returns where its code begins.
    fn compiled(&mut self) -> u64 {
        let code = self.blob(8, "nmethod", 1024, 4, self.methods[1]);
        let start = code - 64;
        let (metadata, scopes, places) = (start + 512, start + 600, start + 640);
        self.word(metadata, self.methods[0]);
        self.word(metadata + 8, self.methods[1]);
        // Nothing lies at 0. At 1: main, bytecode 15. At 4: pay, bytecode 5, called from there.
        self.put(scopes, &[0, 0, 2, 16, 1, 1, 6]);
        for (number, (place, scope)) in (0..).zip([(-1, 0), (0x20, 1), (0x40, 4), (i32::MAX, 0)]) {
            self.int(places + number * 16, place);
            self.int(places + number * 16 + 4, scope);
        }
        self.word(start + 40, scopes);
        self.int(start + 48, 512);
        self.int(start + 52, 640);
        self.int(start + 56, 640 + 64);
        code
    }

    fn jvm(&self) -> Jvm {
        Jvm::attach(Box::new(self.memory.clone()), &self.symbols).unwrap()
    }
}

/// A stack of these words, from address 0x2000 on.
struct Words<'a>(&'a [u64]);

const SP: u64 = 0x2000;

impl Stack for Words<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.0.get(usize::try_from(address.checked_sub(SP)?).ok()? / 8).copied()
    }

    fn is_code(&self, address: u64) -> bool {
        NATIVE.contains(&address) || (CODE..CODE + CODE_BYTES).contains(&address)
    }
}

fn stepped(jvm: &mut Jvm, frame: MadeFrame, stack: &[u64]) -> (String, Option<MadeCaller>) {
    let mut functions: Vec<MadeId> = Vec::new();
    let caller = jvm.step(&frame, &mut Words(stack), &mut functions);
    let told = |id: &MadeId| {
        let JvmFunction { function, file, line } = jvm.function(*id).unwrap();
        format!("{function}({file}:{line})")
    };
    (functions.iter().map(told).collect::<Vec<_>>().join(" < "), caller)
}

fn at(ip: u64, is_leaf: bool, fp: u64) -> MadeFrame {
    MadeFrame { ip, is_leaf, sp: SP, fp, bx: 0 }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_interpreted_frame_has_its_method_and_its_line() {
    let mut machine = Machine::new();
    let code = machine.blob(0, "Interpreter", 256, 0, 0);
    let constant = super::process_bytes::word_at(&machine.memory, machine.methods[0] + 8).unwrap();
    let bytecode = constant + 24 + 15;
    // sp, bytecode, …, method, …, caller's sp | caller's fp, return address
    let stack = [0, bytecode, 0, 0, 0, 0, machine.methods[0], 0, SP + 11 * 8 + 16, SP + 200, NATIVE.start + 4, 0];
    let fp = SP + 9 * 8;
    let caller = MadeCaller { ip: NATIVE.start + 4, sp: SP + 11 * 8 + 16, fp: SP + 200 };
    let mut jvm = machine.jvm();
    let shown = stepped(&mut jvm, at(code + 32, false, fp), &stack);
    assert_eq!(shown, ("org.example.Shop.pay(Shop.java:13)".to_owned(), Some(caller)));
    assert_eq!(stepped(&mut jvm, at(code + 32, true, fp), &stack).0, "org.example.Shop.pay(Shop.java:13)");
    let nowhere = at(code + 32, false, SP + 400);
    assert_eq!(stepped(&mut jvm, nowhere, &stack), ("Interpreter(:0)".to_owned(), None));
    // Before it has a frame a method is in rbx.
    let begins = MadeFrame { bx: machine.methods[1], ..at(code + 32, true, 0) };
    let caller = MadeCaller { ip: code + 40, sp: SP + 8, fp: 0 };
    assert_eq!(stepped(&mut jvm, begins, &[code + 40]), ("org.example.Shop.main(Shop.java:0)".to_owned(), Some(caller)));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn compiled_code_has_the_methods_that_are_inlined_there() {
    let mut machine = Machine::new();
    let code = machine.compiled();
    let mut jvm = machine.jvm();
    let stack = [NATIVE.start + 1, 0, SP + 100, NATIVE.start + 8, 0];
    let caller = Some(MadeCaller { ip: NATIVE.start + 8, sp: SP + 32, fp: SP + 100 });
    let (pay, main) = ("org.example.Shop.pay(Shop.java:11)", "org.example.Shop.main(Shop.java:23)");
    assert_eq!(stepped(&mut jvm, at(code + 0x40, false, 7), &stack), (format!("{pay} < {main}"), caller));
    assert_eq!(stepped(&mut jvm, at(code + 0x20, false, 7), &stack), (main.to_owned(), caller));
    assert_eq!(stepped(&mut jvm, at(code + 0x38, true, 7), &stack).0, format!("{pay} < {main}"), "it belongs to the next place");
    assert_eq!(stepped(&mut jvm, at(code + 0x50, false, 7), &stack).0, "org.example.Shop.main(Shop.java:0)", "behind all places");
    // Its frame is whole eight bytes after its beginning.
    let short = MadeCaller { ip: NATIVE.start + 1, sp: SP + 8, fp: 7 };
    assert_eq!(stepped(&mut jvm, at(code + 1, true, 7), &stack).1, Some(short));
    machine.put(code + 0x40, &[0xc3]);
    assert_eq!(stepped(&mut jvm, at(code + 0x40, true, 7), &stack).1, Some(short), "at its return");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_that_was_replaced_is_read_again_and_what_cannot_be_read_is_believed() {
    let mut machine = Machine::new();
    let code = machine.compiled();
    let mut jvm = machine.jvm();
    let stack = [0, 0, 0, NATIVE.start + 8];
    let name = |jvm: &mut Jvm| stepped(jvm, at(code + 0x50, false, 7), &stack).0;
    assert_eq!(name(&mut jvm), "org.example.Shop.main(Shop.java:0)");
    machine.word(code - 64 + 32, machine.methods[0]);
    assert_eq!(name(&mut jvm), "org.example.Shop.main(Shop.java:0)", "not long ago");
    jvm.set_now(1_000_000_000);
    assert_eq!(name(&mut jvm), "org.example.Shop.pay(Shop.java:0)");
    machine.memory.0.lock().unwrap().clear();
    jvm.set_now(2_000_000_000);
    assert_eq!(name(&mut jvm), "org.example.Shop.pay(Shop.java:0)", "the process has ended");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn methods_of_many_lines_are_forgotten_in_time_and_read_again() {
    const METHODS: u64 = 3000;
    let run = || {
        let mut machine = Machine::new();
        let code = machine.blob(0, "Interpreter", 256, 0, 0);
        let first = super::process_bytes::word_at(&machine.memory, machine.methods[0] + 8).unwrap();
        let mut header = [0; 24];
        machine.memory.fill(first, &mut header).unwrap();
        // All of them have one part that does not change, of 64 KiB: a row of a byte for each bytecode.
        let (constant, methods) = (BASE + BYTES as u64, BASE + (256 << 10));
        machine.memory.0.lock().unwrap().resize(512 << 10, 0);
        machine.put(constant, &header);
        machine.int(constant + 8, (24 + 16 + (64 << 10)) / 8);
        machine.put(constant + 24 + 16, &[9; 64 << 10]);
        (0..METHODS).for_each(|number| machine.word(methods + number * 16 + 8, constant));
        let mut jvm = machine.jvm();
        for round in 0..2 {
            for number in 0..METHODS {
                let stack = [0, constant + 24 + 15, 0, 0, 0, 0, methods + number * 16, 0, SP + 88, SP + 200, NATIVE.start + 4, 0];
                let shown = stepped(&mut jvm, at(code + 32, false, SP + 72), &stack).0;
                assert_eq!(shown, "org.example.Shop.pay(Shop.java:15)", "{number} in round {round}");
            }
        }
    };
    let peak = peak_bytes_alone("hotspot::tests::methods_of_many_lines_are_forgotten_in_time_and_read_again", run);
    // 1.5 GB if each of them had its rows for itself.
    assert!(peak.is_none_or(|peak| peak < 250 << 20), "{peak:?}");
}

#[test]
fn memory_that_holds_anything_is_no_trouble() {
    let mut machine = Machine::new();
    let code = machine.compiled();
    let interpreter = machine.blob(64, "Interpreter", 256, 0, 0);
    let whole = machine.memory.0.lock().unwrap().clone();
    let mut random = 88_172_645_463_325_252u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..next() % 64 {
            let at = next() as usize % (BYTES - 8);
            let value = if next() % 2 == 0 { next() } else { BASE + next() % BYTES as u64 };
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        *machine.memory.0.lock().unwrap() = bytes;
        let Some(mut jvm) = Jvm::attach(Box::new(machine.memory.clone()), &machine.symbols) else { continue };
        let stack: Vec<u64> = (0..64).map(|_| if next() % 2 == 0 { next() } else { BASE + next() % BYTES as u64 }).collect();
        for ip in [code, code + 0x20, code + 0x40, interpreter + 32, CODE + next() % CODE_BYTES, next()] {
            let mut functions = Vec::new();
            let frame = MadeFrame { ip, is_leaf: next() % 2 == 0, sp: SP, fp: SP + next() % 512, bx: next() };
            jvm.step(&frame, &mut Words(&stack), &mut functions);
            assert!(functions.len() <= 64);
        }
    }
}

#[test]
fn numbers_are_decoded_as_both_kinds_of_machines_write_them() {
    let read = |bytes: &[u8], has_zeroes| Numbers::new(bytes, 0, has_zeroes).number();
    assert_eq!(
        [read(&[0], true), read(&[191], true), read(&[192, 0], true), read(&[200, 3], true)],
        [Some(0), Some(191), Some(192), Some(392)]
    );
    assert_eq!([read(&[1], false), read(&[191], false), read(&[192, 1], false)], [Some(0), Some(190), Some(191)]);
    assert_eq!([read(&[0], false), read(&[], true), read(&[255, 255], true)], [None; 3], "what is cut off is no number");
    assert!(read(&[255; 9], true).is_some());
    let rows = |bytes| Rows::new(bytes, true).collect::<Vec<_>>();
    assert_eq!(rows(&[0x29, 0x52, 0x00, 0x29]), [(5, 1), (15, 3)]);
    assert_eq!(rows(&[0xff, 10, 22, 0x52]), [(5, 11), (15, 13)]);
}

#[test]
fn classes_are_named_as_java_prints_them_without_what_differs_from_run_to_run() {
    let names =
        ["java/lang/Thread", "Orders$$Lambda$14/0x0000000800c03208", "Orders$$Lambda+0x00007f1a", "a/B$$Lambda/0x00007f", "x/A$MH+0x01"];
    assert_eq!(names.map(class_name), ["java.lang.Thread", "Orders$$Lambda", "Orders$$Lambda", "a.B$$Lambda", "x.A$MH"]);
}
