//! What a runtime writes down of the code it compiles, in the format of Linux's `jitdump-specification.txt`: which function came to lie
//! where and when, and which lines of source its code is of.
//!
//! ```text
//! header   "DTiJ" | version 1 | bytes of it | machine | 0 | pid | time | flags           numbers of four bytes, the last two of eight
//! record   kind | bytes of it | time | body                                              four, four, eight bytes
//!   0 load    pid, tid | vma | start | bytes | index | name, 0 | the code
//!   1 move    pid, tid | vma | start before | start | bytes | index of its load
//!   2 lines   start | n | n times: address | line | column | file, 0                     in front of the load it belongs to
//!   3 close   nothing comes behind it
//!   4 unwinding                                                                          passed over
//! ```
//!
//! Memory is used again, so an address can be in one function now and in another one later. A function without a
//! later time of its own was there from the beginning. V8 counts the addresses of lines from 64 bytes further on, where they lie in
//! the ELF file that `perf inject` makes of a function.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use longpole_model::stack::Runtime;

use crate::perf_map::{Described, NAME_BYTES_MAX, describe, kept};

/// `JiTD` as a number. Its bytes stand in the order of the machine that wrote it.
const MAGIC: u32 = 0x4a69_5444;

const VERSION: u32 = 1;

const HEADER_BYTES: usize = 40;
const RECORD_HEADER_BYTES: usize = 16;
const LOAD_BYTES: usize = 40;
const MOVE_BYTES: usize = 48;
const LINES_BYTES: usize = 16;

/// Bytes of one entry of lines, without the name of its file.
const LINE_BYTES: usize = 16;

/// Flag: times are the processor's own, which nobody else can tell.
const FLAG_ARCH_TIME: u64 = 1;

mod kind {
    pub(super) const LOAD: u32 = 0;
    pub(super) const MOVE: u32 = 1;
    pub(super) const LINES: u32 = 2;
    pub(super) const CLOSE: u32 = 3;
}

/// Stands for the name of a file: the same as in the entry before.
const SAME_FILE: &[u8] = b"\xff";

/// How much further on V8 says that its lines are: the bytes of an ELF header.
const V8_LINE_SHIFT: u64 = 64;

/// Most bytes of the lines of one function: a function of ten thousand statements has one.
const LINES_BYTES_MAX: u64 = 16 << 20;

/// Most changes of what lies at the requested addresses, all together: 24 MB.
const STRETCHES_MAX: usize = 1 << 20;

/// Most bytes of functions with their names and lines: those of a large server take some tens of megabytes. What a dump says again, such as that
/// a function was moved to and fro, has its names and lines again.
const BYTES_MAX: usize = 128 << 20;

/// What a dump says of some addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JitDump {
    /// For each address what lay there, in the order of time; empty where nothing is known to.
    pub code: Vec<Vec<Stretch>>,
    /// Why it was not read to its end, where it was not.
    pub fault: Option<Fault>,
}

/// Something lay at an address from some time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Since when, by CLOCK_MONOTONIC; 0 for what lay there first.
    pub since: u64,
    /// The function; `None` where what lay there was moved elsewhere.
    pub code: Option<Arc<Described>>,
}

/// Where a dump breaks the rules of its format, or breaks off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The first byte of what is wrong.
    pub offset: u64,
    /// What is wrong, as a lower-case fragment.
    pub problem: String,
    /// Whether nothing is wrong but that it breaks off.
    pub is_end: bool,
}

impl Fault {
    fn new(offset: u64, problem: String) -> Fault {
        Fault { offset, problem, is_end: false }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {}, {}", self.offset, self.problem)
    }
}

/// Reads what a dump says of addresses, which are in ascending order. What stands before a fault holds.
///
/// `now` is the time by CLOCK_MONOTONIC; `None` where that of the samples is another one. Where the dump's own times are of
/// another clock, it is not known when anything came, and what came last was always there.
pub fn read(input: impl Read + Seek, addresses: &[u64], now: Option<u64>) -> JitDump {
    let mut reading = CodeReader { addresses, code: vec![Vec::new(); addresses.len()], ..CodeReader::default() };
    let outcome = Input::open(input).and_then(|mut input| {
        let (bytes, flags) = input.header()?;
        reading.has_own_clock = flags & FLAG_ARCH_TIME != 0;
        if !addresses.is_empty() {
            // What is moved to where somebody asks may have been loaded anywhere. A fault is met again.
            let _ = input.records(bytes, |record, input| reading.find_moved(record, input));
            input.records(bytes, |record, input| reading.take(record, input))?;
        }
        Ok(())
    });
    let is_timed = !reading.has_own_clock && now.is_some_and(|now| reading.last_time <= now);
    JitDump { code: reading.code.into_iter().map(|stretches| settled(stretches, is_timed)).collect(), fault: outcome.err() }
}

