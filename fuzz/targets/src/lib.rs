//! The fuzz targets: one function for each door that foreign bytes come in by, which panics where the door does not hold.
//!
//! `fuzz/fuzz_targets` gives each to libFuzzer, which needs a nightly toolchain and an hour. `tests/replay.rs` gives
//! each the files of its corpus and changes of them for a second, on stable, in each `cargo xtask test`.
//!
//! Functions that the tests of a crate call as well stand with those tests, and are compiled into both.

#![forbid(unsafe_code)]

mod kernel_symbols;
#[cfg(feature = "capture")]
mod otel_context;
#[cfg(feature = "capture")]
mod perf_records;
#[cfg(feature = "capture")]
mod span_journal;
#[cfg(feature = "store")]
mod wal;

#[path = "../../../crates/longpole-symbols/tests/it/oracle.rs"]
mod binaries;
#[path = "../../../crates/longpole-wire/tests/it/doors.rs"]
#[allow(dead_code, reason = "the tests of the crate call the rest")]
mod doors;
#[path = "../../../crates/longpole-symbols/tests/it/oracle_jitdump.rs"]
mod jitdumps;
#[path = "../../../crates/longpole-wire/tests/it/oracle.rs"]
#[allow(dead_code, reason = "the tests of the crate call the rest")]
mod otlp;
#[path = "../../../crates/longpole-symbols/tests/it/oracle_perf_map.rs"]
mod perf_maps;
#[path = "../../../crates/longpole-symbols/tests/it/oracle_python.rs"]
mod python;
#[cfg(feature = "recording")]
#[path = "../../../crates/longpole-recording/tests/whole_way/way.rs"]
#[allow(dead_code, reason = "the tests of the crate call the rest")]
mod way;

use longpole_wire::zipkin::Format;

/// A target takes any bytes, and returns.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its file and of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("appdash_file", appdash_file),
    ("appdash_frames", appdash_frames),
    ("elf_dwarf", elf_dwarf),
    ("files", files),
    ("jaeger", jaeger),
    ("jaeger_agent", jaeger_agent),
    ("jaeger_post_spans", jaeger_post_spans),
    ("jaeger_thrift", jaeger_thrift),
    ("jitdump", jitdump),
    ("kernel_symbols", kernel_symbols),
    #[cfg(feature = "capture")]
    ("otel_context", otel_context),
    ("otlp_json", otlp_json),
    ("otlp_logs", otlp_logs),
    ("otlp_traces", otlp_traces),
    ("perf_data", perf_data),
    ("perf_map", perf_map),
    #[cfg(feature = "capture")]
    ("perf_records", perf_records),
    ("pprof", pprof),
    ("pulumi_event", pulumi_event),
    ("pulumi_payload", pulumi_payload),
    ("pyroscope_ingest", pyroscope_ingest),
    ("pyroscope_push", pyroscope_push),
    ("pyroscope_querier", pyroscope_querier),
    ("python_memory", python_memory),
    #[cfg(feature = "capture")]
    ("span_journal", span_journal),
    ("traceparent", traceparent),
    #[cfg(feature = "store")]
    ("wal", wal),
    #[cfg(feature = "recording")]
    ("whole_way", whole_way),
    ("zipkin_json", zipkin_json),
    ("zipkin_protobuf", zipkin_protobuf),
    ("zipkin_thrift", zipkin_thrift),
];

/// AppDash files: spans before a fault are read, and come back through every format.
pub fn appdash_file(bytes: &[u8]) {
    doors::appdash_file(bytes);
}

/// AppDash over TCP: the pieces that the bytes arrive in change no span.
pub fn appdash_frames(bytes: &[u8]) {
    doors::appdash_frames(bytes);
}

/// Binaries and their debug information: every address gets a frame, whatever the file holds.
pub fn elf_dwarf(bytes: &[u8]) {
    binaries::elf_dwarf(bytes);
}

/// Files of any format, as their first bytes say: cut off, broken or whole.
pub fn files(bytes: &[u8]) {
    doors::any_file(bytes);
}

/// Jaeger's JSON: read whole or refused; what was read comes back through every format.
pub fn jaeger(bytes: &[u8]) {
    doors::jaeger(bytes);
}

/// Packets to Jaeger's agent, in thrift's compact and binary protocol: as [`jaeger`].
pub fn jaeger_agent(bytes: &[u8]) {
    doors::jaeger_agent(bytes);
}

/// Requests to Jaeger's gRPC collector: as [`jaeger`].
pub fn jaeger_post_spans(bytes: &[u8]) {
    doors::jaeger_post_spans(bytes);
}

