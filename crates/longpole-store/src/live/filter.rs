//! What a search asks of spans. A trace matches if one of its spans does.

use longpole_model::{AttributeValue, Attributes, Span, SpanKind, StatusCode, TimeRange, Timestamp, TraceId};

use crate::error::StoreError;
use crate::query_limits::QueryLimits;

/// What a span must have. What is `None` or empty asks for nothing.
#[derive(Debug, Clone, Default)]
pub struct SpanFilter {
    /// Its service.
    pub service: Option<String>,
    /// Its operation.
    pub name: Option<String>,
    /// Attributes, by their text: of the span, its resource, its scope or one of its events.
    pub attributes: Vec<(String, String)>,
    /// Keys of attributes, or names of events.
    pub keys: Vec<String>,
    /// Its shortest duration, in nanoseconds.
    pub min_nanos: Option<u64>,
    /// Its longest.
    pub max_nanos: Option<u64>,
    /// The shortest duration of its trace, in nanoseconds, as far as one segment or log has it.
    pub min_trace_nanos: Option<u64>,
    /// The longest.
    pub max_trace_nanos: Option<u64>,
    /// It must have failed.
    pub is_error: bool,
    /// Its earliest start.
    pub from: Option<Timestamp>,
    /// Its latest.
    pub until: Option<Timestamp>,
    /// Its trace comes after this one in the order of a search.
    pub after: Option<TraceCursor>,
}

/// What a search needs of a span unless it asks for attributes.
pub(super) struct SpanOutline<'a> {
    pub(super) service: &'a str,
    pub(super) name: &'a str,
    pub(super) range: TimeRange,
    pub(super) status: StatusCode,
}

/// A place in the order of a search: by the start of a trace, the newest first, then by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceCursor {
    /// Start of the trace at this place, as far as its parts match.
    pub start: Timestamp,
    /// Its id.
    pub trace_id: TraceId,
}

/// Most attributes and keys of a search: each is compared with all attributes of a span.
pub(super) const CONDITIONS_MAX: usize = 128;

impl SpanFilter {
    /// The same with each condition once.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooManyConditions`].
    pub(super) fn distinct(&self) -> Result<SpanFilter, StoreError> {
        let mut filter = self.clone();
        filter.attributes.sort_unstable();
        filter.attributes.dedup();
        filter.keys.sort_unstable();
        filter.keys.dedup();
        match filter.attributes.len() + filter.keys.len() {
            0..=CONDITIONS_MAX => Ok(filter),
            count => Err(StoreError::TooManyConditions { count, most: CONDITIONS_MAX }),
        }
    }

    /// Whether any of these spans matches. The query may be stopped between two of them.
    pub(super) fn matches_any(&self, spans: &[Span], query: &QueryLimits) -> Result<bool, StoreError> {
        for span in spans {
            query.check()?;
            if self.matches(span) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a trace of this time, with this number of failed spans, may have such a span, whatever its services.
    pub(super) fn may_match_outline(&self, start: Timestamp, end: Timestamp, errors: u32) -> bool {
        let nanos = TimeRange { start, end }.nanos().cast_unsigned();
        self.min_nanos.max(self.min_trace_nanos).is_none_or(|least| nanos >= least)
            && self.max_trace_nanos.is_none_or(|most| nanos <= most)
            && (!self.is_error || errors > 0)
            && self.may_match_time(start, end)
    }

    /// Whether a trace of this start comes after the cursor.
    pub(super) fn is_on_page(&self, start: Timestamp, trace_id: TraceId) -> bool {
        self.after.is_none_or(|after| start < after.start || (start == after.start && trace_id > after.trace_id))
    }

    /// Whether spans of this time can match.
    pub(super) fn may_match_time(&self, start: Timestamp, end: Timestamp) -> bool {
        self.from.is_none_or(|from| end >= from) && self.until.is_none_or(|until| start <= until)
    }

    /// Whether it asks for more than the outlines of spans have.
    pub(super) fn needs_attributes(&self) -> bool {
        !self.attributes.is_empty() || !self.keys.is_empty()
    }

    /// Whether a span matches, attributes aside.
    pub(super) fn matches_outline(&self, span: &SpanOutline<'_>) -> bool {
        let nanos = span.range.nanos().cast_unsigned();
        self.service.as_ref().is_none_or(|service| span.service == service)
            && self.name.as_ref().is_none_or(|name| span.name == name)
            && self.min_nanos.is_none_or(|min| nanos >= min)
            && self.max_nanos.is_none_or(|max| nanos <= max)
            && (!self.is_error || span.status == StatusCode::Error)
            && self.from.is_none_or(|from| span.range.start >= from)
            && self.until.is_none_or(|until| span.range.start <= until)
    }

    /// Whether the span matches.
    pub fn matches(&self, span: &Span) -> bool {
        let range = TimeRange { start: span.start, end: span.end };
        let outline = SpanOutline { service: span.service_name(), name: &span.name, range, status: span.status.code };
        self.matches_outline(&outline)
            && self.attributes.iter().all(|(key, value)| has(span, key, Some(value)))
            && self.keys.iter().all(|key| has(span, key, None) || span.events.iter().any(|event| event.name.as_str() == key))
    }
}

/// Whether the span says this somewhere.
fn has(span: &Span, key: &str, value: Option<&str>) -> bool {
    let in_map = |attributes: &Attributes| attributes.get(key).is_some_and(|found| value.is_none_or(|value| is_text(found, value)));
    // What OpenTelemetry made fields of, and what everybody searches for as tags.
    let in_field = match key {
        "error" => match value {
            None | Some("true") => span.status.code == StatusCode::Error,
            Some("false") => span.status.code != StatusCode::Error,
            // Zipkin has the reason there.
            Some(reason) => span.status.code == StatusCode::Error && span.status.message.as_str() == reason,
        },
        "span.kind" => value.map_or(span.kind != SpanKind::Unspecified, |value| span.kind.as_str() == value),
        "otel.status_code" => value.is_some_and(|value| span.status.code.as_str().eq_ignore_ascii_case(value)),
        "otel.scope.name" | "otel.library.name" => value.is_some_and(|value| span.scope.name == value),
        _ => false,
    };
    in_field
        || in_map(&span.attributes)
        || in_map(&span.resource.attributes)
        || in_map(&span.scope.attributes)
        || span.events.iter().any(|event| in_map(&event.attributes))
}

/// Whether a value is written like this.
fn is_text(found: &AttributeValue, text: &str) -> bool {
    match found {
        AttributeValue::Str(found) => found.as_str() == text,
        AttributeValue::Bool(found) => text == if *found { "true" } else { "false" },
        AttributeValue::Int(found) => text.parse() == Ok(*found),
        AttributeValue::Double(found) => text.parse() == Ok(*found),
        AttributeValue::Empty | AttributeValue::Bytes(_) | AttributeValue::Array(_) | AttributeValue::KeyValues(_) => false,
    }
}
