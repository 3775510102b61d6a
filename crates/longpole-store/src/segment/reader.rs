//! Reads tables, from a directory or from memory, each checked before the first row of it is read.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::{ArrowSchemaConverter, ProjectionMask};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;

use super::checksums::{self, Checksum, Checksums};
use super::panic_guard::guarded;
use super::positioned_file::PositionedFile;
use super::preflight::{self, Claims};
use super::text_search::{self, Mark, Unsearched};
use crate::bits::Bits;
use crate::error::StoreError;
use crate::files::{self, FileVersion};
use crate::format::{CHECKSUMS_SINCE, RECORDING_VERSION, SEGMENT_KEY};
use crate::memory::budget::Budget;
use crate::memory::needs::{self, Figures};
use crate::numbers::usize_of;
use crate::query_limits::QueryLimits;
use crate::tables::batch::{BadRows, Batch, Rows};
use crate::tables::{ALL, Table};

/// Where the tables of a recording lie.
#[derive(Debug, Clone, Copy)]
enum TableSource<'a> {
    /// Each in a file of its own.
    Directory(&'a Path),
    /// Each in memory, by the name of its file; `path` is what they came in.
    Memory { path: &'a Path, files: &'a HashMap<String, Bytes> },
}

/// The tables of a recording that is read.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    place: TableSource<'a>,
    /// `None` for a recording of a version that had none.
    checksums: Option<Checksums>,
    /// What they take, as their writer counted it. That of a file that somebody sent is not asked.
    figures: Option<Figures>,
    /// Whether their writer counted it, and it cannot be read.
    lost_figures: bool,
    budget: Budget,
    /// What bounds the reading of whole tables beside the budget.
    query: QueryLimits,
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
        // A missing table has no bytes; reading it is an error.
        let bytes = |table: &&Table| fs::metadata(segments.join(table.file_name())).map_or(0, |data| data.len());
        let bytes = ALL.iter().map(bytes).sum();
        let checksums = known_checksums(list.as_deref(), version, path)?;
        let has_figures = checksums.as_ref().filter(|list| list.names(needs::FILE_NAME));
        let figures = has_figures.and_then(|list| read_figures(segments, list));
        let lost_figures = has_figures.is_some() && figures.is_none();
        let budget = Budget::of_own(bytes, figures.map_or(0, |figures| figures.limit));
        Ok(Tables { place: TableSource::Directory(segments), checksums, figures, lost_figures, budget, query: QueryLimits::default() })
    }

    /// Those of a file of `bytes` bytes at `path` that somebody sent, by the names of theirs, of a recording of this version.
    pub(crate) fn of_memory(path: &'a Path, bytes: u64, files: &'a HashMap<String, Bytes>, version: u32) -> Result<Self, StoreError> {
        let list = files.get(checksums::FILE_NAME).map(Bytes::as_ref);
        let checksums = known_checksums(list, version, path.join(checksums::FILE_NAME))?;
        let place = TableSource::Memory { path, files };
        let (budget, query) = (Budget::of_file(bytes), QueryLimits::default());
        Ok(Tables { place, checksums, figures: None, lost_figures: false, budget, query })
    }

    /// The same with this limit of memory, in bytes.
    pub(crate) fn limited(self, limit: u64) -> Self {
        Tables { budget: Budget::limited(limit), ..self }
    }

    /// The same, read for a query.
    pub(crate) fn for_query(self, query: &QueryLimits) -> Self {
        Tables { query: query.clone(), ..self }
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

    /// How much memory a reader is allowed for them.
    pub(super) fn limit(&self) -> u64 {
        self.budget.limit()
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
            TableSource::Directory(directory) => directory.join(table.file_name()),
            TableSource::Memory { path, .. } => path.join(table.file_name()),
        }
    }

    /// The bytes of a table, as they were written; `None` where the recording has no such table.
    pub(super) fn bytes(&self, table: &'static Table) -> Result<Option<Bytes>, StoreError> {
        let path = self.path(table);
        let found = match self.place {
            TableSource::Directory(_) => match files::read(&path) {
                Ok(bytes) => Some(Bytes::from(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(source) => return Err(StoreError::Segment { action: "read", table: table.name, path, source: Box::new(source) }),
            },
            TableSource::Memory { files, .. } => files.get(&table.file_name()).cloned(),
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
        let Some((_, opened)) = self.open(table)? else { return Ok(false) };
        // The engine that reads it next has limits of its own, and reads page by page; this keeps it from being handed what cannot be
        // read at all.
        self.budget.holds(opened.claims.held_bytes).map_err(|spent| self.unread(table, spent.to_string())).map(|()| true)
    }

    /// Opens a table in a file of its own and checks all of it; `None` where the recording has no such table.
    fn open(&self, table: &'static Table) -> Result<Option<(PositionedFile, Opened)>, StoreError> {
        let path = self.path(table);
        let unread =
            |source: io::Error| StoreError::Segment { action: "read", table: table.name, path: path.clone(), source: Box::new(source) };
        let mut file = match files::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.lacks(table),
            Err(error) => return Err(unread(error)),
        };
        if let Some(list) = &self.checksums {
            // A file may claim more than anybody can read.
            let length = file.metadata().map_err(unread)?.len();
            list.check_length(&table.file_name(), length).map_err(|reason| StoreError::Corrupt { path: path.clone(), reason })?;
            self.check(table, Checksum::of_rest(&mut file).map_err(unread)?)?;
        }
        let file = PositionedFile::new(file).map_err(unread)?;
        let opened = self.inspect(&file, table)?;
        Ok(Some((file, opened)))
    }

    /// Why a table is not read: what is wrong with it, or that it takes too much, which is no damage.
    fn unread(&self, table: &Table, reason: String) -> StoreError {
        let path = self.path(table);
        match self.place {
            TableSource::Directory(_) if self.budget.is_spent() => StoreError::TooLarge { path, reason },
            TableSource::Directory(_) | TableSource::Memory { .. } => StoreError::Corrupt { path, reason },
        }
    }

    /// Checks what a table claims of itself.
    pub(super) fn inspect(&self, input: &impl ChunkReader, table: &'static Table) -> Result<Opened, StoreError> {
        let path = self.path(table);
        match guarded(|| Opened::new(input, table)).unwrap_or_else(|panic| Err(panic.into())) {
            Ok(opened) if opened.version >= CHECKSUMS_SINCE && self.checksums.is_none() => {
                Err(StoreError::Corrupt { path, reason: format!("`{}` beside it is missing", checksums::FILE_NAME) })
            }
            Ok(opened) => Ok(opened),
            Err(Unreadable::Bad(reason)) => Err(StoreError::Corrupt { path, reason }),
            Err(Unreadable::Newer(found)) => Err(StoreError::Newer { what: "segment", path, found, known: RECORDING_VERSION }),
        }
    }
}

/// A table whose claims were checked.
pub(super) struct Opened {
    metadata: Arc<ParquetMetaData>,
    /// The columns, texts as views.
    pub(super) schema: Arc<Schema>,
    pub(super) claims: Claims,
    version: u32,
}

/// Why a table is not opened.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// It is not what longpole writes.
    Bad(String),
    /// A newer longpole wrote it: this version of it.
    Newer(u32),
}

