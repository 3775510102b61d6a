//! Story: somebody's build or script, without any OpenTelemetry, is slow or eats the machine's memory, and they want to know who.
//! Guarantees: each process is there with its end, its CPU time, its peak of memory and the bytes that it read and wrote itself, within
//! a few percent of what the program did by construction; one that grows all the time is named in the answer; a run without spans is
//! answered by its processes and their functions; a process that ran beside the work and that nobody waited for is not what to fix; the
//! same holds for a plain user; unknown figures are reported as such, and are not zero.

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use longpole_testing::turn;
use serde_json::Value;

use crate::support::{Sandbox, can_sample, json, longpole, plain_user, role, skip};

/// Tells a role of this binary what to do, and where it may write.
const PLAY: &str = "LONGPOLE_STORY_USE";

const STEP_BYTES: usize = 2_000_000;
const STEPS: usize = 60;
const GROWN: f64 = (STEP_BYTES * STEPS) as f64;

/// CPU time of each step: all together more than the two seconds from which growth counts.
const STEP_NANOS: u64 = 40_000_000;

/// CPU time that this thread has had.
fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[inline(never)]
fn crunch_numbers(nanos: u64) {
    let until = cpu_nanos() + nanos;
    let mut x = 1u64;
    while cpu_nanos() < until {
        for _ in 0..200_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        black_box(x);
    }
}

/// Takes memory step by step and writes each step to a file; played by a process of its own.
#[test]
fn grow() {
    let Some(path) = std::env::var_os(PLAY) else { return };
    let mut file = std::fs::File::create(path).unwrap();
    let mut taken = Vec::new();
    for step in 0..STEPS {
        let bytes = vec![step as u8 + 1; STEP_BYTES];
        file.write_all(&bytes).unwrap();
        taken.push(bytes);
        crunch_numbers(STEP_NANOS);
    }
    std::mem::forget(black_box(taken));
}

/// Only works; played by a process of its own.
#[test]
fn crunch() {
    let Some(millis) = std::env::var_os(PLAY) else { return };
    crunch_numbers(millis.to_str().unwrap().parse::<u64>().unwrap() * 1_000_000);
}

/// Works for a second beside a helper that ends long before, then waits for another one; played by a process of its own.
#[test]
fn work_beside_a_helper() {
    if std::env::var_os(PLAY).is_none() {
        return;
    }
    let mut helper = Command::new("sleep").arg("0.6").spawn().unwrap();
    crunch_numbers(1_000_000_000);
    helper.wait().unwrap();
    assert!(Command::new("env").args(["sleep", "0.4"]).status().unwrap().success());
}

/// A shell that runs a role as a child and ends badly after it.
fn shell_of(function: &str) -> Vec<String> {
    let script = "\"$@\" > /dev/null; sh -c 'exit 3'; exit 7";
    ["sh", "-c", script, "sh"].map(str::to_owned).into_iter().chain(role(function)).collect()
}

fn figure(row: &Value, key: &str) -> f64 {
    row["usage"][key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

fn within(actual: f64, expected: f64, share: f64) -> bool {
    (actual - expected).abs() <= expected * share
}

/// Checks the answer of `shell_of("…grow")`.
fn check_growth(answer: &str, ask: &dyn Fn(&[&str]) -> Command) {
    let view = json(&mut ask(&["processes", "--format", "json"]));
    let rows = view["processes"].as_array().unwrap();
    let grower = rows.iter().find(|row| !row["usage"]["grows"].is_null()).unwrap_or_else(|| panic!("nobody grows: {view}"));
    let name = grower["name"].as_str().unwrap();
    // The rest is the test binary itself: its code and its own data.
    let peak = figure(grower, "peak_resident_bytes");
    assert!((GROWN..GROWN + 25e6).contains(&peak), "{peak} of {GROWN}: {grower}");
    // What it wrote after the last reading is missing; on a busy machine readings are further apart, and the answer says how far.
    let unread = figure(grower, "read_before_end_nanos") / grower["duration_nanos"].as_f64().unwrap();
    let written = figure(grower, "written_bytes");
    assert!((GROWN * (0.98 - unread)..GROWN * 1.02).contains(&written), "{written} of {GROWN}: {grower}");
    assert!(grower["cpu_nanos"].as_f64().unwrap() > 0.95 * (STEPS as f64) * STEP_NANOS as f64, "{grower}");
    let (from, to) = (grower["usage"]["grows"]["from_bytes"].as_f64().unwrap(), grower["usage"]["grows"]["to_bytes"].as_f64().unwrap());
    assert!(from < GROWN / 4.0 + 25e6 && within(to, GROWN, 0.25), "{grower}");
    let shell = &rows[0];
    assert_eq!((shell["depth"].as_u64(), shell["exit"]["code"].as_u64(), grower["depth"].as_u64()), (Some(0), Some(7), Some(1)), "{view}");
    // The kernel counts for the shell what its children wrote; here it is theirs.
    assert!(figure(shell, "written_bytes") < GROWN / 20.0, "{shell}");
    // Before Linux 6.15 nobody but its parent knows how a process ended.
    if !grower["exit"].is_null() {
        assert_eq!(grower["exit"]["code"], 0, "{grower}");
    }

    assert!(answer.lines().any(|line| line.starts_with("memory") && line.contains(&format!("{name} keeps growing, from "))), "{answer}");
    assert!(
        answer.contains("self time in p1  f") && answer.contains("of p1's on-CPU time on the path") && answer.contains("crunch_numbers"),
        "the pole leads to its function: {answer}"
    );
    // The text cuts the name where ranges of savings take its room.
    let poles = json(&mut ask(&["poles", "--format", "json"]));
    assert_eq!(poles["poles"][0]["name"], name, "the process is the pole: {answer}");
    let text = String::from_utf8(ask(&["processes"]).output().unwrap().stdout).unwrap();
    assert!(text.lines().any(|line| line.contains(&format!(" {} ", grower["pid"])) && line.ends_with("keeps growing")), "{text}");
    let handle = grower["handle"].as_str().unwrap();
    let span = String::from_utf8(ask(&["span", handle]).output().unwrap().stdout).unwrap();
    assert!(span.contains("PROCESS") && span.contains("memory keeps growing  from "), "{span}");
    let sql = format!("SELECT count(*) AS n, max(resident_bytes) AS most FROM process_usage WHERE pid = {}", grower["pid"]);
    let counted = json(&mut ask(&["sql", "--format", "json", &sql]));
    let count = counted["rows"][0]["n"].as_u64().unwrap();
    assert!((20..400).contains(&count) && counted["rows"][0]["most"].as_f64().unwrap() > 0.9 * GROWN, "{counted}");
}

fn ask(longpole: impl Fn() -> Command) -> impl Fn(&[&str]) -> Command {
    move |arguments| {
        let mut command = longpole();
        command.args(arguments);
        command
    }
}

#[test]
fn growing_memory_writes_and_exits_are_reported() {
    let _turn = turn();
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store)
        .args(["run", "--"])
        .args(shell_of("see_what_processes_use::grow"))
        .env(PLAY, sandbox.path("written"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(7));
    check_growth(&String::from_utf8(run.stderr).unwrap(), &ask(|| longpole(&store)));
}

#[test]
fn a_plain_user_sees_the_same() {
    let _turn = turn();
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "a plain user sees what processes use") else { return };
    let store = sandbox.path("store");
    let mut shell = shell_of("see_what_processes_use::grow");
    shell[4] = user.install(Path::new(&shell[4])).to_string_lossy().into_owned();
    let mut run = user.with_store(&store);
    let run = run.args(["run", "--"]).args(shell).env(PLAY, sandbox.path("written")).stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(7), "{answer}");
    check_growth(&answer, &ask(|| user.with_store(&store)));
}

