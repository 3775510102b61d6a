use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use longpole_model::{Loss, LossKind};
use parquet::arrow::ArrowWriter;

use super::reader::{OpenTable, Opened, Tables, read};
use super::writer::{Pages, Writer, properties};
use crate::bits::Bits;
use crate::format::RECORDING_VERSION;
use crate::query_limits::QueryLimits;
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

/// Texts of a dictionary, and those behind it: a dictionary ends at 1 MiB.
#[test]
fn a_text_is_found_in_the_rows_that_have_it() {
    let kinds = LossKind::ALL;
    let row = |number: usize| Loss::new(kinds[number % 7], number as u64, format!("{number:0>700}"));
    let rows: Vec<Loss> = (0..5_000).map(row).collect();
    for page_rows in [256, 20_000] {
        let directory = Directory::new();
        let mut writer = Writer::new(directory.path()).with_pages_of(page_rows, 2_000);
        writer.write(&losses::TABLE, 0, &rows, losses::build).unwrap();
        writer.finish().unwrap();
        let tables = Tables::of_directory(directory.path(), RECORDING_VERSION).unwrap();
        let table = OpenTable::new(&tables, &losses::TABLE).unwrap();
        let query = QueryLimits::default();
        let find = |column: &str, texts: &[&str], within: Option<&Bits>| -> Vec<usize> {
            table.rows_with_text(column, texts, within, &query).unwrap().places().collect()
        };
        for number in [0, 1, 1_300, 1_999, 2_000, 4_999] {
            assert_eq!(find("detail", &[&rows[number].detail], None), [number]);
        }
        assert_eq!(find("detail", &[&rows[4_000].detail, &rows[7].detail, "no such text"], None), [7, 4_000]);
        assert!(find("detail", &["", "7"], None).is_empty());
        let third: Vec<usize> = (3..5_000).step_by(7).collect();
        assert_eq!(find("kind", &[rows[3].kind.as_str()], None), third);
        let mut within = Bits::none(5_000);
        within.set(2_500);
        let of_group: Vec<usize> = third.into_iter().filter(|row| (2_000..4_000).contains(row)).collect();
        assert_eq!(find("kind", &[rows[3].kind.as_str()], Some(&within)), of_group);
        // Only pages with wanted rows are read; the rows are the same.
        let mut found = Vec::new();
        let ranges = [3..4, 255..258, 1_999..2_001, 4_999..5_000];
        table.read(0, &ranges, &query, |batch| losses::read(&batch, &mut found)).unwrap();
        let wanted: Vec<Loss> = ranges.into_iter().flatten().map(|row: u32| rows[row as usize].clone()).collect();
        assert!(found == wanted);
    }
}

/// An error with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(|error| format!("{error}: ")).collect()
}

/// A batch as it comes back from its file.
pub(crate) fn reread(table: &'static Table, batch: &RecordBatch) -> RecordBatch {
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batch.schema(), Some(properties(table, batch.num_rows(), false, Pages::LONG).unwrap())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let file = Bytes::from(file);
    let opened = Opened::new(&file, table).unwrap();
    let schema = Arc::clone(&opened.schema);
    let batches: Vec<RecordBatch> = opened.readers(file).unwrap().flat_map(Result::unwrap).map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}
