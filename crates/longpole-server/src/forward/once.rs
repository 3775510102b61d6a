//! A request of our own to an endpoint of the user, without a recording around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ForwardTarget, Forwarder, Parcel};
use crate::loss_book::LossBook;
use crate::receive::{Compression, Encoding};

/// Why a request was not delivered, as a lower-case fragment.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotSent(String);

/// Sends one OTLP protobuf body, with the repetitions of any forwarded request, and waits at most this long.
pub fn send_once(target: ForwardTarget, body: Vec<u8>, within: Duration) -> Result<(), NotSent> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| NotSent(format!("failed to begin: {error}")))?;
    let book = Arc::new(LossBook::default());
    let signal = target.signal;
    runtime.block_on(async {
        let forwarder = Forwarder::start(vec![target], Arc::clone(&book));
        forwarder.send(Parcel { signal, encoding: Encoding::Protobuf, compression: Compression::Identity, body: body.into() });
        forwarder.finish(Instant::now() + within).await;
    });
    book.take().into_iter().next().map_or(Ok(()), |loss| Err(NotSent(loss.detail)))
}
