use longpole_model::loss::LossKind;
use longpole_model::sink::SpanBatch;
use longpole_model::span::Span;
use longpole_model::text;

use super::*;

fn spans() -> Vec<Span> {
    let text = "deploy 0..100ms engine\n  web 10..40ms aws\n    dns 15..20ms aws\n  db 15..98ms aws\ntrace 2\ncron 5..6ms cron\n";
    text::parse(text).unwrap().spans
}

fn read(bytes: &[u8], format: FileFormat) -> (SpanBatch, Result<(), FileError>) {
    let mut batch = SpanBatch::default();
    let result = decode(bytes, format, &Limits::default(), &mut batch);
    (batch, result)
}

/// Each format that can be written, with a file of the spans above.
fn files() -> Vec<(FileFormat, Vec<u8>)> {
    let spans = spans();
    let lines = spans.chunks(2).flat_map(|some| [otlp::json::encode(some), b"\n".to_vec()].concat()).collect();
    let mut appdash = Vec::new();
    appdash::encode_file(&spans, &mut appdash).unwrap();
    let framed = spans.chunks(3).flat_map(|some| {
        let message = otlp::encode_trace(some);
        [&(message.len() as u32).to_be_bytes()[..], &message].concat()
    });
    vec![
        (FileFormat::OtlpJsonLines, lines),
        (FileFormat::OtlpJson, pretty(&otlp::json::encode(&spans))),
        (FileFormat::OtlpProtobuf, otlp::encode_trace(&spans)),
        (FileFormat::OtlpProtobuf, framed.collect()),
        (FileFormat::AppDash, appdash),
        (FileFormat::ZipkinV2Json, zipkin::encode_v2_json(&spans).0),
        (FileFormat::Jaeger, jaeger::encode(&spans).0),
    ]
}

fn pretty(bytes: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    serde_json::to_vec_pretty(&value).unwrap()
}

#[test]
fn a_file_is_known_by_its_first_bytes() {
    for (format, bytes) in files() {
        assert_eq!(identify(&bytes[..bytes.len().min(HEAD_BYTES)], "traces"), Ok(format));
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    assert_eq!(guess(include_bytes!("../../../../fixtures/appdash/golden.up.trace"), "x"), Some(FileFormat::AppDash));
    assert_eq!(guess(include_bytes!("../../../../fixtures/otlp/python.pb"), "x"), Some(FileFormat::OtlpProtobuf));
    assert_eq!(guess(include_bytes!("../../../../fixtures/otlp/node.json"), "x"), Some(FileFormat::OtlpJsonLines));
    let v1 = br#"[{"traceId":"1","id":"2","annotations":[{"endpoint":{}}]}]"#;
    assert_eq!(guess(v1, "x"), Some(FileFormat::ZipkinV1Json));
}

#[test]
fn an_unknown_file_has_a_guess_and_the_list_of_known_formats() {
    let error = identify(b"\x1f\x8b\x08", "traces.json.gz").unwrap_err();
    assert_eq!(
        error.to_string(),
        "traces.json.gz: unknown format; it looks like gzip (decompress it first), or a pprof profile; known formats: otlp-json-lines, \
         otlp-json, otlp-protobuf, appdash, zipkin-v1-json, zipkin-v2-json, jaeger-json, perf-data, pprof, otlp-profiles, folded"
    );
    assert_eq!(identify(b"", "x").unwrap_err().looks_like, Some("an empty file"));
    assert_eq!(identify(b"{\"traceEvents\":[]}", "x").unwrap_err().looks_like, Some("a Chrome trace, which longpole only writes"));
    assert_eq!(identify(b"{\"name\":1}", "x").unwrap_err().looks_like, Some("JSON without spans"));
    assert_eq!(identify(b"\xff\xfe\x00", "x").unwrap_err().looks_like, None);
    assert!("otlp".parse::<FileFormat>().unwrap_err().to_string().starts_with("`otlp`: unknown format"));
}

#[test]
fn every_format_gives_all_spans() {
    for (format, bytes) in files() {
        let (batch, result) = read(&bytes, format);
        result.unwrap();
        assert_eq!((batch.spans.len(), batch.losses.len()), (5, 0), "{format}");
        let names: std::collections::BTreeSet<_> = batch.spans.iter().map(|span| &span.name[..]).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["cron", "db", "deploy", "dns", "web"], "{format}");
    }
}

