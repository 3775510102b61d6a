use longpole_model::text;
use proptest::prelude::*;

use super::*;
use crate::note::SlotLimit;
use longpole_model::{Nanos, NodeId};

struct Case {
    recording: Recording,
    forest: Forest,
    replay: Replay,
}

fn case(input: &str) -> Case {
    let recording = text::parse(input).unwrap();
    let forest = Forest::build(&recording);
    let replay = Replay::new(&recording, &forest);
    Case { recording, forest, replay }
}

impl Case {
    fn node(&self, name: &str) -> NodeId {
        self.forest.ids().find(|&i| self.forest.name(&self.recording, i) == name).unwrap()
    }

    /// What limits the saving of these nodes.
    fn limit(&self, names: &[&str]) -> &str {
        let nodes: Vec<NodeId> = names.iter().map(|n| self.node(n)).collect();
        let path = self.replay.critical_path(&self.forest);
        let (savings, limit) = self.replay.saves_all_and_limit(&nodes, &OnPath::new(&path));
        assert_eq!(savings, self.replay.saves_all(&nodes));
        limit.map_or("nothing", |node| self.forest.name(&self.recording, node))
    }

    /// `zero half own` in milliseconds, a range as `low-high`.
    fn saves(&self, names: &[&str]) -> String {
        let nodes: Vec<NodeId> = names.iter().map(|n| self.node(n)).collect();
        let one = |change| {
            let s = self.replay.saves(&nodes, change);
            let millis = |nanos: Nanos| nanos.0 as f64 / 1e6;
            if s.low == s.high { format!("{}", millis(s.low)) } else { format!("{}-{}", millis(s.low), millis(s.high)) }
        };
        [Change::Zero, Change::Half, Change::OwnZero].map(one).join(" ")
    }
}

#[test]
fn a_caller_waits_for_a_server_that_closes_its_span_a_moment_later() {
    let input = |late: &str| {
        format!("run x 0..1100ms\n  call 0..1000ms a kind client\n    serve 10..{late}ms b kind server\n      query 100..900ms b\n")
    };
    assert_eq!(case(&input("1000.2")).saves(&["query"]), "800 400 800");
    assert_eq!(case(&input("1000.2")).saves(&["serve"]), "990 495 190");
    // It went on after its caller had given up.
    assert_eq!(case(&input("1030")).saves(&["query"]), "30 30 30", "the run waits for it");
}

#[test]
fn a_declared_chain_saves_until_the_next_chain_is_longer() {
    let c = case("run x 0..50ms\n  web 4..14ms\n  db 16..44ms <- web\n  dns 5..30ms\n");
    assert_eq!(c.limit(&["db"]), "dns");
    assert_eq!(c.limit(&["web"]), "nothing", "all of its 10 ms are saved");
    assert_eq!(c.limit(&["db", "dns"]), "nothing");
    assert_eq!(c.saves(&["web"]), "10 5 10");
    assert_eq!(c.saves(&["db"]), "14 14 14", "dns still ends at 30");
    assert_eq!(c.saves(&["dns"]), "0 0 0");
    assert_eq!(c.saves(&["db", "dns"]), "28 14 28");
    assert_eq!(c.replay.evidence(c.node("db")), ScheduleEvidence::Declared);
}

#[test]
fn order_alone_gives_a_range() {
    // Either db waited for web alone, or for dns too.
    let c = case("run x 0..50ms\n  web 4..14ms\n  dns 5..10ms\n  db 15..44ms\n");
    assert_eq!(c.saves(&["web"]), "4-10 4-5 4-10");
    assert_eq!(c.limit(&["web"]), "nothing", "one end of the range says dns, the other that all is saved");
    assert_eq!(c.replay.evidence(c.node("db")), ScheduleEvidence::Inferred);
}

#[test]
fn a_long_gap_may_be_chance_unless_the_parent_is_serial() {
    let quick = "run x 0..2s\n  a 1..2ms\n  b 2.1..3ms\n  c 3.1..4ms\n  d 4.1..5ms\n";
    let c = case(&format!("{quick}  late 500..510ms\n"));
    assert_eq!(c.saves(&["a"]), "0-1 0-0.5 0-1");
    let c = case("run x 0..2s\n  a 1..500ms\n  b 501..800ms\n  c 801..900ms\n  late 1500..1999ms\n");
    assert_eq!(c.saves(&["a"]), "499 249.5 499", "one after the other, and filling the run");
}

