use super::*;
use crate::note::ProcessName;
use longpole_model::{Id, Monotonic, Nanos, NodeId, Process, Span, SpanId, SpanRow, text};
use proptest::prelude::*;

/// The forest as people would draw it: `~` an inferred edge, then marks.
fn drawn(recording: &Recording) -> String {
    let forest = Forest::build(recording);
    let mut out = String::new();
    for (i, node) in forest.nodes.enumerated() {
        let mut marks = String::new();
        for (mark, word) in [(node.orphan, " orphan"), (node.cycle_broken, " cycle"), (node.clamped, " clamped")] {
            if mark {
                marks.push_str(word);
            }
        }
        let edge = if node.edge == Edge::Inferred { "~" } else { "" };
        out.push_str(&format!("{}{edge}{}{marks}\n", "  ".repeat(node.depth as usize), forest.name(recording, i)));
    }
    for note in &forest.notes {
        out.push_str(&format!("{} {}\n", note.code(), note.count()));
    }
    out
}

fn check(input: &str, expected: &str) {
    assert_eq!(drawn(&text::parse(input).unwrap()), expected);
}

#[test]
fn children_stand_by_start_and_spans_without_a_parent_hang_under_the_run() {
    check(
        "run make 0..100ms\n  b 20..30ms\n  a 10..30ms\n    a2 15..16ms\n    a1 11..40ms\nlate 5..6ms\n",
        "make\n  ~late\n  a\n    a1\n    a2\n  b\n",
    );
}

#[test]
fn a_process_without_spans_is_a_node_and_one_with_local_roots_becomes_their_parent() {
    check(
        "\
run make  0..100ms
process sh   1..90ms  pid 2 under 1
process cc   5..20ms  pid 3 under 2
process tool 30..80ms pid 4 under 2
main  31..79ms  tool  pid 4
  work  40..50ms
",
        "make\n  ~sh\n    ~cc\n    ~tool\n      ~main\n        work\n",
    );
}

#[test]
fn a_server_is_no_node_for_its_life_would_hide_the_path() {
    check(
        "\
run engine  0..100ms
  up  1..99ms  engine  pid 1
    create db  10..60ms  engine
      Create  11..59ms  aws  pid 5
process provider  2..98ms  pid 5 under 1
",
        "engine\n  up\n    create db\n      Create\n",
    );
}

#[test]
fn a_process_hangs_under_the_one_innermost_span_that_covers_its_life() {
    check(
        "\
run tool  0..100ms
  main  1..99ms  tool  pid 1
    clone  10..40ms  tool
    left   50..90ms  tool
    right  50..90ms  tool
process git   11..39ms  pid 5 under 1
process cc    60..70ms  pid 6 under 1
process late  95..100ms pid 7 under 1
",
        "tool\n  main\n    clone\n      ~git\n    left\n    right\n    ~cc\n  ~late\nprocesses_unsure 1\n",
    );
}

#[test]
fn of_several_spans_a_process_hangs_under_the_only_one_that_it_fills() {
    let beside = |right: &str| {
        format!("run tool 0..100ms\n  left 50..90ms tool pid 1\n  right {right} tool pid 1\nprocess sh 51..69ms pid 5 under 1\n")
    };
    check(&beside("50.5..70ms"), "tool\n  left\n  right\n    ~sh\n");
    check(&beside("50.5..80ms"), "tool\n  left\n  right\n  ~sh\nprocesses_unsure 1\n");
    check(&beside("50.5..70ms").replace("50..90ms", "50..70ms"), "tool\n  left\n  right\n  ~sh\nprocesses_unsure 1\n");
}

#[test]
fn helpers_of_a_server_hang_under_its_request_or_the_run() {
    check(
        "\
run engine  0..100ms
  call one  10..40ms  engine  pid 1
    Create  11..39ms  aws  pid 5
  call two  50..90ms  engine
    Create  51..89ms  aws  pid 5
process provider  2..98ms  pid 5 under 1
process docker  20..30ms  pid 6 under 5
process stray   42..48ms  pid 7 under 5
",
        "engine\n  call one\n    Create\n      ~docker\n  ~stray\n  call two\n    Create\n",
    );
}

