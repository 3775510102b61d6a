//! Story: a service is slow right now, and nobody may restart it.
//! Guarantees: `attach` finds the process and its children, sees code and waits of both and of what they start meanwhile, in containers
//! too, and what it saw is a recording like any other; where samples are refused it says so at once, and shows totals and waits of the time
//! in which it looked; it ends by time, by Ctrl-C, or with the process; the processes themselves never notice.
//! A process that is not there, has ended, or belongs to somebody else is reported with what to do about it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::live_in_a_container::{quality, refuse};
use crate::support::{PlainUser, Sandbox, c, can_sample, json, longpole, plain_user, skip};

/// A shell that works without end, and a child of it that sleeps. Killed when it is dropped.
struct Service {
    shell: Child,
    sleeper: u32,
}

impl Service {
    fn start() -> Service {
        let script = "sleep 1000 & echo $!; while :; do :; done";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Service { shell, sleeper: line.trim().parse().unwrap() }
    }

    fn pid(&self) -> String {
        self.shell.id().to_string()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        Command::new("kill").args(["-KILL", &self.sleeper.to_string()]).status().ok();
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}

#[test]
fn a_service_shows_code_and_waits_and_notices_nothing() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut service = Service::start();
    let answer = json(longpole(&store).args(["attach", "-p", &service.pid(), "-d", "1", "--format", "json"]));
    assert_eq!((answer["processes"].as_u64(), answer["exit"].is_null()), (Some(2), true), "{answer}");
    assert!(answer["samples"].as_u64().unwrap() > 50, "{answer}");
    let attached = &answer["attached"];
    assert_eq!((attached["pid"].as_u64(), attached["threads_seen"].as_u64()), (Some(u64::from(service.shell.id())), Some(2)), "{answer}");
    assert!(attached["blocked_nanos"]["sleep"].as_f64().unwrap() > 0.9e9, "{answer}");
    assert!(!answer["functions"].as_array().unwrap().is_empty() && attached["waits"][0]["kind"] == "sleep", "{answer}");
    let threads = json(longpole(&store).args(["threads", "--format", "json"]));
    let of = |pid: u32| -> &Value { threads["threads"].as_array().unwrap().iter().find(|thread| thread["pid"] == pid).unwrap() };
    let sleeper = of(service.sleeper);
    let slept = sleeper["blocked_nanos"]["sleep"].as_f64().unwrap();
    assert!(slept > 0.9 * sleeper["nanos"].as_f64().unwrap(), "{threads}");
    assert!(of(service.shell.id())["on_cpu_nanos"].as_f64().unwrap() > 50e6, "{threads}");
    assert!(service.shell.try_wait().unwrap().is_none(), "the service runs on");
}

#[test]
fn it_ends_with_ctrl_c_or_with_the_process() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for ends_itself in [false, true] {
        let mut service = Service::start();
        let mut attach = longpole(&store);
        attach.args(["attach", "-p", &service.pid()]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut attached = attach.spawn().unwrap();
        let mut said = String::new();
        let mut errors = BufReader::new(attached.stderr.take().unwrap());
        errors.read_line(&mut said).unwrap();
        assert!(said.contains("until Ctrl-C"), "{said}");
        if ends_itself {
            service.shell.kill().unwrap();
            service.shell.wait().unwrap();
        } else {
            Command::new("kill").args(["-INT", &attached.id().to_string()]).status().unwrap();
        }
        let mut answer = String::new();
        attached.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        assert!(attached.wait().unwrap().success());
        // It did not end: there is nothing that would have ended earlier.
        assert!(answer.contains("recorded for") && answer.contains("THREAD") && !answer.contains("LONG POLES"), "{answer}");
    }
}

/// Burns half a second and says `ready`; on each line burns 200 ms of its own, has a child sleep for 400 ms, and says what it burnt. All
/// the while another thread naps for 100 ms at a time.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double spent(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void take_a_nap(void) {
  struct timespec t = {0, 100000000};
  nanosleep(&t, NULL);
  __asm__ volatile("");
}

static void *naps(void *nothing) {
  pthread_setname_np(pthread_self(), "naps");
  printf("thread %ld\n", (long)syscall(SYS_gettid));
  fflush(stdout);
  for (;;) take_a_nap();
  return nothing;
}

