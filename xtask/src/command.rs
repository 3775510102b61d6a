//! Commands that a task runs: printed, so that a reader can type them.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::paths::root;

/// Prints a command and runs it in `dir`; its output is the caller's.
pub(crate) fn run_in(dir: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    let shown: Vec<String> = env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    eprintln!("$ {}{}{program} {}", shown.join(" "), if shown.is_empty() { "" } else { " " }, args.join(" "));
    let status = Command::new(program).args(args).current_dir(dir).envs(env.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("`{program} {}` ended with {status}", args.join(" ")),
        Err(error) => bail!("could not start `{program}`: {error}"),
    }
}

/// [`run_in`] the root of the repository.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<()> {
    run_in(&root(), program, args, &[])
}
