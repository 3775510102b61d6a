//! Line 8: the wall clock is set while a command runs.
//! Guarantees: a run and its spans take as long as they took, by the monotonic clock; spans recorded after the step stand where they were; and the
//! step is reported. Suspend is no clock step.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::c::compile_with;
use crate::support::{Sandbox, binary, json, longpole};

/// Moves the clocks of all processes that are started with it, by what stands in a file that they share.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long long *moved; /* seconds: CLOCK_REALTIME, CLOCK_BOOTTIME */

__attribute__((constructor)) static void open_file(void) {
  const char *path = getenv("MOVED_CLOCKS");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *at = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) moved = at;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int outcome = syscall(SYS_clock_gettime, clock, time);
  if (outcome == 0 && moved && clock == CLOCK_REALTIME) time->tv_sec += moved[0];
  if (outcome == 0 && moved && clock == CLOCK_BOOTTIME) time->tv_sec += moved[1];
  return outcome;
}
"#;

/// Sets the clocks: the file, and by how many seconds each is moved.
const SETTER: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
  long long moved[2] = {atoll(words[2]), atoll(words[3])};
  int file = open(words[1], O_WRONLY);
  return count == 4 && pwrite(file, moved, sizeof moved, 0) == sizeof moved ? 0 : 1;
}
"#;

/// What moves clocks.
struct Clocks {
    sandbox: Sandbox,
    shim: PathBuf,
    setter: PathBuf,
}

impl Clocks {
    fn new(story: &str) -> Option<Clocks> {
        let sandbox = Sandbox::new();
        let shim = compile_with(&sandbox, story, "shim.so", SHIM, &["-shared", "-fPIC"])?;
        let setter = compile_with(&sandbox, story, "setter", SETTER, &[])?;
        std::fs::write(sandbox.path("moved"), [0; 16]).unwrap();
        Some(Clocks { sandbox, shim, setter })
    }

