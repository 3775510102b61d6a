//! What must hold for any file. The fuzz target and the tests call this same function; this file is compiled into both.

use std::io::{self, Cursor};
use std::path::Path;

use longpole_model::address::VirtOffset;
use longpole_model::stack::{Mapping, MappingId};
use longpole_symbols::{Files, ReadSeek, Symbolizer};

/// The same bytes at every path: the binary is its own debug file too.
struct Everywhere(Vec<u8>);

impl Files for Everywhere {
    fn open(&self, _path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

/// Every address gets a frame, and a frame without a name says why.
pub(crate) fn elf_dwarf(bytes: &[u8]) {
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
