//! Whether a binary names a symbol at all.

use object::read::{Object as _, ObjectSection as _, ReadRef};

/// Largest table of names that is looked through for an interpreter: that of CPython has 50 KB.
const NAMES_BYTES_MAX: u64 = 1 << 20;

/// Whether the table of names holds this one: a look at its bytes, which is faster than going through the symbols.
pub(super) fn has_dynamic_name<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, name: &str) -> bool {
    let section = file.section_by_name(".dynstr").filter(|names| names.size() <= NAMES_BYTES_MAX);
    let Some(names) = section.and_then(|section| section.data().ok()) else { return false };
    let wanted = name.as_bytes();
    let mut starts = names.iter().enumerate().filter(|(_, byte)| **byte == wanted[0]);
    starts.any(|(at, _)| names[at..].starts_with(wanted) && names.get(at + wanted.len()) == Some(&0))
}
