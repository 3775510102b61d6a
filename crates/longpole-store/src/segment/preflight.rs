//! What a Parquet file claims of itself, checked before Parquet's reader believes it.
//!
//! ```text
//! PAR1   page header, page   page header, page   …        footer     length of the footer   PAR1
//!        └─ sizes before and after decompression          └─ rows, and where the pages lie
//! ```
//!
//! The reader reserves memory for what is claimed: the elements of a list, the values of a dictionary, the bytes of a page. A few
//! bytes can claim gigabytes, and memory that is refused ends the process: no panic, nothing to catch. Headers and footer are structs of
//! Thrift's compact protocol; this walks them without keeping anything, and holds every claim against the bytes that are there.
//!
//! It also keeps to the part of Parquet that longpole writes: pages of version 1, four encodings, no two columns in the same bytes. What
//! else the format offers can expand in ways that are not counted here, and nobody needs it.

use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;

use crate::numbers::usize_of;

/// Structs and lists inside each other. A footer has seven.
const DEPTH_MAX: usize = 16;

/// Largest footer. Ours take 7 KiB for each 131,072 rows.
const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// Largest header of a page. Ours have no statistics and take 20 bytes.
const HEADER_BYTES_MAX: u64 = 16 << 10;

/// Columns and groups of columns in a table. Ours with the most has 45.
const COLUMNS_MAX: u64 = 256;

/// Bytes that are read for a header at first.
const HEADER_BYTES: u64 = 64;

/// Before and behind everything else.
const MAGIC: &[u8] = b"PAR1";

/// Length of the footer, and the magic number.
const TAIL_BYTES: u64 = 8;

/// `Encoding` of the format: PLAIN, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY, and PLAIN_DICTIONARY, its older name.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];

/// The type of a field or an element in the compact protocol.
mod kind {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

/// Why a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// The bytes end before the struct does: with more of them it may be whole.
    Cut,
    /// It is not one.
    Not(&'static str),
}

type Walked<T> = Result<T, Fault>;

/// A place in structs of the compact protocol.
struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Compact { bytes, at: 0 }
    }

    fn byte(&mut self) -> Walked<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Cut)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, bytes: u64) -> Walked<()> {
        let end = usize::try_from(bytes).ok().and_then(|bytes| self.at.checked_add(bytes));
        self.at = end.filter(|end| *end <= self.bytes.len()).ok_or(Fault::Cut)?;
        Ok(())
    }

    fn number(&mut self) -> Walked<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Fault::Not("a number has more than 64 bits"))
    }

    fn signed(&mut self) -> Walked<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Walks the fields of a struct. `field` says whether it has read this one; what it has not is passed over.
    fn fields(&mut self, depth: usize, field: &mut dyn FnMut(&mut Self, i64, u8) -> Walked<bool>) -> Walked<()> {
        let mut id: i64 = 0;
        loop {
            let first = self.byte()?;
            let kind = first & 0x0f;
            if kind == kind::STOP {
                return Ok(());
            }
            id = match first >> 4 {
                0 => self.signed()?,
                delta => id.wrapping_add(i64::from(delta)),
            };
            if !field(self, id, kind)? {
                self.pass_value(kind, depth)?;
            }
        }
    }

    /// Passes over the value of a field. As deep as [`DEPTH_MAX`].
    fn pass_value(&mut self, kind: u8, depth: usize) -> Walked<()> {
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.pass(1),
            kind::I16 | kind::I32 | kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => self.number().and_then(|length| self.pass(length)),
            kind::LIST | kind::SET | kind::STRUCT if depth == DEPTH_MAX => Err(Fault::Not("it is nested too deep")),
            kind::LIST | kind::SET => self.pass_list(depth + 1),
            kind::STRUCT => self.fields(depth + 1, &mut |_, _, _| Ok(false)),
            _ => Err(Fault::Not("a field has a type that Parquet does not use")),
        }
    }

    /// The type of a list's elements, and how many it claims.
    fn list_header(&mut self) -> Walked<(u8, u64)> {
        let first = self.byte()?;
        let count = match first >> 4 {
            15 => self.number()?,
            count => u64::from(count),
        };
        // The shortest element takes a byte. The reader makes room for all of them before it reads the first.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Fault::Cut);
        }
        Ok((first & 0x0f, count))
    }

    fn pass_list(&mut self, depth: usize) -> Walked<()> {
        let (kind, count) = self.list_header()?;
        for _ in 0..count {
            match kind {
                kind::TRUE | kind::FALSE => self.pass(1)?,
                kind => self.pass_value(kind, depth)?,
            }
        }
        Ok(())
    }

    /// A field that is a number.
    fn take_number(&mut self, kind: u8, into: &mut Option<i64>) -> Walked<bool> {
        if !matches!(kind, kind::I16 | kind::I32 | kind::I64) {
            return Ok(false);
        }
        *into = Some(self.signed()?);
        Ok(true)
    }
}

