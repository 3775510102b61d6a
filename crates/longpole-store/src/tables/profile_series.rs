//! Series of profiles of a server's segment, and where their values are.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use longpole_model::Timestamp;
use longpole_model::profile::{ProfileSeries, ProfileType};

use super::attributes::kept_text;
use super::batch::{BadRows, Batch, Rows, strings_at};
use super::{Kind, Table, array, column};
use crate::memory::kept_texts::KeptTexts;

pub(crate) static TABLE: Table = Table::new(
    "profile_series",
    "One row per series of profiles: a type of profile, and the labels of the program.",
    &[
        column("series_id", Kind::Number, "Its number: that of its row, from 0."),
        column("profile_name", Kind::Text, "The profiler, such as `process_cpu` or `memory`."),
        column("sample_type", Kind::Text, "What its values are of, such as `cpu` or `inuse_space`."),
        column("sample_unit", Kind::Text, "In what, such as `nanoseconds` or `bytes`."),
        column("period_type", Kind::Text, "What was counted between two samples."),
        column("period_unit", Kind::Text, "In what."),
        column("label_names", Kind::Texts, "Names of its labels, in the order of the alphabet."),
        column("label_values", Kind::Texts, "Their values."),
        column("first_row", Kind::Nanos, "First row of its values in `profile_values`; the others follow, by time."),
        column("rows", Kind::Number, "How many there are."),
        column("start_time_unix_nano", Kind::Nanos, "Time of the first."),
        column("end_time_unix_nano", Kind::Nanos, "Time of the last."),
    ],
    || TABLE.arrow_schema(),
);

/// A series, and the rows of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeriesRow {
    pub(crate) series: Arc<ProfileSeries>,
    pub(crate) values: Range<u32>,
    /// Times of the first and the last.
    pub(crate) times: [Timestamp; 2],
}

pub(crate) fn build(rows: &[SeriesRow]) -> Vec<ArrayRef> {
    let part = |place: usize| array::text(rows.iter().map(move |row| row.series.profile_type.parts()[place].as_str()));
    let names: Vec<Vec<&str>> = rows.iter().map(|row| row.series.labels.iter().map(|(name, _)| name.as_str()).collect()).collect();
    let values: Vec<Vec<&str>> = rows.iter().map(|row| row.series.labels.iter().map(|(_, value)| value.as_str()).collect()).collect();
    vec![
        array::number((0..).zip(rows).map(|(number, _)| number)),
        part(0),
        part(1),
        part(2),
        part(3),
        part(4),
        array::texts(names.iter().map(Vec::as_slice)),
        array::texts(values.iter().map(Vec::as_slice)),
        array::int(rows.iter().map(|row| i64::from(row.values.start))),
        array::number(rows.iter().map(|row| row.values.end - row.values.start)),
        array::int(rows.iter().map(|row| row.times[0].unix_nanos())),
        array::int(rows.iter().map(|row| row.times[1].unix_nanos())),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, texts: &mut KeptTexts, rows: &mut Vec<SeriesRow>) -> Rows<()> {
    let parts = ["profile_name", "sample_type", "sample_unit", "period_type", "period_unit"];
    let parts = parts.map(|name| batch.shared_text(name));
    let (names, values) = (batch.list("label_names")?, batch.list("label_values")?);
    let (first_row, count) = (batch.int("first_row")?, batch.number("rows")?);
    let (start, end) = (batch.int("start_time_unix_nano")?, batch.int("end_time_unix_nano")?);
    let [name, sample_type, sample_unit, period_type, period_unit] = parts;
    let parts = [name?, sample_type?, sample_unit?, period_type?, period_unit?];
    for row in batch.rows() {
        let mut kept = |words: &str| kept_text(batch.budget(), texts, words);
        let mut part = |place: usize| kept(parts[place].value(row));
        let profile_type =
            ProfileType { name: part(0)?, sample_type: part(1)?, sample_unit: part(2)?, period_type: part(3)?, period_unit: part(4)? };
        let (names, values) = (strings_at("label_names", names, row)?, strings_at("label_values", values, row)?);
        if names.len() != values.len() {
            return Err(BadRows("a series has another number of labels than of their values".into()));
        }
        batch.budget().take((names.len() * size_of::<(longpole_model::Text, longpole_model::Text)>()) as u64)?;
        let mut labels = Vec::with_capacity(names.len());
        for (name, value) in names.iter().zip(values.iter()) {
            labels.push((kept(name.unwrap_or_default())?, kept(value.unwrap_or_default())?));
        }
        let first = u32::try_from(first_row.value(row)).ok();
        let range = first.and_then(|first| Some(first..first.checked_add(count.value(row))?));
        let range = range.ok_or_else(|| BadRows("column first_row refers to rows that cannot be there".into()))?;
        let times = [Timestamp(start.value(row)), Timestamp(end.value(row))];
        rows.push(SeriesRow { series: Arc::new(ProfileSeries { profile_type, labels }), values: range, times });
    }
    Ok(())
}
