//! Line 13: spans that a program made never arrive, or recording keeps a command from starting.
//! Guarantees: spans that a program had and never sent are counted, by their ids; those that it was not to send are not; a program that
//! ends without a guard loses none; where there are no descriptors, no processes, no memory to lock, no files to write, the command starts
//! all the same, with its input, its output and its end, and `--strict` says so instead; where a file system does not answer, the run ends
//! soon after its command, with everything recorded before.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tracing::info_span;

use crate::support::{Sandbox, binary, bounded, c, clean, example, json, longpole, plain_user, role, skip};

/// How the program of a test is to end.
const END: &str = "LONGPOLE_STORY_END";

/// A program with five spans that are over, and one that is not.
#[test]
#[expect(clippy::exit, clippy::disallowed_methods, reason = "it ends in every way there is")]
fn program() {
    let Ok(end) = std::env::var(END) else { return };
    let unsampled = end.starts_with("unsampled");
    let sampler = move |name: &str| match name {
        "OTEL_TRACES_SAMPLER" if unsampled => Some("always_off".to_owned()),
        _ => std::env::var(name).ok(),
    };
    std::mem::forget(longpole_sdk::builder().variables(sampler).init());
    for number in 0..5 {
        drop(info_span!("over", number).entered());
    }
    let _open = info_span!("open").entered();
    let pid = std::process::id().to_string();
    match end.as_str() {
        "kill" | "unsampled, kill" => _ = Command::new("kill").args(["-9", &pid]).status(),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(0),
        // A span of another library, which says that it does not record it.
        "foreign" => drop(longpole_sdk::enter_span_context([7; 16], [7; 8], 0)),
        _ => {}
    }
}

/// Records the program. Returns the losses of spans, the number of spans that arrived, and the text in the terminal.
fn recorded(end: &str) -> (u64, u64, String) {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let function = "lose_the_last_spans::program";
    let mut run = longpole(&store);
    run.args(["run", "--"]).args(role(function)).env(END, end).env("OTEL_BSP_SCHEDULE_DELAY", "600000");
    let answer = run.stdin(Stdio::null()).output().unwrap();
    let sql = |query: &str| {
        let answer = json(longpole(&store).args(["sql", "--format", "json", query]));
        answer["rows"][0]["n"].as_u64().unwrap_or(0)
    };
    let lost = sql("SELECT sum(count) AS n FROM losses WHERE kind = 'spans_never_arrived'");
    (lost, sql("SELECT count(*) AS n FROM spans WHERE name IN ('over', 'open')"), String::from_utf8_lossy(&answer.stderr).into_owned())
}

#[test]
fn lost_spans_of_a_killed_program_are_counted() {
    for end in ["kill", "abort"] {
        let (lost, arrived, answer) = recorded(end);
        assert_eq!((lost, arrived), (6, 0), "{end}: {answer}");
        assert!(answer.contains("6 spans that never arrived: known from context records of threads"), "{answer}");
    }
}

#[test]
fn a_program_without_a_guard_loses_no_ended_span() {
    for end in ["exit", "return"] {
        let (lost, arrived, answer) = recorded(end);
        // `exit` leaves the last one open for good.
        assert_eq!(lost + arrived, 6, "{end}: {answer}");
        assert!(arrived >= 5, "{end}: {answer}");
    }
}

#[test]
fn unsampled_spans_are_not_counted_as_lost() {
    let (lost, arrived, answer) = recorded("unsampled, kill");
    assert_eq!((lost, arrived), (0, 0), "{answer}");
    let (lost, arrived, answer) = recorded("foreign");
    assert_eq!((lost, arrived), (0, 6), "{answer}");
}

/// A command that tells its input, its output, its standard error and its end, and needs neither a descriptor nor a process for it.
const COMMAND: &str = "IFS= read -r line; echo \"out $line, $RUST_BACKTRACE\"; cd /to-standard-error; exit 7";

