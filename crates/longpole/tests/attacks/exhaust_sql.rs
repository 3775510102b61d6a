//! Line 11: a statement overflows the stack, takes all memory or does not end.
//! Guarantees: every statement ends in time with an answer or with an error in words, in 4 GiB of memory; nothing is left running; and a
//! statement can neither change nor read anything but the recording.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Sandbox, binary, clean, longpole, skip};

/// What no statement may need more of, its program and its threads with it.
const ADDRESS_SPACE_BYTES: u64 = 4 << 30;

/// How long a statement may take that has 3 s, where others want the CPUs, too.
const LATEST: Duration = Duration::from_secs(60);

/// A store with a recording of one process.
fn store(sandbox: &Sandbox) -> std::path::PathBuf {
    let store = sandbox.path("store");
    assert!(longpole(&store).args(["run", "--summary", "none", "--", "true"]).status().unwrap().success());
    store
}

/// Asks in little memory, where there is `prlimit`.
fn ask(store: &Path, options: &[&str], statement: &str) -> Output {
    let is_there = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status().is_ok();
    let mut command = Command::new(if is_there { "prlimit".into() } else { binary() });
    if is_there {
        command.arg(format!("--as={ADDRESS_SPACE_BYTES}")).arg(binary());
    }
    clean(&mut command);
    command.arg("--store").arg(store).arg("sql").args(options).arg("--").arg(statement).output().unwrap()
}

/// The statement ends in words: an error, or, where it may, an answer.
fn ends_in_words(out: &Output, statement: &str) {
    let start: String = statement.chars().take(100).collect();
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(1 | 2)), "{start}: {} {words}", out.status);
    assert!(words.starts_with("longpole: failed to "), "{start}: {words}");
    for noise in ["overflowed", "panicked", "RUST_BACKTRACE", "memory allocation of"] {
        assert!(!words.contains(noise), "{start}: {words}");
    }
}

fn joined(part: &str, by: &str, count: usize) -> String {
    vec![part; count].join(by)
}

