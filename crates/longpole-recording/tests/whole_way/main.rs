//! Files of others, taken the whole way: bytes → recording → every view and export. Nothing on it panics, whatever the bytes.
//!
//! `cargo test` takes what fuzzing found before, and some hundred new files. For longer, and of one format:
//!
//! ```text
//! LONGPOLE_FUZZ_MINUTES=60 LONGPOLE_FUZZ_FORMAT=perf_data cargo test -p longpole-recording --test whole_way -- nearly_right --nocapture
//! ```
//!
//! The minutes are CPU time of the process: a busy machine makes the run longer, not smaller.
//!
//! A file that makes it panic is kept in `LONGPOLE_FUZZ_FOUND` (else the temporary folder), to be put into `fuzz/corpus/whole_way`.

#![allow(clippy::print_stderr, reason = "a long run says how far it is")]

mod mutate;
mod numbers;
mod way;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use longpole_testing::random::Random;
use mutate::{mutate, seeds};
use way::{Place, Tally, recording_way, whole_way};

/// New files of each seed in a plain `cargo test`: some seconds.
const FILES_OF_SEED: u64 = 40;

/// The same of recordings.
const RECORDINGS: u64 = 500;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// CPU time of this process, where the kernel says it in proc_pid_stat(5); elsewhere the time since `start`.
fn cpu_time(start: Instant) -> Duration {
    /// `USER_HZ`, the same on every Linux.
    const TICKS_A_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok());
    // utime and stime are fields 14 and 15; the one behind the name is 3.
    match ticks(11).zip(ticks(12)) {
        Some((user, system)) => Duration::from_millis((user + system) * 1000 / TICKS_A_SECOND),
        None => start.elapsed(),
    }
}

#[test]
fn what_was_found_before() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/whole_way");
    let place = Place::new("found");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        whole_way(&std::fs::read(&path).unwrap(), &place, true);
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}

#[test]
fn nearly_right_files() {
    let format = variable("LONGPOLE_FUZZ_FORMAT");
    let seeds = seeds(format.as_deref());
    let place = Place::new("new");
    let mut tally = Tally::default();
    let files = |number: u64| {
        let seed = &seeds[number as usize % seeds.len()];
        (seed.name.clone(), mutate(seed, &mut Random(number)))
    };
    many(format.as_deref().unwrap_or("all formats"), FILES_OF_SEED * seeds.len() as u64, |number, keep| {
        let (name, bytes) = files(number);
        match keep {
            true => Some((name, bytes)),
            false => {
                tally.run(&bytes, &place);
                None
            }
        }
    });
    eprintln!("{} of {} files were read, the slowest took {:?}", tally.read, tally.runs, tally.slowest);
}

/// What a segment of a store, or a `.lpole`, may say: any time, weight or amount anywhere.
#[test]
fn hostile_numbers_in_a_recording() {
    let place = Place::new("numbers");
    let deployed = longpole_model::text::parse(RECORDING).expect("the notation");
    many("recordings", RECORDINGS, |number, keep| {
        let recording = numbers::changed(&deployed, &mut Random(number));
        if keep {
            return Some(("recording".to_owned(), format!("{recording:#?}").into_bytes()));
        }
        recording_way(recording, &place);
        None
    });
}

/// Everything that a recording may hold.
const RECORDING: &str = "
run                0..100ms
  deploy           0..100ms  engine  pid 2
    create bundle  0..40ms   aws     pid 3
    create db      40..95ms  aws     pid 3  kind client <- create bundle
    create db      41..90ms  aws     pid 3  @second
