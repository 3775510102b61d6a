//! Immutable files: one Parquet file per table of a recording.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnPath;

use crate::error::{Source, StoreError};
use crate::files;
use crate::format::RECORDING_VERSION;
use crate::pack::Pack;
use crate::tables::batch::{BadRows, Batch, Rows};
use crate::tables::{Kind, Table};

/// Rows turned into Arrow at a time. Text columns of one batch are limited to 2 GiB by their offsets; at this size a row
/// would have to hold 2 MiB for that.
const BATCH_ROWS: usize = 1024;

/// Rows read at a time.
const READ_ROWS: usize = 8192;

/// Rows of a row group: what a reader can skip as one, by its statistics and bloom filters.
const ROW_GROUP_ROWS: usize = 131_072;

/// Tables of fewer rows are not compressed: setting up an encoder for each page of each column costs more than the few
/// bytes are worth. Sealing a run of one span took 7.5 ms with, and takes 2.0 ms without (14 tables, dev profile).
const COMPRESSED_ROWS_MIN: usize = 256;

const FORMAT_KEY: &str = "longpole.format";
const TABLE_KEY: &str = "longpole.table";

fn properties(table: &Table, rows: usize) -> Result<WriterProperties, ParquetError> {
    let said =
        vec![KeyValue::new(FORMAT_KEY.into(), RECORDING_VERSION.to_string()), KeyValue::new(TABLE_KEY.into(), table.name.to_owned())];
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("longpole ", env!("CARGO_PKG_VERSION")).into())
        .set_key_value_metadata(Some(said))
        .set_compression(match rows {
            0..COMPRESSED_ROWS_MIN => Compression::UNCOMPRESSED,
            _ => Compression::ZSTD(ZstdLevel::try_new(1)?),
        })
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    for column in table.columns {
        let path = || ColumnPath::from(column.name);
        match column.kind {
            // Neighbours differ little.
            Kind::Nanos => {
                properties =
                    properties.set_column_dictionary_enabled(path(), false).set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
            }
            Kind::TraceId | Kind::SpanId if matches!(column.name, "trace_id" | "span_id") => {
                // The filter begins at this size and is folded to what it holds.
                let distinct = rows.clamp(1, ROW_GROUP_ROWS) as u64;
                properties = properties
                    .set_column_bloom_filter_enabled(path(), true)
                    .set_column_bloom_filter_fpp(path(), 0.01)
                    .set_column_bloom_filter_max_ndv(path(), distinct);
            }
            _ => {}
        }
    }
    Ok(properties.build())
}

/// Parquet wraps what the file system says; callers want to tell the two apart.
fn unwrap_source(error: ParquetError) -> Source {
    match error {
        ParquetError::External(source) => source,
        other => Box::new(other),
    }
}

/// Writes one table into a directory.
pub(crate) fn write<R>(
    directory: &Path,
    table: &'static Table,
    rows: &[R],
    build: impl Fn(&[R]) -> Vec<ArrayRef>,
) -> Result<(), StoreError> {
    write_ranges(directory, table, rows.len(), |range| build(&rows[range]))
}

/// Writes one table of so many rows into a directory. The rows are asked for range by range, so that they need not be there
/// all at once.
pub(crate) fn write_ranges(
    directory: &Path,
    table: &'static Table,
    rows: usize,
    build: impl Fn(Range<usize>) -> Vec<ArrayRef>,
) -> Result<(), StoreError> {
    let path = directory.join(table.file_name());
    let fail = |source: Source| StoreError::Segment { action: "write", table: table.name, path: path.clone(), source };
    let file = files::create_new(&path).map_err(|source| fail(Box::new(source)))?;
    let written = || -> Result<(), ParquetError> {
        let mut writer = ArrowWriter::try_new(file, Arc::clone(table.schema()), Some(properties(table, rows)?))?;
        for first in (0..rows).step_by(BATCH_ROWS) {
            let columns = build(first..rows.min(first + BATCH_ROWS));
            writer.write(&RecordBatch::try_new(Arc::clone(table.schema()), columns)?)?;
        }
        writer.close()?;
        Ok(())
    };
    written().map_err(|error| fail(unwrap_source(error)))
}

/// Where the tables of a recording lie.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tables<'a> {
    /// Each in a file of its own.
    Directory(&'a Path),
    /// All in one.
    Pack(&'a Pack),
}

impl Tables<'_> {
    /// What to call the place of a table.
    pub(crate) fn path(&self, table: &Table) -> PathBuf {
        match self {
            Tables::Directory(directory) => directory.join(table.file_name()),
            Tables::Pack(pack) => pack.path().join(table.file_name()),
        }
    }
}

/// Reads one table, batch by batch.
pub(crate) fn read(tables: Tables<'_>, table: &'static Table, take: impl FnMut(Batch<'_>) -> Rows<()>) -> Result<(), StoreError> {
    let path = tables.path(table);
    match tables {
        Tables::Directory(_) => match files::open(&path) {
            Ok(file) => read_from(file, path, table, take),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && table.may_be_absent() => Ok(()),
            Err(source) => Err(StoreError::Segment { action: "read", table: table.name, path, source: Box::new(source) }),
        },
        Tables::Pack(pack) => match pack.member(&table.file_name()) {
            Some(bytes) => read_from(bytes, path, table, take),
            None if table.may_be_absent() => Ok(()),
            None => Err(StoreError::Corrupt { path, reason: "the table is not in it".into() }),
        },
    }
}

fn read_from(
    bytes: impl ChunkReader + 'static,
    path: PathBuf,
    table: &'static Table,
    mut take: impl FnMut(Batch<'_>) -> Rows<()>,
) -> Result<(), StoreError> {
    let fail = |source: Source| StoreError::Segment { action: "read", table: table.name, path: path.clone(), source };
    let corrupt = |reason: String| StoreError::Corrupt { path: path.clone(), reason };
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| fail(unwrap_source(error)))?;
    match format_of(builder.metadata().file_metadata()) {
        Some(found) if found > RECORDING_VERSION => {
            return Err(StoreError::Newer { what: "segment", path: path.clone(), found, known: RECORDING_VERSION });
        }
        Some(_) => {}
        None => return Err(corrupt(format!("its footer does not say {FORMAT_KEY}"))),
    }
    let reader = builder.with_batch_size(READ_ROWS).build().map_err(|error| fail(unwrap_source(error)))?;
    for batch in reader {
        let batch = batch.map_err(|error| fail(Box::new(error)))?;
        take(Batch::new(table, &batch)).map_err(|BadRows(reason)| corrupt(reason))?;
    }
    Ok(())
}

fn format_of(metadata: &FileMetaData) -> Option<u32> {
    let said = metadata.key_value_metadata()?;
    said.iter().find(|pair| pair.key == FORMAT_KEY)?.value.as_deref()?.parse().ok()
}
