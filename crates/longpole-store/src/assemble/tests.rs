use std::net::SocketAddr;
use std::sync::Arc;

use longpole_model::run::{Exit, RecorderCost};
use longpole_model::stack::{LocationId, Mapping, MappingId, Stack, StackId};
use longpole_model::time::Timestamp;
use longpole_model::{AbsAddr, AttributeValue, Attributes, ContextRecord, Runtime, VirtOffset};
use proptest::prelude::*;

use super::stack_tables::{UNDEFINED_LOCATION, UNDEFINED_MAPPING, UNDEFINED_STACK};
use super::*;
use crate::testing;

fn assemble(observations: impl IntoIterator<Item = Observation>) -> Recording {
    let mut assembler = Assembler::new(testing::begun());
    for observation in observations {
        assembler.observe(observation);
    }
    assembler.finish()
}

fn started(pid: u32, parent: u32, time: u64) -> Observation {
    Observation::ProcessStarted { pid, parent_pid: (parent > 0).then_some(parent), time: Monotonic(time) }
}

fn exec(pid: u32, time: u64, name: &str) -> Observation {
    let arguments = vec![name.to_owned()];
    Observation::ProcessExec { pid, time: Monotonic(time), name: name.into(), executable: format!("/bin/{name}"), arguments }
}

fn exited(pid: u32, time: u64) -> Observation {
    Observation::ProcessExited { pid, time: Monotonic(time) }
}

fn thread(pid: u32, tid: u32, time: u64) -> Observation {
    Observation::ThreadStarted { pid, tid, time: Monotonic(time) }
}

fn named(pid: u32, tid: u32, name: &str) -> Observation {
    Observation::ThreadNamed { pid, tid, name: name.into() }
}

fn thread_exited(pid: u32, tid: u32, time: u64) -> Observation {
    Observation::ThreadExited { pid, tid, time: Monotonic(time) }
}

fn sample(pid: u32, tid: u32, time: u64, stack: u32) -> Sample {
    Sample { time: Monotonic(time), pid, tid, cpu: 0, stack: StackId(stack), weight_nanos: 1, context: ContextRecord::Absent }
}

fn mapping(id: u32) -> Observation {
    Observation::Mapping(Mapping { id: MappingId(id), path: format!("/lib/{id}"), build_id: vec![] })
}

fn code(id: u32, mapping: u32) -> Observation {
    let kind = LocationKind::Code { mapping: MappingId(mapping), address: VirtOffset(u64::from(id)) };
    Observation::Location { id: LocationId(id), kind }
}

fn stack(id: u32, locations: &[u32]) -> Observation {
    Observation::Stack { id: StackId(id), locations: locations.iter().copied().map(LocationId).collect() }
}

/// `pid<parent name start..end`, with `!` where it executed something; then `pid/tid name start..end`.
fn check(observations: Vec<Observation>, processes: &[&str], threads: &[&str]) {
    let recording = assemble(observations);
    let end = |end: Option<Monotonic>| end.map_or(String::new(), |end| end.0.to_string());
    let found: Vec<String> = recording
        .processes
        .iter()
        .map(|it| {
            let (parent, mark) = (it.parent_pid.map_or("-".into(), |pid| pid.to_string()), if it.execed { "!" } else { "" });
            format!("{}<{parent} {}{mark} {}..{}", it.pid, it.name, it.start.0, end(it.end))
        })
        .collect();
    assert_eq!(found, processes);
    let found: Vec<String> =
        recording.threads.iter().map(|it| format!("{}/{} {} {}..{}", it.pid, it.tid, it.name, it.start.0, end(it.end))).collect();
    assert_eq!(found, threads);
}

#[test]
fn the_command_begins_with_its_exec_and_a_child_with_its_fork() {
    check(
        vec![started(10, 0, 1), exec(10, 5, "make"), started(11, 10, 7), exec(11, 9, "cc"), exited(11, 20), exited(10, 30)],
        &["10<- make! 5..30", "11<10 cc! 7..20"],
        &["10/10 make 5..30", "11/11 cc 7..20"],
    );
}

