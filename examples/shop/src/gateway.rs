//! `shop-gateway`: the customers' entry. It requests the sum from the cart, and the receipt from payment.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Result, address_of, http};

/// Variable with the address of the cart.
pub const CART_VARIABLE: &str = "SHOP_CART";

/// Variable with the address of payment.
pub const PAYMENT_VARIABLE: &str = "SHOP_PAYMENT";

/// A customer's request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Checkout {
    /// The owner of the cart.
    pub customer: usize,
    /// Number of the card.
    pub card: String,
}

/// The request to payment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Charge {
    /// Number of the card.
    pub card: String,
    /// The amount.
    pub cents: u64,
}

/// Serves until standard input ends.
pub fn run() -> Result<()> {
    let (cart, payment) = (address_of(CART_VARIABLE)?, address_of(PAYMENT_VARIABLE)?);
    http::serve(move |request| {
        request.span()?.in_scope(|| {
            let checkout: Checkout = serde_json::from_slice(&request.body)?;
            let cents = ask_for_sum(cart, checkout.customer)?;
            charge(payment, &Charge { card: checkout.card, cents })
        })
    })
}

fn ask_for_sum(cart: SocketAddr, customer: usize) -> Result<u64> {
    let _call = http::client_span("GET cart", cart).entered();
    let mut response = ureq::get(format!("http://{cart}/sum/{customer}")).header("traceparent", http::traceparent()).call()?;
    Ok(response.body_mut().read_to_string()?.parse()?)
}

fn charge(payment: SocketAddr, charge: &Charge) -> Result<String> {
    let _call = http::client_span("POST payment", payment).entered();
    let body = serde_json::to_vec(charge)?;
    let mut response = ureq::post(format!("http://{payment}/charge")).header("traceparent", http::traceparent()).send(&body)?;
    Ok(response.body_mut().read_to_string()?)
}
