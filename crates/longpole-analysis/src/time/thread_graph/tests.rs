use longpole_model::{FunctionId, Nanos, NodeId, ThreadKey, WaitKind, text};
use proptest::prelude::*;

use crate::Report;
use crate::schedule::poles::{LimitedBy, PartKind};

/// Each pole of the process as `function on-path saved`, in milliseconds.
fn poles(rows: &str) -> Vec<String> {
    let most = |line: String| {
        line.split_once(" to ").map_or(line.clone(), |(start, high)| format!("{} {high}", start.rsplit_once(' ').unwrap().0))
    };
    poles_and_savings(rows).into_iter().map(most).collect()
}

/// The same, with a range where it is one.
fn poles_and_savings(rows: &str) -> Vec<String> {
    let report = Report::new(text::parse(&format!("run x 0..100ms\n{rows}")).unwrap());
    let millis = |nanos: Nanos| nanos.0 / 1_000_000;
    let name = |function: FunctionId| report.functions().list[function].function.clone();
    let line = |pole: &crate::schedule::poles::Pole| {
        let part = match pole.part.as_ref().map(|part| part.kind) {
            Some(PartKind::Computes(function) | PartKind::Waits(_, Some(function))) => name(function),
            _ => "rest".to_owned(),
        };
        let (low, high) = (millis(pole.savings.own.low), millis(pole.savings.own.high));
        let saves = if low == high { low.to_string() } else { format!("{low} to {high}") };
        format!("{part} {} {saves}", millis(pole.on_path))
    };
    report.poles().iter().map(line).collect()
}

#[test]
fn who_waits_for_a_lock_waits_for_what_its_holder_does() {
    let held = "\
thread x 0..100ms pid 1 tid 1
thread t 5..70ms pid 1 tid 3
cpu 0..10ms pid 1 tid 1
wait 10..70ms pid 1 tid 1 lock at 0x10 main;update;lock
cpu 70..100ms pid 1 tid 1
cpu 5..12ms pid 1 tid 3
wait 12..69ms pid 1 tid 3 sleep holder;slow_io
cpu 69..70ms pid 1 tid 3
sample 0ms x10 pid 1 tid 1 main;parse
sample 71ms x28 pid 1 tid 1 main;update
sample 5ms x6 pid 1 tid 3 holder
";
    // Without `slow_io` the main thread gets the lock when it comes to it.
    assert_eq!(poles(held), ["slow_io 57 57", "update 30 30", "holder 8 8", "parse 5 5"]);
}

#[test]
fn what_stands_beside_a_longer_thread_saves_what_it_is_longer() {
    let lanes = "\
thread x 0..100ms pid 1 tid 1
thread a 10..90ms pid 1 tid 3
thread b 10..60ms pid 1 tid 4
cpu 0..10ms pid 1 tid 1
wait 10..90ms pid 1 tid 1 join at 0x10 holder 3 main;join
cpu 90..100ms pid 1 tid 1
cpu 10..70ms pid 1 tid 3
wait 70..89ms pid 1 tid 3 disk worker;upload
cpu 89..90ms pid 1 tid 3
cpu 10..60ms pid 1 tid 4
sample 0ms x10 pid 1 tid 1 main;parse
sample 10ms x60 pid 1 tid 3 worker;encode
sample 10ms x50 pid 1 tid 4 other;index
sample 91ms x9 pid 1 tid 1 main;write
";
    // The main thread joined the shorter one as well, without a wait.
    assert_eq!(poles(lanes), ["encode 61 30", "upload 19 19", "parse 10 10", "write 10 10"]);
    let report = Report::new(text::parse(&format!("run x 0..100ms\n{lanes}")).unwrap());
    let limits: Vec<_> = report.poles().iter().map(|pole| pole.limited_by).collect();
    let other = Some(LimitedBy::Thread(NodeId::RUN, ThreadKey::new(1, 4)));
    assert_eq!(limits, [other, None, None, None], "without `encode`, the shorter one is on the path");
}

#[test]
fn of_several_threads_the_last_on_a_cpu_let_another_one_go_on() {
    // A thread ends its work, and wakes the one that hands its result to the main thread; a third one went to sleep before.
    let rows = "\
thread x 0..100ms pid 1 tid 1
thread a 1..99ms pid 1 tid 3
thread b 1..99ms pid 1 tid 4
cpu 0..2ms pid 1 tid 1
wait 2000..60100us pid 1 tid 1 queue at 0x20 main;take
cpu 60100..100000us pid 1 tid 1
cpu 1..2ms pid 1 tid 3
wait 2000..60000us pid 1 tid 3 sleep answer;settle
cpu 60000..60100us pid 1 tid 3
cpu 1..2ms pid 1 tid 4
wait 2000..59950us pid 1 tid 4 sleep other;rest
cpu 59950..60040us pid 1 tid 4
sample 60200us x39 pid 1 tid 1 main;write
";
    assert_eq!(poles(rows)[..1], ["settle 58 58"]);
}