#[test]
fn a_program_without_spans_shows_its_functions() {
    let _turn = turn();
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--"]).args(role("see_what_processes_use::crunch")).env(PLAY, "400").output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{answer}");
    let line = answer.lines().find(|line| line.starts_with("self time ")).unwrap_or_else(|| panic!("no functions: {answer}"));
    assert!(
        line.starts_with("self time in p1  f") && line.ends_with("of p1's on-CPU time on the path") && line.contains("crunch_numbers"),
        "{answer}"
    );
    assert!(answer.contains("crunch_numbers ") && answer.contains(" frame "), "{answer}");
    let only = json(longpole(&store).args(["processes", "--format", "json"]));
    let process = &only["processes"][0];
    assert_eq!((only["processes"].as_array().unwrap().len(), process["exit"]["code"].as_u64()), (1, Some(0)), "{only}");
    assert!(within(process["cpu_nanos"].as_f64().unwrap(), 400e6, 0.25), "{process}");
}

#[test]
fn a_background_helper_is_not_a_long_pole() {
    let _turn = turn();
    let story = "a helper that ran beside the work is not what to fix";
    if !can_sample(story) {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let command = role("see_what_processes_use::work_beside_a_helper");
    let run = longpole(&store).args(["run", "--"]).args(command).env(PLAY, "1").stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{answer}");
    let view = json(longpole(&store).args(["poles", "--limit", "0", "--format", "json"]));
    let poles = view["poles"].as_array().unwrap();
    let saved: f64 = poles.iter().filter(|pole| pole["name"] == "sleep").map(|pole| pole["saves_if_zero_nanos"][1].as_f64().unwrap()).sum();
    // Only the one that the program waited for: 0.4 s, and neither 0.6 nor 1.0.
    assert!((0.35e9..0.5e9).contains(&saved), "{saved}: {answer}");
}

/// A program that closes itself to everybody but root, works, and ends.
const CLOSED: &str = "
import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
while time.process_time() < 0.5: pass
";

#[test]
fn unknown_byte_counts_are_not_zero() {
    let _turn = turn();
    let story = "bytes that may not be seen are not zero";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, story) else { return };
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        return skip(story, "there is no /usr/bin/python3");
    }
    let store = sandbox.path("store");
    let run = user.with_store(&store).args(["run", "--", python, "-c", CLOSED]).stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert!(
        run.status.success() && answer.contains("incomplete usage figures: processes whose read and written bytes longpole may not read"),
        "{answer}"
    );
    let view = json(user.with_store(&store).args(["processes", "--format", "json"]));
    let usage = &view["processes"][0]["usage"];
    // The recorder could read it until it closed itself, if it was fast enough. A count from before comes with its age, never as the whole.
    let is_unknown = usage["read_bytes"].is_null();
    assert!(is_unknown || usage["read_before_end_nanos"].as_u64().unwrap() > 200_000_000, "{view}");
    assert!(usage["peak_resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{view}");
    let text = user.with_store(&store).arg("processes").output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    let mark = if is_unknown { "–  unknown: " } else { "≥  at least: " };
    assert!(text.contains(mark), "the mark is explained: {text}");
}
