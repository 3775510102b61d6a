//! Profiles in: how often, or how long, each stack was seen; when, only OpenTelemetry's say.
//!
//! ```text
//! bytes ─ identify ─► ProfileFormat ─ decode ─► Profile { stacks, and for each its values of every type }
//! ```
//!
//! Which of the values stands for time is not decided here.

pub(crate) mod folded;
pub(crate) mod jfr;
mod labels;
mod named_stacks;
mod otlp;
mod parts;
mod pprof_reader;
mod since;
pub(crate) mod speedscope;
pub(crate) mod tree;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::Read;

use longpole_model::stack::{Location, LocationKind};
use longpole_model::time::Timestamp;
use longpole_model::{Frame, LocationId, Mapping, SpanLabel, Stack, StackId, Text};

use crate::error::FileError;
use crate::limits::{Limits, STACK_FRAMES_MAX};
use crate::number::row;

/// A format of profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileFormat {
    /// `profile.proto`, unpacked.
    Pprof,
    /// OpenTelemetry's profiles signal, in protobuf.
    Otlp,
    /// `main;work;hash 12`: a stack on each line, the root first, and how often.
    Folded,
}

impl ProfileFormat {
    /// Every format.
    pub const ALL: [ProfileFormat; 3] = [ProfileFormat::Pprof, ProfileFormat::Otlp, ProfileFormat::Folded];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            ProfileFormat::Pprof => "pprof",
            ProfileFormat::Otlp => "otlp-profiles",
            ProfileFormat::Folded => "folded",
        }
    }
}

impl fmt::Display for ProfileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a number counts, and in what: `cpu` in `nanoseconds`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueType {
    /// What.
    pub name: String,
    /// In what.
    pub unit: String,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.unit)
    }
}

/// Labels by name: texts that say where or for whom something was counted. Names come once, in ascending order.
pub type LabelSet = Vec<(Text, Text)>;

/// A stack with what was counted of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileSample {
    /// Its number.
    pub stack: u32,
    /// A value for each type.
    pub values: Vec<i64>,
    /// Process, 0 where it is not said.
    pub pid: u32,
    /// Thread, 0 where it is not said.
    pub tid: u32,
    /// What labels say of the span that was current.
    pub span: SpanLabel,
    /// The number of its label set.
    pub labels: u32,
    /// When, where the profile says that of each.
    pub time: Option<Timestamp>,
    /// When the profile that it is of began, where several came together.
    pub began: Option<Timestamp>,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// What the values of samples are; at least one.
    pub types: Vec<ValueType>,
    /// The one that its maker would show first.
    pub default_type: Option<usize>,
    /// What was counted between two samples, and how much of it: of the first type, if each has another.
    pub period: Option<(ValueType, i64)>,
    /// The same of each type, if the format says it of each: OpenTelemetry's.
    pub periods: Vec<Option<(ValueType, i64)>>,
    /// When it began, where it says so.
    pub start: Option<Timestamp>,
    /// How long it took, 0 where it does not say.
    pub duration_nanos: u64,
    /// Binaries by number.
    pub mappings: Vec<Mapping>,
    /// Locations by number, each with its frames.
    pub locations: Vec<Location>,
    /// Stacks by number.
    pub stacks: Vec<Stack>,
    /// What processes and threads are called, where it says so: by process and thread; of the process itself by thread 0.
    pub names: BTreeMap<(u32, u32), String>,
    /// Label sets by number; set 0 is empty. The labels of a span, a process or a thread are in none: those are in the sample.
    pub label_sets: Vec<LabelSet>,
    /// Labels that are longer, or more, than the limits: cut, or left out.
    pub labels_cut: u64,
    /// What was counted.
    pub samples: Vec<ProfileSample>,
    /// Stacks that had more frames than [`STACK_FRAMES_MAX`], whose outermost are not here.
    pub stacks_cut: u64,
}

impl Profile {
    /// What was counted between two samples of a type, by its place, and how much of it.
    pub fn period_of(&self, place: usize) -> Option<&(ValueType, i64)> {
        self.periods.get(place).unwrap_or(&self.period).as_ref()
    }

