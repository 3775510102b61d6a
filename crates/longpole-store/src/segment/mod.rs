//! Immutable files: one Parquet file per table of a recording.
//!
//! A segment may be damaged, or somebody else's. Before the first row of it is read:
//!
//! ```text
//! bytes ─ checksum ─ footer, pages: claims ─ columns ─ memory of its rows ─► rows, in batches ─ texts counted ─► model
//!         `checksums`  `claims`               ours?    `budget`               behind `border`   `budget`
//! ```
//!
//! Texts are read as views: a batch refers to a text that comes a thousand times, and does not hold it a thousand times.

use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, FieldRef, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use self::border::guarded;
use self::checksums::{Checksum, Checksums, Summed};
use self::claims::Claims;
use crate::archive::Pack;
use crate::error::{Source, StoreError};
use crate::files;
use crate::format::{CHECKSUMS_SINCE, RECORDING_VERSION};
use crate::memory::budget::Budget;
use crate::memory::needs::{self, Figures, Needs};
use crate::tables::batch::{BadRows, Batch, Rows};
use crate::tables::{ALL, Kind, Table, array, attributes};

pub(crate) mod border;
pub(crate) mod checksums;
mod claims;

/// Rows turned into Arrow at a time. Text columns of one batch are limited to 2 GiB by their offsets; at this size a row
/// has to hold 2 MiB for that, and then there are fewer rows in a batch.
const BATCH_ROWS: usize = 1024;

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

