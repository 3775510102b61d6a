//! The small binaries of fixtures/elf, and what this machine has.

use std::collections::HashMap;
use std::io::{self, Cursor, ErrorKind};
use std::path::{Path, PathBuf};

use longpole_model::address::VirtOffset;
use longpole_model::stack::{Frame, Mapping, MappingId};
use longpole_symbols::{Files, HostFiles, ReadSeek, Reason, Resolved, Symbolizer};
use object::{Object, ObjectSection, ObjectSymbol};

/// Files that exist in the test only.
#[derive(Default)]
pub(crate) struct Shelf(HashMap<PathBuf, Vec<u8>>);

impl Shelf {
    pub(crate) fn with(mut self, path: &str, fixture: &str) -> Self {
        self.0.insert(path.into(), bytes(fixture));
        self
    }

    fn with_bytes(mut self, path: &str, bytes: &[u8]) -> Self {
        self.0.insert(path.into(), bytes.to_vec());
        self
    }
}

impl Files for Shelf {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        let bytes = self.0.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(bytes.clone())))
    }
}

/// A file of fixtures/elf.
pub(crate) fn bytes(fixture: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/elf").join(fixture);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn build_id(fixture: &str) -> Vec<u8> {
    object::File::parse(&*bytes(fixture)).unwrap().build_id().unwrap().unwrap().to_vec()
}

fn debug_path(build_id: &[u8]) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..])
}

fn resolve(files: impl Files + 'static, path: &str, build_id: &[u8], addresses: &[u64]) -> Resolved {
    let mapping = Mapping { id: MappingId(0), path: path.into(), build_id: build_id.to_vec() };
    let addresses: Vec<VirtOffset> = addresses.iter().copied().map(VirtOffset).collect();
    Symbolizer::new(Box::new(files)).resolve(&mapping, &addresses)
}

/// Frames as a person would write them: `rotate hash.c:3`.
fn text(frames: &[Frame]) -> Vec<String> {
    let line = |frame: &Frame| match (&frame.reason, &frame.file[..]) {
        (Some(reason), _) => format!("{} ({reason})", frame.function),
        (None, "") => frame.function.to_string(),
        (None, file) => format!("{} {}:{}", frame.function, file, frame.line),
    };
    frames.iter().map(line).collect()
}

/// The instruction `rol`: two calls inlined into each other.
const ROTATE: u64 = 0x40_0123;
const INLINED: [&str; 3] = ["rotate /src/hash.c:3", "mix /src/hash.c:7", "hash_block /src/hash.c:14"];

#[test]
fn inlined_calls_are_frames_in_every_version_of_dwarf() {
    for fixture in ["hash-dwarf2", "hash-dwarf4", "hash-dwarf5", "hash-zlib", "hash-zlib-gnu", "hash-zstd"] {
        let found = resolve(Shelf::default().with("/opt/hash", fixture), "/opt/hash", &[], &[ROTATE, 0x40_0110, ROTATE]);
        assert_eq!(found.trouble, None, "{fixture}");
        assert_eq!(text(&found.frames[0]), INLINED, "{fixture}");
        assert_eq!(text(&found.frames[1]), ["hash_block /src/hash.c:13"], "{fixture}");
        assert_eq!(found.frames[2], found.frames[0], "{fixture}");
    }
}

#[test]
fn a_binary_without_debug_information_has_the_names_of_its_symbols() {
    let found = resolve(Shelf::default().with("/opt/hash", "hash-symbols"), "/opt/hash", &build_id("hash-symbols"), &[ROTATE, 0x40_0000]);
    assert_eq!(text(&found.frames[0]), ["hash_block"]);
    assert_eq!(text(&found.frames[1]), ["hash+0x400000 (no symbol at this address)"]);
    assert_eq!(found.trouble, None);
}

#[test]
fn debug_information_that_was_split_off_is_found() {
    let id = build_id("hash-dwarf5");
    let by_id = || Shelf::default().with(&debug_path(&id), "hash.debug");
    let check = |files: Shelf, path: &str| {
        let found = resolve(files, path, &id, &[ROTATE]);
        assert_eq!((text(&found.frames[0]), found.trouble), (INLINED.map(String::from).to_vec(), None));
    };
    check(by_id().with("/opt/hash", "hash-stripped"), "/opt/hash");
    // The binary is gone; its debug file, found by build id, is not.
    check(by_id(), "/opt/hash");
    check(by_id(), "/opt/hash (deleted)");
    // Another binary is there now.
    check(by_id().with("/opt/hash", "hash-dwarf4"), "/opt/hash");
    for beside in ["/opt/hash.debug", "/opt/.debug/hash.debug", "/usr/lib/debug/opt/hash.debug"] {
        check(Shelf::default().with("/opt/hash", "hash-linked").with(beside, "hash.debug"), "/opt/hash");
    }
    // A debug file of another binary is none.
    let found =
        resolve(Shelf::default().with("/opt/hash", "hash-linked").with("/opt/hash.debug", "hash-dwarf4"), "/opt/hash", &id, &[ROTATE]);
    assert_eq!((text(&found.frames[0])[0].as_str(), found.trouble), ("hash+0x400123 (stripped)", Some(Reason::Stripped)));
}