#[test]
fn what_ends_a_silence_waited_for_what_ended_just_before() {
    let quick = "run x 0..20s\n  a 1..2ms\n  b 2.1..3ms\n  c 3.1..4ms\n  d 4.1..5ms\n  slow 10..1500ms\n";
    assert_eq!(
        case(&format!("{quick}  next 1540..1550ms\n")).saves(&["slow"]),
        "1490 745 1490",
        "nothing began for 1.53 s, then 40 ms later"
    );
    assert_eq!(case(&format!("{quick}  next 1840..1850ms\n")).saves(&["slow"]), "0-1490 0-745 0-1490");
}

#[test]
fn each_kind_of_child_has_its_own_usual_gap() {
    let quick: String = (0..40).map(|i| format!("  bind {}..{}ms\n", 1 + i, 2 + i)).collect();
    let slow = "  delete 60..70ms\n  delete 90..100ms\n  delete 120..920ms\n  delete 950..960ms\n  delete 985..995ms\n";
    let c = case(&format!("run x 0..20s\n{quick}{slow}").replace("delete 120", "the one 120"));
    assert_eq!(c.saves(&["the one"]), "800 400 800");
}

#[test]
fn a_process_that_several_operations_may_have_started_makes_their_savings_ranges() {
    let two = "run deploy 0..2s\n  create a 1..1500ms pid 1\n  create b 2..1900ms pid 1\nprocess helm 10..700ms pid 2 under 1\n";
    let c = case(two);
    assert_eq!(c.saves(&["create b"]), "400 400 400", "then a ends last");
    assert_eq!(c.saves(&["create a", "create b"]), "1200-1890 949 1200", "then helm does, unless one of them started it");
    assert_eq!(c.saves(&["helm"]), "0 0 0");
}

#[test]
fn what_starts_in_the_wake_of_a_long_phase_or_silence_followed_it() {
    let logs =
        |from: i64, step: i64| -> String { (0..8).map(|i| format!("  log {}..{}ms\n", from + step * i, from + step * i + 1)).collect() };
    let pings: String = (0..40).map(|i| format!("  ping {}..{}ms\n", i, i + 1)).collect();
    // Only the first of eight logs is within a twentieth of the slow one's length.
    let c = case(&format!("run x 0..200s\n{pings}  slow 50..1500ms\n{}", logs(1510, 60)));
    assert_eq!(c.saves(&["slow"]), "1450 725 1450");
    // Two are too few to say that the host was blocked.
    let c = case(&format!("run x 0..200s\n{pings}  slow 50..1500ms\n  a 1510..1511ms\n  b 1800..1801ms\n"));
    assert_eq!(c.saves(&["slow"]), "0-1450 0-725 0-1450");
}

#[test]
fn own_time_is_what_no_child_covers() {
    let c = case("run x 0..100ms\n  p 10..90ms\n    one 20..40ms\n    two 50..60ms <- one\n");
    assert_eq!(c.saves(&["p"]), "80 40 50");
    assert_eq!(c.saves(&["x"]), "20 10 20", "of the run, only what it does itself gets faster");
}

#[test]
fn what_a_shortened_span_waits_for_outside_it_still_waits_for() {
    let c = case("run x 0..100ms\n  a 1..50ms\n  b 2..90ms\n    inner 51..89ms <- a\n    first 3..4ms\n");
    assert_eq!(c.saves(&["b"]), "40 20 2", "a ends at 50 all the same");
}

#[test]
fn a_child_nobody_waits_for_saves_nothing_and_one_that_outlives_its_parent_does() {
    let c = case("run x 0..30ms\n  send 1..3ms\n    deliver 2..25ms\n  after 26..29ms <- deliver\n");
    assert_eq!(c.saves(&["deliver"]), "23 11.5 23");
    let c = case("run x 0..30ms\n  late 5..40ms\n");
    assert_eq!(c.saves(&["late"]), "0 0 0");
}

