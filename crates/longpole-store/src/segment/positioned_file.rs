//! A file that several readers read at places of their own, through one descriptor: who duplicates it needs a free one for each page.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::files::FileVersion;

/// An open file of a known length.
#[derive(Debug, Clone)]
pub(super) struct PositionedFile {
    file: Arc<File>,
    version: FileVersion,
}

impl PositionedFile {
    pub(super) fn new(file: File) -> io::Result<PositionedFile> {
        let version = FileVersion::of(&file)?;
        Ok(PositionedFile { file: Arc::new(file), version })
    }

    /// What it was when it was opened.
    pub(super) fn version(&self) -> FileVersion {
        self.version
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.version.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<ReadFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(ReadFrom { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A file may claim more bytes than there are.
        if start.checked_add(length as u64).is_none_or(|end| end > self.version.length) {
            return Err(ParquetError::EOF(format!("it has {} bytes, fewer than {start} and {length} more", self.version.length)));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Reads a file from a place on.
#[derive(Debug)]
pub(super) struct ReadFrom {
    file: Arc<File>,
    at: u64,
}

impl Read for ReadFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
