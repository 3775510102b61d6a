//! Views of a small deployment, as JSON a person can check against the text above them.

use longpole_analysis::Report;
use longpole_analysis::report::{Excerpt, FlameTime};
use longpole_model::{Attribute, AttributeValue, Attributes, CaptureMode, RecorderCost, text};
use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::source_file::{Origin, SourceAccess, SourceConsent};

/// The engine creates a bundle, which computes, then a database, which waits for the bundle and then for the cloud.
const DEPLOY: &str = "
run                0..100ms
  deploy           0..100ms  engine  pid 2
    create bundle  0..40ms   aws     pid 3
    create db      40..95ms  aws     pid 3  <- create bundle
sample 1ms x30 every 1ms  pid 3 tid 3  [create bundle] main;compress@src/bundle.rs:12;hash|block@src/hash.rs:7
sample 41ms x2 every 1ms  pid 3 tid 3  [create db] main;connect@src/db.rs:3
sample 97ms x1 every 1ms  pid 9 tid 9  other
";

const MS: i64 = 1_000_000;

fn deploy() -> Report {
    Report::new(text::parse(DEPLOY).unwrap())
}

fn not_blocked() -> Value {
    json!({ "lock": 0, "queue": 0, "join": 0, "disk": 0, "network": 0, "sleep": 0, "page_fault": 0, "child": 0, "pipe": 0, "idle": 0, "other": 0 })
}

/// States by samples, in milliseconds.
fn estimated(on_cpu: i64, unaccounted: i64) -> Value {
    json!({
        "on_cpu_nanos": on_cpu * MS, "runnable_nanos": 0, "in_child_nanos": 0, "blocked_nanos": not_blocked(), "blocked_unseen_nanos": 0,
        "awaiting_nanos": 0, "remote_nanos": 0, "unaccounted_nanos": unaccounted * MS, "cpu_nanos": on_cpu * MS, "exact": false,
        "evidence": "samples",
    })
}

fn json_of(view: impl Serialize) -> Value {
    serde_json::to_value(view).unwrap()
}

fn function(handle: &str, name: &str, file: &str, line: u32, samples: u64, own: i64) -> Value {
    let total = samples as i64 * MS;
    let line_of = json!({ "line": line, "total_nanos": total, "self_nanos": own, "waited_nanos": 0 });
    json!({
        "handle": handle, "function": name, "file": file, "line": line, "runtime": null, "whose": "program", "self_nanos": own,
        "total_nanos": total, "samples": samples, "lines": if line > 0 { vec![line_of] } else { Vec::new() },
    })
}

#[test]
fn the_summary_holds_the_answer() {
    let mut summary = json_of(SummaryView::new("r7", &deploy()));
    let poles = summary["poles"].take();
    assert_eq!(
        summary,
        json!({
            "schema": "longpole.summary/1", "recording": "r7", "of": "command", "command": [], "exit": { "code": 0, "signal": null },
            "start_unix_nano": "1700000000000000000", "wall_nanos": 100 * MS, "cpu_nanos": null, "host": "", "mode": "user",
            "rate_hz": 1000, "processes": 1, "traces": 1, "of_requests": false, "spans": 3, "failed": { "count": 0, "first": null }, "samples": 33,
            "links": { "record": 32, "journal": 0, "label": 0, "inferred": 0, "ambiguous": 0, "none": 1 },
            "states": estimated(32, 68),
            "parallelism": { "mean": 1.0, "peak": 1, "work_nanos": 100 * MS, "span_nanos": 100 * MS }, "deployment": null, "usage": [], "poles": null, "functions": [], "weight_nanos": 33 * MS, "attached": null, "quality": [{
                "code": "unaccounted", "count": 1, "title": "unaccounted time",
                "detail": "68.0ms of the critical path, between samples; mostly short waits",
            }], "recorder": null, "truncated": { "poles": 0, "on_path_nanos": 0 }, "between_nanos": 0, "idle_nanos": 0,
        })
    );
    assert_eq!(poles, json_of(PolesView::new("r7", &deploy()))["poles"]);
}

