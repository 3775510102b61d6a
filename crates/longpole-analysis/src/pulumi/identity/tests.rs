use super::*;
use crate::Report;
use crate::pulumi::urn::{needs_of, title_of_urn, type_of_urn};
use crate::schedule::saving::{Change, ScheduleEvidence};
use crate::tree::forest::Forest;
use longpole_model::{Id, Nanos, NodeId, PoleId, Timestamp, text};

fn event(millis: f64, step: ResourceStep, op: &str, urn: &str, dependencies: &[&str]) -> ResourceEvent {
    ResourceEvent {
        time: Timestamp(text::ORIGIN.unix_nanos() + (millis * 1e6) as i64),
        step,
        op: op.to_owned(),
        urn: urn.to_owned(),
        resource_type: type_of_urn(urn).to_owned(),
        dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
        parent: None,
        provider: Some(PROVIDER_OF_ALL.to_owned()),
    }
}

const PROVIDER_OF_ALL: &str = "urn:pulumi:dev::shop::pulumi:providers:aws::default::04da6b54";
const DB: &str = "urn:pulumi:dev::shop::aws:rds:Instance::db";
const WEB: &str = "urn:pulumi:dev::shop::my:Site$aws:s3:Bucket::web";
const DNS: &str = "urn:pulumi:dev::shop::aws:route53:Record::dns";

/// Three resources; the name needs the database and the bucket. Calls name the plan as their parent, as Pulumi's do.
const UP: &str = "\
run pulumi up  0..1000ms
  pulumi  1..999ms  pulumi-cli  pid 1
    plan  2..990ms  pulumi-cli
      Run  5..985ms  pulumi-language-yaml
        pulumirpc.ResourceMonitor/RegisterResource  10..505ms  pulumi-sdk-go  kind client  @rdb
          pulumirpc.ResourceMonitor/RegisterResource  11..504ms  pulumi-cli  kind server
        pulumirpc.ResourceMonitor/RegisterResource  12..235ms  pulumi-sdk-go  kind client  @rweb
          pulumirpc.ResourceMonitor/RegisterResource  13..234ms  pulumi-cli  kind server
        pulumirpc.ResourceMonitor/RegisterResource  520..980ms  pulumi-sdk-go  kind client  @rdns
          pulumirpc.ResourceMonitor/RegisterResource  521..979ms  pulumi-cli  kind server
      pulumirpc.ResourceProvider/Create  30..500ms  pulumi-cli  kind client
        pulumirpc.ResourceProvider/Create  31..499ms  aws  kind server
      pulumirpc.ResourceProvider/Create  30..230ms  pulumi-cli  kind client
        pulumirpc.ResourceProvider/Create  31..229ms  aws  kind server
      pulumirpc.ResourceProvider/Create  530..975ms  pulumi-cli  kind client
        pulumirpc.ResourceProvider/Create  531..974ms  aws  kind server
";

fn events() -> Vec<ResourceEvent> {
    use ResourceStep::{Outputs, Pre};
    vec![
        event(15.0, Pre, "create", DB, &[]),
        event(16.0, Pre, "create", WEB, &[]),
        event(231.0, Outputs, "create", WEB, &[]),
        event(501.2, Outputs, "create", DB, &[]),
        event(524.0, Pre, "create", DNS, &[]),
        event(976.5, Outputs, "create", DNS, &[DB, WEB]),
    ]
}

fn identified(text: &str, events: &[ResourceEvent]) -> (Recording, Vec<Note>) {
    let mut recording = text::parse(text).unwrap();
    let unmatched = identify(&mut recording, events);
    (recording, unmatched)
}

fn title(span: &Span) -> String {
    urn_of(span).map(title_of_urn).unwrap_or_default()
}

