//! The shipped binary.

use anyhow::Result;

use crate::command::run;
use crate::web;

/// Builds the page, then `target/dist/longpole` with the page inside.
pub(crate) fn dist() -> Result<()> {
    web::build()?;
    run("cargo", &["build", "--profile", "dist", "-p", "longpole"])
}
