//! A request of our own to an endpoint of the user, without a recording around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longpole_model::Span;
use longpole_wire::otlp;

use super::forwarder::Forwarder;
use super::target::ForwardTarget;
use crate::otlp_request::Parcel;
use longpole_recording::loss_counters::LossBook;

/// Why a request was not delivered, as a lower-case fragment.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotSent(String);

/// Sends spans as an OTLP protobuf body, with the repetitions of any forwarded request, and waits at most this long.
pub fn send_once(target: ForwardTarget, spans: &[Span], within: Duration) -> Result<(), NotSent> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| NotSent(format!("failed to begin: {error}")))?;
    let book = Arc::new(LossBook::default());
    let parcel = Parcel::converted(otlp::trace::encode(spans).into(), spans.len() as u64);
    let forwarder = Forwarder::on(&runtime, vec![target], &book);
    forwarder.send(&parcel);
    runtime.block_on(forwarder.finish(Instant::now() + within));
    // What did not end by the deadline is dropped, not waited for.
    runtime.shutdown_background();
    book.take().into_iter().next().map_or(Ok(()), |loss| Err(NotSent(loss.detail)))
}