#[test]
fn an_exec_that_comes_after_the_end_of_its_thread_starts_no_other() {
    check(
        vec![started(10, 0, 1), exec(10, 2, "sh"), started(11, 10, 7), thread_exited(11, 11, 20), exec(11, 9, "kill"), exited(11, 20)],
        &["10<- sh! 2..", "11<10 kill! 7..20"],
        &["10/10 sh 2..", "11/11 kill 7..20"],
    );
}

#[test]
fn a_fork_without_exec_is_a_copy_of_its_parent() {
    let recording = assemble([started(10, 0, 1), exec(10, 5, "make"), started(11, 10, 7)]);
    let child = &recording.processes[1];
    assert_eq!((child.name.as_str(), &*child.executable, child.execed), ("make", "/bin/make", false));
    assert_eq!(*child.arguments, ["make"]);
}

/// All processes were searched for each address and each resource: 20,000,000,000 steps.
#[test]
fn addresses_and_resources_of_many_processes_are_placed_by_pid() {
    const COUNT: u32 = 100_000;
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let named = |name: String| {
        let mut attributes = Attributes::default();
        attributes.push("service.name", AttributeValue::Str(name.into()));
        attributes
    };
    let of_process = |pid: u32| {
        let resource = Observation::ProcessResource { pid, time: Monotonic(9), attributes: named(pid.to_string()) };
        let listens = Observation::ProcessListens { pid, address };
        // It is read again and again; the pid is used again, and the resource was that of the first process.
        [started(pid, 1, 7), listens.clone(), listens, resource, exited(pid, 9), started(pid, 1, 10)]
    };
    let recording = assemble((2..COUNT + 2).flat_map(of_process));
    // By start: the first of each pid, and then the later ones.
    let (first, later) = recording.processes.as_slice().split_at(COUNT as usize);
    for (first, later) in first.iter().zip(later) {
        assert_eq!(first.pid, later.pid);
        assert_eq!((&first.listens[..], &later.listens[..]), (&[address][..], &[address][..]));
        assert_eq!((&first.resource.attributes, &later.resource.attributes), (&named(first.pid.to_string()), &Attributes::default()));
    }
}

/// Each fork had a copy: 100,000 of these would take 1.8 GB.
#[test]
fn forks_share_the_path_and_the_arguments_of_their_program() {
    let program = Observation::ProcessExec {
        pid: 10,
        time: Monotonic(5),
        name: "make".into(),
        executable: "/bin/make".into(),
        arguments: vec!["x".repeat(1_000); 17],
    };
    let recording = assemble([started(10, 0, 1), program].into_iter().chain((11..100_000).map(|pid| started(pid, pid - 1, pid.into()))));
    let [first, .., last] = &recording.processes[..] else { panic!("{} processes", recording.processes.len()) };
    assert!(Arc::ptr_eq(&first.executable, &last.executable) && Arc::ptr_eq(&first.arguments, &last.arguments));
}

#[test]
fn a_later_exec_of_the_command_does_not_move_its_start() {
    check(vec![started(10, 0, 1), exec(10, 5, "sh"), exec(10, 9, "make")], &["10<- make! 5.."], &["10/10 make 5.."]);
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    check(
        vec![started(10, 0, 1), started(11, 10, 2), exited(11, 3), started(11, 10, 4), thread(11, 12, 5), exited(11, 6)],
        &["10<-  1..", "11<10  2..3", "11<10  4..6"],
        &["10/10  1..", "11/11  2..3", "11/11  4..6", "11/12  5..6"],
    );
}

#[test]
fn a_pid_that_is_used_again_without_an_exit_ends_the_process_before() {
    check(
        vec![started(10, 0, 1), started(11, 10, 2), thread(11, 12, 3), started(11, 10, 9)],
        &["10<-  1..", "11<10  2..9", "11<10  9.."],
        &["10/10  1..", "11/11  2..9", "11/12  3..9", "11/11  9.."],
    );
}

