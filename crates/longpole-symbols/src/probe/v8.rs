//! The constants of V8 in a binary: where its objects keep what, as integers that are exported for debuggers (`v8dbg_…`).

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use object::read::{Object as _, ObjectSection as _, ReadCache};

use crate::javascript::HeapLayout;

/// What each of their names begins with.
const PREFIX: &[u8] = b"v8dbg_";

/// Fewest symbols of the size of an integer in a binary with V8: it has 460 of its own.
const CONSTANTS_MIN: usize = 200;

/// Most constants: V8 has 530.
const CONSTANTS_MAX: usize = 4096;

/// Largest tables of symbols and of names that are read: those of Node have 2 and 5 MB.
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// Bytes of an entry of a table of symbols, and of a constant.
const SYMBOL_BYTES: usize = 24;
const CONSTANT_BYTES: u64 = 4;

/// Longest name of a constant.
const NAME_BYTES_MAX: usize = 256;

/// The kind of symbol that stands for data.
const KIND_OBJECT: u8 = 1;

/// Finds the layout of V8's objects in a binary that has V8.
///
/// Other binaries have few symbols of integers, so their names are not even read.
pub(crate) fn layout<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<HeapLayout> {
    let table = |name: &str| {
        let section = file.section_by_name(name).filter(|section| section.size() <= TABLE_BYTES_MAX)?;
        section.data().ok()
    };
    let symbols = table(".dynsym")?;
    let integers = || symbols.as_chunks::<SYMBOL_BYTES>().0.iter().filter_map(integer);
    if integers().take(CONSTANTS_MIN).count() < CONSTANTS_MIN {
        return None;
    }
    let names = table(".dynstr")?;
    let mut addresses = BTreeMap::new();
    for (name, address) in integers() {
        let Some(name) = names.get(name..).and_then(|rest| rest.strip_prefix(PREFIX)) else { continue };
        let end = name.iter().take(NAME_BYTES_MAX).position(|byte| *byte == 0);
        if let Some(name) = end.and_then(|end| std::str::from_utf8(&name[..end]).ok())
            && addresses.len() < CONSTANTS_MAX
        {
            addresses.insert(name, address);
        }
    }
    // The first constant whose name begins so: the type of a field is part of its name, and each version spells it in its own way.
    let constant = |prefix: &str| {
        let (name, address) = addresses.range(prefix..).next()?;
        name.starts_with(prefix).then(|| value(file, *address))?
    };
    HeapLayout::of(constant)
}

/// Where the name of a symbol lies, and what it stands for, if that is an integer of this binary.
fn integer(symbol: &[u8; SYMBOL_BYTES]) -> Option<(usize, u64)> {
    let [n0, n1, n2, n3, info, _, s0, s1, value @ .., _, _, _, _, _, _, _, _] = *symbol;
    let bytes = u64::from_le_bytes(*symbol.last_chunk()?);
    let is_one = info & 15 == KIND_OBJECT && [s0, s1] != [0, 0] && bytes == CONSTANT_BYTES;
    is_one.then(|| (u32::from_le_bytes([n0, n1, n2, n3]) as usize, u64::from_le_bytes(value)))
}

/// The constant at an address. Those that are 0 have no place in the file.
fn value<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>, address: u64) -> Option<i32> {
    let section =
        file.sections().find(|section| (section.address()..section.address().saturating_add(section.size())).contains(&address))?;
    if section.kind() == object::SectionKind::UninitializedData {
        return Some(0);
    }
    let value = section.data_range(address, CONSTANT_BYTES).ok()??;
    Some(i32::from_le_bytes(*value.first_chunk()?))
}
