//! OpenTelemetry's profiles signal in: `ProfilesData` of `opentelemetry.proto.profiles.v1development`, as of opentelemetry-proto 1.10, which
//! is also the body of a request. One message, or several, each behind four bytes of length, as the Collector's file exporter writes them.
//!
//! ```text
//! dictionary        string_table ["", "cpu", …], stack_table [{}, [2, 1]], link_table [{}, {trace id, span id}], …
//! resource_profiles ─► scope_profiles ─► profiles ─► samples: stack 1, link 1, values [10000000], timestamps [1700000000…]
//! ```
//!
//! Everything in a profile is a number of an entry of the dictionary, whose first entries are empty and stand for nothing. The package has
//! no number of its version; a dictionary that is of another layout shows by that.

use std::collections::HashMap;
use std::collections::btree_map::Entry;

use longpole_model::stack::Runtime;
use longpole_model::time::Timestamp;
use longpole_model::{Frame, LocationId, SpanId, SpanLabel, TraceId};

use super::labels::{LabelSets, RawLabel};
use super::parts::{self, Budget, ENTRY_BYTES, Function, LocationParts, MappedAt, Mappings, frames, list, two_numbers};
use super::{Numbers, Profile, ProfileSample, ValueType};
use crate::error::{DecodeError, Problem};
use crate::limits::{LABELS_MAX, PROFILE_TYPES_MAX};
use crate::protobuf::{Field, Reader, Value, each, message, number, unexpected};

/// Bytes of length before a message, where there are several.
const LENGTH_BYTES: usize = 4;

/// Largest id of a field of a dictionary.
const TABLES: u32 = 7;

/// Digits of the largest number of a process or thread, with room for zeroes before it.
const ID_BYTES_MAX: usize = 64;

/// Bytes of the two numbers of a `ValueType`, at most; a trace id, which is at the same place of a span, has 16.
const VALUE_TYPE_BYTES_MAX: usize = 12;

/// Whether these are the first bytes of profiles. A request of spans has the same shape down to its spans.
pub(super) fn is_one(first_bytes: &[u8]) -> bool {
    is_message(first_bytes) || (first_bytes.first() == Some(&0) && first_bytes.get(LENGTH_BYTES..).is_some_and(is_message))
}

fn is_message(first_bytes: &[u8]) -> bool {
    let mut has_dictionary = false;
    for part in Parts(first_bytes) {
        match part {
            // A dictionary: tables, and nothing else. The samples of pprof are such fields too, but they are several, or other fields follow.
            CutField { number: 2, content: Some(tables) } if !has_dictionary => {
                let mut parts = Parts(tables).peekable();
                if parts.peek().is_none() || !parts.all(|part| part.number <= TABLES && part.content.is_some()) {
                    return false;
                }
                has_dictionary = true;
            }
            CutField { number: 1, content: Some(resource) } => {
                for scope in Parts(resource).filter(|part| part.number == 2) {
                    for item in Parts(scope.content.unwrap_or_default()).filter(|part| part.number == 2) {
                        if let Some(is_profile) = item.content.and_then(is_profile) {
                            return is_profile;
                        }
                    }
                }
            }
            _ => return false,
        }
    }
    // Resources without anything: there are no more such profiles than such requests of spans.
    has_dictionary
}

/// Whether this is a profile and no span; `None` where it does not show.
fn is_profile(item: &[u8]) -> Option<bool> {
    Parts(item).find_map(|part| match part {
        CutField { number: 1, content: Some(content) } => Some(content.len() <= VALUE_TYPE_BYTES_MAX),
        // Times of a profile, where a span has its state.
        CutField { number: 3, content } => Some(content.is_none()),
        _ => None,
    })
}

/// A field, of a message that may be cut off.
struct CutField<'a> {
    number: u32,
    /// The bytes that are there of it, where its length is given.
    content: Option<&'a [u8]>,
}

/// The fields of a message as far as they are there.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = CutField<'a>;

    fn next(&mut self) -> Option<CutField<'a>> {
        let mut reader = Reader::new(self.0);
        let key = reader.next_packed().ok()??;
        let number = u32::try_from(key >> 3).ok()?;
        if key & 7 != 2 {
            let mut whole = Reader::new(self.0);
            let field = whole.next().ok()??;
            self.0 = whole.bytes();
            return Some(CutField { number: field.number, content: None });
        }
        let length = usize::try_from(reader.next_packed().ok()??).ok()?;
        let rest = reader.bytes();
        let content = &rest[..length.min(rest.len())];
        self.0 = rest.get(length..).unwrap_or_default();
        Some(CutField { number, content: Some(content) })
    }
}

