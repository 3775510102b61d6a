//! pprof's `profile.proto` in, with addresses, inlined calls, binaries and labels.
//!
//! ```text
//! sample_type   cpu/nanoseconds, samples/count        texts are numbers in a table
//! sample        location_id [9, 7], value [2, 20000000], label { pid 12 }      leaf first
//! location 9    mapping 1, address 0x4f3a0, line { hash, 12 } line { work, 40 }     innermost first
//! ```
//!
//! Tables may stand anywhere, also behind what refers to them; so the bytes are walked over once for each table.

use std::collections::HashMap;

use longpole_model::time::Timestamp;
use longpole_model::{Frame, LocationId, SpanId, SpanLabel, TraceId};

use super::labels::LabelSets;
use super::parts::{
    self, Budget, ENTRY_BYTES, FUNCTION_BYTES, Function, LocationParts, MAPPING_BYTES, MappedAt, Mappings, frames, list, two_numbers,
};
use super::{Numbers, Profile, ProfileSample, ValueType};
use crate::error::{DecodeError, Problem};
use crate::limits::{LABELS_MAX, PROFILE_TYPES_MAX, TYPE_NAME_BYTES_MAX};
use crate::protobuf::{Field, Reader, Value, each, message, number};

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
    pub(super) const LAST: u32 = 15;
}

/// Whether these are the first bytes of a profile: fields that it has, of the types they have, several or nothing else.
pub(super) fn is_one(first_bytes: &[u8]) -> bool {
    let mut reader = Reader::new(first_bytes);
    let mut seen = 0;
    loop {
        let offset = reader.offset();
        match reader.next() {
            Ok(Some(Field { number: 1..=6 | field::PERIOD_TYPE | field::COMMENT, value: Value::Bytes(_), .. })) => seen += 1,
            Ok(Some(Field { number: 7..=field::DURATION | field::PERIOD..=field::LAST, value: Value::Varint(_), .. })) => seen += 1,
            Ok(Some(_)) => return false,
            Ok(None) => return seen > 1,
            // The last one may go on behind what was given.
            Err(DecodeError::Protobuf { problem: Problem::Truncated, .. }) => return seen > 1 && offset > 0,
            Err(_) => return false,
        }
    }
}

/// Tables of a profile by the numbers that it gives.
struct Tables<'a> {
    texts: Vec<&'a [u8]>,
    functions: HashMap<u64, Function>,
    mappings: HashMap<u64, MappedAt>,
    locations: HashMap<u64, LocationId>,
    label_sets: LabelSets,
    /// Numbers of label sets by the numbers of their texts.
    known_sets: HashMap<Vec<(u64, u64)>, u32>,
    binaries: Mappings,
    budget: Budget,
}

