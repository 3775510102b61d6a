//! What pprof and OpenTelemetry's profiles have in common: lists of numbers, and locations that are made of a mapping, an address and
//! functions. And what every format has: names that are cut, and memory that is counted.

use std::collections::HashMap;

use longpole_model::stack::{LocationKind, Runtime};
use longpole_model::{AbsAddr, Frame, LocationId, Mapping, MappingId, Text, VirtOffset};

use super::{Numbers, Profile, ValueType, push_location};
use crate::error::{DecodeError, Problem};
use crate::limits::{
    BUILD_ID_DIGITS_MAX, LOCATION_FRAMES_MAX, NAME_BYTES_MAX, PROFILE_INLINED_MAX, PROFILE_NAME_BYTES_MAX, PROFILE_SAMPLES_MAX,
    PROFILE_VALUES_MAX, STACK_FRAMES_MAX, TYPE_NAME_BYTES_MAX,
};
use crate::number::row;
use crate::protobuf::{Field, Reader, Value, each, number};

/// Why a frame has no name.
const NO_NAME: &str = "the profile has no name for it";

/// A function by the numbers of its texts.
#[derive(Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) name: u64,
    pub(super) system_name: u64,
    pub(super) file: u64,
}

impl Function {
    /// The number of the name to show.
    pub(super) fn shown(self) -> u64 {
        if self.name > 0 { self.name } else { self.system_name }
    }
}

/// The binaries of a profile by path and build id.
pub(super) type Mappings = HashMap<(String, Vec<u8>), MappingId>;

/// Where a part of a binary is mapped.
#[derive(Clone, Copy)]
pub(super) struct MappedAt {
    pub(super) mapping: MappingId,
    pub(super) start: u64,
    pub(super) file_offset: u64,
}

