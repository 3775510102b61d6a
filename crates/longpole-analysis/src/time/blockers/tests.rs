use std::fmt::Write as _;
use std::time::{Duration, Instant};

use longpole_model::text;
use proptest::prelude::*;

use super::*;
use crate::{Report, words};
use longpole_model::NodeId;

/// The thread that each wait of thread 7 was for, in words.
#[track_caller]
fn check(recording: &str, expected: &[&str]) {
    let text = format!("run x 0..100ms\n  web 0..100ms svc pid 1\n{recording}");
    let report = Report::new(text::parse(&text).unwrap());
    let recording = report.recording();
    let blockers = Blockers::of(recording);
    let forest = crate::tree::forest::Forest::build(recording);
    let timelines = Timelines::new(recording, &forest);
    let sources = Sources { recording, timelines: &timelines, origin: forest.run_range().start };
    let millis = |at: Monotonic| at.nanos_since(text::ORIGIN_MONOTONIC) / 1_000_000;
    let part = |relation: Relation, part: &BlockedPart| {
        let who = match part.who {
            BlockedOn::Thread { tid, evidence } => format!("{tid} {}", evidence.as_str()),
            BlockedOn::OneOf(threads) => format!("one of {threads}"),
            BlockedOn::Nobody => "nobody".to_owned(),
        };
        format!("{}..{} {} {who}", millis(part.from), millis(part.to), relation.as_str())
    };
    let of = |wait: &Wait| {
        let relation = blockers.relation(wait);
        let parts = blockers.parts(&sources, wait);
        parts.iter().map(|it| part(relation.unwrap(), it)).collect::<Vec<_>>()
    };
    let found: Vec<String> = recording.waits.iter().filter(|wait| wait.tid == 7).flat_map(of).collect();
    assert_eq!(found, expected);
}

/// Thread 7 waits from 10 to 60 ms.
const SEVEN: &str = "cpu 5..10ms pid 1 tid 7\ncpu 60..62ms pid 1 tid 7\n";

/// What Rust's mutex looks like.
const LOCK: &str = "m;std::sync::Mutex::lock;std::sys::Mutex::lock_contended";

#[test]
fn who_is_named_by_the_futex_held_it() {
    check(&format!("{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 holder 8 m\n"), &["10..60 holds 8 futex"]);
    check("wait 10..60ms pid 1 tid 7 join at 0x10 holder 8 m\n", &["10..60 ends 8 futex"]);
    check("wait 10..60ms pid 1 tid 7 lock m\n", &[]);
    check("wait 10..60ms pid 1 tid 7 sleep at 0x10 m\n", &[]);
}

#[test]
fn the_only_one_that_ran_when_it_was_given_back_held_it() {
    let wait = format!("{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 {LOCK}\n");
    check(&format!("{wait}cpu 58..70ms pid 1 tid 8\n"), &["10..60 holds 8 inferred"]);
    // It was switched out before the other had its CPU back.
    check(&format!("{wait}cpu 52..55ms pid 1 tid 8\n"), &["10..60 holds 8 inferred"]);
    check(&format!("{wait}cpu 12..40ms pid 1 tid 8\n"), &["10..60 holds nobody"]);
    check(&format!("{wait}cpu 58..70ms pid 1 tid 8\ncpu 20..80ms pid 1 tid 9\n"), &["10..60 holds one of 2"]);
    // Another process is no part of it.
    check(&format!("{wait}cpu 58..70ms pid 1 tid 8\ncpu 20..80ms pid 2 tid 9\n"), &["10..60 holds 8 inferred"]);
    // It was not over when the recording was.
    let unended = format!("cpu 5..10ms pid 1 tid 7\nwait 10..100ms pid 1 tid 7 lock at 0x10 {LOCK}\ncpu 95..100ms pid 1 tid 8\n");
    check(&unended, &["10..100 holds nobody"]);
}