#[test]
fn events_give_calls_and_registrations_their_resources_by_time() {
    let (recording, unmatched) = identified(UP, &events());
    let found: Vec<String> = recording.spans.iter().map(title).collect();
    let [db, web, dns] = [DB, WEB, DNS].map(title_of_urn);
    let expected = ["", "", "", &db, &db, &web, &web, &dns, &dns, &db, &db, &web, &web, &dns, &dns];
    assert_eq!(found, expected);
    assert_eq!(unmatched, []);
    let needs: Vec<&str> = needs_of(&recording.spans[7]).collect();
    assert_eq!(needs, [DB, WEB, PROVIDER_OF_ALL]);
}

#[test]
fn events_that_arrive_late_still_name_their_calls() {
    // On a busy machine the engine's word comes after the call has begun, or has long ended, and ever later.
    let late = |(event, by): (ResourceEvent, i64)| ResourceEvent { time: event.time.plus_nanos(by * 1_000_000), ..event };
    let events: Vec<ResourceEvent> = events().into_iter().zip((120..).step_by(100)).map(late).collect();
    let (recording, unmatched) = identified(UP, &events);
    assert_eq!(unmatched, []);
    let calls = recording.spans.iter().filter(|span| span.name.ends_with("Create")).map(title).collect::<Vec<_>>();
    let [db, web, dns] = [DB, WEB, DNS].map(title_of_urn);
    assert_eq!(calls, [&db, &db, &web, &web, &dns, &dns].map(String::clone));
}

#[test]
fn what_a_span_knows_of_itself_is_not_changed_and_what_has_no_span_is_counted() {
    use ResourceStep::{Failed, Pre};
    let input = "run x 0..100ms\n  pulumirpc.ResourceProvider/Create 20..60ms pulumi-cli kind client pulumi.resource.urn=mine\n";
    let (recording, unmatched) = identified(input, &[event(15.0, Pre, "create", DB, &[]), event(61.0, Failed, "create", DB, &[])]);
    assert_eq!(urn_of(&recording.spans[0]), Some("mine"));
    assert_eq!(unmatched.iter().map(crate::words::note).collect::<Vec<_>>(), ["the longest first: create aws:rds:Instance db (46.0ms)"]);
    // The type decides between calls of one moment.
    let input = "\
run x 0..100ms
  pulumirpc.ResourceProvider/Create 20..60ms pulumi-cli kind client pulumi.resource.type=aws:s3:Bucket
  pulumirpc.ResourceProvider/Create 21..61ms pulumi-cli kind client pulumi.resource.type=aws:rds:Instance
";
    let (recording, _) = identified(input, &[event(15.0, Pre, "create", DB, &[]), event(60.5, Failed, "create", DB, &[])]);
    assert_eq!(recording.spans.iter().map(title).collect::<Vec<_>>(), ["".to_owned(), title_of_urn(DB)]);
}

#[test]
fn a_deployment_is_replayed_by_what_its_resources_need() {
    let (recording, _) = identified(UP, &events());
    let report = Report::new(recording);
    let create = |urn: &str| {
        let create = |n: &NodeId| {
            let span = report.forest().span(report.recording(), *n);
            span.is_some_and(|s| s.name.ends_with("Create") && s.service_name() == "aws" && urn_of(s) == Some(urn))
        };
        report.forest().ids().find(create).unwrap()
    };
    let saves = |urn: &str, change| {
        let saving = report.saves(&[create(urn)], change);
        assert_eq!(saving.low, saving.high, "{urn}");
        saving.low.0 as f64 / 1e6
    };
    // The bucket is there after 235 ms, whatever the database takes: then it is what the name waits for.
    assert_eq!(saves(DB, Change::Zero), 270.0);
    assert_eq!(saves(DB, Change::Half), 234.0);
    assert_eq!(saves(WEB, Change::Zero), 0.0);
    assert_eq!(saves(DNS, Change::Zero), 443.0);
    let first = &report.poles()[PoleId::at(0)];
    assert_eq!((first.name.as_str(), first.nodes.len()), ("pulumirpc.ResourceProvider/Create", 1));
    assert_eq!(first.context.as_deref(), Some("aws:route53:Record dns"));
    assert_eq!(first.savings.evidence, ScheduleEvidence::Declared);
    assert_eq!(report.poles()[PoleId::at(1)].context.as_deref(), Some("aws:rds:Instance db"));
}

