//! The language host; started by `deploy`.

use std::process::ExitCode;

use deploy_example::{block_on, host};

fn main() -> ExitCode {
    longpole_sdk::run_service("deploy-host", || block_on("deploy-host", host::run()))
}
