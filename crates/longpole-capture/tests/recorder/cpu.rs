//! Samples and slices are the CPU time that programs have, in the functions that have it.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};

use longpole_capture::recorder::{Options, Recorder, SampleClock};
use longpole_model::{CaptureMode, LossKind, Observation, Sample};
use longpole_testing::holds;

use crate::program::{MILLI, burn_leaf, burn_one, burn_three, fact, me, mix, process_cpu, role_command, thread_cpu};
use crate::recorded::{Folder, Gated, Seen, record_role, within};

pub(crate) fn role_shares() {
    for _ in 0..15 {
        burn_three(thread_cpu() + 45 * MILLI);
        burn_one(thread_cpu() + 15 * MILLI);
    }
}

#[test]
fn cpu_shares_of_functions_are_those_of_the_program() {
    let recorded = record_role("shares");
    let (three, one) = (recorded.count("burn_three") as f64, recorded.count("burn_one") as f64);
    let all = three + one;
    assert!(all > 500.0, "{}", recorded.describe());
    // Five standard deviations of a share of three quarters.
    let spread = 5.0 * (0.75 * 0.25 / all).sqrt();
    assert!((three / all - 0.75).abs() < spread, "{three} : {one}\n{}", recorded.describe());
    recorded.assert_unwound("burn_three");
    let sample = recorded.samples().find(|s| recorded.is_in(s, "burn_three")).unwrap();
    assert!(recorded.is_in(sample, "role_shares"), "callers are found: {:?}", recorded.functions(sample));
    assert_eq!(sample.weight_nanos, 1_001_001);
    assert_eq!(sample.pid, recorded.root);
    let clocks = recorded.all.iter().filter(|o| matches!(o, Observation::Clock(_))).count();
    assert!(clocks >= 2, "at the start and at the end");
}

/// Has the kernel write zeros and random numbers, most of the time.
#[inline(never)]
fn read_much(path: &str, until: u64) {
    use std::io::Read;
    let mut source = fs::File::open(path).unwrap();
    let mut bytes = vec![0; 1 << 20];
    while thread_cpu() < until {
        source.read_exact(&mut bytes).unwrap();
        black_box(&mut bytes);
    }
    black_box(());
}

pub(crate) fn role_kernel() {
    read_much("/dev/urandom", thread_cpu() + 300 * MILLI);
    burn_leaf(thread_cpu() + 100 * MILLI);
}

/// Time in the kernel is sampled if allowed, and then below the function that called it; if not, the mode has the reason.
#[test]
fn time_in_the_kernel_is_below_the_function_that_called_it() {
    holds(2, 4, "samples of the kernel are those of its time", time_in_the_kernel);
}

fn time_in_the_kernel() -> Result<(), String> {
    let recorded = record_role("kernel");
    let in_kernel = |sample: &&Sample| recorded.functions(sample).iter().any(|function| function.ends_with("_[k]"));
    let on_cpu: u64 = recorded.slices().map(|slice| slice.end.nanos_since(slice.start)).sum();
    let sampled: u64 = recorded.samples().map(|sample| sample.weight_nanos).sum();
    match &recorded.mode {
        CaptureMode::Perf => {
            let reading: Vec<&Sample> = recorded.samples().filter(|s| recorded.is_in(s, "read_much")).collect();
            let below = reading.iter().filter(|s| in_kernel(s)).count();
            assert!(reading.len() > 200 && below * 10 >= reading.len() * 9, "{below} of {}\n{}", reading.len(), recorded.describe());
            let random = reading.iter().filter(|s| recorded.functions(s).iter().any(|f| f.contains("random") && f.ends_with("_[k]")));
            assert!(random.count() * 10 >= below * 9, "the kernel's functions have names\n{}", recorded.describe());
            recorded.assert_unwound("read_much");
            if !within(sampled as f64, on_cpu as f64, 0.10) {
                return Err(format!("sampled {sampled}, on a CPU {on_cpu}\n{}", recorded.describe()));
            }
            assert!(recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).filter(in_kernel).count() < 50);
        }
        CaptureMode::User { why_not_kernel } => {
            assert!(why_not_kernel.contains("perf_event_paranoid") && why_not_kernel.contains("CAP_PERFMON"), "{why_not_kernel}");
            assert_eq!(recorded.samples().filter(in_kernel).count(), 0);
            assert!(sampled * 2 < on_cpu, "sampled {sampled}, on a CPU {on_cpu}");
        }
        other => panic!("{other:?}"),
    }
    assert!(recorded.stats.unwind_failed <= 1, "{}", recorded.describe());
    Ok(())
}

/// Two threads that hand a byte back and forth.
pub(crate) fn role_switches() {
    let (mut from_a, mut to_b) = std::io::pipe().unwrap();
    let (mut from_b, mut to_a) = std::io::pipe().unwrap();
    let rounds: u32 = std::env::var("LONGPOLE_RECORDER_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(5_000);
    // About 100 µs of work a round, so 20,000 switches a second.
    let work: u64 = std::env::var("LONGPOLE_RECORDER_WORK").ok().and_then(|r| r.parse().ok()).unwrap_or(60_000);
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        while from_a.read(&mut byte).unwrap() == 1 {
            to_a.write_all(&byte).unwrap();
        }
        fact("cpu", thread_cpu());
    });
    let mut byte = [7];
    for _ in 0..rounds {
        to_b.write_all(&byte).unwrap();
        from_b.read_exact(&mut byte).unwrap();
        black_box(mix(work, u64::from(byte[0])));
    }
    drop(to_b);
    other.join().unwrap();
    fact("process", process_cpu());
}

#[test]
fn slices_add_up_at_many_switches() {
    holds(2, 4, "slices add up at many switches", many_switches);
}

fn many_switches() -> Result<(), String> {
    let recorded = record_role("switches");
    let on_cpu: u64 = recorded.slices().map(|s| s.end.nanos_since(s.start)).sum();
    let told = recorded.fact("process");
    let switches = recorded.slices().count() as u64;
    // The kernel charges the switch itself, and what the recorder adds to it, to the thread that comes; it is no part of a slice.
    // That is about 1 µs, more where a hypervisor is busy.
    if on_cpu > told + told / 50 || on_cpu + switches * 20_000 < told {
        return Err(format!("slices {on_cpu}, the process's own clock {told}, {switches} switches"));
    }
    assert!(switches > 5_000, "{switches}");
    let mut by_thread: BTreeMap<u32, u64> = BTreeMap::new();
    for slice in recorded.slices() {
        let last = by_thread.insert(slice.tid, slice.end.0).unwrap_or(0);
        assert!(last <= slice.start.0, "slices of a thread are in order and do not overlap");
    }
    Ok(())
}

#[test]
fn cycles_fall_back_to_the_cpu_clock_with_a_loss() {
    let folder = Folder::new();
    let facts = folder.path("facts");
    let gated = Gated::new(&role_command(&me(), "leaf", &facts));
    let seen = Seen::default();
    let options = Options { clock: SampleClock::Cycles, ..Options::default() };
    let recorder = Recorder::start(gated.pid(), &options, Box::new(seen.clone())).unwrap();
    let clock = recorder.clock();
    gated.run();
    let stats = recorder.finish();
    assert!(stats.samples > 80, "{stats:?}");
    let said = seen
        .0
        .lock()
        .unwrap()
        .iter()
        .any(|o| matches!(o, Observation::Loss(l) if l.kind == LossKind::ProfilingRefused && l.detail.contains("cycles")));
    assert_eq!(said, clock == SampleClock::CpuClock);
}