#[test]
fn what_debug_files_share_is_found_beside_them() {
    let files = || Shelf::default().with("/opt/hash", "hash-alt");
    let found = resolve(files().with("/opt/shared.debug", "shared.debug"), "/opt/hash", &[], &[ROTATE]);
    assert_eq!(text(&found.frames[0])[1..], INLINED[1..], "{:?}", found.trouble);
    assert!(text(&found.frames[0])[0].starts_with("rotate "));
    // Without the shared file the function has no name, and the frames around it still have theirs.
    let found = resolve(files(), "/opt/hash", &[], &[ROTATE]);
    assert_eq!(found.frames[0][0].function, "hash+0x400123");
    assert_eq!(found.frames[0][2].function, "hash_block");
}

#[test]
fn what_cannot_be_read_says_why() {
    let check = |files: Shelf, path: &str, id: &[u8], frame: &str, reason: Reason| {
        let found = resolve(files, path, id, &[0x12ab]);
        assert_eq!((&text(&found.frames[0])[0][..], found.trouble), (frame, Some(reason)));
    };
    let empty = Shelf::default;
    check(empty(), "/lib/libfoo.so", &[], "libfoo.so+0x12ab (file missing)", Reason::Missing);
    check(empty(), "/tmp/x (deleted)", &[], "x (deleted)+0x12ab (file deleted)", Reason::Deleted);
    check(empty(), "//anon", &[], "anon+0x12ab (not a file)", Reason::NotAFile);
    check(empty(), "[vsyscall]", &[], "[vsyscall]+0x12ab (not a file)", Reason::NotAFile);
    check(empty(), "", &[], "[unknown]+0x12ab (not a file)", Reason::NotAFile);
    check(empty().with_bytes("/bin/sh", b"#!/bin/sh\n"), "/bin/sh", &[], "sh+0x12ab (not an elf file)", Reason::NotElf);
    check(empty().with_bytes("/bin/e", b""), "/bin/e", &[], "e+0x12ab (not an elf file)", Reason::NotElf);
    check(empty().with_bytes("/bin/e", b"\x7fELF\x02\x01\x01"), "/bin/e", &[], "e+0x12ab (malformed elf file)", Reason::MalformedElf);
    check(
        empty().with("/opt/hash", "hash-dwarf5"),
        "/opt/hash",
        &[1; 20],
        "hash+0x12ab (file replaced since it was mapped)",
        Reason::BuildIdDiffers,
    );
    let found = resolve(HostFiles, "/proc", &[], &[1]);
    assert_eq!(text(&found.frames[0]), ["proc+0x1 (file unreadable: not a regular file)"]);
}

#[test]
fn half_of_the_debug_information_is_better_than_none() {
    // The line program's version is one that does not exist; functions and inlined calls are still there.
    let mut broken = bytes("hash-dwarf4");
    let (offset, _) = section_range(&broken, ".debug_line");
    broken[offset + 4] = 77;
    let found = resolve(Shelf::default().with_bytes("/opt/hash", &broken), "/opt/hash", &[], &[ROTATE]);
    assert_eq!(found.trouble, Some(Reason::MalformedDwarf));
    assert_eq!(text(&found.frames[0]), ["hash_block"], "the symbol table has the name");
}

pub(crate) fn section_range(file: &[u8], name: &str) -> (usize, usize) {
    let file = object::File::parse(file).unwrap();
    let (offset, size) = file.section_by_name(name).unwrap().file_range().unwrap();
    (offset as usize, size as usize)
}

/// Path of a mapped file, from the kernel.
fn mapped(name: &str) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).find(|path| path.contains(name)).map(str::to_owned)
}

#[test]
fn the_c_library_has_at_least_its_dynamic_symbols() {
    let Some(path) = mapped("libc.so.6") else {
        println!("skipped: no glibc is mapped here");
        return;
    };
    let file = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let malloc = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("malloc") && symbol.is_definition()).unwrap();
    let found = resolve(HostFiles, &path, file.build_id().unwrap().unwrap(), &[malloc.address() + 1]);
    assert!(found.frames[0].last().unwrap().function.ends_with("malloc"), "{found:?}");
}

