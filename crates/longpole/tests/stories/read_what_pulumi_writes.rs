//! Story: somebody has what Pulumi itself wrote or sent, without longpole around it, on a machine without Pulumi.
//! Guarantees: each of its files, and each of the streams that it sends to a tracing server, comes in whole: as many spans as Pulumi made,
//! of the services that made them; what it says twice is one span, and is counted; both of its tracers together are one tree. What was
//! written, and how many spans are in it: fixtures/pulumi/README.md. A slow resource is the first pole, with what a run without it gains; and so it is of every file that the answer was exported to.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Sandbox, json, longpole, role};

/// Names what the program replays.
const REPLAY: &str = "LONGPOLE_STORY_REPLAY";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pulumi").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The messages of a capture, one behind the other: time of arrival, length, message.
fn messages(name: &str) -> Vec<Vec<u8>> {
    let (bytes, mut at, mut out) = (bytes(name), 0, Vec::new());
    while at < bytes.len() {
        let length = u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        out.push(bytes[at + 12..at + 12 + length].to_vec());
        at += 12 + length;
    }
    out
}

/// The program: what Pulumi sent once is sent again, each connection and each request as it was.
#[test]
fn replay() {
    let Ok(what) = std::env::var(REPLAY) else { return };
    let variable = |name: &str| std::env::var(name).unwrap();
    let endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    for file in what.split(' ') {
        if file.contains("appdash") {
            let mut stream = TcpStream::connect(variable("PULUMI_OPTION_TRACING").trim_start_matches("tcp://")).unwrap();
            stream.write_all(&bytes(file)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            // It has read all when it hangs up.
            stream.read_to_end(&mut Vec::new()).unwrap();
            continue;
        }
        let (path, kind) = match file {
            "thrift.bin" => ("/api/v1/spans", "application/x-thrift"),
            _ => ("/v1/traces", "application/x-protobuf"),
        };
        for message in messages(file) {
            let answer = ureq::post(format!("{endpoint}{path}")).header("content-type", kind).send(&message[..]).unwrap();
            assert!(answer.status().is_success(), "{}", answer.status());
        }
    }
}

/// The recording of a command that sends these captures.
fn replayed(captures: &str) -> (Value, BTreeMap<String, u64>) {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store)
        .args(["run", "--no-profile", "--summary", "none", "--"])
        .args(role("read_what_pulumi_writes::replay"))
        .env(REPLAY, captures)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    (json(longpole(&store).args(["show", "--format", "json"])), services(&store))
}

/// Spans of each service in the last recording.
fn services(store: &Path) -> BTreeMap<String, u64> {
    let answer = json(longpole(store).args(["sql", "--format", "json", "SELECT service_name AS s, count(*) AS n FROM spans GROUP BY 1"]));
    answer["rows"].as_array().unwrap().iter().map(|row| (row["s"].as_str().unwrap().to_owned(), row["n"].as_u64().unwrap())).collect()
}

fn quality<'a>(summary: &'a Value, code: &str) -> Option<&'a Value> {
    summary["quality"].as_array().unwrap().iter().find(|note| note["code"] == code)
}

/// How many spans there are, and how many times one of them was repeated.
#[track_caller]
fn assert_spans(summary: &Value, spans: u64, again: u64) {
    let said_again = quality(summary, "spans_duplicate").map_or(0, |note| note["count"].as_u64().unwrap_or(1));
    assert_eq!((summary["spans"].as_u64(), said_again), (Some(spans), again), "{}", summary["quality"]);
    for code in ["requests_refused", "spans_invalid", "file_cut", "text_replaced"] {
        assert_eq!(quality(summary, code), None);
    }
}

/// What OpenTelemetry has of two resources.
fn otel_services() -> BTreeMap<String, u64> {
    [("pulumi-cli", 101), ("pulumi-language-yaml", 36), ("modern", 11), ("pulumi-resource-provider", 11)]
        .map(|(service, spans)| (service.to_owned(), spans))
        .into()
}

#[test]
fn pulumis_files_are_imported_completely() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let import = |name: &str| json(longpole(&store).args(["import", "--format", "json"]).arg(fixture(name)))[0].clone();
    assert_spans(&import("traces.json"), 159, 0);
    assert_eq!(services(&store), otel_services());
    assert_spans(&import("up.trace"), 84, 0);
}

#[test]
fn spans_whose_end_is_missing_are_counted() {
    let mut file = bytes("up.trace");
    // Spans whose end is in an odd nanosecond lose it. The file holds each span several times.
    let (key, mut at) = (&b"Span.End"[..], 0);
    while let Some(next) = file[at..].windows(key.len()).position(|window| window == key) {
        at += next;
        // Behind the key: the number of the field, the length of the text, the text.
        let end = at + key.len() + 2 + usize::from(file[at + key.len() + 1]);
        if file[end - 2] % 2 == 1 {
            file[at..at + key.len()].copy_from_slice(b"Span.Enx");
        }
        at += key.len();
    }
    let sandbox = Sandbox::new();
    let path = sandbox.path("cut.trace");
    std::fs::write(&path, file).unwrap();
    let summary = json(longpole(&sandbox.path("store")).args(["import", "--format", "json"]).arg(&path))[0].clone();
    assert_eq!(summary["spans"], 84, "{}", summary["quality"]);
    let count = quality(&summary, "spans_unfinished").and_then(|note| note["count"].as_u64()).unwrap_or_default();
    assert!((20..64).contains(&count), "{}", summary["quality"]);
}