#[test]
fn a_program_whose_parent_id_is_the_run_stands_inside_the_shell_that_started_it() {
    check(
        "\
run make  0..100ms
  deploy  30..79ms  tool  pid 4
  direct  85..95ms  tool  pid 1
process sh      1..90ms  pid 2 under 1
process deploy  30..80ms pid 4 under 2
",
        "make\n  ~sh\n    ~deploy\n  direct\n",
    );
}

#[test]
fn subshells_and_short_helpers_count_as_their_parent() {
    check(
        "\
run sh  0..100ms
process sh     1..50ms      pid 2 under 1 forked
process cc     2..49ms      pid 3 under 2
process sh     60..60.2ms   pid 4 under 1 forked
process worker 61..90ms     pid 5 under 1 forked
",
        "sh\n  ~cc\n  ~worker\nforks_folded 2\n",
    );
}

#[test]
fn orphans_cycles_skew_and_ends_before_starts_are_kept_and_marked() {
    check(
        "\
run x  0..100ms
  early  20..30ms
    child  10..25ms
  wrong  50..40ms
lost  5..6ms  parent 999
a  60..70ms  parent 7
b  61..69ms  parent 5
self  80..81ms  parent 7
",
        "\
x
  ~lost orphan
  early
    child
  wrong clamped
  ~self cycle
    a
      b
clock_skew 2
cycles 1
ends_clamped 1
orphans 1
",
    );
    check("a  1..9ms  parent 2\nb  2..8ms  parent 1 id 2\n", "run\n  ~a cycle\n    b\ncycles 1\n");
}

#[test]
fn a_span_far_away_from_its_run_begins_and_ends_with_it() {
    let mut recording = text::parse("run x 0..100ms\n  a 10..20ms\n  b 30..40ms\n  c 50..60ms\n  d 70..80ms\n").unwrap();
    let (run, day) = (recording.run.start, 86_400_000_000_000);
    // Without a start, without both, of a century that is to come, and of yesterday evening.
    recording.spans[0].start = Timestamp(0);
    (recording.spans[1].start, recording.spans[1].end) = (Timestamp(0), Timestamp(0));
    recording.spans[2].end = Timestamp(i64::MAX);
    recording.spans[3].start = run.plus_nanos(-day / 2);
    let forest = Forest::build(&recording);
    let millis = |at: Timestamp| at.nanos_since(run) / 1_000_000;
    let range = |node: NodeId| (millis(forest[node].range.start), millis(forest[node].range.end));
    let mut ranges: Vec<_> = forest.ids().skip(1).map(|node| (forest.name(&recording, node), range(node))).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [("a", (0, 20)), ("b", (0, 0)), ("c", (50, 100)), ("d", (-43_200_000, 80))]);
    assert_eq!(forest.notes.iter().map(|note| (note.code(), note.count())).collect::<Vec<_>>()[0], ("times_outside_run", 3));
}

proptest! {
    /// Times on both sides of the border of a day.
    #[test]
    fn a_span_near_the_border_of_its_day_ends_where_it_begins_or_later(
        times in prop::collection::vec((prop::sample::select(vec![-48_i64, -25, -24, -23, -1, 0, 1, 24, 25, 48]), 0..4_i64, 0..50_i64), 4),
    ) {
        let mut recording = text::parse("run x 0..100ms\n  a 10..20ms\n  b 30..40ms\n  c 50..60ms\n  d 70..80ms\n").unwrap();
        let (run, hour) = (recording.run.start, 3_600_000_000_000);
        for (span, (hours, off, length)) in recording.spans.iter_mut().zip(times) {
            span.start = run.plus_nanos(hours * hour + off - 2);
            span.end = span.start.plus_nanos(length * hour);
        }
        let forest = Forest::build(&recording);
        prop_assert!(forest.nodes.iter().all(|node| node.range.start <= node.range.end));
        let far = 24 * hour;
        let is_near = |at: Timestamp| run.nanos_since(at) <= far && at.nanos_since(run) <= far + 100_000_000;
        prop_assert!(forest.nodes.iter().all(|node| is_near(node.range.start) && is_near(node.range.end)));
        // No panic, and nothing negative.
        let report = crate::Report::new(recording);
        prop_assert!(report.wall() >= Nanos::ZERO);
    }
}

