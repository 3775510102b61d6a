//! Story: somebody has a trace file of another tool, or needs one.
//! Guarantees: a file is read wherever a recording is, and kept only by `import`; each format out and in again shows the same tree; what a
//! format cannot hold is listed; a cut file shows all before the cut and says where it is; what is no trace is named; what Pulumi's users
//! type works; two files are compared, and the difference is explained to the last nanosecond.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, json, longpole, role, skip};

/// A deployment in OTLP JSON lines: `up` with one resource after the other, each a span with a child, `db` of the given length.
fn deployment(db_millis: u64) -> String {
    let mut out = String::new();
    let mut span = |id: u64, parent: u64, name: &str, start: u64, end: u64, service: &str| {
        let parent = if parent == 0 { String::new() } else { format!(r#","parentSpanId":"{parent:016x}""#) };
        let at = |millis: u64| 1_767_225_600_000_000_000 + millis * 1_000_000;
        out.push_str(&format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}},"scopeSpans":[{{"scope":{{"name":"t"}},"spans":[{{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"{id:016x}"{parent},"name":"{name}","kind":3,"startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":[{{"key":"n","value":{{"stringValue":"{id}"}}}}],"status":{{}}}}]}}]}}]}}"#,
            at(start),
            at(end)
        ));
        out.push('\n');
    };
    span(1, 0, "up", 0, 300 + db_millis, "cli");
    span(2, 1, "create db", 10, 10 + db_millis, "cli");
    span(3, 2, "Create", 12, 8 + db_millis, "provider");
    span(4, 1, "create web", 20 + db_millis, 250 + db_millis, "cli");
    out
}

fn write(sandbox: &Sandbox, name: &str, text: &str) -> PathBuf {
    let path = sandbox.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn tree(store: &Path, what: &Path) -> Value {
    json(longpole(store).arg("tree").arg(what).args(["--format", "json"]))
}

/// What of a tree every format must give back: the shape, the names, the times.
fn shape(tree: &Value) -> Vec<String> {
    let spans = &tree["spans"];
    let column = |name: &str| spans[name].as_array().unwrap().clone();
    let (names, depth, start, duration) = (column("name"), column("depth"), column("start_nanos"), column("duration_nanos"));
    // Row 0 is the file itself, which has another name each time.
    (1..names.len())
        .map(|row| format!("{} {} {} {}", depth[row], tree["names"][names[row].as_u64().unwrap() as usize], start[row], duration[row]))
        .collect()
}

#[test]
fn only_import_stores_a_file() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let file = write(&sandbox, "up.json", &deployment(1000));
    let poles = json(longpole(&store).arg("poles").arg(&file).args(["--format", "json"]));
    assert_eq!(poles["poles"][0]["name"], "Create", "{poles}");
    for command in [vec!["show"], vec!["tree"], vec!["span", "p1"], vec!["flame"]] {
        assert!(longpole(&store).args(&command).arg(&file).output().unwrap().status.success(), "{command:?}");
    }
    assert!(!store.exists(), "looking at a file made a store");

    let imported = json(longpole(&store).args(["import", "--tag", "first", "--format", "json"]).arg(&file));
    assert_eq!((&imported[0]["recording"], &imported[0]["spans"]), (&"r1".into(), &4.into()));
    assert_eq!(json(longpole(&store).args(["poles", "first", "--format", "json"]))["poles"], poles["poles"], "kept and not kept differ");
    let rows = json(longpole(&store).args(["sql", "--format", "json", "SELECT count(*) AS n FROM spans"]));
    assert_eq!(rows["rows"][0]["n"], 4);
    assert_eq!(json(longpole(&store).args(["ls", "--format", "json"]))["recordings"][0]["answer"]["name"], "Create");
}

