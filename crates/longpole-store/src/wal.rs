//! The write-ahead log: what was acknowledged, in the order it came. Its bytes are described in
//! `docs/formats/recording.md`.
//!
//! One append is one `writev(2)`, so a frame whose append returned is in the kernel's page cache: `kill -9` of the
//! recorder cannot take it back, and cannot tear it. A machine that loses power can; [`SyncPolicy::Batch`] guards
//! against that at the price of an `fdatasync(2)`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longpole_model::{Loss, LossKind, Observation, ObservationSink, ResourceEvent, Run, sink::SinkError};

use crate::codec::{self, Malformed};
use crate::error::ErrorKind;
use crate::format::WAL_VERSION;

const MAGIC: [u8; 8] = *b"LPOLEWAL";

/// Magic and version.
const FILE_HEADER_BYTES: usize = 12;

/// Length of the payload, checksum, kind.
const FRAME_HEADER_BYTES: usize = 9;

/// The largest payload. The largest request a receiver takes is far below; a length above it is damage.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

/// Observations are gathered up to so many bytes before they are appended: one system call for about 2,000 samples.
const BATCH_BYTES: usize = 64 << 10;

/// While the disk is full, observations wait up to so many bytes (about a minute of 999 Hz on two CPUs); what comes
/// then is refused, and the recorder counts it.
const WAITING_BYTES_MAX: usize = 4 << 20;

mod kind {
    pub(super) const RUN: u8 = 1;
    pub(super) const OTLP_PROTOBUF: u8 = 2;
    pub(super) const OTLP_JSON: u8 = 3;
    pub(super) const OBSERVATIONS: u8 = 4;
    pub(super) const LOSS: u8 = 5;
    pub(super) const SPAN_EVENTS: u8 = 6;
    pub(super) const RESOURCE_EVENT: u8 = 7;
}

/// Why the log could not be written or read. The message completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The file system refused.
    #[error("{action} the write-ahead log {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The log.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An earlier append failed half-way and could not be undone; nothing more can be appended.
    #[error("append to the write-ahead log {}: it ends in a broken frame since an earlier error", path.display())]
    Broken {
        /// The log.
        path: PathBuf,
    },
    /// The payload is larger than a frame can be.
    #[error("append {bytes} bytes to the write-ahead log {}: a frame holds {FRAME_BYTES_MAX} at most", path.display())]
    TooLarge {
        /// The log.
        path: PathBuf,
        /// Length of the payload.
        bytes: usize,
    },
    /// The file does not begin like a log.
    #[error("read {}: it is not a write-ahead log of longpole", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// A newer longpole wrote it.
    #[error(
        "read the write-ahead log {}: it has format {found}, and this longpole reads up to {WAL_VERSION}; a newer longpole can read it",
        path.display()
    )]
    Newer {
        /// The log.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A frame in the middle is damaged; what stands behind it cannot be trusted.
    #[error("read the frame at offset {offset} of the write-ahead log {}: {reason}", path.display())]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl WalError {
    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            WalError::Io { .. } | WalError::Broken { .. } => ErrorKind::Environment,
            WalError::TooLarge { .. } => ErrorKind::Usage,
            WalError::NotALog { .. } | WalError::Damaged { .. } => ErrorKind::Corrupt,
            WalError::Newer { .. } => ErrorKind::Incompatible,
        }
    }
}

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
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: File,
    sync: SyncPolicy,
    tail: Mutex<Tail>,
    /// Bytes known to be on the disk.
    synced: Mutex<u64>,
    /// Observations that sinks took or refused and that are not in the log.
    lost: AtomicU64,
}

#[derive(Debug)]
struct Tail {
    /// End of the last whole frame.
    end: u64,
    /// Whether something that is not a whole frame stands behind it.
    broken: bool,
}

