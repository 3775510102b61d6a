//! The tables and SQL views of a recording, for people: the source of `docs/formats/sql-schema.md`.

use longpole_store::tables::{ColumnDocumentation, documentation};

/// A SQL view over the tables.
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The statement; with several recordings it has a column `recording`, which the join compares, too.
    pub(crate) sql: fn(several: bool) -> String,
    /// The tables that it reads and that older recordings may lack.
    pub(crate) needs: &'static [&'static str],
    columns: &'static [(&'static str, &'static str, &'static str)],
}

/// Every view. Views read tables only.
pub(crate) const VIEWS: &[View] = &[
    View {
        name: "span_samples",
        about: "Every sample once, with its span; the columns of the span are NULL if the sample has no single span.",
        sql: span_samples,
        needs: &[],
        columns: &[
            ("span_row", "BIGINT", "Row of its span in `spans`."),
            ("parent_row", "BIGINT", "Row of the parent of its span."),
            ("service_name", "VARCHAR", "Service of its span."),
            ("span_name", "VARCHAR", "Name of its span."),
            ("span_start_time_unix_nano", "BIGINT", "Start of its span."),
            ("span_duration_nanos", "BIGINT", "Duration of its span."),
        ],
    },
    View {
        name: "journal_samples",
        about: "Every sample whose thread kept a journal at that moment, with its interval of `current_spans`: same process, same \
                thread, and start <= time < end. Links with the evidence `journal` come from this join. If `context` has a value \
                too, it was written and read independently, so that each source tests the other.",
        sql: journal_samples,
        needs: &["current_spans"],
        columns: &[
            ("journal_trace_id", "BINARY(16)", "Trace of the current span."),
            ("journal_span_id", "BINARY(8)", "The current span; NULL if the thread had none."),
            ("current_start_time_monotonic_nano", "BIGINT", "Start of the interval, by CLOCK_MONOTONIC."),
            ("current_end_time_monotonic_nano", "BIGINT", "End of the interval, by CLOCK_MONOTONIC."),
        ],
    },
];

