//! What heap profiles cost a program that does little else than allocating:
//! `cargo build --release -p longpole-sdk --features heap --examples && target/release/examples/heap_cost`.
//!
//! Runs take turns: the same work with the system's allocator, with ours before `start`, and with ours sampling. The figures are processor time, and the
//! medians of the ratios of neighbouring runs; the smallest and the largest stand beside them.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

mod heap_work;

use std::process::Command;

#[global_allocator]
static ALLOCATOR: longpole_sdk::heap::Allocator = longpole_sdk::heap::Allocator::new();

const ROUNDS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [work, "off"] => heap_work::run(work),
        [work, rate] => {
            longpole_sdk::heap::Options::new().sample_bytes(rate.parse().unwrap_or(512 << 10)).start();
            heap_work::run(work);
            report_size();
        }
        _ => compare(),
    }
}

/// What the profile holds, on stderr.
fn report_size() {
    let mut profile = Vec::new();
    let began = std::time::Instant::now();
    let written = longpole_sdk::heap::write_pprof(&mut profile);
    if std::env::var_os("HEAP_COST_VERBOSE").is_some() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")).collect::<Vec<_>>().join(" ");
        println!("profile: {written:?}, {} bytes in {:?}; {memory}", profile.len(), began.elapsed());
    }
}

fn compare() {
    let own = std::env::current_exe().expect("a program has a path");
    let without = own.with_file_name("heap_cost_without");
    println!("{:<12} {:>10} {:>26} {:>26} {:>26}", "", "alone, ms", "not started", "512 KiB", "64 KiB");
    for (work, _) in heap_work::WORK {
        let mut alone = Vec::new();
        let mut ratios: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            let before = nanos(Command::new(&without).arg(work));
            let with = ["off", "524288", "65536"].map(|rate| nanos(Command::new(&own).args([work, rate])));
            let after = nanos(Command::new(&without).arg(work));
            // The neighbours on both sides: a machine that slows down slows both.
            let beside = (before + after) / 2.0;
            alone.push(beside / 1e6);
            ratios.iter_mut().zip(with).for_each(|(ratios, with)| ratios.push((with / beside - 1.0) * 100.0));
        }
        let [off, on, often] = ratios.map(|mut ratios| {
            ratios.sort_by(f64::total_cmp);
            format!("{:+.1} % ({:+.1} … {:+.1})", ratios[ROUNDS / 2], ratios[0], ratios[ROUNDS - 1])
        });
        alone.sort_by(f64::total_cmp);
        println!("{work:<12} {:>10.0} {off:>26} {on:>26} {often:>26}", alone[ROUNDS / 2]);
    }
}

fn nanos(command: &mut Command) -> f64 {
    let output = command.output().expect("build the examples together");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a program that prints nanoseconds")
}
