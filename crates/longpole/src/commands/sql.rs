//! `sql`: runs a read-only query on one recording.
//!
//! ```text
//! longpole sql 'SELECT …' ── starts itself ──► longpole sql --is-worker: runs the query, prints the rows
//!        │◄─────────────── its exit code ──────────────┘
//! ```
//!
//! A statement may need more memory or stack than the system has, which kills the process that runs it whatever limits it sets itself. So
//! the query runs in a worker process, and this one reports how the worker ended.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result};
use clap::ValueEnum;
use longpole_model::units::counted;
use longpole_query::{Limits, QueryErrorKind, SqlResult, Value};
use serde_json::json;

use crate::args::{Format, SqlArguments};
use crate::failure::{self, Failure, Kind};
use crate::input::load::{load_stored, resolve};
use crate::invocation::Invocation;
use crate::own_traces;
use crate::terminal::screen::{Screen, print, print_json, say};
use crate::terminal::{self, fit, pad, right};

/// Widest cell of a text table; JSON has all.
const CELL_MAX: usize = 60;

const HINT: &str = "narrow the query (WHERE, LIMIT, an aggregate) or raise --timeout";

/// Runs the query and prints its rows.
pub(crate) fn sql(invocation: &Invocation, arguments: &SqlArguments) -> ExitCode {
    let code = |done: Result<ExitCode>| done.unwrap_or_else(|error| ExitCode::from(failure::report(&error)));
    if arguments.is_worker {
        end_with_standard_input();
        silence_panics_of_the_engine();
        return code(answer(invocation, arguments).map(|()| ExitCode::SUCCESS));
    }
    own_traces::begin(invocation.tracing_level);
    let code = tracing::info_span!("longpole").in_scope(|| code(ask(invocation, arguments)));
    own_traces::end();
    code
}

/// Runs the worker, and exits as it did.
fn ask(invocation: &Invocation, arguments: &SqlArguments) -> Result<ExitCode> {
    let store = invocation.open_store()?;
    let name = resolve(&store, &arguments.recording)?;
    if !matches!(store.recording(name)?.state, longpole_store::RecordingState::Sealed { .. }) {
        // A recording whose recorder was killed has no tables until it is loaded.
        load_stored(&store, &arguments.recording)?;
    }
    let format = arguments.format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut worker = Command::new(own_program()?)
        .arg("--store")
        .arg(invocation.store()?)
        .args(["sql", "--is-worker", "--format", &format, "--recording", &name.to_string()])
        .args(["--timeout", &format!("{}us", arguments.timeout.as_micros()), "--", &arguments.query])
        // Its exit is all that is reported.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("failed to start a process for the query")?;
    // The worker ends when this closes, also if this process is killed.
    let alive = worker.stdin.take();
    let mut words = Vec::new();
    worker.stderr.take().map(|mut stderr| stderr.read_to_end(&mut words)).transpose().context("failed to read from the query's process")?;
    let ended = worker.wait().context("failed to wait for the query's process")?;
    drop(alive);
    let words = String::from_utf8_lossy(&words);
    match (ended.code().and_then(|code| u8::try_from(code).ok()), own_words(&words)) {
        (Some(0), _) => {
            words.lines().for_each(say);
            Ok(ExitCode::SUCCESS)
        }
        // It may have reported the error, and then run out of memory.
        (code, Some(own)) => {
            own.lines().for_each(say);
            Ok(ExitCode::from(code.unwrap_or(Kind::Failed.exit_code())))
        }
        (_, None) => Err(Failure::new(Kind::Failed, format!("failed to {}", end_words(ended, &words))).hint(HINT).into()),
    }
}

/// The worker's own message. The standard library may have printed one before, if a thread of the engine ran out of memory.
fn own_words(words: &str) -> Option<&str> {
    const BEGIN: &str = "longpole: ";
    if words.starts_with(BEGIN) { Some(words) } else { words.find(&format!("\n{BEGIN}")).map(|at| &words[at + 1..]) }
}

/// This program, even if its file was replaced meanwhile.
fn own_program() -> Result<PathBuf> {
    let by_the_kernel = PathBuf::from("/proc/self/exe");
    if by_the_kernel.exists() { Ok(by_the_kernel) } else { std::env::current_exe().context("failed to find longpole's own executable") }
}

/// Why a worker ended without an answer, by what the standard library printed.
fn end_words(ended: ExitStatus, words: &str) -> String {
    if words.contains("overflowed its stack") {
        "run the statement: it is nested too deeply for the engine".to_owned()
    } else if words.contains("memory allocation of") {
        "run the statement: it needs more memory at once than the system has".to_owned()
    } else {
        format!("run the statement: its process ended unexpectedly ({ended}), probably out of memory")
    }
}

/// Ends this process when its parent is gone: nobody waits for the answer.
fn end_with_standard_input() {
    std::thread::spawn(|| {
        let mut stdin = std::io::stdin().lock();
        std::io::copy(&mut stdin, &mut std::io::sink()).ok();
        #[expect(clippy::exit, reason = "the engine may be busy, and does not ask whether it is to go on")]
        std::process::exit(i32::from(Kind::Failed.exit_code()));
    });
}

