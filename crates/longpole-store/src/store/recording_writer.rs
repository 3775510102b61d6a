//! A recording under way.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use longpole_model::{Loss, LossKind, Recording, Run};

use super::catalog::RowState;
use super::lock_file::EndReason;
use super::summary_row::SummaryRow;
use super::trace_ids::TraceIds;
use super::{Store, seal};
use crate::compact_spans::CompactRecording;
use crate::error::StoreError;
use crate::files;
use crate::layout::{LOCK, RESERVE, wal_directory};
use crate::name::RecordingName;
use crate::wal::{Replay, WalWriter};

/// The longest log that a run leaves: a longer one takes more space than syncing takes time.
const LEFT_BYTES_MAX: u64 = 64 << 20;

/// A recording under way: held by its recorder.
#[derive(Debug)]
pub struct RecordingWriter {
    pub(super) store: Store,
    pub(super) name: RecordingName,
    pub(super) directory: PathBuf,
    pub(super) wal: WalWriter,
    pub(super) run: Run,
    /// Locked as long as this lives; the kernel lets go when the process dies, however it dies.
    pub(super) lock: File,
}

impl RecordingWriter {
    /// Its name.
    pub fn name(&self) -> RecordingName {
        self.name
    }

    /// The store it is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its log.
    pub fn wal(&self) -> &WalWriter {
        &self.wal
    }

    /// Gives the space back that was kept for the last words of the log, which follow. For a disk that is full.
    pub fn release_reserve(&self) {
        // It is gone, or its space cannot be freed: the append that follows shows which.
        let _ = fs::remove_file(self.directory.join(RESERVE));
    }

    /// What the log holds so far.
    ///
    /// # Errors
    ///
    /// [`StoreError::Wal`] if the log cannot be read.
    pub fn replay(&self) -> Result<Replay, StoreError> {
        Ok(self.wal.replay(&self.run)?)
    }

    /// What of its files was taken away while it was made. What was in the log is read all the same where that was only removed.
    pub fn taken(&self) -> Vec<Loss> {
        let mut taken = Vec::new();
        if !self.wal.is_there() {
            let detail = format!(
                "the log {} was removed while longpole wrote it; longpole recovered it from its open file",
                self.wal.path().display()
            );
            taken.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        let lock = self.directory.join(LOCK);
        if !files::is_at(&self.lock, &lock) {
            let detail = format!(
                "the lock {} was removed while longpole held it; another longpole may have treated the recorder as dead",
                lock.display()
            );
            taken.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        if let Err(error) = self.store.catalog.check_is_there() {
            taken.push(Loss::new(LossKind::NotWritten, 1, format!("the row in the list of recordings: failed to {error}")));
        }
        taken
    }

    /// Whether its log can be read by others.
    pub fn has_log(&self) -> bool {
        self.wal.is_there()
    }

    /// Bytes of its log.
    pub fn log_bytes(&self) -> u64 {
        let files = fs::read_dir(wal_directory(self.directory())).into_iter().flatten().flatten();
        files.filter_map(|file| Some(file.metadata().ok()?.len())).fold(0, u64::saturating_add)
    }

    /// Says that the recorder ends and could not seal, so that nobody takes it for killed. There is nobody to tell where that fails.
    pub fn note_ended(&self, error: &dyn std::error::Error) {
        let _ = (&self.lock).write_all(EndReason::of(error).lines().as_bytes());
    }

    /// Seals: writes the segments and tells the catalog. Nothing can be appended afterwards. A log that is not long stays, for a run does not
    /// wait for the disk: a later longpole removes it, when the disk has the segments.
    ///
    /// After an error the log is still there, and the recording can be sealed later by whoever opens it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write) and [`seal`](Self::seal).
    pub fn write_segments(&self, recording: &Recording, summary: &SummaryRow) -> Result<(), StoreError> {
        self.write(recording)?;
        self.publish(summary, &TraceIds::of(recording))?;
        self.store.settle_before(self.name);
        if self.log_bytes() <= LEFT_BYTES_MAX { Ok(()) } else { self.store.settle(&self.directory) }
    }

    /// The first half of sealing: writes the segments, where nobody looks yet. From then on the recording is not needed here.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] or [`StoreError::Segment`] if a file cannot be written, [`StoreError::Inconsistent`] if the values contradict
    /// each other.
    pub fn write(&self, recording: &Recording) -> Result<(), StoreError> {
        self.release_reserve();
        seal::write_partial(&self.directory, recording)
    }

    /// The same for a recording whose spans are compact: each is taken out as it is written.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_compact(&self, recording: &CompactRecording) -> Result<(), StoreError> {
        self.release_reserve();
        seal::write_partial_compact(&self.directory, recording)
    }

    /// The second half, which needs the first: tells the catalog, waits until the disk has all of it, and removes the log. For what was not
    /// recorded, so that no log could give it back.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the segments cannot get their place, [`StoreError::Catalog`] if the row cannot be changed,
    /// [`StoreError::Taken`] or [`StoreError::NotFound`] if the catalog or its row was removed meanwhile.
    pub fn seal(&self, summary: &SummaryRow, traces: &TraceIds) -> Result<(), StoreError> {
        self.publish(summary, traces)?;
        self.store.settle(&self.directory)
    }

    fn publish(&self, summary: &SummaryRow, traces: &TraceIds) -> Result<(), StoreError> {
        // In a file that nobody finds any more it would be sealed, and lost.
        self.store.catalog.check_is_there()?;
        seal::publish(&self.directory)?;
        self.store.catalog.seal(self.name, RowState::Sealed, summary, traces)
    }

    /// Takes it back, as if it had never begun; its number is not given again. For a command that could not be started.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] or [`StoreError::Catalog`] if its files or its row cannot be removed.
    pub fn discard(self) -> Result<(), StoreError> {
        seal::remove_directory(&self.directory)?;
        self.store.catalog.remove(self.name)?;
        drop(self.lock);
        Ok(())
    }
}
