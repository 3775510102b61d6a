//! Story: a program is slow and its own functions are not: the kernel works for it. Somebody wants to know what at, and for whom.
//! Guarantees: who may look into the kernel sees its functions, by name and marked, below the function that called them, with the share of
//! time that the kernel itself counted; the names are part of the recording. Other users learn how much time it was, why it is
//! hidden, and what to change; hidden names are reported, too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, c, clean, json, longpole, plain_user, skip};

/// Has the kernel make random numbers for 400 ms of CPU time, counts by itself for 200 ms, and says what the kernel counted.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 20];

static double spent(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static long read_random_numbers(int file, double until) {
  long sum = 0;
  while (spent() < until) sum += read(file, bytes, sizeof bytes);
  return sum;
}

__attribute__((noinline)) static long count_by_itself(double until) {
  volatile long sum = 0;
  while (spent() < until) for (int i = 0; i < 100000; i++) sum += i;
  return sum;
}

int main(void) {
  int file = open("/dev/urandom", O_RDONLY);
  long sum = read_random_numbers(file, spent() + 0.4) + count_by_itself(spent() + 0.2);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%f %ld\n", used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6, sum);
  return 0;
}
"#;

/// Samples of a recording by their stacks: functions from root to leaf with their runtimes, and what the samples weigh.
fn stacks(mut ask: impl FnMut(&str) -> Value) -> Vec<(Vec<(String, String)>, u64)> {
    let rows = |answer: Value| answer["rows"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut functions: HashMap<u64, (String, String)> = HashMap::new();
    let locations = ask("SELECT l.location_id, l.runtime, f.function FROM locations l JOIN frames f ON f.location_id = l.location_id");
    for row in rows(locations) {
        functions.insert(row["location_id"].as_u64().unwrap(), (text(&row["function"]), text(&row["runtime"])));
    }
    let samples = ask("SELECT k.location_ids, sum(s.weight_nanos) AS nanos FROM samples s JOIN stacks k ON k.stack_id = s.stack_id \
         GROUP BY k.location_ids");
    let stack = |ids: &Value| ids.as_array().unwrap().iter().rev().map(|id| functions[&id.as_u64().unwrap()].clone()).collect();
    rows(samples).iter().map(|row| (stack(&row["location_ids"]), row["nanos"].as_u64().unwrap())).collect()
}

fn weight(stacks: &[(Vec<(String, String)>, u64)], is: impl Fn(&[(String, String)]) -> bool) -> f64 {
    stacks.iter().filter(|(stack, _)| is(stack)).map(|(_, nanos)| *nanos as f64 / 1e9).sum()
}

fn in_kernel(stack: &[(String, String)]) -> bool {
    stack.last().is_some_and(|(_, runtime)| runtime == "kernel")
}

fn text(command: &mut Command) -> String {
    let out = command.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// `1.16s` or `980.0ms`, in seconds.
fn seconds(duration: &str) -> f64 {
    let number = |digits: &str| digits.parse::<f64>().unwrap();
    duration.strip_suffix("ms").map_or_else(|| number(duration.trim_end_matches('s')), |millis| number(millis) / 1_000.0)
}

/// What the program said the kernel counted for it, in seconds.
fn counted(stdout: &[u8]) -> f64 {
    String::from_utf8_lossy(stdout).split_whitespace().next().unwrap().parse().unwrap()
}

/// The state of a check of `doctor`, and its text with its remedy.
fn check(view: &Value, name: &str) -> Option<(String, String)> {
    let check = view["checks"].as_array().unwrap().iter().find(|check| check["name"] == name)?;
    Some((check["state"].as_str()?.to_owned(), format!("{} {}", check["text"], check["remedy"])))
}

/// Whether this user may look into the kernel; if not, the story is noted as skipped.
fn sees_kernel(story: &str) -> bool {
    let view = json(longpole(Path::new("/nonexistent/longpole")).args(["doctor", "--format", "json"]));
    let (_, words) = check(&view, "kernel").unwrap_or_default();
    let sees = words.contains("below the functions that called them");
    if !sees {
        skip(story, &words);
    }
    sees
}

fn record(command: &mut Command, summary: &Path, program: &Path) -> (Vec<u8>, Value) {
    command.args(["run", "--summary-format", "json", "--summary"]).arg(summary).arg("--").arg(program);
    let out = command.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (out.stdout, serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap())
}

fn quality<'a>(summary: &'a Value, code: &str) -> Option<&'a str> {
    summary["quality"].as_array().unwrap().iter().find(|note| note["code"] == code)?["detail"].as_str()
}

/// How often a thing was missing.
fn count(summary: &Value, code: &str) -> u64 {
    let notes = summary["quality"].as_array().unwrap().iter().filter(|note| note["code"] == code);
    notes.map(|note| note["count"].as_u64().unwrap()).sum()
}

#[test]
fn kernel_functions_stand_below_their_caller() {
    let story = "kernel_functions_stand_below_their_caller";
    let sandbox = Sandbox::new();
    let Some(program) = c::compile(&sandbox, story, "reader", PROGRAM).filter(|_| sees_kernel(story)) else { return };
    let store = sandbox.path("store");
    let (stdout, summary) = record(&mut longpole(&store), &sandbox.path("summary"), &program);
    assert_eq!((&summary["mode"], quality(&summary, "kernel_time")), (&Value::from("perf"), None), "{summary}");
    let unwind_failed = count(&summary, "stacks_unwind_failed");
    assert!(unwind_failed <= summary["samples"].as_u64().unwrap() / 100, "{summary}");
    let stacks = stacks(|query| json(longpole(&store).args(["sql", query, "--format", "json"])));
    let (seen, counted) = (weight(&stacks, in_kernel), counted(&stdout));
    assert!((seen - counted).abs() < 0.15 * counted + 0.03, "the kernel counted {counted} s, samples say {seen} s");
    let of = |function: &'static str| move |stack: &[(String, String)]| in_kernel(stack) && stack.iter().any(|(name, _)| name == function);
    let (reading, counting) = (weight(&stacks, of("read_random_numbers")), weight(&stacks, of("count_by_itself")));
    assert!(reading > 0.8 * seen && counting < 0.1 * seen, "{seen} s: {reading} s while reading, {counting} s while counting");
    let named = weight(&stacks, |stack| in_kernel(stack) && stack.iter().any(|(name, kind)| kind == "kernel" && name.contains("read")));
    assert!(named > 0.8 * seen, "functions of the kernel have names: {stacks:?}");

    // People see which are the kernel's, and that the program called it.
    let flame = text(longpole(&store).args(["flame", "--min", "1"]));
    assert!(flame.contains("[k] ") && flame.contains("read_random_numbers"), "{flame}");
    assert!(text(longpole(&store).arg("top")).contains("[k] "));
    let top = json(longpole(&store).args(["top", "--format", "json"]));
    assert!(top["functions"].as_array().unwrap().iter().any(|function| function["runtime"] == "kernel"), "{top}");
    // The answer names what one can change.
    let pole = json(longpole(&store).args(["span", "p1", "--format", "json"]));
    assert_eq!(pole["top_frames"][0]["function"], "read_random_numbers", "{pole}");
}

#[test]
fn a_plain_user_learns_the_time_in_the_kernel_and_why_it_is_hidden() {
    let story = "a_plain_user_learns_the_time_in_the_kernel_and_why_it_is_hidden";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, story) else { return };
    let Some(program) = c::compile(&sandbox, story, "reader", PROGRAM).map(|program| user.install(&program)) else { return };
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim() != "2" {
        return skip(story, &format!("kernel.perf_event_paranoid is not 2 but {level:?}"));
    }
    let store = sandbox.path("store");
    let mut command = user.command(&user.longpole());
    command.arg("--store").arg(&store);
    let (stdout, summary) = record(&mut command, &sandbox.path("summary"), &program);
    assert_eq!(summary["mode"], "user");
    let why = quality(&summary, "kernel_time").unwrap();
    assert!(why.contains("kernel.perf_event_paranoid is 2") && why.contains("sysctl kernel.perf_event_paranoid=1"), "{why}");
    let words = seconds(why.split_whitespace().next().unwrap());
    let counted = counted(&stdout);
    assert!((words - counted).abs() < 0.15 * counted + 0.03, "the kernel counted {counted} s: {why}");
    let ask = |query: &str| json(user.command(&user.longpole()).arg("--store").arg(&store).args(["sql", query, "--format", "json"]));
    assert_eq!(weight(&stacks(ask), in_kernel), 0.0);
    let doctor = json(user.command(&user.longpole()).arg("--store").arg(&store).args(["doctor", "--format", "json"]));
    let (state, words) = check(&doctor, "kernel").unwrap();
    assert!(state == "ok" && words.contains("CAP_PERFMON") && words.contains("perf_event_paranoid is 2"), "{words}");
}