#[test]
fn deep_statements_are_refused() {
    let sandbox = Sandbox::new();
    let store = store(&sandbox);
    for deep in [
        format!("SELECT {}", joined("1", "+", 30_000)),
        format!("SELECT 1 WHERE {}", joined("1=1", " AND ", 10_000)),
        joined("SELECT 1", " UNION ALL ", 6_500),
        joined("SELECT 1", " EXCEPT ", 7_000),
        format!("SELECT 1{}", "::int".repeat(20_000)),
        format!("SELECT 1{}", " IS NULL".repeat(15_000)),
        format!("SELECT 1 FROM {}", joined("runs", ",", 10_000)),
        format!("SELECT 1 FROM runs {}", "CROSS JOIN runs ".repeat(7_000)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(15_000)),
        format!("SELECT {}'1 day'", "INTERVAL ".repeat(12_000)),
        format!("SELECT CAST(NULL AS {}INT{})", "ARRAY<".repeat(15_000), ">".repeat(15_000)),
        format!("SELECT CAST(NULL AS INT{})", "[]".repeat(30_000)),
        format!("SELECT {}1{}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("SELECT {}true", "NOT ".repeat(30_000)),
    ] {
        let out = ask(&store, &[], &deep);
        ends_in_words(&out, &deep);
    }
    let flat = format!("SELECT count(*) FROM processes WHERE pid IN ({})", joined("1", ",", 50_000));
    assert!(ask(&store, &[], &flat).status.success(), "a long list is not deep");
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn statements_that_take_memory_without_end_are_ended() {
    let sandbox = Sandbox::new();
    let store = store(&sandbox);
    let doubled: String = (1..40).map(|n| format!(", a{n} AS (SELECT x FROM a{m} UNION ALL SELECT x FROM a{m})", m = n - 1)).collect();
    let cube = |columns: usize| (0..columns).map(|n| format!("pid+{n}")).collect::<Vec<_>>().join(",");
    for statement in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT repeat('x', 5000000000)",
        "SELECT length(repeat(repeat('x', 100000), 100000))",
        "SELECT lpad('x', 2000000000, 'y')",
        "SELECT rpad('x', 2000000000, repeat('y', 1000))",
        "SELECT replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
        "SELECT array_length(range(1, 1000000000))",
        "SELECT range(1, 200000000)",
        "SELECT array_repeat(array_repeat(1, 100000), 100000)",
        "SELECT array_resize([1], 2000000000, 0)",
        "SELECT array_agg(a.value) FROM generate_series(1, 1000000000) a",
        "SELECT string_agg(a.value::text, ',') FROM generate_series(1, 1000000000) a",
        "SELECT count(DISTINCT a.value) FROM generate_series(1, 1000000000) a",
        "SELECT a.value FROM generate_series(1, 1000000000) a ORDER BY sin(a.value)",
        "SELECT max(n) FROM (SELECT a.value, count(*) AS n FROM generate_series(1, 1000000000) a GROUP BY 1)",
        "SELECT repeat('x', 1000000) FROM generate_series(1, 100000) a",
        "SELECT a.v, b.value FROM (SELECT repeat('x', 100000000) v) a, generate_series(1, 100000) b",
        "WITH RECURSIVE r AS (SELECT 'x' s UNION ALL SELECT s||s FROM r) SELECT max(length(s)) FROM r",
        "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 100000) a",
        "SELECT sum(a.value) OVER (ORDER BY sin(a.value)) FROM generate_series(1, 1000000000) a",
        &format!("WITH a0 AS (SELECT 1 x) {doubled} SELECT count(*) FROM a39"),
        &format!("SELECT 1 FROM processes GROUP BY CUBE({})", cube(30)),
        &format!("SELECT 1 FROM processes GROUP BY CUBE({})", cube(70)),
        &format!("SELECT {}", joined("repeat('x', 500000000)", "||", 100)),
    ] {
        let begun = Instant::now();
        let out = ask(&store, &["--timeout", "3s"], statement);
        assert!(begun.elapsed() < LATEST, "{statement} took {:?}", begun.elapsed());
        ends_in_words(&out, statement);
    }
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn statements_that_never_end_are_ended_in_time() {
    let sandbox = Sandbox::new();
    let store = store(&sandbox);
    for endless in [
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
        "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE sin(a.value * b.value) > 2",
        "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM generate_series(1, 100000000) a WHERE regexp_like(repeat(a.value::text, 5000), '(1+.*1+)+b')",
        "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
    ] {
        let begun = Instant::now();
        let out = ask(&store, &["--timeout", "1s"], endless);
        assert!(begun.elapsed() < LATEST, "{endless} took {:?}", begun.elapsed());
        ends_in_words(&out, endless);
    }
}

#[test]
fn a_query_stops_when_its_caller_is_gone() {
    let sandbox = Sandbox::new();
    let store = store(&sandbox);
    let endless = "SELECT count(*) FROM generate_series(1, 1000000000000)";
    let mut asking = longpole(&store).args(["sql", endless]).stderr(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", asking.id());
    let Ok(_) = std::fs::read_to_string(&children) else {
        asking.kill().unwrap();
        asking.wait().unwrap();
        return skip("a_query_stops_when_its_caller_is_gone", "the kernel lists no children");
    };
    let worker = loop {
        let listed = std::fs::read_to_string(&children).unwrap();
        if let Some(worker) = listed.split_whitespace().next() {
            break worker.to_owned();
        }
        assert!(asking.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    };
    asking.kill().unwrap();
    asking.wait().unwrap();
    // Orphans of a container may have nobody who reaps them: a zombie computes nothing.
    let lives = || std::fs::read_to_string(format!("/proc/{worker}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let begun = Instant::now();
    while lives() {
        assert!(begun.elapsed() < LATEST, "{worker} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_statement_reads_nothing_but_the_recording() {
    let sandbox = Sandbox::new();
    let store = store(&sandbox);
    let (secret, stolen) = (sandbox.path("secret.csv"), sandbox.path("stolen.csv"));
    std::fs::write(&secret, "password\nhunter2\n").unwrap();
    let (secret, target) = (secret.display(), stolen.display());
    for forbidden in [
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{secret}'"),
        format!("SELECT * FROM '{secret}'"),
        format!("SELECT * FROM \"{secret}\""),
        format!("SELECT * FROM read_csv('{secret}')"),
        format!("EXPLAIN ANALYZE SELECT * FROM '{secret}'"),
        format!("COPY runs TO '{target}'"),
        format!("COPY (SELECT 1) TO '{target}' STORED AS CSV"),
        format!("EXPLAIN ANALYZE COPY runs TO '{target}'"),
        "SET datafusion.execution.target_partitions = 1".to_owned(),
        "RESET datafusion.execution.target_partitions".to_owned(),
        "INSERT INTO runs VALUES (1)".to_owned(),
        "UPDATE runs SET version = ''".to_owned(),
        "DELETE FROM runs".to_owned(),
        "DROP TABLE runs".to_owned(),
        "DROP VIEW span_samples".to_owned(),
        "TRUNCATE TABLE runs".to_owned(),
        "CREATE TABLE t AS SELECT 1".to_owned(),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        "CREATE DATABASE d".to_owned(),
        "CREATE FUNCTION f(BIGINT) RETURNS BIGINT RETURN $1 + 1".to_owned(),
        "PREPARE p AS SELECT 1".to_owned(),
        "BEGIN TRANSACTION".to_owned(),
        "SELECT 1; SELECT 2".to_owned(),
    ] {
        let out = ask(&store, &[], &forbidden);
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{forbidden}: {said}");
        assert!(!said.contains("hunter2"), "{forbidden}: {said}");
    }
    assert!(!stolen.exists(), "a statement wrote a file");
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn what_is_removed_while_it_is_read_is_an_error_and_never_another_number() {
    const SPANS: usize = 3000;
    let sandbox = Sandbox::new();
    let (store, file) = (sandbox.path("store"), sandbox.path("spans.json"));
    let span = |number: usize| serde_json::json!({ "traceId": "07".repeat(16), "spanId": format!("{:016x}", number + 1), "name": "n" });
    let spans: Vec<_> = (0..SPANS).map(span).collect();
    std::fs::write(&file, serde_json::json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string()).unwrap();
    let mut refused = 0;
    for round in 0..60 {
        assert!(longpole(&store).arg("import").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
        let mut asking = longpole(&store);
        asking.args(["sql", "--format", "json", "SELECT count(*) AS n FROM spans"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let asking = asking.spawn().unwrap();
        // Each time a little later: somewhere between the first look at a file and the last.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(round) {
            std::thread::yield_now();
        }
        assert!(longpole(&store).args(["rm", "last"]).stdout(Stdio::null()).status().unwrap().success());
        let out = asking.wait_with_output().unwrap();
        if out.status.success() {
            let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
            assert_eq!(answer["rows"][0]["n"], SPANS, "{answer}");
        } else {
            assert!(String::from_utf8_lossy(&out.stderr).starts_with("longpole: failed to "), "{out:?}");
            refused += 1;
        }
    }
    println!("{refused} of 60 were refused");
}
