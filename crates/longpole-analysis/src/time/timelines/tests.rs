use longpole_model::{Id, Loss, LossKind, NodeId, PoleId, StateKind, text};

use crate::time::states::States;
use crate::{Report, words};

fn report(text: &str) -> Report {
    Report::new(text::parse(text).unwrap())
}

fn node(report: &Report, name: &str) -> NodeId {
    report.forest().ids().find(|&i| report.name(i) == name).unwrap()
}

/// To find the rows of a process, all rows before them were stepped over: 80,000,000,000 steps.
#[test]
fn the_rows_of_a_process_are_found_among_many() {
    const COUNT: u32 = 400_000;
    let mut recording = text::parse("run x 0..100ms\ncpu 0..1ms pid 1\n").unwrap();
    let slice = recording.cpu_slices[0];
    recording.cpu_slices = (1..=COUNT).map(|pid| longpole_model::CpuSlice { pid, tid: pid, ..slice }).collect();
    let timelines = super::Timelines::new(&recording, &crate::tree::forest::Forest::build(&recording));
    for pid in 1..=COUNT {
        assert!(timelines.rows_of(pid).map(|(_, row)| row.thread.pid.0).eq([pid]));
    }
    assert_eq!(timelines.rows_of(0).chain(timelines.rows_of(COUNT + 1)).count(), 0);
}

/// The threads of each process without spans, as `name: number start..end`, in milliseconds.
fn threads_of_processes(recording: &longpole_model::Recording) -> Vec<String> {
    let forest = crate::tree::forest::Forest::build(recording);
    let timelines = super::Timelines::new(recording, &forest);
    let millis = |at: longpole_model::Nanos| at.0 / 1_000_000;
    let thread = |line: super::ThreadLine<'_>| {
        let slices = line.slices.iter().map(|slice| format!(" {}..{}", millis(slice.from), millis(slice.to)));
        format!("{}{}{}", line.thread.tid.0, slices.collect::<String>(), if line.waits.is_empty() { "" } else { " waits" })
    };
    let process = |process: &super::PlainProcess| {
        let threads: Vec<String> = timelines.threads_of(process).map(thread).collect();
        format!("{}: {}", forest.name(recording, process.node), threads.join(", "))
    };
    timelines.plain_processes().iter().map(process).collect()
}

#[test]
fn a_process_has_the_threads_of_its_turn_where_another_one_had_its_pid() {
    let text = "\
run x 0..100ms
process a 10..40ms pid 7 under 1
process b 50..90ms pid 7 under 1
cpu 9..12ms pid 7 tid 7
cpu 10..30ms pid 7 tid 8
wait 12..40ms pid 7 tid 7 network main;recv
cpu 51..55ms pid 7 tid 7
cpu 60..70ms pid 7 tid 9
cpu 20..80ms pid 8 tid 8
";
    assert_eq!(threads_of_processes(&text::parse(text).unwrap()), ["a: 7 9..12 waits, 8 10..30", "b: 7 51..55, 9 60..70"]);
    // The first one had not ended when the next one of its pid started: its end was not recorded.
    let late = text.replace("10..40ms pid 7 under", "10..95ms pid 7 under");
    assert_eq!(threads_of_processes(&text::parse(&late).unwrap()), ["a: 7 9..12 waits, 8 10..30", "b: 7 51..55, 9 60..70"]);
}

/// Each process of a pid had all threads that the pid ever had: 1,000,000 of these.
#[test]
fn processes_of_one_pid_share_its_threads() {
    use std::fmt::Write as _;
    const COUNT: usize = 1_000;
    let mut text = format!("run x 0..{COUNT}ms\n");
    for at in 0..COUNT {
        writeln!(text, "process w {}..{}us pid 7 under 1", at * 1000, at * 1000 + 900).unwrap();
    }
    for at in 0..COUNT {
        writeln!(text, "cpu {}..{}us pid 7 tid {}\ncpu {}..{}us pid 7", at * 1000, at * 1000 + 9, 100 + at, at * 1000, at * 1000 + 9)
            .unwrap();
    }
    let recording = text::parse(&text).unwrap();
    let threads = threads_of_processes(&recording);
    assert_eq!((threads.len(), threads[5].as_str()), (COUNT, "w: 7 5..5, 105 5..5"));
    assert!(threads.iter().all(|threads| threads.matches(',').count() == 1));
}

