use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use longpole_model::stack::{Frame, Location, LocationId, LocationKind, Mapping, MappingId, Stack, StackId};
use longpole_model::time::{ClockAnchor, Monotonic, TimeRange, Timestamp};
use longpole_model::{
    AttributeValue, CaptureMode, Clock, ContextRecord, CpuSlice, CurrentSpan, Evidence, Exit, Recording, Resource, Run, Sample, SampleLink,
    Span, SpanId, SpanKind, Status, StatusCode, Thread, VirtOffset,
};
use longpole_store::{Assembler, Store, SummaryRow};

use super::*;
use crate::error::QueryErrorKind;
use crate::schema::EXAMPLES;

/// A store of one test, removed with all that is in it when the test is over. Its path holds what URLs and patterns mind.
struct Stored {
    root: PathBuf,
    store: Store,
}

impl Stored {
    fn new(recordings: &[Recording]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("longpole query [x]* 100% {}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let store = Store::open(&root).unwrap();
        for recording in recordings {
            let writer = store.create(&recording.run).unwrap();
            writer.write_segments(recording, &SummaryRow::of_recording(recording, None)).unwrap();
        }
        Stored { root, store }
    }

    /// The recordings, the oldest first.
    fn all(&self) -> Vec<StoredRecording> {
        let mut all = self.store.list().unwrap().recordings;
        all.reverse();
        all
    }

    fn ask(&self, statement: &str) -> Result<SqlResult, QueryError> {
        sql(&self.all(), statement, &Limits::default())
    }

    /// Rows as lines, cells between bars.
    fn check(&self, statement: &str, expected: &[&str]) {
        let result = self.ask(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert_eq!(lines(&result), expected, "{statement}");
    }

    fn refused(&self, statement: &str, expected: &str) {
        let error = self.ask(statement).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (expected, QueryErrorKind::Usage), "{statement}");
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn lines(result: &SqlResult) -> Vec<String> {
    let line = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    result.rows.iter().map(line).collect()
}

fn span(id: u8, parent: u8, name: &str, start: i64, end: i64) -> Span {
    let span_id = |number: u8| SpanId::new([0, 0, 0, 0, 0, 0, 0xab, number]).filter(|_| number > 0);
    let mut resource = Resource::default();
    resource.attributes.push("service.name", AttributeValue::Str("shop".into()));
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap();
    let range = TimeRange { start: Timestamp(start), end: Timestamp(end) };
    let mut span = Span {
        parent_span_id: span_id(parent),
        flags: 1,
        kind: SpanKind::Internal,
        resource: Arc::new(resource),
        pid: Some(7),
        ..Span::new(trace_id, span_id(id).unwrap(), name, range)
    };
    span.attributes.push("http.route", AttributeValue::Str(format!("/{name}").into()));
    span.attributes.push("retries", AttributeValue::Int(i64::from(id)));
    span
}

/// A run of three spans: the root with two children; two samples in the second child, one in none.
fn shop() -> Recording {
    let run = Run {
        command: vec!["shop".into(), "--serve".into()],
        working_directory: "/src".into(),
        host: "host".into(),
        cpus: 2,
        version: "0.1.0".into(),
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap(),
        root_span_id: "00f067aa0ba902b7".parse().unwrap(),
        root_pid: Some(7),
        start: Timestamp(1_000),
        end: Some(Timestamp(9_000)),
        exit: Some(Exit::Code(0)),
        rate_hz: 999,
        mode: CaptureMode::User { why_not_kernel: String::new() },
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    };
    let mut recording = Assembler::new(run).finish();
    let mut failed = span(3, 1, "verify", 3_000, 8_000);
    failed.status = Status { code: StatusCode::Error, message: "too slow".into() };
    recording.spans = vec![failed.clone(), span(1, 0, "GET", 1_000, 9_000), span(2, 1, "auth", 1_500, 2_500)];
    recording.clock = Clock::new(vec![ClockAnchor { monotonic: Monotonic(0), unix: Timestamp(1_000), bracket_nanos: 1 }]);
    recording.threads = vec![Thread { pid: 7, tid: 7, name: "main".into(), start: Monotonic(0), end: None, totals: None, ident: None }];
    let slice = CpuSlice { pid: 7, tid: 7, start: Monotonic(100), end: Monotonic(300), preempted: false };
    recording.cpu_slices = vec![slice];
    recording.mappings = vec![Mapping { id: MappingId(0), path: "/bin/shop".into(), build_id: vec![0xab, 0xcd] }];
    let frame = |function: &str| Frame { function: function.into(), file: "/src/main.rs".into(), line: 3, reason: None };
    recording.locations = vec![
        Location {
            id: LocationId(0),
            kind: LocationKind::Code { mapping: MappingId(0), address: VirtOffset(0xffff_ffff_ff60_0000) },
            frames: vec![frame("hash_block"), frame("verify_all")],
        },
        Location {
            id: LocationId(1),
            kind: LocationKind::Code { mapping: MappingId(0), address: VirtOffset(16) },
            frames: vec![frame("main")],
        },
    ];
    recording.stacks = vec![Stack { id: StackId(0), locations: vec![LocationId(0), LocationId(1)] }];
    let sample = |time| Sample {
        time: Monotonic(time),
        pid: 7,
        tid: 7,
        cpu: 0,
        stack: StackId(0),
        weight_nanos: 1_000_000,
        context: ContextRecord::Absent,
    };
    recording.samples = vec![sample(2_500), sample(3_500), sample(9_500)];
    let linked = SampleLink { span: Some((failed.trace_id, failed.span_id)), evidence: Evidence::Record };
    recording.sample_links = vec![linked, linked, SampleLink { span: None, evidence: Evidence::Ambiguous { candidates: 2 } }];
    recording
}

#[test]
fn values_come_plain_and_ids_as_hex() {
    let stored = Stored::new(&[shop()]);
    let result = stored
        .ask("SELECT span_row, parent_row, trace_id, span_id, name, duration_nanos, duration_nanos / 2.0 AS half, isnan(0.5) AS odd FROM spans")
        .unwrap();
    let kinds: Vec<String> = result.columns.iter().map(|column| format!("{} {}", column.name, column.kind)).collect();
    assert_eq!(
        kinds,
        ["span_row int", "parent_row int", "trace_id bytes", "span_id bytes", "name text", "duration_nanos int", "half float", "odd bool"]
    );
    assert_eq!(
        lines(&result),
        [
            "0 | NULL | 4bf92f3577b34da6a3ce929d0e0e4736 | 000000000000ab01 | GET | 8000 | 4000 | false",
            "1 | 0 | 4bf92f3577b34da6a3ce929d0e0e4736 | 000000000000ab02 | auth | 1000 | 500 | false",
            "2 | 0 | 4bf92f3577b34da6a3ce929d0e0e4736 | 000000000000ab03 | verify | 5000 | 2500 | false",
        ]
    );
    assert!(!result.truncated);
    stored.check("SELECT command, mode, exit_code FROM runs", &[r#"["shop", "--serve"] | user | 0"#]);
    stored.check("SELECT address, build_id FROM locations JOIN mappings USING (mapping_id)", &["18446744073699065856 | abcd", "16 | abcd"]);
    stored.check("SELECT attributes FROM spans WHERE name = 'auth'", &[r#"{http.route: "/auth", retries: "2"}"#]);
    stored.check("SELECT named_struct('a', 1, 'b', [1.5, NULL])", &["{a: 1, b: [1.5, NULL]}"]);
    stored.check("SELECT to_timestamp_nanos(start_time_unix_nano) FROM runs", &["1970-01-01T00:00:00.000001"]);
    stored.check("SELECT arrow_cast('x', 'Dictionary(Int32, Utf8)') AS d, CAST(1.25 AS DECIMAL(5, 2)) AS m", &["x | 1.25"]);
    stored.check("WITH slow AS (SELECT * FROM spans WHERE duration_nanos > 2000) SELECT count(*) FROM slow", &["2"]);
    stored.check("SELECT value FROM generate_series(1, 2)", &["1", "2"]);
    stored.check("SELECT round(1.5), upper('a'), regexp_like('abc', 'b.')", &["2 | A | true"]);
}

#[test]
fn ids_and_attributes_can_be_compared() {
    let stored = Stored::new(&[shop()]);
    stored.check("SELECT name FROM spans WHERE span_id = X'000000000000ab02'", &["auth"]);
    stored.check("SELECT name FROM spans WHERE X'000000000000AB02' = span_id", &["auth"]);
    stored.check("SELECT name FROM spans WHERE span_id IN (X'000000000000ab02', X'000000000000ab03') ORDER BY name", &["auth", "verify"]);
    stored.check("SELECT count(*) FROM spans WHERE trace_id = X'4bf92f3577b34da6a3ce929d0e0e4736'", &["3"]);
    stored.check("SELECT count(*) FROM spans WHERE trace_id = X'00000000000000000000000000000001'", &["0"]);
    stored.check("SELECT name FROM spans WHERE encode(span_id, 'hex') = '000000000000ab02'", &["auth"]);
    stored.check("SELECT c.name FROM spans c JOIN spans p ON p.span_id = c.parent_span_id ORDER BY 1", &["auth", "verify"]);
    stored.check("SELECT name FROM spans WHERE attributes['http.route'] = '/verify'", &["verify"]);
    stored.check("SELECT name FROM spans WHERE CAST(attributes['retries'] AS BIGINT) > 2", &["verify"]);
    stored.check("SELECT attributes['none'] FROM spans LIMIT 1", &["NULL"]);
}

#[test]
fn samples_are_joined_to_their_spans() {
    let stored = Stored::new(&[shop()]);
    stored.check(
        "SELECT time_unix_nano, thread_name, service_name, span_name, span_row, evidence, candidates FROM span_samples ORDER BY 1",
        &[
            "3500 | main | shop | verify | 2 | record | NULL",
            "4500 | main | shop | verify | 2 | record | NULL",
            "10500 | main | NULL | NULL | NULL | ambiguous | 2",
        ],
    );
}

#[test]
fn the_questions_of_the_documentation_are_answered() {
    let stored = Stored::new(&[shop()]);
    let several = Stored::new(&[shop(), shop()]);
    for (question, statement) in EXAMPLES {
        stored.ask(statement).unwrap_or_else(|error| panic!("{question} {error}"));
        several.ask(statement).unwrap_or_else(|error| panic!("over several recordings: {question} {error}"));
    }
    stored.check(EXAMPLES[0].1, &["shop | verify | 2 | 2", "NULL | NULL | 1 | 1"]);
    stored.check(EXAMPLES[1].1, &["hash_block | 2"]);
    stored.check(EXAMPLES[3].1, &["shop | verify | too slow | /verify"]);
    stored
        .check(&EXAMPLES[4].1.replace("00f067aa0ba902b7", "000000000000ab01"), &["0 | GET | 8000", "1 | auth | 1000", "1 | verify | 5000"]);
    stored.check(EXAMPLES[6].1, &["7 | 7 | main | 0.0002"]);
}

#[test]
fn a_sample_is_held_against_the_journal_of_its_thread() {
    let mut recording = shop();
    let verify = recording.spans.iter().find(|span| span.name.as_str() == "verify").map(|span| (span.trace_id, span.span_id));
    let stretch = |start, end, span| CurrentSpan { pid: 7, tid: 7, start: Monotonic(start), end: Monotonic(end), span, is_sent: false };
    recording.current_spans = vec![stretch(1_000, 2_000, None), stretch(2_000, 3_000, verify), stretch(3_000, 9_000, None)];
    let statement =
        "SELECT time_monotonic_nano, journal_span_id = span_id, current_start_time_monotonic_nano FROM journal_samples ORDER BY 1";
    Stored::new(&[recording.clone()]).check(statement, &["2500 | true | 2000", "3500 | NULL | 3000"]);
    // Beside one of a time when there were no journals.
    let several = Stored::new(&[recording, shop()]);
    let segments = several.root.join("recordings/r2/segments");
    std::fs::remove_file(segments.join("current_spans.parquet")).unwrap();
    let list = std::fs::read_to_string(segments.join("checksums")).unwrap();
    let others = |line: &&str| !line.ends_with("current_spans.parquet\n") && !line.ends_with("end\n");
    let list: String = list.split_inclusive('\n').filter(others).collect();
    std::fs::write(segments.join("checksums"), format!("{list}{:08x} end\n", crc32c::crc32c(list.as_bytes()))).unwrap();
    several.check("SELECT recording, count(*) FROM journal_samples GROUP BY recording", &["r1 | 2"]);
    several.check("SELECT recording, count(*) FROM current_spans GROUP BY recording", &["r1 | 3"]);
    several.check("SELECT count(*) FROM samples", &["6"]);
}

#[test]
fn several_recordings_have_a_column_that_tells_them_apart() {
    let mut other = shop();
    other.spans.truncate(1);
    let stored = Stored::new(&[shop(), other]);
    stored.check("SELECT recording, count(*) FROM spans GROUP BY recording ORDER BY recording", &["r1 | 3", "r2 | 1"]);
    stored.check("SELECT recording, count(span_row) FROM span_samples GROUP BY 1 ORDER BY 1", &["r1 | 2", "r2 | 2"]);
    stored.check("SELECT count(*) FROM r2.spans", &["1"]);
    stored.check("SELECT name FROM spans WHERE recording = 'r2' AND span_id = X'000000000000ab03'", &["verify"]);
    stored.refused("SELECT recording FROM r2.losses", "find the column `recording`; columns: kind, count, detail");
}

#[test]
fn tables_can_be_listed_and_described() {
    let stored = Stored::new(&[shop()]);
    let result = stored.ask("SHOW TABLES").unwrap();
    assert!(lines(&result).iter().any(|line| line.contains("span_samples")), "{result:?}");
    let result = stored.ask("DESCRIBE losses").unwrap();
    assert_eq!(lines(&result).len(), 3, "{result:?}");
    let result = stored.ask("EXPLAIN SELECT name FROM spans WHERE trace_id = X'4bf92f3577b34da6a3ce929d0e0e4736'").unwrap();
    assert!(lines(&result).join("\n").contains("DataSourceExec: file_groups="), "the plan is a scan of a file: {result:?}");
    stored.ask("EXPLAIN ANALYZE SELECT name FROM spans").unwrap();
    stored.ask("SHOW COLUMNS FROM spans").unwrap();
    stored.ask("SELECT table_name FROM information_schema.tables").unwrap();
}

#[test]
fn documentation_and_files_have_the_same_columns() {
    let stored = Stored::new(&[shop()]);
    for table in longpole_store::tables::documentation() {
        let result = stored.ask(&format!("SELECT * FROM {}", table.name)).unwrap();
        let found: Vec<&str> = result.columns.iter().map(|column| column.name.as_str()).collect();
        let documented: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(found, documented, "{}", table.name);
    }
    let view = stored.ask("SELECT * FROM span_samples LIMIT 0").unwrap();
    let page = crate::schema::markdown();
    let documented = page.split("### span_samples").nth(1).unwrap();
    let samples = stored.ask("SELECT * FROM samples LIMIT 0").unwrap().columns;
    assert_eq!(view.columns[..samples.len()], samples);
    for column in &view.columns[samples.len()..] {
        assert!(documented.contains(&format!("| `{}` | ", column.name)), "{}", column.name);
    }
}

#[test]
fn whatever_changes_or_reads_something_else_is_refused() {
    let stored = Stored::new(&[shop()]);
    let stolen = stored.root.join("stolen.csv");
    for statement in [
        "DELETE FROM spans",
        "UPDATE spans SET name = 'x'",
        "INSERT INTO spans SELECT * FROM spans",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/tmp/x.parquet'",
        "DROP TABLE spans",
        &format!("COPY spans TO '{}'", stolen.display()),
        "SET datafusion.execution.batch_size = 1",
        "RESET datafusion.execution.batch_size",
        "BEGIN",
        "EXPLAIN DELETE FROM spans",
        "EXPLAIN COPY spans TO '/tmp/longpole-stolen.csv'",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
    ] {
        let error = stored.ask(statement).unwrap_err();
        assert_eq!(error.kind(), QueryErrorKind::Usage, "{statement}: {error}");
        assert!(matches!(error, QueryError::ReadOnly { .. } | QueryError::Statement { .. }), "{statement}: {error}");
    }
    assert!(!stolen.exists());
    stored.refused(
        "DELETE\n  FROM spans WHERE name = 'a name that is rather long, longer than a line'",
        "run `DELETE FROM spans WHERE name = 'a name that is rather long, …`: recordings can only be read: SELECT, EXPLAIN, SHOW or DESCRIBE",
    );
    let file = stored.store.recording(stored.store.resolve("last").unwrap()).unwrap().directory.join("segments/spans.parquet");
    for table in ["/etc/passwd", "/tmp/x.csv", &file.display().to_string()] {
        let error = stored.ask(&format!("SELECT * FROM '{table}'")).unwrap_err();
        assert!(matches!(error, QueryError::Table { .. }), "{table}: {error}");
    }
    for function in ["read_csv('/etc/passwd')", "read_parquet('/tmp/x.parquet')", "parquet_metadata('/tmp/x.parquet')"] {
        let error = stored.ask(&format!("SELECT * FROM {function}")).unwrap_err();
        assert_eq!(error.kind(), QueryErrorKind::Usage, "{function}: {error}");
    }
    stored.refused("SELECT 1; SELECT 2", "run 2 statements: one at a time");
    stored.check("SELECT 1;", &["1"]);
    stored.refused(" ", "understand the statement: it is empty");
}

#[test]
fn a_mistake_is_answered_with_what_there_is() {
    let stored = Stored::new(&[shop()]);
    stored.refused("SELECT knd FROM losses", "find the column `knd`; columns: kind, count, detail");
    stored.refused("SELECT l.knd FROM losses l", "find the column `l.knd`; columns: kind, count, detail");
    let tables = "runs, spans, span_events, span_links, samples, stacks, locations, frames, mappings, processes, process_usage, threads, \
        cpu_slices, current_spans, waits, losses, clock_anchors, span_samples, journal_samples";
    stored.refused("SELECT * FROM span", &format!("find the table `span`; tables: {tables}"));
    stored.refused("SELECT * FROM r9.spans", &format!("find the table `r9.spans`; tables: {tables}"));
    let error = stored.ask("SELEC 1").unwrap_err();
    assert!(error.to_string().starts_with("understand the statement: sql parser error: "), "{error}");
    let error = stored.ask("SELECT nosuch(name) FROM spans").unwrap_err();
    assert_eq!(error.kind(), QueryErrorKind::Usage, "{error}");
    let error = stored.ask("SELECT span_row / 0 FROM spans").unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), ("run the statement: divide by zero error", QueryErrorKind::Failed));
}

#[test]
fn a_sum_of_whole_numbers_is_right_or_an_error() {
    // What a profile of others says may be more than a column can hold.
    let mut largest = shop();
    for (sample, nanos) in largest.samples.iter_mut().zip([u64::MAX, 1 << 63, i64::MAX as u64]) {
        sample.weight_nanos = nanos;
    }
    let stored = Stored::new(&[largest]);
    let max = "9223372036854775807";
    let large = |sum: &str| {
        format!("run the statement: a sum is {sum}, beyond the 64-bit limit of {max}; add up CAST(… AS DECIMAL(38, 0)) instead")
    };
    let two = format!("(VALUES ({max}), ({max}))");
    let refused = |statement: &str, sum: &str| {
        let error = stored.ask(statement).unwrap_err();
        assert_eq!((error.to_string(), error.kind()), (large(sum), QueryErrorKind::Failed), "{statement}");
    };
    stored.check("SELECT DISTINCT weight_nanos FROM samples", &[max]);
    refused("SELECT sum(weight_nanos) FROM samples", "27670116110564327421");
    refused("SELECT pid, sum(weight_nanos) FROM samples GROUP BY pid", "27670116110564327421");
    refused("SELECT evidence, sum(weight_nanos) FROM samples GROUP BY evidence HAVING evidence = 'record'", "18446744073709551614");
    refused(&format!("SELECT sum(column1) FROM {two}"), "18446744073709551614");
    refused(&format!("SELECT sum(column1) OVER () FROM {two}"), "18446744073709551614");
    refused(
        &format!("SELECT sum(column1) OVER (ORDER BY column1 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM {two}"),
        "18446744073709551614",
    );
    refused(&format!("SELECT sum(DISTINCT column1) FROM (VALUES ({max}), ({max}), (1), (NULL))"), "9223372036854775808");
    refused(&format!("SELECT sum(DISTINCT column1), count(*) FROM (VALUES ({max}), ({max}), (1), (NULL))"), "9223372036854775808");
    let error = stored.ask(&format!("SELECT sum(-column1 - 1) FROM {two}")).unwrap_err();
    assert!(error.to_string().contains("a sum is -18446744073709551616, beyond the 64-bit limit of -9223372036854775808"), "{error}");
    let error = stored.ask("SELECT sum(address) FROM (SELECT address FROM locations UNION ALL SELECT address FROM locations)").unwrap_err();
    assert!(error.to_string().contains("beyond the 64-bit limit of 18446744073709551615"), "{error}");

    // The order in which numbers come does not matter.
    let back = format!("(VALUES ({max}), ({max}), (-{max}), (NULL))");
    stored.check(
        &format!("SELECT sum(column1), sum(column1 + 0), avg(column1) FROM {back}"),
        &[&format!("{max} | {max} | 3074457345618258400")],
    );
    stored.check(&format!("SELECT sum(CAST(column1 AS DECIMAL(38, 0))) FROM {two}"), &["18446744073709551614"]);
    stored.check("SELECT sum(address), sum(address) FILTER (WHERE address < 99) FROM locations", &["18446744073699065872 | 16"]);

    // What sums are otherwise.
    stored.check("SELECT sum(column1) FROM (VALUES (1), (2), (NULL))", &["3"]);
    stored.check("SELECT sum(column1) FROM (VALUES (CAST(NULL AS BIGINT)))", &["NULL"]);
    stored.check("SELECT sum(span_row) FROM spans WHERE false", &["NULL"]);
    stored.check("SELECT sum(column1), sum(DISTINCT column1) FROM (VALUES (1.5), (2.5), (2.5))", &["6.5 | 4"]);
    stored.check("SELECT sum(CAST(column1 AS SMALLINT)) FROM (VALUES (30000), (30000))", &["60000"]);
    stored.check("SELECT sum(value + 1), sum(value + 2) FROM generate_series(1, 10)", &["65 | 75"]);
    stored.check("SELECT sum(DISTINCT value % 3), sum(value) FROM generate_series(1, 10)", &["3 | 55"]);
    stored.check(
        "SELECT value % 3 AS k, sum(value), sum(value) FILTER (WHERE value > 20000), sum(DISTINCT value % 6)
            FROM generate_series(1, 20000) GROUP BY k ORDER BY k",
        &["0 | 66663333 | NULL | 3", "1 | 66670000 | NULL | 5", "2 | 66676667 | NULL | 7"],
    );
    stored.check(
        "SELECT count(*), sum(s) FROM (SELECT value AS v, sum(value) AS s FROM generate_series(1, 300000) GROUP BY v)",
        &["300000 | 45000150000"],
    );
    // Groups whose sums have room, though all of them together would not: 20,000 are past the point from which they are wide.
    stored.check(
        &format!(
            "SELECT count(*), min(s), max(s) FROM (SELECT value AS k, sum({max} - 20000 + value - 1), sum(CASE WHEN value < 9000 THEN 1 ELSE
                {max} - 20000 + value END) AS s FROM generate_series(1, 20000) GROUP BY k)"
        ),
        &[&format!("20000 | 1 | {max}")],
    );
    let sliding = "OVER (ORDER BY value ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    stored.check(
        &format!(
            "SELECT sum(value) {sliding}, sum(DISTINCT value / 2) {sliding}, sum(value) OVER (ORDER BY value) FROM generate_series(1, 4)"
        ),
        &["1 | 0 | 1", "3 | 1 | 3", "5 | 1 | 6", "7 | 3 | 10"],
    );
}

#[test]
fn rows_memory_and_time_have_limits() {
    let stored = Stored::new(&[shop()]);
    let all = stored.all();
    let ask = |statement: &str, limits: &Limits| sql(&all, statement, limits);

    let few = Limits { rows: 2, ..Limits::default() };
    let result = ask("SELECT name FROM spans ORDER BY name DESC", &few).unwrap();
    assert_eq!((lines(&result), result.truncated), (vec!["verify".to_owned(), "auth".to_owned()], true));
    let result = ask("SELECT name FROM spans LIMIT 2", &few).unwrap();
    assert!(!result.truncated);

    let small = Limits { memory_bytes: 8 << 20, ..Limits::default() };
    let sorted = "SELECT count(*) FROM (SELECT DISTINCT a.value, repeat('x', 100) || a.value FROM generate_series(1, 1000000) a)";
    let error = ask(sorted, &small).unwrap_err();
    // What else the process does counts as well, where it is not the statement alone that runs in it.
    let one_of = |error: &QueryError, own: &str| {
        let text = error.to_string();
        assert!(text == own || text == "answer within 16 MiB of memory in all", "{text}");
        assert_eq!(error.kind(), QueryErrorKind::Limit);
    };
    one_of(&error, "answer within 8 MiB of memory for sorts, joins and aggregates");
    let error = ask("SELECT repeat('x', 1000000) FROM generate_series(1, 100)", &small).unwrap_err();
    assert_eq!(error.kind(), QueryErrorKind::Limit, "{error}");
    one_of(&ask("SELECT repeat('x', 10000000)", &small).unwrap_err(), "answer within 8 MiB of memory for its rows");
    let few_values = Limits { result_bytes: 1 << 20, ..Limits::default() };
    let error = ask("SELECT repeat('x', 2000000)", &few_values).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), ("answer within 1 MiB of values", QueryErrorKind::Limit));

