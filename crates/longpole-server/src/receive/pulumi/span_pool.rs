//! Spans in the order in which they came, found by id and by what the two spans of a call have in common.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use longpole_analysis::pulumi::opentracing_bridge::{APART_NANOS, COVER_SLACK_NANOS, CallKey};
use longpole_model::{Span, SpanId, Timestamp, TraceId};

/// Calls of one name that start within 50 ms before or after a span and are compared with it: the nearest. A deployment of a thousand resources has
/// dozens.
const SAME_CALL_MAX: usize = 512;

/// Internal spans of one name that may be the command's own: the tracer has one.
const HOSTED_MAX: usize = 64;

/// The number of a span in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival(u64);

impl Arrival {
    const FIRST: Arrival = Arrival(0);
    const LAST: Arrival = Arrival(u64::MAX);
}

/// The spans.
#[derive(Debug, Default)]
pub(super) struct SpanPool {
    spans: BTreeMap<Arrival, Span>,
    next: u64,
    by_id: HashMap<SpanId, BTreeSet<(TraceId, Arrival)>>,
    /// Those that can be one of a call, by start.
    by_call: HashMap<CallKey, BTreeSet<(Timestamp, Arrival)>>,
    /// The first one that came of these ids and this call. Some spans are finished twice: the others are no calls.
    firsts: HashMap<(TraceId, SpanId, CallKey), Arrival>,
}

impl SpanPool {
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn get(&self, arrival: Arrival) -> Option<&Span> {
        self.spans.get(&arrival)
    }

    /// The number of the next span.
    pub(super) fn next(&self) -> Arrival {
        Arrival(self.next)
    }

    /// Those that can be one of a call and came since then.
    pub(super) fn calls_since(&self, arrival: Arrival) -> impl Iterator<Item = (Arrival, &Span)> {
        let all = self.spans.range(arrival..).map(|(arrival, span)| (*arrival, span));
        all.filter(|(arrival, span)| self.firsts.get(&(span.trace_id, span.span_id, CallKey::of(span))) == Some(arrival))
    }

    /// All that can be one of a call.
    pub(super) fn calls(&self) -> impl Iterator<Item = Arrival> {
        self.by_call.values().flatten().map(|&(_, arrival)| arrival)
    }

    /// Whether a span has these ids.
    pub(super) fn has(&self, trace: TraceId, id: SpanId) -> bool {
        let same = |ids: &BTreeSet<(TraceId, Arrival)>| ids.range((trace, Arrival::FIRST)..=(trace, Arrival::LAST)).next().is_some();
        self.by_id.get(&id).is_some_and(same)
    }

    pub(super) fn push(&mut self, span: Span) {
        let arrival = self.next();
        self.next += 1;
        let key = CallKey::of(&span);
        match self.firsts.get(&(span.trace_id, span.span_id, key.clone())).and_then(|first| self.spans.get_mut(first)) {
            Some(first) => first.end = first.end.max(span.end),
            None => {
                self.by_call.entry(key.clone()).or_default().insert((span.start, arrival));
                self.firsts.insert((span.trace_id, span.span_id, key), arrival);
            }
        }
        self.by_id.entry(span.span_id).or_default().insert((span.trace_id, arrival));
        self.spans.insert(arrival, span);
    }

    pub(super) fn remove(&mut self, arrival: Arrival) -> Option<Span> {
        let span = self.spans.remove(&arrival)?;
        if let Some(ids) = self.by_id.get_mut(&span.span_id) {
            ids.remove(&(span.trace_id, arrival));
            if ids.is_empty() {
                self.by_id.remove(&span.span_id);
            }
        }
        let first = (span.trace_id, span.span_id, CallKey::of(&span));
        if self.firsts.get(&first) == Some(&arrival) {
            self.firsts.remove(&first);
            let (.., key) = first;
            if let Some(calls) = self.by_call.get_mut(&key) {
                calls.remove(&(span.start, arrival));
                if calls.is_empty() {
                    self.by_call.remove(&key);
                }
            }
        }
        Some(span)
    }

    /// Takes the span that came first.
    pub(super) fn pop(&mut self) -> Option<Span> {
        let (&arrival, _) = self.spans.first_key_value()?;
        self.remove(arrival)
    }

    /// Takes all spans of an id, in the order in which they came.
    pub(super) fn take_id(&mut self, id: SpanId) -> Vec<Span> {
        let mut arrivals: Vec<Arrival> = self.by_id.get(&id).into_iter().flatten().map(|&(_, arrival)| arrival).collect();
        arrivals.sort_unstable();
        arrivals.into_iter().filter_map(|arrival| self.remove(arrival)).collect()
    }

    /// Takes all spans, in the order in which they came.
    pub(super) fn into_spans(self) -> impl Iterator<Item = Span> {
        self.spans.into_values()
    }

    /// Those that can be the same call as this span, as far as names and starts say.
    pub(super) fn same_call(&self, span: &Span) -> impl Iterator<Item = Arrival> {
        let key = CallKey::of(span);
        let before = self.starting(&key, [span.start.plus_nanos(-APART_NANOS), span.start.plus_nanos(-1)]).rev();
        let behind = self.starting(&key, [span.start, span.start.plus_nanos(APART_NANOS)]);
        before.take(SAME_CALL_MAX).chain(behind.take(SAME_CALL_MAX))
    }

    /// Those that can be the command's own span, which this internal one covers.
    pub(super) fn inside(&self, span: &Span) -> impl Iterator<Item = Arrival> {
        let during = [span.start.plus_nanos(-COVER_SLACK_NANOS), span.end.plus_nanos(COVER_SLACK_NANOS)];
        self.starting(&CallKey::of(span), during).take(HOSTED_MAX)
    }

    /// Those that can be the command's own span, which covers this internal one: those that started last.
    pub(super) fn around(&self, span: &Span) -> impl Iterator<Item = Arrival> {
        self.starting(&CallKey::of(span), [Timestamp(i64::MIN), span.start.plus_nanos(COVER_SLACK_NANOS)]).rev().take(HOSTED_MAX)
    }

    fn starting(&self, key: &CallKey, [first, last]: [Timestamp; 2]) -> impl DoubleEndedIterator<Item = Arrival> + use<'_> {
        // A span may end before it starts.
        let range = (first, Arrival::FIRST)..=(last.max(first), Arrival::LAST);
        self.by_call.get(key).into_iter().flat_map(move |calls| calls.range(range.clone())).map(|&(_, arrival)| arrival)
    }
}
