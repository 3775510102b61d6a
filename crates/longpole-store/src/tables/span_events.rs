//! Events of spans.

use arrow_array::ArrayRef;
use longpole_model::{Span, SpanEvent, Timestamp};

use super::attributes::{self, attributes_at, kept_text};
use super::batch::{BadRows, Batch, Rows};
use super::spans::{Owners, SpanPart, SpanRows};
use super::{Kind, Table, array, column, optional};
use crate::memory::kept_texts::KeptTexts;

pub(crate) static TABLE: Table = Table::new(
    "span_events",
    "One row per event of a span, in the order of the spans and as sent.",
    &[
        column("span_row", Kind::Nanos, "Row of its span in `spans`."),
        column("trace_id", Kind::TraceId, "Trace of its span."),
        column("span_id", Kind::SpanId, "Its span."),
        column("time_unix_nano", Kind::Nanos, "Time, by the emitter's clock."),
        column("name", Kind::Text, "Name of the event."),
        column("attributes", Kind::TextMap, "Attributes as strings."),
        optional("attributes_json", Kind::Text, "The same with their types, as OTLP's JSON; NULL if all are strings."),
    ],
    || TABLE.arrow_schema(),
);

/// The events of these spans.
pub(crate) fn parts(spans: &SpanRows<'_>) -> Vec<SpanPart> {
    let with = (0..spans.len()).filter(|&row| spans.has_events(row));
    SpanPart::of(with.map(|row| (row, spans.get(row).span.events.len())))
}

pub(crate) fn build(spans: &SpanRows<'_>, parts: &[SpanPart]) -> Vec<ArrayRef> {
    let owners = Owners::of(parts, spans);
    let events = || parts.iter().zip(owners.iter()).map(|(part, span)| &span.events[part.number as usize]);
    let (attributes, attributes_json) = attributes::columns(events().map(|event| &event.attributes));
    vec![
        array::int(parts.iter().map(|part| i64::from(part.span_row))),
        array::trace_id(owners.iter().map(|span| Some(span.trace_id))),
        array::span_id(owners.iter().map(|span| Some(span.span_id))),
        array::int(events().map(|event| event.time.unix_nanos())),
        array::text(events().map(|event| event.name.as_str())),
        attributes,
        attributes_json,
    ]
}

/// The span of a row number, of spans that begin at this row.
pub(super) fn span_at(spans: &mut [Span], first_row: u32, row: i64) -> Rows<&mut Span> {
    span_of(spans, row, |row| usize::try_from(row.saturating_sub(i64::from(first_row))).ok())
}

fn span_of(spans: &mut [Span], row: i64, place_of: impl Fn(i64) -> Option<usize>) -> Rows<&mut Span> {
    let missing = || BadRows(format!("span_row holds {row}, which is not a row of spans"));
    place_of(row).and_then(|place| spans.get_mut(place)).ok_or_else(missing)
}

/// Columns that say again what the spans say.
pub(crate) const REPEATED: [&str; 2] = ["trace_id", "span_id"];

pub(crate) fn read(batch: &Batch<'_>, texts: &mut KeptTexts, spans: &mut [Span], first_row: u32) -> Rows<()> {
    read_at(batch, texts, spans, |row| usize::try_from(row.saturating_sub(i64::from(first_row))).ok())
}

/// The same for spans whose rows do not stand together: the place of each is among them by its row.
pub(crate) fn read_at(batch: &Batch<'_>, texts: &mut KeptTexts, spans: &mut [Span], place_of: impl Fn(i64) -> Option<usize>) -> Rows<()> {
    let (span_row, time, name) = (batch.int("span_row")?, batch.int("time_unix_nano")?, batch.shared_text("name")?);
    let (maps, typed) = (batch.map("attributes")?, batch.shared_text("attributes_json")?);
    for row in batch.rows() {
        span_of(spans, span_row.value(row), &place_of)?.events.push(SpanEvent {
            time: Timestamp(time.value(row)),
            name: kept_text(batch.budget(), texts, name.value(row))?,
            attributes: attributes_at(batch.budget(), texts, maps, typed, row)?,
        });
    }
    Ok(())
}
