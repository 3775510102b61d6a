//! pprof's `profile.proto`, written by hand: the fields that a heap profile has.
//!
//! ```text
//! sample_type   alloc_objects/count  alloc_space/bytes  inuse_objects/count  inuse_space/bytes     period: space/bytes
//! sample        location_id [9, 7]  value [2, 300, 1, 150]  label { trace_id }  label { span_id }  label { span_name }
//! location 9    mapping 1, address of the call, line { function 4 }
//! ```

use std::collections::HashMap;

use super::super::recorder::NOT_KEPT;
use super::Interval;
use super::functions::{Resolved, Stacks, call_of, is_of_the_allocator};
use super::rows::{HeapRow, Span};
use crate::encode;

/// Numbers of the fields of a profile.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const TEXT: u32 = 6;
    pub(super) const TIME: u32 = 9;
    pub(super) const DURATION: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_TYPE: u32 = 14;
}

/// The function of samples whose stack had no room.
const NO_STACK: &str = "[stack not kept]";

/// The table of texts; the first is empty.
struct TextTable {
    numbers: HashMap<String, u64>,
    all: Vec<String>,
}

impl TextTable {
    fn new() -> Self {
        TextTable { numbers: HashMap::from([(String::new(), 0)]), all: vec![String::new()] }
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }
}

/// A message with these fields; zero is the default, and left out.
fn message(out: &mut Vec<u8>, number: u32, fields: &[(u32, u64)]) {
    let mut inner = Vec::with_capacity(32);
    for (field, value) in fields.iter().filter(|(_, value)| *value > 0) {
        encode::uint(&mut inner, *field, *value);
    }
    encode::bytes(out, number, &inner);
}

fn packed(out: &mut Vec<u8>, number: u32, values: impl Iterator<Item = u64>) {
    let mut inner = Vec::with_capacity(64);
    values.for_each(|value| encode::varint(&mut inner, value));
    encode::bytes(out, number, &inner);
}

/// The locations and functions of a profile, as they get their numbers.
struct Locations<'a> {
    resolved: &'a Resolved,
    numbers: HashMap<usize, u64>,
    functions: HashMap<String, u64>,
    out: Vec<u8>,
}

impl Locations<'_> {
    fn number(&mut self, address: usize, texts: &mut TextTable) -> u64 {
        if let Some(number) = self.numbers.get(&address) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(address, number);
        let place = self.resolved.places.get(&address);
        let file = place.and_then(|place| place.file);
        let function = place.and_then(|place| place.function.as_deref());
        let function = function.map(|function| self.function(&function.name, &function.symbol, texts));
        self.location(number, file, call_of(address), function);
        number
    }

    /// Not at an address: 0 is none.
    fn not_kept(&mut self, texts: &mut TextTable) -> u64 {
        if let Some(number) = self.numbers.get(&0) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(0, number);
        let function = self.function(NO_STACK, NO_STACK, texts);
        self.location(number, None, 0, Some(function));
        number
    }

    fn location(&mut self, number: u64, file: Option<usize>, address: usize, function: Option<u64>) {
        let mut inner = Vec::with_capacity(32);
        encode::uint(&mut inner, 1, number);
        if let Some(file) = file {
            encode::uint(&mut inner, 2, file as u64 + 1);
        }
        encode::uint(&mut inner, 3, address as u64);
        if let Some(function) = function {
            message(&mut inner, 4, &[(1, function)]);
        }
        encode::bytes(&mut self.out, field::LOCATION, &inner);
    }

    fn function(&mut self, name: &str, symbol: &str, texts: &mut TextTable) -> u64 {
        if let Some(number) = self.functions.get(symbol) {
            return *number;
        }
        let number = self.functions.len() as u64 + 1;
        self.functions.insert(symbol.to_owned(), number);
        let fields = [(1, number), (2, texts.number(name)), (3, texts.number(symbol))];
        message(&mut self.out, field::FUNCTION, &fields);
        number
    }
}

