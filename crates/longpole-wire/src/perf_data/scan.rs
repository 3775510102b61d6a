//! The first pass: what was sampled, where each record lies and when it was.

use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};

use super::attr::{ATTR_BYTES_MIN, Event, Layout};
use super::features::{self, Features};
use super::fields::{Fields, numbers};
use super::record::{self, kind};
use super::{HEADER_BYTES, MAGIC, MAGIC_SWAPPED, broken};
use crate::error::FileError;
use crate::limits::{Limits, expanded_bytes_max};

/// Size of the header of a file, and of that of a stream.
const FILE_HEADER_BYTES: u64 = 104;
const PIPE_HEADER_BYTES: u64 = 16;

/// Largest description of all events, and largest feature: build ids of the largest system take some 100 KB.
const PART_BYTES_MAX: u64 = 64 << 20;

/// Most events: `perf record -a` opens one of each kind for each CPU and describes each kind once.
const EVENTS_MAX: u64 = 4096;

/// Records that compressed bytes may hold, however few they are, and else one for each byte: real ones of 40 bytes shrink to some four.
/// A record takes 32 bytes here, and an empty one of eight compresses to nothing.
const INFLATED_RECORDS_FLOOR: usize = 1 << 20;

/// How much is read from the file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Kinds of perf's own records that are read in this pass.
const HEADER_ATTR: u32 = 64;
const TRACING_DATA: u32 = 66;
const HEADER_BUILD_ID: u32 = 67;
const AUXTRACE: u32 = 71;
const HEADER_FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED_2: u32 = 83;

/// Where the bytes of a record are.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecordPlace {
    File(u64),
    /// Among those that were compressed.
    Inflated(usize),
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) time: u64,
    pub(super) place: RecordPlace,
    pub(super) size: u16,
}

/// Everything but the records.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) events: Vec<Event>,
    pub(super) features: Features,
    pub(super) layout: Layout,
    pub(super) entries: Vec<Entry>,
    pub(super) inflated: Vec<u8>,
    /// Where the first of the compressed records stands in the file.
    pub(super) inflated_from: u64,
    pub(super) fault: Option<FileError>,
}

/// Where a part of the file lies.
#[derive(Debug, Clone, Copy)]
struct FileRange {
    offset: u64,
    bytes: u64,
}

impl FileRange {
    fn read(fields: &mut Fields<'_>) -> Option<FileRange> {
        Some(FileRange { offset: fields.u64()?, bytes: fields.u64()? })
    }

    /// The bytes of a small part.
    fn bytes(self, input: &mut (impl Read + Seek)) -> Result<Vec<u8>, FileError> {
        if self.bytes > PART_BYTES_MAX {
            return Err(broken("a part of the header is too large", self.offset));
        }
        input.seek(SeekFrom::Start(self.offset)).map_err(FileError::Read)?;
        let mut bytes = Vec::new();
        Read::by_ref(input).take(self.bytes).read_to_end(&mut bytes).map_err(FileError::Read)?;
        if (bytes.len() as u64) < self.bytes {
            let length = input.seek(SeekFrom::End(0)).map_err(FileError::Read)?;
            return Err(broken("the file is cut off", length));
        }
        Ok(bytes)
    }
}

