//! Line 9: another user, a web page or a dead neighbour's pid sends spans into a recording.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::another_user;
use crate::starve_the_receiver::{body, lost, span_names};
use crate::support::{PlainUser, Sandbox, clean, has_program, json, longpole, role, skip};

/// The same command, with a limit of descriptors.
fn limited(command: &Command, descriptors: u64) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n $0; exec \"$@\"", &descriptors.to_string()]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// A command that is recorded and does nothing until it may end.
struct Recorded {
    run: Child,
    store: PathBuf,
    /// `127.0.0.1:PORT` of its receiver.
    address: String,
    /// Its `TRACEPARENT`, which services hand on to others.
    traceparent: String,
}

impl Recorded {
    fn new(sandbox: &Sandbox) -> Self {
        Recorded::with_descriptors(sandbox, None)
    }

    /// With at most this number of descriptors, if any.
    fn with_descriptors(sandbox: &Sandbox, count: Option<u64>) -> Self {
        let (store, said) = (sandbox.path("store"), sandbox.path("endpoint"));
        let script = "echo $OTEL_EXPORTER_OTLP_ENDPOINT $TRACEPARENT >$0.part; mv $0.part $0; read -r _";
        let mut run = longpole(&store);
        run.args(["run", "--summary", "none", "--no-profile", "--", "sh", "-c", script]).arg(&said);
        let mut run = match count {
            None => run,
            Some(count) => limited(&run, count),
        };
        let run = run.stdin(Stdio::piped()).spawn().unwrap();
        while !said.exists() {
            std::thread::yield_now();
        }
        let said = std::fs::read_to_string(said).unwrap();
        let (address, traceparent) = said.trim().strip_prefix("http://").unwrap().split_once(' ').unwrap();
        Recorded { run, store, address: address.to_owned(), traceparent: traceparent.to_owned() }
    }

    /// Ends the command; the names of the spans that came, and the reported losses.
    fn end(mut self) -> (Vec<String>, Value) {
        drop(self.run.stdin.take());
        self.run.wait().unwrap();
        (span_names(&self.store), json(longpole(&self.store).args(["show", "--format", "json"]))["quality"].clone())
    }
}

const JSON: &str = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n";

fn request(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Posts to the receiver and gives the status of its answer.
fn post(address: &str, path: &str, headers: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request(path, headers, body).as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap()
}

const ZIPKIN: &str = r#"[{"traceId":"5b6794d1b1db5ba6","id":"6c9d6a3ef7b4d6cf","name":"NAME","timestamp":1000,"duration":5}]"#;

#[test]
fn a_web_page_cannot_send_and_programs_can() {
    let sandbox = Sandbox::new();
    let recorded = Recorded::new(&sandbox);
    let spans = body("of a web page");
    let otlp = |headers: &str| post(&recorded.address, "/v1/traces", headers, &spans);
    // What a browser adds to a request of a page, which the page cannot leave out.
    assert_eq!(otlp(&format!("{JSON}Origin: https://evil.example\r\n")), 403);
    assert_eq!(otlp(&format!("{JSON}Origin: null\r\n")), 403);
    assert_eq!(otlp(&format!("{JSON}Sec-Fetch-Site: cross-site\r\n")), 403);
    // A name of the attacker's that was made to resolve to 127.0.0.1.
    assert_eq!(otlp("Host: rebound.evil.example\r\nContent-Type: application/json\r\n"), 403);
    // Zipkin, at whatever path, by what needs no permission: a form, `sendBeacon`, `fetch` without CORS.
    let page = ZIPKIN.replace("NAME", "of a web page");
    for content_type in ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = format!("Host: 127.0.0.1\r\nContent-Type: {content_type}\r\n");
        assert_eq!(post(&recorded.address, "/api/v2/spans", &headers, &page), 415, "{content_type}");
        assert_eq!(post(&recorded.address, "/", &headers, &page), 404, "{content_type}");
    }
    assert_eq!(post(&recorded.address, "/anything/at/all", JSON, &page), 404);
    assert_eq!(post(&recorded.address, "/api/v2/spans", &format!("{JSON}Origin: https://evil.example\r\n"), &page), 403);

    assert_eq!(post(&recorded.address, "/v1/traces", JSON, &body("of a program")), 200);
    let local = "Host: localhost\r\nContent-Type: application/json; charset=utf-8\r\n";
    assert_eq!(post(&recorded.address, "/api/v2/spans", local, &ZIPKIN.replace("NAME", "of zipkin's client")), 202);
    let (spans, quality) = recorded.end();
    assert_eq!(spans, ["of a program", "of zipkin's client"]);
    assert_eq!(lost(&quality, "requests_refused", "web pages"), 4, "{quality}");
    assert!(lost(&quality, "requests_refused", "another host") == 1, "{quality}");
    assert!(!quality.to_string().contains("evil"), "what a page says of itself does not stand in the recording: {quality}");
}

