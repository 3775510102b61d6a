//! The service that charges; started by `shop`.

use std::process::ExitCode;

use shop_example::{exit_code, payment};

fn main() -> ExitCode {
    longpole_sdk::run_service("payment", || exit_code("shop-payment", payment::run()))
}
