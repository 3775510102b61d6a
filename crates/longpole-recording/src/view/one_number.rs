//! The time of a function is one number, whichever view gives it.

use std::collections::BTreeMap;

use longpole_analysis::Report;
use longpole_analysis::report::{Excerpt, FlameTime};
use longpole_model::{Nanos, text};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Functions with inlined ones, of several programs' parts, and with recursion.
const FRAMES: [&str; 6] = ["main", "work@src/work.rs:3", "work@src/work.rs:9|inlined@src/work.rs:4", "std::write", "leaf", "other"];

/// Samples and waits of two processes and two spans, with any stacks.
fn recording() -> impl Strategy<Value = String> {
    let stack =
        || vec(0..FRAMES.len(), 1..6).prop_map(|frames| frames.into_iter().map(|frame| FRAMES[frame]).collect::<Vec<_>>().join(";"));
    let sample = (0..90_u32, 1..9_u32, 1..3_u32, any::<bool>(), stack());
    let wait = (0..90_u32, 1..9_u32, 1..3_u32, any::<bool>(), stack());
    (vec(sample, 1..20), vec(wait, 0..8)).prop_map(|(samples, waits)| {
        let mut text = "run x 0..100ms\n  a 0..50ms svc pid 1\n  b 50..100ms svc pid 2\n".to_owned();
        let label = |is_named: bool, pid: u32| if is_named { ["[a] ", "[b] "][pid as usize - 1] } else { "" };
        for (at, count, pid, is_named, stack) in samples {
            text.push_str(&format!("sample {at}ms x{count} pid {pid} {}{stack}\n", label(is_named, pid)));
        }
        for (at, length, pid, is_named, stack) in waits {
            text.push_str(&format!("wait {at}..{}ms pid {pid} disk {}{stack}\n", at + length, label(is_named, pid)));
        }
        text
    })
}

/// Self and total time by handle, as the flame graph has them: a function within itself counts once.
fn of_flame(flame: &FlameView) -> BTreeMap<String, (i64, i64)> {
    let nodes = &flame.nodes;
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for node in 1..nodes.parent.len() {
        let frame = nodes.frame[node];
        let above = std::iter::successors(Some(nodes.parent[node]), |&at| (at > 0).then(|| nodes.parent[at as usize]));
        let is_within_itself = above.take_while(|&at| at > 0).any(|at| nodes.frame[at as usize] == frame);
        let sum = sums.entry(flame.frames[frame as usize].handle.clone()).or_default();
        sum.0 += nodes.self_nanos[node];
        sum.1 += if is_within_itself { 0 } else { nodes.total_nanos[node] };
    }
    sums
}

/// Time of the whole run in a range: of the flame graphs on and off CPUs, and of all threads on CPUs.
fn times_in(report: &Report, range: (Nanos, Nanos)) -> [i64; 3] {
    let excerpt = Excerpt { range: Some(range), tid: None };
    let weight = |time| FlameView::of_run("r1", report, time, true, excerpt).weight_nanos;
    let threads = ThreadsView::new("r1", report, Some(range)).threads;
    [weight(FlameTime::OnCpu), weight(FlameTime::OffCpu), threads.iter().map(|thread| thread.on_cpu_nanos).sum()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_ranges_side_by_side_have_what_both_together_have(text in recording(), at in 0i64..110) {
        let report = Report::new(text::parse(&text).unwrap());
        let [from, at, to] = [-1_000, at, 1_000].map(|millis| Nanos(millis * 1_000_000));
        let (before, after, both) = (times_in(&report, (from, at)), times_in(&report, (at, to)), times_in(&report, (from, to)));
        let sum: [i64; 3] = std::array::from_fn(|time| before[time] + after[time]);
        prop_assert_eq!(sum, both, "{}", text);
        let whole = |time| FlameView::of_run("r1", &report, time, true, Excerpt::default()).weight_nanos;
        prop_assert_eq!([both[0], both[1]], [whole(FlameTime::OnCpu), whole(FlameTime::OffCpu)], "{}", text);
    }

    #[test]
    fn a_function_takes_as_long_in_each_view(text in recording()) {
        let report = Report::new(text::parse(&text).unwrap());
        for (time, all_threads) in [(FlameTime::OnCpu, false), (FlameTime::OffCpu, false), (FlameTime::OffCpu, true)] {
            let flame = FlameView::of_run("r1", &report, time, all_threads, Excerpt::default());
            let sums = of_flame(&flame);
            let options = TopOptions { time, all_threads, all_functions: true, limit: 0, ..TopOptions::default() };
            let top = TopView::new("r1", &report, None, options).unwrap();
            prop_assert_eq!(top.weight_nanos, flame.weight_nanos, "{}", text);
            // The list names who waits, a function of the program; the graph shows the call in which it waits.
            let own = |nanos: i64| if time == FlameTime::OnCpu { nanos } else { 0 };
            let listed: BTreeMap<&str, (i64, i64)> =
                top.functions.iter().map(|it| (it.handle.as_str(), (own(it.self_nanos), it.total_nanos))).collect();
            let graph: BTreeMap<&str, (i64, i64)> = sums.iter().map(|(handle, sum)| (handle.as_str(), (own(sum.0), sum.1))).collect();
            prop_assert_eq!(listed, graph, "{}", text);
            for (handle, (own, total)) in &sums {
                let frame = FrameView::new("r1", &report, handle).unwrap();
                if time == FlameTime::OnCpu {
                    prop_assert_eq!((frame.self_nanos, frame.total_nanos), (*own, *total), "{} of {}", handle, text);
                } else if all_threads {
                    prop_assert_eq!(frame.waited_nanos, *total, "{} of {}", handle, text);
                }
            }
        }
        // What a span has of a function, all spans and what is linked to none have in all.
        let spans: Vec<SpanView> = ["s1", "s2", "s3"].into_iter().filter_map(|handle| SpanView::new("r1", &report, handle)).collect();
        for function in spans.iter().flat_map(|span| &span.top_frames) {
            let frame = FrameView::new("r1", &report, &function.handle).unwrap();
            prop_assert!(function.total_nanos <= frame.total_nanos && function.self_nanos <= frame.self_nanos, "{}", text);
        }
    }
}