__attribute__((noinline)) static double burn(double seconds) {
  volatile long sum = 0;
  double start = spent();
  while (spent() < start + seconds) for (int i = 0; i < 10000; i++) sum += i;
  return spent() - start;
}

__attribute__((noinline)) static void wait_for_a_child(int child) {
  waitpid(child, NULL, 0);
  __asm__ volatile("");
}

int main(void) {
  pthread_t thread;
  char line[64];
  pthread_create(&thread, NULL, naps, NULL);
  burn(0.5);
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    double burnt = burn(0.2);
    int child = fork();
    if (child == 0) {
      execlp("sleep", "sleep", "0.4", (char *)NULL);
      _exit(9);
    }
    wait_for_a_child(child);
    printf("%f\n", burnt);
    fflush(stdout);
  }
  return 0;
}
"#;

/// A process of [`PROGRAM`], maybe behind another one that started it. Its input ends when it is dropped, and so does it.
struct Worker {
    started: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// Its own thread that naps, by the number it knows it by.
    napper: u32,
}

impl Worker {
    fn start(command: &mut Command) -> Worker {
        let mut started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(started.stdout.take().unwrap()).lines();
        let mut napper = None;
        loop {
            let line = lines.next().expect("it says that it is ready").unwrap();
            napper = line.strip_prefix("thread ").and_then(|tid| tid.parse().ok()).or(napper);
            if line == "ready" {
                break;
            }
        }
        Worker { started, lines, napper: napper.unwrap() }
    }

    /// Has it work once; the CPU time that took.
    fn work(&mut self) -> f64 {
        self.started.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        self.lines.next().expect("it says what it took").unwrap().parse().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.started.stdin.take());
        self.started.wait().ok();
    }
}

