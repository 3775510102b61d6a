//! The log of a recording: everything that fuzzing once found interesting, and what chance makes of it.

mod oracle;

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wal");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files: Vec<Vec<u8>> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

#[test]
fn any_bytes_end_and_can_be_put_together() {
    let log = oracle::Log::new(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let corpus = corpus();
    corpus.iter().for_each(|bytes| log.wal(bytes));

    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    let mut runner = TestRunner::new(Config::with_cases(1000));
    let cases = (prop::sample::select(corpus), damage);
    let outcome = runner.run(&cases, |(mut bytes, damage)| {
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        log.wal(&bytes);
        Ok(())
    });
    outcome.unwrap();
}
