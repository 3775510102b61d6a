//! Line 4: connections that never finish a request keep everybody else's spans out.
//!
//! Each attack is the recorded command itself: it begins requests and leaves them, and then exports a span as any SDK would, which gives up
//! after ten seconds.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::another_user;
use crate::send_spans_of_others::install_this;
use crate::support::{Sandbox, json, longpole, role};

/// Set for the command, not for the test.
const ATTACK: &str = "LONGPOLE_STORY_ATTACK";

/// How long exporters wait by default.
const PATIENCE: Duration = Duration::from_secs(10);

fn is_the_command() -> bool {
    std::env::var_os(ATTACK).is_some()
}

/// Records this function of this binary as a command, and returns the names of the spans that arrived, and the reported losses.
fn record(function: &str) -> (Vec<String>, Value) {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--no-profile", "--"]).args(role(function)).env(ATTACK, "1");
    let run = run.output().unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    (span_names(&store), json(longpole(&store).args(["show", "--format", "json"]))["quality"].clone())
}

pub(crate) fn span_names(store: &Path) -> Vec<String> {
    let answer = json(longpole(store).args(["sql", "SELECT name FROM spans ORDER BY name", "--format", "json"]));
    answer["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// What of a kind was lost, and why.
pub(crate) fn lost(quality: &Value, code: &str, why: &str) -> u64 {
    let of = |note: &&Value| note["code"] == code && note["detail"].as_str().unwrap_or_default().contains(why);
    quality.as_array().unwrap().iter().filter(of).map(|note| note["count"].as_u64().unwrap()).sum()
}

/// `127.0.0.1:PORT` of the receiver.
fn otlp() -> String {
    std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap().strip_prefix("http://").unwrap().to_owned()
}

/// A request with one span.
pub(crate) fn body(name: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let id: u64 = name.bytes().fold(7, |id, byte| id.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{:032x}","spanId":"{id:016x}","name":"{name}","kind":1,
        "startTimeUnixNano":"{now}","endTimeUnixNano":"{now}"}}]}}]}}]}}"#,
        u128::from(id)
    )
}

/// Exports one span over a connection, and gives the status of the answer.
fn export_by(stream: &mut TcpStream, name: &str) -> std::io::Result<u16> {
    let body = body(name);
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n{}") {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
        if answer.len() > 4096 {
            break;
        }
        let status = String::from_utf8_lossy(&answer);
        if status.contains("\r\n") && !status.starts_with("HTTP/1.1 200") {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&answer[9..12]).parse().unwrap())
}

/// Exports one span as an SDK does, on a connection of its own.
fn export(name: &str) -> std::io::Result<u16> {
    export_by(&mut TcpStream::connect(otlp())?, name)
}

/// A frame of HTTP/2 on the first stream.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags, 0, 0, 0, stream]);
    frame.extend(payload);
    frame
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The headers of an export over gRPC, without any compression.
fn grpc_headers() -> Vec<u8> {
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let pairs =
        [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("content-type", "application/grpc")];
    let mut block = Vec::new();
    for (name, value) in pairs {
        block.extend([0, name.len() as u8]);
        block.extend(name.bytes());
        block.push(value.len() as u8);
        block.extend(value.bytes());
    }
    block
}

