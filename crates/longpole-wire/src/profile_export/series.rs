//! One series of a batch of profiles as a profile of pprof.
//!
//! ```text
//! series 3: process_cpu of cart     values of that series, with the stacks, frames and binaries that they use
//! sample   hash ← handle ← main     cpu 52 ms     trace_id "4bf9…" span_id "00f0…"
//! ```

use std::collections::HashMap;
use std::ops::Range;

use longpole_model::profile::ProfileBatch;
use longpole_model::stack::LocationKind;
use longpole_model::{LocationId, MappingId, Runtime, Timestamp};

use super::pprof_builder::{Label, LabelValue, Location, Mapping, PprofBuilder};

/// What was counted between two samples: its type, its unit, how many.
pub type Period<'t> = (&'t str, &'t str, i64);

/// The values of one series in pprof, not compressed: all of one interval.
pub fn encode_series(batch: &ProfileBatch, series: u32, interval: Range<Timestamp>, period: Period<'_>) -> Vec<u8> {
    let Some(of) = batch.series.get(series as usize) else { return Vec::new() };
    let mut profile = PprofBuilder::default();
    profile.sample_types = vec![(of.profile_type.sample_type.as_str(), of.profile_type.sample_unit.as_str())];
    profile.period = period;
    profile.start = interval.start;
    profile.duration_nanos = interval.end.nanos_since(interval.start);
    let mut places = SeriesPlaces { batch, mappings: HashMap::new(), runtimes: HashMap::new(), locations: HashMap::new() };
    for value in batch.values.iter().filter(|value| value.series == series) {
        let Some(stack) = batch.stacks.get(value.stack.0 as usize) else { continue };
        let stack = stack.locations.iter().filter_map(|location| places.location(&mut profile, *location)).collect();
        let mut labels = Vec::new();
        let mut label = |key: &'static str, value: Option<String>| {
            labels.extend(value.map(|value| Label { key, value: LabelValue::Text(value) }));
        };
        if let Some(span) = &value.span {
            label("trace_id", span.trace_id.map(|id| id.to_string()));
            label("span_id", span.span_id.map(|id| id.to_string()));
        }
        profile.sample(stack, vec![value.value], labels);
    }
    profile.encode()
}

/// Numbers in the profile of what stacks consist of.
struct SeriesPlaces<'b> {
    batch: &'b ProfileBatch,
    mappings: HashMap<MappingId, u64>,
    runtimes: HashMap<Runtime, u64>,
    locations: HashMap<LocationId, u64>,
}

impl SeriesPlaces<'_> {
    fn location(&mut self, profile: &mut PprofBuilder<'_>, id: LocationId) -> Option<u64> {
        if let Some(number) = self.locations.get(&id) {
            return Some(*number);
        }
        let location = self.batch.locations.get(id.0 as usize)?;
        let (mapping, address) = match &location.kind {
            LocationKind::Code { mapping, address } => (self.mapping(profile, *mapping), address.0),
            LocationKind::Unmapped { address } => (0, address.0),
            LocationKind::Named { runtime, address } => {
                let path = format!("[{}]", runtime.as_str());
                let new = || profile.mapping(Mapping { path, build_id: String::new(), knows: [true, true, true, false] });
                (*self.runtimes.entry(*runtime).or_insert_with(new), address.map_or(0, |address| address.0))
            }
            LocationKind::Cut { .. } => (0, 0),
        };
        let lines = location.frames.iter().map(|frame| (profile.function(&frame.function, &frame.file), frame.line)).collect();
        let number = profile.location(Location { mapping, address, lines });
        self.locations.insert(id, number);
        Some(number)
    }

    fn mapping(&mut self, profile: &mut PprofBuilder<'_>, id: MappingId) -> u64 {
        let Some(mapping) = self.batch.mappings.get(id.0 as usize) else { return 0 };
        *self.mappings.entry(id).or_insert_with(|| {
            let build_id = mapping.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            // Readers look symbols of a binary up where it says that it has none.
            profile.mapping(Mapping { path: mapping.path.clone(), build_id, knows: [true; 4] })
        })
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::profile::{LinkScope, ProfileSeries, ProfileType, ProfileValue, ProfiledSpan};
    use longpole_model::stack::{Frame, Stack};
    use longpole_model::{SpanId, StackId, TraceId, VirtOffset};

    use super::*;
    use crate::profile_import::{self, ProfileFormat};

    #[test]
    fn each_series_has_its_own_values_and_stacks() {
        let location = |number: u32, function: &str| longpole_model::Location {
            id: LocationId(number),
            kind: LocationKind::Code { mapping: MappingId(0), address: VirtOffset(u64::from(number) + 16) },
            frames: vec![Frame { function: function.into(), file: "cart.rs".into(), line: 7, reason: None }],
        };
        let stack = |number: u32, locations: &[u32]| Stack {
            id: StackId(number),
            locations: locations.iter().map(|number| LocationId(*number)).collect(),
        };
        let (trace_id, span_id) = (TraceId::new([7; 16]), SpanId::new([9; 8]));
        let span = ProfiledSpan { trace_id, span_id, scope: LinkScope::Span };
        let value = |series, stack, value, span| ProfileValue { series, time: Timestamp(5), stack: StackId(stack), value, span };
        let cpu = ProfileType::of_parts(["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"]);
        let batch = ProfileBatch {
            series: vec![ProfileSeries { profile_type: cpu, labels: Vec::new() }; 2],
            mappings: vec![longpole_model::Mapping { id: MappingId(0), path: "/bin/cart".to_owned(), build_id: vec![0xab] }],
            locations: vec![location(0, "main"), location(1, "hash"), location(2, "sleep")],
            stacks: vec![stack(0, &[1, 0]), stack(1, &[2, 0])],
            values: vec![value(0, 0, 52, Some(span)), value(1, 1, 9, None), value(0, 0, 53, None)],
        };
        let interval = Timestamp(1_000)..Timestamp(3_000);
        let bytes = encode_series(&batch, 0, interval.clone(), ("cpu", "nanoseconds", 52));
        let read = profile_import::decode(&bytes, ProfileFormat::Pprof, 1 << 20).unwrap();
        assert_eq!(read.start, Some(interval.start));
        assert_eq!(read.samples.iter().map(|sample| sample.values.clone()).collect::<Vec<_>>(), [vec![52], vec![53]]);
        assert_eq!(read.locations.iter().map(|location| location.frames[0].function.as_str()).collect::<Vec<_>>(), ["hash", "main"]);
        assert_eq!(read.mappings[0].build_id, [0xab]);
        assert!(encode_series(&batch, 7, interval, ("", "", 0)).is_empty());
    }
}