#[test]
fn a_summary_says_what_it_is_of() {
    let of = |recording| json_of(SummaryView::new("r7", &Report::new(recording)))["of"].clone();
    let spans = deploy().recording().spans.as_slice().to_vec();
    assert_eq!(of(crate::import::of_trace(spans.clone())), "trace");
    let with_mode = |mode, spans: &[longpole_model::Span]| {
        let mut recording = crate::import::unseen(vec!["import".to_owned(), "x.json".to_owned()]);
        recording.run.mode = mode;
        for span in spans {
            recording.spans.push(span.clone());
        }
        recording
    };
    assert_eq!(of(with_mode(CaptureMode::Off, &spans)), "file");
    assert_eq!(of(with_mode(CaptureMode::Imported, &spans)), "file");
    assert_eq!(of(with_mode(CaptureMode::Imported, &[])), "profile");
    assert_eq!(of(with_mode(CaptureMode::Off, &[])), "command_alone");
}

#[test]
fn poles_say_what_they_save_and_why_they_are_long() {
    let poles = json_of(PolesView::new("r7", &deploy()));
    assert_eq!((&poles["wall_nanos"], &poles["truncated"]), (&json!(100 * MS), &json!({ "poles": 0, "on_path_nanos": 0 })));
    assert_eq!(
        poles["poles"][0],
        json!({
            "handle": "p1", "service": "aws", "name": "create db", "context": null, "count": 1, "spans": ["s4"], "truncated": { "spans": 0 },
            "part": null, "on_path_nanos": 55 * MS, "saves_if_zero_nanos": [55 * MS, 55 * MS], "saves_if_half_nanos": [27_500_000, 27_500_000],
            "saves_own_nanos": [55 * MS, 55 * MS], "saves_with_those_before_nanos": [55 * MS, 55 * MS], "evidence": "declared",
            "states": estimated(2, 53),
            "reason": {
                "code": "waits", "text": "≈ 96% unaccounted, 4% on-CPU", "function": null, "mostly_in": null,
                "pieces": [{ "kind": "text", "text": "≈ 96% unaccounted, 4% on-CPU" }],
            },
            "callee": null, "blocked_by": null, "contains": null, "contains_all": false, "limited_by": null, "resource": null,
            "top_frames": [function("f5", "connect", "src/db.rs", 3, 2, 2 * MS), function("f1", "main", "", 0, 2, 0)],
            "samples": 2, "weight_nanos": 2 * MS, "few_samples": true,
        })
    );
    let second = &poles["poles"][1];
    assert_eq!(
        second["reason"],
        json!({
            "code": "on_cpu", "text": "≈ 75% on-CPU, most of it (30.0ms) in block", "function": "block", "mostly_in": null,
            "pieces": [{ "kind": "text", "text": "≈ 75% on-CPU, most of it (30.0ms) in " }, { "kind": "function", "text": "block" }],
        })
    );
    assert_eq!(second["top_frames"][0], function("f2", "block", "src/hash.rs", 7, 30, 30 * MS));
    assert_eq!(poles["poles"][2]["reason"]["code"], "few_samples");
}