impl From<String> for Unreadable {
    fn from(reason: String) -> Self {
        Unreadable::Bad(reason)
    }
}

impl Opened {
    pub(super) fn new(input: &impl ChunkReader, table: &'static Table) -> Result<Self, Unreadable> {
        let failed = |error: ParquetError| error.to_string();
        preflight::check_footer(input)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(input).map_err(failed)?;
        let version = format_of(metadata.file_metadata()).ok_or_else(|| format!("its footer does not state {SEGMENT_KEY}"))?;
        if version > RECORDING_VERSION {
            return Err(Unreadable::Newer(version));
        }
        let schema = known_columns(metadata.file_metadata().schema_descr(), table)?;
        let claims = preflight::check_pages(input, &metadata)?;
        Ok(Opened { metadata: Arc::new(metadata), schema, claims, version })
    }

    /// Reads where the pages of each column are, if the file says it: who wants some rows then reads only their pages.
    fn read_page_lists(&mut self, input: &impl ChunkReader) -> Result<(), String> {
        preflight::check_page_lists(input, &self.metadata)?;
        let metadata = ParquetMetaData::clone(&self.metadata);
        let mut reader = ParquetMetaDataReader::new_with_metadata(metadata).with_offset_index_policy(PageIndexPolicy::Optional);
        let read = reader.read_page_indexes(input).and_then(|()| reader.finish());
        let metadata = read.map_err(|error| error.to_string())?;
        let Some(lists) = metadata.offset_index() else { return Ok(()) };
        let mut is_whole = lists.len() == metadata.num_row_groups();
        for (group, lists) in metadata.row_groups().iter().zip(lists) {
            is_whole &= lists.len() == group.num_columns();
            for (column, list) in group.columns().iter().zip(lists) {
                preflight::check_page_list(input, column, group.num_rows(), list.page_locations())?;
            }
        }
        if is_whole {
            self.metadata = Arc::new(metadata);
        }
        Ok(())
    }

