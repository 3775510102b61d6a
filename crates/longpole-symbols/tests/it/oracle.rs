//! What must hold for any file. The fuzz target and the tests call this same function; this file is compiled into both.

use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;

use longpole_model::AbsAddr;
use longpole_model::address::VirtOffset;
use longpole_model::stack::{Mapping, MappingId};
use longpole_symbols::unwind::{AddressSpace, Binary, Code, Registers, StackWalker};
use longpole_symbols::{Files, ReadSeek, Symbolizer};

/// The same bytes at every path: the binary is its own debug file too.
struct Everywhere(Vec<u8>);

impl Files for Everywhere {
    fn open(&self, _path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

/// Where the binary lies, and where a stack.
const START: u64 = 0x40_0000;
const STACK: u64 = 0x7ffc_0000_0000;

/// Walks from anywhere in the binary, over words that point into it and at each other.
fn unwind(bytes: &[u8]) {
    let Ok(binary) = Binary::read(Cursor::new(bytes)) else { return };
    let mut space = AddressSpace::new();
    let code = Code::Mapped { mapping: MappingId(0), binary: Some(Arc::new(binary)) };
    space.map(AbsAddr(START)..AbsAddr(START + 0x10_0000), 0, code);
    let word = |i: u64| if i.is_multiple_of(3) { STACK + i * 8 + 64 } else { START + i * 0x133 % 0x4000 };
    let stack: Vec<u8> = (0..256).flat_map(|i| word(i).to_le_bytes()).collect();
    let mut walker = StackWalker::new();
    let mut frames = Vec::new();
    for ip in (0..0x2000).step_by(0x101).chain((0x100..0x120).step_by(3)) {
        let registers = Registers { ip: START + ip, sp: STACK, fp: STACK + 16, lr: START + 8, bx: STACK + ip % 512 };
        walker.walk(&space, &registers, &stack, 4096, &mut frames);
        assert!(!frames.is_empty());
        // For a thread that sleeps the walk reads code, too.
        let read = |address: u64, into: &mut [u8]| {
            let at = address.checked_sub(START).and_then(|at| usize::try_from(at).ok());
            let found = at.and_then(|at| bytes.get(at..at.checked_add(into.len())?));
            found.map(|found| into.copy_from_slice(found)).is_some()
        };
        walker.walk_asleep(&space, (registers.ip, registers.sp), &stack, &mut frames, read, None);
        assert!(!frames.is_empty());
    }
}

/// Every address gets a frame, and a frame without a name says why. A stack can be walked through it.
pub(crate) fn elf_dwarf(bytes: &[u8]) {
    unwind(bytes);
    let symbolizer = Symbolizer::new(Box::new(Everywhere(bytes.to_vec())));
    let mapping = Mapping { id: MappingId(0), path: "/src/hash".into(), build_id: Vec::new() };
    // The code of the fixtures, the start of the file, and the ends of the address space.
    let addresses = (0x40_0100..0x40_0200).step_by(3).chain((0..0x2000).step_by(0x41)).chain([u64::MAX - 1, u64::MAX]);
    let addresses: Vec<VirtOffset> = addresses.map(VirtOffset).collect();
    let resolved = symbolizer.resolve(&mapping, &addresses);
    assert_eq!(resolved.frames.len(), addresses.len());
    for frames in &resolved.frames {
        assert!(!frames.is_empty());
        for frame in frames {
            assert!(!frame.function.is_empty());
            assert!(frame.reason.is_none() || frame.function.starts_with("hash+0x"), "{frame:?}");
        }
    }
}
