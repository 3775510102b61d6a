//! The wrapper from inside: what a story that drives the binary cannot hold still for.
//!
//! One process runs one command at a time, so each test plays its wrapper in a process of its own: this binary again, with
//! only the test function of that role. There the wrapper is not the main thread, and signals come to it astray.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "waiting for a process that is not a child, and dying in the middle")]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

use longpole_capture::launch::error::LaunchError;
use longpole_capture::launch::{child, signals};
use longpole_model::Exit;

/// Set in the processes that play a role.
const ROLE: &str = "LONGPOLE_WRAPPER_ROLE";

/// A story that hangs fails after this long; nothing is ever waited for by time.
const DEADLINE_MILLIS: i32 = 60_000;

fn play(function: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", function, "--nocapture", "--test-threads=1"]).env(ROLE, "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn is_role() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// The rest of the next line that holds this word; the test harness prints lines, and beginnings of lines, too.
fn after(word: &str, lines: &mut BufReader<ChildStdout>) -> String {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the role ended without `{word}`");
        if let Some((_, rest)) = line.split_once(word) {
            return rest.trim().to_owned();
        }
    }
}

fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}

fn argv(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Waits until a process that is not a child has ended.
fn wait_gone(pid: i32) {
    // SAFETY: opens a descriptor that nobody else owns, or fails because the process is gone.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if descriptor < 0 {
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ESRCH));
        return;
    }
    // SAFETY: as above.
    let process = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
    let mut entry = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    assert_eq!(unsafe { libc::poll(&mut entry, 1, DEADLINE_MILLIS) }, 1, "process {pid} lives on");
}

#[test]
fn a_child_at_its_gate_ends_with_the_recorder() {
    if is_role() {
        let gated = child::prepare(&argv(&["sh", "-c", "echo ran"]), &environment()).unwrap();
        say(&format!("gated {}", gated.pid()));
        // SAFETY: ends this process as a crash would.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let (mut role, mut lines) = play("a_child_at_its_gate_ends_with_the_recorder");
    let pid = after("gated ", &mut lines).parse().unwrap();
    role.wait().unwrap();
    wait_gone(pid);
    let mut rest = String::new();
    lines.read_line(&mut rest).unwrap();
    assert_eq!(rest, "", "it ran all the same");
}

#[test]
fn after_the_command_one_interrupt_asks_and_a_second_one_ends() {
    if is_role() {
        signals::install().unwrap();
        let gated = child::prepare(&argv(&["sh", "-c", "exit 7"]), &environment()).unwrap();
        let exit = gated.release().unwrap().wait();
        say(&format!("ended {exit:?}"));
        for _ in std::io::stdin().lines() {
            say(&format!("interrupted {}", signals::interrupted()));
        }
    }
    let (mut role, mut lines) = play("after_the_command_one_interrupt_asks_and_a_second_one_ends");
    assert_eq!(after("ended ", &mut lines), "Code(7)");
    let mut stdin = role.stdin.take().unwrap();
    let mut ask = || {
        stdin.write_all(b"?\n").unwrap();
        after("interrupted ", &mut lines)
    };
    assert_eq!(ask(), "false");
    // SAFETY: to a child that has not been reaped.
    let interrupt = |role: &Child, signal| assert_eq!(unsafe { libc::kill(role.id() as i32, signal) }, 0);
    // Neither of these is a request to stop.
    interrupt(&role, libc::SIGUSR1);
    interrupt(&role, libc::SIGWINCH);
    assert_eq!(ask(), "false");
    interrupt(&role, libc::SIGINT);
    // The handler runs in another thread, soon.
    while ask() == "false" {}
    interrupt(&role, libc::SIGTERM);
    assert_eq!(role.wait().unwrap().code(), Some(7), "it leaves at once, as the command did");
}

#[test]
fn commands_run_one_after_the_other_and_failures_say_what_failed() {
    if !is_role() {
        let (mut role, _lines) = play("commands_run_one_after_the_other_and_failures_say_what_failed");
        assert!(role.wait().unwrap().success());
        return;
    }
    let dir = std::env::temp_dir().join(format!("longpole-wrapper-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let lost = dir.join("lost");
    std::fs::write(&lost, format!("#!{}\n", dir.join("no-interpreter").display())).unwrap();
    std::fs::set_permissions(&lost, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    // Dropped at its gate, it never runs, and leaves no zombie.
    let gated = child::prepare(&argv(&["touch", dir.join("ran").to_str().unwrap()]), &environment()).unwrap();
    let pid = gated.pid();
    drop(gated);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists() && !dir.join("ran").exists());

    for round in 0..3 {
        let gated = child::prepare(&argv(&["sh", "-c", &format!("test $$ = $PPID; kill -0 $$; exit {round}")]), &environment()).unwrap();
        let pid = gated.pid();
        let mut running = gated.release().unwrap();
        assert_eq!(running.pid(), pid);
        assert_eq!(running.wait(), Exit::Code(round));
        assert_eq!(running.wait(), Exit::Code(round), "asked again, it says the same");
        assert!(running.cpu_nanos().is_some() && running.usage().is_some());
        assert!(running.last_usage().is_some_and(|usage| usage.memory.is_none() && usage.minor_faults > 0));
    }
    let killed = child::prepare(&argv(&["sh", "-c", "kill -KILL $$"]), &environment()).unwrap().release().unwrap().wait();
    assert_eq!(killed, Exit::Signal(libc::SIGKILL));

    // A Ctrl-C that comes while it waits at its gate.
    let gated = child::prepare(&argv(&["sleep", "600"]), &environment()).unwrap();
    // SAFETY: to a child that has not been reaped.
    unsafe { libc::kill(gated.pid() as i32, libc::SIGINT) };
    assert_eq!(gated.release().unwrap().wait(), Exit::Signal(libc::SIGINT));

    let fails = |program: &str| child::prepare(&argv(&[program]), &environment()).unwrap().release().err().unwrap();
    assert!(matches!(fails("longpole-no-such-command"), LaunchError::NotFound { .. }));
    assert!(matches!(fails(lost.to_str().unwrap()), LaunchError::InterpreterNotFound { .. }));
    assert!(matches!(fails(dir.to_str().unwrap()), LaunchError::NotExecutable { .. }));
    assert_eq!(fails(dir.to_str().unwrap()).exit_code(), 126);
    assert_eq!(fails("").to_string(), "command not found: ");
    assert!(matches!(child::prepare(&[], &environment()), Err(LaunchError::Setup { .. })));
    assert!(matches!(child::prepare(&argv(&["a\0b"]), &environment()), Err(LaunchError::Setup { .. })));
    std::fs::remove_dir_all(&dir).unwrap();
}
