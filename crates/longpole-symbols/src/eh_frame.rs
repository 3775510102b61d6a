//! The call frame information of a binary: its `.eh_frame` section, and a search through its entries.
//!
//! ```text
//! .eh_frame        CIE  FDE  FDE  FDE  CIE  FDE        an FDE describes a function, a CIE is what several of them share
//! .eh_frame_hdr         where each function begins, and its FDE, in order
//! ```
//!
//! Each frame of a stack parses one FDE and its CIE, and evaluates their expressions. So a section with long ones, or with an expression that may
//! run for ever, is refused once, before it is used: [`checked`], and [`is_good_debug_frame`] for `.debug_frame`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use gimli::UnwindSection as _;

pub(crate) type Bytes = Arc<[u8]>;

pub(crate) type EndianSlice<'b> = gimli::EndianSlice<'b, gimli::LittleEndian>;
pub(crate) type EhFrame<'b> = gimli::EhFrame<EndianSlice<'b>>;

/// A section that is kept: where it lies and what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) addresses: Range<u64>,
    pub(crate) bytes: Bytes,
}

/// Bytes of the entry of a function. The longest in 2,690 binaries of a Debian machine has 33,680, in a rustc; GCC's longest has 20,068, and
/// most binaries have none above 2 KiB.
const FDE_BYTES_MAX: usize = 64 << 10;

/// Bytes of an expression, which has no more operations. The longest in the same binaries has 14 bytes.
const EXPRESSION_BYTES_MAX: usize = 256;

/// Bytes of what entries share: instructions that hold at the beginning of each function, some tens of bytes.
const CIE_BYTES_MAX: usize = 1 << 10;

/// Letters of an augmentation: compilers use five at most (`zPLRS`).
const AUGMENTATION_BYTES_MAX: usize = 8;

/// Instructions that hold an expression: `DW_CFA_def_cfa_expression`, `DW_CFA_expression`, `DW_CFA_val_expression` (DWARF 5, 7.24).
const EXPRESSIONS: [u8; 3] = [0x0f, 0x10, 0x16];

/// Operations of an expression that branch: `DW_OP_bra`, `DW_OP_skip` (DWARF 5, 7.7.1).
const BRANCHES: [u8; 2] = [0x28, 0x2f];

/// Whose instructions there are beside those of DWARF.
const VENDOR: gimli::Vendor = if cfg!(target_arch = "aarch64") { gimli::Vendor::AArch64 } else { gimli::Vendor::Default };

/// Version and encodings of the index as linkers write it: a pointer, a count, and pairs that are relative to the index.
const INDEX_HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Bytes of that, of the pointer and of the count.
const INDEX_HEAD_BYTES: usize = 12;

/// Where entries begin in a section that was gone over.
struct Entries {
    cies: Vec<usize>,
    fdes: Vec<usize>,
}

/// The section and its index, if it is good to be used for each frame of a stack: none of its entries is long, and all entries that
/// the index names begin where entries begin. An index that is missing, or unlike those of linkers, is built, so that it is built once for all
/// places where the binary is mapped.
pub(crate) fn checked(eh_frame: Section, index: Option<Section>) -> Option<(Section, Section)> {
    let entries = Entries::of(&eh_frame.bytes)?;
    let index = index.filter(|index| entries.are_of_index(&eh_frame, index.addresses.start, &index.bytes));
    let index = index.or_else(|| entries.index(&eh_frame))?;
    Some((eh_frame, index))
}

