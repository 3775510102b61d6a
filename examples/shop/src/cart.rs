//! `shop-cart`: has a customer's cart, and adds it up.

use std::time::Instant;

use tracing::instrument;

use crate::{Result, http, timing};

/// Lines of a cart.
const LINES: u64 = 40;

/// Serves until standard input ends.
pub fn run() -> Result<()> {
    http::serve(|request| request.span()?.in_scope(|| Ok(add_up().to_string())))
}

/// Adds up the lines repeatedly for [`timing::ADDING_UP`], however fast the machine is.
#[instrument]
fn add_up() -> u64 {
    let start = Instant::now();
    let mut cents = 0;
    while start.elapsed() < timing::ADDING_UP {
        cents = (0..LINES).map(price_of_line).sum();
    }
    cents
}

/// The price of one line, with its discount and tax.
#[inline(never)]
fn price_of_line(line: u64) -> u64 {
    let (mut cents, mut step) = (1_000 + line * 37, 0);
    while step < 2_000 {
        cents = (cents * 119 + step) % 100_003;
        step += 1;
    }
    cents
}