#[test]
fn limited_slots_are_recognised_said_and_widen_the_range() {
    let mut text = "run x 0..61ms\n  a 0..60ms\n  b 0..10ms\n".to_owned();
    for i in 1..6 {
        text.push_str(&format!("  j{i} {}..{}ms\n", i * 10, i * 10 + 10));
    }
    let c = case(&text);
    let limit = SlotLimit { slots: 2, host: "x".to_owned() };
    assert_eq!(c.replay.notes(), [Note::LimitedSlots([limit].into_iter().collect())]);
    assert_eq!(c.saves(&["a"]), "0-30 0-10 0-30", "a free slot takes half of the jobs");
    assert_eq!(c.limit(&["a"]), "nothing", "slots do, and no job alone");
}

#[test]
fn what_limits_a_saving_is_the_outermost_that_stood_beside_the_path() {
    let c = case(
        "run x 0..90ms\n  bundle 1..60ms\n    compress 2..59ms\n  bucket 1..20ms\n    Create 2..19ms\n  upload 61..80ms <- bundle, bucket\n",
    );
    assert_eq!(c.saves(&["compress"]), "40 28.5 40");
    assert_eq!([c.limit(&["compress"]), c.limit(&["bundle"])], ["bucket", "bucket"]);
    // A limit inside of the path's own parent.
    let c = case("run x 0..90ms\n  up 1..80ms\n    a 2..70ms\n    b 3..50ms\n");
    assert_eq!([c.limit(&["a"]), c.limit(&["up"])], ["b", "nothing"]);
}

#[test]
fn many_that_end_at_one_moment_are_no_trouble() {
    let mut text = "run x 0..90ms\n  long 1..80ms\n".to_owned();
    for i in 0..500 {
        text.push_str(&format!("  w{i} 1..40ms\n"));
    }
    assert_ne!(case(&text).limit(&["long"]), "nothing", "any of them");
}

#[test]
fn links_among_spans_of_no_length_at_one_moment_do_not_stop_the_replay() {
    let c = case("run x 0..9ms\n  a 5..5ms <- b\n  b 5..5ms <- c\n  c 5..5ms <- a\n  d 6..8ms <- a\n");
    assert_eq!(c.replay.saves(&[], Change::Zero), Saving::default());
    assert_eq!(c.saves(&["d"]), "2 1 2");
}

#[test]
fn a_deployment_with_phases_around_its_declared_resources() {
    let c = case(
        "\
run deploy 0..2920ms
  deploy 10..2910ms
    run program 12..60ms
    start cloud 13..40ms
    start compute 14..45ms
    create bundle 50..1250ms <- start cloud, start compute
    create bucket 50..200ms <- start cloud, start compute
    create upload 1251..1351ms <- create bundle, create bucket
    create service 1352..1952ms <- create upload
    create certificate 1953..2753ms <- create service
    create balancer 1954..2254ms <- create service
    create record 2755..2855ms <- create certificate, create balancer
    stop 2857..2900ms
",
    );
    assert_eq!(c.saves(&["create bundle"]), "1050 600 1050", "the bucket takes 150");
    assert_eq!(c.saves(&["create certificate"]), "499 400 499", "the balancer takes 300, and starts a moment later");
    assert_eq!(c.saves(&["create balancer"]), "0 0 0");
    assert_eq!(c.saves(&["stop"]), "43 21.5 43");
    assert_eq!(c.saves(&["start compute"]), "5 5 5", "the other one ends 5 before");
    let limits = ["create bundle", "create certificate", "start compute", "stop"].map(|name| c.limit(&[name]));
    assert_eq!(limits, ["create bucket", "create balancer", "start cloud", "nothing"]);
}

