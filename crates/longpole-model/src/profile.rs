//! Profiles that programs push to a server: what was counted, how much of it in each stack, its series, and when.
//!
//! ```text
//! series   process_cpu:cpu:nanoseconds:cpu:nanoseconds  {service_name="cart", version="7"}
//! sample   of series 0, at 12:00:10, in stack 7: 30,000,000 (nanoseconds), of span 5b8efff798038103
//! ```

use std::fmt;
use std::str::FromStr;

use crate::id::{SpanId, TraceId};
use crate::interned_text::Text;
use crate::stack::{Frame, Location, LocationId, LocationKind, Mapping, MappingId, Stack, StackId};
use crate::time::Timestamp;

/// The label whose value is a service's name.
pub const SERVICE_LABEL: &str = "service_name";

/// What a profile counts, as Pyroscope's clients name it: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ProfileType {
    /// The profiler, such as `process_cpu` or `memory`.
    pub name: Text,
    /// What its values are of, such as `cpu` or `inuse_space`.
    pub sample_type: Text,
    /// In what, such as `nanoseconds` or `bytes`.
    pub sample_unit: Text,
    /// What was counted between two samples.
    pub period_type: Text,
    /// In what.
    pub period_unit: Text,
}

/// A text that names no type of profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileTypeError {
    /// How many parts it has.
    pub parts: usize,
}

impl fmt::Display for ProfileTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a profile type has five parts, as in process_cpu:cpu:nanoseconds:cpu:nanoseconds; this one has {}", self.parts)
    }
}

impl std::error::Error for ProfileTypeError {}

/// Sample types that say how much there is at one time. Go calls heap in use `inuse_space`, tcmalloc `space`, async-profiler `live`.
const STATES: [&str; 9] = ["goroutine", "goroutines", "inuse_objects", "inuse_space", "live", "objects", "resident", "space", "threads"];

impl ProfileType {
    /// The type with these parts, in the order of its name.
    pub fn of_parts([name, sample_type, sample_unit, period_type, period_unit]: [&str; 5]) -> ProfileType {
        let [name, sample_type, sample_unit, period_type, period_unit] =
            [name, sample_type, sample_unit, period_type, period_unit].map(Text::from);
        ProfileType { name, sample_type, sample_unit, period_type, period_unit }
    }

    /// Whether its values are a state at a moment, such as memory in use, rather than what happened in an interval. States of several moments are
    /// averaged; what happened is added up.
    pub fn is_state(&self) -> bool {
        STATES.contains(&self.sample_type.as_str())
    }

    /// Whether its values are time, so that a rate of them has no unit: CPU time per time is a number of CPUs.
    pub fn is_time(&self) -> bool {
        self.sample_unit == "nanoseconds"
    }

    /// Its parts, in the order of its name.
    pub fn parts(&self) -> [&Text; 5] {
        [&self.name, &self.sample_type, &self.sample_unit, &self.period_type, &self.period_unit]
    }
}

impl fmt::Display for ProfileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, sample_type, sample_unit, period_type, period_unit] = self.parts().map(Text::as_str);
        write!(f, "{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}")
    }
}

impl FromStr for ProfileType {
    type Err = ProfileTypeError;

    fn from_str(text: &str) -> Result<Self, ProfileTypeError> {
        let parts: Vec<&str> = text.splitn(7, ':').collect();
        // Older clients append how numbers were counted.
        let parts = parts.strip_suffix(&["delta"]).filter(|parts| parts.len() == 5).unwrap_or(&parts[..]);
        match *parts {
            [name, sample_type, sample_unit, period_type, period_unit] if !name.is_empty() => {
                Ok(ProfileType::of_parts([name, sample_type, sample_unit, period_type, period_unit]))
            }
            _ => Err(ProfileTypeError { parts: text.split(':').count() }),
        }
    }
}

/// One kind of profile of one program: all its samples have these labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ProfileSeries {
    /// What it counts.
    pub profile_type: ProfileType,
    /// Its labels, by name, each name once.
    pub labels: Vec<(Text, Text)>,
}

impl ProfileSeries {
    /// Memory that it takes, about.
    pub fn memory_bytes(&self) -> u64 {
        let texts: usize = self.labels.iter().map(|(name, value)| name.len() + value.len()).sum();
        (size_of::<ProfileSeries>() + self.labels.len() * size_of::<(Text, Text)>() + texts) as u64
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&Text> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value)
    }
}

/// What a sample with a span is known to belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkScope {
    /// The span itself: it was current.
    Span,
    /// The span or one of its descendants in the same process: Pyroscope's SDKs label samples with the local root.
    LocalRoot,
    /// Some span of the trace.
    Trace,
}

impl LinkScope {
    /// All of them.
    pub const ALL: [LinkScope; 3] = [LinkScope::Span, LinkScope::LocalRoot, LinkScope::Trace];

    /// The word in SQL and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkScope::Span => "span",
            LinkScope::LocalRoot => "local_root",
            LinkScope::Trace => "trace",
        }
    }

    /// The scope of this word.
    pub fn from_code(code: &str) -> Option<LinkScope> {
        LinkScope::ALL.into_iter().find(|scope| scope.as_str() == code)
    }
}

/// The span that a sample names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfiledSpan {
    /// Its trace.
    pub trace_id: Option<TraceId>,
    /// The span.
    pub span_id: Option<SpanId>,
    /// What the sample belongs to.
    pub scope: LinkScope,
}