/// Reads all messages of a file.
pub(super) fn decode(bytes: &[u8], memory_bytes_max: u64) -> Result<Profile, DecodeError> {
    let budget = Budget::new(memory_bytes_max);
    let (profile, numbers, label_sets) = (Profile::default(), Numbers::default(), LabelSets::default());
    let mut out = Out { profile, numbers, label_sets, budget };
    if is_message(bytes) || bytes.first() != Some(&0) {
        out.message(Reader::new(bytes).named("ProfilesData")).map_err(of_version)?;
    } else {
        let mut rest = bytes;
        while !rest.is_empty() {
            let message = rest.split_first_chunk::<LENGTH_BYTES>().and_then(|(length, rest)| {
                let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
                rest.split_at_checked(length)
            });
            let cut = || Reader::new(bytes).named("length before ProfilesData").error_at(bytes.len() - rest.len(), Problem::Truncated);
            let (message, behind) = message.ok_or_else(cut)?;
            out.message(Reader::new(message).named("ProfilesData")).map_err(of_version)?;
            rest = behind;
        }
    }
    if out.profile.types.is_empty() {
        return Err(Reader::new(bytes).named("ProfilesData").error_at(0, Problem::Missing { field: 1 }));
    }
    // Types may have come behind the samples.
    parts::has_values(out.profile.samples.len(), out.profile.types.len(), Reader::new(bytes).named("ProfilesData"))?;
    // What is counted in one profile is not there in the samples of the others.
    for sample in &mut out.profile.samples {
        sample.values.resize(out.profile.types.len(), 0);
    }
    out.profile.stacks = out.numbers.into_stacks();
    Ok(out.profile)
}

/// Numbers of fields were used again for other things until the signal was in its Alpha.
fn of_version(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Protobuf { problem: Problem::UnexpectedWireType { field }, message, offset } => {
            DecodeError::Protobuf { problem: Problem::OtherVersion { field }, message, offset }
        }
        other => other,
    }
}

/// What all messages together come to.
struct Out {
    profile: Profile,
    numbers: Numbers,
    label_sets: LabelSets,
    budget: Budget,
}

/// The dictionary of a message. Locations get their numbers in the order in which they are used.
struct Dictionary<'a> {
    texts: Vec<&'a [u8]>,
    functions: Vec<Function>,
    mappings: Vec<Reader<'a>>,
    locations: Vec<Reader<'a>>,
    links: Vec<Reader<'a>>,
    attributes: Vec<Attribute<'a>>,
    stacks: Vec<Reader<'a>>,
    known_mappings: HashMap<u64, MappedAt>,
    known_locations: HashMap<u64, LocationId>,
    known_stacks: HashMap<u64, u32>,
    /// Label sets of the profile under way, by the attributes of their samples.
    known_sets: HashMap<Box<[u64]>, u32>,
    binaries: Mappings,
}

/// A pair of the dictionary.
#[derive(Clone, Default)]
struct Attribute<'a> {
    key: &'a [u8],
    text: Option<&'a [u8]>,
    number: Option<i64>,
}

