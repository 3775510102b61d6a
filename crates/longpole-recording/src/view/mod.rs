//! What a recording looks like from outside: the shapes of `docs/formats/http-api.md`, and nothing else.
//!
//! The HTTP API, `--format json`, the page and the text of the terminal are all made from these values, so that every number a
//! person can see is the same everywhere. Each file holds one view: its structs, and how they are made from a report. Times are
//! offsets in nanoseconds from the run's start; ids are lower-case hex.

mod attached;
mod callee;
pub mod diff;
mod failed;
mod flame;
mod frame;
mod functions;
mod lanes;
#[cfg(test)]
mod one_number;
mod poles;
mod processes;
mod profiles;
mod pulumi;
mod recording;
mod select;
mod service_growth;
mod service_map;
mod shared;
mod shared_poles;
mod source;
mod span;
mod spans;
mod states;
mod summarised;
mod summary;
#[cfg(test)]
mod tests;
mod threads;
mod top;
mod traces;
mod tree;
mod usage;
mod waits;
mod what_if;

pub use attached::AttachedView;
pub use callee::{CalleeProcessView, CalleeView};
pub use failed::{FailedSpanView, FailedSpansView};
pub use flame::{FlameColumns, FlameFrameView, FlameTimeView, FlameView, FlameWaitsView};
pub use frame::{FrameOperationView, FrameSpanView, FrameView};
pub use functions::{LineView, RuntimeView, TopFrameView, WhoseView};
pub use lanes::{LaneView, LanesView};
pub use poles::{LimitView, PartKindView, PartView, PoleView, PolesTruncated, PolesView, ReasonCodeView, ReasonView};
pub use processes::{ProcessRowView, ProcessesView};
pub use profiles::{
    FunctionChangeView, ProfileCallsView, ProfileDiffView, ProfileFunctionView, ProfileSideView, ProfileTypeView, ProfileTypesView,
    ProfileValuesView, ProfileView, VersionView,
};
pub use pulumi::DeploymentView;
pub use recording::{AnswerView, KeptView, RecordingStateView, RecordingView, RecordingsView};
pub use select::{Chosen, PartOfView, SameNameView};
pub(crate) use select::{Roots, roots_of};
pub use service_growth::{GrowingFunctionView, GrowingStateView, GrowthNumbers, ServiceGrowthView};
pub use service_map::{MappedServiceView, RequestsView, ServiceCallsView, ServiceMap, ServiceMapView};
pub(crate) use shared::json_bytes;
pub use shared::{EvidenceView, ExitView, LinksView, QualityView, RangeNanos, SpansTruncated, Unsampled};
pub use shared_poles::{LongestTraceView, OperationPolesView, QuantilesView, SharedPoleView, SharedPolesView};
pub use source::{SourceLineView, SourceStateView, SourceView};
pub use span::{
    AttributeView, EventView, ParentView, PoleOfSpanView, ProcessView, SavingsView, SpanKindView, SpanLinkView, SpanSamplesView, SpanView,
    StatusCodeView, StatusView,
};
pub use spans::{DurationsView, SpanOfNameView, SpansView};
pub use states::{BlockedView, StateEvidenceView, StatesView};
pub use summarised::SummarisedView;
pub use summary::{CaptureModeView, ParallelismView, RecorderView, SummaryView};
pub use threads::{ThreadView, ThreadsView, WaitedForView};
pub use top::{TopOptions, TopView};
pub use traces::{
    LinkView, ReceivedTraceView, ServerView, ServiceSpansView, ServiceView, ServicesView, TraceRowView, TracesOfRecordingView, TracesView,
};
pub use tree::{PathColumns, TreeColumns, TreeView};
pub use usage::{GrowthView, NotableCodeView, NotableView, PeakFromView, ReadingColumns, UsageView};
pub use waits::{BlockedByView, BlockerEvidenceView, BlockerView, OneOfView, PlaceView, RelationView, WaitKindView, WaitView};
pub use what_if::{NextPoleView, WhatIfView};
