//! The binary: parse the command line, dispatch to `commands/`, turn a failure into an exit code.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod env_vars;
mod export;
mod failure;
mod input;
mod invocation;
mod launch_failure;
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

/// Decoding and sealing allocate many small objects, for which the system's allocator is half as fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The default stack of the main thread on Linux.
const STACK_BYTES: usize = 8 << 20;

/// The exit code after a panic.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    env_vars::keep_for_the_command();
    failure::print_panics();
    with_enough_stack(work)
}

/// A stack limit (`ulimit -s`) is meant for the command, which inherits it, and may be too small for longpole. Then longpole works on a
/// thread with a stack of its own; otherwise it starts no second thread.
fn with_enough_stack(work: fn() -> ExitCode) -> ExitCode {
    if child::stack_limit_bytes() >= STACK_BYTES as u64 {
        return work();
    }
    match std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work) {
        Ok(worker) => {
            signals::leave_to_other_threads();
            worker.join().unwrap_or(ExitCode::from(PANICKED))
        }
        // There is no memory for a thread; the small stack may be enough.
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
        // These exit as their command did.
        Command::Run(arguments) => commands::run::run(&invocation, arguments),
        Command::Exec(arguments) => commands::exec::exec(arguments),
        Command::Attach(arguments) => commands::attach::attach(&invocation, arguments),
        // Its worker process determines the exit code.
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => commands::sql::sql(&invocation, arguments),
        #[cfg(not(feature = "sql"))]
        Command::Sql(_) => commands::sql_left_out::sql(),
        command => {
            own_traces::begin(invocation.tracing_level);
            let code = look(&invocation, command);
            own_traces::end();
            code
        }
    }
}

/// Commands that read recordings and files.
fn look(invocation: &Invocation, command: &Command) -> ExitCode {
    let _whole = tracing::info_span!("longpole").entered();
    let done = match command {
        Command::Run(_) | Command::Exec(_) | Command::Attach(_) | Command::Sql(_) => Ok(()),
        Command::Agent(arguments) => commands::agent::agent(invocation, arguments),
        Command::Serve(arguments) => commands::serve::serve(invocation, arguments),
        Command::Config(arguments) => commands::config::config(invocation, arguments),
        Command::Search(arguments) if arguments.poles => commands::shared_poles::shared_poles(invocation, arguments),
        Command::Search(arguments) => commands::search::search(invocation, arguments),
        Command::Trace(arguments) => commands::trace::trace(invocation, arguments),
        Command::Services(arguments) => commands::services::services(invocation, arguments),
        Command::Profile(arguments) => commands::profile::profile(invocation, arguments),
        Command::Growth(arguments) => commands::growth::growth(invocation, arguments),
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
        Command::Push(arguments) => commands::push::push(invocation, arguments),
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
