//! The launch failed: the command runs without a recording, or the exit code says why it did not start.

use std::ffi::OsString;
use std::process::ExitCode;

use longpole_capture::launch::child;
use longpole_capture::launch::error::LaunchError;

use crate::terminal::stderr::note;

/// The exit code of `run` if longpole itself failed.
pub(crate) const EXIT_OWN_FAILURE: u8 = 125;

/// Replaces this process by the command: there are no descriptors or processes left to stay beside it.
pub(crate) fn run_unrecorded(argv: &[OsString], environment: &[(OsString, OsString)], error: &LaunchError) -> ExitCode {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let LaunchError::Setup { what, .. } = error else { return report_not_started(error) };
    note(format!("recording is off, and the command runs without longpole: cannot set up {what}{cause}"));
    report_not_started(&child::execute_in_place(argv, environment))
}

/// Reports that the command did not start. Returns 127 if it was not found, 126 if it is not executable, else 125.
pub(crate) fn report_not_started(error: &LaunchError) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(EXIT_OWN_FAILURE);
    // "Not found" says it.
    let is_known = matches!(error, LaunchError::NotFound { .. } | LaunchError::InterpreterNotFound { .. });
    let cause = std::error::Error::source(error).filter(|_| !is_known).map(|cause| format!(": {cause}")).unwrap_or_default();
    note(format!("{error}{cause}"));
    ExitCode::from(code)
}
