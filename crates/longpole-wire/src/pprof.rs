//! Profiles out: pprof's `profile.proto`, as far as a profile without addresses needs it.
//!
//! ```text
//! string_table  "", "samples", "count", "main", …      every text once; index 0 is the empty one
//! function 7    name "main"
//! location 7    line { function 7 }                     one location a function: there are no addresses
//! sample        location_id [9, 7], value [2, 1000000]  leaf first
//! ```

use std::collections::HashMap;

use longpole_model::time::Timestamp;

use crate::protobuf::{put_integer, put_message, put_set_bytes, put_set_integer};

/// A profile under construction.
#[derive(Debug, Default)]
pub struct Profile {
    /// Type and unit of each value of a sample.
    pub sample_types: Vec<(&'static str, &'static str)>,
    /// What is counted between two samples: type, unit, how many.
    pub period: (&'static str, &'static str, i64),
    /// When it began.
    pub start: Timestamp,
    /// How long it is.
    pub duration_nanos: i64,
    functions: Vec<String>,
    numbers: HashMap<String, u64>,
    samples: Vec<(Vec<u64>, Vec<i64>)>,
}

impl Profile {
    /// The number of a function, for the stacks of samples.
    pub fn function(&mut self, name: String) -> u64 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        self.functions.push(name.clone());
        // Ids are not zero.
        let number = self.functions.len() as u64;
        self.numbers.insert(name, number);
        number
    }

    /// Adds a sample: numbers of functions, leaf first, and a value for each of the types.
    pub fn sample(&mut self, stack: Vec<u64>, values: Vec<i64>) {
        self.samples.push((stack, values));
    }

    /// Its bytes, not compressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut texts = Texts::default();
        let mut out = Vec::new();
        for (name, unit) in &self.sample_types {
            put_message(&mut out, 1, |out| put_type(out, texts.number(name), texts.number(unit)));
        }
        for (stack, values) in &self.samples {
            put_message(&mut out, 2, |out| {
                for function in stack {
                    put_integer(out, 1, *function);
                }
                // Zero as well: values are told apart by their order.
                for value in values {
                    put_set_integer(out, 2, value.cast_unsigned());
                }
            });
        }
        for (number, name) in (1u64..).zip(&self.functions) {
            put_message(&mut out, 4, |out| {
                put_integer(out, 1, number);
                put_message(out, 4, |out| put_integer(out, 1, number));
            });
            let name = texts.number(name);
            put_message(&mut out, 5, |out| {
                put_integer(out, 1, number);
                put_integer(out, 2, name);
                put_integer(out, 3, name);
            });
        }
        let (name, unit, period) = self.period;
        let kind = (texts.number(name), texts.number(unit));
        // The first is the empty one.
        for text in &texts.list {
            put_set_bytes(&mut out, 6, text.as_bytes());
        }
        put_integer(&mut out, 9, self.start.unix_nanos().cast_unsigned());
        put_integer(&mut out, 10, self.duration_nanos.cast_unsigned());
        put_message(&mut out, 11, |out| put_type(out, kind.0, kind.1));
        put_integer(&mut out, 12, period.cast_unsigned());
        out
    }
}

fn put_type(out: &mut Vec<u8>, name: u64, unit: u64) {
    put_integer(out, 1, name);
    put_integer(out, 2, unit);
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
        let mut profile = Profile { sample_types: vec![("samples", "count")], period: ("time", "nanoseconds", 5), ..Profile::default() };
        (profile.start, profile.duration_nanos) = (Timestamp(1), 2);
        let main = profile.function("main".to_owned());
        let work = profile.function("work".to_owned());
        assert_eq!(profile.function("main".to_owned()), main);
        profile.sample(vec![work, main], vec![3]);
        let texts = ["", "samples", "count", "main", "work", "time", "nanoseconds"];
        let mut expected = vec![
            0x0a, 4, 0x08, 1, 0x10, 2, // sample_type samples count
            0x12, 6, 0x08, 2, 0x08, 1, 0x10, 3, // sample work main 3
            0x22, 6, 0x08, 1, 0x22, 2, 0x08, 1, // location 1
            0x2a, 6, 0x08, 1, 0x10, 3, 0x18, 3, // function main
            0x22, 6, 0x08, 2, 0x22, 2, 0x08, 2, // location 2
            0x2a, 6, 0x08, 2, 0x10, 4, 0x18, 4, // function work
        ];
        for text in texts {
            expected.extend([0x32, text.len() as u8]);
            expected.extend(text.as_bytes());
        }
        expected.extend([0x48, 1, 0x50, 2, 0x5a, 4, 0x08, 5, 0x10, 6, 0x60, 5]);
        assert_eq!(profile.encode(), expected);
    }
}
