//! A small deployment engine to record with longpole: four processes, twelve resources, three long poles.
//!
//! ```text
//!   deploy ──starts──→ deploy-host         evaluates the program, declares resources
//!     │    ──starts──→ provider-compute    bundles web assets, starts services
//!     └─────starts──→ provider-cloud       waits for an imitated cloud
//! ```
//!
//! The children connect back to the engine over loopback TCP and speak JSON, a message per line, each with the `traceparent`
//! of its span. The engine creates every resource as soon as its dependencies exist, and links its
//! span to theirs: these links give longpole the dependencies.
//!
//! [`timing`] has all durations, and [`expected`] computes the savings from them. The README draws the graph.

#![forbid(unsafe_code)]

pub mod bundle;
pub mod cloud;
pub mod compute;
pub mod engine;
pub mod expected;
pub mod host;
pub mod program;
pub mod rpc;
pub mod state;
pub mod timing;

/// Any failure; its text names the failed action.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Result of most functions here.
pub type Result<T> = std::result::Result<T, Error>;

/// Runs `work` on a multi-threaded runtime; prints a failure to stderr and makes it the exit status.
pub fn block_on(program: &str, work: impl Future<Output = Result<()>>) -> std::process::ExitCode {
    // At least two threads, so that tasks can move on the smallest machine.
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(format!("cannot start a runtime: {error}").into()),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "{program}: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
