//! A recording in one file that can be mailed: `r7.lpole`, an uncompressed tar of its sealed directory.
//!
//! ```text
//! format                    longpole recording 6        first, so that a reader knows it by its beginning
//! segments/checksums        …                           which tables there are, and the checksum of each
//! segments/memory           …                           what they take in memory, which is not believed of a file
//! segments/spans.parquet    …                           one member per table, as they lie in the directory
//! ```
//!
//! Tar because every machine can take it apart, and every Parquet reader can read what comes out; without compression because the
//! tables are compressed already. Written is the plain form (`ustar`) with everything that tells one machine or hour from
//! another set to nothing, so that a recording gives the same archive everywhere. It reads what any tar writes of such a directory.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use longpole_model::Recording;

use crate::error::StoreError;
use crate::files;
use crate::format::CHECKSUMS_SINCE;
use crate::format_file;
use crate::layout;
use crate::memory::needs;
use crate::numbers::usize_of;
use crate::query_limits::QueryLimits;
use crate::segment::{CHECKSUMS_FILE, Tables, recording};

/// Bytes of a block of a tar.
const BLOCK_BYTES: usize = 512;

/// Two empty blocks end a tar.
const END_BYTES: usize = 2 * BLOCK_BYTES;

/// Where the fields of a header lie (POSIX.1-1988, "ustar").
mod field {
    use std::ops::Range;

    pub(super) const NAME: Range<usize> = 0..100;
    pub(super) const MODE: Range<usize> = 100..108;
    pub(super) const OWNER: Range<usize> = 108..116;
    pub(super) const GROUP: Range<usize> = 116..124;
    pub(super) const SIZE: Range<usize> = 124..136;
    pub(super) const TIME: Range<usize> = 136..148;
    pub(super) const CHECKSUM: Range<usize> = 148..156;
    pub(super) const KIND: usize = 156;
    pub(super) const MAGIC: Range<usize> = 257..263;
    pub(super) const VERSION: Range<usize> = 263..265;
}

const MAGIC: &[u8] = b"ustar";

/// Largest file that is read: it is held in memory, and what it expands to beside it. Ten million spans take 1 GiB.
pub(crate) const ARCHIVE_BYTES_MAX: u64 = 4 << 30;

/// Directory of the tables inside.
const SEGMENTS: &str = "segments/";

/// Whether a file that begins like this is the archive of a recording.
pub fn is_archive(first_bytes: &[u8]) -> bool {
    let Some(header) = first_bytes.get(..BLOCK_BYTES) else { return false };
    header[field::MAGIC].starts_with(MAGIC) && member_name(header) == Some(format_file::FILE_NAME)
}

/// Writes the sealed recording of this directory as one file, and says how many bytes that has. A damaged one is refused before the first
/// byte is written.
pub(crate) fn write(directory: &Path, version: u32, out: &mut dyn Write) -> Result<u64, StoreError> {
    let fail = |source| StoreError::Io { action: "archive", path: directory.to_owned(), source };
    let segments = layout::segments(directory);
    let tables = recording::verified_tables(&segments, version)?;
    let line = format_file::line_of(version);
    out.write_all(&header(format_file::FILE_NAME, line.len() as u64)).map_err(fail)?;
    write_padded(out, line.as_bytes()).map_err(fail)?;
    let mut bytes = (BLOCK_BYTES + line.len() + padding(line.len() as u64) + END_BYTES) as u64;
    // A recording from before there were checksums stays one: nobody knows that its tables are as they were written.
    let list = segments.join(CHECKSUMS_FILE);
    let list = (version >= CHECKSUMS_SINCE || list.exists()).then_some(list);
    // The list names it. A reader of the archive ignores it.
    let figures = recording::figures(&segments, version)?.map(|_| segments.join(needs::FILE_NAME));
    for path in list.into_iter().chain(figures).chain(tables.into_iter().map(|(_, path)| path)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = files::open(&path).map_err(StoreError::io("open", &path))?;
        let length = file.metadata().map_err(StoreError::io("read", &path))?.len();
        out.write_all(&header(&format!("{SEGMENTS}{name}"), length)).map_err(fail)?;
        let copied = io::copy(&mut Read::by_ref(&mut file).take(length), out).map_err(fail)?;
        if copied != length {
            return Err(StoreError::Corrupt { path, reason: "it became shorter while it was read".into() });
        }
        out.write_all(&[0; BLOCK_BYTES][..padding(length)]).map_err(fail)?;
        bytes += BLOCK_BYTES as u64 + length + padding(length) as u64;
    }
    out.write_all(&[0; END_BYTES]).and_then(|()| out.flush()).map_err(fail)?;
    Ok(bytes)
}