/// What the header of a page says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PageHeader {
    is_dictionary: bool,
    header_bytes: u64,
    compressed_bytes: u64,
    bytes: u64,
    values: u64,
}

impl PageHeader {
    fn read(bytes: &[u8]) -> Walked<Self> {
        let mut compact = Compact::new(bytes);
        let (mut kind, mut size, mut compressed, mut values, mut encoding) = (None, None, None, None, None);
        let mut page = |compact: &mut Compact<'_>, id: i64, field: u8| match (id, field) {
            (1, _) => compact.take_number(field, &mut kind),
            (2, _) => compact.take_number(field, &mut size),
            (3, _) => compact.take_number(field, &mut compressed),
            // Pages with data and dictionaries: both begin with these two.
            (5 | 7, kind::STRUCT) => {
                let mut inner = |compact: &mut Compact<'_>, id: i64, field: u8| match id {
                    1 => compact.take_number(field, &mut values),
                    2 => compact.take_number(field, &mut encoding),
                    _ => Ok(false),
                };
                compact.fields(1, &mut inner).map(|()| true)
            }
            _ => Ok(false),
        };
        compact.fields(0, &mut page)?;
        let unsigned = |number: Option<i64>| {
            number.and_then(|number| u64::try_from(number).ok()).ok_or(Fault::Not("a size of a page is missing or negative"))
        };
        if !matches!(kind, Some(0 | 2)) {
            return Err(Fault::Not("a page is of a kind that longpole does not write"));
        }
        if !encoding.is_some_and(|encoding| ENCODINGS.contains(&encoding)) {
            return Err(Fault::Not("a page has an encoding that longpole does not write"));
        }
        Ok(PageHeader {
            is_dictionary: kind == Some(2),
            header_bytes: compact.at as u64,
            compressed_bytes: unsigned(compressed)?,
            bytes: unsigned(size)?,
            values: unsigned(values)?,
        })
    }
}

/// What reading a table takes, by what it claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) rows: u64,
    /// All pages together, decompressed.
    pub(crate) pages_bytes: u64,
    /// What is held while rows are read: of each column the largest dictionary and page, and the values of a row group as Arrow has them.
    pub(crate) held_bytes: u64,
    /// How many rows of each row group to read at a time.
    pub(crate) rows_at_a_time: Vec<usize>,
}

/// Bytes of the largest value of Arrow that is not counted elsewhere: a trace id, or where a text lies.
const VALUE_BYTES: u64 = 16;

/// Checks the footer before the reader makes lists of it.
pub(crate) fn check_footer(input: &impl ChunkReader) -> Result<(), String> {
    let failed = |error: parquet::errors::ParquetError| error.to_string();
    let length = input.len();
    if length < TAIL_BYTES + MAGIC.len() as u64 {
        return Err("it is too short for a table".into());
    }
    let tail = input.get_bytes(length - TAIL_BYTES, usize_of(TAIL_BYTES)).map_err(failed)?;
    let Some((footer, MAGIC)) = tail.split_first_chunk::<4>() else { return Err("it does not end like a table".into()) };
    let footer = u64::from(u32::from_le_bytes(*footer));
    if footer > FOOTER_BYTES_MAX || footer > length - TAIL_BYTES - MAGIC.len() as u64 {
        return Err(format!("its footer claims {footer} bytes"));
    }
    let bytes = input.get_bytes(length - TAIL_BYTES - footer, usize_of(footer)).map_err(failed)?;
    match footer_claims(&bytes) {
        // The reader makes room for all columns of each row group before it reads the first. A column takes 60 bytes and more.
        Ok((columns, groups)) if columns <= COLUMNS_MAX && columns.saturating_mul(groups) <= footer => Ok(()),
        Ok((columns, groups)) => Err(format!("its footer claims {groups} row groups of {columns} columns")),
        Err(Fault::Cut) => Err("its footer claims more than it holds".into()),
        Err(Fault::Not(reason)) => Err(format!("in its footer {reason}")),
    }
}