#[test]
fn who_joins_a_thread_that_had_no_cpu_to_end_joins_the_others_as_well() {
    // The main thread goes on when one of two ends, which another program's thread keeps from its CPU for 2 ms.
    let rows = "\
thread x 0..100ms pid 1 tid 1
thread a 10..92ms pid 1 tid 3
thread b 10..60ms pid 1 tid 4
cpu 0..10ms pid 1 tid 1
wait 10..90ms pid 1 tid 1 lock at 0x10 holder 3 main;join
cpu 90..100ms pid 1 tid 1
cpu 10..90ms pid 1 tid 3 preempted
cpu 91900..92000us pid 1 tid 3
cpu 10..60ms pid 1 tid 4
sample 0ms x10 pid 1 tid 1 main;parse
sample 10ms x80 pid 1 tid 3 worker;encode
sample 10ms x50 pid 1 tid 4 other;index
sample 91ms x9 pid 1 tid 1 main;write
";
    assert_eq!(poles(rows)[..1], ["encode 80 30"]);
}

/// Jobs `(from, to)`, in milliseconds, that a program of this name starts, and waits for whichever ends first.
fn jobs(program: &str, jobs: &[(u32, u32)]) -> Vec<String> {
    let mut rows =
        format!("process {program} 1..99ms pid 2 under 1\nthread x 0..100ms pid 1 tid 1\nthread {program} 1..99ms pid 2 tid 2\n");
    rows += "cpu 0..1ms pid 1 tid 1\nwait 1..99ms pid 1 tid 1 child main;wait\ncpu 99..100ms pid 1 tid 1\n";
    let mut moments: Vec<u32> = jobs.iter().flat_map(|(from, to)| [*from, *to]).chain([1, 99]).collect();
    moments.sort_unstable();
    moments.dedup();
    for pair in moments.windows(2) {
        let (from, to) = (pair[0] * 1000, pair[1] * 1000);
        rows += &format!("cpu {from}..{}us pid 2 tid 2\nwait {}..{to}us pid 2 tid 2 child main;wait\n", from + 50, from + 50);
    }
    for (place, (from, to)) in jobs.iter().enumerate() {
        let pid = 10 + place;
        rows += &format!("process job 0..100ms pid {pid} under 2\n").replace("0..100ms", &format!("{from}..{to}ms"));
        rows += &format!("thread job {from}..{to}ms pid {pid} tid {pid}\ncpu {from}..{to}ms pid {pid} tid {pid}\n");
        rows += &format!("sample {from}ms x{} pid {pid} tid {pid} main;job{place}\n", to - from);
    }
    poles_and_savings(&rows)
}

#[test]
fn jobs_that_one_program_starts_share_its_slots() {
    // Nine jobs of 10 ms beside one of 95: two slots take them in 50 ms.
    let mut beside: Vec<(u32, u32)> = (0..9).map(|place| (2 + 10 * place, 12 + 10 * place)).collect();
    beside.push((1, 96));
    assert_eq!(jobs("xargs", &beside)[0], "rest 95 43");
    assert_eq!(jobs("sh", &beside)[0], "rest 95 3", "a script with a job in the background");
    assert_eq!(jobs("other", &beside)[0], "rest 95 3 to 43", "nothing tells");
    // Both slots hand over: whoever starts them starts the next when any of them ends.
    let both = [(1, 21), (1, 41), (21, 51), (41, 61), (51, 96), (61, 66), (66, 71), (71, 76)];
    assert_eq!(jobs("other", &both)[0], "job4 45 29");
    // Each starts when both of the last two have ended: no slots.
    let phases = [(1, 21), (1, 31), (31, 51), (31, 61), (61, 81), (61, 96)];
    assert_eq!(jobs("other", &phases)[0], "job5 35 14");
}