/// Whether an index and its section, at these addresses, are good to be used.
pub(crate) fn are_good((eh_frame_at, eh_frame): (u64, &[u8]), (index_at, index): (u64, &[u8])) -> bool {
    let eh_frame = Section { addresses: eh_frame_at..eh_frame_at.saturating_add(eh_frame.len() as u64), bytes: eh_frame.into() };
    Entries::of(&eh_frame.bytes).is_some_and(|entries| entries.are_of_index(&eh_frame, index_at, index))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Entries {
    /// Goes over a section; `None` if an entry is long, refers to one that is none, or branches in an expression.
    fn of(bytes: &[u8]) -> Option<Entries> {
        let mut section = EhFrame::new(bytes, gimli::LittleEndian);
        section.set_vendor(VENDOR);
        // Nobody uses the addresses, so these are as good as others.
        let bases = gimli::BaseAddresses::default().set_eh_frame(0).set_text(0).set_got(0);
        let mut entries = Entries { cies: Vec::new(), fdes: Vec::new() };
        let mut at = 0;
        while let Some(length) = word(bytes, at) {
            let id_at = at + 4;
            let end = id_at + length as usize;
            if length == 0 {
                // The end of one object's entries.
                at = id_at;
                continue;
            }
            if end > bytes.len() {
                break;
            }
            match word(bytes, id_at)? {
                0 if end - at <= CIE_BYTES_MAX => {
                    // Behind the version.
                    let mut augmentation = bytes[..end].iter().skip(id_at + 5).take(AUGMENTATION_BYTES_MAX + 1);
                    augmentation.find(|byte| **byte == 0)?;
                    if has_expression(&bytes[at..end]) {
                        let entry = section.cie_from_offset(&bases, at.into()).ok()?;
                        have_limits(&section, entry.encoding(), entry.instructions(&section, &bases))?;
                    }
                    entries.cies.push(at);
                }
                id if id > 0 && end - at <= FDE_BYTES_MAX => {
                    let cie = id_at.checked_sub(id as usize)?;
                    if entries.cies.last() != Some(&cie) {
                        entries.cies.binary_search(&cie).ok()?;
                    }
                    if has_expression(&bytes[at..end]) {
                        let entry = section.fde_from_offset(&bases, at.into(), EhFrame::cie_from_offset).ok()?;
                        have_limits(&section, entry.cie().encoding(), entry.instructions(&section, &bases))?;
                    }
                    entries.fdes.push(at);
                }
                _ => return None,
            }
            at = end;
        }
        Some(entries)
    }

    /// Whether an index is as linkers write it and names nothing but these entries.
    fn are_of_index(&self, eh_frame: &Section, index_at: u64, index: &[u8]) -> bool {
        let Some((head, pairs)) = index.split_at_checked(INDEX_HEAD_BYTES).filter(|_| index.starts_with(&INDEX_HEAD)) else { return false };
        let Some(count) = word(head, 8) else { return false };
        // Functions mostly stand in the order of their entries.
        let mut next = 0;
        let mut is_entry = |pair: &[u8]| {
            let from_index = i64::from(word(pair, 4).unwrap_or(0).cast_signed());
            let offset = index_at.wrapping_add_signed(from_index).wrapping_sub(eh_frame.addresses.start);
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            let at = if self.fdes.get(next) == Some(&offset) { Ok(next) } else { self.fdes.binary_search(&offset) };
            next = at.map_or(next, |at| at + 1);
            at.is_ok()
        };
        pairs.len() / 8 >= count as usize && pairs.chunks_exact(8).take(count as usize).all(&mut is_entry)
    }

    /// An index as linkers write it, at the address of the section itself.
    fn index(&self, eh_frame: &Section) -> Option<Section> {
        let start = eh_frame.addresses.start;
        let bases = gimli::BaseAddresses::default().set_eh_frame(start);
        let section = EhFrame::new(&eh_frame.bytes, gimli::LittleEndian);
        let pair = |at: &usize| {
            let entry = section.fde_from_offset(&bases, gimli::EhFrameOffset(*at), EhFrame::cie_from_offset).ok()?;
            let function = i32::try_from(entry.initial_address().wrapping_sub(start).cast_signed()).ok()?;
            (entry.end_address() > entry.initial_address()).then_some((function, i32::try_from(*at).ok()?))
        };
        let mut pairs: Vec<(i32, i32)> = self.fdes.iter().filter_map(pair).collect();
        pairs.sort_unstable();
        let mut bytes = INDEX_HEAD.to_vec();
        // The section begins four bytes before this pointer.
        bytes.extend((-4i32).to_le_bytes());
        bytes.extend(u32::try_from(pairs.len()).ok()?.to_le_bytes());
        bytes.extend(pairs.iter().flat_map(|(function, entry)| [function.to_le_bytes(), entry.to_le_bytes()]).flatten());
        (!pairs.is_empty()).then(|| Section { addresses: start..start.saturating_add(bytes.len() as u64), bytes: bytes.into() })
    }
}

/// Whether the bytes of an entry can have an expression that is refused: few have what it takes.
fn has_expression(entry: &[u8]) -> bool {
    let has = |any: &[u8]| entry.iter().any(|byte| any.contains(byte));
    has(&EXPRESSIONS) && (entry.len() > EXPRESSION_BYTES_MAX || has(&BRANCHES))
}

/// `None` if an expression branches or is long, or nobody knows. Nothing else limits the steps of one, and no compiler writes a branch there.
fn have_limits<'b, S: gimli::UnwindSection<EndianSlice<'b>>>(
    section: &S,
    encoding: gimli::Encoding,
    mut instructions: gimli::CallFrameInstructionIter<'_, EndianSlice<'b>>,
) -> Option<()> {
    use gimli::CallFrameInstruction::{DefCfaExpression, Expression, ValExpression};

    // Another version of gimli evaluates them, so that what cannot be parsed here may go on there.
    while let Some(instruction) = instructions.next().ok()? {
        let (DefCfaExpression { expression } | Expression { expression, .. } | ValExpression { expression, .. }) = instruction else {
            continue;
        };
        if expression.length > EXPRESSION_BYTES_MAX {
            return None;
        }
        let mut operations = expression.get(section).ok()?.operations(encoding);
        while let Some(operation) = operations.next().ok()? {
            if matches!(operation, gimli::Operation::Bra { .. } | gimli::Operation::Skip { .. }) {
                return None;
            }
        }
    }
    Some(())
}

/// Whether no entry of a `.debug_frame` is long, and no expression of one long or with a branch.
pub(crate) fn is_good_debug_frame(bytes: &[u8]) -> bool {
    let mut section = gimli::DebugFrame::new(bytes, gimli::LittleEndian);
    section.set_vendor(VENDOR);
    let bases = gimli::BaseAddresses::default().set_eh_frame(0).set_text(0).set_got(0);
    // An entry of a function can refer to bytes of another one as what they share.
    let mut shared = HashSet::new();
    let mut is_good_shared = |cie: &gimli::CommonInformationEntry<EndianSlice<'_>>| {
        let is_good = || have_limits(&section, cie.encoding(), cie.instructions(&section, &bases)).is_some();
        !shared.insert(cie.offset()) || (cie.entry_len() <= CIE_BYTES_MAX && is_good())
    };
    let mut entries = section.entries(&bases);
    loop {
        let is_good = match entries.next() {
            Ok(Some(gimli::CieOrFde::Cie(cie))) => is_good_shared(&cie),
            Ok(Some(gimli::CieOrFde::Fde(partial))) => {
                partial.entry_len() <= FDE_BYTES_MAX
                    && partial.parse(gimli::DebugFrame::cie_from_offset).is_ok_and(|entry| {
                        is_good_shared(entry.cie())
                            && have_limits(&section, entry.cie().encoding(), entry.instructions(&section, &bases)).is_some()
                    })
            }
            Ok(None) => return true,
            Err(_) => false,
        };
        if !is_good {
            return false;
        }
    }
}

