//! Processes.

use arrow::array::ArrayRef;
use longpole_model::{Clock, Monotonic, Process, Timestamp};

use super::batch::{Batch, Rows, at, text_at, texts_at, unsigned_at};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "processes",
    "One row per process of the run, by start. A pid that the kernel used again has a row for each of its processes.",
    &[
        column("pid", Kind::Number, "Its id while it lived."),
        optional("parent_pid", Kind::Number, "Its parent at the fork; NULL for the command itself."),
        column("name", Kind::Text, "Name: the kernel's comm, 15 bytes at most."),
        optional("executable", Kind::Text, "Path of the executable."),
        column("arguments", Kind::Texts, "Arguments after the last exec."),
        column("execed", Kind::Bool, "Whether it ran another program than its parent."),
        optional("start_time_unix_nano", Kind::Nanos, "Fork, by the wall clock; NULL where the recorder read no clock."),
        optional("end_time_unix_nano", Kind::Nanos, "Exit, by the wall clock; NULL where it outlived the recording."),
        column("start_time_monotonic_nano", Kind::Nanos, "Fork, by CLOCK_MONOTONIC."),
        optional("end_time_monotonic_nano", Kind::Nanos, "Exit, by CLOCK_MONOTONIC."),
    ],
    || TABLE.arrow_schema(),
);

/// Wall time of a moment, for a column.
pub(super) fn unix(clock: &Clock, time: Option<Monotonic>) -> Option<i64> {
    time.and_then(|time| clock.to_unix(time)).map(Timestamp::unix_nanos)
}

pub(crate) fn build(rows: &[Process], clock: &Clock) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|process| process.pid)),
        array::optional_number(rows.iter().map(|process| process.parent_pid)),
        array::text(rows.iter().map(|process| process.name.as_str())),
        array::text_unless_empty(rows.iter().map(|process| process.executable.as_str())),
        array::texts(rows.iter().map(|process| process.arguments.as_slice())),
        array::bool(rows.iter().map(|process| process.execed)),
        array::optional_int(rows.iter().map(|process| unix(clock, Some(process.start)))),
        array::optional_int(rows.iter().map(|process| unix(clock, process.end))),
        array::unsigned(rows.iter().map(|process| process.start.0)),
        array::optional_unsigned(rows.iter().map(|process| process.end.map(|end| end.0))),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, processes: &mut Vec<Process>) -> Rows<()> {
    let (pid, parent_pid, name) = (batch.number("pid")?, batch.number("parent_pid")?, batch.text("name")?);
    let (executable, arguments, execed) = (batch.text("executable")?, batch.list("arguments")?, batch.bool("execed")?);
    let (start, end) = (batch.int("start_time_monotonic_nano")?, batch.int("end_time_monotonic_nano")?);
    for row in batch.rows() {
        processes.push(Process {
            pid: pid.value(row),
            parent_pid: at(parent_pid, row, |row| parent_pid.value(row)),
            name: name.value(row).to_owned(),
            executable: text_at(executable, row),
            arguments: texts_at("arguments", arguments, row)?,
            start: Monotonic(start.value(row).cast_unsigned()),
            end: unsigned_at(end, row).map(Monotonic),
            execed: execed.value(row),
        });
    }
    Ok(())
}
