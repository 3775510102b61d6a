//! Events of spans.

use arrow::array::ArrayRef;
use longpole_model::{Span, SpanEvent, Texts, Timestamp};

use super::attributes::{self, attributes_at};
use super::batch::{BadRows, Batch, Rows};
use super::{Kind, Table, array, column, optional, spans};

pub(crate) static TABLE: Table = Table::new(
    "span_events",
    "One row per event of a span, in the order of the spans and as sent.",
    &[
        column("span_row", Kind::Nanos, "Row of its span in `spans`."),
        column("trace_id", Kind::TraceId, "Trace of its span."),
        column("span_id", Kind::SpanId, "Its span."),
        column("time_unix_nano", Kind::Nanos, "When, by the emitter's clock."),
        column("name", Kind::Text, "What."),
        column("attributes", Kind::TextMap, "Attributes as texts."),
        optional("attributes_json", Kind::Text, "The same with their types, as OTLP's JSON; NULL where all are texts."),
    ],
    || TABLE.arrow_schema(),
);

/// An event and its span.
pub(crate) struct Row<'a> {
    span_row: u32,
    span: &'a Span,
    event: &'a SpanEvent,
}

/// The events of these spans.
pub(crate) fn rows<'a>(spans: impl Iterator<Item = spans::Row<'a>>) -> Vec<Row<'a>> {
    let of_span = |row: spans::Row<'a>| {
        let (span_row, span) = (row.row, row.span);
        span.events.iter().map(move |event| Row { span_row, span, event })
    };
    spans.flat_map(of_span).collect()
}

pub(crate) fn build(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    let (attributes, attributes_json) = attributes::columns(rows.iter().map(|row| &row.event.attributes));
    vec![
        array::int(rows.iter().map(|row| i64::from(row.span_row))),
        array::trace_id(rows.iter().map(|row| Some(row.span.trace_id))),
        array::span_id(rows.iter().map(|row| Some(row.span.span_id))),
        array::int(rows.iter().map(|row| row.event.time.unix_nanos())),
        array::text(rows.iter().map(|row| row.event.name.as_str())),
        attributes,
        attributes_json,
    ]
}

/// The span of a row number.
pub(super) fn span_at(spans: &mut [Span], row: i64) -> Rows<&mut Span> {
    let missing = || BadRows(format!("span_row holds {row}, which is no row of spans"));
    usize::try_from(row).ok().and_then(|row| spans.get_mut(row)).ok_or_else(missing)
}

pub(crate) fn read(batch: &Batch<'_>, texts: &mut Texts, spans: &mut [Span]) -> Rows<()> {
    let (span_row, time, name) = (batch.int("span_row")?, batch.int("time_unix_nano")?, batch.text("name")?);
    let (maps, typed) = (batch.map("attributes")?, batch.text("attributes_json")?);
    for row in batch.rows() {
        span_at(spans, span_row.value(row))?.events.push(SpanEvent {
            time: Timestamp(time.value(row)),
            name: texts.text(name.value(row)),
            attributes: attributes_at(texts, maps, typed, row)?,
        });
    }
    Ok(())
}
