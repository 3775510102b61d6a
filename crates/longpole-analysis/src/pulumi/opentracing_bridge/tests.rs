use super::*;
use crate::{Report, words};
use longpole_model::{Id, NodeId, text};

/// The joined forest as people would draw it, with what the spans learned; then notes and losses.
fn drawn(recording: Recording) -> String {
    let report = Report::new(recording);
    let mut out = String::new();
    for (i, node) in report.forest().nodes.enumerated() {
        let span = report.forest().span(report.recording(), i);
        let said = span.map(|s| s.attributes.iter().filter(|a| !a.key.starts_with("longpole.")));
        let said: Vec<String> = said.into_iter().flatten().map(|a| format!(" {}={}", a.key, a.value.as_str().unwrap_or("?"))).collect();
        let end = node.range.end.nanos_since(text::ORIGIN) / 1_000;
        let orphan = if node.orphan { " orphan" } else { "" };
        out.push_str(&format!("{}{} ..{end}{}{orphan}\n", "  ".repeat(node.depth as usize), report.name(i), said.concat()));
    }
    for note in report.quality() {
        out.push_str(&format!("{} {}: {}\n", note.code(), note.count(), words::note(&note)));
    }
    out
}

fn check(input: &str, expected: &str) {
    let recording = text::parse(input).unwrap();
    assert_eq!(drawn(recording.clone()), expected);
    // Sealed and read again it is the same.
    let mut joined = recording;
    join(&mut joined);
    assert_eq!(drawn(joined.clone()), expected, "joined before");
    let once = joined.clone();
    join(&mut joined);
    assert_eq!(joined, once, "joined twice");
}

const BOTH: &str = "\
run pulumi up  0..100ms
  pulumi  0..99ms  pulumi-cli  pid 1
    pulumi-plan  10.05..90ms  pulumi-cli
      pulumirpc.ResourceProvider/Create  20.02..60ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Create  20.03..40ms  pulumi-cli  kind client
trace 2
pulumi  1..98.5ms  pid 1  id 71  scope appdash
  newPlugin  2..9ms  id 72  scope appdash  pulumi-decorator=resource:aws
trace 3
pulumi-plan  10..90.1ms  pid 1  id 73  scope appdash
  /pulumirpc.ResourceProvider/Create  20.00..60.01ms  id 74  kind client  scope appdash  pulumi.resource.type=aws:rds:Instance
  /pulumirpc.ResourceProvider/Create  20.01..40.01ms  id 75  kind client  scope appdash  pulumi.resource.type=aws:s3:Bucket
trace 1
pulumirpc.ResourceProvider/Create  21..59ms  pulumi-resource-provider  pid 1  kind server  parent 74
pulumirpc.ResourceProvider/Create  22..39ms  pulumi-resource-provider  pid 1  kind server  parent 75
";

#[test]
fn with_both_tracers_on_no_operation_is_there_twice_and_none_is_an_orphan() {
    check(
        BOTH,
        "\
pulumi ..100000
  pulumi ..99000
    newPlugin ..9000 pulumi-decorator=resource:aws
    pulumi-plan ..90000
      pulumirpc.ResourceProvider/Create ..60000 pulumi.resource.type=aws:rds:Instance
        pulumirpc.ResourceProvider/Create ..59000
      pulumirpc.ResourceProvider/Create ..40000 pulumi.resource.type=aws:s3:Bucket
        pulumirpc.ResourceProvider/Create ..39000
resources_unnamed 2: the spans of neither of Pulumi's tracers say which
legacy_joined 4: each counts once; 2 spans found their parent by its legacy id
",
    );
}

#[test]
fn the_run_is_one_trace_and_legacy_ids_still_find_their_spans() {
    let recording = text::parse(BOTH).unwrap();
    let legacy = |number| (text::trace_id(3), text::span_id(number));
    let moved = (text::trace_id(2), text::span_id(72));
    let report = Report::new(recording);
    assert_eq!(report.trace_count(), 1);
    let name = |(trace, span)| report.forest().node_of_id(report.recording(), trace, span).map(|n| report.name(n));
    assert_eq!(name(legacy(74)), Some("pulumirpc.ResourceProvider/Create"));
    assert_eq!(name(moved), Some("newPlugin"));
}

