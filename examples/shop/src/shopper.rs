//! `shop`: starts the services, buys, and stops them.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tracing::{info_span, instrument};

use crate::gateway::{CART_VARIABLE, Checkout, PAYMENT_VARIABLE};
use crate::payment::BANK_VARIABLE;
use crate::{Result, http, timing};

/// Starts the services, lets all customers buy, stops the services, and returns the number of checkouts.
#[instrument(name = "shopping")]
pub fn shop() -> Result<usize> {
    // Start each before its caller.
    let bank = Service::start("shop-bank", &[])?;
    let cart = Service::start("shop-cart", &[])?;
    let payment = Service::start("shop-payment", &[(BANK_VARIABLE, bank.address)])?;
    let gateway = Service::start("shop-gateway", &[(CART_VARIABLE, cart.address), (PAYMENT_VARIABLE, payment.address)])?;
    let shopping = tracing::Span::current();
    let bought = std::thread::scope(|scope| {
        let customers: Vec<_> = (0..timing::CUSTOMERS)
            .map(|customer| {
                let (shopping, gateway) = (&shopping, gateway.address);
                scope.spawn(move || shopping.in_scope(|| buy(customer, gateway)))
            })
            .collect();
        customers.into_iter().map(|customer| customer.join().unwrap_or_else(|_| Err("a customer panicked".into()))).sum::<Result<usize>>()
    })?;
    // Stop each after its caller.
    for service in [gateway, payment, cart, bank] {
        service.stop()?;
    }
    Ok(bought)
}

/// All checkouts of a customer.
fn buy(customer: usize, gateway: SocketAddr) -> Result<usize> {
    for _ in 0..timing::CHECKOUTS {
        let _checkout = info_span!(
            "checkout",
            otel.name = "POST checkout",
            otel.kind = "client",
            server.address = %gateway.ip(),
            server.port = gateway.port(),
            customer
        )
        .entered();
        let body = serde_json::to_vec(&Checkout { customer, card: format!("4000 0000 0000 000{customer}") })?;
        let mut response = ureq::post(format!("http://{gateway}/checkout")).header("traceparent", http::traceparent()).send(&body)?;
        response.body_mut().read_to_string()?;
    }
    Ok(timing::CHECKOUTS)
}

/// A service that runs as long as its standard input is open.
struct Service {
    name: &'static str,
    address: SocketAddr,
    child: Child,
}

impl Service {
    /// Starts it and waits for the line with its address.
    fn start(name: &'static str, addresses: &[(&str, SocketAddr)]) -> Result<Service> {
        let program = beside(name)?;
        let mut command = Command::new(&program);
        command.envs(addresses.iter().map(|(variable, address)| (variable, address.to_string())));
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let address = line.trim().parse().map_err(|_| format!("{name} says no address, but “{}”", line.trim()))?;
        Ok(Service { name, address, child })
    }

    /// Closes its standard input and waits for its end.
    fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", self.name).into()) }
    }
}

/// The program of this name in the folder of this one.
fn beside(name: &str) -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    Ok(me.with_file_name(OsStr::new(name)))
}