/// Every way to begin and not to end.
fn beginnings() -> Vec<Vec<u8>> {
    let settings = frame(4, 0, 0, b"");
    let headers = grpc_headers();
    let half_body = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{".to_vec();
    vec![
        b"POST /v1/traces HTTP/1.1\r\nHost: loc".to_vec(),
        half_body,
        PREFACE[..20].to_vec(),
        // Within a frame; headers without their end; a stream without its data.
        [PREFACE, &settings, &[0, 0, 9, 0]].concat(),
        [PREFACE, &settings, &frame(1, 0, 1, &headers)].concat(),
        [PREFACE, &settings, &frame(1, 4, 1, &headers)].concat(),
    ]
}

#[test]
fn unfinished_requests_on_all_connections_keep_no_span_out() {
    let (spans, quality) = record("starve_the_receiver::begin_and_leave");
    assert_eq!(spans, ["after all"]);
    assert!(lost(&quality, "requests_refused", "stalled") > 0, "what was cut is counted: {quality}");
}

/// The command: more half requests than there are connections.
#[test]
fn begin_and_leave() {
    if !is_the_command() {
        return;
    }
    let beginnings = beginnings();
    let held: Vec<TcpStream> = (0..600)
        .map(|i| {
            let mut stream = TcpStream::connect(otlp()).unwrap();
            stream.write_all(&beginnings[i % beginnings.len()]).unwrap();
            stream
        })
        .collect();
    assert_eq!(export("after all").expect("the export was answered"), 200);
    drop(held);
}

#[test]
fn connections_that_the_kernel_dropped_are_counted() {
    let (spans, quality) = record("starve_the_receiver::fill_the_queue");
    assert_eq!(spans, ["after all"]);
    assert!(lost(&quality, "requests_refused", "the kernel dropped") > 0, "{quality}");
}

/// The command: connections until the kernel takes no more, while the receiver accepts none.
#[test]
fn fill_the_queue() {
    if !is_the_command() {
        return;
    }
    let recorder = std::os::unix::process::parent_id() as i32;
    let address = otlp().parse().unwrap();
    // SAFETY: a call without pointers.
    unsafe { libc::kill(recorder, libc::SIGSTOP) };
    // A connection that its client has closed waits as well.
    let is_full = (0..100_000).any(|_| TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_err());
    // SAFETY: as above.
    unsafe { libc::kill(recorder, libc::SIGCONT) };
    assert!(is_full);
    assert_eq!(export("after all").expect("the export was answered"), 200);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn bodies_that_stall_do_not_keep_the_memory_of_all() {
    let (spans, quality) = record("starve_the_receiver::hold_the_memory");
    assert!(spans.contains(&"first".to_owned()) && spans.contains(&"last".to_owned()), "{spans:?}");
    assert!(lost(&quality, "requests_refused", "stalled") > 0, "what was cut is counted: {quality}");
}

/// The command: all 256 MiB, in bodies whose last byte does not come.
#[test]
fn hold_the_memory() {
    if !is_the_command() {
        return;
    }
    let part = vec![b' '; 1 << 20];
    let held: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = TcpStream::connect(otlp()).unwrap();
            let head = "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
            write!(stream, "{head}Content-Length: {}\r\n\r\n", 64 << 20).unwrap();
            (0..63).for_each(|_| stream.write_all(&part).unwrap());
            stream.write_all(&part[1..]).unwrap();
            stream
        })
        .collect();
    // Until the memory is full and others need it: then one of those that hold it has to go.
    let mut held = held;
    held.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    let begun = Instant::now();
    while !held.iter_mut().any(is_cut) {
        assert_eq!(export("first").expect("the export was answered"), 200, "after {:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody is cut");
    }
    assert_eq!(export("last").expect("the export was answered"), 200);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn who_sends_a_byte_a_second_is_cut_and_who_is_idle_is_not() {
    let (spans, quality) = record("starve_the_receiver::trickle");
    assert_eq!(spans, ["after a rest", "before a rest"]);
    assert!(lost(&quality, "requests_refused", "did not finish within 10 s") > 0, "{quality}");
    assert!(lost(&quality, "requests_refused", "body too slow") > 0, "{quality}");
}

/// The command: requests of all kinds, a byte each second; and a connection that is idle meanwhile, as that of an exporter of metrics is.
#[test]
fn trickle() {
    if !is_the_command() {
        return;
    }
    let mut idle = TcpStream::connect(otlp()).unwrap();
    assert_eq!(export_by(&mut idle, "before a rest").unwrap(), 200);
    let mut idle_http2 = TcpStream::connect(otlp()).unwrap();
    idle_http2.write_all(&[PREFACE, &frame(4, 0, 0, b"")].concat()).unwrap();
    // A head, a body, a frame: what comes at once, and then a byte each second.
    let head = "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n";
    let at_once = [
        head.as_bytes().to_vec(),
        format!("{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{").into_bytes(),
        [PREFACE, &frame(4, 0, 0, b""), &[0, 0, 200, 1, 4, 0, 0, 0, 1]].concat(),
    ];
    let mut slow: Vec<TcpStream> = at_once
        .iter()
        .map(|bytes| {
            let mut stream = TcpStream::connect(otlp()).unwrap();
            stream.write_all(bytes).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let (_open, never) = mpsc::channel::<()>();
    let begun = Instant::now();
    while !slow.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} are still held open", slow.len());
        assert!(never.recv_timeout(Duration::from_secs(1)).is_err());
        slow.retain_mut(|stream| stream.write(b"x").is_ok() && !is_cut(stream));
    }
    assert!(begun.elapsed() > Duration::from_secs(5), "a slow request is given some time");
    assert_eq!(export_by(&mut idle, "after a rest").expect("an idle connection stays"), 200);
    // A ping is answered by a ping.
    idle_http2.write_all(&frame(6, 0, 0, b"12345678")).unwrap();
    idle_http2.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"12345678") {
        let mut byte = [0];
        idle_http2.read_exact(&mut byte).expect("an idle connection of HTTP/2 stays");
        answer.push(byte[0]);
    }
}

