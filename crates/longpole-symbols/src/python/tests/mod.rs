//! Interpreters that are laid out by hand, as each version lays them out.

use super::layout::{
    Attributes, CoroutineFrame, Current, DICT_KEYS, Entry, FIRST, Instruction, LIST_ITEMS, Layout, LineTable, SET_MASK, SET_TABLE,
    STATE_BEFORE_FRAME, TUPLE_ITEMS, TYPE_BYTES, TYPE_FLAGS, Top,
};
use super::*;
use crate::memory::{Memory, MemoryPart, Unreadable, copy_found};

mod memory;

/// Where the memory of these interpreters begins; `_PyRuntime` lies there.
const BASE: u64 = 0x1_0000;

/// Bytes of it.
const BYTES: usize = 48 << 10;

/// Memory of a process that does not exist.
#[derive(Clone)]
struct Image {
    bytes: Vec<u8>,
    free: u64,
}

impl Image {
    fn new() -> Image {
        // The runtime takes less than the first KiB of its page.
        Image { bytes: vec![0; BYTES], free: BASE + 1024 }
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.free;
        self.free += bytes.next_multiple_of(16);
        assert!(self.free <= BASE + self.bytes.len() as u64);
        address
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&mut self, address: u64, word: u64) {
        self.put(address, &word.to_le_bytes());
    }

    /// A text of one, two or four bytes a character, as is needed.
    fn text(&mut self, layout: &Layout, text: &str) -> u64 {
        let widest = text.chars().map(u32::from).max().unwrap_or(0);
        let kind = if widest < 0x100 {
            1
        } else if widest < 0x1_0000 {
            2
        } else {
            4
        };
        let address = self.allocate(layout.compact_head + 4 * text.len() as u64);
        self.word(address + layout.text_length, text.chars().count() as u64);
        let is_ascii = u32::from(text.is_ascii());
        let state: u32 = kind << 2 | 1 << 5 | is_ascii << 6;
        self.put(address + layout.text_state, &state.to_le_bytes());
        let head = if text.is_ascii() { layout.ascii_head } else { layout.compact_head };
        for (i, character) in (0u64..).zip(text.chars()) {
            let bytes = u32::from(character).to_le_bytes();
            self.put(address + head + i * u64::from(kind), &bytes[..kind as usize]);
        }
        address
    }

    fn bytes_object(&mut self, layout: &Layout, contents: &[u8]) -> u64 {
        let address = self.allocate(layout.bytes_data + contents.len() as u64);
        self.word(address + layout.object_size, contents.len() as u64);
        self.put(address + layout.bytes_data, contents);
        address
    }

    /// A code object whose instructions from number 4 on are of the line after its first.
    fn code(&mut self, layout: &Layout, kind: u64, name: &str, file: &str, first_line: i32) -> u64 {
        let (name, file) = (self.text(layout, name), self.text(layout, file));
        let lines: &[u8] = match layout.line_table {
            LineTable::Increments => &[4, 1],
            LineTable::Ranges => &[4, 0, 100, 1],
            LineTable::Locations => &[0x80 | 1, 0, 0x80 | 11 << 3 | 7, 0, 0],
        };
        let lines = self.bytes_object(layout, lines);
        let code = self.allocate(layout.code_instructions + 64);
        self.word(code + layout.object_type, kind);
        self.word(code + layout.code_name, name);
        self.word(code + layout.code_file, file);
        self.word(code + layout.code_lines, lines);
        self.put(code + layout.code_first_line, &first_line.to_le_bytes());
        if layout.instructions_are_inline {
            self.word(code + layout.object_size, 16);
        } else {
            let instructions = self.bytes_object(layout, &[0; 32]);
            self.word(code + layout.code_instructions, instructions);
        }
        code
    }

