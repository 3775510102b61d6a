//! The provider that computes; started by `deploy`.

use std::process::ExitCode;

use deploy_example::block_on;
use deploy_example::compute::Compute;
use deploy_example::rpc::serve;

fn main() -> ExitCode {
    longpole_sdk::run_service("provider-compute", || {
        block_on("provider-compute", async { serve("provider-compute", Compute::new()?).await })
    })
}
