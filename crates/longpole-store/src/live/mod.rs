//! The store of a server: spans are durable when they are acknowledged, can be found at once, and move into segments later.
//!
//! ```text
//! append ─► log of the generation ─► sync ─► acknowledged
//!    └────► head, in memory ─ generation ends ─► segment ─► manifest ─► the log is removed
//!
//! trace, find ◄─ heads, segments: what several of them have of a trace is merged
//! ```
//!
//! ```text
//! <root>/node/<node>/lock                                   locked while a server uses the store
//! <root>/node/<node>/wal/<tenant>/0000000007.wal            a generation that stands in no segment yet
//! <root>/tenants/<tenant>/manifest/<version>.json           which segments there are
//! <root>/tenants/<tenant>/segments/<hour>/<id>/             tables and an index of a generation's spans
//! ```
//!
//! A log is removed after the disk has the segment, its folder and the manifest that names it. A generation whose sync fails ends: nothing that
//! waits for it is acknowledged, and the next request begins another one.

mod candidates;
mod figures;
mod filter;
mod folders;
mod generation;
mod head;
mod kept_parts;
mod live_generation;
mod log_events;
mod manifest;
mod operations;
mod profile_queries;
mod profiles;
mod search;
mod segment;
mod sync_thread;
mod trace;
mod trace_index;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use longpole_model::calendar::{civil_from_days, days_from_civil};
use longpole_model::{Span, Timestamp};

pub use self::figures::LiveFigures;
pub use self::filter::{SpanFilter, TraceCursor};
use self::folders::{Folders, NodeLogs};
use self::generation::Generations;
use self::live_generation::LiveGeneration;
pub use self::log_events::{log_event, set_apart};
use self::manifest::{Manifest, ManifestChange, SegmentEntry};
pub use self::operations::Operations;
use self::profiles::ProfileHead;
pub use self::profiles::{OVERFLOW_LABEL, ProfileFilter, ProfilePart, ProfileStacks, ProfileSums, SeriesList};
pub use self::search::FoundPage;
use self::segment::Segment;
pub use self::sync_thread::Acknowledge;
use self::sync_thread::SyncThread;
pub use self::trace::TraceExtent;
use crate::error::StoreError;
use crate::error_kind::ErrorKind;
use crate::files;
use crate::format::RECORDING_VERSION;
pub use crate::memory::query_memory::{MemoryPool, QueryMemory};
pub use crate::query_limits::{GrowingMemory, LIST_ANSWER_TIMES, QueryLimits};
pub use crate::query_stop::QueryStop;
use crate::store::Store;
pub use crate::trace_summary::TraceSummary;
use crate::wal::{RequestHead, WalError, WalWriter};

/// The tenant of requests that name none.
const TENANT: &str = "default";

/// Folder of what only this machine has.
const NODES: &str = "node";

/// Bytes that are written to find out whether the disk has room again: more than most requests have.
const PROBE_BYTES: usize = 256 << 10;

/// A time of receipt that lies further ahead of the clock is one of a clock that was wrong.
const CLOCK_SLACK_NANOS: i64 = 60_000_000_000;

/// Generations that may wait in memory until they are segments. With more the store takes no spans: the disk does not take segments.
const ENDED_MAX: usize = 8;

/// When a generation ends and becomes a segment, and when a segment goes.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Spans of a generation.
    pub generation_spans: usize,
    /// Values of its profiles.
    pub generation_values: usize,
    /// Bytes of memory that they take.
    pub generation_profile_bytes: u64,
    /// Bytes of its log.
    pub generation_bytes: u64,
    /// Its age.
    pub generation_nanos: u64,
    /// Age of a segment at which it is removed, by when its last span was received; `None` keeps it.
    pub keep_nanos: Option<u64>,
    /// Bytes of all segments together; the oldest go first. `None` sets no limit.
    pub keep_bytes: Option<u64>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        LiveOptions {
            generation_spans: 1 << 18,
            generation_values: 1 << 21,
            generation_profile_bytes: 256 << 20,
            generation_bytes: 256 << 20,
            generation_nanos: 600_000_000_000,
            keep_nanos: None,
            keep_bytes: None,
        }
    }
}

