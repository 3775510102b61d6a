//! How much memory the rows of a file may take, decided before they are read.
//!
//! A Parquet file of a few kilobytes can claim 2^31 rows, or repeat one long text a million times: a dictionary holds the text
//! once, and a run of indices takes two bytes. What a file expands to is therefore counted against a limit that grows with
//! the size of the file: rows before any of them is read, texts as they are copied.
//!
//! What our own recorder wrote into our own store is allowed what it counted while it wrote (`needs`): what was let in can be shown.

use std::cell::Cell;

/// What a file of any size may take: 400,000 spans of six attributes.
const BASE_BYTES: u64 = if cfg!(test) { 2 << 20 } else { 128 << 20 };

/// What each byte of a file may take. A span takes 168 bytes in memory, and 24 more for each attribute. In a file its ids and times
/// take some 20 bytes; attributes that every span repeats take next to nothing. Sixty of those make a factor of 80.
const PER_BYTE: u64 = 128;

/// Recordings of the own store may take four times as much, where nobody counted what they take: what was let in once has to be shown
/// again, even if it was written smaller.
const OWN_FACTOR: u64 = 4;

/// The memory that is left.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    left: Cell<u64>,
    is_spent: Cell<bool>,
}

/// The limit is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    /// What there was.
    pub(crate) limit_bytes: u64,
}

impl Budget {
    /// For a file of `bytes` bytes that somebody sent.
    pub(crate) fn of_file(bytes: u64) -> Self {
        Budget::limited(limit_of_file(bytes))
    }

    /// For a recording of the own store: the bytes of its files, and what its writer counted.
    pub(crate) fn of_own(bytes: u64, counted: u64) -> Self {
        Budget::limited(limit_of_file(bytes).saturating_mul(OWN_FACTOR).max(counted))
    }

    /// With this limit in bytes.
    pub(crate) fn limited(limit: u64) -> Self {
        Budget { limit, left: Cell::new(limit), is_spent: Cell::new(false) }
    }

    /// What there was at first.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// What is gone of it.
    pub(crate) fn taken(&self) -> u64 {
        self.limit - self.left.get()
    }

    /// Whether a request exceeded the rest.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Takes what is kept.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Spent> {
        self.holds(bytes)?;
        self.left.set(self.left.get() - bytes);
        Ok(())
    }

    /// Whether so much may be held for a moment.
    pub(crate) fn holds(&self, bytes: u64) -> Result<(), Spent> {
        if bytes <= self.left.get() {
            return Ok(());
        }
        self.is_spent.set(true);
        Err(Spent { limit_bytes: self.limit })
    }
}

/// The limit for a file of this size that somebody sent, in bytes.
pub(crate) fn limit_of_file(bytes: u64) -> u64 {
    BASE_BYTES.saturating_add(bytes.saturating_mul(PER_BYTE))
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "its rows take more than {} MiB of memory, the limit for a recording of this size: {} MiB and {PER_BYTE} times its bytes",
            self.limit_bytes >> 20,
            BASE_BYTES >> 20,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone_and_what_is_held_comes_back() {
        let budget = Budget::of_file(4);
        let limit_bytes = BASE_BYTES + 4 * PER_BYTE;
        assert_eq!(budget.holds(limit_bytes), Ok(()));
        assert_eq!(budget.take(limit_bytes - 1), Ok(()));
        assert!(!budget.is_spent());
        assert_eq!(budget.take(2), Err(Spent { limit_bytes }));
        assert_eq!(budget.take(1), Ok(()));
        assert!(budget.is_spent());
        assert_eq!(Budget::of_own(4, 7).limit, 4 * limit_bytes);
        assert_eq!(Budget::of_own(4, 5 * limit_bytes).limit, 5 * limit_bytes);
        assert_eq!(Budget::of_file(u64::MAX).take(u64::MAX), Ok(()));
    }
}