#[test]
fn threads_of_a_phase_are_no_jobs_because_another_thread_stays() {
    // Three threads, and three more when all of them have ended. A thread that nobody joins is there all the time.
    let rows = "\
thread x 0..100ms pid 1 tid 1
thread noise 0..100ms pid 1 tid 3
thread a 1..13ms pid 1 tid 4
thread b 1..31ms pid 1 tid 5
thread c 1..16ms pid 1 tid 6
thread d 41..70ms pid 1 tid 7
thread e 41..98ms pid 1 tid 8
thread f 41..80ms pid 1 tid 9
cpu 0..1ms pid 1 tid 1
wait 1..31ms pid 1 tid 1 join at 0x10 holder 5 main;join
cpu 31..41ms pid 1 tid 1
wait 41..98ms pid 1 tid 1 join at 0x10 holder 8 main;join
cpu 98..100ms pid 1 tid 1
cpu 500us..100ms pid 1 tid 3
cpu 1..13ms pid 1 tid 4
cpu 1..31ms pid 1 tid 5
cpu 1..16ms pid 1 tid 6
cpu 41..70ms pid 1 tid 7
cpu 41..98ms pid 1 tid 8
cpu 41..80ms pid 1 tid 9
sample 1ms x98 pid 1 tid 3 noise;burn
sample 2ms x10 pid 1 tid 4 a;read_pages
sample 2ms x28 pid 1 tid 5 b;fetch_pages
sample 2ms x13 pid 1 tid 6 c;read_pages
sample 31ms x10 pid 1 tid 1 main;parse
sample 42ms x28 pid 1 tid 7 d;sort_pages
sample 42ms x56 pid 1 tid 8 e;encode
sample 42ms x38 pid 1 tid 9 f;sort_pages
";
    assert_eq!(poles(rows), ["encode 57 18", "fetch_pages 30 15", "parse 13 13"]);
}

#[test]
fn a_queue_goes_on_when_something_is_put_into_it() {
    // A thread makes four items in 20 ms each; the main thread needs 5 ms for each.
    let mut rows = "thread x 0..100ms pid 1 tid 1\nthread p 1..82ms pid 1 tid 3\n".to_owned();
    let (mut waits, mut cpu, mut samples) = (String::new(), "cpu 0..1ms pid 1 tid 1\n".to_owned(), String::new());
    for item in 0..4 {
        let (start, made) = (1 + 20 * item, 21 + 20 * item);
        let since = if item == 0 { 1 } else { start + 5 };
        waits += &format!("wait {since}..{made}ms pid 1 tid 1 queue at 0x20 main;take;pthread_cond_wait\n");
        cpu += &format!("cpu {start}..{made}ms pid 1 tid 3\ncpu {made}..{}ms pid 1 tid 1\n", if item == 3 { 100 } else { made + 5 });
        samples += &format!("sample {start}ms x20 pid 1 tid 3 produce\nsample {made}ms x5 pid 1 tid 1 main;consume\n");
    }
    rows += &waits;
    rows += &cpu;
    rows += &samples;
    rows += "sample 86ms x13 pid 1 tid 1 main;write\n";
    // Without `produce` the items wait for `consume`: 20 ms, and what the main thread does else.
    assert_eq!(poles(&rows), ["produce 80 65", "write 14 14", "consume 5 5"]);
}

#[test]
fn who_takes_from_another_one_ends_after_it() {
    // A child writes ten items in 5 ms each; its parent needs 8 ms for each, and waits for the first one only.
    let mut rows = "process b 1..52ms pid 2 under 1\nthread x 0..100ms pid 1 tid 1\nthread b 1..52ms pid 2 tid 2\n".to_owned();
    rows += "cpu 0..1ms pid 1 tid 1\nwait 1..7ms pid 1 tid 1 pipe main;read\ncpu 7..100ms pid 1 tid 1\n";
    rows += "cpu 1..52ms pid 2 tid 2\nsample 1ms x50 pid 2 tid 2 produce\n";
    rows += "sample 7ms x80 pid 1 tid 1 main;consume\nsample 87ms x13 pid 1 tid 1 main;write\n";
    // Without `consume` the last item is there after 52 ms.
    assert_eq!(poles(&rows), ["consume 80 35", "write 13 13", "rest 6 6"]);
}

#[test]
fn who_had_to_leave_its_cpu_waits_for_the_one_that_it_had_asked() {
    // A client asks a server, has no CPU for 5 ms, and waits for the answer from then on.
    let mut rows = "process b 1..63ms pid 2 under 1\nthread x 0..100ms pid 1 tid 1\nthread b 1..63ms pid 2 tid 2\n".to_owned();
    rows += "cpu 0..10ms pid 1 tid 1 preempted\ncpu 15000..15100us pid 1 tid 1\nwait 15100..60000us pid 1 tid 1 network main;ask\n";
    rows += "cpu 60..100ms pid 1 tid 1\ncpu 1..2ms pid 2 tid 2\nwait 2000..9900us pid 2 tid 2 idle serve;poll\n";
    rows += "cpu 9900..60000us pid 2 tid 2\nwait 60..63ms pid 2 tid 2 idle serve;poll\n";
    rows += "sample 0ms x10 pid 1 tid 1 main;start\nsample 60ms x40 pid 1 tid 1 main;write\nsample 10ms x50 pid 2 tid 2 serve;render\n";
    // All that the server does is one pole.
    assert_eq!(poles(&rows)[..2], ["rest 50 44", "write 40 37"]);
}

