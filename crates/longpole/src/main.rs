//! The binary: parse, dispatch, map failure to exit code. What each command does stands in `commands/`.

#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "sql"), allow(dead_code, reason = "only `sql` reads it"))]

mod args;
mod commands;
mod env_vars;
mod export;
mod failure;
mod input;
mod invocation;
mod launch;
mod next_command;
mod own_traces;
mod page;
mod render;
mod session;
mod store;
mod terminal;

use std::process::ExitCode;

use longpole_capture::launch::{child, signals};

use crate::args::Command;
use crate::invocation::Invocation;

/// Decoding and sealing allocate many small things; the system's allocator is half as fast at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What Linux gives the main thread where nobody says otherwise.
const STACK_BYTES: usize = 8 << 20;

/// What a panic of the main thread ends with.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    env_vars::keep_for_the_command();
    failure::print_panics();
    with_enough_stack(work)
}

/// A limit of stacks (`ulimit -s`) is meant for the command, which inherits it, and can be too little for us. Where it is, we work on
/// a thread, whose stack is its own; the usual start has no second thread.
fn with_enough_stack(work: fn() -> ExitCode) -> ExitCode {
    if child::stack_limit_bytes() >= STACK_BYTES as u64 {
        return work();
    }
    match std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work) {
        Ok(worker) => {
            signals::leave_to_other_threads();
            worker.join().unwrap_or(ExitCode::from(PANICKED))
        }
        // There is no room for one, and the stack may do.
        Err(_) => work(),
    }
}

fn work() -> ExitCode {
    let arguments = match failure::parse_arguments() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let invocation = Invocation::new(&arguments);
    match &arguments.command {
        // These end as their command ended, so they have exit codes of their own.
        Command::Run(arguments) => commands::run::run(&invocation, arguments),
        Command::Exec(arguments) => commands::exec::exec(arguments),
        Command::Attach(arguments) => commands::attach::attach(&invocation, arguments),
        // Its answer comes from a process of its own, and so does its exit code.
        Command::Sql(arguments) => commands::sql::sql(&invocation, arguments),
        command => {
            own_traces::begin(invocation.tracing_level);
            let code = look(&invocation, command);
            own_traces::end();
            code
        }
    }
}

/// Everything that looks at recordings and files.
fn look(invocation: &Invocation, command: &Command) -> ExitCode {
    let _whole = tracing::info_span!("longpole").entered();
    let done = match command {
        Command::Run(_) | Command::Exec(_) | Command::Attach(_) | Command::Sql(_) => Ok(()),
        Command::Open(arguments) => commands::open::open(invocation, arguments),
        Command::Show(arguments) => commands::show::show(invocation, arguments),
        Command::Poles(arguments) => commands::poles::poles(invocation, arguments),
        Command::Tree(arguments) => commands::tree::tree(invocation, arguments),
        Command::Span(arguments) => commands::span::span(invocation, arguments),
        Command::Flame(arguments) => commands::flame::flame(invocation, arguments),
        Command::Top(arguments) => commands::top::top(invocation, arguments),
        Command::Frame(arguments) => commands::frame::frame(invocation, arguments),
        Command::Processes(arguments) => commands::processes::processes(invocation, arguments),
        Command::Threads(arguments) => commands::threads::threads(invocation, arguments),
        Command::Diff(arguments) => commands::diff::diff(invocation, arguments),
        Command::Import(arguments) => commands::import::import(invocation, arguments),
        Command::Export(arguments) => commands::export::export(invocation, arguments),
        Command::Convert(arguments) => commands::convert::convert(arguments),
        Command::ViewTrace(arguments) => commands::view_trace::view_trace(arguments),
        Command::ConvertTrace(arguments) => commands::convert_trace::convert_trace(arguments),
        Command::Tag(arguments) => commands::tag::tag(invocation, arguments),
        Command::Prune(arguments) => commands::prune::prune(invocation, arguments),
        Command::Doctor(arguments) => commands::doctor::doctor(invocation, arguments),
        Command::Ls(arguments) => commands::ls::ls(invocation, arguments),
        Command::Rm(arguments) => commands::rm::rm(invocation, arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}
