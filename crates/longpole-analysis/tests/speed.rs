//! How long a million spans take. Measured by hand: `cargo test --release -p longpole-analysis --test speed -- --ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "a measurement is read by people")]

use std::sync::Arc;
use std::time::Duration;

use longpole_analysis::Report;
use longpole_analysis::schedule::replay::Replay;
use longpole_analysis::schedule::saving::Change;
use longpole_analysis::tree::forest::Forest;
use longpole_model::{AttributeValue, Attributes, Id, NodeId, Recording, Span, text};

const SPANS: usize = 1_000_000;

/// A tree of ten children each, some beside each other and some one after the other; ten services, a thousand names.
fn wide(count: usize) -> Recording {
    let mut recording = text::parse("run x 0..1000s\n  n 0..1s svc pid 1\n").expect("the notation");
    let template = recording.spans.remove(0);
    let services: Vec<Span> = (0..10).map(|i| text::parse(&format!("n 0..1s svc{i}\n")).expect("the notation").spans.remove(0)).collect();
    // Start, end of each span; children of i are 10 i + 1 .. 10 i + 10.
    let mut times = vec![(0i64, 1_000_000_000_000i64); count + 1];
    for i in 1..=count {
        let (parent, place) = ((i - 1) / 10, (i - 1) as i64 % 10);
        let (from, to) = times[parent];
        let piece = (to - from) / 10;
        // Clocks of nanoseconds seldom say the same twice.
        let jitter = (i as i64).wrapping_mul(2_654_435_761) % 997;
        let start = jitter + if parent % 3 == 0 { from } else { from + place * piece };
        times[i] = (start + piece / 50, start + piece - piece / 50);
        let service = &services[i % 10];
        let mut attributes = Attributes::default();
        for key in ["http.method", "http.url", "thread.id", "code.namespace", "level"] {
            attributes.push(key, AttributeValue::Str(format!("value {}", i % 1000).into()));
        }
        recording.spans.push(Span {
            span_id: text::span_id(i as u64),
            parent_span_id: Some(text::span_id(parent as u64)),
            name: format!("operation {}", (i * 7919) % 1000).into(),
            start: text::ORIGIN.plus_nanos(times[i].0),
            end: text::ORIGIN.plus_nanos(times[i].1),
            resource: Arc::clone(&service.resource),
            attributes,
            ..template.clone()
        });
    }
    recording
}

/// CPU time of this thread so far: wall time on a busy machine lies.
fn cpu() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(spent.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

#[test]
#[ignore = "a measurement; wants a release build and an idle machine"]
fn a_million_spans() {
    let recording = wide(SPANS);
    for _ in 0..3 {
        let began = cpu();
        let forest = Forest::build(&recording);
        let forest_done = cpu();
        let replay = Replay::new(&recording, &forest);
        let replay_done = cpu();
        let path = replay.critical_path(&forest);
        let path_done = cpu();
        for change in [Change::Zero, Change::Half, Change::OwnZero] {
            replay.saves(&[NodeId::at(1)], change);
        }
        let saving_done = cpu();
        println!(
            "forest {:?}  schedule {:?}  path {:?} ({} segments)  three savings {:?}  all {:?}",
            forest_done - began,
            replay_done - forest_done,
            path_done - replay_done,
            path.segments.len(),
            saving_done - path_done,
            saving_done - began,
        );
    }
    let copy = recording.clone();
    let began = cpu();
    let report = Report::new(copy);
    println!("whole report {:?}, {} poles", cpu() - began, report.poles().len());
}
