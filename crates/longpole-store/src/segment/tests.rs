use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use longpole_model::{Loss, LossKind};
use parquet::arrow::ArrowWriter;

use super::reader::{Opened, Tables, read};
use super::writer::{Writer, properties};
use crate::format::RECORDING_VERSION;
use crate::tables::Table;
use crate::tables::losses;
use crate::testing::Directory;

/// As Arrow does where texts of a batch come to more than 2 GiB: 1,024 spans with attributes of 2.2 MB.
#[test]
fn rows_that_are_too_large_for_one_batch_stand_in_several_in_their_order() {
    let rows: Vec<Loss> = (0..2500).map(|number| Loss::new(LossKind::TextReplaced, number, format!("{number}"))).collect();
    let build = |rows: &[Loss]| {
        assert!(rows.len() <= 100 || rows[0].count >= 1024, "offset overflow");
        losses::build(rows)
    };
    let directory = Directory::new();
    let mut writer = Writer::new(directory.path());
    writer.write(&losses::TABLE, 0, &rows, build).unwrap();
    writer.finish().unwrap();
    let tables = Tables::of_directory(directory.path(), RECORDING_VERSION).unwrap();
    let mut found = Vec::new();
    read(&tables, &losses::TABLE, size_of::<Loss>(), |batch| losses::read(&batch, &mut found)).unwrap();
    assert_eq!(found, rows);
    // One row alone that cannot be written is an error, and no panic.
    let directory = Directory::new();
    let refused = Writer::new(directory.path()).write(&losses::TABLE, 0, &rows, |_| panic!("offset overflow")).unwrap_err();
    assert!(with_causes(&refused).contains("row 0 cannot be written"), "{refused:?}");
}

#[test]
fn texts_of_20_mb_stand_in_the_figure_and_are_read_with_fewer_rows_beside_them() {
    let length = |number| if number % 400 == 300 { 20 << 20 } else { 10 };
    let row = |number: usize| Loss::new(LossKind::TextReplaced, number as u64, format!("{number}").repeat(length(number) / 3));
    let rows: Vec<Loss> = (0..1_000).map(row).collect();
    let directory = Directory::new();
    let mut writer = Writer::new(directory.path());
    writer.write(&losses::TABLE, 0, &rows, losses::build).unwrap();
    writer.finish().unwrap();
    let tables = Tables::of_directory(directory.path(), RECORDING_VERSION).unwrap();
    let bytes = tables.bytes(&losses::TABLE).unwrap().unwrap();
    let opened = tables.inspect(&bytes, &losses::TABLE).unwrap();
    // As many rows as fit 64 MiB.
    assert!(matches!(opened.claims.rows_at_a_time[..], [1_000..2_000]), "{:?}", opened.claims);
    // Kept, and held while they are read.
    assert!((80 << 20..85 << 20).contains(&tables.figures().unwrap().memory), "{:?}", tables.figures());
    let mut found = Vec::new();
    read(&tables, &losses::TABLE, size_of::<Loss>(), |batch| losses::read(&batch, &mut found)).unwrap();
    assert!(found == rows);
}

/// An error with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(|error| format!("{error}: ")).collect()
}

/// A batch as it comes back from its file.
pub(crate) fn reread(table: &'static Table, batch: &RecordBatch) -> RecordBatch {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties(table, batch.num_rows()).unwrap())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let file = Bytes::from(file);
    let opened = Opened::new(&file, table).unwrap();
    let schema = Arc::clone(&opened.schema);
    let batches: Vec<RecordBatch> = opened.readers(file).unwrap().flat_map(Result::unwrap).map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}
