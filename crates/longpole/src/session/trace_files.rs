//! Spans that the command wrote to a file, because a flag of its own said so: they join what the receiver got.

use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use longpole_capture::launch::otel_environment::TraceFile;
use longpole_model::{LossKind, units};
use longpole_wire::otlp;

use super::Session;
use crate::input::import_file;
use crate::terminal::stderr::note;

/// Spans in one frame of the log.
const SPANS_PER_FRAME: usize = 1024;

impl Session {
    /// Reads the files that flags of the command name, and says so.
    pub(super) fn read_trace_files(&mut self) {
        for file in std::mem::take(&mut self.trace_files) {
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
        let before = |(start, _): (super::Moment, u32)| unix(written) < start.wall.unix_nanos().saturating_sub(CLOCK_OF_FILES_NANOS);
        if self.started.is_some_and(before) {
            bail!("the command did not write {shown}");
        }
        // As if it had sent them.
        let command = self.started.map(|(_, pid)| pid);
        let contents = import_file::read(&file.path)?;
        let recording = contents.recording();
        for spans in recording.spans.chunks(SPANS_PER_FRAME) {
            self.writer.wal().append_otlp_protobuf(command, &otlp::encode_trace(spans)).context("failed to write the log")?;
        }
        for loss in &recording.losses {
            self.writer.wal().append_loss(loss).context("failed to write the log")?;
        }
        Ok(recording.spans.len() as u64)
    }
}

/// Times of files come from a clock that ticks some hundred times a second.
const CLOCK_OF_FILES_NANOS: i64 = 20_000_000;

fn unix(time: SystemTime) -> i64 {
    let nanos = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