fn write_padded(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.write_all(&[0; BLOCK_BYTES][..padding(bytes.len() as u64)])
}

/// Reads an archive from its beginning, and holds all of it in memory meanwhile. The path is only its name in errors; it is not
/// opened again, because another user may have put something else there.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if it is no archive or is damaged, [`StoreError::TooLarge`] if it needs more memory than a reader allows,
/// [`StoreError::Newer`] for a later format, [`StoreError::Io`] if the input fails.
pub fn read(path: &Path, input: impl Read) -> Result<Recording, StoreError> {
    read_for(path, input, &QueryLimits::default())
}

/// The same for a query: the file and its rows take memory of it.
///
/// # Errors
///
/// As of [`read`], and those of [`QueryLimits::take`].
pub fn read_for(path: &Path, input: impl Read, query: &QueryLimits) -> Result<Recording, StoreError> {
    let archive = Archive::read(path, input)?;
    query.take(archive.bytes)?;
    archive.recording(query)
}

/// What is wrong with a file of more than [`ARCHIVE_BYTES_MAX`].
pub(crate) fn too_long() -> String {
    format!("it has more than {} GiB", ARCHIVE_BYTES_MAX >> 30)
}

/// An archive in memory.
struct Archive {
    path: PathBuf,
    bytes: u64,
    /// The bytes of the tables and of what stands beside them, by the names of their files.
    files: HashMap<String, Bytes>,
    version: u32,
}

