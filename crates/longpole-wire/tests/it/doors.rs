//! What must hold for any bytes at the doors that are not OTLP's. The fuzz targets and the tests call these same functions;
//! this file is compiled into both.

use std::io::Cursor;

use longpole_model::attribute::Attributes;
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::{EventRef, SpanBatch};
use longpole_model::span::Span;
use longpole_model::{SpanId, TraceId};
use longpole_wire::file::{self, FileFormat};
use longpole_wire::otlp::logs::LogSink;
use longpole_wire::otlp::{self, Encoding};
use longpole_wire::perf_data::{self, PerfData};
use longpole_wire::profile_export::{self, ProfileExport};
use longpole_wire::profile_import::{self, ProfileFormat};
use longpole_wire::pyroscope::ingest::{self, IngestFormat};
use longpole_wire::pyroscope::querier::{self, QuerierMethod};
use longpole_wire::pyroscope::{self, Codec, push, selector};
use longpole_wire::{DecodeError, FileError, Limits, appdash, chrome_trace, jaeger, pulumi_event, pulumi_payload, zipkin};

/// A body in each encoding: taken whole or not at all, and what was taken comes back by every format.
pub(crate) fn zipkin(bytes: &[u8], format: zipkin::Format) {
    whole_or_not_at_all(|limits, sink| zipkin::decode(bytes, format, limits, sink));
    let _ = zipkin::Format::of_request("/api/v1/spans", None, bytes);
}

/// A connection: however the bytes are cut into pieces, the same spans come out.
pub(crate) fn appdash_frames(bytes: &[u8]) {
    let read = |size: usize| {
        let mut batch = SpanBatch::default();
        let mut reader = appdash::FrameReader::new(&Limits::default());
        let is_good = bytes.chunks(size).try_for_each(|piece| reader.push(piece, &mut batch)).is_ok();
        reader.finish(&mut batch);
        (batch, is_good)
    };
    let (whole, is_good) = read(bytes.len().max(1));
    let (pieces, is_good_too) = read(7);
    assert_eq!(is_good, is_good_too);
    if is_good {
        assert_eq!(format!("{:?}", whole.spans), format!("{:?}", pieces.spans));
        // A fault at the end of a piece is reported there: earlier, and the same.
        let counted = |mut losses: Vec<longpole_model::Loss>| {
            losses.sort_by_key(|loss| (loss.kind, loss.detail.clone()));
            losses
        };
        assert_eq!(counted(whole.losses), counted(pieces.losses));
    }
    comes_back(&whole.spans);
}

/// A file: whatever is wrong with it, what was given comes back.
pub(crate) fn appdash_file(bytes: &[u8]) {
    file_as(bytes, FileFormat::AppDash);
}

/// A document of Jaeger's.
pub(crate) fn jaeger(bytes: &[u8]) {
    whole_or_not_at_all(|limits, sink| jaeger::decode(bytes, limits, sink));
}

/// A batch of Jaeger's clients, over HTTP.
pub(crate) fn jaeger_thrift(bytes: &[u8]) {
    whole_or_not_at_all(|limits, sink| jaeger::decode_thrift(bytes, limits, sink));
}

/// A packet to Jaeger's agent, in either protocol.
pub(crate) fn jaeger_agent(bytes: &[u8]) {
    whole_or_not_at_all(|limits, sink| jaeger::decode_agent_packet(bytes, limits, sink).map(drop));
}

/// A request to Jaeger's gRPC collector.
pub(crate) fn jaeger_post_spans(bytes: &[u8]) {
    whole_or_not_at_all(|limits, sink| jaeger::decode_post_spans(bytes, limits, sink));
}

fn whole_or_not_at_all(decode: impl FnOnce(&Limits, &mut SpanBatch) -> Result<(), DecodeError>) {
    let mut batch = SpanBatch::default();
    if decode(&Limits::default(), &mut batch).is_err() {
        assert!(batch.spans.is_empty() && batch.losses.is_empty(), "a refused request left something in the sink");
    }
    comes_back(&batch.spans);
}

