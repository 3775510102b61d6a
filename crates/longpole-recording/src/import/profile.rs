//! pprof, folded stacks and profiles of OTLP become a recording: stacks with weights, and no moment for any of them, unless the profile
//! has one for each.
//!
//! A recording whose clock was never read is what says so: its samples stand on no timeline, and belong to no span but those that
//! their labels name.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use longpole_analysis::link::labels::LabelledSpans;
use longpole_model::{
    CaptureMode, Clock, ClockAnchor, ContextRecord, Loss, LossKind, Monotonic, Process, Recording, Resource, Sample, SampleLink, SpanLabel,
    StackId, Thread, Timestamp,
};
use longpole_store::Assembler;
use longpole_wire::limits::STACK_FRAMES_MAX;
use longpole_wire::profile_import::{Profile, ProfileSample, ValueType};
use longpole_wire::redact::Redactor;

use super::unseen::{ASSUMED_WEIGHT_NANOS, command_of, unseen_run};

/// Samples of a profile that the import keeps one by one. In a profile with more (a file may count a billion), each stack becomes one
/// sample with all its time.
const SAMPLES_MAX: u64 = 1 << 20;

/// Types of values that the import prefers: time on a CPU, then on the clock.
const TIMES: [&str; 2] = ["cpu", "wall"];

/// Times for which a thread was not on a CPU.
const OFF_CPU: &str = "off_cpu";

/// Why a profile cannot be shown: it counts no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoTime {
    types: Vec<ValueType>,
}

impl std::fmt::Display for NoTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types: Vec<String> = self.types.iter().map(ValueType::to_string).collect();
        write!(f, "it counts {}; longpole reads only profiles of time or of samples", types.join(", "))
    }
}

impl std::error::Error for NoTime {}

/// Nanoseconds of a unit, as pprof spells units.
fn nanos_of(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => Some(1),
        "microseconds" | "microsecond" | "us" => Some(1_000),
        "milliseconds" | "millisecond" | "ms" => Some(1_000_000),
        "seconds" | "second" | "s" => Some(1_000_000_000),
        _ => None,
    }
}

/// Which value of a sample is its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weights {
    /// Place of the value.
    value: usize,
    /// Nanoseconds of one, times `over`.
    nanos: u64,
    over: u64,
    /// Place of the number of samples, where it is another one.
    count: Option<usize>,
    /// What is assumed of the unit, where the file does not give it.
    assumed: Option<AssumedUnit>,
}

/// What values without a unit are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AssumedUnit {
    /// Samples, each of [`ASSUMED_WEIGHT_NANOS`].
    Samples,
    /// Nanoseconds: all of them are too large for numbers of samples.
    Nanoseconds,
}

/// The least value of a file whose values are nanoseconds: folded stacks have no unit, and tools write samples or nanoseconds, longpole the latter. A
/// file whose rarest stack has this many samples would be days long.
const NANOSECONDS_FROM: i64 = 100_000;

impl Weights {
    fn of(profile: &Profile) -> Option<Weights> {
        let types = &profile.types;
        let nanos = |place: usize| nanos_of(&types[place].unit);
        let timed = |place: &usize| nanos(*place).is_some();
        let named = |name: &str| types.iter().position(|known| known.name == name).filter(timed);
        let count = types.iter().position(|known| known.unit == "count" && matches!(&known.name[..], "samples" | "sample"));
        let time = TIMES.iter().find_map(|name| named(name)).or(profile.default_type.filter(timed));
        // Samples of what ran tell more of code than times of what did not.
        let is_wanted = |place: &usize| count.is_none() || types[*place].name != OFF_CPU;
        let time = time.or_else(|| (0..types.len()).filter(is_wanted).find(timed));
        if let Some((value, nanos)) = time.and_then(|value| Some((value, nanos(value)?))) {
            return Some(Weights { value, nanos, over: 1, count, assumed: None });
        }
        let period = profile.period.as_ref().and_then(|(kind, period)| nanos_of(&kind.unit)?.checked_mul(u64::try_from(*period).ok()?));
        let are_nanoseconds = |value: usize| {
            let mut values = profile.samples.iter().map(|sample| sample.values[value]).filter(|value| *value != 0).peekable();
            period.is_none() && values.peek().is_some() && values.all(|value| value >= NANOSECONDS_FROM)
        };
        let one = |value, over| match over {
            1 if are_nanoseconds(value) => Weights { value, nanos: 1, over, count: None, assumed: Some(AssumedUnit::Nanoseconds) },
            _ => Weights {
                value,
                nanos: period.unwrap_or(ASSUMED_WEIGHT_NANOS),
                over,
                count: (over == 1).then_some(value),
                assumed: period.is_none().then_some(AssumedUnit::Samples),
            },
        };
        let millionths = types.iter().position(|known| known.unit == "millionths");
        count.map(|value| one(value, 1)).or_else(|| millionths.map(|value| one(value, 1_000_000)))
    }

