//! Story: the disk is full, from the beginning, in the middle of the run, or when the recording is to be finished.
//! Guarantees: a line reports it while the command runs; the command has its output and its exit status; what was written opens, also while the
//! disk is still full; what did not fit is counted; where there is space again nothing is missing; an import that does not fit leaves
//! nothing behind.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::live_in_a_container::quality;
use crate::support::{Sandbox, json, longpole, skip};

/// A small file system of its own; gone when it is dropped.
struct Disk(PathBuf);

impl Disk {
    /// `None`, noted, where nobody lets us mount one.
    fn new(sandbox: &Sandbox, story: &str) -> Option<Disk> {
        let path = sandbox.path("disk");
        std::fs::create_dir_all(&path).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(&path).output();
        if !mount.is_ok_and(|out| out.status.success()) {
            skip(story, "no file system can be mounted");
            return None;
        }
        Some(Disk(path))
    }

    fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    fn filling(&self) -> PathBuf {
        self.0.join("filling")
    }

    /// Takes all that is left.
    fn fill(&self) {
        let dd = Command::new("dd").args(["if=/dev/zero", "bs=4k"]).arg(format!("of={}", self.filling().display())).output().unwrap();
        assert!(!dd.status.success(), "it was not filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().ok();
    }
}

/// What `run` says at once when the log cannot be written.
const ALARM: &str = "; the command goes on, and longpole counts what it cannot write";

/// Runs a shell script that waits for lines on its input; what to do when `run` has said that the disk is full, then what it said and how
/// it ended.
fn run(disk: &Disk, script: &str, when_alarmed: impl FnOnce()) -> (Vec<String>, String, Option<i32>) {
    let mut command = longpole(&disk.store());
    command.args(["run", "--summary-format", "json", "--", "sh", "-c", script, "sh"]).arg(disk.filling());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let alarm = lines.next().unwrap();
    assert!(alarm.starts_with("longpole: failed to append to the write-ahead log ") && alarm.ends_with(ALARM), "{alarm}");
    assert!(alarm.contains("No space left on device"), "{alarm}");
    // The command lives: it waits for us.
    assert!(child.try_wait().unwrap().is_none());
    when_alarmed();
    drop(child.stdin.take());
    let said = lines.collect();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    (said, output, child.wait().unwrap().code())
}

/// Fills the disk, goes on until its input ends, prints, and exits with 7.
const FILLS: &str = "dd if=/dev/zero of=\"$1\" bs=4k 2>/dev/null; cat >/dev/null; echo output; exit 7";

fn summary_of(said: &[String]) -> Value {
    let text =
        said.iter().skip_while(|line| *line != "{").take_while(|line| !line.starts_with("longpole: ")).fold(String::new(), |a, b| a + b);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn a_full_disk_costs_only_what_came_later() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::new(&sandbox, "a_full_disk_costs_only_what_came_later") else { return };
    let (said, output, code) = run(&disk, FILLS, || {});
    assert_eq!((output.as_str(), code), ("output\n", Some(7)), "{said:?}");
    let last = said.last().unwrap();
    assert!(last.starts_with("longpole: the command ran, but its recording is incomplete: ") && last.contains("No space left"), "{said:?}");
    // The answer is there all the same, and says what it lacks; so it does later, and when there is space again.
    let summary = summary_of(&said);
    let check = |summary: &Value| {
        assert_eq!((&summary["exit"]["code"], &summary["processes"]), (&7.into(), &summary["processes"]), "{summary}");
        assert!(quality(summary, "not_written").unwrap().contains("while the log could not be written"), "{summary}");
        assert!(summary["processes"].as_u64().unwrap() >= 2, "{summary}");
    };
    check(&summary);
    let show = || json(longpole(&disk.store()).args(["show", "last", "--format", "json"]));
    check(&show());
    std::fs::remove_file(disk.filling()).unwrap();
    check(&show());
    let count = json(longpole(&disk.store()).args(["sql", "SELECT count(*) AS n FROM processes", "--format", "json"]));
    assert!(count["rows"][0]["n"].as_u64().unwrap() >= 2, "{count}");
}

#[test]
fn nothing_is_lost_when_space_is_freed_in_time() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::new(&sandbox, "nothing_is_lost_when_space_is_freed_in_time") else { return };
    let script = FILLS.replace("echo output", "rm \"$1\"; /bin/true; sleep 0.3; echo output");
    let (said, output, code) = run(&disk, &script, || {});
    assert_eq!((output.as_str(), code), ("output\n", Some(7)), "{said:?}");
    let summary = json(longpole(&disk.store()).args(["show", "last", "--format", "json"]));
    assert_eq!((quality(&summary, "not_written"), quality(&summary, "recorder_killed")), (None, None), "{summary}");
    let names = json(longpole(&disk.store()).args(["sql", "SELECT name FROM processes ORDER BY name", "--format", "json"]));
    let names: Vec<&str> = names["rows"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["cat", "dd", "rm", "sh", "sleep", "true"]);
}

