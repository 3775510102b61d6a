//! When threads were on a CPU.

use arrow_array::ArrayRef;
use longpole_model::{Clock, CpuSlice, Monotonic};

use super::batch::{Batch, Rows};
use super::processes::unix;
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "cpu_slices",
    "One row per interval in which a thread was on a CPU, by start. From switch records: exact, not sampled.",
    &[
        column("pid", Kind::Number, "Process."),
        column("tid", Kind::Number, "Thread."),
        optional("start_time_unix_nano", Kind::Nanos, "Switched in, by the wall clock; NULL if the recorder read no clock."),
        column("start_time_monotonic_nano", Kind::Nanos, "Switched in, by CLOCK_MONOTONIC."),
        column("end_time_monotonic_nano", Kind::Nanos, "Switched out, by CLOCK_MONOTONIC."),
        column("duration_nanos", Kind::Nanos, "Time on the CPU."),
        column("preempted", Kind::Bool, "Whether it was still runnable at the switch."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[CpuSlice], clock: &Clock) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|slice| slice.pid)),
        array::number(rows.iter().map(|slice| slice.tid)),
        array::optional_int(rows.iter().map(|slice| unix(clock, Some(slice.start)))),
        array::unsigned(rows.iter().map(|slice| slice.start.0)),
        array::unsigned(rows.iter().map(|slice| slice.end.0)),
        array::unsigned(rows.iter().map(|slice| slice.end.nanos_since(slice.start))),
        array::bool(rows.iter().map(|slice| slice.preempted)),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, slices: &mut Vec<CpuSlice>) -> Rows<()> {
    let (pid, tid, preempted) = (batch.number("pid")?, batch.number("tid")?, batch.bool("preempted")?);
    let (start, end) = (batch.int("start_time_monotonic_nano")?, batch.int("end_time_monotonic_nano")?);
    for row in batch.rows() {
        slices.push(CpuSlice {
            pid: pid.value(row),
            tid: tid.value(row),
            start: Monotonic(start.value(row).cast_unsigned()),
            end: Monotonic(end.value(row).cast_unsigned()),
            preempted: preempted.value(row),
        });
    }
    Ok(())
}
