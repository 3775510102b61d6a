//! The page from outside: a real port, a real store, raw requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use longpole_model::{Exit, Observation, ObservationSink, Recording, Run, Timestamp, text};
use longpole_store::{RecordingWriter, Store, SummaryRow};
use serde_json::Value;

use super::*;
use crate::limits::PAGE_CONNECTIONS_MAX;
use crate::peer_process::SocketOwner;

/// A directory that is gone when the test is.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("longpole-server-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left behind is in the folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn recording() -> Recording {
    text::parse(
        "
run         0..100ms
  compress  0..80ms  web  pid 2
  upload    80..100ms  web  pid 2  <- compress
sample 1ms x60 every 1ms  pid 2 tid 2  [compress] main;deflate@src/zip.rs:9
",
    )
    .unwrap()
}

fn write(store: &Store) -> RecordingName {
    let recording = recording();
    let writer = store.create(&recording.run).unwrap();
    let report = longpole_analysis::Report::new(recording);
    let answer = longpole_recording::view::AnswerView::new(&report).map(|answer| serde_json::to_string(&answer).unwrap());
    writer.write_segments(report.recording(), &SummaryRow::of_recording(report.recording(), answer)).unwrap();
    writer.name()
}

/// A recording whose recorder has everything in its log and did not get to seal it.
fn log(store: &Store) -> RecordingWriter {
    let run = Run { end: None, exit: None, ..recording().run };
    let writer = store.create(&run).unwrap();
    let mut sink = writer.wal().observation_sink();
    let start = Timestamp(run.start.unix_nanos());
    sink.observe(Observation::RunStarted { pid: 1, start, mode: longpole_model::CaptureMode::Off }).unwrap();
    sink.flush().unwrap();
    writer.wal().append_otlp_protobuf(Some(2), &longpole_wire::otlp::encode_trace(&recording().spans)).unwrap();
    writer
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.split_once(": ").filter(|(found, _)| *found == name).map(|(_, value)| value))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn code(&self) -> String {
        let error = &self.json()["error"];
        assert!(!error["message"].as_str().unwrap().is_empty());
        error["code"].as_str().unwrap().to_owned()
    }
}

fn ask(page: &Page, head: &str) -> Answer {
    let mut stream = TcpStream::connect(page.address()).unwrap();
    write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    let end = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(received[..end].to_vec()).unwrap();
    Answer { status: head[9..12].parse().unwrap(), head, body: received[end + 4..].to_vec() }
}

fn token(page: &Page) -> &str {
    page.url().split_once("token=").unwrap().1
}