    fn nanos(self, values: &[i64]) -> u64 {
        let value = u64::try_from(values[self.value]).unwrap_or(0);
        u64::try_from(u128::from(value) * u128::from(self.nanos) / u128::from(self.over)).unwrap_or(u64::MAX)
    }

    /// Whether something of this is counted, or nothing at all is.
    fn is_there(self, values: &[i64]) -> bool {
        let is_counted = |place: usize| values[place] != 0;
        is_counted(self.value) || self.count.is_some_and(is_counted) || values.iter().all(|value| *value == 0)
    }

    /// Whether time, or a number of samples, is taken away, as a difference of two profiles does (`pprof -diff_base`).
    fn is_negative(self, values: &[i64]) -> bool {
        values[self.value] < 0 || self.count.is_some_and(|place| values[place] < 0)
    }

    fn count(self, values: &[i64]) -> u64 {
        self.count.map_or(1, |place| u64::try_from(values[place]).unwrap_or(0)).max(1)
    }
}

/// What labels say of the samples of a recording.
#[derive(Debug, Default)]
pub(super) struct Labels {
    distinct: Vec<SpanLabel>,
    /// For each sample the place of its label.
    of_sample: Vec<u32>,
}

impl Labels {
    /// Ties the samples of a recording to its spans.
    pub(super) fn tie(&self, recording: &mut Recording) {
        let spans = LabelledSpans::of(&recording.spans);
        let links: Vec<SampleLink> = self.distinct.iter().map(|label| spans.link(label)).collect();
        recording.sample_links = self.of_sample.iter().map(|&label| links[label as usize]).collect();
    }
}

