//! Reads the journal of one thread: which span was current from which time on.
//!
//! `docs/formats/span-context.md` describes the layout and the duties of a reader. The program writes while we read, and may be hostile: the
//! reader refuses impossible contents, and counts overwritten entries.
//!
//! ```text
//! header | 8193 | 8194 | 3 | 4 | … | 8192 |      entry n in place (n - 1) mod 8192
//!                 ↑ the writer is at 8195, in the place of 3
//! ```

use std::io;

use longpole_model::{JournalEntry, Monotonic, SpanId, TraceId};

/// First bytes of a journal.
const MAGIC: [u8; 16] = *b"\x9cLONGPOLE-JRN1\xf3\xa7";

/// The layout this reader knows.
const VERSION: u32 = 1;

const HEADER_BYTES: usize = 128;
const ENTRY_BYTES: usize = 40;

/// Bit of the header's feature word: a mark precedes each span that is not exported.
const HAS_MARKS: u64 = 1;

/// Most entries of a ring: our SDK writes 8,192, and more would not be read at once.
const CAPACITY_MAX: u32 = 1 << 16;

/// Offset of the state, which the count follows.
const STATE_AT: u64 = 36;

/// More entries than any thread can write: at one a nanosecond, three days.
const WRITTEN_MAX: u64 = 1 << 48;

/// How far in the future a time may be: the error between the clocks of two time namespaces.
const AHEAD_NANOS: u64 = 1_000_000;

/// Reads bytes of the file from this offset on, and returns how many.
pub type ReadAt<'a> = dyn FnMut(u64, &mut [u8]) -> io::Result<usize> + 'a;

/// The owner of a journal, and the owner's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Entries of the ring.
    capacity: u32,
    /// CLOCK_MONOTONIC of the owner, and CLOCK_REALTIME at the same moment.
    pub monotonic: u64,
    /// See `monotonic`.
    pub unix: u64,
    /// Inode of the owner's pid namespace; 0 = unknown.
    pub pid_namespace: u64,
    /// Inode of the owner's time namespace; 0 = unknown.
    pub time_namespace: u64,
    /// Whether a mark precedes each span that is not exported. Without marks nobody knows which spans are exported.
    has_marks: bool,
}

/// Why a journal is not read, or no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// It is no regular file of this user.
    Stranger,
    /// It is no journal, or has an unknown layout.
    Unknown,
    /// Its process is in another pid namespace, so its thread ids mean other threads.
    OtherPidNamespace,
    /// Its contents are impossible.
    Garbled,
    /// The system does not let us read it.
    Unreadable,
    /// There was no memory for its next entries.
    OutOfMemory,
}

impl Refusal {
    /// The words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Stranger => "entries of the journal directory that are not regular files of this user",
            Refusal::Unknown => "span journals in an unknown format: the program's longpole-sdk may be newer",
            Refusal::OtherPidNamespace => "span journals from another pid namespace, where thread ids name other threads",
            Refusal::Garbled => "span journals with invalid contents",
            Refusal::Unreadable => "span journals that the system does not let longpole read",
            Refusal::OutOfMemory => "span journals that ended before their thread, because /dev/shm had no room for more",
        }
    }
}

/// The result of reading a journal once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// New entries in order of time, by the owner's clock.
    pub entries: Vec<JournalEntry>,
    /// Entries that were overwritten before these.
    pub lost: u64,
    /// Its thread has closed it.
    pub is_over: bool,
    /// It ended because there was no memory for more.
    pub is_out_of_memory: bool,
}

/// A journal that is being read.
#[derive(Debug)]
pub struct Journal {
    header: Header,
    /// Entries read or lost so far.
    seen: u64,
    last_time: u64,
    /// The last entry was a mark: the span of the next one is not exported.
    is_marked: bool,
}

