//! Story: the command runs in a container, whose filter of system calls refuses `perf_event_open`, and maybe more.
//! Guarantees: the command does not notice. The recording has its processes and threads, what the scheduler counted of each thread, and
//! the waits that `/proc` can tell, with the functions that waited; why there are no samples and what to do about it stands in the
//! answer and by `doctor`, whatever the filter answers.
#![expect(unsafe_code, reason = "a filter of system calls, as containers have one")]

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, c, clean, json, longpole, plain_user, skip};

/// Burns 200 ms in its first thread; another thread sleeps 300 ms and then reads a pipe for 300 ms, with a child that sleeps 400 ms.
/// Says what its first thread took, and exits with 7.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];

static double spent(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void take_a_nap(void) {
  struct timespec t = {0, 300000000};
  nanosleep(&t, NULL);
  __asm__ volatile("");
}

__attribute__((noinline)) static void read_a_pipe(void) {
  char byte;
  if (read(ends[0], &byte, 1) != 1) _exit(9);
  __asm__ volatile("");
}

static void *waits(void *nothing) {
  pthread_setname_np(pthread_self(), "waits");
  take_a_nap();
  read_a_pipe();
  return nothing;
}

__attribute__((noinline)) static void wait_for_a_child(int child) {
  waitpid(child, NULL, 0);
  __asm__ volatile("");
}

int main(void) {
  pthread_t thread;
  if (pipe(ends)) return 9;
  volatile long sum = 0;
  while (spent() < 0.2) for (int i = 0; i < 100000; i++) sum += i;
  pthread_create(&thread, NULL, waits, NULL);
  int child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "0.4", (char *)NULL);
    _exit(9);
  }
  wait_for_a_child(child);
  usleep(200000);
  if (write(ends[1], "x", 1) != 1) return 9;
  pthread_join(thread, NULL);
  printf("%f\n", spent());
  fflush(stdout);
  usleep(50000);
  return 7;
}
"#;

/// Has the kernel refuse system calls to the command and to all it starts.
pub(crate) fn refuse(command: &mut Command, calls: &'static [libc::c_long], error: i32) {
    let statement = |code: u32, value: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (place, call) in calls.iter().enumerate() {
        // Where it is this call, to the error behind the last of them and the permission.
        let jump = (calls.len() - place) as u8;
        filter.push(libc::sock_filter { jt: jump, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32) });
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32));
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: two calls that are safe between fork and exec; the filter outlives them, and the kernel only reads it.
        let outcome = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes two system calls and touches nothing that another thread could hold.
    unsafe { command.pre_exec(install) };
}

pub(crate) fn quality<'a>(summary: &'a Value, code: &str) -> Option<&'a str> {
    summary["quality"].as_array().unwrap().iter().find(|note| note["code"] == code)?["detail"].as_str()
}

/// Records [`PROGRAM`] by this command, and looks at what came of it with another.
fn is_recorded(mut run: Command, view: impl Fn() -> Command, sandbox: &Sandbox, program: &std::path::Path) {
    let summary = sandbox.path("summary");
    run.args(["run", "--summary-format", "json", "--summary"]).arg(&summary).arg("--").arg(program);
    let out = run.stdin(Stdio::null()).output().unwrap();
    assert_eq!(out.status.code(), Some(7), "{}", String::from_utf8_lossy(&out.stderr));
    let burnt: f64 = String::from_utf8_lossy(&out.stdout).trim().parse().unwrap();
    let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    assert_eq!((&summary["mode"], &summary["exit"]["code"]), (&Value::from("refused"), &Value::from(7)), "{summary}");
    let why = quality(&summary, "profiling_refused").unwrap();
    assert!(why.contains("perf_event_open is blocked by a seccomp filter (operation not permitted)"), "{why}");
    assert!(why.contains("--cap-add PERFMON"), "{why}");
    assert!(quality(&summary, "watched").unwrap().contains("/proc"), "{summary}");
    assert!(summary["cpu_nanos"].as_f64().unwrap() / 1e9 > 0.9 * burnt);

    let ask = |query: &str| json(view().args(["sql", query, "--format", "json"]))["rows"].as_array().unwrap().clone();
    // The program and its child ran, and both ended.
    let processes = ask("SELECT name, end_time_monotonic_nano IS NOT NULL AS ended, arguments FROM processes ORDER BY name");
    let names: Vec<&str> = processes.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sleep", "waiter"], "{processes:?}");
    assert!(processes.iter().all(|row| row["ended"] == true), "{processes:?}");
    assert_eq!(processes[0]["arguments"], serde_json::json!(["sleep", "0.4"]));

    // What each thread had of the CPUs.
    let threads = json(view().args(["threads", "--format", "json"]))["threads"].as_array().unwrap().clone();
    let thread = |name: &str| threads.iter().find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("{name}: {threads:?}"));
    let on_cpu = thread("waiter")["on_cpu_nanos"].as_f64().unwrap() / 1e9;
    assert!((on_cpu - burnt).abs() < 0.02 + 0.05 * burnt, "the scheduler counted {on_cpu} s, the thread {burnt} s: {threads:?}");
    assert!(thread("waits")["on_cpu_nanos"].as_f64().unwrap() < 5e7);
    let ready: f64 = threads.iter().map(|thread| thread["ready_nanos"].as_f64().unwrap()).sum();
    assert!(ready > 0.0, "{threads:?}");

    // What they waited for, how long, and in which function.
    let waits = ask(
        "SELECT w.kind, w.syscall, w.duration_nanos / 1e9 AS seconds, k.location_ids FROM waits w LEFT JOIN stacks k ON k.stack_id = w.stack_id",
    );
    let frames = ask("SELECT location_id, function FROM frames");
    let broken = |frame: &&Value| frame["function"].as_str().unwrap().starts_with('[');
    assert_eq!(frames.iter().find(broken), None, "a stack that does not lead to its root");
    for (kind, function, seconds) in [("sleep", "take_a_nap", 0.3), ("pipe", "read_a_pipe", 0.3), ("child", "wait_for_a_child", 0.4)] {
        let named = |wait: &&Value| {
            let ids = wait["location_ids"].as_array().cloned().unwrap_or_default();
            frames.iter().any(|frame| frame["function"] == function && ids.contains(&frame["location_id"]))
        };
        let seen: f64 = waits.iter().filter(|wait| wait["kind"] == kind).filter(named).map(|wait| wait["seconds"].as_f64().unwrap()).sum();
        // A thread that wakes waits for a CPU, and a new one for the next reading.
        assert!(seen > 0.8 * seconds && seen < seconds + 0.2, "{function}: {seen} s of {seconds} s\n{waits:?}\n{frames:?}");
    }
}

