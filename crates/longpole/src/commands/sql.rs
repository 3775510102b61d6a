//! `sql`: a read-only question to one recording.

use anyhow::Result;
use longpole_query::{Limits, QueryErrorKind, SqlResult, Value};
use serde_json::json;

use super::recording::{Setting, load_stored, print, print_json, resolve};
use crate::args::{Format, SqlArguments};
use crate::failure::{Failure, Kind};
use crate::terminal::{counted, fit, pad, printable, right};

/// Widest cell of a text table; JSON has all.
const CELL_MAX: usize = 60;

/// Runs the query and prints its rows.
pub(crate) fn sql(setting: &Setting, arguments: &SqlArguments) -> Result<()> {
    let store = setting.open_store()?;
    let name = resolve(&store, &arguments.recording)?;
    if !matches!(store.recording(name)?.state, longpole_store::RecordingState::Sealed { .. }) {
        // A recording whose recorder was killed has no tables before somebody looked at it.
        load_stored(&store, &arguments.recording)?;
    }
    let result = longpole_query::sql(&[store.recording(name)?], &arguments.query, &Limits::default()).map_err(|error| {
        let kind = if error.kind() == QueryErrorKind::Usage { Kind::Usage } else { Kind::Failed };
        Failure::new(kind, format!("failed to {error}"))
            .hint("tables and columns: longpole sql 'SHOW TABLES', longpole sql 'DESCRIBE spans'; other recordings: --recording r7")
    })?;
    match arguments.format {
        Format::Json => print_json(&json(&result)),
        Format::Text => print(&table(&result)),
    }
}

fn json(result: &SqlResult) -> serde_json::Value {
    let columns: Vec<_> = result.columns.iter().map(|c| json!({ "name": c.name, "type": c.kind })).collect();
    let rows: Vec<serde_json::Value> = result
        .rows
        .iter()
        .map(|row| result.columns.iter().zip(row).map(|(column, value)| (column.name.clone(), json_value(value))).collect())
        .collect();
    json!({ "columns": columns, "rows": rows, "truncated": result.truncated })
}

/// Nested no deeper than the types of the tables are.
fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::List(values) => values.iter().map(json_value).collect(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (key.clone(), json_value(value))).collect(),
    }
}

/// Columns as wide as their widest cell; numbers to the right.
fn table(result: &SqlResult) -> String {
    let cells: Vec<Vec<String>> =
        result.rows.iter().map(|row| row.iter().map(|value| fit(&value.to_string(), CELL_MAX)).collect()).collect();
    let width = |index: usize| {
        let widest = cells.iter().map(|row| row[index].chars().count()).max().unwrap_or_default();
        widest.max(result.columns[index].name.chars().count())
    };
    let widths: Vec<usize> = (0..result.columns.len()).map(width).collect();
    let mut out = String::new();
    let mut line = |texts: Vec<String>| {
        out.push_str(texts.join("  ").trim_end());
        out.push('\n');
    };
    line(result.columns.iter().zip(&widths).map(|(column, width)| pad(&printable(&column.name), *width)).collect());
    line(widths.iter().map(|width| "-".repeat(*width)).collect());
    for (row, values) in cells.iter().zip(&result.rows) {
        line(row.iter().zip(values).zip(&widths).map(|((text, value), width)| cell(text, value, *width)).collect());
    }
    let more = if result.truncated { ", and there are more: LIMIT and OFFSET, or aggregates, give the rest" } else { "" };
    out.push_str(&format!("{}{more}\n", counted(result.rows.len() as u64, "row", "rows")));
    out
}

fn cell(text: &str, value: &Value, width: usize) -> String {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => right(text, width),
        _ => pad(text, width),
    }
}