/// Each process had all slices of its pid in its life: 90,000 pieces for these.
#[test]
fn what_the_thread_of_a_pid_does_is_of_one_process_at_a_time() {
    use std::fmt::Write as _;
    const COUNT: usize = 300;
    let end = 22 * COUNT;
    let mut text = format!("run x 0..{end}ms\n");
    (0..COUNT).for_each(|at| writeln!(text, "process w {}..{end}ms pid 7 under 1", 20 * at + 1).unwrap());
    for at in 0..COUNT {
        writeln!(text, "thread w {}..{end}ms pid 7 tid 7", 20 * at + 1).unwrap();
        writeln!(text, "cpu {}..{}us pid 7", (20 * COUNT + at) * 1000, (20 * COUNT + at) * 1000 + 500).unwrap();
    }
    let recording = text::parse(&text).unwrap();
    let forest = crate::tree::forest::Forest::build(&recording);
    let (replay, timelines) = (crate::schedule::replay::Replay::new(&recording, &forest), super::Timelines::new(&recording, &forest));
    let always = (longpole_model::Nanos::MIN, longpole_model::Nanos::MAX);
    let pieces = |node: NodeId| timelines.own_pieces(node, always, &replay.schedule().cover, false).pieces;
    let on_cpu = forest.ids().skip(1).map(|node| pieces(node).iter().filter(|piece| piece.state == StateKind::OnCpu).count());
    let on_cpu: Vec<usize> = on_cpu.collect();
    assert_eq!((on_cpu.len(), on_cpu.iter().sum::<usize>()), (COUNT, COUNT), "{on_cpu:?}");
}

/// What there was, in milliseconds, and how it is known.
fn in_words(states: &States) -> String {
    let word = |state: StateKind| match state {
        StateKind::OnCpu => "on-CPU",
        StateKind::InChild => "in child",
        StateKind::Blocked(kind) => kind.as_str(),
        StateKind::BlockedUnseen => "unseen",
        other => other.as_str(),
    };
    let parts = states.parts.iter().filter(|(_, time)| time.0 > 0);
    let mut words: Vec<String> = parts.map(|(state, time)| format!("{} {}", word(state), time.0 / 1_000_000)).collect();
    if states.cpu != states.of(StateKind::OnCpu) {
        words.push(format!("CPU time {}", states.cpu.0 / 1_000_000));
    }
    format!("{}; {}{}", words.join(", "), states.evidence.as_str(), if states.is_exact() { "" } else { ", not exact" })
}

fn check(text: &str, expected: &[(&str, &str)]) {
    let report = report(text);
    for (name, expected) in expected {
        let node = node(&report, name);
        let states = report.node_states(node);
        assert_eq!(in_words(&states), *expected, "{name}");
        assert_eq!(states.sum().0, report.forest()[node].range.nanos(), "{name}");
    }
}

fn check_with_descendants(text: &str, name: &str, expected: &str) {
    let report = report(text);
    let states = report.node_states_with_descendants(node(&report, name));
    assert_eq!(in_words(&states), expected);
    assert_eq!(states.sum().0, report.forest()[node(&report, name)].range.nanos());
}

#[test]
fn calls_on_one_thread_have_their_own_states() {
    check(
        "\
run x 0..100ms
  handle 0..20ms  svc  pid 7
    load 5..10ms  svc
cpu 0..7ms pid 7
wait 7..9ms pid 7 disk main;read
cpu 9..12ms pid 7 preempted
cpu 14..16ms pid 7
cpu 19..20ms pid 7
current 0..5ms pid 7 handle
current 5..10ms pid 7 load
current 10..20ms pid 7 handle
current 20..99ms pid 7 -
",
        &[("handle", "on-CPU 10, runnable 2, in child 5, unseen 3; journal"), ("load", "on-CPU 3, disk 2; journal")],
    );
}

