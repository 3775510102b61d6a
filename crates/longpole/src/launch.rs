//! The command where it runs without us, and where it does not start.

use std::ffi::OsString;
use std::process::ExitCode;

use longpole_capture::child;
use longpole_capture::error::LaunchError;

use crate::terminal::stderr::note;

/// What `run` exits with when it could not do its own part.
pub(crate) const EXIT_OWN_FAILURE: u8 = 125;

/// The command in place of this process: there are no descriptors or processes to stay beside it.
pub(crate) fn in_place(argv: &[OsString], environment: &[(OsString, OsString)], error: &LaunchError) -> ExitCode {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let LaunchError::Setup { what, .. } = error else { return not_started(error) };
    note(format!("recording is off, and the command runs alone: no room for {what}{cause}"));
    not_started(&child::execute_in_place(argv, environment))
}

/// The command could not be started: 127 not found, 126 not executable, 125 everything else.
pub(crate) fn not_started(error: &LaunchError) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(EXIT_OWN_FAILURE);
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    note(format!("{error}{cause}"));
    ExitCode::from(code)
}
