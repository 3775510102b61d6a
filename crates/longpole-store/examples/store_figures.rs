//! Figures of the store: `cargo run -p longpole-store --example store_figures [samples] [spans]`.
//!
//! Prints the median of 21 repetitions of each step that stands between a user and an answer: opening the store and
//! beginning a recording (before the command starts), appending and replaying the log, sealing, reading.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people, not a library")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use longpole_model::sink::{Observation, ObservationSink};
use longpole_model::stack::{Frame, LocationId, LocationKind, Mapping, MappingId, StackId};
use longpole_model::time::{ClockAnchor, Monotonic, TimeRange, Timestamp};
use longpole_model::{
    AttributeValue, Attributes, CaptureMode, ContextRecord, CpuSlice, Evidence, Resource, Run, Sample, SampleLink, Scope, Span, SpanId,
    SpanKind, TraceId, VirtOffset,
};
use longpole_store::{Assembler, Frame as WalFrame, RecordingWriter, Store, SummaryRow};

const REPETITIONS: usize = 21;

fn trace() -> TraceId {
    TraceId::new([7; 16]).unwrap()
}

fn span_id(number: u64) -> SpanId {
    SpanId::new((number + 1).to_be_bytes()).unwrap()
}

fn run() -> Run {
    Run {
        command: vec!["deploy".into(), "--all".into()],
        working_directory: "/src".into(),
        host: "host".into(),
        cpus: 2,
        version: "0.1.0".into(),
        trace_id: trace(),
        root_span_id: span_id(0),
        root_pid: None,
        start: Timestamp(1_700_000_000_000_000_000),
        end: None,
        exit: None,
        rate_hz: 999,
        mode: CaptureMode::User { why_not_kernel: String::new() },
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    }
}

/// What a recorder sees: a process; with samples also 200 stacks of 40 entries over 2,000 locations, and a switch a sample.
fn observations(samples: u64) -> Vec<Observation> {
    let unix = Timestamp(1_700_000_000_000_000_000);
    let mut seen = vec![Observation::Clock(ClockAnchor { monotonic: Monotonic(1 << 40), unix, bracket_nanos: 40 })];
    seen.push(Observation::ProcessStarted { pid: 4711, parent_pid: None, time: Monotonic(1 << 40) });
    if samples == 0 {
        return seen;
    }
    for id in 0..10 {
        let path = format!("/usr/lib/x86_64-linux-gnu/lib{id}.so");
        seen.push(Observation::Mapping(Mapping { id: MappingId(id), path, build_id: vec![id as u8; 20] }));
    }
    for id in 0..2_000 {
        let kind = LocationKind::Code { mapping: MappingId(id % 10), address: VirtOffset(u64::from(id) * 97 + 0x1000) };
        seen.push(Observation::Location { id: LocationId(id), kind });
    }
    for id in 0..200 {
        let locations = (0..40).map(|depth| LocationId((id * 31 + depth * 7) % 2_000)).collect();
        seen.push(Observation::Stack { id: StackId(id), locations });
    }
    for number in 0..samples {
        let time = (1 << 40) + number * 1_001_001;
        let tid = 4711 + (number % 8) as u32;
        seen.push(Observation::Sample(Sample {
            time: Monotonic(time),
            pid: 4711,
            tid,
            cpu: (number % 2) as u32,
            stack: StackId((number * 17 % 200) as u32),
            weight_nanos: 1_001_001,
            context: ContextRecord::Span { trace_id: trace(), span_id: span_id(number % 300) },
        }));
        let start = Monotonic(time - 400_000);
        seen.push(Observation::CpuSlice(CpuSlice { pid: 4711, tid, start, end: Monotonic(time + 300_000), preempted: true }));
    }
    seen
}

