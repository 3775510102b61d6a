//! Writes tables into a directory, and then the list of them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{DEFAULT_WRITE_BATCH_SIZE, EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::checksums::{self, Checksum, Checksums, Summed};
use super::panic_guard::guarded;
use super::preflight;
use super::reader::Tables;
use crate::error::{Source, StoreError};
use crate::files;
use crate::format::{RECORDING_VERSION, SEGMENT_KEY};
use crate::memory::budget::Budget;
use crate::memory::needs::{self, Needs};
use crate::tables::{Kind, Table, array, attributes};

/// Rows turned into Arrow at a time. Text columns of one batch are limited to 2 GiB by their offsets; at this size a row
/// has to hold 2 MiB for that, and then there are fewer rows in a batch.
const BATCH_ROWS: usize = 1024;

/// Rows of a row group: what a reader can skip as one, by its statistics and bloom filters.
const ROW_GROUP_ROWS: usize = 131_072;

/// Tables of fewer rows are not compressed: setting up an encoder for each page of each column costs more than the few
/// bytes are worth. Sealing a run of one span took 7.5 ms with, and takes 2.0 ms without (14 tables, dev profile).
const COMPRESSED_ROWS_MIN: usize = 256;

/// Unless their texts have more bytes: those of three spans may be as long as a request, and a request comes compressed.
const UNCOMPRESSED_BYTES_MAX: u64 = 64 << 10;

/// Rows of a page of a recording, which is mostly read whole: what Parquet's writer takes by itself.
const PAGE_ROWS: usize = 20_000;

const TABLE_KEY: &str = "longpole.table";

/// The pages of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    rows: usize,
    group_rows: usize,
    statistics: EnabledStatistics,
}

impl Pages {
    /// Pages of tables that are mostly read whole.
    pub(super) const LONG: Pages = Pages { rows: PAGE_ROWS, group_rows: ROW_GROUP_ROWS, statistics: EnabledStatistics::Page };
}

