//! The service that adds up; started by `shop`.

use std::process::ExitCode;

use shop_example::{cart, exit_code};

fn main() -> ExitCode {
    longpole_sdk::run_service("cart", || exit_code("shop-cart", cart::run()))
}
