//! What can go wrong, as exit codes and words. Only this file and `main` print errors.

use std::fmt;

/// What kind of failure it is: it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something failed that should not have.
    Failed,
    /// The command line asks for something that does not exist.
    Usage,
    /// There is no such recording, span or file.
    NotFound,
    /// The machine refuses.
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

/// A failure with the next step.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Prints what failed, its causes on the same line, and the hint on its own.
#[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    eprintln!("longpole: {error:#}");
    let failure = error.downcast_ref::<Failure>();
    if let Some(hint) = failure.and_then(|f| f.hint.as_ref()) {
        eprintln!("hint: {hint}");
    }
    let refused = || {
        let denied = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
        };
        if error.chain().any(denied) { Kind::NotPermitted } else { Kind::Failed }
    };
    failure.map_or_else(refused, |f| f.kind).exit_code()
}
