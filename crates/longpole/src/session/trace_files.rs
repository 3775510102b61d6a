//! Spans that the command wrote to a file: they join what the receiver got. Flags of Pulumi name such files; of any other program, a file
//! counts that an argument names, that the command wrote, and that holds spans of the run in a format that exporters write.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use longpole_capture::launch::otel_environment::{TraceFile, file_of_url};
use longpole_model::{LossKind, Recording, Span, Timestamp, units};
use longpole_wire::otlp;

use super::{Moment, Session};
use crate::input::import_file;
use crate::terminal::stderr::note;

/// Spans in one frame of the log.
const SPANS_PER_FRAME: usize = 1024;

impl Session {
    /// Reads the trace files that the command wrote, and says so.
    pub(super) fn read_trace_files(&mut self, argv: &[OsString], end: Timestamp) {
        let files = std::mem::take(&mut self.trace_files);
        let named = argv.iter().skip(1).filter_map(path_of_argument).filter(|path| files.iter().all(|it| it.path != *path));
        for path in self.written_trace_files(named.collect()) {
            match self.read_unannounced(&path, end) {
                Ok(0) => {}
                Ok(spans) => {
                    note(format!("read {} from {}, which the command wrote", units::counted(spans, "span", "spans"), path.display()))
                }
                Err(error) => {
                    self.lose(LossKind::Environment, format!("no spans of {}, which the command wrote: {error:#}", path.display()))
                }
            }
        }
        for file in files {
            match self.read_trace_file(&file) {
                Ok(spans) => {
                    note(format!("read {} from {}, which {} names", units::counted(spans, "span", "spans"), file.path.display(), file.flag))
                }
                Err(error) => self.lose(LossKind::Environment, format!("no spans of the file that {} names: {error:#}", file.flag)),
            }
        }
    }

    /// Copies the spans of a file to the log; how many there are.
    fn read_trace_file(&self, file: &TraceFile) -> Result<u64> {
        let shown = file.path.display();
        let written = file.path.metadata().and_then(|about| about.modified()).with_context(|| format!("failed to read {shown}"))?;
        if !is_since(self.started.map(|(start, _)| start), written) {
            bail!("the command did not write {shown}");
        }
        self.log_spans(&import_file::read(&file.path)?.recording())
    }

    /// Those of these files that the command wrote and that hold spans. A file system that does not answer has none.
    fn written_trace_files(&self, paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
        if paths.is_empty() {
            return Vec::new();
        }
        let is_written = {
            let earliest = self.started.map(|(start, _)| start);
            move |path: &PathBuf| {
                path.metadata().is_ok_and(|about| about.is_file() && about.modified().is_ok_and(|at| is_since(earliest, at)))
            }
        };
        let (sender, found) = channel();
        let search = move || sender.send(paths.into_iter().filter(is_written).filter(|path| holds_spans(path)).collect());
        std::thread::spawn(search);
        found.recv_timeout(PROBE_MAX).unwrap_or_default()
    }

    /// Copies the spans of a file that no flag announced, if they are all of this run; how many there are.
    fn read_unannounced(&self, path: &Path, end: Timestamp) -> Result<u64> {
        let Some((start, _)) = self.started else { return Ok(0) };
        if path.metadata().is_ok_and(|about| about.len() > UNANNOUNCED_BYTES_MAX) {
            bail!("it has more than {}; longpole import reads it", units::bytes(UNANNOUNCED_BYTES_MAX));
        }
        let contents = import_file::read(path)?;
        let recording = contents.recording();
        let run = start.wall.unix_nanos().saturating_sub(CLOCK_OF_FILES_NANOS)..=end.unix_nanos().saturating_add(CLOCK_OF_FILES_NANOS);
        let is_of_run = |span: &Span| run.contains(&span.start.unix_nanos()) && run.contains(&span.end.unix_nanos());
        // A copy of an older trace is data of the command, not its own trace.
        if recording.spans.iter().all(is_of_run) { self.log_spans(&recording) } else { Ok(0) }
    }

    /// Copies spans to the log as if the command had sent them; how many there are.
    fn log_spans(&self, recording: &Recording) -> Result<u64> {
        let command = self.started.map(|(_, pid)| pid);
        for spans in recording.spans.chunks(SPANS_PER_FRAME) {
            self.writer.wal().append_otlp_protobuf(command, &otlp::encode_trace(spans)).context("failed to write the log")?;
        }
        for loss in &recording.losses {
            self.writer.wal().append_loss(loss).context("failed to write the log")?;
        }
        Ok(recording.spans.len() as u64)
    }
}

/// Whether a file of this time was written since the command started.
fn is_since(start: Option<Moment>, written: SystemTime) -> bool {
    start.is_none_or(|start| unix(written) >= start.wall.unix_nanos().saturating_sub(CLOCK_OF_FILES_NANOS))
}

/// The path of a trace file in an argument: `out.json`, `--trace-file=out.json`, `--traces=file:out.json`.
fn path_of_argument(word: &OsString) -> Option<PathBuf> {
    let word = word.to_str()?;
    let value = if word.starts_with('-') { word.split_once('=')?.1 } else { word };
    let path = file_of_url(value, std::env::var("HOME").ok().as_deref()).unwrap_or_else(|| PathBuf::from(value));
    path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)).then_some(path)
}

/// Extensions that exporters give their files. Others are not even opened.
const EXTENSIONS: [&str; 4] = ["json", "jsonl", "ndjson", "trace"];

/// How long a file system may take to show its files.
const PROBE_MAX: Duration = Duration::from_secs(1);

/// Whether a file begins as exporters of spans write it: OTLP as JSON lines, or AppDash's memory.
fn holds_spans(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let holds = |words: &[u8]| head.windows(words.len()).any(|window| window == words);
    read.is_ok() && (holds(b"\"resourceSpans\"") || holds(b"memoryStoreData"))
}

/// Nobody asked to read this file, so the end of the command does not wait for more than a second or two of reading.
const UNANNOUNCED_BYTES_MAX: u64 = 128 << 20;

/// What tells the format stands at the beginning.
const HEAD_BYTES: u64 = 4096;

/// Times of files come from a clock that ticks some hundred times a second.
const CLOCK_OF_FILES_NANOS: i64 = 20_000_000;

fn unix(time: SystemTime) -> i64 {
    let nanos = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
