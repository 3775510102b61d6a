//! What the rows of a recording take when they are read, counted while they are written: `segments/memory`.
//!
//! ```text
//! longpole memory 1
//! 3104221 memory
//! 5201118 limit
//! ```
//!
//! `memory` is what is held at once, and `limit` what the reader's budget has to allow, which counts decompressed pages as well. Its
//! checksum stands in the list beside those of the tables. Where the file is missing or damaged the tables are read within the usual limits.
//!
//! It is believed because it lies in a store that only its user can write to. An archive has it, too, and nobody asks it there.

/// Name of the file.
pub(crate) const FILE_NAME: &str = "memory";

const FIRST_LINE: &str = "longpole memory 1\n";

/// Longest file that is read.
pub(crate) const BYTES_MAX: usize = 256;

/// What was counted of all tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    kept: u64,
    held: u64,
    checked: u64,
    allowed: u64,
}

impl Needs {
    /// Counts what stays of rows.
    pub(crate) fn keep(&mut self, bytes: u64) {
        self.kept = self.kept.saturating_add(bytes);
    }

    /// Counts what is held for a moment: the most at once decides.
    pub(crate) fn hold(&mut self, bytes: u64) {
        self.held = self.held.max(bytes);
    }

    /// Counts what a table claims and is held against the budget, though it is not in memory at once.
    pub(crate) fn check(&mut self, bytes: u64) {
        self.checked = self.checked.max(bytes);
    }

    /// Counts what a reader may take beside what stays.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.allowed = self.allowed.saturating_add(bytes);
    }

    /// What stays of all rows.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// The figures.
    pub(crate) fn figures(&self) -> Figures {
        let memory = self.kept.saturating_add(self.held);
        Figures { memory, limit: self.kept.saturating_add(self.held.max(self.checked)).saturating_add(self.allowed) }
    }
}

/// What is written of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Bytes in memory.
    pub(crate) memory: u64,
    /// What a budget has to allow.
    pub(crate) limit: u64,
}

impl Figures {
    pub(crate) fn print(&self) -> String {
        format!("{FIRST_LINE}{} memory\n{} limit\n", self.memory, self.limit)
    }

    /// Reads them. Only what [`Figures::print`] writes are some, byte for byte.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(bytes).ok()?.strip_prefix(FIRST_LINE)?.lines();
        let memory = lines.next()?.strip_suffix(" memory")?.parse().ok()?;
        let limit = lines.next()?.strip_suffix(" limit")?.parse().ok()?;
        let figures = Figures { memory, limit };
        (figures.print().as_bytes() == bytes).then_some(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_look_like_this_and_read_back() {
        let mut needs = Needs::default();
        needs.keep(3_000_000);
        needs.hold(100_000);
        needs.hold(104_221);
        needs.check(2_201_118);
        let figures = needs.figures();
        let text = figures.print();
        assert_eq!(text.lines().collect::<Vec<_>>(), ["longpole memory 1", "3104221 memory", "5201118 limit"]);
        assert_eq!(Figures::parse(text.as_bytes()), Some(figures));
        assert!((0..text.len()).all(|at| Figures::parse(&text.as_bytes()[..at]).is_none()));
        assert_eq!(Figures::parse(text.replace("310", "+310").as_bytes()), None);
    }
}
