//! Links from spans to other spans.

use arrow_array::ArrayRef;
use longpole_model::{Span, SpanLink};

use super::attributes::{self, attributes_at};
use super::batch::{Batch, Rows, required, span_id_at, trace_id_at};
use super::span_events::span_at;
use super::spans::{Owners, SpanPart, SpanRows};
use super::{Kind, Table, array, column, optional};
use crate::memory::kept_texts::KeptTexts;

pub(crate) static TABLE: Table = Table::new(
    "span_links",
    "One row per link of a span, in the order of the spans and as sent. A link to a span that ended before declares a dependency on it.",
    &[
        column("span_row", Kind::Nanos, "Row of its span in `spans`."),
        column("trace_id", Kind::TraceId, "Trace of its span."),
        column("span_id", Kind::SpanId, "Its span."),
        column("linked_trace_id", Kind::TraceId, "Trace of the other span."),
        column("linked_span_id", Kind::SpanId, "The other span."),
        column("attributes", Kind::TextMap, "Attributes as strings."),
        optional("attributes_json", Kind::Text, "The same with their types, as OTLP's JSON; NULL if all are strings."),
    ],
    || TABLE.arrow_schema(),
);

/// The links of these spans.
pub(crate) fn parts(spans: &SpanRows<'_>) -> Vec<SpanPart> {
    let with = (0..spans.len()).filter(|&row| spans.has_links(row));
    SpanPart::of(with.map(|row| (row, spans.get(row).span.links.len())))
}

pub(crate) fn build(spans: &SpanRows<'_>, parts: &[SpanPart]) -> Vec<ArrayRef> {
    let owners = Owners::of(parts, spans);
    let links = || parts.iter().zip(owners.iter()).map(|(part, span)| &span.links[part.number as usize]);
    let (attributes, attributes_json) = attributes::columns(links().map(|link| &link.attributes));
    vec![
        array::int(parts.iter().map(|part| i64::from(part.span_row))),
        array::trace_id(owners.iter().map(|span| Some(span.trace_id))),
        array::span_id(owners.iter().map(|span| Some(span.span_id))),
        array::trace_id(links().map(|link| Some(link.trace_id))),
        array::span_id(links().map(|link| Some(link.span_id))),
        attributes,
        attributes_json,
    ]
}

/// Columns that say again what the spans say.
pub(crate) const REPEATED: [&str; 2] = ["trace_id", "span_id"];

pub(crate) fn read(batch: &Batch<'_>, texts: &mut KeptTexts, spans: &mut [Span], first_row: u32) -> Rows<()> {
    let (span_row, trace_id, span_id) = (batch.int("span_row")?, batch.id("linked_trace_id")?, batch.id("linked_span_id")?);
    let (maps, typed) = (batch.map("attributes")?, batch.shared_text("attributes_json")?);
    for row in batch.rows() {
        span_at(spans, first_row, span_row.value(row))?.links.push(SpanLink {
            trace_id: required(trace_id_at(trace_id, row))?,
            span_id: required(span_id_at(span_id, row))?,
            attributes: attributes_at(batch.budget(), texts, maps, typed, row)?,
        });
    }
    Ok(())
}