/// Reads a file, or what `perf record -o -` wrote into one.
pub(super) fn scan<R: Read + Seek>(input: &mut R, limits: &Limits) -> Result<Scan, FileError> {
    let length = input.seek(SeekFrom::End(0)).map_err(FileError::Read)?;
    let head = FileRange { offset: 0, bytes: length.min(FILE_HEADER_BYTES) }.bytes(input)?;
    if head.starts_with(MAGIC_SWAPPED) {
        return Err(broken("written on a machine of the other byte order", 0));
    }
    if !head.starts_with(MAGIC) {
        return Err(broken("not the PERFILE2 of Linux 3.0 and later", 0));
    }
    let cut = || broken("the file is cut off", length);
    let mut fields = Fields(&head[MAGIC.len()..]);
    let mut scanner = Scanner { scan: Scan::default(), compressed: Vec::new(), compressed_at: None, last_time: 0 };
    match fields.u64().ok_or_else(cut)? {
        PIPE_HEADER_BYTES => {
            scanner.records(input, FileRange { offset: PIPE_HEADER_BYTES, bytes: length.saturating_sub(PIPE_HEADER_BYTES) })?
        }
        _ => scanner.file(input, fields, length)?,
    }
    scanner.inflate(limits);
    let mut scan = scanner.scan;
    if scan.events.is_empty() {
        return Err(scan.fault.unwrap_or_else(|| broken("no event is described", length)));
    }
    scan.features.name(&mut scan.events);
    Ok(scan)
}

struct Scanner {
    scan: Scan,
    /// What compressed records hold, one behind the other, and where the first stands.
    compressed: Vec<u8>,
    compressed_at: Option<u64>,
    last_time: u64,
}

impl Scanner {
    fn file<R: Read + Seek>(&mut self, input: &mut R, mut fields: Fields<'_>, length: u64) -> Result<(), FileError> {
        let mut header = || {
            let attr_bytes = fields.u64()?;
            let (attrs, data) = (FileRange::read(&mut fields)?, FileRange::read(&mut fields)?);
            let _event_types = FileRange::read(&mut fields)?;
            Some((attr_bytes, attrs, data, numbers(fields.take(32)?).collect::<Vec<u64>>()))
        };
        let (attr_bytes, attrs, data, feature_bits) = header().ok_or_else(|| broken("the file is cut off", length))?;
        self.attrs(input, attr_bytes, attrs)?;
        self.scan.layout = Layout::new(&self.scan.events);
        let end = data.offset.saturating_add(data.bytes);
        if data.bytes == 0 {
            // perf writes the size when it ends, and the features with it.
            self.records(input, FileRange { bytes: length.saturating_sub(data.offset), ..data })?;
            self.scan.fault.get_or_insert_with(|| broken("perf was killed before it had written everything", length));
            return Ok(());
        }
        if end <= length {
            let table = end;
            let wanted = (0u64..)
                .zip(&feature_bits)
                .flat_map(|(word, bits)| (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit));
            for (place, feature) in (0u64..).zip(wanted) {
                let entry = FileRange { offset: table.saturating_add(place * 16), bytes: 16 };
                let read = entry.bytes(input).and_then(|bytes| match FileRange::read(&mut Fields(&bytes)) {
                    Some(part) if Features::is_read(feature) => part.bytes(input),
                    _ => Ok(Vec::new()),
                });
                match read {
                    Ok(bytes) => self.scan.features.take(feature, &bytes),
                    // Samples can be shown without; the next one will lie no better.
                    Err(FileError::Read(error)) => return Err(FileError::Read(error)),
                    Err(error) => {
                        self.scan.fault = Some(error);
                        break;
                    }
                }
            }
        }
        self.records(input, FileRange { bytes: data.bytes.min(length.saturating_sub(data.offset)), ..data })?;
        if end > length {
            self.scan.fault.get_or_insert_with(|| broken("the file is cut off", length));
        }
        Ok(())
    }

