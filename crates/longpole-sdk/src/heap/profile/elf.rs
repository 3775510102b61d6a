//! The least of ELF that a profile needs: build id, segments, and the table of symbols. 64 bits, little-endian; other files have no names.
//!
//! ```text
//!  header ── program headers: file offset → address    note: build id
//!         └─ section headers: .symtab, .dynsym ── names in the section that `link` names
//!  symbol, 24 bytes: name u32, info u8, other u8, section u16, address u64, size u64
//! ```
//!
//! Tables of symbols can have a hundred MB: they are read in pieces, once for all addresses, and nothing of them stays in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

/// Headers of each kind that are read: no linker writes more without a table of its own for it.
const HEADERS_MAX: usize = 1 << 16;

/// Notes of a segment that are searched for the build id.
const NOTES_BYTES_MAX: usize = 64 << 10;

/// Symbols that are read at a time.
const SYMBOLS_READ: usize = 4_096;

/// Bytes of a name that are read: a longer one is cut.
const NAME_BYTES_MAX: usize = 4_096;

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const SYMBOLS: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
const BUILD_ID: u32 = 3;

/// Types of symbols that are functions: ordinary ones, and those that choose their code at the start.
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;

/// A file.
pub(super) struct Elf<'a> {
    file: &'a File,
    loads: Vec<Load>,
    pub(super) build_id: Vec<u8>,
    /// The larger table first: the other one has a part of its symbols.
    tables: Vec<Table>,
}

struct Load {
    offset: u64,
    address: u64,
    bytes: u64,
}

struct Table {
    kind: u32,
    offset: u64,
    symbols: u64,
    names_offset: u64,
    names_bytes: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read(file: &File, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; bytes];
    file.read_exact_at(&mut out, offset).ok()?;
    Some(out)
}

impl<'a> Elf<'a> {
    /// Reads the headers; `None` if it is no such file.
    pub(super) fn open(file: &'a File) -> Option<Self> {
        let header = read(file, 0, HEADER_BYTES)?;
        if header.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let headers = |offset_at, size_at, count_at, size| {
            let count = usize::from(u16_at(&header, count_at)?);
            let is_usual = usize::from(u16_at(&header, size_at)?) == size && count <= HEADERS_MAX;
            if is_usual { read(file, u64_at(&header, offset_at)?, count * size) } else { None }
        };
        let programs = headers(32, 54, 56, PROGRAM_HEADER_BYTES)?;
        let (mut loads, mut build_id) = (Vec::new(), Vec::new());
        for program in programs.chunks_exact(PROGRAM_HEADER_BYTES) {
            let load = Load { offset: u64_at(program, 8)?, address: u64_at(program, 16)?, bytes: u64_at(program, 32)? };
            match u32_at(program, 0)? {
                LOAD => loads.push(load),
                NOTE if build_id.is_empty() => {
                    let notes = read(file, load.offset, usize::try_from(load.bytes).ok()?.min(NOTES_BYTES_MAX));
                    build_id = notes.and_then(|notes| find_build_id(&notes)).unwrap_or_default();
                }
                _ => {}
            }
        }
        // A file without sections has its build id.
        let sections = headers(40, 58, 60, SECTION_HEADER_BYTES).unwrap_or_default();
        let mut tables: Vec<Table> = sections.chunks_exact(SECTION_HEADER_BYTES).filter_map(|section| table(section, &sections)).collect();
        tables.sort_by_key(|table| table.kind);
        Some(Elf { file, loads, build_id, tables })
    }

    /// The functions that hold these places in the file; places in order.
    pub(super) fn functions(&self, offsets: &[u64]) -> Vec<Option<String>> {
        let mut places: Vec<(u64, usize)> =
            offsets.iter().enumerate().filter_map(|(index, offset)| Some((self.address(*offset)?, index))).collect();
        places.sort_unstable();
        let mut found = vec![None; offsets.len()];
        for table in &self.tables {
            // A file that ends in the middle of a table has the symbols before.
            let _ = self.search(table, &places, &mut found);
        }
        found
    }

    fn address(&self, offset: u64) -> Option<u64> {
        let load = self.loads.iter().find(|load| offset.checked_sub(load.offset).is_some_and(|within| within < load.bytes))?;
        load.address.checked_add(offset - load.offset)
    }

