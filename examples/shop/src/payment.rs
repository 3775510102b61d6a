//! `shop-payment`: validates the card with the bank, and signs a receipt.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Instant;

use tracing::instrument;

use crate::{Result, address_of, http, timing};

/// Variable with the address of the bank.
pub const BANK_VARIABLE: &str = "SHOP_BANK";

/// Serves until standard input ends.
pub fn run() -> Result<()> {
    let bank = address_of(BANK_VARIABLE)?;
    http::serve(move |request| {
        request.span()?.in_scope(|| {
            validate_card(bank, &request.body)?;
            Ok(format!("{:016x}", sign_receipt(&request.body)))
        })
    })
}

/// The long pole: the call to the third party. This thread only waits for the answer.
#[inline(never)]
fn validate_card(bank: SocketAddr, card: &[u8]) -> Result<()> {
    let _call = http::client_span("validate card", bank).entered();
    let mut response = ureq::post(format!("http://{bank}/validate")).header("traceparent", http::traceparent()).send(card)?;
    match response.body_mut().read_to_string()?.as_str() {
        "good" => Ok(()),
        other => Err(format!("the bank says that the card is {other}").into()),
    }
}

/// Hashes the receipt repeatedly for [`timing::SIGNING`].
#[instrument(skip_all)]
fn sign_receipt(receipt: &[u8]) -> u64 {
    let start = Instant::now();
    let mut signature = 0;
    while start.elapsed() < timing::SIGNING {
        signature = hash_once(receipt, signature);
    }
    signature
}

#[inline(never)]
fn hash_once(receipt: &[u8], before: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    before.hash(&mut hasher);
    for _ in 0..100 {
        receipt.hash(&mut hasher);
    }
    hasher.finish()
}