/// The spans of one request, as they were received and as they were decoded.
#[derive(Debug)]
pub struct Request<'a> {
    /// What the log has of it beside its body.
    pub head: RequestHead,
    /// An OTLP trace request.
    pub body: &'a [u8],
    /// Its spans.
    pub spans: &'a [Span],
}

/// Where something was appended: the logs of these generations have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    first: u64,
    last: u64,
}

impl Appended {
    /// Both.
    #[must_use]
    pub fn and(self, other: Appended) -> Appended {
        Appended { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    fn has(self, generation: u64) -> bool {
        (self.first..=self.last).contains(&generation)
    }
}

/// How long a segment that could not be read is left out of all answers. Then it is tried again: a disk may be back.
const DAMAGED_FOR: Duration = Duration::from_secs(60);

/// Something that is kept beside the segments, and within the same limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptBeside {
    /// When it came.
    pub received: Timestamp,
    /// Its bytes on disk.
    pub bytes: u64,
}

/// What retention removes, by its place in its list.
#[derive(Clone, Copy)]
enum Kept {
    Segment(usize),
    Beside(usize),
}

/// Decodes the body of a request of the log.
pub type DecodeRequest<'a> = dyn FnMut(&RequestHead, &[u8]) -> Vec<Span> + 'a;

/// The store of a server. Clones share it.
#[derive(Debug, Clone)]
pub struct LiveStore {
    shared: Arc<SharedStore>,
    /// What bounds the queries by this clone.
    query: QueryLimits,
}

#[derive(Debug)]
struct SharedStore {
    folders: Folders,
    options: LiveOptions,
    /// Locked as long as this lives: the folders of all nodes.
    _locks: Vec<File>,
    state: RwLock<LiveState>,
    sync_thread: SyncThread,
    /// Held by who makes a segment or removes some: folders of segments that the list does not name any more.
    maintenance: Mutex<Vec<PathBuf>>,
    /// Segments that cannot be read, why, and when that was found.
    damaged: Mutex<BTreeMap<String, (String, Instant)>>,
    /// What was listed last: long lists take seconds to read.
    listed: Mutex<ListedOperations>,
}

/// The operations of segments together.
#[derive(Debug, Default)]
struct ListedOperations {
    /// The ids of those segments.
    segments: HashSet<String>,
    operations: Operations,
}

impl ListedOperations {
    /// Those of these segments whose operations are missing. If the list has others, it begins anew.
    fn not_yet<'a>(&mut self, segments: &'a [Arc<Segment>]) -> Vec<&'a Arc<Segment>> {
        let known = segments.iter().filter(|segment| self.segments.contains(&segment.entry.id)).count();
        if known < self.segments.len() {
            *self = ListedOperations::default();
        }
        segments.iter().filter(|segment| !self.segments.contains(&segment.entry.id)).collect()
    }

    fn add(&mut self, segment: &str, operations: &Operations) {
        self.operations.add_all(operations);
        self.segments.insert(segment.to_owned());
    }
}

/// What is where. A request holds it for reading while it is appended and published, so no span can stand in one generation's log and in
/// another one's head.
#[derive(Debug)]
struct LiveState {
    current: Arc<LiveGeneration>,
    /// Generations that have ended and are no segments yet, the oldest first.
    ended: Vec<Arc<LiveGeneration>>,
    segments: Vec<Arc<Segment>>,
    manifest: Manifest,
}

/// A thread that panicked while it held a lock left the values whole: they are changed by plain stores only.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(value: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    value.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(value: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    value.write().unwrap_or_else(PoisonError::into_inner)
}

