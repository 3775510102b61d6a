//! Which spans work on which cloud resource.
//!
//! Pulumi's OpenTelemetry spans carry no identity; it comes from the payloads of the legacy spans that were folded into them
//! ([`crate::pulumi::opentracing_bridge`]), or, without payloads, from the engine's event stream, by time:
//!
//! ```text
//! RegisterResource   ├───────────────────────────────┤      the last that began before the pre-event, and ends with the outputs
//! pre-event                  ▼
//! Create                       ├───────────────────┤        begins 5 to 35 ms after it
//! outputs event                                     ▼       0.2 to 1.9 ms after its end
//! ```
//!
//! [`identify`] writes what it finds to attributes, so that the store, SQL and the page know it too;
//! [`Resources`](super::resources::Resources) reads those attributes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use longpole_model::resource_event::{DEPENDENCIES, PARENT, PROVIDER, TYPE, URN};
use longpole_model::{
    AttributeValue, Exit, IdVec, Nanos, Recording, ResourceEvent, ResourceStep, Span, SpanId, SpanRow, TimeRange, Timestamp, TraceId,
};

use crate::note::{EngineOperation, FirstOf, Note};
use crate::pulumi::call::Call;
use crate::pulumi::call_halves;
use crate::pulumi::opentracing_bridge;
use crate::pulumi::span_pairing::{self, Interval, Window};
use crate::pulumi::urn::{title_of_urn, urn_of};
use crate::tree::span_list::rows;

/// Attributes that say which resource a span works on.
const IDENTITY: [&str; 5] = [URN, TYPE, DEPENDENCIES, PARENT, PROVIDER];

/// Attribute of legacy spans, also without payloads: the type of the resource, or the function that is called.
pub(super) const DECORATOR: &str = "pulumi-decorator";

/// A call of a provider begins so much later than the engine's word that it will. The engine's own clock has whole seconds, so
/// events are dated by their arrival: on a busy machine a call may even seem to begin first.
const CALL_AFTER_PRE_NANOS: std::ops::RangeInclusive<i64> = -2_000_000..=500_000_000;

/// A registration begins before the engine's word, and may have waited ten minutes for its turn.
const REGISTRATION_AFTER_PRE_NANOS: std::ops::RangeInclusive<i64> = -600_000_000_000..=2_000_000;

/// A call ends before the engine's word that it did; measured: 0.2 to 1.9 ms.
const CALL_END_AFTER_OUTPUTS_NANOS: std::ops::RangeInclusive<i64> = -100_000_000..=2_000_000;

/// A registration ends when the outputs are on their way.
const REGISTRATION_END_AFTER_OUTPUTS_NANOS: std::ops::RangeInclusive<i64> = -2_000_000..=100_000_000;

/// On a busy machine an event may arrive this much later than its call ends.
const BUSY_NANOS: u64 = 5_000_000_000;

/// Calls of one method inside each other, as client and server are, that share their identity.
const SAME_CALL_MAX: usize = 4;

/// One operation of the engine on one resource.
struct Operation<'a> {
    event: &'a ResourceEvent,
    start: i64,
    end: Option<i64>,
}

impl Operation<'_> {
    fn interval(&self) -> Interval {
        Interval { start: self.start, end: self.end }
    }
}

/// Events of one operation belong together: the one before, and the next of its resource after.
fn operations(events: &[ResourceEvent]) -> Vec<Operation<'_>> {
    let mut order: Vec<&ResourceEvent> = events.iter().collect();
    order.sort_by_key(|e| e.time);
    let mut open: HashMap<(&str, &str), usize> = HashMap::new();
    let mut out: Vec<Operation<'_>> = Vec::new();
    for event in order {
        let key = (event.urn.as_str(), event.op.as_str());
        match event.step {
            ResourceStep::Pre => {
                open.insert(key, out.len());
                out.push(Operation { event, start: event.time.unix_nanos(), end: None });
            }
            ResourceStep::Outputs | ResourceStep::Failed => {
                if let Some(i) = open.remove(&key) {
                    out[i].end = Some(event.time.unix_nanos());
                    // What was made says more than what was meant.
                    if event.dependencies.len() >= out[i].event.dependencies.len() {
                        out[i].event = event;
                    }
                }
            }
        }
    }
    out
}