    /// A frame at an instruction, `offset` bytes into its code.
    fn frame(&mut self, layout: &Layout, code: u64, previous: u64, instruction: u64, begins_call: bool) -> u64 {
        let frame = self.allocate(128);
        self.word(frame + layout.frame_code, code);
        self.word(frame + layout.frame_previous, previous);
        match layout.instruction {
            Instruction::Number { offset, bytes } => {
                let number = (instruction as i64 / bytes) as i32;
                self.put(frame + offset, &number.to_le_bytes());
            }
            Instruction::Address { offset } => self.word(frame + offset, code + layout.code_instructions + instruction),
        }
        if let Entry::Flag { offset } = layout.entry {
            self.put(frame + offset, &[u8::from(begins_call)]);
        }
        frame
    }

    /// What stands between two calls, where something does.
    fn shim(&mut self, layout: &Layout, previous: u64) -> u64 {
        let Entry::Shim { offset, owner } = layout.entry else { return previous };
        let frame = self.frame(layout, 0, previous, 0, false);
        self.put(frame + offset, &[owner]);
        frame
    }

    /// Lets a thread run this frame.
    fn set_current(&mut self, layout: &Layout, thread: u64, current: u64) {
        match layout.current {
            Current::Direct { frame } => self.word(thread + frame, current),
            Current::ByCFrame { cframe, frame } => {
                let at = self.allocate(32);
                self.word(thread + cframe, at);
                self.word(at + frame, current);
            }
        }
    }
}

impl Memory for Image {
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable> {
        copy_found(parts, bytes, |address, length| {
            let at = usize::try_from(address.checked_sub(BASE)?).ok()?;
            self.bytes.get(at..at.checked_add(length)?)
        });
        Ok(())
    }
}

/// Where things are in [`working`].
struct Places {
    leaf: u64,
    thread: u64,
}

/// An interpreter with one thread: `größe` was called by `run` within one call of the evaluating function, that one by `<module>`
/// out of C. (To 3.10 each has a call of its own.)
fn working(version: Version) -> (Image, Places) {
    let layout = Layout::of(version).unwrap();
    let mut image = Image::new();
    if layout.has_table() {
        image.put(BASE, &told(&layout));
    }
    let interpreter = image.allocate(layout.interpreter_threads.max(layout.interpreter_next) + 8);
    let thread = image.allocate(512);
    image.word(BASE + layout.runtime_interpreters, interpreter);
    image.word(interpreter + layout.interpreter_threads, thread);
    image.word(thread + layout.thread_pthread, 0x7f00_1234_5000);
    if let Some(native) = layout.thread_native {
        image.word(thread + native, 4711);
    }
    let kind = image.allocate(64);
    let type_name = image.allocate(16);
    image.put(type_name, b"code\0");
    image.word(kind + layout.type_name, type_name);
    let module = image.code(&layout, kind, "<module>", "/srv/app.py", 1);
    let run = image.code(&layout, kind, "run", "/srv/日本/lib.py", 10);
    let size = image.code(&layout, kind, "größe", "/srv/app.py", 20);
    let outer_shim = image.shim(&layout, 0);
    let root = image.frame(&layout, module, outer_shim, 8, true);
    let inner_shim = image.shim(&layout, root);
    let middle = image.frame(&layout, run, inner_shim, 6, true);
    let leaf = image.frame(&layout, size, middle, 0, false);
    image.set_current(&layout, thread, leaf);
    (image, Places { leaf, thread })
}

