//! Story: a real deployment of 21 resources, as longpole gets it from the real Pulumi (fixtures/pulumi/README.md).
//! Guarantees: the three channels become one tree without an orphan, each creation knows its resource, and the critical path leads
//! through the resources that are slow by construction.

use longpole_analysis::Report;
use longpole_analysis::pulumi::{identity, urn};
use longpole_model::{Id, PoleId, Recording, ResourceEvent, SpanBatch, SpanId, Timestamp, TraceId, text};
use longpole_wire::{Limits, appdash, otlp, pulumi_event};

/// What the slow resource saves by construction: see fixtures/pulumi/deployment/Pulumi.yaml.
const SAVED_MILLIS: i64 = 2_100;

/// What Pulumi itself does meanwhile.
const TOLERANCE_MILLIS: i64 = 105;

/// Creating anything takes longer in the update, and nothing in the preview takes so long.
const CREATED_NANOS_MIN: i64 = 50_000_000;

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

fn events() -> Vec<ResourceEvent> {
    let messages = messages(include_bytes!("../../../fixtures/pulumi/deployment-events.bin"));
    let parsed = messages.into_iter().filter(|(_, message)| !message.is_empty()).filter_map(|(time, message)| {
        let told = pulumi_event::parse(pulumi_event::text_of_message(message).unwrap()).unwrap()?;
        Some(ResourceEvent { time, ..told.event })
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

fn report() -> Report {
    let mut recording = recording();
    longpole_analysis::pulumi::opentracing_bridge::join(&mut recording);
    identity::identify(&mut recording, &events());
    Report::new(recording)
}

/// What people call the resource of a node.
fn name_of(urn: &str) -> &str {
    urn.rsplit("::").next().unwrap_or(urn)
}

#[test]
fn three_channels_become_one_tree_whose_calls_know_their_resources() {
    let report = report();
    let codes: Vec<&str> = report.quality().iter().map(|note| note.code()).collect();
    assert!(!codes.contains(&"orphans"), "{:?}", report.quality());
    // Those of the preview do nothing, and are over at once.
    let made = |service: &str| -> Vec<&str> {
        let spans = report.recording().spans.iter();
        let calls = spans.filter(|s| s.service_name() == service && s.name.ends_with("ResourceProvider/Create"));
        let long = calls.filter(|s| s.end.nanos_since(s.start) >= CREATED_NANOS_MIN);
        let mut names: Vec<&str> = long.map(|s| urn::urn_of(s).map_or("?", name_of)).collect();
        names.sort_unstable();
        names
    };
    let numbered = |name: &str, count: usize| -> Vec<String> { (0..count).map(|i| format!("{name}-{i}")).collect() };
    let mut legacy = [numbered("dashboard", 3), numbered("node", 3), numbered("queue", 3)].concat();
    let mut all = [numbered("topic", 3), vec!["dashboard-3".into(), "dashboard-4".into(), "dashboard-5".into()], legacy.clone()].concat();
    all.extend(["base-a", "base-b", "cluster", "database", "schema", "service"].map(str::to_owned));
    for list in [&mut legacy, &mut all] {
        list.sort_unstable();
    }
    assert_eq!(made("pulumi-cli"), all);
    assert_eq!(made("pulumi-resource-provider"), legacy);
}

#[test]
fn the_path_leads_through_what_is_slow_by_construction() {
    let report = report();
    let stretches = report.critical_path().segments.iter().filter(|s| s.range.nanos() >= CREATED_NANOS_MIN);
    let creates = stretches.filter(|s| report.name(s.node).ends_with("ResourceProvider/Create"));
    let path: Vec<&str> = creates.filter_map(|s| report.resource(s.node)).map(name_of).collect();
    assert_eq!(path[..4], ["base-a", "database", "schema", "service"]);
    assert!(path.len() == 5 && path[4].starts_with("dashboard-"), "{path:?}");
}

#[test]
fn the_slow_resource_is_first_and_saves_what_it_should() {
    let report = report();
    let table: String = report
        .poles()
        .iter()
        .take(6)
        .map(|p| format!("{} {:?} {} ms {:?}\n", p.name, p.context, p.on_path.0 / 1_000_000, p.savings))
        .collect();
    let pole = &report.poles()[PoleId::at(0)];
    assert!(pole.context.as_deref().is_some_and(|context| context.ends_with("database")), "{table}");
    let saves = pole.savings.if_zero;
    let truth = (SAVED_MILLIS - TOLERANCE_MILLIS) * 1_000_000..=(SAVED_MILLIS + TOLERANCE_MILLIS) * 1_000_000;
    assert!(truth.contains(&saves.high.0), "{table}");
}