/// A thread that panicked while it held the lock left the values whole: they are changed by plain stores only.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WalWriter {
    /// Creates the log of a run; the file must not exist.
    pub fn create(path: &Path, run: &Run, sync: SyncPolicy) -> Result<Self, WalError> {
        let fail = |source| WalError::Io { action: "create", path: path.to_owned(), source };
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(fail)?;
        let mut payload = Vec::new();
        codec::put_run(&mut payload, run);
        let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES + FRAME_HEADER_BYTES + payload.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&WAL_VERSION.to_le_bytes());
        bytes.extend_from_slice(&frame_header(kind::RUN, &[&payload]));
        bytes.extend_from_slice(&payload);
        (&file).write_all(&bytes).map_err(fail)?;
        let tail = Tail { end: bytes.len() as u64, broken: false };
        let writer = WalWriter {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                file,
                sync,
                tail: Mutex::new(tail),
                synced: Mutex::new(0),
                lost: AtomicU64::new(0),
            }),
        };
        writer.shared.acknowledge(bytes.len() as u64)?;
        Ok(writer)
    }

    /// Appends the protobuf body of an OTLP trace request, as received. The pid is the peer's, where it is known.
    pub fn append_otlp_protobuf(&self, peer_pid: Option<u32>, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::OTLP_PROTOBUF, &[&peer_pid.unwrap_or(0).to_le_bytes(), body])
    }

    /// Appends the JSON body of an OTLP trace request, as received. The pid is the peer's, where it is known.
    pub fn append_otlp_json(&self, peer_pid: Option<u32>, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::OTLP_JSON, &[&peer_pid.unwrap_or(0).to_le_bytes(), body])
    }

    /// Appends events of spans that come by themselves: an OTLP trace request in protobuf whose spans only say which span each
    /// belongs to, by trace and span id.
    pub fn append_span_events(&self, body: &[u8]) -> Result<(), WalError> {
        self.shared.append(kind::SPAN_EVENTS, &[body])
    }

    /// Appends what Pulumi's engine says about a resource.
    pub fn append_resource_event(&self, event: &ResourceEvent) -> Result<(), WalError> {
        let mut payload = Vec::new();
        codec::put_resource_event(&mut payload, event);
        self.shared.append(kind::RESOURCE_EVENT, &[&payload])
    }

    /// Appends what was seen beside the recorder.
    pub fn append_observation(&self, observation: &Observation) -> Result<(), WalError> {
        let mut payload = Vec::new();
        codec::put_observation(&mut payload, observation);
        self.shared.append(kind::OBSERVATIONS, &[&payload])
    }

    /// Appends a loss.
    pub fn append_loss(&self, loss: &Loss) -> Result<(), WalError> {
        let mut payload = Vec::new();
        codec::put_loss(&mut payload, loss);
        self.shared.append(kind::LOSS, &[&payload])
    }

    /// A sink for what the recorder sees. It gathers about 64 KiB; what is gathered is lost unless
    /// [`ObservationSink::flush`] is called.
    pub fn observation_sink(&self) -> WalObservationSink {
        WalObservationSink {
            wal: self.clone(),
            waiting: Vec::with_capacity(BATCH_BYTES + 4096),
            count: 0,
            append_at: BATCH_BYTES,
            failed: None,
        }
    }

    /// How many observations were given to sinks and are not in the log: refused, or still waiting when their sink was dropped.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

fn frame_header(kind: u8, payload: &[&[u8]]) -> [u8; FRAME_HEADER_BYTES] {
    let length = payload.iter().map(|part| part.len()).sum::<usize>() as u32;
    let crc = payload.iter().fold(crc32c::crc32c(&[kind]), |crc, part| crc32c::crc32c_append(crc, part));
    let mut header = [0; FRAME_HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&crc.to_le_bytes());
    header[8] = kind;
    header
}

