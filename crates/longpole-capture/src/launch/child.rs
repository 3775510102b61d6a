//! Starts a command behind a gate, waits for it, and ends as it ended.
//!
//! ```text
//! signals::begin()            first thing of the run
//! signals::install()          before it starts threads
//! child::prepare(argv, env)   a process that waits at its gate: here the recorder attaches to GatedChild::pid
//! GatedChild::release         opens the gate; returns when the command runs, or says why it does not
//! RunningChild::wait          forwards signals, stops when the command stops, returns when it has ended
//! child::exit_like            the same code, or the same signal
//! ```
//!
//! The command is in our process group and our session, on our terminal, with our descriptors, as it would be without us. The child restores
//! what Rust's runtime and we changed: the signal mask, ignored signals (SIGPIPE as inherited, SIGHUP under `nohup`), closed standard
//! descriptors, the limit of open files. Its exec closes all that we opened.
//!
//! Two differences are unavoidable: the command never leads its process group or session, and the children that a shell had before it called
//! `exec longpole` are ours, not the command's.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use longpole_model::{Exit, ProcessUsage, RunUsage};

use crate::launch::error::LaunchError;
use crate::launch::signal_witness;
use crate::launch::signals::{self, Round, Situation};
use crate::procfs::usage;
use crate::sys::fork_exec::{self, ExecImage, ExecReport, ExecStatus, Gated};
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
    /// Signals that came before the command started.
    early: Vec<Event>,
}

/// The running command.
#[derive(Debug)]
pub struct RunningChild {
    pid: Pid,
    /// Stopped by this signal, and we have not stopped yet.
    just_stopped: Option<i32>,
    /// Stopped, and we stopped with it.
    stopped: bool,
    adopts_orphans: bool,
    /// Signals that the witness got and we have not seen yet.
    leftover: Vec<(i32, Pid)>,
    has_spare_environment: bool,
    /// Its peak memory before its exec, as a copy of this process.
    own_peak_bytes: u64,
    ended: Option<(Exit, u64, Option<RunUsage>)>,
    last_usage: Option<ProcessUsage>,
}

/// Makes a process that waits at its gate, and then executes `argv` in the environment `env`. The search for the command is that of execvp(3): on
/// the PATH of `env` unless it has a slash; a text file without `#!` goes to `/bin/sh`.
///
/// # Errors
///
/// If there is no process, or an argument has a NUL byte.
pub fn prepare(argv: &[OsString], env: &[(OsString, OsString)]) -> Result<GatedChild, LaunchError> {
    prepare_or(argv, env, None)
}

/// The same; if arguments and environment together are too long, the command gets the `spare` environment
/// ([`RunningChild::has_spare_environment`]).
///
/// # Errors
///
/// As [`prepare`].
pub fn prepare_or(
    argv: &[OsString],
    env: &[(OsString, OsString)],
    spare: Option<&[(OsString, OsString)]>,
) -> Result<GatedChild, LaunchError> {
    signals::install()?;
    gate(argv, env, spare)
}

/// Makes a process that waits at a gate that nobody opens, to try a recorder on it. It is no command: SIGINT, SIGTERM, SIGHUP and SIGQUIT still end
/// us, and it ends with us.
///
/// # Errors
///
/// As [`prepare`].
pub fn prepare_trial(env: &[(OsString, OsString)]) -> Result<GatedChild, LaunchError> {
    signals::begin()?;
    gate(&["true".into()], env, None)
}

fn gate(argv: &[OsString], env: &[(OsString, OsString)], spare: Option<&[(OsString, OsString)]>) -> Result<GatedChild, LaunchError> {
    let (mut image, program, candidates) = image(argv, env, spare)?;
    let early = Round::take(Vec::new()).events;
    let gated = fork_exec::fork_gated(&mut image).map_err(|source| LaunchError::Setup { what: "a process", source })?;
    Ok(GatedChild { pid: gated.pid, gated: Some(gated), program, candidates, early })
}

/// Executes `argv` in this process, if there can be no other: no descriptor, no process. Nothing is recorded, and the command ends as itself.
/// Returns only if the exec failed. Signals that came meanwhile go to the command.
pub fn execute_in_place(argv: &[OsString], env: &[(OsString, OsString)]) -> LaunchError {
    inherited::ensure_inherited_is_recorded();
    match image(argv, env, None) {
        Err(error) => error,
        Ok((mut image, program, candidates)) => {
            signal_witness::dismiss();
            failure(&program, &candidates, fork_exec::execute_here(&mut image))
        }
    }
}

