//! Why a command could not be started, and with which code that ends.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The command was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No file of this name, or none on the `PATH`.
    #[error("command not found: {}", program.display())]
    NotFound {
        /// As it was typed.
        program: OsString,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The file is there; the interpreter that its first line or its ELF header names is not.
    #[error("interpreter not found of {}", path.display())]
    InterpreterNotFound {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The file is there and the kernel refuses to execute it.
    #[error("command not executable: {}", program.display())]
    NotExecutable {
        /// As it was typed.
        program: OsString,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// It did not come to that: no process, no descriptors, a NUL byte in an argument.
    #[error("command not started, {what}")]
    Setup {
        /// The step that failed.
        what: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl LaunchError {
    /// Whether the command itself is not the reason: what is needed to watch over it could not be had.
    pub fn is_ours(&self) -> bool {
        matches!(self, LaunchError::Setup { source, .. } if source.kind() != io::ErrorKind::InvalidInput)
    }

    /// The code to exit with, as `env`, `nohup` and `timeout` do: 127 not found, 126 found and refused, 125 everything else.
    pub fn exit_code(&self) -> i32 {
        match self {
            LaunchError::NotFound { .. } | LaunchError::InterpreterNotFound { .. } => 127,
            LaunchError::NotExecutable { .. } => 126,
            LaunchError::Setup { .. } => 125,
        }
    }
}
