//! The customers, and the start and end of everything. Run it as it is, or under `longpole run -- shop`.

use std::io::Write;
use std::process::ExitCode;

use shop_example::{exit_code, shopper};

fn main() -> ExitCode {
    longpole_sdk::run_service("shop", || {
        exit_code(
            "shop",
            shopper::shop().map(|bought| {
                // Nobody may read it any more.
                let _ = writeln!(std::io::stdout(), "{bought} checkouts");
            }),
        )
    })
}