/// The table with which 3.13 begins.
fn told(layout: &Layout) -> Vec<u8> {
    let mut words = [0u64; 72];
    words[0] = u64::from_le_bytes(*b"xdebugpy");
    words[1] = 0x030d_00f0;
    let (Current::Direct { frame: current }, Entry::Shim { offset: owner, .. }, Instruction::Address { offset: instruction }) =
        (layout.current, layout.entry, layout.instruction)
    else {
        panic!()
    };
    let told = [
        (5, layout.runtime_interpreters),
        (8, layout.interpreter_next),
        (9, layout.interpreter_threads),
        (21, layout.thread_next),
        (23, current),
        (24, layout.thread_pthread),
        (25, layout.thread_native.unwrap()),
        (29, layout.frame_previous),
        (30, layout.frame_code),
        (31, instruction),
        (32, layout.frame_locals),
        (33, owner),
        (35, layout.code_file),
        (37, layout.code_name),
        (38, layout.code_lines),
        (39, layout.code_first_line),
        (43, layout.code_instructions),
        (45, layout.object_type),
        (47, layout.type_name),
        (65, layout.object_size),
        (66, layout.bytes_data),
        (68, layout.text_state),
        (69, layout.text_length),
        (70, layout.ascii_head),
    ];
    for (number, offset) in told {
        words[number] = offset;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn versions() -> impl Iterator<Item = Version> {
    (8..=13).map(Version::three)
}

/// The frames of the only thread: `function file:line`, with `|` behind one that begins a call.
fn shown(interpreter: &mut Interpreter, codes: &mut Codes, image: &Image) -> Result<String, ReadError> {
    let mut threads = Vec::new();
    interpreter.read(image, &mut threads)?;
    let [thread] = &threads[..] else { return Ok(format!("{} threads", threads.len())) };
    let mut lines = Vec::new();
    for frame in &thread.frames {
        let id = codes.identify(image, interpreter, frame, false)?;
        let code = &codes.list()[id.0 as usize];
        let mark = if frame.begins_call { "|" } else { "" };
        lines.push(format!("{} {}:{}{mark}", code.name, code.file, code.line(frame.instruction)));
    }
    let still = if thread.is_still { " still" } else { "" };
    Ok(lines.join(" ") + still)
}

#[test]
fn a_stack_is_read_as_each_version_lays_it_out() {
    for version in versions() {
        let (image, _) = working(version);
        let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
        let mark = if version.minor <= 10 { "|" } else { "" };
        let expected = format!("größe /srv/app.py:20{mark} run /srv/日本/lib.py:11| <module> /srv/app.py:2|");
        let mut codes = Codes::default();
        assert_eq!(shown(&mut interpreter, &mut codes, &image).as_deref(), Ok(expected.as_str()), "{version}");
        assert_eq!(shown(&mut interpreter, &mut codes, &image), Ok(expected + " still"), "{version}");
        assert_eq!(codes.list().len(), 3, "each code object is read once");
        let code = &codes.list()[0];
        assert_eq!(code.instructions.end - code.instructions.start, 32, "{version}");
    }
}

#[test]
fn another_code_object_at_the_same_address_is_distinguished() {
    for version in versions() {
        let (mut image, places) = working(version);
        let layout = Layout::of(version).unwrap();
        let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
        let mut codes = Codes::default();
        shown(&mut interpreter, &mut codes, &image).unwrap();
        let mut threads = Vec::new();
        interpreter.read(&image, &mut threads).unwrap();
        let code = threads[0].frames[0].code;
        image.put(code + layout.code_first_line, &77i32.to_le_bytes());
        let after = shown(&mut interpreter, &mut codes, &image).unwrap();
        assert!(after.starts_with("größe /srv/app.py:77"), "{version}: {after}");
        assert_ne!(places.leaf, places.thread);
    }
}

#[test]
fn code_reports_lines_that_are_left_out() {
    for version in versions() {
        let layout = Layout::of(version).unwrap();
        let (mut image, _) = working(version);
        let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
        let mut threads = Vec::new();
        interpreter.read(&image, &mut threads).unwrap();
        // The table of the leaf is 3 MiB long, and begins as it did.
        let at = |image: &Image, address: u64| {
            let at = (address - BASE) as usize;
            u64::from_le_bytes(image.bytes[at..at + 8].try_into().unwrap())
        };
        let table = at(&image, threads[0].frames[0].code + layout.code_lines);
        image.word(table + layout.object_size, 3 << 20);
        image.bytes.resize(4 << 20, 0);
        let mut codes = Codes::default();
        let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
        let after = shown(&mut interpreter, &mut codes, &image).unwrap();
        assert_eq!(codes.list().iter().map(|code| code.lacks_lines).collect::<Vec<_>>(), [true, false, false], "{version}");
        let line = if layout.line_table == LineTable::Increments { "0" } else { "20" };
        assert!(after.starts_with(&format!("größe /srv/app.py:{line}")), "{version}: {after}");
    }
}

#[test]
fn an_interpreter_that_has_not_begun_has_no_thread() {
    let mut image = Image::new();
    for version in versions() {
        if version.minor == 13 {
            assert_eq!(Interpreter::attach(&image, BASE, version).unwrap_err(), ReadError::UnknownLayout(version));
            image.put(BASE, &told(&Layout::of(version).unwrap()));
        }
        let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
        assert_eq!(shown(&mut interpreter, &mut Codes::default(), &image).as_deref(), Ok("0 threads"), "{version}");
    }
    let unknown = Version::three(14);
    assert_eq!(Interpreter::attach(&image, BASE, unknown).unwrap_err(), ReadError::UnknownVersion(unknown));
}

#[test]
fn objects_of_another_build_are_not_taken_for_code() {
    let (mut image, _) = working(Version::three(11));
    let at = image.bytes.windows(5).position(|bytes| bytes == b"code\0").unwrap();
    image.bytes[at] = b'm';
    let mut interpreter = Interpreter::attach(&image, BASE, Version::three(11)).unwrap();
    let mut codes = Codes::default();
    let mut look = || shown(&mut interpreter, &mut codes, &image);
    // Once or twice it may be a frame whose place something else has taken.
    assert_eq!(look(), Err(ReadError::Torn));
    let last = (0..30).map(|_| look()).find(|outcome| *outcome != Err(ReadError::Torn));
    assert_eq!(last, Some(Err(ReadError::UnknownLayout(Version::three(11)))));
}

#[test]
fn what_leads_in_a_circle_or_nowhere_ends() {
    for version in versions() {
        let layout = Layout::of(version).unwrap();
        let (image, places) = working(version);
        // The leaf called itself; the thread is followed by itself; a frame is nowhere; one is no address of an object.
        let damages: [(u64, u64); 4] = [
            (places.leaf + layout.frame_previous, places.leaf),
            (places.thread + layout.thread_next, places.thread),
            (places.leaf + layout.frame_previous, 0x7fff_ffff_f000),
            (places.leaf + layout.frame_previous, places.leaf + 3),
        ];
        for (address, value) in damages {
            let mut image = image.clone();
            image.word(address, value);
            let mut interpreter = Interpreter::attach(&image, BASE, version).unwrap();
            let mut threads = Vec::new();
            for _ in 0..3 {
                // Whatever it says: it says it soon, and not more than there may be.
                let _ = interpreter.read(&image, &mut threads);
                assert!(threads.len() <= 1024 && threads.iter().all(|thread| thread.frames.len() <= 1024));
            }
        }
    }
}

/// Types of a made-up interpreter, by name.
struct ObjectTypes(Vec<(&'static str, u64)>);

impl ObjectTypes {
    fn get(&mut self, image: &mut Image, layout: &Layout, name: &'static str, bytes: u64, flags: u64) -> u64 {
        if let Some((_, address)) = self.0.iter().find(|(known, _)| *known == name) {
            return *address;
        }
        let (address, text) = (image.allocate(TYPE_FLAGS + 8), image.allocate(40));
        image.put(text, name.as_bytes());
        image.word(address + layout.type_name, text);
        image.word(address + TYPE_BYTES, bytes);
        image.word(address + TYPE_FLAGS, flags);
        self.0.push((name, address));
        address
    }
}

/// What a loop of `asyncio` waits for, laid out as a version does it.
struct Asyncio {
    image: Image,
    layout: Layout,
    types: ObjectTypes,
    code_type: u64,
}

impl Asyncio {
    fn object(&mut self, name: &'static str, words: &[u64]) -> u64 {
        let bytes = FIRST + 8 * words.len() as u64;
        let kind = self.types.get(&mut self.image, &self.layout, name, bytes, 0);
        let object = self.image.allocate(bytes);
        self.image.word(object + self.layout.object_type, kind);
        for (at, word) in (0..).zip(words) {
            self.image.word(object + FIRST + 8 * at, *word);
        }
        object
    }

    fn table(&mut self, words: &[u64]) -> u64 {
        let table = self.image.allocate(8 * words.len() as u64);
        words.iter().enumerate().for_each(|(at, word)| self.image.word(table + 8 * at as u64, *word));
        table
    }

    fn list(&mut self, items: &[u64]) -> u64 {
        let table = self.table(items);
        let list = self.object("list", &[0; 3]);
        self.image.word(list + self.layout.object_size, items.len() as u64);
        self.image.word(list + LIST_ITEMS, table);
        list
    }

    fn tuple(&mut self, items: &[u64]) -> u64 {
        let words: Vec<u64> = std::iter::once(0).chain(items.iter().copied()).collect();
        assert_eq!((self.layout.object_size, TUPLE_ITEMS), (FIRST, FIRST + 8));
        let tuple = self.object("tuple", &words);
        self.image.word(tuple + self.layout.object_size, items.len() as u64);
        tuple
    }

    /// A set of one item, in a table of eight.
    fn set(&mut self, item: u64) -> u64 {
        let table = self.table(&[0, 0, 0, 0, item, 12345, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let set = self.object("set", &[0; 4]);
        self.image.word(set + SET_MASK, 7);
        self.image.word(set + SET_TABLE, table);
        set
    }

    /// An instance with two attributes. The second one came first.
    fn instance(&mut self, name: &'static str, values: [u64; 2]) -> u64 {
        let layout = self.layout;
        if layout.attributes == Attributes::Dict {
            // Eight places of a byte each; hash, key, value.
            let keys = self.table(&[1, 8, 0, 0, 2, u64::MAX, 1, 0, values[0], 2, 0, values[1]]);
            let dict = self.object("dict", &[0; 4]);
            self.image.word(dict + DICT_KEYS, keys);
            return self.object(name, &[dict]);
        }
        let flags = if layout.attributes == Attributes::Inline { 1 << 4 | 1 << 2 } else { 1 << 4 };
        let kind = self.types.get(&mut self.image, &layout, name, FIRST, flags);
        let object = self.image.allocate(32 + FIRST + 8 + 16) + 32;
        self.image.word(object + layout.object_type, kind);
        if layout.attributes == Attributes::Inline {
            self.image.word(object + FIRST, 2);
            self.image.word(object + FIRST + 8, values[0]);
            self.image.word(object + FIRST + 16, values[1]);
            return object;
        }
        let at = self.table(&[0, 0, values[0], values[1]]) + 16;
        // Places in the order in which they came, backwards; how many; bytes in front of the values.
        self.image.put(at - 4, &[0, 1, 2, 8]);
        match layout.attributes {
            Attributes::MarkedBefore => self.image.word(object - 24, at - 1),
            _ => self.image.word(object - 32, at),
        }
        object
    }

    fn code(&mut self, name: &str, file: &str) -> u64 {
        let layout = self.layout;
        self.image.code(&layout, self.code_type, name, file, 1)
    }

    /// Lays out a frame with these values at an address.
    fn fill_frame(&mut self, frame: u64, code: u64, previous: u64, values: &[u64]) {
        let layout = self.layout;
        self.image.word(frame + layout.frame_code, code);
        self.image.word(frame + layout.frame_previous, previous);
        if let Instruction::Address { offset } = layout.instruction {
            self.image.word(frame + offset, code + layout.code_instructions);
        }
        let locals = frame + layout.frame_locals;
        values.iter().enumerate().for_each(|(at, value)| self.image.word(locals + 8 * at as u64, *value));
        let count = values.len() as u64;
        match layout.frame_top {
            Top::Address { offset } => self.image.word(frame + offset, locals + 8 * count),
            Top::Depth { offset, start } => {
                self.image.put(frame + offset, &1i32.to_le_bytes());
                self.image.word(frame + start, locals + 8 * (count - 1));
            }
            Top::Count { offset } => self.image.put(frame + offset, &(count as i32).to_le_bytes()),
        }
    }

    /// A coroutine that is suspended; the last of its values is what it waits for.
    fn coroutine(&mut self, name: &str, file: &str, values: &[u64]) -> u64 {
        let code = self.code(name, file);
        let bytes = self.layout.frame_locals + 8 * values.len() as u64;
        match self.layout.coroutine_frame {
            CoroutineFrame::Address { .. } => {
                let frame = self.image.allocate(bytes);
                self.fill_frame(frame, code, 0, values);
                self.object("coroutine", &[frame])
            }
            CoroutineFrame::Within { offset } => {
                let coroutine = self.object("coroutine", &vec![0; ((offset + bytes) / 8) as usize]);
                self.image.put(coroutine + offset - STATE_BEFORE_FRAME, &[0xff]);
                self.fill_frame(coroutine + offset, code, 0, values);
                coroutine
            }
        }
    }

    fn task(&mut self, coroutine: u64) -> u64 {
        self.object("_asyncio.Task", &[0, 0, 7, 0, coroutine])
    }

    /// A future, and what a coroutine has that waits for it.
    fn future(&mut self) -> (u64, u64) {
        let future = self.object("_asyncio.Future", &[0, 0, 0]);
        (future, self.object("_asyncio.FutureIter", &[future]))
    }

    /// What `gather` returns. Its attributes are in a dict, as those of a future are.
    fn gathering(&mut self, children: &[u64]) -> u64 {
        let children = self.list(children);
        let keys = if self.layout.attributes == Attributes::Dict {
            self.table(&[1, 8, 0, 0, 1, u64::MAX, 1, 0, children])
        } else {
            // The logarithm of eight bytes of places; keys that are all texts.
            self.table(&[1, u64::from_le_bytes([3, 3, 1, 0, 0, 0, 0, 0]), 0, 1, u64::MAX, 0, children])
        };
        let dict = self.object("dict", &[0; 4]);
        self.image.word(dict + DICT_KEYS, keys);
        self.object("_GatheringFuture", &[0, 0, 0, dict])
    }

    /// A timer that completes a future, so that a task goes on.
    fn timer(&mut self, when: f64, future: u64, task: u64) -> u64 {
        let wakeup = self.object("builtin_function_or_method", &[0, task]);
        self.image.word(future + FIRST + 8, wakeup);
        let arguments = self.tuple(&[future, 0]);
        let when = self.object("float", &[when.to_bits()]);
        self.object("TimerHandle", &[0, arguments, when])
    }

    /// A thread that runs a loop, with these timers, for a task of the program, and waits in `select`.
    fn running(mut self, main: u64, timers: &[u64]) -> Image {
        let heap = self.list(timers);
        let event_loop = self.instance("_UnixSelectorEventLoop", [heap, 0]);
        let base = "/usr/lib/python3/asyncio/base_events.py";
        let thread = self.image.allocate(512);
        let interpreter = self.image.allocate(self.layout.interpreter_threads.max(self.layout.interpreter_next) + 8);
        self.image.word(BASE + self.layout.runtime_interpreters, interpreter);
        self.image.word(interpreter + self.layout.interpreter_threads, thread);
        let mut previous = 0;
        let functions: [(&str, &str, &[u64]); 4] = [
            ("run_until_complete", base, &[event_loop, main]),
            ("run_forever", base, &[event_loop]),
            ("_run_once", base, &[event_loop]),
            ("select", "/usr/lib/python3/selectors.py", &[8]),
        ];
        for (name, file, values) in functions {
            let code = self.code(&format!("Class.{name}"), file);
            let frame = self.image.allocate(self.layout.frame_locals + 16);
            self.fill_frame(frame, code, previous, values);
            previous = frame;
        }
        let layout = self.layout;
        self.image.set_current(&layout, thread, previous);
        self.image
    }
}

/// The functions of the coroutines that explain the wait, leaf first: if a timer ends it, and else.
fn explained(image: &Image, version: Version) -> Result<Option<[String; 2]>, ReadError> {
    let mut interpreter = Interpreter::attach(image, BASE, version)?;
    let (mut codes, mut threads, mut event_loops) = (Codes::default(), Vec::new(), EventLoops::default());
    interpreter.read(image, &mut threads)?;
    let frames = threads.first().map_or(&[][..], |thread| &thread.frames);
    let awaited = event_loops.awaited(image, &mut interpreter, &mut codes, frames)?;
    let names = |frames: &[AwaitedFrame]| {
        let names: Vec<&str> = frames.iter().map(|(_, code)| codes.list()[code.0 as usize].name.as_str()).collect();
        names.join(" ")
    };
    Ok(awaited.map(|awaited| [names(&awaited.timer), names(&awaited.event)]))
}

fn asyncio(version: Version) -> Asyncio {
    let layout = Layout::of(version).unwrap();
    let mut image = Image::new();
    if layout.has_table() {
        image.put(BASE, &told(&layout));
    }
    let mut types = ObjectTypes(Vec::new());
    let code_type = types.get(&mut image, &layout, "code", 0, 0);
    Asyncio { image, layout, types, code_type }
}

const OWN: &str = "/srv/app.py";
const TASKS: &str = "/usr/lib/python3/asyncio/tasks.py";

/// `main` waits for three tasks: one that sleeps, one that sleeps longer and one that reads a socket. A fourth is over.
fn gathering(version: Version) -> Image {
    let mut asyncio = asyncio(version);
    let sleeping = |asyncio: &mut Asyncio, name: &str, when| {
        let (future, awaitable) = asyncio.future();
        let sleep = asyncio.coroutine("sleep", TASKS, &[awaitable]);
        let coroutine = asyncio.coroutine(name, OWN, &[sleep]);
        let task = asyncio.task(coroutine);
        (task, asyncio.timer(when, future, task))
    };
    let (soon, first_timer) = sleeping(&mut asyncio, "ask_cache", 2.0);
    let (later, second_timer) = sleeping(&mut asyncio, "ask_ledger", 3.0);
    let (_, awaitable) = asyncio.future();
    let coroutine = asyncio.coroutine("read_answer", OWN, &[awaitable]);
    let reads = asyncio.task(coroutine);
    let nothing = asyncio.object("coroutine", &[0; 30]);
    let over = asyncio.task(nothing);
    let gathering = asyncio.gathering(&[later, soon, reads, over]);
    let awaitable = asyncio.object("_asyncio.FutureIter", &[gathering]);
    let main = asyncio.coroutine("main", OWN, &[awaitable]);
    let main = asyncio.task(main);
    asyncio.running(main, &[first_timer, second_timer])
}

#[test]
fn the_coroutine_that_explains_the_wait_of_a_loop_is_found() {
    for version in versions() {
        let found = explained(&gathering(version), version);
        assert_eq!(found, Ok(Some(["sleep ask_cache main".to_owned(), "read_answer main".to_owned()])), "{version}");
    }
}

#[test]
fn a_task_that_waits_for_others_leads_to_them() {
    for version in versions() {
        // A worker that `main` has in its variables, while it waits until a queue is empty.
        let mut made = asyncio(version);
        let (future, awaitable) = made.future();
        let sleep = made.coroutine("sleep", TASKS, &[awaitable]);
        let worker = made.coroutine("work", OWN, &[sleep]);
        let worker = made.task(worker);
        let timer = made.timer(1.0, future, worker);
        let (_, awaitable) = made.future();
        let join = made.coroutine("join", "/usr/lib/python3/asyncio/queues.py", &[awaitable]);
        let workers = made.list(&[worker]);
        let main = made.coroutine("main", OWN, &[workers, join]);
        let main = made.task(main);
        let found = explained(&made.running(main, &[timer]), version);
        assert_eq!(found, Ok(Some(["sleep work join main".to_owned(), "sleep work join main".to_owned()])), "{version}");

        // A group, whose tasks are in a set, and a loop without a task of the program but with a timer.
        let mut made = asyncio(version);
        let (_, awaitable) = made.future();
        let step = made.coroutine("slow_step", OWN, &[awaitable]);
        let step = made.task(step);
        let tasks = made.set(step);
        let group = made.instance("TaskGroup", [0, tasks]);
        let (_, awaitable) = made.future();
        let exit = made.coroutine("__aexit__", "/usr/lib/python3/asyncio/taskgroups.py", &[group, awaitable]);
        let main = made.task(exit);
        let found = explained(&made.running(main, &[]), version);
        assert_eq!(found, Ok(Some(["slow_step __aexit__".to_owned(), "slow_step __aexit__".to_owned()])), "{version}");

        // Futures that are no tasks, together, beside a task that ticks.
        let mut made = asyncio(version);
        let (tick_future, tick_awaitable) = made.future();
        let tick = made.coroutine("tick", OWN, &[tick_awaitable]);
        let tick = made.task(tick);
        let timer = made.timer(1.0, tick_future, tick);
        let (future, _) = made.future();
        let gathering = made.gathering(&[future, future]);
        let awaitable = made.object("_asyncio.FutureIter", &[gathering]);
        let main = made.coroutine("main", OWN, &[awaitable]);
        let main = made.task(main);
        let found = explained(&made.running(main, &[timer]), version);
        assert_eq!(found, Ok(Some(["main".to_owned(), "main".to_owned()])), "{version}");

        let mut made = asyncio(version);
        let (future, awaitable) = made.future();
        let tick = made.coroutine("tick", OWN, &[awaitable]);
        let tick = made.task(tick);
        let timer = made.timer(1.0, future, tick);
        let found = explained(&made.running(8, &[timer]), version);
        assert_eq!(found, Ok(Some(["tick".to_owned(), "tick".to_owned()])), "{version}");
        assert_eq!(explained(&asyncio(version).running(8, &[]), version), Ok(None), "{version}");
        assert_eq!(explained(&working(version).0, version), Ok(None), "no loop: {version}");
    }
}

#[test]
fn objects_of_any_content_are_no_panic_and_an_end() {
    for version in versions() {
        let image = gathering(version);
        let used = image.bytes.iter().rposition(|byte| *byte != 0).unwrap();
        let nonsense = |at: usize| [u64::MAX, 0, BASE + at as u64, i64::MAX as u64, BASE + 1024, 1 << 40][at / 8 % 6];
        for at in (0..used).step_by(8) {
            let mut damaged = image.clone();
            damaged.word(BASE + at as u64, nonsense(at));
            for [timer, event] in explained(&damaged, version).into_iter().flatten() {
                assert!(timer.split(' ').count() <= 256 && event.split(' ').count() <= 256);
            }
        }
        // Tasks that wait for each other in a circle.
        let mut made = asyncio(version);
        let iterator = made.object("_asyncio.FutureIter", &[0]);
        let coroutine = made.coroutine("main", OWN, &[iterator]);
        let task = made.task(coroutine);
        made.image.word(iterator + FIRST, task);
        assert_eq!(explained(&made.running(task, &[]), version), Ok(Some(["main".to_owned(), "main".to_owned()])), "{version}");
        // A coroutine that waits for itself.
        let mut made = asyncio(version);
        let coroutine = made.coroutine("main", OWN, &[8]);
        let frame = match made.layout.coroutine_frame {
            CoroutineFrame::Address { offset } => {
                let at = (coroutine + offset - BASE) as usize;
                u64::from_le_bytes(made.image.bytes[at..at + 8].try_into().unwrap())
            }
            CoroutineFrame::Within { offset } => coroutine + offset,
        };
        made.image.word(frame + made.layout.frame_locals, coroutine);
        let task = made.task(coroutine);
        let found = explained(&made.running(task, &[]), version).unwrap().unwrap();
        assert_eq!(found[0].split(' ').count(), 256, "{version}");
    }
}

/// Seeds for the fuzz target `python_memory`; written with `LONGPOLE_UPDATE_SEEDS=1`.
#[test]
fn seeds_are_interpreters_that_work() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/python_memory");
    for version in versions() {
        for (name, image) in [("python", working(version).0), ("asyncio", gathering(version))] {
            let mut seed = vec![version.minor];
            let used = image.bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            seed.extend_from_slice(&image.bytes[..used]);
            let path = folder.join(format!("{name}3.{}.seed", version.minor));
            if std::env::var_os("LONGPOLE_UPDATE_SEEDS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &seed).unwrap();
            }
            assert!(std::fs::read(&path).unwrap() == seed, "{} is stale; LONGPOLE_UPDATE_SEEDS=1 writes it", path.display());
        }
    }
}