/// Runs the command under limits that a shell sets first; the words are longpole's.
fn limited(store: &Path, limit: &str, words: &[&str]) -> Output {
    let mut command = Command::new("sh");
    let script = format!("{limit} && exec \"$@\"");
    command.args(["-c", &script, "sh"]).arg(binary()).arg("--store").arg(store).args(words);
    clean(&mut command);
    ended(command.args(["--", "sh", "-c", COMMAND]))
}

fn ended(command: &mut Command) -> Output {
    // With backtraces a process hung where there was no memory for one; they are the command's to want.
    let mut child = command.env("RUST_BACKTRACE", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that did not start does not read.
    let _ = child.stdin.take().unwrap().write_all(b"in\n");
    child.wait_with_output().unwrap()
}

fn check_command(what: &str, output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{what}: {stderr}");
    assert_eq!(output.stdout, b"out in, 1\n", "{what}: {stderr}");
    assert!(stderr.contains("/to-standard-error"), "{what}: {stderr}");
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");
}

#[test]
fn a_command_starts_with_just_its_own_descriptors() {
    let sandbox = Sandbox::new();
    // From none beside the three standard ones over every step at which something of ours has no more room.
    for files in (4..36).chain([48, 64]) {
        let limit = format!("ulimit -n {files}");
        let output = limited(&sandbox.path("store"), &limit, &["run"]);
        check_command(&limit, &output);
    }
    let output = limited(&sandbox.path("store"), "ulimit -n 5", &["run"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("longpole: recording is off, and the command runs without longpole: "), "{stderr}");
    check_command("exec", &limited(&sandbox.path("store"), "ulimit -n 5", &["exec"]));
    // With `--strict` a missing recording is an error.
    let output = limited(&sandbox.path("store"), "ulimit -n 5", &["run", "--strict"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
}

#[test]
fn a_command_starts_where_nothing_is_writable_or_lockable() {
    let sandbox = Sandbox::new();
    for limit in ["ulimit -f 0", "ulimit -f 8", "ulimit -l 0", "ulimit -c 0", "ulimit -f 0 && ulimit -n 9"] {
        check_command(limit, &limited(&sandbox.path("store"), limit, &["run"]));
    }
    let output = limited(&sandbox.path("store"), "ulimit -f 0", &["run"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("longpole: nothing is recorded: "), "{stderr}");
}

#[test]
fn a_stack_limit_applies_to_the_command() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for kib in [64, 100, 128, 1024] {
        let limit = format!("ulimit -s {kib}");
        for way in ["run", "exec"] {
            check_command(&limit, &limited(&store, &limit, &[way]));
        }
        let script = format!("{limit} && exec \"$@\"");
        let within = |words: &[&str]| {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).args(words);
            clean(&mut command);
            command.env("LONGPOLE_STORE", &store).stdin(Stdio::null()).output().unwrap()
        };
        let command = ["sh", "-c", "ulimit -s; grep SigBlk /proc/self/status; kill -TERM $$"];
        let longpole = binary();
        let longpole = longpole.to_str().unwrap();
        let recorded = within(&[&[longpole, "run", "--summary", "none", "--"], &command[..]].concat());
        let alone = within(&command);
        assert_eq!((&recorded.stdout, recorded.status), (&alone.stdout, alone.status), "{recorded:?}");
        for look in [&["show"][..], &["ls"], &["sql", "select count(*) from processes"]] {
            assert!(within(&[&[longpole], look].concat()).status.success(), "{limit}: {look:?}");
        }
    }
}

#[test]
fn the_longest_command_line_starts() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let store = store.to_str().unwrap();
    let command = |first: &str, second: &str, bytes: usize| {
        let mut command = Command::new(binary());
        clean(&mut command);
        command.args([first, second, "run", "--summary", "none", "--", "sh", "-c", "echo \"$OTEL_TRACES_EXPORTER\"; exit 7"]);
        command.args(std::iter::repeat_n("x".repeat(100_000), bytes / 100_000)).arg("y".repeat(bytes % 100_000));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    // As long, and ends at once.
    let starts = |bytes: &usize| command("--version", &store[2..], *bytes).output().is_ok();
    let (mut most, mut too_many) = (100_000, 8_000_000);
    assert!(starts(&most) && !starts(&too_many));
    while too_many - most > 1 {
        let middle = usize::midpoint(most, too_many);
        if starts(&middle) { most = middle } else { too_many = middle }
    }
    // Where ours do not fit beside them, the command gets the variables that it would have alone.
    for (spared, expected) in [(0, "\n"), (300, "\n"), (5_000, "otlp\n")] {
        let ran = command("--store", store, most - spared).output().unwrap();
        assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stdout).as_ref()), (Some(7), expected), "{spared}: {ran:?}");
        let shown = json(longpole(Path::new(store)).args(["show", "--format", "json"]));
        let is_said = shown["quality"].to_string().contains("no spans: the arguments and the environment of the command leave no room");
        assert_eq!(is_said, spared < 5_000, "{spared}: {}", shown["quality"]);
    }
}