#[test]
fn a_span_that_is_finished_twice_ends_late_and_halves_of_one_id_stay_two() {
    check(
        "\
run pulumi up  0..100ms
trace 2
pulumi-plan  10..90ms  id 7  scope appdash
pulumi-plan  10..90.05ms  id 7  scope appdash
trace 3
get  20..30ms  id 8  kind client  scope zipkin
get  21..29ms  id 8  kind server  scope zipkin
",
        "\
pulumi ..100000
  pulumi-plan ..90050
    get ..30000
    get ..29000
duplicate_ids 1: their children are shown below the first
spans_duplicate 1: finished twice; the later end is kept
roots_nested 2: they are shown below it
",
    );
}

#[test]
fn without_opentelemetry_legacy_traces_stay_what_they_are() {
    check(
        "\
run pulumi up  0..100ms
trace 2
pulumi  1..98ms  pid 1  id 71  scope appdash
  newPlugin  2..9ms  id 72  scope appdash
lost  3..4ms  pid 1  id 73  scope appdash  parent 999
",
        "\
pulumi ..100000
  pulumi ..98000
    newPlugin ..9000
  lost ..4000 orphan
orphans 1: they are shown below their process, or the run
",
    );
}

#[test]
fn spans_of_other_makers_are_never_folded() {
    check(
        "\
run make  0..100ms
  pulumi  1..99ms  pulumi-cli
  GET  20.02..30ms  shop  kind client
trace 2
GET  20..30ms  bank  id 71  kind client  scope zipkin
",
        "\
make ..100000
  pulumi ..99000
    GET ..30000
  GET ..30000
roots_nested 1: they are shown below it
",
    );
}

#[test]
fn a_legacy_root_of_another_process_is_not_the_command_s() {
    check(
        "\
run make  0..100ms
  pulumi  5..99ms  pulumi-cli  pid 1
process tool  20..50ms  pid 9 under 1
trace 2
job  21..49ms  pid 9  id 71  scope zipkin
sync  30..40ms  pid 1  id 72  scope appdash
",
        "\
make ..100000
  pulumi ..99000
    tool ..50000
      job ..49000
    sync ..40000
",
    );
}

#[test]
fn samples_follow_the_span_that_stays() {
    let recording = text::parse(
        "\
run pulumi up  0..100ms
  plan  10.1..90ms  pulumi-cli  pid 1
trace 2
plan  10..90.1ms  pid 1  id 71  scope appdash
sample 50ms x20 pid 1 main
",
    )
    .unwrap();
    let mut linked = recording.clone();
    linked.sample_links = crate::link::samples::link(&recording);
    let report = Report::new(linked);
    assert_eq!(report.own_samples(NodeId::RUN.next()).len(), 20);
    assert_eq!(report.link_counts(report.all_samples()).inferred, 20);
}

#[test]
fn in_a_server_opentelemetry_stands_outside() {
    check(
        "\
run pulumi up  0..100ms
  pulumi  1..99ms  pulumi-cli  pid 1
    pulumirpc.ResourceMonitor/RegisterResource  20..60.5ms  pulumi-cli  kind server
    pulumirpc.ResourceMonitor/RegisterResource  20.02..40.5ms  pulumi-cli  kind server
trace 2
/pulumirpc.ResourceMonitor/RegisterResource  20.1..60.1ms  pid 1  id 71  kind server  scope appdash  pulumi.resource.type=a
/pulumirpc.ResourceMonitor/RegisterResource  20.11..40.1ms  pid 1  id 72  kind server  scope appdash  pulumi.resource.type=b
",
        "\
pulumi ..100000
  pulumi ..99000
    pulumirpc.ResourceMonitor/RegisterResource ..60500 pulumi.resource.type=a
    pulumirpc.ResourceMonitor/RegisterResource ..40500 pulumi.resource.type=b
legacy_joined 2: each counts once; 0 spans found their parent by its legacy id
",
    );
}

#[test]
fn equal_events_are_added_once_and_many_at_one_moment_are_not_compared_with_all() {
    let mut into: ThinVec<_> = vec![(1, "a"), (2, "b")].into();
    add_others(&mut into, vec![(2, "b"), (2, "c"), (3, "d"), (3, "d"), (2, "c")].into(), |(time, _)| *time);
    assert_eq!(into[..], [(1, "a"), (2, "b"), (2, "c"), (3, "d")]);
    // Quadratic, it takes minutes.
    let many = |range: std::ops::Range<u32>| ThinVec::from(range.map(|i| (0, i)).collect::<Vec<_>>());
    let mut into = many(0..200_000);
    add_others(&mut into, many(200_000..400_000), |(time, _)| *time);
    assert_eq!(into.len(), 400_000);
}
