//! Frames: what a person sees of a location.

use std::collections::HashMap;

use arrow_array::ArrayRef;
use longpole_model::{Frame, Location, Text};

use super::batch::{BadRows, Batch, Rows, at};
use super::{Kind, Table, array, column, optional};

/// The column of a frame's location.
pub(crate) const LOCATION: &str = "location_id";

pub(crate) static TABLE: Table = Table::new(
    "frames",
    "One row per function of a location: its inlined functions, and the called one.",
    &[
        column(LOCATION, Kind::Number, "Its location."),
        column("inline_depth", Kind::Number, "0 for the innermost inlined function, and so on outwards to the called one."),
        column(
            "function",
            Kind::Text,
            "Demangled name; for code without one, `name.so+0x12ab`: the start of its function, if unwind information has it, else the address; for a cut, `[reason]`.",
        ),
        optional("file", Kind::Text, "Source file."),
        optional("line", Kind::Number, "Source line."),
        optional("reason", Kind::Text, "Why there is no function name."),
    ],
    || TABLE.arrow_schema(),
);

/// A frame at its place.
pub(crate) struct Row<'a> {
    location_id: u32,
    inline_depth: u32,
    frame: &'a Frame,
}

/// The frames of these locations.
pub(crate) fn rows(locations: &[Location]) -> Vec<Row<'_>> {
    let of_location = |location: &'_ Location| location.id.0;
    locations
        .iter()
        .flat_map(|location| {
            let location_id = of_location(location);
            (0u32..).zip(&location.frames).map(move |(inline_depth, frame)| Row { location_id, inline_depth, frame })
        })
        .collect()
}

pub(crate) fn build(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|row| row.location_id)),
        array::number(rows.iter().map(|row| row.inline_depth)),
        array::text(rows.iter().map(|row| row.frame.function.as_str())),
        array::text_unless_empty(rows.iter().map(|row| row.frame.file.as_str())),
        array::optional_number(rows.iter().map(|row| (row.frame.line > 0).then_some(row.frame.line))),
        array::optional_text(rows.iter().map(|row| row.frame.reason.as_deref())),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, locations: &mut [Location]) -> Rows<()> {
    read_at(batch, locations, |id| Some(id as usize))
}

/// Reads the frames of locations that lie at these places.
pub(crate) fn read_at(batch: &Batch<'_>, locations: &mut [Location], place_of: impl Fn(u32) -> Option<usize>) -> Rows<()> {
    let (location_id, function) = (batch.number(LOCATION)?, batch.text("function")?);
    let (file, line, reason) = (batch.text("file")?, batch.number("line")?, batch.text("reason")?);
    // Functions run at many addresses.
    let mut known: HashMap<&str, Text> = HashMap::new();
    let mut shared = |text| known.entry(text).or_insert_with(|| Text::from(text)).clone();
    for row in batch.rows() {
        let id = location_id.value(row);
        let location = place_of(id).and_then(|place| locations.get_mut(place));
        let location = location.ok_or_else(|| BadRows(format!("location_id holds {id}, which is not a row of locations")))?;
        location.frames.push(Frame {
            function: shared(function.value(row)),
            file: at(file, row, |row| shared(file.value(row))).unwrap_or_default(),
            line: at(line, row, |row| line.value(row)).unwrap_or_default(),
            reason: at(reason, row, |row| reason.value(row).to_owned()),
        });
    }
    Ok(())
}

/// Reads of each frame only whose it is.
pub(crate) fn read_location_ids(batch: &Batch<'_>, take: impl FnMut(u32)) -> Rows<()> {
    let location_id = batch.number(LOCATION)?;
    batch.rows().map(|row| location_id.value(row)).for_each(take);
    Ok(())
}
