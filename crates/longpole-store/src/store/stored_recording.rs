//! A recording that is in the store.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

use longpole_model::Recording;

use super::catalog::RowState;
use super::lock_file::EndReason;
use super::summary_row::SummaryRow;
use super::trace_ids::TraceIds;
use super::{Store, lock_file, seal};
use crate::archive;
use crate::error::StoreError;
use crate::format_file;
use crate::layout::{self, LOCK, RESERVE};
use crate::memory::budget::limit_of_file;
use crate::name::RecordingName;
use crate::query_limits::QueryLimits;
use crate::segment::recording;
use crate::wal::{AtEnd, Replay, Since};

/// Where a recording is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingState {
    /// Its recorder lives. It can be replayed as far as it is.
    Recording,
    /// Its recorder died before it sealed. It can be replayed and sealed.
    Killed,
    /// Its recorder ended and could not seal, because the disk was full for one. It can be replayed and sealed.
    Ended,
    /// It can be read.
    Sealed {
        /// Whether its recorder had died before it sealed.
        recorder_killed: bool,
    },
}

impl RecordingState {
    /// The word SQL, JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordingState::Recording => "recording",
            RecordingState::Ended => "ended",
            RecordingState::Killed | RecordingState::Sealed { recorder_killed: true } => "killed",
            RecordingState::Sealed { recorder_killed: false } => "sealed",
        }
    }
}

/// A recording in the store, as it was when it was looked up.
#[derive(Debug, Clone)]
pub struct StoredRecording {
    pub(super) store: Store,
    /// Its name.
    pub name: RecordingName,
    /// Where it is in its life.
    pub state: RecordingState,
    /// What `ls` shows of it.
    pub summary: SummaryRow,
    /// The names people gave it; only [`Store::list`] says them.
    pub tags: Vec<String>,
    /// Its directory.
    pub directory: PathBuf,
}

/// Which directory it is, whatever its name: that of a recording which took the place of another is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryIdentity {
    device: u64,
    inode: u64,
    /// When it was made, where the file system knows it: numbers of inodes come again.
    made: Option<SystemTime>,
}

/// What stat(2) counts blocks in.
const BLOCK_BYTES: u64 = 512;

impl StoredRecording {
    /// Which directory its files are in.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the directory cannot be read.
    pub fn directory_identity(&self) -> Result<DirectoryIdentity, StoreError> {
        let data = fs::symlink_metadata(&self.directory).map_err(StoreError::io("examine", &self.directory))?;
        Ok(DirectoryIdentity { device: data.dev(), inode: data.ino(), made: data.created().ok() })
    }

    /// The frames of its log, in the order they were appended. For a recorder that died, a loss that says so comes last.
    ///
    /// # Errors
    ///
    /// [`StoreError::Newer`] or [`StoreError::Corrupt`] if longpole does not know the format of the log, [`StoreError::Wal`] if the log
    /// cannot be read.
    pub fn replay(&self) -> Result<Replay, StoreError> {
        format_file::check_of_log(&self.directory)?;
        let at_end = match self.state {
            RecordingState::Recording => AtEnd::Living,
            RecordingState::Killed => AtEnd::Killed(lock_file::since(&self.directory.join(LOCK))),
            // It had said all; but what had not reached the disk is lost with the power.
            RecordingState::Ended => match lock_file::since(&self.directory.join(LOCK)) {
                Since::OtherBoot => AtEnd::Killed(Since::OtherBoot),
                Since::SameBoot | Since::Unknown => AtEnd::Sealing,
            },
            // Its segments were lost, which a power cut does, and its log may have lost its end.
            RecordingState::Sealed { .. } => match lock_file::since(&self.directory.join(LOCK)) {
                Since::OtherBoot => AtEnd::Killed(Since::OtherBoot),
                Since::SameBoot | Since::Unknown => AtEnd::Sealing,
            },
        };
        Ok(Replay::open(&layout::wal_file(&self.directory), &self.summary.unknown_run(), at_end)?)
    }

    /// Why its recorder, which ended, could not seal it.
    pub fn why_ended(&self) -> Option<EndReason> {
        lock_file::why_ended(&self.directory.join(LOCK)).filter(|_| self.state == RecordingState::Ended)
    }