/// Panics of the engine are reported as errors of the statement.
fn silence_panics_of_the_engine() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(longpole_query::THREAD_NAME) {
            usual(panic);
        }
    }));
}

/// Runs the query and prints the rows: the work of the worker.
fn answer(invocation: &Invocation, arguments: &SqlArguments) -> Result<()> {
    let store = invocation.open_store()?;
    let name = resolve(&store, &arguments.recording)?;
    let limits = Limits { timeout: arguments.timeout, ..Limits::default() };
    let result = longpole_query::sql(&[store.recording(name)?], &arguments.query, &limits).map_err(|error| {
        let (kind, hint) = match error.kind() {
            QueryErrorKind::Usage => (Kind::Usage, TABLES_HINT),
            QueryErrorKind::Limit => (Kind::Failed, HINT),
            QueryErrorKind::Failed => (Kind::Failed, TABLES_HINT),
        };
        Failure::new(kind, format!("failed to {error}")).hint(hint)
    })?;
    match arguments.format {
        Format::Json => print_json(&json(&result)),
        Format::Text => print(&table(&result)),
    }
}

const TABLES_HINT: &str = "tables and columns: longpole sql 'SHOW TABLES', longpole sql 'DESCRIBE spans'; other recordings: --recording r7";

fn json(result: &SqlResult) -> serde_json::Value {
    let names = distinct(result.columns.iter().map(|column| column.name.as_str()));
    let columns: Vec<_> = result.columns.iter().zip(&names).map(|(c, name)| json!({ "name": name, "type": c.kind })).collect();
    let rows: Vec<serde_json::Value> =
        result.rows.iter().map(|row| names.iter().zip(row).map(|(name, value)| (name.clone(), json_value(value))).collect()).collect();
    json!({ "columns": columns, "rows": rows, "truncated": result.truncated })
}

/// Column names without duplicates, as JSON needs: `SELECT *` of a join gives `trace_id`, `trace_id_2`.
fn distinct<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut taken: HashSet<String> = names.clone().map(str::to_owned).collect();
    let mut times: HashMap<&str, u32> = HashMap::new();
    names
        .map(|name| {
            let time = times.entry(name).or_default();
            *time += 1;
            if *time == 1 {
                return name.to_owned();
            }
            let mut numbered = format!("{name}_{time}");
            // Another column may have that name.
            while !taken.insert(numbered.clone()) {
                *time += 1;
                numbered = format!("{name}_{time}");
            }
            numbered
        })
        .collect()
}

/// Nested no deeper than the column types.
fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        // JSON has no such numbers, and null means NULL.
        Value::Float(number) if number.is_nan() => json!("NaN"),
        Value::Float(f64::INFINITY) => json!("Infinity"),
        Value::Float(f64::NEG_INFINITY) => json!("-Infinity"),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::List(values) => values.iter().map(json_value).collect(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (key.clone(), json_value(value))).collect(),
    }
}

/// Columns as wide as their widest cell; numbers to the right.
fn table(result: &SqlResult) -> Screen {
    let cells: Vec<Vec<String>> =
        result.rows.iter().map(|row| row.iter().map(|value| fit(&value.to_string(), CELL_MAX)).collect()).collect();
    let width = |index: usize| {
        let widest = cells.iter().map(|row| terminal::width(&row[index])).max().unwrap_or_default();
        widest.max(terminal::width(&result.columns[index].name))
    };
    let widths: Vec<usize> = (0..result.columns.len()).map(width).collect();
    let mut out = Screen::default();
    let mut line = |texts: Vec<String>| {
        out.line(texts.join("  ").trim_end());
    };
    line(result.columns.iter().zip(&widths).map(|(column, width)| pad(&column.name, *width)).collect());
    line(widths.iter().map(|width| "-".repeat(*width)).collect());
    for (row, values) in cells.iter().zip(&result.rows) {
        line(row.iter().zip(values).zip(&widths).map(|((text, value), width)| cell(text, value, *width)).collect());
    }
    let more = if result.truncated { "; more are left: use LIMIT and OFFSET, or aggregates" } else { "" };
    out.line(format!("{}{more}", counted(result.rows.len() as u64, "row", "rows")));
    out
}

fn cell(text: &str, value: &Value, width: usize) -> String {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => right(text, width),
        _ => pad(text, width),
    }
}

#[cfg(test)]
mod tests {
    use longpole_query::Column;

    use super::*;

    #[test]
    fn no_column_of_a_row_hides_another() {
        let names = ["name", "name", "x", "name_2", "name", "x"];
        let columns = names.map(|name| Column { name: name.to_owned(), kind: "BIGINT".into() }).to_vec();
        let rows = vec![(0..6).map(Value::Int).collect()];
        let json = json(&SqlResult { columns, rows, truncated: false });
        let named: Vec<&str> = json["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(named, ["name", "name_3", "x", "name_2", "name_4", "x_2"]);
        assert_eq!(json["rows"][0], json!({ "name": 0, "name_3": 1, "x": 2, "name_2": 3, "name_4": 4, "x_2": 5 }));
    }

    #[test]
    fn what_is_no_number_is_not_null() {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5].map(|number| json_value(&Value::Float(number)));
        assert_eq!(json!(values), json!(["NaN", "Infinity", "-Infinity", 0.5]));
    }
}