impl Out {
    fn message<'a>(&mut self, whole: Reader<'a>) -> Result<(), DecodeError> {
        let mut dictionary = None;
        each(whole, |reader, it| {
            if it.number == 2 {
                dictionary = Some(message(reader, it, "ProfilesDictionary")?);
            }
            Ok(())
        })?;
        let mut tables = match dictionary {
            Some(dictionary) => Dictionary::read(dictionary, &mut self.budget)?,
            None => Dictionary::empty(),
        };
        each(whole, |reader, it| match it.number {
            1 => self.resource(message(reader, it, "ResourceProfiles")?, &mut tables),
            _ => Ok(()),
        })
    }

    fn resource<'a>(&mut self, at: Reader<'a>, tables: &mut Dictionary<'a>) -> Result<(), DecodeError> {
        let (mut said, mut labels) = (Said::default(), TextLabels::default());
        each(at, |reader, it| match it.number {
            1 => each(message(reader, it, "Resource")?, |reader, it| {
                if it.number == 1 {
                    let attribute = tables.key_value(message(reader, it, "KeyValue")?)?;
                    said.take(&attribute);
                    labels.take(&attribute);
                }
                Ok(())
            }),
            _ => Ok(()),
        })?;
        each(at, |reader, it| match it.number {
            2 => each(message(reader, it, "ScopeProfiles")?, |reader, it| match it.number {
                2 => self.profile(message(reader, it, "Profile")?, said, &labels, tables),
                _ => Ok(()),
            }),
            _ => Ok(()),
        })
    }

    fn profile<'a>(
        &mut self,
        at: Reader<'a>,
        mut said: Said<'a>,
        of_resource: &TextLabels<'a>,
        tables: &mut Dictionary<'a>,
    ) -> Result<(), DecodeError> {
        let mut labels = of_resource.clone();
        let (mut kind, mut period_type, mut period, mut start, mut duration) = (ValueType::default(), ValueType::default(), 0, 0, 0);
        each(at, |reader, it| {
            match it.number {
                1 => kind = tables.value_type(message(reader, it, "ValueType")?, &mut self.budget)?,
                3 => start = fixed(reader, it)?,
                4 => duration = number(reader, it)?,
                5 => period_type = tables.value_type(message(reader, it, "ValueType")?, &mut self.budget)?,
                6 => period = number(reader, it)?.cast_signed(),
                11 => {
                    let mut attributes = Vec::new();
                    list(reader, it, &mut attributes)?;
                    said.take_all(&attributes, tables, at)?;
                    labels.take_all(&attributes, tables, at)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        let period = (period > 0).then_some((period_type, period));
        let place = self.place_of(kind, period);
        if place >= PROFILE_TYPES_MAX as usize {
            return Err(at.error_at(at.offset(), Problem::TooManyOf { what: "types of values", limit: PROFILE_TYPES_MAX }));
        }
        if start > 0 {
            let began = Timestamp::from_unix_nanos(start);
            let ends = began.plus_nanos(i64::try_from(duration).unwrap_or(i64::MAX));
            let profile = &mut self.profile;
            let (first, last) = match profile.start {
                Some(known) => {
                    let known_end = known.plus_nanos(i64::try_from(profile.duration_nanos).unwrap_or(i64::MAX));
                    (known.min(began), known_end.max(ends))
                }
                None => (began, ends),
            };
            (profile.start, profile.duration_nanos) = (Some(first), last.nanos_since(first).unsigned_abs());
        }
        // Sets of one profile share its labels, and those of another have others. To clear a map takes as long as it has room: a large profile
        // would slow down all small ones behind it.
        tables.known_sets = HashMap::new();
        let of = Owner { place, said, labels: &labels, began: (start > 0).then(|| Timestamp::from_unix_nanos(start)) };
        each(at, |reader, it| match it.number {
            2 => self.sample(message(reader, it, "Sample")?, &of, tables),
            _ => Ok(()),
        })
    }

    /// The place of a type; one with another period is another one.
    fn place_of(&mut self, kind: ValueType, period: Option<(ValueType, i64)>) -> usize {
        let known = self.profile.types.iter().zip(&self.profile.periods).position(|(known, of)| *known == kind && *of == period);
        known.unwrap_or_else(|| {
            if self.profile.types.is_empty() {
                self.profile.period = period.clone();
            }
            self.profile.types.push(kind);
            self.profile.periods.push(period);
            self.profile.types.len() - 1
        })
    }

    fn sample<'a>(&mut self, at: Reader<'a>, of: &Owner<'_, 'a>, tables: &mut Dictionary<'a>) -> Result<(), DecodeError> {
        let (mut stack, mut link, mut attributes, mut values, mut times) = (0, 0, Vec::new(), Vec::new(), Vec::new());
        each(at, |reader, it| {
            match it.number {
                1 => stack = number(reader, it)?,
                2 => list(reader, it, &mut attributes)?,
                3 => link = number(reader, it)?,
                4 => list(reader, it, &mut values)?,
                5 => fixed_list(reader, it, &mut times)?,
                _ => {}
            }
            Ok(())
        })?;
        if values.is_empty() && times.is_empty() || !values.is_empty() && !times.is_empty() && values.len() != times.len() {
            return Err(at.error_at(at.offset(), Problem::Missing { field: 4 }));
        }
        let (mut said, place) = (of.said, of.place);
        said.take_all(&attributes, tables, at)?;
        said.tell(&mut self.profile, &mut self.budget, at)?;
        let span = tables.link(link, at)?;
        let labels = self.label_set(&attributes, of, tables, at)?;
        let stack = self.stack(stack, at, tables)?;
        // One for each moment; without any, one for all.
        for observation in 0..values.len().max(times.len()) {
            // In the end each has a value of each type.
            parts::has_room(&self.profile, self.profile.types.len(), at)?;
            self.budget.sample(0, self.profile.types.len(), at)?;
            let mut counted = vec![0; place + 1];
            counted[place] = values.get(observation).map_or(1, |value| value.cast_signed());
            let time = times.get(observation).map(|time| Timestamp::from_unix_nanos(*time));
            let sample =
                ProfileSample { stack, values: counted, pid: said.pid, tid: said.tid, span: span.clone(), labels, time, began: of.began };
            self.profile.samples.push(sample);
        }
        Ok(())
    }

    /// The number of the labels that a sample with these attributes has, by its own words and those of its profile.
    fn label_set<'a>(
        &mut self,
        attributes: &[u64],
        of: &Owner<'_, 'a>,
        tables: &mut Dictionary<'a>,
        at: Reader<'_>,
    ) -> Result<u32, DecodeError> {
        if let Some(known) = tables.known_sets.get(attributes) {
            return Ok(*known);
        }
        let mut labels = if self.label_sets.has_room() { of.labels.clone() } else { TextLabels::default() };
        labels.take_all(attributes, tables, at)?;
        self.profile.labels_cut += labels.left_out;
        let set = self.label_sets.number(&mut self.profile, &mut self.budget, labels.list);
        if let Some(set) = set.filter(|_| attributes.len() <= LABELS_MAX) {
            tables.known_sets.insert(attributes.into(), set);
        }
        Ok(set.unwrap_or(0))
    }

    fn stack(&mut self, index: u64, at: Reader<'_>, tables: &mut Dictionary<'_>) -> Result<u32, DecodeError> {
        if let Some(known) = tables.known_stacks.get(&index) {
            return Ok(*known);
        }
        let stack = *entry(&tables.stacks, "stack_table", index, at)?;
        let mut indices = Vec::new();
        each(stack, |reader, it| match it.number {
            1 => frames(reader, it, &mut indices),
            _ => Ok(()),
        })?;
        let locations: Result<Vec<LocationId>, DecodeError> =
            indices.into_iter().map(|index| tables.location(index, stack, self)).collect();
        let locations = locations?;
        self.budget.sample(locations.len(), 0, stack)?;
        let number = self.numbers.stack(&mut self.profile, &locations);
        parts::inlined(&self.numbers, at)?;
        tables.known_stacks.insert(index, number);
        Ok(number)
    }
}

/// Whose a sample is, by its profile and its resource.
struct Owner<'l, 'a> {
    /// The place of the profile's type.
    place: usize,
    said: Said<'a>,
    labels: &'l TextLabels<'a>,
    /// When the profile began.
    began: Option<Timestamp>,
}

/// Texts that are labels: those of attributes that say nothing of the process or thread. The name of the program is both.
#[derive(Clone, Default)]
struct TextLabels<'a> {
    list: Vec<RawLabel<'a>>,
    left_out: u64,
}

