//! The tables of a recording: one per file, each with its columns, how it is built from the model and read back.
//!
//! The SQL names are a promise: tables and columns are only ever added, columns at the end. Names follow OTLP; times are
//! whole nanoseconds, so that every Parquet reader shows them as they are.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub(crate) mod array;
pub(crate) mod attributes;
mod attributes_json;
pub(crate) mod batch;
pub(crate) mod clock_anchors;
pub(crate) mod cpu_slices;
pub(crate) mod current_spans;
pub(crate) mod frames;
pub(crate) mod links;
pub(crate) mod locations;
pub(crate) mod losses;
pub(crate) mod mappings;
pub(crate) mod process_usage;
pub(crate) mod processes;
pub(crate) mod profile_series;
pub(crate) mod profile_values;
pub(crate) mod runs;
pub(crate) mod samples;
pub(crate) mod span_events;
pub(crate) mod span_links;
pub(crate) mod spans;
pub(crate) mod stacks;
pub(crate) mod threads;
pub(crate) mod traces;
pub(crate) mod waits;

/// Every table, in the order of the documentation.
pub(crate) static ALL: [&Table; 17] = [
    &runs::TABLE,
    &spans::TABLE,
    &span_events::TABLE,
    &span_links::TABLE,
    &samples::TABLE,
    &stacks::TABLE,
    &locations::TABLE,
    &frames::TABLE,
    &mappings::TABLE,
    &processes::TABLE,
    &process_usage::TABLE,
    &threads::TABLE,
    &cpu_slices::TABLE,
    &current_spans::TABLE,
    &waits::TABLE,
    &losses::TABLE,
    &clock_anchors::TABLE,
];

/// Tables that recordings of version 1 do not have, then those that version 2 has not either, then those of version 4.
const ADDED: [&str; 3] = ["waits", "process_usage", "current_spans"];

/// A table: its SQL name, what one row is, its columns.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [Column],
    schema: LazyLock<SchemaRef>,
}

impl Table {
    /// `schema` is `|| TABLE.arrow_schema()`: a table cannot refer to itself before it exists.
    pub(crate) const fn new(name: &'static str, about: &'static str, columns: &'static [Column], schema: fn() -> SchemaRef) -> Self {
        Table { name, about, columns, schema: LazyLock::new(schema) }
    }

    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, column.kind.arrow(), column.optional);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// The Arrow schema, made once.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether a recording of an older version may be without it.
    pub(crate) fn may_be_absent(&self) -> bool {
        ADDED.contains(&self.name)
    }

    /// Name of its file.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.parquet", self.name)
    }
}

/// A column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether it can be NULL.
    pub(crate) optional: bool,
    pub(crate) about: &'static str,
}

/// A column that always has a value.
pub(crate) const fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: false, about }
}

/// A column that can be NULL.
pub(crate) const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: true, about }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number with a sign.
    Int,
    /// A time or a number of nanoseconds, or another number that mostly grows from row to row. The model's unsigned
    /// nanoseconds keep their bits; above 2^63 (292 years) they would show as negative.
    Nanos,
    /// A number of things, or a number that names a thing.
    Number,
    /// An address: all 64 bits are used.
    Address,
    /// A text.
    Text,
    /// A truth value.
    Bool,
    /// A trace id.
    TraceId,
    /// A span id.
    SpanId,
    /// Bytes.
    Bytes,
    /// Attributes as strings.
    TextMap,
    /// A list of numbers.
    Numbers,
    /// A list of texts.
    Texts,
}

impl Kind {
    pub(crate) fn arrow(self) -> DataType {
        match self {
            Kind::Int | Kind::Nanos => DataType::Int64,
            Kind::Number => DataType::UInt32,
            Kind::Address => DataType::UInt64,
            Kind::Text => DataType::Utf8,
            Kind::Bool => DataType::Boolean,
            Kind::TraceId => DataType::FixedSizeBinary(16),
            Kind::SpanId => DataType::FixedSizeBinary(8),
            Kind::Bytes => DataType::Binary,
            Kind::TextMap => array::text_map_type(DataType::Utf8),
            Kind::Numbers => DataType::List(array::element(DataType::UInt32)),
            Kind::Texts => DataType::List(array::element(DataType::Utf8)),
        }
    }

    /// The type that it is read as: a text is where it lies, and not another copy of it.
    pub(crate) fn arrow_view(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8View,
            Kind::Bytes => DataType::BinaryView,
            Kind::TextMap => array::text_map_type(DataType::Utf8View),
            Kind::Texts => DataType::List(array::element(DataType::Utf8View)),
            Kind::Int | Kind::Nanos | Kind::Number | Kind::Address | Kind::Bool | Kind::TraceId | Kind::SpanId | Kind::Numbers => {
                self.arrow()
            }
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Kind::Int | Kind::Nanos => "BIGINT",
            Kind::Number => "INT UNSIGNED",
            Kind::Address => "BIGINT UNSIGNED",
            Kind::Text => "VARCHAR",
            Kind::Bool => "BOOLEAN",
            Kind::TraceId => "BINARY(16)",
            Kind::SpanId => "BINARY(8)",
            Kind::Bytes => "BINARY",
            Kind::TextMap => "MAP(VARCHAR, VARCHAR)",
            Kind::Numbers => "INT UNSIGNED[]",
            Kind::Texts => "VARCHAR[]",
        }
    }
}

/// A table, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDocumentation {
    /// Its SQL name.
    pub name: &'static str,
    /// What one row is.
    pub about: &'static str,
    /// Its columns.
    pub columns: Vec<ColumnDocumentation>,
}

/// A column, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDocumentation {
    /// Its SQL name.
    pub name: &'static str,
    /// Its SQL type.
    pub sql_type: &'static str,
    /// Whether it can be NULL.
    pub nullable: bool,
    /// What it holds.
    pub about: &'static str,
}

/// Every table with its columns: where `docs/formats/sql-schema.md` comes from.
pub fn documentation() -> Vec<TableDocumentation> {
    let column = |it: &Column| ColumnDocumentation { name: it.name, sql_type: it.kind.sql(), nullable: it.optional, about: it.about };
    ALL.iter()
        .map(|table| TableDocumentation { name: table.name, about: table.about, columns: table.columns.iter().map(column).collect() })
        .collect()
}
