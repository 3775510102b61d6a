//! Reads a log from its beginning to its end, and says what is missing.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use longpole_model::{Loss, LossKind, Run};

use super::error::WalError;
use super::frame::{FILE_HEADER_BYTES, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Frame, Generation, Header, MAGIC, u32_at};
use super::search::{Search, read_at};
use crate::files;
use crate::format::WAL_VERSION;
use crate::numbers::usize_of;

/// Whether the machine has started anew since the recorder died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// The machine has run on: the log is what the recorder wrote.
    SameBoot,
    /// It has started anew, or the recording is on another machine now: the log is what had reached the disk.
    OtherBoot,
    /// An older longpole did not write it down, or the kernel does not tell.
    Unknown,
}

/// What there is to say of a log's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// Its recorder lives: a frame that is half there is under way, not torn.
    Living,
    /// Its recorder reads it itself.
    Sealing,
    /// Its recorder died.
    Killed(Since),
}

/// The frames of a log, in the order they were appended. The first is the run, the one that was given where the log's own cannot be read.
/// Frames that are damaged are passed over and counted: what is missing comes last. After an error it ends.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    reader: BufReader<File>,
    /// Where the reader stands.
    reader_at: u64,
    /// Where the next frame begins.
    offset: u64,
    /// Length of the file when it was opened.
    length: u64,
    /// What it begins with, where the log does not say it; gone once that was yielded.
    unknown: Option<Box<Frame>>,
    /// Whether that was a run. The name of a generation's file says as much as its first frame.
    run_is_unknown: bool,
    /// A frame that waits behind that.
    waiting: Option<Box<Frame>>,
    at_end: AtEnd,
    search: Search,
    damage: Damage,
    torn: Option<u64>,
    /// Bytes that were written and are not there any more.
    taken: u64,
    /// Yielded behind the last frame, the first last.
    missing: Option<Vec<Loss>>,
}

/// Damaged places, counted together: a log can have as many as it has bytes.
#[derive(Debug, Default)]
struct Damage {
    places: u64,
    bytes: u64,
    first: u64,
}

/// What stands where the next frame should.
enum Next {
    Frame(Box<Frame>),
    /// A whole frame of this many bytes that makes no sense.
    Senseless(u64),
    /// Something that is no frame.
    Broken,
    /// The beginning of a frame that the recorder is writing.
    UnderWay,
    End,
}

impl Replay {
    /// Opens a log. `unknown` stands for the run where the log's own description is damaged.
    pub(crate) fn open(path: &Path, unknown: &Run, at_end: AtEnd) -> Result<Self, WalError> {
        let file = files::open(path).map_err(|source| WalError::Io { action: "open", path: path.to_owned(), source })?;
        Replay::of_file(file, path, Frame::Run(unknown.clone()), at_end)
    }

    /// Opens the log of a server that has ended. `unknown` stands for what it begins with, where that is damaged.
    pub(crate) fn of_generation(path: &Path, unknown: Generation) -> Result<Self, WalError> {
        let file = files::open(path).map_err(|source| WalError::Io { action: "open", path: path.to_owned(), source })?;
        Replay::of_file(file, path, Frame::Generation(unknown), AtEnd::Sealing)
    }

    /// Opens a log by the descriptor that it was written by: `written` bytes of it. What somebody cut off is missing.
    pub(super) fn of_writer(file: File, path: &Path, unknown: &Run, written: u64) -> Result<Self, WalError> {
        let mut replay = Replay::of_file(file, path, Frame::Run(unknown.clone()), AtEnd::Sealing)?;
        replay.taken = written.saturating_sub(replay.length);
        Ok(replay)
    }