/// Stretches in the order of time, each of them different from the one before.
fn settled(mut stretches: Vec<Stretch>, is_timed: bool) -> Vec<Stretch> {
    if !is_timed {
        stretches = stretches.pop().into_iter().collect();
    }
    stretches.sort_by_key(|stretch| stretch.since);
    let mut out: Vec<Stretch> = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        // Among functions of the same time the last one counts.
        while out.last().is_some_and(|last| last.since == stretch.since) {
            out.pop();
        }
        if out.last().is_none_or(|last| last.code != stretch.code) {
            out.push(stretch);
        }
    }
    if let Some(first) = out.first_mut() {
        first.since = 0;
    }
    out
}

#[derive(Default)]
struct CodeReader<'a> {
    addresses: &'a [u64],
    code: Vec<Vec<Stretch>>,
    stretches: usize,
    bytes: usize,
    /// Functions that are moved to where somebody asks, by their index.
    moved: HashSet<u64>,
    loaded: HashMap<u64, Loaded>,
    /// Lines that belong to the load that comes next: its start, their number, their bytes.
    lines: Option<(u64, u64, Vec<u8>)>,
    last_time: u64,
    has_own_clock: bool,
}

/// A function, wherever it lies.
struct Loaded {
    start: u64,
    described: Described,
    lines: Vec<Line>,
}

/// From this address on code is of this line.
struct Line {
    address: u64,
    line: u32,
    /// Empty for the function's own.
    file: Arc<str>,
}

