//! Everything that fuzzing once found interesting, without a fuzzer.

use std::path::Path;

use longpole_wire::zipkin::Format;
use proptest::prelude::*;

use crate::arbitrary::damaged;
use crate::{doors, oracle};

/// The files of a fuzz target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// Calls the function on every file of a fuzz target's corpus.
fn replay(target: &str, check: fn(&[u8])) {
    corpus(target).iter().for_each(|bytes| check(bytes));
}

/// A damaged file of a fuzz target's corpus.
fn damaged_file(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    prop::sample::select(corpus(target)).prop_flat_map(damaged)
}

proptest! {
    #[test]
    fn damaged_batches_of_jaeger(thrift in damaged_file("jaeger_thrift"), packet in damaged_file("jaeger_agent"), request in damaged_file("jaeger_post_spans")) {
        doors::jaeger_thrift(&thrift);
        doors::jaeger_agent(&packet);
        doors::jaeger_post_spans(&request);
    }
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
    replay("jaeger_thrift", doors::jaeger_thrift);
    replay("jaeger_agent", doors::jaeger_agent);
    replay("jaeger_post_spans", doors::jaeger_post_spans);
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
fn pyroscope() {
    replay("pyroscope_push", doors::pyroscope_push);
    replay("pyroscope_ingest", doors::pyroscope_ingest);
    replay("pyroscope_querier", doors::pyroscope_querier);
}

#[test]
fn files() {
    replay("files", doors::any_file);
}