#[test]
fn a_span_that_moves_between_threads_awaits_in_between() {
    check(
        "\
run x 0..100ms
  a 0..20ms  svc  pid 7
  b 0..20ms  svc  pid 7
cpu 0..8ms pid 7 tid 8
cpu 10..20ms pid 7 tid 9
current 0..4ms pid 7 tid 8 a
current 4..8ms pid 7 tid 8 b
current 8..20ms pid 7 tid 8 -
current 0..10ms pid 7 tid 9 -
current 10..14ms pid 7 tid 9 a
current 14..20ms pid 7 tid 9 b
",
        &[("a", "on-CPU 8, awaiting 12; journal"), ("b", "on-CPU 10, awaiting 10; journal")],
    );
}

/// The parent is blocked until its children, side by side on other threads, are over.
const CONCURRENT: &str = "\
run x 0..100ms
  all   0..20ms  svc  pid 7
    c   2..12ms  svc
    d   5..15ms  svc
cpu 0..2ms pid 7 tid 7
wait 2..15ms pid 7 tid 7 lock main;join
cpu 15..20ms pid 7 tid 7
cpu 2..12ms pid 7 tid 8
cpu 5..13ms pid 7 tid 9
wait 13..15ms pid 7 tid 9 network main;recv
cpu 15..16ms pid 7 tid 9
current 0..20ms pid 7 tid 7 all
current 2..12ms pid 7 tid 8 c
current 5..15ms pid 7 tid 9 d
";

#[test]
fn who_waits_for_its_children_is_in_them_and_with_them_is_what_they_are() {
    check(CONCURRENT, &[("all", "on-CPU 7, in child 13; journal"), ("d", "on-CPU 8, network 2; journal")]);
    check_with_descendants(CONCURRENT, "all", "on-CPU 18, network 2, CPU time 25; journal");
}

#[test]
fn threads_of_one_span_share_its_wall_time_and_their_cpu_time_adds_up() {
    check(
        "\
run x 0..100ms
  sum 0..12ms  svc  pid 7
cpu 0..6ms pid 7 tid 8
wait 6..12ms pid 7 tid 8 lock main;join
cpu 12..13ms pid 7 tid 8
cpu 0..4ms pid 7 tid 9
wait 4..10ms pid 7 tid 9 network main;recv
cpu 10..11ms pid 7 tid 9 preempted
cpu 12..13ms pid 7 tid 9
current 0..12ms pid 7 tid 8 sum
current 0..12ms pid 7 tid 9 sum
",
        &[("sum", "on-CPU 7, runnable 1, network 4, CPU time 11; journal")],
    );
}

#[test]
fn work_beside_an_open_child_is_work() {
    // The child was made and not entered: the parent runs the code, and waits, on its thread.
    check(
        "\
run x 0..100ms
  handle  0..20ms  svc  pid 7
    call  5..15ms  svc  kind client
cpu 0..8ms pid 7
wait 8..14ms pid 7 network [handle] main;recv
cpu 14..20ms pid 7
current 0..20ms pid 7 handle
",
        &[("handle", "on-CPU 14, in child 6; journal"), ("call", "remote 10; samples, not exact")],
    );
}

#[test]
fn the_calling_side_is_remote_unless_it_is_known_better() {
    let calls = "\
run x 0..100ms
  async  0..20ms  svc  pid 7  kind client
  sync   20..40ms  svc  pid 7  kind client
  known  40..60ms  svc  pid 7  kind client
    serve 45..55ms  other  pid 9  kind server
cpu 0..1ms pid 7
cpu 19..21ms pid 7
wait 21..39ms pid 7 network main;recv
cpu 39..41ms pid 7
cpu 59..60ms pid 7
current 0..1ms pid 7 async
current 1..19ms pid 7 -
current 19..20ms pid 7 async
current 20..40ms pid 7 sync
current 40..41ms pid 7 known
current 41..59ms pid 7 -
current 59..60ms pid 7 known
";
    check(
        calls,
        &[
            ("async", "on-CPU 2, remote 18; journal"),
            ("sync", "on-CPU 2, network 18; journal"),
            ("known", "on-CPU 2, in child 10, remote 8; journal"),
        ],
    );
    // Nobody watched the server: what it did is not known, so neither is what its caller with it did.
    check_with_descendants(calls, "known", "on-CPU 2, remote 8, unaccounted 10; samples, not exact");
}