    fn reader_metadata(&self) -> Result<ArrowReaderMetadata, ParquetError> {
        ArrowReaderMetadata::try_new(Arc::clone(&self.metadata), ArrowReaderOptions::new().with_schema(Arc::clone(&self.schema)))
    }

    /// Readers of all rows, one after the other: a large text makes its row group one of small batches, and no other.
    pub(super) fn readers(
        self,
        bytes: Bytes,
    ) -> Result<impl Iterator<Item = Result<ParquetRecordBatchReader, ParquetError>>, ParquetError> {
        let metadata = self.reader_metadata()?;
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

/// Reads one table, batch by batch. `row_bytes` is what a row takes in the model without its texts and lists.
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
    let _decoding = tables.query.hold(claims.held_bytes)?;
    tables.query.take(kept)?;
    let damaged = |error: ParquetError| corrupt(error.to_string());
    let mut readers = guarded(|| opened.readers(bytes)).map_err(corrupt)?.map_err(damaged)?;
    let mut rows = 0;
    while let Some(reader) = guarded(|| readers.next()).map_err(corrupt)? {
        let mut reader = reader.map_err(damaged)?;
        while let Some(batch) = guarded(|| reader.next()).map_err(corrupt)? {
            tables.query.check()?;
            let batch = batch.map_err(|error| corrupt(error.to_string()))?;
            rows += batch.num_rows() as u64;
            let before = budget.taken();
            take(Batch::new(table, &batch, budget)).map_err(|BadRows(reason)| corrupt(reason))?;
            tables.query.take(budget.taken() - before)?;
        }
    }
    if rows == claimed_rows { Ok(()) } else { Err(corrupt(format!("it holds {rows} rows and claims {claimed_rows}"))) }
}

/// A table of a segment of our own. It is checked once, and some of its rows are read again and again.
pub(crate) struct OpenTable {
    table: &'static Table,
    path: PathBuf,
    /// The file, when it was checked.
    checked: FileVersion,
    metadata: ArrowReaderMetadata,
    rows: u64,
    rows_at_a_time: usize,
    /// Memory that decoding takes.
    held_bytes: u64,
    limit: u64,
}

impl std::fmt::Debug for OpenTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OpenTable").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl OpenTable {
    /// Checks a table: its checksum, its columns, and what it claims of its rows.
    pub(crate) fn new(tables: &Tables<'_>, table: &'static Table) -> Result<Self, StoreError> {
        let missing = || tables.unread(table, "the table is missing".into());
        let (file, mut opened) = tables.open(table)?.ok_or_else(missing)?;
        let listed = guarded(|| opened.read_page_lists(&file)).unwrap_or_else(Err);
        listed.map_err(|reason| tables.unread(table, reason))?;
        let metadata = opened.reader_metadata().map_err(|error| tables.unread(table, error.to_string()))?;
        let claims = opened.claims;
        let rows_at_a_time = claims.rows_at_a_time.into_iter().min().unwrap_or(1);
        let (path, limit) = (tables.path(table), tables.limit());
        let checked = file.version();
        Ok(OpenTable { table, path, checked, metadata, rows: claims.rows, rows_at_a_time, held_bytes: claims.held_bytes, limit })
    }

