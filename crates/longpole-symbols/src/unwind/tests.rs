use std::fs;
use std::io::Cursor;
use std::sync::Arc;

use longpole_model::{AbsAddr, CodeAddress, MappingId, VirtOffset};

use super::frame::FRAMES_MAX;
use super::*;
use crate::eh_frame::LongEntries;

fn own_program() -> Vec<u8> {
    fs::read(std::env::current_exe().unwrap()).unwrap()
}

#[test]
fn a_binary_states_its_addresses_wherever_it_is_mapped() {
    let binary = Arc::new(Binary::read(Cursor::new(own_program())).unwrap());
    assert!(binary.eh_frame.is_some() && binary.eh_frame_hdr.is_some());
    let code = binary.segments.iter().find(|s| s.executable).unwrap().clone();
    let page_start = code.file.start & !0xfff;
    let mut space = AddressSpace::new();
    let start = 0x7f00_0000_0000;
    let code_of = |mapping| Code::Mapped { mapping, binary: Some(Arc::clone(&binary)) };
    space.map(AbsAddr(start)..AbsAddr(start + 0x10_0000), page_start, code_of(MappingId(3)));
    let into_segment = code.file.start - page_start + 0x40;
    let place = space.locate(AbsAddr(start + into_segment));
    assert_eq!(place, Place::Code { mapping: MappingId(3), address: VirtOffset(code.address + 0x40) });
    assert_eq!(space.locate(AbsAddr(start - 1)), Place::Unknown);
    assert_eq!(space.locate(AbsAddr(start + 0x10_0000)), Place::Unknown);
}

/// Frames that are linked by frame pointers, in code without unwind information; the words of the stack from `SP` up.
fn walk_words(words: &[u64], asked_bytes: u32) -> (Vec<u64>, StackEnd) {
    let mut space = AddressSpace::new();
    space.map(AbsAddr(0x40_0000)..AbsAddr(0x50_0000), 0, Code::Anonymous);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let registers = Registers { ip: 0x40_1000, sp: SP, fp: SP + 16, ..Registers::default() };
    let mut frames = Vec::new();
    let end = StackWalker::new().walk(&space, &registers, &bytes, asked_bytes, &mut frames);
    let addresses = frames.iter().map(|f| match f.address {
        CodeAddress::Instruction(at) | CodeAddress::Return(at) => at.0,
    });
    (addresses.collect(), end)
}

const SP: u64 = 0x7ffc_0000_0000;