#[test]
fn who_got_it_while_another_waited_held_it_from_then_on() {
    let nine = format!("cpu 1..5ms pid 1 tid 9\nwait 5..30ms pid 1 tid 9 lock at 0x10 {LOCK}\ncpu 30..35ms pid 1 tid 9\n");
    let nine = format!("{nine}cpu 55..56ms pid 1 tid 9\ncpu 29..31ms pid 1 tid 8\n");
    let named = format!("{nine}{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 holder 8 {LOCK}\n");
    check(&named, &["10..30 holds 8 futex", "30..60 holds 9 inferred"]);
    let unnamed = format!("{nine}{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 {LOCK}\n");
    check(&unnamed, &["10..30 holds 8 inferred", "30..60 holds 9 inferred"]);
    // Two ran at the end, and one of them is known to have got it.
    check(&format!("{unnamed}cpu 57..70ms pid 1 tid 8\n"), &["10..30 holds 8 inferred", "30..60 holds 9 inferred"]);
    // At another address it got something else.
    let other = nine.replace("0x10", "0x20");
    check(&format!("{other}{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 {LOCK}\n"), &["10..60 holds 9 inferred"]);
}

/// In Java each thread waits at a futex of its own.
#[test]
fn in_a_queue_each_holder_held_it_from_the_end_of_its_own_wait_on() {
    const MONITOR: &str = "m;update;ObjectMonitor::enter";
    let nine = format!("cpu 1..5ms pid 1 tid 9\nwait 5..30ms pid 1 tid 9 lock at 0x20 {MONITOR}\ncpu 30..35ms pid 1 tid 9\n");
    let nine = format!("{nine}cpu 55..58ms pid 1 tid 9\ncpu 25..30ms pid 1 tid 8\n");
    let seven = format!("{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 {MONITOR}\n");
    check(&format!("{nine}{seven}"), &["10..30 holds 8 inferred", "30..60 holds 9 inferred"]);
    // In another place it may have waited for another lock.
    let other = nine.replace("m;update", "m;other");
    check(&format!("{other}{seven}"), &["10..30 holds nobody", "30..60 holds 9 inferred"]);
    // It woke in vain at 30 ms and waited again at once.
    let again = nine.replace("cpu 30..35ms", &format!("wait 30050..50000us pid 1 tid 9 lock at 0x20 {MONITOR}\ncpu 50..52ms"));
    let again = format!("{again}cpu 47..50ms pid 1 tid 8\n");
    check(&format!("{again}{seven}"), &["10..50 holds 8 inferred", "50..60 holds 9 inferred"]);
    let twice =
        format!("{SEVEN}wait 10..30ms pid 1 tid 7 lock at 0x10 {MONITOR}\nwait 30050..60000us pid 1 tid 7 lock at 0x10 {MONITOR}\n");
    check(&format!("{twice}cpu 55..60ms pid 1 tid 8\n"), &["10..30 holds 8 inferred", "30..60 holds 8 inferred"]);
}

#[test]
fn who_waits_again_at_once_did_not_get_it() {
    let nine = format!("wait 5..30ms pid 1 tid 9 lock at 0x10 {LOCK}\nwait 30050..90000us pid 1 tid 9 lock at 0x10 {LOCK}\n");
    let wait = format!("{nine}{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 holder 8 {LOCK}\n");
    check(&wait, &["10..60 holds 8 futex"]);
}

#[test]
fn of_several_that_ran_the_one_that_got_it_last_held_it() {
    let before = format!("cpu 0..1ms pid 1 tid 9\nwait 1..8ms pid 1 tid 9 lock at 0x10 {LOCK}\ncpu 8..70ms pid 1 tid 9\n");
    let wait = format!("{before}{SEVEN}wait 10..60ms pid 1 tid 7 lock at 0x10 {LOCK}\ncpu 50..70ms pid 1 tid 8\n");
    check(&wait, &["10..60 holds 9 inferred"]);
}

#[test]
fn what_nobody_ever_held_is_no_lock() {
    let woken = format!("{SEVEN}cpu 58..70ms pid 1 tid 8\n");
    for stack in ["m;std::sync::Condvar::wait;futex_wait", "m;consume", "m;std::sync::Condvar::wait;lock_contended"] {
        check(&format!("{woken}wait 10..60ms pid 1 tid 7 lock at 0x10 {stack}\n"), &["10..60 wakes 8 inferred"]);
    }
    // Once it named who held it.
    let named = "wait 80..90ms pid 1 tid 9 lock at 0x10 holder 7 m\n";
    check(&format!("{woken}{named}wait 10..60ms pid 1 tid 7 lock at 0x10 m;consume\n"), &["10..60 holds 8 inferred"]);
}

