//! Story: a thread waits for a lock, and somebody wants to know who had it, and what that one did instead of giving it back.
//! Guarantees: of a mutex of the C library, also a recursive, robust or priority-inheriting one, the thread that holds it is named because
//! the lock itself names it; of locks of Rust and Python, which do not, it is inferred from what ran when the lock was given back, and
//! marked so; what the holder did meanwhile, asleep or on a CPU, is named with its function, for as long as the program itself measured; a join
//! is a wait for a thread to end; a condition is no lock: the thread that woke it is named. As root and as plain user.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use longpole_testing::holds;
use serde_json::Value;
use tracing::{Span, info_span};

use crate::support::c::compile;
use crate::support::{Sandbox, can_sample, json, longpole, plain_user, role, skip};

/// Waits in the first thread, each time for another one; says how long. The first thread has most of the CPU time, so the waits are the
/// program's.
const C: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t of_news = PTHREAD_MUTEX_INITIALIZER;
static int has_news;
static int ready[2];
static volatile unsigned long sink;

static double now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void spin(double seconds) {
    double until = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (now(CLOCK_THREAD_CPUTIME_ID) < until)
        for (int i = 0; i < 20000; i++) sink = sink * 31 + i;
}

__attribute__((noinline)) static void nap_with_lock(void) { usleep(120000); }
__attribute__((noinline)) static void work_with_lock(void) { spin(0.12); sink++; }
__attribute__((noinline)) static void end_late(void) { usleep(110000); sink++; }
__attribute__((noinline)) static void write_news(void) { spin(0.1); sink++; }

static void hold(const char *name, void (*body)(void)) {
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&lock);
    if (write(ready[1], "x", 1) != 1) return;
    body();
    pthread_mutex_unlock(&lock);
    usleep(30000);
}

static void *napper(void *unused) { hold("napper", nap_with_lock); return unused; }
static void *worker(void *unused) { hold("worker", work_with_lock); return unused; }
static void *ender(void *unused) { pthread_setname_np(pthread_self(), "ender"); end_late(); return unused; }
static void *writer(void *unused) {
    pthread_setname_np(pthread_self(), "writer");
    write_news();
    pthread_mutex_lock(&of_news);
    has_news = 1;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&of_news);
    usleep(30000);
    return unused;
}

#define WANTS(name) \
    __attribute__((noinline)) static void name(void) { pthread_mutex_lock(&lock); sink++; pthread_mutex_unlock(&lock); }
WANTS(want_of_napper)
WANTS(want_of_worker)
WANTS(want_recursive)
WANTS(want_robust)
WANTS(want_inheriting)

__attribute__((noinline)) static void want_news(void) {
    pthread_mutex_lock(&of_news);
    while (!has_news) pthread_cond_wait(&news, &of_news);
    pthread_mutex_unlock(&of_news);
}

static void meet(const char *name, void *(*other)(void *), void (*wants)(void), int type, int robust, int protocol) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, type);
    pthread_mutexattr_setrobust(&how, robust);
    pthread_mutexattr_setprotocol(&how, protocol);
    pthread_mutex_init(&lock, &how);
    pthread_t thread;
    char byte;
    pthread_create(&thread, NULL, other, NULL);
    if (read(ready[0], &byte, 1) != 1) return;
    double start = now(CLOCK_MONOTONIC);
    wants();
    printf("%s %f\n", name, now(CLOCK_MONOTONIC) - start);
    pthread_join(thread, NULL);
}

__attribute__((noinline)) static void want_end(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, ender, NULL);
    double start = now(CLOCK_MONOTONIC);
    pthread_join(thread, NULL);
    printf("want_end %f\n", now(CLOCK_MONOTONIC) - start);
}