/// Gives the spans of a recording the identity of the resources they work on. If one half of a call names its resource, the other half
/// gets it too; if neither does, the engine's events name it. Attributes that a span already has stay as they are. Returns notes on operations
/// that had not ended, and on others that matched no span.
pub fn identify(recording: &mut Recording, events: &[ResourceEvent]) -> Vec<Note> {
    let call_of: IdVec<SpanRow, Option<Call>> = recording.spans.iter().map(|s| Call::of(&s.name)).collect();
    if call_of.iter().all(Option::is_none) && events.is_empty() {
        return Vec::new();
    }
    let outer = outer_halves(recording, &call_of);
    share_identity(&mut recording.spans, &outer);
    let operations = operations(events);
    let found = by_events(&recording.spans, &call_of, &outer, &operations);
    let unmatched = found.unmatched;
    for (i, event) in found.of_span {
        write_identity(&mut recording.spans[i], event);
    }
    share_identity(&mut recording.spans, &outer);
    let unmatched = longest_first(unmatched.iter().map(|&o| &operations[o]), recording.run.end).map(Note::ResourcesUnmatched);
    unfinished(&operations, recording).into_iter().chain(unmatched).collect()
}

/// What the engine was doing when the command failed or was killed, the longest first.
fn unfinished(operations: &[Operation<'_>], recording: &Recording) -> Option<Note> {
    let run = &recording.run;
    if run.exit == Some(Exit::Code(0)) {
        return None;
    }
    run.end?;
    let is_open = |it: &&Operation<'_>| it.end.is_none() && it.event.provider.is_some() && it.event.op != "same";
    longest_first(operations.iter().filter(is_open), run.end).map(Note::ResourcesUnfinished)
}

/// Operations for a note; `None` if there are none. What had not ended lasted until the end of the run.
fn longest_first<'a>(operations: impl Iterator<Item = &'a Operation<'a>>, end: Option<Timestamp>) -> Option<FirstOf<EngineOperation>> {
    let until = end.map(Timestamp::unix_nanos);
    let mut all: Vec<EngineOperation> = operations
        .map(|it| EngineOperation {
            op: it.event.op.clone(),
            resource: title_of_urn(&it.event.urn),
            nanos: Nanos(it.end.or(until).map_or(0, |end| end.saturating_sub(it.start))),
        })
        .collect();
    all.sort_by_key(|it| Reverse(it.nanos));
    (!all.is_empty()).then(|| all.into_iter().collect())
}

/// For each span the outer half of its call, where it has one.
fn outer_halves(recording: &Recording, call_of: &IdVec<SpanRow, Option<Call>>) -> IdVec<SpanRow, Option<SpanRow>> {
    let spans = &recording.spans;
    let index: HashMap<(TraceId, SpanId), SpanRow> = rows(spans).rev().map(|(i, s)| ((s.trace_id, s.span_id), i)).collect();
    // A provider without OpenTelemetry names its caller by the id that this had in legacy tracing.
    let by_legacy_id = opentracing_bridge::aliases(recording).by_id;
    let parent = |i: SpanRow| {
        let parent = spans[i].parent_span_id?;
        index.get(&(spans[i].trace_id, parent)).or_else(|| by_legacy_id.get(&parent)).copied()
    };
    let range = |i: SpanRow| range_of(&spans[i]);
    call_halves::outer_halves(spans, call_of, &range, &parent)
}

fn range_of(span: &Span) -> TimeRange {
    TimeRange { start: span.start, end: span.end }
}

/// Elements of lists that are copied from half to half: those of 10,000 resources with 100 dependencies each.
const SHARED_ELEMENTS_MAX: usize = 1_000_000;