/// How many columns and row groups a footer claims to list; it is walked to its end.
fn footer_claims(bytes: &[u8]) -> Walked<(u64, u64)> {
    let (mut columns, mut groups) = (0, 0);
    Compact::new(bytes).fields(0, &mut |compact, id, field| {
        let count = || Compact { ..*compact }.list_header().map(|(_, count)| count);
        match (id, field) {
            (2, kind::LIST) => columns = count()?,
            (4, kind::LIST) => groups = count()?,
            _ => {}
        }
        Ok(false)
    })?;
    Ok((columns, groups))
}

/// Checks every page of every column.
pub(crate) fn check_pages(input: &impl ChunkReader, metadata: &ParquetMetaData) -> Result<Claims, String> {
    let mut claims = Claims::default();
    let mut chunks_bytes: u64 = 0;
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let (mut pages_max, mut values_max) = (vec![0; columns], vec![0; columns]);
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).map_err(|_| "a row group has a negative number of rows")?;
        claims.rows = claims.rows.saturating_add(rows);
        if group.num_columns() != columns {
            return Err("a row group has other columns than the table".into());
        }
        let (mut group_bytes, mut value_bytes_max) = (0_u64, 0);
        for (number, column) in group.columns().iter().enumerate() {
            let chunk = check_chunk(input, column)?;
            if column.column_descr().max_rep_level() == 0 && chunk.values != rows {
                return Err(format!("column {} has {} values for {rows} rows", column.column_path(), chunk.values));
            }
            chunks_bytes = chunks_bytes.saturating_add(chunk.compressed_bytes);
            claims.pages_bytes = claims.pages_bytes.saturating_add(chunk.bytes);
            pages_max[number] = chunk.held_bytes.max(pages_max[number]);
            values_max[number] = chunk.values.max(values_max[number]);
            value_bytes_max = chunk.value_bytes_max.max(value_bytes_max);
            group_bytes = group_bytes.saturating_add(chunk.bytes).saturating_add(chunk.values.saturating_mul(VALUE_BYTES));
        }
        claims.rows_at_a_time.push(rows_at_a_time((group_bytes / rows.max(1)).max(value_bytes_max)));
        // Otherwise a few pages could be read again and again.
        if chunks_bytes > input.len() {
            return Err("its columns claim more bytes than it has".into());
        }
    }
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(claims.rows) {
        return Err("its row groups have other rows than it claims".into());
    }
    let values = values_max.iter().fold(0u64, |sum, values| sum.saturating_add(*values));
    claims.held_bytes = pages_max.iter().fold(values.saturating_mul(VALUE_BYTES), |sum, bytes| sum.saturating_add(*bytes));
    Ok(claims)
}

/// What reading a table takes that was just written, by its footer alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Never less than [`check_pages`] finds, of pages and of what is held.
    pub(crate) claims_bytes: u64,
    /// What is held of it, about: rows that are read at a time, and of each column a dictionary and a page.
    pub(crate) held_bytes: u64,
}

/// The dictionary and the page of a column that is read. Each ends when it has 1 MiB.
const COLUMN_HELD_BYTES: u64 = 2 << 20;

/// Rows read at a time.
const READ_ROWS: u64 = 8192;

/// The same where a row or a value of it is large, so that there is something to do at a time.
const READ_ROWS_MIN: u64 = 64;

/// What rows that are read at a time may take, about, with all the pages that their texts lie in.
const READ_BYTES: u64 = 64 << 20;

/// The same where that would be fewer rows than [`READ_ROWS_MIN`]; one row may take more.
const READ_BYTES_MAX: u64 = 256 << 20;

/// How many rows to read at a time, by the bytes of a row or of the largest value.
fn rows_at_a_time(bytes: u64) -> usize {
    let bytes = bytes.max(1);
    usize_of((READ_BYTES / bytes).clamp((READ_BYTES_MAX / bytes).clamp(1, READ_ROWS_MIN), READ_ROWS))
}

