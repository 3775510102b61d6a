//! What cannot be kept is said while the command runs, not when it is over: a full disk can be helped then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longpole_model::sink::SinkError;
use longpole_model::{Loss, LossKind, Observation, ObservationSink};
use longpole_store::RecordingWriter;

use crate::terminal::stderr::note;

/// Says once that something could not be written. Clones say it together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alarm(Arc<AtomicBool>);

impl Alarm {
    pub(crate) fn raise(&self, error: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            let text = format!("failed to {error}; the command goes on, and longpole counts what it cannot write");
            let copy = text.clone();
            // Whoever reports it has requests to answer, and standard error may be a pipe that nobody reads.
            if std::thread::Builder::new().name("longpole-note".into()).spawn(move || note(copy)).is_err() {
                note(text);
            }
        }
    }

    /// What is to be said of observations that did not get into the log. The space for it is there, also on a disk that is full.
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

    /// A sink that raises it.
    pub(crate) fn before<S: ObservationSink>(&self, inner: S) -> AlarmedSink<S> {
        AlarmedSink { inner, alarm: self.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct AlarmedSink<S> {
    inner: S,
    alarm: Alarm,
}

impl<S: ObservationSink> ObservationSink for AlarmedSink<S> {
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        self.inner.observe(observation).inspect_err(|error| self.alarm.raise(&error.0))
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.inner.flush().inspect_err(|error| self.alarm.raise(&error.0))
    }
}