#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_of_functions_with_long_unwind_information_ends_at_its_steps() {
    let walk = |steps: u64| {
        let mut binary = Binary::read(Cursor::new(own_program())).unwrap();
        let text = binary.segments.iter().find(|segment| segment.executable).unwrap().clone();
        // By frame pointers.
        (binary.eh_frame, binary.eh_frame_hdr) = (None, None);
        binary.long_entries = LongEntries::merged(vec![(0..u64::MAX, steps)]);
        let code = Code::Mapped { mapping: MappingId(0), binary: Some(Arc::new(binary)) };
        let mut space = AddressSpace::new();
        let start = 0x7f00_0000_0000;
        space.map(AbsAddr(start)..AbsAddr(start + 0x10_0000), text.file.start & !0xfff, code);
        let ip = start + 0x8_0000;
        let words = (1..=1_000).flat_map(|frame| [SP + frame * 16, ip]);
        let stack: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let mut frames = Vec::new();
        let end = StackWalker::new().walk(&space, &Registers { ip, sp: SP, fp: SP, ..Registers::default() }, &stack, 1 << 20, &mut frames);
        (frames.len(), end)
    };
    assert_eq!(walk(1 << 12), (1_001, StackEnd::NotResident));
    assert_eq!(walk(1 << 16), (129, StackEnd::TooSlow));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_walk_reports_how_it_ended() {
    // A local, another, then saved frame pointer and return address, and so on.
    let linked = |last_fp, last_return| [1, 2, SP + 48, 0x40_2000, 3, 4, last_fp, last_return, 5];
    let walk = |words: &[u64], asked| walk_words(words, asked);
    assert_eq!(walk(&linked(0, 0x40_3000), 72), (vec![0x40_1000, 0x40_2000, 0x40_3000], StackEnd::Root));
    assert_eq!(walk(&linked(SP + 96, 0x40_3000), 72).1, StackEnd::Deeper { copied_bytes: 72 });
    assert_eq!(walk(&linked(SP + 96, 0x40_3000), 16 << 10).1, StackEnd::NotResident);
    assert_eq!(walk(&linked(0x1234_5678, 0x40_3000), 72).1, StackEnd::Astray);
    assert_eq!(walk(&linked(0x7ff0_0000_0000_0000, 0x40_3000), 72).1, StackEnd::Astray);
    assert_eq!(walk(&linked(0, 0x99_0000), 72), (vec![0x40_1000, 0x40_2000], StackEnd::NotCode));
    assert_eq!(walk(&[], 72).1, StackEnd::NotResident);
    for end in
        [StackEnd::Deeper { copied_bytes: 16 << 10 }, StackEnd::NotResident, StackEnd::Astray, StackEnd::NotCode, StackEnd::OtherStack]
    {
        assert!(end.to_string().starts_with(char::is_lowercase), "{end}");
    }
    assert_eq!(StackEnd::Deeper { copied_bytes: 16 << 10 }.to_string(), "the stack is deeper than the 16 KiB that longpole copies");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_trampoline_without_a_frame_pointer_is_seen_through() {
    let mut space = AddressSpace::new();
    space.map(AbsAddr(0x40_0000)..AbsAddr(0x41_0000), 0, Code::Anonymous);
    space.map(AbsAddr(0x41_0000)..AbsAddr(0x50_0000), 0, Code::Mapped { mapping: MappingId(0), binary: None });
    // Locals, saved frame pointer and return address into the trampoline; its word; the return address into its caller; and there
    // locals, frame pointer and return address again.
    let walk = |saved_fp: u64| {
        let words = [1, 2, saved_fp, 0x40_2000, 7, 0x41_3000, 3, 4, 0, 0x41_4000];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let registers = Registers { ip: 0x42_0000, sp: SP, fp: SP + 16, ..Registers::default() };
        let mut frames = Vec::new();
        let end = StackWalker::new().walk(&space, &registers, &bytes, 80, &mut frames);
        let places: Vec<u64> = frames.iter().map(|frame| frame.address.for_lookup().0).collect();
        (places, frames.last().unwrap().sp - SP, end)
    };
    // What is in the frame pointer is somebody's number, or nothing.
    for number in [0x1234, 0] {
        let (places, sp, _) = walk(number);
        assert_eq!((&places[..3], sp), (&[0x42_0000, 0x40_1fff, 0x41_2fff][..], 48), "{number:x}");
    }
}

/// A hash of OpenSSL: it has aligned its stack, and keeps where that was in a word that no copy holds.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_word_below_the_stack_pointer_is_found_above_it() {
    use crate::made_up::{BASE, elf};

    let entry = |start: u64, instructions: &[u8], cie_back: u32| {
        let mut entry = [&cie_back.to_le_bytes()[..], &start.to_le_bytes(), &0x100u64.to_le_bytes(), &[0], instructions].concat();
        entry.resize(entry.len().next_multiple_of(8) + 4, 0);
        [&(entry.len() as u32).to_le_bytes()[..], &entry].concat()
    };
    let (hash, caller) = (BASE + 0x1000, BASE + 0x1100);
    // Counts from rsp, which was 8 bytes less; the return address is there.
    let cie = [&20u32.to_le_bytes()[..], &[0; 4], b"\x01zR\0\x01\x78\x10\x01\x00\x0c\x07\x08\x90\x01\0\0"].concat();
    let of = |word_at: u8| {
        // The word's value and 8; rbp is 24 below.
        let from_word = [0x0f, 5, 0x77, word_at, 0x06, 0x23, 8, 0x86, 3];
        let first = entry(hash, &from_word, cie.len() as u32 + 4);
        let second = entry(caller, &[], (cie.len() + first.len()) as u32 + 4);
        let eh_frame = [&cie[..], &first, &second, &[0; 4]].concat();
        let file = elf(&[(".text", 1, 0x1000, &[0x90; 0x200]), (".eh_frame", 1, 0x2000, &eh_frame)]);
        let binary = Binary::read(Cursor::new(file)).unwrap();
        let mut space = AddressSpace::new();
        space.map(AbsAddr(hash)..AbsAddr(hash + 0x1000), 0x1000, Code::Mapped { mapping: MappingId(0), binary: Some(Arc::new(binary)) });
        let mut words = [0u64; 32];
        // Looks like the word, but there is no caller where it leads.
        (words[4], words[12], words[13]) = (SP + 12 * 8, caller + 8, 0x99);
        // The word, the frame pointer of the caller, and its address. It is the root.
        (words[7], words[14], words[16], words[17]) = (SP + 16 * 8, 0x1234, caller + 16, 0);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let registers = Registers { ip: hash + 0x40, sp: SP, fp: 7, ..Registers::default() };
        let mut frames = Vec::new();
        let end = StackWalker::new().walk(&space, &registers, &bytes, 256, &mut frames);
        (frames.iter().map(|frame| (frame.address.for_lookup().0 - hash, frame.sp - SP, frame.fp)).collect::<Vec<_>>(), end)
    };
    let right = (vec![(0x40, 0, 7), (0x10f, 17 * 8, 0x1234)], StackEnd::Root);
    // 8 below the stack pointer; 56 above it, where it is in the copy; and where the other word is.
    assert_eq!(of(0x78), right);
    assert_eq!(of(0x38), right);
    assert_eq!(of(0x20), (vec![(0x40, 0, 7)], StackEnd::Astray));
}

