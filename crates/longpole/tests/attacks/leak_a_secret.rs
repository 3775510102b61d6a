//! Line 3: a credential comes through redaction, in any place where text can stand.
//!
//! A program sends spans and logs by every door with a credential in each place, starts children with credentials in their arguments, and
//! waits. Then every byte of the store is read: the log while the command runs, the sealed files, every row of every table, every export.
//! The kinds of credentials by the hundred are tried below the binary: `crates/longpole-wire/tests/it/redaction.rs`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use serde_json::{Value, json};

use crate::support::appdash::frame;
use crate::support::{Sandbox, longpole, role};

/// Tells the program that it is one.
const LEAK: &str = "LONGPOLE_ATTACK_LEAK";

/// What every credential here begins with: nothing else in a store does.
const MARK: &str = "Zq7";

/// A credential of this place: the same each time.
fn secret(place: &str) -> String {
    // FNV-1a.
    let hash = place.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{MARK}{hash:016x}")
}

/// Texts with a credential, as programs write them.
fn texts(place: &str) -> Vec<String> {
    let s = |what: &str| secret(&format!("{place} {what}"));
    vec![
        format!(r#"{{"private_key": "-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----\n"}}"#, s("key 1"), s("key 2")),
        format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----", s("pgp")),
        format!("Authorization: Token {}", s("token")),
        format!(r#"Authorization: Digest username="ann", nonce="{}", response="{}""#, s("nonce"), s("response")),
        format!("Cookie: theme=dark; sid={}; csrf={}", s("second cookie"), s("third cookie")),
        format!("curl -u ann:{} https://a.example", s("curl")),
        format!("mysql -uroot -p{} shop", s("mysql")),
        format!("jdbc:sqlserver://db:1433;user=ann;password={}", s("jdbc")),
        format!("CREATE ROLE ann WITH PASSWORD '{}'", s("sql")),
        format!("login db_pass={}", s("pass")),
        format!("postgres://ann:p@{}@db/shop", s("url")),
        format!("GET /?next=%2Fcb%3Ftoken%3D{}", s("encoded")),
        format!(r#"{{"b":"{{\"password\":\"a\\\"{}\"}}"}}"#, s("nested")),
        // Made here, so that no scanner finds one in this file.
        format!("clone with gh{}_{}{} failed", "p", s("github"), "0123456789abcdef0"),
        format!("https://hooks.slack.com/services/T0{}/B0/{}", s("slack 1"), s("slack 2")),
    ]
}

fn value(text: impl Into<String>) -> AnyValue {
    AnyValue { value: Some(Any::StringValue(text.into())) }
}

fn pair(key: impl Into<String>, value: AnyValue) -> KeyValue {
    KeyValue { key: key.into(), value: Some(value), ..KeyValue::default() }
}

fn pairs(place: &str) -> Vec<KeyValue> {
    texts(place).into_iter().enumerate().map(|(at, text)| pair(format!("note.{at}"), value(text))).collect()
}

/// Attributes of each kind: in the key, in bytes, in a list, in a map.
fn all_kinds(place: &str) -> Vec<KeyValue> {
    let s = |what: &str| secret(&format!("{place} {what}"));
    let list = ["mysql".to_owned(), format!("-p{}", s("in a list"))].map(value).to_vec();
    let map = vec![pair(format!("?token={}", s("key in a map")), value("x")), pair("pass", value(s("value in a map")))];
    let mut all = pairs(place);
    all.push(pair(format!("GET /?access_token={}", s("key")), value("x")));
    all.push(pair("raw", AnyValue { value: Some(Any::BytesValue([b"\xff\x00password=", s("bytes").as_bytes(), b" \xfe"].concat())) }));
    all.push(pair("words", AnyValue { value: Some(Any::ArrayValue(ArrayValue { values: list })) }));
    all.push(pair("map", AnyValue { value: Some(Any::KvlistValue(KeyValueList { values: map })) }));
    all
}

const AT: u64 = 1_767_225_600_000_000_000;

/// One span for each text, with it in the name, the status and the name of an event, and attributes everywhere.
fn request(door: &str, number: u8) -> ExportTraceServiceRequest {
    let place = |what: &str| format!("{door} {what}");
    let names = texts(&place("name"));
    let spans = names.into_iter().zip(texts(&place("status"))).zip(texts(&place("event name"))).enumerate();
    let spans = spans.map(|(at, ((name, message), event))| Span {
        trace_id: vec![number; 16],
        span_id: vec![at as u8 + 1; 8],
        trace_state: format!("a=1,token={},b=2", secret(&place("tracestate"))),
        name: format!("marker-{door} {name}"),
        start_time_unix_nano: AT,
        end_time_unix_nano: AT + 1_000_000,
        attributes: if at == 0 { all_kinds(&place("attribute")) } else { Vec::new() },
        events: vec![Event { time_unix_nano: AT, name: event, attributes: pairs(&place("event")), ..Event::default() }],
        links: vec![Link {
            trace_id: vec![9; 16],
            span_id: vec![9; 8],
            trace_state: format!("token={}", secret(&place("tracestate of a link"))),
            attributes: pairs(&place("link")),
            ..Link::default()
        }],
        status: Some(Status { code: 2, message }),
        ..Span::default()
    });
    let scope = InstrumentationScope {
        name: format!("scope ?token={}", secret(&place("scope"))),
        version: format!("1.0 api_key={}", secret(&place("version"))),
        attributes: pairs(&place("scope attribute")),
        ..InstrumentationScope::default()
    };
    let scope_spans = ScopeSpans { scope: Some(scope), spans: spans.collect(), schema_url: schema(&place("schema of a scope")) };
    let resource = Resource { attributes: all_kinds(&place("resource")), ..Resource::default() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![scope_spans],
            schema_url: schema(&place("schema of a resource")),
        }],
    }
}

fn schema(place: &str) -> String {
    format!("https://ann:{}@schemas.example/1", secret(place))
}

/// Nothing but what no decoder reads: the request would be kept as it came.
fn unread(number: u8) -> ExportTraceServiceRequest {
    let span =
        Span { trace_id: vec![number; 16], span_id: vec![1; 8], name: "plain".to_owned(), end_time_unix_nano: AT, ..Span::default() };
    let link = Link {
        trace_id: vec![9; 16],
        span_id: vec![9; 8],
        trace_state: format!("token={}", secret("unread tracestate")),
        ..Link::default()
    };
    let scope_spans =
        ScopeSpans { spans: vec![Span { links: vec![link], ..span }], schema_url: schema("unread schema"), ..ScopeSpans::default() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![scope_spans],
            schema_url: schema("unread schema 2"),
            ..ResourceSpans::default()
        }],
    }
}

