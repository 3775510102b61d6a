//! What heap profiles cost a program that does little else than allocating:
//! `cargo build --release -p longpole-sdk --features heap --examples && target/release/examples/heap_cost`.
//!
//! Runs take turns: the same work with the system's allocator, with ours before `start`, and with ours sampling. The figures are processor time: the median
//! of the ratios of neighbouring runs, and, between brackets, the ratio of the fastest runs, which is nearer to the truth if other programs share the processors.

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
    println!("{:<12} {:>10} {:>20} {:>20} {:>20}", "", "alone, ms", "not started", "512 KiB", "64 KiB");
    for (work, _) in heap_work::WORK {
        let mut alone = f64::INFINITY;
        let mut fastest = [f64::INFINITY; 3];
        let mut ratios: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            let before = nanos(Command::new(&without).arg(work));
            let with = ["off", "524288", "65536"].map(|rate| nanos(Command::new(&own).args([work, rate])));
            let after = nanos(Command::new(&without).arg(work));
            alone = alone.min(before).min(after);
            for (place, with) in with.into_iter().enumerate() {
                fastest[place] = fastest[place].min(with);
                // The neighbours on both sides: a machine that slows down slows both.
                ratios[place].push(with / ((before + after) / 2.0));
            }
        }
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let shown: Vec<String> = ratios
            .iter_mut()
            .zip(fastest)
            .map(|(ratios, fastest)| {
                ratios.sort_by(f64::total_cmp);
                format!("{:+.1} % [{:+.1} %]", percent(ratios[ROUNDS / 2]), percent(fastest / alone))
            })
            .collect();
        println!("{work:<12} {:>10.0} {:>20} {:>20} {:>20}", alone / 1e6, shown[0], shown[1], shown[2]);
    }
}

fn nanos(command: &mut Command) -> f64 {
    let output = command.output().expect("build the examples together");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a program that prints nanoseconds")
}
