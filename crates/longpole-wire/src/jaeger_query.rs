//! Messages of Jaeger's query services (`jaeger.api_v3.QueryService` and `jaeger.api_v2.QueryService`) and of its sampling service
//! (`jaeger.api_v2.SamplingManager`), as gRPC carries them. Field numbers are those of `api_v3/query_service.proto`, `api_v2/query.proto` and
//! `api_v2/sampling.proto` in jaeger-idl.
//!
//! Version 3 answers traces as `TracesData` of OpenTelemetry ([`otlp::encode_trace`](crate::otlp::encode_trace)), version 2 as spans of Jaeger
//! ([`jaeger::encode_spans`](crate::jaeger::encode_spans)).

use longpole_model::time::Timestamp;

use crate::error::DecodeError;
use crate::protobuf::{Reader, Value, put_bytes, put_fixed64, put_message, put_set_bytes, put_set_fixed64, put_set_integer};

/// What a search asks for; what is `None` or empty asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceQuery {
    /// Service of a span.
    pub service: Option<String>,
    /// Its operation.
    pub name: Option<String>,
    /// Its attributes, as text.
    pub attributes: Vec<(String, String)>,
    /// Its earliest start.
    pub from: Option<Timestamp>,
    /// Its latest.
    pub until: Option<Timestamp>,
    /// Its shortest duration, in nanoseconds.
    pub min_nanos: Option<u64>,
    /// Its longest.
    pub max_nanos: Option<u64>,
    /// How many traces.
    pub depth: Option<u64>,
    /// A structured filter is there, which is not read.
    pub has_filter: bool,
}

/// Reads `GetTraceRequest`: the trace id as text.
///
/// # Errors
///
/// The message is not well formed.
pub fn trace_request(bytes: &[u8]) -> Result<String, DecodeError> {
    let [id] = texts(bytes, [1])?;
    Ok(id.unwrap_or_default())
}

/// Reads `GetTraceRequest` of version 2: the trace id as text.
///
/// # Errors
///
/// The message is not well formed.
pub fn trace_request_v2(bytes: &[u8]) -> Result<String, DecodeError> {
    let mut id = String::new();
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.next()? {
        if let (1, Value::Bytes(bytes)) = (field.number, field.value) {
            id = bytes.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        }
    }
    Ok(id)
}

/// Reads `GetOperationsRequest`: the service, and the kind where one is wanted.
///
/// # Errors
///
/// The message is not well formed.
pub fn operations_request(bytes: &[u8]) -> Result<(String, Option<String>), DecodeError> {
    let [service, kind] = texts(bytes, [1, 2])?;
    Ok((service.unwrap_or_default(), kind))
}

/// Reads `SamplingStrategyParameters`: the service.
///
/// # Errors
///
/// The message is not well formed.
pub fn sampling_request(bytes: &[u8]) -> Result<String, DecodeError> {
    trace_request(bytes)
}

/// Reads `GetDependenciesRequest`: from when until when.
///
/// # Errors
///
/// The message is not well formed.
pub fn dependencies_request(bytes: &[u8]) -> Result<[Option<Timestamp>; 2], DecodeError> {
    let mut times = [None; 2];
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.next()? {
        if let (number @ 1..=2, Value::Bytes(inner)) = (field.number, field.value) {
            times[number as usize - 1] = Some(timestamp(inner)?);
        }
    }
    Ok(times)
}

/// Reads `FindTracesRequest` and `FindTraceSummariesRequest`.
///
/// # Errors
///
/// The message is not well formed.
pub fn find_request(bytes: &[u8]) -> Result<TraceQuery, DecodeError> {
    let mut query = TraceQuery::default();
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.next()? {
        if let (1, Value::Bytes(inner)) = (field.number, field.value) {
            trace_query(inner, &mut query)?;
        }
    }
    Ok(query)
}

