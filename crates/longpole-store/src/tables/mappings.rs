//! Binaries.

use arrow_array::ArrayRef;
use longpole_model::{Mapping, MappingId};

use super::batch::{Batch, Rows};
use super::{Kind, Table, array, column};

pub(crate) static TABLE: Table = Table::new(
    "mappings",
    "One row per binary that a sampled process had mapped.",
    &[
        column("mapping_id", Kind::Number, "Its number: that of its row, from 0."),
        column("path", Kind::Text, "Path as the kernel reported it, such as `/usr/lib/libc.so.6` or `[vdso]`."),
        column("build_id", Kind::Bytes, "GNU build id; empty if the file has none or was unreadable."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[Mapping]) -> Vec<ArrayRef> {
    vec![
        array::number(rows.iter().map(|mapping| mapping.id.0)),
        array::text(rows.iter().map(|mapping| mapping.path.as_str())),
        array::bytes(rows.iter().map(|mapping| mapping.build_id.as_slice())),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, mappings: &mut Vec<Mapping>) -> Rows<()> {
    let (id, path, build_id) = (batch.number("mapping_id")?, batch.text("path")?, batch.bytes("build_id")?);
    for row in batch.rows() {
        mappings.push(Mapping { id: MappingId(id.value(row)), path: path.value(row).to_owned(), build_id: build_id.value(row).to_vec() });
    }
    Ok(())
}