/// Somewhere between too little for the program itself and enough for all, longpole runs out of memory after the command has ended.
#[test]
fn a_command_exits_normally_without_memory_for_its_recording() {
    let sandbox = Sandbox::new();
    // What the loader needs for the binary depends on how it was built.
    let least = (50..400).step_by(10).find(|mib| {
        let mut version = Command::new("sh");
        let script = format!("ulimit -v {} && exec \"$0\" --version", mib << 10);
        version.args(["-c", &script]).arg(binary()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    });
    let least = least.expect("400 MiB are enough");
    for mib in (20..200).step_by(10).map(|more| least + more) {
        let limit = format!("ulimit -v {}", mib << 10);
        check_command(&limit, &limited(&sandbox.path("store"), &limit, &["run"]));
    }
}

#[test]
fn a_command_starts_where_no_other_process_is_allowed() {
    let sandbox = Sandbox::new();
    let story = "a command starts under a limit of processes";
    let Some(user) = plain_user(&sandbox, story) else { return };
    if Command::new("prlimit").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip(story, "prlimit is not there");
    }
    let store = sandbox.path("store");
    // The limit is on all processes of the user: 1 is none, and some leave room for the command and not for our threads.
    for processes in [1, 2, 3, 4, 5, 6, 8, 12] {
        let limit = format!("--nproc={processes}");
        let mut command = user.command(Path::new("prlimit"));
        command.arg(&limit).arg("--").arg(user.longpole()).arg("--store").arg(&store).args(["run", "--", "sh", "-c", COMMAND]);
        check_command(&limit, &ended(&mut command));
    }
}

