//! Reading a request's body: bounded in size and time, and charged to the memory that all bodies share.
//!
//! Memory is taken as bytes arrive, so a stalled body holds memory for what it has sent. If others need that memory, bodies without
//! progress for [`STALL_IN_NEED_MAX`] are cut, longest stalled first, and then those that come slowly for what they hold; otherwise after
//! [`BODY_STALL_MAX`].

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::connection::Connection;
use super::memory::{Charge, MemoryAccount, NoMemory};
use crate::limits::{BODY_PROGRESS_BYTES, BODY_STALL_MAX, BODY_WAIT_MAX, REFUSED_BODY_BYTES_MAX, STALL_IN_NEED_MAX};

/// Bytes for which there is room before the first byte has come.
const FIRST_BYTES: usize = 4 << 10;

/// A body in memory. Its share of the memory is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Charged {
    pub(super) bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// More than this number of bytes.
    TooLarge(usize),
    /// Memory is short at the moment. The client may try again.
    Busy { most_mebibytes: u64, retry_after_secs: u64 },
    /// It stalled while others needed the memory it held.
    Cut,
    /// It came to a halt, or nearly.
    TooSlow,
    /// The connection ended, or broke the protocol, inside the body.
    Broken(String),
}

impl BodyError {
    /// For people.
    pub(super) fn message(&self) -> String {
        match self {
            BodyError::TooLarge(bytes_max) => format!("body larger than {} MiB: export smaller batches", bytes_max >> 20),
            BodyError::Busy { most_mebibytes, .. } => format!("the {most_mebibytes} MiB of memory for this are in use: try again"),
            BodyError::Cut => {
                format!(
                    "body stalled, or came slowly, for {} s while other requests needed its memory: try again",
                    STALL_IN_NEED_MAX.as_secs_f32()
                )
            }
            BodyError::TooSlow => {
                let (bytes, seconds) = (BODY_PROGRESS_BYTES >> 10, BODY_STALL_MAX.as_secs());
                format!("body too slow: less than {bytes} KiB in {seconds} s")
            }
            BodyError::Broken(reason) => format!("body broken off: {reason}"),
        }
    }
}

/// Reads a body to its end. It reads a refused one on, up to [`REFUSED_BODY_BYTES_MAX`], and drops it.
pub(super) async fn read(mut body: Incoming, account: &MemoryAccount, connection: &Connection) -> Result<Charged, BodyError> {
    let declared = body.size_hint().lower();
    let bytes_max = connection.body_bytes_max();
    if declared > bytes_max as u64 {
        // A client that has closed its connection reads no answer.
        if !connection.sender_is_gone() {
            discard(body, declared).await;
        }
        return Err(BodyError::TooLarge(bytes_max));
    }
    let busy = |most: u64| BodyError::Busy { most_mebibytes: most >> 20, retry_after_secs: account.retry_after_secs() };
    if account.is_short() {
        if !connection.sender_is_gone() {
            discard(body, declared).await;
        }
        return Err(busy(account.limit()));
    }
    let mut charge = Charge::new(&account.bodies, Arc::default());
    // Declared is not sent: memory is taken as bytes arrive.
    let mut bytes = BytesMut::with_capacity((declared as usize).min(FIRST_BYTES));
    let mut next_progress = BODY_PROGRESS_BYTES;
    let mut progress = Instant::now();
    loop {
        let frame = tokio::select! {
            // Most bodies are complete at the first poll, which then makes no timer.
            biased;
            frame = body.frame() => frame,
            () = charge.cut.notified() => return Err(BodyError::Cut),
            () = sleep_until(progress + BODY_STALL_MAX) => return Err(BodyError::TooSlow),
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        let refused = if bytes.len() + data.len() > bytes_max {
            BodyError::TooLarge(bytes_max)
        } else {
            match charge.up_to(bytes.len() + data.len(), BODY_WAIT_MAX).await {
                Ok(waited) => {
                    bytes.extend_from_slice(&data);
                    if waited || bytes.len() >= next_progress {
                        next_progress = bytes.len() + BODY_PROGRESS_BYTES;
                        progress = Instant::now();
                        charge.set_progress(Some(progress));
                        connection.note_progress();
                    }
                    continue;
                }
                Err(NoMemory) => busy(account.bodies.limit() as u64),
            }
        };
        drop((bytes, charge));
        if !connection.sender_is_gone() {
            discard(body, declared).await;
        }
        return Err(refused);
    }
    Ok(Charged { bytes: bytes.freeze(), _memory: charge.into_memory() })
}

/// Reads and throws away, unless the client announced more than is worth it, or is slow.
async fn discard(mut body: Incoming, declared: u64) {
    let mut left = REFUSED_BODY_BYTES_MAX;
    if declared > left {
        return;
    }
    let (mut until, mut since) = (Instant::now() + BODY_STALL_MAX, 0);
    while let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length as u64) {
            Some(rest) => left = rest,
            None => return,
        }
        since += length;
        if since >= BODY_PROGRESS_BYTES {
            (until, since) = (Instant::now() + BODY_STALL_MAX, 0);
        }
    }
}