/// Counts what reading a table takes, by its footer, which was just written, and the bytes of its longest text.
pub(crate) fn of_written(metadata: &ParquetMetaData, text_bytes_max: u64) -> Written {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut pages_bytes: u64 = 0;
    let mut claimed_max = vec![0; columns];
    let mut held_bytes = 0;
    for group in metadata.row_groups() {
        let (mut group_bytes, mut pages_held_bytes) = (0_u64, 0_u64);
        for (number, column) in group.columns().iter().enumerate() {
            let (bytes, values) = (column.uncompressed_size().cast_unsigned(), column.num_values().cast_unsigned());
            pages_bytes = pages_bytes.saturating_add(bytes);
            // Twice: a dictionary has no more entries than there are values.
            claimed_max[number] = bytes.saturating_add(values.saturating_mul(2 * VALUE_BYTES)).max(claimed_max[number]);
            group_bytes = group_bytes.saturating_add(bytes).saturating_add(values.saturating_mul(VALUE_BYTES));
            pages_held_bytes = pages_held_bytes.saturating_add(bytes.min(COLUMN_HELD_BYTES));
        }
        let row_bytes = (group_bytes / group.num_rows().cast_unsigned().max(1)).max(text_bytes_max.min(group_bytes));
        let at_a_time = row_bytes.saturating_mul(rows_at_a_time(row_bytes) as u64);
        held_bytes = pages_held_bytes.saturating_add(at_a_time).min(group_bytes).max(held_bytes);
    }
    let claimed = claimed_max.into_iter().fold(0_u64, u64::saturating_add);
    Written { claims_bytes: pages_bytes.max(claimed), held_bytes }
}

/// What the pages of one column of one row group are together.
#[derive(Debug, Default)]
struct Chunk {
    compressed_bytes: u64,
    bytes: u64,
    held_bytes: u64,
    values: u64,
    value_bytes_max: u64,
}

/// Where the pages of a column are: the first byte, and the one behind them.
fn place_of(input: &impl ChunkReader, column: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let first = u64::try_from(column.dictionary_page_offset().unwrap_or(column.data_page_offset())).ok()?;
    let end = first.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
    (end <= input.len()).then_some((first, end))
}

/// Checks the lists of pages before the reader makes them: they lie in the file, and claim no more entries than they have bytes for.
pub(crate) fn check_page_lists(input: &impl ChunkReader, metadata: &ParquetMetaData) -> Result<(), String> {
    let mut left = input.len();
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let (Some(offset), Some(length)) = (column.offset_index_offset(), column.offset_index_length()) else { continue };
        let fault = |reason: &str| format!("in column {} {reason}", column.column_path());
        let place = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
        let place = place.filter(|(offset, length)| offset.checked_add(*length).is_some_and(|end| end <= input.len()));
        let (Some((offset, length)), true) = (place, place.is_some_and(|(_, length)| length <= left)) else {
            return Err(fault("the list of pages lies outside of the file"));
        };
        left -= length;
        let bytes = input.get_bytes(offset, usize_of(length)).map_err(|error| error.to_string())?;
        match Compact::new(&bytes).fields(0, &mut |_, _, _| Ok(false)) {
            Ok(()) => {}
            Err(Fault::Cut) => return Err(fault("the list of pages claims more than it holds")),
            Err(Fault::Not(reason)) => return Err(fault(reason)),
        }
    }
    Ok(())
}

/// Compares the list of a column's pages with its pages, which [`check_pages`] has checked: a reader that goes by the list must come to no
/// others.
pub(crate) fn check_page_list(
    input: &impl ChunkReader,
    column: &ColumnChunkMetaData,
    rows: i64,
    list: &[PageLocation],
) -> Result<(), String> {
    let fault = || format!("in column {} the list of pages is not that of its pages", column.column_path());
    let (mut at, end) = place_of(input, column).ok_or_else(fault)?;
    let mut listed = list.iter();
    let mut next_row = 0;
    while at < end {
        let header = page_header(input, at, end)?;
        let bytes = header.header_bytes.saturating_add(header.compressed_bytes);
        if !header.is_dictionary {
            let page = listed.next().ok_or_else(fault)?;
            let is_same = u64::try_from(page.offset) == Ok(at) && u64::try_from(page.compressed_page_size) == Ok(bytes);
            // The first page begins with row 0, and each later one further on.
            let is_next = if next_row == 0 { page.first_row_index == 0 } else { page.first_row_index >= next_row };
            if !is_same || !is_next || page.first_row_index > rows {
                return Err(fault());
            }
            next_row = page.first_row_index.saturating_add(1);
        }
        at = at.saturating_add(bytes);
    }
    if listed.next().is_none() { Ok(()) } else { Err(fault()) }
}