#[test]
fn threads_take_the_name_of_their_process_until_they_have_one() {
    check(
        vec![started(10, 0, 1), exec(10, 2, "srv"), thread(10, 11, 3), thread(10, 12, 4), named(10, 12, "io"), named(10, 10, "main")],
        &["10<- main! 2.."],
        &["10/10 main 2..", "10/11 srv 3..", "10/12 io 4.."],
    );
}

#[test]
fn a_thread_can_end_before_its_process_and_its_id_can_come_again() {
    check(
        vec![started(10, 0, 1), thread(10, 11, 2), thread_exited(10, 11, 3), thread(10, 11, 4), exited(10, 9)],
        &["10<-  1..9"],
        &["10/10  1..9", "10/11  2..3", "10/11  4..9"],
    );
}

#[test]
fn a_main_thread_that_is_announced_again_is_one_thread() {
    check(vec![started(10, 0, 1), thread(10, 10, 1)], &["10<-  1.."], &["10/10  1.."]);
}

#[test]
fn a_process_whose_fork_went_unseen_is_a_child_of_the_command() {
    let begun = Observation::RunStarted { pid: 10, start: Timestamp(0), mode: CaptureMode::User { why_not_kernel: String::new() } };
    check(
        vec![begun, started(10, 0, 1), exec(10, 1, "make"), exec(20, 5, "cc"), thread(30, 31, 6)],
        &["10<- make! 1..", "20<10 cc! 5..", "30<10  6.."],
        &["10/10 make 1..", "20/20 cc 5..", "30/30  6..", "30/31  6.."],
    );
}

#[test]
fn a_rename_that_comes_late_names_the_dead_and_wakes_no_one() {
    check(
        vec![started(10, 0, 1), thread(10, 11, 2), thread_exited(10, 11, 3), named(10, 11, "io"), exited(10, 4), named(10, 10, "x")],
        &["10<- x 1..4"],
        &["10/10 x 1..4", "10/11 io 2..3"],
    );
}

#[test]
fn what_was_sampled_and_never_announced_is_added_at_the_end() {
    let slice = CpuSlice { pid: 20, tid: 21, start: Monotonic(4), end: Monotonic(5), preempted: false };
    check(
        vec![
            started(10, 0, 1),
            exited(10, 2),
            Observation::Sample(sample(10, 10, 3, 0)),
            Observation::Sample(sample(10, 12, 9, 0)),
            Observation::Sample(sample(20, 21, 8, 0)),
            Observation::CpuSlice(slice),
        ],
        &["10<-  1..2", "20<-  4.."],
        &["10/10  1..2", "20/20  4..", "20/21  4..", "10/12  9.."],
    );
}

#[test]
fn knowledge_of_the_run_grows() {
    let cost = RecorderCost { cpu_nanos: 1, rss_bytes_max: 2 };
    let recording = assemble([
        Observation::RunStarted { pid: 10, start: Timestamp(50), mode: CaptureMode::Off },
        Observation::RunEnded { end: Timestamp(90), exit: Exit::Signal(9), cpu_nanos: Some(7) },
        Observation::RecorderCost(cost),
    ]);
    let run = recording.run;
    assert_eq!((run.root_pid, run.start, run.mode), (Some(10), Timestamp(50), CaptureMode::Off));
    assert_eq!((run.end, run.exit, run.cpu_nanos), (Some(Timestamp(90)), Some(Exit::Signal(9)), Some(7)));
    assert_eq!(run.recorder_cost, Some(cost));
}

