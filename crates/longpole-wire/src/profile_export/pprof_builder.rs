//! Builds pprof's `profile.proto`.
//!
//! ```text
//! string_table  "", "samples", "count", "main", …      every text once; index 0 is the empty one
//! mapping 1     file "/usr/bin/app", build id           addresses are those that the file states: it spans all of them
//! function 7    name "main", file "main.c"
//! location 7    mapping 1, address 0x11f9, line { function 7, 12 }    several lines are functions inlined into each other
//! sample        location_id [9, 7], value [2, 1000000], label { "span_id": "00f0…" }    leaf first
//! ```

use std::collections::HashMap;

use longpole_model::stack::LocationKind;
use longpole_model::time::Timestamp;
use longpole_model::{Frame, LocationId, MappingId, Runtime};

use crate::protobuf::{put_integer, put_message, put_set_bytes, put_set_integer};

/// A profile under construction. Its types and the names of labels are texts of the caller.
#[derive(Debug, Default)]
pub struct PprofBuilder<'t> {
    /// Type and unit of each value of a sample.
    pub sample_types: Vec<(&'t str, &'t str)>,
    /// The type to show first; the last one where it is empty.
    pub sample_type_default: &'t str,
    /// What is counted between two samples: type, unit, how many.
    pub period: (&'t str, &'t str, i64),
    /// When it began.
    pub start: Timestamp,
    /// How long it is.
    pub duration_nanos: i64,
    /// For people.
    pub comments: Vec<String>,
    mappings: Vec<Mapping>,
    functions: Vec<(String, String)>,
    function_numbers: HashMap<(String, String), u64>,
    locations: Vec<Location>,
    samples: Vec<PprofSample<'t>>,
}

/// A binary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// Its path.
    pub path: String,
    /// Its build id in hex, empty where it has none.
    pub build_id: String,
    /// Whether functions, files, lines and inlined functions of it are known.
    pub knows: [bool; 4],
}

/// An address, or a function without one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// Number of its mapping; 0 for none.
    pub mapping: u64,
    /// Address as the binary states it; 0 for none.
    pub address: u64,
    /// Function and line, innermost first.
    pub lines: Vec<(u64, u32)>,
}

impl Mapping {
    /// A binary of a recording or a batch.
    pub fn of(mapping: &longpole_model::Mapping, knows: [bool; 4]) -> Mapping {
        let build_id = mapping.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Mapping { path: mapping.path.clone(), build_id, knows }
    }
}

/// Numbers in a profile of the locations of a recording or a batch.
#[derive(Debug, Default)]
pub struct LocationNumbers {
    runtimes: HashMap<Runtime, u64>,
    known: HashMap<LocationId, u64>,
}

impl LocationNumbers {
    /// The number of a location, which has these frames. `mapping` adds a binary to the profile where it is new, and returns its number; 0 for none.
    pub fn of(
        &mut self,
        profile: &mut PprofBuilder<'_>,
        location: &longpole_model::Location,
        frames: &[Frame],
        mapping: impl FnOnce(&mut PprofBuilder<'_>, MappingId) -> u64,
    ) -> u64 {
        if let Some(number) = self.known.get(&location.id) {
            return *number;
        }
        let (mapping, address) = match &location.kind {
            LocationKind::Code { mapping: id, address } => (mapping(profile, *id), address.0),
            LocationKind::Unmapped { address } => (0, address.0),
            LocationKind::Named { runtime, address } => {
                let path = format!("[{}]", runtime.as_str());
                let new = || profile.mapping(Mapping { path, build_id: String::new(), knows: [true, true, true, false] });
                (*self.runtimes.entry(*runtime).or_insert_with(new), address.map_or(0, |address| address.0))
            }
            LocationKind::Cut { .. } => (0, 0),
        };
        let lines = frames.iter().map(|frame| (profile.function(&frame.function, &frame.file), frame.line)).collect();
        let number = profile.location(Location { mapping, address, lines });
        self.known.insert(location.id, number);
        number
    }
}

/// A label of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label<'t> {
    /// What.
    pub key: &'t str,
    /// Its value.
    pub value: LabelValue,
}

/// A value of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelValue {
    /// A text.
    Text(String),
    /// A number without a unit.
    Number(i64),
}

#[derive(Debug)]
struct PprofSample<'t> {
    /// Numbers of locations, leaf first.
    stack: Vec<u64>,
    values: Vec<i64>,
    labels: Vec<Label<'t>>,
}

/// An address range that spans all addresses: readers take them as already adjusted to the file.
const WHOLE_RANGE: u64 = u64::MAX;

impl<'t> PprofBuilder<'t> {
    /// The number of a new mapping.
    pub fn mapping(&mut self, mapping: Mapping) -> u64 {
        self.mappings.push(mapping);
        self.mappings.len() as u64
    }

    /// The number of a function, by name and file.
    pub fn function(&mut self, name: &str, file: &str) -> u64 {
        let next = self.functions.len() as u64 + 1;
        let key = (name.to_owned(), file.to_owned());
        // Ids are not zero.
        let number = *self.function_numbers.entry(key).or_insert(next);
        if number == next {
            self.functions.push((name.to_owned(), file.to_owned()));
        }
        number
    }

    /// The number of a new location, for the stacks of samples.
    pub fn location(&mut self, location: Location) -> u64 {
        self.locations.push(location);
        self.locations.len() as u64
    }

