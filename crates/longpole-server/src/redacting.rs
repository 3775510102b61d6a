//! What the recorder sees, without the credentials in command lines and in what processes say of themselves.

use longpole_model::{Loss, LossKind, Observation, ObservationSink, sink::SinkError};
use longpole_wire::redact::Redactor;

/// Hands observations on without credentials.
#[derive(Debug)]
pub struct RedactingSink<S> {
    inner: S,
    redactor: Redactor,
}

impl<S: ObservationSink> RedactingSink<S> {
    /// Before this sink.
    pub fn new(inner: S) -> Self {
        RedactingSink { inner, redactor: Redactor::default() }
    }
}

impl<S: ObservationSink> ObservationSink for RedactingSink<S> {
    fn observe(&mut self, mut observation: Observation) -> Result<(), SinkError> {
        if let Observation::ProcessExec { arguments, .. } = &mut observation {
            let taken = self.redactor.arguments(arguments);
            if taken > 0 {
                self.inner.observe(Observation::Loss(Loss::new(
                    LossKind::ValuesRedacted,
                    taken,
                    "in command lines; run --redact off keeps them",
                )))?;
            }
        }
        if let Observation::ProcessResource { attributes, .. } = &mut observation {
            let taken = self.redactor.attributes(attributes);
            if taken > 0 {
                let detail = "in what processes say of themselves; run --redact off keeps them";
                self.inner.observe(Observation::Loss(Loss::new(LossKind::ValuesRedacted, taken, detail)))?;
            }
        }
        self.inner.observe(observation)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.inner.flush()
    }
}