#[test]
fn an_exit_status_belongs_to_the_process_that_had_started_before() {
    let status = |pid, time, exit| Observation::ProcessStatus { pid, time: Monotonic(time), exit };
    let recording = assemble([
        Observation::RunStarted { pid: 10, start: Timestamp(0), mode: CaptureMode::Off },
        Observation::ProcessStarted { pid: 10, parent_pid: None, time: Monotonic(1) },
        status(20, 6, Exit::Code(1)),
        started(20, 10, 5),
        exited(20, 6),
        started(20, 10, 7),
        exited(20, 9),
        status(20, 9, Exit::Signal(9)),
        status(30, 9, Exit::Code(0)),
        Observation::RunEnded { end: Timestamp(90), exit: Exit::Code(2), cpu_nanos: None },
    ]);
    let exits: Vec<(u32, Option<Exit>)> = recording.processes.iter().map(|process| (process.pid, process.exit)).collect();
    assert_eq!(exits, [(10, Some(Exit::Code(2))), (20, Some(Exit::Code(1))), (20, Some(Exit::Signal(9)))]);
}

#[test]
fn numbers_in_order_stay_as_they_are() {
    let recording =
        assemble([mapping(0), code(0, 0), code(1, 0), stack(0, &[1, 0]), stack(1, &[0]), Observation::Sample(sample(1, 1, 1, 1))]);
    assert_eq!(recording.samples[0].stack, StackId(1));
    assert_eq!(recording.stacks[0], Stack { id: StackId(0), locations: vec![LocationId(1), LocationId(0)] });
    assert_eq!(recording.locations[1].kind, LocationKind::Code { mapping: MappingId(0), address: VirtOffset(1) });
}

#[test]
fn what_refers_to_nothing_gets_a_placeholder_that_says_so() {
    let recording = assemble([
        code(u32::MAX, 7),
        stack(u32::MAX, &[u32::MAX, 5, 6]),
        Observation::Sample(sample(1, 1, 1, u32::MAX)),
        Observation::Sample(sample(1, 1, 2, 3)),
    ]);
    let shown: Vec<Vec<String>> = recording
        .samples
        .iter()
        .map(|sample| {
            let stack = &recording.stacks[sample.stack.0 as usize];
            let reason = |id: &LocationId| match &recording.locations[id.0 as usize].kind {
                LocationKind::Cut { reason } => reason.clone(),
                other => panic!("{other:?}"),
            };
            stack.locations.iter().map(reason).collect()
        })
        .collect();
    assert_eq!(shown, [vec![UNDEFINED_MAPPING, UNDEFINED_LOCATION, UNDEFINED_LOCATION], vec![UNDEFINED_STACK]]);
}

#[test]
fn code_without_a_binary_has_the_name_that_came_with_it_or_after_it() {
    let name = |id: u32, function: &str| Observation::Named {
        id: LocationId(id),
        runtime: Runtime::Node,
        address: Some(AbsAddr(0x1000)),
        function: function.into(),
        file: "app.js".into(),
        line: 3,
    };
    let unmapped = |id: u32| Observation::Location { id: LocationId(id), kind: LocationKind::Unmapped { address: AbsAddr(0x1000) } };
    let cut = Observation::Location { id: LocationId(7), kind: LocationKind::Cut { reason: "deep".into() } };
    let recording = assemble([
        name(4, "at once"),
        unmapped(5),
        unmapped(6),
        cut,
        name(5, "at its end"),
        name(5, "once more"),
        name(4, "once more"),
        name(7, "of no code"),
    ]);
    let shown: Vec<(&str, &str)> = recording
        .locations
        .iter()
        .map(|location| {
            let kind = match location.kind {
                LocationKind::Named { runtime: Runtime::Node, address: Some(AbsAddr(0x1000)) } => "named",
                LocationKind::Unmapped { .. } => "unmapped",
                LocationKind::Cut { .. } => "cut",
                _ => "other",
            };
            (kind, location.frames.first().map_or("", |frame| frame.function.as_str()))
        })
        .collect();
    assert_eq!(shown, [("named", "at once"), ("named", "at its end"), ("unmapped", ""), ("cut", "")]);
}

