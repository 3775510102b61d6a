//! What was computed of a sealed recording, kept beside its tables: `view.summary` and the like.
//!
//! ```text
//! longpole view 1
//! 0.1.0 93483592 1764446400000000000     who computed it
//! 7b2e8f15                               CRC-32C of the list of checksums, so of the tables
//! 1c291ca3                               CRC-32C of all bytes that follow
//! {"schema":…
//! ```
//!
//! A view is good for its maker only: another version of longpole may answer otherwise. It is no part of the recording: no archive has it, and
//! where it is missing, damaged or of other tables, it is computed again.

use std::io::Read;
use std::path::PathBuf;

use super::StoredRecording;
use crate::error::StoreError;
use crate::files;
use crate::layout;
use crate::segment::checksums::{self, Checksum};
use crate::segment::recording;

const FIRST_LINE: &str = "longpole view 1";

/// Longest view that is read.
const BYTES_MAX: u64 = 64 << 20;

impl StoredRecording {
    /// The view of this name that `maker` kept of these very tables; `None` where there is none. It checks each table first.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`] if it is not sealed, [`StoreError::Corrupt`] if a table is damaged, [`StoreError::Segment`] or
    /// [`StoreError::Io`] if one cannot be read.
    pub fn kept_view(&self, view: &str, maker: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let version = self.check_sealed()?;
        let Some(body) = self.read_view(view, maker) else { return Ok(None) };
        recording::verified_tables(&layout::segments(&self.directory), version)?;
        Ok(Some(body))
    }

    /// Keeps a view for later. Nothing is lost where that fails.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`] if it is not sealed, [`StoreError::Io`] if it cannot be written.
    pub fn keep_view(&self, view: &str, maker: &str, body: &[u8]) -> Result<(), StoreError> {
        self.check_sealed()?;
        let path = self.view_file(view);
        let Some(tables) = self.sum_of_tables() else { return Ok(()) };
        let mut bytes = format!("{FIRST_LINE}\n{maker}\n{tables}\n{}\n", Checksum::of(body).hex()).into_bytes();
        bytes.extend_from_slice(body);
        files::replace(&path, &bytes).map_err(StoreError::io("write", &path))
    }

    pub(super) fn view_file(&self, view: &str) -> PathBuf {
        self.directory.join(format!("view.{view}"))
    }

    /// `None` for a recording without checksums, which is none of this version.
    fn sum_of_tables(&self) -> Option<String> {
        let list = checksums::read(&layout::segments(&self.directory).join(checksums::FILE_NAME)).ok()?;
        Some(Checksum::of(&list).hex())
    }

    fn read_view(&self, view: &str, maker: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = files::open(&self.view_file(view)).ok()?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let mut lines = bytes.splitn(5, |byte| *byte == b'\n');
        let mut is_next = |expected: &str| lines.next() == Some(expected.as_bytes());
        if !is_next(FIRST_LINE) || !is_next(maker) || !is_next(&self.sum_of_tables()?) {
            return None;
        }
        let (sum, body) = (lines.next()?, lines.next()?);
        (sum == Checksum::of(body).hex().as_bytes()).then(|| body.to_vec())
    }
}