fn check_chunk(input: &impl ChunkReader, column: &ColumnChunkMetaData) -> Result<Chunk, String> {
    let fault = |reason: &str| format!("in column {} {reason}", column.column_path());
    let Some((first, end)) = place_of(input, column) else { return Err(fault("the pages lie outside of the file")) };
    let mut chunk = Chunk { compressed_bytes: end - first, ..Chunk::default() };
    let (mut dictionary_bytes, mut page_bytes) = (0, 0);
    let mut at = first;
    while at < end {
        let header = page_header(input, at, end).map_err(|reason| fault(&reason))?;
        at = at.saturating_add(header.header_bytes).saturating_add(header.compressed_bytes);
        if at > end {
            return Err(fault("a page is longer than the column"));
        }
        chunk.bytes = chunk.bytes.saturating_add(header.bytes);
        if header.is_dictionary {
            // The shortest entry takes four bytes; room is made for all of them at once.
            if header.values > header.bytes / 4 {
                return Err(fault("a dictionary claims more entries than it has bytes for"));
            }
            dictionary_bytes = header.bytes.saturating_add(header.values.saturating_mul(VALUE_BYTES)).max(dictionary_bytes);
        } else {
            chunk.values = chunk.values.saturating_add(header.values);
            page_bytes = header.bytes.max(page_bytes);
            chunk.value_bytes_max = (header.bytes / header.values.max(1)).max(chunk.value_bytes_max);
        }
    }
    if u64::try_from(column.num_values()) != Ok(chunk.values) {
        return Err(fault("the pages have other values than it claims"));
    }
    chunk.held_bytes = dictionary_bytes.saturating_add(page_bytes);
    Ok(chunk)
}

fn page_header(input: &impl ChunkReader, at: u64, end: u64) -> Result<PageHeader, String> {
    for length in [HEADER_BYTES, HEADER_BYTES_MAX] {
        let length = length.min(end - at);
        let bytes = input.get_bytes(at, usize_of(length)).map_err(|error| error.to_string())?;
        match PageHeader::read(&bytes) {
            Ok(header) => return Ok(header),
            Err(Fault::Cut) => {}
            Err(Fault::Not(reason)) => return Err(reason.to_owned()),
        }
    }
    Err("the header of a page is cut off".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_page_is_read() {
        // type 0, 300 bytes, 40 compressed, { 7 values, RLE_DICTIONARY, RLE, RLE }
        let header = [0x15, 0, 0x15, 0xd8, 4, 0x15, 80, 0x2c, 0x15, 14, 0x15, 16, 0x15, 6, 0x15, 6, 0, 0];
        let page = PageHeader { is_dictionary: false, header_bytes: 18, compressed_bytes: 40, bytes: 300, values: 7 };
        assert_eq!(PageHeader::read(&header), Ok(page));
        for length in 0..header.len() {
            assert_eq!(PageHeader::read(&header[..length]), Err(Fault::Cut));
        }
        let mut delta = header;
        delta[11] = 14;
        assert_eq!(PageHeader::read(&delta), Err(Fault::Not("a page has an encoding that longpole does not write")));
    }

    #[test]
    fn fewer_rows_are_read_at_a_time_where_each_holds_a_page() {
        // Names and numbers; a prompt of 65 KB; a payload of 2 MB; one of 60 MB; a text of 1 GB.
        let rows = [16, 65_000, 2 << 20, 60 << 20, 1 << 30].map(rows_at_a_time);
        assert_eq!(rows, [8192, 1032, 64, 4, 1]);
        assert_eq!(rows_at_a_time(0), 8192);
    }

    #[test]
    fn lists_that_claim_more_than_there_is_and_endless_nesting_are_refused() {
        let walk = |bytes: &[u8]| Compact::new(bytes).fields(0, &mut |_, _, _| Ok(false));
        // A field that is a list of 2^31 structs.
        assert_eq!(walk(&[0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 8, 0, 0]), Err(Fault::Cut));
        assert_eq!(walk(&[0x19, 0x2c, 0, 0, 0]), Ok(()));
        // 255 columns, and 3 row groups in as many bytes.
        let claims = [&[0x29, 0xf3, 0xff, 1][..], &[0; 255], &[0x29, 0x33], &[0; 3], &[0]].concat();
        assert_eq!(footer_claims(&claims), Ok((255, 3)));
        assert_eq!(walk(&[0x1c; 100]), Err(Fault::Not("it is nested too deep")));
        assert_eq!(walk(&[0x19; 100]), Err(Fault::Not("it is nested too deep")));
        assert_eq!(
            walk(&[0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            Err(Fault::Not("a number has more than 64 bits"))
        );
    }
}