    fn of_file(file: File, path: &Path, unknown: Frame, at_end: AtEnd) -> Result<Self, WalError> {
        let fail = |source| WalError::Io { action: "open", path: path.to_owned(), source };
        let length = file.metadata().map_err(fail)?.len();
        let mut header = [0; FILE_HEADER_BYTES];
        let there = read_at(&file, &mut header, 0).map_err(fail)?;
        let mut replay = Replay {
            path: path.to_owned(),
            reader: BufReader::with_capacity(64 << 10, file),
            reader_at: 0,
            offset: FILE_HEADER_BYTES as u64,
            length,
            unknown: Some(Box::new(unknown)),
            run_is_unknown: false,
            waiting: None,
            at_end,
            search: Search::new(length),
            damage: Damage::default(),
            torn: None,
            taken: 0,
            missing: None,
        };
        let (magic, found) = (&header[..MAGIC.len()], u32_at(&header, MAGIC.len()));
        let is_log = there == FILE_HEADER_BYTES && magic == MAGIC;
        if is_log && (WAL_VERSION + 1..=WAL_VERSION + VERSIONS_AHEAD_MAX).contains(&found) {
            return Err(WalError::Newer { path: path.to_owned(), found });
        }
        if !is_log || found > WAL_VERSION {
            let is_blank = header[..there].iter().all(|byte| *byte == 0) || MAGIC.starts_with(&header[..there.min(MAGIC.len())]);
            match replay.search.next_frame(replay.reader.get_ref(), 0).map_err(fail)? {
                Some(at) => replay.pass_over(0, at),
                // A power cut can leave a log that was made and has no byte yet.
                None if is_blank => replay.offset = 0,
                None => return Err(WalError::NotALog { path: path.to_owned() }),
            }
        }
        Ok(replay)
    }

    /// Counts what lies between as damaged.
    fn pass_over(&mut self, from: u64, to: u64) {
        if self.damage.places == 0 {
            self.damage.first = from;
        }
        self.damage.places += 1;
        self.damage.bytes += to - from;
        self.offset = to;
    }

    /// The next frame that can be read.
    fn next_frame(&mut self) -> Result<Option<Frame>, WalError> {
        loop {
            match self.look().map_err(|source| self.unread(source))? {
                Next::Frame(frame) => return Ok(Some(*frame)),
                Next::Senseless(bytes) => self.pass_over(self.offset, self.offset + bytes),
                Next::End | Next::UnderWay => return Ok(None),
                Next::Broken => {
                    let found = self.search.next_frame(self.reader.get_ref(), self.offset + 1);
                    match found.map_err(|source| self.unread(source))? {
                        Some(at) => self.pass_over(self.offset, at),
                        None => {
                            self.torn = Some(self.offset);
                            return Ok(None);
                        }
                    }
                }
            }
        }
    }

    fn unread(&self, source: io::Error) -> WalError {
        WalError::Io { action: "read", path: self.path.clone(), source }
    }

    /// What stands at the offset, which moves on behind a frame.
    fn look(&mut self) -> io::Result<Next> {
        let rest = self.length.saturating_sub(self.offset);
        if rest == 0 {
            return Ok(Next::End);
        }
        let cut = if self.at_end == AtEnd::Living { Next::UnderWay } else { Next::Broken };
        if rest < FRAME_HEADER_BYTES as u64 {
            return Ok(cut);
        }
        // Within what is buffered this costs nothing.
        self.reader.seek_relative(self.offset.cast_signed() - self.reader_at.cast_signed())?;
        self.reader_at = self.offset;
        let mut header = [0; FRAME_HEADER_BYTES];
        self.reader.read_exact(&mut header)?;
        self.reader_at += FRAME_HEADER_BYTES as u64;
        let Header { length, crc, kind } = Header::of(&header);
        if length > FRAME_BYTES_MAX as u64 {
            return Ok(Next::Broken);
        }
        if length > rest - FRAME_HEADER_BYTES as u64 {
            return Ok(cut);
        }
        if !self.search.may_spend(length) {
            return Ok(Next::Broken);
        }
        let mut payload = vec![0; usize_of(length)];
        self.reader.read_exact(&mut payload)?;
        self.reader_at += length;
        if crc32c::crc32c_append(crc32c::crc32c(&[kind]), &payload) != crc {
            self.search.spend(length);
            return Ok(Next::Broken);
        }
        let bytes = FRAME_HEADER_BYTES as u64 + length;
        match Frame::decode(kind, payload) {
            // Only the first describes the run.
            Ok(frame) if frame.is_opening() && self.unknown.is_none() => Ok(Next::Senseless(bytes)),
            Ok(frame) => {
                self.offset += bytes;
                Ok(Next::Frame(Box::new(frame)))
            }
            Err(_) => Ok(Next::Senseless(bytes)),
        }
    }