    // Loops that would take hours and need no memory: only the limit ends them.
    let short = Limits { timeout: Duration::from_millis(300), ..Limits::default() };
    let endless = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, generate_series(1, 3000) c
        WHERE sin(a.value * b.value * c.value) > 2";
    let error = ask(endless, &short).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), ("answer within 0.3 s", QueryErrorKind::Limit));
}

#[test]
fn an_async_program_can_call_it() {
    let stored = Stored::new(&[shop()]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let result = runtime.block_on(async { stored.ask("SELECT count(*) FROM spans") });
    assert_eq!(lines(&result.unwrap()), ["3"]);
}

#[test]
fn a_recording_that_is_not_sealed_or_is_damaged_is_an_error() {
    let stored = Stored::new(&[shop()]);
    let writer = stored.store.create(&shop().run).unwrap();
    let error = stored.ask("SELECT 1").unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), ("read the recording r2: it is not sealed", QueryErrorKind::Failed));
    writer.discard().unwrap();

    let spans: &Path = &stored.all()[0].directory.join("segments/spans.parquet");
    std::fs::write(spans, b"PAR1 and nothing that follows PAR1").unwrap();
    let error = stored.ask("SELECT * FROM spans").unwrap_err();
    assert_eq!(error.kind(), QueryErrorKind::Failed, "{error}");
    std::fs::remove_file(spans).unwrap();
    let error = stored.ask("SELECT * FROM spans").unwrap_err();
    assert!(error.kind() == QueryErrorKind::Failed && error.to_string().contains("spans.parquet"), "{error}");
}
