//! The call frame information of a binary: its `.eh_frame` section, and a search through its entries.

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
