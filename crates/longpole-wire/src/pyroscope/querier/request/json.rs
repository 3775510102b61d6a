//! Queries in JSON: one message with the fields of all methods, whose names they share.

use std::borrow::Cow;

use serde::de::Unexpected;

use super::{AVERAGE, OF_SPANS, ProfileQuery, exemplars, format};
use crate::error::DecodeError;
use crate::json::{self, Element, Json, List, message};
use crate::limits::Limits;

/// Reads the request of a method.
pub(super) fn read(bytes: &[u8]) -> Result<ProfileQuery, DecodeError> {
    json::parse_request::<QueryMessage<'_>>(bytes, &Limits::default()).map(|(message, _)| message.into_query())
}

/// Reads `DiffRequest`.
pub(super) fn read_diff(bytes: &[u8]) -> Result<[ProfileQuery; 2], DecodeError> {
    let (message, _) = json::parse_request::<DiffMessage<'_>>(bytes, &Limits::default())?;
    Ok([message.left.into_query(), message.right.into_query()])
}

/// Numbers of the enums, by the names that JSON has. No two enums share a name.
const CHOICES: [(&str, i32); 16] = [
    ("PROFILE_FORMAT_UNSPECIFIED", 0),
    ("PROFILE_FORMAT_FLAMEGRAPH", 1),
    ("PROFILE_FORMAT_TREE", 2),
    ("PROFILE_FORMAT_DOT", 3),
    ("PROFILE_FORMAT_PPROF", 4),
    ("TIME_SERIES_AGGREGATION_TYPE_SUM", 0),
    ("TIME_SERIES_AGGREGATION_TYPE_AVERAGE", AVERAGE),
    ("EXEMPLAR_TYPE_UNSPECIFIED", 0),
    ("EXEMPLAR_TYPE_NONE", 1),
    ("EXEMPLAR_TYPE_INDIVIDUAL", 2),
    ("EXEMPLAR_TYPE_SPAN", 3),
    ("HEATMAP_QUERY_TYPE_UNSPECIFIED", 0),
    ("HEATMAP_QUERY_TYPE_INDIVIDUAL", 1),
    ("HEATMAP_QUERY_TYPE_SPAN", OF_SPANS),
    ("ASYNC_QUERY_TYPE_DISABLED", 0),
    ("ASYNC_QUERY_TYPE_FORCE", 1),
];

message!(QueryMessage<'a>, Container, {
    profile_type: Cow<'a, str> = "profileTypeID" | "profile_typeID",
    selector: Cow<'a, str> = "labelSelector" | "label_selector",
    start: i64 = "start",
    end: i64 = "end",
    name: Cow<'a, str> = "name",
    matchers: List<Cow<'a, str>> = "matchers",
    label_names: List<Cow<'a, str>> = "labelNames" | "label_names",
    group_by: List<Cow<'a, str>> = "groupBy" | "group_by",
    step: f64 = "step",
    aggregation: Choice = "aggregation",
    max_nodes: Option<i64> = "maxNodes" | "max_nodes",
    format: Choice = "format",
    stack_trace_selector: SelectorMessage<'a> = "stackTraceSelector" | "stack_trace_selector",
    profile_ids: List<Cow<'a, str>> = "profileIdSelector" | "profile_id_selector",
    trace_ids: List<Cow<'a, str>> = "traceIdSelector" | "trace_id_selector",
    span_ids: List<Cow<'a, str>> = "spanSelector" | "span_selector",
    limit: Option<i64> = "limit",
    exemplars: Choice = "exemplarType" | "exemplar_type",
    heatmap_of: Choice = "queryType" | "query_type",
    query: Cow<'a, str> = "query",
    polling: AsyncMessage<'a> = "async",
});
message!(DiffMessage<'a>, Container, { left: QueryMessage<'a> = "left", right: QueryMessage<'a> = "right" });
message!(SelectorMessage<'a>, Value, { call_site: List<LocationMessage<'a>> = "callSite" | "call_site" });
message!(LocationMessage<'a>, Value, { name: Cow<'a, str> = "name" });
message!(AsyncMessage<'a>, Value, { kind: Choice = "type", request: Cow<'a, str> = "requestId" | "request_id" });

impl Element for LocationMessage<'_> {}

fn texts(list: List<Cow<'_, str>>) -> Vec<String> {
    list.kept.into_iter().map(Cow::into_owned).collect()
}

/// The number of an enum, or one of its names.
#[derive(Default, Clone, Copy)]
pub(crate) struct Choice(i32);

impl<'de> Json<'de> for Choice {
    const EXPECTED: &'static str = "the name of an enum";

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        i32::try_from(number).map(Choice).map_err(|_| E::invalid_value(Unexpected::Other("another number"), &Self::EXPECTED))
    }

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        let known = CHOICES.iter().find(|(name, _)| *name == text);
        known.map(|(_, number)| Choice(*number)).ok_or_else(|| E::invalid_value(Unexpected::Str(&text), &Self::EXPECTED))
    }
}

impl QueryMessage<'_> {
    fn into_query(self) -> ProfileQuery {
        let call_site = self.stack_trace_selector.call_site.kept.into_iter().map(|location| location.name.into_owned()).collect();
        // A request that polls has an id, and no other fields.
        let is_async = self.polling.kind.0 != 0 || !self.polling.request.is_empty();
        ProfileQuery {
            profile_type: self.profile_type.into_owned(),
            selector: self.selector.into_owned(),
            start_millis: self.start,
            end_millis: self.end,
            name: self.name.into_owned(),
            matchers: texts(self.matchers),
            label_names: texts(self.label_names),
            group_by: texts(self.group_by),
            step_secs: self.step,
            is_average: self.aggregation.0 == AVERAGE,
            max_nodes: self.max_nodes,
            format: format(self.format.0),
            call_site,
            profile_ids: texts(self.profile_ids),
            trace_ids: texts(self.trace_ids),
            span_ids: texts(self.span_ids),
            limit: self.limit,
            exemplars: exemplars(self.exemplars.0),
            is_of_spans: self.heatmap_of.0 == OF_SPANS,
            query: self.query.into_owned(),
            is_async,
        }
    }
}