/// Both halves of a call work on the same resource: whichever says so says it for the other.
fn share_identity(spans: &mut [Span], outer: &IdVec<SpanRow, Option<SpanRow>>) {
    let says = |span: &Span| span.attributes.get(URN).is_some();
    let mut left = SHARED_ELEMENTS_MAX;
    // A text is shared, and every other value copied.
    let elements = |value: &AttributeValue| match value {
        AttributeValue::Array(values) => values.len(),
        AttributeValue::Bytes(bytes) => bytes.len(),
        AttributeValue::KeyValues(_) => usize::MAX,
        _ => 0,
    };
    // Halves of halves: a call that is forwarded has more than two.
    for _ in 0..SAME_CALL_MAX {
        let mut shared = false;
        for (inner, outer) in outer.enumerated().filter_map(|(i, outer)| Some((i, (*outer)?))) {
            let (from, to) = match (says(&spans[inner]), says(&spans[outer])) {
                (true, false) => (inner, outer),
                (false, true) => (outer, inner),
                _ => continue,
            };
            for key in IDENTITY {
                let value = spans[from].attributes.get(key).filter(|_| spans[to].attributes.get(key).is_none());
                if let Some((value, rest)) = value.and_then(|value| Some((value, left.checked_sub(elements(value))?))) {
                    let value = value.clone();
                    left = rest;
                    spans[to].attributes.push(key, value);
                }
            }
            shared = true;
        }
        if !shared {
            break;
        }
    }
}

/// What the events tell of spans.
struct Matches<'a> {
    of_span: Vec<(SpanRow, &'a ResourceEvent)>,
    /// The operations of providers that no span was found for.
    unmatched: Vec<usize>,
}

/// Finds by time the outer half of the call that each operation made, where no call says by itself that it is this one.
fn by_events<'a>(
    spans: &[Span],
    call_of: &IdVec<SpanRow, Option<Call>>,
    outer: &IdVec<SpanRow, Option<SpanRow>>,
    operations: &[Operation<'a>],
) -> Matches<'a> {
    let mut told: HashMap<(Call, &str), Vec<SpanRow>> = HashMap::new();
    let mut candidates: BTreeMap<(Call, Option<&str>), Vec<SpanRow>> = BTreeMap::new();
    for (i, span) in rows(spans).filter(|&(i, _)| outer[i].is_none()) {
        let Some(call) = call_of[i] else { continue };
        if let Some(urn) = urn_of(span) {
            told.entry((call, urn)).or_default().push(i);
        } else {
            let resource_type = [TYPE, DECORATOR].into_iter().find_map(|key| span.attributes.get_str(key));
            candidates.entry((call, resource_type)).or_default().push(i);
        }
    }
    let mut found: HashMap<SpanRow, &ResourceEvent> = HashMap::new();
    let mut unmatched = Vec::new();
    for (is_registration, window) in [
        (false, Window { start: CALL_AFTER_PRE_NANOS, end: CALL_END_AFTER_OUTPUTS_NANOS, by_start: true }),
        (true, Window { start: REGISTRATION_AFTER_PRE_NANOS, end: REGISTRATION_END_AFTER_OUTPUTS_NANOS, by_start: false }),
    ] {
        let mut wanted: BTreeMap<(Call, &str), Vec<usize>> = BTreeMap::new();
        for (o, operation) in operations.iter().enumerate() {
            let (provider, registration) = Call::of_operation(&operation.event.op);
            // Stacks, components and providers themselves have none.
            let provider = provider.filter(|_| operation.event.provider.is_some());
            let Some(call) = (if is_registration { registration } else { provider }) else { continue };
            let is_told = |&i: &SpanRow| {
                let starts = spans[i].start.unix_nanos().saturating_sub(operation.start);
                let ends = operation.end.map(|end| spans[i].end.unix_nanos().saturating_sub(end));
                window.start.contains(&starts) && ends.is_none_or(|ends| window.end.contains(&ends))
            };
            if !told.get(&(call, operation.event.urn.as_str())).is_some_and(|list| list.iter().any(is_told)) {
                wanted.entry((call, operation.event.resource_type.as_str())).or_default().push(o);
            }
        }
        // Spans that know their type first; then those that do not, of any type.
        let mut left: BTreeMap<Call, Vec<usize>> = BTreeMap::new();
        for ((call, resource_type), operations_of) in wanted {
            let spans_of = candidates.get(&(call, Some(resource_type))).map_or(&[][..], |list| list);
            let rest = match_spans(operations, operations_of, spans, spans_of, &window, &mut found);
            left.entry(call).or_default().extend(rest);
        }
        for (call, operations_of) in left {
            let spans_of = candidates.get(&(call, None)).map_or(&[][..], |list| list);
            let rest = match_spans(operations, operations_of, spans, spans_of, &window, &mut found);
            if !is_registration {
                unmatched.extend(rest);
            }
        }
    }
    let mut of_span: Vec<(SpanRow, &ResourceEvent)> = found.into_iter().collect();
    of_span.sort_by_key(|(i, _)| *i);
    Matches { of_span, unmatched }
}