impl Archive {
    fn read(path: &Path, input: impl Read) -> Result<Self, StoreError> {
        let corrupt = |reason: String| StoreError::Corrupt { path: path.to_owned(), reason };
        let mut bytes = Vec::new();
        input.take(ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(StoreError::io("read", path))?;
        if bytes.len() as u64 > ARCHIVE_BYTES_MAX {
            return Err(corrupt(too_long()));
        }
        Archive::of_bytes(path, &Bytes::from(bytes))
    }

    fn of_bytes(path: &Path, bytes: &Bytes) -> Result<Self, StoreError> {
        let members = members(bytes).map_err(|reason| StoreError::Corrupt { path: path.to_owned(), reason })?;
        let line = members.get(format_file::FILE_NAME).map(|range| &bytes[range.clone()]);
        let version = format_file::check_line(line.unwrap_or_default(), path)?;
        let files = members.into_iter().filter_map(|(name, range)| Some((name.strip_prefix(SEGMENTS)?.to_owned(), bytes.slice(range))));
        Ok(Archive { path: path.to_owned(), bytes: bytes.len() as u64, files: files.collect(), version })
    }

    fn recording(&self, query: &QueryLimits) -> Result<Recording, StoreError> {
        recording::read_tables(&Tables::of_memory(&self.path, self.bytes, &self.files, self.version)?.for_query(query))
    }
}

/// Name and place of every plain file.
fn members(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>, String> {
    let mut members = HashMap::new();
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + BLOCK_BYTES) {
        if header.iter().all(|byte| *byte == 0) {
            return Ok(members);
        }
        if !header[field::MAGIC].starts_with(MAGIC) || octal(&header[field::CHECKSUM]) != Some(checksum(header)) {
            return Err(format!("there is no tar member at byte {at}"));
        }
        let begin = at + BLOCK_BYTES;
        let length = octal(&header[field::SIZE]).and_then(|length| usize::try_from(length).ok());
        let end = length.and_then(|length| begin.checked_add(length)).filter(|end| *end <= bytes.len());
        let Some(end) = end else {
            return Err(format!("the file ends inside of the member at byte {at}"));
        };
        // Directories, owners and long names of other tars are passed over.
        if matches!(header[field::KIND], b'0' | 0) {
            let name = member_name(header).ok_or_else(|| format!("the name of the member at byte {at} is not valid"))?;
            if members.insert(name.to_owned(), begin..end).is_some() {
                return Err(format!("it holds {name} twice"));
            }
        }
        at = end + padding(end as u64 - begin as u64);
    }
    Err("the file is cut off: a tar ends with an empty block".into())
}

/// Empty bytes up to the next block.
fn padding(length: u64) -> usize {
    (BLOCK_BYTES - usize_of(length % BLOCK_BYTES as u64)) % BLOCK_BYTES
}

fn header(name: &str, length: u64) -> [u8; BLOCK_BYTES] {
    let mut header = [0; BLOCK_BYTES];
    let mut put = |range: Range<usize>, text: &str| header[range.start..range.start + text.len()].copy_from_slice(text.as_bytes());
    put(field::NAME, name);
    put(field::MODE, "0000644");
    put(field::OWNER, "0000000");
    put(field::GROUP, "0000000");
    // Eleven octal digits are 8 GiB, far beyond any table that fits the memory it was written from.
    put(field::SIZE, &format!("{length:011o}"));
    put(field::TIME, "00000000000");
    put(field::KIND..field::KIND + 1, "0");
    put(field::MAGIC, "ustar");
    put(field::VERSION, "00");
    let sum = checksum(&header);
    header[field::CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// The sum of all bytes, those of the sum itself taken for spaces.
fn checksum(header: &[u8]) -> u64 {
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = header[field::CHECKSUM].iter().map(|byte| u64::from(*byte)).sum();
    sum - own + field::CHECKSUM.len() as u64 * u64::from(b' ')
}

/// Octal digits, ended by a space or a zero byte.
fn octal(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    u64::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
}

/// The name of a member, without the `./` that tar puts before names it has found itself.
fn member_name(header: &[u8]) -> Option<&str> {
    let name = header[field::NAME].split(|byte| *byte == 0).next()?;
    let name = std::str::from_utf8(name).ok()?;
    Some(name.strip_prefix("./").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use longpole_model::stack::LocationKind;
    use longpole_model::{AbsAddr, Frame, Location, LocationId, Stack, StackId, Timestamp};
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::error_kind::ErrorKind;
    use crate::segment::{Checksum, Checksums};
    use crate::store::{Store, SummaryRow};
    use crate::testing::{self, Directory};

    /// A sealed recording of one span, and its archive.
    fn archived(directory: &Directory) -> (Recording, Vec<u8>) {
        let mut recording = crate::Assembler::new(testing::begun()).finish();
        recording.run.end = Some(Timestamp(5_000));
        recording.spans.push(testing::span(1, 1, 0, 0));
        archived_of(directory, recording)
    }

    fn archived_of(directory: &Directory, recording: Recording) -> (Recording, Vec<u8>) {
        let store = Store::open(directory.path().join("store")).unwrap();
        store.create(&recording.run).unwrap().write_segments(&recording, &SummaryRow::of_recording(&recording, None)).unwrap();
        let mut bytes = Vec::new();
        store.recording(store.resolve("last").unwrap()).unwrap().write_archive(&mut bytes).unwrap();
        (recording, bytes)
    }

    fn read(bytes: &[u8]) -> Result<Recording, StoreError> {
        super::read("r1.lpole".as_ref(), bytes)
    }

    #[test]
    fn a_recording_is_archived_and_read_again() {
        let (recording, bytes) = archived(&Directory::new());
        assert!(is_archive(&bytes));
        assert_eq!(read(&bytes).unwrap(), recording);
    }

    #[test]
    fn what_tar_takes_apart_and_puts_together_again_is_read() {
        let directory = Directory::new();
        let (recording, bytes) = archived(&directory);
        let at = |name: &str| directory.path().join(name);
        fs::write(at("r1.lpole"), bytes).unwrap();
        fs::create_dir(at("apart")).unwrap();
        let tar = |arguments: &[&str]| Command::new("tar").current_dir(at("apart")).args(arguments).status();
        let Ok(status) = tar(&["xf", "../r1.lpole"]) else { return };
        assert!(status.success());
        assert!(tar(&["--format=ustar", "-cf", "../again.lpole", "./format", "./segments"]).unwrap().success());
        assert_eq!(read(&fs::read(at("again.lpole")).unwrap()).unwrap(), recording);
    }

    #[test]
    fn a_cut_anywhere_is_an_error_and_no_panic() {
        let (_, bytes) = archived(&Directory::new());
        for length in (0..bytes.len() - END_BYTES).step_by(97) {
            let error = read(&bytes[..length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "cut at {length}: {error}");
        }
    }

    #[test]
    fn a_newer_archive_and_a_foreign_tar_are_refused_by_name() {
        let tar = |name: &str, text: &str| {
            let mut bytes = header(name, text.len() as u64).to_vec();
            bytes.extend(text.as_bytes());
            bytes.resize(bytes.len() + padding(text.len() as u64) + END_BYTES, 0);
            (is_archive(&bytes), read(&bytes).unwrap_err().kind())
        };
        assert_eq!(tar("format", "longpole recording 9\n"), (true, ErrorKind::Incompatible));
        assert_eq!(tar("README.md", "hello"), (false, ErrorKind::Corrupt));
    }

    /// An entry of a stack takes a few bits, and names all the functions that were inlined at its location.
    #[test]
    fn stacks_of_more_frames_than_fit_a_file_of_its_size_are_refused() {
        let directory = Directory::new();
        for (frames, is_read) in [(10, true), (20_000, false)] {
            let mut recording = crate::Assembler::new(testing::begun()).finish();
            let frame = Frame { function: "f".into(), file: Default::default(), line: 0, reason: None };
            let kind = LocationKind::Unmapped { address: AbsAddr(1) };
            recording.locations = vec![Location { id: LocationId(0), kind, frames: vec![frame; frames] }];
            recording.stacks = (0..1000).map(|id| Stack { id: StackId(id), locations: vec![LocationId(0); 4] }).collect();
            let (recording, bytes) = archived_of(&directory, recording);
            assert!(bytes.len() < 1 << 20);
            match read(&bytes) {
                Ok(found) => assert!(is_read && found == recording),
                Err(error) => assert!(!is_read && error.to_string().contains("stacks.parquet"), "{error}"),
            }
        }
    }

    /// Members of an archive, one behind the other.
    fn tar(members: &[(String, Vec<u8>)]) -> Bytes {
        let mut bytes = Vec::new();
        for (name, member) in members {
            bytes.extend(header(name, member.len() as u64));
            write_padded(&mut bytes, member).unwrap();
        }
        bytes.extend([0; END_BYTES]);
        bytes.into()
    }

    /// Changes bytes as damage does, and as somebody does who knows where sizes stand.
    fn damage(bytes: &mut Vec<u8>, random: &mut impl FnMut(usize) -> usize) {
        for _ in 0..1 + random(3) {
            let (at, from, length) = (random(bytes.len()), random(bytes.len()), 1 + random(200));
            match random(6) {
                0 | 1 => bytes[at] ^= 1 << random(8),
                2 => bytes[at] = [0, 0x7f, 0x80, 0xff][random(4)],
                3 => bytes.truncate(bytes.len() - random(bytes.len().min(64))),
                4 => {
                    let part = bytes[from..bytes.len().min(from + length)].to_vec();
                    let end = bytes.len().min(at + part.len());
                    bytes[at..end].copy_from_slice(&part[..end - at]);
                }
                _ => {
                    let end = bytes.len().min(at + length);
                    bytes.splice(at..end, std::iter::repeat_n(0xff, random(12)));
                }
            }
            if bytes.is_empty() {
                return;
            }
        }
    }

    /// Numbers below a bound, the same ones for the same seed.
    fn random(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        }
    }

    /// The archive of one span, and those of recordings with something in each table.
    fn archives(directory: &Directory) -> Vec<Bytes> {
        let mut runner = TestRunner::deterministic();
        let mut bytes = vec![archived(directory).1];
        for _ in 0..4 {
            bytes.push(archived_of(directory, testing::recording().new_tree(&mut runner).unwrap().current()).1);
        }
        bytes.into_iter().map(Bytes::from).collect()
    }

    fn read_bytes(bytes: Bytes) -> Result<Recording, StoreError> {
        Archive::of_bytes("r1.lpole".as_ref(), &bytes)?.recording(&QueryLimits::default())
    }

    #[expect(clippy::print_stdout, reason = "how many there were of each is what a long run is for")]
    fn report(result: String) {
        println!("{result}");
    }

    /// Reads archives that were damaged: what is read all the same must be what was written.
    fn feed_damaged(times: usize, seed: u64) {
        let (mut random, directory) = (random(seed), Directory::new());
        let wholes: Vec<(Bytes, String)> =
            archives(&directory).into_iter().map(|bytes| (bytes.clone(), format!("{:?}", read_bytes(bytes).unwrap()))).collect();
        let (mut read, mut refused) = (0, 0);
        for number in 0..times {
            let (whole, recording) = &wholes[number % wholes.len()];
            let mut bytes = whole.to_vec();
            damage(&mut bytes, &mut random);
            match read_bytes(bytes.into()) {
                Ok(found) => {
                    assert_eq!(&format!("{found:?}"), recording, "archive {number} of seed {seed}");
                    read += 1;
                }
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Incompatible), "{error}");
                    refused += 1;
                }
            }
        }
        report(format!("of {times} damaged recordings {read} were read as they were written and {refused} refused"));
        assert!(read > 0 && refused > 0);
    }

    #[test]
    fn damaged_archives_are_refused_or_read_as_they_were_written() {
        feed_damaged(300, 0x9e37_79b9_7f4a_7c15);
    }

    #[test]
    #[ignore = "slow: LONGPOLE_FORGED says how many"]
    fn many_damaged_archives_are_refused_or_read_as_they_were_written() {
        feed_damaged(number("LONGPOLE_FORGED", 20_000) as usize, number("LONGPOLE_FORGED_SEED", 7));
    }

    fn number(variable: &str, otherwise: u64) -> u64 {
        std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
    }

    /// Reads recordings with a changed table and a checksum to match: only the readers of the tables are left to find that.
    fn feed_forged(times: usize, seed: u64) {
        let (mut random, directory) = (random(seed), Directory::new());
        let (mut read, mut refused) = (0, 0);
        let parts = |bytes: Bytes| {
            let mut parts: Vec<(String, Vec<u8>)> =
                members(&bytes).unwrap().into_iter().map(|(name, range)| (name, bytes[range].to_vec())).collect();
            parts.sort();
            parts
        };
        let wholes: Vec<_> = archives(&directory).into_iter().map(parts).collect();
        for time in 0..times {
            let mut forged = wholes[time % wholes.len()].clone();
            let tables: Vec<usize> = (0..forged.len()).filter(|at| forged[*at].0.ends_with(".parquet")).collect();
            damage(&mut forged[tables[random(tables.len())]].1, &mut random);
            let mut list = Checksums::default();
            for table in tables {
                let (name, bytes) = &forged[table];
                list.insert(name[SEGMENTS.len()..].to_owned(), Checksum::of(bytes));
            }
            forged.iter_mut().find(|(name, _)| name.ends_with("checksums")).unwrap().1 = list.print().into_bytes();
            match read_bytes(tar(&forged)) {
                Ok(_) => read += 1,
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Incompatible), "{error}");
                    refused += 1;
                }
            }
        }
        report(format!("of {times} forged recordings {read} were read and {refused} refused"));
        assert!(read > 0 && refused > 0);
    }

    #[test]
    fn forged_tables_are_read_or_refused_and_never_a_panic() {
        feed_forged(300, 0x9e37_79b9_7f4a_7c15);
    }

    #[test]
    #[ignore = "slow: LONGPOLE_FORGED says how many"]
    fn many_forged_tables_are_read_or_refused_and_never_a_panic() {
        feed_forged(number("LONGPOLE_FORGED", 20_000) as usize, number("LONGPOLE_FORGED_SEED", 7));
    }
}