/// Root without the capability to read addresses: samples are as before, without names.
#[test]
fn hidden_kernel_names_are_reported() {
    let story = "hidden_kernel_names_are_reported";
    let sandbox = Sandbox::new();
    let Some(program) = c::compile(&sandbox, story, "reader", PROGRAM).filter(|_| sees_kernel(story)) else { return };
    let store = sandbox.path("store");
    let without_syslog = || {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-syslog", "--inh-caps=-syslog"]).arg(env!("CARGO_BIN_EXE_longpole")).arg("--store").arg(&store);
        clean(&mut command);
        command
    };
    let doctor = without_syslog().args(["doctor", "--format", "json"]).output();
    let Some(doctor) = doctor.ok().filter(|out| out.status.success()) else { return skip(story, "setpriv cannot take a capability away") };
    let doctor = serde_json::from_slice(&doctor.stdout).unwrap();
    let (state, words) = check(&doctor, "kernel").unwrap();
    if state == "ok" {
        return skip(story, "this kernel shows its addresses to everybody");
    }
    assert!(words.contains("kptr_restrict") && words.contains("CAP_SYSLOG"), "{words}");
    let (stdout, summary) = record(&mut without_syslog(), &sandbox.path("summary"), &program);
    assert_eq!(summary["mode"], "perf");
    let why = quality(&summary, "functions_not_seen").unwrap();
    assert!(why.contains("kernel.kptr_restrict=0"), "{why}");
    let stacks = stacks(|query| json(longpole(&store).args(["sql", query, "--format", "json"])));
    let (seen, counted) = (weight(&stacks, in_kernel), counted(&stdout));
    assert!((seen - counted).abs() < 0.15 * counted + 0.03, "the kernel counted {counted} s, samples say {seen} s");
    assert!(stacks.iter().filter(|(stack, _)| in_kernel(stack)).all(|(stack, _)| stack.last().unwrap().0 == "[kernel]"));
    assert!(text(longpole(&store).args(["flame", "--min", "1"])).contains("[k] [kernel]"));
}

