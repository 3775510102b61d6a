//! Processes are followed from their fork to their end, with what they use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longpole_capture::recorder::{Options, Recorder};
use longpole_model::{Exit, Observation, ProcessUsage};
use longpole_testing::holds;

use crate::program::{FACTS, MILLI, ROLE, burn_leaf, fact, me, role_command, thread_cpu};
use crate::recorded::{Folder, Gated, Seen, record, record_role, within};

/// Forks, executes a shell, which executes this binary again.
pub(crate) fn role_chain() {
    let facts = std::env::var_os(FACTS).unwrap();
    let mut inner = Command::new("/bin/sh");
    inner.args(["-c", "exec \"$0\" --exact role --nocapture --test-threads=1"]).arg(me()).env(ROLE, "leaf").env(FACTS, facts);
    let mut child = inner.spawn().unwrap();
    fact("child", child.id());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_process_behind_a_shell_is_followed_through_both_of_its_programs() {
    let recorded = record_role("chain");
    let child = recorded.fact("child") as u32;
    let started = recorded.all.iter().find_map(|o| match o {
        Observation::ProcessStarted { pid, parent_pid, time } if *pid == child => Some((*parent_pid, *time)),
        _ => None,
    });
    let (parent, started) = started.unwrap();
    assert_eq!(parent, Some(recorded.root));
    let execs: Vec<(&String, &String, &Vec<String>)> = recorded
        .all
        .iter()
        .filter_map(|o| match o {
            Observation::ProcessExec { pid, name, executable, arguments, time } if *pid == child => {
                assert!(*time > started);
                Some((name, executable, arguments))
            }
            _ => None,
        })
        .collect();
    assert_eq!(execs.len(), 2, "{execs:?}");
    assert_eq!(execs[0].0, "sh");
    assert_eq!(Path::new(execs[1].1), me());
    assert_eq!(execs[1].2[1..], ["--exact", "role", "--nocapture", "--test-threads=1"]);
    recorded.assert_unwound("burn_leaf");
    assert!(recorded.samples().filter(|s| recorded.is_in(s, "burn_leaf")).all(|s| s.pid == child));
    let root_execs = recorded.all.iter().filter(|o| matches!(o, Observation::ProcessExec { pid, .. } if *pid == recorded.root)).count();
    assert_eq!(root_execs, 1);
    for pid in [recorded.root, child] {
        assert!(recorded.all.iter().any(|o| matches!(o, Observation::ProcessExited { pid: p, .. } if *p == pid)));
    }
}

/// `true` ends after a third of a millisecond on a fast machine.
pub(crate) fn role_short() {
    for number in 0..30 {
        assert!(Command::new("/bin/sleep").arg(format!("0.0010{number:02}")).status().unwrap().success());
    }
}

#[test]
fn processes_that_live_a_millisecond_are_all_seen() {
    let recorded = record_role("short");
    let pids = |wanted: fn(&Observation) -> Option<u32>| recorded.all.iter().filter_map(wanted).collect::<BTreeSet<u32>>();
    let started = pids(|it| if let Observation::ProcessStarted { pid, .. } = it { Some(*pid) } else { None });
    let exited = pids(|it| if let Observation::ProcessExited { pid, .. } = it { Some(*pid) } else { None });
    assert_eq!(started.len(), 31);
    assert_eq!(exited, started);
}

/// On a busy machine some have ended before `/proc` is read.
#[test]
fn a_third_of_processes_that_live_a_millisecond_have_arguments_and_readings() {
    holds(2, 4, "processes of a millisecond have arguments and readings", || {
        let recorded = record_role("short");
        let (mut arguments_of, mut read) = (BTreeSet::new(), BTreeSet::new());
        for observation in &recorded.all {
            match observation {
                Observation::ProcessExec { name, executable, arguments, .. } if name == "sleep" => {
                    if let [_, number] = arguments.as_slice() {
                        assert!(executable.ends_with("sleep"), "{executable}");
                        arguments_of.insert(number.clone());
                    }
                }
                Observation::ProcessUsage(usage) => {
                    read.insert(usage.pid);
                }
                _ => {}
            }
        }
        let is_enough = arguments_of.len() >= 10 && read.len() >= 10;
        is_enough.then_some(()).ok_or(format!("arguments of {} and readings of {} of 30", arguments_of.len(), read.len()))
    });
}

/// Bytes that each step of `grows` takes and keeps, and how many there are.
const STEP_BYTES: u64 = 8 << 20;
const STEPS: u64 = 10;

/// Takes memory in steps and works a while after each; writes a file and reads it; has a child that ends badly.
pub(crate) fn role_grows() {
    let path = PathBuf::from(format!("{}.written", std::env::var(FACTS).unwrap()));
    let mut steps: Vec<Vec<u8>> = Vec::new();
    let mut file = fs::File::create(&path).unwrap();
    for step in 0..STEPS {
        let bytes = vec![step as u8 + 1; STEP_BYTES as usize];
        file.write_all(&bytes).unwrap();
        steps.push(bytes);
        burn_leaf(thread_cpu() + 30 * MILLI);
    }
    let mut read = fs::File::open(&path).unwrap();
    let mut bytes = vec![0; 1 << 20];
    while read.read(&mut bytes).unwrap() > 0 {}
    fs::remove_file(&path).unwrap();
    // It lives long enough to be found by a recorder that has no CPU at once.
    let child = Command::new("/bin/sh").args(["-c", "sleep 0.3; kill -9 $$"]).spawn().unwrap();
    fact("killed", child.id());
    assert!(!{ child }.wait().unwrap().success());
    burn_leaf(thread_cpu() + 60 * MILLI);
    std::mem::forget(black_box(steps));
}

#[test]
fn memory_is_read_while_it_grows_and_the_end_of_a_process_after_it() {
    let recorded = record_role("grows");
    let usage: Vec<ProcessUsage> = recorded
        .all
        .iter()
        .filter_map(|o| match o {
            Observation::ProcessUsage(usage) if usage.pid == recorded.root => Some(*usage),
            _ => None,
        })
        .collect();
    let whole = STEP_BYTES * STEPS;
    let memory: Vec<u64> = usage.iter().filter_map(|usage| usage.memory).map(|memory| memory.resident_bytes).collect();
    let peak = usage.iter().filter_map(|usage| usage.memory).map(|memory| memory.peak_resident_bytes).max().unwrap();
    assert!(usage.len() > 10 && usage.len() < 100, "{usage:?}");
    // What it reads its file with it gives back.
    assert!(memory.windows(2).all(|pair| pair[1] + (2 << 20) >= pair[0]), "it only grows: {memory:?}");
    // The program itself has a few megabytes.
    assert!(peak >= whole && peak < whole + (12 << 20), "{peak} of {whole}");
    let distinct = memory.chunk_by(|a, b| b.abs_diff(*a) < STEP_BYTES / 2).count() as u64;
    assert!(distinct > STEPS / 2, "the steps are seen: {memory:?}");
    let last = usage.last().unwrap();
    let io = usage.iter().rev().find_map(|usage| usage.io).unwrap();
    assert!(within(io.written as f64, whole as f64, 0.01) && within(io.read as f64, whole as f64, 0.05), "{io:?} of {whole}");
    assert!(within(last.cpu_nanos as f64, recorded.fact("cpu-of-all") as f64, 0.2), "{last:?} {:?}", recorded.facts);
    // A page of each step is touched for the first time once; the kernel may bring 16 at a time, or 512.
    assert!(last.minor_faults > whole / (2 << 20), "{last:?}");
    let ends: BTreeMap<u32, Exit> = recorded
        .all
        .iter()
        .filter_map(|o| match o {
            Observation::ProcessStatus { pid, exit, .. } => Some((*pid, *exit)),
            _ => None,
        })
        .collect();
    // Before Linux 6.15 nobody but its parent knows how a process ended.
    if !ends.is_empty() {
        assert_eq!(ends.get(&(recorded.fact("killed") as u32)), Some(&Exit::Signal(9)), "{ends:?}");
        assert_eq!(ends.get(&recorded.root), Some(&Exit::Code(0)), "{ends:?}");
    }
}

/// Leaves a process behind that lives until its standard input ends.
#[allow(clippy::zombie_processes, reason = "it is meant to outlive its parent")]
pub(crate) fn role_survivor() {
    let fifo = std::env::var("LONGPOLE_RECORDER_FIFO").unwrap();
    let child = Command::new("/bin/sh").args(["-c", "read x < \"$0\"; exit 0", &fifo]).stdin(Stdio::null()).spawn().unwrap();
    fact("survivor", child.id());
}

#[test]
fn a_process_that_outlives_the_command_does_not_hold_up_the_recorder() {
    let folder = Folder::new();
    let (facts, fifo) = (folder.path("facts"), folder.path("fifo"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = role_command(&me(), "survivor", &facts);
    command.env("LONGPOLE_RECORDER_FIFO", &fifo);
    let recorded = record(&command, &Options::default(), &facts);
    let survivor = recorded.fact("survivor") as u32;
    assert!(Path::new(&format!("/proc/{survivor}")).exists(), "it lives while the recording is over");
    assert!(!recorded.all.iter().any(|o| matches!(o, Observation::ProcessExited { pid, .. } if *pid == survivor)));
    // Its reader is there, so this does not wait; it ends the survivor.
    fs::write(&fifo, "\n").unwrap();
}

/// A command that is not there: the recorder sees nothing and ends.
#[test]
fn a_command_that_never_executes_leaves_nothing() {
    let mut gate = Command::new("/bin/sh");
    gate.args(["-c", "read line; exit 0"]).stdin(Stdio::piped());
    let gated = Gated(gate.spawn().unwrap());
    let seen = Seen::default();
    let recorder = Recorder::start(gated.pid(), &Options::default(), Box::new(seen.clone())).unwrap();
    gated.run();
    let stats = recorder.finish();
    assert_eq!((stats.samples, stats.cpu_slices, stats.not_kept), (0, 0, 0));
    assert!(seen.0.lock().unwrap().iter().all(|o| matches!(o, Observation::Clock(_))));
}
