//! What Go writes into the binaries that it builds: its version, the path of the main module, and a table of symbols.
//!
//! ```text
//! .go.buildinfo   ff " Go buildinf:" | 8 | 2 |··| length "go1.26.8" | length "…path\tmain\nmod\texample.org/shop\t…"
//!                 0                   14  15      32
//! ```

use std::io::{Read, Seek};

use object::read::{Object as _, ObjectSection as _, ReadCache};

use super::go_types;
use crate::go::{GoProgram, GoSymbols, Packages, Part, Version, Whose};

/// How the section begins.
const MAGIC: &[u8] = b"\xff Go buildinf:";

/// The flag of a section that holds the texts themselves: Go 1.18 and later.
const HOLDS_TEXTS: u8 = 2;

/// Where the flags and the texts are.
const FLAGS_AT: usize = 15;
const TEXTS_AT: usize = 32;

/// Most bytes of the section: it lists all modules, about 100 bytes each.
const BUILD_INFO_BYTES_MAX: u64 = 1 << 20;

/// Most bytes of the table of symbols and of their names: those of Kubernetes have 2 and 8 MB.
const SYMBOLS_BYTES_MAX: u64 = 16 << 20;
const NAMES_BYTES_MAX: u64 = 48 << 20;

/// Most bytes of debug information that are unpacked for a version of Go that is not known.
const TYPES_BYTES_MAX: u64 = 64 << 20;

/// Bytes of an `Elf64_Sym`, and the kind of a function.
const SYMBOL_BYTES: usize = 24;
const FUNCTION: u8 = 2;

/// Most bytes of the name of a function that decide whose it is.
const NAME_BYTES_MAX: usize = 512;

/// Reads a binary that Go built; `None` for others, and for those of versions before 1.18.
pub(crate) fn go_program<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<GoProgram> {
    let section = file.section_by_name(".go.buildinfo").filter(|section| section.size() <= BUILD_INFO_BYTES_MAX)?;
    let (version, module) = build_info(section.data().ok()?)?;
    let data = |name: &str, most: u64| file.section_by_name(name).filter(|section| section.size() <= most)?.data().ok();
    let tables = data(".symtab", SYMBOLS_BYTES_MAX).zip(data(".strtab", NAMES_BYTES_MAX));
    let unpacked = |name: &str, most: u64| {
        let packed = file.section_by_name(name)?.compressed_data().ok()?;
        let is_small = packed.uncompressed_size <= most && packed.data.len() as u64 <= most;
        is_small.then(|| packed.decompress().ok()).flatten()
    };
    let by_types = || go_types::layout(&unpacked(".debug_info", TYPES_BYTES_MAX)?, &unpacked(".debug_abbrev", TYPES_BYTES_MAX)?);
    let layout = version.layout().or_else(by_types);
    Some(GoProgram { version, layout, symbols: tables.and_then(|(symbols, names)| go_symbols(symbols, names, module.as_deref())) })
}

/// The version, and the path of the main module.
fn build_info(section: &[u8]) -> Option<(Version, Option<String>)> {
    if !section.starts_with(MAGIC) || section.get(FLAGS_AT)? & HOLDS_TEXTS == 0 {
        return None;
    }
    let mut rest = section.get(TEXTS_AT..)?;
    let version = Version::from_text(text(&mut rest)?);
    let modules = text(&mut rest).unwrap_or_default();
    let path = modules.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"mod\t")?.split(|byte| *byte == b'\t').next());
    Some((version, path.map(|path| String::from_utf8_lossy(path).into_owned())))
}

/// A text after its length, in groups of 7 bits, the lowest first.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0usize;
    for shift in [0, 7, 14, 21] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let (text, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            return Some(text);
        }
    }
    None
}

