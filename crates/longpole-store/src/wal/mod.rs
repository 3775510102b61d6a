//! The write-ahead log: what was acknowledged, in the order it came. Its bytes are described in
//! `docs/formats/recording.md`.
//!
//! One append is one `writev(2)`, so a frame whose append returned is in the kernel's page cache: `kill -9` of the
//! recorder cannot take it back, and cannot tear it. A machine that loses power can; [`SyncPolicy::Batch`] guards
//! against that at the price of an `fdatasync(2)`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use longpole_model::{Loss, LossKind, Observation, ObservationSink, ResourceEvent, Run, sink::SinkError};

use crate::error::ErrorKind;
use crate::files;
use crate::format::WAL_VERSION;
use crate::store::lock_file::Since;

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

use self::observation_codec::{self as codec, Malformed};
use self::search::{Header, Search, read_at};
pub use self::secret::Secret;

pub(crate) mod observation_codec;
mod search;
mod secret;

/// What the recorder may still say of a recording that has reached its limit: losses with their reasons, of which there are hundreds at
/// the most.
const LAST_WORDS_BYTES_MAX: u64 = 1 << 20;

mod kind {
    pub(super) const RUN: u8 = 1;
    pub(super) const OTLP_PROTOBUF: u8 = 2;
    pub(super) const OTLP_JSON: u8 = 3;
    pub(super) const OBSERVATIONS: u8 = 4;
    pub(super) const LOSS: u8 = 5;
    pub(super) const SPAN_EVENTS: u8 = 6;
    pub(super) const RESOURCE_EVENT: u8 = 7;
    /// The largest.
    pub(super) const LAST: u8 = RESOURCE_EVENT;
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
    /// What is in it is being sealed.
    #[error("append to the write-ahead log {}: the recording is over", path.display())]
    Closed {
        /// The log.
        path: PathBuf,
    },
    /// The recording may not grow any more.
    #[error("append to the write-ahead log {}: the recording has reached its limit of {limit} bytes (--max-recording-bytes)", path.display())]
    Full {
        /// The log.
        path: PathBuf,
        /// How long it may become.
        limit: u64,
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
}

impl WalError {
    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            WalError::Io { .. } | WalError::Broken { .. } | WalError::Closed { .. } | WalError::Full { .. } => ErrorKind::Environment,
            WalError::TooLarge { .. } => ErrorKind::Usage,
            WalError::NotALog { .. } => ErrorKind::Corrupt,
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
    /// How long the log may become.
    limit: AtomicU64,
    /// Whether something was refused because of it.
    is_full: AtomicBool,
    /// What may stand behind it, of the recorder's own.
    beyond: AtomicU64,
    /// Bytes known to be on the disk.
    synced: Mutex<u64>,
    /// Observations that sinks took or refused and that are not in the log.
    lost: AtomicU64,
    /// What no frame may hold.
    secret: OnceLock<Secret>,
}

#[derive(Debug)]
struct Tail {
    /// End of the last whole frame.
    end: u64,
    /// Whether something that is not a whole frame stands behind it.
    broken: bool,
    /// Whether nothing may follow.
    closed: bool,
}

/// A thread that panicked while it held the lock left the values whole: they are changed by plain stores only.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WalWriter {
    /// Creates the log of a run; the file must not exist.
    pub fn create(path: &Path, run: &Run, sync: SyncPolicy) -> Result<Self, WalError> {
        let fail = |source| WalError::Io { action: "create", path: path.to_owned(), source };
        let file = files::create_log(path).map_err(fail)?;
        let mut payload = Vec::new();
        codec::put_run(&mut payload, run);
        let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES + FRAME_HEADER_BYTES + payload.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&WAL_VERSION.to_le_bytes());
        bytes.extend_from_slice(&frame_header(kind::RUN, &[&payload]));
        bytes.extend_from_slice(&payload);
        (&file).write_all(&bytes).map_err(fail)?;
        let tail = Tail { end: bytes.len() as u64, broken: false, closed: false };
        let writer = WalWriter {
            shared: Arc::new(Shared {
                path: path.to_owned(),
                file,
                sync,
                tail: Mutex::new(tail),
                limit: AtomicU64::new(u64::MAX),
                is_full: AtomicBool::new(false),
                beyond: AtomicU64::new(0),
                synced: Mutex::new(0),
                lost: AtomicU64::new(0),
                secret: OnceLock::new(),
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

    /// What the log holds so far. `unknown` is what is said of the run where the log's own description is damaged.
    ///
    /// It is read by the descriptor that it was written by, so it is whole also where its file was removed.
    pub(crate) fn replay(&self, unknown: &Run) -> Result<Replay, WalError> {
        let fail = |source| WalError::Io { action: "open", path: self.shared.path.clone(), source };
        let file = files::again(&self.shared.file).map_err(fail)?;
        let mut replay = Replay::of_file(file, &self.shared.path, unknown, AtEnd::Sealing)?;
        replay.taken = lock(&self.shared.tail).end.saturating_sub(replay.length);
        Ok(replay)
    }

    /// Whether its file is where it was made.
    pub(crate) fn is_there(&self) -> bool {
        files::is_at(&self.shared.file, &self.shared.path)
    }

    /// Where it was made.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
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

/// What there is to say of a log's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// Its recorder lives: a frame that is half there is under way, not torn.
    Living,
    /// Its recorder reads it itself.
    Sealing,
    /// Its recorder died.
    Killed(Since),
}

/// The frames of a log, in the order they were appended. The first is the run, the one that was given where the log's own cannot be read.
/// Frames that are damaged are passed over and counted: what is missing comes last. After an error it ends.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where the reader stands.
    reader_at: u64,
    /// Where the next frame begins.
    offset: u64,
    /// Length of the file when it was opened.
    length: u64,
    /// What is said of the run where the log does not say it; gone once the run was said.
    unknown: Option<Box<Run>>,
    /// Whether that had to be said.
    run_is_unknown: bool,
    /// A frame that waits behind the run.
    waiting: Option<Box<Frame>>,
    at_end: AtEnd,
    search: Search,
    damage: Damage,
    torn: Option<u64>,
    /// Bytes that were written and are not there any more.
    taken: u64,
    /// Yielded behind the last frame, the first last.
    missing: Option<Vec<Loss>>,
}

/// Damaged places, counted together: a log can have as many as it has bytes.
#[derive(Debug, Default)]
struct Damage {
    places: u64,
    bytes: u64,
    first: u64,
}

/// What stands where the next frame should.
enum Next {
    Frame(Box<Frame>),
    /// So many bytes that are whole and make no sense.
    Senseless(u64),
    /// Something that is no frame.
    Broken,
    /// The beginning of a frame that the recorder is writing.
    UnderWay,
    End,
}

impl Replay {
    /// Opens a log. `unknown` is what is said of the run where the log's own description is damaged.
    pub(crate) fn open(path: &Path, unknown: &Run, at_end: AtEnd) -> Result<Self, WalError> {
        let file = files::open(path).map_err(|source| WalError::Io { action: "open", path: path.to_owned(), source })?;
        Replay::of_file(file, path, unknown, at_end)
    }

    fn of_file(file: File, path: &Path, unknown: &Run, at_end: AtEnd) -> Result<Self, WalError> {
        let fail = |source| WalError::Io { action: "open", path: path.to_owned(), source };
        let length = file.metadata().map_err(fail)?.len();
        let mut header = [0; FILE_HEADER_BYTES];
        let there = read_at(&file, &mut header, 0).map_err(fail)?;
        let mut replay = Replay {
            path: path.to_owned(),
            reader: BufReader::with_capacity(64 << 10, file),
            reader_at: 0,
            offset: FILE_HEADER_BYTES as u64,
            length,
            unknown: Some(Box::new(unknown.clone())),
            run_is_unknown: false,
            waiting: None,
            at_end,
            search: Search::new(length),
            damage: Damage::default(),
            torn: None,
            taken: 0,
            missing: None,
        };
        let (magic, found) = (&header[..MAGIC.len()], u32_at(&header, MAGIC.len()));
        let is_log = there == FILE_HEADER_BYTES && magic == MAGIC;
        if is_log && (WAL_VERSION + 1..=WAL_VERSION + VERSIONS_AHEAD_MAX).contains(&found) {
            return Err(WalError::Newer { path: path.to_owned(), found });
        }
        if !is_log || found > WAL_VERSION {
            let is_blank = header[..there].iter().all(|byte| *byte == 0) || MAGIC.starts_with(&header[..there.min(MAGIC.len())]);
            match replay.search.next_frame(replay.reader.get_ref(), 0).map_err(fail)? {
                Some(at) => replay.pass_over(0, at),
                // A power cut can leave a log that was made and has no byte yet.
                None if is_blank => replay.offset = 0,
                None => return Err(WalError::NotALog { path: path.to_owned() }),
            }
        }
        Ok(replay)
    }

    /// Counts what lies between as damaged.
    fn pass_over(&mut self, from: u64, to: u64) {
        if self.damage.places == 0 {
            self.damage.first = from;
        }
        self.damage.places += 1;
        self.damage.bytes += to - from;
        self.offset = to;
    }

    /// The next frame that can be read.
    fn next_frame(&mut self) -> Result<Option<Frame>, WalError> {
        loop {
            match self.look().map_err(|source| self.unread(source))? {
                Next::Frame(frame) => return Ok(Some(*frame)),
                Next::Senseless(bytes) => self.pass_over(self.offset, self.offset + bytes),
                Next::End | Next::UnderWay => return Ok(None),
                Next::Broken => {
                    let found = self.search.next_frame(self.reader.get_ref(), self.offset + 1);
                    match found.map_err(|source| self.unread(source))? {
                        Some(at) => self.pass_over(self.offset, at),
                        None => {
                            self.torn = Some(self.offset);
                            return Ok(None);
                        }
                    }
                }
            }
        }
    }

    fn unread(&self, source: io::Error) -> WalError {
        WalError::Io { action: "read", path: self.path.clone(), source }
    }

    /// What stands at the offset, which moves on behind a frame.
    fn look(&mut self) -> io::Result<Next> {
        let rest = self.length.saturating_sub(self.offset);
        if rest == 0 {
            return Ok(Next::End);
        }
        let cut = if self.at_end == AtEnd::Living { Next::UnderWay } else { Next::Broken };
        if rest < FRAME_HEADER_BYTES as u64 {
            return Ok(cut);
        }
        // Within what is buffered this costs nothing.
        self.reader.seek_relative(self.offset.cast_signed() - self.reader_at.cast_signed())?;
        self.reader_at = self.offset;
        let mut header = [0; FRAME_HEADER_BYTES];
        self.reader.read_exact(&mut header)?;
        self.reader_at += FRAME_HEADER_BYTES as u64;
        let Header { length, crc, kind } = Header::of(&header);
        if length > FRAME_BYTES_MAX as u64 {
            return Ok(Next::Broken);
        }
        if length > rest - FRAME_HEADER_BYTES as u64 {
            return Ok(cut);
        }
        if !self.search.may_spend(length) {
            return Ok(Next::Broken);
        }
        let mut payload = vec![0; length as usize];
        self.reader.read_exact(&mut payload)?;
        self.reader_at += length;
        if crc32c::crc32c_append(crc32c::crc32c(&[kind]), &payload) != crc {
            self.search.spend(length);
            return Ok(Next::Broken);
        }
        let bytes = FRAME_HEADER_BYTES as u64 + length;
        match decode(kind, payload) {
            // Only the first describes the run.
            Ok(Frame::Run(_)) if self.unknown.is_none() => Ok(Next::Senseless(bytes)),
            Ok(frame) => {
                self.offset += bytes;
                Ok(Next::Frame(Box::new(frame)))
            }
            Err(_) => Ok(Next::Senseless(bytes)),
        }
    }

    /// What is missing, the first last.
    fn missing(&self) -> Vec<Loss> {
        let mut missing = Vec::new();
        if let AtEnd::Killed(since) = self.at_end {
            let is_whole = self.damage.places == 0 && self.torn.is_none() && !self.run_is_unknown;
            let detail = match since {
                Since::SameBoot if is_whole => {
                    "longpole ended before it could seal the recording; every span that it had acknowledged is here; what it refused or dropped is not counted"
                }
                Since::OtherBoot => {
                    "longpole or the machine stopped before the recording was sealed, and nothing was synced; what had reached the disk \
                     is here, and the last of what was acknowledged may be missing"
                }
                _ => "longpole ended before it could seal the recording; what can be read of its log is here",
            };
            missing.push(Loss::new(LossKind::RecorderKilled, 1, detail));
        }
        if let Some(offset) = self.torn {
            let bytes = self.length - offset;
            missing.push(Loss::new(LossKind::WalTorn, 1, format!("the last {bytes} bytes, from offset {offset}, are not a whole frame")));
        }
        let Damage { places, bytes, first } = self.damage;
        if places > 0 {
            let detail = format!("{bytes} bytes of the log, the first of them at offset {first}, are damaged; what stands behind is here");
            missing.push(Loss::new(LossKind::WalDamaged, places, detail));
        }
        if self.search.is_spent() {
            let detail = "the log is so damaged that the search for what stands behind was given up";
            missing.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        if self.run_is_unknown {
            let detail = "the log does not say what was run, where and when; the command and its start are those of the catalog";
            missing.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        if self.taken > 0 {
            let detail = format!("{} bytes of the log were taken away while longpole wrote it; what stood in them is lost", self.taken);
            missing.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        missing
    }
}

impl Replay {
    /// What is said of the run where the log does not say it. Asked for once.
    fn take_unknown(&mut self) -> Option<Frame> {
        self.unknown.take().map(|run| {
            self.run_is_unknown = true;
            Frame::Run(*run)
        })
    }
}

impl Iterator for Replay {
    type Item = Result<Frame, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(frame) = self.waiting.take() {
            return Some(Ok(*frame));
        }
        if self.missing.is_none() {
            match self.next_frame() {
                Ok(Some(frame @ Frame::Run(_))) => {
                    self.unknown = None;
                    return Some(Ok(frame));
                }
                Ok(Some(frame)) => {
                    // What stands first is the run, or damage took it.
                    let Some(unknown) = self.take_unknown() else { return Some(Ok(frame)) };
                    self.waiting = Some(Box::new(frame));
                    return Some(Ok(unknown));
                }
                Ok(None) => {
                    // A recorder that lives has not come to its first frame.
                    let unknown = if self.at_end == AtEnd::Living { None } else { self.take_unknown() };
                    self.missing = Some(self.missing());
                    if let Some(unknown) = unknown {
                        return Some(Ok(unknown));
                    }
                }
                Err(error) => {
                    self.missing = Some(Vec::new());
                    return Some(Err(error));
                }
            }
        }
        self.missing.as_mut()?.pop().map(|loss| Ok(Frame::Loss(loss)))
    }
}

/// Versions of logs that are to come within the life of a program. A larger number is damage.
const VERSIONS_AHEAD_MAX: u32 = 32;

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