    /// What is missing, the first last.
    fn missing(&self) -> Vec<Loss> {
        let mut missing = Vec::new();
        if let AtEnd::Killed(since) = self.at_end {
            let is_whole = self.damage.places == 0 && self.torn.is_none() && !self.run_is_unknown;
            let detail = match since {
                Since::SameBoot if is_whole => {
                    "longpole ended before it could seal the recording; the recording contains every acknowledged span, but does not count \
                     refused or dropped ones"
                }
                Since::OtherBoot => {
                    "longpole or the machine stopped before the recording was sealed; it contains what had reached the disk, and the last \
                     acknowledged data may be missing"
                }
                _ => "longpole ended before it could seal the recording; the recording contains what could be read of its log",
            };
            missing.push(Loss::new(LossKind::RecorderKilled, 1, detail));
        }
        if let Some(offset) = self.torn {
            let bytes = self.length - offset;
            missing.push(Loss::new(LossKind::WalTorn, 1, format!("the last {bytes} bytes, from offset {offset}, are not a whole frame")));
        }
        let Damage { places, bytes, first } = self.damage;
        if places > 0 {
            let detail =
                format!("{bytes} bytes of the log are damaged, the first at offset {first}; longpole recovered the data after them");
            missing.push(Loss::new(LossKind::WalDamaged, places, detail));
        }
        if self.search.is_spent() {
            let detail = "the log is so damaged that longpole stopped searching it for more frames";
            missing.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        if self.run_is_unknown {
            let detail = "the log has no description of the run; its command and start come from the catalog";
            missing.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        if self.taken > 0 {
            let detail = format!("the log lost {} bytes while longpole wrote it; their content is missing", self.taken);
            missing.push(Loss::new(LossKind::WalDamaged, 1, detail));
        }
        missing
    }

    /// What the log begins with, where it does not say it; once.
    fn take_unknown(&mut self) -> Option<Frame> {
        self.unknown.take().map(|opening| {
            self.run_is_unknown = matches!(*opening, Frame::Run(_));
            *opening
        })
    }
}

impl Iterator for Replay {
    type Item = Result<Frame, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(frame) = self.waiting.take() {
            return Some(Ok(*frame));
        }
        if self.missing.is_none() {
            match self.next_frame() {
                Ok(Some(frame)) if frame.is_opening() => {
                    self.unknown = None;
                    return Some(Ok(frame));
                }
                Ok(Some(frame)) => {
                    // What stands first opens the log, or damage took it.
                    let Some(unknown) = self.take_unknown() else { return Some(Ok(frame)) };
                    self.waiting = Some(Box::new(frame));
                    return Some(Ok(unknown));
                }
                Ok(None) => {
                    // A recorder that lives has not come to its first frame.
                    let unknown = if self.at_end == AtEnd::Living { None } else { self.take_unknown() };
                    self.missing = Some(self.missing());
                    if let Some(unknown) = unknown {
                        return Some(Ok(unknown));
                    }
                }
                Err(error) => {
                    self.missing = Some(Vec::new());
                    return Some(Err(error));
                }
            }
        }
        self.missing.as_mut()?.pop().map(|loss| Ok(Frame::Loss(loss)))
    }
}

/// Versions of logs that are to come within the life of a program. A larger number is damage.
const VERSIONS_AHEAD_MAX: u32 = 32;