#[test]
fn of_several_clients_each_waits_for_the_server() {
    // Two clients ask a server at once. Two of its threads answer, on the CPUs in turns; the other client gets its answer just before.
    let mut rows = "process web 1..100ms pid 2 under 1\nprocess a 2..91ms pid 3 under 1\nprocess b 2..89ms pid 4 under 1\n".to_owned();
    rows += "thread x 0..100ms pid 1 tid 1\nthread web 1..100ms pid 2 tid 2\nthread a 2..91ms pid 3 tid 3\nthread b 2..89ms pid 4 tid 4\n";
    rows += "thread web 5..88ms pid 2 tid 7\nthread web 6..88ms pid 2 tid 8\n";
    rows += "cpu 0..1ms pid 1 tid 1\nwait 1..91ms pid 1 tid 1 child main;wait\ncpu 91..100ms pid 1 tid 1\n";
    rows += "cpu 1..2ms pid 2 tid 2\nwait 2000..4900us pid 2 tid 2 idle in poll serve;poll\ncpu 4900..5100us pid 2 tid 2\n";
    rows += "wait 6..100ms pid 2 tid 2 idle in poll serve;poll\ncpu 5900..6000us pid 2 tid 2\n";
    rows += "cpu 2..5ms pid 3 tid 3\nwait 5000..88100us pid 3 tid 3 network in poll main;ask;poll\ncpu 88100..91000us pid 3 tid 3\n";
    rows += "cpu 2..5ms pid 4 tid 4\nwait 5000..88000us pid 4 tid 4 network in poll main;ask;poll\ncpu 88000..88050us pid 4 tid 4\n";
    rows += "cpu 5100..88000us pid 2 tid 7\ncpu 6000..87900us pid 2 tid 8\n";
    rows += "sample 6ms x82 pid 2 tid 7 handle;render\nsample 6ms x82 pid 2 tid 8 handle;render\n";
    assert_eq!(poles(&rows)[0], "rest 84 83");
}

#[test]
fn a_wait_that_goes_on_after_a_timeout_is_one() {
    // Twice the main thread waits 30 ms for a message in vain, which it has to wait for again.
    let mut rows = "thread x 0..100ms pid 1 tid 1\nthread w 1..81ms pid 1 tid 3\ncpu 0..2ms pid 1 tid 1\n".to_owned();
    rows += "wait 2..32ms pid 1 tid 1 sleep main;receive\ncpu 32000..32050us pid 1 tid 1\n";
    rows += "wait 32050..62000us pid 1 tid 1 sleep main;receive\ncpu 62000..62050us pid 1 tid 1\n";
    rows += "wait 62050..80000us pid 1 tid 1 queue at 0x20 main;receive\ncpu 80..100ms pid 1 tid 1\n";
    rows += "cpu 1..81ms pid 1 tid 3\nsample 2ms x78 pid 1 tid 3 work\nsample 80ms x20 pid 1 tid 1 main;write\n";
    assert_eq!(poles(&rows)[..2], ["work 79 78", "write 21 20"]);
}

#[test]
fn what_nobody_sampled_behind_a_timeout_goes_on_with_it() {
    // Twice the main thread waits 38 ms for a message in vain, then it comes after 3 ms more, which is too short to be sampled.
    let rows = |call: &str, last: &str| {
        let mut rows = "thread x 0..100ms pid 1 tid 1\nthread w 1..81ms pid 1 tid 3\ncpu 0..2ms pid 1 tid 1\n".to_owned();
        rows += &format!("wait 2..39ms pid 1 tid 1 sleep in {call} main;receive\ncpu 39000..39050us pid 1 tid 1\n");
        rows += &format!("wait 39050..77000us pid 1 tid 1 sleep in {call} main;receive\ncpu 77000..77050us pid 1 tid 1\n");
        rows += "cpu 80..100ms pid 1 tid 1\ncpu 1..81ms pid 1 tid 3\n";
        rows + last + "sample 2ms x78 pid 1 tid 3 work\nsample 80ms x20 pid 1 tid 1 main;write\n"
    };
    assert_eq!(poles(&rows("futex", ""))[..2], ["work 79 78", "write 21 20"]);
    // It was sampled, in another place of the same function.
    assert_eq!(
        poles(&rows("futex", "wait 77050..77800us pid 1 tid 1 lock main;receive;park\ncpu 77800..80000us pid 1 tid 1\n"))[..1],
        ["work 76 75"]
    );
    // Nobody ends a sleep.
    assert!(!poles(&rows("clock_nanosleep", ""))[0].starts_with("work"));
}