/// Writes tables into a directory, and then the list of them.
pub(crate) struct Writer<'a> {
    directory: &'a Path,
    checksums: Checksums,
    needs: Needs,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(directory: &'a Path) -> Self {
        Writer { directory, checksums: Checksums::default(), needs: Needs::default() }
    }

    /// Writes one table, whose texts and lists are copied when they are read. `row_bytes` is what [`read`] is told.
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

    /// Writes one table of so many rows. The rows are asked for range by range, so that they need not be there all at once. Who builds
    /// them counts what is of any length in them.
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
        let needs = &mut self.needs;
        needs.keep((rows as u64).saturating_mul(row_bytes as u64));
        let written = || -> Result<Checksum, ParquetError> {
            // Lent, not given: `into_inner` makes a text of what the file system says.
            let mut summed = Summed::new(file);
            let mut text_bytes_max = 0;
            let mut writer = ArrowWriter::try_new(&mut summed, Arc::clone(table.schema()), Some(properties(table, rows)?))?;
            for first in (0..rows).step_by(BATCH_ROWS) {
                // The next one last.
                let mut ranges = vec![(first, rows.min(first + BATCH_ROWS))];
                while let Some((first, end)) = ranges.pop() {
                    match guarded(|| build(first..end, needs)) {
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
            let claims = claims::of_written(&writer.close()?, text_bytes_max);
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

    /// Holds what was written against what a reader will allow, which reads of the directory what is asked here. A table whose rows are
    /// written and cannot be read again would take the log with it.
    fn check_readable(&self) -> Result<(), StoreError> {
        let needed = self.needs.figures().limit;
        // What every reader allows is not worth a look.
        if needed <= Budget::of_own(0, 0).limit() {
            return Ok(());
        }
        let allowed = Tables::of_directory(self.directory, RECORDING_VERSION)?.budget.limit();
        if needed <= allowed {
            return Ok(());
        }
        let reason = format!("its rows take {needed} bytes to be read, and its reader would allow {allowed}");
        Err(StoreError::Inconsistent { reason })
    }
}

/// Where the tables of a recording lie.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    /// Each in a file of its own.
    Directory(&'a Path),
    /// All in one.
    Pack(&'a Pack),
}

/// The tables of a recording that is read.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    place: Place<'a>,
    /// `None` for a recording of a version that had none.
    checksums: Option<Checksums>,
    /// What they take, as their writer counted it. That of a file that somebody sent is not asked.
    figures: Option<Figures>,
    /// Whether their writer counted it, and it cannot be read.
    lost_figures: bool,
    budget: Budget,
}

impl<'a> Tables<'a> {
    /// Those of a directory of segments, of a recording of this version.
    pub(crate) fn of_directory(segments: &'a Path, version: u32) -> Result<Self, StoreError> {
        let path = segments.join(checksums::FILE_NAME);
        let list = match checksums::read(&path) {
            Ok(list) => Some(list),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(StoreError::io("read", path)(error)),
        };
        // What is not there has no bytes; who reads it finds out.
        let bytes = |table: &&Table| fs::metadata(segments.join(table.file_name())).map_or(0, |data| data.len());
        let bytes = ALL.iter().map(bytes).sum();
        let checksums = known_checksums(list.as_deref(), version, path)?;
        let has_figures = checksums.as_ref().filter(|list| list.names(needs::FILE_NAME));
        let figures = has_figures.and_then(|list| read_figures(segments, list));
        let lost_figures = has_figures.is_some() && figures.is_none();
        let budget = Budget::of_own(bytes, figures.map_or(0, |figures| figures.limit));
        Ok(Tables { place: Place::Directory(segments), checksums, figures, lost_figures, budget })
    }

    /// Those of a packed recording.
    pub(crate) fn of_pack(pack: &'a Pack) -> Result<Self, StoreError> {
        let list = pack.member(checksums::FILE_NAME);
        let checksums = known_checksums(list.as_deref(), pack.version(), pack.path().join(checksums::FILE_NAME))?;
        Ok(Tables { place: Place::Pack(pack), checksums, figures: None, lost_figures: false, budget: Budget::of_file(pack.bytes()) })
    }

    /// The same, read with so many bytes of memory.
    pub(crate) fn limited(self, limit: u64) -> Self {
        Tables { budget: Budget::limited(limit), ..self }
    }

    /// What was taken by all that was read.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> u64 {
        self.budget.taken()
    }

    /// What they take, as their writer counted it.
    pub(crate) fn figures(&self) -> Option<Figures> {
        self.figures
    }

    /// Whether it was counted and cannot be read any more. They are read within the usual limits.
    pub(crate) fn lost_figures(&self) -> bool {
        self.lost_figures
    }

    /// Takes what rows of a table come to in memory beside themselves.
    pub(crate) fn take(&self, table: &Table, bytes: u64) -> Result<(), StoreError> {
        self.budget.take(bytes).map_err(|spent| self.unread(table, spent.to_string()))
    }

    /// Whether damage of them is noticed.
    pub(crate) fn have_checksums(&self) -> bool {
        self.checksums.is_some()
    }

    /// What to call the place of a table.
    pub(crate) fn path(&self, table: &Table) -> PathBuf {
        match self.place {
            Place::Directory(directory) => directory.join(table.file_name()),
            Place::Pack(pack) => pack.path().join(table.file_name()),
        }
    }

    /// The bytes of a table, as they were written; `None` where the recording has no such table.
    fn bytes(&self, table: &'static Table) -> Result<Option<Bytes>, StoreError> {
        let path = self.path(table);
        let found = match self.place {
            Place::Directory(_) => match files::read(&path) {
                Ok(bytes) => Some(Bytes::from(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(source) => return Err(StoreError::Segment { action: "read", table: table.name, path, source: Box::new(source) }),
            },
            Place::Pack(pack) => pack.member(&table.file_name()),
        };
        let Some(bytes) = found else { return self.lacks(table) };
        self.check(table, Checksum::of(&bytes))?;
        Ok(Some(bytes))
    }

    /// Nothing, for a table that is not there and is not listed, in a recording that may be older than the table.
    fn lacks<T>(&self, table: &Table) -> Result<Option<T>, StoreError> {
        let is_listed = self.checksums.as_ref().is_some_and(|list| list.names(&table.file_name()));
        if is_listed || !table.may_be_absent() {
            return Err(StoreError::Corrupt { path: self.path(table), reason: "the table is missing".into() });
        }
        Ok(None)
    }

    fn check(&self, table: &Table, found: Checksum) -> Result<(), StoreError> {
        let checked = self.checksums.as_ref().map_or(Ok(()), |list| list.check(&table.file_name(), found));
        checked.map_err(|reason| StoreError::Corrupt { path: self.path(table), reason })
    }

    /// Checks a table that somebody else is to read, and says whether it is there: its checksum, its columns, and what it claims of
    /// its rows.
    pub(crate) fn verify(&self, table: &'static Table) -> Result<bool, StoreError> {
        let path = self.path(table);
        let unread =
            |source: io::Error| StoreError::Segment { action: "read", table: table.name, path: path.clone(), source: Box::new(source) };
        let mut file = match files::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.lacks::<()>(table).map(|_| false),
            Err(error) => return Err(unread(error)),
        };
        if self.checksums.is_some() {
            self.check(table, Checksum::of_rest(&mut file).map_err(unread)?)?;
        }
        let opened = self.inspect(&file, table)?;
        // The engine that reads it next has limits of its own, and reads page by page; this keeps it from being handed what cannot be
        // read at all.
        self.budget.holds(opened.claims.held_bytes).map_err(|spent| self.unread(table, spent.to_string())).map(|()| true)
    }

    /// Why a table is not read: what is wrong with it, or that it takes too much, which is no damage.
    fn unread(&self, table: &Table, reason: String) -> StoreError {
        let path = self.path(table);
        match self.place {
            Place::Directory(_) if self.budget.is_spent() => StoreError::TooLarge { path, reason },
            Place::Directory(_) | Place::Pack(_) => StoreError::Corrupt { path, reason },
        }
    }

    /// Checks what a table claims of itself.
    fn inspect(&self, input: &impl ChunkReader, table: &'static Table) -> Result<Opened, StoreError> {
        let path = self.path(table);
        match guarded(|| Opened::new(input, table)).unwrap_or_else(|panic| Err(panic.into())) {
            Ok(opened) if opened.version >= CHECKSUMS_SINCE && self.checksums.is_none() => {
                Err(StoreError::Corrupt { path, reason: format!("`{}` beside it is missing", checksums::FILE_NAME) })
            }
            Ok(opened) => Ok(opened),
            Err(Refusal::Bad(reason)) => Err(StoreError::Corrupt { path, reason }),
            Err(Refusal::Newer(found)) => Err(StoreError::Newer { what: "segment", path, found, known: RECORDING_VERSION }),
        }
    }
}

/// A table whose claims were checked.
struct Opened {
    metadata: Arc<ParquetMetaData>,
    /// The columns, texts as views.
    schema: Arc<Schema>,
    claims: Claims,
    version: u32,
}

/// Why a table is not opened.
#[derive(Debug)]
enum Refusal {
    /// It is not what longpole writes.
    Bad(String),
    /// A newer longpole wrote it: this version of it.
    Newer(u32),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Refusal::Bad(reason)
    }
}

impl Opened {
    fn new(input: &impl ChunkReader, table: &'static Table) -> Result<Self, Refusal> {
        let failed = |error: ParquetError| error.to_string();
        claims::check_footer(input)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(input).map_err(failed)?;
        let version = format_of(metadata.file_metadata()).ok_or_else(|| format!("its footer does not say {FORMAT_KEY}"))?;
        if version > RECORDING_VERSION {
            return Err(Refusal::Newer(version));
        }
        let schema = known_columns(metadata.file_metadata().schema_descr(), table)?;
        let claims = claims::check_pages(input, &metadata)?;
        Ok(Opened { metadata: Arc::new(metadata), schema, claims, version })
    }

    /// Readers of all rows, one after the other: a large text makes its row group one of small batches, and no other.
    fn readers(self, bytes: Bytes) -> Result<impl Iterator<Item = Result<ParquetRecordBatchReader, ParquetError>>, ParquetError> {
        let options = ArrowReaderOptions::new().with_schema(self.schema);
        let metadata = ArrowReaderMetadata::try_new(self.metadata, options)?;
        let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
        for (group, rows) in self.claims.rows_at_a_time.into_iter().enumerate() {
            match parts.last_mut() {
                Some((last, groups)) if *last == rows => groups.push(group),
                _ => parts.push((rows, vec![group])),
            }
        }
        Ok(parts.into_iter().map(move |(rows, groups)| {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata.clone());
            builder.with_row_groups(groups).with_batch_size(rows).build()
        }))
    }
}

/// The columns of a file as they are to be read. Each must be one of the table's, of exactly the type that it is written with.
fn known_columns(found: &SchemaDescriptor, table: &'static Table) -> Result<Arc<Schema>, String> {
    let written = ArrowSchemaConverter::new().convert(table.schema()).map_err(|error| error.to_string())?;
    let written = written.root_schema().get_fields();
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in found.root_schema().get_fields() {
        let name = field.name();
        if !written.iter().any(|known| known == field) {
            return Err(format!("it has a column {name} that table {} does not have, or not of this type", table.name));
        }
        let column = table.columns.iter().find(|column| column.name == name);
        let column =
            column.filter(|_| fields.iter().all(|field| field.name() != name)).ok_or_else(|| format!("it has column {name} twice"))?;
        fields.push(Arc::new(Field::new(name, column.kind.arrow_view(), column.optional)));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The list of checksums; only recordings of an older version may be without one.
fn known_checksums(list: Option<&[u8]>, version: u32, path: PathBuf) -> Result<Option<Checksums>, StoreError> {
    let parsed = match list {
        Some(list) if list.len() as u64 > checksums::BYTES_MAX => Err("it is too long for a list of tables"),
        Some(list) => Checksums::parse(list).map(Some),
        None if version >= CHECKSUMS_SINCE => Err("it is missing"),
        None => Ok(None),
    };
    parsed.map_err(|reason| StoreError::Corrupt { path, reason: reason.into() })
}

/// What the writer of these segments counted; `None` where that is not as it was written. The tables are whole for all that.
fn read_figures(segments: &Path, list: &Checksums) -> Option<Figures> {
    let mut bytes = Vec::new();
    files::open(&segments.join(needs::FILE_NAME)).ok()?.take(needs::BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    list.check(needs::FILE_NAME, Checksum::of(&bytes)).ok()?;
    Figures::parse(&bytes)
}

/// Reads one table, batch by batch. `row_bytes` is what a row takes in the model, but for what is of any length.
pub(crate) fn read(
    tables: &Tables<'_>,
    table: &'static Table,
    row_bytes: usize,
    mut take: impl FnMut(Batch<'_>) -> Rows<()>,
) -> Result<(), StoreError> {
    let Some(bytes) = tables.bytes(table)? else { return Ok(()) };
    let corrupt = |reason: String| tables.unread(table, reason);
    let opened = tables.inspect(&bytes, table)?;
    let (claims, budget) = (&opened.claims, &tables.budget);
    let claimed_rows = claims.rows;
    let kept = claimed_rows.saturating_mul(row_bytes as u64);
    let held = budget.holds(claims.pages_bytes).and_then(|()| budget.holds(claims.held_bytes)).and_then(|()| budget.take(kept));
    held.map_err(|spent| corrupt(spent.to_string()))?;
    let damaged = |error: ParquetError| corrupt(error.to_string());
    let mut readers = guarded(|| opened.readers(bytes)).map_err(corrupt)?.map_err(damaged)?;
    let mut rows = 0;
    while let Some(reader) = guarded(|| readers.next()).map_err(corrupt)? {
        let mut reader = reader.map_err(damaged)?;
        while let Some(batch) = guarded(|| reader.next()).map_err(corrupt)? {
            let batch = batch.map_err(|error| corrupt(error.to_string()))?;
            rows += batch.num_rows() as u64;
            take(Batch::new(table, &batch, budget)).map_err(|BadRows(reason)| corrupt(reason))?;
        }
    }
    if rows == claimed_rows { Ok(()) } else { Err(corrupt(format!("it holds {rows} rows and claims {claimed_rows}"))) }
}

fn format_of(metadata: &FileMetaData) -> Option<u32> {
    let said = metadata.key_value_metadata()?;
    said.iter().find(|pair| pair.key == FORMAT_KEY)?.value.as_deref()?.parse().ok()
}

/// A batch as it comes back from its file.
#[cfg(test)]
pub(crate) fn reread(table: &'static Table, batch: &RecordBatch) -> RecordBatch {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties(table, batch.num_rows()).unwrap())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let file = Bytes::from(file);
    let opened = Opened::new(&file, table).unwrap();
    let schema = Arc::clone(&opened.schema);
    let batches: Vec<RecordBatch> = opened.readers(file).unwrap().flat_map(Result::unwrap).map(Result::unwrap).collect();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

#[cfg(test)]
mod tests {
    use longpole_model::{Loss, LossKind};

    use super::*;
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
        // So many rows as come to 64 MiB.
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
}
