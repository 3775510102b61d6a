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