#[test]
fn another_user_cannot_send() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "another_user_cannot_send") else { return };
    let recorded = Recorded::new(&sandbox);
    let program = install_this(&sandbox);
    let attacker = |how: &str| {
        let mut command = user.command(&program);
        let words = role(&format!("send_spans_of_others::{how}"));
        command.args(&words[1..]).env("LONGPOLE_STORY_ADDRESS", &recorded.address);
        command.env("LONGPOLE_STORY_TRACEPARENT", &recorded.traceparent);
        command
    };
    let send = |how: &str| {
        let out = attacker(how).output().unwrap();
        assert!(out.status.success(), "{how}: {}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    };
    send("send_and_read");
    send("send_and_be_gone");
    send("forge_by_the_traceparent");
    send("take_all_connections");
    // As fast as it can, while spans of the run come.
    let mut flood = attacker("send_no_spans_and_be_gone").stdout(Stdio::null()).spawn().unwrap();
    for i in 0..30 {
        assert_eq!(post(&recorded.address, "/v1/traces", JSON, &body(&format!("meanwhile {i}"))), 200, "{i}");
        assert_eq!(flood.try_wait().unwrap(), None, "the attack goes on");
    }
    flood.kill().unwrap();
    flood.wait().unwrap();
    let log = std::fs::read_dir(recorded.store.join("recordings/r1/wal")).unwrap();
    let log: u64 = log.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(log < 100_000, "{log} bytes of others are kept");
    assert_eq!(post(&recorded.address, "/v1/traces", JSON, &body("of the same user")), 200);
    let (spans, quality) = recorded.end();
    let (meanwhile, others): (Vec<_>, Vec<_>) = spans.into_iter().partition(|name| name.starts_with("meanwhile"));
    assert_eq!((meanwhile.len(), others), (30, vec!["of the same user".to_owned()]));
    assert!(lost(&quality, "requests_refused", "uid 65534") > 0, "{quality}");
    assert!(lost(&quality, "requests_refused", "before longpole could identify them") > 0, "{quality}");
}

#[test]
fn another_user_cannot_write_into_the_recording() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "another_user_cannot_write_into_the_recording") else { return };
    let recorded = Recorded::new(&sandbox);
    let words = role("send_spans_of_others::send_words_and_be_gone");
    let mut attacker = user.command(&install_this(&sandbox));
    let out = attacker.args(&words[1..]).env("LONGPOLE_STORY_ADDRESS", &recorded.address).output().unwrap();
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    // An error in a request of the run has its own message.
    assert_eq!(post(&recorded.address, "/v1/traces", JSON, "{bad"), 400);
    let (_, quality) = recorded.end();
    let text = quality.to_string();
    assert!(!text.contains("evil") && !text.contains("body broken off") && text.contains("key must be a string"), "{quality}");
    assert!(lost(&quality, "requests_refused", "before longpole could identify them") > 0, "{quality}");
}

/// The other user's program: requests that are wrong in many words, closed before anybody can ask whose the connection is.
#[test]
fn send_words_and_be_gone() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    for i in 0..1000 {
        let headers = match i % 4 {
            0 => format!("Host: evil{i}\r\nContent-Type: application/json\r\n"),
            1 => format!("Host: localhost\r\nContent-Type: evil{i}\r\n"),
            2 => format!("{JSON}Content-Encoding: evil{i}\r\n"),
            // Its last byte does not come.
            _ => JSON.to_owned(),
        };
        let Ok(mut stream) = TcpStream::connect(&address) else { continue };
        let request = request("/v1/traces", &headers, "evil");
        let _ = stream.write_all(&request.as_bytes()[..request.len() - usize::from(i % 4 == 3)]);
    }
}