impl Journal {
    /// Reads the header; `None` while it is not written yet.
    ///
    /// # Errors
    ///
    /// Why it is no journal that we read.
    pub fn open(read: &mut ReadAt<'_>) -> Result<Option<Journal>, Refusal> {
        let mut bytes = [0; HEADER_BYTES];
        if !read_whole(read, 0, &mut bytes)? || bytes[..16] == [0; 16] {
            return Ok(None);
        }
        let (whole, half) = (|at| u64_at(&bytes, at), |at| u32_at(&bytes, at));
        // The magic is stored in two halves.
        if bytes[..8] == MAGIC[..8] && bytes[8..16] == [0; 8] {
            return Ok(None);
        }
        let capacity = half(32);
        let is_known = half(16) == VERSION && half(28) as usize == ENTRY_BYTES && (1..=CAPACITY_MAX).contains(&capacity);
        if bytes[..16] != MAGIC || !is_known {
            return Err(Refusal::Unknown);
        }
        let header = Header {
            pid: half(20),
            tid: half(24),
            capacity,
            monotonic: whole(48),
            unix: whole(56),
            pid_namespace: whole(64),
            time_namespace: whole(72),
            has_marks: whole(80) & HAS_MARKS != 0,
        };
        Ok(Some(Journal { header, seen: 0, last_time: 0, is_marked: false }))
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the new entries. `now` reads the owner's clock: no entry is later. `bytes` is a buffer to reuse.
    ///
    /// # Errors
    ///
    /// Why the journal cannot be read any more.
    pub fn read(&mut self, read: &mut ReadAt<'_>, now: impl FnOnce() -> u64, bytes: &mut Vec<u8>) -> Result<Read, Refusal> {
        let (state, written) = count(read)?;
        if written < self.seen || written > WRITTEN_MAX {
            return Err(Refusal::Garbled);
        }
        let mut out = Read { is_over: state != 0, is_out_of_memory: state == 2, ..Read::default() };
        if written == self.seen {
            return Ok(out);
        }
        let from = self.oldest(written).max(self.seen + 1);
        self.copy(read, from, written, bytes)?;
        let (_, after) = count(read)?;
        if after < written || after > WRITTEN_MAX {
            return Err(Refusal::Garbled);
        }
        let oldest = self.oldest(after).max(from);
        out.lost = oldest.min(written + 1) - (self.seen + 1);
        // The mark of the first entry after a gap may be lost, so its span counts as not exported.
        self.is_marked |= out.lost > 0;
        // If a journal is written faster than it is read, no entry may be left.
        let latest = now().saturating_add(AHEAD_NANOS);
        for (number, entry) in (from..=written).zip(bytes.chunks_exact(ENTRY_BYTES)) {
            if number < oldest {
                continue;
            }
            let time = u64_at(entry, 8);
            if u64_at(entry, 0) != number || time < self.last_time || time > latest {
                return Err(Refusal::Garbled);
            }
            self.last_time = time;
            let (trace_id, span_id) = (TraceId::from_slice(&entry[16..32]), SpanId::from_slice(&entry[32..40]));
            if trace_id.is_some() && span_id.is_none() {
                self.is_marked = true;
                continue;
            }
            let span = trace_id.zip(span_id);
            let is_sent = span.is_some() && self.header.has_marks && !std::mem::take(&mut self.is_marked);
            out.entries.push(JournalEntry { time: Monotonic(time), span, is_sent });
        }
        self.seen = written;
        // Entries that were written meanwhile are still to be read.
        out.is_over &= after == written;
        Ok(out)
    }

    /// The oldest whole entry after `written` entries: the one before may be in the middle of being overwritten.
    fn oldest(&self, written: u64) -> u64 {
        (written + 2).saturating_sub(u64::from(self.header.capacity)).max(1)
    }

    /// Copies entries out of the ring.
    fn copy(&self, read: &mut ReadAt<'_>, from: u64, to: u64, bytes: &mut Vec<u8>) -> Result<(), Refusal> {
        let capacity = u64::from(self.header.capacity);
        bytes.clear();
        bytes.resize((to + 1 - from) as usize * ENTRY_BYTES, 0);
        let first = (from - 1) % capacity;
        let until_end = ((capacity - first) as usize * ENTRY_BYTES).min(bytes.len());
        let (head, tail) = bytes.split_at_mut(until_end);
        let at = HEADER_BYTES as u64 + first * ENTRY_BYTES as u64;
        let is_whole = read_whole(read, at, head)? && (tail.is_empty() || read_whole(read, HEADER_BYTES as u64, tail)?);
        if is_whole { Ok(()) } else { Err(Refusal::Garbled) }
    }
}

/// The state and the count.
fn count(read: &mut ReadAt<'_>) -> Result<(u32, u64), Refusal> {
    let mut bytes = [0; 12];
    if !read_whole(read, STATE_AT, &mut bytes)? {
        return Err(Refusal::Garbled);
    }
    Ok((u32_at(&bytes, 0), u64_at(&bytes, 4)))
}

/// Fills the bytes; whether the file has enough.
fn read_whole(read: &mut ReadAt<'_>, at: u64, into: &mut [u8]) -> Result<bool, Refusal> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read(at + filled as u64, rest) {
            Ok(0) => return Ok(false),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Refusal::Unreadable),
        }
    }
    Ok(true)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_ne_bytes(*word))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A journal of a thread that enters span n at its n-th entry, at n µs; every third entry is "no span".
    struct File {
        bytes: Vec<u8>,
        capacity: u64,
    }

    impl File {
        fn new(capacity: u32) -> File {
            let mut bytes = MAGIC.to_vec();
            for word in [VERSION, 4711, 4712, ENTRY_BYTES as u32, capacity, 0] {
                bytes.extend(word.to_ne_bytes());
            }
            bytes.resize(HEADER_BYTES + capacity as usize * ENTRY_BYTES, 0);
            File { bytes, capacity: capacity.into() }
        }

        fn write(&mut self, count: u64) {
            for _ in 0..count {
                let number = u64_at(&self.bytes, 40) + 1;
                let at = HEADER_BYTES + ((number - 1) % self.capacity) as usize * ENTRY_BYTES;
                self.bytes[at..at + 8].copy_from_slice(&number.to_ne_bytes());
                self.bytes[at + 8..at + 16].copy_from_slice(&(number * 1_000).to_ne_bytes());
                let id = if number.is_multiple_of(3) { 0 } else { number };
                self.bytes[at + 16..at + 32].copy_from_slice(&u128::from(id).to_be_bytes());
                self.bytes[at + 32..at + 40].copy_from_slice(&id.to_be_bytes());
                self.bytes[40..48].copy_from_slice(&number.to_ne_bytes());
            }
        }

        fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
            let rest = self.bytes.get(at as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }

        fn open(&self) -> Result<Option<Journal>, Refusal> {
            Journal::open(&mut |at, into| self.read_at(at, into))
        }

        fn read(&self, journal: &mut Journal) -> Result<Read, Refusal> {
            journal.read(&mut |at, into| self.read_at(at, into), || 1 << 40, &mut Vec::new())
        }
    }

    /// `first-last` of what was read, and `+n` for what was lost before; checks each entry.
    fn shown(read: &Read) -> String {
        let number = |entry: &JournalEntry| {
            let number = entry.time.0 / 1_000;
            let expected = (!number.is_multiple_of(3)).then_some(number);
            assert_eq!(entry.span.map(|(_, span_id)| u64::from_be_bytes(span_id.bytes())), expected);
            number
        };
        let numbers: Vec<u64> = read.entries.iter().map(number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) => format!("+{} {first}-{last}", read.lost),
            _ => format!("+{}", read.lost),
        }
    }

    #[test]
    fn what_is_new_is_read_once_and_what_was_overwritten_is_counted() {
        let mut file = File::new(8);
        let mut journal = file.open().unwrap().unwrap();
        assert_eq!((journal.header().pid, journal.header().tid), (4711, 4712));
        let mut step = |count, expected: &str| {
            file.write(count);
            assert_eq!(shown(&file.read(&mut journal).unwrap()), expected);
        };
        step(0, "+0");
        step(3, "+0 1-3");
        step(0, "+0");
        step(7, "+0 4-10");
        // The place behind the last may be written to at any moment.
        step(8, "+1 12-18");
        step(1_000, "+993 1012-1018");
        step(5, "+0 1019-1023");
    }

    #[test]
    fn what_is_overwritten_while_it_is_read_is_lost() {
        let file = std::cell::RefCell::new(File::new(8));
        file.borrow_mut().write(7);
        let mut journal = file.borrow().open().unwrap().unwrap();
        let mut calls = 0;
        let read = |at: u64, into: &mut [u8]| {
            calls += 1;
            let count = file.borrow().read_at(at, into);
            // Between the entries and the second look at the count.
            if calls == 2 {
                file.borrow_mut().write(4);
            }
            count
        };
        let mut read = read;
        let found = journal.read(&mut read, || 1 << 40, &mut Vec::new()).unwrap();
        assert_eq!(shown(&found), "+4 5-7");
        assert_eq!(shown(&file.borrow().read(&mut journal).unwrap()), "+0 8-11");
    }

    #[test]
    fn a_thread_that_ended_is_over_when_all_was_read() {
        let mut file = File::new(8);
        file.write(2);
        file.bytes[36] = 1;
        let mut journal = file.open().unwrap().unwrap();
        let read = file.read(&mut journal).unwrap();
        assert_eq!((shown(&read).as_str(), read.is_over), ("+0 1-2", true));
    }

    #[test]
    fn what_is_no_journal_or_cannot_be_so_is_refused() {
        let changed = |at: usize, byte: u8| {
            let mut file = File::new(8);
            file.write(5);
            file.bytes[at] = byte;
            file
        };
        for (at, byte) in [(0, 1), (15, 0), (16, 2), (28, 41), (32, 0), (34, 2)] {
            assert_eq!(changed(at, byte).open().err(), Some(Refusal::Unknown), "byte {at}");
        }
        for (at, byte) in [(47, 1), (HEADER_BYTES, 9), (HEADER_BYTES + 15, 1), (HEADER_BYTES + ENTRY_BYTES + 9, 0)] {
            let file = changed(at, byte);
            let mut journal = file.open().unwrap().unwrap();
            assert_eq!(file.read(&mut journal), Err(Refusal::Garbled), "byte {at}");
        }
        let mut file = File::new(8);
        file.write(5);
        let mut journal = file.open().unwrap().unwrap();
        file.read(&mut journal).unwrap();
        file.bytes[40] = 4;
        assert_eq!(file.read(&mut journal), Err(Refusal::Garbled), "it goes back");
        file.bytes.truncate(HEADER_BYTES + 100);
        file.bytes[40] = 8;
        assert_eq!(file.read(&mut journal), Err(Refusal::Garbled), "it is cut off");
        assert!(File { bytes: vec![0; HEADER_BYTES], capacity: 8 }.open().unwrap().is_none(), "not written yet");
        assert!(File { bytes: Vec::new(), capacity: 8 }.open().unwrap().is_none(), "still empty");
    }

    #[test]
    fn the_worked_example_of_the_format_is_read() {
        let page = include_str!("../../../../docs/formats/span-context.md");
        let dump = page.split("```text\n").nth(2).and_then(|rest| rest.split("```").next()).unwrap();
        let digits = dump.lines().flat_map(|line| line[4..52].split_whitespace());
        let mut bytes: Vec<u8> = digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        bytes.resize(HEADER_BYTES + 8192 * ENTRY_BYTES, 0);
        let file = File { bytes, capacity: 8192 };
        let mut journal = file.open().unwrap().unwrap();
        let header = *journal.header();
        assert_eq!((header.pid, header.tid, header.monotonic, header.unix), (4711, 4712, 5_000_000_000, 1_700_000_000_000_000_000));
        assert_eq!((header.pid_namespace, header.time_namespace), (0xefff_fffc, 0xefff_fffa));
        let read = file.read(&mut journal).unwrap();
        let span = ("4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap(), "00f067aa0ba902b7".parse().unwrap());
        let entry = |time, span: Option<_>| JournalEntry { time: Monotonic(time), span, is_sent: span.is_some() };
        assert_eq!(read.entries, [entry(5_000_001_000, Some(span)), entry(5_000_301_000, None)]);
    }

    /// `s` a span that is sent, `m` a mark, `-` no span.
    fn sent(entries: &str, has_marks: bool, capacity: u32) -> String {
        let mut file = File::new(capacity);
        file.bytes[80] = u8::from(has_marks);
        for (kind, number) in entries.chars().zip(1u64..) {
            file.write(1);
            let at = HEADER_BYTES + ((number - 1) % u64::from(capacity)) as usize * ENTRY_BYTES;
            let (trace, span) = match kind {
                '-' => (0u64, 0),
                'm' => (7, 0),
                _ => (7, number),
            };
            file.bytes[at + 16..at + 32].copy_from_slice(&u128::from(trace).to_be_bytes());
            file.bytes[at + 32..at + 40].copy_from_slice(&span.to_be_bytes());
        }
        let mut journal = file.open().unwrap().unwrap();
        let read = file.read(&mut journal).unwrap();
        read.entries
            .iter()
            .map(|entry| {
                if entry.span.is_none() {
                    '-'
                } else if entry.is_sent {
                    's'
                } else {
                    'u'
                }
            })
            .collect()
    }

    #[test]
    fn a_marked_span_is_not_expected() {
        assert_eq!(sent("s-ms-ss", true, 16), "s-u-ss");
        assert_eq!(sent("sm", true, 16), "s", "the mark comes before its span");
        assert_eq!(sent("s-s", false, 16), "u-u", "an SDK that makes no marks says nothing of who is sent");
        assert_eq!(sent("ssssmsss", true, 4), "uss", "the mark of the first may be among those that are overwritten");
    }

    proptest! {
        #[test]
        fn each_entry_is_read_or_counted(capacity in 1u32..20, steps in prop::collection::vec(0u64..50, 0..20)) {
            let mut file = File::new(capacity);
            let mut journal = file.open().unwrap().unwrap();
            let mut next = 1;
            for step in steps {
                file.write(step);
                let read = file.read(&mut journal).unwrap();
                next += read.lost;
                for entry in &read.entries {
                    prop_assert_eq!(entry.time.0, next * 1_000);
                    next += 1;
                }
                prop_assert_eq!(next, u64_at(&file.bytes, 40) + 1);
            }
        }
    }
}
