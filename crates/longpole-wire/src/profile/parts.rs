//! What pprof and OpenTelemetry's profiles have in common: messages of numbers, and locations that are made of a mapping, an address and
//! functions.

use std::collections::HashMap;

use longpole_model::stack::{LocationKind, Runtime};
use longpole_model::{AbsAddr, Frame, LocationId, Mapping, MappingId, VirtOffset};

use super::{Profile, push_location};
use crate::error::{DecodeError, Problem};
use crate::limits::{PROFILE_NAME_BYTES_MAX, PROFILE_SAMPLES_MAX, PROFILE_VALUES_MAX, STACK_FRAMES_MAX};
use crate::protobuf::{Field, Reader, Value};

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

pub(super) fn each<'a>(
    mut reader: Reader<'a>,
    mut take: impl FnMut(&Reader<'a>, Field<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while let Some(field) = reader.next()? {
        take(&reader, field)?;
    }
    Ok(())
}

pub(super) fn message<'a>(reader: &Reader<'a>, field: Field<'a>, name: &'static str) -> Result<Reader<'a>, DecodeError> {
    match field.value {
        Value::Bytes(inner) => Ok(inner.named(name)),
        _ => Err(reader.error_at(field.offset, Problem::UnexpectedWireType { field: field.number })),
    }
}

pub(super) fn number(reader: &Reader<'_>, field: Field<'_>) -> Result<u64, DecodeError> {
    match field.value {
        Value::Varint(number) => Ok(number),
        _ => Err(reader.error_at(field.offset, Problem::UnexpectedWireType { field: field.number })),
    }
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

/// What names may still take: see [`PROFILE_NAME_BYTES_MAX`].
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: u64,
}

impl Names {
    /// Counts a name that is kept.
    pub(super) fn take(&mut self, name: &str, at: Reader<'_>) -> Result<(), DecodeError> {
        self.bytes += name.len() as u64;
        if self.bytes > u64::from(PROFILE_NAME_BYTES_MAX) {
            return Err(
                at.error_at(at.offset(), Problem::TooManyOf { what: "bytes of names in all frames", limit: PROFILE_NAME_BYTES_MAX })
            );
        }
        Ok(())
    }
}

/// Whether another sample may be kept, of so many values.
pub(super) fn has_room(profile: &Profile, values: usize, at: Reader<'_>) -> Result<(), DecodeError> {
    let too_many = |what, limit| Err(at.error_at(at.offset(), Problem::TooManyOf { what, limit }));
    let samples = profile.samples.len() + 1;
    if samples > PROFILE_SAMPLES_MAX as usize {
        return too_many("samples", PROFILE_SAMPLES_MAX);
    }
    if samples.saturating_mul(values) > PROFILE_VALUES_MAX as usize {
        return too_many("values of samples", PROFILE_VALUES_MAX);
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

/// The bytes of a text in hex; none where it is something else, as build ids of Go are.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect(),
        _ => Vec::new(),
    }
}

/// The mapping of a binary, which may be mapped in parts.
pub(super) fn mapping(profile: &mut Profile, known: &mut Mappings, path: String, build_id: Vec<u8>) -> MappingId {
    let mappings = &mut profile.mappings;
    *known.entry((path, build_id)).or_insert_with_key(|(path, build_id)| {
        let id = MappingId(mappings.len() as u32);
        mappings.push(Mapping { id, path: path.clone(), build_id: build_id.clone() });
        id
    })
}

pub(super) fn frame(name: String, file: String, line: u64) -> Frame {
    let reason = name.is_empty().then(|| NO_NAME.to_owned());
    let function = if name.is_empty() { "[unnamed]".to_owned() } else { name };
    Frame { function, file, line: u32::try_from(line).unwrap_or(0), reason }
}

/// A location of these functions; without any, it has the name of its place.
pub(super) fn location(
    profile: &mut Profile,
    mapped: Option<MappedAt>,
    runtime: Runtime,
    address: u64,
    mut frames: Vec<Frame>,
) -> LocationId {
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
        frames.push(Frame { function, file: String::new(), line: 0, reason: Some(NO_NAME.to_owned()) });
    }
    push_location(profile, kind, frames)
}