fn spans(count: u64) -> Vec<Span> {
    let mut resource = Resource::default();
    resource.attributes.push("service.name", AttributeValue::Str("deploy".into()));
    resource.attributes.push("process.pid", AttributeValue::Int(4711));
    let (resource, scope) = (Arc::new(resource), Arc::new(Scope::default()));
    (0..count)
        .map(|number| {
            let mut attributes = Attributes::default();
            attributes.push("resource.name", AttributeValue::Str(format!("bucket-{number}").into()));
            attributes.push("retries", AttributeValue::Int(2));
            let start = Timestamp(1_700_000_000_000_000_000 + number as i64 * 1_000_000);
            let range = TimeRange { start, end: start.plus_nanos(5_000_000) };
            Span {
                parent_span_id: (number > 0).then(|| span_id(number / 4)),
                flags: 1,
                kind: SpanKind::Internal,
                attributes,
                resource: Arc::clone(&resource),
                scope: Arc::clone(&scope),
                pid: Some(4711),
                ..Span::new(trace(), span_id(number), format!("step {}", number % 20), range)
            }
        })
        .collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn report(what: &str, times: Vec<Duration>) {
    println!("{what:<58} {:>9.3} ms", median(times).as_secs_f64() * 1e3);
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let (samples, span_count) = (arguments.next().unwrap_or(11_000), arguments.next().unwrap_or(300));
    let root = std::env::temp_dir().join(format!("longpole-store-figures-{}", std::process::id()));
    let (seen, spans) = (observations(samples), spans(span_count));
    println!("{samples} samples, {span_count} spans; median of {REPETITIONS}");

    let mut first = Vec::new();
    for _ in 0..REPETITIONS {
        let _ = std::fs::remove_dir_all(&root);
        let begun = Instant::now();
        drop(Store::open(&root).unwrap());
        first.push(begun.elapsed());
    }
    report("open a store that is not there yet", first);

    let (mut open, mut create, mut close) = (Vec::new(), Vec::new(), Vec::new());
    let (mut append, mut replay, mut write, mut read) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut bytes = (0, 0);
    for _ in 0..REPETITIONS {
        let begun = Instant::now();
        let store = Store::open(&root).unwrap();
        open.push(begun.elapsed());
        let begun = Instant::now();
        let writer = store.create(&run()).unwrap();
        create.push(begun.elapsed());

        let begun = Instant::now();
        let mut sink = writer.wal().observation_sink();
        for observation in &seen {
            sink.observe(observation.clone()).unwrap();
        }
        sink.flush().unwrap();
        append.push(begun.elapsed());
        bytes.0 = size(writer.directory());

        let begun = Instant::now();
        let mut recording = assemble(&writer);
        replay.push(begun.elapsed());
        recording.spans.clone_from(&spans);
        for location in &mut recording.locations {
            let function = format!("crate{}::module::function_{}", location.id.0 % 7, location.id.0);
            let frame = Frame { function: function.into(), file: "/src/lib.rs".into(), line: location.id.0 + 1, reason: None };
            location.frames = vec![frame.clone(), frame];
        }
        let link = |sample: &Sample| SampleLink {
            span: match sample.context {
                ContextRecord::Span { trace_id, span_id } => Some((trace_id, span_id)),
                ContextRecord::Absent | ContextRecord::NoSpan | ContextRecord::Torn => None,
            },
            evidence: Evidence::Record,
        };
        recording.sample_links = recording.samples.iter().map(link).collect();

        let begun = Instant::now();
        writer.write_segments(&recording, &SummaryRow::of_recording(&recording, None)).unwrap();
        write.push(begun.elapsed());
        bytes.1 = size(writer.directory());

        let stored = store.recording(writer.name()).unwrap();
        let begun = Instant::now();
        let again = stored.read().unwrap();
        read.push(begun.elapsed());
        assert_eq!(again.samples, recording.samples);

        drop(stored);
        drop(writer);
        let begun = Instant::now();
        drop(store);
        close.push(begun.elapsed());
    }
    report("open a store", open);
    report("begin a recording", create);
    report("append what the recorder saw", append);
    report("replay and assemble it", replay);
    report("write the segments", write);
    report("read the segments", read);
    report("close the store", close);
    println!("log {} bytes, segments {} bytes", bytes.0, bytes.1);
    std::fs::remove_dir_all(&root).unwrap();
}

fn assemble(writer: &RecordingWriter) -> longpole_model::Recording {
    let mut assembler = Assembler::new(run());
    for frame in writer.replay().unwrap() {
        if let WalFrame::Observations(batch) = frame.unwrap() {
            batch.into_iter().for_each(|observation| assembler.observe(observation));
        }
    }
    assembler.finish()
}

fn size(directory: &std::path::Path) -> u64 {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() }
        })
        .sum()
}
