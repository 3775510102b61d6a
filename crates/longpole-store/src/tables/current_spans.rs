//! Which span was current on which thread.

use arrow_array::ArrayRef;
use longpole_model::{Clock, CurrentSpan, Monotonic};

use super::batch::{Batch, Rows, span_id_at, trace_id_at};
use super::processes::unix;
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "current_spans",
    "One row per interval in which a thread had one current span or none, by start. From the journals of programs that use \
     `longpole-sdk`: exact, not sampled. The intervals of a thread have no gaps as long as its journal is whole.",
    &[
        column("pid", Kind::Number, "Process."),
        column("tid", Kind::Number, "Thread."),
        optional("start_time_unix_nano", Kind::Nanos, "Start, by the wall clock; NULL if the recorder read no clock."),
        column("start_time_monotonic_nano", Kind::Nanos, "Start, by CLOCK_MONOTONIC."),
        column("end_time_monotonic_nano", Kind::Nanos, "Next change, or end of the thread or the recording, by CLOCK_MONOTONIC."),
        column("duration_nanos", Kind::Nanos, "Length of the interval."),
        optional("trace_id", Kind::TraceId, "Trace of the span; NULL if the thread had none."),
        optional("span_id", Kind::SpanId, "The span; NULL if the thread had none."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[CurrentSpan], clock: &Clock) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|row| row.pid)),
        array::number(rows.iter().map(|row| row.tid)),
        array::optional_int(rows.iter().map(|row| unix(clock, Some(row.start)))),
        array::unsigned(rows.iter().map(|row| row.start.0)),
        array::unsigned(rows.iter().map(|row| row.end.0)),
        array::unsigned(rows.iter().map(|row| row.end.nanos_since(row.start))),
        array::trace_id(rows.iter().map(|row| row.span.map(|(trace_id, _)| trace_id))),
        array::span_id(rows.iter().map(|row| row.span.map(|(_, span_id)| span_id))),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, spans: &mut Vec<CurrentSpan>) -> Rows<()> {
    let (pid, tid) = (batch.number("pid")?, batch.number("tid")?);
    let (start, end) = (batch.int("start_time_monotonic_nano")?, batch.int("end_time_monotonic_nano")?);
    let (trace_id, span_id) = (batch.id("trace_id")?, batch.id("span_id")?);
    for row in batch.rows() {
        spans.push(CurrentSpan {
            pid: pid.value(row),
            tid: tid.value(row),
            start: Monotonic(start.value(row).cast_unsigned()),
            end: Monotonic(end.value(row).cast_unsigned()),
            span: trace_id_at(trace_id, row)?.zip(span_id_at(span_id, row)?),
            is_sent: false,
        });
    }
    Ok(())
}
