//! Story: one call that changes the store of `longpole serve` fails, whichever it is, once or from then on.
//! Guarantees: the server starts or says why it cannot; a client learns what was not kept; after one failure the server goes on by itself,
//! takes all that is sent again and moves it into segments; everything acknowledged is there once, for the next server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use longpole_testing::random::Random;
use serde_json::json;

use crate::support::http;
use crate::support::served::Served;
use crate::support::{Sandbox, c, recent_nanos};

/// Counts the calls that change something below a folder, and fails the one of a number; all from there on with `STORY_FAIL=always`.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void path_of(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    path[length < 0 ? 0 : length] = 0;
}

static int fails(const char *call, const char *path, int error) {
    static long count;
    const char *below = getenv("STORY_BELOW"), *at = getenv("STORY_FAIL_AT"), *mode = getenv("STORY_FAIL"), *report = getenv("STORY_REPORT");
    if (!below || strncmp(path, below, strlen(below)) != 0) return 0;
    long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED), wanted = atol(at);
    if (number != wanted && !(number > wanted && strcmp(mode, "always") == 0)) return 0;
    if (number == wanted) {
        char line[8300];
        int length = snprintf(line, sizeof line, "%s %s\n", call, path + strlen(below));
        int file = syscall(SYS_openat, AT_FDCWD, report, O_WRONLY | O_CREAT | O_APPEND, 0600);
        syscall(SYS_write, file, line, length);
        syscall(SYS_close, file);
    }
    errno = error;
    return 1;
}

static int fails_of_fd(const char *call, int fd, int error) {
    char path[4096];
    path_of(fd, path, sizeof path);
    return fails(call, path, error);
}

static int fails_at(const char *call, int folder, const char *name, int error) {
    char path[8200];
    if (name[0] == '/' || folder == AT_FDCWD) return fails(call, name, error);
    path_of(folder, path, 4096);
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "/%s", name);
    return fails(call, path, error);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE(flags) mode_t mode = 0; if ((flags) & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) {
    MODE(flags);
    if (flags & O_CREAT && fails("open", path, ENOSPC)) return -1;
    return REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags);
    if (flags & O_CREAT && fails("open", path, ENOSPC)) return -1;
    return REAL(open64)(path, flags, mode);
}
ssize_t write(int fd, const void *bytes, size_t size) { return fails_of_fd("write", fd, ENOSPC) ? -1 : REAL(write)(fd, bytes, size); }
ssize_t writev(int fd, const struct iovec *parts, int number) { return fails_of_fd("write", fd, ENOSPC) ? -1 : REAL(writev)(fd, parts, number); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    return fails_of_fd("pwrite", fd, ENOSPC) ? -1 : REAL(pwrite64)(fd, bytes, size, at);
}
int ftruncate64(int fd, off64_t size) { return fails_of_fd("ftruncate", fd, EIO) ? -1 : REAL(ftruncate64)(fd, size); }
int fsync(int fd) { return fails_of_fd("fsync", fd, EIO) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails_of_fd("fdatasync", fd, EIO) ? -1 : REAL(fdatasync)(fd); }
int mkdir(const char *path, mode_t mode) { return fails("mkdir", path, ENOSPC) ? -1 : REAL(mkdir)(path, mode); }
int rmdir(const char *path) { return fails("rmdir", path, EIO) ? -1 : REAL(rmdir)(path); }
int unlink(const char *path) { return fails("unlink", path, EIO) ? -1 : REAL(unlink)(path); }
int unlinkat(int folder, const char *name, int flags) { return fails_at("unlink", folder, name, EIO) ? -1 : REAL(unlinkat)(folder, name, flags); }
int rename(const char *from, const char *to) { return fails("rename", to, EIO) ? -1 : REAL(rename)(from, to); }
int link(const char *from, const char *to) { return fails("link", to, ENOSPC) ? -1 : REAL(link)(from, to); }
int linkat(int from_in, const char *from, int to_in, const char *to, int flags) {
    return fails_at("link", to_in, to, ENOSPC) ? -1 : REAL(linkat)(from_in, from, to_in, to, flags);
}
"#;

/// Spans of a trace.
const SPANS: usize = 3;

/// Traces that a server with a failing disk is sent.
const TRACES: u64 = 4;

/// How often a client sends a refused request.
const TRIES: usize = 20;

/// Without `LONGPOLE_STORY_ALL_CALLS` one call in seven fails, and each run begins with another one.
const CALLS_APART: u64 = 7;

