//! `perf.data`: what `perf record` writes.
//!
//! ```text
//! PERFILE2, where the parts lie         104 bytes; `perf record -o -` writes 16, and all parts as records
//! events: struct perf_event_attr, ids
//! records: mappings, forks, samples …   one ring after the other, so not in the order of time
//! features: host, command, build ids …  behind the records, written when the recording ends
//! ```
//!
//! Two passes: the first notes where each record lies and its time, the second gives the records in the order of time. So the
//! order needs no trust in the marks that perf leaves between its rounds, and stacks that were copied are not all in memory.
//!
//! Nothing of a record is interpreted here beyond its fields: which binary an address lies in is up to who has binaries.
//! From a file that is cut off, or breaks the rules in the middle, a reader gets everything before, and [`PerfData::fault`] says where.

mod attr;
mod features;
mod fields;
mod record;
mod scan;

use std::io::{ErrorKind, Read, Seek, SeekFrom};

pub use attr::{Event, EventKind, Period};
pub use features::{BuildId, Features};
pub use record::{Body, Chain, Map, Record, Registers, Sample};

use crate::error::FileError;
use crate::limits::Limits;
use attr::Layout;
use scan::{Entry, RecordPlace};

/// First bytes of a file that this machine's kind of processor wrote.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

/// The same from one of the other byte order.
pub const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";

const FORMAT: &str = "perf-data";

/// Bytes in front of every record: kind, flags, size.
const HEADER_BYTES: usize = 8;

fn broken(problem: &'static str, offset: u64) -> FileError {
    FileError::Broken { problem, format: FORMAT, offset }
}

/// An open file, and what was found in its first pass.
#[derive(Debug)]
pub struct PerfData<R> {
    /// What was sampled, in the order of the file.
    pub events: Vec<Event>,
    /// What the file says about the recording.
    pub features: Features,
    /// Why there is nothing behind the last record, where the file does not end as it should.
    pub fault: Option<FileError>,
    /// Time of the first record that has one.
    pub first_time: u64,
    /// Time of the last record.
    pub last_time: u64,
    input: R,
    layout: Layout,
    /// By time.
    entries: Vec<Entry>,
    next: usize,
    inflated: Vec<u8>,
    inflated_from: u64,
    buffer: Vec<u8>,
}

impl<R: Read + Seek> PerfData<R> {
    /// Reads everything but the records, and where these are. Compressed records may hold as much as a document.
    ///
    /// # Errors
    ///
    /// The input cannot be read, is no `perf.data`, or contradicts itself before the first record; with the offset in bytes.
    pub fn open(mut input: R, limits: &Limits) -> Result<Self, FileError> {
        let scan::Scan { events, features, layout, mut entries, inflated, inflated_from, fault } = scan::scan(&mut input, limits)?;
        // Records of one moment stay in their order.
        entries.sort_by_key(|entry| entry.time);
        Ok(PerfData {
            first_time: entries.iter().map(|entry| entry.time).find(|time| *time > 0).unwrap_or(0),
            last_time: entries.last().map_or(0, |entry| entry.time),
            events,
            features,
            fault,
            input,
            layout,
            entries,
            next: 0,
            inflated,
            inflated_from,
            buffer: Vec::new(),
        })
    }

    /// The next record in the order of time. What was true before the recording began has the time 0.
    ///
    /// # Errors
    ///
    /// The input cannot be read, became shorter, or the record is damaged; with the offset in bytes.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, FileError> {
        let Some(entry) = self.entries.get(self.next).copied() else { return Ok(None) };
        self.next += 1;
        let (bytes, offset) = match entry.place {
            RecordPlace::File(offset) => {
                self.input.seek(SeekFrom::Start(offset)).map_err(FileError::Read)?;
                self.buffer.resize(usize::from(entry.size), 0);
                match self.input.read_exact(&mut self.buffer) {
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(broken("the file became shorter", offset)),
                    done => done.map_err(FileError::Read)?,
                }
                (&self.buffer[..], offset)
            }
            RecordPlace::Inflated(at) => {
                let end = at.saturating_add(usize::from(entry.size));
                (self.inflated.get(at..end).unwrap_or_default(), self.inflated_from)
            }
        };
        record::decode(bytes, &self.layout, entry.time, offset).map(Some)
    }
}

#[cfg(test)]
mod tests;
