//! Story: the recorder is killed in the middle of a run (out of memory, an impatient operator).
//! Guarantees: every span whose request was answered with success is in the recording, which says that its recorder was
//! killed; the command ends as if nothing had happened, also when the recorder ends by its own fault.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use crate::support::{Sandbox, c, longpole, role};

/// Moments at which the recorder is killed.
const MOMENTS: u64 = 100;

/// The kills that must hit a recorder before it ends by itself; a busy machine may be late with some.
const KILLED_MIN: usize = 90;

/// Requests the program sends, most of them after the recorder is gone in most rounds.
const REQUESTS: u64 = 60;

#[test]
fn acknowledged_spans_survive_a_kill_at_any_moment() {
    let sandbox = Sandbox::new();
    let killed = (0..MOMENTS).filter(|moment| kill_at(&sandbox, *moment)).count();
    println!("{killed} of {MOMENTS} recorders were killed before they ended");
    assert!(killed >= KILLED_MIN, "only {killed} of {MOMENTS} recorders were killed before they ended");
}

/// Kills the recorder after a number of acknowledgements (spread over the run, the start included), plus a little more work. Returns whether it
/// was still alive.
fn kill_at(sandbox: &Sandbox, moment: u64) -> bool {
    let dir = sandbox.path(&format!("round-{moment}"));
    std::fs::create_dir_all(&dir).unwrap();
    let store = dir.join("store");
    let mut recorder = longpole(&store)
        .args(["run", "--summary", "none", "--"])
        .args(role("survive_a_crash::emit"))
        .env("LONGPOLE_STORY_DIR", &dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    // A permutation of the rounds, so that neighbouring rounds are not alike.
    let wanted = moment * 37 % MOMENTS * REQUESTS / MOMENTS;
    // The test harness writes the name of the role on the same line. Killed before its gate was opened, the command would not have been started at all.
    let begun = lines.by_ref().map_while(Result::ok).any(|line| line.ends_with("begun"));
    assert!(begun, "round {moment}: the program did not begin");
    let mut acknowledged = 0;
    while acknowledged < wanted {
        let line = lines.next().expect("the program acknowledges more requests than it is killed after").unwrap();
        if line.starts_with("acknowledged ") {
            acknowledged += 1;
        }
    }
    for _ in 0..moment * 1_000 {
        std::hint::spin_loop();
    }
    recorder.kill().unwrap();
    let was_killed = std::os::unix::process::ExitStatusExt::signal(&recorder.wait().unwrap()) == Some(libc::SIGKILL);
    // The program goes on without its recorder, to its own end: only then its output closes.
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line == "ended normally"), "round {moment}: the program did not end by itself: {rest:?}");

    let acknowledged = std::fs::read_to_string(dir.join("acknowledged")).unwrap();
    let shown = longpole(&store).args(["show", "last", "--format", "json"]).output().unwrap();
    assert!(shown.status.success(), "round {moment}: {}", String::from_utf8_lossy(&shown.stderr));
    let view: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let codes: Vec<&str> = view["quality"].as_array().unwrap().iter().filter_map(|q| q["code"].as_str()).collect();
    // On a busy machine it may all be over before it is killed.
    assert!(
        !was_killed || codes.contains(&"recorder_killed"),
        "round {moment}: the recording does not say that its recorder was killed: {codes:?}"
    );
    let kept = longpole(&store).args(["sql", "SELECT encode(span_id, 'hex') AS id FROM spans", "--format", "json"]).output().unwrap();
    assert!(kept.status.success(), "round {moment}: {}", String::from_utf8_lossy(&kept.stderr));
    let kept = String::from_utf8(kept.stdout).unwrap();
    for id in acknowledged.lines() {
        assert!(kept.contains(id), "round {moment}: span {id} was acknowledged and is not in the recording");
    }
    std::fs::remove_dir_all(&dir).unwrap();
    was_killed
}

/// A library that ends a recorder by its own fault, in the middle of a request.
const ABORTING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t writev(int fd, const struct iovec *parts, int number) {
    static int count;
    char link[64], path[4096];
    ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    int is_log = strstr(path, "/recordings/") != NULL && strcmp(program_invocation_short_name, "longpole") == 0;
    if (is_log && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == 20) abort();
    return real(fd, parts, number);
}
"#;

#[test]
fn a_recorder_that_aborts_hangs_up() {
    const STORY: &str = "a_recorder_that_aborts_hangs_up";
    let sandbox = Sandbox::new();
    let Some(shim) = c::compile_with(&sandbox, STORY, "aborting.so", ABORTING, &["-shared", "-fPIC", "-ldl"]) else { return };
    let mut recorder = longpole(&sandbox.path("store"));
    recorder.args(["run", "--summary", "none", "--"]).args(role("survive_a_crash::emit"));
    recorder.env("LONGPOLE_STORY_DIR", sandbox.path("")).env("LD_PRELOAD", shim);
    // Without limits of its own the program would wait for an answer for good.
    let out = recorder.output().unwrap();
    let (shown, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(errors.contains("the command continues without longpole"), "{errors}");
    assert!(out.status.success() && shown.contains("ended normally"), "{shown}");
    let acknowledged = shown.lines().filter(|line| line.starts_with("acknowledged ")).count() as u64;
    assert!(acknowledged < REQUESTS, "{acknowledged}");
}

/// The program: one request after the other, each span noted once it is acknowledged.
#[test]
fn emit() {
    let (Some(dir), Ok(endpoint)) = (std::env::var_os("LONGPOLE_STORY_DIR"), std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT")) else { return };
    println!("begun");
    let mut noted = std::fs::File::create(Path::new(&dir).join("acknowledged")).unwrap();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(true).build().into();
    for number in 1..=REQUESTS {
        let request = request(number);
        let sent =
            agent.post(format!("{endpoint}/v1/traces")).header("content-type", "application/x-protobuf").send(&request.encode_to_vec()[..]);
        if sent.is_ok() {
            writeln!(noted, "{number:016x}").unwrap();
            println!("acknowledged {number}");
        }
    }
    println!("ended normally");
}

fn request(number: u64) -> ExportTraceServiceRequest {
    let span = Span {
        trace_id: vec![7; 16],
        span_id: number.to_be_bytes().to_vec(),
        name: format!("step {number}"),
        start_time_unix_nano: 1_700_000_000_000_000_000 + number,
        end_time_unix_nano: 1_700_000_000_000_000_900 + number,
        ..Span::default()
    };
    let scope = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() }] }
}
