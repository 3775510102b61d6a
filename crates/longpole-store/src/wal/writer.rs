//! Appends frames to the log.
//!
//! One append is one `writev(2)`, so a frame whose append returned is in the kernel's page cache: `kill -9` of the
//! recorder cannot take it back, and cannot tear it. A machine that loses power can; [`SyncPolicy::Batch`] guards
//! against that at the price of an `fdatasync(2)`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use longpole_model::{Loss, Observation, ResourceEvent, Run, Timestamp};

use super::error::WalError;
use super::frame::{FILE_HEADER_BYTES, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Generation, MAGIC, RequestHead, frame_header, kind};
use super::observation_codec as codec;
use super::replay::Replay;
use super::secret::Secret;
use crate::encoding::put_i64;
use crate::files;
use crate::format::WAL_VERSION;

/// Bytes that the recorder may still append to a recording that has reached its limit: losses with their reasons, a few hundred at most.
const LAST_WORDS_BYTES_MAX: u64 = 1 << 20;

/// When an append is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// When the kernel has it: survives the recorder's death, not a power cut. For `run`.
    None,
    /// When the disk has it; appends that wait at the same time share one `fdatasync(2)`.
    Batch,
}

/// Appends to a log. Clones share the file.
#[derive(Debug, Clone)]
pub struct WalWriter {
    shared: Arc<SharedLog>,
}

#[derive(Debug)]
struct SharedLog {
    path: PathBuf,
    file: File,
    sync: SyncPolicy,
    tail: Mutex<Tail>,
    /// How long the log may become.
    limit: AtomicU64,
    /// Whether something was refused because of it.
    is_full: AtomicBool,
    /// What may stand behind it, of the recorder's own.
    beyond: AtomicU64,
    synced: Mutex<Synced>,
    /// Observations that sinks took or refused and that are not in the log.
    lost: AtomicU64,
    /// What no frame may hold.
    secret: OnceLock<Secret>,
}

/// How much of the log the disk is known to have.
#[derive(Debug)]
struct Synced {
    /// Bytes, from the start.
    until: u64,
    /// Whether a sync failed. The kernel may have dropped what it could not write, and reports that once: another sync would succeed over a hole.
    failed: bool,
}

#[derive(Debug)]
struct Tail {
    /// End of the last whole frame.
    end: u64,
    /// Whether something that is not a whole frame stands behind it.
    broken: bool,
    /// Whether a sync failed: what follows could not be acknowledged.
    unsynced: bool,
    /// Whether nothing may follow.
    closed: bool,
}