/// Gives each operation its span where one fits; returns those without.
fn match_spans<'a>(
    operations: &[Operation<'a>],
    mut wanted: Vec<usize>,
    spans: &[Span],
    candidates: &[SpanRow],
    window: &Window,
    found: &mut HashMap<SpanRow, &'a ResourceEvent>,
) -> Vec<usize> {
    let mut free: Vec<SpanRow> = candidates.iter().copied().filter(|i| !found.contains_key(i)).collect();
    free.sort_by_key(|&i| (spans[i].start, spans[i].trace_id, spans[i].span_id));
    let left: Vec<Interval> = wanted.iter().map(|&o| operations[o].interval()).collect();
    let right: Vec<Interval> = free.iter().map(|&i| range_of(&spans[i]).into()).collect();
    let mut pairs = span_pairing::pair(&left, &right, window);
    if pairs.len() < left.len() {
        pairs = in_order_of_ends(&left, &right).unwrap_or(pairs);
    }
    let mut matched = vec![false; wanted.len()];
    for (o, s) in pairs {
        matched[o] = true;
        found.insert(free[s], operations[wanted[o]].event);
    }
    let mut place = 0;
    wanted.retain(|_| {
        place += 1;
        !matched[place - 1]
    });
    wanted
}

/// Pairs each operation with the call that ended in its place: the engine's words come late on a busy machine, but in order. `None` unless
/// there are as many calls as operations, and each ended about then.
fn in_order_of_ends(operations: &[Interval], calls: &[Interval]) -> Option<Vec<(usize, usize)>> {
    let ends = |intervals: &[Interval]| {
        let ends: Option<Vec<(i64, usize)>> = intervals.iter().enumerate().map(|(i, it)| Some((it.end?, i))).collect();
        ends.map(|mut ends| {
            ends.sort_unstable();
            ends
        })
    };
    let (operations, calls) = (ends(operations)?, ends(calls)?);
    let is_near = |((said, _), (ended, _)): (&(i64, usize), &(i64, usize))| said.abs_diff(*ended) <= BUSY_NANOS;
    let fits = operations.len() == calls.len() && operations.iter().zip(&calls).all(is_near);
    fits.then(|| operations.iter().zip(&calls).map(|(&(_, operation), &(_, call))| (operation, call)).collect())
}

fn write_identity(span: &mut Span, event: &ResourceEvent) {
    let text = |text: &str| AttributeValue::Str(text.into());
    let list = || AttributeValue::Array(event.dependencies.iter().map(|d| text(d)).collect());
    let values = [
        (URN, Some(text(&event.urn))),
        (TYPE, Some(text(&event.resource_type))),
        (DEPENDENCIES, (!event.dependencies.is_empty()).then(list)),
        (PARENT, event.parent.as_deref().map(text)),
        (PROVIDER, event.provider.as_deref().map(text)),
    ];
    for (key, value) in values {
        if let Some(value) = value
            && span.attributes.get(key).is_none()
        {
            span.attributes.push(key, value);
        }
    }
}

#[cfg(test)]
mod tests;
