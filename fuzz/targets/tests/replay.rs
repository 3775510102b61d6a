//! Each fuzz target over its corpus, and over changed files of it for a second: without a fuzzer, without nightly.
//!
//! The changes are the same in each run, as far as the time goes. A file that makes a target panic is kept in the temporary folder of the tests; put it
//! into `fuzz/corpus/TARGET` with the repair.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longpole_fuzz_targets::{TARGETS, Target};
use longpole_testing::random::Random;

/// Time for changed files of one target.
const CHANGES: Duration = Duration::from_secs(1);

/// Bytes that a change may add: a fuzzer's files stay small.
const GROWTH_MAX: usize = 256;

/// One test a target, so that they share the CPUs and fail by name.
macro_rules! replayed {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

replayed! {
    appdash_file appdash_frames elf_dwarf files jaeger jaeger_agent jaeger_post_spans jaeger_thrift jitdump kernel_symbols otel_context otlp_json otlp_logs otlp_traces perf_data perf_map
    perf_records pprof pulumi_event pulumi_payload pyroscope_ingest pyroscope_push pyroscope_querier python_memory span_journal traceparent wal whole_way zipkin_json zipkin_protobuf
    zipkin_thrift
}

fn replay(name: &str) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no target {name}"));
    let corpus = corpus(name);
    for bytes in &corpus {
        try_out(name, *target, bytes);
    }
    let start = Instant::now();
    let mut random = Random(1);
    while start.elapsed() < CHANGES {
        try_out(name, *target, &changed(&corpus, &mut random));
    }
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of the target's corpus, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = fuzz().join("corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort_unstable();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Runs the target; keeps the bytes that make it panic.
fn try_out(name: &str, target: Target, bytes: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.seed"));
        std::fs::write(&kept, bytes).unwrap();
        #[allow(clippy::print_stderr, reason = "the failure of a test")]
        {
            eprintln!("{name} panics over {}", kept.display());
        }
        resume_unwind(panic);
    }
}

/// One of the files with one to four changes.
fn changed(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            // One bit, one byte, or a number at which arithmetic breaks.
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next().to_le_bytes()[0]),
            2 | 3 => {
                let number = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, u64::from(u32::MAX), 1 << 31, 0x8080_8080_8080_8080][random.below(8)];
                let width = [1, 2, 4, 8][random.below(4)];
                bytes.iter_mut().skip(at).zip(&number.to_le_bytes()[..width]).for_each(|(byte, new)| *byte = *new);
            }
            // A piece twice, a piece away, the rest away.
            4 => {
                let piece: Vec<u8> = bytes[at..].iter().take(random.below(GROWTH_MAX)).copied().collect();
                bytes.splice(at..at, piece);
            }
            5 => drop(bytes.drain(at..(at + random.below(GROWTH_MAX)).min(bytes.len()))),
            6 => bytes.truncate(at),
            // The rest of another file.
            _ => {
                let other = &corpus[random.below(corpus.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
        }
    }
    bytes
}

/// A target that nobody replays, or that no fuzzer can run, is none.
#[test]
fn every_target_has_a_test_a_program_and_a_corpus() {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(REPLAYED, names);
    let listed = |folder: &str| {
        let entries = std::fs::read_dir(fuzz().join(folder)).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(listed("fuzz_targets"), names);
    assert_eq!(listed("corpus"), names);
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in names {
        let program = std::fs::read_to_string(fuzz().join("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert_eq!(program, format!("#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|bytes: &[u8]| longpole_fuzz_targets::{name}(bytes));\n"));
        assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n")), "no [[bin]] {name}");
    }
}
