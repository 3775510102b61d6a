//! `shop-bank`: the third party. It is slow, and only its own people can see why: it sends no spans.

use crate::{Result, http, timing};

/// Serves until standard input ends.
pub fn run() -> Result<()> {
    http::serve(|_request| Ok(look_up_card().to_owned()))
}

/// The slow part. At a real bank this would be a query; here it is a timer.
#[inline(never)]
fn look_up_card() -> &'static str {
    std::thread::sleep(timing::VALIDATION);
    "good"
}