#[test]
fn an_orphan_hangs_under_its_process_if_that_is_a_node() {
    check(
        "run x 0..100ms\nprocess p 1..90ms pid 2 under 1\nroot 2..80ms p pid 2\nlost 5..6ms p pid 2 parent 999\n",
        "x\n  ~p\n    ~root\n    ~lost orphan\norphans 1\n",
    );
}

#[test]
fn a_killed_run_ends_with_the_latest_thing_seen() {
    let recording = text::parse("run x 0..\n  a 1..30ms\nprocess p 2ms.. pid 2 under 1\nsample 70ms pid 2 m\n").unwrap();
    let forest = Forest::build(&recording);
    assert_eq!(forest.run_range().nanos(), 70_000_000);
    assert_eq!(forest.notes[0], Note::UnfinishedRun);
    assert_eq!(forest[NodeId::at(2)].range.nanos(), 68_000_000, "what outlived the recording ends with it");
}

#[test]
fn processes_that_outlived_the_run_are_named() {
    let recording = text::parse("run x 0..50ms\nprocess agent 2ms.. pid 2 under 1\nprocess done 3..4ms pid 3 under 1\n").unwrap();
    let notes = Forest::build(&recording).notes;
    let agent = ProcessName { program: "agent".to_owned(), pid: 2 };
    assert!(notes.contains(&Note::OutlivedRun([agent].into_iter().collect())), "{notes:?}");
    let many: String = (2..12).map(|pid| format!("process p{pid} 2ms.. pid {pid} under 1\n")).collect();
    let notes = Forest::build(&text::parse(&format!("run x 0..50ms\n{many}")).unwrap()).notes;
    let outlived = (2..12).map(|pid| ProcessName { program: format!("p{pid}"), pid }).collect();
    assert!(notes.contains(&Note::OutlivedRun(outlived)), "{notes:?}");
}

#[test]
fn a_pid_that_was_used_again_is_another_process() {
    let recording = text::parse("run x 0..100ms\nprocess a 1..20ms pid 2 under 1\nprocess b 40..60ms pid 2 under 1\n").unwrap();
    let forest = Forest::build(&recording);
    let at = |millis: i64| forest.process_at(2, text::ORIGIN.plus_nanos(millis * 1_000_000)).map(|p| recording.processes[p].name.as_str());
    assert_eq!([at(5), at(25), at(40), at(59), at(90)], [Some("a"), Some("a"), Some("b"), Some("b"), None]);
}

#[test]
fn ids_find_their_nodes() {
    let recording = text::parse("run x 0..9ms\n  a 1..2ms\n").unwrap();
    let forest = Forest::build(&recording);
    assert_eq!(forest.node_of_id(&recording, recording.run.trace_id, recording.run.root_span_id), Some(NodeId::RUN));
    assert_eq!(forest.node_of_id(&recording, recording.spans[0].trace_id, recording.spans[0].span_id), Some(NodeId::at(1)));
    assert_eq!(forest.node_of_span(SpanRow::at(0)), Some(NodeId::at(1)));
    assert_eq!((forest.service(&recording, NodeId::RUN), forest.children(NodeId::RUN).collect()), ("run", vec![NodeId::at(1)]));
}

#[test]
fn a_trace_inside_one_operation_of_another_hangs_under_it() {
    let two = "run x 0..10s\ncli 0..10s cli\ntrace 2\nplan 1..9.9s engine\n  create 2..9s engine\n";
    check(two, "x\n  ~cli\n    ~plan\n      create\nroots_nested 1\n");
    let report = crate::Report::new(text::parse(two).unwrap());
    let first = report.poles().iter().next().unwrap();
    assert_eq!((first.name.as_str(), first.savings.if_zero.high.0), ("create", 7_000_000_000));
}

#[test]
fn a_trace_that_two_operations_cover_hangs_above_both() {
    check(
        "run x 0..10s\ncli 0..10s cli\n  a 1..9s cli\n  b 1..9s cli\ntrace 2\nload 2..3s tool\n",
        "x\n  ~cli\n    a\n    b\n    ~load\nroots_nested 1\n",
    );
}

