//! Reading a request's body: bounded, and charged to the memory that all bodies share.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{BODIES_IN_MEMORY_BYTES_MAX, BODY_BYTES_MAX, REFUSED_BODY_BYTES_MAX};

/// Bytes of body that one permit stands for.
pub(super) const PERMIT_BYTES: usize = 4 << 10;

/// A body in memory. Its share of the memory is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Charged {
    pub(super) bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// More than [`BODY_BYTES_MAX`].
    TooLarge,
    /// The bodies of all requests together are too much at the moment.
    Busy,
    /// The connection ended, or broke the protocol, inside the body.
    Broken(String),
}

impl BodyError {
    /// For people.
    pub(super) fn message(&self) -> String {
        match self {
            BodyError::TooLarge => format!("body larger than {} MiB: export smaller batches", BODY_BYTES_MAX >> 20),
            BodyError::Busy => format!("more than {} MiB of requests at the same time: try again", BODIES_IN_MEMORY_BYTES_MAX >> 20),
            BodyError::Broken(reason) => format!("body broken off: {reason}"),
        }
    }
}

/// Reads a body to its end. One that is refused is read on and thrown away, up to [`REFUSED_BODY_BYTES_MAX`].
pub(super) async fn read(mut body: Incoming, memory: &Arc<Semaphore>) -> Result<Charged, BodyError> {
    let declared = body.size_hint().lower();
    if declared > BODY_BYTES_MAX as u64 {
        discard(body, declared).await;
        return Err(BodyError::TooLarge);
    }
    let mut charge = Charge { memory, permit: None };
    // Declared is not sent: memory is taken as bytes arrive.
    let mut bytes = BytesMut::with_capacity((declared as usize).min(PERMIT_BYTES));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        let refused = if bytes.len() + data.len() > BODY_BYTES_MAX {
            BodyError::TooLarge
        } else if !charge.up_to(bytes.len() + data.len()) {
            BodyError::Busy
        } else {
            bytes.extend_from_slice(&data);
            continue;
        };
        drop(bytes);
        discard(body, declared).await;
        return Err(refused);
    }
    let permit = match charge.permit {
        Some(permit) => permit,
        None => Arc::clone(memory).try_acquire_many_owned(0).map_err(|_| BodyError::Busy)?,
    };
    Ok(Charged { bytes: bytes.freeze(), _memory: permit })
}

struct Charge<'a> {
    memory: &'a Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Charge<'_> {
    /// Whether there is memory for a body of this many bytes; then it is taken.
    fn up_to(&mut self, bytes: usize) -> bool {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(PERMIT_BYTES).saturating_sub(held);
        let Ok(more) = Arc::clone(self.memory).try_acquire_many_owned(missing as u32) else { return false };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        true
    }
}

/// Reads and throws away, unless the client announced more than is worth it.
async fn discard(mut body: Incoming, declared: u64) {
    let mut left = REFUSED_BODY_BYTES_MAX;
    if declared > left {
        return;
    }
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
