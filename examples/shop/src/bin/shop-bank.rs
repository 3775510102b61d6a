//! The third party; started by `shop`. Without the SDK.

use std::process::ExitCode;

use shop_example::{bank, exit_code};

fn main() -> ExitCode {
    exit_code("shop-bank", bank::run())
}