fn get(page: &Page, path: &str) -> Answer {
    let cookie = format!("longpole_{}={}", page.address().port(), token(page));
    ask(page, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: theme=dark; {cookie}", page.address()))
}

#[test]
fn who_has_the_token_and_the_right_host_gets_in() {
    let directory = Directory::new();
    let name = write(&Store::open(&directory.0).unwrap());
    let page = Page::start(&directory.0, name, 0, Access::Token, SourceConsent::default(), PageClients::default()).unwrap();
    let (port, token) = (page.address().port(), token(&page).to_owned());
    assert_eq!(token.len(), 32);
    assert_eq!(page.url(), format!("http://127.0.0.1:{port}/?token={token}"));
    assert_eq!(page.url_of(name), format!("http://127.0.0.1:{port}/r/r1?token={token}"));
    let local = format!("Host: 127.0.0.1:{port}");
    let cookie = format!("Cookie: longpole_{port}={token}");
    let other = token.chars().rev().collect::<String>();
    let check = |target: &str, headers: &str, status: u16, code: &str| {
        let answer = ask(&page, &format!("GET {target} HTTP/1.1\r\n{headers}"));
        assert_eq!(answer.status, status, "{target} {headers}");
        if status != 200 {
            assert_eq!(answer.code(), code);
        }
        for (header, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
            assert_eq!(answer.header(header), Some(value));
        }
        assert!(answer.header("content-security-policy").unwrap().starts_with("default-src 'self'; "));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        answer
    };
    let api = "/api/recordings";
    let with_token = format!("{api}?token={token}");
    let answer = check(&with_token, &local, 200, "");
    assert_eq!(answer.header("set-cookie"), Some(&*format!("longpole_{port}={token}; HttpOnly; SameSite=Strict; Path=/")));
    assert_eq!(check(api, &format!("{local}\r\n{cookie}"), 200, "").header("set-cookie"), None);
    check(api, &format!("{local}\r\nCookie: a=b; longpole_{port}={token}; c"), 200, "");
    check(&format!("{api}?x=1&token={token}"), &local, 200, "");
    for host in ["localhost", "localhost:9000", "[::1]:80", "127.0.0.1"] {
        check(api, &format!("Host: {host}\r\n{cookie}"), 200, "");
    }
    check(api, &local, 401, "unauthorized");
    check(&format!("{api}?token={other}"), &local, 401, "unauthorized");
    check(&format!("{api}?token="), &local, 401, "unauthorized");
    check(&format!("{api}?nottoken={token}"), &local, 401, "unauthorized");
    check(api, &format!("{local}\r\nCookie: longpole_{}={token}", port ^ 1), 401, "unauthorized");
    check(api, &format!("{local}\r\nCookie: longpole_{port}={other}"), 401, "unauthorized");
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "user@127.0.0.1", "127.0.0.2", ""] {
        check(&with_token, &format!("Host: {host}\r\n{cookie}"), 403, "forbidden_host");
    }
    // A person gets words instead of JSON, and files are as closed as the API.
    let person = ask(&page, &format!("GET / HTTP/1.1\r\n{local}\r\nAccept: text/html,*/*"));
    assert_eq!((person.status, person.header("content-type")), (401, Some("text/html; charset=utf-8")));
    assert!(String::from_utf8(person.body).unwrap().contains("Open the whole address that <code>longpole open</code> printed"));
    check("/assets/index.js", &local, 401, "unauthorized");
    page.close().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn every_view_is_served_and_missing_ones_are_errors() {
    let directory = Directory::new();
    let store = Store::open(&directory.0).unwrap();
    let name = write(&store);
    let page = Page::start(&directory.0, name, 0, Access::Token, SourceConsent::default(), PageClients::default()).unwrap();
    let view = |path: &str| {
        let answer = get(&page, path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!((answer.header("content-type"), answer.header("cache-control")), (Some("application/json"), Some("no-store")));
        answer.json()
    };
    let list = view("/api/recordings");
    assert_eq!(list["recordings"][0]["recording"], "r1");
    assert_eq!(list["recordings"][0]["state"], "sealed");
    assert_eq!(list["recordings"][0]["answer"]["name"], "compress");
    assert_eq!(list["recordings"][0]["answer"]["function"], "deflate");
    for same in ["r1", "1", "last"] {
        let summary = view(&format!("/api/recordings/{same}"));
        assert_eq!((&summary["recording"], &summary["schema"]), (&"r1".into(), &"longpole.summary/1".into()));
    }
    assert_eq!(view("/api/recordings/r1/poles")["poles"][0]["handle"], "p1");
    assert_eq!(view("/api/recordings/r1/tree")["spans"]["depth"], serde_json::json!([0, 1, 1]));
    assert_eq!(view("/api/recordings/r1/spans/s2")["name"], "compress");
    assert_eq!(view("/api/recordings/r1/spans/p1")["name"], "compress");
    assert_eq!(view("/api/recordings/r1/flame")["span"], Value::Null);
    assert_eq!(view("/api/recordings/r1/flame?span=s2")["span"], "s2");
    assert_eq!(view("/api/recordings/r1/frames/f1")["handle"], "f1");

    let refused = |path: &str, status: u16, code: &str| {
        let answer = get(&page, path);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    };
    refused("/api/recordings/r9", 404, "recording_not_found");
    refused("/api/recordings/r9/tree", 404, "recording_not_found");
    refused("/api/recordings/tree", 400, "bad_name");
    refused("/api/recordings/r1/spans/s99", 404, "not_found");
    refused("/api/recordings/r1/spans/f1", 404, "not_found");
    refused("/api/recordings/r1/spans/p0", 404, "not_found");
    refused("/api/recordings/r1/flame?span=nothing", 404, "not_found");
    refused("/api/recordings/r1/flame?span=s1&span=s2", 400, "bad_request");
    refused("/api/recordings/%ff", 400, "bad_request");
    refused("/api/recordings/r1/frames/s1", 404, "not_found");
    refused("/api/recordings/r1/nothing", 404, "not_found");
    refused("/api", 404, "not_found");
    let deleted = ask(&page, &format!("DELETE /api/recordings/r1?token={} HTTP/1.1\r\nHost: localhost", token(&page)));
    assert_eq!((deleted.status, deleted.code().as_str()), (405, "method_not_allowed"));
    let posted = ask(&page, &format!("POST /?token={} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0", token(&page)));
    assert_eq!((posted.status, posted.code().as_str()), (405, "method_not_allowed"));

    // What is removed is gone, also from memory.
    store.remove(name).unwrap();
    refused("/api/recordings/r1", 404, "recording_not_found");
    refused("/api/recordings/last", 404, "recording_not_found");
    assert_eq!(view("/api/recordings"), serde_json::json!({ "recordings": [], "damaged": [] }));
    page.close().unwrap();
}

#[test]
fn a_store_that_was_made_again_shows_its_own_recordings() {
    let directory = Directory::new();
    let name = write(&Store::open(&directory.0).unwrap());
    let page = Page::start(&directory.0, name, 0, Access::Token, SourceConsent::default(), PageClients::default()).unwrap();
    assert_eq!(get(&page, "/api/recordings/r1").json()["spans"], 2);
    // Some file systems give the numbers of the inodes again.
    std::fs::remove_dir_all(&directory.0).unwrap();
    let store = Store::open(&directory.0).unwrap();
    let other = text::parse("\nrun  0..9ms\n  other  0..9ms  web  pid 2\n").unwrap();
    let writer = store.create(&other.run).unwrap();
    writer.write_segments(&other, &SummaryRow::of_recording(&other, None)).unwrap();
    assert_eq!(writer.name(), name);
    assert_eq!(get(&page, "/api/recordings/r1").json()["spans"], 1);
    assert_eq!(get(&page, "/api/recordings/r1/spans/s2").json()["name"], "other");
    page.close().unwrap();
}

#[test]
fn a_recording_is_refused_while_it_is_made_and_completed_when_its_recorder_died() {
    let directory = Directory::new();
    let store = Store::open(&directory.0).unwrap();
    let writer = log(&store);
    let page = Page::start(&directory.0, writer.name(), 0, Access::Token, SourceConsent::default(), PageClients::default()).unwrap();
    assert_eq!(get(&page, "/api/recordings").json()["recordings"][0]["state"], "recording");
    let living = get(&page, "/api/recordings/r1");
    assert_eq!((living.status, living.code().as_str()), (409, "still_recording"));

    // The kernel lets go of the lock of a recorder that dies.
    drop(writer);
    assert_eq!(get(&page, "/api/recordings").json()["recordings"][0]["state"], "killed");
    let summary = get(&page, "/api/recordings/r1").json();
    assert_eq!((&summary["spans"], &summary["exit"]), (&2.into(), &Value::Null));
    let codes: Vec<_> = summary["quality"].as_array().unwrap().iter().map(|note| note["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"recorder_killed"), "{codes:?}");
    let row = &get(&page, "/api/recordings").json()["recordings"][0];
    assert_eq!((&row["state"], &row["spans"], &row["answer"]["name"]), (&"killed".into(), &2.into(), &"compress".into()));
    page.close().unwrap();
}

#[test]
fn a_log_that_ended_well_and_one_that_was_cut_give_the_same_spans() {
    let directory = Directory::new();
    let store = Store::open(&directory.0).unwrap();
    let writer = log(&store);
    let mut sink = writer.wal().observation_sink();
    let end = Timestamp(recording().run.start.unix_nanos() + 100_000_000);
    sink.observe(Observation::RunEnded { end, exit: Exit::Code(3), cpu_nanos: Some(7) }).unwrap();
    sink.flush().unwrap();
    let own = longpole_recording::seal::seal_own(&writer, Default::default(), &|| false).unwrap().report;
    let killed = log(&store).name();
    let found = longpole_recording::seal::load(&store, killed, &|| false).unwrap();
    assert_eq!(own.recording().spans, found.recording().spans);
    assert_eq!((own.recording().run.exit, found.recording().run.exit), (Some(Exit::Code(3)), None));
    // Sealed once, read ever after.
    let again = longpole_recording::seal::load(&store, writer.name(), &|| panic!("nothing to interrupt")).unwrap();
    assert_eq!(again.recording().spans, own.recording().spans);
}

#[test]
fn sealing_that_is_interrupted_can_be_begun_again() {
    let directory = Directory::new();
    let store = Store::open(&directory.0).unwrap();
    let name = log(&store).name();
    let error = longpole_recording::seal::load(&store, name, &|| true).unwrap_err();
    assert_eq!(error.to_string(), "interrupted; the recorded data stays, and `longpole show r1` continues from there");
    assert_eq!(longpole_recording::seal::load(&store, name, &|| false).unwrap().recording().spans.len(), 2);
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let directory = Directory::new();
    let name = write(&Store::open(&directory.0).unwrap());
    let page = Page::start(&directory.0, name, 0, Access::Token, SourceConsent::default(), PageClients::default()).unwrap();
    assert_eq!(
        Page::start(&directory.0, name, page.address().port(), Access::Token, SourceConsent::default(), PageClients::default())
            .unwrap_err()
            .kind(),
        io::ErrorKind::AddrInUse
    );
}

/// A page, and the directory of its store.
fn page_of(clients: PageClients) -> (Directory, Page) {
    let directory = Directory::new();
    let name = write(&Store::open(&directory.0).unwrap());
    let page = Page::start(&directory.0, name, 0, Access::Token, SourceConsent::default(), clients).unwrap();
    (directory, page)
}

/// A kernel that says at once that everybody is root.
fn all_ours() -> PageClients {
    PageClients { ask_owner: Some(|_, _| Ok(Some(SocketOwner { uid: 0, inode: 7 }))), also: None }
}

#[test]
fn a_redirect_stays_on_this_page() {
    let (_directory, page) = page_of(all_ours());
    let leads_to = |path: &str| get(&page, &format!("{path}?once=x")).header("location").map(str::to_owned);
    for (path, expected) in [
        ("/r/r1", "/r/r1"),
        ("//evil.example/x", "/evil.example/x"),
        ("///evil.example", "/evil.example"),
        ("/\\evil.example", "/evil.example"),
        ("\\\\evil.example", "/evil.example"),
        ("/%2f%2fevil.example", "/%2f%2fevil.example"),
        ("http://evil.example//evil.example/x", "/evil.example/x"),
        ("/", "/"),
    ] {
        // What is no address at all is refused before us.
        let found = leads_to(path);
        assert!(found.as_deref() == Some(expected) || (found.is_none() && path.starts_with('\\')), "{path} {found:?}");
    }
    page.close().unwrap();
}

#[test]
fn a_page_of_one_file_needs_no_token_from_its_user() {
    let directory = Directory::new();
    let name = write(&Store::open(&directory.0).unwrap());
    let page = Page::start(&directory.0, name, 0, Access::OwnUser, SourceConsent::default(), all_ours()).unwrap();
    let port = page.address().port();
    assert_eq!(page.plain_url(), format!("http://localhost:{port}"));
    let ask = |path: &str, headers: &str| ask(&page, &format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}{headers}"));
    let home = ask("/", "\r\nAccept: text/html\r\nSec-Fetch-Site: none");
    assert_eq!((home.status, home.header("location")), (303, Some("/r/r1")));
    let status = |headers: &str| ask("/api/recordings/r1/poles", headers).status;
    assert_eq!(["", "\r\nSec-Fetch-Site: none", "\r\nSec-Fetch-Site: same-origin"].map(status), [200; 3]);
    // Other web pages of the same browser, also those of another port, get nothing.
    let by_others = [
        "\r\nSec-Fetch-Site: cross-site",
        "\r\nSec-Fetch-Site: same-site",
        "\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site",
        "\r\nOrigin: http://evil.example",
    ];
    assert_eq!(by_others.map(status), [401; 4]);
    assert_eq!(super::tests::ask(&page, "GET / HTTP/1.1\r\nHost: evil.example").status, 403);
    page.close().unwrap();
}

#[test]
fn a_client_that_the_kernel_does_not_know_needs_the_token_of_every_page() {
    fn ask_owner(_: std::net::SocketAddr, _: std::net::SocketAddr) -> io::Result<Option<SocketOwner>> {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        Ok((ASKED.fetch_add(1, Ordering::Relaxed) == 0).then_some(SocketOwner { uid: 0, inode: 7 }))
    }
    let directory = Directory::new();
    let name = write(&Store::open(&directory.0).unwrap());
    let clients = PageClients { ask_owner: Some(ask_owner), also: None };
    let page = Page::start(&directory.0, name, 0, Access::OwnUser, SourceConsent::default(), clients).unwrap();
    assert_eq!(ask(&page, "GET /api/recordings HTTP/1.1\r\nHost: localhost").status, 401);
    assert_eq!(get(&page, "/api/recordings").status, 200);
    page.close().unwrap();
}

#[test]
fn no_key_helps_another_user() {
    // The page's own first connection proves that this kernel names owners.
    fn ask(_: std::net::SocketAddr, _: std::net::SocketAddr) -> io::Result<Option<SocketOwner>> {
        static ASKED: AtomicU32 = AtomicU32::new(0);
        let uid = if ASKED.fetch_add(1, Ordering::Relaxed) == 0 { 0 } else { 4_000_000_000 };
        Ok(Some(SocketOwner { uid, inode: 7 }))
    }
    let (_directory, page) = page_of(PageClients { ask_owner: Some(ask), also: None });
    let once = page.url_once_of(RecordingName::parse("r1").unwrap()).unwrap();
    let (_, once) = once.split_once("/r/").unwrap();
    for path in ["/api/recordings", &format!("/api/recordings?token={}", token(&page)), &format!("/r/{once}"), "/"] {
        let answer = get(&page, path);
        assert_eq!((answer.status, answer.code().as_str(), answer.header("set-cookie")), (403, "forbidden_user", None), "{path}");
        assert!(answer.header("content-security-policy").is_some());
    }
    page.close().unwrap();
}

#[test]
fn connections_that_do_nothing_keep_nobody_out() {
    let (_directory, page) = page_of(all_ours());
    let connect = || TcpStream::connect(page.address()).unwrap();
    let idle: Vec<TcpStream> = (0..10 * PAGE_CONNECTIONS_MAX).map(|_| connect()).collect();
    assert_eq!(get(&page, "/api/recordings").status, 200);
    // Heads that never end, and answers that nobody reads.
    let begin = |what: &[u8]| {
        let mut stream = connect();
        stream.write_all(what).unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..PAGE_CONNECTIONS_MAX).map(|_| begin(b"GET / HTTP/1.1\r\nHost: ")).collect();
    assert_eq!(get(&page, "/api/recordings").status, 200);
    let unread: Vec<TcpStream> = (0..PAGE_CONNECTIONS_MAX).map(|_| begin(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")).collect();
    assert_eq!(get(&page, "/api/recordings").status, 200);
    drop((idle, slow, unread));
    page.close().unwrap();
}

#[test]
fn a_head_that_never_ends_is_cut() {
    let (_directory, page) = page_of(all_ours());
    let mut stream = TcpStream::connect(page.address()).unwrap();
    // As slow as the reader of this loop; it ends when the page does not take it any more.
    stream.set_read_timeout(Some(std::time::Duration::from_millis(10))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").unwrap();
    let cut = loop {
        let trickled = stream.write_all(b"a");
        match stream.read(&mut [0; 1024]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) && trickled.is_ok() => {}
            cut => break cut,
        }
    };
    assert!(matches!(cut, Ok(0) | Err(_)), "{cut:?}");
    page.close().unwrap();
}

#[test]
fn answers_that_nobody_reads_are_not_made() {
    let (_directory, page) = page_of(all_ours());
    let cookie = format!("longpole_{}={}", page.address().port(), token(&page));
    // Answers without a body: hyper would buffer one head after the other.
    let requests = format!("GET /r/r1?once=x HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n").repeat(1_000);
    let mut stream = TcpStream::connect(page.address()).unwrap();
    stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    let mut sent = 0;
    // The kernel holds some MiB in each direction, and then the page reads no more.
    while stream.write(requests.as_bytes()).is_ok_and(|count| count > 0) {
        sent += requests.len();
        assert!(sent < 256 << 20, "everything is taken");
    }
    // A client that begins to read gets them.
    let mut answers = vec![0; 8 << 20];
    stream.read_exact(&mut answers).unwrap();
    assert_eq!(get(&page, "/api/recordings").status, 200);
    drop(stream);
    page.close().unwrap();
}

#[tokio::test]
async fn an_address_of_the_api_that_is_not_there_is_no_page() {
    for path in ["/api", "/api/nothing", "/longpole/v1/nothing"] {
        let answer = super::other(axum::extract::Request::get(path).body(axum::body::Body::empty()).unwrap()).await;
        assert_eq!(answer.status().as_u16(), 404, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/json", "{path}");
    }
    // A word that only begins like it may be one of the page.
    let answer = super::other(axum::extract::Request::get("/apiary").body(axum::body::Body::empty()).unwrap()).await;
    assert_ne!(answer.headers()["content-type"], "application/json");
}
