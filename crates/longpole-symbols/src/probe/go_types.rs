//! Where the fields of `runtime.g` lie, from the DWARF of the program itself: for versions of Go whose layout is not known.
//!
//! ```text
//! DW_TAG_compile_unit "runtime"
//!   DW_TAG_structure_type "runtime.gobuf"
//!     DW_TAG_member "sp"  DW_AT_data_member_location 0
//!   DW_TAG_structure_type "runtime.g"
//!     DW_TAG_member "sched"  DW_AT_data_member_location 56
//! ```

use std::collections::HashMap;

use gimli::{AttributeValue, DebugAbbrev, DebugInfo, DebuggingInformationEntry, EndianSlice, LittleEndian};

use crate::go::GoroutineLayout;

/// Most units: Go has one for each package, and a large program some thousands.
const UNITS_MAX: usize = 1 << 14;

/// Most bytes of the table of abbreviations, which is read for each unit: that of Go has 500.
const ABBREVIATIONS_BYTES_MAX: usize = 4 << 10;

type Entry<'d> = DebuggingInformationEntry<EndianSlice<'d, LittleEndian>>;

/// The layout that these sections describe.
pub(super) fn layout(info: &[u8], abbreviations: &[u8]) -> Option<GoroutineLayout> {
    if abbreviations.len() > ABBREVIATIONS_BYTES_MAX {
        return None;
    }
    let abbreviations = DebugAbbrev::new(abbreviations, LittleEndian);
    let mut units = DebugInfo::new(info, LittleEndian).units();
    for _ in 0..UNITS_MAX {
        let unit = units.next().ok()??;
        let abbreviations = unit.abbreviations(&abbreviations).ok()?;
        let mut entries = unit.entries(&abbreviations);
        if name(entries.next_dfs().ok()??) != Some(b"runtime") {
            continue;
        }
        let (mut of_g, mut of_gobuf) = (HashMap::new(), HashMap::new());
        let mut within = None;
        while let Some(entry) = entries.next_dfs().ok()? {
            match (entry.tag(), name(entry)) {
                (gimli::DW_TAG_structure_type, Some(b"runtime.g")) => within = Some(&mut of_g),
                (gimli::DW_TAG_structure_type, Some(b"runtime.gobuf")) => within = Some(&mut of_gobuf),
                (gimli::DW_TAG_member, Some(field)) => {
                    let at = entry.attr(gimli::DW_AT_data_member_location).and_then(gimli::Attribute::udata_value);
                    if let (Some(fields), Some(at)) = (&mut within, at) {
                        fields.insert(field, at);
                    }
                }
                _ => within = None,
            }
        }
        // The part of the runtime that is written in assembler is a unit of the same name.
        if of_g.is_empty() {
            continue;
        }
        let field = |name: &str| of_g.get(name.as_bytes()).copied();
        let saved = |name: &str| field("sched")?.checked_add(*of_gobuf.get(name.as_bytes())?);
        return GoroutineLayout::new([
            field("stack")?,
            saved("sp")?,
            saved("pc")?,
            saved("bp")?,
            field("atomicstatus")?,
            field("goid")?,
            field("waitreason")?,
        ]);
    }
    None
}

fn name<'d>(entry: &Entry<'d>) -> Option<&'d [u8]> {
    match entry.attr(gimli::DW_AT_name)?.value() {
        AttributeValue::String(name) => Some(name.slice()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::go::Version;

    /// `.debug_abbrev`: a unit, a structure and a member, each with a name, and a member with its place.
    const ABBREVIATIONS: [u8; 25] = [
        1, 0x11, 1, 0x03, 0x08, 0, 0, // compile_unit, has children: name, string
        2, 0x13, 1, 0x03, 0x08, 0, 0, // structure_type: the same
        3, 0x0d, 0, 0x03, 0x08, 0x38, 0x0f, 0, 0, // member: name, data_member_location by udata
        0, 0,
    ];

    fn unit(name: &str, structures: &[(&str, &[(&str, u8)])]) -> Vec<u8> {
        let mut entries = [&[1], name.as_bytes(), &[0]].concat();
        for (structure, fields) in structures {
            entries.extend([&[2], structure.as_bytes(), &[0]].concat());
            for (field, at) in *fields {
                entries.extend([&[3], field.as_bytes(), &[0, *at]].concat());
            }
            entries.push(0);
        }
        entries.push(0);
        // DWARF 4: version, offset of the abbreviations, bytes of an address.
        let body = [&[4, 0, 0, 0, 0, 0, 8], entries.as_slice()].concat();
        [(body.len() as u32).to_le_bytes().as_slice(), &body].concat()
    }

    #[test]
    fn the_fields_are_those_of_the_runtime() {
        let gobuf: &[_] = &[("sp", 0), ("pc", 8), ("bp", 40)];
        let g: &[_] = &[("stack", 0), ("sched", 56), ("atomicstatus", 100), ("goid", 104), ("waitreason", 112)];
        let other = unit("main", &[("runtime.g", &[("goid", 1)])]);
        let runtime = unit("runtime", &[("runtime.gobuf", gobuf), ("runtime.m", &[("goid", 7)]), ("runtime.g", g)]);
        let info = [other, unit("runtime", &[]), runtime].concat();
        let expected = GoroutineLayout::new([0, 56, 64, 96, 100, 104, 112]);
        assert!(expected.is_some());
        assert_eq!(layout(&info, &ABBREVIATIONS), expected);
        for end in 0..info.len() {
            assert_eq!(layout(&info[..end], &ABBREVIATIONS), None);
        }
        let incomplete = unit("runtime", &[("runtime.gobuf", gobuf), ("runtime.g", &g[..4])]);
        assert_eq!(layout(&incomplete, &ABBREVIATIONS), None);
        assert_eq!(layout(&info, &[0; ABBREVIATIONS_BYTES_MAX + 1]), None);
        assert_eq!(GoroutineLayout::new([0, 56, 64, 96, 100, 104, u64::MAX]), None);
        assert_eq!(Version { minor: 26 }.layout().map(|layout| layout != expected.unwrap()), Some(true));
    }
}
