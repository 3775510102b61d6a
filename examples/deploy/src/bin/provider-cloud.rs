//! The provider that waits for the cloud; started by `deploy`.

use std::process::ExitCode;

use deploy_example::block_on;
use deploy_example::cloud::Cloud;
use deploy_example::rpc::serve;

fn main() -> ExitCode {
    longpole_sdk::run_service("provider-cloud", || block_on("provider-cloud", serve("provider-cloud", Cloud)))
}
