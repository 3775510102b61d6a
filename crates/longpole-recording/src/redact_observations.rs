//! What the recorder sees, without the credentials in command lines and in what processes say of themselves.

use longpole_model::{Loss, LossKind, Observation, ObservationSink, sink::SinkError};
use longpole_wire::redact::Redactor;

use crate::loss_counters;

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
        // Each kind of its own: a new one does not compile before it is decided whether it is judged.
        let (taken, detail) = match &mut observation {
            Observation::ProcessExec { pid: _, time: _, name, executable, arguments } => {
                let taken = self.redactor.arguments(arguments) + self.redactor.string(name) + self.redactor.string(executable);
                (taken, "in command lines; run --redact off keeps them")
            }
            Observation::ProcessResource { pid: _, time: _, attributes } => {
                (self.redactor.attributes(attributes), "in the resource attributes of processes; run --redact off keeps them")
            }
            Observation::ThreadNamed { pid: _, tid: _, name } => {
                (self.redactor.string(name), "in the names of threads; run --redact off keeps them")
            }
            // What it says that it lost may quote what it read.
            Observation::Loss(loss) => {
                loss.detail = loss_counters::storable(&loss.detail);
                (0, "")
            }
            // Numbers, and names of code: those come from binaries and from what an interpreter runs.
            Observation::Clock(_)
            | Observation::Slept { .. }
            | Observation::Mapping(_)
            | Observation::Location { .. }
            | Observation::Named { .. }
            | Observation::Replaced { .. }
            | Observation::Stack { .. }
            | Observation::Sample(_)
            | Observation::CpuSlice(_)
            | Observation::Wait(_)
            | Observation::Journal { .. }
            | Observation::ProcessStarted { .. }
            | Observation::ProcessExited { .. }
            | Observation::ProcessStatus { .. }
            | Observation::ProcessListens { .. }
            | Observation::ProcessUsage(_)
            | Observation::ThreadStarted { .. }
            | Observation::ThreadExited { .. }
            | Observation::ThreadTotals { .. }
            | Observation::ThreadIdent { .. }
            | Observation::RunStarted { .. }
            | Observation::RunEnded { .. }
            | Observation::RunUsage(_)
            | Observation::RunLeft { .. }
            | Observation::RecorderCost(_) => (0, ""),
        };
        if taken > 0 {
            self.inner.observe(Observation::Loss(Loss::new(LossKind::ValuesRedacted, taken, detail)))?;
        }
        self.inner.observe(observation)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.inner.flush()
    }
}
