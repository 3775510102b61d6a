//! A request of our own to an endpoint of the user, without a recording around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longpole_model::Span;
use longpole_wire::otlp;

use super::{ForwardTarget, Forwarder, Parcel};
use crate::loss_book::LossBook;

/// Why a request was not delivered, as a lower-case fragment.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotSent(String);

/// Sends spans as an OTLP protobuf body, with the repetitions of any forwarded request, and waits at most this long.
pub fn send_once(target: ForwardTarget, spans: &[Span], within: Duration) -> Result<(), NotSent> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let not_begun = |error| NotSent(format!("failed to begin: {error}"));
    let runtime = runtime.map_err(not_begun)?;
    let book = Arc::new(LossBook::default());
    let parcel = Parcel::converted(otlp::trace::encode(spans).into(), spans.len() as u64);
    let forwarder = Forwarder::start(vec![target], &book).map_err(not_begun)?;
    forwarder.send(&parcel);
    runtime.block_on(forwarder.finish(Instant::now() + within));
    book.take().into_iter().next().map_or(Ok(()), |loss| Err(NotSent(loss.detail)))
}
