//! What cannot be kept is said while the command runs, not when it is over: a full disk can be helped then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longpole_model::sink::SinkError;
use longpole_model::{Observation, ObservationSink};

use super::run::say;

/// Says once that something could not be written. Clones say it together.
#[derive(Debug, Clone, Default)]
pub(super) struct Alarm(Arc<AtomicBool>);

impl Alarm {
    pub(super) fn raise(&self, error: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            say(&format!("longpole: failed to {error}; the command goes on, and what cannot be written is counted\n"));
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A sink that raises it.
    pub(super) fn before<S: ObservationSink>(&self, inner: S) -> AlarmedSink<S> {
        AlarmedSink { inner, alarm: self.clone() }
    }
}

#[derive(Debug)]
pub(super) struct AlarmedSink<S> {
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
