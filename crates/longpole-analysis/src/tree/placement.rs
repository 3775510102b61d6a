//! The one door through which a tool's own conventions reach the tree builder.
//!
//! Parent ids, the tree of processes and time place nearly everything. Some tools break with them: a second tracer gives the same
//! operation another id, an engine calls providers in its own name, a plug-in serves calls and does nothing else. Whoever knows such
//! a tool implements [`PlacementRules`]; the builder names no tool.

use std::collections::{BTreeMap, HashMap};

use crate::note::Note;
use longpole_model::{Process, Span, SpanId, SpanRow, TimeRange, TraceId};

/// How far up [`PlacedSpans::above`] goes.
const ABOVE_MAX: usize = 256;

/// The ids that spans have with another tracer, and where that tracer's spans hang.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanAliases {
    /// Spans by that id; ids that several spans had are left out.
    pub by_id: HashMap<SpanId, SpanRow>,
    /// The same with the trace of that tracer, where it was recorded; the first of several counts.
    pub ids: Vec<((TraceId, SpanId), SpanRow)>,
    /// For spans of that tracer without a known parent: the span that covers them in the same process.
    pub hosts: BTreeMap<SpanRow, SpanRow>,
    /// Operations that both tracers saw, and that are one span now.
    pub pairs: u64,
}

/// A process as a rule sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessPlace<'a> {
    /// The process.
    pub(crate) process: &'a Process,
    /// What it is called.
    pub(crate) program: &'a str,
    /// What the process is called that forked it, where that is known.
    pub(crate) parent_program: Option<&'a str>,
}

/// The spans of a recording once their clocks are corrected and their parent ids read.
pub(crate) struct PlacedSpans<'a> {
    /// `recording.spans`.
    pub(crate) spans: &'a [Span],
    /// When each was, by the corrected clock.
    pub(crate) range: &'a dyn Fn(SpanRow) -> TimeRange,
    /// The span that each names as its parent.
    pub(crate) parent: &'a dyn Fn(SpanRow) -> Option<SpanRow>,
}

impl PlacedSpans<'_> {
    /// The spans above a span, by what each names as its parent: the nearest ones, for ids may lead in a circle.
    pub(crate) fn above(&self, span: SpanRow) -> impl Iterator<Item = SpanRow> {
        std::iter::successors((self.parent)(span), |&above| (self.parent)(above)).take(ABOVE_MAX)
    }
}

/// A span that belongs under another one than its parent id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Adoption {
    /// The span.
    pub(crate) span: SpanRow,
    /// Its parent.
    pub(crate) parent: SpanRow,
}

/// A tool's conventions. A build calls each method once, or once for each process.
pub(crate) trait PlacementRules {
    /// The other ids of spans.
    fn aliases(&self) -> &SpanAliases;

    /// Whether a span itself is of the tracer whose ids are the aliases.
    fn is_of_other_tracer(&self, span: &Span) -> bool;

    /// Whether a process only serves calls, or runs what somebody else's span describes: then it is no node.
    fn is_served(&self, process: ProcessPlace<'_>) -> bool;

    /// What a reader of these spans must know.
    fn note(&self, spans: &PlacedSpans<'_>) -> Option<Note>;

    /// Spans to put under another parent, in order: a later one of the same span replaces an earlier one.
    fn adoptions(&self, spans: &PlacedSpans<'_>) -> Vec<Adoption>;
}