    fn search(&self, table: &Table, places: &[(u64, usize)], found: &mut [Option<String>]) -> Option<()> {
        let mut read_so_far = 0;
        while read_so_far < table.symbols {
            let now = (table.symbols - read_so_far).min(SYMBOLS_READ as u64);
            let symbols = read(self.file, table.offset.checked_add(read_so_far * SYMBOL_BYTES as u64)?, now as usize * SYMBOL_BYTES)?;
            for symbol in symbols.chunks_exact(SYMBOL_BYTES) {
                let (name, kind) = (u32_at(symbol, 0)?, symbol[4] & 15);
                let (start, bytes) = (u64_at(symbol, 8)?, u64_at(symbol, 16)?);
                if !matches!(kind, FUNCTION | INDIRECT_FUNCTION) || bytes == 0 {
                    continue;
                }
                let from = places.partition_point(|(address, _)| *address < start);
                for (_, index) in places[from..].iter().take_while(|(address, _)| address - start < bytes) {
                    if found[*index].is_none() {
                        found[*index] = self.name(table, u64::from(name));
                    }
                }
            }
            read_so_far += now;
        }
        Some(())
    }

    fn name(&self, table: &Table, at: u64) -> Option<String> {
        let bytes = table.names_bytes.checked_sub(at)?.min(NAME_BYTES_MAX as u64);
        let name = read(self.file, table.names_offset.checked_add(at)?, bytes as usize)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(String::from_utf8_lossy(&name[..end]).into_owned()).filter(|name| !name.is_empty())
    }
}

fn table(section: &[u8], sections: &[u8]) -> Option<Table> {
    let kind = u32_at(section, 4).filter(|kind| matches!(*kind, SYMBOLS | DYNAMIC_SYMBOLS))?;
    let names = sections.chunks_exact(SECTION_HEADER_BYTES).nth(u32_at(section, 40)? as usize)?;
    Some(Table {
        kind,
        offset: u64_at(section, 24)?,
        symbols: u64_at(section, 32)? / SYMBOL_BYTES as u64,
        names_offset: u64_at(names, 24)?,
        names_bytes: u64_at(names, 32)?,
    })
}

/// Notes are a length of the name, a length of the content, a type, both texts, each filled up to four bytes.
fn find_build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (name_bytes, content_bytes, kind) = (u32_at(rest, 0)? as usize, u32_at(rest, 4)? as usize, u32_at(rest, 8)?);
        let content_at = 12 + name_bytes.checked_next_multiple_of(4)?;
        let content = rest.get(content_at..content_at.checked_add(content_bytes)?)?;
        if kind == BUILD_ID && rest.get(12..16) == Some(b"GNU\0") {
            return Some(content.to_vec());
        }
        rest = rest.get(content_at + content_bytes.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::mappings;
    use super::*;

    #[test]
    fn the_build_id_is_one_of_the_notes() {
        let note = |name: &[u8], kind: u8, content: &[u8]| {
            let mut note = vec![name.len() as u8, 0, 0, 0, content.len() as u8, 0, 0, 0, kind, 0, 0, 0];
            for part in [name, content] {
                note.extend_from_slice(part);
                note.resize(note.len().next_multiple_of(4), 0);
            }
            note
        };
        let notes = [note(b"Go\0", 4, b"abcde"), note(b"GNU\0", 3, &[1, 2, 3])].concat();
        assert_eq!(find_build_id(&notes), Some(vec![1, 2, 3]));
        for end in 0..notes.len() - 1 {
            assert_eq!(find_build_id(&notes[..end]), None, "{end}");
        }
        assert_eq!(find_build_id(&[0xff; 64]), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no maps")]
    fn functions_of_this_program_have_their_names() {
        let here = find_build_id as *const () as usize;
        let maps = mappings::read().unwrap();
        let mapping = maps.iter().find(|mapping| mapping.holds(here)).unwrap();
        let file = mapping.open().unwrap();
        let elf = Elf::open(&file).unwrap();
        let offset = (here - mapping.start) as u64 + mapping.offset;
        let names = elf.functions(&[offset, offset + 1, 0]);
        for name in &names[..2] {
            assert!(name.as_ref().unwrap().contains("find_build_id"), "{names:?}");
        }
        assert_eq!(names[2], None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn a_damaged_file_is_no_panic() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        let path = std::env::temp_dir().join(format!("longpole-elf-{}", std::process::id()));
        let head = whole.len().min(1 << 16);
        for seed in 0..500_usize {
            let mut bytes = whole[..head].to_vec();
            for step in 0..4 {
                let at = (seed * 7_919 + step * 104_729) % if step < 2 { HEADER_BYTES } else { 1_024 };
                bytes[at] = (seed * 31 + step) as u8;
            }
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            std::fs::write(&path, &bytes).unwrap();
            let file = File::open(&path).unwrap();
            if let Some(elf) = Elf::open(&file) {
                elf.functions(&[0x1000, 0x2000]);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
