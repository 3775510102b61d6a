//! Files in which everything is there thousands of times.

use std::fmt::Write as _;

use longpole_model::{Nanos, NodeId, Recording, text};

use super::*;
use crate::schedule::replay::Replay;
use crate::time::timelines::Timelines;
use crate::tree::forest::Forest;

const ALWAYS: (Nanos, Nanos) = (Nanos::MIN, Nanos::MAX);

/// What the graphs of a recording set: the waits that mattered of the node of this name, and the stretches of threads.
fn held(mut recording: Recording, name: &str) -> (NodeWaits, Timelines, NodeId) {
    crate::derive(&mut recording, &[]);
    let recording = &recording;
    let forest = Forest::build(recording);
    let replay = Replay::new(recording, &forest);
    let (mut waits, mut timelines) = (NodeWaits::of(recording, &forest), Timelines::new(recording, &forest));
    let recorded = Recorded { recording, servers: &replay.schedule().servers, origin: forest.run_range().start };
    hold(&recorded, &Blockers::of(recording), &mut timelines, &mut waits);
    let node = forest.ids().find(|&node| forest.name(recording, node) == name).unwrap();
    (waits, timelines, node)
}

/// Each wait was kept for each of the times in which any thread may have held up the process: 250,000 of these.
#[test]
fn waits_of_a_thread_that_overlap_matter_one_at_a_time() {
    const COUNT: u32 = 500;
    let mut said = format!("run x 0..{COUNT}ms\nprocess w 0..{COUNT}ms pid 7 under 1\n");
    for at in 0..COUNT {
        writeln!(said, "cpu {}..{}us pid 7", at * 1000 + 2, at * 1000 + 500).unwrap();
        writeln!(said, "wait {}..{}us pid 7 network main;recv", 3 + at, COUNT * 1000 - at).unwrap();
    }
    said.push_str("cpu 5..6us pid 7 tid 8\n");
    let (waits, _, node) = held(text::parse(&said).unwrap(), "w");
    let mattered = waits.that_mattered_within(node, ALWAYS).count();
    assert!((1..=3 * COUNT as usize).contains(&mattered), "{mattered}");
}

/// Each process may keep 200,000 stretches of its other threads: 20 of them kept 800,000, of 12,000 slices.
#[test]
fn stretches_of_other_threads_are_as_many_as_the_slices() {
    const COUNT: usize = 20;
    let mut said = "run x 0..1s\n".to_owned();
    (0..COUNT).for_each(|number| writeln!(said, "process w{number} 0..1s pid {} under 1", 10 + number).unwrap());
    for pid in 10..10 + COUNT {
        for at in 0..200 {
            writeln!(said, "cpu {}..{}us pid {pid}", at * 5000, at * 5000 + 10).unwrap();
            writeln!(said, "cpu 1..999ms pid {pid} tid {}", 1000 + at).unwrap();
        }
    }
    let (_, timelines, _) = held(text::parse(&said).unwrap(), "w0");
    let count = timelines.held_count();
    assert!((200_000..400_000).contains(&count), "{count}");
}

/// A sample was searched for among all threads that counted then: 1,800,000,000 steps for these.
#[test]
fn a_sample_is_searched_for_among_few_threads() {
    const COUNT: u32 = 60_000;
    let mut said = "run x 0..1s\nprocess w 0..1s pid 7 under 1\n".to_owned();
    // Nothing is known of its main thread: all others count.
    (8..COUNT).for_each(|tid| writeln!(said, "cpu 1..999ms pid 7 tid {tid}").unwrap());
    let (_, timelines, node) = held(text::parse(&said).unwrap(), "w");
    let begin = std::time::Instant::now();
    for at in 0..30_000 {
        assert!(timelines.counts(node, ThreadKey::new(7, COUNT - 1), Nanos(100_000_000 + at)));
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Each wait of each thread was compared with all threads of its process, over all of them: 4,000,000,000 steps for these.
#[test]
fn waits_are_compared_with_the_threads_that_were_there() {
    const COUNT: u32 = 20_000;
    let mut said = "run x 0..4s\nprocess w 0..4s pid 7 under 1\nthread w 0..4s pid 7 tid 7\n".to_owned();
    for number in 0..COUNT {
        let (at, tid) = (number * 200, 10 + number);
        writeln!(said, "thread t {at}..{}us pid 7 tid {tid}\ncpu {at}..{}us pid 7 tid {tid}", at + 5_000, at + 20).unwrap();
        writeln!(said, "cpu {at}..{}us pid 7\ncpu {}..{}us pid 7 tid {tid}", at + 5, at + 4_900, at + 5_000).unwrap();
    }
    said.push_str("sample 1ms x1 pid 7 tid 10 main;work\n");
    let begin = std::time::Instant::now();
    let report = crate::Report::new(text::parse(&said).unwrap());
    assert!(!report.poles().is_empty());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Each process of a chain counted all below it: 200,000,000 of these, in 2.4 GiB.
#[test]
fn what_stands_below_nested_processes_of_one_name_counts_once() {
    const COUNT: u32 = 20_000;
    let mut said = format!(
        "run x 0..{}us\nthread x 0..{0}us pid 1 tid 1\ncpu 0..10us pid 1\nwait 10..{}us pid 1 child main;wait\ncpu {1}..{0}us pid 1\n",
        20 * COUNT,
        20 * COUNT - 1
    );
    for number in 1..COUNT {
        let (pid, at, end) = (number + 1, number * 10, 20 * COUNT - number * 2);
        writeln!(said, "process w {at}..{end}us pid {pid} under {number}\nthread w {at}..{end}us pid {pid} tid {pid}").unwrap();
        writeln!(said, "cpu {at}..{}us pid {pid}\ncpu {}..{end}us pid {pid}", at + 10, end - 1).unwrap();
        writeln!(said, "wait {}..{}us pid {pid} child main;wait", at + 10, end - 1).unwrap();
    }
    let begin = std::time::Instant::now();
    let report = crate::Report::new(text::parse(&said).unwrap());
    assert!(report.run_graph.is_some() && !report.poles().is_empty());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Each brief wait of a thread went back over all before it: 12,500,000,000 steps for these.
#[test]
fn a_brief_wait_goes_back_over_few_others() {
    const COUNT: u32 = 160_000;
    let mut said = format!("run x 0..{}us\nthread x 0..{0}us pid 1 tid 1\n", 20 * COUNT);
    (0..COUNT).for_each(|number| writeln!(said, "cpu {}..{}us pid 1", 20 * number, 20 * number + 10).unwrap());
    let recording = text::parse(&said).unwrap();
    let begin = std::time::Instant::now();
    assert!(crate::Report::new(recording).run_graph.is_some());
    assert!(begin.elapsed() < std::time::Duration::from_secs(8), "{:?}", begin.elapsed());
}