/// The first two fields of a message, which are numbers.
pub(super) fn two_numbers(at: Reader<'_>) -> Result<(u64, u64), DecodeError> {
    let (mut first, mut second) = (0, 0);
    each(at, |reader, it| {
        match it.number {
            1 => first = number(reader, it)?,
            2 => second = number(reader, it)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((first, second))
}

/// What a profile may still take: its names see [`PROFILE_NAME_BYTES_MAX`], and all of it the memory that its reader has. There is one for all
/// messages of a file.
#[derive(Debug)]
pub(super) struct Budget {
    name_bytes: u64,
    memory_bytes: u64,
    memory_bytes_max: u64,
}

/// Memory of a text of a table, which lies in the file, or of another entry: a table that grows is there twice for a moment.
pub(super) const ENTRY_BYTES: usize = 64;

/// Memory of a function of pprof, by its number.
pub(super) const FUNCTION_BYTES: usize = 160;

/// Memory of a binary.
pub(super) const MAPPING_BYTES: usize = 160;

/// Memory of a location without its frames, and of each of these without its names: here, and where reports find them.
pub(super) const LOCATION_BYTES: usize = 320;
const FRAME_BYTES: usize = 100;

/// Memory of a sample, of its stack, and of what reports make of it.
pub(super) const SAMPLE_BYTES: usize = 400;

impl Budget {
    pub(super) fn new(memory_bytes_max: u64) -> Budget {
        Budget { name_bytes: 0, memory_bytes: 0, memory_bytes_max }
    }

    /// Takes memory; returns whether there is enough.
    pub(super) fn has(&mut self, bytes: usize) -> bool {
        self.memory_bytes = self.memory_bytes.saturating_add(bytes as u64);
        self.memory_bytes <= self.memory_bytes_max
    }

    /// Takes memory if there is enough, and else none: for what a profile can be without.
    pub(super) fn has_left(&mut self, bytes: usize) -> bool {
        let is_enough = self.memory_bytes.saturating_add(bytes as u64) <= self.memory_bytes_max;
        is_enough && self.has(bytes)
    }

    /// Takes memory.
    pub(super) fn hold(&mut self, bytes: usize, at: Reader<'_>) -> Result<(), DecodeError> {
        if self.has(bytes) {
            return Ok(());
        }
        let limit = u32::try_from(self.memory_bytes_max).unwrap_or(u32::MAX);
        Err(at.error_at(at.offset(), Problem::TooManyOf { what: "bytes of memory", limit }))
    }

    /// Takes memory for a sample with a stack of this number of locations, and this number of values.
    pub(super) fn sample(&mut self, locations: usize, values: usize, at: Reader<'_>) -> Result<(), DecodeError> {
        self.hold(SAMPLE_BYTES + locations * size_of::<LocationId>() + values * size_of::<i64>(), at)
    }

    /// A name to keep.
    pub(super) fn text(&mut self, name: &[u8], at: Reader<'_>) -> Result<String, DecodeError> {
        self.take(name.len(), at)?;
        Ok(cut(name, NAME_BYTES_MAX))
    }

    /// A type of values, by the bytes of its name and its unit.
    pub(super) fn value_type(&mut self, name: &[u8], unit: &[u8], at: Reader<'_>) -> Result<ValueType, DecodeError> {
        self.take(name.len().saturating_add(unit.len()), at)?;
        Ok(ValueType { name: cut(name, TYPE_NAME_BYTES_MAX), unit: cut(unit, TYPE_NAME_BYTES_MAX) })
    }

    /// Counts a name that is kept, by its bytes before it is cut.
    pub(super) fn take(&mut self, bytes: usize, at: Reader<'_>) -> Result<(), DecodeError> {
        self.name_bytes = self.name_bytes.saturating_add(bytes as u64);
        if self.name_bytes > u64::from(PROFILE_NAME_BYTES_MAX) {
            return Err(
                at.error_at(at.offset(), Problem::TooManyOf { what: "bytes of names in all frames", limit: PROFILE_NAME_BYTES_MAX })
            );
        }
        self.hold(bytes, at)
    }
}

/// A text, or its beginning. Only what is kept is copied: a short file may name a long text a million times.
pub(super) fn cut(text: &[u8], bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return String::from_utf8_lossy(text).into_owned();
    }
    // Back to where a character begins, which is three bytes before at most.
    let end = (bytes_max.saturating_sub(3)..=bytes_max).rev().find(|end| text[*end] & 0xc0 != 0x80).unwrap_or(bytes_max);
    let mut kept = String::from_utf8_lossy(&text[..end]).into_owned();
    kept.push('…');
    kept
}

/// Whether another sample may be kept, with this number of values.
pub(super) fn has_room(profile: &Profile, values: usize, at: Reader<'_>) -> Result<(), DecodeError> {
    let samples = profile.samples.len() + 1;
    if samples > PROFILE_SAMPLES_MAX as usize {
        return Err(at.error_at(at.offset(), Problem::TooManyOf { what: "samples", limit: PROFILE_SAMPLES_MAX }));
    }
    has_values(samples, values, at)
}

/// Whether a number of samples may each have a number of values.
pub(super) fn has_values(samples: usize, values: usize, at: Reader<'_>) -> Result<(), DecodeError> {
    if samples.saturating_mul(values) > PROFILE_VALUES_MAX as usize {
        return Err(at.error_at(at.offset(), Problem::TooManyOf { what: "values of samples", limit: PROFILE_VALUES_MAX }));
    }
    Ok(())
}

/// Adds a number of a list of stack frames, or several that are packed: one more than are kept of a stack, so that it shows.
pub(super) fn frames(reader: &Reader<'_>, field: Field<'_>, into: &mut Vec<u64>) -> Result<(), DecodeError> {
    let mut take = |number| {
        if into.len() <= STACK_FRAMES_MAX {
            into.push(number);
        }
    };
    match field.value {
        Value::Bytes(mut packed) => {
            while let Some(number) = packed.next_packed()? {
                take(number);
            }
        }
        _ => take(number(reader, field)?),
    }
    Ok(())
}

/// Adds a number of a list, or several that are packed.
pub(super) fn list(reader: &Reader<'_>, field: Field<'_>, into: &mut Vec<u64>) -> Result<(), DecodeError> {
    match field.value {
        Value::Bytes(mut packed) => {
            while let Some(number) = packed.next_packed()? {
                into.push(number);
            }
        }
        _ => into.push(number(reader, field)?),
    }
    Ok(())
}

/// Whether the calls that were inlined may be as many as they are in all stacks so far.
pub(super) fn inlined(numbers: &Numbers, at: Reader<'_>) -> Result<(), DecodeError> {
    match numbers.inlined > u64::from(PROFILE_INLINED_MAX) {
        true => Err(at.error_at(at.offset(), Problem::TooManyOf { what: "inlined calls in all stacks", limit: PROFILE_INLINED_MAX })),
        false => Ok(()),
    }
}

/// The bytes of a build id in hex; none where it is something else, as those of Go are, or longer than any.
pub(super) fn build_id(text: &[u8]) -> Vec<u8> {
    if text.len() > BUILD_ID_DIGITS_MAX {
        return Vec::new();
    }
    let digits: Option<Vec<u8>> =
        text.iter().map(|byte| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect(),
        _ => Vec::new(),
    }
}

/// The mapping of a binary, which may be mapped in parts.
pub(super) fn mapping(profile: &mut Profile, known: &mut Mappings, path: String, build_id: Vec<u8>) -> MappingId {
    let mappings = &mut profile.mappings;
    *known.entry((path, build_id)).or_insert_with_key(|(path, build_id)| {
        let id = MappingId(row(mappings.len()));
        mappings.push(Mapping { id, path: path.clone(), build_id: build_id.clone() });
        id
    })
}

pub(super) fn frame(name: String, file: String, line: u64) -> Frame {
    let reason = name.is_empty().then(|| NO_NAME.to_owned());
    let function = if name.is_empty() { "[unnamed]".to_owned() } else { name };
    Frame { function: function.into(), file: file.into(), line: u32::try_from(line).unwrap_or(0), reason }
}

/// What a location is made of.
pub(super) struct LocationParts {
    pub(super) mapped: Option<MappedAt>,
    pub(super) runtime: Runtime,
    pub(super) address: u64,
    /// Innermost first.
    pub(super) frames: Vec<Frame>,
    /// Whether it has more of them than are kept.
    pub(super) is_cut: bool,
}

impl LocationParts {
    pub(super) fn new() -> LocationParts {
        LocationParts { mapped: None, runtime: Runtime::Other, address: 0, frames: Vec::new(), is_cut: false }
    }

    /// Whether there is room for another frame; where there is none, the stacks that go through here count it.
    pub(super) fn has_room(&mut self) -> bool {
        self.is_cut |= self.frames.len() >= LOCATION_FRAMES_MAX;
        !self.is_cut
    }
}

/// A location of these functions; without any, it has the name of its place.
pub(super) fn location(
    profile: &mut Profile,
    numbers: &mut Numbers,
    budget: &mut Budget,
    place: LocationParts,
    at: Reader<'_>,
) -> Result<LocationId, DecodeError> {
    let LocationParts { mapped, runtime, address, mut frames, is_cut } = place;
    let kind = match mapped {
        // Where in the binary it is, as far as the profile says: by its offset in the file.
        Some(mapped) if address > 0 => LocationKind::Code {
            mapping: mapped.mapping,
            address: VirtOffset(address.wrapping_sub(mapped.start).wrapping_add(mapped.file_offset)),
        },
        _ => LocationKind::Named { runtime, address: (address > 0).then_some(AbsAddr(address)) },
    };
    if frames.is_empty() {
        let path = mapped.and_then(|mapped| profile.mappings.get(mapped.mapping.0 as usize)).map_or("", |mapping| &mapping.path);
        let function = match &kind {
            LocationKind::Code { address, .. } => format!("{}+{address}", path.rsplit('/').next().unwrap_or_default()),
            _ => format!("[unmapped {}]", AbsAddr(address)),
        };
        budget.take(function.len(), at)?;
        frames.push(Frame { function: function.into(), file: Text::new(), line: 0, reason: Some(NO_NAME.to_owned()) });
    }
    budget.hold(LOCATION_BYTES + frames.len() * FRAME_BYTES, at)?;
    let location = push_location(profile, kind, frames);
    if is_cut {
        numbers.cut.insert(location);
    }
    Ok(location)
}
