//! Commands that a task runs: printed, so that a reader can type them.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::paths::root;

/// Prints a command with its variables, as a shell takes it.
pub(crate) fn print(command_line: &str, env: &[(&str, &str)]) {
    let variables: String = env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    eprintln!("$ {variables}{command_line}");
}

/// Prints a command and runs it in `dir`; its output is the caller's.
pub(crate) fn run_in(dir: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    print(&format!("{program} {}", args.join(" ")), env);
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