impl LiveStore {
    /// Opens the part of a store that a server keeps, and reads the logs that an earlier server left. What it could not read of them comes
    /// with it, as lines for people.
    ///
    /// # Errors
    ///
    /// [`StoreError::Served`] if another server uses it; [`StoreError::Io`], [`StoreError::Wal`] or [`StoreError::Corrupt`] if a file or folder
    /// cannot be made or read.
    pub fn open(
        store: &Store,
        options: LiveOptions,
        now: Timestamp,
        decode: &mut DecodeRequest<'_>,
    ) -> Result<(LiveStore, Vec<String>), StoreError> {
        let (folders, locks) = Folders::open(store.root())?;
        let mut problems = folders.strays()?;
        let on_disk = folders.segment_folders()?;
        let manifest = folders.list(&on_disk, &mut problems)?;
        let segments = manifest.entries.iter().map(|entry| Arc::new(folders.segment(entry))).collect();
        let generations = Generations::new(&folders.wal);
        let first = manifest.watermarks.get(&folders.node).copied().unwrap_or(0);
        let numbers = generations.numbers()?;
        let mut left = LiveGeneration { profiles: RwLock::new(ProfileHead::unbounded()), ..LiveGeneration::ended(first, now) };
        let own = NodeLogs { node: folders.node.clone(), wal: folders.wal.clone() };
        let last_read = left.replay_all(&own, first, decode, &mut problems)?;
        for other in &folders.others {
            let first = manifest.watermarks.get(&other.node).copied().unwrap_or(0);
            if let Some(last) = left.replay_all(other, first, decode, &mut problems)? {
                left.taken_over.push((other.clone(), last));
            }
        }
        let last_segment = on_disk.iter().filter_map(|(_, folder)| {
            let (node, number) = SegmentEntry::made_by(folder.file_name()?.to_str()?)?;
            (node == folders.node).then_some(number)
        });
        // Above each log and each segment of this node: a number is never used twice.
        let last = numbers.last().copied().max(last_segment.max());
        let mut next = last.map_or(first, |last| first.max(last.saturating_add(1)));
        let mut ended = Vec::new();
        if !left.is_empty() {
            // What only other nodes had becomes a segment of this one all the same.
            left.number = last_read.unwrap_or(next);
            next = next.max(left.number.saturating_add(1));
            ended.push(Arc::new(left));
        } else {
            last_read.map_or(Ok(()), |last| generations.remove_until(last))?;
            left.taken_over.iter().try_for_each(|(other, last)| Generations::new(&other.wal).remove_until(*last))?;
        }
        let current = Arc::new(LiveGeneration::begin(&folders, next, now)?);
        let state = RwLock::new(LiveState { current, ended, segments, manifest });
        let sync_thread = SyncThread::default();
        let shared = Arc::new(SharedStore {
            folders,
            options,
            _locks: locks,
            state,
            sync_thread,
            maintenance: Mutex::default(),
            damaged: Mutex::default(),
            listed: Mutex::default(),
        });
        SyncThread::start(&shared)?;
        Ok((LiveStore { shared, query: QueryLimits::default() }, problems))
    }

    /// The same store, whose queries end with [`StoreError::Stopped`] soon after they are stopped, and take no more memory than they may.
    #[must_use]
    pub fn for_query(&self, query: QueryLimits) -> LiveStore {
        LiveStore { shared: Arc::clone(&self.shared), query }
    }

    /// What bounds its queries.
    pub fn limits(&self) -> &QueryLimits {
        &self.query
    }

    /// Appends a request to the log and lets its spans be found. It is not durable yet: [`when_durable`](Self::when_durable).
    ///
    /// # Errors
    ///
    /// [`WalError`] if it could not be appended. Then none of its spans is found.
    pub fn append(&self, request: &Request<'_>) -> Result<Appended, WalError> {
        self.append_by(request.head.received, |generation| generation.append(request))
    }