#[test]
fn pulumis_zipkin_requests_are_received_completely() {
    let (summary, _) = replayed("thrift.bin");
    assert_eq!(messages("thrift.bin").len(), 81 + 1);
    assert_spans(&summary, 81, 1);
}

#[test]
fn pulumis_appdash_streams_are_received_completely() {
    let files: Vec<String> = (0..7).map(|process| format!("appdash-{process}.bin")).collect();
    let (summary, _) = replayed(&files.join(" "));
    assert_spans(&summary, 84, 1);
}

#[test]
fn pulumis_otlp_requests_are_received_completely() {
    let (summary, services) = replayed("otlp.bin");
    assert_spans(&summary, 159, 0);
    assert_eq!(services, otel_services());
}

#[test]
fn pulumis_two_tracers_make_one_tree() {
    for captures in ["both-otlp.bin both-appdash.bin", "both-appdash.bin both-otlp.bin"] {
        let (summary, services) = replayed(captures);
        assert_spans(&summary, 159, 1);
        assert_eq!(services, otel_services(), "a call stands there twice");
        let joined = quality(&summary, "legacy_joined").expect("nothing was joined");
        assert_eq!(joined["count"], 46, "{joined}");
        let orphans = quality(&summary, "orphans").map(|note| &note["count"]);
        assert_eq!(orphans, Some(&1.into()), "the command itself, whose caller is not here, and nobody else: {summary}");
    }
}

/// Deployments with one resource that takes 1.5 s among 31, and how much earlier they end without it: the median of five pairs of runs.
const SLOW: [(&str, f64); 3] = [("serial", 1.51), ("middle", 1.40), ("replace", 1.39)];

fn slow(name: &str) -> PathBuf {
    fixture("slow").join(name)
}

/// The poles of the last recording.
fn poles(store: &Path) -> Value {
    json(longpole(store).args(["poles", "last", "--limit", "0", "--format", "json"]))["poles"].clone()
}

/// Whether the first pole promises what was gained: within a tenth, and in a range no wider than half of itself.
fn assert_saves(what: &str, pole: &Value, gain: f64) {
    let [low, high] = [0, 1].map(|end| pole["saves_if_zero_nanos"][end].as_f64().unwrap() / 1e9);
    assert!(low <= gain * 1.1 && gain * 0.9 <= high && high - low <= high / 2.0, "{what}: {low} to {high}, and {gain} was gained");
}

#[test]
fn the_slow_resource_is_first_in_each_of_pulumis_files() {
    let sandbox = Sandbox::new();
    for (shape, gain) in SLOW {
        for kind in ["up.trace", "traces.json"] {
            let (what, store) = (format!("{shape}.{kind}"), sandbox.path(&format!("{shape}-{kind}")));
            let summary = json(longpole(&store).args(["import", "--format", "json"]).arg(slow(&format!("{what}.gz"))))[0].clone();
            let poles = poles(&store);
            assert_saves(&what, &poles[0], gain);
            // The note says that calls name no resource, and what would name them.
            let unnamed = quality(&summary, "resources_unnamed");
            if kind == "up.trace" {
                assert_eq!(poles[0]["context"], "modern:index:Step slow-db", "{what}");
                assert_eq!(unnamed, None, "{what}");
            } else {
                assert_eq!((&poles[0]["count"], &poles[0]["context"]), (&1.into(), &"pulumi-plan".into()), "{what}");
                assert!(unnamed.unwrap()["detail"].as_str().unwrap().contains("--together"), "{what}");
            }
        }
    }
}

#[test]
fn both_files_of_a_deployment_are_one_answer_and_so_is_what_is_exported_of_it() {
    let sandbox = Sandbox::new();
    for (shape, gain) in [SLOW[1], SLOW[2]] {
        let store = sandbox.path(shape);
        let files = ["traces.json", "up.trace"].map(|kind| slow(&format!("{shape}-both.{kind}.gz")));
        let summary = json(longpole(&store).args(["import", "--together", "--format", "json"]).args(files));
        let expected = poles(&store);
        assert_eq!(expected[0]["context"], "modern:index:Step slow-db", "{summary}");
        assert_saves(shape, &expected[0], gain);
        for format in ["otlp-json", "otlp-protobuf", "appdash", "lpole", "zipkin", "jaeger"] {
            let (out, again) = (sandbox.path(&format!("{shape}-{format}")), sandbox.path(&format!("{shape}-{format}-store")));
            let done = longpole(&store).args(["export", "last", "--to", format, "-o"]).arg(&out).output().unwrap();
            assert!(done.status.success(), "{format}: {}", String::from_utf8_lossy(&done.stderr));
            json(longpole(&again).args(["import", "--format", "json"]).arg(&out));
            let found = poles(&again);
            if ["zipkin", "jaeger"].contains(&format) {
                // These count microseconds, and export says so.
                assert!(String::from_utf8_lossy(&done.stderr).contains("timestamps below a microsecond"), "{format}");
                let of_first = |poles: &Value| ["service", "name", "context", "count"].map(|key| poles[0][key].clone());
                assert_eq!(of_first(&found), of_first(&expected), "{format}");
                assert_saves(format, &found[0], gain);
            } else {
                assert_eq!(found, expected, "{format}");
            }
        }
    }
}