/// A line of a perf map may hold a million addresses that ran.
#[test]
fn names_of_code_without_a_binary_are_kept_once() {
    let named = |id: u32| Observation::Named {
        id: LocationId(id),
        runtime: Runtime::Other,
        address: Some(AbsAddr(id.into())),
        function: "x".repeat(500),
        file: "f".repeat(500),
        line: id,
    };
    let recording = assemble([named(1), named(2)]);
    let [first, second] = [0, 1].map(|at: usize| &recording.locations[at].frames[0]);
    assert!(first.function.len() == 500 && std::ptr::eq(first.function.as_str(), second.function.as_str()));
    assert!(first.file.len() == 500 && std::ptr::eq(first.file.as_str(), second.file.as_str()));
}

#[test]
fn a_sample_has_the_code_that_lay_at_its_addresses_then() {
    let named = |id: u32, function: &str| Observation::Named {
        id: LocationId(id),
        runtime: Runtime::Other,
        address: Some(AbsAddr(0x1000)),
        function: function.into(),
        file: String::new(),
        line: 0,
    };
    let unmapped = |id: u32| Observation::Location { id: LocationId(id), kind: LocationKind::Unmapped { address: AbsAddr(0x1000) } };
    let replaced = |id: u32, since, by: u32| Observation::Replaced { id: LocationId(id), since: Monotonic(since), by: LocationId(by) };
    let sample = |time| Observation::Sample(sample(1, 1, time, 0));
    let recording = assemble([
        unmapped(3),
        named(1, "main"),
        stack(0, &[3, 1]),
        sample(10),
        sample(20),
        sample(35),
        sample(30),
        sample(25),
        named(3, "first"),
        named(4, "second"),
        unmapped(5),
        // What was moved away leaves nothing behind, and what nobody defined changes nothing.
        replaced(3, 30, 5),
        replaced(3, 20, 4),
        replaced(3, 5, 99),
        replaced(99, 5, 4),
    ]);
    let name = |sample: &Sample| {
        let leaf = recording.stacks[sample.stack.0 as usize].locations[0];
        recording.locations[leaf.0 as usize].frames.first().map_or("-", |frame| frame.function.as_str())
    };
    let shown: Vec<(u64, &str)> = recording.samples.iter().map(|sample| (sample.time.0, name(sample))).collect();
    assert_eq!(shown, [(10, "first"), (20, "second"), (25, "second"), (30, "-"), (35, "-")]);
    assert_eq!(recording.stacks.len(), 3);
}

#[test]
fn a_second_definition_of_a_number_is_ignored() {
    let unmapped = Observation::Location { id: LocationId(0), kind: LocationKind::Unmapped { address: AbsAddr(1) } };
    let recording = assemble([mapping(0), mapping(0), code(0, 0), unmapped, stack(0, &[0]), stack(0, &[])]);
    assert_eq!((recording.mappings.len(), recording.locations.len(), recording.stacks.len()), (1, 1, 1));
    assert_eq!(recording.stacks[0].locations, [LocationId(0)]);
}

#[test]
fn of_two_spans_with_the_same_ids_the_later_end_stays_and_the_other_is_counted() {
    let mut assembler = Assembler::new(testing::begun());
    let span = |end| Span { end: Timestamp(end), ..testing::span(1, 1, 0, 0) };
    for span in [span(5), span(9), span(9), span(7), testing::span(2, 1, 0, 0)] {
        assembler.span(span);
    }
    let recording = assembler.finish();
    assert_eq!((recording.spans.len(), recording.spans[0].end), (2, Timestamp(9)));
    assert_eq!(recording.losses, [Loss::new(LossKind::SpansDuplicate, 3, "received twice; the one that ends later is kept")]);
}