fn trace_query(mut reader: Reader<'_>, query: &mut TraceQuery) -> Result<(), DecodeError> {
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(text)) => query.service = text_of(text),
            (2, Value::Bytes(text)) => query.name = text_of(text),
            (3, Value::Bytes(entry)) => {
                let [key, value] = texts(entry.bytes(), [1, 2])?;
                query.attributes.push((key.unwrap_or_default(), value.unwrap_or_default()));
            }
            (4, Value::Bytes(inner)) => query.from = Some(timestamp(inner)?),
            (5, Value::Bytes(inner)) => query.until = Some(timestamp(inner)?),
            // A duration of nothing is one that was not set.
            (6, Value::Bytes(inner)) => query.min_nanos = Some(nanos(inner)?.max(0).cast_unsigned()).filter(|nanos| *nanos > 0),
            (7, Value::Bytes(inner)) => query.max_nanos = Some(nanos(inner)?.max(0).cast_unsigned()).filter(|nanos| *nanos > 0),
            (8, Value::Varint(depth)) => query.depth = i32::try_from(depth.cast_signed()).ok().and_then(|depth| u64::try_from(depth).ok()),
            (10, Value::Bytes(_)) => query.has_filter = true,
            _ => {}
        }
    }
    Ok(())
}

/// Texts by the numbers of their fields; `None` for one that is missing or empty.
fn texts<const N: usize>(bytes: &[u8], numbers: [u32; N]) -> Result<[Option<String>; N], DecodeError> {
    let mut found = [const { None }; N];
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.next()? {
        if let (Some(place), Value::Bytes(text)) = (numbers.iter().position(|number| *number == field.number), field.value) {
            found[place] = text_of(text);
        }
    }
    Ok(found)
}

fn text_of(text: Reader<'_>) -> Option<String> {
    Some(String::from_utf8_lossy(text.bytes()).into_owned()).filter(|text| !text.is_empty())
}

fn timestamp(inner: Reader<'_>) -> Result<Timestamp, DecodeError> {
    Ok(Timestamp(nanos(inner)?))
}

/// `google.protobuf.Timestamp` or `Duration`: seconds and nanoseconds.
fn nanos(mut reader: Reader<'_>) -> Result<i64, DecodeError> {
    let (mut secs, mut nanos) = (0_i64, 0_i64);
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Varint(value)) => secs = value.cast_signed(),
            (2, Value::Varint(value)) => nanos = value.cast_signed(),
            _ => {}
        }
    }
    Ok(secs.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Writes `GetServicesResponse`.
pub fn services_response<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut out = Vec::new();
    names.into_iter().for_each(|name| put_bytes(&mut out, 1, name.as_bytes()));
    out
}

/// Writes `GetOperationsResponse`: operations and their kinds.
pub fn operations_response<'a>(operations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, kind) in operations {
        put_message(&mut out, 1, |out| {
            put_set_bytes(out, 1, name.as_bytes());
            put_set_bytes(out, 2, kind.as_bytes());
        });
    }
    out
}

/// Writes `GetOperationsResponse` of version 2: names, and operations with their kinds.
pub fn operations_response_v2<'a>(operations: impl IntoIterator<Item = (&'a str, &'a str)> + Clone) -> Vec<u8> {
    let mut out = Vec::new();
    let mut names: Vec<&str> = operations.clone().into_iter().map(|(name, _)| name).collect();
    names.dedup();
    names.into_iter().for_each(|name| put_set_bytes(&mut out, 1, name.as_bytes()));
    for (name, kind) in operations {
        put_message(&mut out, 2, |out| {
            put_set_bytes(out, 1, name.as_bytes());
            put_set_bytes(out, 2, kind.as_bytes());
        });
    }
    out
}

/// Writes `DependenciesResponse`: caller, callee, and how often.
pub fn dependencies_response<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, u64)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (parent, child, count) in calls {
        put_message(&mut out, 1, |out| {
            put_set_bytes(out, 1, parent.as_bytes());
            put_set_bytes(out, 2, child.as_bytes());
            put_set_integer(out, 3, count);
        });
    }
    out
}

/// A trace in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryMessage<'a> {
    /// Its id, as text.
    pub trace_id: String,
    /// Service and operation of its root.
    pub root: [&'a str; 2],
    /// First start.
    pub start: Timestamp,
    /// Last end.
    pub end: Timestamp,
    /// How many spans it has, how many of them failed, and of how many the parent is missing.
    pub counts: [u64; 3],
    /// Its services, with their spans and failed spans.
    pub services: Vec<(&'a str, [u64; 2])>,
}

/// Writes `FindTraceSummariesResponse`.
pub fn summaries_response<'a>(summaries: impl IntoIterator<Item = SummaryMessage<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    for SummaryMessage { trace_id, root: [service, name], start, end, counts, services } in summaries {
        put_message(&mut out, 1, |out| {
            put_set_bytes(out, 1, trace_id.as_bytes());
            put_set_bytes(out, 2, service.as_bytes());
            put_set_bytes(out, 3, name.as_bytes());
            put_set_fixed64(out, 4, start.unix_nanos().max(0).cast_unsigned());
            put_set_fixed64(out, 5, end.unix_nanos().max(0).cast_unsigned());
            for (number, count) in (6..).zip(counts) {
                put_set_integer(out, number, count);
            }
            for (name, [spans, errors]) in services {
                put_message(out, 9, |out| {
                    put_set_bytes(out, 1, name.as_bytes());
                    put_set_integer(out, 2, spans);
                    put_set_integer(out, 3, errors);
                });
            }
        });
    }
    out
}