pub(super) fn properties(table: &Table, rows: usize, is_compressed: bool, pages: Pages) -> Result<WriterProperties, ParquetError> {
    let said =
        vec![KeyValue::new(SEGMENT_KEY.into(), RECORDING_VERSION.to_string()), KeyValue::new(TABLE_KEY.into(), table.name.to_owned())];
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("longpole ", env!("CARGO_PKG_VERSION")).into())
        .set_key_value_metadata(Some(said))
        .set_compression(if is_compressed { Compression::ZSTD(ZstdLevel::try_new(1)?) } else { Compression::UNCOMPRESSED })
        .set_max_row_group_row_count(Some(pages.group_rows))
        .set_data_page_row_count_limit(pages.rows)
        .set_write_batch_size(pages.rows.min(DEFAULT_WRITE_BATCH_SIZE))
        .set_statistics_enabled(pages.statistics);
    for column in table.columns {
        let path = || ColumnPath::from(column.name);
        match column.kind {
            // Neighbours differ little.
            Kind::Nanos => {
                properties =
                    properties.set_column_dictionary_enabled(path(), false).set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
            }
            // Each has one of its own.
            Kind::SpanId if table.name == "spans" && column.name == "span_id" => {
                properties = properties.set_column_dictionary_enabled(path(), false);
            }
            Kind::TraceId if column.name == "trace_id" => {
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

/// Writes tables into a directory, and then the list of them.
pub(crate) struct Writer<'a> {
    directory: &'a Path,
    checksums: Checksums,
    needs: Needs,
    pages: Pages,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(directory: &'a Path) -> Self {
        Writer { directory, checksums: Checksums::default(), needs: Needs::default(), pages: Pages::LONG }
    }

    /// Sets the rows of a page and of a row group, for tables that queries read in part. Only row groups have statistics then.
    pub(crate) fn with_pages_of(self, rows: usize, group_rows: usize) -> Self {
        Writer { pages: Pages { rows, group_rows, statistics: EnabledStatistics::Chunk }, ..self }
    }

    /// Writes one table, whose texts and lists are copied when they are read. `row_bytes` is the same that the reader gets.
    pub(crate) fn write<R>(
        &mut self,
        table: &'static Table,
        row_bytes: usize,
        rows: &[R],
        build: impl Fn(&[R]) -> Vec<ArrayRef>,
    ) -> Result<(), StoreError> {
        self.write_ranges(table, row_bytes, rows.len(), |range, needs| {
            let columns = build(&rows[range]);
            needs.keep(array::copied_bytes(&columns));
            columns
        })
    }

    /// Counts what rows come to in memory beside themselves.
    pub(crate) fn keep(&mut self, bytes: u64) {
        self.needs.keep(bytes);
    }

    /// Allows a reader bytes beside those that were counted.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.needs.allow(bytes);
    }

    /// Writes one table of `rows` rows. `build` makes them range by range, so that they need not all be in memory, and counts their texts
    /// and lists.
    pub(crate) fn write_ranges(
        &mut self,
        table: &'static Table,
        row_bytes: usize,
        rows: usize,
        mut build: impl FnMut(Range<usize>, &mut Needs) -> Vec<ArrayRef>,
    ) -> Result<(), StoreError> {
        let path = self.directory.join(table.file_name());
        let fail = |source: Source| StoreError::Segment { action: "write", table: table.name, path: path.clone(), source };
        let file = files::create_new(&path).map_err(|source| fail(Box::new(source)))?;
        let (needs, pages) = (&mut self.needs, self.pages);
        needs.keep((rows as u64).saturating_mul(row_bytes as u64));
        let written = || -> Result<Checksum, ParquetError> {
            // Lent, not given: `into_inner` makes a text of what the file system says.
            let mut summed = Summed::new(file);
            let mut text_bytes_max = 0;
            let mut built = (rows < COMPRESSED_ROWS_MIN).then(|| guarded(|| build(0..rows, needs)).ok()).flatten();
            let is_compressed = built.as_ref().is_none_or(|columns| array::copied_bytes(columns) > UNCOMPRESSED_BYTES_MAX);
            let properties = properties(table, rows, is_compressed, pages)?;
            let mut writer = ArrowWriter::try_new(&mut summed, Arc::clone(table.schema()), Some(properties))?;
            for first in (0..rows).step_by(BATCH_ROWS) {
                // The next one last.
                let mut ranges = vec![(first, rows.min(first + BATCH_ROWS))];
                while let Some((first, end)) = ranges.pop() {
                    match built.take().map_or_else(|| guarded(|| build(first..end, needs)), Ok) {
                        Ok(columns) => {
                            needs.hold(attributes::passing_bytes(table, &columns));
                            text_bytes_max = array::text_bytes_max(&columns).max(text_bytes_max);
                            let batch = RecordBatch::try_new(Arc::clone(table.schema()), columns)?;
                            guarded(|| writer.write(&batch)).map_err(ParquetError::General)??;
                        }
                        // Some rows of some megabytes come to more than the offsets reach, which Arrow says by a panic.
                        Err(_) if end - first > 1 => {
                            let middle = first.midpoint(end);
                            ranges.extend([(middle, end), (first, middle)]);
                        }
                        Err(reason) => return Err(ParquetError::General(format!("row {first} cannot be written: {reason}"))),
                    }
                }
            }
            let claims = preflight::of_written(&writer.close()?, text_bytes_max);
            needs.hold(claims.held_bytes);
            needs.check(claims.claims_bytes);
            Ok(summed.sum)
        };
        let sum = written().map_err(|error| fail(unwrap_source(error)))?;
        self.checksums.insert(table.file_name(), sum);
        Ok(())
    }

    /// Writes the list of what was written, and what it takes to be read, which is returned.
    pub(crate) fn finish(mut self) -> Result<Needs, StoreError> {
        let figures = self.needs.figures().print();
        self.checksums.insert(needs::FILE_NAME.into(), Checksum::of(figures.as_bytes()));
        for (name, text) in [(needs::FILE_NAME, figures), (checksums::FILE_NAME, self.checksums.print())] {
            let path = self.directory.join(name);
            files::write_new(&path, text.as_ref()).map_err(StoreError::io("write", path))?;
        }
        self.check_readable().map(|()| self.needs)
    }

    /// Compares what was written with what a reader will allow. Sealing removes the log, so a table that cannot be read again would lose it.
    fn check_readable(&self) -> Result<(), StoreError> {
        let needed = self.needs.figures().limit;
        // What every reader allows is not worth a look.
        if needed <= Budget::of_own(0, 0).limit() {
            return Ok(());
        }
        let allowed = Tables::of_directory(self.directory, RECORDING_VERSION)?.limit();
        if needed <= allowed {
            return Ok(());
        }
        let reason = format!("its rows take {needed} bytes to be read, and its reader would allow {allowed}");
        Err(StoreError::Inconsistent { reason })
    }
}