#[test]
fn a_poll_that_times_out_goes_on_with_the_next_one() {
    // A client polls for 30 ms in vain, for 1 ms more, which is too short to be sampled, then until the server answers.
    let rows = |answers: u32, last: &str| {
        let mut rows = format!("process b 1..{}ms pid 2 under 1\nthread x 0..100ms pid 1 tid 1\n", answers + 1);
        rows += &format!("thread b 1..{}ms pid 2 tid 2\n", answers + 1);
        rows += "cpu 0..10ms pid 1 tid 1\nwait 10..40ms pid 1 tid 1 sleep in poll main;ask;poll\ncpu 40000..40020us pid 1 tid 1\n";
        rows += "cpu 1..2ms pid 2 tid 2\nwait 2000..9900us pid 2 tid 2 idle in poll serve;poll\ncpu 9900..10100us pid 2 tid 2\n";
        rows += "sample 0ms x10 pid 1 tid 1 main;start\n";
        rows + last
    };
    let answered = "cpu 41020..41040us pid 1 tid 1\nwait 41040..80000us pid 1 tid 1 network in poll main;ask;poll\n\
        cpu 80..100ms pid 1 tid 1\nwait 10100..79900us pid 2 tid 2 sleep in clock_nanosleep serve;settle\n\
        cpu 79900..80000us pid 2 tid 2\nwait 80..81ms pid 2 tid 2 idle in poll serve;poll\n\
        sample 80ms x20 pid 1 tid 1 main;write\n";
    assert_eq!(poles(&rows(80, answered))[0], "rest 70 70");
    // By chance a sample falls into the brief wait, and does not show what it was for.
    let seen = format!("wait 40020..41020us pid 1 tid 1 other in poll main;ask;drain;poll\n{answered}");
    assert_eq!(poles(&rows(80, &seen))[0], "rest 70 70");
    // The server answers as soon as that, so that no wait after the poll is sampled; another poll tells that the client waits for a peer there.
    let soon = "cpu 41020..90000us pid 1 tid 1\nwait 90..95ms pid 1 tid 1 network in poll main;ask;poll\ncpu 95..100ms pid 1 tid 1\n\
        wait 10100..40920us pid 2 tid 2 sleep in clock_nanosleep serve;settle\ncpu 40920..41020us pid 2 tid 2\n\
        wait 41020..94900us pid 2 tid 2 idle in poll serve;poll\ncpu 94900..95000us pid 2 tid 2\n\
        sample 42ms x48 pid 1 tid 1 main;write\n";
    assert_eq!(poles(&rows(95, soon))[..2], ["write 53 52", "rest 31 31"]);
}

#[test]
fn the_last_poll_of_several_ends_late_if_another_thread_ended_it() {
    // Twice the main thread waits 20 ms for a message in vain. On a busy machine it gets a CPU 4 ms after the third wait had to time out,
    // because a thread had sent a message and ended. It starts another thread then, and waits for that.
    let mut rows = "thread x 0..100ms pid 1 tid 1\nthread w 1..65ms pid 1 tid 3\nthread v 66100..99000us pid 1 tid 4\n".to_owned();
    rows += "cpu 0..2ms pid 1 tid 1\n";
    for (from, to) in [(2_000, 22_000), (22_020, 42_000), (42_020, 66_000)] {
        rows += &format!("wait {from}..{to}us pid 1 tid 1 sleep in futex main;receive\ncpu {to}..{}us pid 1 tid 1\n", to + 20);
    }
    rows += "cpu 66020..66200us pid 1 tid 1\nwait 66400..90000us pid 1 tid 1 queue at 0x20 main;receive\ncpu 90..100ms pid 1 tid 1\n";
    rows += "cpu 66200..66210us pid 1 tid 4\ncpu 66350..66400us pid 1 tid 1\n";
    rows += "cpu 1..65ms pid 1 tid 3\nsample 2ms x62 pid 1 tid 3 work\nsample 90ms x10 pid 1 tid 1 main;write\n";
    rows += "cpu 66300..90000us pid 1 tid 4\nsample 67ms x20 pid 1 tid 4 more\n";
    assert_eq!(poles(&rows)[..1], ["work 64 64"]);
}

