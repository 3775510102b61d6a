//! The customers, and the start and end of all services. Run it directly, or as `longpole run -- shop`.

use std::io::Write;
use std::process::ExitCode;

use shop_example::{exit_code, shopper};

fn main() -> ExitCode {
    longpole_sdk::run_service("shop", || {
        exit_code(
            "shop",
            shopper::shop().map(|bought| {
                // Ignore a closed output.
                let _ = writeln!(std::io::stdout(), "{bought} checkouts");
            }),
        )
    })
}