#[test]
fn the_answer_of_a_list_is_the_first_pole() {
    let answer = AnswerView::new(&deploy()).unwrap();
    let text = r#"{"service":"aws","name":"create db","context":null,"saves_if_zero_nanos":[55000000,55000000],"part":null,"function":"connect","wait":null}"#;
    assert_eq!(serde_json::to_string(&answer).unwrap(), text);
    // It is kept as text and read back, also the text of a longpole that kept no part.
    assert_eq!(json_of(serde_json::from_str::<AnswerView>(text).unwrap()), json_of(&answer));
    let older = text.replace(r#""part":null,"#, "").replace(r#","wait":null"#, "");
    assert_eq!(json_of(serde_json::from_str::<AnswerView>(&older).unwrap()), json_of(&answer));
}

#[test]
fn a_command_that_nothing_was_recorded_of_has_no_answer() {
    let mut recording = text::parse("run sleep 0..100ms\n").unwrap();
    recording.processes.clear();
    recording.run.mode = longpole_model::CaptureMode::Off;
    assert!(AnswerView::new(&Report::new(recording)).is_none());
}

#[test]
fn the_tree_stands_in_columns() {
    assert_eq!(
        json_of(TreeView::new("r7", &deploy())),
        json!({
            "recording": "r7", "origin_unix_nano": "1700000000000000000", "wall_nanos": 100 * MS,
            "services": ["run", "engine", "aws"], "names": ["run", "deploy", "create bundle", "create db"], "resources": [],
            "spans": {
                "parent": [-1, 0, 1, 1], "depth": [0, 1, 2, 2], "subtree": [3, 2, 0, 0],
                "start_nanos": [0, 0, 0, 40 * MS], "duration_nanos": [100 * MS, 100 * MS, 40 * MS, 55 * MS],
                "service": [0, 1, 2, 2], "name": [0, 1, 2, 3], "resource": [-1, -1, -1, -1], "flags": [4, 0, 0, 0],
                "on_path_nanos": [0, 5 * MS, 40 * MS, 55 * MS], "samples": [0, 0, 30, 2],
            },
            "critical_path": { "span": [2, 3, 1], "start_nanos": [0, 40 * MS, 95 * MS], "end_nanos": [40 * MS, 95 * MS, 100 * MS] },
            "notes": [],
        })
    );
}

#[test]
fn flags_tell_what_is_special_about_a_row() {
    let mut recording = text::parse(
        "
run        0..100ms
  fine     0..10ms   web  pid 2
lost       20..30ms  web  pid 2  id 7 parent 9
process cc1  50..60ms  pid 8 under 1
",
    )
    .unwrap();
    recording.spans[0].status.code = longpole_model::StatusCode::Error;
    let tree = json_of(TreeView::new("r7", &Report::new(recording)));
    let flags = tree["spans"]["flags"].as_array().unwrap();
    let flag_of = |name: &str| {
        let name = tree["names"].as_array().unwrap().iter().position(|known| known == name).unwrap();
        let row = tree["spans"]["name"].as_array().unwrap().iter().position(|index| *index == json!(name)).unwrap();
        flags[row].as_u64().unwrap()
    };
    assert_eq!(flag_of("run"), 4);
    assert_eq!(flag_of("fine"), 1);
    assert_eq!(flag_of("lost"), 2 | 8);
    assert_eq!(flag_of("cc1"), 2 | 4);
}

#[test]
fn a_span_tells_everything_about_itself() {
    let span = json_of(SpanView::new("r7", &deploy(), "s4"));
    assert_eq!(
        span,
        json!({
            "recording": "r7", "handle": "s4", "pole": null, "part": null, "trace_id": "00000000000000010000000000000001", "span_id": "0000000000000003",
            "parent": { "handle": "s2", "edge": "declared" }, "service": "aws", "name": "create db", "kind": "internal",
            "status": { "code": "unset", "message": "" }, "start_nanos": 40 * MS, "duration_nanos": 55 * MS, "process": null,
            "attributes": [], "resource": [{ "key": "service.name", "value": "aws" }], "events": [],
            "links": [{ "trace_id": "00000000000000010000000000000001", "span_id": "0000000000000002", "handle": "s3" }],
            "states": estimated(2, 53), "states_follow_threads": false, "states_with_descendants": estimated(2, 53),
            "waits": [], "callee": null,
            "samples": {
                "own": 2, "with_descendants": 2, "links": { "record": 2, "journal": 0, "label": 0, "inferred": 0, "ambiguous": 0, "none": 0 },
            },
            "few_samples": true, "same_name": null,
            "savings": {
                "saves_if_zero_nanos": [55 * MS, 55 * MS], "saves_if_half_nanos": [27_500_000, 27_500_000],
                "saves_own_nanos": [55 * MS, 55 * MS], "evidence": "declared", "on_path_nanos": 55 * MS,
            },
            "top_frames": [function("f5", "connect", "src/db.rs", 3, 2, 2 * MS), function("f1", "main", "", 0, 2, 0)],
            "children": 0, "is_run": false, "is_process": false,
        })
    );
    assert_eq!(json_of(SpanView::new("r7", &deploy(), "p1")), span, "a pole is its first span");
    let run = json_of(SpanView::new("r7", &deploy(), "s1"));
    assert_eq!((&run["parent"], &run["children"], &run["span_id"]), (&Value::Null, &json!(1), &json!("ffffffffffffffff")));
    assert_eq!(run["process"]["pid"], 1);
    for nothing in ["s5", "s0", "p4", "f1", "", "x", "s-1", "s99999999999999999999"] {
        assert!(SpanView::new("r7", &deploy(), nothing).is_none(), "{nothing}");
    }
}

#[test]
fn attributes_become_the_json_that_is_closest() {
    let mut recording = text::parse("run 0..9ms\n  a 0..9ms web pid 2\n").unwrap();
    let pair = |key: &str, value| Attribute { key: key.into(), value };
    let values = [
        pair("text", AttributeValue::Str("a".into())),
        pair("truth", AttributeValue::Bool(true)),
        pair("exact", AttributeValue::Int(-(1 << 53))),
        pair("huge", AttributeValue::Int(i64::MAX)),
        pair("double", AttributeValue::Double(0.5)),
        pair("infinite", AttributeValue::Double(f64::NEG_INFINITY)),
        pair("bytes", AttributeValue::Bytes(vec![0, 255].into())),
        pair("list", AttributeValue::Array(vec![AttributeValue::Int(1), AttributeValue::Empty].into())),
        pair("pairs", AttributeValue::KeyValues(vec![pair("k", AttributeValue::Str("v".into()))].into())),
    ];
    recording.spans[0].attributes = Attributes(values.to_vec());
    let span = json_of(SpanView::new("r7", &Report::new(recording), "s2"));
    let found: Vec<_> = span["attributes"].as_array().unwrap().iter().map(|pair| pair["value"].clone()).collect();
    assert_eq!(
        json!(found),
        json!(["a", true, -9_007_199_254_740_992i64, "9223372036854775807", 0.5, "-inf", "00ff", [1, null], { "k": "v" }])
    );
}

#[test]
fn a_pole_names_what_limits_its_saving_and_the_pole_of_that() {
    let limit = |text: &str, name: &str| {
        let poles = json_of(PolesView::new("r7", &Report::new(text::parse(text).unwrap())));
        let pole = poles["poles"].as_array().unwrap().iter().find(|pole| pole["name"] == name).cloned();
        pole.unwrap_or_else(|| panic!("no {name} in {poles}"))["limited_by"].clone()
    };
    let chain = "run x 0..50ms\n  web 4..14ms\n  db 16..44ms <- web\n  dns 5..30ms\n";
    assert_eq!(limit(chain, "db"), json!({ "handle": "s3", "name": "dns", "pole": null, "within": null }));
    assert_eq!(limit(chain, "web"), Value::Null);
    let calls = "run x 0..90ms\n  call 1..20ms svc @a\n  long 21..80ms svc <- @a\n  call 22..60ms svc <- @a\n";
    assert_eq!(limit(calls, "long")["pole"], "p2");
    let inside = "run x 0..50ms\n  web 4..44ms\n  net 5..50ms\n    dns 24..30ms\n    use 44..50ms <- web, dns\n";
    assert_eq!(limit(inside, "web"), json!({ "handle": "s4", "name": "dns", "pole": null, "within": { "handle": "s3", "name": "net" } }));
}

/// A deployment that contains all that is slow would save most, whatever else is gone.
#[test]
fn a_pole_that_contains_others_is_next_only_where_they_save_no_more() {
    let text = "\
run up 0..104ms
  deploy 0..104ms cli pid 1
    bundle 0..50ms cli pid 1
    upload 50..80ms cli pid 1
    notify 80..100ms cli pid 1
";
    let report = Report::new(text::parse(text).unwrap());
    let poles = PolesView::new("r1", &report).poles;
    let names = |handle: &str| poles.iter().find(|pole| pole.handle == handle).map(|pole| pole.name.clone()).unwrap();
    let next = |without: &[&str]| {
        let view = WhatIfView::new("r1", &report, without).unwrap();
        (view.saves_nanos[0] / MS, view.next.map(|next| (names(&next.handle), next.saves_more_nanos[0] / MS)))
    };
    assert_eq!(next(&["p1"]), (50, Some(("upload".to_owned(), 30))));
    assert_eq!(next(&["p1", "p2"]), (80, Some(("notify".to_owned(), 20))));
    assert_eq!(next(&["p1", "p2", "p3"]), (100, Some(("deploy".to_owned(), 4))), "what is left is its own time");
    assert_eq!(next(&["p1", "p2", "p3", "p4"]), (104, None));
    assert_eq!(WhatIfView::new("r1", &report, &["p1", "s1"]).unwrap_err(), "s1");
}

#[test]
fn a_flame_graph_stands_in_columns() {
    let frame = |handle: &str, function: &str, file: &str, line: u32| json!({ "handle": handle, "function": function, "file": file, "line": line, "reason": null, "runtime": null, "whose": "program" });
    assert_eq!(
        json_of(FlameView::of_spans("r7", &deploy(), Chosen::Handle("s2"), FlameTime::OnCpu, Excerpt::default())),
        json!({
            "recording": "r7", "time": "on_cpu", "span": "s2", "part_of": null, "name": null, "trace_id": null, "same_name": null, "title": "deploy", "samples": 32, "from_nanos": null, "to_nanos": null, "tid": null, "left_out_waits": 0,
            "cut_samples": 0, "weight_nanos": 32 * MS, "few_samples": false,
            "links": { "record": 32, "journal": 0, "label": 0, "inferred": 0, "ambiguous": 0, "none": 0 },
            "waits": [],
            "frames": [
                frame("f1", "main", "", 0), frame("f3", "compress", "src/bundle.rs", 12), frame("f4", "hash", "", 0),
                frame("f2", "block", "src/hash.rs", 7), frame("f5", "connect", "src/db.rs", 3),
            ],
            "nodes": {
                "parent": [-1, 0, 1, 2, 3, 1], "depth": [0, 1, 2, 3, 4, 2], "frame": [-1, 0, 1, 2, 3, 4],
                "offset_nanos": [0, 0, 0, 0, 0, 30 * MS], "total_nanos": [32 * MS, 32 * MS, 30 * MS, 30 * MS, 30 * MS, 2 * MS],
                "self_nanos": [0, 0, 0, 0, 30 * MS, 2 * MS],
                "waited_nanos": [0, 0, 0, 0, 0, 0], "wait": [-1, -1, -1, -1, -1, -1], "line": [0, 0, 12, 0, 7, 3],
            },
        })
    );
    let run = json_of(FlameView::of_run("r7", &deploy(), FlameTime::OnCpu, false, Excerpt::default()));
    assert_eq!((&run["span"], &run["samples"], &run["links"]["none"]), (&Value::Null, &json!(33), &json!(1)));
    assert_eq!(
        FlameView::of_spans("r7", &deploy(), Chosen::Handle("p1"), FlameTime::OnCpu, Excerpt::default()).unwrap().span.as_deref(),
        Some("s4"),
        "a pole of one span is that span"
    );
    assert!(FlameView::of_spans("r7", &deploy(), Chosen::Handle("f1"), FlameTime::OnCpu, Excerpt::default()).is_none());
}

/// A program without spans that parses, then waits for the disk in two threads, one of them beside the path.
const PARTS: &str = "
run x 0..100ms
cpu 0..60ms pid 1
wait 60..90ms pid 1 disk main;insert_one;fsync
cpu 90..100ms pid 1
process helper 10..50ms pid 2 under 1
cpu 10..50ms pid 2
sample 1ms x58 pid 1 main;parse_rules
sample 11ms x38 pid 2 help
sample 91ms x8 pid 1 main;parse_rules
";

#[test]
fn the_code_of_a_part_is_that_of_the_part() {
    let report = Report::new(text::parse(PARTS).unwrap());
    let flame = |handle, time| FlameView::of_spans("r7", &report, Chosen::Handle(handle), time, Excerpt::default()).unwrap();
    let whole = PartOfView { handle: Some("s1".to_owned()), name: "x".to_owned() };
    for (pole, title, samples, waits) in [("p1", "parse_rules in x", 66, 0), ("p2", "fsync (disk) in x", 0, 1)] {
        let (computes, blocked) = (flame(pole, FlameTime::OnCpu), flame(pole, FlameTime::OffCpu));
        assert_eq!((computes.title.as_str(), computes.span.as_deref(), computes.part_of), (title, Some(pole), Some(whole.clone())));
        assert_eq!((computes.samples, blocked.samples), (samples, waits), "{pole}");
        let waited: Vec<_> = blocked.waits.iter().map(|it| (it.kind, it.nanos)).collect();
        assert_eq!(waited, [(WaitKindView::Disk, 30 * MS)][..usize::from(waits > 0)], "{pole}");
        let options = TopOptions { time: FlameTime::Wall, ..TopOptions::default() };
        let top = TopView::new("r7", &report, Some(Chosen::Handle(pole)), options).unwrap();
        assert_eq!((top.samples, top.part_of), (samples + waits, Some(whole.clone())), "{pole}");
        // A span shows all of the operation, and what of it the pole is.
        let span = SpanView::new("r7", &report, pole).unwrap();
        let part = span.part.unwrap();
        assert_eq!((span.handle.as_str(), span.is_run, part.handle.as_str()), ("s1", true, pole));
        assert!(part.saves_if_zero_nanos[1] < span.savings.saves_own_nanos[1], "{pole}");
    }
    assert_eq!(flame("s1", FlameTime::OnCpu).samples, 58 + 38 + 8);
    assert_eq!(flame("s1", FlameTime::OnCpu).part_of, None);
    assert!(SpanView::new("r7", &report, "s1").unwrap().part.is_none());
}

#[test]
fn the_flame_graph_of_a_pole_holds_all_its_spans_once() {
    let text = "
run      0..100ms
  batch  0..50ms    web  pid 2
    batch  10..20ms  web  pid 2  @inner
  batch  50..100ms  web  pid 2  @second
sample 5ms x4 every 1ms   pid 2 tid 2  [batch] main
sample 12ms x3 every 1ms  pid 2 tid 2  [inner] main
sample 60ms x2 every 1ms  pid 2 tid 2  [second] main
";
    let report = Report::new(text::parse(text).unwrap());
    let flame = FlameView::of_spans("r7", &report, Chosen::Handle("p1"), FlameTime::OnCpu, Excerpt::default()).unwrap();
    assert_eq!((flame.span.as_deref(), flame.title.as_str(), flame.samples), (Some("p1"), "batch ×3", 9));
    let pole = &PolesView::new("r7", &report).poles[0];
    assert_eq!((pole.count, pole.spans.clone()), (3, vec!["s4".to_owned(), "s2".to_owned(), "s3".to_owned()]));
}

#[test]
fn a_function_knows_the_spans_it_ran_in() {
    let span = |handle: &str, name: &str, samples: u64| json!({ "handle": handle, "service": "aws", "name": name, "samples": samples, "total_nanos": samples as i64 * MS, "waited_nanos": 0, "share": 1.0, "waited_share": 0.0 });
    let operation = |name: &str, samples: u64| json!({ "service": "aws", "name": name, "spans": 1, "samples": samples, "total_nanos": samples as i64 * MS, "waited_nanos": 0, "share": 1.0, "waited_share": 0.0 });
    assert_eq!(
        json_of(FrameView::new("r7", &deploy(), "f1")),
        json!({
            "recording": "r7", "handle": "f1", "function": "main", "file": "", "runtime": null, "whose": "program", "samples": 32, "total_nanos": 32 * MS, "self_nanos": 0,
            "waits": 0, "waited_nanos": 0, "waited_for": [], "lines": [], "unlinked_waited_nanos": 0,
            "spans": [span("s3", "create bundle", 30), span("s4", "create db", 2)], "unlinked_samples": 0, "ambiguous_samples": 0, "truncated": { "spans": 0 },
            "operations": [operation("create bundle", 30), operation("create db", 2)],
        })
    );
    let other = FrameView::new("r7", &deploy(), "f6").unwrap();
    assert_eq!((other.function.as_str(), other.unlinked_samples, other.spans.len()), ("other", 1, 0));
    assert!(FrameView::new("r7", &deploy(), "f7").is_none() && FrameView::new("r7", &deploy(), "s1").is_none());
}

/// A loop of two spans that wait on two lines, and a function that never ran.
const NAPS: &str = "
run    0..100ms
  nap  0..40ms    svc  pid 2  @first
  nap  50..60ms   svc  pid 2
wait   1..31ms    pid 2  sleep  [first] main;nap@src/nap.rs:3;std::thread::sleep
wait   32..40ms   pid 2  sleep  [first] main;nap@src/nap.rs:9;std::thread::sleep
sample 41ms x4 every 1ms  pid 2  main;std::rt;other@src/other.rs:5
";

#[test]
fn a_function_that_only_waited_is_found_with_its_lines_and_its_spans() {
    let report = Report::new(text::parse(NAPS).unwrap());
    let options = TopOptions { time: FlameTime::OffCpu, ..TopOptions::default() };
    let top = TopView::new("r7", &report, None, options).unwrap();
    let names: Vec<(&str, i64)> = top.functions.iter().map(|it| (it.function.as_str(), it.self_nanos / MS)).collect();
    assert_eq!(names, [("nap", 38), ("main", 0), ("std::thread::sleep", 0)]);
    assert_eq!((top.samples, top.weight_nanos), (2, 38 * MS));
    let frame = FrameView::new("r7", &report, &top.functions[0].handle).unwrap();
    assert_eq!((frame.samples, frame.waits, frame.waited_nanos), (0, 2, 38 * MS));
    let places: Vec<(u32, i64)> = frame.waited_for[0].places.iter().map(|place| (place.line, place.nanos / MS)).collect();
    assert_eq!(places, [(3, 30), (9, 8)]);
    assert_eq!(frame.spans.iter().map(|span| (span.handle.as_str(), span.waited_nanos / MS)).collect::<Vec<_>>(), [("s2", 38)]);
    let on_cpu = TopView::new("r7", &report, None, TopOptions { by_total: true, ..TopOptions::default() }).unwrap();
    assert!(on_cpu.functions.iter().all(|it| it.function != "nap"));
}

#[test]
fn spans_of_a_name_stand_together() {
    let report = Report::new(text::parse(NAPS).unwrap());
    let spans = SpansView::new("r7", &report, "nap").unwrap();
    assert_eq!((spans.count, spans.errors, spans.truncated, &spans.services[..]), (2, 0, 0, &["svc".to_owned()][..]));
    let lengths = DurationsView { sum_nanos: 50 * MS, min_nanos: 10 * MS, median_nanos: 25 * MS, max_nanos: 40 * MS };
    assert_eq!(spans.durations, lengths);
    assert_eq!((spans.waits[0].nanos, spans.waits[0].places.len()), (38 * MS, 2));
    assert_eq!(spans.spans.iter().map(|span| span.handle.as_str()).collect::<Vec<_>>(), ["s2", "s3"]);
    assert!(SpansView::new("r7", &report, "na").is_none());
}

#[test]
fn a_source_stands_line_by_line_and_says_whether_it_is_the_one_that_ran() {
    let file = std::env::temp_dir().join(format!("longpole-source-{}.rs", std::process::id()));
    let text = NAPS.replace("src/nap.rs", &file.display().to_string());
    let access = SourceAccess { origin: Origin::Own, consent: SourceConsent::default() };
    let source = |handle: &str| SourceView::new("r7", &Report::new(text::parse(&text).unwrap()), handle, Some(&access)).unwrap();
    let report = Report::new(text::parse(&text).unwrap());
    let handle = |name: &str| longpole_analysis::Handle::Function(report.functions().named(name)[0]).to_string();
    let missing = source(&handle("nap"));
    assert_eq!((missing.state, missing.detail.as_deref()), (SourceStateView::Missing, Some("there is no such file on this machine")));
    assert_eq!(missing.lines.iter().map(|line| (line.line, line.waited_nanos / MS)).collect::<Vec<_>>(), [(3, 30), (9, 8)]);
    std::fs::write(&file, "1\n2\n3\n4\n5\n6\n").unwrap();
    // The recording is of 2023.
    let changed = source(&handle("nap"));
    assert_eq!((changed.state, changed.path.as_deref()), (SourceStateView::Changed, file.to_str()));
    let lines: Vec<_> = changed.lines.iter().map(|line| (line.line, line.text.as_deref().unwrap_or("-"))).collect();
    assert_eq!(lines, [(1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5"), (9, "-")]);
    let before = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!((source(&handle("nap")).state, source(&handle("nap")).detail), (SourceStateView::Read, None));
    let numbers = SourceView::new("r7", &report, &handle("nap"), None).unwrap();
    assert_eq!((numbers.state, numbers.path, numbers.lines.len()), (SourceStateView::LeftOut, None, 2));
    assert!(numbers.lines.iter().all(|line| line.text.is_none()));
    let others = SourceAccess { origin: Origin::Others, consent: SourceConsent::default() };
    let refused = SourceView::new("r7", &report, &handle("nap"), Some(&others)).unwrap();
    assert!(refused.state == SourceStateView::Refused && refused.detail.unwrap().contains("--allow-source DIR"));
    assert_eq!(refused.lines.len(), 2);
    assert_eq!(source(&handle("main")).state, SourceStateView::Unknown);
    // What is no file is not opened.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(source(&handle("nap")).state, SourceStateView::Missing);
    std::fs::remove_dir(&file).unwrap();
}

#[test]
fn an_attached_recording_names_its_process_and_sums_its_waits() {
    let mut recording = text::parse(NAPS).unwrap();
    recording.run.exit = None;
    let of_others = SummaryView::new("r6", &Report::new(recording.clone()));
    assert!(of_others.attached.is_none(), "a file that another tool wrote");
    recording.run.recorder_cost = Some(RecorderCost { cpu_nanos: 1, rss_bytes_max: 1 });
    let attached = SummaryView::new("r7", &Report::new(recording)).attached.unwrap();
    assert_eq!((attached.pid, attached.waits[0].nanos, attached.waits[0].threads), (Some(1), 38 * MS, 1));
}

#[test]
fn a_run_without_spans_and_samples_still_has_views() {
    let report = Report::new(text::parse("run 0..5ms\n").unwrap());
    let summary = json_of(SummaryView::new("r1", &report));
    assert_eq!((&summary["spans"], &summary["samples"], &summary["wall_nanos"]), (&json!(0), &json!(0), &json!(5 * MS)));
    let flame = json_of(FlameView::of_run("r1", &report, FlameTime::OnCpu, false, Excerpt::default()));
    assert_eq!((&flame["nodes"]["total_nanos"], &flame["frames"]), (&json!([0]), &json!([])));
    assert_eq!(json_of(TreeView::new("r1", &report))["spans"]["depth"], json!([0]));
}
