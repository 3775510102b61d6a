//! Story: a newcomer runs the bundled deployment under longpole and asks what to fix first.
//! Guarantees: the first pole is the operation that burns CPU by construction, its saving is what the construction says, its
//! function is named, and what would be waited for in its place; nearly all samples of that function carry the right span by record, although its task migrates between
//! the threads of its runtime at each await, and none carries a wrong one as exact. The same holds for a plain user without capabilities.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, example, json, longpole, plain_user};

/// Least share of the burning function's samples that must name the right span by record.
const RECORD_SHARE_MIN: f64 = 0.99;

/// How far a saving may lie from the construction's: what the machine does beside the deployment.
const SAVING_TOLERANCE: f64 = 0.15;

/// Binaries of the example; all of them lie beside each other.
const BINARIES: [&str; 4] = ["deploy", "deploy-host", "provider-compute", "provider-cloud"];

#[test]
fn the_demo_names_its_true_long_pole() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--"]).arg(example("deploy")).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    check_answer(&|| longpole(&store), &String::from_utf8(run.stderr).unwrap());
}

#[test]
fn a_plain_user_gets_the_same_answer() {
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "a plain user gets the same answer") else { return };
    let store = sandbox.path("store");
    for binary in BINARIES {
        user.install(&example(binary));
    }
    let run = user.with_store(&store).args(["run", "--"]).arg(user.install(&example("deploy"))).stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{answer}");
    let summary = json(user.with_store(&store).args(["show", "--format", "json"]));
    assert_eq!(summary["mode"], "user", "a plain user is sampled in mode `user`: {answer}");
    check_answer(&|| user.with_store(&store), &answer);
}

/// The construction, as the example itself states it: the pole that saves most first.
fn expected() -> Value {
    json(Command::new(example("deploy")).arg("--expected"))
}

fn check_answer(longpole: &dyn Fn() -> Command, answer: &str) {
    let expected = expected();
    let truth = &expected[0];
    let (name, function) = (truth["name"].as_str().unwrap(), truth["function"].as_str().unwrap());

    let view = json(longpole().args(["poles", "--limit", "0", "--format", "json"]));
    let pole = &view["poles"][0];
    let called = [pole["name"].as_str(), pole["context"].as_str()];
    assert!(
        called.into_iter().flatten().any(|text| text.contains(name)),
        "the first pole is {called:?}, and by construction it is {name}:\n{answer}"
    );
    assert!(pole["reason"]["text"].as_str().unwrap().contains(function), "the reason does not name {function}: {}", pole["reason"]);
    let lines: Vec<&str> = answer.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("p1")).unwrap_or_else(|| panic!("no first pole:\n{answer}"));
    assert!(lines[first + 1].contains(function), "the answer does not name {function} below the first pole:\n{answer}");
    assert_eq!(pole["evidence"], "declared", "the deployment declares what waits for what");
    let saves = [pole["saves_if_zero_nanos"][0].as_f64().unwrap(), pole["saves_if_zero_nanos"][1].as_f64().unwrap()];
    let right = truth["saves_nanos"].as_f64().unwrap();
    assert!(saves.iter().all(|s| (s - right).abs() <= right * SAVING_TOLERANCE), "it saves {saves:?}, by construction {right}:\n{answer}");
    for other in expected.as_array().unwrap() {
        let name = other["name"].as_str().unwrap();
        let known =
            view["poles"].as_array().unwrap().iter().any(|p| p["name"].as_str().is_some_and(|n| n.contains(name)) || p["context"] == name);
        assert!(known, "{name} is a pole by construction and is not listed:\n{answer}");
    }
    let limits = ["web-bundle", "certificate"].map(|pole| limit_of(&view, answer, pole));
    assert_eq!(limits, ["create database", "create load-balancer"], "by construction these are there next:\n{answer}");
    check_links(longpole, name, function);
}

/// What would end last instead of the provider's work on a resource, as JSON and answer agree.
fn limit_of(view: &Value, answer: &str, resource: &str) -> String {
    let poles = view["poles"].as_array().unwrap();
    let is_it = |pole: &&Value| pole["name"].as_str().is_some_and(|name| name.ends_with(&format!("/create {resource}")));
    let pole = poles.iter().find(is_it).unwrap_or_else(|| panic!("no pole for {resource}:\n{answer}"));
    let (name, handle) =
        (pole["limited_by"]["name"].as_str().unwrap_or_default(), pole["limited_by"]["handle"].as_str().unwrap_or_default());
    let said = format!("it cannot save more: without it, {name} ({handle}) is on the path");
    let lines: Vec<&str> = answer.lines().collect();
    let place = lines.iter().position(|line| line.starts_with(pole["handle"].as_str().unwrap())).unwrap_or_else(|| panic!("{answer}"));
    assert!(
        lines[place + 1..=place + 2].iter().any(|line| line.ends_with(&said)),
        "the answer does not say “{said}” of {resource}:\n{answer}"
    );
    // A command that is to be copied is as long as it is.
    let fits = |line: &&str| line.chars().count() <= 100 || line.contains(" --store ");
    assert!(lines.iter().all(fits), "a line is too long:\n{answer}");
    name.to_owned()
}

/// Samples of the burning function, by the span they carry.
fn check_links(longpole: &dyn Fn() -> Command, operation: &str, function: &str) {
    let query = format!(
        "SELECT s.evidence AS evidence, p.name AS name, q.name AS parent, count(*) AS n
         FROM samples s
         LEFT JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id
         LEFT JOIN spans q ON q.trace_id = p.trace_id AND q.span_id = p.parent_span_id
         WHERE s.stack_id IN (
           SELECT k.stack_id FROM (SELECT stack_id, unnest(location_ids) AS location_id FROM stacks) k
           JOIN frames f ON f.location_id = k.location_id WHERE f.function LIKE '%{function}%')
         GROUP BY s.evidence, p.name, q.name"
    );
    let rows = json(longpole().args(["sql", "--format", "json", &query]));
    let (mut all, mut right, mut wrong) = (0.0, 0.0, 0.0);
    for row in rows["rows"].as_array().unwrap() {
        let n = row["n"].as_f64().unwrap();
        all += n;
        if row["evidence"] == "record" {
            // The span of the work itself or, right below the operation, that of its provider.
            let fits = [&row["name"], &row["parent"]].iter().any(|name| name.as_str().is_some_and(|text| text.contains(operation)));
            *(if fits { &mut right } else { &mut wrong }) += n;
        }
    }
    assert!(all >= 200.0, "too few samples of {function} to say anything: {rows}");
    assert_eq!(wrong, 0.0, "samples of {function} carry a wrong span as exact: {rows}");
    assert!(right / all >= RECORD_SHARE_MIN, "only {right} of {all} samples of {function} carry the right span by record: {rows}");
}