#[test]
fn what_pulumi_serves_is_no_node_and_what_compiles_is() {
    let recording = text::parse(
        "\
run pulumi up  0..100ms
  pulumi  1..99ms  pulumi-cli  pid 1
    pulumirpc.LanguageRuntime/Run  10..90ms  pulumi-cli
process pulumi-language-go  5..98ms  pid 2 under 1
process go       11..50ms  pid 3 under 2
process compile  12..40ms  pid 4 under 3
process program  51..89ms  pid 5 under 2
process docker   60..70ms  pid 6 under 5
process pulumi-resource-aws  6..98ms  pid 7 under 1
",
    )
    .unwrap();
    let forest = Forest::build(&recording);
    let drawn: Vec<String> =
        forest.nodes.enumerated().map(|(i, n)| format!("{}{}", "  ".repeat(n.depth as usize), forest.name(&recording, i))).collect();
    let expected = ["pulumi", "  pulumi", "    pulumirpc.LanguageRuntime/Run", "      go", "        compile", "      docker"];
    assert_eq!(drawn, expected);
}

#[test]
fn what_has_no_provider_takes_no_call_away() {
    let component = |millis, step| ResourceEvent { provider: None, ..event(millis, step, "create", WEB, &[]) };
    let mut recording = text::parse(
        "run pulumi up  0..100ms\n  pulumi  1..99ms  pulumi-cli\n    pulumirpc.ResourceProvider/Create  20..30ms  pulumi-cli\n",
    )
    .unwrap();
    let events = [
        component(19.0, ResourceStep::Pre),
        component(30.5, ResourceStep::Outputs),
        event(15.0, ResourceStep::Pre, "create", DB, &[]),
        event(31.0, ResourceStep::Outputs, "create", DB, &[]),
    ];
    assert_eq!(identify(&mut recording, &events), []);
    assert_eq!(recording.spans.iter().filter_map(urn_of).collect::<Vec<_>>(), [DB]);
}

#[test]
fn the_call_of_the_program_stands_under_it_and_nobody_waits_for_a_measurement() {
    let input = "\
run pulumi up  0..100ms
  pulumi  0..100ms  pulumi-cli
    time-to-first-print  0..99ms  pulumi-cli
    pulumi-plan  1..98ms  pulumi-cli
      run-program  2..90ms  pulumi-cli
      pulumirpc.LanguageRuntime/Run  3..89ms  pulumi-cli
";
    let report = Report::new(text::parse(input).unwrap());
    let named = |name: &str| report.forest().ids().find(|&n| report.name(n) == name).unwrap();
    assert_eq!(report.forest()[named("pulumirpc.LanguageRuntime/Run")].parent, Some(named("run-program")));
    assert_eq!(report.critical_path().on_path[named("time-to-first-print")], Nanos::ZERO);
    assert_eq!(report.critical_path().on_path[named("pulumirpc.LanguageRuntime/Run")], Nanos(86_000_000));
}

#[test]
fn what_the_engine_had_not_finished_when_it_was_killed_is_named() {
    let events = [event(15.0, ResourceStep::Pre, "create", DB, &[]), event(40.0, ResourceStep::Pre, "same", WEB, &[])];
    let mut recording = text::parse("run pulumi up  0..100ms\n  pulumi  1..99ms  pulumi-cli\n").unwrap();
    recording.run.exit = Some(Exit::Code(0));
    assert!(!identify(&mut recording.clone(), &events).iter().any(|note| note.code() == "resources_unfinished"), "an event was lost");
    recording.run.exit = Some(Exit::Signal(9));
    let notes = identify(&mut recording, &events);
    let said = notes.iter().find(|note| note.code() == "resources_unfinished").map(crate::words::note);
    let expected = format!("their spans never arrived: create {} (85.0ms so far)", title_of_urn(DB));
    assert_eq!(said, Some(expected));
}
