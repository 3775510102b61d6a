//! Searches a column for texts, page by page, without Arrow arrays.
//!
//! ```text
//! a page of a column of maps, decompressed, as longpole writes it:
//!
//! repetition levels   0 1 1 0 1 …      0 begins a row
//! definition levels   2 2 2 1 2 …      the greatest one has a value, the others stand for a map that is empty
//! values              17 3 3 17 …      entries of the dictionary; in a column of too many texts, the texts themselves
//! ```
//!
//! The wanted texts are looked up in the dictionary once. Then a value is a number of some bits, and a page in which no number is a wanted
//! one is done. Where a text stands in no dictionary and all pages refer to it, no page is read.
//!
//! Levels and numbers are in runs: an odd head `2 n + 1` is followed by `n` × 8 numbers of some bits each, an even one `2 n` by one number that
//! comes `n` times.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::panic_guard::guarded;
use super::positioned_file::PositionedFile;
use crate::bits::Bits;
use crate::error::StoreError;
use crate::numbers::u32_of;
use crate::query_limits::QueryLimits;

/// Why a column is not searched.
#[derive(Debug)]
pub(super) enum Unsearched {
    /// What it holds is not what longpole writes.
    Bad(String),
    /// The query was stopped.
    Stopped(StoreError),
}

impl From<String> for Unsearched {
    fn from(reason: String) -> Self {
        Unsearched::Bad(reason)
    }
}

impl From<&str> for Unsearched {
    fn from(reason: &str) -> Self {
        Unsearched::Bad(reason.to_owned())
    }
}

/// What is marked where a text is found.
pub(super) enum Mark<'a> {
    /// The value, by its number among those of the column chunk.
    Value(&'a mut Bits),
    /// Its row; those of the row group begin at this one.
    Row(&'a mut Bits, usize),
}

/// Marks where one of the texts stands in a column of a row group, of values that are among these.
pub(super) fn find(
    file: &Arc<PositionedFile>,
    column: &ColumnChunkMetaData,
    rows: usize,
    wanted: &[&[u8]],
    among: Option<&Bits>,
    mark: &mut Mark<'_>,
    query: &QueryLimits,
) -> Result<(), Unsearched> {
    let describe = |error: parquet::errors::ParquetError| error.to_string();
    let levels = Levels { repetition: column.column_descr().max_rep_level(), definition: column.column_descr().max_def_level() };
    let refers = column
        .page_encoding_stats_mask()
        .is_some_and(|mask| mask.encodings().all(|encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY)));
    let open = || SerializedPageReader::new(Arc::clone(file), column, rows, None);
    let mut pages = guarded(open)?.map_err(describe)?;
    let (mut entries, mut first_value, mut first_row) = (Vec::new(), 0, 0);
    while let Some(page) = guarded(|| pages.get_next_page())?.map_err(describe)? {
        query.check().map_err(Unsearched::Stopped)?;
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                each_text(&buf, num_values as usize, |number, text| {
                    if wanted.contains(&text) {
                        entries.push(u32_of(number));
                    }
                })?;
                if entries.is_empty() && refers {
                    return Ok(());
                }
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                let page = DataPage::new(&buf, num_values as usize, encoding, &levels)?;
                let mut hits = Vec::new();
                page.each_of(wanted, &entries, |value| {
                    if among.is_none_or(|among| among.has(first_value + value)) {
                        hits.push(value);
                    }
                })?;
                match mark {
                    Mark::Value(bits) => hits.iter().for_each(|value| bits.set(first_value + value)),
                    Mark::Row(bits, group_row) => page.each_row_of(&hits, |row| bits.set(*group_row + first_row + row))?,
                }
                first_value += page.present;
                first_row += page.rows;
            }
            Page::DataPageV2 { .. } => return Err("a page is of a kind that longpole does not write".into()),
        }
    }
    Ok(())
}

/// The greatest levels of a column.
struct Levels {
    repetition: i16,
    definition: i16,
}

/// A page with values, taken apart.
struct DataPage<'a> {
    /// `None` where each value is a row.
    repetition: Option<Runs<'a>>,
    /// `None` where each value is there.
    definition: Option<(Runs<'a>, u32)>,
    values: &'a [u8],
    is_plain: bool,
    /// How many levels there are, how many values and how many rows.
    count: usize,
    present: usize,
    rows: usize,
}