#[test]
fn records_that_are_missing_leave_time_unaccounted_and_are_reported() {
    check(
        "\
run x 0..100ms
  a 0..30ms  svc  pid 7
  b 0..4ms   svc  pid 7
cpu 0..30ms pid 7 tid 8
cpu 0..5ms pid 7 tid 9
current 0..5ms pid 7 tid 8 a
current 10..15ms pid 7 tid 8 -
current 15..30ms pid 7 tid 8 a
current 0..4ms pid 7 tid 9 b
current 4..30ms pid 7 tid 9 -
",
        &[("a", "on-CPU 20, awaiting 5, unaccounted 5; journal, not exact"), ("b", "on-CPU 4; journal")],
    );
}

#[test]
fn a_journal_that_is_cut_off_at_its_head_or_its_end_says_nothing_beyond() {
    let cut = "\
run x 0..100ms
  a 0..60ms   svc  pid 7
  b 30..35ms  svc  pid 7
cpu 0..60ms pid 7 tid 8
cpu 70..99ms pid 7 tid 8
current 20..25ms pid 7 tid 8 a
current 25..30ms pid 7 tid 8 -
current 30..35ms pid 7 tid 8 b
current 35..40ms pid 7 tid 8 -
";
    // It was read up to 40 ms, and its thread ran on for longer than a thread needs to end.
    check(cut, &[("a", "on-CPU 5, awaiting 35, unaccounted 20; journal, not exact"), ("b", "on-CPU 5; journal")]);
    let mut recording = text::parse(cut).unwrap();
    recording.losses.push(Loss::new(LossKind::JournalGaps, 3, ""));
    let report = Report::new(recording);
    let words = |name: &str| in_words(&report.node_states(node(&report, name)));
    // Entries were overwritten, and may have been the first of this journal.
    assert_eq!(words("a"), "on-CPU 5, awaiting 15, unaccounted 40; journal, not exact");
    assert_eq!(words("b"), "on-CPU 5; journal");
    let mut recording = text::parse(cut).unwrap();
    recording.losses.push(Loss::new(LossKind::JournalsRefused, 1, ""));
    let report = Report::new(recording);
    assert_eq!(in_words(&report.node_states(node(&report, "b"))), "on-CPU 5; journal, not exact");
}

#[test]
fn a_span_may_outlive_its_thread() {
    check(
        "\
run x 0..100ms
  a 0..30ms  svc  pid 7
thread one 0..10ms pid 7 tid 8
cpu 0..10ms pid 7 tid 8
cpu 20..25ms pid 7 tid 9
current 0..10ms pid 7 tid 8 a
current 20..25ms pid 7 tid 9 a
",
        &[("a", "on-CPU 15, awaiting 15; journal")],
    );
}

#[test]
fn a_thread_that_was_not_seen_to_switch_is_not_judged() {
    check(
        "\
run x 0..100ms
  a 0..10ms  svc  pid 7
cpu 0..9ms pid 8
current 0..10ms pid 7 tid 8 a
",
        &[("a", "unaccounted 10; samples, not exact")],
    );
    // Nothing is known of it before it is given a CPU for the first time, if it was there when the recording began.
    check(
        "\
run x 0..100ms
  a 0..10ms  svc  pid 7
thread old 0..90ms pid 7 tid 8
cpu 4..9ms pid 7 tid 8
current 0..10ms pid 7 tid 8 a
",
        &[("a", "on-CPU 5, unseen 1, unaccounted 4; journal")],
    );
}

const ONE_THREAD: &str = "\
run x 0..100ms
  work    10..60ms  svc  pid 1
    call  20..30ms  svc
process cc 62..80ms pid 8 under 1
thread x  0..100ms pid 1 tid 1
thread cc 62..80ms pid 8 tid 8
cpu 0..15ms pid 1
wait 15..20ms pid 1 sleep main;pause
cpu 20..25ms pid 1 preempted
cpu 27..40ms pid 1
cpu 50..62ms pid 1
wait 62..80ms pid 1 child main;wait
cpu 64..80ms pid 8
cpu 80..100ms pid 1
";

