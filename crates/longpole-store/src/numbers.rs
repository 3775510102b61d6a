//! Numbers of one width as numbers of another. Where one does not fit, which no file and no memory of ours reaches, the largest that does
//! stands for it: it names nothing, and reading there is an error.

/// A row, an id or an offset: they have 32 bits.
pub(crate) fn u32_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A length or an offset of a file, in memory.
pub(crate) fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
