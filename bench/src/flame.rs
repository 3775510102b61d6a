//! The cost of flame graphs over ten million samples of a million spans, in memory.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_analysis::link::samples;
use longpole_analysis::report::{Excerpt, FlameTime};
use longpole_model::stack::{LocationKind, Runtime};
use longpole_model::{
    ContextRecord, Frame, Location, LocationId, Monotonic, NodeId, Recording, Sample, Span, SpanId, Stack, StackId, TimeRange, TraceId,
    text,
};

use crate::timing::own_peak_megabytes;

const SAMPLES: u64 = 10_000_000;
const SPANS: u64 = 1_000_000;
/// From one sample to the next.
const PERIOD_NANOS: u64 = 1_001_001;
/// Differently named spans.
const NAMES: u64 = 500;
const STACKS: u64 = 40_000;
const FUNCTIONS: u64 = 20_000;
/// Functions of a stack; those of all stacks make about 200,000 boxes.
const DEPTH: u64 = 41;
/// One sample in this many has no context record.
const WITHOUT_RECORD: u64 = 10;

/// The place of a stack's function at this depth: stacks part ways late, as those of a program do.
fn function(stack: u64, depth: u64) -> u64 {
    let left = DEPTH - 1 - depth;
    // The number of stacks that still share their functions at this depth.
    let together = STACKS >> (16 - left.min(16)).min(15);
    (stack / together.max(1)).wrapping_mul(2_654_435_761).wrapping_add(depth * 487) % FUNCTIONS
}

fn recording() -> Result<Recording> {
    let mut recording = text::parse("run server 0..1s\n")?;
    let trace = TraceId::new(recording.run.trace_id.bytes()).context("a trace id")?;
    let span_id = |number: u64| SpanId::new((number + 1).to_be_bytes()).context("a span id");
    let length = SAMPLES / SPANS * PERIOD_NANOS;
    for number in 0..SPANS {
        let moment = |nanos: u64| text::ORIGIN.plus_nanos(nanos as i64);
        let range = TimeRange { start: moment(number * length), end: moment((number + 1) * length) };
        let name = format!("operation {}", number % NAMES);
        recording.spans.push(Span { pid: Some(1), ..Span::new(trace, span_id(number)?, &name, range) });
    }
    let named = |i: u64| Location {
        id: LocationId(i as u32),
        kind: LocationKind::Named { runtime: Runtime::Kernel, address: None },
        frames: vec![Frame { function: format!("module::function_{i}").into(), file: Default::default(), line: 0, reason: None }],
    };
    recording.locations = (0..FUNCTIONS).map(named).collect();
    let stack =
        |i: u64| Stack { id: StackId(i as u32), locations: (0..DEPTH).rev().map(|depth| LocationId(function(i, depth) as u32)).collect() };
    recording.stacks = (0..STACKS).map(stack).collect();
    let mut random = 1u64;
    for number in 0..SAMPLES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let span_id = span_id(number / (SAMPLES / SPANS))?;
        let has_record = number % WITHOUT_RECORD != 0;
        recording.samples.push(Sample {
            time: Monotonic(text::ORIGIN_MONOTONIC.0 + number * PERIOD_NANOS),
            pid: 1,
            tid: 1,
            cpu: 0,
            // Some stacks are much more frequent than others.
            stack: StackId(((random % STACKS) * ((random >> 32) % STACKS) / STACKS) as u32),
            weight_nanos: PERIOD_NANOS,
            context: if has_record { ContextRecord::Span { trace_id: trace, span_id } } else { ContextRecord::Absent },
        });
    }
    recording.run.end = recording.clock.to_unix(Monotonic(text::ORIGIN_MONOTONIC.0 + SAMPLES * PERIOD_NANOS));
    Ok(recording)
}

/// Prints seconds and megabytes.
pub(crate) fn measure() -> Result<()> {
    let mut recording = recording()?;
    println!("{SAMPLES} samples of {STACKS} stacks, in {SPANS} spans");
    println!("  the recording in memory            {:9.0} MB", own_peak_megabytes()?);
    let timed = |name: &str, start: Instant| -> Result<()> {
        println!("  {name:34} {:9.3} s, peak {:.0} MB", start.elapsed().as_secs_f64(), own_peak_megabytes()?);
        Ok(())
    };
    let start = Instant::now();
    recording.sample_links = samples::link(&recording);
    timed("samples tied to spans", start)?;
    let start = Instant::now();
    let report = Report::new(recording);
    timed("the answer", start)?;
    let flame = |name: &str, roots: Option<&[NodeId]>| -> Result<()> {
        let start = Instant::now();
        let flame = black_box(report.flame(roots, FlameTime::OnCpu, Excerpt::default()));
        timed(&format!("{name}, {} boxes", flame.tree.len()), start)
    };
    flame("first flame graph", None)?;
    flame("flame graph of all", None)?;
    let nodes: Vec<NodeId> = report.forest().ids().collect();
    flame("of one span", Some(&[nodes[nodes.len() / 2]]))?;
    flame("of every other span", Some(&nodes[1..].iter().copied().step_by(2).collect::<Vec<_>>()))?;
    flame("of the spans of one name", Some(&nodes[1..].iter().copied().step_by(NAMES as usize).collect::<Vec<_>>()))
}