#[test]
fn every_format_exported_and_imported_is_the_same_tree() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let file = write(&sandbox, "up.json", &deployment(1000));
    let expected = shape(&tree(&store, &file));
    assert_eq!(expected.len(), 4);
    for format in ["otlp-json", "otlp-protobuf", "zipkin", "jaeger", "appdash", "lpole"] {
        let out = sandbox.path(&format!("out-{format}"));
        let done = longpole(&store).arg("convert").arg(&file).args(["--to", format, "-o"]).arg(&out).output().unwrap();
        assert!(done.status.success(), "{format}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(shape(&tree(&store, &out)), expected, "{format}");
    }
    let text = |format: &str| {
        let done = longpole(&store).arg("convert").arg(&file).args(["--to", format, "-g", "100ms"]).output().unwrap();
        assert!(done.status.success(), "{format}: {}", String::from_utf8_lossy(&done.stderr));
        (done.stdout, String::from_utf8(done.stderr).unwrap())
    };
    let (folded, said) = text("folded");
    let folded = String::from_utf8(folded).unwrap();
    assert!(folded.contains("import;up;create db;Create 10\n"), "{folded}");
    assert!(said.contains("4 items not in the file: timestamps, ids, attributes"), "what a profile cannot hold is not said: {said}");
    assert_eq!(text("pprof").0[..2], [0x1f, 0x8b]);
    assert!(serde_json::from_slice::<Value>(&text("chrome").0).unwrap()["traceEvents"].is_array());
}