/// Whoever may send to a server can name the ids of others.
#[test]
fn a_span_with_the_ids_of_another_one_does_not_hide_it() {
    let own = Span { name: "charge card".into(), ..testing::span(1, 1, 0, 0) };
    let forged = Span { name: "all fine here".into(), end: Timestamp(own.end.0 + 1), ..own.clone() };
    let longer = Span { end: Timestamp(forged.end.0 + 1), ..forged.clone() };
    for sent in [[&own, &forged, &longer], [&forged, &longer, &own], [&longer, &own, &forged]] {
        let mut assembler = Assembler::new(testing::begun());
        sent.into_iter().for_each(|span| assembler.span(span.clone()));
        let recording = assembler.finish();
        let mut found: Vec<(&str, Timestamp)> = recording.spans.iter().map(|span| (span.name.as_str(), span.end)).collect();
        found.sort_unstable();
        assert_eq!(found, [("all fine here", longer.end), ("charge card", own.end)]);
        assert_ne!(recording.spans[0].span_id, recording.spans[1].span_id);
        let count = |word: &str| recording.losses.iter().filter(|loss| loss.detail.contains(word)).map(|loss| loss.count).sum::<u64>();
        assert_eq!((count("received twice") > 0, count("ids of their own") > 0), (true, true), "{:?}", recording.losses);
    }
}

/// Which of these spans with the same ids is kept, each given by its sender, the process it claims, its end and its name; and how
/// many are counted as received twice and as of other processes. 10 started 11, and 11 started 12.
fn kept_of(sent: &[(u32, u32, i64, &str)]) -> (String, u64, u64) {
    let mut assembler = Assembler::new(testing::begun());
    [started(10, 0, 1), started(11, 10, 2), started(12, 11, 3)].into_iter().for_each(|seen| assembler.observe(seen));
    let known = |pid: u32| (pid > 0).then_some(pid);
    for (sender, pid, end, name) in sent {
        let mut span = Span { end: Timestamp(*end), name: (*name).into(), pid: known(*pid), ..testing::span(1, 1, 0, 0) };
        if *name == "unfinished" {
            span.attributes.push("longpole.unfinished", longpole_model::AttributeValue::Bool(true));
        }
        assembler.span_by(known(*sender), span);
    }
    let recording = assembler.finish();
    let count = |word: &str| recording.losses.iter().filter(|loss| loss.detail.contains(word)).map(|loss| loss.count).sum();
    assert_eq!(recording.spans.len(), 1);
    (recording.spans[0].name.to_string(), count("received twice"), count("another process sent"))
}

#[test]
fn no_process_takes_the_place_of_the_span_of_another() {
    let check = |sent: &[(u32, u32, i64, &str)], kept: &str, again: u64, others: u64| {
        assert_eq!(kept_of(sent), (kept.to_owned(), again, others), "{sent:?}");
    };
    // A neighbour, by its own number, by that of the victim, and by none; later or earlier, except for the first.
    check(&[(11, 11, 5, "own"), (77, 77, 9, "forged")], "own", 0, 1);
    check(&[(11, 11, 5, "own"), (77, 11, 9, "forged")], "own", 0, 1);
    check(&[(11, 11, 5, "own"), (0, 11, 9, "forged"), (0, 0, 9, "forged")], "own", 0, 2);
    check(&[(77, 11, 9, "forged"), (11, 11, 5, "own")], "own", 0, 1);
    check(&[(77, 77, 9, "first"), (11, 11, 5, "second")], "first", 0, 1);
    // A callee knows the ids of its caller, and is quicker; a fork ends what its parent had begun.
    check(&[(12, 12, 9, "forged"), (10, 10, 5, "own")], "own", 0, 1);
    check(&[(12, 10, 5, "of the fork"), (10, 10, 9, "own")], "own", 0, 1);
    check(&[(10, 10, 5, "own"), (12, 12, 9, "forged")], "own", 0, 1);
    check(&[(12, 12, 5, "own"), (0, 10, 9, "forged"), (77, 10, 9, "forged")], "own", 0, 2);
    // Sent again, by itself or by whoever hands it on; in pieces.
    check(&[(11, 11, 5, "same"), (11, 11, 5, "same"), (77, 11, 5, "same"), (0, 0, 5, "same")], "same", 3, 0);
    check(&[(11, 11, 5, "part"), (11, 11, 9, "whole"), (11, 11, 7, "part")], "whole", 2, 0);
    check(&[(77, 11, 5, "part"), (77, 11, 9, "whole")], "whole", 1, 0);
    check(&[(11, 11, 5, "unfinished"), (0, 0, 9, "whole"), (12, 12, 11, "forged")], "whole", 1, 1);
}

