//! Failures: exit codes, messages and hints. A command that fails returns its error, and this file prints it. A command that goes on
//! reports problems through [`crate::terminal::stderr`].

use std::fmt;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Color};
use crate::env_vars;
use crate::terminal::Style;
use crate::terminal::screen::{self, Screen, say};
use crate::terminal::stderr::{self, note};

/// The kind of a failure, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something failed that should not have.
    Failed,
    /// The command line is wrong.
    Usage,
    /// There is no such recording, span or file.
    NotFound,
    /// The system refused it.
    NotPermitted,
}

impl Kind {
    /// 1 failed, 2 usage, 3 not found, 4 not permitted; 125 to 127 belong to `run`.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NotFound => 3,
            Kind::NotPermitted => 4,
        }
    }
}

/// A failure, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    message: String,
    hint: Option<String>,
    /// Lines below the hint.
    list: Vec<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), hint: None, list: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds lines below the hint.
    pub(crate) fn list(mut self, list: Vec<String>) -> Self {
        self.list = list;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Prints the failure with its causes on one line and the hint on the next. Returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    note(format!("{error:#}"));
    let failure = error.downcast_ref::<Failure>();
    if let Some(hint) = failure.and_then(|f| f.hint.as_ref()) {
        stderr::hint(hint);
    }
    for line in failure.iter().flat_map(|f| &f.list) {
        say(format!("      {line}"));
    }
    let refused = || {
        let denied = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
        };
        if error.chain().any(denied) { Kind::NotPermitted } else { Kind::Failed }
    };
    failure.map_or_else(refused, |f| f.kind).exit_code()
}

/// Parses the command line; prints help and usage errors.
pub(crate) fn parse_arguments() -> Result<Arguments, ExitCode> {
    let error = match Arguments::of_command_line() {
        Ok(arguments) => return Ok(arguments),
        Err(error) => error,
    };
    // clap prints words of the command line, such as a file name that begins with `--`, between lines and colours of its own.
    let words: Vec<String> = std::env::args_os().map(|word| screen::printable(&word.to_string_lossy())).collect();
    let is_plain = std::env::args_os().zip(&words).all(|(word, shown)| word == shown.as_str());
    let error = if is_plain { Some(error) } else { Arguments::try_parse_from(words).err() };
    let Some(error) = error else {
        note("the command line is not valid text");
        return Err(ExitCode::from(Kind::Usage.exit_code()));
    };
    let style = if error.use_stderr() { Style::stderr(Color::Auto) } else { Style::stdout(Color::Auto) };
    let rendered = if style.has_colour() { error.render().ansi().to_string() } else { error.render().to_string() };
    let screen = Screen::of_usage(&rendered);
    if error.use_stderr() {
        screen::say_all(&screen);
    } else if let Err(error) = screen::print(&screen) {
        return Err(ExitCode::from(report(&error)));
    }
    Err(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Kind::Usage.exit_code())))
}

/// Memory that a backtrace may need. Without it there is no backtrace: the standard library holds a lock while it takes one, and would
/// wait for the same lock to report that memory is missing.
const BACKTRACE_BYTES: usize = 256 << 20;

/// Prints a panic, which is a bug in longpole, through the screen: its message may contain a name.
pub(crate) fn print_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(|place| format!(" ({place})")).unwrap_or_default();
        if Vec::<u8>::new().try_reserve_exact(BACKTRACE_BYTES).is_err() {
            // Libraries that cannot return an error panic when they get no memory.
            return note(format!("not enough memory{location}"));
        }
        let thread = std::thread::current();
        note(format!("thread {} {}", thread.name().unwrap_or("without a name"), panic));
        if env_vars::wants_backtraces() {
            screen::say_all(&std::backtrace::Backtrace::force_capture().to_string().lines().collect());
        }
    }));
}