#[test]
fn a_timer_that_goes_off_when_work_arrives_did_not_bring_it() {
    // A server takes work each 10 ms; another thread of it that exports each 31 ms runs just before the fourth.
    let mut rows = "thread x 0..100ms pid 1 tid 1\nthread w 1..99ms pid 1 tid 3\ncpu 0..2ms pid 1 tid 1\n".to_owned();
    for turn in 1..10 {
        let at = turn * 10_000;
        rows += &format!("wait {}..{at}us pid 1 tid 1 idle in poll main;serve;poll\ncpu {at}..{}us pid 1 tid 1\n", at - 8_000, at + 2_000);
        rows += &format!("sample {at}us x2 pid 1 tid 1 main;serve;answer\n");
    }
    rows += "wait 92..100ms pid 1 tid 1 idle in poll main;serve;poll\n";
    for (from, to) in [(2_000, 39_900), (40_000, 70_000), (70_100, 99_000)] {
        rows += &format!("wait {from}..{to}us pid 1 tid 3 sleep export\ncpu {to}..{}us pid 1 tid 3\n", to + 100);
    }
    rows += "cpu 1000..2000us pid 1 tid 3\n";
    let found = poles(&rows);
    assert!(!found.iter().any(|pole| pole.starts_with("export")), "{found:?}");
}

#[test]
fn a_process_of_several_threads_wakes_another_one() {
    // A child reads from a pipe until one of two threads writes: both ran, nothing tells which one it was.
    let mut rows = "process b 1..62ms pid 2 under 1\nthread x 0..100ms pid 1 tid 1\nthread w 1..99ms pid 1 tid 3\n".to_owned();
    rows += "thread b 1..62ms pid 2 tid 2\ncpu 0..2ms pid 1 tid 1\nwait 2000..59900us pid 1 tid 1 sleep main;settle\n";
    rows += "cpu 59900..60000us pid 1 tid 1\nwait 60..62ms pid 1 tid 1 child main;wait\n";
    rows += "cpu 62..100ms pid 1 tid 1\ncpu 59800..59900us pid 1 tid 3\ncpu 1..2ms pid 2 tid 2\n";
    rows += "wait 2..60ms pid 2 tid 2 pipe child;read\ncpu 60..62ms pid 2 tid 2\nsample 62ms x38 pid 1 tid 1 main;write\n";
    assert_eq!(poles(&rows)[..2], ["settle 57 57", "write 40 40"]);
}

#[test]
fn who_is_ended_while_it_waits_for_a_child_waited_for_what_that_did() {
    // A timeout ends `make` and `gcc` after 90 ms, which both wait for a child; the compiler itself takes a moment longer to end.
    let rows = |compiler: &str| {
        let mut rows = "process make 1..92ms pid 2 under 1\nprocess gcc 2..90ms pid 3 under 2\n".to_owned();
        rows += "process helper 1500..93000us pid 5 under 3\nprocess cc1 3..93ms pid 4 under 3\n";
        rows += "thread x 0..100ms pid 1 tid 1\nthread make 1..92ms pid 2 tid 2\nthread gcc 2..90ms pid 3 tid 3\n";
        rows += "thread cc1 3..93ms pid 4 tid 4\nthread helper 2500..93000us pid 5 tid 5\n";
        rows += "cpu 0..1ms pid 1 tid 1\nwait 1..92ms pid 1 tid 1 child main;wait\ncpu 92..100ms pid 1 tid 1\n";
        rows += "cpu 1..2ms pid 2 tid 2\nwait 2..89800us pid 2 tid 2 child make;wait\ncpu 89800..90000us pid 2 tid 2\n";
        rows += "cpu 91500..92000us pid 2 tid 2\ncpu 2..3ms pid 3 tid 3\nwait 3000..89500us pid 3 tid 3 child gcc;wait\n";
        rows += "cpu 89500..90000us pid 3 tid 3\ncpu 2500..2600us pid 5 tid 5\nwait 2600..93000us pid 5 tid 5 sleep helper;nap\n";
        rows + compiler
    };
    let busy = rows("cpu 3..93ms pid 4 tid 4\nsample 3ms x90 pid 4 tid 4 compile\n").replace("2..89800us", "2000..89800us");
    assert_eq!(poles(&busy)[0], "rest 86 86");
    // The timeout goes on while `make` still waits, which the signal ends a moment later, and all below it.
    let mut at_once = "process make 1..91ms pid 2 under 1\nprocess cc1 3..92ms pid 4 under 2\nthread x 0..100ms pid 1 tid 1\n".to_owned();
    at_once += "thread make 1..91ms pid 2 tid 2\nthread cc1 3..92ms pid 4 tid 4\ncpu 0..1ms pid 1 tid 1\n";
    at_once += "wait 1000..90800us pid 1 tid 1 other main;sigsuspend\ncpu 90800..91000us pid 1 tid 1\ncpu 92..100ms pid 1 tid 1\n";
    at_once += "cpu 1..3ms pid 2 tid 2\nwait 3000..90900us pid 2 tid 2 child make;wait\ncpu 90900..91000us pid 2 tid 2\n";
    at_once += "cpu 3..92ms pid 4 tid 4\nsample 3ms x89 pid 4 tid 4 compile\n";
    assert_eq!(poles(&at_once)[0], "rest 87 87");
}