#[test]
fn another_user_cannot_send_by_exhausting_descriptors() {
    let sandbox = Sandbox::new();
    let Some(user) = another_user(&sandbox, "another_user_cannot_send_by_exhausting_descriptors") else { return };
    let program = install_this(&sandbox);
    for descriptors in [34, 36, 38] {
        let sandbox = Sandbox::new();
        let recorded = Recorded::with_descriptors(&sandbox, Some(descriptors));
        let words = role("send_spans_of_others::send_from_everywhere");
        let mut attacker = user.command(&program);
        let out = attacker.args(&words[1..]).env("LONGPOLE_STORY_ADDRESS", &recorded.address).output().unwrap();
        assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        let (spans, quality) = recorded.end();
        assert_eq!(spans, Vec::<String>::new(), "{quality}");
        assert_eq!(lost(&quality, "environment", "any user of this machine"), 0, "{quality}");
    }
}

/// The other user's program: more connections at the same time than there are descriptors for, each with a span.
#[test]
fn send_from_everywhere() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    for _ in 0..20 {
        let mut streams: Vec<TcpStream> = (0..40).map_while(|_| TcpStream::connect(&address).ok()).collect();
        for stream in &mut streams {
            let _ = stream.write_all(request("/v1/traces", JSON, &body("of another user")).as_bytes());
        }
        for stream in &mut streams {
            stream.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
            let mut answer = [0; 12];
            let _ = stream.read(&mut answer);
            assert!(!answer.ends_with(b"200"));
        }
    }
}

/// This test binary where other users can read it. Copied by a process of its own: a descriptor that is open for writing while another test
/// forks would keep it from being executed.
pub(crate) fn install_this(sandbox: &Sandbox) -> PathBuf {
    let copy = sandbox.path("bin").join("attacks");
    assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap().success());
    std::fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

/// The other user's program: by every protocol.
#[test]
fn send_and_read() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    assert_eq!(post(&address, "/v1/traces", JSON, &body("of another user")), 403);
    assert_eq!(post(&address, "/api/v2/spans", JSON, &ZIPKIN.replace("NAME", "of another user")), 403);
}

/// The other user's program: closes before anybody can ask whose the connection is.
#[test]
fn send_and_be_gone() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    for _ in 0..300 {
        let Ok(mut stream) = TcpStream::connect(&address) else { continue };
        let _ = stream.write_all(request("/v1/traces", JSON, &body("of another user")).as_bytes());
    }
}

/// The other user's program: a service that the command called, so that it knows the trace and the span of the run.
#[test]
fn forge_by_the_traceparent() {
    let Ok(traceparent) = std::env::var("LONGPOLE_STORY_TRACEPARENT") else { return };
    let address = std::env::var("LONGPOLE_STORY_ADDRESS").unwrap();
    let [_, trace, span, _] = traceparent.split('-').collect::<Vec<_>>()[..] else { panic!("{traceparent}") };
    for id in [span.to_owned(), trace.to_owned(), format!("{span:0>32}")] {
        let resource =
            format!(r#""resourceSpans":[{{"resource":{{"attributes":[{{"key":"longpole.run.id","value":{{"stringValue":"{id}"}}}}]}},"#);
        let forged = body("forged").replace(r#""resourceSpans":[{"#, &resource);
        for _ in 0..100 {
            let Ok(mut stream) = TcpStream::connect(&address) else { continue };
            let _ = stream.write_all(request("/v1/traces", JSON, &forged).as_bytes());
        }
    }
}

/// The other user's program: sends resources without spans, and closes before anybody can ask whose the connection is, until it is killed.
#[test]
fn send_no_spans_and_be_gone() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    let filler = "y".repeat(60_000);
    let spans = format!(r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"x","value":{{"stringValue":"{filler}"}}}}]}}}}]}}"#);
    let request = request("/v1/traces", JSON, &spans);
    loop {
        let Ok(mut stream) = TcpStream::connect(&address) else { continue };
        let _ = stream.write_all(request.as_bytes());
    }
}

