//! Files and memory made to hurt.

use proptest::prelude::*;

use crate::binaries::{bytes, section_range};
use crate::{oracle, oracle_jitdump, oracle_perf_map, oracle_python};

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
    fn an_interpreter_whose_pointers_lead_anywhere_hurts_nobody(
        minor in 8..14u8,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u64>(), 0..4u8), 1..10),
    ) {
        let path = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/python_memory/python3.{}.seed"), minor);
        let mut memory = std::fs::read(path).unwrap();
        for (at, to, value, kind) in damage {
            // Behind the version; objects lie at multiples of 16 from 0x10000 on.
            let words = (memory.len() - 1) / 8;
            let at = 1 + at.index(words) * 8;
            let word = match kind {
                0 => 0x1_0000 + (to.index(words / 2) * 16) as u64,
                1 => [0, 1, 8, 0x7f, u64::MAX, 1 << 62, 0x1_0001][(value % 7) as usize],
                2 => value % 0x1_0000,
                _ => value,
            };
            memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        oracle_python::python_memory(&memory);
    }

    #[test]
    fn a_jitdump_that_is_damaged_hurts_nobody(
        seed in prop::sample::select(&["loads", "moved", "node20"][..]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..8),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let path = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/jitdump/{}.seed"), seed);
        let mut dump = std::fs::read(path).unwrap();
        for (at, byte, kind) in damage {
            let at = at.index(dump.len());
            match kind {
                0 => dump[at] = byte,
                1 => dump[at] = [0, 1, 2, 3, 4, 0x10, 0x7f, 0xff][usize::from(byte % 8)],
                _ => dump.iter_mut().skip(at & !7).take(8).for_each(|byte| *byte = 0xff),
            }
        }
        let end = end.map_or(dump.len(), |end| end.index(dump.len() + 1));
        oracle_jitdump::jitdump(&dump[..end]);
    }

    #[test]
    fn a_map_of_anything_hurts_nobody(lines in prop::collection::vec("[0-9a-fx]{0,17} [0-9a-f]{0,9} ?[A-Za-z:~*./ ()<>\\PC]{0,30}", 0..20), cut in any::<prop::sample::Index>()) {
        let text = lines.join("\n");
        oracle_perf_map::perf_map(text.as_bytes());
        oracle_perf_map::perf_map(&text.as_bytes()[..cut.index(text.len() + 1)]);
    }

    #[test]
    fn a_binary_that_breaks_off_hurts_nobody(fixture in prop::sample::select(&FIXTURES[..]), end in any::<prop::sample::Index>()) {
        let file = bytes(fixture);
        oracle::elf_dwarf(&file[..end.index(file.len())]);
    }
}