/// The interval of a sample is the last of its thread that starts no later. A window over both finds it in one pass; a join by
/// inequality would compare each sample with each interval.
fn journal_samples(several: bool) -> String {
    let (column, same_recording) = if several { ("recording, ", "l.recording = s.recording AND ") } else { ("", "") };
    let same_stretch = if several { "c.recording = s.recording AND " } else { "" };
    format!(
        "SELECT s.*, c.trace_id AS journal_trace_id, c.span_id AS journal_span_id,
            c.start_time_monotonic_nano AS current_start_time_monotonic_nano, c.end_time_monotonic_nano AS current_end_time_monotonic_nano
        FROM samples s
        JOIN (
            SELECT DISTINCT {column}pid, tid, time, start FROM (
                SELECT {column}pid, tid, time, is_sample, max(start) OVER (
                    PARTITION BY {column}pid, tid ORDER BY time, is_sample ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS start
                FROM (
                    SELECT {column}pid, tid, start_time_monotonic_nano AS time, 0 AS is_sample, start_time_monotonic_nano AS start
                    FROM current_spans
                    UNION ALL
                    SELECT {column}pid, tid, time_monotonic_nano AS time, 1 AS is_sample, CAST(NULL AS BIGINT) AS start FROM samples))
            WHERE is_sample = 1) l ON {same_recording}l.pid = s.pid AND l.tid = s.tid AND l.time = s.time_monotonic_nano
        JOIN current_spans c ON {same_stretch}c.pid = s.pid AND c.tid = s.tid AND c.start_time_monotonic_nano = l.start
        WHERE s.time_monotonic_nano < c.end_time_monotonic_nano"
    )
}

fn span_samples(several: bool) -> String {
    let same_recording = if several { "p.recording = s.recording AND " } else { "" };
    format!(
        "SELECT s.*, p.span_row, p.parent_row, p.service_name, p.name AS span_name,
            p.start_time_unix_nano AS span_start_time_unix_nano, p.duration_nanos AS span_duration_nanos
        FROM samples s LEFT JOIN spans p ON {same_recording}p.trace_id = s.trace_id AND p.span_id = s.span_id"
    )
}

/// A common question, and its statement.
pub(crate) const EXAMPLES: &[(&str, &str)] = &[
    (
        "Which operations take the most CPU by themselves?",
        "SELECT service_name, span_name, count(*) AS samples, sum(weight_nanos) / 1e6 AS cpu_ms
FROM span_samples
GROUP BY service_name, span_name
ORDER BY cpu_ms DESC
LIMIT 10",
    ),
    (
        "Which functions burn that CPU?",
        "SELECT f.function, sum(s.weight_nanos) / 1e6 AS self_ms
FROM span_samples s
JOIN stacks k ON k.stack_id = s.stack_id
JOIN frames f ON f.location_id = k.location_ids[1] AND f.inline_depth = 0
WHERE s.span_name = 'verify'
GROUP BY f.function
ORDER BY self_ms DESC
LIMIT 10",
    ),
    (
        "How slow is each operation?",
        "SELECT name, count(*) AS spans, median(duration_nanos) / 1e6 AS median_ms, max(duration_nanos) / 1e6 AS max_ms
FROM spans
GROUP BY name
ORDER BY max_ms DESC",
    ),
    (
        "What went wrong, and where?",
        "SELECT service_name, name, status_message, attributes['http.route'] AS route
FROM spans
WHERE status_code = 'error'
ORDER BY start_time_unix_nano",
    ),
    (
        "What happened below one span?",
        "SELECT c.depth - p.depth AS level, c.name, c.duration_nanos
FROM spans p
JOIN spans c ON c.span_row BETWEEN p.span_row AND p.span_row + p.descendants
WHERE p.span_id = X'00f067aa0ba902b7'
ORDER BY c.span_row",
    ),
    (
        "How certain are the links of samples to spans?",
        "SELECT evidence, count(*) AS samples FROM samples GROUP BY evidence ORDER BY samples DESC",
    ),
    (
        "How long was each thread on a CPU?",
        "SELECT t.pid, t.tid, t.name, sum(c.duration_nanos) / 1e6 AS on_cpu_ms
FROM cpu_slices c
JOIN threads t ON t.pid = c.pid AND t.tid = c.tid AND c.start_time_monotonic_nano >= t.start_time_monotonic_nano
    AND (t.end_time_monotonic_nano IS NULL OR c.start_time_monotonic_nano < t.end_time_monotonic_nano)
GROUP BY t.pid, t.tid, t.name
ORDER BY on_cpu_ms DESC",
    ),
    (
        "How long was each operation the current one of a thread, however short?",
        "SELECT p.service_name, p.name, count(DISTINCT p.span_id) AS spans, sum(c.duration_nanos) / 1e6 AS current_ms
FROM current_spans c
JOIN spans p ON p.trace_id = c.trace_id AND p.span_id = c.span_id
GROUP BY p.service_name, p.name
ORDER BY current_ms DESC",
    ),
    (
        "Do context records and journals agree?",
        "SELECT context_span_id IS NOT DISTINCT FROM journal_span_id AS agree, count(*) AS samples
FROM journal_samples
WHERE context IN ('span', 'no_span')
GROUP BY agree",
    ),
];

const INTRODUCTION: &str = "# SQL schema of a recording

The code generates this page: `LONGPOLE_UPDATE_DOCS=1 cargo test -p longpole-query schema`.

`longpole sql 'SELECT …'` takes one statement: SELECT, EXPLAIN, SHOW or DESCRIBE. Future versions only add tables and columns. The
recording's directory has the same tables as Parquet files (`segments/*.parquet`), for DuckDB, Spark, ClickHouse or pandas.

A statement may have 1 MiB of text, 4,096 nested or consecutive operators, brackets and queries, 60 s (`--timeout`),
512 MiB for sorts, joins and aggregates, 1 GiB in all, 10,000 rows and 128 MiB of values in its answer. A statement that needs more
ends with an error. It runs in its own process, so even a stack overflow only ends the statement.

- Times are whole nanoseconds: since the Unix epoch if the name has `unix`, of CLOCK_MONOTONIC if it has `monotonic`.
  `to_timestamp_nanos(start_time_unix_nano)` shows a date.
  If the wall clock was set during a run, times continue without the step; `losses` lists it.
- Ids are bytes, shown as lower-case hex. Compare them with `span_id = X'00f067aa0ba902b7'`, or as text with
  `encode(span_id, 'hex') = '00f067aa0ba902b7'`.
- A `sum` of integers is right, or an error if it exceeds 64 bits: `sum(CAST(weight_nanos AS DECIMAL(38, 0)))` has more room. `avg`
  is a floating-point number. `+`, `-` and `*` of integers wrap, and so does a `sum` of decimals above 38 digits, which no sum of 64-bit
  numbers reaches.
- `--format json` writes a row as an object. If two columns have one name, as in `SELECT *` of a join, the second is `name_2`. NaN and infinities are strings.
- Attributes are maps of text to text: `attributes['http.route']`, a number with `CAST(attributes['retries'] AS BIGINT)`. The
  columns that end in `_json` keep the types.
- With several recordings every table has a first column `recording` (`r7`), and numbers such as `span_row` or `stack_id` count
  within one recording only. The tables of one recording are also available as `r7.spans`.
";

/// The page `docs/formats/sql-schema.md`.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Tables\n");
    for table in documentation() {
        let columns = table.columns.iter().map(|it| (it.name, shown_type(it), it.about));
        section(&mut page, table.name, table.about, columns);
    }
    page.push_str("\n## SQL views\n");
    for view in VIEWS {
        let about = format!("{} The columns of `samples`, then:", view.about);
        section(&mut page, view.name, &about, view.columns.iter().map(|&(name, kind, about)| (name, format!("{kind}, NULL"), about)));
    }
    page.push_str("\n## Questions\n");
    for (question, statement) in EXAMPLES {
        page.push_str(&format!("\n{question}\n\n```sql\n{statement}\n```\n"));
    }
    page
}

fn shown_type(column: &ColumnDocumentation) -> String {
    format!("{}{}", column.sql_type, if column.nullable { ", NULL" } else { "" })
}

fn section<'a>(page: &mut String, name: &str, about: &str, columns: impl Iterator<Item = (&'a str, String, &'a str)>) {
    page.push_str(&format!("\n### {name}\n\n{about}\n\n| column | type | |\n|---|---|---|\n"));
    for (name, kind, about) in columns {
        page.push_str(&format!("| `{name}` | {kind} | {} |\n", about.replace('|', "\\|")));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_of_the_schema_is_what_the_code_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/sql-schema.md");
        if std::env::var_os("LONGPOLE_UPDATE_DOCS").is_some() {
            std::fs::write(path, super::markdown()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == super::markdown(),
            "docs/formats/sql-schema.md is stale; write it with: LONGPOLE_UPDATE_DOCS=1 cargo test -p longpole-query schema"
        );
    }
}
