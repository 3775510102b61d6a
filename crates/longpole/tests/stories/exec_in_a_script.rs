//! Story: a script wants one span around a command, as it had from otel-cli.
//! Guarantees: the status is the command's, `TRACEPARENT` comes in and goes on, the span says what ran and how it ended and is sent
//! by either protocol; without an endpoint nothing is different at all, and a dead endpoint costs a line and no hang.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Sandbox, json, longpole};

/// The spans that a run of this command leaves, as the view of the first that is not the run.
fn span_of_run(sandbox: &Sandbox, exec: &[&str], env: &[(&str, &str)]) -> (Option<i32>, Value) {
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    run.args(["run", "--no-profile", "--summary", "none", "--", env!("CARGO_BIN_EXE_longpole"), "exec"]).args(exec);
    let status = run.envs(env.iter().copied()).status().unwrap();
    (status.code(), json(longpole(&store).args(["span", "s2", "--format", "json"])))
}

#[test]
fn a_command_is_a_span_and_keeps_its_status() {
    for protocol in ["grpc", "http/protobuf"] {
        let sandbox = Sandbox::new();
        let out = sandbox.path("traceparent");
        let script = format!("printf %s \"$TRACEPARENT {{{{traceparent}}}}\" > {}; exit 3", out.display());
        let (status, span) = span_of_run(
            &sandbox,
            &["-s", "shop", "-n", "step", "-k", "producer", "-a", "attempt=2,who=me", "--", "sh", "-c", &script],
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)],
        );
        assert_eq!(status, Some(3), "{protocol}");
        assert_eq!((&span["service"], &span["name"], &span["kind"]), (&"shop".into(), &"step".into(), &"producer".into()), "{protocol}");
        assert_eq!(span["status"]["message"], "exit status 3");
        let value = |key: &str| span["attributes"].as_array().unwrap().iter().find(|a| a["key"] == key).map(|a| a["value"].clone());
        assert_eq!((value("attempt"), value("who"), value("process.exit.code")), (Some(2.into()), Some("me".into()), Some(3.into())));
        assert_eq!(span["parent"]["edge"], "declared", "its parent is the run: {span}");
        let seen = std::fs::read_to_string(&out).unwrap();
        let own = format!("00-{}-{}-01", span["trace_id"].as_str().unwrap(), span["span_id"].as_str().unwrap());
        assert_eq!(seen, format!("{own} {own}"), "the command and its arguments have the span as parent");
    }
}

#[test]
fn without_an_endpoint_only_the_command_runs() {
    let sandbox = Sandbox::new();
    let exec = |argv: &[&str]| longpole(&sandbox.path("store")).args(["exec", "-n", "x", "--"]).args(argv).output().unwrap();
    let out = exec(&["sh", "-c", "echo \"[$TRACEPARENT]\"; exit 9"]);
    assert_eq!((out.status.code(), &*out.stdout, &*out.stderr), (Some(9), &b"[]\n"[..], &b""[..]));
    assert_eq!(exec(&["no-such-command-anywhere"]).status.code(), Some(127));
    assert!(!sandbox.path("store").exists(), "it opened a store");
}

#[test]
fn a_dead_endpoint_is_reported_without_waiting() {
    let sandbox = Sandbox::new();
    let begin = Instant::now();
    let out = longpole(&sandbox.path("store"))
        .args(["exec", "--", "sh", "-c", "exit 4"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&out.stderr).contains("the span was not sent"), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(begin.elapsed() < Duration::from_secs(10), "it hung on a dead endpoint");
}

#[test]
fn an_unsampled_parent_has_no_child_span() {
    let sandbox = Sandbox::new();
    let out = longpole(&sandbox.path("store"))
        .args(["exec", "--", "sh", "-c", "echo $TRACEPARENT"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .env("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
        .output()
        .unwrap();
    let seen = String::from_utf8(out.stdout).unwrap();
    assert!(seen.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && seen.ends_with("-00\n"), "{seen}");
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}