pub(super) fn decode(bytes: &[u8], memory_bytes_max: u64) -> Result<Profile, DecodeError> {
    let whole = Reader::new(bytes).named("Profile");
    let mut profile = Profile::default();
    let (mut tables, mut numbers) = (Tables::new(Budget::new(memory_bytes_max)), Numbers::default());
    each(whole, |reader, it| {
        if it.number == field::TEXT {
            tables.budget.hold(ENTRY_BYTES, *reader)?;
            tables.texts.push(message(reader, it, "string_table")?.bytes());
        }
        Ok(())
    })?;
    let (mut period_type, mut default_type) = (None, 0);
    let mut period = 0;
    each(whole, |reader, it| {
        match it.number {
            field::SAMPLE_TYPE => {
                if profile.types.len() >= PROFILE_TYPES_MAX as usize {
                    return Err(reader.error_at(it.offset, Problem::TooManyOf { what: "types of values", limit: PROFILE_TYPES_MAX }));
                }
                profile.types.push(tables.value_type(message(reader, it, "ValueType")?)?);
            }
            field::PERIOD_TYPE => period_type = Some(tables.value_type(message(reader, it, "ValueType")?)?),
            field::MAPPING => tables.mapping(message(reader, it, "Mapping")?, &mut profile)?,
            field::FUNCTION => tables.function(message(reader, it, "Function")?)?,
            field::TIME => profile.start = Some(number(reader, it)?.cast_signed()).filter(|time| *time > 0).map(Timestamp),
            field::DURATION => profile.duration_nanos = u64::try_from(number(reader, it)?.cast_signed()).unwrap_or(0),
            field::PERIOD => period = number(reader, it)?.cast_signed(),
            field::DEFAULT_TYPE => default_type = number(reader, it)?,
            _ => {}
        }
        Ok(())
    })?;
    each(whole, |reader, it| match it.number {
        field::LOCATION => tables.location(message(reader, it, "Location")?, &mut profile, &mut numbers),
        _ => Ok(()),
    })?;
    each(whole, |reader, it| match it.number {
        field::SAMPLE => tables.sample(message(reader, it, "Sample")?, &mut profile, &mut numbers),
        _ => Ok(()),
    })?;
    if profile.types.is_empty() {
        return Err(whole.error_at(0, Problem::Missing { field: field::SAMPLE_TYPE }));
    }
    profile.period = period_type.filter(|_| period > 0).map(|kind| (kind, period));
    if default_type > 0 {
        let name = parts::cut(tables.bytes(default_type, whole)?, TYPE_NAME_BYTES_MAX);
        profile.default_type = profile.types.iter().position(|known| known.name == name);
    }
    profile.stacks = numbers.into_stacks();
    Ok(profile)
}

impl<'a> Tables<'a> {
    fn new(budget: Budget) -> Self {
        let (functions, mappings, locations) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (label_sets, known_sets, binaries) = (LabelSets::default(), HashMap::new(), Mappings::new());
        Tables { texts: Vec::new(), functions, mappings, locations, label_sets, known_sets, binaries, budget }
    }