/// All that an exec needs; the program as typed, and the paths to try.
fn image(
    argv: &[OsString],
    env: &[(OsString, OsString)],
    spare: Option<&[(OsString, OsString)]>,
) -> Result<(ExecImage, OsString, Vec<PathBuf>), LaunchError> {
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
    let image = ExecImage::new(
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
    /// Process id of the command; its exec does not change it.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Opens the gate. Returns when the command's program runs.
    ///
    /// # Errors
    ///
    /// Why the exec failed.
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
                // The exit code is the child's, not the command's; the reason counts.
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
            fork_exec::forget_command();
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

    /// Whether it has the spare environment: arguments and the other one were too long for the kernel.
    pub fn has_spare_environment(&self) -> bool {
        self.has_spare_environment
    }

    /// Waits for the end of the command only: descendants may live on. Meanwhile it forwards signals ([`crate::launch::signals`]), stops in the
    /// same way when the command is stopped, and continues the command when we are continued.
    ///
    /// As PID 1 or a subreaper it also reaps orphans; such a process must not start children of its own besides the command.
    pub fn wait(&mut self) -> Exit {
        loop {
            if let Some((exit, ..)) = self.ended {
                return exit;
            }
            self.attend(None);
        }
    }

    /// CPU time of the command and of each descendant that it waited for, user and system, in nanoseconds; `None` before it has ended.
    pub fn cpu_nanos(&self) -> Option<u64> {
        self.ended.map(|(_, cpu_nanos, _)| cpu_nanos)
    }

    /// What the command's own process used, read when it had ended; `None` before.
    pub fn last_usage(&self) -> Option<ProcessUsage> {
        self.last_usage
    }

    /// Memory and page faults of the command and of each descendant that it waited for; `None` before it has ended.
    pub fn usage(&self) -> Option<RunUsage> {
        self.ended?.2
    }

    /// Handles signals and changes of the child until it has ended or, if given, `status` can be read.
    fn attend(&mut self, status: Option<&ExecStatus>) {
        let Some(events) = signals::events() else { return };
        loop {
            // Signals first: a SIGCONT must not seem older than the stop that it ended.
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
                // We were continued; the signal shows whether the whole group was.
                continue;
            }
            if self.adopts_orphans {
                let own: Vec<Pid> = [Some(self.pid), signal_witness::pid()].into_iter().flatten().collect();
                wait::reap_orphans(&own);
            }
            if events.wait(status.map(|status| status.0.as_fd())) {
                return;
            }
        }
    }

    /// Checks whether the child stopped, was continued or ended.
    fn look(&mut self) {
        while self.ended.is_none() {
            // Once it is reaped, `/proc` no longer shows what it used.
            if self.last_usage.is_none() && wait::has_ended(self.pid) {
                self.last_usage = usage::last_reading(self.pid());
            }
            match wait::look_at(self.pid) {
                Change::None => return,
                // An earlier stop is over: otherwise it could not stop again.
                Change::Stopped(signal) => {
                    self.stopped = false;
                    self.just_stopped = Some(signal);
                }
                Change::Continued => {
                    self.just_stopped = None;
                    self.stopped = false;
                }
                Change::Ended { exit, cpu_nanos, mut usage } => {
                    // The peak includes that of the copy of us before the exec.
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
        signals::command_has_ended(exit, |event, round| signals::is_for_command(event, &situation, |event| round.went_to_group(event)));
    }

    fn situation(&self, early: bool) -> Situation {
        Situation { early, own: job_control::own_pid(), child: self.pid, leads_session: job_control::leads_session() }
    }

    fn hand_on(&mut self, event: &Event, round: &mut Round, early: bool) {
        if [libc::SIGCONT, libc::SIGTSTP].contains(&event.signal) {
            self.look();
        }
        let mut went_to_group = false;
        let mut is_for_command = signals::is_for_command(event, &self.situation(early), |event| {
            went_to_group = round.went_to_group(event);
            went_to_group
        });
        if self.stopped {
            match event.signal {
                // We alone were continued, by the kernel or the command: so we continue the command. A SIGCONT for the group has continued it, and
                // where it looks stopped all the same it is stopping again.
                libc::SIGCONT => is_for_command |= !went_to_group,
                // We alone were continued, and all were stopped again before we noticed.
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

/// The code of a command whose status another part of this process took: our own failure.
const EXIT_UNKNOWN: i32 = 125;

/// Ends this process as the command ended: with its code; or by its signal, without a second core file, so that a shell reports the same. If a
/// signal cannot end us, as PID 1, the code is 128 plus the signal.
///
/// It neither waits for other threads nor runs exit handlers: write all data before.
pub fn exit_like(exit: Exit) -> ! {
    leave::leave_as(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_searched_as_execvp_does() {
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