    /// The events of a file: structs, each with where its ids lie.
    fn attrs<R: Read + Seek>(&mut self, input: &mut R, each_bytes: u64, attrs: FileRange) -> Result<(), FileError> {
        let ids_bytes = 16;
        let in_memory = usize::try_from(each_bytes).ok();
        let sizes = in_memory.and_then(|each| Some((each, each.checked_sub(ids_bytes).filter(|bytes| *bytes >= ATTR_BYTES_MIN)?)));
        let (in_memory, struct_bytes) = sizes.ok_or_else(|| broken("a description of an event is too short", 16))?;
        if attrs.bytes / each_bytes > EVENTS_MAX {
            return Err(broken("too many events", attrs.offset));
        }
        let bytes = attrs.bytes(input)?;
        // Ids of different events lie behind each other, so that all of them are less than the file.
        let mut ids_left = input.seek(SeekFrom::End(0)).map_err(FileError::Read)?;
        for each in bytes.chunks_exact(in_memory) {
            let (attr, ids) = each.split_at(struct_bytes);
            let event = Event::read(attr).zip(FileRange::read(&mut Fields(ids)));
            let (mut event, ids) = event.ok_or_else(|| broken("a description of an event is too short", attrs.offset))?;
            ids_left = ids_left.checked_sub(ids.bytes).ok_or_else(|| broken("ids of events are more than the file", ids.offset))?;
            event.ids = numbers(&ids.bytes(input)?).collect();
            self.scan.events.push(event);
        }
        Ok(())
    }

    /// Notes all records of a part. One that cannot be right ends them, and is kept as the fault.
    fn records<R: Read + Seek>(&mut self, input: &mut R, part: FileRange) -> Result<(), FileError> {
        input.seek(SeekFrom::Start(part.offset)).map_err(FileError::Read)?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
        let end = part.offset.saturating_add(part.bytes);
        let mut at = part.offset;
        let mut bytes = Vec::new();
        while at < end {
            let left = end - at;
            bytes.resize(HEADER_BYTES, 0);
            let size = match fill(&mut input, &mut bytes, left)? {
                true => record::header(&bytes).map_or(0, |(_, _, size)| usize::from(size)),
                false => return self.faulty("the file is cut off", end),
            };
            if size < HEADER_BYTES {
                return self.faulty("a record of less than its header", at);
            }
            bytes.resize(size, 0);
            if !fill(&mut input, &mut bytes[HEADER_BYTES..], left - HEADER_BYTES as u64)? {
                return self.faulty("the file is cut off", end);
            }
            let behind = match self.record(&bytes, RecordPlace::File(at), at) {
                Ok(behind) => behind,
                Err(problem) => return self.faulty(problem, at),
            };
            at = at.saturating_add(size as u64).saturating_add(behind);
            if behind > 0 {
                if at > end {
                    return self.faulty("the file is cut off", end);
                }
                input.seek(SeekFrom::Start(at)).map_err(FileError::Read)?;
            }
        }
        Ok(())
    }

    fn faulty(&mut self, problem: &'static str, offset: u64) -> Result<(), FileError> {
        self.scan.fault = Some(broken(problem, offset));
        Ok(())
    }