/// Functions whose entry is longer than [`FRAME_STEPS`], by the addresses the file states, and how long it is. Sorted; functions that overlap
/// are one, with the length of the longest.
#[derive(Debug, Default)]
pub(crate) struct LongEntries(Vec<(Range<u64>, u64)>);

/// Steps that a frame costs whose entry has no more bytes. A step is an instruction of the unwind information; most have a byte or two.
pub(crate) const FRAME_STEPS: u64 = 512;

impl LongEntries {
    /// Those of an `.eh_frame` that was checked.
    pub(crate) fn of_eh_frame(eh_frame: &Section) -> LongEntries {
        let bases = gimli::BaseAddresses::default().set_eh_frame(eh_frame.addresses.start);
        let section = EhFrame::new(&eh_frame.bytes, gimli::LittleEndian);
        let (mut long, mut at) = (Vec::new(), 0);
        while let Some(length) = word(&eh_frame.bytes, at) {
            let (steps, is_function) = (u64::from(length) + 4, word(&eh_frame.bytes, at + 4).is_some_and(|id| id != 0));
            if steps > FRAME_STEPS && is_function {
                let entry = section.fde_from_offset(&bases, at.into(), EhFrame::cie_from_offset);
                // With a relation to another section it may be anywhere.
                long.push((entry.map_or(0..u64::MAX, |entry| entry.initial_address()..entry.end_address()), steps));
            }
            at += 4 + length as usize;
        }
        LongEntries::merged(long)
    }