    fn bytes(&self, index: u64, at: Reader<'_>) -> Result<&'a [u8], DecodeError> {
        let text = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        match text {
            Some(text) => Ok(text),
            // Texts of nothing, in a profile without any.
            None if index == 0 => Ok(b""),
            None => Err(at.error_at(at.offset(), Problem::NoSuch { table: "string_table", index })),
        }
    }

    fn text(&mut self, index: u64, at: Reader<'_>) -> Result<String, DecodeError> {
        self.budget.text(self.bytes(index, at)?, at)
    }

    fn value_type(&mut self, at: Reader<'a>) -> Result<ValueType, DecodeError> {
        let (name, unit) = two_numbers(at)?;
        self.budget.value_type(self.bytes(name, at)?, self.bytes(unit, at)?, at)
    }

    fn function(&mut self, at: Reader<'a>) -> Result<(), DecodeError> {
        let (mut id, mut function) = (0, Function::default());
        each(at, |reader, it| {
            match it.number {
                1 => id = number(reader, it)?,
                2 => function.name = number(reader, it)?,
                3 => function.system_name = number(reader, it)?,
                4 => function.file = number(reader, it)?,
                _ => {}
            }
            Ok(())
        })?;
        self.budget.hold(FUNCTION_BYTES, at)?;
        self.functions.insert(id, function);
        Ok(())
    }

    fn mapping(&mut self, at: Reader<'a>, profile: &mut Profile) -> Result<(), DecodeError> {
        let (mut id, mut start, mut file_offset, mut path, mut build_id) = (0, 0, 0, 0, 0);
        each(at, |reader, it| {
            match it.number {
                1 => id = number(reader, it)?,
                2 => start = number(reader, it)?,
                4 => file_offset = number(reader, it)?,
                5 => path = number(reader, it)?,
                6 => build_id = number(reader, it)?,
                _ => {}
            }
            Ok(())
        })?;
        self.budget.hold(MAPPING_BYTES, at)?;
        let (path, build_id) = (self.text(path, at)?, parts::build_id(self.bytes(build_id, at)?));
        let mapping = parts::mapping(profile, &mut self.binaries, path, build_id);
        self.mappings.insert(id, MappedAt { mapping, start, file_offset });
        Ok(())
    }

    fn location(&mut self, at: Reader<'a>, profile: &mut Profile, numbers: &mut Numbers) -> Result<(), DecodeError> {
        let (mut id, mut mapping, mut place) = (0, 0, LocationParts::new());
        each(at, |reader, it| {
            match it.number {
                1 => id = number(reader, it)?,
                2 => mapping = number(reader, it)?,
                3 => place.address = number(reader, it)?,
                4 if place.has_room() => place.frames.push(self.frame(message(reader, it, "Line")?)?),
                _ => {}
            }
            Ok(())
        })?;
        place.mapped = match mapping {
            0 => None,
            index => Some(*self.mappings.get(&index).ok_or_else(|| at.error_at(at.offset(), Problem::NoSuch { table: "mapping", index }))?),
        };
        let location = parts::location(profile, numbers, &mut self.budget, place, at)?;
        self.locations.insert(id, location);
        Ok(())
    }

    fn frame(&mut self, at: Reader<'a>) -> Result<Frame, DecodeError> {
        let (function, line) = two_numbers(at)?;
        let known = self.functions.get(&function).copied();
        let known = known.ok_or_else(|| at.error_at(at.offset(), Problem::NoSuch { table: "function", index: function }))?;
        Ok(parts::frame(self.text(known.shown(), at)?, self.text(known.file, at)?, line))
    }

    fn sample(&mut self, at: Reader<'a>, profile: &mut Profile, numbers: &mut Numbers) -> Result<(), DecodeError> {
        let (mut locations, mut values, mut labels) = (Vec::new(), Vec::new(), Labels::default());
        each(at, |reader, it| match it.number {
            1 => frames(reader, it, &mut locations),
            2 => list(reader, it, &mut values),
            3 => self.label(message(reader, it, "Label")?, &mut labels),
            _ => Ok(()),
        })?;
        parts::has_room(profile, values.len(), at)?;
        self.budget.sample(locations.len(), values.len(), at)?;
        if values.len() != profile.types.len() {
            return Err(at.error_at(at.offset(), Problem::Missing { field: 2 }));
        }
        let stack: Result<Vec<LocationId>, DecodeError> = locations
            .into_iter()
            .map(|index| {
                let known = self.locations.get(&index).copied();
                known.ok_or_else(|| at.error_at(at.offset(), Problem::NoSuch { table: "location", index }))
            })
            .collect();
        let stack = numbers.stack(profile, &stack?);
        parts::inlined(numbers, at)?;
        let values = values.into_iter().map(u64::cast_signed).collect();
        let (pid, tid) = (labels.pid, labels.tid);
        let set = self.label_set(std::mem::take(&mut labels.others), profile, at)?;
        profile.labels_cut += labels.left_out;
        let name = labels.name.or(labels.endpoint).map(|name| self.budget.text(name, at)).transpose()?;
        let span = SpanLabel { name, ..labels.span() };
        profile.samples.push(ProfileSample { stack, values, pid, tid, span, labels: set, time: None, began: None });
        Ok(())
    }

    /// The number of a set of labels, by the numbers of their texts.
    fn label_set(&mut self, labels: Vec<(u64, u64)>, profile: &mut Profile, at: Reader<'_>) -> Result<u32, DecodeError> {
        if labels.is_empty() {
            return Ok(0);
        }
        if let Some(known) = self.known_sets.get(&labels) {
            return Ok(*known);
        }
        if !self.label_sets.has_room() {
            profile.labels_cut += labels.len() as u64;
            return Ok(0);
        }
        let raw: Result<Vec<_>, DecodeError> =
            labels.iter().map(|(key, text)| Ok((self.bytes(*key, at)?, self.bytes(*text, at)?))).collect();
        let set = self.label_sets.number(profile, &mut self.budget, raw?);
        if let Some(set) = set {
            self.known_sets.insert(labels, set);
        }
        Ok(set.unwrap_or(0))
    }

    /// Labels have no names that all agree on. These are those of Go's OpenTelemetry, Pyroscope's (`profile_id` is the id of a span) and
    /// Datadog's profilers (with blanks, and ids as decimal numbers), and of perf's converters.
    fn label(&self, at: Reader<'a>, labels: &mut Labels<'a>) -> Result<(), DecodeError> {
        let (mut key, mut text, mut value) = (0, 0, 0);
        each(at, |reader, it| {
            match it.number {
                1 => key = number(reader, it)?,
                2 => text = number(reader, it)?,
                3 => value = number(reader, it)?,
                _ => {}
            }
            Ok(())
        })?;
        // Nothing is copied here: a sample may have a million labels, each of the longest text there is.
        let numbers = (key, text);
        let (key, text) = (self.bytes(key, at)?, self.bytes(text, at)?);
        let short = if text.len() <= ID_BYTES_MAX { std::str::from_utf8(text).unwrap_or_default() } else { "" };
        let ids = || if text.is_empty() { SpanId::from_slice(&value.to_be_bytes()).into_iter().collect() } else { span_ids(short) };
        let id = || u32::try_from(value).ok().filter(|value| *value > 0).or_else(|| short.parse().ok()).unwrap_or(0);
        let name = Some(text).filter(|text| !text.is_empty());
        match key {
            b"span_id" | b"span id" | b"otel.span_id" => labels.spans = ids(),
            b"profile_id" => labels.profile = ids(),
            b"local root span id" => labels.roots = ids(),
            b"span_name" | b"otel.span_name" => labels.name = name,
            b"trace endpoint" => labels.endpoint = name,
            b"pid" | b"process_id" => labels.pid = id(),
            b"tid" | b"thread_id" | b"thread id" => labels.tid = id(),
            b"trace_id" | b"trace id" | b"otel.trace_id" => labels.trace = short.parse().ok(),
            // A label with a number, the size of what was allocated as a rule, is no label of a series.
            _ if text.is_empty() => {}
            _ => labels.keep(numbers),
        }
        Ok(())
    }
}

/// Bytes of the longest text that is an id: those of traces have 32 digits.
const ID_BYTES_MAX: usize = 64;

#[derive(Default)]
struct Labels<'a> {
    pid: u32,
    tid: u32,
    trace: Option<TraceId>,
    spans: Vec<SpanId>,
    profile: Vec<SpanId>,
    roots: Vec<SpanId>,
    name: Option<&'a [u8]>,
    endpoint: Option<&'a [u8]>,
    /// The others, by the numbers of their texts.
    others: Vec<(u64, u64)>,
    /// Others that are more than the limit.
    left_out: u64,
}

impl Labels<'_> {
    /// Keeps a label that says nothing of a span, a process or a thread.
    fn keep(&mut self, (key, text): (u64, u64)) {
        match self.others.iter().position(|(known, _)| *known == key) {
            Some(place) => self.others[place].1 = text,
            None if self.others.len() < LABELS_MAX => self.others.push((key, text)),
            None => self.left_out += 1,
        }
    }

    /// The labels of the innermost span; where it has none, of the outermost. Without its name.
    fn span(self) -> SpanLabel {
        let span_ids = [self.spans, self.profile, self.roots].into_iter().find(|ids| !ids.is_empty()).unwrap_or_default();
        SpanLabel { trace_id: self.trace, span_ids, name: None }
    }
}

/// The ids that a text can mean: 16 digits in hex, or a decimal number of 64 bits.
fn span_ids(text: &str) -> Vec<SpanId> {
    let decimal = || SpanId::from_slice(&text.parse::<u64>().ok()?.to_be_bytes());
    let mut ids: Vec<SpanId> = text.parse().ok().into_iter().chain(decimal()).collect();
    ids.dedup();
    ids
}
