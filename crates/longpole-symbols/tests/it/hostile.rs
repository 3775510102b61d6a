//! Files made to hurt.

use proptest::prelude::*;

use crate::binaries::{bytes, section_range};
use crate::oracle;

const FIXTURES: [&str; 8] =
    ["hash-dwarf2", "hash-dwarf4", "hash-dwarf5", "hash-zlib", "hash-zlib-gnu", "hash-zstd", "hash-linked", "hash-alt"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_damaged_binary_hurts_nobody(
        fixture in prop::sample::select(&FIXTURES[..]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..12),
    ) {
        let mut file = bytes(fixture);
        for (at, byte, kind) in damage {
            let at = at.index(file.len());
            match kind {
                0 => file[at] = byte,
                1 => file[at] ^= 1 << (byte % 8),
                2 => file[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][usize::from(byte % 6)],
                _ => {
                    // A field of eight bytes becomes huge.
                    for byte in file.iter_mut().skip(at & !7).take(8) {
                        *byte = 0xff;
                    }
                }
            }
        }
        oracle::elf_dwarf(&file);
    }

    #[test]
    fn damage_to_the_debug_information_alone_hurts_nobody(
        fixture in prop::sample::select(&FIXTURES[..3]),
        section in prop::sample::select(&[".debug_info", ".debug_abbrev", ".debug_line", ".debug_aranges", ".debug_str"][..]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = bytes(fixture);
        let (offset, size) = section_range(&file, section);
        for (at, byte) in damage {
            file[offset + at.index(size)] = byte;
        }
        oracle::elf_dwarf(&file);
    }

    #[test]
    fn a_binary_that_breaks_off_hurts_nobody(fixture in prop::sample::select(&FIXTURES[..]), end in any::<prop::sample::Index>()) {
        let file = bytes(fixture);
        oracle::elf_dwarf(&file[..end.index(file.len())]);
    }
}
