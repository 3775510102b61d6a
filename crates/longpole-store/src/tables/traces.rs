//! Traces of a server's segment: what a search needs before it reads spans, and where these are.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use longpole_model::{Text, Timestamp, TraceId};

use super::attributes::kept_text;
use super::batch::{BadRows, Batch, Rows, numbers_at, required, strings_at, text_at, trace_id_at};
use super::{Kind, Table, array, column};
use crate::memory::kept_texts::KeptTexts;
use crate::trace_summary::TraceSummary;

pub(crate) static TABLE: Table = Table::new(
    "traces",
    "One row per trace, in the order of their spans.",
    &[
        column(ID, Kind::TraceId, "Trace."),
        column("first_row", Kind::Nanos, "First row of its spans; the others follow."),
        column("spans", Kind::Number, "How many there are, with those that are log records of a span."),
        column("errors", Kind::Number, "How many of them failed."),
        column("start_time_unix_nano", Kind::Nanos, "First start."),
        column("end_time_unix_nano", Kind::Nanos, "Last end."),
        column("has_root", Kind::Bool, "Whether a span without a parent is there."),
        column("root_start_time_unix_nano", Kind::Nanos, "Start of the root, or of the first span if no root is there."),
        column("root_service_name", Kind::Text, "Its service."),
        column("root_name", Kind::Text, "Its operation."),
        column("services", Kind::Texts, "Services of its spans."),
        column("service_spans", Kind::Numbers, "How many spans each of them has."),
        column("first_event", Kind::Nanos, "First row of its events in `span_events`."),
        column("events", Kind::Number, "How many there are."),
        column("first_link", Kind::Nanos, "First row of its links in `span_links`."),
        column("links", Kind::Number, "How many there are."),
    ],
    || TABLE.arrow_schema(),
);

/// The column of ids.
pub(crate) const ID: &str = "trace_id";

/// A trace, and the rows of what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceRow {
    pub(crate) summary: TraceSummary,
    pub(crate) spans: Range<u32>,
    pub(crate) events: Range<u32>,
    pub(crate) links: Range<u32>,
}

/// What decides whether a trace may be wanted, and where its spans and events are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceOutline {
    /// Its row in `traces`.
    pub(crate) row: u32,
    pub(crate) trace_id: TraceId,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) errors: u32,
    pub(crate) spans: Range<u32>,
    pub(crate) events: Range<u32>,
}

/// The columns of [`read_outlines`].
pub(crate) const OUTLINE_COLUMNS: [&str; 8] =
    ["trace_id", "first_row", "spans", "errors", "start_time_unix_nano", "end_time_unix_nano", "first_event", "events"];

/// Reads the outlines of traces, of batches from the first row on.
pub(crate) fn read_outlines(batch: &Batch<'_>, next_row: &mut u32, mut take: impl FnMut(TraceOutline)) -> Rows<()> {
    let (trace_id, spans, errors) = (batch.id("trace_id")?, batch.number("spans")?, batch.number("errors")?);
    let (start, end) = (batch.int("start_time_unix_nano")?, batch.int("end_time_unix_nano")?);
    let (first_row, first_event, events) = (batch.int("first_row")?, batch.int("first_event")?, batch.number("events")?);
    for row in batch.rows() {
        take(TraceOutline {
            row: *next_row,
            trace_id: required(trace_id_at(trace_id, row))?,
            start: Timestamp(start.value(row)),
            end: Timestamp(end.value(row)),
            errors: errors.value(row),
            spans: range("first_row", first_row.value(row), spans.value(row))?,
            events: range("first_event", first_event.value(row), events.value(row))?,
        });
        *next_row += 1;
    }
    Ok(())
}

/// Reads the ids alone.
pub(crate) fn read_ids(batch: &Batch<'_>, ids: &mut Vec<TraceId>) -> Rows<()> {
    let trace_id = batch.id(ID)?;
    batch.rows().try_for_each(|row| {
        ids.push(required(trace_id_at(trace_id, row))?);
        Ok(())
    })
}