#[test]
fn operations_that_cross_anywhere_run_beside_each_other() {
    check("run x 0..9s\na 0..4s\ntrace 2\nb 1..3s\ntrace 3\na 5..7s\ntrace 4\nb 6..8s\n", "x\n  ~a\n  ~b\n  ~a\n  ~b\n");
}

#[test]
fn a_request_hangs_under_a_command_and_never_under_another_request() {
    let requests = "run x 0..9s\nload 0..9s\ntrace 2\nGET 1..8s shop kind server\ntrace 3\nPOST 2..3s shop kind server\n";
    check(requests, "x\n  ~load\n    ~GET\n    ~POST\nroots_nested 2\n");
    check(&requests.replace("load 0..9s\ntrace 2\n", ""), "x\n  ~GET\n  ~POST\n");
}

#[test]
fn an_operation_never_hangs_inside_one_of_its_own_name() {
    check("run x 0..9s\nvisit 0..9s\ntrace 2\nvisit 1..8s\n", "x\n  ~visit\n  ~visit\n");
}

#[test]
fn a_trace_whose_process_is_known_hangs_where_the_process_does() {
    check(
        "run x 0..9s\nprocess tool 1..8s pid 2 under 1\ncli 0..9s cli pid 1\ntrace 2\nload 2..3s tool pid 2\n",
        "x\n  ~cli\n    ~tool\n      ~load\n",
    );
}

/// It lives as long as the command beside it, so that making the command faster saved nothing.
#[test]
fn what_longpole_forked_to_see_signals_is_no_node() {
    check(
        "run sh 0..9s\nprocess longpole 1..9s pid 2 under 1\nprocess lp-witness 1..9s pid 3 under 2 forked\nlink 1..9s build pid 2\nprocess cc 1..9s pid 4 under 2\n",
        "sh\n  ~longpole\n    ~link\n      ~cc\n",
    );
}

/// Every process climbed over all folded ones above it, and so did every span that names the run: 15,000,000,000 steps.
#[test]
fn a_line_of_forks_is_climbed_once() {
    const COUNT: u32 = 100_000;
    let mut recording = text::parse("run x 0..10s\n  a 2..3s web pid 9\nprocess a 1..9s pid 2 under 1 forked\n").unwrap();
    let (fork, span) = (recording.processes[1].clone(), recording.spans[0].clone());
    let process = |number: u32| Process {
        pid: 2 + number,
        parent_pid: Some(1 + number),
        start: Monotonic(fork.start.0 + u64::from(number)),
        ..fork.clone()
    };
    recording.processes.extend((1..COUNT).map(process));
    let id = |number: u32| SpanId::from_slice(&(1_000 + u64::from(number)).to_be_bytes()).unwrap();
    recording.spans = (0..COUNT).map(|number| Span { span_id: id(number), pid: Some(COUNT + 1), ..span.clone() }).collect();
    let forest = Forest::build(&recording);
    assert_eq!(forest.len() as u32, 1 + COUNT);
    assert!(forest.ids().skip(1).all(|node| forest[node].parent == Some(NodeId::RUN)));
    let last = recording.process_rows().last().unwrap();
    assert!(recording.process_rows().filter(|&row| row != last).all(|row| forest.node_of_process(row) == Some(NodeId::RUN)));
}

/// All processes were searched for it each time: 40,000,000,000 steps.
#[test]
fn the_process_of_the_command_is_found_once() {
    const COUNT: u32 = 200_000;
    let mut recording = text::parse("run x 0..10s\nprocess a 1..2s pid 2 under 1\n").unwrap();
    let (root, other) = (recording.processes[0].clone(), recording.processes[1].clone());
    recording.processes = (0..COUNT).map(|number| Process { pid: 2 + number, ..other.clone() }).chain([root]).collect();
    let forest = Forest::build(&recording);
    let last = recording.process_rows().last();
    assert!((0..COUNT).all(|_| forest.process_row(&recording, NodeId::RUN) == last));
    recording.run.root_pid = Some(2);
    assert_eq!(Forest::build(&recording).process_row(&recording, NodeId::RUN), None);
}