/// A thread that panicked while it held the lock left the values whole: they are changed by plain stores only.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WalWriter {
    /// Creates the log of a run; the file must not exist.
    ///
    /// # Errors
    ///
    /// [`WalError::Io`] if the system refuses the file, or if it exists.
    pub fn create(path: &Path, run: &Run, sync: SyncPolicy) -> Result<Self, WalError> {
        WalWriter::create_with(path, kind::RUN, &codec::encoded(run), sync)
    }

    /// Creates a log of a server; the file must not exist. Appends do not wait for the disk: [`sync`](Self::sync) does.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub(crate) fn create_generation(path: &Path, generation: &Generation) -> Result<Self, WalError> {
        WalWriter::create_with(path, kind::GENERATION, &generation.encoded(), SyncPolicy::None)
    }

    fn create_with(path: &Path, kind: u8, payload: &[u8], sync: SyncPolicy) -> Result<Self, WalError> {
        let fail = |source| WalError::Io { action: "create", path: path.to_owned(), source };
        let file = files::create_log(path).map_err(fail)?;
        let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES + FRAME_HEADER_BYTES + payload.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&WAL_VERSION.to_le_bytes());
        bytes.extend_from_slice(&frame_header(kind, &[payload]));
        bytes.extend_from_slice(payload);
        (&file).write_all(&bytes).map_err(fail)?;
        let writer = WalWriter::of_file(path, file, sync, bytes.len() as u64);
        writer.shared.acknowledge(bytes.len() as u64)?;
        Ok(writer)
    }

    /// Appends to a file whose last whole frame ends there.
    pub(super) fn of_file(path: &Path, file: File, sync: SyncPolicy, end: u64) -> Self {
        let shared = SharedLog {
            path: path.to_owned(),
            file,
            sync,
            tail: Mutex::new(Tail { end, broken: false, unsynced: false, closed: false }),
            limit: AtomicU64::new(u64::MAX),
            is_full: AtomicBool::new(false),
            beyond: AtomicU64::new(0),
            synced: Mutex::new(Synced { until: 0, failed: false }),
            lost: AtomicU64::new(0),
            secret: OnceLock::new(),
        };
        WalWriter { shared: Arc::new(shared) }
    }

    /// Appends the protobuf body of an OTLP trace request, as received. The pid is the peer's, where it is known.
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub fn append_otlp_protobuf(&self, peer_pid: Option<u32>, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::OTLP_PROTOBUF, &[&peer_pid.unwrap_or(0).to_le_bytes(), body])
    }

    /// Appends spans of a file that this command, or a process below it, wrote: an OTLP trace request in protobuf.
    ///
    /// # Errors
    ///
    /// As [`append_otlp_protobuf`](Self::append_otlp_protobuf).
    pub fn append_trace_file(&self, command: Option<u32>, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::TRACE_FILE, &[&command.unwrap_or(0).to_le_bytes(), body])
    }

    /// Appends the JSON body of an OTLP trace request, as received. The pid is the peer's, where it is known.
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub fn append_otlp_json(&self, peer_pid: Option<u32>, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::OTLP_JSON, &[&peer_pid.unwrap_or(0).to_le_bytes(), body])
    }

    /// Appends a request of spans that a server took.
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub(crate) fn append_spans(&self, head: &RequestHead, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::SPANS, &[&head.encoded(), body])
    }

    /// Appends profiles that a server took: those of [`encode_profiles`](super::encode_profiles).
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub(crate) fn append_profiles(&self, received: Timestamp, encoded: &[u8]) -> Result<(), WalError> {
        let mut head = Vec::new();
        put_i64(&mut head, received.unix_nanos());
        self.shared.append(kind::PROFILES, &[&head, encoded])
    }

    /// Waits until the disk has everything that was appended before. After an error nothing can be appended: the kernel may have dropped
    /// what it could not write.
    ///
    /// # Errors
    ///
    /// [`WalError::Io`] if the sync fails, [`WalError::NotSynced`] if an earlier one failed.
    pub(crate) fn sync(&self) -> Result<(), WalError> {
        let end = self.bytes();
        self.shared.sync_to(end)
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.shared.tail).end
    }

    /// Appends events of spans that come by themselves: an OTLP trace request in protobuf whose spans only say which span each
    /// belongs to, by trace and span id.
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub fn append_span_events(&self, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::SPAN_EVENTS, &[body])
    }

    /// Appends what Pulumi's engine says about a resource.
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub fn append_resource_event(&self, event: &ResourceEvent) -> Result<(), WalError> {
        self.shared.append(kind::RESOURCE_EVENT, &[&codec::encoded(event)])
    }

    /// Appends one observation that does not come through a sink.
    ///
    /// # Errors
    ///
    /// [`WalError::Io`] if the write or the sync fails, [`WalError::Broken`] after a failure that could not be undone, [`WalError::NotSynced`]
    /// after a failed sync, [`WalError::TooLarge`] beyond the size of a frame, [`WalError::Closed`] once its content is being sealed.
    pub fn append_observation(&self, observation: &Observation) -> Result<(), WalError> {
        self.append_observations(&codec::encoded(observation))
    }

    /// Appends a loss.
    ///
    /// # Errors
    ///
    /// As [`append_observation`](Self::append_observation).
    pub fn append_loss(&self, loss: &Loss) -> Result<(), WalError> {
        self.shared.append(kind::LOSS, &[&codec::encoded(loss)])
    }

    /// From now on nothing is appended that would make the log longer than this.
    pub fn set_limit(&self, bytes: u64) {
        self.shared.limit.store(bytes, Ordering::Relaxed);
    }

    /// From now on `name` stands wherever `secret` would, in the length of it: whatever door it comes by, no frame holds it. The first that is
    /// named is the one that is hidden.
    pub fn hide(&self, secret: &str, name: &str) {
        if let Some(secret) = Secret::new(secret, name) {
            let _ = self.shared.secret.set(secret);
        }
    }

    /// Lets the last words of the recorder in: how the command ended, and what is missing.
    pub fn begin_end(&self) {
        self.shared.beyond.store(LAST_WORDS_BYTES_MAX, Ordering::Relaxed);
    }

    /// Lets nothing more in: who was left behind by the recorder may come back while the log is read.
    pub fn close(&self) {
        lock(&self.shared.tail).closed = true;
    }

    /// The limit, where something was refused because of it.
    pub fn reached_limit(&self) -> Option<u64> {
        self.shared.is_full.load(Ordering::Relaxed).then(|| self.shared.limit.load(Ordering::Relaxed))
    }

    /// What the log holds so far. `unknown` stands for the run where the log's own description is damaged.
    ///
    /// It is read by the descriptor that it was written by, so it is whole also where its file was removed.
    pub(crate) fn replay(&self, unknown: &Run) -> Result<Replay, WalError> {
        let fail = |source| WalError::Io { action: "open", path: self.shared.path.clone(), source };
        let file = files::again(&self.shared.file).map_err(fail)?;
        Replay::of_writer(file, &self.shared.path, unknown, lock(&self.shared.tail).end)
    }

    /// Whether its file is where it was made.
    pub(crate) fn is_there(&self) -> bool {
        files::is_at(&self.shared.file, &self.shared.path)
    }

    /// Where it was made.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Appends a batch of encoded observations.
    pub(super) fn append_observations(&self, encoded: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::OBSERVATIONS, &[encoded])
    }

    /// Counts observations that a sink took or refused and that are not in the log.
    pub(super) fn count_lost(&self, observations: u64) {
        self.shared.lost.fetch_add(observations, Ordering::Relaxed);
    }

    /// How many observations were given to sinks and are not in the log: refused, or still waiting when their sink was dropped.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl SharedLog {
    fn append(&self, kind: u8, payload: &[&[u8]]) -> Result<(), WalError> {
        let Some(secret) = self.secret.get() else { return self.append_as_it_is(kind, payload) };
        // It is a text, which no two parts share.
        let mut parts: Vec<_> = payload.iter().map(|part| Cow::Borrowed(*part)).collect();
        for part in &mut parts {
            secret.hide(part);
        }
        self.append_as_it_is(kind, &parts.iter().map(|part| &**part).collect::<Vec<_>>())
    }

    fn append_as_it_is(&self, kind: u8, payload: &[&[u8]]) -> Result<(), WalError> {
        let bytes = payload.iter().map(|part| part.len()).sum::<usize>();
        if bytes > FRAME_BYTES_MAX {
            return Err(WalError::TooLarge { path: self.path.clone(), bytes });
        }
        let header = frame_header(kind, payload);
        let mut slices = vec![IoSlice::new(&header)];
        slices.extend(payload.iter().map(|part| IoSlice::new(part)));

        let mut tail = lock(&self.tail);
        if tail.broken {
            return Err(WalError::Broken { path: self.path.clone() });
        }
        if tail.unsynced {
            return Err(WalError::NotSynced { path: self.path.clone() });
        }
        if tail.closed {
            return Err(WalError::Closed { path: self.path.clone() });
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let beyond = if matches!(kind, kind::OBSERVATIONS | kind::LOSS) { self.beyond.load(Ordering::Relaxed) } else { 0 };
        if tail.end + (FRAME_HEADER_BYTES + bytes) as u64 > limit.saturating_add(beyond) {
            self.is_full.store(true, Ordering::Relaxed);
            return Err(WalError::Full { path: self.path.clone(), limit });
        }
        if let Err(source) = write_all(&self.file, &mut slices) {
            // A frame that was written in part (the disk is full) must go before the next one can follow.
            tail.broken = self.file.set_len(tail.end).is_err();
            return Err(WalError::Io { action: "append to", path: self.path.clone(), source });
        }
        tail.end += (FRAME_HEADER_BYTES + bytes) as u64;
        let end = tail.end;
        drop(tail);
        self.acknowledge(end)
    }

    /// Returns once everything before `end` is as safe as the policy says.
    fn acknowledge(&self, end: u64) -> Result<(), WalError> {
        if self.sync == SyncPolicy::None { Ok(()) } else { self.sync_to(end) }
    }

    /// Returns once the disk has everything before `end`.
    fn sync_to(&self, end: u64) -> Result<(), WalError> {
        // The holder of this lock syncs for all threads that wait for it: they find their end covered in their turn.
        let mut synced = lock(&self.synced);
        if synced.until >= end {
            return Ok(());
        }
        if synced.failed {
            return Err(WalError::NotSynced { path: self.path.clone() });
        }
        let covered = lock(&self.tail).end;
        if let Err(source) = self.file.sync_data() {
            synced.failed = true;
            lock(&self.tail).unsynced = true;
            return Err(WalError::Io { action: "sync", path: self.path.clone(), source });
        }
        synced.until = covered;
        Ok(())
    }
}

/// One `writev(2)`, unless the kernel took a part only (a signal, the disk full), then as many as it needs.
fn write_all(mut file: &File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while slices.iter().any(|slice| !slice.is_empty()) {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
