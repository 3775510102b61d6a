//! Stacks.

use arrow_array::ArrayRef;
use longpole_model::{LocationId, Stack, StackId};

use super::batch::{Batch, Rows, numbers_at};
use super::{Kind, Table, array, column};

pub(crate) static TABLE: Table = Table::new(
    "stacks",
    "One row per distinct stack.",
    &[
        column("stack_id", Kind::Number, "Its number: that of its row, from 0."),
        column("location_ids", Kind::Numbers, "Its entries in `locations` and `frames`, leaf first: the leaf is `location_ids[1]`."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[Stack]) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|stack| stack.id.0)),
        array::numbers(rows.iter().map(|stack| stack.locations.iter().map(|location| location.0))),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, stacks: &mut Vec<Stack>) -> Rows<()> {
    let (id, locations) = (batch.number("stack_id")?, batch.list("location_ids")?);
    for row in batch.rows() {
        let locations = numbers_at(batch.budget(), "location_ids", locations, row)?;
        stacks.push(Stack { id: StackId(id.value(row)), locations: locations.into_iter().map(LocationId).collect() });
    }
    Ok(())
}
