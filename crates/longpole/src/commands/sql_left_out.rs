//! `sql` in a build without the query engine, which takes two thirds of the time of a build: it says how to get the engine.

use std::process::ExitCode;

use crate::failure::{self, Failure, Kind};

/// Fails with the command that builds the engine.
pub(crate) fn sql() -> ExitCode {
    let failure = Failure::new(Kind::Failed, "this longpole was built without the query engine").hint("cargo build -p longpole");
    ExitCode::from(failure::report(&failure.into()))
}