    /// Opens the file that was checked. No descriptor of it stays between two reads: a store has more segments than a process may open files.
    fn reopen(&self) -> Result<PositionedFile, StoreError> {
        let file = files::open(&self.path).and_then(PositionedFile::new).map_err(StoreError::io("read", &self.path))?;
        if file.version() != self.checked {
            return Err(StoreError::Corrupt { path: self.path.clone(), reason: "it was replaced after it was checked".to_owned() });
        }
        Ok(file)
    }

    /// Memory that it takes while it is open, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.metadata.metadata().memory_size() as u64
    }

    /// Bytes of a row, decompressed, in the middle of all.
    pub(crate) fn bytes_of_row(&self) -> u64 {
        let groups = self.metadata.metadata().row_groups();
        let bytes = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.total_byte_size().max(0).cast_unsigned()));
        bytes / self.rows.max(1)
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        usize_of(self.rows)
    }

    /// Reads these rows, in their order. Ranges do not overlap, and come in order. `row_bytes` is what a row takes in the model without its
    /// texts and lists.
    pub(crate) fn read(
        &self,
        row_bytes: usize,
        ranges: &[Range<u32>],
        query: &QueryLimits,
        take: impl FnMut(Batch<'_>) -> Rows<()>,
    ) -> Result<(), StoreError> {
        self.read_of(ProjectionMask::all(), row_bytes, ranges, query, take)
    }

    /// Reads these columns of all rows. `row_bytes` is what is kept of a row.
    pub(crate) fn read_columns(
        &self,
        columns: &[&str],
        row_bytes: usize,
        query: &QueryLimits,
        take: impl FnMut(Batch<'_>) -> Rows<()>,
    ) -> Result<(), StoreError> {
        self.read_of(self.mask(columns), row_bytes, slice::from_ref(&self.all()), query, take)
    }

    /// The same of these rows.
    pub(crate) fn read_columns_at(
        &self,
        columns: &[&str],
        row_bytes: usize,
        ranges: &[Range<u32>],
        query: &QueryLimits,
        take: impl FnMut(Batch<'_>) -> Rows<()>,
    ) -> Result<(), StoreError> {
        self.read_of(self.mask(columns), row_bytes, ranges, query, take)
    }

    /// Reads all columns but these, of these rows.
    pub(crate) fn read_without(
        &self,
        columns: &[&str],
        row_bytes: usize,
        ranges: &[Range<u32>],
        query: &QueryLimits,
        take: impl FnMut(Batch<'_>) -> Rows<()>,
    ) -> Result<(), StoreError> {
        let names = self.table.columns.iter().map(|column| column.name);
        let wanted: Vec<&str> = names.filter(|name| !columns.contains(name)).collect();
        self.read_of(self.mask(&wanted), row_bytes, ranges, query, take)
    }

    fn mask(&self, columns: &[&str]) -> ProjectionMask {
        ProjectionMask::columns(self.metadata.parquet_schema(), columns.iter().copied())
    }

    /// Rows that have one of these texts in a column. Row groups without one of the rows `within` are passed over.
    pub(crate) fn rows_with_text(
        &self,
        column: &str,
        texts: &[&str],
        within: Option<&Bits>,
        query: &QueryLimits,
    ) -> Result<Bits, StoreError> {
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        self.rows_where(within, query, |group, rows, search| search.rows(group, column, &texts, None, rows, query))
    }

    /// Rows that have a pair with this key in a column of pairs, and with one of these values if there are any.
    pub(crate) fn rows_with_pair(
        &self,
        column: &str,
        key: &str,
        values: Option<&[String]>,
        within: Option<&Bits>,
        query: &QueryLimits,
    ) -> Result<Bits, StoreError> {
        let values: Option<Vec<&[u8]>> = values.map(|values| values.iter().map(String::as_bytes).collect());
        let (key_column, value_column) = (format!("{column}.key_value.key"), format!("{column}.key_value.value"));
        self.rows_where(within, query, |group, rows, search| {
            let among = match &values {
                Some(values) => match search.values(group, &value_column, values, query)? {
                    found if found.is_empty() => return Ok(()),
                    found => Some(found),
                },
                None => None,
            };
            search.rows(group, &key_column, &[key.as_bytes()], among.as_ref(), rows, query)
        })
    }

    fn rows_where(
        &self,
        within: Option<&Bits>,
        query: &QueryLimits,
        mut find: impl FnMut(Group<'_>, &mut Bits, &ColumnSearch<'_>) -> Result<(), Unsearched>,
    ) -> Result<Bits, StoreError> {
        let corrupt = |reason: String| StoreError::Corrupt { path: self.path.clone(), reason };
        // With them the marks of the values of a column.
        let held = Budget::limited(self.limit).holds(self.held_bytes);
        held.map_err(|spent| StoreError::TooLarge { path: self.path.clone(), reason: spent.to_string() })?;
        let _decoding = query.hold(self.held_bytes)?;
        let search = ColumnSearch { file: Arc::new(self.reopen()?), table: self };
        let mut rows = Bits::none(usize_of(self.rows));
        let mut first_row = 0;
        for metadata in self.metadata.metadata().row_groups() {
            let group = Group { metadata, first_row };
            let end = first_row + group.row_count();
            if within.is_none_or(|within| within.next_from(first_row).is_some_and(|row| row < end)) {
                find(group, &mut rows, &search).map_err(|error| match error {
                    Unsearched::Bad(reason) => corrupt(reason),
                    Unsearched::Stopped(error) => error,
                })?;
            }
            first_row = end;
        }
        Ok(rows)
    }

    fn read_of(
        &self,
        columns: ProjectionMask,
        row_bytes: usize,
        ranges: &[Range<u32>],
        query: &QueryLimits,
        mut take: impl FnMut(Batch<'_>) -> Rows<()>,
    ) -> Result<(), StoreError> {
        let wanted = ranges.iter().map(|range| u64::from(range.end.saturating_sub(range.start))).sum::<u64>();
        if wanted == 0 {
            return Ok(());
        }
        let corrupt = |reason: String| StoreError::Corrupt { path: self.path.clone(), reason };
        let missing = || corrupt("it has fewer rows than others refer to".into());
        if ranges.last().is_some_and(|last| u64::from(last.end) > self.rows) {
            return Err(missing());
        }
        let budget = Budget::limited(self.limit);
        let held = budget.holds(self.held_bytes).and_then(|()| budget.take(wanted.saturating_mul(row_bytes as u64)));
        held.map_err(|spent| StoreError::TooLarge { path: self.path.clone(), reason: spent.to_string() })?;
        let _decoding = query.hold(self.held_bytes)?;
        query.take(budget.taken())?;
        let (groups, selection) = self.groups_with(ranges);
        let file = self.reopen()?;
        let build = || {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
            let builder = builder.with_projection(columns).with_row_groups(groups);
            builder.with_row_selection(selection).with_batch_size(self.rows_at_a_time).build()
        };
        let mut reader = guarded(build).map_err(corrupt)?.map_err(|error: ParquetError| corrupt(error.to_string()))?;
        let mut found = 0;
        while let Some(batch) = guarded(|| reader.next()).map_err(corrupt)? {
            query.check()?;
            let batch = batch.map_err(|error| corrupt(error.to_string()))?;
            found += batch.num_rows() as u64;
            let before = budget.taken();
            take(Batch::new(self.table, &batch, &budget)).map_err(|BadRows(reason)| corrupt(reason))?;
            // Texts and lists of these rows.
            query.take(budget.taken() - before)?;
        }
        if found == wanted { Ok(()) } else { Err(missing()) }
    }

    /// The row groups with these rows, and where these are among the rows of those. A reader that passes over a row group reads its
    /// dictionaries all the same.
    fn groups_with(&self, ranges: &[Range<u32>]) -> (Vec<usize>, RowSelection) {
        let (mut groups, mut selected) = (Vec::new(), Vec::new());
        // Rows of all groups before this one, and of those that are read.
        let (mut first, mut before) = (0, 0);
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let end = first + usize::try_from(group.num_rows()).unwrap_or(0);
            let of_group = &ranges[ranges.partition_point(|range| range.end as usize <= first)..];
            let of_group = of_group.iter().take_while(|range| (range.start as usize) < end);
            let known = selected.len();
            selected.extend(of_group.filter(|range| !range.is_empty()).map(|range| {
                let (from, to) = ((range.start as usize).max(first), (range.end as usize).min(end));
                from - first + before..to - first + before
            }));
            if selected.len() > known {
                groups.push(number);
                before += end - first;
            }
            first = end;
        }
        (groups, RowSelection::from_consecutive_ranges(selected.into_iter(), before))
    }

    /// Reads all rows.
    pub(crate) fn read_all(
        &self,
        row_bytes: usize,
        query: &QueryLimits,
        take: impl FnMut(Batch<'_>) -> Rows<()>,
    ) -> Result<(), StoreError> {
        self.read(row_bytes, slice::from_ref(&self.all()), query, take)
    }

    fn all(&self) -> Range<u32> {
        0..u32::try_from(self.rows).unwrap_or(u32::MAX)
    }
}

/// A row group.
#[derive(Clone, Copy)]
struct Group<'a> {
    metadata: &'a RowGroupMetaData,
    first_row: usize,
}

/// Looks for texts in the columns of a table.
struct ColumnSearch<'a> {
    file: Arc<PositionedFile>,
    table: &'a OpenTable,
}

impl ColumnSearch<'_> {
    fn column<'g>(&self, group: Group<'g>, name: &str) -> Result<&'g ColumnChunkMetaData, Unsearched> {
        let columns = self.table.metadata.parquet_schema().columns();
        let number = columns.iter().position(|column| column.path().string() == name);
        number.map(|number| group.metadata.column(number)).ok_or_else(|| Unsearched::Bad(format!("column {name} is missing")))
    }

    /// Marks rows with one of these texts, of values among these.
    fn rows(
        &self,
        group: Group<'_>,
        column: &str,
        texts: &[&[u8]],
        among: Option<&Bits>,
        rows: &mut Bits,
        query: &QueryLimits,
    ) -> Result<(), Unsearched> {
        let (column, mark) = (self.column(group, column)?, &mut Mark::Row(rows, group.first_row));
        text_search::find(&self.file, column, group.row_count(), texts, among, mark, query)
    }

    /// The values of a column that are one of these texts, by their numbers in the row group.
    fn values(&self, group: Group<'_>, column: &str, texts: &[&[u8]], query: &QueryLimits) -> Result<Bits, Unsearched> {
        let column = self.column(group, column)?;
        let mut values = Bits::none(usize::try_from(column.num_values()).unwrap_or(0));
        text_search::find(&self.file, column, group.row_count(), texts, None, &mut Mark::Value(&mut values), query)?;
        Ok(values)
    }
}

impl Group<'_> {
    fn row_count(&self) -> usize {
        usize::try_from(self.metadata.num_rows()).unwrap_or(0)
    }
}

fn format_of(metadata: &FileMetaData) -> Option<u32> {
    let said = metadata.key_value_metadata()?;
    said.iter().find(|pair| pair.key == SEGMENT_KEY)?.value.as_deref()?.parse().ok()
}