pub(crate) fn build(rows: &[TraceRow]) -> Vec<ArrayRef> {
    let summaries = || rows.iter().map(|row| &row.summary);
    let names: Vec<Vec<Text>> = summaries().map(|trace| trace.services.iter().map(|(name, _)| name.clone()).collect()).collect();
    let length = |range: &Range<u32>| range.end - range.start;
    vec![
        array::trace_id(summaries().map(|trace| Some(trace.trace_id))),
        array::int(rows.iter().map(|row| i64::from(row.spans.start))),
        array::number(rows.iter().map(|row| length(&row.spans))),
        array::number(summaries().map(|trace| trace.errors)),
        array::int(summaries().map(|trace| trace.start.unix_nanos())),
        array::int(summaries().map(|trace| trace.end.unix_nanos())),
        array::bool(summaries().map(|trace| trace.root().0)),
        array::int(summaries().map(|trace| trace.root().1.unix_nanos())),
        array::text(summaries().map(|trace| trace.root_service.as_str())),
        array::text(summaries().map(|trace| trace.root_name.as_str())),
        array::texts(names.iter().map(Vec::as_slice)),
        array::numbers(summaries().map(|trace| trace.services.iter().map(|(_, spans)| *spans))),
        array::int(rows.iter().map(|row| i64::from(row.events.start))),
        array::number(rows.iter().map(|row| length(&row.events))),
        array::int(rows.iter().map(|row| i64::from(row.links.start))),
        array::number(rows.iter().map(|row| length(&row.links))),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, texts: &mut KeptTexts, rows: &mut Vec<TraceRow>) -> Rows<()> {
    let (trace_id, spans, errors) = (batch.id("trace_id")?, batch.number("spans")?, batch.number("errors")?);
    let (start, end) = (batch.int("start_time_unix_nano")?, batch.int("end_time_unix_nano")?);
    let (has_root, root_start) = (batch.bool("has_root")?, batch.int("root_start_time_unix_nano")?);
    let (root_service, root_name) = (batch.text("root_service_name")?, batch.text("root_name")?);
    let (services, service_spans) = (batch.list("services")?, batch.list("service_spans")?);
    let (first_row, first_event, first_link) = (batch.int("first_row")?, batch.int("first_event")?, batch.int("first_link")?);
    let (events, links) = (batch.number("events")?, batch.number("links")?);
    for row in batch.rows() {
        let names = strings_at("services", services, row)?;
        batch.budget().take((names.len() * size_of::<(Text, u32)>()) as u64)?;
        let mut kept = |words: &str| kept_text(batch.budget(), texts, words);
        let counts = numbers_at(batch.budget(), "service_spans", service_spans, row)?;
        if names.len() != counts.len() {
            return Err(BadRows("a trace has another number of services than of their spans".into()));
        }
        let id: TraceId = required(trace_id_at(trace_id, row))?;
        let mut summary = TraceSummary::new(id);
        (summary.start, summary.end) = (Timestamp(start.value(row)), Timestamp(end.value(row)));
        // Without the rows that are log records, which are of no service.
        summary.spans = counts.iter().fold(0, |sum: u32, count| sum.saturating_add(*count)).min(spans.value(row));
        summary.errors = errors.value(row);
        (summary.root_service, summary.root_name) = (kept(&text_at(root_service, row))?, kept(&text_at(root_name, row))?);
        for (name, count) in names.iter().zip(counts) {
            summary.services.push((kept(name.unwrap_or_default())?, count));
        }
        summary.set_root(has_root.value(row), Timestamp(root_start.value(row)));
        rows.push(TraceRow {
            summary,
            spans: range("first_row", first_row.value(row), spans.value(row))?,
            events: range("first_event", first_event.value(row), events.value(row))?,
            links: range("first_link", first_link.value(row), links.value(row))?,
        });
    }
    Ok(())
}

/// Rows from here on.
fn range(column: &str, first: i64, count: u32) -> Rows<Range<u32>> {
    let first = u32::try_from(first).ok();
    let range = first.and_then(|first| Some(first..first.checked_add(count)?));
    range.ok_or_else(|| BadRows(format!("column {column} refers to rows that cannot be there")))
}