    fn append_by(&self, received: Timestamp, append: impl Fn(&LiveGeneration) -> Result<(), WalError>) -> Result<Appended, WalError> {
        loop {
            let state = read(&self.shared.state);
            if state.ended.len() > ENDED_MAX {
                let source = io::Error::other(format!("{ENDED_MAX} generations wait to be written as segments"));
                return Err(WalError::Io { action: "append to", path: self.shared.folders.wal.clone(), source });
            }
            let generation = Arc::clone(&state.current);
            match append(&generation) {
                // The sync thread begins another generation in a moment, or this request does.
                Err(WalError::NotSynced { .. } | WalError::Broken { .. }) => {
                    drop(state);
                    self.shared.begin_after(generation.number, received)?;
                }
                appended => {
                    let is_full = generation.profile_bytes.load(Ordering::Relaxed) >= self.shared.options.generation_profile_bytes;
                    drop(state);
                    if appended.is_ok() && is_full {
                        // Where that fails, the maintenance tries it again.
                        let _ = self.shared.begin_after(generation.number, received);
                    }
                    return appended.map(|()| Appended { first: generation.number, last: generation.number });
                }
            }
        }
    }

    /// Calls back when the disk has what was appended there, or cannot have it.
    pub fn when_durable(&self, appended: Appended, acknowledge: Acknowledge) {
        self.shared.sync_thread.wait(appended, acknowledge);
    }

    /// Services with their operations and the kinds of their spans.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment cannot be read.
    pub fn operations(&self) -> Result<Operations, StoreError> {
        let (generations, segments) = self.shared.all();
        let mut operations = {
            let mut listed = lock(&self.shared.listed);
            for segment in listed.not_yet(&segments) {
                let of_segment = self.query.briefly(|| segment.operations(&self.query));
                listed.add(&segment.entry.id, &*self.shared.of_segment(segment, of_segment)?);
            }
            listed.operations.clone()
        };
        for generation in generations {
            read(&generation.head).operations(&mut operations);
        }
        self.query.take(LIST_ANSWER_TIMES * operations.bytes() as u64)?;
        Ok(operations)
    }

    /// Ends the generation if it is due, or if it must, and makes segments of those that have ended. Then removes the segments that are too old
    /// or too many.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a segment or the manifest cannot be written. The log stays, and the next call tries again.
    pub fn maintain(&self, now: Timestamp, must_end: bool) -> Result<(), StoreError> {
        self.maintain_at(now, now, must_end, &[]).map(drop)
    }

    /// The same, where segments are as old as they are at another time: one that no step of the wall clock has moved. What is kept beside them
    /// counts with them; returned are the places of what of it is too old or too much.
    ///
    /// # Errors
    ///
    /// As of [`maintain`](Self::maintain).
    pub fn maintain_at(&self, now: Timestamp, age_at: Timestamp, must_end: bool, beside: &[KeptBeside]) -> Result<Vec<usize>, StoreError> {
        let shared = &self.shared;
        let mut removed = lock(&shared.maintenance);
        shared.sync_list()?;
        let due = {
            let state = read(&shared.state);
            let (spans, values) = state.current.lens();
            // After a step of the clock back its age is unknown: it ends, and the next one begins by the new time.
            let age = u64::try_from(now.nanos_since(state.current.begun)).unwrap_or(u64::MAX);
            let bytes = state.current.wal.as_ref().map_or(0, WalWriter::bytes);
            let profile_bytes = state.current.profile_bytes.load(Ordering::Relaxed);
            let options = &shared.options;
            let is_full = spans >= options.generation_spans
                || values >= options.generation_values
                || profile_bytes >= options.generation_profile_bytes
                || bytes >= options.generation_bytes
                || state.current.has_no_room.load(Ordering::Relaxed);
            let is_due = is_full || age >= options.generation_nanos;
            (spans + values > 0 && (is_due || must_end)).then_some(state.current.number)
        };
        if let Some(number) = due {
            shared.begin_after(number, now)?;
        }
        // No lock is held while a segment is made.
        let oldest = || read(&shared.state).ended.first().cloned();
        while let Some(generation) = oldest() {
            shared.make_segment(&generation)?;
        }
        shared.remove_old((now, age_at), &mut removed, beside)
    }

