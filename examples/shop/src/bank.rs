//! `shop-bank`: the third party. It takes its time, and nobody but its own people can see why: it sends no spans.

use crate::{Result, http, timing};

/// Serves until standard input ends.
pub fn run() -> Result<()> {
    http::serve(|_request| Ok(look_up_card().to_owned()))
}

/// What takes long. At a real bank this would be a query of its own; here it is a timer.
#[inline(never)]
fn look_up_card() -> &'static str {
    std::thread::sleep(timing::VALIDATION);
    "good"
}