    /// Seals the recording of a recorder that died. Where another process has done so meanwhile, that one's segments stay.
    ///
    /// # Errors
    ///
    /// [`StoreError::Living`] if it is being recorded, [`StoreError::Io`], [`StoreError::Segment`] or [`StoreError::Catalog`] if a file or
    /// the row cannot be written.
    pub fn write_segments(&self, recording: &Recording, summary: &SummaryRow) -> Result<(), StoreError> {
        let living = || StoreError::Living { action: "seal", name: self.name };
        if self.state == RecordingState::Recording {
            return Err(living());
        }
        let _sealing = lock_file::lock_sealing(&self.directory)?;
        let now = self.store.recording(self.name)?;
        let as_what = match now.state {
            RecordingState::Recording => return Err(living()),
            // Segments that cannot be read are made again.
            RecordingState::Sealed { recorder_killed } if matches!(self.state, RecordingState::Sealed { .. }) && now.read().is_err() => {
                if recorder_killed {
                    RowState::Killed
                } else {
                    RowState::Sealed
                }
            }
            RecordingState::Sealed { .. } => return Ok(()),
            RecordingState::Killed => RowState::Killed,
            RecordingState::Ended => RowState::Sealed,
        };
        let _ = fs::remove_file(self.directory.join(RESERVE));
        format_file::mend(&self.directory)?;
        seal::write_partial(&self.directory, recording)?;
        seal::publish(&self.directory)?;
        self.store.catalog.seal(self.name, as_what, summary, &TraceIds::of(recording))?;
        self.store.settle(&self.directory)
    }

    /// Whether its log is there, from which it can be sealed again if its segments cannot be read.
    pub fn has_log(&self) -> bool {
        fs::symlink_metadata(layout::wal_file(&self.directory)).is_ok_and(|data| data.is_file())
    }

    /// Everything it holds; spans come traces by start and in tree pre-order. Only for a sealed recording.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`] if it is not sealed, [`StoreError::Corrupt`] if a table is damaged, [`StoreError::Segment`] or
    /// [`StoreError::Io`] if it cannot be read.
    pub fn read(&self) -> Result<Recording, StoreError> {
        self.read_for(&QueryLimits::default())
    }

    /// The same for a query: its rows take memory of it.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and those of [`QueryLimits::take`].
    pub fn read_for(&self, query: &QueryLimits) -> Result<Recording, StoreError> {
        recording::read(&layout::segments(&self.directory), self.check_sealed()?, query)
    }

    /// What its rows take in memory when they are read, as its writer counted it; `None` where it did not. Only for a sealed recording.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`] if it is not sealed, [`StoreError::Corrupt`] or [`StoreError::Io`] if its count cannot be read.
    pub fn memory_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(recording::figures(&layout::segments(&self.directory), self.check_sealed()?)?.map(|figures| figures.memory))
    }

    /// Name and file of every table, each of them checked, for a query engine. Only for a sealed recording.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn table_files(&self) -> Result<Vec<(&'static str, PathBuf)>, StoreError> {
        let tables = recording::verified_tables(&layout::segments(&self.directory), self.check_sealed()?)?;
        Ok(tables.into_iter().map(|(table, path)| (table.name, path)).collect())
    }

    /// Writes it as one file, which [`crate::archive::read`] reads, and says how many bytes that has. Only for a sealed recording.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`StoreError::Io`] if `out` cannot be written.
    pub fn write_archive(&self, out: &mut dyn Write) -> Result<u64, StoreError> {
        archive::write(&self.directory, self.check_sealed()?, out)
    }

    /// Why an archive of `file_bytes` bytes of this recording could not be read, if so: it would take more memory than a reader allows for a file
    /// that somebody sent. Only a recording that might take too much is read to find out.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn refusal_as_file(&self, file_bytes: u64) -> Result<Option<String>, StoreError> {
        if file_bytes > archive::ARCHIVE_BYTES_MAX {
            return Ok(Some(archive::too_long()));
        }
        let version = self.check_sealed()?;
        let limit = limit_of_file(file_bytes);
        if recording::figures(&layout::segments(&self.directory), version)?.is_some_and(|figures| figures.limit <= limit) {
            return Ok(None);
        }
        match recording::read_within(&layout::segments(&self.directory), version, limit) {
            Ok(_) => Ok(None),
            Err(StoreError::TooLarge { reason, .. }) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    /// Bytes of its files on the disk. What comes or goes meanwhile is not counted.
    pub fn bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut directories = vec![self.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(data) if data.is_dir() => directories.push(entry.path()),
                    Ok(data) => bytes += data.len().max(data.blocks() * BLOCK_BYTES),
                    Err(_) => {}
                }
            }
        }
        bytes
    }

    /// The version of a sealed recording.
    pub(super) fn check_sealed(&self) -> Result<u32, StoreError> {
        match self.state {
            RecordingState::Sealed { .. } => format_file::check(&self.directory),
            RecordingState::Recording | RecordingState::Killed | RecordingState::Ended => Err(StoreError::NotSealed { name: self.name }),
        }
    }
}