#[test]
fn a_thread_that_polls_waits_for_what_others_do() {
    let mut polls = "thread x 0..100ms pid 1 tid 1\nthread w 1..99ms pid 1 tid 3\n".to_owned();
    for turn in 0..9 {
        polls += &format!("cpu {}..{}us pid 1 tid 1\n", turn * 10_000, turn * 10_000 + 100);
        polls += &format!("wait {}..{}us pid 1 tid 1 sleep main;wait_for_it\n", turn * 10_000 + 100, (turn + 1) * 10_000);
    }
    polls +=
        "cpu 90..100ms pid 1 tid 1\ncpu 1..90ms pid 1 tid 3\nsample 1ms x89 pid 1 tid 3 work\nsample 90ms x10 pid 1 tid 1 main;write\n";
    assert_eq!(poles(&polls)[0], "work 88 88");
}

#[test]
fn a_thread_that_polls_ends_few_waits_for_a_lock_by_chance() {
    // The main thread waits for a lock that `w` holds, twice; once the thread that polls each 3 ms runs just before it gets that lock.
    let mut rows = "thread x 0..100ms pid 1 tid 1\nthread poll 1..99ms pid 1 tid 3\nthread w 2..60ms pid 1 tid 4\n".to_owned();
    rows += "cpu 0..20ms pid 1 tid 1\nwait 20000..25500us pid 1 tid 1 lock main;take\ncpu 25500..30000us pid 1 tid 1\n";
    rows += "wait 30..35ms pid 1 tid 1 lock main;take\ncpu 35..40ms pid 1 tid 1\nwait 40..49ms pid 1 tid 1 lock main;take\n";
    rows += "cpu 49..100ms pid 1 tid 1\ncpu 2000..25500us pid 1 tid 4\ncpu 30..35ms pid 1 tid 4\n";
    rows += "cpu 1000..1050us pid 1 tid 3\n";
    for turn in 1..32 {
        let wakes = 3_000 * turn + 950;
        rows += &format!("wait {}..{wakes}us pid 1 tid 3 sleep poll;nap\ncpu {wakes}..{}us pid 1 tid 3\n", wakes - 2_950, wakes + 50);
    }
    rows += "sample 0ms x20 pid 1 tid 1 main;parse\nsample 49ms x50 pid 1 tid 1 main;write\n";
    let expected = ["write 56 56", "rest 28 10", "take 8 8", "parse 6 6"];
    assert_eq!(poles(&rows), expected, "it does not wait for the naps");
    // When the process ends, the thread waits for the lock of the interpreter.
    assert_eq!(poles(&format!("{rows}wait 94..99ms pid 1 tid 3 lock poll;end\n")), expected);
}

#[test]
fn a_thread_that_computes_all_the_time_writes_nothing_into_a_pipe_of_a_child() {
    // It waited for a moment when the main thread started the child: a page of its memory had to be copied.
    let rows = "\
process b 9..52ms pid 2 under 1
thread x 0..100ms pid 1 tid 1
thread burn 1..100ms pid 1 tid 3
thread b 9..52ms pid 2 tid 2
cpu 0..10ms pid 1 tid 1
wait 10..50ms pid 1 tid 1 pipe main;read
cpu 50..100ms pid 1 tid 1
cpu 1..9ms pid 1 tid 3
cpu 9040..100000us pid 1 tid 3
cpu 9000..9500us pid 2 tid 2
wait 9500..49980us pid 2 tid 2 sleep make;nap
cpu 49980..50000us pid 2 tid 2
sample 1ms x99 pid 1 tid 3 burn
sample 0ms x10 pid 1 tid 1 main;parse
sample 50ms x50 pid 1 tid 1 main;write
";
    assert_eq!(poles(rows)[..2], ["write 50 48", "rest 41 40"]);
}