/// A binary without symbols whose debug file stands beside it, or where distributions keep it.
#[test]
fn a_stripped_program_has_names_from_its_debug_file() {
    let story = "a_stripped_program_has_names_from_its_debug_file";
    let sandbox = Sandbox::new();
    let Some(whole) = c::compile(&sandbox, story, "whole", PROGRAM) else { return };
    let (program, debug): (PathBuf, PathBuf) = (sandbox.path("program"), sandbox.path("program.debug"));
    std::fs::copy(&whole, &program).unwrap();
    let flags = |flag: &str| PathBuf::from(flag);
    let is_there = c::tool(story, "objcopy", &[&flags("--only-keep-debug"), &program, &debug])
        && c::tool(story, "objcopy", &[&flags("--strip-all"), &program])
        && c::tool(story, "objcopy", &[&flags(&format!("--add-gnu-debuglink={}", debug.display())), &program]);
    if !is_there {
        return;
    }
    // Neither the unstripped program nor its source may help.
    std::fs::remove_file(&whole).unwrap();
    for (is_beside, store) in [(true, sandbox.path("with")), (false, sandbox.path("without"))] {
        if !is_beside {
            std::fs::remove_file(&debug).unwrap();
        }
        let (_, summary) = record(&mut longpole(&store), &sandbox.path("summary"), &program);
        if summary["samples"].as_u64().unwrap() == 0 {
            return skip(story, "processes cannot be sampled here");
        }
        let functions = json(longpole(&store).args(["top", "--total", "--limit", "0", "--format", "json"]));
        let functions = functions["functions"].as_array().unwrap().clone();
        let found = functions.iter().find(|function| function["function"] == "count_by_itself");
        assert_eq!(found.is_some(), is_beside, "{functions:?}");
        if let Some(function) = found {
            assert!(function["file"].as_str().unwrap().ends_with("whole.c") && function["line"].as_u64().unwrap() > 0, "{function}");
        } else {
            let why = quality(&summary, "symbols_unreadable").unwrap();
            assert!(why.contains("stripped") && why.contains("program"), "{why}");
        }
    }
}