impl<'a> TextLabels<'a> {
    fn take(&mut self, attribute: &Attribute<'a>) {
        let (key, Some(text)) = (attribute.key, attribute.text) else { return };
        if matches!(key, b"process.pid" | b"thread.id" | b"thread.name") {
            return;
        }
        // Those of the resource, and of the profile or sample.
        if self.list.len() < 2 * LABELS_MAX {
            self.list.push((key, text));
        } else {
            self.left_out += 1;
        }
    }

    fn take_all(&mut self, attributes: &[u64], tables: &Dictionary<'a>, at: Reader<'_>) -> Result<(), DecodeError> {
        for index in attributes {
            self.take(entry(&tables.attributes, "attribute_table", *index, at)?);
        }
        Ok(())
    }
}

/// The process and thread of a sample.
#[derive(Clone, Copy, Default)]
struct Said<'a> {
    pid: u32,
    tid: u32,
    program: &'a [u8],
    thread: &'a [u8],
}

impl<'a> Said<'a> {
    fn take(&mut self, attribute: &Attribute<'a>) {
        let text = || attribute.text.unwrap_or_default();
        match attribute.key {
            b"process.pid" => self.pid = attribute.id(),
            b"thread.id" => self.tid = attribute.id(),
            b"process.executable.name" => self.program = text(),
            b"thread.name" => self.thread = text(),
            _ => {}
        }
    }