process sh 0..99ms pid 2 under 1
process cc1 3..50ms pid 3 under 2
process cc2 3..60ms pid 4 under 2
process cc3 4..61ms pid 5 under 2
thread sh 0..99ms pid 2 tid 2
thread worker 0..90ms pid 3 tid 3
thread other 0..90ms pid 3 tid 4
thread cc2 3..60ms pid 4 tid 4
cpu 2..20ms pid 3 tid 3 preempted
cpu 21..39ms pid 3 tid 3
cpu 3..30ms pid 3 tid 4
cpu 3..50ms pid 4 tid 4
current 2..39ms pid 3 tid 3 create bundle
wait 30..38ms pid 3 tid 4 lock at 0x7f10 holder 3 [create bundle] main;lock_it
wait 31..39ms pid 3 tid 3 pipe main;read
wait 50..60ms pid 4 tid 4 disk main;write
wait 45..90ms pid 3 tid 3 network ?
sample 1ms x30 every 1ms  pid 3 tid 3  [create bundle] main;compress@src/bundle.rs:12;hash|block@src/hash.rs:7
sample 41ms x2 every 1ms  pid 3 tid 3  [second] main;connect@src/db.rs:3
sample 4ms x9 every 1ms  pid 4 tid 4  other
";

/// Runs until the time is over, or the number is reached; keeps a file of each panic, and fails where there was one.
fn many(what: &str, runs: u64, mut run: impl FnMut(u64, bool) -> Option<(String, Vec<u8>)>) {
    let minutes: Option<f64> = variable("LONGPOLE_FUZZ_MINUTES").map(|minutes| minutes.parse().expect("LONGPOLE_FUZZ_MINUTES is a number"));
    let first: u64 = variable("LONGPOLE_FUZZ_SEED").map_or(1, |seed| seed.parse().expect("LONGPOLE_FUZZ_SEED is a number"));
    let start = Instant::now();
    let until = minutes.map(|minutes| cpu_time(start) + Duration::from_secs_f64(minutes * 60.0));
    let at: Arc<Mutex<String>> = Arc::default();
    if until.is_some() {
        // A long run goes on, and says where each was.
        let at = Arc::clone(&at);
        std::panic::set_hook(Box::new(move |info| {
            let backtrace = std::backtrace::Backtrace::force_capture().to_string();
            let own = |line: &&str| line.contains("/crates/longpole") && !line.contains("/tests/");
            let place =
                backtrace.lines().find(own).map_or_else(|| info.location().map(ToString::to_string), |line| Some(line.trim().to_owned()));
            let what = info.payload_as_str().unwrap_or_default();
            *at.lock().unwrap_or_else(PoisonError::into_inner) = format!("{}: {what}", place.unwrap_or_default());
        }));
    }
    // Where it panicked, with one file of each.
    let mut found: BTreeMap<String, (u64, PathBuf)> = BTreeMap::new();
    let mut number = first;
    while until.map_or(number < first + runs, |until| cpu_time(start) < until) {
        if catch_unwind(AssertUnwindSafe(|| run(number, false))).is_err() {
            let at = at.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let kept = found.len();
            found
                .entry(at.clone())
                .or_insert_with(|| {
                    let folder = variable("LONGPOLE_FUZZ_FOUND").map_or_else(std::env::temp_dir, PathBuf::from);
                    // What made the file may be what panicked.
                    let kept_file = catch_unwind(AssertUnwindSafe(|| run(number, true))).ok().flatten();
                    let (name, bytes) = kept_file.unwrap_or_else(|| (format!("no-file-{what}").replace(' ', "-"), Vec::new()));
                    let path = folder.join(format!("{name}-{number}-{kept}.seed"));
                    std::fs::write(&path, &bytes).ok();
                    eprintln!("{at}\n    {}", path.display());
                    (0, path)
                })
                .0 += 1;
        }
        number += 1;
    }
    eprintln!("{what}: {} runs, {:.1} CPU-minutes", number - first, cpu_time(start).as_secs_f64() / 60.0);
    let list: Vec<String> = found.iter().map(|(at, (count, path))| format!("{count} × {at}\n    {}", path.display())).collect();
    assert!(list.is_empty(), "panics at {} places:\n{}", list.len(), list.join("\n"));
}
