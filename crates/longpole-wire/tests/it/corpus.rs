//! Everything that fuzzing once found interesting, without a fuzzer.

use std::path::Path;

use longpole_wire::zipkin::Format;

use crate::{doors, oracle};

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

#[test]
fn zipkin() {
    replay("zipkin_thrift", |bytes| doors::zipkin(bytes, Format::V1Thrift));
    replay("zipkin_json", |bytes| doors::zipkin(bytes, Format::V2Json));
    replay("zipkin_protobuf", |bytes| doors::zipkin(bytes, Format::V2Protobuf));
}

#[test]
fn appdash() {
    replay("appdash_frames", doors::appdash_frames);
    replay("appdash_file", doors::appdash_file);
}

#[test]
fn pulumi() {
    replay("pulumi_event", doors::pulumi_event);
    replay("pulumi_payload", doors::pulumi_payload);
}

#[test]
fn jaeger() {
    replay("jaeger", doors::jaeger);
}

#[test]
fn otlp_logs() {
    replay("otlp_logs", doors::otlp_logs);
}

#[test]
fn perf_data() {
    replay("perf_data", doors::perf_data);
}

#[test]
fn profiles() {
    replay("pprof", doors::profile);
}

#[test]
fn files() {
    replay("files", doors::any_file);
}