#[test]
fn a_privileged_program_does_not_write_where_its_caller_says() {
    let story = "a set-user-id program with the SDK";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, story) else { return };
    if !user.becomes {
        return skip(story, "only root makes a set-user-id program of another user");
    }
    let private = sandbox.path("private");
    std::fs::create_dir(&private).unwrap();
    std::fs::set_permissions(&private, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let as_nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        clean(&mut command);
        command.env("LONGPOLE_JOURNAL_DIR", &private).current_dir("/").stdin(Stdio::null());
        command
    };
    let with_more_rights = |program: &Path| {
        let installed = user.install(program);
        std::fs::set_permissions(&installed, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
        installed
    };
    if as_nobody(&with_more_rights(Path::new("/usr/bin/id"))).arg("-u").output().unwrap().stdout != b"0\n" {
        return skip(story, "this file system takes no set-user-id programs");
    }
    let out = as_nobody(&with_more_rights(&example("ground-truth"))).args(["sync", "5"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let written: Vec<_> = std::fs::read_dir(&private).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(written.is_empty(), "{written:?}");
}

/// A program with a FUSE file system of its own, as sshfs is one, whose daemon takes each request to read and never answers it. The daemon lives as
/// long as somebody holds its standard input, a minute at most.
///
/// `stack`: sleeps for a moment with its stack in a file there. `context`: has such a file as its process context (OTEP 4719) for 1.5 s. `poll`: calls
/// `poll` with arguments there, which the recorder reads to learn what the thread waits for.
const SILENT: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NOT_HERE = 77, BYTES = 1 << 20 };

static int say(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    int outcome = file < 0 || write(file, text, strlen(text)) < 0;
    close(file);
    return outcome;
}

static void serve(int fuse, unsigned flags) {
    static char in[1 << 17];
    static char out[512];
    struct pollfd both[2] = {{fuse, POLLIN, 0}, {0, 0, 0}};
    while (poll(both, 2, -1) > 0 && !both[1].revents && read(fuse, in, sizeof in) > 0) {
        struct fuse_in_header *request = (void *)in;
        struct fuse_out_header *head = (void *)out;
        struct fuse_attr *attr = NULL;
        memset(out, 0, sizeof out);
        head->unique = request->unique;
        head->len = sizeof *head;
        if (request->opcode == FUSE_INIT) {
            struct fuse_init_out *init = (void *)(head + 1);
            init->major = 7;
            init->minor = 31;
            init->max_write = 4096;
            init->max_readahead = 1 << 17;
            init->flags = flags;
            head->len += sizeof *init;
        } else if (request->opcode == FUSE_LOOKUP) {
            struct fuse_entry_out *entry = (void *)(head + 1);
            entry->nodeid = 2;
            entry->attr_valid = entry->entry_valid = 9999;
            attr = &entry->attr;
            head->len += sizeof *entry;
        } else if (request->opcode == FUSE_GETATTR) {
            struct fuse_attr_out *answer = (void *)(head + 1);
            answer->attr_valid = 9999;
            attr = &answer->attr;
            head->len += sizeof *answer;
        } else if (request->opcode == FUSE_OPEN) {
            head->len += sizeof(struct fuse_open_out);
        } else if (request->opcode == FUSE_READ) {
            continue;
        } else if (request->opcode == FUSE_FORGET || request->opcode == FUSE_BATCH_FORGET || request->opcode == FUSE_INTERRUPT) {
            continue;
        } else {
            head->error = -38; /* ENOSYS */
        }
        if (attr) {
            int is_root = request->opcode == FUSE_GETATTR && request->nodeid == 1;
            attr->ino = is_root ? 1 : 2;
            attr->mode = is_root ? S_IFDIR | 0777 : S_IFREG | 0777;
            attr->size = BYTES;
            attr->nlink = 1;
        }
        if (write(fuse, out, head->len) < 0) return;
    }
}

static void sleep_there(char *stack) {
#ifdef __x86_64__
    struct timespec moment = {0, 300000000};
    long outcome;
    __asm__ volatile("mov %%rsp, %%r12; mov %[stack], %%rsp; syscall; mov %%r12, %%rsp"
                     : "=a"(outcome)
                     : "a"(SYS_nanosleep), "D"(&moment), "S"(0), [stack] "r"(stack)
                     : "rcx", "r11", "r12", "memory");
#else
    _exit(NOT_HERE);
#endif
}

int main(int count, char **words) {
    char text[4200], path[4200];
    int uid = getuid(), gid = getgid(), is_stack = !strcmp(words[1], "stack");
    if (count != 3 || unshare(CLONE_NEWUSER | CLONE_NEWNS)) return NOT_HERE;
    snprintf(text, sizeof text, "0 %d 1", uid);
    if (say("/proc/self/uid_map", text) || say("/proc/self/setgroups", "deny")) return NOT_HERE;
    snprintf(text, sizeof text, "0 %d 1", gid);
    if (say("/proc/self/gid_map", text)) return NOT_HERE;
    int fuse = open("/dev/fuse", O_RDWR);
    if (fuse < 0) return NOT_HERE;
    snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (mount("silent", words[2], "fuse", MS_NOSUID | MS_NODEV, text)) return NOT_HERE;
    if (!fork()) {
        setsid();
        alarm(60);
        int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 1);
        dup2(nothing, 2);
        /* A read of one page that waits can be given up by who is killed only where reads need not wait, as those of libfuse. */
        serve(fuse, is_stack ? 0 : FUSE_ASYNC_READ);
        _exit(0);
    }
    alarm(60);
    close(fuse);
    snprintf(path, sizeof path, "%s/memfd:%s", words[2], is_stack ? "stack" : "OTEL_CTX");
    int file = open(path, O_RDONLY);
    if (file < 0) { perror(path); return 1; }
    char *page = mmap(0, BYTES, PROT_READ, MAP_PRIVATE, file, 0);
    /* From now on the file's name begins at the root of a file system that is nowhere. */
    if (page == MAP_FAILED || umount2(words[2], MNT_DETACH)) { perror("mmap"); return 1; }
    struct timespec later = {1, 500000000};
    if (is_stack) {
        sleep_there(page + BYTES / 2);
    } else if (!strcmp(words[1], "poll")) {
        int waits = fork();
        if (!waits) {
            poll((struct pollfd *)(page + BYTES / 2), 1, -1);
            _exit(0);
        }
        nanosleep(&later, NULL);
        kill(waits, SIGKILL);
    } else {
        nanosleep(&later, NULL);
    }
    return 5;
}
"#;