    /// A command of three spans, `before`, `across` and `after`; the clocks are set in the second. Its programs have clocks that can be set, or
    /// only the recorder has.
    fn record(&self, moved: (i64, i64), run: &[&str], of_all: bool) -> Recorded {
        let store = self.sandbox.path("store");
        let moved_file = self.sandbox.path("moved");
        let set = format!("{} {} {} {}", self.setter.display(), moved_file.display(), moved.0, moved.1);
        let exec = |name: &str, what: &str| format!("{} exec -n {name} -- sh -c 'sleep 0.2; {what}'; ", binary().display());
        let script = exec("before", "true") + &exec("across", &format!("{set}; sleep 0.2")) + &exec("after", "true");
        let mut recorder = longpole(&store);
        recorder.env("LD_PRELOAD", &self.shim).env("MOVED_CLOCKS", &moved_file).arg("run").args(run).arg("--");
        if !of_all {
            recorder.args(["env", "-u", "LD_PRELOAD"]);
        }
        let out = recorder.args(["sh", "-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let summary = String::from_utf8_lossy(&out.stderr).into_owned();
        Recorded::read(&store, summary)
    }
}

struct Recorded {
    summary: String,
    /// By `show`, by `ls` and by SQL.
    wall_nanos: [i64; 3],
    /// Name, start since the start of the run, length.
    spans: Vec<(String, i64, i64)>,
    /// The losses that report the clock.
    said: Vec<String>,
}

impl Recorded {
    fn read(store: &Path, summary: String) -> Recorded {
        let ask = |arguments: &[&str]| json(longpole(store).args(arguments).args(["--format", "json"]));
        let rows = |query: &str| ask(&["sql", query])["rows"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let of_runs = rows("SELECT wall_nanos FROM runs");
        let shown = [&ask(&["show", "last"])["wall_nanos"], &ask(&["ls"])["recordings"][0]["wall_nanos"], &of_runs[0]["wall_nanos"]];
        let spans = rows(
            "SELECT name, start_time_unix_nano - (SELECT start_time_unix_nano FROM runs) AS since, duration_nanos AS length
            FROM spans ORDER BY since",
        );
        Recorded {
            summary,
            wall_nanos: shown.map(|wall| wall.as_i64().unwrap_or(i64::MIN)),
            spans: spans.iter().map(|row| (text(&row["name"]), row["since"].as_i64().unwrap(), row["length"].as_i64().unwrap())).collect(),
            said: rows("SELECT detail FROM losses WHERE kind = 'clock_stepped'").iter().map(|row| text(&row["detail"])).collect(),
        }
    }

    /// All took as long as the commands do, which is less than a second even where the machine is busy a while longer; nothing is an hour off.
    fn check(&self, said: &str) {
        const LONGEST: i64 = 60_000_000_000;
        let [wall, ..] = self.wall_nanos;
        assert!((800_000_000..LONGEST).contains(&wall), "the run took {wall} ns\n{}", self.summary);
        assert_eq!(self.wall_nanos, [wall; 3], "show, ls and SQL disagree");
        let names: Vec<&str> = self.spans.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["before", "across", "after"], "{:?}", self.spans);
        for (name, since, length) in &self.spans {
            let least = if name == "across" { 400_000_000 } else { 200_000_000 };
            assert!(*since >= 0 && *length >= least && since + length <= wall, "{name} lies at {since} ns for {length} ns of {wall}");
        }
        // The quality notes name the step; no time above them holds it.
        let times = self.summary.split("\nquality").next().unwrap_or_default();
        assert!(!times.contains("60m"), "{}", self.summary);
        assert!(self.said.len() == 1 && self.said[0].starts_with(said), "{:?}", self.said);
    }
}

#[test]
fn setting_the_clock_by_an_hour_counts_as_no_time() {
    for (hour, said) in [(3_600, "the wall clock was set forward by 60m00.0s, "), (-3_600, "the wall clock was set back by 60m00.0s, ")] {
        let Some(clocks) = Clocks::new("setting_the_clock_by_an_hour_counts_as_no_time") else { return };
        clocks.record((hour, 0), &[], true).check(said);
    }
}

#[test]
fn clock_steps_are_found_without_profiling() {
    let Some(clocks) = Clocks::new("clock_steps_are_found_without_profiling") else { return };
    clocks.record((3_600, 0), &["--no-profile"], true).check("the wall clock was set forward by 60m00.0s, ");
}

#[test]
fn spans_of_machines_without_a_step_do_not_move() {
    let Some(clocks) = Clocks::new("spans_of_machines_without_a_step_do_not_move") else { return };
    clocks.record((3_600, 0), &[], false).check("the wall clock was set forward by 60m00.0s, ");
}

#[test]
fn suspend_is_no_clock_step() {
    let Some(clocks) = Clocks::new("suspend_is_no_clock_step") else { return };
    clocks.record((3_600, 3_600), &[], true).check("the machine slept for 60m00.0s, ");
}

#[test]
fn the_span_of_exec_ignores_clock_steps() {
    let Some(clocks) = Clocks::new("the_span_of_exec_ignores_clock_steps") else { return };
    let store = clocks.sandbox.path("store");
    // Only what is in the span has clocks that are set, so its recorder knows nothing of it.
    let moved = clocks.sandbox.path("moved");
    let set = format!("{} {} -3600 0; sleep 0.2", clocks.setter.display(), moved.display());
    let mut run = Command::new(binary());
    run.arg("--store").arg(&store).args(["run", "--summary", "none", "--", "env"]);
    run.arg(format!("LD_PRELOAD={}", clocks.shim.display())).arg(format!("MOVED_CLOCKS={}", moved.display()));
    crate::support::clean(&mut run);
    assert!(run.arg(binary()).args(["exec", "-n", "step", "--", "sh", "-c", &set]).status().unwrap().success());
    let rows = json(longpole(&store).args(["sql", "--format", "json", "SELECT duration_nanos AS n FROM spans"]));
    let nanos = rows["rows"][0]["n"].as_i64().unwrap();
    assert!((200_000_000..60_000_000_000).contains(&nanos), "{nanos}");
}