/// Requests whose resource or scope is longer than what is kept of one, with the credential in the rest.
fn cut(number: u8) -> [ExportTraceServiceRequest; 4] {
    let jars: Vec<String> = (0..2_500).map(|jar| format!("/opt/app/lib/library-{jar}.jar")).collect();
    let option = |place: &str| format!("-Djavax.net.ssl.keyStorePassword={}", secret(place));
    let line = value(format!("java -cp {} {} Main", jars.join(":"), option("cut line")));
    let words = ArrayValue { values: jars.iter().cloned().chain([option("cut list")]).map(value).collect() };
    let many = |place: &str| {
        let plain = (0..300).map(|at| pair(format!("process.environment_variable.V{at}"), value("x")));
        plain.chain([pair("process.environment_variable.DB_PASSWORD", value(secret(place)))]).collect::<Vec<_>>()
    };
    let list = AnyValue { value: Some(Any::ArrayValue(words)) };
    let resources = [vec![pair("process.command_line", line)], vec![pair("process.command_args", list)], many("cut resource"), Vec::new()];
    let span =
        Span { trace_id: vec![number; 16], span_id: vec![1; 8], name: "plain".to_owned(), end_time_unix_nano: AT, ..Span::default() };
    resources.map(|attributes| {
        let attributes_of_scope = if attributes.is_empty() { many("cut scope") } else { Vec::new() };
        let scope = InstrumentationScope { attributes: attributes_of_scope, ..InstrumentationScope::default() };
        let scope_spans = ScopeSpans { scope: Some(scope), spans: vec![span.clone()], ..ScopeSpans::default() };
        let resource = Some(Resource { attributes, ..Resource::default() });
        let resource_spans = ResourceSpans { resource, scope_spans: vec![scope_spans], ..ResourceSpans::default() };
        ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
    })
}

