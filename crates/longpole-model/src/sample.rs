//! Samples, and what ties them to spans.

use crate::id::{SpanId, TraceId};
use crate::index::ThreadKey;
use crate::stack::StackId;
use crate::time::Monotonic;

/// What the SDK had published for the thread at the instant of the sample. See `docs/formats/span-context.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextRecord {
    /// The dump held no record: no SDK, a main thread without one, or a stack deeper than the dump.
    Absent,
    /// A record was there and said that no span was current.
    NoSpan,
    /// The record was caught in the middle of a write; it names nothing.
    Torn,
    /// The span that was current.
    Span {
        /// Its trace.
        trace_id: TraceId,
        /// Its id.
        span_id: SpanId,
    },
}

impl ContextRecord {
    /// First bytes of a record.
    pub const MAGIC: [u8; 16] = *b"\x9cLONGPOLE-CTX1\xf3\xa7";
}

/// A stretch in which one span, or none, was the current one of a thread, as the thread's journal says: exact. The stretches of a
/// thread follow each other without a gap as long as its journal is whole; where there is none, nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentSpan {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// It became the current one.
    pub start: Monotonic,
    /// Another one did, or the thread's journal ended.
    pub end: Monotonic,
    /// The span; `None` where the thread said that it has none.
    pub span: Option<(TraceId, SpanId)>,
    /// See [`JournalEntry::is_sent`]. Not stored: false in a recording that is read.
    pub is_sent: bool,
}

impl CurrentSpan {
    /// The thread, by the numbers of its process and its own.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey::new(self.pid, self.tid)
    }
}

/// An entry of a thread's journal: from this moment on this span is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalEntry {
    /// When.
    pub time: Monotonic,
    /// The span; `None` where the thread said that it has none.
    pub span: Option<(TraceId, SpanId)>,
    /// Whether the program sends the span when it ends: it is sampled, and not a span of another process. False where it is not known.
    pub is_sent: bool,
}

/// One on-CPU sample as the recorder saw it. Raw: whose span it was is decided when the recording is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time: Monotonic,
    /// Process (the thread group's id).
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// CPU it ran on.
    pub cpu: u32,
    /// Its stack.
    pub stack: StackId,
    /// On-CPU nanoseconds it stands for: one period of the sampling clock.
    pub weight_nanos: u64,
    /// What the SDK had published.
    pub context: ContextRecord,
}

impl Sample {
    /// The thread, by the numbers of its process and its own.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey::new(self.pid, self.tid)
    }
}

/// How a sample is known to belong to a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// The context record inside the stack dump named the span: exact at the instant of the sample.
    Record,
    /// The thread's journal says which span was current at that moment: exact.
    Journal,
    /// The profile that was read says so of the sample, by a label or a link: as exact as whoever wrote it.
    Label,
    /// Process, thread and time left exactly one open span: likely, not proven.
    Inferred,
    /// Several open spans could own it; none is chosen.
    Ambiguous {
        /// How many.
        candidates: u32,
    },
    /// No span was open there, or the record said so.
    None,
}

impl Evidence {
    /// The word SQL, JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Record => "record",
            Evidence::Journal => "journal",
            Evidence::Label => "label",
            Evidence::Inferred => "inferred",
            Evidence::Ambiguous { .. } => "ambiguous",
            Evidence::None => "none",
        }
    }
}

/// Sample → span, with its evidence. Derived at seal; can be derived again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLink {
    /// The span; `None` for `Ambiguous` and `None`.
    pub span: Option<(TraceId, SpanId)>,
    /// How it is known.
    pub evidence: Evidence,
}

/// What a profile says by labels of the span that a stack ran in; each part may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SpanLabel {
    /// Its trace.
    pub trace_id: Option<TraceId>,
    /// Its id; two where a text is one in hex and another one as a decimal number.
    pub span_ids: Vec<SpanId>,
    /// Its name.
    pub name: Option<String>,
}