/// A profile.
pub(super) fn profile(
    rows: &[HeapRow],
    stacks: &Stacks,
    resolved: &Resolved,
    interval: Interval,
    rate: u64,
    comment: Option<&str>,
    span_name: impl Fn(u32) -> &'static str,
) -> Vec<u8> {
    let (mut out, mut texts) = (Vec::new(), TextTable::new());
    let types = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];
    for (name, unit) in types {
        message(&mut out, field::SAMPLE_TYPE, &[(1, texts.number(name)), (2, texts.number(unit))]);
    }
    let mut locations = Locations { resolved, numbers: HashMap::new(), functions: HashMap::new(), out: Vec::new() };
    for row in rows {
        let frames = stacks.get(&row.stack).map(Vec::as_slice).unwrap_or_default();
        let mut inner = Vec::with_capacity(128);
        if row.stack == NOT_KEPT {
            packed(&mut inner, 1, std::iter::once(locations.not_kept(&mut texts)));
        } else {
            let callers = frames.iter().skip_while(|address| {
                let function = resolved.places.get(address).and_then(|place| place.function.as_deref());
                function.is_some_and(|function| is_of_the_allocator(&function.name))
            });
            packed(&mut inner, 1, callers.map(|address| locations.number(*address, &mut texts)));
        }
        packed(&mut inner, 2, row.values.iter().map(|value| value.cast_unsigned()));
        for (key, value) in labels(&row.span, &span_name) {
            message(&mut inner, 3, &[(1, texts.number(key)), (2, texts.number(&value))]);
        }
        encode::bytes(&mut out, field::SAMPLE, &inner);
    }
    for (number, file) in (1..).zip(&resolved.files) {
        let mapping = &file.mapping;
        let (path, build_id) = (texts.number(mapping.file_name()), texts.number(&file.build_id));
        let has_functions = resolved.places.values().any(|place| place.file == Some(number as usize - 1) && place.function.is_some());
        let fields = [(2, mapping.start as u64), (3, mapping.end as u64), (4, mapping.offset), (5, path), (6, build_id)];
        let mut all = vec![(1, number)];
        all.extend(fields);
        all.push((7, u64::from(has_functions)));
        message(&mut out, field::MAPPING, &all);
    }
    out.append(&mut locations.out);
    encode::uint(&mut out, field::TIME, nanos(interval.end.saturating_sub(interval.length)));
    encode::uint(&mut out, field::DURATION, nanos(interval.length));
    message(&mut out, field::PERIOD_TYPE, &[(1, texts.number("space")), (2, texts.number("bytes"))]);
    encode::uint(&mut out, field::PERIOD, rate);
    if let Some(comment) = comment {
        encode::uint(&mut out, field::COMMENT, texts.number(comment));
    }
    encode::uint(&mut out, field::DEFAULT_TYPE, texts.number("inuse_space"));
    for text in &texts.all {
        encode::bytes(&mut out, field::TEXT, text.as_bytes());
    }
    out
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The labels that name a span; none without one.
fn labels(span: &Span, span_name: impl Fn(u32) -> &'static str) -> Vec<(&'static str, String)> {
    if span.span_id == 0 {
        return Vec::new();
    }
    // The words lie in memory as the ids do.
    let hex = |word: u64| format!("{:016x}", u64::from_be_bytes(word.to_ne_bytes()));
    let mut labels = vec![("trace_id", hex(span.trace_id[0]) + &hex(span.trace_id[1])), ("span_id", hex(span.span_id))];
    let name = span_name(span.name);
    if !name.is_empty() {
        labels.push(("span_name", name.to_owned()));
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span_context::{ContextWords, SpanContext};

    #[test]
    fn a_span_is_labelled_with_its_ids_as_they_travel() {
        let context = SpanContext::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        let ContextWords { trace_id, span_id, .. } = ContextWords::new(&context);
        let shown = |name| labels(&Span { trace_id, span_id, name }, |name| if name == 1 { "GET /" } else { "" });
        let ids = vec![("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736".to_owned()), ("span_id", "00f067aa0ba902b7".to_owned())];
        assert_eq!(shown(0), ids);
        assert_eq!(shown(1)[2], ("span_name", "GET /".to_owned()));
        assert!(labels(&Span::default(), |_| "").is_empty());
    }
}