impl<'a> DataPage<'a> {
    fn new(bytes: &'a [u8], count: usize, encoding: Encoding, levels: &Levels) -> Result<Self, Unsearched> {
        let mut rest = bytes;
        let mut levels_of = |greatest: i16| -> Result<Option<Runs<'a>>, Unsearched> {
            if greatest <= 0 {
                return Ok(None);
            }
            let (length, behind) = rest.split_first_chunk::<4>().ok_or("the levels of a page are cut off")?;
            let length = u32::from_le_bytes(*length) as usize;
            let (bytes, behind) = behind.split_at_checked(length).ok_or("the levels of a page are cut off")?;
            rest = behind;
            Ok(Some(Runs { bytes, bits: 16 - greatest.cast_unsigned().leading_zeros(), count }))
        };
        let (repetition, definition) = (levels_of(levels.repetition)?, levels_of(levels.definition)?);
        let definition = definition.map(|runs| (runs, u32::from(levels.definition.cast_unsigned())));
        let is_plain = match encoding {
            Encoding::PLAIN => true,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => false,
            _ => return Err("a page of texts has an encoding that longpole does not write".into()),
        };
        let rows = repetition.as_ref().map_or(Ok(count), |runs| runs.count_of(0))?;
        let present = definition.as_ref().map_or(Ok(count), |(runs, there)| runs.count_of(*there))?;
        Ok(DataPage { repetition, definition, values: rest, is_plain, count, present, rows })
    }

    /// Calls with the number of each value that is a wanted text, or an entry of the dictionary that is one.
    fn each_of(&self, wanted: &[&[u8]], entries: &[u32], mut call: impl FnMut(usize)) -> Result<(), Unsearched> {
        if self.is_plain {
            let is_wanted = |text: &[u8]| wanted.contains(&text);
            return each_text(self.values, self.present, |value, text| {
                if is_wanted(text) {
                    call(value)
                }
            });
        }
        if entries.is_empty() || self.present == 0 {
            return Ok(());
        }
        let (bits, bytes) = self.values.split_first().ok_or("the values of a page are cut off")?;
        if u32::from(*bits) > u32::BITS {
            return Err("the values of a page have more bits than there are".into());
        }
        let runs = Runs { bytes, bits: u32::from(*bits), count: self.present };
        match entries {
            [entry] => runs.each(|number| number == *entry, call),
            _ => runs.each(|number| entries.contains(&number), call),
        }
    }

    /// Calls with the row, in this page, of each of these values.
    fn each_row_of(&self, values: &[usize], mut call: impl FnMut(usize)) -> Result<(), Unsearched> {
        if values.is_empty() {
            return Ok(());
        }
        // Only pages with a hit come here; the levels of a page are few, and counted for its reader.
        let (mut begins, mut there) = (vec![self.repetition.is_none(); self.count], vec![self.definition.is_none(); self.count]);
        if let Some(runs) = &self.repetition {
            runs.each(|level| level == 0, |number| begins[number] = true)?;
        }
        if let Some((runs, greatest)) = &self.definition {
            runs.each(|level| level == *greatest, |number| there[number] = true)?;
        }
        let mut values = values.iter().copied().peekable();
        let (mut rows, mut value) = (0_usize, 0);
        for (begins, there) in begins.into_iter().zip(there) {
            rows += usize::from(begins);
            if there {
                if values.next_if_eq(&value).is_some() {
                    call(rows.checked_sub(1).ok_or("a page begins in the middle of a row")?);
                }
                value += 1;
            }
        }
        Ok(())
    }
}

/// Texts, each with its length before it.
fn each_text(bytes: &[u8], count: usize, mut call: impl FnMut(usize, &[u8])) -> Result<(), Unsearched> {
    let mut rest = bytes;
    for number in 0..count {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or("the texts of a page are cut off")?;
        let (text, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("the texts of a page are cut off")?;
        call(number, text);
        rest = behind;
    }
    Ok(())
}

/// Numbers of some bits each, in runs.
#[derive(Debug)]
struct Runs<'a> {
    bytes: &'a [u8],
    bits: u32,
    count: usize,
}

/// Some numbers that stand together.
enum Run<'a> {
    Same(u32),
    /// They begin here; what stands behind them may follow.
    Packed(&'a [u8]),
}

