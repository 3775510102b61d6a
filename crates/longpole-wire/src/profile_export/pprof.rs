//! Code as a profile of pprof: how often and how long each stack was on a CPU and blocked, by process, thread and span.
//!
//! ```text
//! sample   hash_block ← compress ← main    samples 12, cpu 12 ms     process "deploy" pid 12 … span_id "00f0…" span_name "build"
//! sample   [stack not seen]                waits 1, off_cpu 80 ms    process "deploy" pid 12 … wait "lock" syscall "futex"
//! ```

use std::collections::HashMap;

use longpole_model::stack::LocationKind;
use longpole_model::{Evidence, Location, Loss, MappingId, SampleLink, StackId, WaitKind};

use super::pprof_builder::{self, Label, LabelValue, LocationNumbers, PprofBuilder};
use super::tracks::{Moment, Track, Tracks};
use super::{HELD_FRAMES_MAX, NO_STACK, ProfileExport, Room, frames, lose};

/// Always all four, so that profiles can be added and subtracted.
const SAMPLE_TYPES: [(&str, &str); 4] = [("samples", "count"), ("cpu", "nanoseconds"), ("waits", "count"), ("off_cpu", "nanoseconds")];

/// The profile, and what it has no place for.
pub fn encode(export: &ProfileExport<'_>) -> (Vec<u8>, Vec<Loss>) {
    encode_up_to(HELD_FRAMES_MAX, export)
}

/// The same with room for `frames_max` entries of all stacks.
pub(super) fn encode_up_to(frames_max: u64, export: &ProfileExport<'_>) -> (Vec<u8>, Vec<Loss>) {
    let mut room = Room::new(frames_max);
    let (start, end) = export.ends();
    let mut profile = PprofBuilder::default();
    profile.sample_types = SAMPLE_TYPES.to_vec();
    profile.sample_type_default = if export.samples.is_empty() { SAMPLE_TYPES[3].0 } else { SAMPLE_TYPES[1].0 };
    profile.period = (SAMPLE_TYPES[1].0, SAMPLE_TYPES[1].1, i64::try_from(export.period_nanos()).unwrap_or(i64::MAX));
    profile.start = start;
    profile.duration_nanos = end.nanos_since(start);
    profile.comments = comments(export);
    let tracks = Tracks::new(export);
    let mut places = Places::of(export, &mut profile);
    for (key, values) in rows(export, &tracks) {
        if !room.take(key.stack.map_or(1, |stack| export.entries(stack).len())) {
            continue;
        }
        let stack = match key.stack {
            Some(stack) => export.stack(stack).map(|location| places.location(&mut profile, location)).collect(),
            None => vec![places.no_stack(&mut profile)],
        };
        profile.sample(stack, values.to_vec(), labels(export, &tracks.list[key.track], &key));
    }
    let mut losses = export.losses();
    lose(&mut losses, (export.samples.len() + export.waits.len()) as u64, "timestamps of samples and waits: a profile holds only sums");
    let spans = export.recording.spans.len() as u64;
    lose(&mut losses, room.left_out, "samples of the profile after the first 67 108 864 entries of stacks");
    lose(
        &mut losses,
        spans,
        "timestamps, attributes and events of spans: a profile of code holds only ids and names of those that ran in it",
    );
    (profile.encode(), losses)
}

fn comments(export: &ProfileExport<'_>) -> Vec<String> {
    let run = &export.recording.run;
    let command = (!run.command.is_empty()).then(|| run.command.join(" "));
    let host = (!run.host.is_empty()).then(|| format!("recorded by longpole {} on {}", run.version, run.host));
    command.into_iter().chain(host).chain(export.notes.iter().map(|note| format!("missing: {note}"))).collect()
}

/// What samples have in common that are one in the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'a> {
    stack: Option<StackId>,
    track: usize,
    /// Place of the span, and how it is known.
    span: Option<usize>,
    evidence: Evidence,
    wait: Option<WaitKey<'a>>,
}

/// What waits have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct WaitKey<'a> {
    kind: WaitKind,
    syscall: &'a str,
    is_idle: bool,
}