fn go_symbols(symbols: &[u8], names: &[u8], module: Option<&str>) -> Option<GoSymbols> {
    let mut found = GoSymbols { count: 0, list: 0, reasons: (0, 0), poll: 0..0, packages: Packages::default() };
    let mut parts: Vec<Part> = Vec::new();
    for symbol in symbols.as_chunks::<SYMBOL_BYTES>().0 {
        let word = |at: usize| symbol.get(at..).and_then(|bytes| bytes.first_chunk().copied()).map(u64::from_le_bytes).unwrap_or(0);
        let (name_at, address, bytes) = (u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]), word(8), word(16));
        let Some(name) = names.get(usize::try_from(name_at).unwrap_or(usize::MAX)..) else { continue };
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
        match name {
            b"runtime.allglen" => found.count = address,
            b"runtime.allgptr" => found.list = address,
            b"runtime.waitReasonStrings" => found.reasons = (address, bytes),
            b"runtime.netpoll" => found.poll = address..address.saturating_add(bytes),
            _ => {}
        }
        if symbol[4] & 0xf == FUNCTION && address != 0 {
            let whose = std::str::from_utf8(name).map_or(Whose::Plain, |name| Whose::of(name, module));
            parts.push((address, whose));
        }
    }
    found.packages = Packages::new(parts);
    (found.count != 0 && found.list != 0 && found.reasons.1 > 0 && !found.poll.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(texts: &[&str]) -> Vec<u8> {
        let mut section = MAGIC.to_vec();
        section.extend([8, HOLDS_TEXTS]);
        section.resize(TEXTS_AT, 0);
        for text in texts {
            assert!(text.len() < 1 << 14);
            section.extend([text.len() as u8 & 0x7f | 0x80, (text.len() >> 7) as u8]);
            section.extend(text.bytes());
        }
        section
    }

    #[test]
    fn a_binary_says_its_version_and_main_module() {
        let modules = "0w\u{1}path\texample.org/shop/cmd\nmod\texample.org/shop\tv1.2.3\th1:x=\ndep\tgithub.com/lib/pq\tv1\n";
        let of = |texts: &[&str]| build_info(&section(texts));
        let version = |minor| Version { minor };
        assert_eq!(of(&["go1.26.8", modules]), Some((version(26), Some("example.org/shop".to_owned()))));
        assert_eq!(of(&["go1.19", "path\tcommand-line-arguments\n"]), Some((version(19), None)));
        assert_eq!(of(&["go1.19"]), Some((version(19), None)));
        let whole = section(&["go1.26.8", modules]);
        for end in 0..whole.len() {
            build_info(&whole[..end]);
        }
        assert_eq!(build_info(&[&whole[..15], &[0], &whole[16..]].concat()), None, "Go 1.17 has pointers there");
    }

    /// A table of symbols, and their names: name, kind, address and bytes.
    fn table(symbols: &[(&str, u8, u64, u64)]) -> (Vec<u8>, Vec<u8>) {
        let (mut table, mut names) = (Vec::new(), vec![0]);
        for (name, kind, address, bytes) in symbols {
            table.extend((names.len() as u32).to_le_bytes());
            table.extend([*kind, 0, 1, 0]);
            table.extend([address.to_le_bytes(), bytes.to_le_bytes()].concat());
            names.extend([name.as_bytes(), b"\0"].concat());
        }
        (table, names)
    }

    #[test]
    fn the_symbols_of_the_runtime_are_found_and_functions_have_owners() {
        let symbols = [
            ("runtime.netpoll", 2, 100, 50),
            ("main.callBank", 2, 200, 10),
            ("runtime.allglen", 1, 900, 8),
            ("runtime.allgptr", 1, 908, 8),
            ("runtime.waitReasonStrings", 1, 1000, 32),
        ];
        let (table_bytes, names) = table(&symbols);
        let found = go_symbols(&table_bytes, &names, None).unwrap();
        assert_eq!((found.count, found.list, found.reasons, found.poll.clone()), (900, 908, (1000, 32), 100..150));
        assert_eq!([found.packages.at(150), found.packages.at(205)], [Whose::Plain, Whose::Program]);
        for missing in 2..symbols.len() {
            let mut some = symbols.to_vec();
            some.remove(missing);
            let (table_bytes, names) = table(&some);
            assert_eq!(go_symbols(&table_bytes, &names, None), None, "{}", symbols[missing].0);
        }
        assert_eq!(go_symbols(&[0xff; 240], b"", None), None);
    }
}
