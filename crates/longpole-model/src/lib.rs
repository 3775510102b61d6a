//! The nouns of longpole.
//!
//! You bring nothing: this crate has no I/O, no clock, no async and, except the hasher of its maps, no third-party types. It
//! holds the words that every other room speaks: spans as OpenTelemetry defines them, samples and stacks as pprof and perf
//! define them, the run that both belong to, and [`Loss`]: what is missing, how much of it and why.
//!
//! It refuses to compute. Numbers are made out of these nouns in `longpole-analysis`.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod address;
pub mod attribute;
pub mod calendar;
pub mod clock_steps;
pub mod fast_hash;
pub mod id;
pub mod index;
pub mod interned_text;
pub mod long_text;
pub mod loss;
pub mod nanos;
pub mod proc_stat;
pub mod process;
pub mod profile;
pub mod recording;
pub mod resource;
pub mod resource_event;
pub mod run;
pub mod sample;
pub mod sink;
pub mod span;
pub mod span_head;
pub mod span_index;
pub mod stack;
pub mod state;
pub mod text;
pub mod thin_vec;
pub mod time;
pub mod units;
pub mod usage;
pub mod wait;

pub use address::{AbsAddr, CodeAddress, VirtOffset};
pub use attribute::{Attribute, AttributeValue, Attributes};
pub use clock_steps::{ClockStep, Eras, Placed};
pub use id::{SpanId, TraceId};
pub use index::{FunctionId, Id, IdVec, NodeId, Pid, PoleId, ProcessRow, SampleId, SpanRow, ThreadKey, Tid, WaitId};
pub use interned_text::{MADE_TIMES_MAX, Text, Texts};
pub use loss::{Loss, LossKind};
pub use nanos::{AddNanos, Nanos, SumNanos, UnsignedNanos};
pub use process::{CpuSlice, Process, Thread, ThreadTotals};
pub use recording::Recording;
pub use resource::{Resource, Scope};
pub use resource_event::{ResourceEvent, ResourceStep};
pub use run::{CaptureMode, Exit, RecorderCost, Run};
pub use sample::{ContextRecord, CurrentSpan, Evidence, JournalEntry, Sample, SampleLink, SpanLabel};
pub use sink::{Observation, ObservationSink, SpanBatch, SpanRef, SpanSink};
pub use span::{Span, SpanEvent, SpanKind, SpanLink, Status, StatusCode};
pub use span_head::{InTree, SpanHead, SpanOutline};
pub use span_index::SpanIndex;
pub use stack::{Frame, Location, LocationId, Mapping, MappingId, Runtime, Stack, StackId};
pub use state::{ByState, StateKind};
pub use thin_vec::ThinVec;
pub use time::{Clock, ClockAnchor, Monotonic, TimeRange, Timestamp};
pub use usage::{IoBytes, ProcessMemory, ProcessUsage, RunUsage};
pub use wait::{Futex, Wait, WaitKind};
