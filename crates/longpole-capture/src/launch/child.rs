//! Start a command behind a gate, wait for it, and end as it ended.
//!
//! ```text
//! signals::begin()            first thing of the run
//! signals::install()          before it starts threads
//! child::prepare(argv, env)   a process that waits at its gate: here the recorder attaches to GatedChild::pid
//! GatedChild::release         opens the gate; returns when the command runs, or says why it does not
//! RunningChild::wait          hands signals on, stops when the command stops, returns when it has ended
//! child::exit_like            the same code, or the same signal
//! ```
//!
//! The command is in our process group and our session, on our terminal, with our descriptors: it has what it would have
//! without us. What Rust's runtime and we changed in ourselves is put back in the child: the signal mask, ignored
//! signals (SIGPIPE as inherited, SIGHUP under `nohup`), closed standard descriptors, the limit of open files. Everything
//! that we open is closed by its exec.
//!
//! What differs, and cannot be otherwise: the command is never the leader of its process group or session, and children
//! that a shell had before it called `exec longpole` are ours, not the command's.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use longpole_model::{Exit, ProcessUsage, RunUsage};

use crate::launch::error::LaunchError;
use crate::launch::signals::{self, Reach, Round, Situation};
use crate::procfs::usage;
use crate::sys::command::{self, ExecReport, ExecStatus, Gated, Image};
use crate::sys::inherited;
use crate::sys::job_control;
use crate::sys::leave;
use crate::sys::limits;
use crate::sys::signal::{self, Event, Pid};
use crate::sys::wait::{self, Change};

/// Takes a variable out of our own environment, so that it is the command's alone. It stays, and the answer is `None`, where there is a second
/// thread, which could be reading it.
pub fn take_variable(name: &str) -> Option<OsString> {
    inherited::take_variable(name)
}

/// Bytes that the stack of the main thread may have, and that of the command's.
pub fn stack_limit_bytes() -> u64 {
    limits::stack_limit_bytes()
}

/// Where a command without a slash is looked for when there is no PATH, as the C library has it.
const PATH_DEFAULT: &[u8] = b"/bin:/usr/bin";

/// The command as a process that has not started: it waits at its gate. Dropped, it ends without a trace.
#[derive(Debug)]
pub struct GatedChild {
    /// Taken when the gate is opened.
    gated: Option<Gated>,
    pid: Pid,
    program: OsString,
    candidates: Vec<PathBuf>,
    /// Signals that came before there was a command.
    early: Vec<Event>,
}

/// The running command.
#[derive(Debug)]
pub struct RunningChild {
    pid: Pid,
    /// Stopped by this signal, which we have yet to follow.
    just_stopped: Option<i32>,
    /// Stopped, and we have stopped with it.
    stopped: bool,
    adopts_orphans: bool,
    /// What the witness got and we are still to see.
    leftover: Vec<(i32, Pid)>,
    has_spare_environment: bool,
    /// The most memory it had before its exec, where it was a copy of this process.
    own_peak_bytes: u64,
    ended: Option<(Exit, u64, Option<RunUsage>)>,
    last_usage: Option<ProcessUsage>,
}

/// Makes a process that will execute `argv` in the environment `env`, and waits with it. The command is looked for as
/// `execvp` does: on the PATH of `env`, where it has no slash; a text file without `#!` goes to `/bin/sh`.
pub fn prepare(argv: &[OsString], env: &[(OsString, OsString)]) -> Result<GatedChild, LaunchError> {
    prepare_or(argv, env, None)
}

/// The same; where arguments and environment are too long together, the command gets the `spare` environment
/// ([`RunningChild::has_spare_environment`]).
pub fn prepare_or(
    argv: &[OsString],
    env: &[(OsString, OsString)],
    spare: Option<&[(OsString, OsString)]>,
) -> Result<GatedChild, LaunchError> {
    signals::install()?;
    gate(argv, env, spare)
}

