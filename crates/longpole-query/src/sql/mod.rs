//! The questions people ask.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use longpole_store::StoredRecording;

use crate::engine::{self, Source};
use crate::error::{MemoryUse, QueryError};
use crate::limits::{Limits, STATEMENT_BYTES_MAX};
use crate::value::{Value, ValueError, type_name, value_at};

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type: `bool`, `int`, `float`, `text`, `bytes` (shown as hex), `time`, `list(…)`, `map` or `null`.
    pub kind: String,
}

/// The answer to a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlResult {
    /// Columns, in order. Two may have the same name.
    pub columns: Vec<Column>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than the limit let through.
    pub truncated: bool,
}

/// Answers one statement over sealed recordings. Over several, each table has a first column `recording`.
///
/// It blocks until the answer is there, and may be called from anywhere; in an async program, from a thread for blocking
/// work.
///
/// # Errors
///
/// If the statement is wrong or does not only read ([`QueryErrorKind::Usage`](crate::QueryErrorKind::Usage)), if it exceeds the limits
/// ([`QueryErrorKind::Limit`](crate::QueryErrorKind::Limit)), or if a recording cannot be read ([`QueryErrorKind::Failed`](crate::QueryErrorKind::Failed)).
pub fn sql(recordings: &[StoredRecording], statement: &str, limits: &Limits) -> Result<SqlResult, QueryError> {
    if statement.len() > STATEMENT_BYTES_MAX {
        return Err(QueryError::TooLong { bytes: statement.len(), bytes_max: STATEMENT_BYTES_MAX });
    }
    let sources = recordings
        .iter()
        .map(|recording| Ok(Source { recording: recording.name.to_string(), files: recording.table_files()? }))
        .collect::<Result<Vec<_>, QueryError>>()?;
    let files =
        sources.iter().flat_map(|source| source.files.iter().map(|(_, path)| (source.recording.clone(), path.clone(), identity(path))));
    let files: Vec<_> = files.collect();
    let answer = engine::run(sources, statement, limits);
    // Whatever came of it: the engine does not report a file that goes away while it reads.
    if let Some((recording, ..)) = files.into_iter().find(|(_, path, was)| was.is_none() || identity(path) != *was) {
        return Err(QueryError::Removed { recording });
    }
    let answer = answer?;

    let columns = answer.schema.fields().iter();
    let columns = columns.map(|field| Column { name: field.name().clone(), kind: type_name(field.data_type()) }).collect();
    let count: usize = answer.batches.iter().map(|batch| batch.num_rows()).sum();
    let mut rows = Vec::with_capacity(count.min(limits.rows));
    let mut bytes_left = limits.result_bytes;
    for batch in &answer.batches {
        for row in 0..batch.num_rows().min(limits.rows - rows.len()) {
            let cells = batch.columns().iter().map(|column| value_at(column, row, &mut bytes_left));
            rows.push(cells.collect::<Result<Vec<_>, _>>().map_err(|error| match error {
                ValueError::TooLarge => QueryError::Memory { memory_bytes: limits.result_bytes, what: MemoryUse::Values },
                ValueError::Unreadable(message) => QueryError::Engine { message },
            })?);
        }
    }
    Ok(SqlResult { columns, rows, truncated: count > limits.rows })
}

/// Which file this is, if there is one. Segments are never written to once they are there.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

#[cfg(test)]
mod tests;
