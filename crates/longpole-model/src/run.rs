//! One execution of a command.

use crate::id::{SpanId, TraceId};
use crate::time::Timestamp;
use crate::usage::RunUsage;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
}

/// What the recorder was allowed to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureMode {
    /// User-space stacks of the command's own processes: what every user may do (`perf_event_paranoid` 2).
    User {
        /// Why not the kernel's as well, and the remedy: lower-case fragment for people, empty where that is not known.
        why_not_kernel: String,
    },
    /// Stacks of user space and, above them, of the kernel: `perf_event_paranoid` 1 or CAP_PERFMON.
    Perf,
    /// Samples that another tool took, whatever it was allowed to see.
    Imported,
    /// No samples, because the user switched sampling off.
    Off,
    /// No samples, and why, with the remedy.
    Refused {
        /// Lower-case fragment for people.
        reason: String,
    },
}

impl CaptureMode {
    /// The word SQL, JSON and the page use.
    pub fn as_str(&self) -> &'static str {
        match self {
            CaptureMode::User { .. } => "user",
            CaptureMode::Perf => "perf",
            CaptureMode::Imported => "imported",
            CaptureMode::Off => "off",
            CaptureMode::Refused { .. } => "refused",
        }
    }
}

/// What recording itself cost: the recorder's own process, from the command's start until its end was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderCost {
    /// User and system time of the recorder.
    pub cpu_nanos: u64,
    /// Largest resident memory of the recorder.
    pub rss_bytes_max: u64,
}

/// One execution of a command, and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Where it was started; empty where unknown.
    pub working_directory: String,
    /// Name of the machine.
    pub host: String,
    /// CPUs online.
    pub cpus: u32,
    /// Version of longpole that recorded.
    pub version: String,
    /// The trace the command was offered by `TRACEPARENT`.
    pub trace_id: TraceId,
    /// The span id it was offered as its parent: the command's own span, root of the run.
    pub root_span_id: SpanId,
    /// Pid of the command; `None` where it could not be started.
    pub root_pid: Option<u32>,
    /// When it started (released from the gate).
    pub start: Timestamp,
    /// When it was reaped; `None` while it runs, or where the recorder was killed.
    pub end: Option<Timestamp>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Requested samples a second; 0 without sampling.
    pub rate_hz: u32,
    /// What the recorder was allowed to see.
    pub mode: CaptureMode,
    /// CPU time of the command and every descendant it waited for, user and system, as the kernel's rusage has it.
    pub cpu_nanos: Option<u64>,
    /// Memory and page faults of the same; `None` where nobody waited for it.
    pub usage: Option<RunUsage>,
    /// What recording it cost; `None` where the recorder was killed.
    pub recorder_cost: Option<RecorderCost>,
}
