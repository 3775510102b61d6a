//! A deployment engine in small, for looking at with longpole: four processes, twelve resources, three long poles.
//!
//! ```text
//!   deploy ──starts──→ deploy-host         evaluates the program, declares resources
//!     │    ──starts──→ provider-compute    bundles web assets, starts services
//!     └─────starts──→ provider-cloud       asks an imitated cloud, and waits for it
//! ```
//!
//! The children connect back to the engine over loopback TCP and speak JSON, a message per line, each with the `traceparent`
//! of the span it belongs to. The engine creates every resource as soon as the ones it depends on are there, and links its
//! span to theirs: that is how longpole knows what waited for what.
//!
//! How long things take is in [`timing`], and what fixing a pole saves follows from it: [`expected`]. The README draws it.

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

/// Any failure, with what was being done in its text.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Result of most functions here.
pub type Result<T> = std::result::Result<T, Error>;

/// Runs `work` on a runtime of several threads; its failure is told on stderr and becomes the exit status.
pub fn block_on(program: &str, work: impl Future<Output = Result<()>>) -> std::process::ExitCode {
    // Two threads at least: tasks are to have somewhere to move to on the smallest machine.
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