/// A process that waits at a gate which nobody opens, to try on it what a recorder does with one. It is no command: SIGINT, SIGTERM, SIGHUP and
/// SIGQUIT go on to end us, and it ends with us.
pub fn prepare_trial(env: &[(OsString, OsString)]) -> Result<GatedChild, LaunchError> {
    signals::begin()?;
    gate(&["true".into()], env, None)
}

fn gate(argv: &[OsString], env: &[(OsString, OsString)], spare: Option<&[(OsString, OsString)]>) -> Result<GatedChild, LaunchError> {
    let (mut image, program, candidates) = image(argv, env, spare)?;
    let early = Round::take(Vec::new()).events;
    let gated = command::fork_gated(&mut image).map_err(|source| LaunchError::Setup { what: "a process", source })?;
    Ok(GatedChild { pid: gated.pid, gated: Some(gated), program, candidates, early })
}

/// Executes `argv` in place of this process, where no other can be had: no descriptor, no process. Nothing is recorded, and the command
/// ends as itself. Returns only where it could not be executed. Signals that came meanwhile are the command's.
pub fn execute_in_place(argv: &[OsString], env: &[(OsString, OsString)]) -> LaunchError {
    inherited::ensure_inherited_is_recorded();
    match image(argv, env, None) {
        Err(error) => error,
        Ok((mut image, program, candidates)) => {
            signals::dismiss_witness();
            failure(&program, &candidates, command::execute_here(&mut image))
        }
    }
}

/// All that an exec needs; the program as it was typed, and the paths where it is looked for.
fn image(
    argv: &[OsString],
    env: &[(OsString, OsString)],
    spare: Option<&[(OsString, OsString)]>,
) -> Result<(Image, OsString, Vec<PathBuf>), LaunchError> {
    let Some(program) = argv.first() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the command line is empty");
        return Err(LaunchError::Setup { what: "the command line", source });
    };
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let (candidates, searched) = candidates(program, path);
    let text = |bytes: Vec<u8>, what| CString::new(bytes).map_err(|error| LaunchError::Setup { what, source: error.into() });
    let pairs = |env: &[(OsString, OsString)]| -> Result<Vec<CString>, LaunchError> {
        let pair = |(name, value): &(OsString, OsString)| {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            text(pair.into_vec(), "the environment")
        };
        env.iter().map(pair).collect()
    };
    let image = Image::new(
        candidates.iter().map(|path| text(path.as_os_str().as_bytes().to_vec(), "the command line")).collect::<Result<_, _>>()?,
        searched,
        argv.iter().map(|argument| text(argument.as_bytes().to_vec(), "the command line")).collect::<Result<_, _>>()?,
        pairs(env)?,
        spare.map(pairs).transpose()?,
    );
    Ok((image, program.clone(), candidates))
}

/// The paths to try, and whether they come from a search.
fn candidates(program: &OsStr, path: Option<&OsStr>) -> (Vec<PathBuf>, bool) {
    let name = program.as_bytes();
    if name.is_empty() || name.contains(&b'/') {
        return (vec![PathBuf::from(program)], false);
    }
    let path = path.map_or(PATH_DEFAULT, OsStrExt::as_bytes);
    // An empty entry is the working directory.
    (path.split(|byte| *byte == b':').map(|directory| PathBuf::from(OsStr::from_bytes(directory)).join(program)).collect(), true)
}

impl GatedChild {
    /// Process id of the command-to-be; it stays the same over its exec.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Opens the gate. Returns when the command's program runs; or, where it cannot be executed, with the reason.
    pub fn release(mut self) -> Result<RunningChild, LaunchError> {
        let mut child = RunningChild::new(self.pid, wait::adopts_orphans());
        child.own_peak_bytes = usage::memory_of(self.pid()).map_or(u64::MAX, |memory| memory.peak_resident_bytes);
        for event in std::mem::take(&mut self.early) {
            child.hand_on(&event, &mut Round::default(), true);
        }
        let Some(gated) = self.gated.take() else {
            return Ok(child);
        };
        let status = gated.open();
        child.attend(Some(&status));
        let mut report = status.read();
        if let ExecReport::TriesSpare = report {
            child.has_spare_environment = true;
            child.attend(Some(&status));
            report = status.read();
        }
        match report {
            ExecReport::Done | ExecReport::TriesSpare => Ok(child),
            ExecReport::Failed(source) => {
                // What the child exited with is not the command's doing; what counts is why there is no command.
                child.attend(None);
                Err(failure(&self.program, &self.candidates, source))
            }
        }
    }
}

