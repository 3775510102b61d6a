//! The questions people ask.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use datafusion::sql::parser::{DFParserBuilder, ParserInput, Statement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use longpole_store::StoredRecording;

use crate::depth;
use crate::engine::{self, Source};
use crate::error::{self, MemoryUse, QueryError};
use crate::value::{Value, ValueError, type_name, value_at};

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

/// The one statement of a text, if it is one that only reads. To be called where there is stack for the deepest one.
pub(crate) fn parse(text: &str) -> Result<Statement, QueryError> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| QueryError::Statement { message: format!("sql parser error: {error}") })?;
    let depth = depth::of(&tokens);
    if depth > STATEMENT_DEPTH_MAX {
        return Err(QueryError::TooDeep { depth, depth_max: STATEMENT_DEPTH_MAX });
    }
    let parser = DFParserBuilder::new(ParserInput::Tokens(tokens)).build();
    let mut statements = parser.and_then(|mut parser| parser.parse_statements()).map_err(|error| error::planning(&error))?;
    let statement = match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => statement,
        (None, _) => return Err(QueryError::Statement { message: "it is empty".into() }),
        (Some(_), more) => return Err(QueryError::Count { count: more + 1 }),
    };
    match reads_only(&statement) {
        true => Ok(statement),
        false => Err(QueryError::ReadOnly { statement: shortened(text) }),
    }
}

fn reads_only(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => reads_only(&explain.statement),
        Statement::Statement(statement) => match statement.as_ref() {
            ast::Statement::Explain { statement, .. } => reads_only(&Statement::Statement(statement.clone())),
            ast::Statement::Query(_)
            | ast::Statement::ExplainTable { .. }
            | ast::Statement::ShowTables { .. }
            | ast::Statement::ShowColumns { .. }
            | ast::Statement::ShowFunctions { .. }
            | ast::Statement::ShowVariable { .. } => true,
            _ => false,
        },
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => false,
    }
}

/// Enough of a statement to recognise it.
fn shortened(text: &str) -> String {
    const LETTERS: usize = 60;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
