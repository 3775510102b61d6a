//! A log that cannot be written is reported while the command runs, not when it is over: there may be time to free the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longpole_model::sink::SinkError;
use longpole_model::{Loss, LossKind, Observation, ObservationSink};
use longpole_store::RecordingWriter;

use crate::terminal::stderr::note;

/// Reports the first failure to write the log. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteFailure(Arc<AtomicBool>);

impl WriteFailure {
    /// Reports it, unless one was reported before.
    pub(crate) fn report(&self, error: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            let text = format!("failed to {error}; the command goes on, and longpole counts what it cannot write");
            let copy = text.clone();
            // The caller has requests to answer, and standard error may be a pipe that nobody reads.
            if std::thread::Builder::new().name("longpole-note".into()).spawn(move || note(copy)).is_err() {
                note(text);
            }
        }
    }

    /// The loss of what did not get into the log. The log has reserved the space for it, for a disk that is full.
    pub(crate) fn unwritten(&self, writer: &RecordingWriter) -> Option<Observation> {
        writer.wal().begin_end();
        if !self.0.load(Ordering::Relaxed) {
            return None;
        }
        writer.release_reserve();
        let lost = writer.wal().lost();
        let what = "samples, context switches, waits and other events";
        let detail = match writer.wal().reached_limit() {
            Some(limit) => format!("{what} after the recording reached its limit of {limit} bytes (--max-recording-bytes)"),
            None => format!("{what} while the log could not be written"),
        };
        (lost > 0).then(|| Observation::Loss(Loss::new(LossKind::NotWritten, lost, detail)))
    }

    /// A sink whose failures are reported.
    pub(crate) fn watch<S: ObservationSink>(&self, inner: S) -> WatchedSink<S> {
        WatchedSink { inner, write_failure: self.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct WatchedSink<S> {
    inner: S,
    write_failure: WriteFailure,
}

impl<S: ObservationSink> ObservationSink for WatchedSink<S> {
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        self.inner.observe(observation).inspect_err(|error| self.write_failure.report(&error.0))
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.inner.flush().inspect_err(|error| self.write_failure.report(&error.0))
    }
}