/// `perf.data`: records come in the order of time, what they hold is no more than the file, and a fault lies inside of it.
pub(crate) fn perf_data(bytes: &[u8]) {
    // Compressed records of a small file must not fill the memory.
    let limits = Limits { document_bytes_max: 16 << 20, ..Limits::default() };
    let inside = |error: &FileError| match error {
        // Where a part should lie, the header says, and it may lie.
        FileError::Broken { .. } => {}
        other => panic!("{other}"),
    };
    let mut data = match PerfData::open(Cursor::new(bytes), &limits) {
        Ok(data) => data,
        Err(error) => return inside(&error),
    };
    data.fault.iter().for_each(inside);
    let (mut last, events) = (0, data.events.len());
    loop {
        match data.next_record() {
            Ok(None) => break,
            Err(error) => inside(&error),
            Ok(Some(record)) => {
                assert!(record.time >= last);
                last = record.time;
                if let perf_data::Body::Sample(sample) = record.body {
                    assert!(sample.chain.entries().len() <= 8192 && sample.stack.len() <= 1 << 16);
                    assert!(sample.event < events);
                    assert!(sample.calls.entries().len() <= 8192);
                    let _ = sample.registers.map(|registers| (0..70).filter_map(|number| registers.get(number)).count());
                }
            }
        }
    }
}

/// A profile: taken whole or not at all, and every number in it stands for something.
pub(crate) fn profile(bytes: &[u8]) {
    let _ = profile_import::guess(bytes);
    for format in ProfileFormat::ALL {
        let Ok(profile) = profile_import::decode(bytes, format, u64::MAX) else { continue };
        assert!(!profile.types.is_empty());
        assert!(profile.samples.iter().all(|sample| sample.values.len() == profile.types.len()));
        assert!(profile.samples.iter().all(|sample| (sample.stack as usize) < profile.stacks.len()));
        assert!(profile.stacks.iter().flat_map(|stack| &stack.locations).all(|id| (id.0 as usize) < profile.locations.len()));
        assert!(profile.locations.iter().all(|location| !location.frames.is_empty()));
        assert!(profile.samples.iter().all(|sample| sample.labels == 0 || (sample.labels as usize) < profile.label_sets.len()));
        assert!(profile.label_sets.iter().all(|set| set.is_sorted_by(|a, b| a.0 < b.0)));
    }
}

/// A profile in each format of `/ingest`, and the texts of its address.
pub(crate) fn pyroscope_ingest(bytes: &[u8]) {
    for format in IngestFormat::ALL {
        let Ok(profile) = ingest::decode(bytes, format, 64 << 20) else { continue };
        assert!(profile.samples.iter().all(|sample| sample.values.len() == profile.types.len()));
        assert!(profile.samples.iter().all(|sample| (sample.stack as usize) < profile.stacks.len()));
        assert!(profile.stacks.iter().flat_map(|stack| &stack.locations).all(|id| (id.0 as usize) < profile.locations.len()));
        assert!(profile.samples.iter().all(|sample| sample.labels == 0 || (sample.labels as usize) < profile.label_sets.len()));
    }
    let _ = (ingest::sample_type_config(bytes), ingest::decode_jfr(bytes, bytes, 64 << 20));
    let text = String::from_utf8_lossy(bytes);
    if let Ok((app, labels)) = ingest::app_name(&text) {
        assert!(!app.is_empty() && labels.iter().all(|(name, _)| !name.is_empty()));
    }
}

/// A push in both encodings.
pub(crate) fn pyroscope_push(bytes: &[u8]) {
    for codec in [Codec::Protobuf, Codec::Json] {
        if let Ok(series) = push::decode(bytes, codec) {
            let raw: usize = series.iter().flat_map(|series| &series.profiles).map(|profile| profile.bytes.len()).sum();
            assert!(raw <= bytes.len());
        }
    }
}

