//! Readings of both clocks.

use arrow_array::ArrayRef;
use longpole_model::{ClockAnchor, Monotonic, Timestamp};

use super::batch::{Batch, Rows};
use super::{Kind, Table, array, column};

pub(crate) static TABLE: Table = Table::new(
    "clock_anchors",
    "One row per reading of both clocks, by time: the link between samples and the wall clock of spans.",
    &[
        column("time_monotonic_nano", Kind::Nanos, "CLOCK_MONOTONIC."),
        column("time_unix_nano", Kind::Nanos, "CLOCK_REALTIME at that moment."),
        column("bracket_nanos", Kind::Number, "Duration of the reading: its error is at most half of this."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[ClockAnchor]) -> Vec<ArrayRef> {
    vec![
        array::unsigned(rows.iter().map(|anchor| anchor.monotonic.0)),
        array::int(rows.iter().map(|anchor| anchor.unix.unix_nanos())),
        array::number(rows.iter().map(|anchor| anchor.bracket_nanos)),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, anchors: &mut Vec<ClockAnchor>) -> Rows<()> {
    let (monotonic, unix) = (batch.int("time_monotonic_nano")?, batch.int("time_unix_nano")?);
    let bracket = batch.number("bracket_nanos")?;
    for row in batch.rows() {
        anchors.push(ClockAnchor {
            monotonic: Monotonic(monotonic.value(row).cast_unsigned()),
            unix: Timestamp(unix.value(row)),
            bracket_nanos: bracket.value(row),
        });
    }
    Ok(())
}
