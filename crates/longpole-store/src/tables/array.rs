//! Arrow arrays from iterators of model values: one function per kind of column.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Int64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef};
use longpole_model::{SpanId, TraceId};

/// The element of a list, named as the Parquet specification names it.
pub(super) fn element(kind: DataType) -> FieldRef {
    Arc::new(Field::new("element", kind, false))
}

fn value_field(text: DataType) -> FieldRef {
    Arc::new(Field::new("value", text, false))
}

/// Text → text, with the inner names of the Parquet specification.
pub(super) fn text_map_type(text: DataType) -> DataType {
    let pair = vec![Arc::new(Field::new("key", text.clone(), false)), value_field(text)];
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair.into()), false)), false)
}

pub(super) fn text<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// NULL where the text is empty: for texts whose emptiness means "not said".
pub(super) fn text_unless_empty<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    optional_text(values.map(|text| (!text.is_empty()).then_some(text)))
}

pub(super) fn optional_text<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

pub(super) fn int(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(super) fn optional_int(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

/// Unsigned nanoseconds and counts, bit for bit.
pub(super) fn unsigned(values: impl Iterator<Item = u64>) -> ArrayRef {
    int(values.map(u64::cast_signed))
}

/// Unsigned nanoseconds that a file of others says: more than 292 years are as many, where bit for bit they would be less than none.
pub(super) fn capped(values: impl Iterator<Item = u64>) -> ArrayRef {
    int(values.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
}

pub(super) fn optional_unsigned(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    optional_int(values.map(|value| value.map(u64::cast_signed)))
}

pub(super) fn number(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

pub(super) fn optional_number(values: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(values.collect::<UInt32Array>())
}

pub(super) fn optional_address(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

pub(super) fn bool(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}

pub(super) fn bytes<'a>(values: impl Iterator<Item = &'a [u8]>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(values))
}

/// Ids of `N` bytes.
fn ids<const N: usize>(values: impl Iterator<Item = Option<[u8; N]>>) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::with_capacity(values.size_hint().0, i32::try_from(N).unwrap_or(i32::MAX));
    for value in values {
        match value {
            // The only error is a value of another length, which the type rules out.
            Some(id) => builder.append_value(id).unwrap_or_else(|_| builder.append_null()),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

pub(super) fn trace_id(values: impl Iterator<Item = Option<TraceId>>) -> ArrayRef {
    ids(values.map(|id| id.map(|id| id.bytes())))
}

pub(super) fn span_id(values: impl Iterator<Item = Option<SpanId>>) -> ArrayRef {
    ids(values.map(|id| id.map(|id| id.bytes())))
}

pub(super) fn numbers(lists: impl Iterator<Item = impl Iterator<Item = u32>>) -> ArrayRef {
    let mut builder = ListBuilder::new(UInt32Builder::new()).with_field(element(DataType::UInt32));
    for list in lists {
        builder.append_value(list.map(Some));
    }
    Arc::new(builder.finish())
}

pub(super) fn texts<'a, T: AsRef<str> + 'a>(lists: impl Iterator<Item = &'a [T]>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(element(DataType::Utf8));
    for list in lists {
        builder.append_value(list.iter().map(Some));
    }
    Arc::new(builder.finish())
}

/// Bytes of the texts and lists of columns: reading copies each value.
pub(crate) fn copied_bytes(columns: &[ArrayRef]) -> u64 {
    columns.iter().map(copied_bytes_of).sum()
}

fn copied_bytes_of(column: &ArrayRef) -> u64 {
    let bytes = |offsets: &[i32]| offsets.first().zip(offsets.last()).map_or(0, |(first, last)| i64::from(last - first).cast_unsigned());
    match column.data_type() {
        DataType::Utf8 => bytes(column.as_string::<i32>().value_offsets()),
        DataType::Binary => bytes(column.as_binary::<i32>().value_offsets()),
        DataType::List(element) => {
            let values = column.as_list::<i32>().values();
            let value_bytes = if *element.data_type() == DataType::Utf8 { size_of::<String>() } else { size_of::<u32>() };
            (values.len() * value_bytes) as u64 + copied_bytes_of(values)
        }
        _ => 0,
    }
}

/// What the longest text of columns takes.
pub(crate) fn text_bytes_max(columns: &[ArrayRef]) -> u64 {
    columns.iter().map(text_bytes_max_of).max().unwrap_or(0)
}

fn text_bytes_max_of(column: &ArrayRef) -> u64 {
    match column.data_type() {
        DataType::Utf8 => {
            let offsets = column.as_string::<i32>().value_offsets();
            offsets.windows(2).map(|pair| u64::from((pair[1] - pair[0]).cast_unsigned())).max().unwrap_or(0)
        }
        DataType::List(_) => text_bytes_max_of(column.as_list::<i32>().values()),
        DataType::Map(..) => column.as_map().entries().columns().iter().map(text_bytes_max_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// Appends maps of text to text.
pub(super) struct TextMaps(MapBuilder<StringBuilder, StringBuilder>);

impl TextMaps {
    pub(super) fn new() -> Self {
        let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
        let builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
        TextMaps(builder.with_values_field(value_field(DataType::Utf8)))
    }

    pub(super) fn pair(&mut self, key: &str, value: &str) {
        self.0.keys().append_value(key);
        self.0.values().append_value(value);
    }

    pub(super) fn end_of_row(&mut self) {
        // The only error is a key without its value, which `pair` rules out.
        let appended = self.0.append(true);
        debug_assert!(appended.is_ok());
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}