/// Runs the program; how it ended, how long it took, and what the recording says to be lost of samples. `None` where there is no FUSE.
fn run_silent(attack: &str, mode: &str) -> Option<(Output, Duration, Vec<String>)> {
    let sandbox = Sandbox::new();
    let program = c::compile(&sandbox, attack, "silent", SILENT)?;
    let (store, there) = (sandbox.path("store"), sandbox.path("there"));
    std::fs::create_dir(&there).unwrap();
    let begun = Instant::now();
    let mut run = bounded(&store);
    run.args(["run", "--"]).arg(program).arg(mode).arg(&there);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The daemon lives as long as this.
    let daemon = run.stdin.take();
    let output = run.wait_with_output().unwrap();
    let took = begun.elapsed();
    drop(daemon);
    if output.status.code() == Some(77) {
        skip(attack, "a plain program cannot have a FUSE file system here");
        return None;
    }
    let lost = json(longpole(&store).args(["sql", "--format", "json", "SELECT detail FROM losses WHERE kind = 'samples_lost'"]));
    let lost = lost["rows"].as_array().unwrap().iter().map(|row| row["detail"].as_str().unwrap().to_owned()).collect();
    Some((output, took, lost))
}

/// Half of the time that the daemon lives.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_recorder_hanging_in_a_file_system_does_not_delay_the_end() {
    let Some((output, took, lost)) = run_silent("arguments of a call in a file system that does not answer", "poll") else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    assert!(took < SOON, "{took:?}: {stderr}");
    assert!(stderr.contains("samples lost: the recorder does not end: a file system does not answer"), "{stderr}");
    let why = "takes more than 30 s to read: samples, waits and processes of the last ";
    assert!(lost.len() == 1 && lost[0].contains(why), "{lost:?}");
}

#[test]
fn a_stack_and_a_process_context_in_a_hanging_file_system_are_not_read() {
    for mode in ["stack", "context"] {
        let Some((output, took, lost)) = run_silent("memory in a file system that does not answer", mode) else { return };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{mode}: {stderr}");
        assert!(took < SOON, "{mode}: {took:?}: {stderr}");
        assert_eq!(lost, Vec::<String>::new(), "{mode}");
    }
}
