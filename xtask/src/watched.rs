//! Tests that hang end: a binary of tests that prints nothing for [`SILENCE_MAX`] is killed, and the tests that were running are named.
//!
//! A story waits for a condition. One that never holds would take the whole time of a CI and name nothing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::print;
use crate::paths::target_dir;

/// The longest test takes two minutes on the machine that these figures are of.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// Between two looks at how long nothing was printed.
const LOOK_PAUSE: Duration = Duration::from_secs(10);

/// What libtest says of a test after a minute.
const STILL_RUNS: &str = " has been running for over 60 seconds";

enum Event {
    Out(Vec<u8>),
    Error(Vec<u8>),
    Ended(std::io::Result<ExitStatus>),
}

/// Runs `cargo test` in `dir` and copies what it prints; a test that was killed is an error.
pub(crate) fn run_tests(dir: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    let command_line = format!("{program} {}", args.join(" "));
    print(&command_line, env);
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).envs(env.iter().copied());
    let (status, hung) = watch(&mut command, SILENCE_MAX).with_context(|| format!("could not start `{program}`"))?;
    let status = status.with_context(|| format!("lost `{command_line}`"))?;
    if !hung.is_empty() {
        eprintln!("\nxtask: killed for {} minutes without a line:", SILENCE_MAX.as_secs() / 60);
        hung.iter().for_each(|hung| eprintln!("  {hung}"));
    }
    if !status.success() || !hung.is_empty() {
        bail!("`{command_line}` ended with {status}");
    }
    Ok(())
}

/// Runs a command. Returns what was killed.
fn watch(command: &mut Command, silence_max: Duration) -> std::io::Result<(std::io::Result<ExitStatus>, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sender, events) = channel();
    let id = child.id();
    copy_lines(child.stdout.take(), Event::Out, sender.clone());
    copy_lines(child.stderr.take(), Event::Error, sender.clone());
    std::thread::spawn(move || sender.send(Event::Ended(child.wait())).ok());
    Ok(follow(id, &events, silence_max))
}

fn copy_lines(from: Option<impl Read + Send + 'static>, event: fn(Vec<u8>) -> Event, to: Sender<Event>) {
    let Some(from) = from else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            if to.send(event([&line[..], b"\n"].concat())).is_err() {
                break;
            }
        }
    });
}

/// Copies lines until the command ends, and returns what was killed.
fn follow(id: u32, events: &Receiver<Event>, silence_max: Duration) -> (std::io::Result<ExitStatus>, Vec<String>) {
    let (mut slow, mut hung) = (BTreeSet::new(), Vec::new());
    let mut last_line = Instant::now();
    loop {
        match events.recv_timeout(silence_max.min(LOOK_PAUSE)) {
            Ok(Event::Out(line)) => {
                note(&mut slow, &String::from_utf8_lossy(&line));
                std::io::stdout().write_all(&line).ok();
                last_line = Instant::now();
            }
            Ok(Event::Error(line)) => {
                std::io::stderr().write_all(&line).ok();
                last_line = Instant::now();
            }
            Ok(Event::Ended(status)) => {
                // What it started may outlive it and hold its pipes, so their end is no sign.
                while let Ok(event) = events.recv_timeout(Duration::from_secs(1)) {
                    match event {
                        Event::Out(line) => std::io::stdout().write_all(&line).ok(),
                        Event::Error(line) => std::io::stderr().write_all(&line).ok(),
                        Event::Ended(_) => None,
                    };
                }
                return (status, hung);
            }
            Err(RecvTimeoutError::Timeout) if last_line.elapsed() >= silence_max => {
                for (pid, binary) in test_binaries(id) {
                    let tests: Vec<&str> = slow.iter().map(String::as_str).collect();
                    hung.push(format!("{}: {}", binary.display(), tests.join(", ")));
                    Command::new("kill").args(["-KILL", &pid.to_string()]).status().ok();
                }
                slow.clear();
                last_line = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return (Err(std::io::Error::other("nobody waited for it")), hung),
        }
    }
}

/// Which tests libtest has named as slow and not yet as ended.
fn note(slow: &mut BTreeSet<String>, line: &str) {
    let Some(rest) = line.strip_prefix("test ") else { return };
    match (rest.trim_end().strip_suffix(STILL_RUNS), rest.split_once(" ...")) {
        (Some(name), _) => {
            slow.insert(name.to_owned());
        }
        (None, Some((name, _))) => {
            slow.remove(name);
        }
        (None, None) => {}
    }
}

/// The programs built here that this process started: a build has none, however long it takes.
fn test_binaries(id: u32) -> Vec<(u32, PathBuf)> {
    let numbers = |path: String| -> Vec<u32> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
        for child in numbers(format!("{}/children", task.path().display())) {
            match std::fs::read_link(format!("/proc/{child}/exe")) {
                Ok(exe) if exe.starts_with(target_dir()) => found.push((child, exe)),
                _ => found.extend(test_binaries(child)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that hangs, if the one below runs it.
    #[test]
    #[ignore = "it never ends"]
    fn hangs() {
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_binary_of_tests_that_hangs_is_killed_and_named() {
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "\"$0\" --exact watched::tests::hangs --ignored; exit 7"]).arg(&own);
        let (status, hung) = watch(&mut command, Duration::from_millis(500)).unwrap();
        assert_eq!(status.unwrap().code(), Some(7), "what comes behind it goes on");
        assert_eq!(hung, [format!("{}: ", own.display())], "after less than a minute, libtest has named no test");
        let (status, hung) = watch(Command::new("sh").args(["-c", "echo built; exit 3"]), Duration::from_secs(60)).unwrap();
        assert_eq!((status.unwrap().code(), hung.len()), (Some(3), 0));
    }

    #[test]
    fn a_slow_test_is_named_until_it_ends() {
        let mut slow = BTreeSet::new();
        for line in
            ["test a has been running for over 60 seconds\n", "test b has been running for over 60 seconds\n", "test a ... ok\n", "run\n"]
        {
            note(&mut slow, line);
        }
        assert_eq!(slow.into_iter().collect::<Vec<_>>(), ["b"]);
    }
}