impl Shared {
    fn append(&self, kind: u8, payload: &[&[u8]]) -> Result<(), WalError> {
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
        if self.sync == SyncPolicy::None {
            return Ok(());
        }
        // Who holds this lock syncs for all who wait for it: they find their end covered when it is their turn.
        let mut synced = lock(&self.synced);
        if *synced < end {
            let covered = lock(&self.tail).end;
            self.file.sync_data().map_err(|source| WalError::Io { action: "sync", path: self.path.clone(), source })?;
            *synced = covered;
        }
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

/// Appends what the recorder sees in batches.
#[derive(Debug)]
pub struct WalObservationSink {
    wal: WalWriter,
    waiting: Vec<u8>,
    /// How many observations that is.
    count: u64,
    /// The next append is tried when so many bytes wait; it moves on where an append failed, so that a full disk is
    /// not asked again for every observation.
    append_at: usize,
    /// Why the last append failed, where it did.
    failed: Option<SinkError>,
}

impl WalObservationSink {
    fn append(&mut self) -> Result<(), SinkError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        match self.wal.shared.append(kind::OBSERVATIONS, &[&self.waiting]) {
            Ok(()) => {
                self.waiting.clear();
                self.count = 0;
                self.append_at = BATCH_BYTES;
                self.failed = None;
                Ok(())
            }
            Err(error) => {
                let error = SinkError(describe(&error));
                self.append_at = self.waiting.len() + BATCH_BYTES;
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }
}

/// The error with its cause on one line, because a [`SinkError`] holds one text.
fn describe(error: &WalError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl ObservationSink for WalObservationSink {
    /// An error means that *this* observation is lost; those before it wait for the disk to take them, which
    /// [`ObservationSink::flush`] tries again.
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        if self.waiting.len() >= WAITING_BYTES_MAX
            && let Some(error) = &self.failed
        {
            self.wal.shared.lost.fetch_add(1, Ordering::Relaxed);
            return Err(error.clone());
        }
        if self.waiting.len() >= self.append_at {
            // What waits is kept where this fails; only a full buffer makes it the caller's trouble.
            let _ = self.append();
        }
        codec::put_observation(&mut self.waiting, &observation);
        self.count += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.append()
    }
}

impl Drop for WalObservationSink {
    fn drop(&mut self) {
        self.wal.shared.lost.fetch_add(self.count, Ordering::Relaxed);
    }
}

/// What one frame holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The run, as it was known at its start. The first frame, and only that.
    Run(Run),
    /// The body of an OTLP trace request in protobuf.
    OtlpProtobuf {
        /// Pid of the peer, where it is known.
        peer_pid: Option<u32>,
        /// The body.
        body: Vec<u8>,
    },
    /// The body of an OTLP trace request in JSON.
    OtlpJson {
        /// Pid of the peer, where it is known.
        peer_pid: Option<u32>,
        /// The body.
        body: Vec<u8>,
    },
    /// Events of spans that came by themselves: an OTLP trace request in protobuf whose spans are carriers.
    SpanEvents(Vec<u8>),
    /// What Pulumi's engine said about a resource.
    ResourceEvent(ResourceEvent),
    /// What the recorder saw.
    Observations(Vec<Observation>),
    /// Something is missing; also what reading the log itself found missing.
    Loss(Loss),
}

/// The frames of a log, in the order they were appended. After an error it ends.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where the next frame begins.
    offset: u64,
    /// Length of the file when it was opened.
    length: u64,
    /// Whether the recorder lives: a frame that is half there is then under way, not torn.
    living: bool,
    /// Yielded after the last frame.
    at_end: Option<Loss>,
    done: bool,
}

/// What stands where the next frame should.
enum Next {
    Frame(Box<Frame>),
    Torn,
    End,
}

impl Replay {
    /// Opens a log. `at_end` is yielded behind its last frame.
    pub(crate) fn open(path: &Path, living: bool, at_end: Option<Loss>) -> Result<Self, WalError> {
        let fail = |source| WalError::Io { action: "open", path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let length = file.metadata().map_err(fail)?.len();
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let mut header = [0; FILE_HEADER_BYTES];
        match reader.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(WalError::NotALog { path: path.to_owned() });
            }
            Err(error) => return Err(fail(error)),
        }
        let (magic, version) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(WalError::NotALog { path: path.to_owned() });
        }
        let found = u32_at(version, 0);
        if found > WAL_VERSION {
            return Err(WalError::Newer { path: path.to_owned(), found });
        }
        Ok(Replay { path: path.to_owned(), reader, offset: FILE_HEADER_BYTES as u64, length, living, at_end, done: false })
    }

    fn next_frame(&mut self) -> Result<Next, WalError> {
        let rest = self.length.saturating_sub(self.offset);
        if rest == 0 {
            return Ok(Next::End);
        }
        if rest < FRAME_HEADER_BYTES as u64 {
            return Ok(Next::Torn);
        }
        let fail = |source| WalError::Io { action: "read", path: self.path.clone(), source };
        let mut header = [0; FRAME_HEADER_BYTES];
        self.reader.read_exact(&mut header).map_err(fail)?;
        let (length, crc, kind) = (u32_at(&header, 0), u32_at(&header, 4), header[8]);
        if u64::from(length) > rest - FRAME_HEADER_BYTES as u64 {
            return Ok(Next::Torn);
        }
        let mut payload = vec![0; length as usize];
        self.reader.read_exact(&mut payload).map_err(fail)?;
        let is_last = u64::from(length) == rest - FRAME_HEADER_BYTES as u64;
        if crc32c::crc32c_append(crc32c::crc32c(&[kind]), &payload) != crc {
            // Some file systems show zeros behind what they had written when the power went.
            let zeros = header == [0; FRAME_HEADER_BYTES] && self.rest_is_zero()?;
            if is_last || zeros {
                return Ok(Next::Torn);
            }
            return Err(self.damaged("its checksum does not match".into()));
        }
        let frame = decode(kind, payload).map_err(|reason| self.damaged(reason))?;
        let is_first = self.offset == FILE_HEADER_BYTES as u64;
        if is_first != matches!(frame, Frame::Run(_)) {
            return Err(self.damaged("the first frame, and only that, describes the run".into()));
        }
        self.offset += FRAME_HEADER_BYTES as u64 + u64::from(length);
        Ok(Next::Frame(Box::new(frame)))
    }

    fn rest_is_zero(&mut self) -> Result<bool, WalError> {
        let mut chunk = [0; 4096];
        loop {
            match self.reader.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(count) if chunk[..count].iter().all(|byte| *byte == 0) => {}
                Ok(_) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(WalError::Io { action: "read", path: self.path.clone(), source }),
            }
        }
    }

    fn damaged(&self, reason: String) -> WalError {
        WalError::Damaged { path: self.path.clone(), offset: self.offset, reason }
    }

    fn torn(&self) -> Loss {
        let bytes = self.length - self.offset;
        Loss::new(LossKind::WalTorn, 1, format!("the last {bytes} bytes, from offset {}, are not a whole frame", self.offset))
    }
}