impl<'a> Runs<'a> {
    fn each_run(&self, mut call: impl FnMut(Run<'a>, usize, usize)) -> Result<(), Unsearched> {
        let (mut rest, mut first) = (self.bytes, 0);
        while first < self.count {
            let head = head(&mut rest).ok_or("the runs of a page are cut off")?;
            let (run, length) = if head & 1 == 1 {
                let groups = head >> 1;
                // A group of eight numbers of n bits has n bytes. The last group may be cut off behind the last number.
                let bytes = groups.checked_mul(self.bits as usize).ok_or("a run of a page has no end")?.min(rest.len());
                let packed = rest;
                rest = &rest[bytes..];
                let length = groups.saturating_mul(8).min(self.count - first);
                if length.saturating_mul(self.bits as usize).div_ceil(8) > bytes {
                    return Err("a run of a page is cut off".into());
                }
                (Run::Packed(packed), length)
            } else {
                let (number, behind) = rest.split_at_checked(self.bits.div_ceil(8) as usize).ok_or("a run of a page is cut off")?;
                rest = behind;
                let number = number.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
                (Run::Same(number), (head >> 1).min(self.count - first))
            };
            call(run, first, length);
            first += length;
        }
        Ok(())
    }

    /// Calls with the place of each number that is wanted.
    fn each(&self, is_wanted: impl Fn(u32) -> bool, mut call: impl FnMut(usize)) -> Result<(), Unsearched> {
        self.each_run(|run, first, length| match run {
            Run::Same(number) if is_wanted(number) => (first..first + length).for_each(&mut call),
            Run::Same(_) => {}
            Run::Packed(bytes) => {
                let mut numbers = [0; GROUP];
                for (group, start) in (0..length).step_by(GROUP).enumerate() {
                    unpack(bytes, self.bits as usize, group, &mut numbers);
                    for (at, number) in numbers[..GROUP.min(length - start)].iter().enumerate() {
                        if is_wanted(*number) {
                            call(first + start + at);
                        }
                    }
                }
            }
        })
    }

    fn count_of(&self, wanted: u32) -> Result<usize, Unsearched> {
        let mut count = 0;
        self.each_run(|run, _, length| match run {
            Run::Same(number) => count += if number == wanted { length } else { 0 },
            Run::Packed(bytes) => {
                let mut numbers = [0; GROUP];
                for (group, start) in (0..length).step_by(GROUP).enumerate() {
                    unpack(bytes, self.bits as usize, group, &mut numbers);
                    for number in &numbers[..GROUP.min(length - start)] {
                        count += usize::from(*number == wanted);
                    }
                }
            }
        })?;
        Ok(count)
    }
}

/// The head of a run: seven bits a byte, the lowest first.
fn head(rest: &mut &[u8]) -> Option<usize> {
    let mut number: u64 = 0;
    for shift in (0..35).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(number).ok();
        }
    }
    None
}

/// Numbers of a group: as many bytes as a number has bits.
const GROUP: usize = 8;

/// The numbers of a group, the lowest bit first. This is where a search spends its time.
#[allow(clippy::cast_possible_truncation, reason = "the mask leaves 32 bits at most")]
fn unpack(bytes: &[u8], bits: usize, group: usize, numbers: &mut [u32; GROUP]) {
    let first = group * bits;
    let mask = (1_u64 << bits) - 1;
    if bits <= GROUP {
        let mut word = word_at(bytes, first);
        for number in numbers {
            *number = (word & mask) as u32;
            word >>= bits;
        }
        return;
    }
    let mut bit = 0;
    for number in numbers {
        *number = (word_at(bytes, first + bit / 8) >> (bit % 8) & mask) as u32;
        bit += bits;
    }
}

/// The eight bytes from here on; those behind the last one are zero.
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let behind = bytes.get(at..).unwrap_or(&[]);
    if let Some(word) = behind.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    word[..behind.len()].copy_from_slice(behind);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8], bits: u32, count: usize) -> Option<Vec<u32>> {
        let mut numbers = vec![u32::MAX; count];
        let runs = Runs { bytes, bits, count };
        for wanted in 0..1 << bits {
            runs.each(|number| number == wanted, |at| numbers[at] = wanted).ok()?;
            assert_eq!(runs.count_of(wanted).ok()?, numbers.iter().filter(|number| **number == wanted).count());
        }
        Some(numbers)
    }

    /// The example of Parquet's documentation: 0 to 7 in three bits each, then five sevens.
    #[test]
    fn runs_of_both_kinds_are_read() {
        let bytes = [3, 0b1000_1000, 0b1100_0110, 0b1111_1010, 10, 7];
        assert_eq!(numbers(&bytes, 3, 13), Some(vec![0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7]));
        assert_eq!(numbers(&bytes, 3, 6), Some(vec![0, 1, 2, 3, 4, 5]));
        for length in 0..bytes.len() {
            assert_eq!(numbers(&bytes[..length], 3, 13), None, "{length}");
        }
    }
}