#[test]
fn a_join_that_only_the_stack_tells_waited_for_the_thread_that_ended() {
    let join = "wait 10..60ms pid 1 tid 7 lock at 0x10 m;Thread.join@/usr/lib/python3.12/threading.py:1149;sem_wait\n";
    let ended = format!("{SEVEN}cpu 30..61ms pid 1 tid 8\nthread worker 1..61ms pid 1 tid 8\n{join}");
    check(&ended, &["10..60 ends 8 inferred"]);
    let both = format!("{ended}cpu 30..61ms pid 1 tid 9\nthread other 1..60ms pid 1 tid 9\n");
    check(&both, &["10..60 ends one of 2"]);
    check(&format!("{SEVEN}cpu 30..80ms pid 1 tid 8\nthread worker 1..80ms pid 1 tid 8\n{join}"), &["10..60 ends nobody"]);
}

#[test]
fn nothing_is_inferred_where_records_are_missing() {
    let text = format!("run x 0..100ms\n{SEVEN}cpu 58..70ms pid 1 tid 8\nwait 10..60ms pid 1 tid 7 lock at 0x10 {LOCK}\n");
    let mut recording = text::parse(&text).unwrap();
    recording.losses = vec![longpole_model::Loss::new(longpole_model::LossKind::SamplesLost, 1, "")];
    let report = Report::new(recording);
    let sums = report.node_waits(NodeId::RUN);
    let found: Vec<_> = sums.iter().map(|sum| report.blocked_by(sum).list.len()).collect();
    assert!(found.iter().all(|list| *list == 0), "{found:?}");
}

#[test]
fn the_answer_says_who_held_it_and_what_it_did() {
    let report = Report::new(
        text::parse(
            "\
run x 0..100ms
  web 5..95ms svc pid 1
process web 0..100ms pid 1
cpu 5..10ms pid 1 tid 7
cpu 90..95ms pid 1 tid 7
cpu 85..99ms pid 1 tid 8
thread worker 0..99ms pid 1 tid 7
thread flush 0..99ms pid 1 tid 8
wait 10..90ms pid 1 tid 7 lock at 0x10 holder 8 [web] main;update;pthread_mutex_lock
wait 3..70ms pid 1 tid 8 disk [-] main;write_all
sample 86ms x4 pid 1 tid 8 [-] main;sync
",
        )
        .unwrap(),
    );
    let pole = report.poles().iter().find(|pole| pole.name == "web").unwrap();
    assert_eq!(words::reason(&report.reason(pole)).to_string(), "≈ 89% blocked on a lock, in update");
    let sum = report.pole_wait(pole).unwrap();
    let blocked = report.blocked_by(&sum);
    let summary = report.blocked_by_summary(&sum, &blocked).unwrap();
    assert_eq!(words::blocked_by(&summary).to_string(), "held by thread flush: blocked on the disk, in write_all");
    let [flush] = &blocked.list[..] else { panic!("{blocked:?}") };
    assert_eq!((flush.tid, flush.nanos, flush.samples.len()), (8, Nanos(80_000_000), 4));
    assert_eq!(flush.waits.iter().map(|sum| sum.nanos).collect::<Vec<_>>(), [Nanos(60_000_000)]);
}

/// For each wait for the lock, all waits of its holder were kept: 160,000 of these.
#[test]
fn what_a_holder_waits_for_is_kept_once() {
    const COUNT: usize = 400;
    let mut text = format!("run x 0..{}ms\n  web 0..{}ms svc pid 1\n", 10 * COUNT, 10 * COUNT);
    for at in 0..COUNT {
        writeln!(text, "wait {}..{}ms pid 1 tid 7 lock at 0x10 holder 8 [web] main;lock", 10 * at, 10 * at + 6).unwrap();
        writeln!(text, "wait {}..{}us pid 1 tid 8 disk main;read", at, 10_000 * COUNT - at).unwrap();
    }
    let report = Report::new(text::parse(&text).unwrap());
    let web = report.forest().ids().find(|&node| report.name(node) == "web").unwrap();
    let waits = report.node_waits(web);
    let blocked = report.blocked_by(&waits[0]);
    let read = &blocked.list[0].waits[0];
    assert_eq!((read.nanos, read.parts.len()), (Nanos(6_000_000 * COUNT as i64), COUNT));
}

