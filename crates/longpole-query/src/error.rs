//! Why a statement was not answered.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use datafusion::common::{DataFusionError, SchemaError};
use longpole_store::StoreError;

/// Why a statement was not answered. The message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The statement is none that only reads.
    #[error("run `{statement}`: recordings can only be read: SELECT, EXPLAIN, SHOW or DESCRIBE")]
    ReadOnly {
        /// The statement, shortened.
        statement: String,
    },
    /// There is not exactly one statement.
    #[error("run {count} statements: one at a time")]
    Count {
        /// How many there are.
        count: usize,
    },
    /// A name that is no table.
    #[error("find the table `{table}`; tables: {tables}")]
    Table {
        /// The name.
        table: String,
        /// The names that are, separated by commas.
        tables: String,
    },
    /// A name that is no column.
    #[error("find the column `{column}`; columns: {columns}")]
    Column {
        /// The name.
        column: String,
        /// The names that are, separated by commas.
        columns: String,
    },
    /// The statement makes no sense for another reason.
    #[error("understand the statement: {message}")]
    Statement {
        /// What the engine says.
        message: String,
    },
    /// The statement is longer than any person writes.
    #[error("run a statement of {bytes} bytes: the limit is {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The statement is nested, or chained, deeper than the engine can follow.
    #[error("run the statement: it nests or chains {depth} operators, brackets or queries, and the limit is {depth_max}")]
    TooDeep {
        /// Its depth.
        depth: usize,
        /// The limit.
        depth_max: usize,
    },
    /// It took too long.
    #[error("answer within {} s", timeout.as_secs_f64())]
    Timeout {
        /// The limit.
        timeout: Duration,
    },
    /// It needs too much memory.
    #[error("answer within {} MiB of {what}", memory_bytes >> 20)]
    Memory {
        /// The limit.
        memory_bytes: usize,
        /// What has this limit.
        what: MemoryUse,
    },
    /// Files of a recording went away while they were read: the engine takes one that is gone for one without rows.
    #[error("read {recording}: it was removed meanwhile")]
    Removed {
        /// Its name.
        recording: String,
    },
    /// A recording could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine failed while it ran: a division by zero, an overflow, a damaged file.
    #[error("run the statement: {message}")]
    Engine {
        /// What it says.
        message: String,
    },
}

/// What memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryUse {
    /// What the engine's operators hold.
    Operators,
    /// Whatever the process holds: also one huge value, and the plan itself.
    Process,
    /// The rows of the result, as the engine hands them out.
    Rows,
    /// The values that are given back.
    Values,
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryUse::Operators => "memory for sorts, joins and aggregates",
            MemoryUse::Process => "memory in all",
            MemoryUse::Rows => "memory for its rows",
            MemoryUse::Values => "values",
        })
    }
}

/// What a caller decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryErrorKind {
    /// The statement is wrong.
    Usage,
    /// The statement is too much for the limits.
    Limit,
    /// The recording or the machine is at fault.
    Failed,
}

impl QueryError {
    /// What kind of error this is.
    pub fn kind(&self) -> QueryErrorKind {
        match self {
            QueryError::ReadOnly { .. }
            | QueryError::Count { .. }
            | QueryError::Table { .. }
            | QueryError::Column { .. }
            | QueryError::Statement { .. } => QueryErrorKind::Usage,
            QueryError::TooLong { .. } | QueryError::TooDeep { .. } | QueryError::Timeout { .. } | QueryError::Memory { .. } => {
                QueryErrorKind::Limit
            }
            QueryError::Store(_) | QueryError::Removed { .. } | QueryError::Engine { .. } => QueryErrorKind::Failed,
        }
    }
}

/// What the engine says of a statement while it plans it.
pub(crate) fn planning(error: &DataFusionError) -> QueryError {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } if !valid_fields.is_empty() => {
                QueryError::Column { column: field.flat_name(), columns: list(valid_fields.iter().map(|column| column.name().to_owned())) }
            }
            error => QueryError::Statement { message: error.to_string() },
        },
        DataFusionError::SQL(error, _) => QueryError::Statement { message: error.to_string() },
        root => QueryError::Statement { message: root.message().into_owned() },
    }
}

/// What the engine says while it runs.
pub(crate) fn running(error: &DataFusionError, memory_bytes: usize) -> QueryError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => QueryError::Memory { memory_bytes, what: MemoryUse::Operators },
        DataFusionError::ArrowError(error, _) => QueryError::Engine { message: lower(&error.to_string()) },
        root => QueryError::Engine { message: with_causes(root) },
    }
}

fn with_causes(error: &DataFusionError) -> String {
    match error.source() {
        Some(cause) => format!("{}: {cause}", error.message()),
        None => error.message().into_owned(),
    }
}

/// Arrow begins its messages with a capital.
fn lower(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// Names as people list them, each once.
pub(crate) fn list(names: impl Iterator<Item = String>) -> String {
    let mut listed: Vec<String> = Vec::new();
    for name in names {
        if !listed.contains(&name) {
            listed.push(name);
        }
    }
    listed.join(", ")
}