/// How much of something a stack had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileValue {
    /// Place of its series in the list of series.
    pub series: u32,
    /// When: the sample's own time, or that of its profile.
    pub time: Timestamp,
    /// Its stack.
    pub stack: StackId,
    /// How much, in the unit of the series.
    pub value: i64,
    /// The span that it names.
    pub span: Option<ProfiledSpan>,
}

/// Profiles of one request, of any number of series, which share their stacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileBatch {
    /// Series, by place.
    pub series: Vec<ProfileSeries>,
    /// Binaries by number.
    pub mappings: Vec<Mapping>,
    /// Locations by number, each with its frames.
    pub locations: Vec<Location>,
    /// Stacks by number.
    pub stacks: Vec<Stack>,
    /// What was counted.
    pub values: Vec<ProfileValue>,
}

impl ProfileBatch {
    /// Memory that it takes, about; texts that several frames or labels share are counted for each.
    pub fn memory_bytes(&self) -> u64 {
        let frame = |frame: &Frame| size_of::<Frame>() + frame.function.len() + frame.file.len();
        let location = |location: &Location| size_of::<Location>() + location.frames.iter().map(frame).sum::<usize>();
        let stack = |stack: &Stack| size_of::<Stack>() + size_of_val(&*stack.locations);
        let mapping = |mapping: &Mapping| size_of::<Mapping>() + mapping.path.len() + mapping.build_id.len();
        let series = self.series.iter().map(ProfileSeries::memory_bytes).sum::<u64>();
        let mappings: usize = self.mappings.iter().map(mapping).sum();
        let locations: usize = self.locations.iter().map(location).sum();
        let stacks: usize = self.stacks.iter().map(stack).sum();
        series + (mappings + locations + stacks + size_of_val(&*self.values)) as u64
    }

    /// Adds another one behind what it has.
    pub fn append(&mut self, other: ProfileBatch) {
        let place = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let (series, mappings) = (place(self.series.len()), place(self.mappings.len()));
        let (locations, stacks) = (place(self.locations.len()), place(self.stacks.len()));
        let moved = |id: u32, by: u32| id.saturating_add(by);
        self.series.extend(other.series);
        self.mappings.extend(other.mappings.into_iter().map(|it| Mapping { id: MappingId(moved(it.id.0, mappings)), ..it }));
        self.locations.extend(other.locations.into_iter().map(|mut it| {
            it.id = LocationId(moved(it.id.0, locations));
            if let LocationKind::Code { mapping, .. } = &mut it.kind {
                mapping.0 = moved(mapping.0, mappings);
            }
            it
        }));
        self.stacks.extend(other.stacks.into_iter().map(|mut it| {
            it.id = StackId(moved(it.id.0, stacks));
            it.locations.iter_mut().for_each(|location| location.0 = moved(location.0, locations));
            it
        }));
        let moved_value =
            |it: ProfileValue| ProfileValue { series: moved(it.series, series), stack: StackId(moved(it.stack.0, stacks)), ..it };
        self.values.extend(other.values.into_iter().map(moved_value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VirtOffset;

    #[test]
    fn a_type_is_its_name() {
        let text = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let parsed: ProfileType = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(format!("{text}:delta").parse(), Ok(parsed));
        for (bad, parts) in [("", 1), ("cpu", 1), ("a:b:c:d", 4), ("a:b:c:d:e:f", 6), (":b:c:d:e", 5)] {
            assert_eq!(bad.parse::<ProfileType>(), Err(ProfileTypeError { parts }), "{bad}");
        }
    }

    #[test]
    fn memory_in_use_is_a_state() {
        let is_state = |text: &str| text.parse::<ProfileType>().unwrap().is_state();
        assert!(is_state("memory:inuse_space:bytes:space:bytes"));
        assert!(is_state("goroutines:goroutine:count:goroutine:count"));
        assert!(is_state("process_memory:resident:bytes:resident:bytes"));
        assert!(!is_state("memory:alloc_space:bytes:space:bytes"));
        assert!(!is_state("process_cpu:cpu:nanoseconds:cpu:nanoseconds"));
    }

    #[test]
    fn batches_keep_what_their_numbers_mean() {
        let batch = |name: &str| {
            let frame = Frame { function: name.into(), file: "a.c".into(), line: 1, reason: None };
            let mapping = Mapping { id: MappingId(0), path: format!("/bin/{name}"), build_id: Vec::new() };
            let kind = LocationKind::Code { mapping: MappingId(0), address: VirtOffset(7) };
            ProfileBatch {
                series: vec![ProfileSeries { labels: vec![("service_name".into(), name.into())], ..ProfileSeries::default() }],
                mappings: vec![mapping],
                locations: vec![Location { id: LocationId(0), kind, frames: vec![frame] }],
                stacks: vec![Stack { id: StackId(0), locations: vec![LocationId(0)] }],
                values: vec![ProfileValue { series: 0, time: Timestamp(1), stack: StackId(0), value: 1, span: None }],
            }
        };
        let mut both = batch("cart");
        both.append(batch("shop"));
        let value = both.values[1];
        let location = &both.locations[both.stacks[value.stack.0 as usize].locations[0].0 as usize];
        assert_eq!(both.series[value.series as usize].label(SERVICE_LABEL).map(Text::as_str), Some("shop"));
        assert_eq!(location.frames[0].function, "shop");
        let LocationKind::Code { mapping, .. } = location.kind else { panic!("{location:?}") };
        assert_eq!(both.mappings[mapping.0 as usize].path, "/bin/shop");
        assert_eq!((both.locations[1].id, both.stacks[1].id, both.mappings[1].id), (LocationId(1), StackId(1), MappingId(1)));
        assert!(both.memory_bytes() > batch("cart").memory_bytes());
    }
}