/// The parts of each wait.
fn all_parts(text: &str) -> Vec<(Wait, Vec<BlockedPart>)> {
    let recording = text::parse(text).unwrap();
    let forest = crate::tree::forest::Forest::build(&recording);
    let timelines = Timelines::new(&recording, &forest);
    let sources = Sources { recording: &recording, timelines: &timelines, origin: forest.run_range().start };
    let blockers = Blockers::of(&recording);
    recording.waits.iter().map(|wait| (wait.clone(), blockers.parts(&sources, wait))).collect()
}

#[test]
fn thousands_that_wait_for_one_lock_are_resolved_at_once() {
    let mut text = "run x 0..30s\n".to_owned();
    for at in 0..20_000 {
        // Each gets it 1 ms after the one before it, and waits for it again when it has given it back.
        let (tid, from, to) = (10 + at % 2000, at + 1, at + 2000);
        writeln!(text, "wait {from}..{to}ms pid 1 tid {tid} lock at 0x10 {LOCK}").unwrap();
        writeln!(text, "cpu {}..{}us pid 1 tid {tid}", to * 1000, to * 1000 + 900).unwrap();
    }
    let started = Instant::now();
    let parts = all_parts(&text);
    // Half a minute, if those that ran are looked for in each part of each wait.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let (wait, parts) = &parts[10_000];
    assert_eq!((parts[0].from, parts[PARTS_MAX].to, parts.len()), (wait.start, wait.end, PARTS_MAX + 1));
    assert!(parts.windows(2).all(|two| two[0].to == two[1].from));
    let inferred = |tid| BlockedOn::Thread { tid, evidence: BlockerEvidence::Inferred };
    assert_eq!([parts[1].who, parts[2].who, parts[PARTS_MAX].who], [inferred(12), inferred(13), BlockedOn::Nobody]);
}

#[test]
fn too_many_parts_leave_the_longest() {
    let mut text = "run x 0..2000ms\n".to_owned();
    for at in 0..400 {
        let (tid, to) = (10 + at, 10_000 + at * 10);
        writeln!(text, "wait 1..{}us pid 1 tid {tid} lock at 0x10 {LOCK}", if at == 399 { 900_000 } else { to }).unwrap();
    }
    writeln!(text, "wait 2..1000000us pid 1 tid 7 lock at 0x10 {LOCK}").unwrap();
    let parts = all_parts(&text);
    let (wait, parts) = parts.iter().find(|(wait, _)| wait.tid == 7).unwrap();
    assert_eq!((parts[0].from, parts.last().unwrap().to), (wait.start, wait.end));
    assert!(parts.windows(2).all(|two| two[0].to == two[1].from));
    let longest: Vec<_> = parts.iter().rev().take(2).map(|part| part.who).collect();
    let inferred = |tid| BlockedOn::Thread { tid, evidence: BlockerEvidence::Inferred };
    assert_eq!(longest, [inferred(409), inferred(408)]);
}

/// Each end was searched for among all threads that ran, for each wait: 240,000,000,000 steps for these.
#[test]
fn a_join_does_not_search_all_ends_for_all_threads_that_ran() {
    let mut text = "run x 0..2s\n".to_owned();
    for tid in 10_000..14_000 {
        writeln!(text, "cpu 900..1000ms pid 1 tid {tid}").unwrap();
    }
    // The last one of those that ended had run.
    for end in 0..20_000 {
        writeln!(text, "thread t 1..{}us pid 1 tid {}", 1_000_000 - end / 4, if end == 0 { 13_999 } else { 20_000 + end }).unwrap();
    }
    for tid in 100..3100 {
        writeln!(text, "wait 100..1000ms pid 1 tid {tid} join m").unwrap();
        writeln!(text, "cpu 1000..1001ms pid 1 tid {tid}").unwrap();
    }
    let started = Instant::now();
    let parts = all_parts(&text);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(parts.len(), 3_000);
    let who = BlockedOn::Thread { tid: 13_999, evidence: BlockerEvidence::Inferred };
    assert!(parts.iter().all(|(_, parts)| parts[..] == [BlockedPart { who, ..parts[0] }]));
}

