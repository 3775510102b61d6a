//! Interpreters that are laid out by hand, as each version lays them out.

use super::layout::{Current, Entry, Instruction, Layout, LineTable};
use super::*;
use crate::memory::{Memory, MemoryPart, Unreadable, copy_found};

/// Where the memory of these interpreters begins; `_PyRuntime` lies there.
const BASE: u64 = 0x1_0000;

/// Bytes of it.
const BYTES: usize = 24 << 10;

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
        assert!(self.free <= BASE + BYTES as u64);
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

/// Seeds for the fuzz target `python_memory`; written with `LONGPOLE_UPDATE_SEEDS=1`.
#[test]
fn seeds_are_interpreters_that_work() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/python_memory");
    for version in versions() {
        let (image, _) = working(version);
        let mut seed = vec![version.minor];
        let used = image.bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        seed.extend_from_slice(&image.bytes[..used]);
        let path = folder.join(format!("python3.{}.seed", version.minor));
        if std::env::var_os("LONGPOLE_UPDATE_SEEDS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &seed).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == seed, "{} is stale; LONGPOLE_UPDATE_SEEDS=1 writes it", path.display());
    }
}
