//! The binary: parse, dispatch, map failure to exit code. What each command does stands in `commands/`.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod env_vars;
mod failure;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::commands::recording::Setting;

/// Decoding and sealing allocate many small things; the system's allocator is half as fast at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let setting = Setting::new(&arguments);
    let done = match &arguments.command {
        // `run` ends as its command ended, so it has exit codes of its own.
        Command::Run(arguments) => return commands::run::run(&setting, arguments),
        Command::Open(arguments) => commands::open::open(&setting, arguments),
        Command::Show(arguments) => commands::show::show(&setting, arguments),
        Command::Poles(arguments) => commands::show::poles(&setting, arguments),
        Command::Tree(arguments) => commands::tree::tree(&setting, arguments),
        Command::Span(arguments) => commands::span::span(&setting, arguments),
        Command::Flame(arguments) => commands::flame::flame(&setting, arguments),
        Command::Sql(arguments) => commands::sql::sql(&setting, arguments),
        Command::Ls(arguments) => commands::ls::ls(&setting, arguments),
        Command::Rm(arguments) => commands::ls::rm(&setting, arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}
