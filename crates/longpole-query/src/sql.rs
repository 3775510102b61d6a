//! The questions people ask.

use std::time::Duration;

use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast;
use longpole_store::StoredRecording;

use crate::engine::{self, Source};
use crate::error::{self, QueryError};
use crate::value::{Value, type_name, value_at};

/// What a statement may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory of sorts, joins and aggregates, and again of the result. Nothing is spilled to disk.
    pub memory_bytes: usize,
    /// Rows of the result; more are cut off, and the result says so.
    pub rows: usize,
    /// Time, from planning to the last row.
    pub timeout: Duration,
}

impl Default for Limits {
    /// Half a GiB, 10,000 rows, one minute.
    fn default() -> Self {
        Limits { memory_bytes: 512 << 20, rows: 10_000, timeout: Duration::from_secs(60) }
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
    let statement = parse(statement)?;
    let sources = recordings
        .iter()
        .map(|recording| Ok(Source { recording: recording.name.to_string(), files: recording.table_files()? }))
        .collect::<Result<Vec<_>, QueryError>>()?;
    let answer = engine::run(sources, statement, limits)?;

    let columns = answer.schema.fields().iter();
    let columns = columns.map(|field| Column { name: field.name().clone(), kind: type_name(field.data_type()) }).collect();
    let count: usize = answer.batches.iter().map(|batch| batch.num_rows()).sum();
    let mut rows = Vec::with_capacity(count.min(limits.rows));
    for batch in &answer.batches {
        for row in 0..batch.num_rows().min(limits.rows - rows.len()) {
            let cells = batch.columns().iter().map(|column| value_at(column, row));
            rows.push(cells.collect::<Result<Vec<_>, _>>().map_err(|error| QueryError::Engine { message: error.to_string() })?);
        }
    }
    Ok(SqlResult { columns, rows, truncated: count > limits.rows })
}

/// The one statement of a text, if it is one that only reads.
fn parse(text: &str) -> Result<Statement, QueryError> {
    let mut statements = DFParser::parse_sql(text).map_err(|error| error::planning(&error))?;
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