    /// Why segments are left out of all answers, a line for each that was found to be damaged.
    pub fn damaged(&self) -> Vec<String> {
        lock(&self.shared.damaged).iter().map(|(id, (reason, _))| format!("segment {id} is left out: failed to {reason}")).collect()
    }

    /// Whether the disk takes what is written to it, as the log would.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if it does not.
    pub fn probe_disk(&self) -> Result<(), StoreError> {
        let path = self.shared.folders.wal.join("probe");
        let probe = || -> io::Result<()> {
            files::remove_all(&path)?;
            files::write_new(&path, &[0; PROBE_BYTES])?;
            files::open(&path)?.sync_all()
        };
        let probed = probe();
        // The next probe tries again.
        let _ = files::remove_all(&path);
        probed.map_err(StoreError::io("write", path))
    }

    /// Bytes of memory that the spans and profiles take which stand in no segment yet, about.
    pub fn memory_bytes(&self) -> u64 {
        let state = read(&self.shared.state);
        let of_profiles = |generation: &LiveGeneration| generation.profile_bytes.load(Ordering::Relaxed);
        let bytes = |generation: &LiveGeneration| read(&generation.head).memory_bytes() + of_profiles(generation);
        state.ended.iter().chain([&state.current]).map(|generation| bytes(generation)).sum()
    }

    /// Its figures.
    pub fn figures(&self) -> LiveFigures {
        let state = read(&self.shared.state);
        let mut figures = LiveFigures { segment_memory_bytes: self.shared.folders.parts.bytes(), ..LiveFigures::default() };
        for generation in state.ended.iter().chain([&state.current]) {
            let head = read(&generation.head);
            figures.head_spans += head.len() as u64;
            figures.duplicates += head.duplicates();
            figures.conflicts += head.conflicts();
            // A push of profiles may hold them for long.
            drop(head);
            let profiles = read(&generation.profiles);
            figures.head_values += profiles.len() as u64;
            figures.overflown_values += profiles.overflown();
            figures.log_bytes += generation.wal.as_ref().map_or(0, WalWriter::bytes);
        }
        for entry in &state.manifest.entries {
            figures.segments += 1;
            figures.segment_spans = figures.segment_spans.saturating_add(entry.spans);
            figures.segment_values = figures.segment_values.saturating_add(entry.profile_values);
            figures.segment_bytes = figures.segment_bytes.saturating_add(entry.bytes);
        }
        figures
    }
}

impl SharedStore {
    /// All generations and segments at this moment: what moves from one to the other meanwhile is found in one of them at least.
    fn all(&self) -> (Vec<Arc<LiveGeneration>>, Vec<Arc<Segment>>) {
        let state = read(&self.state);
        let damaged = lock(&self.damaged);
        let is_left_out = |id: &str| damaged.get(id).is_some_and(|(_, found)| found.elapsed() < DAMAGED_FOR);
        let whole: Vec<_> = state.segments.iter().filter(|segment| !is_left_out(&segment.entry.id)).cloned().collect();
        if self.folders.parts.is_full() {
            segment::trim(&self.folders.parts, &whole);
        }
        (state.ended.iter().chain([&state.current]).cloned().collect(), whole)
    }

