//! A trace with the code behind its spans: what continuous profiles have of them.
//!
//! ```text
//! profiles   span 7, the span itself      main;handle;parse 30 ms     3 samples of span 7
//!            span 2, a local root         main;handle;render 20 ms    2 samples of span 2, or, if it has spans below it, of one of those: of none for sure
//! ```

use std::collections::{HashMap, HashSet};

use longpole_model::profile::{LinkScope, ProfiledSpan};
use longpole_model::stack::LocationKind;
use longpole_model::{
    ContextRecord, Evidence, Location, LocationId, Loss, LossKind, Monotonic, Recording, Runtime, Sample, SampleLink, Span, SpanId, Stack,
    StackId, Text,
};
use longpole_store::StoreError;
use longpole_store::live::{ProfilePart, QueryLimits};

/// CPU time of a sample, about: profilers take a hundred a second.
const PERIOD_NANOS: i64 = 10_000_000;

/// Samples of one stack of one span, and of a trace, about: their number only says how sure a share is.
const SAMPLES_MAX: i64 = 1_000;
const TRACE_SAMPLES_MAX: i64 = 100_000;

/// Memory of a sample, with what a report keeps beside it: about.
const SAMPLE_BYTES: u64 = 512;

/// Adds what profiles have of the CPU time of its spans. Samples have no times.
pub(super) fn add(recording: &mut Recording, parts: &[ProfilePart<ProfiledSpan>], limits: &QueryLimits) -> Result<(), StoreError> {
    let descendants = local_descendants(&recording.spans);
    let known: HashMap<SpanId, &Span> = recording.spans.iter().map(|span| (span.span_id, span)).collect();
    let mut samples: Vec<(Sample, SampleLink)> = Vec::new();
    let sums = parts.iter().map(|part| part.sums.len()).sum::<usize>().max(1);
    let each_max = (TRACE_SAMPLES_MAX / i64::try_from(sums).unwrap_or(i64::MAX)).clamp(1, SAMPLES_MAX);
    let mut memory = limits.growing();
    for part in parts {
        // A copy of its stacks.
        memory.take(part.memory_bytes())?;
        let first_location = number(recording.locations.len());
        let first_stack = number(recording.stacks.len());
        let mut taken: HashSet<StackId> = HashSet::new();
        for ((named, stack), nanos) in &part.sums {
            let Some(span) = named.span_id.and_then(|id| known.get(&id)) else { continue };
            let below = descendants.get(&span.span_id).copied().unwrap_or_default();
            let link = match named.scope {
                LinkScope::LocalRoot | LinkScope::Trace if below > 0 => {
                    SampleLink { span: None, evidence: Evidence::Ambiguous { candidates: below.saturating_add(1) } }
                }
                _ => SampleLink { span: Some((span.trace_id, span.span_id)), evidence: Evidence::Label },
            };
            let count = (nanos / PERIOD_NANOS).clamp(1, each_max);
            memory.take(count.unsigned_abs() * SAMPLE_BYTES)?;
            taken.insert(*stack);
            for place in 0..count {
                let weight = nanos.max(&0) / count + i64::from(place < nanos.max(&0) % count);
                let sample = Sample {
                    time: Monotonic(0),
                    pid: 0,
                    tid: 0,
                    cpu: 0,
                    stack: StackId(first_stack.saturating_add(stack.0)),
                    weight_nanos: weight.cast_unsigned(),
                    context: ContextRecord::Absent,
                };
                samples.push((sample, link));
            }
        }
        if taken.is_empty() {
            continue;
        }
        let moved = |id: LocationId| LocationId(first_location.saturating_add(id.0));
        // Binaries are those of other machines; functions say what they are.
        let kind = |kind: &LocationKind| match kind {
            LocationKind::Code { .. } => LocationKind::Named { runtime: Runtime::Other, address: None },
            other => other.clone(),
        };
        let locations = part.stacks.locations.iter();
        recording.locations.extend(locations.map(|location| Location {
            id: moved(location.id),
            kind: kind(&location.kind),
            frames: location.frames.clone(),
        }));
        let stacks = part.stacks.stacks.iter();
        recording.stacks.extend(stacks.map(|stack| Stack {
            id: StackId(first_stack.saturating_add(stack.id.0)),
            locations: stack.locations.iter().map(|location| moved(*location)).collect(),
        }));
    }
    if samples.is_empty() {
        return Ok(());
    }
    let (all, detail) = (samples.len() as u64, "profiles have no timestamps, so their samples are on no timeline");
    Loss::new(LossKind::SamplesUntimed, all, detail).merge_into(&mut recording.losses);
    (recording.samples, recording.sample_links) = samples.into_iter().unzip();
    Ok(())
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// How many spans of the same service stand below each span.
fn local_descendants(spans: &[Span]) -> HashMap<SpanId, u32> {
    let parents: HashMap<SpanId, (SpanId, Text)> =
        spans.iter().filter_map(|span| Some((span.span_id, (span.parent_span_id?, span.resource.service())))).collect();
    let mut below: HashMap<SpanId, u32> = HashMap::new();
    for span in spans {
        let (mut at, service) = (span.span_id, span.resource.service());
        // Ids may lead in a circle.
        for _ in 0..spans.len().min(LEVELS_MAX) {
            let Some((parent, _)) = parents.get(&at).filter(|(_, of)| *of == service) else { break };
            *below.entry(*parent).or_default() += 1;
            at = *parent;
        }
    }
    below
}

/// Levels of a trace that are followed.
const LEVELS_MAX: usize = 64;
