//! Reads pprof with generated code, and resolves its tables: the oracle of what the SDK writes.

use std::time::Duration;

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    memory_start: u64,
    #[prost(uint64, tag = "3")]
    memory_limit: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// A sample with names.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Innermost first.
    pub(crate) functions: Vec<String>,
    pub(crate) values: [i64; 4],
    pub(crate) labels: Vec<(String, String)>,
}

impl Row {
    pub(crate) fn sums(rows: &[Row]) -> [i64; 4] {
        rows.iter().fold([0; 4], |mut sums, row| {
            sums.iter_mut().zip(row.values).for_each(|(sum, value)| *sum += value);
            sums
        })
    }
}

impl Profile {
    /// Decodes it, and checks that its tables refer to each other and its locations lie in their mappings.
    pub(crate) fn decode_all(bytes: &[u8]) -> Profile {
        let profile = Profile::decode(bytes).unwrap();
        assert_eq!(profile.string_table[0], "");
        assert!(profile.period > 0 && profile.time_nanos > 1_700_000_000_000_000_000);
        assert_eq!(profile.value_type(profile.period_type.as_ref().unwrap()), "space/bytes");
        for location in &profile.location {
            if let Some(mapping) = profile.mapping.iter().find(|mapping| mapping.id == location.mapping_id) {
                assert!((mapping.memory_start..mapping.memory_limit).contains(&location.address));
            } else {
                assert_eq!(location.mapping_id, 0);
            }
        }
        let own = std::env::current_exe().unwrap();
        let ours = profile.mapping.iter().find(|mapping| profile.text(mapping.filename) == own.to_str().unwrap()).unwrap();
        assert!(ours.has_functions && profile.text(ours.build_id).len() >= 16);
        profile
    }

    fn text(&self, number: i64) -> &str {
        &self.string_table[number as usize]
    }

    fn value_type(&self, kind: &ValueType) -> String {
        format!("{}/{}", self.text(kind.kind), self.text(kind.unit))
    }

    pub(crate) fn types(&self) -> Vec<String> {
        self.sample_type.iter().map(|kind| self.value_type(kind)).collect()
    }

    pub(crate) fn default_type(&self) -> &str {
        self.text(self.default_sample_type)
    }

    pub(crate) fn comments(&self) -> Vec<&str> {
        self.comment.iter().map(|number| self.text(*number)).collect()
    }

    pub(crate) fn duration(&self) -> Duration {
        Duration::from_nanos(self.duration_nanos.cast_unsigned())
    }

    fn function(&self, location: u64) -> String {
        let location = self.location.iter().find(|known| known.id == location).unwrap();
        let name = |line: &Line| self.text(self.function.iter().find(|known| known.id == line.function_id).unwrap().name).to_owned();
        location.line.first().map_or_else(|| format!("{:#x}", location.address), name)
    }

    /// Rows with a function of the roles of this name in their stack.
    pub(crate) fn rows_of(&self, function: &str) -> Vec<Row> {
        let function = format!("roles::{function}");
        let row = |sample: &Sample| Row {
            functions: sample.location_id.iter().map(|location| self.function(*location)).collect(),
            values: sample.value.clone().try_into().unwrap(),
            labels: sample.label.iter().map(|label| (self.text(label.key).to_owned(), self.text(label.str).to_owned())).collect(),
        };
        self.sample.iter().map(row).filter(|row| row.functions.iter().any(|name| name.ends_with(&function))).collect()
    }
}
