//! A run that nobody saw: what a file stands for.

use longpole_model::{CaptureMode, Recording, Run, SpanId, Timestamp, TraceId};
use longpole_store::Assembler;
use longpole_wire::FileError;
use longpole_wire::redact::Redactor;

/// The weight of a sample if the file does not give one: shares are right then, and times are not.
pub(super) const ASSUMED_WEIGHT_NANOS: u64 = 1_000_000;

/// A run that has ended, and nobody saw how: what a file stands for.
pub(super) fn unseen_run(command: Vec<String>) -> Run {
    Run {
        command,
        working_directory: String::new(),
        host: String::new(),
        cpus: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        trace_id: TraceId::MAX,
        root_span_id: SpanId::MAX,
        root_pid: None,
        start: Timestamp(0),
        end: Some(Timestamp(0)),
        exit: None,
        rate_hz: 0,
        mode: CaptureMode::Off,
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    }
}

/// A recording of nothing, for spans that nobody recorded.
pub fn unseen(command: Vec<String>) -> Recording {
    Assembler::new(unseen_run(command)).finish()
}

/// An error with its cause on one line.
pub(super) fn with_cause(error: &FileError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The command that stands for the import of files. Their names may hold credentials, as arguments may.
pub(super) fn command_of(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut command: Vec<String> = std::iter::once("import".to_owned()).chain(names).collect();
    Redactor::default().arguments(&mut command);
    command
}