    /// Adds a sample: numbers of locations, leaf first, and a value for each of the types.
    pub fn sample(&mut self, stack: Vec<u64>, values: Vec<i64>, labels: Vec<Label<'t>>) {
        self.samples.push(PprofSample { stack, values, labels });
    }

    /// Its bytes, not compressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut texts = Texts::default();
        let mut out = Vec::new();
        for (name, unit) in &self.sample_types {
            put_message(&mut out, 1, |out| put_type(out, texts.number(name), texts.number(unit)));
        }
        for sample in &self.samples {
            put_message(&mut out, 2, |out| put_sample(out, sample, &mut texts));
        }
        for (number, mapping) in (1u64..).zip(&self.mappings) {
            put_message(&mut out, 3, |out| put_mapping(out, number, mapping, &mut texts));
        }
        for (number, location) in (1u64..).zip(&self.locations) {
            put_message(&mut out, 4, |out| put_location(out, number, location));
        }
        for (number, (name, file)) in (1u64..).zip(&self.functions) {
            let (name, file) = (texts.number(name), texts.number(file));
            put_message(&mut out, 5, |out| {
                put_integer(out, 1, number);
                put_integer(out, 2, name);
                // Without the name of the linker (3) readers take this one as it is; with the same twice, some take its `<…>` out.
                put_integer(out, 4, file);
            });
        }
        let (name, unit, period) = self.period;
        let kind = (texts.number(name), texts.number(unit));
        let comments: Vec<u64> = self.comments.iter().map(|comment| texts.number(comment)).collect();
        let default = texts.number(self.sample_type_default);
        // The first is the empty one.
        for text in &texts.list {
            put_set_bytes(&mut out, 6, text.as_bytes());
        }
        put_integer(&mut out, 9, self.start.unix_nanos().cast_unsigned());
        put_integer(&mut out, 10, self.duration_nanos.cast_unsigned());
        put_message(&mut out, 11, |out| put_type(out, kind.0, kind.1));
        put_integer(&mut out, 12, period.cast_unsigned());
        for comment in comments {
            put_integer(&mut out, 13, comment);
        }
        put_integer(&mut out, 14, default);
        out
    }
}

fn put_type(out: &mut Vec<u8>, name: u64, unit: u64) {
    put_integer(out, 1, name);
    put_integer(out, 2, unit);
}

fn put_sample(out: &mut Vec<u8>, sample: &PprofSample<'_>, texts: &mut Texts) {
    for location in &sample.stack {
        put_integer(out, 1, *location);
    }
    // Zero as well: values differ by their order only.
    for value in &sample.values {
        put_set_integer(out, 2, value.cast_unsigned());
    }
    for Label { key, value } in &sample.labels {
        let key = texts.number(key);
        put_message(out, 3, |out| {
            put_integer(out, 1, key);
            match value {
                LabelValue::Text(text) => put_integer(out, 2, texts.number(text)),
                LabelValue::Number(number) => put_integer(out, 3, number.cast_unsigned()),
            }
        });
    }
}

fn put_mapping(out: &mut Vec<u8>, number: u64, mapping: &Mapping, texts: &mut Texts) {
    put_integer(out, 1, number);
    put_integer(out, 3, WHOLE_RANGE);
    put_integer(out, 5, texts.number(&mapping.path));
    put_integer(out, 6, texts.number(&mapping.build_id));
    for (field, knows) in (7..).zip(mapping.knows) {
        put_integer(out, field, knows.into());
    }
}

fn put_location(out: &mut Vec<u8>, number: u64, location: &Location) {
    put_integer(out, 1, number);
    put_integer(out, 2, location.mapping);
    put_integer(out, 3, location.address);
    for (function, line) in &location.lines {
        put_message(out, 4, |out| {
            put_integer(out, 1, *function);
            put_integer(out, 2, u64::from(*line));
        });
    }
}

/// Every text once, in the order of first use.
struct Texts {
    list: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Default for Texts {
    fn default() -> Self {
        Texts { list: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_small_profile() {
        let mut profile =
            PprofBuilder { sample_types: vec![("samples", "count")], period: ("time", "nanoseconds", 5), ..PprofBuilder::default() };
        (profile.start, profile.duration_nanos) = (Timestamp(1), 2);
        let main = profile.function("main", "");
        let work = profile.function("work", "");
        assert_eq!(profile.function("main", ""), main);
        let [main, work] = [main, work].map(|function| profile.location(Location { lines: vec![(function, 0)], ..Location::default() }));
        profile.sample(vec![work, main], vec![3], Vec::new());
        let texts = ["", "samples", "count", "main", "work", "time", "nanoseconds"];
        let mut expected = vec![
            0x0a, 4, 0x08, 1, 0x10, 2, // sample_type samples count
            0x12, 6, 0x08, 2, 0x08, 1, 0x10, 3, // sample work main 3
            0x22, 6, 0x08, 1, 0x22, 2, 0x08, 1, // location 1
            0x22, 6, 0x08, 2, 0x22, 2, 0x08, 2, // location 2
            0x2a, 4, 0x08, 1, 0x10, 3, // function main
            0x2a, 4, 0x08, 2, 0x10, 4, // function work
        ];
        for text in texts {
            expected.extend([0x32, text.len() as u8]);
            expected.extend(text.as_bytes());
        }
        expected.extend([0x48, 1, 0x50, 2, 0x5a, 4, 0x08, 5, 0x10, 6, 0x60, 5]);
        assert_eq!(profile.encode(), expected);
    }
}