#[test]
fn the_log_stays_when_the_segments_do_not_fit() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::new(&sandbox, "the_log_stays_when_the_segments_do_not_fit") else { return };
    // The log has its share; nobody has space for anything else, as the names of the kernel's functions, which would give it back. When the recording is
    // sealed, 64 KiB are set free; its segments take 80 and more.
    let store = disk.store();
    let cache = sandbox.path("cache");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::create_dir(&cache).unwrap();
    std::os::unix::fs::symlink(&cache, store.join("cache")).unwrap();
    let mut command = longpole(&store);
    command.args(["run", "--summary-format", "json", "--", "sh", "-c", "cat; echo output; exit 7"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let log = store.join("recordings/r1/wal/000001.wal");
    while !std::fs::metadata(&log).is_ok_and(|log| log.len() > 300) {
        std::thread::yield_now();
    }
    disk.fill();
    let filled = std::fs::metadata(disk.filling()).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(disk.filling()).unwrap().set_len(filled - 8 * 1024).unwrap();
    drop(child.stdin.take());
    let out = child.wait_with_output().unwrap();
    let said: Vec<String> = String::from_utf8_lossy(&out.stderr).lines().map(str::to_owned).collect();
    assert_eq!((String::from_utf8_lossy(&out.stdout).as_ref(), out.status.code()), ("output\n", Some(7)), "{said:?}");
    assert!(said.last().unwrap().contains("failed to seal it, and its log stays"), "{said:?}");
    let summary = summary_of(&said);
    assert_eq!((&summary["exit"]["code"], quality(&summary, "not_written")), (&7.into(), None), "{summary}");
    assert!(!store.join("recordings/r1/segments.partial").exists());
    // Its recorder was not killed, and the list says what it was.
    let listed = || json(longpole(&store).args(["ls", "--format", "json"]))["recordings"][0].clone();
    let row = listed();
    assert!(row["state"] == "ended" && row["not_sealed"].as_str().unwrap().contains("No space left on device"), "{row}");
    let ls = longpole(&store).arg("ls").output().unwrap();
    let ls = String::from_utf8_lossy(&ls.stdout).into_owned();
    assert!(ls.contains("not finished: No space"), "{ls}");
    std::fs::remove_file(disk.filling()).unwrap();
    let shown = json(longpole(&store).args(["show", "last", "--format", "json"]));
    assert_eq!((&shown["exit"]["code"], quality(&shown, "recorder_killed")), (&7.into(), None), "{shown}");
    assert_eq!((&listed()["state"], &listed()["not_sealed"]), (&"sealed".into(), &Value::Null));
}

#[test]
fn a_command_runs_on_a_full_disk_and_import_fails_with_the_reason() {
    let sandbox = Sandbox::new();
    let Some(disk) = Disk::new(&sandbox, "a_command_runs_on_a_full_disk_and_import_fails_with_the_reason") else { return };
    let store = disk.store();
    json(longpole(&store).args(["ls", "--format", "json"]));
    disk.fill();
    let out = longpole(&store).args(["run", "--", "sh", "-c", "echo output; exit 7"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!((String::from_utf8_lossy(&out.stdout).as_ref(), out.status.code()), ("output\n", Some(7)), "{said}");
    assert!(
        said.starts_with("longpole: nothing is recorded: ") && said.contains("No space left") || said.contains("disk is full"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");

    // Begun with some space, and not enough of it.
    let filled = std::fs::metadata(disk.filling()).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(disk.filling()).unwrap().set_len(filled - 160 * 1024).unwrap();
    let folded = sandbox.path("large.folded");
    let lines: String = (0..200_000).map(|i| format!("main;work_{i};hash_{} 12\n", i * 7_919 % 200_003)).collect();
    std::fs::write(&folded, lines).unwrap();
    let import = |folded: &Path| longpole(&store).arg("import").arg(folded).stdin(Stdio::null()).output().unwrap();
    let out = import(&folded);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("failed to keep ") && said.contains("No space left on device"), "{said}");
    let listed = json(longpole(&store).args(["ls", "--format", "json"]));
    assert!(!listed.to_string().contains("\"r1\""), "{listed}");
    assert_eq!(std::fs::read_dir(store.join("recordings")).unwrap().count(), 0, "nothing stays behind");
    std::fs::remove_file(disk.filling()).unwrap();
    std::fs::write(&folded, "main;work 12\n").unwrap();
    assert!(import(&folded).status.success());
}
