//! The line that `ls` shows of a recording.

use longpole_model::{CaptureMode, Exit, Recording, Run, SpanId, Timestamp, TraceId};

/// What `ls` shows of a recording without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it started.
    pub start: Timestamp,
    /// How long it ran; `None` while it runs, or where the recorder was killed.
    pub wall_nanos: Option<u64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Number of spans.
    pub spans: u64,
    /// Number of samples.
    pub samples: u64,
    /// The long pole in one line, as the JSON object that `docs/formats/http-api.md` calls `answer`; kept as it is given.
    pub answer_json: Option<String>,
}

impl SummaryRow {
    /// The row of a run as far as it is known.
    pub fn of_run(run: &Run) -> Self {
        SummaryRow {
            command: run.command.clone(),
            start: run.start,
            wall_nanos: run.end.map(|end| end.nanos_since(run.start).max(0).cast_unsigned()),
            exit: run.exit,
            spans: 0,
            samples: 0,
            answer_json: None,
        }
    }

    /// What is left to say of a run whose description is damaged: what the catalog knows of it.
    pub(super) fn unknown_run(&self) -> Run {
        Run {
            command: self.command.clone(),
            working_directory: String::new(),
            host: String::new(),
            cpus: 1,
            version: String::new(),
            trace_id: TraceId::new([0xff; TraceId::BYTES]).unwrap_or_else(|| unreachable!("not all zero")),
            root_span_id: SpanId::new([0xff; SpanId::BYTES]).unwrap_or_else(|| unreachable!("not all zero")),
            root_pid: None,
            start: self.start,
            end: None,
            exit: None,
            rate_hz: 0,
            mode: CaptureMode::Off,
            cpu_nanos: None,
            usage: None,
            recorder_cost: None,
        }
    }

    /// The row of a recording, with its answer.
    pub fn of_recording(recording: &Recording, answer_json: Option<String>) -> Self {
        SummaryRow {
            spans: recording.spans.len() as u64,
            samples: recording.samples.len() as u64,
            answer_json,
            ..SummaryRow::of_run(&recording.run)
        }
    }
}
