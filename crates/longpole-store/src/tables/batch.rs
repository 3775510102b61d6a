//! Typed reading of one batch of rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteViewType, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, GenericByteViewArray, Int64Array, ListArray, MapArray, RecordBatch,
    StringViewArray, UInt32Array, UInt64Array,
};
use longpole_model::{SpanId, TraceId};

use super::Table;
use crate::memory::budget::{Budget, Spent};

/// Why a file does not hold the rows it should; the segment reader adds which file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRows(pub(crate) String);

pub(crate) type Rows<T> = Result<T, BadRows>;

impl From<Spent> for BadRows {
    fn from(spent: Spent) -> Self {
        BadRows(spent.to_string())
    }
}

/// Rows of one table, columns by name.
pub(crate) struct Batch<'a> {
    table: &'static Table,
    batch: &'a RecordBatch,
    budget: &'a Budget,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(table: &'static Table, batch: &'a RecordBatch, budget: &'a Budget) -> Self {
        Batch { table, batch, budget }
    }

    /// What is left for what is kept of the rows.
    pub(super) fn budget(&self) -> &'a Budget {
        self.budget
    }

    pub(crate) fn rows(&self) -> std::ops::Range<usize> {
        0..self.batch.num_rows()
    }

    /// The column, of the type the table says, and without NULL where the table says so.
    fn column<T>(&self, name: &str, cast: impl FnOnce(&'a dyn Array) -> Option<&'a T>) -> Rows<&'a T> {
        let declared = self.table.columns.iter().find(|column| column.name == name);
        let optional = declared.is_some_and(|column| column.optional);
        let array = self.batch.column_by_name(name).ok_or_else(|| BadRows(format!("column {name} is missing")))?;
        if !optional && array.null_count() > 0 {
            return Err(BadRows(format!("column {name} holds NULL")));
        }
        let found = || BadRows(format!("column {name} holds {}", array.data_type()));
        cast(array.as_ref()).ok_or_else(found)
    }

    /// A column that recordings of an older version do not have.
    pub(super) fn added<T>(&self, name: &str, column: impl FnOnce(&Self, &str) -> Rows<&'a T>) -> Rows<Option<&'a T>> {
        if self.batch.column_by_name(name).is_some() { column(self, name).map(Some) } else { Ok(None) }
    }

    /// A column of texts that are copied, each of them: that is counted here.
    pub(super) fn text(&self, name: &str) -> Rows<&'a StringViewArray> {
        let column = self.shared_text(name)?;
        self.budget.take(value_bytes(column))?;
        Ok(column)
    }

    /// A column of texts that are shared, or not kept. The caller counts those that it keeps.
    pub(super) fn shared_text(&self, name: &str) -> Rows<&'a StringViewArray> {
        self.column(name, |array| array.as_string_view_opt())
    }

    pub(super) fn int(&self, name: &str) -> Rows<&'a Int64Array> {
        self.column(name, |array| array.as_primitive_opt::<Int64Type>())
    }

    pub(super) fn number(&self, name: &str) -> Rows<&'a UInt32Array> {
        self.column(name, |array| array.as_primitive_opt::<UInt32Type>())
    }

    pub(super) fn address(&self, name: &str) -> Rows<&'a UInt64Array> {
        self.column(name, |array| array.as_primitive_opt::<UInt64Type>())
    }

    pub(super) fn bool(&self, name: &str) -> Rows<&'a BooleanArray> {
        self.column(name, |array| array.as_boolean_opt())
    }

    /// A column of bytes that are copied.
    pub(super) fn bytes(&self, name: &str) -> Rows<&'a BinaryViewArray> {
        let column = self.column(name, |array| array.as_binary_view_opt())?;
        self.budget.take(value_bytes(column))?;
        Ok(column)
    }

    pub(super) fn id(&self, name: &str) -> Rows<&'a FixedSizeBinaryArray> {
        self.column(name, |array| array.as_fixed_size_binary_opt())
    }

    pub(super) fn list(&self, name: &str) -> Rows<&'a ListArray> {
        self.column(name, |array| array.as_list_opt::<i32>())
    }

    pub(super) fn map(&self, name: &str) -> Rows<&'a MapArray> {
        self.column(name, |array| array.as_map_opt())
    }
}

/// Bytes of all values of a column together.
fn value_bytes<T: ByteViewType>(column: &GenericByteViewArray<T>) -> u64 {
    let is_there = |row: &usize| column.is_valid(*row);
    match column.null_count() {
        0 => column.lengths().map(u64::from).sum(),
        // The lengths of those that are NULL can be anything.
        _ => column.lengths().enumerate().filter(|(row, _)| is_there(row)).map(|(_, length)| u64::from(length)).sum(),
    }
}

/// The value of a column that can be NULL.
pub(super) fn at<T>(array: &impl Array, row: usize, value: impl FnOnce(usize) -> T) -> Option<T> {
    array.is_valid(row).then(|| value(row))
}

/// The text of a column that is NULL where it is empty.
pub(super) fn text_at(array: &StringViewArray, row: usize) -> String {
    at(array, row, |row| array.value(row).to_owned()).unwrap_or_default()
}

/// The unsigned number whose bits the column keeps.
pub(super) fn unsigned_at(array: &Int64Array, row: usize) -> Option<u64> {
    at(array, row, |row| array.value(row).cast_unsigned())
}

/// The trace id, `None` where the column is NULL.
pub(super) fn trace_id_at(array: &FixedSizeBinaryArray, row: usize) -> Rows<Option<TraceId>> {
    at(array, row, |row| TraceId::from_slice(array.value(row)).ok_or_else(|| BadRows("a trace id is zero".into()))).transpose()
}

/// The span id, `None` where the column is NULL.
pub(super) fn span_id_at(array: &FixedSizeBinaryArray, row: usize) -> Rows<Option<SpanId>> {
    at(array, row, |row| SpanId::from_slice(array.value(row)).ok_or_else(|| BadRows("a span id is zero".into()))).transpose()
}

/// The id of a column without NULL.
pub(super) fn required<T>(id: Rows<Option<T>>) -> Rows<T> {
    id?.ok_or_else(|| BadRows("an id is missing".into()))
}

/// The value of one of a fixed set of words.
pub(super) fn word<T>(column: &str, text: &str, find: impl FnOnce(&str) -> Option<T>) -> Rows<T> {
    find(text).ok_or_else(|| BadRows(format!("column {column} holds the unknown word `{text}`")))
}

/// The texts of one list.
pub(super) fn texts_at(budget: &Budget, name: &str, lists: &ListArray, row: usize) -> Rows<Vec<String>> {
    let texts = strings_at(name, lists, row)?;
    budget.take(value_bytes(&texts) + (texts.len() * size_of::<String>()) as u64)?;
    Ok(texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

/// The texts of one list, where they lie. The caller counts those that it keeps.
pub(super) fn strings_at(name: &str, lists: &ListArray, row: usize) -> Rows<StringViewArray> {
    let values = lists.value(row);
    values.as_string_view_opt().cloned().ok_or_else(|| BadRows(format!("column {name} holds {}", values.data_type())))
}

/// The numbers of one list.
pub(super) fn numbers_at(budget: &Budget, name: &str, lists: &ListArray, row: usize) -> Rows<Vec<u32>> {
    let values = lists.value(row);
    let numbers = values.as_primitive_opt::<UInt32Type>().ok_or_else(|| BadRows(format!("column {name} holds {}", values.data_type())))?;
    budget.take(size_of_val(&numbers.values()[..]) as u64)?;
    Ok(numbers.values().to_vec())
}