/// The request of each method in both encodings; and a selector, a query and a time.
pub(crate) fn pyroscope_querier(bytes: &[u8]) {
    for codec in [Codec::Protobuf, Codec::Json] {
        for method in QuerierMethod::ALL {
            let _ = querier::decode(method, bytes, codec);
        }
        let _ = querier::decode_diff(bytes, codec);
    }
    let _ = querier::pprof(bytes.to_vec(), Codec::Json).map(|json| {
        let json: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&json);
        assert!(json.is_ok(), "a profile is json");
    });
    let text = String::from_utf8_lossy(bytes);
    let _ = (selector::parse(&text), selector::parse_query(&text));
    let _ = pyroscope::time::relative(&text, longpole_model::time::Timestamp(0));
}

/// A file of whatever it seems to be.
pub(crate) fn any_file(bytes: &[u8]) {
    match file::identify(bytes, "file") {
        Ok(format) => file_as(bytes, format),
        Err(error) => assert!(error.to_string().contains("known formats")),
    }
}

fn file_as(bytes: &[u8], format: FileFormat) {
    let mut batch = SpanBatch::default();
    match file::decode(bytes, format, &Limits::default(), &mut batch) {
        Err(FileError::Truncated { offset, spans }) => {
            assert_eq!((offset, spans), (bytes.len() as u64, batch.spans.len() as u64), "{format}");
        }
        // What is too large may only say so, in front of bytes that are not there.
        Err(
            FileError::Broken { offset, .. }
            | FileError::Line { offset, .. }
            | FileError::Document { offset, .. }
            | FileError::TooLarge { offset, .. },
        ) => {
            assert!(offset <= bytes.len() as u64);
        }
        Err(FileError::Read(_)) => panic!("bytes in memory can be read"),
        Ok(()) => {}
    }
    comes_back(&batch.spans);
}

/// An engine event: a text or an error, and no secret.
pub(crate) fn pulumi_event(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(Some(told)) = pulumi_event::parse(text) {
        assert!(told.event.time.unix_nanos() >= 0);
    }
}

/// A payload: only what looks like a urn or a token comes out of it.
pub(crate) fn pulumi_payload(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let found = pulumi_payload::find(text).map(|payload| payload.identity);
    for identity in found.into_iter().chain([pulumi_payload::Identity::of_body(text)]) {
        let urns = [&identity.urn, &identity.parent, &identity.provider].into_iter().flatten().chain(&identity.dependencies);
        assert!(urns.into_iter().all(|urn| urn.starts_with("urn:pulumi:")));
        assert!(identity.resource_type.is_none_or(|token| token.contains(':') && token.len() <= 512));
    }
}

/// Logs: both encodings, whole or not at all.
pub(crate) fn otlp_logs(bytes: &[u8]) {
    #[derive(Default)]
    struct Count(u64);
    impl LogSink for Count {
        fn resource(&mut self, _resource: Resource) {}
        fn scope(&mut self, _scope: Scope) {}
        fn event(&mut self, _trace_id: TraceId, _span_id: SpanId, _event: EventRef<'_>) {
            self.0 += 1;
        }
        fn loss(&mut self, loss: Loss) {
            assert!(loss.count > 0);
        }
    }
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let mut sink = Count::default();
        match otlp::logs::decode(bytes, encoding, &Limits::default(), &mut sink) {
            Ok(counts) => {
                assert_eq!(counts.of_spans, sink.0);
                // Where a name stands twice in JSON, one reader takes the last and the other all.
                if encoding == Encoding::Protobuf {
                    assert_eq!(otlp::count_logs(bytes, false), Ok(counts.of_spans + counts.others));
                }
            }
            Err(_) => assert_eq!(sink.0, 0, "a refused request left something in the sink"),
        }
    }
}

