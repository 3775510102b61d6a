//! A generation of a live store: its log, and what is in it.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use longpole_model::profile::ProfileBatch;
use longpole_model::{LossKind, Span, Timestamp};

use super::folders::{Folders, NodeLogs};
use super::generation::{self, Generations};
use super::head::Head;
use super::profiles::ProfileHead;
use super::{DecodeRequest, Request, TENANT, lock, read, write};
use crate::error::StoreError;
use crate::error_kind::ErrorKind;
use crate::files;
use crate::wal::{Frame, Generation, Replay, WalError, WalWriter};

/// A log, and the spans and profiles in it.
#[derive(Debug)]
pub(super) struct LiveGeneration {
    pub(super) number: u64,
    pub(super) begun: Timestamp,
    /// Logs of other nodes that it holds as well, up to these numbers.
    pub(super) taken_over: Vec<(NodeLogs, u64)>,
    /// `None` for what was left by an earlier server: its logs are read, and no one writes to them.
    pub(super) wal: Option<WalWriter>,
    pub(super) head: RwLock<Head>,
    pub(super) profiles: RwLock<ProfileHead>,
    /// Memory that they take, for whoever must not wait for a push.
    pub(super) profile_bytes: AtomicU64,
    /// Whether they had no room for the series of a request: it comes again when the generation has ended.
    pub(super) has_no_room: AtomicBool,
    /// When its first and last requests came.
    pub(super) received: Mutex<Option<[Timestamp; 2]>>,
}

impl LiveGeneration {
    pub(super) fn begin(folders: &Folders, number: u64, now: Timestamp) -> Result<LiveGeneration, WalError> {
        let generation = Generation { node: folders.node.clone(), tenant: TENANT.to_owned(), number, begun: now };
        let path = folders.wal.join(generation::file_name(number));
        let wal = WalWriter::create_generation(&path, &generation).inspect_err(|_| {
            // The disk is full, say: its number is wanted again.
            let _ = fs::remove_file(&path);
        })?;
        files::sync_dir(&folders.wal).map_err(|source| WalError::Io { action: "sync the folder of", path, source })?;
        Ok(LiveGeneration { wal: Some(wal), ..LiveGeneration::ended(number, now) })
    }

    /// One that an earlier server began.
    pub(super) fn ended(number: u64, now: Timestamp) -> LiveGeneration {
        LiveGeneration {
            number,
            begun: now,
            taken_over: Vec::new(),
            wal: None,
            head: RwLock::default(),
            profiles: RwLock::default(),
            profile_bytes: AtomicU64::new(0),
            has_no_room: AtomicBool::new(false),
            received: Mutex::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lens() == (0, 0)
    }

    /// How many spans and values it has. No lock waits for the other.
    pub(super) fn lens(&self) -> (usize, usize) {
        let spans = read(&self.head).len();
        let values = read(&self.profiles).len();
        (spans, values)
    }

    pub(super) fn append(&self, request: &Request<'_>) -> Result<(), WalError> {
        if let Some(wal) = &self.wal {
            wal.append_spans(&request.head, request.body)?;
        }
        self.publish(request.spans, request.head.received);
        Ok(())
    }

    fn publish(&self, spans: &[Span], received: Timestamp) {
        let mut head = write(&self.head);
        spans.iter().for_each(|span| head.push(span));
        drop(head);
        self.note_received(received);
    }

    pub(super) fn append_profiles(&self, received: Timestamp, batch: &ProfileBatch, encoded: &[u8]) -> Result<(), WalError> {
        if let Some(wal) = &self.wal {
            if !read(&self.profiles).has_room(batch) {
                self.has_no_room.store(true, Ordering::Relaxed);
                return Err(WalError::SeriesFull { path: wal.path().to_owned() });
            }
            wal.append_profiles(received, encoded)?;
        }
        self.publish_profiles(batch, received);
        Ok(())
    }

    fn publish_profiles(&self, batch: &ProfileBatch, received: Timestamp) {
        let mut profiles = write(&self.profiles);
        profiles.push(batch);
        self.profile_bytes.store(profiles.memory_bytes(), Ordering::Relaxed);
        drop(profiles);
        self.note_received(received);
    }

    fn note_received(&self, received: Timestamp) {
        let mut times = lock(&self.received);
        let [first, last] = times.unwrap_or([received; 2]);
        *times = Some([first.min(received), last.max(received)]);
    }

    /// Takes what the logs of a node hold from this number on, and removes those before it. Returns the number of the last.
    pub(super) fn replay_all(
        &self,
        logs: &NodeLogs,
        first: u64,
        decode: &mut DecodeRequest<'_>,
        problems: &mut Vec<String>,
    ) -> Result<Option<u64>, StoreError> {
        let generations = Generations::new(&logs.wal);
        let mut last = None;
        for number in generations.numbers()? {
            if number < first {
                // Its spans stand in a segment: the server ended before it removed the log.
                generations.remove(number)?;
                continue;
            }
            last = Some(number);
            let path = logs.wal.join(generation::file_name(number));
            let damaged = path.with_extension("damaged");
            match self.replay(logs, number, decode, problems) {
                Ok(false) => {}
                // The file stays for whoever can read more of it. Where that fails, the line says at least what is wrong.
                Ok(true) => {
                    let _ = fs::hard_link(&path, &damaged);
                }
                Err(StoreError::Wal(error)) if error.kind() == ErrorKind::Corrupt => {
                    problems.push(format!("{} stays as {}: {error}", path.display(), damaged.display()));
                    fs::rename(&path, &damaged).map_err(StoreError::io("rename", &path))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(last)
    }

    /// Takes what a log holds. Returns whether it is damaged, beyond a last request that was never acknowledged.
    fn replay(&self, logs: &NodeLogs, number: u64, decode: &mut DecodeRequest<'_>, problems: &mut Vec<String>) -> Result<bool, StoreError> {
        let mut is_damaged = false;
        let path = logs.wal.join(generation::file_name(number));
        let unknown = Generation { node: logs.node.clone(), tenant: TENANT.to_owned(), number, begun: self.begun };
        for frame in Replay::of_generation(&path, unknown)? {
            match frame? {
                Frame::Spans { head, body } => self.publish(&decode(&head, &body), head.received),
                Frame::Profiles { received, batch } => self.publish_profiles(&batch, received),
                Frame::Loss(loss) => {
                    is_damaged |= loss.kind == LossKind::WalDamaged;
                    problems.push(format!("{}: {}", path.display(), loss.detail));
                }
                _ => {}
            }
        }
        Ok(is_damaged)
    }
}