    /// Notes one record; says how many bytes stand behind it that its size does not count.
    fn record(&mut self, bytes: &[u8], place: RecordPlace, offset: u64) -> Result<u64, &'static str> {
        let Some((kind, misc, size)) = record::header(bytes) else { return Ok(0) };
        let body = &bytes[HEADER_BYTES..];
        let mut fields = Fields(body);
        match kind {
            HEADER_ATTR => self.pipe_attr(body)?,
            HEADER_FEATURE => {
                if let Some(feature) = fields.u64() {
                    self.scan.features.take(feature, fields.0);
                }
            }
            HEADER_BUILD_ID => self.scan.features.build_ids.extend(features::build_id(&mut fields, misc)),
            TRACING_DATA => return Ok(u64::from(fields.u32().unwrap_or(0)).next_multiple_of(8)),
            AUXTRACE => return Ok(fields.u64().unwrap_or(0)),
            COMPRESSED => {
                self.compressed_at.get_or_insert(offset);
                self.compressed.extend_from_slice(body);
            }
            COMPRESSED_2 => {
                let filled = fields.u64().and_then(|filled| fields.take(filled)).ok_or("a compressed record is too short")?;
                self.compressed_at.get_or_insert(offset);
                self.compressed.extend_from_slice(filled);
            }
            _ if kind < kind::OWN && kind::is_read(kind) => {
                let layout = &self.scan.layout;
                if !record::is_long_enough(kind, body, layout) {
                    return Err("a record is too short for what it should hold");
                }
                // What has no time belongs to what stands before it.
                let time = record::time(kind, body, layout).unwrap_or(self.last_time);
                self.last_time = time;
                if kind == kind::SAMPLE {
                    let (event, _) = layout.of(true, body);
                    match self.scan.events.get_mut(event) {
                        Some(event) => event.samples += 1,
                        None => return Err("a sample before the description of its event"),
                    }
                }
                self.scan.entries.push(Entry { time, place, size });
            }
            _ => {}
        }
        Ok(0)
    }

    /// An event of a stream: the struct says its own size, ids follow.
    fn pipe_attr(&mut self, body: &[u8]) -> Result<(), &'static str> {
        let size = body.get(4..8).and_then(|size| size.try_into().ok()).map_or(0, u32::from_le_bytes) as usize;
        let too_short = "a description of an event is too short";
        let (attr, ids) = body.split_at_checked(size.max(ATTR_BYTES_MIN)).ok_or(too_short)?;
        if self.scan.events.len() as u64 >= EVENTS_MAX {
            return Err("too many events");
        }
        let event = Event::read(attr).ok_or(too_short)?;
        let event = Event { ids: numbers(ids).collect(), ..event };
        self.scan.layout.add(&event);
        self.scan.events.push(event);
        Ok(())
    }

    /// Unpacks what compressed records hold: records again, in one stream of zstd that perf never ends.
    fn inflate(&mut self, limits: &Limits) {
        let Some(offset) = self.compressed_at else { return };
        self.scan.inflated_from = offset;
        let mut fault = |problem| {
            self.scan.fault.get_or_insert(broken(problem, offset));
        };
        // An empty block that is marked as the last one.
        let last_block: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
        let compressed = std::mem::take(&mut self.compressed);
        let packed_bytes = compressed.len();
        let bytes_max = expanded_bytes_max(packed_bytes as u64).min(limits.document_bytes_max as u64);
        let mut inflated = Vec::new();
        match ruzstd::decoding::StreamingDecoder::new(compressed.chain(last_block)) {
            Err(_) => fault("compressed records that are not zstd"),
            Ok(decoder) => match decoder.take(bytes_max).read_to_end(&mut inflated) {
                Err(_) => fault("compressed records that cannot be decompressed"),
                // Nobody compresses records so well: what there is so far is none.
                Ok(bytes) if bytes as u64 >= bytes_max => {
                    fault("compressed records of more than 100 times their size");
                    return;
                }
                Ok(_) => {}
            },
        }
        let records_max = self.scan.entries.len().saturating_add(packed_bytes.max(INFLATED_RECORDS_FLOOR));
        let mut at = 0;
        while let Some(rest) = inflated.get(at..).filter(|rest| !rest.is_empty()) {
            let size = record::header(rest).map_or(0, |(_, _, size)| usize::from(size));
            let Some(record) = rest.get(..size).filter(|record| record.len() >= HEADER_BYTES) else {
                self.scan.fault.get_or_insert(broken("compressed records that break off", offset));
                break;
            };
            if self.scan.entries.len() >= records_max {
                self.scan.fault.get_or_insert(broken("more compressed records than bytes of them", offset));
                break;
            }
            if let Err(problem) = self.record(record, RecordPlace::Inflated(at), offset) {
                self.scan.fault.get_or_insert(broken(problem, offset));
                break;
            }
            at += size;
        }
        self.scan.inflated = inflated;
    }
}

/// Fills the buffer; `false` where there are fewer bytes.
fn fill(input: &mut impl Read, buffer: &mut [u8], left: u64) -> Result<bool, FileError> {
    if (buffer.len() as u64) > left {
        return Ok(false);
    }
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(FileError::Read(error)),
    }
}
