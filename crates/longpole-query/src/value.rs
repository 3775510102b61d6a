//! Plain values, and how they are read out of the engine's columns.

use std::fmt;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::array_value_to_string;

/// One value of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above 2^63.
    UInt(u64),
    /// A floating-point number.
    Float(f64),
    /// A text. Ids and other bytes come as lower-case hex; times and intervals as the engine writes them.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Pairs: a map, or the fields of a struct.
    Map(Vec<(String, Value)>),
}

impl fmt::Display for Value {
    /// As a cell of a table: a text stands as it is, but in quotes inside a list or a map.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::UInt(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
            Value::List(values) => {
                f.write_str("[")?;
                for (number, value) in values.iter().enumerate() {
                    f.write_str(if number > 0 { ", " } else { "" })?;
                    value.inside(f)?;
                }
                f.write_str("]")
            }
            Value::Map(pairs) => {
                f.write_str("{")?;
                for (number, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: ", if number > 0 { ", " } else { "" })?;
                    value.inside(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

impl Value {
    fn inside(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "{text:?}"),
            other => write!(f, "{other}"),
        }
    }
}

/// The word for the type of a column.
pub(crate) fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        kind if kind.is_integer() => "int".into(),
        kind if kind.is_floating() => "float".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "bytes".into(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("list({})", type_name(item.data_type()))
        }
        DataType::Map(_, _) | DataType::Struct(_) => "map".into(),
        DataType::Dictionary(_, value) => type_name(value),
        kind if kind.is_temporal() => "time".into(),
        _ => "text".into(),
    }
}

/// Why a value was not read.
#[derive(Debug)]
pub(crate) enum ValueError {
    /// The values read so far take all the memory there is for them.
    TooLarge,
    /// The engine cannot show it.
    Unreadable(String),
}

impl From<ArrowError> for ValueError {
    fn from(error: ArrowError) -> Self {
        ValueError::Unreadable(error.to_string())
    }
}

/// Takes memory from what is left of it.
fn take(bytes: usize, bytes_left: &mut usize) -> Result<(), ValueError> {
    *bytes_left = bytes_left.checked_sub(bytes).ok_or(ValueError::TooLarge)?;
    Ok(())
}

/// The value of one row of a column. What it takes is taken from `bytes_left`, before it is.
pub(crate) fn value_at(column: &dyn Array, row: usize, bytes_left: &mut usize) -> Result<Value, ValueError> {
    take(size_of::<Value>(), bytes_left)?;
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Int8 => Value::Int(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::Int(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Int(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Int(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Value::Int(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Value::Int(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Value::Int(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => {
            let number = column.as_primitive::<UInt64Type>().value(row);
            i64::try_from(number).map_or(Value::UInt(number), Value::Int)
        }
        DataType::Float16 => Value::Float(column.as_primitive::<Float16Type>().value(row).into()),
        DataType::Float32 => Value::Float(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => text(column.as_string::<i32>().value(row), bytes_left)?,
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row), bytes_left)?,
        DataType::Utf8View => text(column.as_string_view().value(row), bytes_left)?,
        DataType::Binary => hex(column.as_binary::<i32>().value(row), bytes_left)?,
        DataType::LargeBinary => hex(column.as_binary::<i64>().value(row), bytes_left)?,
        DataType::BinaryView => hex(column.as_binary_view().value(row), bytes_left)?,
        DataType::FixedSizeBinary(_) => hex(column.as_fixed_size_binary().value(row), bytes_left)?,
        DataType::List(_) => list(&column.as_list::<i32>().value(row), bytes_left)?,
        DataType::LargeList(_) => list(&column.as_list::<i64>().value(row), bytes_left)?,
        DataType::FixedSizeList(_, _) => list(&column.as_fixed_size_list().value(row), bytes_left)?,
        DataType::Map(_, _) => {
            let pairs = column.as_map().value(row);
            let (keys, values) = (pairs.column(0), pairs.column(1));
            let mut pair = |at| Ok((value_at(keys, at, bytes_left)?.to_string(), value_at(values, at, bytes_left)?));
            Value::Map((0..pairs.len()).map(&mut pair).collect::<Result<_, ValueError>>()?)
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct();
            let mut pair = |(at, name): (usize, &str)| {
                take(name.len(), bytes_left)?;
                Ok((name.to_owned(), value_at(columns.column(at), row, bytes_left)?))
            };
            let names = fields.iter().map(|field| field.name().as_str()).enumerate();
            Value::Map(names.map(&mut pair).collect::<Result<_, ValueError>>()?)
        }
        DataType::Dictionary(_, _) => {
            let dictionary = column.as_any_dictionary();
            value_at(dictionary.values().as_ref(), dictionary.normalized_keys()[row], bytes_left)?
        }
        _ => text(&array_value_to_string(column, row)?, bytes_left)?,
    })
}

fn text(text: &str, bytes_left: &mut usize) -> Result<Value, ValueError> {
    take(text.len(), bytes_left)?;
    Ok(Value::Text(text.to_owned()))
}

fn list(values: &dyn Array, bytes_left: &mut usize) -> Result<Value, ValueError> {
    Ok(Value::List((0..values.len()).map(|at| value_at(values, at, bytes_left)).collect::<Result<_, ValueError>>()?))
}

fn hex(bytes: &[u8], bytes_left: &mut usize) -> Result<Value, ValueError> {
    take(2 * bytes.len(), bytes_left)?;
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    Ok(Value::Text(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()))
}
