//! What processes publish of themselves: everything that fuzzing once found interesting, without a fuzzer.
#![cfg(target_os = "linux")]

mod oracle;

use std::path::Path;

#[test]
fn the_corpus_holds_no_surprise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/otel_context");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        oracle::otel_context(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}
