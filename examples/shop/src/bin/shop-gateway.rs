//! The customers' entry; started by `shop`.

use std::process::ExitCode;

use shop_example::{exit_code, gateway};

fn main() -> ExitCode {
    longpole_sdk::run_service("gateway", || exit_code("shop-gateway", gateway::run()))
}