#[test]
fn what_is_no_binary_says_so() {
    let error = |bytes: &[u8]| Binary::read(Cursor::new(bytes.to_vec())).unwrap_err().to_string();
    assert!(error(b"").starts_with("not a readable ELF file"), "{}", error(b""));
    assert!(error(b"#!/bin/sh\n").starts_with("not a readable ELF file"));
    let mut other = own_program();
    // The machine: RISC-V.
    other[18] = 243;
    assert!(error(&other).starts_with("the code is for another machine (riscv"), "{}", error(&other));
}

#[test]
fn damaged_binaries_are_survived_also_when_unwound_through() {
    // The program without its debug information is small enough to be damaged many times.
    let whole = own_program();
    let headers = whole.len() - 64 * 64;
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut bytes = whole.clone();
    let binary = Binary::read(Cursor::new(whole.clone())).unwrap();
    let eh_frame = binary.eh_frame.as_ref().unwrap().addresses.clone();
    let stack: Vec<u8> = (0..512u64).flat_map(|i| (0x40_0000 + (i * 0x1337) % 0x10_0000).to_le_bytes()).collect();
    let mut walker = StackWalker::new();
    let mut frames = Vec::new();
    for _ in 0..60 {
        let mut undo = Vec::new();
        for _ in 0..8 {
            // File header, program headers, section headers, unwind information.
            let at = match random() % 3 {
                0 => random() as usize % 1024,
                1 => headers + random() as usize % (whole.len() - headers),
                _ => (eh_frame.start + random() % (eh_frame.end - eh_frame.start)) as usize % whole.len(),
            };
            undo.push((at, whole[at]));
            bytes[at] = random() as u8;
        }
        if let Ok(binary) = Binary::read(Cursor::new(&bytes)) {
            let mut space = AddressSpace::new();
            let code = Code::Mapped { mapping: MappingId(0), binary: Some(Arc::new(binary)) };
            space.map(AbsAddr(0x40_0000)..AbsAddr(0x50_0000), random() % 0x10_0000, code);
            for _ in 0..20 {
                let (ip, fp, bx) = (0x40_0000 + random() % 0x10_0000, SP + random() % 5000, SP + random() % 5000);
                let registers = Registers { ip, sp: SP, fp, lr: 0x40_0010, bx };
                walker.walk(&space, &registers, &stack, 4096, &mut frames);
                assert!(frames.len() <= FRAMES_MAX);
            }
        }
        for (at, byte) in undo {
            bytes[at] = byte;
        }
    }
}

