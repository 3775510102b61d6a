//! Queries in protobuf: one reader for all methods, which each give their fields other numbers.

use super::{AVERAGE, OF_SPANS, ProfileQuery, QuerierMethod, exemplars, format};
use crate::error::DecodeError;
use crate::number::int32;
use crate::protobuf::{Field, MessageCount, Reader, Value, bytes, message, number, unexpected};

/// A field of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryField {
    Aggregation,
    Async,
    End,
    Exemplars,
    Format,
    GroupBy,
    HeatmapOf,
    LabelNames,
    Limit,
    Matchers,
    MaxNodes,
    Name,
    ProfileIds,
    ProfileType,
    Query,
    Selector,
    SpanIds,
    StackTraceSelector,
    Start,
    Step,
    TraceIds,
}

/// Numbers and fields of the request of a method, as in `querier/v1/querier.proto` and `types/v1/types.proto`.
fn fields(method: QuerierMethod) -> &'static [(u32, QueryField)] {
    use QueryField as F;
    match method {
        QuerierMethod::ProfileTypes => &[(1, F::Start), (2, F::End)],
        QuerierMethod::LabelValues => &[(1, F::Name), (2, F::Matchers), (3, F::Start), (4, F::End)],
        QuerierMethod::LabelNames => &[(1, F::Matchers), (2, F::Start), (3, F::End)],
        QuerierMethod::Series => &[(1, F::Matchers), (2, F::LabelNames), (3, F::Start), (4, F::End)],
        QuerierMethod::SelectMergeStacktraces => &[
            (1, F::ProfileType),
            (2, F::Selector),
            (3, F::Start),
            (4, F::End),
            (5, F::MaxNodes),
            (6, F::Format),
            (7, F::StackTraceSelector),
            (8, F::ProfileIds),
            (9, F::Async),
            (10, F::TraceIds),
            (11, F::SpanIds),
        ],
        QuerierMethod::SelectMergeSpanProfile => {
            &[(1, F::ProfileType), (2, F::Selector), (3, F::SpanIds), (4, F::Start), (5, F::End), (6, F::MaxNodes), (7, F::Format)]
        }
        QuerierMethod::SelectMergeProfile => &[
            (1, F::ProfileType),
            (2, F::Selector),
            (3, F::Start),
            (4, F::End),
            (5, F::MaxNodes),
            (6, F::StackTraceSelector),
            (7, F::ProfileIds),
            (8, F::TraceIds),
        ],
        QuerierMethod::SelectSeries => &[
            (1, F::ProfileType),
            (2, F::Selector),
            (3, F::Start),
            (4, F::End),
            (5, F::GroupBy),
            (6, F::Step),
            (7, F::Aggregation),
            (8, F::StackTraceSelector),
            (9, F::Limit),
            (10, F::Exemplars),
        ],
        QuerierMethod::SelectHeatmap => &[
            (1, F::ProfileType),
            (2, F::Selector),
            (3, F::Start),
            (4, F::End),
            (5, F::Step),
            (6, F::GroupBy),
            (7, F::HeatmapOf),
            (8, F::Exemplars),
            (9, F::Limit),
        ],
        QuerierMethod::AnalyzeQuery => &[(2, F::Start), (3, F::End), (4, F::Query)],
        QuerierMethod::Diff | QuerierMethod::GetProfileStats => &[],
    }
}

/// Reads the request of a method.
pub(super) fn read(method: QuerierMethod, bytes: &[u8]) -> Result<ProfileQuery, DecodeError> {
    query(method, Reader::new(bytes), &mut MessageCount::of(bytes.len()))
}

/// Reads `DiffRequest`.
pub(super) fn read_diff(bytes: &[u8]) -> Result<[ProfileQuery; 2], DecodeError> {
    let (mut sides, mut count) = ([ProfileQuery::default(), ProfileQuery::default()], MessageCount::of(bytes.len()));
    let mut reader = Reader::new(bytes).named("DiffRequest");
    while let Some(field) = reader.next()? {
        if let 1 | 2 = field.number {
            let method = QuerierMethod::SelectMergeStacktraces;
            sides[field.number as usize - 1] = query(method, message(&reader, field, method.as_str())?, &mut count)?;
        }
    }
    Ok(sides)
}