#[test]
fn a_packed_recording_is_imported_completely() {
    let sandbox = Sandbox::new();
    let (store, other) = (sandbox.path("store"), sandbox.path("other"));
    let run = longpole(&store)
        .args(["run", "--summary", "none", "--"])
        .args(role("receive_from_any_sdk::emit"))
        .env("LONGPOLE_STORY_PROTOCOL", "http/protobuf")
        .status()
        .unwrap();
    assert!(run.success());
    let packed = sandbox.path("mail.lpole");
    assert!(longpole(&store).args(["export", "last", "-o"]).arg(&packed).status().unwrap().success());
    let own = json(longpole(&store).args(["show", "--format", "json"]));
    let mut seen = json(longpole(&other).arg("show").arg(&packed).args(["--format", "json"]));
    seen["recording"] = own["recording"].clone();
    assert_eq!(seen, own);
    assert!(longpole(&other).arg("import").arg(&packed).stdout(Stdio::null()).status().unwrap().success());
    assert_eq!(json(longpole(&other).args(["show", "--format", "json"])), own);
    let out = longpole(&store).args(["export", "--to", "otlp-json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("processes"), "the processes went in silence");
    assert!(out.stdout.starts_with(b"{\"resourceSpans\""));
}

#[test]
fn bad_files_are_named_and_truncated_ones_shown_in_part() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let text = deployment(1000);
    let cut = write(&sandbox, "cut.json", &text[..text.len() - 100]);
    let shown = json(longpole(&store).arg("show").arg(&cut).args(["--format", "json"]));
    assert_eq!(shown["spans"], 3);
    let said = shown["quality"].as_array().unwrap().iter().find(|q| q["code"] == "file_cut").expect("the cut is not said");
    assert!(said["detail"].as_str().unwrap().contains("byte"), "{said}");

    let show = |path: &Path| {
        let out = longpole(&store).arg("show").arg(path).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (code, said) = show(&write(&sandbox, "archive", "PK\u{3}\u{4}............"));
    assert!(
        code == Some(2) && said.contains("zip archive") && said.contains("zipkin-v2-json, jaeger-json, perf-data, pprof"),
        "{code:?} {said}"
    );
    let (code, said) = show(&write(&sandbox, "perf.data", "PERFILE2............"));
    assert!(code == Some(1) && said.contains("cut off, at byte 20"), "{code:?} {said}");
    assert_eq!(show(&sandbox.path("nowhere/at.all")).0, Some(3));
    assert_eq!(show(&write(&sandbox, "broken.json", "{\"resourceSpans\":[{]")).0, Some(1));
}

#[test]
fn commands_of_pulumi_users_work() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let (lines, file) = (write(&sandbox, "up.json", &deployment(1000)), sandbox.path("up.trace"));
    assert!(
        longpole(&store).arg("convert").arg(&lines).arg("-o").arg(&file).status().unwrap().success(),
        "the format is known by the name"
    );
    let profile = longpole(&store).arg("convert-trace").arg(&file).args(["-g", "100ms", "--ignore-log-spans"]).output().unwrap();
    assert_eq!(profile.stdout[..2], [0x1f, 0x8b]);

    let mut viewer =
        longpole(&store).arg("view-trace").arg(&file).args(["--port", "0", "--no-browser"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(viewer.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let url = first.split_whitespace().last().unwrap();
    assert!(first.starts_with("Displaying trace at") && url.starts_with("http://127.0.0.1:"), "{first}");
    let (address, token) = (url["http://".len()..].split('/').next().unwrap(), url.split("token=").nth(1).unwrap());
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /api/recordings/r1/poles?token={token} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Create"), "{answer}");
    viewer.kill().unwrap();
    viewer.wait().unwrap();

    // At a port that was chosen, the address is the one that Pulumi prints.
    let (mut viewer, address, first) = view_trace_at_a_free_port(&store, &file);
    if !first.contains("token=") {
        assert_eq!(first.trim_end(), format!("Displaying trace at  http://{address}"));
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: /r/r1\r\n"), "{answer}");
    } else {
        skip("view-trace without a token", "the kernel does not name the owner of a connection");
    }
    viewer.kill().unwrap();
    viewer.wait().unwrap();

    // Into another longpole's recording, as into any collector.
    let outer = sandbox.path("outer");
    let status = longpole(&outer)
        .args(["run", "--no-profile", "--summary", "none", "--", env!("CARGO_BIN_EXE_longpole"), "convert-trace", "--otel"])
        .arg(&file)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(json(longpole(&outer).args(["show", "--format", "json"]))["spans"], 4);
}

/// `view-trace` at a port of our choice, which somebody else may take first; its address, and its first line.
fn view_trace_at_a_free_port(store: &Path, file: &Path) -> (Child, String, String) {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut viewer = longpole(store);
        let viewer = viewer.arg("view-trace").arg(file).args(["--port", &port.to_string(), "--no-browser"]).stdout(Stdio::piped());
        let mut viewer = viewer.spawn().unwrap();
        let mut first = String::new();
        if BufReader::new(viewer.stdout.take().unwrap()).read_line(&mut first).unwrap() > 0 {
            return (viewer, format!("localhost:{port}"), first);
        }
        viewer.wait().unwrap();
    }
}

#[test]
fn a_difference_is_explained_to_the_nanosecond() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let (before, after) = (write(&sandbox, "before.json", &deployment(1000)), write(&sandbox, "after.json", &deployment(400)));
    let view = json(longpole(&store).arg("diff").arg(&before).arg(&after).args(["--format", "json"]));
    assert_eq!(view["delta_nanos"], -600_000_000);
    assert_eq!((&view["operations"][0]["name"], &view["operations"][0]["delta_nanos"]), (&"Create".into(), &(-600_000_000).into()));
    let sum: i64 = view["operations"].as_array().unwrap().iter().map(|o| o["delta_nanos"].as_i64().unwrap()).sum();
    assert_eq!(sum + view["truncated"]["delta_nanos"].as_i64().unwrap(), -600_000_000);
    let out = longpole(&store).arg("diff").arg(&before).arg(&after).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("-0.60s") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn convert_reports_what_reading_left_out() {
    let sandbox = Sandbox::new();
    let pair = |at: usize| serde_json::json!({ "key": format!("k{at}"), "value": { "stringValue": "v" } });
    let resource = serde_json::json!({ "attributes": (0..400).map(pair).collect::<Vec<_>>() });
    let ids = ("11111111111111111111111111111111", "2222222222222222");
    let good = serde_json::json!({ "traceId": ids.0, "spanId": ids.1, "name": "good", "startTimeUnixNano": "1", "endTimeUnixNano": "2" });
    let bad = serde_json::json!({ "traceId": ids.0, "spanId": "00", "name": "no id" });
    let request = serde_json::json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": [good, bad] }] }] });
    let file = sandbox.path("spans.json");
    std::fs::write(&file, request.to_string()).unwrap();
    let out = longpole(&sandbox.path("store")).arg("convert").arg(&file).args(["--to", "zipkin"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(said.contains("144 items not in the file: attributes of resources") && said.contains("1 item not in the file"), "{said}");
}
