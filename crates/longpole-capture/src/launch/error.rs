//! Why a command could not be started, and the exit code for it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The command was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No file of this name, or none on the `PATH`.
    #[error("command not found: {}", program.display())]
    NotFound {
        /// As typed.
        program: OsString,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file is there; the interpreter that its first line or its ELF header names is not.
    #[error("interpreter of {} not found", path.display())]
    InterpreterNotFound {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file is there and the kernel refuses to execute it.
    #[error("command not executable: {}", program.display())]
    NotExecutable {
        /// As typed.
        program: OsString,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Something failed before the exec: no process, no descriptors, a NUL byte in an argument.
    #[error("command not started, {what}")]
    Setup {
        /// The step that failed.
        what: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl LaunchError {
    /// Whether the reason is ours, not the command's: a resource that we need was missing.
    pub fn is_ours(&self) -> bool {
        matches!(self, LaunchError::Setup { source, .. } if source.kind() != io::ErrorKind::InvalidInput)
    }

    /// The code to exit with, as `env`, `nohup` and `timeout` do: 127 not found, 126 not executable, 125 everything else.
    pub fn exit_code(&self) -> i32 {
        match self {
            LaunchError::NotFound { .. } | LaunchError::InterpreterNotFound { .. } => 127,
            LaunchError::NotExecutable { .. } => 126,
            LaunchError::Setup { .. } => 125,
        }
    }
}