/// Attaches to a worker by this command, has it work once, and looks at what came of it with another.
fn is_seen(mut attach: Command, view: impl Fn() -> Command, worker: &mut Worker, (pid, asked): (u32, u32), is_refused: bool) {
    attach
        .args(["attach", "-p", &asked.to_string(), "--format", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut attached = attach.spawn().unwrap();
    let mut said = BufReader::new(attached.stderr.take().unwrap()).lines().map(Result::unwrap);
    let thread = if pid == asked { String::new() } else { format!(" ({asked} is one of its threads)") };
    assert_eq!(said.next().unwrap(), format!("longpole: recording process {pid}{thread} and what it starts, until Ctrl-C"));
    if is_refused {
        let refusal = said.next().unwrap();
        assert!(
            refusal.contains("no samples") && refusal.contains("a seccomp filter") && refusal.contains("--cap-add PERFMON"),
            "{refusal}"
        );
    }
    let burnt = worker.work();
    Command::new("kill").args(["-INT", &attached.id().to_string()]).status().unwrap();
    let mut answer = String::new();
    attached.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    let rest: Vec<String> = said.collect();
    assert!(attached.wait().unwrap().success() && rest.is_empty(), "{rest:?}");
    let answer: Value = serde_json::from_str(&answer).unwrap();

    let ask = |query: &str| json(view().args(["sql", query, "--format", "json"]))["rows"].as_array().unwrap().clone();
    let processes = ask("SELECT pid, name, end_time_monotonic_nano IS NOT NULL AS ended FROM processes ORDER BY start_time_monotonic_nano");
    assert_eq!(processes[0]["pid"], pid, "{processes:?}");
    assert_eq!((&processes[1]["name"], &processes[1]["ended"]), (&"sleep".into(), &true.into()), "{processes:?}");
    if is_refused {
        assert_eq!((&answer["mode"], answer["samples"].as_u64()), (&"refused".into(), Some(0)), "{answer}");
        assert!(quality(&answer, "profiling_refused").unwrap().contains("seccomp"), "{answer}");
    } else {
        let in_burn = "SELECT count(*) AS n FROM samples s JOIN stacks k ON k.stack_id = s.stack_id \
                       JOIN frames f ON f.location_id = k.location_ids[1] WHERE f.function = 'burn'";
        // A sample a millisecond; some of the time is that of the clock, which is read in between.
        assert!(ask(in_burn)[0]["n"].as_u64().unwrap() > 50, "{answer}");
    }
    let threads = json(view().args(["threads", "--format", "json"]))["threads"].as_array().unwrap().clone();
    let main = threads.iter().find(|thread| thread["tid"] == pid).unwrap_or_else(|| panic!("{threads:?}"));
    let on_cpu = main["on_cpu_nanos"].as_f64().unwrap() / 1e9;
    assert!((on_cpu - burnt).abs() < 0.05 + 0.1 * burnt, "{on_cpu} s on a CPU, by itself {burnt} s since longpole attached: {threads:?}");
    let waits =
        ask("SELECT w.kind, w.duration_nanos / 1e9 AS seconds, k.location_ids FROM waits w LEFT JOIN stacks k ON k.stack_id = w.stack_id");
    let frames = ask("SELECT location_id, function FROM frames");
    for (kind, function, least) in [("child", "wait_for_a_child", 0.35), ("sleep", "take_a_nap", 0.2)] {
        let named = |wait: &&Value| {
            let ids = wait["location_ids"].as_array().cloned().unwrap_or_default();
            frames.iter().any(|frame| frame["function"] == function && ids.contains(&frame["location_id"]))
        };
        let seen: f64 = waits.iter().filter(|wait| wait["kind"] == kind).filter(named).map(|wait| wait["seconds"].as_f64().unwrap()).sum();
        assert!(seen > least, "{function}: {seen} s\n{waits:?}\n{frames:?}");
    }
}

#[test]
fn new_children_are_recorded_and_a_thread_id_names_its_process() {
    let story = "new_children_are_recorded_and_a_thread_id_names_its_process";
    let sandbox = Sandbox::new();
    if !can_sample(story) {
        return;
    }
    let Some(program) = c::compile(&sandbox, story, "worker", PROGRAM) else { return };
    let store = sandbox.path("store");
    let mut worker = Worker::start(&mut Command::new(&program));
    let (pid, thread) = (worker.started.id(), worker.napper);
    for asked in [pid, thread] {
        is_seen(longpole(&store), || longpole(&store), &mut worker, (pid, asked), false);
    }
}

#[test]
fn without_samples_attach_records_totals_and_waits() {
    let story = "without_samples_attach_records_totals_and_waits";
    let sandbox = Sandbox::new();
    let Some(program) = c::compile(&sandbox, story, "worker", PROGRAM) else { return };
    let store = sandbox.path("store");
    let mut worker = Worker::start(&mut Command::new(&program));
    let pid = worker.started.id();
    for calls in [&[libc::SYS_perf_event_open][..], &[libc::SYS_perf_event_open, libc::SYS_process_vm_readv, libc::SYS_pidfd_open]] {
        let mut attach = longpole(&store);
        refuse(&mut attach, calls, libc::EPERM);
        is_seen(attach, || longpole(&store), &mut worker, (pid, pid), true);
    }
}

#[test]
fn a_process_in_a_container_is_recorded_from_outside() {
    let story = "a_process_in_a_container_is_recorded_from_outside";
    let sandbox = Sandbox::new();
    let container = ["--pid", "--fork", "--mount-proc"];
    if !Command::new("unshare").args(container).arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skip(story, "unshare cannot make namespaces");
    }
    let Some(program) = c::compile(&sandbox, story, "worker", PROGRAM) else { return };
    let store = sandbox.path("store");
    let mut unshare = Command::new("unshare");
    let script = "mount -t tmpfs none /mnt && cp \"$1\" /mnt/only-here && exec /mnt/only-here";
    unshare.args(container).args(["sh", "-c", script, "sh"]).arg(&program);
    let mut worker = Worker::start(&mut unshare);
    assert!(!Path::new("/mnt/only-here").exists());
    let outer = worker.started.id();
    let inner = std::fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap();
    let inner: u32 = inner.trim().parse().unwrap();
    for is_refused in [false, true] {
        let mut attach = longpole(&store);
        if is_refused {
            refuse(&mut attach, &[libc::SYS_perf_event_open], libc::EPERM);
        } else if !can_sample(story) {
            continue;
        }
        is_seen(attach, || longpole(&store), &mut worker, (inner, inner), is_refused);
    }
}

#[test]
fn a_process_of_another_user_is_refused_with_a_remedy() {
    let story = "a_process_of_another_user_is_refused_with_a_remedy";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, story) else { return };
    let own = std::process::id().to_string();
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    if uid != 0 {
        return skip(story, "there is no process of another user");
    }
    for is_filtered in [false, true] {
        let mut attach = attach_as(&user, &sandbox.path("store"), &own);
        if is_filtered {
            refuse(&mut attach, &[libc::SYS_perf_event_open], libc::EPERM);
        }
        let out = attach.output().unwrap();
        let remedy = "run longpole as that user or as root, or with the capabilities CAP_PERFMON and CAP_SYS_PTRACE";
        let words = format!("longpole: failed to record process {own}: it belongs to another user (uid 0)\nhint: {remedy}\n");
        assert_eq!((String::from_utf8_lossy(&out.stderr).as_ref(), out.status.code()), (words.as_str(), Some(4)));
    }
    let listed =
        String::from_utf8(user.command(&user.longpole()).arg("--store").arg(sandbox.path("store")).arg("ls").output().unwrap().stdout);
    assert!(!listed.unwrap().contains("r1"), "nothing stays behind");
}