#[test]
fn a_file_cut_anywhere_gives_all_before_the_cut_and_says_where_it_is() {
    for (format, bytes) in files() {
        let (whole, _) = read(&bytes, format);
        let mut most = 0;
        for cut in 1..bytes.len() {
            let (batch, result) = read(&bytes[..cut], format);
            assert!(batch.spans.len() >= most, "{format} cut at {cut}");
            most = batch.spans.len();
            let names = |batch: &SpanBatch| batch.spans.iter().map(|span| span.name.clone()).collect::<Vec<_>>();
            if format != FileFormat::Jaeger {
                assert_eq!(batch.spans, whole.spans[..most], "{format} cut at {cut}");
            }
            assert_eq!(names(&batch), names(&whole)[..most], "{format} cut at {cut}");
            match result {
                Err(FileError::Truncated { offset, spans }) => assert_eq!((offset, spans), (cut as u64, most as u64), "{format}"),
                // Between two lines, two messages, or behind all that is needed, nobody can see a cut.
                Ok(()) => assert!(matches!(format, FileFormat::OtlpJsonLines | FileFormat::OtlpProtobuf) || most == 5, "{format} at {cut}"),
                Err(error) => panic!("{format} cut at {cut}: {error}"),
            }
        }
        assert!(most >= 4, "{format}: {most}");
    }
}

#[test]
fn lines_that_cannot_be_read_are_counted_and_other_signals_too() {
    let good = String::from_utf8(otlp::json::encode(&spans()[..1])).unwrap();
    let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{}]}]}]}"#;
    let text = format!("\u{feff}{good}\n\nnonsense\n{{\"resourceSpans\":7}}\n{logs}\r\n{good}");
    let (batch, result) = read(text.as_bytes(), FileFormat::OtlpJsonLines);
    result.unwrap();
    assert_eq!(batch.spans.len(), 2);
    let losses: Vec<_> = batch.losses.iter().map(|loss| (loss.kind, loss.count, &loss.detail[..])).collect();
    assert_eq!(
        losses,
        [
            (LossKind::OtherSignals, 2, "log records in the file"),
            (
                LossKind::RequestsRefused,
                2,
                "lines of the file that are not OTLP JSON; the first is line 3: expected ident, at line 1 column 2"
            )
        ]
    );
    let error = read(b"nonsense\nnonsense\n", FileFormat::OtlpJsonLines).1.unwrap_err();
    assert_eq!(error.to_string(), "expected ident, at line 1 column 2, in the document at byte 0 of the file");
}

#[test]
fn a_document_above_the_limit_is_refused() {
    let limits = Limits { document_bytes_max: 100, ..Limits::default() };
    for (format, bytes) in files() {
        let result = decode(&bytes[..], format, &limits, &mut SpanBatch::default());
        match format {
            FileFormat::AppDash => result.unwrap(),
            _ => assert!(matches!(result, Err(FileError::TooLarge { limit_bytes: 100, .. })), "{format}: {result:?}"),
        }
    }
}

#[test]
fn a_document_that_is_wrong_says_what_and_where() {
    let (_, result) = read(b"[{\"traceId\":7}]", FileFormat::ZipkinV2Json);
    let text = result.unwrap_err().to_string();
    assert_eq!(text, "invalid type: integer `7`, expected an id in hex, at line 1 column 13, in the document at byte 0 of the file");
    let (_, result) = read(b"\x12\x00", FileFormat::OtlpProtobuf);
    assert_eq!(result.unwrap_err().to_string(), "something other than spans, at byte 0 of the otlp-protobuf file");
}