/// The other user's program: holds as many connections as it can get.
#[test]
fn take_all_connections() {
    let Ok(address) = std::env::var("LONGPOLE_STORY_ADDRESS") else { return };
    // The receiver may reset one before `connect` returns.
    let held: Vec<TcpStream> = (0..700).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    assert!(held.len() > 100);
}

#[test]
fn a_forward_target_cannot_send_for_the_run() {
    let sandbox = Sandbox::new();
    let (store, copies) = (sandbox.path("store"), sandbox.path("copies.json"));
    let words = role("send_spans_of_others::send_as_sdks_do");
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--no-profile", "--otel-traces", &format!("file:{}", copies.display()), "--"]);
    let run = run.args(&words).env("LONGPOLE_STORY_SEND_AS_SDKS_DO", sandbox.path("id")).output().unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let id = std::fs::read_to_string(sandbox.path("id")).unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let copies = std::fs::read_to_string(copies).unwrap();
    assert!(copies.contains("of the run") && copies.contains("longpole.run.id") && !copies.contains(&id), "{copies}");
    let query = "SELECT name, resource_attributes['longpole.run.id'] AS run FROM spans";
    let answer = json(longpole(&store).args(["sql", query, "--format", "json"]));
    let run = answer["rows"][0]["run"].as_str().unwrap();
    assert!(copies.matches(run).count() >= 2, "the copies name the run as the recording does, and its own span, too: {answer} {copies}");
    assert_ne!(run, id);
}