/// Why there is no command.
fn failure(program: &OsStr, candidates: &[PathBuf], source: io::Error) -> LaunchError {
    let program = program.to_owned();
    if source.kind() != io::ErrorKind::NotFound {
        return LaunchError::NotExecutable { program, source };
    }
    match candidates.iter().find(|path| path.is_file()) {
        Some(path) => LaunchError::InterpreterNotFound { path: path.clone(), source },
        None => LaunchError::NotFound { program, source },
    }
}

impl Drop for GatedChild {
    fn drop(&mut self) {
        if self.gated.is_some() {
            command::forget_command();
            self.gated = None;
            signal::kill(self.pid, libc::SIGKILL);
            RunningChild::new(self.pid, false).attend(None);
        }
    }
}

impl RunningChild {
    fn new(pid: Pid, adopts_orphans: bool) -> Self {
        RunningChild {
            pid,
            just_stopped: None,
            stopped: false,
            adopts_orphans,
            leftover: Vec::new(),
            has_spare_environment: false,
            own_peak_bytes: u64::MAX,
            ended: None,
            last_usage: None,
        }
    }

    /// Process id of the command.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Whether its environment is the spare one: with the other one its arguments were more than the kernel takes.
    pub fn has_spare_environment(&self) -> bool {
        self.has_spare_environment
    }

    /// Waits for the end of the command, and of nobody else: descendants may live on. Meanwhile hands signals on
    /// ([`crate::launch::signals`]), stops when the command is stopped, in the same way, and continues it when it is continued.
    ///
    /// As PID 1, or as a subreaper, it also reaps the orphans it is given; a process that is one of these must not start
    /// children of its own besides the command.
    pub fn wait(&mut self) -> Exit {
        loop {
            if let Some((exit, ..)) = self.ended {
                return exit;
            }
            self.attend(None);
        }
    }

    /// CPU time of the command and of every descendant it waited for, user and system; `None` before it has ended.
    pub fn cpu_nanos(&self) -> Option<u64> {
        self.ended.map(|(_, cpu_nanos, _)| cpu_nanos)
    }

    /// What the command's own process had used when it had ended; `None` before.
    pub fn last_usage(&self) -> Option<ProcessUsage> {
        self.last_usage
    }

    /// Memory and page faults of the command and of every descendant it waited for.
    pub fn usage(&self) -> Option<RunUsage> {
        self.ended?.2
    }

    /// Attends to signals and to the child until it has ended or, where given, `status` can be read.
    fn attend(&mut self, status: Option<&ExecStatus>) {
        let Some(events) = signals::events() else { return };
        loop {
            // Signals first: one that continued us must not be taken for older than the stop that it ended.
            let mut round = Round::take(std::mem::take(&mut self.leftover));
            for event in std::mem::take(&mut round.events) {
                self.hand_on(&event, &mut round, false);
            }
            self.leftover = round.leftover();
            self.look();
            if self.ended.is_some() {
                return;
            }
            if let Some(signal) = self.just_stopped.take() {
                self.stopped = true;
                job_control::stop_like(self.pid, signal);
                // Somebody continued us; whether it was the group is what the signal tells.
                continue;
            }
            if self.adopts_orphans {
                let own: Vec<Pid> = [Some(self.pid), signals::witness_pid()].into_iter().flatten().collect();
                wait::reap_orphans(&own);
            }
            if events.wait(status.map(|status| status.0.as_fd())) {
                return;
            }
        }
    }