/// Before, the last part took all others, up to 4,096 for each wait: half a minute for these.
#[test]
fn the_last_part_of_a_wait_is_found_without_the_others() {
    const COUNT: u32 = 100_000;
    let mut text = "run x 0..10s\n".to_owned();
    for number in 0..COUNT {
        let (tid, to) = (100 + number, 1_000_000 + number * 10);
        writeln!(text, "wait 5000..{to}us pid 1 tid {tid} lock at 0x10 {LOCK}\ncpu {to}..{}us pid 1 tid {tid}", to + 5).unwrap();
    }
    let recording = text::parse(&text).unwrap();
    let forest = crate::tree::forest::Forest::build(&recording);
    let timelines = Timelines::new(&recording, &forest);
    let sources = Sources { recording: &recording, timelines: &timelines, origin: forest.run_range().start };
    let blockers = Blockers::of(&recording);
    let started = Instant::now();
    for wait in recording.waits.iter().skip(1) {
        assert_eq!(blockers.last_thread(&sources, wait), Some(wait.tid - 1));
    }
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

/// What [`Blockers::holders`] finds if it asks anew each time.
fn asked_anew(blockers: &Blockers, sources: &Sources<'_>, wait: &Wait) -> Vec<BlockedPart> {
    let futex = futex_key(wait).unwrap();
    let all = blockers.at[&futex].iter().map(|&i| &sources.recording.waits[i]);
    let takers: Vec<&Wait> = all.filter(|it| it.tid != wait.tid && blockers.got_it(sources.recording, futex, it)).collect();
    let mut taker = takers.iter().rfind(|it| it.end <= wait.start).map(|it| it.tid);
    let (mut from, mut is_first, mut parts) = (wait.start, true, Vec::new());
    for over in takers.into_iter().filter(|it| it.end > wait.start && it.end < wait.end).chain([wait]) {
        let to = over.end;
        if from < to {
            let wakers = sources.wakers(over).map(|wakers| wakers.into_iter().filter(|tid| *tid != wait.tid).collect::<Vec<_>>());
            let is_believed =
                |tid: &u32| wakers.as_ref().map_or(!is_first, |wakers| wakers.contains(tid) || (wakers.is_empty() && !is_first));
            let who = match (taker.filter(is_believed), wakers) {
                (_, Some(wakers)) if wakers.len() == 1 => one_of(wakers),
                (Some(tid), _) => BlockedOn::Thread { tid, evidence: BlockerEvidence::Inferred },
                (None, wakers) => one_of(wakers.unwrap_or_default()),
            };
            parts.push(BlockedPart { from, to, who });
        }
        (from, taker, is_first) = (to, Some(over.tid), false);
    }
    parts
}

proptest! {
    #[test]
    fn it_finds_what_asking_anew_finds(
        waits in proptest::collection::vec((2_u32..9, 1_u64..90, 1_u64..60, any::<bool>()), 1..40),
        slices in proptest::collection::vec((2_u32..9, 0_u64..150, 1_u64..20), 0..40),
    ) {
        let mut text = "run x 0..200ms\n".to_owned();
        for (tid, from, length, runs) in waits {
            let to = from + length;
            writeln!(text, "wait {from}..{to}ms pid 1 tid {tid} lock at 0x10 {LOCK}").unwrap();
            if runs {
                writeln!(text, "cpu {to}..{}ms pid 1 tid {tid}", to + 1).unwrap();
            }
        }
        for (tid, from, length) in slices {
            writeln!(text, "cpu {from}..{}ms pid 1 tid {tid}", from + length).unwrap();
        }
        let recording = text::parse(&text).unwrap();
        let forest = crate::tree::forest::Forest::build(&recording);
        let timelines = Timelines::new(&recording, &forest);
        let sources = Sources { recording: &recording, timelines: &timelines, origin: forest.run_range().start };
        let blockers = Blockers::of(&recording);
        for wait in &recording.waits {
            let parts = blockers.parts(&sources, wait);
            let last = parts.last().and_then(|part| match part.who {
                BlockedOn::Thread { tid, .. } => Some(tid),
                _ => None,
            });
            prop_assert_eq!(blockers.last_thread(&sources, wait), last);
            prop_assert_eq!(parts, asked_anew(&blockers, &sources, wait));
        }
    }
}
