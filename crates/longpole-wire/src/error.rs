//! Why bytes were refused: what, and where.

use std::fmt;

/// Why a request cannot be understood. Nothing of it was given to the sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The protobuf encoding is broken, or a limit is exceeded.
    #[error("{problem}, in the {message} message at byte {offset}")]
    Protobuf {
        /// What is wrong.
        problem: Problem,
        /// Name of the innermost message around it.
        message: &'static str,
        /// Offset in the request (after decompression) of the field, or of the byte, that is wrong.
        offset: usize,
    },
    /// The text is not JSON, or a field has a value of another type than the format gives it, or a limit is exceeded.
    #[error("{problem}, at line {line} column {column}")]
    Json {
        /// What is wrong.
        problem: String,
        /// Line, counted from 1.
        line: usize,
        /// Column in bytes, counted from 1; 0 where the line ended before.
        column: usize,
    },
    /// The Thrift encoding is broken, or a limit is exceeded.
    #[error("{problem}, in the thrift {document} at byte {offset}")]
    Thrift {
        /// What is wrong.
        problem: &'static str,
        /// Name of the document: "list of spans".
        document: &'static str,
        /// Offset in the request (after decompression) of the byte that is wrong.
        offset: usize,
    },
}

/// Why a file cannot be read to its end. What stands before the fault was given to the sink.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("failed to read the file")]
    Read(#[source] std::io::Error),
    /// The file ends in the middle of something: it was cut, or is still being written.
    #[error("the file is cut off at byte {offset}: longpole read the {spans} spans before the cut; the rest is missing")]
    Truncated {
        /// How many bytes the file has.
        offset: u64,
        /// Spans that were given to the sink.
        spans: u64,
    },
    /// The file breaks the rules of its format.
    #[error("{problem}, at byte {offset} of the {format} file")]
    Broken {
        /// What is wrong.
        problem: &'static str,
        /// Name of the format.
        format: &'static str,
        /// Offset in the file.
        offset: u64,
    },
    /// A line of the file is none of its format.
    #[error("{problem}, in line {line} at byte {offset} of the file")]
    Line {
        /// Line, counted from 1.
        line: u64,
        /// Offset of its first byte in the file.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A document in the file cannot be understood.
    #[error("{error}, in the document at byte {offset} of the file")]
    Document {
        /// What is wrong with it, and where in it.
        error: DecodeError,
        /// Offset of its first byte in the file.
        offset: u64,
    },
    /// A document, or a line, that would have to be held in memory as a whole is larger than the limit.
    #[error(
        "a document of more than {limit_bytes} bytes begins at byte {offset} of the file; split it, or convert it to one JSON document a line"
    )]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
        /// Offset of its first byte in the file.
        offset: u64,
    },
}

/// What is wrong with a protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The bytes end inside a field, or a length reaches beyond the message around it.
    Truncated,
    /// A variable-length integer of more than 64 bits.
    Varint,
    /// Field number 0, or one beyond 2^29 - 1.
    FieldNumber,
    /// Wire type 6 or 7, which do not exist.
    WireType {
        /// The field.
        field: u32,
    },
    /// A field that OTLP defines arrived in another wire type.
    UnexpectedWireType {
        /// The field.
        field: u32,
    },
    /// A group that is not closed, or closed without being open.
    Group {
        /// The field.
        field: u32,
    },
    /// Attribute values, or unknown groups, inside each other beyond the limit.
    TooDeep {
        /// The limit.
        limit: u32,
    },
    /// More attributes, events, links and nested values in one span, resource or scope than the limit.
    TooMany {
        /// The limit.
        limit: u32,
    },
    /// A field that must be there is not, or not as often as others say.
    Missing {
        /// The field.
        field: u32,
    },
    /// A number that stands for an entry of a table stands for none.
    NoSuch {
        /// Name of the table.
        table: &'static str,
        /// The number.
        index: u64,
    },
    /// The first entry of a table is not the empty one that it must be.
    OtherLayout {
        /// Name of the table.
        table: &'static str,
    },
    /// A field is of another type than in the version of the format that is read.
    OtherVersion {
        /// The field.
        field: u32,
    },
    /// More of something than the limit.
    TooManyOf {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u32,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Truncated => f.write_str("bytes end inside a field"),
            Problem::Varint => f.write_str("integer longer than 64 bits"),
            Problem::FieldNumber => f.write_str("field number out of range"),
            Problem::WireType { field } => write!(f, "unknown wire type of field {field}"),
            Problem::UnexpectedWireType { field } => write!(f, "unexpected wire type of field {field}"),
            Problem::Group { field } => write!(f, "unbalanced group of field {field}"),
            Problem::TooDeep { limit } => write!(f, "values nested deeper than {limit}"),
            Problem::TooMany { limit } => write!(f, "more than {limit} values in one span, resource or scope"),
            Problem::Missing { field } => write!(f, "too few or too many of field {field}"),
            Problem::OtherLayout { table } => {
                write!(f, "{table} does not begin with an empty entry, as in opentelemetry-proto 1.10: another version of the format")
            }
            Problem::OtherVersion { field } => {
                write!(f, "field {field} is of another type than in opentelemetry-proto 1.10: another version of the format")
            }
            Problem::TooManyOf { what, limit } => write!(f, "more than {limit} {what}"),
            Problem::NoSuch { table, index } => write!(f, "no entry {index} in {table}"),
        }
    }
}