/// A name that stands twice: who decodes it sees the last one, and the first one stands in the request.
fn twice() -> (Vec<u8>, String) {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let name = format!("?token={}", secret("first name"));
    let span = [field(1, &[7; 16]), field(2, &[1; 8]), field(5, name.as_bytes()), field(5, b"last")].concat();
    let protobuf = field(1, &field(2, &field(2, &span)));
    let ids = r#""traceId":"08080808080808080808080808080808","spanId":"0101010101010101""#;
    let span = format!(r#"{{{ids},"name":"?token={}","name":"last"}}"#, secret("first name in json"));
    let alone = format!(
        r#"{{"resource":{{"attributes":[{{"key":"password","value":{{"stringValue":"{}"}}}}]}}}}"#,
        secret("resource without spans")
    );
    (protobuf, format!(r#"{{"resourceSpans":[{alone},{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#))
}

fn logs() -> ExportLogsServiceRequest {
    let records = texts("log body").into_iter().map(|text| LogRecord {
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        time_unix_nano: AT,
        body: Some(value(text)),
        attributes: all_kinds("log attribute"),
        event_name: format!("event ?token={}", secret("log event")),
        severity_text: format!("INFO token={}", secret("log severity")),
        ..LogRecord::default()
    });
    let scope_logs = vec![ScopeLogs { log_records: records.collect(), ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

fn zipkin() -> Value {
    let tags: serde_json::Map<String, Value> =
        texts("zipkin tag").into_iter().enumerate().map(|(at, text)| (format!("tag.{at}"), text.into())).collect();
    let annotations: Vec<Value> =
        texts("zipkin annotation").into_iter().map(|text| json!({ "timestamp": AT / 1000, "value": text })).collect();
    json!([{ "traceId": "0000000000000003", "id": "0000000000000003", "name": format!("marker-zipkin ?token={}", secret("zipkin name")),
             "timestamp": AT / 1000, "duration": 5, "localEndpoint": { "serviceName": format!("z token={}", secret("zipkin service")) },
             "tags": tags, "annotations": annotations }])
}

/// Frames of one span of AppDash.
fn appdash() -> Vec<u8> {
    let mut out = frame(&[("Name", "marker-appdash"), ("_schema:name", "")]);
    for (at, text) in texts("appdash").into_iter().enumerate() {
        out.extend(frame(&[(&format!("note.{at}"), &text)]));
        out.extend(frame(&[("Msg", &text), ("Time", "2026-01-01T00:00:00Z"), ("_schema:log", "")]));
    }
    out.extend(frame(&[("Span.Start", "2026-01-01T00:00:00Z"), ("Span.End", "2026-01-01T00:00:01Z"), ("_schema:Timespan", "")]));
    out
}

/// Command lines of children, as arrays of words.
fn children() -> Vec<Vec<String>> {
    let s = |what: &str| secret(&format!("argument {what}"));
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    vec![
        words(&format!("curl -u ann:{} https://a.example", s("curl"))),
        words(&format!("mysql -uroot -p{} shop", s("mysql"))),
        words(&format!("sshpass -p {} ssh host", s("sshpass"))),
        words(&format!("redis-cli -a {} ping", s("redis"))),
        words(&format!("docker login -u ann -p {} r.example", s("docker"))),
        words(&format!("openssl rsa -passin pass:{}", s("openssl"))),
        words(&format!("env PGPASSWORD={} psql", s("env"))),
        vec!["curl".into(), "-H".into(), format!("Authorization: Token {}", s("header"))],
        vec!["sh".into(), "-c".into(), format!("mysql -uroot -p{} shop", s("shell"))],
    ]
}

/// The program: sends all of it through every door, starts children, says when all is kept, and waits to be let go.
#[test]
fn leak() {
    if std::env::var_os(LEAK).is_none() {
        return;
    }
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    let mut stream = TcpStream::connect(std::env::var("PULUMI_OPTION_TRACING").unwrap().trim_start_matches("tcp://")).unwrap();
    stream.write_all(&appdash()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let post = |path: &str, kind: &str, body: &[u8]| {
        ureq::post(format!("{endpoint}{path}")).header("content-type", kind).send(body).unwrap();
    };
    post("/v1/traces", "application/x-protobuf", &request("protobuf", 1).encode_to_vec());
    post("/v1/traces", "application/json", &serde_json::to_vec(&request("json", 2)).unwrap());
    post("/v1/traces", "application/x-protobuf", &unread(3).encode_to_vec());
    post("/v1/traces", "application/json", &serde_json::to_vec(&unread(4)).unwrap());
    for request in cut(10) {
        post("/v1/traces", "application/x-protobuf", &request.encode_to_vec());
        post("/v1/traces", "application/json", &serde_json::to_vec(&request).unwrap());
    }
    let (protobuf, json) = twice();
    post("/v1/traces", "application/x-protobuf", &protobuf);
    post("/v1/traces", "application/json", json.as_bytes());
    post("/v1/logs", "application/x-protobuf", &logs().encode_to_vec());
    post("/v1/logs", "application/json", &serde_json::to_vec(&logs()).unwrap());
    post("/api/v2/spans", "application/json", zipkin().to_string().as_bytes());
    // What is refused is quoted where it is counted.
    let refused = |path: &str, kind: &str, body: &str| {
        ureq::post(format!("{endpoint}{path}")).header("content-type", kind).send(body).unwrap_err();
    };
    for (number, text) in texts("refused").iter().enumerate() {
        refused("/v1/traces", "application/json", &json!({ "resourceSpans": text }).to_string());
        refused("/api/v2/spans", "application/json", &json!([{ "id": text, "traceId": number }]).to_string());
    }
    let key = format!("gh{}_{}{}", "p", secret("refused path"), "0123456789abcdef0");
    refused(&format!("/tok/{key}/v1/traces"), "application/json", "{}");
    refused("/v1/traces", &format!("text/{key}"), "{}");
    for words in children() {
        // Whatever it is called, it is `cat`, which waits for the end of its input: it is seen before it is gone.
        let mut child = Command::new("cat");
        std::os::unix::process::CommandExt::arg0(&mut child, &words[0]);
        let mut child = child.arg("-").args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    println!("sent");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// The bytes of every file below a folder.
fn all_bytes(dir: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            out.extend(all_bytes(&entry.path()));
        } else if kind.is_file() {
            out.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    out
}

/// What stands around each credential that stayed.
fn kept(bytes: &[u8]) -> Vec<String> {
    let found = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK.as_bytes());
    let around = found.map(|(at, _)| String::from_utf8_lossy(&bytes[at.saturating_sub(60)..bytes.len().min(at + 40)]).into_owned());
    around.take(20).collect()
}

fn assert_none(place: &str, bytes: &[u8]) {
    assert!(!bytes.is_empty(), "{place} holds something");
    let kept = kept(bytes);
    assert!(kept.is_empty(), "{place} holds credentials:\n{}", kept.join("\n"));
}

#[test]
fn no_credential_is_received_into_the_store() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store)
        .args(["run", "--summary", "none", "--"])
        .args(role("leak_a_secret::leak"))
        .env(LEAK, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut run = run.unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("sent")), "the program sent all of it");
    // The log, while the command runs.
    let log = all_bytes(&store);
    assert!(log.windows(6).any(|window| window == b"marker"), "the spans are in the log");
    assert_none("the log", &log);

    drop(run.stdin.take());
    lines.for_each(drop);
    assert!(run.wait().unwrap().success());
    assert_none("the store", &all_bytes(&store));

    let sql = |query: &str| {
        let out = longpole(&store).args(["sql", "--format", "json", query]).output().unwrap();
        assert!(out.status.success(), "{query}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    let tables: Value =
        serde_json::from_slice(&sql("SELECT DISTINCT table_name AS t FROM information_schema.tables WHERE table_schema = 'recordings'"))
            .unwrap();
    let mut rows = Vec::new();
    for table in tables["rows"].as_array().unwrap() {
        rows.extend(sql(&format!("SELECT * FROM {} LIMIT 4000", table["t"].as_str().unwrap())));
    }
    assert!(rows.windows(6).any(|window| window == b"marker"), "the spans are in the tables");
    assert_none("the tables", &rows);
    for format in ["otlp-json", "otlp-protobuf", "zipkin", "chrome"] {
        let out = longpole(&store).args(["export", "--to", format]).output().unwrap();
        assert!(out.status.success(), "{format}: {}", String::from_utf8_lossy(&out.stderr));
        assert_none(format, &out.stdout);
    }
}

#[test]
fn no_credential_is_imported_or_recorded_into_the_store() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let file = sandbox.path("trace.json");
    std::fs::write(&file, serde_json::to_vec(&request("file", 5)).unwrap()).unwrap();
    assert!(longpole(&store).arg("import").arg(&file).output().unwrap().status.success());
    let line = children();
    let run = longpole(&store).args(["run", "--summary", "none", "--", "true"]).args(line.iter().flatten()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_none("the store", &all_bytes(&store));
    for recordings in ["SELECT * FROM recordings.spans LIMIT 4000", "SELECT * FROM recordings.span_events LIMIT 4000"] {
        let out = longpole(&store).args(["sql", "--format", "json", recordings]).output().unwrap();
        if out.status.success() {
            assert_none(recordings, &out.stdout);
        }
    }
    let listed = longpole(&store).args(["ls", "--format", "json"]).output().unwrap();
    assert_none("the list", &listed.stdout);
}

#[test]
fn no_recording_holds_the_secret_id_of_its_run() {
    let sandbox = Sandbox::new();
    let said = sandbox.path("id");
    // It runs long enough for a reading. Its name says nothing about its arguments.
    let program = r#"printf %s "$2" >"$1"; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done"#;
    let script = r#"exec sh -c "$1" sh "$2" "$LONGPOLE_RUN_ID""#;
    for redact in ["on", "off"] {
        let store = sandbox.path(redact);
        let mut run = longpole(&store);
        run.args(["run", "--summary", "none", "--redact", redact, "--", "sh", "-c", script, "sh", program]).arg(&said);
        assert!(run.status().unwrap().success());
        let id = std::fs::read_to_string(&said).unwrap();
        assert_eq!(id.len(), 32);
        let query = "SELECT arguments, lpad(encode(root_span_id, 'hex'), 32, '0') AS name FROM processes, runs WHERE pid = root_pid";
        let out = longpole(&store).args(["sql", "--format", "json", query]).output().unwrap();
        let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
        for row in answer["rows"].as_array().unwrap() {
            let arguments = row["arguments"].to_string();
            assert!(!arguments.contains(&id), "--redact {redact}: {arguments}");
        }
        let bytes = all_bytes(&store);
        assert!(!bytes.windows(id.len()).any(|window| window == id.as_bytes()), "--redact {redact}: the store holds it");
        let shown = answer["rows"].to_string();
        let name = answer["rows"][0]["name"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(shown.matches(name).count() > answer["rows"].as_array().unwrap().len(), "the name stands in its place: {answer}");
    }
}