/// The samples of the profile, in the order in which each is first met, with the values of the four types.
fn rows<'a>(export: &ProfileExport<'a>, tracks: &Tracks<'a>) -> Vec<(Key<'a>, [i64; 4])> {
    let recording = export.recording;
    let mut numbers: HashMap<Key<'a>, usize> = HashMap::new();
    let mut rows: Vec<(Key<'a>, [i64; 4])> = Vec::new();
    let mut add = |key: Key<'a>, values: [i64; 4]| {
        let number = *numbers.entry(key).or_insert(rows.len());
        match rows.get_mut(number) {
            Some((_, sums)) => sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value)),
            None => rows.push((key, values)),
        }
    };
    let whose = |link: Option<&SampleLink>| {
        let evidence = link.map_or(Evidence::None, |link| link.evidence);
        (export.span_of(link).map(|(place, _)| place), evidence)
    };
    for &number in &export.samples {
        let sample = &recording.samples[number];
        let (span, evidence) = whose(recording.sample_link(number));
        let key = Key { stack: Some(sample.stack), track: tracks.of(Moment::Sample(number)), span, evidence, wait: None };
        add(key, [1, nanos(sample.weight_nanos), 0, 0]);
    }
    for &number in &export.waits {
        let wait = &recording.waits[number];
        let (span, evidence) = whose(recording.wait_link(number));
        let is_idle = export.is_idle.get(number).copied().unwrap_or(false);
        let about = WaitKey { kind: wait.kind, syscall: &wait.syscall, is_idle };
        let key = Key { stack: wait.stack, track: tracks.of(Moment::Wait(number)), span, evidence, wait: Some(about) };
        add(key, [0, 0, 1, nanos(wait.nanos())]);
    }
    rows
}

fn nanos(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

fn labels(export: &ProfileExport<'_>, track: &Track<'_>, key: &Key<'_>) -> Vec<Label<'static>> {
    let mut labels = Vec::new();
    let mut text = |key: &'static str, value: String| {
        if !value.is_empty() {
            labels.push(Label { key, value: LabelValue::Text(value) });
        }
    };
    text("process", track.process.map(|process| process.name.clone()).unwrap_or_default());
    text("thread", track.thread.map(|thread| thread.name.clone()).unwrap_or_default());
    if let Some(span) = key.span.map(|place| &export.recording.spans[place]) {
        text("trace_id", span.trace_id.to_string());
        text("span_id", span.span_id.to_string());
        text("span_name", span.name.to_string());
        text("service_name", span.service_name().to_owned());
    }
    if key.evidence != Evidence::None {
        text("span_evidence", key.evidence.as_str().to_owned());
    }
    if let Some(wait) = key.wait {
        text("wait", wait.kind.as_str().to_owned());
        text("syscall", wait.syscall.to_owned());
        text("idle", if wait.is_idle { "true".to_owned() } else { String::new() });
    }
    for (key, id) in [("pid", track.pid), ("tid", track.tid)] {
        if id > 0 {
            labels.push(Label { key, value: LabelValue::Number(i64::from(id)) });
        }
    }
    labels
}

/// Numbers in the profile of what stacks consist of.
#[derive(Default)]
struct Places {
    mappings: HashMap<MappingId, u64>,
    locations: LocationNumbers,
    no_stack: Option<u64>,
}

impl Places {
    /// With every binary that a stack stands in; readers take the first for the program, so that of the command stands first.
    fn of(export: &ProfileExport<'_>, profile: &mut PprofBuilder<'_>) -> Self {
        let recording = export.recording;
        let mut knows: HashMap<MappingId, [bool; 4]> = HashMap::new();
        let mut is_used = vec![false; recording.stacks.len()];
        let samples = export.samples.iter().map(|sample| recording.samples[*sample].stack);
        let waits = export.waits.iter().filter_map(|wait| recording.waits[*wait].stack);
        for stack in samples.chain(waits) {
            if let Some(used) = is_used.get_mut(stack.0 as usize) {
                *used = true;
            }
        }
        for stack in recording.stacks.iter().filter(|stack| is_used.get(stack.id.0 as usize) == Some(&true)) {
            for location in export.stack(stack.id) {
                if let LocationKind::Code { mapping, .. } = location.kind {
                    let frames = &location.frames;
                    let known = knows.entry(mapping).or_default();
                    known[0] |= frames.iter().any(|frame| frame.reason.is_none());
                    known[1] |= frames.iter().any(|frame| !frame.file.is_empty());
                    known[2] |= frames.iter().any(|frame| frame.line > 0);
                    known[3] |= frames.len() > 1;
                }
            }
        }
        let root = recording.processes.iter().find(|process| Some(process.pid) == recording.run.root_pid);
        let root = root.map_or("", |process| &*process.executable);
        let mut used: Vec<_> = recording.mappings.iter().filter_map(|mapping| Some((mapping, *knows.get(&mapping.id)?))).collect();
        used.sort_by_key(|(mapping, _)| mapping.path != root);
        let mut places = Places::default();
        for (mapping, knows) in used {
            let number = profile.mapping(pprof_builder::Mapping::of(mapping, knows));
            places.mappings.insert(mapping.id, number);
        }
        places
    }

    fn location(&mut self, profile: &mut PprofBuilder<'_>, location: &Location) -> u64 {
        let mappings = &self.mappings;
        self.locations.of(profile, location, &frames(location), |_, mapping| mappings.get(&mapping).copied().unwrap_or(0))
    }

    fn no_stack(&mut self, profile: &mut PprofBuilder<'_>) -> u64 {
        *self.no_stack.get_or_insert_with(|| {
            let lines = vec![(profile.function(NO_STACK, ""), 0)];
            profile.location(pprof_builder::Location { lines, ..Default::default() })
        })
    }
}