/// How a service is to sample its traces.
#[derive(Debug, Clone, PartialEq)]
pub enum SamplingStrategy {
    /// Each trace with this probability.
    Probability(f64),
    /// At most this number of traces a second.
    PerSecond(u32),
    /// Each trace with the probability of its first operation, and those of other operations with the first one.
    ByOperation(f64, Vec<(String, f64)>),
}

/// Writes `SamplingStrategyResponse`.
pub fn sampling_response(strategy: &SamplingStrategy) -> Vec<u8> {
    let mut out = Vec::new();
    let probability = |out: &mut Vec<u8>, number, rate: f64| {
        put_message(out, number, |out| put_fixed64(out, 1, rate.to_bits()));
    };
    match strategy {
        SamplingStrategy::Probability(rate) => probability(&mut out, 2, *rate),
        SamplingStrategy::PerSecond(traces) => {
            put_set_integer(&mut out, 1, 1);
            put_message(&mut out, 3, |out| put_set_integer(out, 1, u64::from(*traces)));
        }
        SamplingStrategy::ByOperation(rate, operations) => {
            probability(&mut out, 2, *rate);
            put_message(&mut out, 4, |out| {
                put_fixed64(out, 1, rate.to_bits());
                for (operation, rate) in operations {
                    put_message(out, 3, |out| {
                        put_bytes(out, 1, operation.as_bytes());
                        probability(out, 2, *rate);
                    });
                }
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_search_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        put_message(&mut bytes, 1, |out| {
            put_bytes(out, 1, b"cart");
            put_bytes(out, 2, b"POST /cart");
            put_message(out, 3, |out| {
                put_bytes(out, 1, b"http.status");
                put_bytes(out, 2, b"500");
            });
            put_message(out, 4, |out| put_set_integer(out, 1, 1_000));
            put_message(out, 5, |out| {
                put_set_integer(out, 1, 2_000);
                put_set_integer(out, 2, 5);
            });
            put_message(out, 6, |out| put_set_integer(out, 2, 7));
            put_message(out, 7, |_| ());
            put_set_integer(out, 8, 20);
        });
        let expected = TraceQuery {
            service: Some("cart".to_owned()),
            name: Some("POST /cart".to_owned()),
            attributes: vec![("http.status".to_owned(), "500".to_owned())],
            from: Some(Timestamp(1_000_000_000_000)),
            until: Some(Timestamp(2_000_000_000_005)),
            min_nanos: Some(7),
            max_nanos: None,
            depth: Some(20),
            has_filter: false,
        };
        assert_eq!(find_request(&bytes).unwrap(), expected);
        for length in 1..bytes.len() {
            assert!(find_request(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn times_that_no_clock_shows_saturate() {
        let mut bytes = Vec::new();
        put_message(&mut bytes, 1, |out| put_set_integer(out, 1, i64::MAX.cast_unsigned()));
        assert_eq!(dependencies_request(&bytes).unwrap(), [Some(Timestamp(i64::MAX)), None]);
    }

    #[test]
    fn strategies_are_those_of_the_service() {
        let rate = 0.5_f64.to_bits().to_le_bytes();
        let of_half = [&[0x12, 9, 0x09][..], &rate].concat();
        assert_eq!(sampling_response(&SamplingStrategy::Probability(0.5)), of_half);
        assert_eq!(sampling_response(&SamplingStrategy::PerSecond(3)), [0x08, 1, 0x1a, 2, 0x08, 3]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = find_request(&bytes);
            let _ = trace_request(&bytes);
            let _ = trace_request_v2(&bytes);
            let _ = operations_request(&bytes);
            let _ = dependencies_request(&bytes);
        }
    }
}
