//! Heaps that are laid out by hand, as Node 20 and Node 24 lay them out.

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::memory::{Memory, MemoryPart, Unreadable, copy_found};

/// Where the memory of these processes begins.
const BASE: u64 = 0x10_0000;

/// Bytes of it.
const BYTES: usize = 64 << 10;

/// Types that both versions have in common are those of texts.
const LATIN: u16 = 40;
const WIDE: u16 = 32;
const CONS: u16 = 41;
const SLICED: u16 = 43;
const THIN: u16 = 45;
const EXTERNAL: u16 = 42;

/// The constants of Node 20.20 and of Node 24.21, as far as they are needed.
fn constants(is_24: bool) -> Vec<(&'static str, i32)> {
    let both = [
        ("HeapObjectTag", 1),
        ("SmiShiftSize", 31),
        ("off_fp_context_or_frame_type", -8),
        ("off_fp_function", -16),
        ("off_fp_bytecode_array", -32),
        ("class_Map__instance_type__uint16_t", 12),
        ("class_Script__name__Object", 16),
        ("class_Script__source__Object", 8),
        ("scopeinfo_idx_ncontextlocals", 2),
        ("class_String__length__int32_t", 12),
        ("class_SeqOneByteString__chars__char", 16),
        ("class_SeqTwoByteString__chars__char", 16),
        ("class_ConsString__first__String", 16),
        ("class_ConsString__second__String", 24),
        ("class_SlicedString__parent__String", 16),
        ("class_SlicedString__offset__SMI", 24),
        ("class_ThinString__actual__String", 16),
        ("class_ExternalString__resource__Object", 16),
        ("FirstNonstringType", 128),
        ("StringRepresentationMask", 7),
        ("OneByteStringTag", 8),
        ("ConsStringTag", 1),
        ("ExternalStringTag", 2),
        ("SlicedStringTag", 3),
        ("ThinStringTag", 5),
    ];
    let others = if is_24 {
        [
            ("class_JSFunction__shared__SharedFunctionInfo", 32),
            ("class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", 24),
            ("class_SharedFunctionInfo__script__Tagged_HeapObject_", 40),
            ("scopeinfo_idx_first_vars", 5),
            ("type_JSFunction__JS_FUNCTION_TYPE", 2065),
            ("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 282),
            ("type_ScopeInfo__SCOPE_INFO_TYPE", 280),
            ("type_Script__SCRIPT_TYPE", 166),
        ]
    } else {
        [
            ("class_JSFunction__shared__SharedFunctionInfo", 24),
            ("class_SharedFunctionInfo__name_or_scope_info__Object", 16),
            ("class_SharedFunctionInfo__script_or_debug_info__HeapObject", 32),
            ("scopeinfo_idx_first_vars", 3),
            ("type_JSFunction__JS_FUNCTION_TYPE", 2066),
            ("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262),
            ("type_ScopeInfo__SCOPE_INFO_TYPE", 261),
            ("type_Script__SCRIPT_TYPE", 167),
        ]
    };
    both.into_iter().chain(others).collect()
}

fn layout_of(constants: &[(&str, i32)]) -> Option<HeapLayout> {
    HeapLayout::of(|prefix| constants.iter().find(|(name, _)| name.starts_with(prefix)).map(|(_, value)| *value))
}

/// A number instead of a pointer.
fn small(number: u64) -> u64 {
    number << 32
}

/// Memory of a process that does not exist.
#[derive(Clone)]
struct Image {
    bytes: Vec<u8>,
    free: u64,
    layout: HeapLayout,
    is_24: bool,
    is_gone: bool,
    copies: Cell<u32>,
}

impl Image {
    fn new(is_24: bool) -> Image {
        let layout = layout_of(&constants(is_24)).unwrap();
        Image { bytes: vec![0; BYTES], free: BASE, layout, is_24, is_gone: false, copies: Cell::new(0) }
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&mut self, pointer: u64, offset: u64, word: u64) {
        self.put(pointer - 1 + offset, &word.to_le_bytes());
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.free;
        self.free += bytes.next_multiple_of(8);
        assert!(self.free <= BASE + BYTES as u64);
        address + 1
    }

    /// An object with a map of its own.
    fn object(&mut self, kind: u16, words: u64) -> u64 {
        let map = self.allocate(64);
        self.put(map - 1 + self.layout.map_type, &kind.to_le_bytes());
        let object = self.allocate(words * 8);
        self.word(object, 0, map);
        object
    }

    fn text_of(&mut self, kind: u16, length: usize, first: u64, second: u64) -> u64 {
        let text = self.object(kind, 4);
        self.put(text - 1 + 12, &(length as u32).to_le_bytes());
        self.word(text, 16, first);
        self.word(text, 24, second);
        text
    }

    fn text(&mut self, text: &str) -> u64 {
        let is_latin = text.chars().all(|character| u32::from(character) < 0x100);
        let units: Vec<u8> = match is_latin {
            true => text.chars().map(|character| u32::from(character) as u8).collect(),
            false => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        };
        let object = self.object(if is_latin { LATIN } else { WIDE }, 2 + units.len() as u64 / 8 + 1);
        let length = if is_latin { units.len() } else { units.len() / 2 };
        self.put(object - 1 + 12, &(length as u32).to_le_bytes());
        self.put(object - 1 + 16, &units);
        object
    }

    /// A scope with these variables, and a name of its own, an inferred one, or none.
    fn scope(&mut self, variables: u64, name: Option<u64>, inferred: Option<u64>, start: u64) -> u64 {
        let kind = self.layout.type_scope;
        let scope = self.object(kind, 16 + 2 * variables);
        let flags = 4 | u64::from(name.is_some()) << 12 | u64::from(inferred.is_some()) << 14;
        let mut words = vec![if self.is_24 { flags } else { small(flags) }, small(1), small(variables)];
        if self.is_24 {
            words.extend([small(start), small(start + 10)]);
        }
        let variable = self.text("variable");
        let names = if variables < 75 { variables } else { 1 };
        words.extend((0..names).map(|_| variable));
        words.extend((0..variables).map(|_| small(3)));
        words.extend(name.into_iter().flat_map(|name| [name, small(0)]));
        words.extend(inferred);
        if !self.is_24 {
            words.extend([small(start), small(start + 10)]);
        }
        for (at, word) in (1u64..).zip(words) {
            self.word(scope, at * 8, word);
        }
        scope
    }

    fn script(&mut self, name: &str, source: u64) -> u64 {
        let kind = self.layout.type_script;
        let script = self.object(kind, 16);
        let name = self.text(name);
        self.word(script, self.layout.script_name, name);
        self.word(script, self.layout.script_source, source);
        script
    }

    fn function(&mut self, name_or_scope: u64, script: u64) -> u64 {
        let (kind, shared_kind) = (self.layout.type_function, self.layout.type_shared);
        let shared = self.object(shared_kind, 8);
        self.word(shared, self.layout.shared_name, name_or_scope);
        self.word(shared, self.layout.shared_script, script);
        let function = self.object(kind, 8);
        self.word(function, self.layout.function_shared, shared);
        function
    }

    /// A function `work` on line 3 of `/srv/app.js`.
    fn work(&mut self) -> u64 {
        let source = self.text("// one\r\n// two\nfunction work() {}\n");
        let script = self.script("file:///srv/app.js", source);
        let name = self.text("work");
        let scope = self.scope(2, Some(name), None, 28);
        self.function(scope, script)
    }

    fn look_up(&self, functions: &mut Functions, pointer: u64) -> LookUp {
        functions.look_up(self, &self.layout, &[pointer], |read| read()).pop().unwrap()
    }

    fn named(&self, pointer: u64) -> String {
        match self.look_up(&mut Functions::default(), pointer) {
            LookUp::Function(function) => format!("{} {}:{}", function.name, function.file, function.line),
            other => format!("{other:?}"),
        }
    }
}

impl Memory for Image {
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable> {
        if self.is_gone {
            return Err(Unreadable::Gone);
        }
        self.copies.set(self.copies.get() + 1);
        copy_found(parts, bytes, |address, length| {
            let at = usize::try_from(address.checked_sub(BASE)?).ok()?;
            self.bytes.get(at..at.checked_add(length)?)
        });
        Ok(())
    }
}

#[test]
fn a_function_has_its_name_its_file_and_its_line() {
    for is_24 in [false, true] {
        let mut image = Image::new(is_24);
        let work = image.work();
        assert_eq!(image.named(work), "work /srv/app.js:3");
        // Not compiled yet: its name is in the place of its scope.
        let (name, source) = (image.text("täglich"), image.text(""));
        let script = image.script("node:events", source);
        let early = image.function(name, script);
        assert_eq!(image.named(early), "täglich node:events:0");
        // Nameless, but it was assigned to something.
        let inferred = image.text("exports.run");
        let scope = image.scope(0, Some(0), Some(inferred), 0);
        let assigned = image.function(scope, script);
        assert_eq!(image.named(assigned), "exports.run node:events:1");
        let scope = image.scope(80, None, None, 0);
        let nameless = image.function(scope, script);
        assert_eq!(image.named(nameless), " node:events:1");
        let builtin = image.function(small(0), small(0) + 9);
        assert_eq!(image.named(builtin), format!("{:?}", LookUp::Missing(Missing::Moved)));
        let undefined = image.object(131, 4);
        let builtin = image.function(small(0), undefined);
        assert_eq!(image.named(builtin), "Builtin");
    }
}

#[test]
fn texts_are_read_in_each_of_their_forms() {
    let mut image = Image::new(false);
    let source = image.text("");
    let script = image.script("/srv/app.js", source);
    let (read, all) = (image.text("read"), image.text("All — everything"));
    let empty = image.text("");
    let joined = image.text_of(CONS, 20, read, all);
    let flat = image.text_of(CONS, 4, read, empty);
    let part = image.text_of(SLICED, 2, read, small(1));
    let outside = image.allocate(8);
    image.put(outside - 1, b"outside!");
    let external = image.text_of(EXTERNAL, 7, 0x7777, outside - 1);
    let itself = image.text_of(THIN, 4, read, 0);
    let beyond = image.text_of(SLICED, 9, read, small(1));
    let uncached = image.text_of(EXTERNAL | 1 << 4, 7, 0x7777, outside - 1);
    let cases = [
        (joined, "readAll — everything"),
        (flat, "read"),
        (part, "ea"),
        (external, "outside"),
        (itself, "read"),
        (image.text("Ünïcödé"), "Ünïcödé"),
    ];
    for (name, text) in cases {
        let function = image.function(name, script);
        assert_eq!(image.named(function), format!("{text} /srv/app.js:0"));
    }
    for name in [beyond, uncached] {
        let function = image.function(name, script);
        assert_eq!(image.named(function), format!("{:?}", LookUp::Missing(Missing::Moved)));
    }
    // A text that is part of itself, and one as long as no text is.
    let endless = image.text_of(CONS, 1000, read, read);
    image.word(endless, 16, endless);
    image.word(endless, 24, endless);
    let long = image.text(&"x".repeat(1000));
    let (endless, long) = (image.function(endless, script), image.function(long, script));
    assert_eq!(image.named(endless), " /srv/app.js:0");
    assert_eq!(image.named(long), format!("{} /srv/app.js:0", "x".repeat(256)));
}

#[test]
fn a_function_that_is_known_is_copied_once_and_not_followed() {
    let mut image = Image::new(false);
    let work = image.work();
    let mut functions = Functions::default();
    let LookUp::Function(first) = image.look_up(&mut functions, work) else { panic!() };
    image.copies.set(0);
    let LookUp::Function(again) = image.look_up(&mut functions, work) else { panic!() };
    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!(image.copies.get(), 1);
    // Another function lies there now, then none, then one again.
    let (name, source) = (image.text("other"), image.text(""));
    let script = image.script("/srv/app.js", source);
    let other = image.function(name, script);
    let before = image.clone();
    image.bytes.copy_within((other - 1 - BASE) as usize..(other - 1 - BASE) as usize + 64, (work - 1 - BASE) as usize);
    let LookUp::Function(moved) = image.look_up(&mut functions, work) else { panic!() };
    assert_eq!(moved.name, "other");
    image.put(work - 1, &[0; 64]);
    assert_eq!(image.look_up(&mut functions, work), LookUp::Missing(Missing::Moved));
    assert_eq!(before.look_up(&mut functions, work), LookUp::Function(first));
    // The last function that was known holds when the process has ended.
    image.is_gone = true;
    assert!(matches!(image.look_up(&mut functions, work), LookUp::Function(_)));
    assert_eq!(image.look_up(&mut functions, other), LookUp::Missing(Missing::Gone));
}

/// V8's collector copies an object and leaves its new address instead of its map; the rest of the old object stays until others lie there.
#[test]
fn a_function_that_was_moved_is_found_from_its_old_place() {
    for is_24 in [false, true] {
        let mut image = Image::new(is_24);
        let old = image.work();
        let kind = image.layout.type_function;
        let new = image.object(kind, 8);
        let shared = crate::memory::word(&image.bytes, old - 1 - BASE + image.layout.function_shared).unwrap();
        let offset = image.layout.function_shared;
        image.word(new, offset, shared);
        image.word(old, 0, new - 1);
        assert_eq!(image.named(old), "work /srv/app.js:3");
        // Something else lies at the new place by now.
        image.word(new, offset, small(7));
        assert_eq!(image.look_up(&mut Functions::default(), old), LookUp::Missing(Missing::Moved));
        // One step only: a ring of moved objects ends.
        image.word(new, 0, old - 1);
        assert_eq!(image.look_up(&mut Functions::default(), old), LookUp::Missing(Missing::Moved));
    }
}

#[test]
fn functions_of_long_names_are_forgotten_in_time() {
    let mut image = Image::new(false);
    let source = image.text("");
    let script = image.script(&"漢".repeat(1024), source);
    let name = image.text(&"漢".repeat(256));
    let first = image.function(name, script);
    let start = (first - 1 - BASE) as usize;
    let bytes = image.bytes[start..start + 64].to_vec();
    let at = image.bytes.len() as u64;
    image.bytes.extend(bytes.repeat(40_000));
    let mut functions = Functions::default();
    for number in 0..40_000 {
        let LookUp::Function(found) = image.look_up(&mut functions, BASE + at + number * 64 + 1) else { panic!("{number}") };
        assert_eq!(found.file.len() + found.name.len(), 1280 * 3);
    }
    let shown = format!("{functions:?}");
    let known: usize = shown.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    assert!((1..18_000).contains(&known), "{shown}");
}

#[test]
fn a_function_that_may_not_be_read_is_missing() {
    let mut image = Image::new(false);
    let work = image.work();
    let busy = |_: &mut dyn FnMut() -> LookUp| LookUp::Missing(Missing::Busy);
    assert_eq!(Functions::default().look_up(&image, &image.layout, &[work], busy), [LookUp::Missing(Missing::Busy)]);
    assert_eq!(image.copies.get(), 0);
}

#[test]
fn a_frame_of_javascript_has_a_function_and_a_context() {
    let layout = layout_of(&constants(false)).unwrap();
    let of = |context: u64, function: u64| {
        layout.function_of_frame(0x8000, |at| match at {
            0x7ff8 => Some(context),
            0x7ff0 => Some(function),
            0x7fe0 => Some(7),
            _ => None,
        })
    };
    assert_eq!(of(0x10_0001, 0x20_0001), Some(FrameFunction { pointer: 0x20_0001, bytecode: 7 }));
    // A marker: V8's own code. Then no pointers.
    assert_eq!([of(17 << 1, 0x20_0001), of(0x10_0001, 0x20_0000), of(1, 1), layout.function_of_frame(8, |_| Some(1))], [None; 4]);
}

#[test]
fn a_layout_that_is_not_whole_or_compressed_is_none() {
    let all = constants(false);
    for missing in 0..all.len() {
        let mut some = all.clone();
        some.remove(missing);
        assert_eq!(layout_of(&some), None, "without {}", all[missing].0);
    }
    let with = |name: &str, value| {
        let changed: Vec<_> = all.iter().map(|it| if it.0 == name { (it.0, value) } else { *it }).collect();
        layout_of(&changed)
    };
    assert_eq!(with("SmiShiftSize", 0), None);
    assert_eq!(with("class_Map__instance_type__uint16_t", -4), None);
    assert_eq!(with("class_Script__name__Object", i32::MAX), None);
    assert_eq!(with("off_fp_function", 16), None);
}

#[test]
fn the_layout_is_read_from_a_binary() {
    use object::read::ReadCache;

    use crate::made_up::{BASE, elf};
    use crate::probe::v8;

    const CONSTANTS_AT: usize = 0x1000;
    let of = |constants: &[(&str, i32)]| {
        let (mut symbols, mut names, mut values) = (vec![0; 24], vec![0], Vec::new());
        for (name, value) in constants {
            let address = BASE + (CONSTANTS_AT + values.len()) as u64;
            // Global data of section 1.
            symbols
                .extend([&(names.len() as u32).to_le_bytes()[..], &[0x11, 0, 1, 0], &address.to_le_bytes(), &4u64.to_le_bytes()].concat());
            names.extend([b"v8dbg_", name.as_bytes(), b"\0"].concat());
            values.extend(value.to_le_bytes());
        }
        let file = elf(&[(".data", 1, CONSTANTS_AT, &values), (".dynstr", 3, 0x4000, &names), (".dynsym", 11, 0x1_0000, &symbols)]);
        let cache = ReadCache::new(std::io::Cursor::new(file));
        v8::layout(&object::File::parse(&cache).unwrap())
    };
    let few = constants(true);
    let mut all = few.clone();
    all.extend((0..400).map(|_| ("type_Filler__FILLER_TYPE", 1)));
    assert_eq!(of(&all), layout_of(&few));
    assert!(of(&all).is_some());
    assert_eq!(of(&few), None, "so few integers are no V8");
}

proptest! {
    /// The program writes while it is read: any byte may be any byte.
    #[test]
    fn a_torn_heap_is_survived(is_24: bool, changes in prop::collection::vec((0usize..2000, any::<u64>()), 0..40), pointer: u64) {
        let mut image = Image::new(is_24);
        let work = image.work();
        let words = (image.free - BASE) as usize / 8;
        for (at, word) in changes {
            let at = at % words * 8;
            // Half of them lead somewhere.
            let word = if word % 2 == 0 { BASE + 1 + word % BYTES as u64 / 8 * 8 } else { word };
            image.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let mut functions = Functions::default();
        for pointer in [work, work, pointer, pointer | 1] {
            image.copies.set(0);
            image.look_up(&mut functions, pointer);
            prop_assert!(image.copies.get() <= 300, "{}", image.copies.get());
        }
    }
}
