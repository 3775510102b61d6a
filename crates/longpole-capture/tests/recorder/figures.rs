//! What recording costs: figures for people, and no test.
#![allow(clippy::print_stdout)]

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, Mutex};

use longpole_capture::recorder::{Options, Recorder};
use longpole_model::sink::SinkError;
use longpole_model::{Loss, Observation, ObservationSink};

use crate::program::{me, mix, role_command};
use crate::recorded::{Folder, Gated};

/// Works a fixed amount on a number of threads, for figures.
pub(crate) fn role_spin() {
    let threads: u64 = std::env::var("LONGPOLE_RECORDER_THREADS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    let rounds: u64 = std::env::var("LONGPOLE_RECORDER_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(20_000_000);
    let all: Vec<_> = (0..threads).map(|seed| std::thread::spawn(move || black_box(descend_and_mix(12, rounds, seed)))).collect();
    for thread in all {
        thread.join().unwrap();
    }
}

#[inline(never)]
fn descend_and_mix(depth: u32, rounds: u64, seed: u64) -> u64 {
    let frame = black_box([seed; 16]);
    if depth == 0 { mix(rounds, seed) } else { descend_and_mix(depth - 1, rounds, seed) + black_box(frame[1]) }
}

/// Starts `true` many times; for figures.
pub(crate) fn role_execs() {
    let rounds: u32 = std::env::var("LONGPOLE_RECORDER_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(100);
    for _ in 0..rounds {
        Command::new("/bin/true").status().unwrap();
    }
}

/// Figures, for people: `cargo test -p longpole-capture --test recorder -- --ignored --nocapture figures`.
#[test]
#[ignore = "measures, asserts nothing"]
fn figures() {
    #[derive(Clone, Default)]
    struct Losses(Arc<Mutex<Vec<Loss>>>);
    impl ObservationSink for Losses {
        fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
            if let Observation::Loss(loss) = black_box(observation) {
                loss.merge_into(&mut self.0.lock().unwrap());
            }
            Ok(())
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            Ok(())
        }
    }
    let losses = Losses::default();
    let run = |role: &str, environment: &[(&str, &str)], options: Option<&Options>| {
        let folder = Folder::new();
        let facts = folder.path("facts");
        let mut command = role_command(&me(), role, &facts);
        command.envs(environment.iter().copied());
        let gated = Gated::new(&command);
        let start = std::time::Instant::now();
        let recorder = options.map(|o| Recorder::start(gated.pid(), o, Box::new(losses.clone())).unwrap());
        let started = start.elapsed();
        gated.run();
        let start = std::time::Instant::now();
        let stats = recorder.map(|r| r.finish());
        let ends = (started.as_secs_f64() * 1e3, start.elapsed().as_secs_f64() * 1e3);
        let facts = fs::read_to_string(facts).unwrap();
        let nanos = |name: &str| facts.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<f64>().ok()).unwrap() / 1e9;
        (nanos("wall "), nanos("cpu-of-all "), ends, stats)
    };
    type Load<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
    let loads: [Load<'_>; 5] = [
        ("one busy thread", "spin", &[("LONGPOLE_RECORDER_THREADS", "1"), ("LONGPOLE_RECORDER_ROUNDS", "1000000000")]),
        ("two busy threads", "spin", &[("LONGPOLE_RECORDER_THREADS", "2"), ("LONGPOLE_RECORDER_ROUNDS", "1000000000")]),
        ("20,000 switches/s", "switches", &[("LONGPOLE_RECORDER_ROUNDS", "10000")]),
        ("as many switches as can be", "switches", &[("LONGPOLE_RECORDER_ROUNDS", "50000"), ("LONGPOLE_RECORDER_WORK", "2000")]),
        ("500 × true", "execs", &[("LONGPOLE_RECORDER_ROUNDS", "500")]),
    ];
    for (name, role, environment) in loads {
        let (mut plain_best, mut best) = ((f64::MAX, f64::MAX), (f64::MAX, f64::MAX));
        for _ in 0..7 {
            let (wall, cpu, ..) = run(role, environment, None);
            plain_best = (plain_best.0.min(wall), plain_best.1.min(cpu));
            let (wall, cpu, (started, finished), stats) = run(role, environment, Some(&Options::default()));
            best = (best.0.min(wall), best.1.min(cpu));
            let stats = stats.unwrap();
            println!(
                "{name}: {wall:.3} s, start {started:.1} ms, finish {finished:.1} ms, {} samples, {} slices, {} lost, {} truncated, {} failed, recorder {:.1} ms CPU, {:.1} µs a sample",
                stats.samples,
                stats.cpu_slices,
                stats.lost,
                stats.truncated,
                stats.unwind_failed,
                stats.recorder_cpu_nanos as f64 / 1e6,
                stats.recorder_cpu_nanos as f64 / 1e3 / stats.samples.max(1) as f64,
            );
        }
        println!("{name}: losses {:?}", *losses.0.lock().unwrap());
        let (wall, cpu) = ((best.0 / plain_best.0 - 1.0) * 100.0, (best.1 / plain_best.1 - 1.0) * 100.0);
        println!(
            "{name}: best of 7: wall {:.3} -> {:.3} s ({wall:+.1} %), CPU {:.3} -> {:.3} s ({cpu:+.1} %)",
            plain_best.0, best.0, plain_best.1, best.1
        );
    }
}