/// The recording of a profile, and its labels. `written` is when its file was: the profile's own time, where it does not say that.
pub(super) fn recording(path: &Path, profile: Profile, written: Timestamp) -> Result<(Recording, Labels), NoTime> {
    let Some(weights) = Weights::of(&profile) else { return Err(NoTime { types: profile.types }) };
    let mut run = unseen_run(command_of([path.to_string_lossy().into_owned()]));
    run.mode = CaptureMode::Imported;
    run.start = profile.start.unwrap_or(written);
    run.end = Some(run.start.plus_nanos(i64::try_from(profile.duration_nanos).unwrap_or(i64::MAX)));
    let period = profile.period.as_ref().and_then(|(kind, period)| nanos_of(&kind.unit)?.checked_mul(u64::try_from(*period).ok()?));
    run.rate_hz = period.map_or(0, |nanos| u32::try_from(1_000_000_000 / nanos.max(1)).unwrap_or(u32::MAX));

    // In a profile of OTLP each sample counts one thing.
    let mut shown: Vec<&ProfileSample> = profile.samples.iter().filter(|sample| weights.is_there(&sample.values)).collect();
    let is_timed = !shown.is_empty() && shown.iter().all(|sample| sample.time.is_some());
    if is_timed {
        shown.sort_by_key(|sample| sample.time);
        let times = || shown.iter().filter_map(|sample| sample.time);
        run.start = times().chain(profile.start).min().unwrap_or(run.start);
        run.end = times().chain(run.end).max();
    }
    let all = shown.iter().fold(0u64, |sum, sample| sum.saturating_add(weights.count(&sample.values)));
    let is_each = all <= SAMPLES_MAX || is_timed;
    let (start, shown_samples) = (run.start, shown.len());
    let negative = shown.iter().filter(|sample| weights.is_negative(&sample.values)).count() as u64;
    let mut recording = Assembler::new(run).finish();
    if is_timed {
        let monotonic = Monotonic(start.unix_nanos().max(0).cast_unsigned());
        let end = Monotonic(recording.run.end.unwrap_or(start).unix_nanos().max(0).cast_unsigned());
        recording.clock = Clock::new(vec![ClockAnchor { monotonic, unix: start, bracket_nanos: 0 }]);
        (recording.processes, recording.threads) = people(&shown, &profile.names, end);
        let processes = recording.processes.iter_mut().map(|process| &mut process.name);
        let names = processes.chain(recording.threads.iter_mut().map(|thread| &mut thread.name));
        let mut redactor = Redactor::default();
        let redacted = names.map(|name| redactor.string(name)).sum::<u64>();
        if redacted > 0 {
            let detail = "in names of processes and threads; their name or format looks like a credential";
            recording.losses.push(Loss::new(LossKind::ValuesRedacted, redacted, detail));
        }
    }
    let (mut labels, mut places) = (Labels::default(), HashMap::new());
    for known in &shown {
        let nanos = weights.nanos(&known.values);
        let count = if is_each && !is_timed { weights.count(&known.values) } else { 1 };
        let label = *places.entry(&known.span).or_insert_with(|| {
            labels.distinct.push(known.span.clone());
            labels.distinct.len() as u32 - 1
        });
        for number in 0..count {
            labels.of_sample.push(label);
            recording.samples.push(Sample {
                time: moment(known),
                pid: known.pid,
                tid: known.tid,
                cpu: 0,
                stack: StackId(known.stack),
                // What does not divide goes to the first ones.
                weight_nanos: nanos / count + u64::from(number < nanos % count),
                context: ContextRecord::Absent,
            });
        }
    }
    labels.tie(&mut recording);
    (recording.stacks, recording.locations, recording.mappings) = (profile.stacks, profile.locations, profile.mappings);
    let mut losses = Vec::new();
    if profile.stacks_cut > 0 {
        let detail = format!("stacks of more than {STACK_FRAMES_MAX} frames: longpole keeps the innermost");
        losses.push(Loss::new(LossKind::StacksTruncated, profile.stacks_cut, detail));
    }
    if !is_timed {
        losses.push(Loss::new(
            LossKind::SamplesUntimed,
            all,
            "the file has no timestamps, so there is no timeline, and a sample belongs to a span only if a label names it",
        ));
    }
    if let Some(assumed) = weights.assumed {
        let detail = match assumed {
            AssumedUnit::Samples => "the file does not give the duration of a sample; each counts as 1 ms",
            AssumedUnit::Nanoseconds => "the file does not give a unit; no value is below 100,000, so they count as nanoseconds",
        };
        losses.push(Loss::new(LossKind::WeightsAssumed, all, detail));
    }
    if !is_each {
        let detail = format!("more samples than {SAMPLES_MAX}: each stack is shown as one sample with all its time");
        losses.push(Loss::new(LossKind::SamplesUntimed, profile.samples.len() as u64, detail));
    }
    if negative > 0 {
        let detail = "samples with negative values, as in a difference of two profiles: each counts as 0, so all sums are too large";
        losses.push(Loss::new(LossKind::OtherSignals, negative, detail));
    }
    let shown = &profile.types[weights.value];
    let others = (0..profile.types.len()).filter(|place| *place != weights.value && Some(*place) != weights.count);
    let others: Vec<String> = others.map(|place| profile.types[place].to_string()).collect();
    if !others.is_empty() {
        let detail = format!("values of {}; longpole shows one sample type of a file: {shown}", others.join(", "));
        let left_out = profile.samples.len() - shown_samples;
        losses.push(Loss::new(LossKind::OtherSignals, if left_out > 0 { left_out } else { profile.samples.len() } as u64, detail));
    }
    losses.into_iter().for_each(|loss| loss.merge_into(&mut recording.losses));
    Ok((recording, labels))
}

/// When a sample was taken, on a clock that is the wall clock's; 0 where nobody says.
fn moment(sample: &ProfileSample) -> Monotonic {
    Monotonic(sample.time.map_or(0, |time| time.unix_nanos().max(0).cast_unsigned()))
}

/// The processes and threads of samples that stand in the order of time: each from its first sample to the end.
fn people(samples: &[&ProfileSample], names: &BTreeMap<(u32, u32), String>, end: Monotonic) -> (Vec<Process>, Vec<Thread>) {
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    let name = |pid: u32, tid: u32| names.get(&(pid, tid)).cloned().unwrap_or_default();
    for sample in samples.iter().filter(|sample| sample.pid > 0) {
        let (pid, start) = (sample.pid, moment(sample));
        processes.entry(pid).or_insert_with(|| Process {
            pid,
            parent_pid: None,
            name: name(pid, 0),
            executable: "".into(),
            arguments: [].into(),
            start,
            end: Some(end),
            execed: true,
            exit: None,
            listens: Vec::new(),
            resource: Resource::default(),
        });
        if sample.tid > 0 {
            let tid = sample.tid;
            threads.entry((pid, tid)).or_insert_with(|| Thread {
                pid,
                tid,
                name: name(pid, tid),
                start,
                end: Some(end),
                totals: None,
                ident: None,
            });
        }
    }
    let (mut processes, mut threads): (Vec<Process>, Vec<Thread>) = (processes.into_values().collect(), threads.into_values().collect());
    processes.sort_by_key(|process| process.start);
    threads.sort_by_key(|thread| thread.start);
    (processes, threads)
}
