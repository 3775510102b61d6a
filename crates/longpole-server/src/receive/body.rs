//! Reading a request's body: bounded in size and time, and charged to the memory that all bodies share.
//!
//! Memory is taken as bytes arrive, so a stalled body holds memory for what it has sent. If others need that memory, bodies without
//! progress for [`STALL_IN_NEED_MAX`] are cut, longest stalled first; otherwise after [`BODY_STALL_MAX`].

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::connection::Connection;
use crate::limits::{
    BODIES_IN_MEMORY_BYTES_MAX, BODY_PROGRESS_BYTES, BODY_STALL_MAX, BODY_WAIT_MAX, REFUSED_BODY_BYTES_MAX, STALL_IN_NEED_MAX,
};

/// Bytes of body that one permit stands for.
const PERMIT_BYTES: usize = 4 << 10;

/// The memory that all bodies share, and who is reading one.
#[derive(Debug)]
pub(super) struct Bodies {
    /// Permits of [`PERMIT_BYTES`] each.
    memory: Arc<Semaphore>,
    reading: Mutex<HashMap<u64, BodyInMemory>>,
    next: AtomicU64,
}

/// A body that is being read and holds memory.
#[derive(Debug)]
struct BodyInMemory {
    /// When it made progress last; `None` while it waits for memory, which is not its client's fault.
    progress: Option<Instant>,
    held_permits: usize,
    cut: Arc<Notify>,
}

impl Bodies {
    pub(super) fn new() -> Self {
        let memory = Arc::new(Semaphore::new(BODIES_IN_MEMORY_BYTES_MAX / PERMIT_BYTES));
        Bodies { memory, reading: Mutex::default(), next: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, BodyInMemory>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for this number of bytes, if there is some at once.
    pub(super) fn room_now(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).ok()?;
        let room = Arc::clone(&self.memory).try_acquire_many_owned(permits).ok();
        if room.is_none() {
            self.cut_stalled(permits as usize);
        }
        room
    }

    /// Cuts the bodies that have stalled longest, until `wanted` permits come free.
    fn cut_stalled(&self, wanted: usize) {
        let mut reading = self.lock();
        let now = Instant::now();
        let stalled = |reading: &BodyInMemory| reading.progress.filter(|at| now.saturating_duration_since(*at) > STALL_IN_NEED_MAX);
        let mut holders: Vec<(Instant, u64)> = reading.iter().filter_map(|(id, reading)| Some((stalled(reading)?, *id))).collect();
        holders.sort_unstable();
        let mut free = 0;
        for (_, id) in holders {
            if free >= wanted {
                return;
            }
            if let Some(reading) = reading.remove(&id) {
                free += reading.held_permits;
                reading.cut.notify_one();
            }
        }
    }
}

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
    /// All bodies together take too much memory at the moment.
    Busy,
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
            BodyError::Busy => format!("more than {} MiB of requests at the same time: try again", BODIES_IN_MEMORY_BYTES_MAX >> 20),
            BodyError::Cut => {
                format!("body stalled for {} s while other requests needed its memory: try again", STALL_IN_NEED_MAX.as_secs_f32())
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
pub(super) async fn read(mut body: Incoming, bodies: &Bodies, connection: &Connection) -> Result<Charged, BodyError> {
    let declared = body.size_hint().lower();
    let bytes_max = connection.body_bytes_max();
    if declared > bytes_max as u64 {
        // A client that has closed its connection reads no answer.
        if !connection.sender_is_gone() {
            discard(body, declared).await;
        }
        return Err(BodyError::TooLarge(bytes_max));
    }
    let mut charge = Charge::new(bodies);
    // Declared is not sent: memory is taken as bytes arrive.
    let mut bytes = BytesMut::with_capacity((declared as usize).min(PERMIT_BYTES));
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
            match charge.up_to(bytes.len() + data.len()).await {
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
                Err(refused) => refused,
            }
        };
        drop((bytes, charge));
        if !connection.sender_is_gone() {
            discard(body, declared).await;
        }
        return Err(refused);
    }
    Ok(Charged { bytes: bytes.freeze(), _memory: charge.permit.take() })
}

/// What one body holds.
struct Charge<'a> {
    bodies: &'a Bodies,
    permit: Option<OwnedSemaphorePermit>,
    cut: Arc<Notify>,
    /// Its place among those that are being read, once it holds something.
    id: Option<u64>,
}

impl<'a> Charge<'a> {
    fn new(bodies: &'a Bodies) -> Self {
        Charge { bodies, permit: None, cut: Arc::default(), id: None }
    }

    fn held(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Takes memory for a body of this many bytes, and says whether that had to be waited for.
    async fn up_to(&mut self, bytes: usize) -> Result<bool, BodyError> {
        let missing = bytes.div_ceil(PERMIT_BYTES).saturating_sub(self.held());
        let mut waited = false;
        // A body is at most [`BODY_BYTES_MAX`](crate::limits::BODY_BYTES_MAX).
        let at_once = Arc::clone(&self.bodies.memory).try_acquire_many_owned(missing as u32).ok();
        let more = match at_once {
            Some(more) => more,
            None => {
                waited = true;
                self.wait_for(missing).await?
            }
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        let held_permits = self.held();
        let mut reading = self.bodies.lock();
        match self.id {
            Some(id) => {
                if let Some(reading) = reading.get_mut(&id) {
                    reading.held_permits = held_permits;
                }
            }
            None => {
                let id = self.bodies.next.fetch_add(1, Ordering::Relaxed);
                self.id = Some(id);
                reading.insert(id, BodyInMemory { progress: Some(Instant::now()), held_permits, cut: Arc::clone(&self.cut) });
            }
        }
        Ok(waited)
    }

    /// Waits until others give memory back; those that stall meanwhile are made to.
    async fn wait_for(&self, permits: usize) -> Result<OwnedSemaphorePermit, BodyError> {
        self.set_progress(None);
        let until = Instant::now() + BODY_WAIT_MAX;
        let mut room = pin!(Arc::clone(&self.bodies.memory).acquire_many_owned(permits as u32));
        loop {
            self.bodies.cut_stalled(permits);
            let look_again = Instant::now() + STALL_IN_NEED_MAX / 8;
            match timeout_at(look_again.min(until), room.as_mut()).await {
                Ok(permit) => return permit.map_err(|_| BodyError::Busy),
                Err(_) if Instant::now() >= until => return Err(BodyError::Busy),
                Err(_) => {}
            }
        }
    }

    fn set_progress(&self, progress: Option<Instant>) {
        let mut reading = self.bodies.lock();
        if let Some(reading) = self.id.and_then(|id| reading.get_mut(&id)) {
            reading.progress = progress;
        }
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.bodies.lock().remove(&id);
        }
    }
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