/// Whether a request was refused, or its connection is closed.
fn is_cut(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(length) if bytes[..length].starts_with(b"HTTP/1.1 4") || bytes[..length].starts_with(b"HTTP/1.1 5") => return true,
            // The settings of HTTP/2.
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// Packets of a real client: five spans, one of them `pulumi`.
const PACKETS: &[u8] = include_bytes!("../../../longpole-server/src/receive/testdata/appdash.wire");

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn half_packets_on_all_connections_do_not_keep_pulumis_spans_out() {
    let (spans, quality) = record("starve_the_receiver::begin_packets");
    assert!(spans.contains(&"pulumi".to_owned()), "{spans:?}");
    assert!(lost(&quality, "requests_refused", "stalled") > 0, "what was cut is counted: {quality}");
}

/// The command: all connections of AppDash, each with the beginning of a packet.
#[test]
fn begin_packets() {
    if !is_the_command() {
        return;
    }
    let address = std::env::var("PULUMI_OPTION_TRACING").unwrap().strip_prefix("tcp://").unwrap().to_owned();
    let held: Vec<TcpStream> = (0..128)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(&PACKETS[..9]).unwrap();
            stream
        })
        .collect();
    // A client that is closed connects again with its next packet.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        let mut stream = TcpStream::connect(&address).unwrap();
        // It may be closed already.
        let _ = stream.write_all(PACKETS);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0]);
    }
    drop(held);
}

#[test]
fn connections_of_another_user_keep_no_process_out() {
    let sandbox = Sandbox::new();
    let story = "connections_of_another_user_keep_no_process_out";
    let Some(user) = another_user(&sandbox, story) else { return };
    let (store, program) = (sandbox.path("store"), install_this(&sandbox));
    let folder = sandbox.path("said");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let words = role("starve_the_receiver::export_as_another_user");
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--no-profile", "--", "setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"]);
    run.arg(&program).args(&words[1..]).current_dir("/").env("LONGPOLE_STORY_SAID", &folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    while !folder.join("address").exists() {
        std::thread::yield_now();
    }
    let words = role("starve_the_receiver::hold_connections");
    let mut flood = user.command(&program);
    flood.args(&words[1..]).env("LONGPOLE_STORY_ADDRESS", std::fs::read_to_string(folder.join("address")).unwrap());
    let mut flood = flood.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(flood.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("flooding") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the attack goes on");
    }
    std::fs::write(folder.join("go"), "").unwrap();
    let run = run.wait_with_output().unwrap();
    assert_eq!(flood.try_wait().unwrap(), None, "the attack goes on");
    flood.kill().unwrap();
    flood.wait().unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(span_names(&store).len(), 20);
    let quality = json(longpole(&store).args(["show", "--format", "json"]))["quality"].clone();
    assert!(lost(&quality, "requests_refused", "uid 65534") > 0, "{quality}");
    assert_eq!(lost(&quality, "requests_refused", "uid 65533"), 0, "{quality}");
}

/// The command, as another user: exports on request, each time over a new connection.
#[test]
fn export_as_another_user() {
    let Some(folder) = std::env::var_os("LONGPOLE_STORY_SAID").map(PathBuf::from) else { return };
    std::fs::write(folder.join("part"), otlp()).unwrap();
    std::fs::rename(folder.join("part"), folder.join("address")).unwrap();
    while !folder.join("go").exists() {
        std::thread::yield_now();
    }
    for i in 0..20 {
        assert_eq!(export(&format!("of the run {i}")).expect("the export was answered"), 200, "{i}");
    }
}

/// The other user's program: holds 40 connections, and makes another one for each that is closed, until it is killed.
#[test]
fn hold_connections() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    let made = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                loop {
                    let Ok(mut stream) = TcpStream::connect(&address) else { continue };
                    if made.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 60 {
                        println!("flooding");
                    }
                    let _ = stream.read(&mut [0; 100]);
                }
            });
        }
    });
}