int main(void) {
    if (pipe(ready)) return 2;
    spin(1.2);
    meet("want_of_napper", napper, want_of_napper, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    meet("want_of_worker", worker, want_of_worker, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    meet("want_recursive", napper, want_recursive, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    meet("want_robust", napper, want_robust, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    meet("want_inheriting", napper, want_inheriting, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    want_end();
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    double start = now(CLOCK_MONOTONIC);
    want_news();
    printf("want_news %f\n", now(CLOCK_MONOTONIC) - start);
    pthread_join(thread, NULL);
    return 0;
}
"#;

/// The same in Python, whose locks do not know who has them; thread names stay Python's own before 3.14.
const PYTHON: &str = r#"
import threading, time

lock = threading.Lock()
held = threading.Event()

def hold_it():
    time.sleep(0.15)

def spin(seconds):
    x = 0
    while time.thread_time() < seconds:
        x = (x * 31 + 7) % 1000003

def holder():
    with lock:
        held.set()
        hold_it()
    time.sleep(0.05)

def end_late():
    time.sleep(0.12)

def want_it():
    start = time.monotonic()
    with lock:
        pass
    print("want_it", time.monotonic() - start)

def want_end(thread):
    start = time.monotonic()
    thread.join()
    print("want_end", time.monotonic() - start)

spin(0.3)
thread = threading.Thread(target=holder)
thread.start()
held.wait()
want_it()
thread.join()
thread = threading.Thread(target=end_late)
thread.start()
want_end(thread)
"#;

/// What is expected of the waits in a function.
struct Expected {
    /// The function that waits.
    function: &'static str,
    kind: &'static str,
    relation: &'static str,
    /// The name of the other thread, where it has one.
    thread: Option<&'static str>,
    evidence: &'static str,
    /// What the other thread did: the function in which it waited, or ran.
    did: Did,
}

enum Did {
    Waited(&'static str),
    Ran(&'static str),
}

/// What the program said it measured, in nanoseconds.
fn measured(stdout: &[u8]) -> BTreeMap<String, f64> {
    let text = String::from_utf8_lossy(stdout);
    let figure = |line: &str| {
        let (name, seconds) = line.split_once(' ')?;
        Some((name.to_owned(), seconds.trim().parse::<f64>().ok()? * 1e9))
    };
    text.lines().filter_map(figure).collect()
}

/// Holds the waits of a span against what the program measured.
#[track_caller]
fn check(span: &Value, measured: &BTreeMap<String, f64>, expected: &Expected) {
    let context = || format!("{}: {}\n{measured:?}", expected.function, serde_json::to_string_pretty(&span["waits"]).unwrap());
    let is_its = |wait: &&Value| {
        let function = wait["function"].as_str().unwrap_or_default();
        wait["kind"] == expected.kind && (function == expected.function || function.ends_with(&format!("::{}", expected.function)))
    };
    let wait = span["waits"].as_array().unwrap().iter().find(is_its).unwrap_or_else(|| panic!("no such wait: {}", context()));
    let took = measured[expected.function];
    let near = |nanos: &Value, part: f64| {
        let nanos = nanos.as_f64().unwrap();
        assert!(nanos > took * 0.95 * part - 3e6 && nanos < took + 3e6, "{nanos} of {took}\n{}", context());
    };
    near(&wait["nanos"], 1.0);
    let blocked = &wait["blocked_by"];
    assert_eq!(blocked["relation"], expected.relation, "{}", context());
    assert_eq!(blocked["threads"].as_array().unwrap().len(), 1, "{}", context());
    let thread = &blocked["threads"][0];
    assert_eq!((thread["name"].as_str(), thread["evidence"].as_str().unwrap()), (expected.thread, expected.evidence), "{}", context());
    near(&thread["nanos"], 1.0);
    let text = blocked["text"].as_str().unwrap();
    let (function, nanos) = match expected.did {
        Did::Waited(function) => (function, &thread["waits"][0]["nanos"]),
        // Others may have the CPUs meanwhile: it burned so much, whatever that took.
        Did::Ran(function) => {
            assert!(thread["weight_nanos"].as_f64().unwrap() > 60e6, "{}", context());
            (function, &thread["nanos"])
        }
    };
    // What it did before, or while it had no CPU, is no part of that.
    near(nanos, 0.5);
    assert!(text.contains(function), "{text} does not name {function}\n{}", context());
}

fn c_holder_is_named(span: &Value, stdout: &[u8]) {
    let measured = measured(stdout);
    let lock = |function, thread, did| Expected { function, kind: "lock", relation: "holds", thread: Some(thread), evidence: "futex", did };
    for expected in [
        lock("want_of_napper", "napper", Did::Waited("nap_with_lock")),
        lock("want_of_worker", "worker", Did::Ran("spin")),
        lock("want_recursive", "napper", Did::Waited("nap_with_lock")),
        lock("want_robust", "napper", Did::Waited("nap_with_lock")),
        lock("want_inheriting", "napper", Did::Waited("nap_with_lock")),
        Expected { kind: "join", relation: "ends", ..lock("want_end", "ender", Did::Waited("end_late")) },
        Expected { kind: "queue", relation: "wakes", evidence: "inferred", ..lock("want_news", "writer", Did::Ran("spin")) },
    ] {
        check(span, &measured, &expected);
    }
}

#[test]
fn a_glibc_mutex_names_its_holder() {
    const STORY: &str = "a_glibc_mutex_names_its_holder";
    let sandbox = Sandbox::new();
    if !can_sample(STORY) {
        return;
    }
    let Some(program) = compile(&sandbox, STORY, "locks", C) else { return };
    let store = sandbox.path("store");
    let out = longpole(&store).args(["run", "--"]).arg(&program).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    c_holder_is_named(&json(longpole(&store).args(["span", "s1", "--format", "json"])), &out.stdout);
}

#[test]
fn a_plain_user_sees_who_holds_a_lock() {
    const STORY: &str = "a_plain_user_sees_who_holds_a_lock";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, STORY) else { return };
    if !can_sample(STORY) {
        return;
    }
    let Some(program) = compile(&sandbox, STORY, "locks", C) else { return };
    let store = sandbox.path("store");
    let mut run = user.command(&user.longpole());
    let run = run.arg("--store").arg(&store).args(["run", "--"]).arg(user.install(&program));
    let out = run.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let span = json(user.command(&user.longpole()).arg("--store").arg(&store).args(["span", "s1", "--format", "json"]));
    c_holder_is_named(&span, &out.stdout);
}

/// Recordings of the Rust program that must name all holders, of all that are made.
const NAMED_OF_ROUNDS: (usize, usize) = (1, 4);

/// Says that the Rust program is to play.
const PLAYS: &str = "LONGPOLE_STORY_LOCKS";

#[inline(never)]
fn nap_with_lock() -> Instant {
    std::thread::sleep(Duration::from_millis(120));
    Instant::now()
}

#[inline(never)]
fn write_news() -> Instant {
    std::thread::sleep(Duration::from_millis(110));
    Instant::now()
}

#[inline(never)]
fn end_late() -> Instant {
    std::thread::sleep(Duration::from_millis(100));
    Instant::now()
}

#[inline(never)]
fn want_lock(lock: &Mutex<u64>) -> u64 {
    *lock.lock().unwrap()
}

#[inline(never)]
fn want_news(news: &(Mutex<bool>, Condvar)) -> bool {
    *news.1.wait_while(news.0.lock().unwrap(), |has_news| !*has_news).unwrap()
}

#[inline(never)]
fn want_end(thread: std::thread::JoinHandle<()>) -> bool {
    thread.join().is_ok()
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap()
}

/// The program in Rust: its spans are those of the SDK.
#[test]
fn perform() {
    if std::env::var_os(PLAYS).is_none() {
        return;
    }
    println!();
    let said = |name: &str, span: Span, body: &mut dyn FnMut()| {
        let entered = span.entered();
        let start = Instant::now();
        body();
        println!("{name} {}", start.elapsed().as_secs_f64());
        drop(entered);
    };
    longpole_sdk::run(|| {
        // Until the recorder has read this large binary.
        std::thread::sleep(Duration::from_millis(1_500));
        let lock = std::sync::Arc::new(Mutex::new(0u64));
        let (held, holds) = mpsc::channel();
        let its = std::sync::Arc::clone(&lock);
        let napper = thread("napper", move || {
            let mut guard = its.lock().unwrap();
            held.send(()).unwrap();
            black_box(nap_with_lock());
            *guard += 1;
            drop(guard);
            std::thread::sleep(Duration::from_millis(40));
        });
        holds.recv().unwrap();
        said("want_lock", info_span!("want_lock"), &mut || assert_eq!(want_lock(&lock), 1));
        napper.join().unwrap();

        let news = std::sync::Arc::new((Mutex::new(false), Condvar::new()));
        let its = std::sync::Arc::clone(&news);
        let writer = thread("writer", move || {
            black_box(write_news());
            *its.0.lock().unwrap() = true;
            its.1.notify_one();
            std::thread::sleep(Duration::from_millis(40));
        });
        said("want_news", info_span!("want_news"), &mut || assert!(want_news(&news)));
        writer.join().unwrap();

        let mut ender = Some(thread("ender", || {
            black_box(end_late());
        }));
        said("want_end", info_span!("want_end"), &mut || assert!(want_end(ender.take().unwrap())));
    });
}

#[test]
fn the_holder_of_a_rust_lock_is_inferred() {
    const STORY: &str = "the_holder_of_a_rust_lock_is_inferred";
    if !can_sample(STORY) {
        return;
    }
    // If another thread of the program ran at the same moment, no holder is named.
    let (held, of) = NAMED_OF_ROUNDS;
    holds(held, of, "the holder of a Rust lock is inferred", rust_holders_are_named);
}

/// Whether all holders are named in a recording. A wrong one fails the test.
fn rust_holders_are_named() -> Result<(), String> {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    let out = run.args(["run", "--"]).args(role("name_who_holds_a_lock::perform")).env(PLAYS, "1").stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let measured = measured(&out.stdout);
    let tree = json(longpole(&store).args(["tree", "--format", "json"]));
    let names = tree["names"].as_array().unwrap();
    let row_of = |name: &str| {
        let rows = tree["spans"]["name"].as_array().unwrap();
        rows.iter().position(|row| names[row.as_u64().unwrap() as usize] == name).unwrap()
    };
    let lock = |function, thread, relation, did| Expected {
        function,
        kind: match relation {
            "ends" => "join",
            "wakes" => "queue",
            _ => "lock",
        },
        relation,
        thread: Some(thread),
        evidence: if relation == "ends" { "futex" } else { "inferred" },
        did,
    };
    let all = [
        lock("want_lock", "napper", "holds", Did::Waited("nap_with_lock")),
        lock("want_news", "writer", "wakes", Did::Waited("write_news")),
        // Which frame of it is found depends on how the sleep was called.
        lock("want_end", "ender", "ends", Did::Waited("")),
    ];
    for expected in all {
        let handle = format!("s{}", row_of(expected.function) + 1);
        let span = json(longpole(&store).args(["span", &handle, "--format", "json"]));
        let is_unsure = |wait: &Value| wait["blocked_by"]["threads"].as_array().is_none_or(Vec::is_empty);
        if span["waits"].as_array().unwrap().iter().all(is_unsure) {
            return Err(format!("nobody is named in {}", expected.function));
        }
        check(&span, &measured, &expected);
    }
    let said = longpole(&store).args(["poles"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout);
    for words in ["waiting for a thread to end", "until thread ender ends: asleep, in", "held by thread napper (inferred): asleep, in"] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    Ok(())
}

#[test]
fn the_holder_of_a_python_lock_is_inferred_and_joins_are_joins() {
    const STORY: &str = "the_holder_of_a_python_lock_is_inferred_and_joins_are_joins";
    let python = Path::new("/usr/bin/python3");
    if !can_sample(STORY) || Command::new(python).arg("--version").output().is_err() {
        return skip(STORY, "there is no /usr/bin/python3");
    }
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("program.py"));
    std::fs::write(&program, PYTHON).unwrap();
    let out = longpole(&store).args(["run", "--"]).arg(python).arg(&program).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let measured = measured(&out.stdout);
    let span = json(longpole(&store).args(["span", "s1", "--format", "json"]));
    // Its threads have no names that the kernel knows, and are called by the functions that they begin with.
    let wants =
        |function, kind, relation, thread, did| Expected { function, kind, relation, thread: Some(thread), evidence: "inferred", did };
    check(&span, &measured, &wants("want_it", "lock", "holds", "holder", Did::Waited("hold_it")));
    check(&span, &measured, &wants("want_end", "join", "ends", "end_late", Did::Waited("end_late")));
}

/// Two requests at once, each in a thread and a span of its own that does not say so. The second waits for the lock that the first one holds.
const REQUESTS: &str = r#"
import json, os, threading, time, urllib.request

lock = threading.Lock()
held = threading.Event()
spans = []

def write_back():
    time.sleep(0.4)

def request(name, number, handle):
    start = time.time_ns()
    handle()
    spans.append({"traceId": "%032x" % number, "spanId": "%016x" % number, "name": name, "kind": 2,
                  "startTimeUnixNano": str(start), "endTimeUnixNano": str(time.time_ns())})

def hold():
    with lock:
        held.set()
        write_back()

def want():
    held.wait()
    with lock:
        pass

threads = [threading.Thread(target=request, args=one) for one in [("first", 1, hold), ("second", 2, want)]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
resource = {"telemetry.sdk.language": {"stringValue": "python"}, "process.pid": {"intValue": str(os.getpid())}}
body = {"resourceSpans": [{"resource": {"attributes": [{"key": key, "value": value} for key, value in resource.items()]},
                           "scopeSpans": [{"spans": spans}]}]}
url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
sent = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
urllib.request.urlopen(sent).read()
"#;

#[test]
fn a_span_that_names_no_thread_says_what_its_thread_waits_for() {
    const STORY: &str = "a_span_that_names_no_thread_says_what_its_thread_waits_for";
    let python = Path::new("/usr/bin/python3");
    if !can_sample(STORY) || Command::new(python).arg("--version").output().is_err() {
        return skip(STORY, "there is no /usr/bin/python3");
    }
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("requests.py"));
    std::fs::write(&program, REQUESTS).unwrap();
    let out = longpole(&store).args(["run", "--"]).arg(python).arg(&program).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let span = json(longpole(&store).args(["span", "second", "--format", "json"]));
    let (lock, whole) = (span["states"]["blocked_nanos"]["lock"].as_f64().unwrap(), span["duration_nanos"].as_f64().unwrap());
    assert!(lock > whole * 0.6, "{span}");
    let wait = span["waits"].as_array().unwrap().iter().find(|wait| wait["kind"] == "lock").unwrap_or_else(|| panic!("{span}"));
    let text = wait["blocked_by"]["text"].as_str().unwrap();
    // Nobody tells the holder of Python's lock: it is inferred, or one of two.
    assert!(wait["function"] == "want" && (text.contains("asleep, in write_back") || text.contains("one of 2 threads")), "{wait}");
}
