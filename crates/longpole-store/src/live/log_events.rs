//! Log records of spans, as the store holds them.
//!
//! A record names its span, and may come before it, after it, or without it. It is a row of its own among the spans of its trace: the ids of its
//! span, the name [`NAME`] for itself and its scope, and one event. Whoever reads the trace gets it as an event of the span; without that
//! span it is not shown.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use longpole_model::fast_hash::FastMap;
use longpole_model::{AttributeValue, Attributes, Scope, Span, SpanEvent, SpanId, TimeRange, Timestamp, TraceId};

/// Name of the rows of log records, and of their scope.
pub(super) const NAME: &str = "longpole.log_event";

/// A log record of a span, as [`LiveStore::append`](super::LiveStore::append) takes it beside spans.
pub fn log_event(trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Span {
    // A request may have two million records.
    static SHARED: LazyLock<Span> = LazyLock::new(|| {
        let (id, time) = (SpanId::MAX, TimeRange { start: Timestamp(0), end: Timestamp(0) });
        let scope = Arc::new(Scope { name: NAME.to_owned(), ..Scope::default() });
        Span { scope, ..Span::new(TraceId::MAX, id, NAME, time) }
    });
    let mut row = Span { trace_id, span_id, start: event.time, end: event.time, ..SHARED.clone() };
    row.events.push(event);
    row
}

/// Whether this row is a log record.
pub(super) fn is_log_event(row: &Span) -> bool {
    row.name.as_str() == NAME && row.scope.name == NAME
}

/// Makes a span of a client that is called like a log record, and in a scope like it, one that is shown. Its scope is lost.
pub fn set_apart(span: &mut Span) -> bool {
    // One for all: a client may send a hundred thousand, each with the same 250 attributes of its scope.
    static SENT: LazyLock<Arc<Scope>> = LazyLock::new(|| Arc::new(Scope { name: format!("{NAME}.sent"), ..Scope::default() }));
    let is_called_so = is_log_event(span);
    if is_called_so {
        span.scope = Arc::clone(&SENT);
    }
    is_called_so
}

/// The spans among these rows of one trace, with the log records as their events.
pub(super) fn attach(rows: Vec<Span>) -> Vec<Span> {
    if !rows.iter().any(is_log_event) {
        return rows;
    }
    let (records, mut spans): (Vec<Span>, Vec<Span>) = rows.into_iter().partition(is_log_event);
    // Two services may have spans with one id, as the client and the server of Zipkin: each gets its own records, the first those of others.
    let targets: Vec<Option<usize>> = {
        let (mut first_of, mut of_service) = (FastMap::default(), FastMap::default());
        for (place, span) in spans.iter().enumerate() {
            first_of.entry(span.span_id).or_insert(place);
            of_service.entry((span.span_id, span.service_name())).or_insert(place);
        }
        let target = |record: &Span| of_service.get(&(record.span_id, record.service_name())).or(first_of.get(&record.span_id)).copied();
        records.iter().map(target).collect()
    };
    // By a hash with keys of its own: a copy of each event would take many times what they take, which share their texts.
    let keys = RandomState::new();
    let mut changed: FastMap<usize, HashSet<u64>> = FastMap::default();
    for (record, place) in records.into_iter().zip(targets) {
        let Some(place) = place else { continue };
        for event in record.events {
            let events = &mut spans[place].events;
            let known = changed.entry(place).or_insert_with(|| events.iter().map(|event| hash_of(event, &keys)).collect());
            // Exporters send again what they did not see acknowledged.
            if known.insert(hash_of(&event, &keys)) {
                events.push(event);
            }
        }
    }
    changed.into_keys().for_each(|place| spans[place].events.sort_by_key(|event| event.time));
    spans
}

fn hash_of(event: &SpanEvent, keys: &RandomState) -> u64 {
    let mut hasher = keys.build_hasher();
    (event.time, event.name.as_str()).hash(&mut hasher);
    hash_attributes(&event.attributes, &mut hasher);
    hasher.finish()
}

fn hash_attributes(attributes: &Attributes, into: &mut impl Hasher) {
    attributes.iter().count().hash(into);
    for attribute in attributes.iter() {
        attribute.key.as_str().hash(into);
        hash_value(&attribute.value, into);
    }
}

/// Two values that differ by a bit differ: NaN is itself here.
fn hash_value(value: &AttributeValue, into: &mut impl Hasher) {
    std::mem::discriminant(value).hash(into);
    match value {
        AttributeValue::Empty => {}
        AttributeValue::Str(text) => text.as_str().hash(into),
        AttributeValue::Bool(truth) => truth.hash(into),
        AttributeValue::Int(number) => number.hash(into),
        AttributeValue::Double(number) => number.to_bits().hash(into),
        AttributeValue::Bytes(bytes) => bytes[..].hash(into),
        AttributeValue::Array(values) => {
            values.len().hash(into);
            values.iter().for_each(|value| hash_value(value, into));
        }
        AttributeValue::KeyValues(pairs) => {
            pairs.len().hash(into);
            for pair in pairs.iter() {
                pair.key.as_str().hash(into);
                hash_value(&pair.value, into);
            }
        }
    }
}
