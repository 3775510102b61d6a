//! Values of profiles of a server's segment.

use arrow_array::ArrayRef;
use longpole_model::profile::{LinkScope, ProfileValue, ProfiledSpan};
use longpole_model::{StackId, Timestamp};

use super::batch::{Batch, Rows, at, span_id_at, trace_id_at, word};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "profile_values",
    "One row per stack of a profile: how much it had, by series and time.",
    &[
        column("series_id", Kind::Number, "Its series in `profile_series`."),
        column("time_unix_nano", Kind::Nanos, "When: the sample's own time, or that of its profile."),
        column("stack_id", Kind::Number, "Its stack in `stacks`."),
        column("value", Kind::Int, "How much, in the unit of the series."),
        optional("trace_id", Kind::TraceId, "The trace that it names."),
        optional("span_id", Kind::SpanId, "The span that it names."),
        optional(
            "link_scope",
            Kind::Text,
            "What it belongs to: `span` (that span), `local_root` (it or a descendant in the same process), `trace` (some span of the trace).",
        ),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[ProfileValue]) -> Vec<ArrayRef> {
    let spans = || rows.iter().map(|row| row.span);
    vec![
        array::number(rows.iter().map(|row| row.series)),
        array::int(rows.iter().map(|row| row.time.unix_nanos())),
        array::number(rows.iter().map(|row| row.stack.0)),
        array::int(rows.iter().map(|row| row.value)),
        array::trace_id(spans().map(|span| span?.trace_id)),
        array::span_id(spans().map(|span| span?.span_id)),
        array::optional_text(spans().map(|span| span.map(|span| span.scope.as_str()))),
    ]
}

/// Reads values and keeps none: `take` adds them up.
pub(crate) fn read(batch: &Batch<'_>, mut take: impl FnMut(ProfileValue) -> Rows<()>) -> Rows<()> {
    let (series, time) = (batch.number("series_id")?, batch.int("time_unix_nano")?);
    let (stack, value) = (batch.number("stack_id")?, batch.int("value")?);
    let (trace_id, span_id, scope) = (batch.id("trace_id")?, batch.id("span_id")?, batch.shared_text("link_scope")?);
    for row in batch.rows() {
        let span = match at(scope, row, |row| scope.value(row)) {
            None => None,
            Some(code) => Some(ProfiledSpan {
                trace_id: trace_id_at(trace_id, row)?,
                span_id: span_id_at(span_id, row)?,
                scope: word("link_scope", code, LinkScope::from_code)?,
            }),
        };
        take(ProfileValue {
            series: series.value(row),
            time: Timestamp(time.value(row)),
            stack: StackId(stack.value(row)),
            value: value.value(row),
            span,
        })?;
    }
    Ok(())
}