impl Iterator for Replay {
    type Item = Result<Frame, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.done {
            match self.next_frame() {
                Ok(Next::Frame(frame)) => return Some(Ok(*frame)),
                Ok(Next::Torn) if !self.living => {
                    self.done = true;
                    return Some(Ok(Frame::Loss(self.torn())));
                }
                Ok(Next::Torn | Next::End) => self.done = true,
                Err(error) => {
                    self.done = true;
                    self.at_end = None;
                    return Some(Err(error));
                }
            }
        }
        self.at_end.take().map(|loss| Ok(Frame::Loss(loss)))
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(number)
}

fn decode(kind: u8, payload: Vec<u8>) -> Result<Frame, String> {
    let malformed = |Malformed { offset, expected }| format!("at byte {offset} of its payload, expected {expected}");
    match kind {
        kind::RUN => codec::run(&payload).map(Frame::Run).map_err(malformed),
        kind::OBSERVATIONS => codec::observations(&payload).map(Frame::Observations).map_err(malformed),
        kind::LOSS => codec::loss(&payload).map(Frame::Loss).map_err(malformed),
        kind::RESOURCE_EVENT => codec::resource_event(&payload).map(Frame::ResourceEvent).map_err(malformed),
        kind::SPAN_EVENTS => Ok(Frame::SpanEvents(payload)),
        kind::OTLP_PROTOBUF => request(payload).map(|(peer_pid, body)| Frame::OtlpProtobuf { peer_pid, body }),
        kind::OTLP_JSON => request(payload).map(|(peer_pid, body)| Frame::OtlpJson { peer_pid, body }),
        _ => Err(format!("its kind {kind} is unknown")),
    }
}

fn request(mut payload: Vec<u8>) -> Result<(Option<u32>, Vec<u8>), String> {
    if payload.len() < 4 {
        return Err("it is too short for the pid of its peer".into());
    }
    let pid = u32_at(&payload, 0);
    payload.drain(..4);
    Ok(((pid != 0).then_some(pid), payload))
}

#[cfg(test)]
mod tests;