#[test]
fn the_only_thread_of_a_process_works_for_the_span_that_is_open() {
    check(
        ONE_THREAD,
        &[
            ("work", "on-CPU 25, in child 10, sleep 5, unseen 10; inferred"),
            ("call", "on-CPU 8, runnable 2; inferred"),
            ("x", "on-CPU 32, in child 68; inferred"),
            ("cc", "on-CPU 16, runnable 2; inferred"),
        ],
    );
    check_with_descendants(ONE_THREAD, "x", "on-CPU 81, runnable 4, sleep 5, unseen 10; inferred");
}

#[test]
fn nothing_is_inferred_of_spans_side_by_side_nor_of_several_threads() {
    let two = ONE_THREAD.replace("thread cc", "thread second 0..100ms pid 1 tid 2\nthread cc");
    check(&two, &[("call", "unaccounted 10; samples, not exact"), ("cc", "on-CPU 16, runnable 2; inferred")]);
    let beside = ONE_THREAD.replace("process cc", "  beside  5..12ms  svc  pid 1\nprocess cc");
    check(
        &beside,
        &[
            ("beside", "unaccounted 7; samples, not exact"),
            ("work", "in child 10, sleep 5, unaccounted 35; samples, not exact"),
            ("call", "on-CPU 8, runnable 2; inferred"),
        ],
    );
}

#[test]
fn nothing_is_called_exact_where_records_were_lost() {
    let mut recording = text::parse(ONE_THREAD).unwrap();
    recording.losses.push(Loss::new(LossKind::SamplesLost, 1, ""));
    let report = Report::new(recording);
    assert_eq!(in_words(&report.node_states(node(&report, "call"))), "on-CPU 8, runnable 2; inferred, not exact");
}

#[test]
fn a_pole_says_what_it_does_in_the_words_of_its_states() {
    let reason = |text: &str| {
        let report = report(text);
        let reason = report.reason(&report.poles()[PoleId::at(0)]);
        format!("{}: {}", reason.code().as_str(), words::reason(&reason))
    };
    let sleeps = "\
run x 0..100ms
  tick 0..100ms  svc  pid 7
cpu 0..1ms pid 7
cpu 99..100ms pid 7
current 0..1ms pid 7 tick
current 1..99ms pid 7 -
current 99..100ms pid 7 tick
";
    assert_eq!(reason(sleeps), "waits: 98% awaiting (async: no thread worked on it), 2% on-CPU");
    assert_eq!(reason(&sleeps.replace("pid 7\ncpu 0", "pid 7 kind client\ncpu 0")), "waits: 98% remote, 2% on-CPU");
    let shares = "\
run x 0..100ms
thread x 0..100ms pid 1 tid 1
cpu 0..30ms pid 1 preempted
cpu 95..100ms pid 1
";
    assert_eq!(reason(shares), "on_cpu: 35% on-CPU and 65% runnable, too few samples to say where");
    let starved = shares.replace("0..30ms pid 1 preempted", "0..3ms pid 1 preempted");
    assert_eq!(reason(&starved), "on_cpu: 8% on-CPU and 92% runnable, too few samples to say where");
    assert_eq!(reason(&shares.replace("0..30ms pid 1 preempted", "0..90ms pid 1")), "on_cpu: 95% on-CPU, too few samples to say where");
    let blocked = shares.replace(" preempted", "");
    assert_eq!(reason(&blocked), "mixed: 35% on-CPU; 65% blocked (not sampled)");
    let two = blocked + "wait 31..32ms pid 1 disk main;save\nwait 41..42ms pid 1 disk main;save\n";
    assert_eq!(reason(&two), "mixed: 35% on-CPU; 63% blocked (not sampled)", "two say nothing of the others");
    let four = two + "wait 51..52ms pid 1 disk main;save\nwait 44..45ms pid 1 sleep main;rest\n";
    // Those of one function are a pole: the three, and all beside them.
    let told = "waits: 95% blocked in waits under 5ms: 3 of 3 sampled were blocked on the disk, in save";
    assert_eq!(reason(&four), told);
}
