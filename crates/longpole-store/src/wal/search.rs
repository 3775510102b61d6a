//! Where the next whole frame begins behind damage.
//!
//! ```text
//! … whole frame │ damaged frame ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ │ whole frame │ …
//!               ▲ looked for from here, byte by byte   ▲ found: kind and length are possible, and the checksum matches
//! ```
//!
//! A checksum costs as much as its frame is long, and a log that somebody made can pretend a long frame at every byte. So all searches
//! in one log share an allowance that grows with the log's length alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{FRAME_HEADER_BYTES, Header};

use crate::numbers::usize_of;

/// Bytes that are read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// Bytes that checksums may cost: this many times the log, and some more for short logs. Damage of an honest log costs a small part of it.
const COST_TIMES: u64 = 4;
const COST_MIN: u64 = 64 << 20;

/// What a candidate costs besides its bytes.
const CANDIDATE_COST: u64 = 64;

/// A candidate longer than this counts only if what stands behind it may be a frame as well: few are tried for nothing then.
const UNCHAINED_MAX: u64 = 64 << 10;

/// The searches of one log.
#[derive(Debug)]
pub(super) struct Search {
    length: u64,
    allowance: u64,
    is_spent: bool,
    window: Vec<u8>,
    window_at: u64,
}

impl Search {
    pub(super) fn new(length: u64) -> Self {
        let allowance = length.saturating_mul(COST_TIMES).saturating_add(COST_MIN);
        Search { length, allowance, is_spent: false, window: Vec::new(), window_at: 0 }
    }

    /// Whether the allowance is used up, so that the rest is not searched.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Whether a checksum over this many bytes may be tried.
    pub(super) fn may_spend(&mut self, bytes: u64) -> bool {
        self.is_spent |= bytes > self.allowance;
        !self.is_spent
    }

    /// Counts a checksum that was tried for nothing.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// Where the next whole frame begins, from here on.
    pub(super) fn next_frame(&mut self, file: &File, from: u64) -> io::Result<Option<u64>> {
        let header_bytes = FRAME_HEADER_BYTES as u64;
        let mut at = from;
        while !self.is_spent && at + header_bytes <= self.length {
            let window = self.window(file, at)?;
            let Some(possible) = window.windows(FRAME_HEADER_BYTES).position(|bytes| Header::of(bytes).is_possible()) else {
                // The last bytes may begin a header.
                let passed = window.len().saturating_sub(FRAME_HEADER_BYTES - 1);
                if passed == 0 {
                    return Ok(None);
                }
                at += passed as u64;
                continue;
            };
            let header = Header::of(&window[possible..possible + FRAME_HEADER_BYTES]);
            at += possible as u64;
            if self.is_frame(file, at, &header)? {
                return Ok(Some(at));
            }
            at += 1;
        }
        Ok(None)
    }

    /// What is in the file from here on, as far as it is read at a time.
    fn window(&mut self, file: &File, at: u64) -> io::Result<&[u8]> {
        let end = self.window_at + self.window.len() as u64;
        if at < self.window_at || at + FRAME_HEADER_BYTES as u64 > end {
            self.window.resize(WINDOW_BYTES, 0);
            let count = read_at(file, &mut self.window, at)?;
            self.window.truncate(count);
            self.window_at = at;
        }
        Ok(&self.window[usize_of(at - self.window_at)..])
    }

    fn is_frame(&mut self, file: &File, at: u64, header: &Header) -> io::Result<bool> {
        let begin = at + FRAME_HEADER_BYTES as u64;
        let end = begin + header.length;
        if end > self.length {
            return Ok(false);
        }
        if header.length > UNCHAINED_MAX && end < self.length {
            let mut behind = [0; FRAME_HEADER_BYTES];
            self.spend(CANDIDATE_COST);
            if read_at(file, &mut behind, end)? == FRAME_HEADER_BYTES && !Header::of(&behind).is_possible() {
                return Ok(false);
            }
        }
        let cost = header.length + CANDIDATE_COST;
        if !self.may_spend(cost) {
            return Ok(false);
        }
        let is_frame = self.checksum(file, begin, header)? == Some(header.crc);
        if !is_frame {
            self.spend(cost);
        }
        Ok(is_frame)
    }

    /// The checksum of kind and payload; `None` where the file has become shorter.
    fn checksum(&self, file: &File, begin: u64, header: &Header) -> io::Result<Option<u32>> {
        let first = crc32c::crc32c(&[header.kind]);
        let in_window =
            begin.checked_sub(self.window_at).and_then(|from| self.window.get(usize_of(from)..)?.get(..usize_of(header.length)));
        if let Some(payload) = in_window {
            return Ok(Some(crc32c::crc32c_append(first, payload)));
        }
        let (mut crc, mut at, end) = (first, begin, begin + header.length);
        let mut chunk = vec![0; usize_of(UNCHAINED_MAX)];
        while at < end {
            let wanted = usize_of((end - at).min(UNCHAINED_MAX));
            if read_at(file, &mut chunk[..wanted], at)? != wanted {
                return Ok(None);
            }
            crc = crc32c::crc32c_append(crc, &chunk[..wanted]);
            at += wanted as u64;
        }
        Ok(Some(crc))
    }
}

/// Reads from a place until the buffer is full or the file ends; how many bytes that were.
pub(super) fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < into.len() {
        match file.read_at(&mut into[count..], at + count as u64) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