impl CodeReader<'_> {
    fn find_moved(&mut self, record: &JitRecord, input: &mut Input<impl Read + Seek>) -> Result<(), Fault> {
        if record.kind == kind::MOVE {
            let body = input.body::<MOVE_BYTES>(record)?;
            // Each of them is a stretch at least, so that more of them are never come to.
            if self.moved.len() <= STRETCHES_MAX && !self.within(u64_at(&body, 24), u64_at(&body, 32)).is_empty() {
                self.moved.insert(u64_at(&body, 40));
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &JitRecord, input: &mut Input<impl Read + Seek>) -> Result<(), Fault> {
        self.last_time = self.last_time.max(record.time);
        match record.kind {
            kind::LOAD => self.load(record, input),
            kind::MOVE => {
                let body = input.body::<MOVE_BYTES>(record)?;
                let (before, start, bytes) = (u64_at(&body, 16), u64_at(&body, 24), u64_at(&body, 32));
                self.put(record, self.within(before, bytes), |_| None)?;
                let loaded = self.loaded.remove(&u64_at(&body, 40));
                let places = self.within(start, bytes);
                let of = |address: u64| {
                    let loaded = loaded.as_ref()?;
                    Some(loaded.at(loaded.start.wrapping_add(address - start)))
                };
                self.put(record, places, of)?;
                if let Some(loaded) = loaded {
                    // It may be moved again.
                    self.loaded.insert(u64_at(&body, 40), loaded);
                }
                Ok(())
            }
            kind::LINES => {
                let body = input.body::<LINES_BYTES>(record)?;
                let left = record.end - input.at;
                self.lines = None;
                if left <= LINES_BYTES_MAX {
                    self.lines = Some((u64_at(&body, 0), u64_at(&body, 8), input.bytes(left, record)?));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn load(&mut self, record: &JitRecord, input: &mut Input<impl Read + Seek>) -> Result<(), Fault> {
        let lines = self.lines.take();
        let body = input.body::<LOAD_BYTES>(record)?;
        let (start, bytes, index) = (u64_at(&body, 16), u64_at(&body, 24), u64_at(&body, 32));
        let places = self.within(start, bytes);
        let is_moved = self.moved.contains(&index);
        if places.is_empty() && !is_moved {
            return Ok(());
        }
        let name = input.bytes((record.end - input.at).min(NAME_BYTES_MAX as u64), record)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.is_empty() {
            return self.put(record, places, |_| None);
        }
        let described = describe(&String::from_utf8_lossy(name));
        let shift = if described.runtime == Some(Runtime::Node) { V8_LINE_SHIFT } else { 0 };
        let code = start..start.saturating_add(bytes);
        let lines = lines.filter(|(of, ..)| *of == start).and_then(|(_, count, bytes)| lines_of(&bytes, count, &code, shift));
        let loaded = Loaded { start, described, lines: lines.unwrap_or_default() };
        self.put(record, places, |address| Some(loaded.at(address)))?;
        if is_moved {
            self.count(record, loaded.bytes())?;
            let before = self.loaded.insert(index, loaded);
            self.bytes -= before.map_or(0, |before| before.bytes());
        }
        Ok(())
    }

    /// Which of the addresses lie in there.
    fn within(&self, start: u64, bytes: u64) -> Range<usize> {
        let end = start.saturating_add(bytes);
        let place = |limit| self.addresses.partition_point(|address| *address < limit);
        place(start)..place(end)
    }

    /// Counts bytes that are kept.
    fn count(&mut self, record: &JitRecord, bytes: usize) -> Result<(), Fault> {
        self.bytes += bytes;
        if self.bytes > BYTES_MAX {
            let problem = format!("names and lines of the sampled code take more than {} MiB", BYTES_MAX >> 20);
            return Err(Fault::new(record.start, problem));
        }
        Ok(())
    }

    fn put(&mut self, record: &JitRecord, places: Range<usize>, code: impl Fn(u64) -> Option<Described>) -> Result<(), Fault> {
        let mut known: Option<Arc<Described>> = None;
        for place in places {
            self.stretches += 1;
            if self.stretches > STRETCHES_MAX {
                return Err(Fault::new(record.start, "JIT code reused the sampled addresses more often than longpole tracks".to_owned()));
            }
            let code = match (code(self.addresses[place]), &known) {
                // Neighbours are mostly of one line.
                (Some(code), Some(known)) if **known == code => Some(Arc::clone(known)),
                (Some(code), _) => {
                    self.count(record, code.function.len() + code.file.len() + size_of::<Described>())?;
                    Some(Arc::clone(known.insert(Arc::new(code))))
                }
                (None, _) => None,
            };
            self.code[place].push(Stretch { since: record.time, code });
        }
        Ok(())
    }
}

impl Loaded {
    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        let names = self.described.function.len() + self.described.file.len();
        // Lines of one file share its name, mostly with the one before.
        let is_other = |pair: &&[Line]| !Arc::ptr_eq(&pair[0].file, &pair[1].file);
        let files: usize = self.lines.windows(2).filter(is_other).map(|pair| pair[1].file.len()).sum();
        size_of::<Loaded>() + names + files + self.lines.len() * size_of::<Line>()
    }

    /// The function at one of its addresses, as if it had not been moved.
    fn at(&self, address: u64) -> Described {
        let behind = self.lines.partition_point(|line| line.address <= address);
        let mut described = self.described.clone();
        if let Some(line) = behind.checked_sub(1).and_then(|place| self.lines.get(place)) {
            described.line = line.line;
            if !line.file.is_empty() {
                described.file = kept(&line.file);
            }
        }
        described
    }
}

/// The lines of a function by ascending addresses; `None` where they contradict it. (Node 20 writes freed memory instead of the names
/// of files, zero bytes included, and then nobody can tell where the next entry begins.)
fn lines_of(mut bytes: &[u8], count: u64, code: &Range<u64>, shift: u64) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    let mut file: Arc<str> = Arc::from("");
    for _ in 0..count {
        let (fixed, rest) = bytes.split_first_chunk::<LINE_BYTES>()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let address = u64_at(fixed, 0).checked_sub(shift)?;
        if address < code.start || address > code.end {
            return None;
        }
        if &rest[..end] != SAME_FILE && file_name(&rest[..end]) != &*file {
            file = Arc::from(file_name(&rest[..end]));
        }
        lines.push(Line { address, line: u32_at(fixed, 8), file: Arc::clone(&file) });
        bytes = &rest[end + 1..];
    }
    lines.sort_by_key(|line| line.address);
    Some(lines)
}

/// A file's name; empty for what is none.
fn file_name(bytes: &[u8]) -> &str {
    let name = std::str::from_utf8(bytes).ok().filter(|name| name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control));
    name.map(|name| name.strip_prefix("file://").unwrap_or(name)).unwrap_or_default()
}

struct JitRecord {
    kind: u32,
    time: u64,
    start: u64,
    end: u64,
}

struct Input<R> {
    reader: BufReader<R>,
    at: u64,
    length: u64,
}

impl<R: Read + Seek> Input<R> {
    fn open(mut input: R) -> Result<Self, Fault> {
        let length = input.seek(SeekFrom::End(0)).and_then(|length| input.rewind().map(|()| length));
        let length = length.map_err(|error| unreadable(0, &error))?;
        Ok(Input { reader: BufReader::with_capacity(64 << 10, input), at: 0, length })
    }

    /// Where records begin, and the flags.
    fn header(&mut self) -> Result<(u64, u64), Fault> {
        let fault = |offset, problem: String| Err(Fault::new(offset, problem));
        if self.length < HEADER_BYTES as u64 {
            let problem = format!("expected a header of {HEADER_BYTES} bytes where {} are", self.length);
            return Err(Fault { is_end: true, ..Fault::new(0, problem) });
        }
        let mut header = [0; HEADER_BYTES];
        self.fill(&mut header, 0)?;
        let (magic, version, bytes) = (u32_at(&header, 0), u32_at(&header, 4), u32_at(&header, 8));
        if magic == MAGIC.swap_bytes() {
            return fault(0, "it was written on a machine with another byte order".to_owned());
        }
        if magic != MAGIC {
            return fault(0, "expected the magic number of a jitdump".to_owned());
        }
        if version != VERSION {
            return fault(4, format!("it has version {version}; longpole reads version {VERSION}"));
        }
        if (bytes as usize) < HEADER_BYTES || u64::from(bytes) > self.length {
            return fault(8, format!("its header has {bytes} bytes of {}", self.length));
        }
        Ok((u64::from(bytes), u64_at(&header, 32)))
    }

    /// Goes through the records from there on.
    fn records(&mut self, from: u64, mut take: impl FnMut(&JitRecord, &mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.go_to(from)?;
        while self.at < self.length {
            let (start, left) = (self.at, self.length - self.at);
            let fault = |problem| Err(Fault::new(start, problem));
            let breaks_off = |problem| Err(Fault { is_end: true, ..Fault::new(start, problem) });
            if left < RECORD_HEADER_BYTES as u64 {
                return breaks_off(format!("the last {left} bytes are not a whole record"));
            }
            let mut header = [0; RECORD_HEADER_BYTES];
            self.fill(&mut header, start)?;
            let bytes = u64::from(u32_at(&header, 4));
            if bytes < RECORD_HEADER_BYTES as u64 {
                return fault(format!("a record has {bytes} bytes"));
            }
            if bytes > left {
                return breaks_off(format!("a record has {bytes} bytes where {left} are left"));
            }
            let record = JitRecord { kind: u32_at(&header, 0), time: u64_at(&header, 8), start, end: start + bytes };
            if record.kind == kind::CLOSE {
                return Ok(());
            }
            take(&record, self)?;
            self.go_to(record.end)?;
        }
        Ok(())
    }

    /// What stands at the beginning of every record of its kind.
    fn body<const BYTES: usize>(&mut self, record: &JitRecord) -> Result<[u8; BYTES], Fault> {
        let mut body = [0; BYTES];
        if record.end - self.at < BYTES as u64 {
            let problem = format!("a record of kind {} has {} bytes, which is too few", record.kind, record.end - record.start);
            return Err(Fault::new(record.start, problem));
        }
        self.fill(&mut body, record.start)?;
        Ok(body)
    }

    /// The next bytes of a record, which are there.
    fn bytes(&mut self, count: u64, record: &JitRecord) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        self.fill(&mut bytes, record.start)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8], of: u64) -> Result<(), Fault> {
        self.reader.read_exact(bytes).map_err(|error| unreadable(of, &error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn go_to(&mut self, offset: u64) -> Result<(), Fault> {
        let by = offset.cast_signed() - self.at.cast_signed();
        self.reader.seek_relative(by).map_err(|error| unreadable(offset, &error))?;
        self.at = offset;
        Ok(())
    }
}

fn unreadable(offset: u64, error: &io::Error) -> Fault {
    Fault::new(offset, format!("it could not be read: {error}"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

#[cfg(test)]
mod tests;