fn query(method: QuerierMethod, reader: Reader<'_>, count: &mut MessageCount) -> Result<ProfileQuery, DecodeError> {
    let (fields, mut reader) = (fields(method), reader.named(method.as_str()));
    let mut query = ProfileQuery::default();
    while let Some(field) = reader.next()? {
        let Some((_, name)) = fields.iter().find(|(number, _)| *number == field.number) else { continue };
        let mut texts = |into: &mut Vec<String>| {
            count.add(&reader, field.offset)?;
            into.push(text(&reader, field)?);
            Ok::<(), DecodeError>(())
        };
        match name {
            QueryField::ProfileType => query.profile_type = text(&reader, field)?,
            QueryField::Selector => query.selector = text(&reader, field)?,
            QueryField::Name => query.name = text(&reader, field)?,
            QueryField::Query => query.query = text(&reader, field)?,
            QueryField::Matchers => texts(&mut query.matchers)?,
            QueryField::LabelNames => texts(&mut query.label_names)?,
            QueryField::GroupBy => texts(&mut query.group_by)?,
            QueryField::ProfileIds => texts(&mut query.profile_ids)?,
            QueryField::TraceIds => texts(&mut query.trace_ids)?,
            QueryField::SpanIds => texts(&mut query.span_ids)?,
            QueryField::Start => query.start_millis = integer(&reader, field)?,
            QueryField::End => query.end_millis = integer(&reader, field)?,
            QueryField::MaxNodes => query.max_nodes = Some(integer(&reader, field)?),
            QueryField::Limit => query.limit = Some(integer(&reader, field)?),
            QueryField::Step => {
                let Value::Fixed64(bits) = field.value else { return Err(unexpected(&reader, field)) };
                query.step_secs = f64::from_bits(bits);
            }
            QueryField::Format => query.format = format(choice(&reader, field)?),
            QueryField::Aggregation => query.is_average = choice(&reader, field)? == AVERAGE,
            QueryField::Exemplars => query.exemplars = exemplars(choice(&reader, field)?),
            QueryField::HeatmapOf => query.is_of_spans = choice(&reader, field)? == OF_SPANS,
            QueryField::StackTraceSelector => {
                let mut selector = message(&reader, field, "StackTraceSelector")?;
                query.call_site.clear();
                while let Some(field) = selector.next()? {
                    if field.number == 1 {
                        count.add(&selector, field.offset)?;
                        query.call_site.push(location(message(&selector, field, "Location")?)?);
                    }
                }
            }
            QueryField::Async => {
                // An id, if the answer of a request before is fetched, and whether it must be later.
                let mut polling = message(&reader, field, "AsyncQueryRequest")?;
                while let Some(field) = polling.next()? {
                    query.is_async |= match (field.number, field.value) {
                        (1, Value::Bytes(id)) => !id.bytes().is_empty(),
                        (2, Value::Varint(kind)) => kind > 0,
                        _ => false,
                    };
                }
            }
        }
    }
    Ok(query)
}

/// The name of a `Location`.
fn location(mut reader: Reader<'_>) -> Result<String, DecodeError> {
    let mut name = String::new();
    while let Some(field) = reader.next()? {
        if field.number == 1 {
            name = text(&reader, field)?;
        }
    }
    Ok(name)
}

fn text(reader: &Reader<'_>, field: Field<'_>) -> Result<String, DecodeError> {
    bytes(reader, field).map(|text| String::from_utf8_lossy(text).into_owned())
}

fn integer(reader: &Reader<'_>, field: Field<'_>) -> Result<i64, DecodeError> {
    number(reader, field).map(u64::cast_signed)
}

fn choice(reader: &Reader<'_>, field: Field<'_>) -> Result<i32, DecodeError> {
    number(reader, field).map(int32)
}