    fn take_all(&mut self, attributes: &[u64], tables: &Dictionary<'a>, at: Reader<'_>) -> Result<(), DecodeError> {
        for index in attributes {
            self.take(entry(&tables.attributes, "attribute_table", *index, at)?);
        }
        Ok(())
    }

    /// Names, where they come for the first time.
    fn tell(&self, profile: &mut Profile, names: &mut Budget, at: Reader<'_>) -> Result<(), DecodeError> {
        let thread = (self.tid > 0).then_some((self.tid, self.thread));
        for (tid, name) in [(0, self.program)].into_iter().chain(thread) {
            if self.pid > 0
                && !name.is_empty()
                && let Entry::Vacant(entry) = profile.names.entry((self.pid, tid))
            {
                entry.insert(names.text(name, at)?);
            }
        }
        Ok(())
    }
}

impl Attribute<'_> {
    /// The number of a process or thread; 0 where it is none.
    fn id(&self) -> u32 {
        let text = || std::str::from_utf8(self.text.filter(|text| text.len() <= ID_BYTES_MAX)?).ok()?.parse().ok();
        self.number.or_else(text).and_then(|id: i64| u32::try_from(id).ok()).unwrap_or(0)
    }
}

/// The entry of a table that a number stands for.
fn entry<'t, T>(table: &'t [T], name: &'static str, index: u64, at: Reader<'_>) -> Result<&'t T, DecodeError> {
    let found = usize::try_from(index).ok().and_then(|index| table.get(index));
    found.ok_or_else(|| at.error_at(at.offset(), Problem::NoSuch { table: name, index }))
}

