//! Writes observations to the caller's sink, and counts those it could not keep.

use std::sync::Arc;

use longpole_model::{Observation, ObservationSink};

use crate::worker::Liveness;

/// Writes to the sink.
pub(crate) struct ObservationWriter {
    sink: Box<dyn ObservationSink>,
    /// Observations that the sink could not keep.
    pub(crate) not_kept: u64,
    /// Why it could not keep the first of them.
    pub(crate) not_kept_reason: Option<String>,
    /// Whether there are observations since the last flush.
    pub(crate) dirty: bool,
    /// The liveness of the thread that writes.
    pub(crate) liveness: Arc<Liveness>,
}

impl ObservationWriter {
    pub(crate) fn new(sink: Box<dyn ObservationSink>) -> ObservationWriter {
        ObservationWriter { sink, not_kept: 0, not_kept_reason: None, dirty: false, liveness: Arc::default() }
    }

    /// Writes one observation; whether the sink kept it.
    pub(crate) fn give(&mut self, observation: Observation) -> bool {
        self.dirty = true;
        let ObservationWriter { sink, liveness, .. } = self;
        match liveness.writing(|| sink.observe(observation)) {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                self.note(error.0);
                false
            }
            None => false,
        }
    }

    /// Flushes the sink.
    pub(crate) fn flush(&mut self) {
        self.dirty = false;
        let ObservationWriter { sink, liveness, .. } = self;
        match liveness.writing(|| sink.flush()) {
            Some(Err(error)) => self.note(error.0),
            Some(Ok(())) => liveness.has_written(),
            None => {}
        }
    }

    fn note(&mut self, reason: String) {
        self.not_kept += 1;
        self.not_kept_reason.get_or_insert(reason);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use longpole_model::sink::SinkError;
    use std::sync::Mutex;

    struct Shared(Arc<Mutex<Vec<Observation>>>, bool);

    impl ObservationSink for Shared {
        fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
            if self.1 {
                return Err(SinkError("disk full".to_owned()));
            }
            self.0.lock().unwrap().push(observation);
            Ok(())
        }

        fn flush(&mut self) -> Result<(), SinkError> {
            Ok(())
        }
    }

    /// A writer whose sink keeps all, or fails, and what the sink has.
    pub(crate) fn out(fails: bool) -> (ObservationWriter, Arc<Mutex<Vec<Observation>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        (ObservationWriter::new(Box::new(Shared(Arc::clone(&seen), fails))), seen)
    }
}
