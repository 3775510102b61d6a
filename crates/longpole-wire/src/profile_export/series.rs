//! One series of a batch of profiles as a profile of pprof.
//!
//! ```text
//! series 3: process_cpu of cart     values of that series, with the stacks, frames and binaries that they use
//! sample   hash ← handle ← main     cpu 52 ms     trace_id "4bf9…" span_id "00f0…"
//! ```

use std::collections::HashMap;
use std::ops::Range;

use longpole_model::profile::{ProfileBatch, ProfileSeries, ProfileValue};
use longpole_model::{LocationId, Timestamp};

use super::pprof_builder::{Label, LabelValue, LocationNumbers, Mapping, PprofBuilder};

/// What was counted between two samples: its type, its unit, how many.
pub type Period<'t> = (&'t str, &'t str, i64);

/// Each series of a batch in pprof, not compressed, in their order: all of one interval. `period` is that of a series.
pub fn encode_series<'b>(
    batch: &'b ProfileBatch,
    interval: &Range<Timestamp>,
    period: impl Fn(&'b ProfileSeries) -> Period<'b>,
) -> Vec<Vec<u8>> {
    let mut values: Vec<Vec<&ProfileValue>> = vec![Vec::new(); batch.series.len()];
    for value in &batch.values {
        values.get_mut(value.series as usize).into_iter().for_each(|of_series| of_series.push(value));
    }
    batch.series.iter().zip(values).map(|(series, values)| encode(batch, series, &values, interval, period(series))).collect()
}

fn encode(batch: &ProfileBatch, of: &ProfileSeries, values: &[&ProfileValue], interval: &Range<Timestamp>, period: Period<'_>) -> Vec<u8> {
    let mut profile = PprofBuilder::default();
    profile.sample_types = vec![(of.profile_type.sample_type.as_str(), of.profile_type.sample_unit.as_str())];
    profile.period = period;
    profile.start = interval.start;
    profile.duration_nanos = interval.end.nanos_since(interval.start);
    let (mut locations, mut mappings) = (LocationNumbers::default(), HashMap::new());
    let mut number_of = |profile: &mut PprofBuilder<'_>, id: &LocationId| {
        let location = batch.locations.get(id.0 as usize)?;
        Some(locations.of(profile, location, &location.frames, |profile, id| {
            let Some(mapping) = batch.mappings.get(id.0 as usize) else { return 0 };
            // Readers look symbols of a binary up where it says that it has none.
            *mappings.entry(id).or_insert_with(|| profile.mapping(Mapping::of(mapping, [true; 4])))
        }))
    };
    for value in values {
        let Some(stack) = batch.stacks.get(value.stack.0 as usize) else { continue };
        let stack = stack.locations.iter().filter_map(|id| number_of(&mut profile, id)).collect();
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

#[cfg(test)]
mod tests {
    use longpole_model::profile::{LinkScope, ProfileType, ProfiledSpan};
    use longpole_model::stack::{Frame, LocationKind, Stack};
    use longpole_model::{MappingId, SpanId, StackId, TraceId, VirtOffset};

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
        let all = encode_series(&batch, &interval, |_| ("cpu", "nanoseconds", 52));
        let bytes = &all[0];
        let read = profile_import::decode(bytes, ProfileFormat::Pprof, 1 << 20).unwrap();
        assert_eq!(read.start, Some(interval.start));
        assert_eq!(read.samples.iter().map(|sample| sample.values.clone()).collect::<Vec<_>>(), [vec![52], vec![53]]);
        assert_eq!(read.locations.iter().map(|location| location.frames[0].function.as_str()).collect::<Vec<_>>(), ["hash", "main"]);
        assert_eq!(read.mappings[0].build_id, [0xab]);
        let second = profile_import::decode(&all[1], ProfileFormat::Pprof, 1 << 20).unwrap();
        assert_eq!((all.len(), second.samples.len(), second.samples[0].values[0]), (2, 1, 9));
    }
}
