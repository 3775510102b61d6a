//! What a search needs of a trace before it reads its spans.

use std::borrow::Cow;
use std::collections::BTreeMap;

use longpole_model::long_text::cut;
use longpole_model::{Text, TimeRange, Timestamp, TraceId};

use crate::query_limits::LIST_ANSWER_TIMES;

/// A trace without its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSummary {
    /// Its id.
    pub trace_id: TraceId,
    /// First start.
    pub start: Timestamp,
    /// Last end.
    pub end: Timestamp,
    /// How many spans there are.
    pub spans: u32,
    /// How many of them failed.
    pub errors: u32,
    /// Service of the root, or of the first span where no root came.
    pub root_service: Text,
    /// Its operation.
    pub root_name: Text,
    /// Services of its spans, in the order of the alphabet, with how many spans each has.
    pub services: Vec<(Text, u32)>,
    /// When the span began that gave the root, and whether it has no parent.
    root: Option<(bool, Timestamp)>,
}

impl TraceSummary {
    pub(crate) fn new(trace_id: TraceId) -> Self {
        TraceSummary {
            trace_id,
            start: Timestamp(i64::MAX),
            end: Timestamp(i64::MIN),
            spans: 0,
            errors: 0,
            root_service: Text::new(),
            root_name: Text::new(),
            services: Vec::new(),
            root: None,
        }
    }

    /// Whether a span without a parent gave the root, and when that began.
    pub(crate) fn root(&self) -> (bool, Timestamp) {
        self.root.unwrap_or((false, self.start))
    }

    /// Sets what [`root`](Self::root) returns.
    pub(crate) fn set_root(&mut self, has_root: bool, start: Timestamp) {
        self.root = Some((has_root, start));
    }

    /// How long it takes, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        TimeRange { start: self.start, end: self.end }.nanos().cast_unsigned()
    }

    /// Bytes that it takes in memory, about, with its view in an answer and the text of that.
    pub(crate) fn answer_bytes(&self) -> u64 {
        let of_service = |(name, _): &(Text, u32)| size_of::<(String, u32)>() + name.len();
        let texts = self.root_service.len() + self.root_name.len() + self.services.iter().map(of_service).sum::<usize>();
        LIST_ANSWER_TIMES * (size_of::<TraceSummary>() + texts) as u64
    }

    /// Whether one of its spans is of this service.
    pub fn has_service(&self, service: &str) -> bool {
        self.services.iter().any(|(known, _)| known == service)
    }

    /// The same trace with what another place has of it.
    pub(crate) fn merge(&mut self, other: TraceSummary) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.spans = self.spans.saturating_add(other.spans);
        self.errors = self.errors.saturating_add(other.errors);
        let mut services: BTreeMap<Text, u32> = std::mem::take(&mut self.services).into_iter().collect();
        for (service, spans) in other.services {
            let known = services.entry(service).or_default();
            *known = known.saturating_add(spans);
        }
        self.services = services.into_iter().collect();
        let rank = |root: Option<(bool, Timestamp)>| root.map_or((2, i64::MAX), |(is_root, at)| (i32::from(!is_root), at.unix_nanos()));
        if rank(other.root) < rank(self.root) {
            (self.root, self.root_service, self.root_name) = (other.root, other.root_service, other.root_name);
        }
    }
}

/// Bytes of a name in a summary. Lists of traces are read by all, and whoever may send chooses names of any length.
const NAME_BYTES_MAX: usize = 256;

/// A name as a list has it.
fn in_a_list(name: &Text) -> Text {
    match cut(name, NAME_BYTES_MAX) {
        Cow::Borrowed(_) => name.clone(),
        Cow::Owned(beginning) => beginning.into(),
    }
}

/// A trace whose spans are being counted. Each may be of a service of its own.
pub(crate) struct CountedTrace {
    summary: TraceSummary,
    services: BTreeMap<Text, u32>,
}

impl CountedTrace {
    pub(crate) fn new(trace_id: TraceId) -> Self {
        CountedTrace { summary: TraceSummary::new(trace_id), services: BTreeMap::new() }
    }

    /// Counts a span in.
    pub(crate) fn add(&mut self, TimeRange { start, end }: TimeRange, is_root: bool, service: Text, name: &Text, is_error: bool) {
        let summary = &mut self.summary;
        summary.start = summary.start.min(start);
        summary.end = summary.end.max(end).max(start);
        summary.spans = summary.spans.saturating_add(1);
        summary.errors = summary.errors.saturating_add(u32::from(is_error));
        let better = match summary.root {
            None => true,
            Some((was_root, began)) => (is_root && !was_root) || (is_root == was_root && start < began),
        };
        if better {
            summary.root = Some((is_root, start));
            (summary.root_service, summary.root_name) = (in_a_list(&service), in_a_list(name));
        }
        let count = self.services.entry(in_a_list(&service)).or_default();
        *count = count.saturating_add(1);
    }

    /// What was counted.
    pub(crate) fn finish(self) -> TraceSummary {
        TraceSummary { services: self.services.into_iter().collect(), ..self.summary }
    }
}