/// Batches of Jaeger in thrift, over HTTP: as [`jaeger`].
pub fn jaeger_thrift(bytes: &[u8]) {
    doors::jaeger_thrift(bytes);
}

/// Dumps that runtimes write of the code they compile.
pub fn jitdump(bytes: &[u8]) {
    jitdumps::jitdump(bytes);
}

/// The kernel's list of its symbols.
pub fn kernel_symbols(bytes: &[u8]) {
    kernel_symbols::kernel_symbols(bytes);
}

/// OpenTelemetry's records in the memory of processes and threads.
#[cfg(feature = "capture")]
pub fn otel_context(bytes: &[u8]) {
    otel_context::otel_context(bytes);
}

/// OTLP in JSON: what was read can be written and read again.
pub fn otlp_json(bytes: &[u8]) {
    otlp::traces_json(bytes);
    otlp::counts(bytes);
}

/// OTLP logs in both encodings: as many records as are counted, or none.
pub fn otlp_logs(bytes: &[u8]) {
    doors::otlp_logs(bytes);
}

/// OTLP in protobuf: the scanner against the generated messages.
pub fn otlp_traces(bytes: &[u8]) {
    otlp::traces_protobuf(bytes);
    otlp::counts(bytes);
}

/// Files that `perf record` writes.
pub fn perf_data(bytes: &[u8]) {
    doors::perf_data(bytes);
}

/// Maps of function names that runtimes leave behind.
pub fn perf_map(bytes: &[u8]) {
    perf_maps::perf_map(bytes);
}

/// Records of the kernel's ring.
#[cfg(feature = "capture")]
pub fn perf_records(bytes: &[u8]) {
    perf_records::perf_records(bytes);
}

/// Profiles that are sums: pprof, folded stacks.
pub fn pprof(bytes: &[u8]) {
    doors::profile(bytes);
}

/// Engine events of Pulumi.
pub fn pulumi_event(bytes: &[u8]) {
    doors::pulumi_event(bytes);
}

/// Payload logs of Pulumi: only URNs and tokens come out.
pub fn pulumi_payload(bytes: &[u8]) {
    doors::pulumi_payload(bytes);
}

/// Profiles in the formats of Pyroscope's SDKs, and the names of applications in their addresses.
pub fn pyroscope_ingest(bytes: &[u8]) {
    doors::pyroscope_ingest(bytes);
}

/// Pyroscope's pushes, in both encodings.
pub fn pyroscope_push(bytes: &[u8]) {
    doors::pyroscope_push(bytes);
}

/// Queries of Pyroscope's API, in both encodings, with selectors and times.
pub fn pyroscope_querier(bytes: &[u8]) {
    doors::pyroscope_querier(bytes);
}

/// The memory of a Python interpreter, which changes while it is read.
pub fn python_memory(bytes: &[u8]) {
    python::python_memory(bytes);
}

/// Journals of spans, which programs write while they are read.
#[cfg(feature = "capture")]
pub fn span_journal(bytes: &[u8]) {
    span_journal::span_journal(bytes);
}

/// The W3C header: what was read prints as text that reads the same.
pub fn traceparent(bytes: &[u8]) {
    otlp::traceparent(bytes);
}

/// The log of a recording: replayed and assembled.
#[cfg(feature = "store")]
pub fn wal(bytes: &[u8]) {
    thread_local! {
        static LOG: wal::Log = wal::Log::new(&std::env::temp_dir());
    }
    LOG.with(|log| log.wal(bytes));
}

/// Files of other tools: bytes, recording, report, every view, every export, and the exports read again.
#[cfg(feature = "recording")]
pub fn whole_way(bytes: &[u8]) {
    thread_local! {
        static PLACE: way::Place = way::Place::new("fuzz");
    }
    PLACE.with(|place| way::whole_way(bytes, place, bytes.len().is_multiple_of(32)));
}

/// Zipkin v2 in JSON: read whole or refused; what was read comes back through every format.
pub fn zipkin_json(bytes: &[u8]) {
    doors::zipkin(bytes, Format::V2Json);
}

/// Zipkin v2 in protobuf: as [`zipkin_json`].
pub fn zipkin_protobuf(bytes: &[u8]) {
    doors::zipkin(bytes, Format::V2Protobuf);
}

/// Zipkin v1 in thrift: as [`zipkin_json`].
pub fn zipkin_thrift(bytes: &[u8]) {
    doors::zipkin(bytes, Format::V1Thrift);
}