    /// Those of a `.debug_frame` that was checked.
    pub(crate) fn of_debug_frame(bytes: &[u8]) -> LongEntries {
        let section = gimli::DebugFrame::new(bytes, gimli::LittleEndian);
        let bases = gimli::BaseAddresses::default();
        let (mut long, mut entries) = (Vec::new(), section.entries(&bases));
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry
                && let steps = partial.entry_len() as u64
                && steps > FRAME_STEPS
            {
                let entry = partial.parse(gimli::DebugFrame::cie_from_offset);
                long.push((entry.map_or(0..u64::MAX, |entry| entry.initial_address()..entry.end_address()), steps));
            }
        }
        LongEntries::merged(long)
    }

    pub(crate) fn merged(mut long: Vec<(Range<u64>, u64)>) -> LongEntries {
        long.sort_unstable_by_key(|(range, _)| range.start);
        let mut merged: Vec<(Range<u64>, u64)> = Vec::new();
        for (range, steps) in long {
            match merged.last_mut().filter(|(last, _)| range.start < last.end) {
                Some((last, most)) => {
                    last.end = last.end.max(range.end);
                    *most = steps.max(*most);
                }
                None => merged.push((range, steps)),
            }
        }
        LongEntries(merged)
    }

    /// Steps that a frame at this address costs at most, beside its expressions.
    pub(crate) fn steps(&self, address: u64) -> u64 {
        let after = self.0.partition_point(|(range, _)| range.start <= address);
        let holds = after.checked_sub(1).map(|at| &self.0[at]).filter(|(range, _)| range.contains(&address));
        holds.map_or(FRAME_STEPS, |(_, steps)| *steps)
    }
}

/// Most functions of one kind: where handlers return to there is one in a C library, of those that align their stack nine in a loader.
const FUNCTIONS_MAX: usize = 16;

