//! Locations: the entries of stacks. Their frames are in `frames`.

use arrow_array::ArrayRef;
use longpole_model::stack::LocationKind;
use longpole_model::{AbsAddr, Location, LocationId, MappingId, Runtime, VirtOffset};

use super::batch::{BadRows, Batch, Rows, at, text_at, word};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "locations",
    "One row per distinct entry of a stack: an address, a function that an interpreter ran, or the place where unwinding stopped.",
    &[
        column("location_id", Kind::Number, "Its number: that of its row, from 0."),
        column(
            "kind",
            Kind::Text,
            "`code` (of a binary), `unmapped` (code outside every known binary), `named` (interpreted or compiled at run time: its name is in `frames`) or `cut` (unwinding stopped here).",
        ),
        optional("mapping_id", Kind::Number, "Its binary in `mappings`."),
        optional(
            "address",
            Kind::Address,
            "For `code` the address in the binary's own headers; for `unmapped`, and for `named` machine code, the address in the process. Return addresses are already one byte less.",
        ),
        optional("reason", Kind::Text, "Why unwinding stopped."),
        optional("runtime", Kind::Text, "The runtime of `named` code: `python`, `node`, `jvm`, `other` or `kernel`."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[Location]) -> Vec<ArrayRef> {
    let word = |kind: &LocationKind| match kind {
        LocationKind::Code { .. } => "code",
        LocationKind::Unmapped { .. } => "unmapped",
        LocationKind::Named { .. } => "named",
        LocationKind::Cut { .. } => "cut",
    };
    let mapping = |kind: &LocationKind| match kind {
        LocationKind::Code { mapping, .. } => Some(mapping.0),
        LocationKind::Unmapped { .. } | LocationKind::Named { .. } | LocationKind::Cut { .. } => None,
    };
    let address = |kind: &LocationKind| match kind {
        LocationKind::Code { address, .. } => Some(address.0),
        LocationKind::Unmapped { address } => Some(address.0),
        LocationKind::Named { address, .. } => address.map(|address| address.0),
        LocationKind::Cut { .. } => None,
    };
    vec![
        array::number(rows.iter().map(|location| location.id.0)),
        array::text(rows.iter().map(|location| word(&location.kind))),
        array::optional_number(rows.iter().map(|location| mapping(&location.kind))),
        array::optional_address(rows.iter().map(|location| address(&location.kind))),
        array::optional_text(rows.iter().map(|location| match &location.kind {
            LocationKind::Cut { reason } => Some(reason.as_str()),
            LocationKind::Code { .. } | LocationKind::Unmapped { .. } | LocationKind::Named { .. } => None,
        })),
        array::optional_text(rows.iter().map(|location| match &location.kind {
            LocationKind::Named { runtime, .. } => Some(runtime.as_str()),
            LocationKind::Code { .. } | LocationKind::Unmapped { .. } | LocationKind::Cut { .. } => None,
        })),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, locations: &mut Vec<Location>) -> Rows<()> {
    let (id, kind, mapping) = (batch.number("location_id")?, batch.text("kind")?, batch.number("mapping_id")?);
    let (address, reason) = (batch.address("address")?, batch.text("reason")?);
    let runtime = batch.added("runtime", Batch::text)?;
    for row in batch.rows() {
        let number = at(address, row, |row| address.value(row)).ok_or_else(|| BadRows("code has no address".into()));
        let kind = match kind.value(row) {
            "code" => {
                let mapping = at(mapping, row, |row| mapping.value(row)).ok_or_else(|| BadRows("code has no mapping".into()))?;
                LocationKind::Code { mapping: MappingId(mapping), address: VirtOffset(number?) }
            }
            "unmapped" => LocationKind::Unmapped { address: AbsAddr(number?) },
            "named" => {
                let code = runtime.and_then(|runtime| at(runtime, row, |row| runtime.value(row))).unwrap_or_default();
                LocationKind::Named { runtime: word("runtime", code, Runtime::from_code)?, address: number.ok().map(AbsAddr) }
            }
            "cut" => LocationKind::Cut { reason: text_at(reason, row) },
            other => return Err(BadRows(format!("column kind holds the unknown word `{other}`"))),
        };
        locations.push(Location { id: LocationId(id.value(row)), kind, frames: Vec::new() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::RecordBatch;
    use arrow_schema::Schema;

    use super::*;
    use crate::memory::budget::Budget;
    use crate::segment::reread;

    #[test]
    fn a_table_of_the_first_version_has_no_runtimes() {
        let kinds = [LocationKind::Unmapped { address: AbsAddr(16) }, LocationKind::Cut { reason: "deep".into() }];
        let rows: Vec<Location> =
            kinds.into_iter().zip(0..).map(|(kind, id)| Location { id: LocationId(id), kind, frames: Vec::new() }).collect();
        let (mut fields, mut columns) = (TABLE.schema().fields().to_vec(), build(&rows));
        assert_eq!(fields.pop().map(|field| field.name().clone()).as_deref(), Some("runtime"));
        columns.pop();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let mut found = Vec::new();
        read(&Batch::new(&TABLE, &reread(&TABLE, &batch), &Budget::of_file(0)), &mut found).unwrap();
        assert_eq!(found, rows);
    }
}