/// The command: sends what its environment says of its resource.
#[test]
fn send_as_sdks_do() {
    let Some(said) = std::env::var_os("LONGPOLE_STORY_SEND_AS_SDKS_DO") else { return };
    let attributes = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap();
    let id = attributes.split_once("longpole.run.id=").unwrap().1;
    assert_eq!(Ok(id.to_owned()), std::env::var("LONGPOLE_RUN_ID"));
    assert!(!std::env::var("TRACEPARENT").unwrap().contains(id));
    std::fs::write(said, id).unwrap();
    let resource =
        format!(r#""resourceSpans":[{{"resource":{{"attributes":[{{"key":"longpole.run.id","value":{{"stringValue":"{id}"}}}}]}},"#);
    let spans = body("of the run").replace(r#""resourceSpans":[{"#, &resource);
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    assert_eq!(post(endpoint.strip_prefix("http://").unwrap(), "/v1/traces", JSON, &spans), 200);
}

#[test]
fn a_process_of_the_run_can_send_after_changing_its_user() {
    let sandbox = Sandbox::new();
    if another_user(&sandbox, "a_process_of_the_run_can_send_after_changing_its_user").is_none() {
        return;
    }
    let program = install_this(&sandbox);
    let store = sandbox.path("store");
    let words = role("send_spans_of_others::send_own");
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--no-profile", "--", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    let run = run.arg(&program).args(&words[1..]).env("LONGPOLE_STORY_SEND_OWN", "1").current_dir("/").output().unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(span_names(&store), ["of the run"]);
}

/// The command: sends to where its environment says.
#[test]
fn send_own() {
    if std::env::var_os("LONGPOLE_STORY_SEND_OWN").is_none() {
        return;
    }
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    assert_eq!(post(endpoint.strip_prefix("http://").unwrap(), "/v1/traces", JSON, &body("of the run")), 200);
}

/// Whether this user can make a user namespace that knows no user, so that everybody in it and outside has the same number.
pub(crate) fn makes_namespaces(user: &PlainUser, story: &str) -> bool {
    let works = user.command(Path::new("unshare")).args(["-U", "true"]).output().is_ok_and(|out| out.status.success());
    if !works {
        skip(story, "unshare may not make a user namespace here");
    }
    works
}

/// A command as a third user, who is neither root nor the plain one.
pub(crate) fn as_third_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65533", "--regid=65533", "--clear-groups"]).arg(program);
    clean(&mut command);
    command
}

/// A folder of the plain user's.
pub(crate) fn home_of(sandbox: &Sandbox) -> PathBuf {
    let home = sandbox.path("home");
    std::fs::create_dir(&home).unwrap();
    assert!(Command::new("chown").arg("65534:65534").arg(&home).status().unwrap().success());
    home
}

#[test]
fn the_same_uid_in_another_user_namespace_cannot_send() {
    let sandbox = Sandbox::new();
    let story = "the_same_uid_in_another_user_namespace_cannot_send";
    let Some(user) = another_user(&sandbox, story) else { return };
    if !makes_namespaces(&user, story) {
        return;
    }
    let program = install_this(&sandbox);
    let home = home_of(&sandbox);
    let (store, said) = (home.join("store"), home.join("address"));
    let words = role("send_spans_of_others::send_own_and_wait");
    let mut run = user.command(Path::new("unshare"));
    run.arg("-U").arg(user.longpole()).arg("--store").arg(&store).args(["run", "--summary", "none", "--no-profile", "--"]);
    run.arg(&program).args(&words[1..]).env("LONGPOLE_STORY_SAID", &said).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut run = run.spawn().unwrap();
    while !said.exists() {
        assert_eq!(run.try_wait().unwrap(), None, "the command waits");
        std::thread::yield_now();
    }
    let words = role("send_spans_of_others::send_and_read");
    let mut other = as_third_user(&program);
    let other = other.args(&words[1..]).env("LONGPOLE_STORY_ADDRESS", std::fs::read_to_string(&said).unwrap()).current_dir("/").output();
    let other = other.unwrap();
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
    assert!(other.status.success(), "{}{}", String::from_utf8_lossy(&other.stdout), String::from_utf8_lossy(&other.stderr));
    let answer = json(user.with_store(&store).args(["sql", "SELECT name FROM spans", "--format", "json"]));
    assert_eq!(answer["rows"].as_array().unwrap().iter().map(|row| &row["name"]).collect::<Vec<_>>(), ["of the run"]);
    let quality = json(user.with_store(&store).args(["show", "--format", "json"]))["quality"].clone();
    assert_eq!(lost(&quality, "requests_refused", "does not distinguish"), 2, "{quality}");
}

/// The command: sends, says where to, and waits.
#[test]
fn send_own_and_wait() {
    let Some(said) = std::env::var_os("LONGPOLE_STORY_SAID").map(PathBuf::from) else { return };
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    let address = endpoint.strip_prefix("http://").unwrap();
    assert_eq!(post(address, "/v1/traces", JSON, &body("of the run")), 200);
    let part = said.with_extension("part");
    std::fs::write(&part, address).unwrap();
    std::fs::rename(part, said).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// The parent sends, hands its connection to its child and ends; the child sends over the same connection.
const HEIR: &str = r#"
endpoint=${OTEL_EXPORTER_OTLP_ENDPOINT#http://}
exec 3<>"/dev/tcp/${endpoint%:*}/${endpoint#*:}"
send() {
  printf 'POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#1}" "$1" >&3
  read -r status <&3
  while read -r line <&3 && [ "$line" != $'\r' ]; do :; done
  read -r -n 2 answer <&3
  [ "$answer" = '{}' ] || exit 9
}
send "$1"
echo $$ >"$3.parent"
parent=$$
( while [ -e /proc/$parent ]; do :; done
  send "$2"
  echo $BASHPID >"$3" ) &
"#;

#[test]
fn the_pid_of_a_dead_process_is_not_trusted() {
    if !has_program("a connection that is inherited", "bash") {
        return;
    }
    let sandbox = Sandbox::new();
    let (store, done) = (sandbox.path("store"), sandbox.path("done"));
    let mut run = longpole(&store);
    clean(&mut run);
    run.args(["run", "--summary", "none", "--no-profile", "--", "sh", "-c"]);
    run.args(["bash -c \"$0\" bash \"$1\" \"$2\" \"$3\"; while [ ! -s \"$3\" ]; do :; done", HEIR, &body("parent"), &body("heir")])
        .arg(&done);
    let run = run.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let pid_in = |path: &Path| std::fs::read_to_string(path).unwrap().trim().parse::<u64>().unwrap();
    let (parent, heir) = (pid_in(&sandbox.path("done.parent")), pid_in(&done));
    let answer = json(longpole(&store).args(["sql", "SELECT name, pid FROM spans ORDER BY name", "--format", "json"]));
    let pids: Vec<(&str, u64)> =
        answer["rows"].as_array().unwrap().iter().map(|row| (row["name"].as_str().unwrap(), row["pid"].as_u64().unwrap())).collect();
    assert_eq!(pids, [("heir", heir), ("parent", parent)]);
}

/// Sends a span whose resource says the number that this process has in its own namespace.
const INSIDE: &str = r#"
endpoint=${OTEL_EXPORTER_OTLP_ENDPOINT#http://}
body=${1/PID/$$}
exec 3<>"/dev/tcp/${endpoint%:*}/${endpoint#*:}"
printf 'POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&3
read -r status <&3
[[ $status == *200* ]]
"#;

#[test]
fn a_pid_of_another_namespace_is_not_trusted() {
    let works = Command::new("unshare").args(["--pid", "--fork", "true"]).output().is_ok_and(|out| out.status.success());
    if !works {
        skip("spans from another namespace of process ids", "unshare may not make one here");
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let resource = r#""resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"PID"}}]},"#;
    let body = body("inside").replace(r#""resourceSpans":[{"#, resource);
    let run = longpole(&store)
        .args(["run", "--summary", "none", "--no-profile", "--", "unshare", "--pid", "--fork", "bash", "-c", INSIDE, "bash", &body])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let query = "SELECT pid, resource_attributes['process.vpid'] AS inside FROM spans";
    let answer = json(longpole(&store).args(["sql", query, "--format", "json"]));
    let row = &answer["rows"][0];
    assert_eq!(row["inside"], "1", "{answer}");
    assert!(row["pid"].as_u64().unwrap() > 1, "our process 1 has nothing to do with it: {answer}");
}

/// A request with a span of always the same ids that says it is of this process and takes so long.
fn same_ids(name: &str, pid: u32, seconds: u64) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"process.pid","value":{{"intValue":"{pid}"}}}}]}},"scopeSpans":[{{"spans":[
        {{"traceId":"5b6794d1b1db5ba65b6794d1b1db5ba6","spanId":"6c9d6a3ef7b4d6cf","name":"{name}","kind":1,
        "startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"{}000000000"}}]}}]}}]}}"#,
        1_700_000_000 + seconds
    )
}

#[test]
fn a_sender_cannot_replace_the_span_of_another() {
    let sandbox = Sandbox::new();
    let recorded = Recorded::new(&sandbox);
    let us = std::process::id();
    let forge = || {
        let words = role("send_spans_of_others::forge_a_neighbours_span");
        let mut neighbour = Command::new(&words[0]);
        neighbour.args(&words[1..]).env("LONGPOLE_STORY_ADDRESS", &recorded.address).env("LONGPOLE_STORY_VICTIM", us.to_string());
        assert!(neighbour.output().unwrap().status.success());
    };
    forge();
    for _ in 0..2 {
        assert_eq!(post(&recorded.address, "/v1/traces", JSON, &same_ids("own", us, 1)), 200);
    }
    forge();
    let (spans, quality) = recorded.end();
    assert_eq!(spans, ["own"], "{quality}");
    assert_eq!(
        (lost(&quality, "spans_duplicate", "another process sent"), lost(&quality, "spans_duplicate", "twice")),
        (2, 1),
        "{quality}"
    );
}

/// A process of the same user: sends what it knows the ids of, in the victim's name, once at once and once with a later end.
#[test]
fn forge_a_neighbours_span() {
    let Ok(victim) = std::env::var("LONGPOLE_STORY_VICTIM") else { return };
    let address = std::env::var("LONGPOLE_STORY_ADDRESS").unwrap();
    assert_eq!(post(&address, "/v1/traces", JSON, &same_ids("forged", victim.parse().unwrap(), 60)), 200);
}