/// The functions whose entry of the unwind information is such, by the addresses the file states: the first [`FUNCTIONS_MAX`].
pub(crate) fn functions_where(
    eh_frame: &Section,
    is_such: impl Fn(&EhFrame<'_>, &gimli::BaseAddresses, &gimli::FrameDescriptionEntry<EndianSlice<'_>>) -> bool,
) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let bases = gimli::BaseAddresses::default().set_eh_frame(eh_frame.addresses.start);
    let section = EhFrame::new(&eh_frame.bytes, gimli::LittleEndian);
    let mut entries = section.entries(&bases);
    while found.len() < FUNCTIONS_MAX
        && let Ok(Some(entry)) = entries.next()
    {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        if is_such(&section, &bases, &entry) {
            found.push(entry.initial_address()..entry.end_address());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000;

    fn entry(id: u32, rest: &[u8]) -> Vec<u8> {
        [&(rest.len() as u32 + 4).to_le_bytes()[..], &id.to_le_bytes(), rest].concat()
    }

    /// A section with one CIE of this augmentation, and functions of 16 bytes from 0x100 on.
    fn section(augmentation: &[u8], functions: u32, instructions: usize) -> Section {
        section_of(augmentation, functions, &vec![0; instructions])
    }

    /// The same with these instructions in each.
    fn section_of(augmentation: &[u8], functions: u32, instructions: &[u8]) -> Section {
        // Factors of code and data, the register of the return address, data of the augmentation: absolute addresses of four bytes.
        let mut bytes = entry(0, &[&[1], augmentation, &[0, 1, 0x78, 16, 1, 0x03, 0, 0]].concat());
        for function in 0..functions {
            let here = bytes.len() as u32 + 4;
            let begins = (0x100 + function * 16).to_le_bytes();
            bytes.extend(entry(here, &[&begins[..], &16u32.to_le_bytes(), &[0], instructions].concat()));
        }
        bytes.extend([0; 4]);
        Section { addresses: START..START + bytes.len() as u64, bytes: bytes.into() }
    }

    #[test]
    fn a_section_with_long_entries_is_not_used() {
        assert!(checked(section(b"zR", 10, 3), None).is_some());
        assert!(checked(section(&[b"z", &[b'R'; 8][..]].concat(), 10, 3), None).is_none());
        assert!(checked(section(b"zR", 10, FDE_BYTES_MAX), None).is_none());
        // Half a million entries and a CIE of a megabyte: the product took an hour.
        let start = std::time::Instant::now();
        assert!(checked(section(&[b"z", &[b'R'; 1 << 20][..]].concat(), 100_000, 3), None).is_none());
        assert!(start.elapsed() < std::time::Duration::from_secs(1));
    }

    /// `DW_CFA_def_cfa_expression { DW_OP_skip -3 }` branches to itself: unwinding through it never ended.
    const ENDLESS: [u8; 5] = [0x0f, 3, 0x2f, 0xfd, 0xff];

    #[test]
    fn a_section_with_an_expression_that_branches_is_not_used() {
        assert!(checked(section_of(b"zR", 10, &ENDLESS), None).is_none());
        // `DW_CFA_expression` and `DW_CFA_val_expression` of register 6 with `DW_OP_bra`.
        for kind in [0x10, 0x16] {
            assert!(checked(section_of(b"zR", 10, &[0, kind, 6, 4, 0x30, 0x28, 0xfc, 0xff]), None).is_none());
        }
        // The same bytes are no branch as an offset (`DW_CFA_def_cfa_offset`), nor in the expression of a PLT: lit15, and, const1u.
        assert!(checked(section_of(b"zR", 10, &[0x0e, 0x0f, 0x0e, 0x2f, 0x0e, 0x28]), None).is_some());
        assert!(checked(section_of(b"zR", 10, &[0x0f, 5, 0x80, 0, 0x08, 0x2f, 0x1a]), None).is_some());
    }

    /// `DW_CFA_def_cfa_expression` of this number of pairs `DW_OP_lit0 DW_OP_plus`.
    fn expression(pairs: usize) -> Vec<u8> {
        let [low, high, ..] = (pairs * 2).to_le_bytes();
        let length = [low | 0x80, high << 1 | low >> 7];
        [&[0x0f], &length[..], &[0x30, 0x22].repeat(pairs)].concat()
    }

    #[test]
    fn a_section_with_a_long_expression_is_not_used() {
        assert!(checked(section_of(b"zR", 10, &expression(128)), None).is_some());
        assert!(checked(section_of(b"zR", 10, &expression(129)), None).is_none());
    }

    /// A `.debug_frame` with these instructions for all functions, and for one.
    fn debug_frame(shared: &[u8], instructions: &[u8]) -> Vec<u8> {
        // Version 4 without augmentation: sizes of an address and a segment, factors, the register of the return address.
        let cie = entry(u32::MAX, &[&[4, 0, 8, 0, 1, 0x78, 16][..], shared].concat());
        let fde = entry(0, &[&0x100u64.to_le_bytes()[..], &16u64.to_le_bytes(), instructions].concat());
        [cie, fde].concat()
    }

    #[test]
    fn a_debug_frame_with_an_expression_that_branches_is_not_used() {
        assert!(is_good_debug_frame(&debug_frame(&[0], &[0x0e, 0x2f, 0x0e, 0x0f])));
        assert!(!is_good_debug_frame(&debug_frame(&[0], &ENDLESS)));
    }

    #[test]
    fn a_debug_frame_with_long_entries_or_expressions_is_not_used() {
        assert!(is_good_debug_frame(&debug_frame(&[0; 1_000], &expression(128))));
        assert!(!is_good_debug_frame(&debug_frame(&[0], &expression(129))));
        assert!(!is_good_debug_frame(&debug_frame(&expression(129), &[0])));
        assert!(is_good_debug_frame(&debug_frame(&[0], &[0; FDE_BYTES_MAX - 100])));
        assert!(!is_good_debug_frame(&debug_frame(&[0], &[0; FDE_BYTES_MAX])));
        assert!(!is_good_debug_frame(&debug_frame(&[0; CIE_BYTES_MAX], &[0])));
        // The entry of a function is in the entry of another one, where it has the instructions that they share.
        let mut inner = debug_frame(&[0; CIE_BYTES_MAX], &[0]);
        let first = debug_frame(&[0], &inner[..CIE_BYTES_MAX + 20]);
        let at = (first.len() - CIE_BYTES_MAX - 20) as u32;
        inner = entry(at, &[&0x200u64.to_le_bytes()[..], &16u64.to_le_bytes(), &[0]].concat());
        assert!(is_good_debug_frame(&first));
        assert!(!is_good_debug_frame(&[first, inner].concat()));
    }

    #[test]
    fn a_frame_of_a_long_entry_costs_its_length() {
        let short = LongEntries::of_eh_frame(&section(b"zR", 10, 3));
        assert_eq!(short.steps(0x108), FRAME_STEPS);
        let long = LongEntries::of_eh_frame(&section(b"zR", 10, 2_000));
        assert_eq!([0xff, 0x100, 0x19f, 0x1a0].map(|address| long.steps(address)), [FRAME_STEPS, 2_017, 2_017, FRAME_STEPS]);
        let long = LongEntries::of_debug_frame(&debug_frame(&[0], &[0; 2_000]));
        assert_eq!([0xff, 0x100, 0x10f, 0x110].map(|address| long.steps(address)), [FRAME_STEPS, 2_020, 2_020, FRAME_STEPS]);
        let merged = LongEntries::merged(vec![(10..20, 600), (15..30, 700), (0..2, 800), (12..13, 900)]);
        assert_eq!([1, 2, 10, 29, 30].map(|address| merged.steps(address)), [800, FRAME_STEPS, 900, 900, FRAME_STEPS]);
    }

    #[test]
    fn an_index_that_leads_into_the_middle_of_an_entry_is_built_anew() {
        let (eh_frame, index) = checked(section(b"zR", 10, 3), None).unwrap();
        assert_eq!(word(&index.bytes, 8), Some(10));
        let kept = checked(eh_frame.clone(), Some(index.clone())).unwrap().1;
        assert!(Arc::ptr_eq(&kept.bytes, &index.bytes));
        assert!(are_good((START, &eh_frame.bytes), (START, &index.bytes)));
        let mut bytes = index.bytes.to_vec();
        bytes[INDEX_HEAD_BYTES + 4] += 4;
        assert!(!are_good((START, &eh_frame.bytes), (START, &bytes)));
        let built = checked(eh_frame, Some(Section { bytes: bytes.into(), ..index.clone() })).unwrap().1;
        assert_eq!(built.bytes, index.bytes);
    }
}
