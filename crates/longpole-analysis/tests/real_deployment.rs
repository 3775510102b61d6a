//! Story: a real deployment of 21 resources, as longpole gets it from the real Pulumi (fixtures/pulumi/README.md).
//! Guarantees: the three channels become one tree without an orphan, every operation knows its resource, and the first pole is the
//! resource that is slow by construction, with the saving that follows from the construction.

use longpole_analysis::{Report, resources};
use longpole_model::{Recording, ResourceEvent, ResourceStep, SpanBatch, SpanId, Timestamp, TraceId, text};
use longpole_wire::pulumi_event::{self, Step};
use longpole_wire::{Limits, appdash, otlp};

/// What the slow resource saves by construction: see fixtures/pulumi/deployment/Pulumi.yaml.
const SAVED_MILLIS: i64 = 2_100;

/// What Pulumi itself does meanwhile.
const TOLERANCE_MILLIS: i64 = 105;

/// The messages of a capture, and when each came.
fn messages(mut bytes: &[u8]) -> Vec<(Timestamp, &[u8])> {
    let mut out = Vec::new();
    while let Some((time, rest)) = bytes.split_first_chunk() {
        let (length, rest) = rest.split_first_chunk().unwrap();
        let (message, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        out.push((Timestamp(i64::from_be_bytes(*time)), message));
        bytes = rest;
    }
    out
}

/// The text in an `EventRequest`: field 1, behind its length.
fn event_text(message: &[u8]) -> &str {
    let length_bytes = message[1..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    std::str::from_utf8(&message[1 + length_bytes..]).unwrap()
}

fn events() -> Vec<ResourceEvent> {
    let messages = messages(include_bytes!("../../../fixtures/pulumi/deployment-events.bin"));
    let parsed = messages.into_iter().filter(|(_, message)| !message.is_empty()).filter_map(|(time, message)| {
        let event = pulumi_event::parse(event_text(message)).unwrap()?;
        Some(ResourceEvent {
            time,
            step: match event.step {
                Step::Pre => ResourceStep::Pre,
                Step::Outputs => ResourceStep::Outputs,
                Step::OpFailed => ResourceStep::Failed,
            },
            op: event.op,
            urn: event.urn,
            resource_type: event.resource_type,
            dependencies: event.dependencies,
            parent: event.parent,
            provider: event.provider,
        })
    });
    parsed.collect()
}

/// OTLP as its requests came, and the legacy spans of the command beside it.
fn recording() -> Recording {
    let mut batch = SpanBatch::default();
    for (_, body) in messages(include_bytes!("../../../fixtures/pulumi/deployment-otlp.bin")) {
        otlp::trace::decode(body, &Limits::default(), &mut batch).unwrap();
    }
    let mut reader = appdash::FrameReader::new(&Limits::default());
    reader.push(include_bytes!("../../../fixtures/pulumi/deployment-appdash.bin"), &mut batch).unwrap();
    reader.finish(&mut batch);
    assert_eq!(batch.losses, []);
    let mut recording = text::parse("run pulumi 0..1ms\n").unwrap();
    recording.run.trace_id = TraceId::new(std::array::from_fn(|i| i as u8 + 1)).unwrap();
    recording.run.root_span_id = SpanId::new(std::array::from_fn(|i| i as u8 + 0x11)).unwrap();
    recording.run.start = batch.spans.iter().map(|span| span.start).min().unwrap();
    recording.run.end = batch.spans.iter().map(|span| span.end).max();
    recording.spans = batch.spans;
    recording
}

#[test]
fn the_slow_resource_of_a_real_deployment_is_first_and_saves_what_it_should() {
    let mut recording = recording();
    longpole_analysis::bridge::join(&mut recording);
    assert_eq!(resources::identify(&mut recording, &events()), []);
    let report = Report::new(recording);
    let codes: Vec<&str> = report.quality().iter().map(|note| note.code).collect();
    assert!(!codes.contains(&"orphans"), "{:?}", report.quality());
    for span in &report.recording().spans {
        let of_resource = ["/Create", "/Check", "/RegisterResource"].iter().any(|call| span.name.ends_with(call));
        assert!(!of_resource || resources::urn_of(span).is_some(), "{} of {} does not say its resource", span.name, span.service_name());
    }
    let pole = &report.poles()[0];
    let table: String = report
        .poles()
        .iter()
        .take(6)
        .map(|p| format!("{} {:?} {} ms {:?}\n", p.name, p.context, p.on_path_nanos / 1_000_000, p.savings))
        .collect();
    assert!(pole.context.as_deref().is_some_and(|context| context.ends_with("database")), "{table}");
    let saves = pole.savings.if_zero;
    assert_eq!(saves.low_nanos, saves.high_nanos, "what it waited for is declared: {table}");
    assert!((saves.low_nanos / 1_000_000 - SAVED_MILLIS).abs() <= TOLERANCE_MILLIS, "{table}");
}