fn body(trace: u64) -> String {
    let span = |span: usize| {
        json!({
            "traceId": format!("{trace:032x}"),
            "spanId": format!("{:016x}", span + 1),
            "name": "reserve",
            "startTimeUnixNano": recent_nanos().to_string(),
            "endTimeUnixNano": (recent_nanos() + 500_000_000).to_string(),
        })
    };
    let spans: Vec<_> = (0..SPANS).map(span).collect();
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "cart" } }] });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{ "spans": spans }] }] }).to_string()
}

/// Whether this trace was acknowledged at one of these tries. Clients understand the status of a refusal.
fn send(served: &Served, trace: u64, tries: usize) -> bool {
    (0..tries).any(|_| {
        let answer = http::post(served.port("otlp-http"), "/v1/traces", "application/json", &body(trace)).unwrap();
        assert!(matches!(answer.status, 200 | 503), "{} {}", answer.status, answer.body);
        answer.status == 200
    })
}

/// Waits until all spans stand in segments, or, where that may not come, until the server says why not.
#[track_caller]
fn wait_for_segments(served: &Served, mode: &str, failed: &str) {
    let begun = Instant::now();
    loop {
        let metrics = http::get(served.port("admin"), "/metrics").body;
        let ready = http::get(served.port("admin"), "/readyz");
        let is_reported = mode == "always" && ready.status == 503;
        if is_reported || metrics.contains("\nlongpole_head_spans 0\n") && ready.status == 200 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "after a failed {failed}: {} {metrics}", ready.body);
        thread::yield_now();
    }
}

/// What one run with a failure did: the call that failed; `None` if the run made fewer calls.
fn run(base: &Path, store: &Path, shim: &Path, call: u64, mode: &str) -> Option<String> {
    let report = store.with_extension("report");
    assert!(Command::new("cp").arg("-r").arg(base).arg(store).status().unwrap().success());
    let number = call.to_string();
    let variables = [
        ("LD_PRELOAD", shim),
        ("STORY_BELOW", store),
        ("STORY_FAIL_AT", Path::new(&number)),
        ("STORY_FAIL", Path::new(mode)),
        ("STORY_REPORT", &report),
    ];
    let failed_call = || std::fs::read_to_string(&report).ok().map(|line| line.trim().to_owned());
    // The first trace stands in the log that an earlier server left.
    let mut acknowledged = BTreeSet::from([1]);
    if let Some(served) = Served::try_start(store, &["--segment-every", "10ms"], &variables) {
        for trace in 2..2 + TRACES {
            let is_acknowledged = send(&served, trace, TRIES);
            assert!(is_acknowledged || mode == "always", "trace {trace} is refused after one failed {:?}", failed_call());
            acknowledged.extend(is_acknowledged.then_some(trace));
            wait_for_segments(&served, mode, &failed_call().unwrap_or_default());
        }
        served.kill();
    }
    let failed = failed_call();
    let served = Served::start(store);
    for trace in 1..2 + TRACES {
        let found = http::get(served.port("page"), &format!("/api/traces/{trace:032x}"));
        let spans = if found.status == 200 { found.json()["data"][0]["spans"].as_array().unwrap().len() } else { 0 };
        let is_right = spans == SPANS || spans == 0 && !acknowledged.contains(&trace);
        assert!(is_right, "{mode} from call {call}, {failed:?}: trace {trace} has {spans} spans; acknowledged: {acknowledged:?}");
    }
    served.stop();
    std::fs::remove_dir_all(store).unwrap();
    let _ = std::fs::remove_file(report);
    failed
}

#[test]
fn whichever_call_fails_nothing_acknowledged_is_lost() {
    const STORY: &str = "whichever_call_fails_nothing_acknowledged_is_lost";
    let sandbox = Sandbox::new();
    let Some(shim) = c::compile_with(&sandbox, STORY, "failing.so", SHIM, &["-shared", "-fPIC", "-ldl"]) else { return };
    let base = sandbox.path("base");
    let served = Served::start(&base);
    assert!(send(&served, 1, 1));
    served.kill();
    let all = std::env::var_os("LONGPOLE_STORY_ALL_CALLS").is_some();
    let (step, first) = if all { (1, 1) } else { (CALLS_APART, 1 + Random(std::process::id().into()).below(CALLS_APART as usize) as u64) };
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    for mode in ["once", "always"] {
        let mut call = first;
        // Until a run makes fewer calls.
        while let Some(line) = run(&base, &sandbox.path(&format!("store-{mode}-{call}")), &shim, call, mode) {
            let site: String = line.chars().filter(|char| !char.is_ascii_digit()).collect();
            *failed.entry(site).or_default() += 1;
            call += step;
        }
        assert!(call > 60, "only {call} calls were made");
    }
    println!("{} calls failed, at {} places", failed.values().sum::<u64>(), failed.len());
    failed.iter().for_each(|(place, count)| println!("{count:4} {place}"));
}
