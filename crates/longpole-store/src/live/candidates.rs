//! Traces of a segment that may match a filter, found without their spans.
//!
//! ```text
//! spans.service_name     0 1 1 1 0 0 0 1 1        rows with the wanted service …
//! spans.attributes       0 0 1 0 0 1 0 0 0        … and for each attribute those with it
//! span_events.attributes             1            an event with it counts for all spans of its trace
//! traces                └─ 1 ─┘└── 2 ──┘└3┘       of 1 and 2 a row has all
//! ```
//!
//! What is found here is never too little, and mostly right: texts are compared with what the columns show, a number with its digits. The spans
//! of what is found decide, unless nothing is left to decide.

use std::ops::Range;

use longpole_model::StatusCode;

use super::filter::SpanFilter;
use super::log_events;
use super::segment::{OpenTables, Segment};
use crate::bits::Bits;
use crate::error::StoreError;
use crate::query_limits::QueryLimits;
use crate::tables::spans;
use crate::tables::traces::{self, TraceOutline};

/// Conditions on attributes that are looked for here. Those behind them are left to the spans.
const CONDITIONS_MAX: usize = 16;

/// Columns of attributes of a span.
const MAPS: [&str; 3] = ["attributes", "resource_attributes", "scope_attributes"];

/// A trace that may match.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) outline: TraceOutline,
    /// Whether it matches, if it has a span at all.
    pub(super) is_certain: bool,
}

/// Where a condition on attributes is met.
struct Met {
    spans: Vec<Bits>,
    events: Vec<Bits>,
}

impl Met {
    fn by_span(&self, row: usize) -> bool {
        self.spans.iter().any(|bits| bits.has(row))
    }

    fn by_event(&self, rows: &Range<u32>) -> bool {
        let is_within = |row: usize| row < rows.end as usize;
        self.events.iter().any(|bits| bits.next_from(rows.start as usize).is_some_and(is_within))
    }
}

/// Every trace that may match, in the order of their rows.
pub(super) fn of_segment(segment: &Segment, filter: &SpanFilter, query: &QueryLimits) -> Result<Vec<Candidate>, StoreError> {
    let tables = segment.tables()?;
    let rows = rows_of_fields(&tables, filter, query)?;
    let mut met = Vec::new();
    let attributes = filter.attributes.iter().map(|(key, value)| (key.as_str(), Some(value.as_str())));
    let mut is_complete = true;
    for (key, value) in attributes.chain(filter.keys.iter().map(|key| (key.as_str(), None))) {
        is_complete = false;
        if met.len() < CONDITIONS_MAX && !rows.as_ref().is_some_and(Bits::is_empty) {
            met.extend(met_by(&tables, key, value, rows.as_ref(), query)?);
        }
    }
    // A row of this name may be a log record, which is no span.
    let unsure = match &rows {
        Some(rows) if is_complete => Some(tables.spans.rows_with_text("name", &[log_events::NAME], Some(rows), query)?),
        _ => None,
    };
    let all_of_time = |trace: &TraceOutline| {
        let ends = if rows.is_some() { trace.end } else { trace.start };
        filter.from.is_none_or(|from| trace.start >= from) && filter.until.is_none_or(|until| ends <= until)
    };
    let has_row = |trace: &TraceOutline, is_wanted: &dyn Fn(usize) -> bool| {
        let next = |row: usize| rows.as_ref().map_or(Some(row), |rows| rows.next_from(row)).filter(|row| *row < trace.spans.end as usize);
        std::iter::successors(next(trace.spans.start as usize), |row| next(row + 1)).any(is_wanted)
    };
    let mut candidates = Vec::new();
    if rows.as_ref().is_some_and(Bits::is_empty) {
        return Ok(candidates);
    }
    let mut next_row = 0;
    tables.traces.read_columns(&traces::OUTLINE_COLUMNS, size_of::<Candidate>(), query, |batch| {
        traces::read_outlines(&batch, &mut next_row, |trace| {
            if !filter.is_on_page(trace.start, trace.trace_id) || !filter.may_match_outline(trace.start, trace.end, trace.errors) {
                return;
            }
            let by_event: Vec<bool> = met.iter().map(|met| met.by_event(&trace.events)).collect();
            let has_all = |row: usize| met.iter().zip(&by_event).all(|(met, by_event)| *by_event || met.by_span(row));
            if has_row(&trace, &has_all) {
                let is_span = |row: usize| unsure.as_ref().is_none_or(|unsure| !unsure.has(row));
                let is_certain = is_complete && all_of_time(&trace) && has_row(&trace, &is_span);
                candidates.push(Candidate { outline: trace, is_certain });
            }
        })
    })?;
    Ok(candidates)
}