#[test]
fn a_million_spans_with_the_ids_of_a_long_one_take_as_long_as_they_are() {
    let mut long = testing::span(1, 1, 0, 0);
    for number in 0..100_000 {
        long.attributes.push(&*format!("k{number}"), longpole_model::AttributeValue::Int(1));
    }
    let short = Span { attributes: Attributes::default(), ..long.clone() };
    let start = std::time::Instant::now();
    let mut assembler = Assembler::new(testing::begun());
    assembler.span_by(Some(11), long);
    // Sent again by itself; by others, which claim the ids.
    for sender in [11, 77] {
        (0..100_000).for_each(|_| assembler.span_by(Some(sender), short.clone()));
    }
    let recording = assembler.finish();
    assert_eq!(recording.spans[0].attributes.0.len(), 100_000);
    assert_eq!(recording.losses.iter().map(|loss| loss.count).collect::<Vec<_>>(), [100_000; 2]);
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn losses_of_one_kind_and_reason_add_up_and_a_stepped_clock_is_one() {
    let anchor =
        |monotonic, unix| Observation::Clock(ClockAnchor { monotonic: Monotonic(monotonic), unix: Timestamp(unix), bracket_nanos: 1 });
    let lost = |count| Observation::Loss(Loss::new(LossKind::SamplesLost, count, "ring full"));
    let recording = assemble([anchor(0, 0), lost(2), anchor(10, 5_000_010), lost(3)]);
    let kinds: Vec<(LossKind, u64)> = recording.losses.iter().map(|loss| (loss.kind, loss.count)).collect();
    assert_eq!(kinds, [(LossKind::SamplesLost, 5), (LossKind::ClockStepped, 1)]);
}

#[test]
fn what_was_read_after_the_wall_clock_was_set_is_moved_back_and_said() {
    const SECOND: i64 = 1_000_000_000;
    let anchor = |second: i64, off: i64| {
        let monotonic = Monotonic((second * SECOND).cast_unsigned());
        Observation::Clock(ClockAnchor { monotonic, unix: Timestamp((second + off) * SECOND), bracket_nanos: 1 })
    };
    let mut assembler = Assembler::new(Run { start: Timestamp(10 * SECOND), ..testing::begun() });
    for seen in [anchor(10, 0), anchor(11, 0), anchor(12, 3_600), anchor(20, 3_600)] {
        assembler.observe(seen);
    }
    assembler.span(testing::span(1, 1, 0, (13 + 3_600) * SECOND));
    let recording = assembler.finish();
    assert_eq!((recording.spans[0].start, recording.spans[0].end), (Timestamp(13 * SECOND), Timestamp(13 * SECOND + 10)));
    assert_eq!(recording.clock.to_unix(Monotonic(20_000_000_000)), Some(Timestamp(20 * SECOND)));
    let words = "the wall clock was set forward by 60m00.0s, 2.00s after the start; longpole corrects times read from it later";
    assert_eq!(recording.losses, [Loss::new(LossKind::ClockStepped, 1, words)]);

    let slept = Observation::Slept { time: Monotonic(12_000_000_000), nanos: 3_600_000_000_000 };
    let recording = assemble([anchor(10, 0), anchor(11, 0), slept, anchor(12, 3_600)]);
    assert!(recording.losses[0].detail.starts_with("the machine slept for 60m00.0s, "), "{:?}", recording.losses);
    assert_eq!(recording.losses.len(), 1);
}

proptest! {
    #[test]
    fn whatever_is_observed_every_number_refers_to_a_row(observations in prop::collection::vec(testing::observation(), 0..60)) {
        let sampled = observations.iter().filter(|it| matches!(it, Observation::Sample(_))).count();
        let recording = assemble(observations);
        prop_assert_eq!(recording.samples.len(), sampled);
        prop_assert!(recording.samples.is_sorted_by_key(|sample| sample.time));
        prop_assert!(recording.processes.is_sorted_by_key(|process| process.start));
        prop_assert!(recording.threads.is_sorted_by_key(|thread| thread.start));
        for sample in &recording.samples {
            prop_assert!((sample.stack.0 as usize) < recording.stacks.len());
            prop_assert!(recording.threads.iter().any(|it| (it.pid, it.tid) == (sample.pid, sample.tid)));
            prop_assert!(recording.processes.iter().any(|it| it.pid == sample.pid));
        }
        for (row, stack) in recording.stacks.iter().enumerate() {
            prop_assert_eq!(stack.id.0 as usize, row);
            prop_assert!(stack.locations.iter().all(|it| (it.0 as usize) < recording.locations.len()));
        }
        for (row, location) in recording.locations.iter().enumerate() {
            prop_assert_eq!(location.id.0 as usize, row);
            if let LocationKind::Code { mapping, .. } = location.kind {
                prop_assert!((mapping.0 as usize) < recording.mappings.len());
            }
        }
    }
}

#[test]
fn what_the_last_look_found_to_have_ended_had_ended_with_the_run() {
    let clock = ClockAnchor { unix: Timestamp(1_000_000), monotonic: Monotonic(0), bracket_nanos: 0 };
    let ends = |mode| {
        let recording = assemble([
            Observation::Clock(clock),
            Observation::RunStarted { pid: 10, start: Timestamp(1_000_000), mode },
            Observation::ProcessStarted { pid: 10, parent_pid: None, time: Monotonic(0) },
            Observation::ProcessStarted { pid: 20, parent_pid: Some(10), time: Monotonic(100) },
            Observation::ProcessExited { pid: 20, time: Monotonic(400) },
            Observation::ProcessExited { pid: 10, time: Monotonic(530) },
            Observation::RunEnded { end: Timestamp(1_000_500), exit: Exit::Code(0), cpu_nanos: None },
        ]);
        recording.processes.iter().map(|process| process.end.unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(ends(CaptureMode::Refused { reason: "a filter".to_owned() }), [500, 400]);
    assert_eq!(ends(CaptureMode::Perf), [530, 400], "a record is exact");
}

/// A minute and more, where each looks at all others.
#[test]
fn a_hundred_thousand_processes_are_named_and_end_without_a_look_at_all() {
    const COUNT: u32 = 100_000;
    let forks = (0..COUNT).map(|number| started(10 + number, 1, u64::from(number)));
    // Threads that were never there, of a process that ended.
    let gone = [exited(9 + COUNT, 1 << 20)].into_iter();
    let samples = (0..COUNT).map(|number| Observation::Sample(sample(9 + COUNT, 1 << 20 | number, 1 << 30, 1)));
    let names = (0..COUNT).map(|number| named(10, 1 << 20 | number, "x"));
    let exits = (0..COUNT).map(|number| exited(10 + number, 1 << 21));
    let late = (0..COUNT).map(|number| named(10 + number, 10 + number, "late"));
    let begin = std::time::Instant::now();
    let recording = assemble(forks.chain(gone).chain(samples).chain(names).chain(exits).chain(late));
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(recording.processes.iter().filter(|process| process.pid >= 10).all(|process| process.name == "late" && process.end.is_some()));
    assert_eq!(recording.threads.iter().filter(|thread| thread.pid == 10 && thread.name == "x").count(), COUNT as usize);
    assert!(recording.threads.iter().filter(|thread| thread.pid == 10).all(|thread| thread.end == Some(Monotonic(1 << 21))));
}
