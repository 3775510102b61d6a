//! Threads.

use arrow_array::{ArrayRef, Int64Array};
use longpole_model::{Clock, Monotonic, Thread, ThreadTotals};

use super::batch::{Batch, Rows, unsigned_at};
use super::processes::unix;
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "threads",
    "One row per thread of a process, by start. The main thread has the id of its process.",
    &[
        column("pid", Kind::Number, "Its process."),
        column("tid", Kind::Number, "Its id."),
        column("name", Kind::Text, "Name: the kernel's comm, 15 bytes at most."),
        optional("start_time_unix_nano", Kind::Nanos, "Start, by the wall clock; NULL if the recorder read no clock."),
        optional("end_time_unix_nano", Kind::Nanos, "Exit, by the wall clock; NULL if it outlived the recording."),
        column("start_time_monotonic_nano", Kind::Nanos, "Start, by CLOCK_MONOTONIC."),
        optional("end_time_monotonic_nano", Kind::Nanos, "Exit, by CLOCK_MONOTONIC."),
        optional("on_cpu_nanos", Kind::Nanos, "Total time on a CPU by the scheduler's count, if there are no `cpu_slices`; else NULL."),
        optional("ready_nanos", Kind::Nanos, "Total time waiting for a CPU by the scheduler's count; NULL in the same cases."),
        optional("ident", Kind::Nanos, "The interpreter's own number of the thread, if known: Python's `threading.get_ident()`."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[Thread], clock: &Clock) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|thread| thread.pid)),
        array::number(rows.iter().map(|thread| thread.tid)),
        array::text(rows.iter().map(|thread| thread.name.as_str())),
        array::optional_int(rows.iter().map(|thread| unix(clock, Some(thread.start)))),
        array::optional_int(rows.iter().map(|thread| unix(clock, thread.end))),
        array::unsigned(rows.iter().map(|thread| thread.start.0)),
        array::optional_unsigned(rows.iter().map(|thread| thread.end.map(|end| end.0))),
        array::optional_unsigned(rows.iter().map(|thread| thread.totals.map(|totals| totals.on_cpu_nanos))),
        array::optional_unsigned(rows.iter().map(|thread| thread.totals.map(|totals| totals.ready_nanos))),
        array::optional_unsigned(rows.iter().map(|thread| thread.ident)),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, threads: &mut Vec<Thread>) -> Rows<()> {
    let (pid, tid, name) = (batch.number("pid")?, batch.number("tid")?, batch.text("name")?);
    let (start, end) = (batch.int("start_time_monotonic_nano")?, batch.int("end_time_monotonic_nano")?);
    let (on_cpu, ready) = (batch.added("on_cpu_nanos", Batch::int)?, batch.added("ready_nanos", Batch::int)?);
    let ident = batch.added("ident", Batch::int)?;
    let total_at = |column: Option<&Int64Array>, row| column.and_then(|column| unsigned_at(column, row));
    for row in batch.rows() {
        let totals = total_at(on_cpu, row).zip(total_at(ready, row));
        threads.push(Thread {
            pid: pid.value(row),
            tid: tid.value(row),
            name: name.value(row).to_owned(),
            start: Monotonic(start.value(row).cast_unsigned()),
            end: unsigned_at(end, row).map(Monotonic),
            totals: totals.map(|(on_cpu_nanos, ready_nanos)| ThreadTotals { on_cpu_nanos, ready_nanos }),
            ident: total_at(ident, row),
        });
    }
    Ok(())
}
