//! Java's flight recorder in, as the JDK and async-profiler write it: chunks that each bring their own classes and constants.
//!
//! ```text
//! chunk   "FLR\0" version, size, offset of the metadata, start, duration, ticks a second, flags       68 bytes, the highest byte first
//! event     size, class 0    metadata: the fields of each class
//! event     size, class 1    checkpoint: constants, as stacks, methods, symbols and threads
//! event     size, class 101  jdk.ExecutionSample { startTime, sampledThread 5, stackTrace 7, state 2 }
//! ```
//!
//! There is no specification; this is what the JDK 11 to 25 and async-profiler 2 to 4 write. Events of the same stack and thread are added up: the
//! profile has no times. Types are named as the suffixes of [`pyroscope::profile_type`](crate::pyroscope::profile_type).

mod constants;
mod cursor;
mod events;
mod labels;
mod metadata;

use longpole_model::time::Timestamp;

use self::constants::Constants;
use self::cursor::{Cursor, Fault};
use self::events::Sums;
use self::labels::Snapshot;
use self::metadata::Classes;
use super::Profile;
use super::parts::Budget;
use crate::error::FileError;
use crate::number::saturated;

/// Bytes of the header of a chunk.
const HEADER_BYTES: usize = 68;

/// Classes of events that every chunk has.
const METADATA: i64 = 0;
const CHECKPOINT: i64 = 1;

/// Set in the last byte of the flags where integers have a variable length.
const COMPRESSED: u8 = 1;

/// Decodes a recording. `labels` is the `LabelsSnapshot` that came with it; empty if none did.
///
/// # Errors
///
/// It is no recording, breaks off, is still being written, has no event that longpole reads, or takes too much.
pub(crate) fn decode(bytes: &[u8], labels: &[u8], memory_bytes_max: u64) -> Result<Profile, FileError> {
    let snapshot = Snapshot::read(labels).map_err(|error| FileError::Document { error, offset: 0 })?;
    let mut sums = Sums::new(snapshot, bytes.len(), memory_bytes_max);
    let mut rest = bytes;
    while !rest.is_empty() {
        let broken = |problem| FileError::Broken { problem, format: "JFR", offset: (bytes.len() - rest.len()) as u64 };
        let header = Header::read(rest).map_err(broken)?;
        let (chunk, behind) = rest.split_at_checked(header.bytes).ok_or_else(|| broken("a chunk that is cut off"))?;
        self::chunk(chunk, &header, memory_bytes_max, &mut sums).map_err(broken)?;
        rest = behind;
    }
    sums.finish().map_err(|problem| FileError::Broken { problem, format: "JFR", offset: 0 })
}

/// What the beginning of a chunk says.
pub(super) struct Header {
    bytes: usize,
    metadata: usize,
    start: Timestamp,
    duration_nanos: u64,
    ticks_per_second: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header, Fault> {
        let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or("a chunk that is cut off")?;
        if !header.starts_with(b"FLR\0") {
            return Err("bytes that do not begin a chunk");
        }
        let word = |place: usize| header[place..].first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
        let major = header[4..].first_chunk().map_or(0, |major| u16::from_be_bytes(*major));
        if !matches!(major, 1 | 2) || header[HEADER_BYTES - 1] & COMPRESSED == 0 {
            return Err("a version of the format that longpole does not read");
        }
        let size = |place| usize::try_from(word(place)).map_err(|_| "a chunk that is cut off");
        let header = Header {
            bytes: size(8)?,
            metadata: size(24)?,
            start: Timestamp::from_unix_nanos(word(32)),
            duration_nanos: word(40),
            ticks_per_second: word(56),
        };
        match header.bytes {
            // The recorder writes the size when the chunk is complete.
            0 => Err("a chunk that is still being written"),
            1..HEADER_BYTES => Err("a chunk that is shorter than its header"),
            _ => Ok(header),
        }
    }

    /// Nanoseconds of a duration in ticks.
    fn nanos(&self, ticks: i64) -> i64 {
        saturated(i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second.max(1)))
    }
}

fn chunk(chunk: &[u8], header: &Header, memory_bytes_max: u64, sums: &mut Sums<'_>) -> Result<(), Fault> {
    let metadata = chunk.get(header.metadata..).filter(|_| header.metadata >= HEADER_BYTES).ok_or("metadata outside of its chunk")?;
    let (class, metadata, _) = event(Cursor::new(metadata))?;
    if class != METADATA {
        return Err("metadata that are none");
    }
    // What is only there while the chunk is read.
    let mut budget = Budget::new(memory_bytes_max);
    let mut classes = Classes::read(metadata, chunk.len(), &mut budget)?;
    let mut constants = Constants::new(budget);
    let events = Cursor::new(&chunk[HEADER_BYTES..]);
    each_event(events, |class, at| if class == CHECKPOINT { constants.read(&mut classes, at) } else { Ok(()) })?;
    sums.begin_chunk(header, &classes);
    // Events name the interval of the samples, and may come behind them.
    each_event(events, |class, at| sums.setting(class, at, &mut classes, &constants))?;
    each_event(events, |class, at| sums.event(class, at, header, &mut classes, &constants))
}

fn each_event<'a>(mut at: Cursor<'a>, mut take: impl FnMut(i64, Cursor<'a>) -> Result<(), Fault>) -> Result<(), Fault> {
    while !at.is_at_end() {
        let (class, inside, behind) = event(at)?;
        take(class, inside)?;
        at = behind;
    }
    Ok(())
}

/// The class of an event, what is inside, and what comes behind.
fn event(mut at: Cursor<'_>) -> Result<(i64, Cursor<'_>, Cursor<'_>), Fault> {
    let left = at.left();
    let mut start = at;
    let size = at.integer()?;
    let size = usize::try_from(size).ok().filter(|size| *size > left - at.left() && *size <= left).ok_or("an event that is cut off")?;
    let whole = start.take(size)?;
    let mut inside = Cursor::new(whole);
    inside.integer()?;
    let class = inside.integer()?;
    Ok((class, inside, start))
}

#[cfg(test)]
mod tests;