#[test]
fn a_binary_without_an_index_gets_one_that_all_its_places_share() {
    let mut whole = own_program();
    let with_index = Binary::read(Cursor::new(&whole)).unwrap();
    // The names of sections are at the end of the file.
    let name = whole.windows(14).rposition(|name| name == b".eh_frame_hdr\0").unwrap();
    whole[name + 1] = b'x';
    let binary = Binary::read(Cursor::new(&whole)).unwrap();
    let index = binary.eh_frame_hdr.as_ref().unwrap();
    assert_eq!(index.bytes.len(), with_index.eh_frame_hdr.as_ref().unwrap().bytes.len());
    assert_ne!(index.addresses, with_index.eh_frame_hdr.as_ref().unwrap().addresses);
    let code = binary.segments.iter().find(|s| s.executable).unwrap().address;
    for address in (code..code + 0x10_0000).step_by(0x1000) {
        assert_eq!(binary.function_start(address), with_index.function_start(address));
    }
    let bytes = Arc::clone(&index.bytes);
    let binary = Arc::new(binary);
    let held = Arc::strong_count(&bytes);
    let mut space = AddressSpace::new();
    for place in 0..100 {
        let start = 0x7f00_0000_0000 + place * 0x100_0000;
        let code = Code::Mapped { mapping: MappingId(0), binary: Some(Arc::clone(&binary)) };
        space.map(AbsAddr(start)..AbsAddr(start + 0x10_0000), 0, code);
    }
    assert!(Arc::strong_count(&bytes) >= held + 100);
}

#[test]
fn a_sparse_file_is_not_read_beyond_a_limit() {
    /// A file of zeroes behind its headers.
    struct Sparse {
        start: Vec<u8>,
        at: u64,
        bytes_read: u64,
    }
    impl std::io::Read for Sparse {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            into.fill(0);
            let start = self.start.get(usize::try_from(self.at).unwrap()..).unwrap_or_default();
            let length = start.len().min(into.len());
            into[..length].copy_from_slice(&start[..length]);
            self.at += into.len() as u64;
            self.bytes_read += into.len() as u64;
            Ok(into.len())
        }
    }
    impl std::io::Seek for Sparse {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.at = match to {
                std::io::SeekFrom::Start(at) => at,
                _ => 1 << 40,
            };
            Ok(self.at)
        }
    }
    let mut start = own_program();
    let section = {
        use object::ObjectSection as _;
        let file = object::File::parse(&*start).unwrap();
        object::Object::section_by_name(&file, ".eh_frame").unwrap().index().0
    };
    let headers = u64::from_le_bytes(*start[40..].first_chunk().unwrap());
    let size = usize::try_from(headers).unwrap() + section * 64 + 32;
    start[size..size + 8].copy_from_slice(&(200u64 << 20).to_le_bytes());
    let mut file = Sparse { start, at: 0, bytes_read: 0 };
    let binary = Binary::read(&mut file).unwrap();
    assert!(binary.eh_frame.is_none());
    assert!(file.bytes_read < 64 << 20, "{}", file.bytes_read);
}

#[test]
fn a_build_id_that_no_linker_makes_is_none() {
    use crate::made_up::elf;

    let build_id = |bytes: usize| {
        let note = [&[4, 0, 0, 0][..], &(bytes as u32).to_le_bytes(), &[3, 0, 0, 0], b"GNU\0", &vec![7; bytes]].concat();
        Binary::read(Cursor::new(elf(&[(".note.gnu.build-id", 7, 0x1000, &note)]))).unwrap().build_id().to_vec()
    };
    assert_eq!([20, 64, 68].map(|bytes| build_id(bytes).len()), [20, 64, 0]);
}