    /// Looks what became of the child.
    fn look(&mut self) {
        while self.ended.is_none() {
            // Once it is reaped, nobody can see any more what it used.
            if self.last_usage.is_none() && wait::has_ended(self.pid) {
                self.last_usage = usage::last_reading(self.pid());
            }
            match wait::look_at(self.pid) {
                Change::None => return,
                // A stop that we followed is over: otherwise there were no other.
                Change::Stopped(signal) => {
                    self.stopped = false;
                    self.just_stopped = Some(signal);
                }
                Change::Continued => {
                    self.just_stopped = None;
                    self.stopped = false;
                }
                Change::Ended { exit, cpu_nanos, mut usage } => {
                    // The kernel does not forget at the exec what the copy of us had.
                    usage.peak_resident_bytes = usage.peak_resident_bytes.filter(|peak| *peak > self.own_peak_bytes);
                    self.end(exit, cpu_nanos, Some(usage));
                }
                Change::Lost => self.end(Exit::Code(EXIT_UNKNOWN), 0, None),
            }
        }
    }

    fn end(&mut self, exit: Exit, cpu_nanos: u64, usage: Option<RunUsage>) {
        self.ended = Some((exit, cpu_nanos, usage));
        let situation = self.situation(false);
        signals::command_has_ended(exit, |event, round| {
            signals::is_for_command(event, &situation, |event| round.reach(event) == Reach::Group)
        });
    }

    fn situation(&self, early: bool) -> Situation {
        Situation { early, own: job_control::own_pid(), child: self.pid, leads_session: job_control::leads_session() }
    }

    fn hand_on(&mut self, event: &Event, round: &mut Round, early: bool) {
        if [libc::SIGCONT, libc::SIGTSTP].contains(&event.signal) {
            self.look();
        }
        let just_stopped = self.just_stopped.is_some();
        let mut is_for_command = signals::is_for_command(event, &self.situation(early), |event| match round.reach(event) {
            Reach::Group => true,
            Reach::Alone => false,
            // A command that has stopped since must not be continued by it.
            Reach::Unknown => just_stopped,
        });
        if self.stopped {
            match event.signal {
                // A group is continued in one sweep, its youngest members first: had this reached the command, it would
                // show. So a command that we followed into its stop, and that is stopped still, is continued by us.
                libc::SIGCONT => is_for_command = true,
                // Somebody continued us alone, and before we came to know of it all were stopped again.
                libc::SIGTSTP => self.just_stopped = Some(event.signal),
                _ => {}
            }
        }
        if !is_for_command || self.ended.is_some() {
            return;
        }
        if event.code == libc::SI_QUEUE {
            signal::queue(self.pid, event.signal, event.value);
        } else {
            signal::kill(self.pid, event.signal);
        }
    }
}

/// The code of a command whose status somebody else in this process took: our own failure.
const EXIT_UNKNOWN: i32 = 125;

/// Ends this process as the command ended: with its code; or by its signal, without a second core file, so that a shell
/// says what it would say of the command. Where a signal cannot do that, as PID 1, the code is 128 and the signal's number.
///
/// It neither waits for other threads nor runs exit handlers: all that matters must have been written.
pub fn exit_like(exit: Exit) -> ! {
    leave::leave_as(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_looked_for_as_execvp_does() {
        let check = |program: &str, path: Option<&str>, expected: &[&str], searched: bool| {
            let (found, was_searched) = candidates(OsStr::new(program), path.map(OsStr::new));
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{program} {path:?}");
            assert_eq!(was_searched, searched);
        };
        check("ls", Some("/a:/b"), &["/a/ls", "/b/ls"], true);
        check("ls", None, &["/bin/ls", "/usr/bin/ls"], true);
        check("ls", Some(""), &["ls"], true);
        check("ls", Some("/a::/b:"), &["/a/ls", "ls", "/b/ls", "ls"], true);
        check("./ls", Some("/a"), &["./ls"], false);
        check("d/ls", Some("/a"), &["d/ls"], false);
        check("", Some("/a"), &[""], false);
    }
}
