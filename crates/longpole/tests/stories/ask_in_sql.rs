//! Story: somebody has a question that no view answers, and asks in SQL.
//! Guarantees: the documented tables are there, ids read as hex, a question cannot change or read anything else, and a mistake is
//! answered with what was meant.

use crate::support::{Sandbox, json, longpole, role};

#[test]
fn a_query_is_answered_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store)
        .args(["run", "--summary", "none", "--no-profile", "--"])
        .args(role("receive_from_any_sdk::emit"))
        .env("LONGPOLE_STORY_PROTOCOL", "http/protobuf")
        .status()
        .unwrap();
    assert!(run.success());
    let ask = |query: &str| longpole(&store).args(["sql", query]).output().unwrap();
    let rows =
        json(longpole(&store).args(["sql", "--format", "json", "SELECT name, encode(span_id, 'hex') AS id FROM spans ORDER BY name"]));
    let names: Vec<&str> = rows["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["inner", "outer"], "{rows}");
    assert!(rows["rows"][0]["id"].as_str().is_some_and(|id| id.len() == 16), "{rows}");
    let beside =
        longpole(std::path::Path::new("store")).current_dir(sandbox.path("")).args(["sql", "SELECT 1 FROM spans"]).output().unwrap();
    assert!(beside.status.success(), "a relative path: {}", String::from_utf8_lossy(&beside.stderr));
    for forbidden in
        ["DELETE FROM spans", "CREATE TABLE t AS SELECT 1", "COPY spans TO '/tmp/longpole-stolen.csv'", "SELECT * FROM '/etc/passwd'"]
    {
        let out = ask(forbidden);
        assert_eq!(out.status.code(), Some(2), "{forbidden} was not refused: {}", String::from_utf8_lossy(&out.stdout));
    }
    let typo = ask("SELECT nam FROM spans");
    assert_eq!(typo.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&typo.stderr).contains("name"), "the error does not say which columns there are");
}

/// Time in a function itself, and in it with all that it calls: once for each stack, however often the function stands in it.
const OF_FUNCTIONS: &str = "
    WITH entries AS (
        SELECT stack_id, unnest(location_ids) AS location_id FROM stacks
    ), within AS (
        SELECT DISTINCT e.stack_id, f.function, f.file FROM entries e JOIN frames f ON f.location_id = e.location_id
    ), total AS (
        SELECT w.function, w.file, sum(s.weight_nanos) AS nanos FROM samples s JOIN within w ON w.stack_id = s.stack_id
        GROUP BY w.function, w.file
    ), own AS (
        SELECT f.function, f.file, sum(s.weight_nanos) AS nanos FROM samples s
        JOIN stacks k ON k.stack_id = s.stack_id
        JOIN frames f ON f.location_id = k.location_ids[1] AND f.inline_depth = 0
        GROUP BY f.function, f.file
    )
    SELECT t.function, coalesce(t.file, '') AS file, coalesce(o.nanos, 0) AS self_nanos, t.nanos AS total_nanos FROM total t
    LEFT JOIN own o ON o.function = t.function AND o.file IS NOT DISTINCT FROM t.file
    ORDER BY total_nanos DESC, t.function, file LIMIT 10000";

#[test]
fn a_function_takes_as_long_in_sql_as_in_top_and_frame() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for file in ["pprof/go-cpu.pprof", "perf/dwarf.data", "perf/frame-pointers.data", "otlp-profiles/app.otlp-profiles"] {
        let sandbox = Sandbox::new();
        let store = sandbox.path("store");
        assert!(longpole(&store).arg("import").arg(fixtures.join(file)).stdout(std::process::Stdio::null()).status().unwrap().success());
        let times = |row: &serde_json::Value| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("function"), text("file"), row["self_nanos"].as_i64().unwrap(), row["total_nanos"].as_i64().unwrap())
        };
        let sorted = |rows: &serde_json::Value| {
            let mut all: Vec<_> = rows.as_array().unwrap().iter().map(times).collect();
            all.sort();
            all
        };
        let listed = json(longpole(&store).args(["top", "--limit", "0", "--all-functions", "--format", "json"]));
        let asked = json(longpole(&store).args(["sql", "--format", "json", OF_FUNCTIONS]));
        assert!(listed["functions"].as_array().unwrap().len() > 3, "{file}: {listed}");
        assert_eq!(sorted(&asked["rows"]), sorted(&listed["functions"]), "{file}");
        for function in listed["functions"].as_array().unwrap().iter().take(5) {
            let frame = json(longpole(&store).args(["frame", function["handle"].as_str().unwrap(), "--format", "json"]));
            assert_eq!(
                (&frame["self_nanos"], &frame["total_nanos"]),
                (&function["self_nanos"], &function["total_nanos"]),
                "{file}: {function}"
            );
        }
    }
}