/// Trees with lanes, links, children that outlive their parents and children of skewed clocks.
fn any_recording() -> impl Strategy<Value = Recording> {
    // Parent, start and length in the parent's time, whether it follows the sibling before, link.
    let span = (any::<prop::sample::Index>(), -5..100i64, 0..60i64, 0..8u8, prop::option::weighted(0.1, any::<prop::sample::Index>()));
    prop::collection::vec(span, 1..60).prop_map(|spans| {
        let mut recording = text::parse("run x 0..1s\n  n 0..1ms\n").unwrap();
        let template = recording.spans.remove(0);
        let mut times = vec![(0, 1_000_000_000i64)];
        let mut last_end: HashMap<usize, i64> = HashMap::new();
        for (i, (parent, start, length, follows, link)) in spans.into_iter().enumerate() {
            let parent = parent.index(i + 1);
            let (from, to) = times[parent];
            let percent = (to - from) / 100;
            let start = match last_end.get(&parent) {
                Some(end) if follows > 1 => end + percent / 50,
                _ => from + start * percent,
            };
            let end = start + length / (1 + i64::from(follows)) * percent;
            times.push((start, end));
            last_end.insert(parent, end);
            let linked = link.map(|other| longpole_model::SpanLink {
                trace_id: template.trace_id,
                span_id: text::span_id(1 + other.index(i + 1) as u64),
                attributes: Default::default(),
            });
            recording.spans.push(longpole_model::Span {
                span_id: text::span_id(1 + i as u64),
                parent_span_id: Some(text::span_id(parent as u64)),
                name: format!("n{}", i % 3).into(),
                start: text::ORIGIN.plus_nanos(start),
                end: text::ORIGIN.plus_nanos(end),
                links: linked.into_iter().collect(),
                ..template.clone()
            });
        }
        recording
    })
}

proptest! {
    #[test]
    fn what_moves_as_one_piece_changes_no_answer(
        recording in any_recording(),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let forest = Forest::build(&recording);
        let in_pieces = Replay::new(&recording, &forest);
        let mut whole = Replay::new(&recording, &forest);
        whole.rigid.iter_mut().for_each(|rigid| *rigid = false);
        let nodes: Vec<NodeId> = chosen.iter().map(|node| NodeId::at(node.index(forest.len()))).collect();
        let answer = |replay: &Replay| replay.saves_all_and_limit(&nodes, &OnPath::new(&replay.critical_path(&forest)));
        prop_assert_eq!(answer(&in_pieces), answer(&whole));
    }
}

#[test]
fn what_began_before_the_run_hides_no_limit_inside_of_it() {
    let mut recording = text::parse("run x 0..90ms\n  early 0..70ms\n    inside 10..20ms\n  last 30..80ms\n").unwrap();
    recording.spans[0].start = text::ORIGIN.plus_nanos(-5_000_000);
    let forest = Forest::build(&recording);
    let mut replay = Replay::new(&recording, &forest);
    // Else the replay would move the first one as one piece.
    replay.rigid.iter_mut().for_each(|rigid| *rigid = false);
    let last = NodeId::at(3);
    assert_eq!(forest.name(&recording, last), "last");
    let (_, limit) = replay.saves_all_and_limit(&[last], &OnPath::new(&replay.critical_path(&forest)));
    assert_eq!(limit, None, "early ends last, and not what it called 50 ms before");
}

#[test]
fn only_what_a_change_reaches_is_replayed() {
    let mut text = "run x 0..9s\n".to_owned();
    for i in 0..100 {
        text.push_str(&format!(
            "  trace {}..{}ms\n    a {}..{}ms\n      b {}..{}ms\n",
            i * 10,
            i * 10 + 9,
            i * 10 + 1,
            i * 10 + 5,
            i * 10 + 2,
            i * 10 + 4
        ));
    }
    let c = case(&text);
    assert_eq!(c.replay.part(&[c.node("a")], None).nodes.len(), 1 + 100 + 2, "the run, the traces, and what is below the one");
}

#[test]
fn without_links_beside_those_with_links_a_quiet_moment_begins_a_phase() {
    let c = case("run x 0..90ms\n  plan 1..21ms\n  a 22..40ms\n  b 23..30ms\n  c 31..80ms <- b\n  stop 82..89ms\n");
    assert_eq!(c.saves(&["plan"]), "20 10 20");
    assert_eq!(c.saves(&["c"]), "40 24.5 40", "a ends at 40 all the same");
}