fn attach_as(user: &PlainUser, store: &Path, pid: &str) -> Command {
    let mut attach = user.command(&user.longpole());
    attach.arg("--store").arg(store).args(["attach", "-p", pid, "-d", "1"]);
    attach
}

#[test]
fn a_process_that_ends_at_once_is_recorded_or_reported_gone() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for millis in 0..12 {
        let mut short = Command::new("sleep").arg(format!("0.{:03}", millis * 2)).spawn().unwrap();
        let pid = short.id().to_string();
        let out = longpole(&store).args(["attach", "-p", &pid]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        // The process ends before the attach or during the recording; the exit status says which.
        let is_gone = said.contains(&format!("failed to attach to process {pid}: it has ended"));
        assert_eq!(out.status.code(), Some(if is_gone { 3 } else { 0 }), "{said}");
        assert_eq!(said.contains("recording process"), !is_gone, "{said}");
        // Now it is certainly a zombie.
        let out = longpole(&store).args(["attach", "-p", &pid]).output().unwrap();
        assert_eq!(out.status.code(), Some(3));
        short.wait().unwrap();
    }
}

#[test]
fn a_missing_process_is_reported() {
    let sandbox = Sandbox::new();
    // Larger than the largest number that the kernel gives.
    let out = longpole(&sandbox.path("store")).args(["attach", "-p", "4194305"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "longpole: there is no process 4194305\nhint: ps ax lists processes\n");
    assert!(!out.status.success());
}

/// It reads, writes to much memory and computes, and then works half of the time for as long as it lives.
const WITH_A_PAST: &str = r#"
import time
with open("/dev/zero", "rb") as zeros:
    for _ in range(64):
        zeros.read(1 << 20)
much = b"x" * (200 << 20)
del much
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
print("ready", flush=True)
while True:
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        pass
    time.sleep(0.05)
"#;

#[test]
fn attach_tells_of_its_own_time_only() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut process = Command::new("python3").args(["-c", WITH_A_PAST]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let answer = json(longpole(&store).args(["attach", &process.id().to_string(), "-d", "1", "--format", "json"]));
    process.kill().unwrap();
    process.wait().unwrap();
    let of = |command: &str| json(longpole(&store).args([command, "--format", "json"]));
    let (processes, threads, poles) = (of("processes"), of("threads"), of("poles"));
    let wall = answer["wall_nanos"].as_u64().unwrap();
    let figures = &processes["processes"][0];
    assert!(figures["cpu_nanos"].as_u64().unwrap() < wall * 3 / 4, "{figures}");
    assert_eq!(figures["start_nanos"], 0, "{figures}");
    let usage = &figures["usage"];
    assert!(usage["read_bytes"].as_u64().unwrap() < 1 << 20, "{figures}");
    assert!(usage["peak_resident_bytes"].as_u64().unwrap() < 150 << 20, "{figures}");
    // The run is measured by the wall clock, a thread by the monotonic one.
    assert!(threads["threads"][0]["nanos"].as_u64().unwrap() <= wall + wall / 1000, "{wall} {threads}");
    // It goes on, so nothing saves anything.
    assert_eq!((poles["poles"].as_array().unwrap().len(), poles["between_nanos"].as_u64()), (0, Some(wall)), "{poles}");
    let text = longpole(&store).arg("poles").output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&text).contains("there is no end to bring forward"));
}