#[test]
fn without_samples_there_are_processes_totals_and_waits() {
    let story = "without_samples_there_are_processes_totals_and_waits";
    let sandbox = Sandbox::new();
    let Some(program) = c::compile(&sandbox, story, "waiter", PROGRAM) else { return };
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    refuse(&mut run, &[libc::SYS_perf_event_open], libc::EPERM);
    is_recorded(run, || longpole(&store), &sandbox, &program);
}

/// Its last process ends with the command, and is seen to have ended by the look that comes after that.
#[test]
fn the_process_that_ends_last_is_the_pole() {
    let sandbox = Sandbox::new();
    let summary = sandbox.path("summary");
    let mut run = longpole(&sandbox.path("store"));
    refuse(&mut run, &[libc::SYS_perf_event_open], libc::EPERM);
    run.args(["run", "--summary-format", "json", "--summary"]).arg(&summary).args(["--", "sh", "-c", "sleep 0.3; true"]);
    assert!(run.stdin(Stdio::null()).status().unwrap().success());
    let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    let first = &summary["poles"][0];
    assert!(first["name"] == "sleep" && first["reason"]["text"].as_str().unwrap().contains("asleep"), "{summary}");
}

/// Neither the samples nor the one call that reads the memory of another process, and nobody privileged.
#[test]
fn a_stricter_filter_costs_a_plain_user_nothing_more() {
    let story = "a_stricter_filter_costs_a_plain_user_nothing_more";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, story) else { return };
    let Some(program) = c::compile(&sandbox, story, "waiter", PROGRAM).map(|program| user.install(&program)) else { return };
    let store = sandbox.path("store");
    let command = || {
        let mut command = user.command(&user.longpole());
        command.arg("--store").arg(&store);
        command
    };
    let mut run = command();
    refuse(&mut run, &[libc::SYS_perf_event_open, libc::SYS_process_vm_readv], libc::EPERM);
    is_recorded(run, command, &sandbox, &program);
}

#[test]
fn the_doctor_names_the_filter_and_the_remedy() {
    for (error, words) in
        [(libc::EPERM, "operation not permitted"), (libc::EACCES, "permission denied"), (libc::ENOSYS, "function not implemented")]
    {
        let sandbox = Sandbox::new();
        let mut doctor = longpole(&sandbox.path("store"));
        clean(&mut doctor);
        refuse(&mut doctor, &[libc::SYS_perf_event_open], error);
        let view = json(doctor.args(["doctor", "--format", "json"]));
        let check = view["checks"].as_array().unwrap().iter().find(|check| check["name"] == "profiling").unwrap();
        let text = check["text"].as_str().unwrap();
        assert!(text.contains(&format!("perf_event_open is blocked by a seccomp filter ({words})")), "{text}");
        assert!(check["state"] == "warn" && check["remedy"].as_str().unwrap().contains("--cap-add PERFMON"), "{check}");
        // A command runs as ever.
        let mut run = longpole(&sandbox.path("store"));
        refuse(&mut run, &[libc::SYS_perf_event_open], error);
        let out = run.args(["run", "--", "sh", "-c", "exit 3"]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(out.status.code(), Some(3));
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("seccomp") && said.contains("PERFMON"), "{said}");
    }
}

/// `unshare -pf`, `nsenter -p` and the like: numbers of processes are ours, and `/proc` tells of the strangers who have them elsewhere.
#[test]
fn a_proc_of_another_pid_namespace_is_ignored() {
    let story = "a_proc_of_another_pid_namespace_is_ignored";
    let sandbox = Sandbox::new();
    let inside = |command: &Command| {
        let mut out = Command::new("unshare");
        out.args(["--user", "--map-root-user", "--pid", "--fork"]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        clean(&mut out);
        out
    };
    if !inside(&Command::new("true")).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skip(story, "unshare cannot make a pid namespace");
    }
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    run.args(["run", "--", "sh", "-c", "for i in $(seq 60); do /bin/true; done; sleep 0.2; exit 4"]);
    let out = inside(&run).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{said}");
    let summary = json(longpole(&store).args(["show", "--format", "json"]));
    let why = quality(&summary, "profiling_refused").unwrap_or_else(|| panic!("{summary}"));
    assert!(why.contains("another pid namespace") && why.contains("--mount-proc"), "{why}");
    assert_eq!((quality(&summary, "watched"), &summary["processes"]), (None, &Value::from(0)), "{summary}");
    let usage = json(longpole(&store).args(["sql", "SELECT count(*) AS n FROM process_usage", "--format", "json"]));
    assert_eq!(usage["rows"][0]["n"], 0);
}