#[test]
fn the_kernels_code_in_every_process_has_names() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    if !maps.contains("[vdso]") {
        println!("skipped: no vdso is mapped here");
        return;
    }
    let mut bytes = Vec::new();
    HostFiles.open(Path::new("[vdso]")).unwrap().read_to_end(&mut bytes).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name().is_ok_and(|name| name.ends_with("clock_gettime"))).unwrap();
    let found = resolve(HostFiles, "[vdso]", &[], &[symbol.address()]);
    assert!(found.frames[0][0].function.ends_with("clock_gettime"), "{found:?}");
}

#[test]
fn a_call_through_the_linkage_table_has_the_name_of_its_target() {
    let Some(path) = mapped("libc.so.6").and_then(|_| Some(std::env::current_exe().ok()?.to_str()?.to_owned())) else { return };
    let file = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let Some(plt) = [".plt.sec", ".plt"].iter().find_map(|name| file.section_by_name(name)) else {
        println!("skipped: this program is linked without a linkage table");
        return;
    };
    let header = if plt.name() == Ok(".plt.sec") { 0 } else { 16 };
    let found = resolve(HostFiles, &path, &[], &[plt.address() + header]);
    assert!(found.frames[0][0].function.ends_with("@plt"), "{found:?}");
}

/// The same file with other contents of a section, which it holds behind its end.
fn with_section(mut file: Vec<u8>, section: &str, contents: &[u8]) -> Vec<u8> {
    let (index, headers) = {
        let parsed = object::read::elf::ElfFile64::<object::Endianness>::parse(&*file).unwrap();
        let index = parsed.section_by_name(section).unwrap().index().0;
        (index, parsed.elf_header().e_shoff.get(parsed.endian()))
    };
    let header = usize::try_from(headers).unwrap() + index * size_of::<object::elf::SectionHeader64<object::Endianness>>();
    let (offset, size) = (file.len() as u64, contents.len() as u64);
    file[header + 24..header + 32].copy_from_slice(&offset.to_le_bytes());
    file[header + 32..header + 40].copy_from_slice(&size.to_le_bytes());
    file.extend_from_slice(contents);
    file
}

#[test]
fn long_names_and_paths_are_clipped_and_kept_once_for_all_addresses() {
    // Every offset leads into one long text.
    let long = |bytes| [b"/".repeat(bytes), vec![0]].concat();
    let file = with_section(bytes("hash-dwarf5"), ".debug_str", &long(100_000));
    let file = with_section(file, ".debug_line_str", &long(8_000));
    let found = resolve(Shelf::default().with_bytes("/opt/hash", &file), "/opt/hash", &[], &[0x40_0110, ROTATE]);
    let [outer, inner] = [found.frames[0].last().unwrap(), found.frames[1].last().unwrap()];
    assert_eq!((outer.function.len(), outer.file.len()), (16 * 1024, 4096));
    assert_eq!(outer.function.as_ptr(), inner.function.as_ptr());
    assert_eq!(outer.file.as_ptr(), inner.file.as_ptr());
}

#[test]
fn a_long_name_of_a_file_is_clipped_where_it_stands_for_a_function() {
    let found = resolve(Shelf::default(), &format!("/opt/{}", "a".repeat(60_000)), &[], &[0x12ab]);
    assert_eq!(found.frames[0][0].function.len(), 255 + "+0x12ab".len());
}

#[test]
fn the_name_of_a_symbol_is_kept_once_for_all_addresses() {
    let found = resolve(Shelf::default().with("/opt/hash", "hash-symbols"), "/opt/hash", &[], &[0x40_0110, ROTATE]);
    assert_eq!(found.frames[0][0].function.as_ptr(), found.frames[1][0].function.as_ptr());
}

#[test]
fn a_file_of_holes_is_read_as_far_as_it_takes_room_on_a_disk() {
    let path = std::env::temp_dir().join(format!("longpole-holes-{}", std::process::id()));
    // Its debug information is a hole of 8 GiB behind the end.
    let mut bytes = bytes("hash-dwarf5");
    let (index, headers) = {
        let parsed = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
        (parsed.section_by_name(".debug_info").unwrap().index().0, parsed.elf_header().e_shoff.get(parsed.endian()))
    };
    let header = usize::try_from(headers).unwrap() + index * 64;
    bytes[header + 32..header + 40].copy_from_slice(&(8u64 << 30).to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(16 << 30).unwrap();
    let start = std::time::Instant::now();
    let found = resolve(HostFiles, path.to_str().unwrap(), &[], &[ROTATE]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!((text(&found.frames[0])[0].as_str(), found.trouble), ("hash_block", Some(Reason::MalformedDwarf)));
    assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
}
