//! Everything that fuzzing once found interesting, without a fuzzer.

use std::path::Path;

use crate::oracle;

/// Calls the function on every file of a fuzz target's corpus.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}

#[test]
fn otlp_traces() {
    replay("otlp_traces", oracle::traces_protobuf);
    replay("otlp_traces", oracle::counts);
}

#[test]
fn otlp_json() {
    replay("otlp_json", oracle::traces_json);
    replay("otlp_json", oracle::counts);
}

#[test]
fn traceparent() {
    replay("traceparent", oracle::traceparent);
}
