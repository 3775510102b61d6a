//! Spans that the command wrote to a file: they join what the receiver got. Flags of Pulumi name such files; of any other program, a file
//! counts that an argument names, that the command wrote, and that holds spans of the run in a format that exporters write.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use longpole_capture::launch::otel_environment::file_of_url;
use longpole_capture::launch::signals;
use longpole_model::{LossKind, Recording, Span, Timestamp, units};
use longpole_wire::otlp;

use super::Session;
use super::trace_file_reader::{CLOCK_OF_FILES_NANOS, Deadline, LIMITS, Wanted, read_all};
use crate::terminal::stderr::note;

/// Spans in one frame of the log.
const SPANS_PER_FRAME: usize = 256;

impl Session {
    /// Reads the trace files that the command wrote, and says so. A signal ends that.
    pub(super) fn read_trace_files(&mut self, argv: &[OsString], end: Timestamp) {
        let Some((start, _)) = self.started else { return };
        let announced = std::mem::take(&mut self.trace_files);
        let named: BTreeSet<PathBuf> =
            argv.iter().skip(1).filter_map(path_of_argument).filter(|path| announced.iter().all(|it| it.path != *path)).collect();
        let announced = announced.into_iter().map(|file| Wanted { path: file.path, flag: Some(file.flag) });
        let files: Vec<Wanted> = announced.chain(named.into_iter().map(|path| Wanted { path, flag: None })).collect();
        let start = start.wall.unix_nanos();
        read_all(&files, start, LIMITS, |file, deadline, recording| {
            let logged = recording.and_then(|recording| match file.flag {
                Some(_) => self.log_spans(&recording, deadline),
                None => self.log_spans_of_run(&recording, (start, end), deadline),
            });
            let why = file.flag.map_or_else(|| "the command wrote".to_owned(), |flag| format!("{flag} names"));
            let shown = file.path.display();
            match logged {
                Ok(0) => {}
                Ok(spans) => note(format!("read {} from {shown}, which {why}", units::counted(spans, "span", "spans"))),
                Err(error) if file.flag.is_some() => {
                    self.lose(LossKind::Environment, format!("no spans of the file that {why}: {error:#}"));
                }
                Err(error) => self.lose(LossKind::Environment, format!("no spans of {shown}: {error:#}")),
            }
        });
    }

    /// Copies the spans of a file that no flag announced, if they are all of this run; how many there are.
    fn log_spans_of_run(&self, recording: &Recording, (start, end): (i64, Timestamp), deadline: Deadline) -> Result<u64> {
        let run = start.saturating_sub(CLOCK_OF_FILES_NANOS)..=end.unix_nanos().saturating_add(CLOCK_OF_FILES_NANOS);
        let is_of_run = |span: &Span| run.contains(&span.start.unix_nanos()) && run.contains(&span.end.unix_nanos());
        // A copy of an older trace is data of the command, not its own trace.
        if recording.spans.iter().all(is_of_run) { self.log_spans(recording, deadline) } else { Ok(0) }
    }

    fn log_frame(&self, command: Option<u32>, spans: &[Span], deadline: Deadline) -> Result<()> {
        deadline.check()?;
        let frame = otlp::encode_trace(spans);
        if frame.len() <= FRAME_BYTES_MAX || spans.len() < 2 {
            return self.writer.wal().append_trace_file(command, &frame).context("failed to write the log");
        }
        drop(frame);
        let (first, second) = spans.split_at(spans.len() / 2);
        self.log_frame(command, first, deadline)?;
        self.log_frame(command, second, deadline)
    }

    /// Copies spans to the log, up to the deadline; how many there are.
    fn log_spans(&self, recording: &Recording, deadline: Deadline) -> Result<u64> {
        let command = self.started.map(|(_, pid)| pid);
        for spans in recording.spans.chunks(SPANS_PER_FRAME) {
            if signals::interrupted() {
                bail!("interrupted");
            }
            self.log_frame(command, spans, deadline)?;
        }
        for loss in &recording.losses {
            self.writer.wal().append_loss(loss).context("failed to write the log")?;
        }
        Ok(recording.spans.len() as u64)
    }
}

/// A frame of more bytes is halved as long as it holds several spans: a log refuses one that is too large.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// The path of a trace file in an argument: `out.json`, `--trace-file=out.json`, `--traces=file:out.json`.
fn path_of_argument(word: &OsString) -> Option<PathBuf> {
    let word = word.to_str()?;
    let value = if word.starts_with('-') { word.split_once('=')?.1 } else { word };
    let path = file_of_url(value, std::env::var("HOME").ok().as_deref()).unwrap_or_else(|| PathBuf::from(value));
    path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)).then_some(path)
}

/// Extensions that exporters give their files. Others are not even opened.
const EXTENSIONS: [&str; 4] = ["json", "jsonl", "ndjson", "trace"];
