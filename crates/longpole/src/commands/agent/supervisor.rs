//! The supervisor of an agent's worker.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_capture::launch::{child, signals};
use longpole_capture::procfs::left_out::{HeldUp, LeftOut};
use longpole_model::Exit;

use crate::terminal::stderr::note;

/// How long a worker may not beat: [`Heart`](super::heart::Heart) stops after some seconds in which nothing went on.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How long a worker may take to end: the server may be slow to take the last window.
const END_MAX: Duration = Duration::from_secs(45);

/// How long to wait for what is killed.
const KILL_MAX: Duration = Duration::from_secs(2);

/// Pause before another worker, where nothing tells what held up the last one.
const PAUSE: Duration = Duration::from_secs(30);

/// How often to look at signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process that profiles.
struct Worker {
    process: Child,
    beats: Receiver<()>,
    /// Kept, so that waiting for a beat takes its time when the worker has closed its output, too.
    _beat: Sender<()>,
}

/// What became of a worker.
enum Outcome {
    Ended(ExitStatus),
    Silent,
}

/// Runs workers until Ctrl-C or SIGTERM, or until one ends by itself: then this process ends as it did.
pub(super) fn supervise() -> Result<()> {
    signals::install_interrupts().context("failed to catch Ctrl-C")?;
    let mut left_out = LeftOut::default();
    loop {
        let mut worker = Worker::start(&left_out)?;
        match worker.watch()? {
            Outcome::Ended(status) if status.success() => return Ok(()),
            // It has said why.
            Outcome::Ended(status) => {
                child::exit_like(status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code))
            }
            Outcome::Silent => worker.kill(),
        }
        if signals::interrupted() {
            note("the last profiles are lost: the agent did not end in time");
            return Ok(());
        }
        let found = left_out.find_more();
        note(in_words(&found));
        if found.is_empty() {
            longpole_capture::procfs::target::wait_for_interrupt(PAUSE);
        }
        if signals::interrupted() {
            return Ok(());
        }
    }
}

impl Worker {
    /// Starts this program again, with the same arguments. It has a process group of its own, so that Ctrl-C reaches it once.
    fn start(left_out: &LeftOut) -> Result<Worker> {
        let mut arguments = std::env::args_os();
        // By its path it has a name that people know; the file may have been replaced since.
        let own = std::env::current_exe().ok().filter(|path| path.exists());
        let mut command = Command::new(own.unwrap_or_else(|| "/proc/self/exe".into()));
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        command.args(arguments).arg(format!("--left-out={left_out}")).process_group(0);
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = started.context("failed to start the agent's worker")?;
        let (beat, beats) = channel();
        let (stdout, sender) = (process.stdout.take(), beat.clone());
        let listen = move || {
            let mut bytes = [0; 64];
            let Some(mut stdout) = stdout else { return };
            while matches!(stdout.read(&mut bytes), Ok(1..)) && sender.send(()).is_ok() {}
        };
        Builder::new().name("longpole-beats".to_owned()).spawn(listen).context("failed to start a thread")?;
        Ok(Worker { process, beats, _beat: beat })
    }

    /// Waits until it ends, or stands still.
    fn watch(&mut self) -> Result<Outcome> {
        let mut until = Instant::now() + SILENCE_MAX;
        let mut is_ending = false;
        loop {
            if self.beats.recv_timeout(LOOK_EVERY).is_ok() && !is_ending {
                until = Instant::now() + SILENCE_MAX;
            }
            if let Some(status) = self.process.try_wait().context("failed to wait for the agent's worker")? {
                return Ok(Outcome::Ended(status));
            }
            if signals::interrupted() && !is_ending {
                is_ending = true;
                signals::terminate(&self.process);
                until = Instant::now() + END_MAX;
            }
            if Instant::now() >= until {
                return Ok(Outcome::Silent);
            }
        }
    }

    /// Kills it. Whoever waits for another process's memory may not even end then: it is left behind.
    fn kill(&mut self) {
        let until = Instant::now() + KILL_MAX;
        let _ = self.process.kill();
        while Instant::now() < until && matches!(self.process.try_wait(), Ok(None)) {
            let _ = self.beats.recv_timeout(LOOK_EVERY);
        }
    }
}

/// What the supervisor found, for people.
fn in_words(found: &[HeldUp]) -> String {
    if found.is_empty() {
        return format!("the agent stood still, and nothing tells why; it begins again in {} s", PAUSE.as_secs());
    }
    let one = |held_up: &HeldUp| {
        let user = held_up.with_its_user.map(|user| format!(", with all processes of user {user}")).unwrap_or_default();
        format!("{} ({}){user}", held_up.name, held_up.pid)
    };
    let all: Vec<String> = found.iter().map(one).collect();
    format!("a process does not let others read its memory, so that the agent stood still; from now on it leaves out {}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named() {
        let found = [
            HeldUp { pid: 7, name: "cart".to_owned(), with_its_user: None },
            HeldUp { pid: 9, name: "shop".to_owned(), with_its_user: Some(1_000) },
        ];
        assert!(in_words(&found).ends_with("leaves out cart (7), shop (9), with all processes of user 1000"), "{}", in_words(&found));
        assert!(in_words(&[]).ends_with("it begins again in 30 s"));
    }
}