/// Rows whose service, name, status and duration match; `None` if the filter names none of them. The time is not compared.
fn rows_of_fields(tables: &OpenTables, filter: &SpanFilter, query: &QueryLimits) -> Result<Option<Bits>, StoreError> {
    let error = filter.is_error.then_some(StatusCode::Error.as_str());
    let texts = [("service_name", filter.service.as_deref()), ("name", filter.name.as_deref()), ("status_code", error)];
    let mut rows: Option<Bits> = None;
    for (column, text) in texts {
        let Some(text) = text else { continue };
        let mut found = tables.spans.rows_with_text(column, &[text], rows.as_ref(), query)?;
        rows.iter().for_each(|rows| found.retain(rows));
        if found.is_empty() {
            return Ok(Some(found));
        }
        rows = Some(found);
    }
    if filter.min_nanos.is_some() || filter.max_nanos.is_some() {
        let mut found = Bits::none(tables.spans.len());
        let (min, max) = (filter.min_nanos.unwrap_or(0), filter.max_nanos.unwrap_or(u64::MAX));
        let mut row = 0;
        tables.spans.read_columns(&["duration_nanos"], 0, query, |batch| {
            spans::read_durations(&batch, |nanos| {
                if (min..=max).contains(&nanos) {
                    found.set(row);
                }
                row += 1;
            })
        })?;
        rows.iter().for_each(|rows| found.retain(rows));
        rows = Some(found);
    }
    Ok(rows)
}

/// Where the spans of these rows, or an event, have an attribute with this value, or with any; `None` where each span has it.
fn met_by(
    tables: &OpenTables,
    key: &str,
    value: Option<&str>,
    rows: Option<&Bits>,
    query: &QueryLimits,
) -> Result<Option<Met>, StoreError> {
    let mut met = Met { spans: Vec::new(), events: Vec::new() };
    let mut add_rows =
        |column: &str, texts: &[&str]| tables.spans.rows_with_text(column, texts, rows, query).map(|bits| met.spans.push(bits));
    match (key, value) {
        ("span.kind", None) | ("otel.scope.name" | "otel.library.name", Some("")) => return Ok(None),
        ("error", Some("false")) => add_rows("status_code", &[StatusCode::Unset.as_str(), StatusCode::Ok.as_str()])?,
        // The reason of a failure is looked for later.
        ("error", _) => add_rows("status_code", &[StatusCode::Error.as_str()])?,
        ("span.kind", Some(value)) => add_rows("kind", &[value])?,
        ("otel.status_code", Some(value)) => add_rows("status_code", &[&value.to_ascii_lowercase()])?,
        ("otel.scope.name" | "otel.library.name", Some(value)) => add_rows("scope_name", &[value])?,
        _ => {}
    }
    let texts = value.map(texts_of);
    for column in MAPS {
        met.spans.push(tables.spans.rows_with_pair(column, key, texts.as_deref(), rows, query)?);
    }
    met.events.push(tables.events.rows_with_pair("attributes", key, texts.as_deref(), None, query)?);
    if value.is_none() {
        met.events.push(tables.events.rows_with_text("name", &[key], None, query)?);
    }
    met.spans.retain(|bits| !bits.is_empty());
    met.events.retain(|bits| !bits.is_empty());
    Ok(Some(met))
}

/// How columns show the values that are written like this: the text itself, and numbers, which can be written in several ways.
fn texts_of(value: &str) -> Vec<String> {
    let mut texts = vec![value.to_owned()];
    if let Ok(number) = value.parse::<i64>() {
        texts.push(number.to_string());
    }
    if let Ok(number) = value.parse::<f64>() {
        // Zero equals the one below it.
        texts.extend([number, -number].into_iter().filter(|other| *other == number).map(|number| format!("{number:?}")));
    }
    texts.sort_unstable();
    texts.dedup();
    texts
}