    /// The labels of a sample.
    pub fn labels(&self, sample: &ProfileSample) -> &[(Text, Text)] {
        self.label_sets.get(sample.labels as usize).map_or(&[], |set| set)
    }
}

/// Gives out the numbers of locations and stacks.
#[derive(Default)]
struct Numbers {
    stacks: HashMap<Box<[LocationId]>, u32>,
    /// Locations that had more frames than are kept.
    cut: HashSet<LocationId>,
    /// Frames of all stacks, without the first of each location.
    inlined: u64,
}

impl Numbers {
    /// The number of a stack, leaf first.
    fn stack(&mut self, profile: &mut Profile, locations: &[LocationId]) -> u32 {
        let (kept, frames) = self.kept(profile, locations);
        let is_cut = kept < locations.len() || locations.last().is_some_and(|last| self.cut.contains(last));
        profile.stacks_cut += u64::from(is_cut);
        let locations = &locations[..kept];
        if let Some(number) = self.stacks.get(locations) {
            return *number;
        }
        self.inlined = self.inlined.saturating_add(frames.saturating_sub(kept) as u64);
        let number = row(self.stacks.len());
        self.stacks.insert(locations.into(), number);
        number
    }

    /// All stacks, by number.
    fn into_stacks(self) -> Vec<Stack> {
        let of_number = |(locations, number): (Box<[LocationId]>, u32)| Stack { id: StackId(number), locations: locations.into_vec() };
        let mut stacks: Vec<Stack> = self.stacks.into_iter().map(of_number).collect();
        stacks.sort_unstable_by_key(|stack| stack.id);
        stacks
    }
}

impl Numbers {
    /// How many locations of a stack are kept, and how many frames these have. Nothing behind a location that lacks some is kept: the
    /// kept frames are the innermost ones, without a gap.
    fn kept(&self, profile: &Profile, locations: &[LocationId]) -> (usize, usize) {
        let mut frames = 0usize;
        for (place, location) in locations.iter().enumerate() {
            let more = profile.locations.get(location.0 as usize).map_or(0, |location| location.frames.len());
            if frames.saturating_add(more) > STACK_FRAMES_MAX {
                return (place, frames);
            }
            frames += more;
            if self.cut.contains(location) {
                return (place + 1, frames);
            }
        }
        (locations.len(), frames)
    }
}

fn push_location(profile: &mut Profile, kind: LocationKind, frames: Vec<Frame>) -> LocationId {
    let id = LocationId(row(profile.locations.len()));
    profile.locations.push(Location { id, kind, frames });
    id
}

/// The format of a profile by its first bytes; `None` where it is none.
pub fn guess(first_bytes: &[u8]) -> Option<ProfileFormat> {
    if otlp::is_one(first_bytes) {
        return Some(ProfileFormat::Otlp);
    }
    if pprof_reader::is_one(first_bytes) {
        return Some(ProfileFormat::Pprof);
    }
    folded::is_one(first_bytes).then_some(ProfileFormat::Folded)
}

/// The bytes of a profile, which is decoded as a whole.
///
/// # Errors
///
/// The input cannot be read, or exceeds the limits.
pub fn read(input: impl Read, limits: &Limits) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    input.take(limits.document_bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(FileError::Read)?;
    if bytes.len() > limits.document_bytes_max {
        return Err(FileError::TooLarge { limit_bytes: limits.document_bytes_max, offset: 0 });
    }
    Ok(bytes)
}

/// Decodes a profile: whole or not at all. It may take no more than these bytes of memory, with the recording and the report that are made of it.
///
/// # Errors
///
/// It is not in the format, breaks off, or takes too much; with the offset in bytes.
pub fn decode(bytes: &[u8], format: ProfileFormat, memory_bytes_max: u64) -> Result<Profile, FileError> {
    match format {
        ProfileFormat::Pprof => pprof_reader::decode(bytes, memory_bytes_max).map_err(|error| FileError::Document { error, offset: 0 }),
        ProfileFormat::Otlp => otlp::decode(bytes, memory_bytes_max).map_err(|error| FileError::Document { error, offset: 0 }),
        ProfileFormat::Folded => folded::decode(bytes, memory_bytes_max),
    }
}

#[cfg(test)]
mod tests;