#[test]
fn who_lets_a_join_end_before_its_own_end_was_on_a_cpu_then() {
    // A thread of an interpreter wakes who joins it and ends 4 ms later; the process ends another one, which polls, meanwhile.
    let mut rows = "thread x 0..100ms pid 1 tid 1\nthread poll 1000..95500us pid 1 tid 3\nthread w 2..99ms pid 1 tid 4\n".to_owned();
    rows += "cpu 0..10ms pid 1 tid 1\nwait 10..95ms pid 1 tid 1 join main;join\ncpu 95..100ms pid 1 tid 1\n";
    rows +=
        "cpu 2..3ms pid 1 tid 4\nwait 3000..94900us pid 1 tid 4 sleep w;fetch\ncpu 94900..95100us pid 1 tid 4\ncpu 98..99ms pid 1 tid 4\n";
    for turn in 0..31 {
        let at = 1_000 + 3_000 * turn;
        rows += &format!("cpu {at}..{}us pid 1 tid 3\nwait {}..{}us pid 1 tid 3 sleep poll;nap\n", at + 50, at + 50, at + 3_000);
    }
    rows += "sample 0ms x10 pid 1 tid 1 main;parse\nsample 95ms x5 pid 1 tid 1 main;write\n";
    assert_eq!(poles(&rows)[0], "fetch 91 85");
}

#[test]
fn a_wait_that_nobody_sampled_is_not_taken_for_one_of_a_thread_that_computes() {
    // One wait for a queue was sampled; those for a pipe later last as long, and none was.
    let mut rows = "process b 9..99ms pid 2 under 1\nthread x 0..100ms pid 1 tid 1\nthread burn 1..100ms pid 1 tid 3\n".to_owned();
    rows += "thread b 9..99ms pid 2 tid 2\ncpu 9..99ms pid 2 tid 2\ncpu 1..100ms pid 1 tid 3\n";
    rows += "cpu 0..5ms pid 1 tid 1\nwait 5000..7300us pid 1 tid 1 queue main;take\ncpu 7300..10000us pid 1 tid 1\n";
    for turn in 1..9 {
        let at = turn * 10_000;
        let (slept, came) = (at + 7_800, at + 10_000);
        rows += &format!("wait {at}..{slept}us pid 1 tid 1 sleep main;consume\ncpu {slept}..{}us pid 1 tid 1\n", slept + 10);
        rows += &format!("cpu {}..{came}us pid 1 tid 1\n", came - 10);
    }
    rows += "cpu 90..100ms pid 1 tid 1\nsample 90ms x10 pid 1 tid 1 main;write\n";
    rows += "sample 1ms x99 pid 1 tid 3 burn\nsample 0ms x5 pid 1 tid 1 main;parse\nsample 9ms x90 pid 2 tid 2 make\n";
    assert_eq!(poles(&rows)[0], "consume 62 62");
}

/// What a thread does: on a CPU for so long, then a wait of a kind, in microseconds.
fn turns() -> impl Strategy<Value = Vec<(u32, u32, usize)>> {
    proptest::collection::vec((1_u32..4_000, 1_u32..4_000, 0..WaitKind::ALL.len()), 1..12)
}

proptest! {
    /// Threads of three processes in a line from parent to child: nothing changes, so nothing ends earlier.
    #[test]
    fn a_replay_of_what_was_recorded_ends_when_it_did(threads in proptest::collection::vec((0..3_usize, turns()), 3..8)) {
        let mut rows = "process b 1..90ms pid 2 under 1\nprocess c 2..80ms pid 3 under 2\n".to_owned();
        let (mut lives, mut slices) = (String::new(), String::new());
        for (place, (process, turns)) in threads.iter().enumerate() {
            let pid = process + 1;
            let is_main = threads[..place].iter().all(|(before, _)| before != process);
            let tid = if is_main { pid } else { 10 + place };
            let end = [100_000, 90_000, 80_000][*process];
            let mut at = if is_main { *process as u32 * 1_000 } else { 3_000 };
            lives += &format!("thread t {at}..{end}us pid {pid} tid {tid}\n");
            for (busy, wait, kind) in turns {
                let (from, to) = ((at + busy).min(end), (at + busy + wait).min(end));
                if at < from {
                    slices += &format!("cpu {at}..{from}us pid {pid} tid {tid}\n");
                }
                if from < to {
                    slices += &format!("wait {from}..{to}us pid {pid} tid {tid} {} main\n", WaitKind::ALL[*kind].as_str());
                }
                at = to;
            }
        }
        rows += &lives;
        rows += &slices;
        let report = Report::new(text::parse(&format!("run x 0..100ms\n{rows}")).unwrap());
        if let Some(graph) = &report.run_graph {
            prop_assert_eq!(graph.without(std::iter::empty()).replay().1, Nanos(100_000_000), "{}", rows);
            let all = graph.path().iter().map(|stretch| stretch.to - stretch.from).sum::<Nanos>();
            prop_assert_eq!(all, Nanos(100_000_000), "{}", rows);
        }
    }
}
