//! What a statement may be and use.

use std::time::Duration;

/// Longest statement: longer than what any person writes, and a program that lists values has room for ten thousands of them.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Deepest statement, in operators, brackets and queries: what the engine follows on the stack that it has here, several times over.
pub const STATEMENT_DEPTH_MAX: usize = 4_096;

/// What a statement may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory of sorts, joins and aggregates, and again of the result. Nothing is spilled to disk. Whatever else takes memory, such
    /// as one huge value or the plan itself, ends with an error of its own once the process has grown by twice as much.
    pub memory_bytes: usize,
    /// Memory of the values that are given back.
    pub result_bytes: usize,
    /// Rows of the result; more are cut off, and the result says so.
    pub rows: usize,
    /// Time, from planning to the last row.
    pub timeout: Duration,
}

impl Default for Limits {
    /// Half a GiB, an eighth of a GiB of values, 10,000 rows, one minute.
    fn default() -> Self {
        Limits { memory_bytes: 512 << 20, result_bytes: 128 << 20, rows: 10_000, timeout: Duration::from_secs(60) }
    }
}