/// Spans that were read can be written in every format and read again: equal, or the loss is listed.
pub(crate) fn comes_back(spans: &[Span]) {
    for (name, again) in FORMATS {
        let (batch, losses) = again(spans);
        assert!(losses.iter().all(|loss| loss.kind == LossKind::FormatCannotHold && loss.count > 0));
        assert_eq!(batch.spans.len(), spans.len(), "{name}");
        if losses.is_empty() {
            let (expected, found) = (format!("{:#?}", in_order(spans)), format!("{:#?}", in_order(&batch.spans)));
            assert_eq!(expected, found, "{name}");
        }
    }
    let mut recording = longpole_model::text::parse("run x 0..1ms").expect("a run is a recording");
    recording.spans = spans.to_vec();
    let export = ProfileExport::new(&recording);
    let mut firefox = Vec::new();
    profile_export::firefox::encode(&export, &mut firefox).expect("memory takes what is written");
    for (name, file) in [("chrome", chrome_trace::encode(&export).0), ("firefox", firefox)] {
        let json: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&file);
        assert!(json.is_ok(), "{name}: a trace is json");
    }
}

/// Writes spans in a format and reads them again.
type Again = fn(&[Span]) -> (SpanBatch, Vec<Loss>);

/// Every format that is written and read.
pub(crate) const FORMATS: [(&str, Again); 6] = [
    ("otlp protobuf", |spans| (read(|limits, sink| otlp::trace::decode(&otlp::encode_trace(spans), limits, sink)), before_1970(spans))),
    ("otlp json", |spans| (read(|limits, sink| otlp::json::decode(&otlp::json::encode(spans), limits, sink)), before_1970(spans))),
    ("zipkin", |spans| {
        let (bytes, losses) = zipkin::encode_v2_json(spans);
        (read(|limits, sink| zipkin::decode(&bytes, zipkin::Format::V2Json, limits, sink)), losses)
    }),
    ("jaeger", |spans| {
        let (bytes, losses) = jaeger::encode(spans);
        (read(|limits, sink| jaeger::decode(&bytes, limits, sink)), losses)
    }),
    ("appdash file", |spans| {
        let mut bytes = Vec::new();
        let losses = appdash::encode_file(spans, &mut bytes).expect("memory");
        (read(|limits, sink| appdash::decode_file(&bytes[..], limits, sink)), losses)
    }),
    ("appdash frames", |spans| {
        let mut batch = SpanBatch::default();
        let mut reader = appdash::FrameReader::new(&Limits::default());
        reader.push(&appdash::encode_frames(spans), &mut batch).expect("our own encoding");
        reader.finish(&mut batch);
        // Frames lose what a file loses.
        (batch, appdash::encode_file(spans, &mut std::io::sink()).expect("a sink"))
    }),
];

fn read<E: std::fmt::Debug>(decode: impl FnOnce(&Limits, &mut SpanBatch) -> Result<(), E>) -> SpanBatch {
    let mut batch = SpanBatch::default();
    // Written tags are more than the attributes were.
    let limits = Limits { values_max: u32::MAX, ..Limits::default() };
    decode(&limits, &mut batch).expect("our own encoding");
    batch
}

/// OTLP holds everything but that, and its encoders say so in their documentation only.
fn before_1970(spans: &[Span]) -> Vec<Loss> {
    let is_early = |span: &&Span| span.start.0 < 0 || span.end.0 < 0 || span.events.iter().any(|event| event.time.0 < 0);
    let count = spans.iter().filter(is_early).count() as u64;
    (count > 0).then(|| Loss::new(LossKind::FormatCannotHold, count, "times before 1970")).into_iter().collect()
}

/// The order of spans and of attributes with different keys means nothing.
pub(crate) fn in_order(spans: &[Span]) -> Vec<Span> {
    let by_key = |attributes: &mut Attributes| attributes.0.sort_by(|a, b| a.key.cmp(&b.key));
    let mut spans = spans.to_vec();
    for span in &mut spans {
        by_key(&mut span.attributes);
        by_key(&mut std::sync::Arc::make_mut(&mut span.resource).attributes);
        span.events.iter_mut().for_each(|event| by_key(&mut event.attributes));
        // This belongs to the connection, not to the format.
        span.pid = None;
    }
    spans.sort_by_cached_key(|span| format!("{span:?}"));
    spans
}