    /// What a segment answers. A damaged one has no answer for a minute: the others must not be out of reach because of it.
    fn of_segment<T: Default>(&self, segment: &Segment, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let is_gone = |error: &StoreError| matches!(error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
        match answer {
            // Retention may have removed it meanwhile.
            Err(error) if is_gone(&error) && !read(&self.state).segments.iter().any(|known| known.entry.id == segment.entry.id) => {
                Ok(T::default())
            }
            Err(error) if error.kind() == ErrorKind::Corrupt || error.is_of_file() => {
                segment.forget_parts();
                lock(&self.damaged).insert(segment.entry.id.clone(), (error.to_string(), Instant::now()));
                Ok(T::default())
            }
            Ok(answer) => {
                let mut damaged = lock(&self.damaged);
                if !damaged.is_empty() {
                    damaged.remove(&segment.entry.id);
                }
                Ok(answer)
            }
            error => error,
        }
    }

    /// Ends the generation of this number, unless another did, and begins the next one.
    fn begin_after(&self, number: u64, now: Timestamp) -> Result<(), WalError> {
        let mut state = write(&self.state);
        if state.current.number != number {
            return Ok(());
        }
        let next = Arc::new(LiveGeneration::begin(&self.folders, number + 1, now)?);
        let ended = std::mem::replace(&mut state.current, next);
        if !ended.is_empty() {
            state.ended.push(ended);
        }
        Ok(())
    }

    /// Makes a segment of a generation that has ended, and removes its logs.
    fn make_segment(&self, generation: &Arc<LiveGeneration>) -> Result<(), StoreError> {
        // Appends hold the state, and this generation has left it.
        let (head, profiles) = (read(&generation.head), read(&generation.profiles));
        let received = lock(&generation.received).unwrap_or([generation.begun; 2]);
        let id = format!("0-{}-{:010}", self.folders.node, generation.number);
        let hour = hour_of(received[0]);
        let folder = self.folders.segments.join(&hour).join(&id);
        files::make_dirs(&self.folders.segments, &[hour.as_ref()]).map_err(StoreError::io("create", &folder))?;
        // An attempt that was interrupted left it.
        files::remove_all(&folder).map_err(StoreError::io("remove", &folder))?;
        let written = segment::write(&folder, head.spans(), &profiles)?;
        files::sync_dir(&self.folders.segments.join(&hour)).map_err(StoreError::io("sync", &folder))?;
        files::sync_dir(&self.folders.segments).map_err(StoreError::io("sync", &folder))?;
        let services = head.services();
        let entry = SegmentEntry {
            id,
            hour,
            spans: written.spans,
            traces: written.traces,
            bytes: written.bytes,
            start: written.start,
            end: written.end,
            received,
            services: if services.len() > manifest::SERVICES_MAX { Vec::new() } else { services.iter().map(ToString::to_string).collect() },
            schema: RECORDING_VERSION,
            profile_values: written.profile_values,
            profile_times: written.profile_times,
        };
        drop((head, profiles));
        let own = [(self.folders.node.clone(), generation.number + 1)];
        let taken_over = generation.taken_over.iter().map(|(other, last)| (other.node.clone(), last + 1));
        let change =
            ManifestChange { add: vec![entry.clone()], remove: Vec::new(), watermarks: own.into_iter().chain(taken_over).collect() };
        self.commit(&change, |state| {
            state.segments.push(Arc::new(self.folders.segment(&entry)));
            state.ended.retain(|ended| !Arc::ptr_eq(ended, generation));
        })?;
        self.remove_logs()
    }

    /// Removes the logs whose spans stand in segments that the disk has.
    fn remove_logs(&self) -> Result<(), StoreError> {
        let watermarks = read(&self.state).manifest.watermarks.clone();
        let own = (&self.folders.node, &self.folders.wal);
        for (node, wal) in self.folders.others.iter().map(|other| (&other.node, &other.wal)).chain([own]) {
            if let Some(last) = watermarks.get(node).and_then(|next| next.checked_sub(1)) {
                Generations::new(wal).remove_until(last)?;
            }
        }
        Ok(())
    }

    /// Writes the next version of the manifest, and changes the state as it says. After an error of the sync the state has changed: what the
    /// change made superfluous must stay until a later version is on the disk.
    fn commit(&self, change: &ManifestChange, apply: impl FnOnce(&mut LiveState)) -> Result<(), StoreError> {
        let manifest = read(&self.state).manifest.clone();
        let (next, synced) = manifest.commit(&self.folders.manifest, change)?;
        let mut state = write(&self.state);
        state.manifest = next;
        apply(&mut state);
        synced
    }

    /// Brings the list to the disk if the last attempt failed.
    fn sync_list(&self) -> Result<(), StoreError> {
        if !read(&self.state).manifest.unsynced {
            return Ok(());
        }
        self.commit(&ManifestChange::default(), |_| {})?;
        self.remove_logs()
    }

    /// Removes the segments that are too old, and the oldest while they and what is kept beside them take too much. Returns what of the latter is
    /// to go as well.
    fn remove_old(
        &self,
        (now, age_at): (Timestamp, Timestamp),
        removed: &mut Vec<PathBuf>,
        beside: &[KeptBeside],
    ) -> Result<Vec<usize>, StoreError> {
        let LiveOptions { keep_nanos, keep_bytes, .. } = self.options;
        let entries = read(&self.state).manifest.entries.clone();
        let segments = entries.iter().enumerate().map(|(at, entry)| (entry.received[1], entry.bytes, Kept::Segment(at)));
        let others = beside.iter().enumerate().map(|(at, other)| (other.received, other.bytes, Kept::Beside(at)));
        let mut kept: Vec<(Timestamp, u64, Kept)> = segments.chain(others).collect();
        // What was received in the future came while the clock was ahead, so before everything that came since.
        let latest = Timestamp(now.max(age_at).unix_nanos().saturating_add(CLOCK_SLACK_NANOS));
        kept.sort_by_key(|(received, ..)| (*received <= latest, *received));
        let mut bytes = kept.iter().fold(0_u64, |sum, (_, bytes, _)| sum.saturating_add(*bytes));
        let (mut gone, mut gone_beside) = (Vec::new(), Vec::new());
        for (received, own_bytes, what) in kept {
            let age = age_at.nanos_since(received).max(0).cast_unsigned();
            if keep_nanos.is_some_and(|keep| age > keep) || keep_bytes.is_some_and(|keep| bytes > keep) {
                bytes = bytes.saturating_sub(own_bytes);
                match what {
                    Kept::Segment(at) => gone.push(entries[at].clone()),
                    Kept::Beside(at) => gone_beside.push(at),
                }
            }
        }
        if !gone.is_empty() {
            let ids: Vec<String> = gone.iter().map(|entry| entry.id.clone()).collect();
            let change = ManifestChange { remove: ids.clone(), ..ManifestChange::default() };
            self.commit(&change, |state| {
                state.segments.retain(|segment| !ids.contains(&segment.entry.id));
                removed.extend(gone.iter().map(|entry| self.folders.segments.join(entry.folder())));
            })?;
        }
        while let Some(folder) = removed.last() {
            // Queries under way have its files open.
            files::remove_all(folder).map_err(StoreError::io("remove", folder))?;
            removed.pop();
        }
        Ok(gone_beside)
    }
}

const HOUR_NANOS: i64 = 3_600_000_000_000;

/// The hour of a time, in UTC: `2026112812`.
fn hour_of(time: Timestamp) -> String {
    let hours = time.unix_nanos().div_euclid(HOUR_NANOS);
    let (year, month, day) = civil_from_days(hours.div_euclid(24));
    format!("{year:04}{month:02}{day:02}{:02}", hours.rem_euclid(24))
}

/// When an hour begins and ends; the other way round.
fn range_of_hour(hour: &str) -> Option<[Timestamp; 2]> {
    let number = |from: usize, to: usize| hour.get(from..to)?.parse::<i64>().ok();
    let hours = days_from_civil(number(0, 4)?, number(4, 6)?, number(6, 8)?) * 24 + number(8, 10)?;
    let begins = hours.checked_mul(HOUR_NANOS)?;
    Some([Timestamp(begins), Timestamp(begins.checked_add(HOUR_NANOS)?)])
}