impl<'a> Dictionary<'a> {
    /// What a message without a dictionary refers to: nothing.
    fn empty() -> Dictionary<'a> {
        Dictionary {
            texts: vec![b""],
            functions: vec![Function::default()],
            mappings: vec![Reader::new(b"")],
            locations: vec![Reader::new(b"")],
            links: vec![Reader::new(b"")],
            attributes: vec![Attribute::default()],
            stacks: vec![Reader::new(b"")],
            known_mappings: HashMap::new(),
            known_locations: HashMap::new(),
            known_stacks: HashMap::new(),
            known_sets: HashMap::new(),
            binaries: Mappings::new(),
        }
    }

    fn read(dictionary: Reader<'a>, budget: &mut Budget) -> Result<Dictionary<'a>, DecodeError> {
        let mut tables = Dictionary {
            texts: Vec::new(),
            functions: Vec::new(),
            mappings: Vec::new(),
            locations: Vec::new(),
            links: Vec::new(),
            attributes: Vec::new(),
            stacks: Vec::new(),
            known_mappings: HashMap::new(),
            known_locations: HashMap::new(),
            known_stacks: HashMap::new(),
            known_sets: HashMap::new(),
            binaries: Mappings::new(),
        };
        let mut attributes = Vec::new();
        each(dictionary, |reader, it| {
            budget.hold(ENTRY_BYTES, dictionary)?;
            match it.number {
                1 => tables.mappings.push(message(reader, it, "Mapping")?),
                2 => tables.locations.push(message(reader, it, "Location")?),
                3 => tables.functions.push(function(message(reader, it, "Function")?)?),
                4 => tables.links.push(message(reader, it, "Link")?),
                5 => tables.texts.push(message(reader, it, "string_table")?.bytes()),
                6 => attributes.push(message(reader, it, "KeyValueAndUnit")?),
                7 => tables.stacks.push(message(reader, it, "Stack")?),
                _ => {}
            }
            Ok(())
        })?;
        for attribute in attributes {
            let attribute = tables.attribute(attribute)?;
            tables.attributes.push(attribute);
        }
        tables.begin_with_nothing(dictionary)?;
        Ok(tables)
    }

    /// The first entry of each table stands for nothing. It may be left out of a table that nobody refers to; where another one is, the
    /// dictionary is of another layout.
    fn begin_with_nothing(&mut self, dictionary: Reader<'a>) -> Result<(), DecodeError> {
        let firsts = [
            ("string_table", self.texts.first().is_none_or(|text| text.is_empty())),
            ("mapping_table", self.mappings.first().is_none_or(|it| is_nothing(*it))),
            ("location_table", self.locations.first().is_none_or(|it| is_nothing(*it))),
            ("link_table", self.links.first().is_none_or(|it| is_nothing(*it))),
            ("stack_table", self.stacks.first().is_none_or(|it| is_nothing(*it))),
        ];
        match firsts.iter().find(|(_, is_nothing)| !is_nothing) {
            Some((table, _)) => Err(dictionary.error_at(dictionary.offset(), Problem::OtherLayout { table })),
            None => {
                let Dictionary { texts, mappings, locations, links, stacks, functions, attributes, .. } = self;
                texts.is_empty().then(|| texts.push(b""));
                for table in [mappings, locations, links, stacks] {
                    table.is_empty().then(|| table.push(Reader::new(b"")));
                }
                functions.is_empty().then(|| functions.push(Function::default()));
                attributes.is_empty().then(|| attributes.push(Attribute::default()));
                Ok(())
            }
        }
    }

    fn bytes(&self, index: u64, at: Reader<'_>) -> Result<&'a [u8], DecodeError> {
        entry(&self.texts, "string_table", index, at).copied()
    }

    fn value_type(&self, at: Reader<'_>, names: &mut Budget) -> Result<ValueType, DecodeError> {
        let (name, unit) = two_numbers(at)?;
        names.value_type(self.bytes(name, at)?, self.bytes(unit, at)?, at)
    }

    /// A `KeyValueAndUnit` of the dictionary.
    fn attribute(&self, at: Reader<'a>) -> Result<Attribute<'a>, DecodeError> {
        let mut attribute = Attribute::default();
        each(at, |reader, it| {
            match it.number {
                1 => attribute.key = self.bytes(number(reader, it)?, at)?,
                2 => self.any_value(message(reader, it, "AnyValue")?, &mut attribute)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(attribute)
    }

    /// A `KeyValue` of a resource, whose key may be in the dictionary.
    fn key_value<'b>(&self, at: Reader<'b>) -> Result<Attribute<'b>, DecodeError>
    where
        'a: 'b,
    {
        let mut attribute = Attribute::default();
        each(at, |reader, it| {
            match it.number {
                1 => attribute.key = message(reader, it, "KeyValue")?.bytes(),
                2 => self.any_value(message(reader, it, "AnyValue")?, &mut attribute)?,
                3 => attribute.key = self.bytes(number(reader, it)?, at)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(attribute)
    }

    fn any_value<'b>(&self, at: Reader<'b>, into: &mut Attribute<'b>) -> Result<(), DecodeError>
    where
        'a: 'b,
    {
        each(at, |reader, it| {
            match it.number {
                1 => into.text = Some(message(reader, it, "AnyValue")?.bytes()),
                3 => into.number = Some(number(reader, it)?.cast_signed()),
                8 => into.text = Some(self.bytes(number(reader, it)?, at)?),
                _ => {}
            }
            Ok(())
        })
    }

    /// The text of an attribute of this key, among some.
    fn said(&self, indices: &[u64], key: &[u8], at: Reader<'_>) -> Result<Option<&'a [u8]>, DecodeError> {
        for index in indices {
            let attribute = entry(&self.attributes, "attribute_table", *index, at)?;
            if attribute.key == key {
                return Ok(attribute.text);
            }
        }
        Ok(None)
    }

    fn link(&self, index: u64, at: Reader<'_>) -> Result<SpanLabel, DecodeError> {
        let link = *entry(&self.links, "link_table", index, at)?;
        let mut label = SpanLabel::default();
        each(link, |reader, it| {
            match it.number {
                1 => label.trace_id = TraceId::from_slice(message(reader, it, "Link")?.bytes()),
                2 => label.span_ids = SpanId::from_slice(message(reader, it, "Link")?.bytes()).into_iter().collect(),
                _ => {}
            }
            Ok(())
        })?;
        Ok(label)
    }

    fn mapping(&mut self, index: u64, at: Reader<'_>, out: &mut Out) -> Result<MappedAt, DecodeError> {
        if let Some(known) = self.known_mappings.get(&index) {
            return Ok(*known);
        }
        let found = *entry(&self.mappings, "mapping_table", index, at)?;
        let (mut start, mut file_offset, mut path, mut attributes) = (0, 0, 0, Vec::new());
        each(found, |reader, it| {
            match it.number {
                1 => start = number(reader, it)?,
                3 => file_offset = number(reader, it)?,
                4 => path = number(reader, it)?,
                5 => list(reader, it, &mut attributes)?,
                _ => {}
            }
            Ok(())
        })?;
        let build_id = self.said(&attributes, b"process.executable.build_id.gnu", found)?;
        let build_id = parts::build_id(build_id.unwrap_or_default());
        let path = out.budget.text(self.bytes(path, found)?, at)?;
        let mapping = parts::mapping(&mut out.profile, &mut self.binaries, path, build_id);
        let mapped = MappedAt { mapping, start, file_offset };
        self.known_mappings.insert(index, mapped);
        Ok(mapped)
    }

    fn location(&mut self, index: u64, at: Reader<'_>, out: &mut Out) -> Result<LocationId, DecodeError> {
        if let Some(known) = self.known_locations.get(&index) {
            return Ok(*known);
        }
        let found = *entry(&self.locations, "location_table", index, at)?;
        let (mut mapping, mut place, mut attributes) = (0, LocationParts::new(), Vec::new());
        each(found, |reader, it| {
            match it.number {
                1 => mapping = number(reader, it)?,
                2 => place.address = number(reader, it)?,
                3 if place.has_room() => place.frames.push(self.frame(message(reader, it, "Line")?, &mut out.budget)?),
                4 => list(reader, it, &mut attributes)?,
                _ => {}
            }
            Ok(())
        })?;
        let runtime = match self.said(&attributes, b"profile.frame.type", found)? {
            Some(b"cpython") => Some(Runtime::Python),
            Some(b"v8js") => Some(Runtime::Node),
            Some(b"jvm") => Some(Runtime::Jvm),
            Some(b"kernel") => Some(Runtime::Kernel),
            None | Some(b"native" | b"go" | b"rust") => None,
            Some(_) => Some(Runtime::Other),
        };
        place.mapped = match (mapping, runtime) {
            (1.., None) => Some(self.mapping(mapping, found, out)?),
            _ => None,
        };
        place.runtime = runtime.unwrap_or(Runtime::Other);
        let location = parts::location(&mut out.profile, &mut out.numbers, &mut out.budget, place, at)?;
        self.known_locations.insert(index, location);
        Ok(location)
    }

    fn frame(&self, at: Reader<'_>, names: &mut Budget) -> Result<Frame, DecodeError> {
        let (function, line) = two_numbers(at)?;
        let known = *entry(&self.functions, "function_table", function, at)?;
        let mut text = |index| names.text(self.bytes(index, at)?, at);
        Ok(parts::frame(text(known.shown())?, text(known.file)?, line))
    }
}

/// Whether an entry says nothing: ids of zeroes and numbers of nothing say nothing either.
fn is_nothing(at: Reader<'_>) -> bool {
    let mut is_nothing = true;
    let read = each(at, |_, it| {
        is_nothing &= match it.value {
            Value::Varint(number) => number == 0,
            Value::Bytes(bytes) => bytes.bytes().iter().all(|byte| *byte == 0),
            _ => false,
        };
        Ok(())
    });
    read.is_ok() && is_nothing
}

fn function(at: Reader<'_>) -> Result<Function, DecodeError> {
    let mut function = Function::default();
    each(at, |reader, it| {
        match it.number {
            1 => function.name = number(reader, it)?,
            2 => function.system_name = number(reader, it)?,
            3 => function.file = number(reader, it)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(function)
}

fn fixed(reader: &Reader<'_>, field: Field<'_>) -> Result<u64, DecodeError> {
    match field.value {
        Value::Fixed64(number) => Ok(number),
        _ => Err(unexpected(reader, field)),
    }
}

/// Adds a number of 64 bits to a list, or several that are packed.
fn fixed_list(reader: &Reader<'_>, field: Field<'_>, into: &mut Vec<u64>) -> Result<(), DecodeError> {
    match field.value {
        Value::Bytes(packed) => {
            let (numbers, rest) = packed.bytes().as_chunks::<8>();
            if !rest.is_empty() {
                return Err(packed.error_at(field.offset, Problem::Truncated));
            }
            into.extend(numbers.iter().map(|number| u64::from_le_bytes(*number)));
        }
        _ => into.push(fixed(reader, field)?),
    }
    Ok(())
}
