use longpole_model::attribute::AttributeValue;
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource_event;
use longpole_model::sink::SpanBatch;
use longpole_model::span::{Span, SpanKind, StatusCode};

use super::*;
use crate::error::FileError;
use crate::limits::{Limits, WAITING_SPANS_MAX};

const FILE: &[u8] = include_bytes!("../../../../fixtures/appdash/golden.up.trace");
const WIRE: &[u8] = include_bytes!("../../../../fixtures/appdash/golden.wire");

fn file(bytes: &[u8]) -> (SpanBatch, Result<(), FileError>) {
    let mut batch = SpanBatch::default();
    let result = decode_file(bytes, &Limits::default(), &mut batch);
    (batch, result)
}

fn frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> SpanBatch {
    let mut batch = SpanBatch::default();
    let mut reader = FrameReader::new(&Limits::default());
    for piece in pieces {
        reader.push(piece, &mut batch).unwrap();
    }
    reader.finish(&mut batch);
    batch
}

/// 2026-03-26T09:30:00+02:00.
const ORIGIN: i64 = 1_774_510_200_000_000_000;

fn named(batch: &SpanBatch, id: u64) -> &Span {
    batch.spans.iter().find(|span| span.span_id.bytes() == id.to_be_bytes()).unwrap_or_else(|| panic!("no span {id:x}"))
}

/// The spans of the golden files, whichever way they came.
fn check(batch: &SpanBatch) {
    let losses: Vec<(LossKind, u64)> = batch.losses.iter().map(|loss| (loss.kind, loss.count)).collect();
    assert_eq!(losses, [(LossKind::SpansUnfinished, 1)]);
    assert_eq!(batch.spans.len(), 5);
    let millis = |span: &Span| ((span.start.unix_nanos() - ORIGIN) / 1_000_000, (span.end.unix_nanos() - ORIGIN) / 1_000_000);
    let parent = |span: &Span| span.parent_span_id.map(|id| u64::from_be_bytes(id.bytes()));
    for span in &batch.spans {
        assert_eq!(span.trace_id.to_string(), "00000000000000001122334455667788");
        assert_eq!((&span.scope.name[..], &span.scope.version[..]), ("appdash", ""));
    }

    let root = named(batch, 0xa1);
    assert_eq!((&root.name[..], parent(root), millis(root)), ("pulumi", None, (0, 1000)));
    assert_eq!(root.attributes.get_str("os.Args"), Some("[pulumi up --tracing=file:./up.trace]"));

    let create = named(batch, 0xb2);
    assert_eq!((&create.name[..], create.kind, parent(create)), ("/pulumirpc.ResourceProvider/Create", SpanKind::Client, Some(0xa1)));
    assert_eq!((millis(create), create.attributes.get_str("pulumi-decorator")), ((100, 400), Some("a:b:C")));
    assert_eq!(create.attributes.get_str(resource_event::URN), Some("urn:pulumi:dev::proj::a:b:C::n"));
    assert_eq!(create.attributes.get_str(resource_event::TYPE), Some("a:b:C"));
    let [request, failed] = &create.events[..] else { panic!("{:?}", create.events) };
    assert_eq!((&request.name[..], request.attributes.get_str("gRPC request")), ("gRPC request", Some("[payload left out, 36 bytes]")));
    assert_eq!((&failed.name[..], failed.attributes.get_str("message")), ("error", Some("boom")));
    assert_eq!(failed.time.nanos_since(create.start), 300_000_000);

    let server = named(batch, 0xc3);
    assert_eq!((server.kind, parent(server), millis(server)), (SpanKind::Server, Some(0xb2), (110, 390)));
    assert_eq!((server.status.code, server.attributes.get("error")), (StatusCode::Error, None));

    let orphan = named(batch, 0xd4);
    assert_eq!((&orphan.name[..], parent(orphan), millis(orphan)), ("/pulumirpc.Engine/Log", Some(0xdead), (50, 60)));

    let unfinished = named(batch, 0xe5);
    assert_eq!((&unfinished.name[..], parent(unfinished)), ("newPlugin", Some(0xa1)));
    assert_eq!((unfinished.attributes.get("longpole.unfinished"), unfinished.duration_nanos()), (Some(&AttributeValue::Bool(true)), 0));
}

#[test]
fn a_file_of_pulumi() {
    let (batch, result) = file(FILE);
    result.unwrap();
    check(&batch);
    assert_eq!(named(&batch, 0xe5).start.unix_nanos(), ORIGIN, "at the start of its parent");
}

#[test]
fn frames_of_pulumi_in_pieces_of_any_size() {
    check(&frames([WIRE]));
    check(&frames(WIRE.chunks(1)));
    check(&frames(WIRE.chunks(7)));
}

#[test]
fn only_the_first_map_of_a_file_is_read() {
    let whole = file(FILE).0;
    let needed = (0..=FILE.len()).find(|cut| file(&FILE[..*cut]).1.is_ok()).unwrap();
    assert!(needed < FILE.len() / 2, "{needed} of {}", FILE.len());
    assert_eq!(file(&FILE[..needed]).0.spans, whole.spans);
}

#[test]
fn a_file_that_is_cut_off_gives_all_before_the_cut_and_says_where() {
    let mut most = 0;
    let needed = (0..).find(|cut| file(&FILE[..*cut]).1.is_ok()).unwrap();
    for cut in 0..needed {
        let (batch, result) = file(&FILE[..cut]);
        let Err(FileError::Truncated { offset, spans }) = result else { panic!("{cut}: {result:?}") };
        assert_eq!((offset, spans), (cut as u64, batch.spans.len() as u64));
        assert!(batch.spans.len() >= most, "{cut}");
        most = batch.spans.len();
    }
    assert_eq!(most, 5);
    let error = file(&FILE[..1000]).1.unwrap_err();
    assert_eq!(error.to_string(), "the file is cut off at byte 1000: longpole read the 2 spans before the cut; the rest is missing");
}

#[test]
fn a_file_of_something_else_is_refused() {
    for (bytes, problem) in [
        (&b"\x03\x04\x00\x07"[..], "a gob file of something other than traces"),
        (b"GIF89a, and more than seventy-one bytes that follow it, so that nothing is cut off", "an unknown kind of type"),
        (&[0x80; 20], "an integer longer than 64 bits"),
    ] {
        let (batch, result) = file(bytes);
        let Err(FileError::Broken { problem: found, format: "appdash", .. }) = result else { panic!("{result:?}") };
        assert_eq!((found, batch.spans.len()), (problem, 0));
    }
}

#[test]
fn a_file_as_deep_as_it_likes_is_read() {
    let (batch, _) = file(FILE);
    let mut spans = Vec::new();
    for id in 1..=100_000u64 {
        let mut span = batch.spans[0].clone();
        span.span_id = crate::convert::span_id(id).unwrap();
        span.parent_span_id = crate::convert::span_id(id - 1);
        spans.push(span);
    }
    let mut bytes = Vec::new();
    encode_file(&spans, &mut bytes).unwrap();
    let (again, result) = file(&bytes);
    result.unwrap();
    assert!(again.spans == spans);
}

#[test]
fn a_span_that_is_finished_twice_comes_twice_over_the_wire_and_once_in_a_file() {
    let packet = |key: &str, value: &str| {
        [b"\x2b\x32", &[key.len() as u8][..], key.as_bytes(), b"\x3a", &[value.len() as u8], value.as_bytes(), b"\x2c"].concat()
    };
    let finish = |end: &str| {
        let ids = b"\x0b\x11\x01\0\0\0\0\0\0\0\x19\x02\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\x0c".to_vec();
        let packets = [
            [ids.clone(), packet("Name", "pulumi-plan")].concat(),
            [ids.clone(), packet("k", "v")].concat(),
            [ids, packet("Span.Start", "2026-03-26T09:30:00Z"), packet("Span.End", end), packet("_schema:Timespan", "")].concat(),
        ];
        packets.iter().flat_map(|packet| [&[packet.len() as u8][..], packet].concat()).collect::<Vec<u8>>()
    };
    let both = [finish("2026-03-26T09:30:01Z"), finish("2026-03-26T09:30:01.00005Z")].concat();
    let batch = frames([&both[..]]);
    let [first, second] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!((first.span_id, second.end.nanos_since(first.end)), (second.span_id, 50_000));

    // In a file both are annotations of one span.
    let pairs = |end: &str| {
        [("Name", "pulumi-plan"), ("k", "v"), ("Span.Start", "2026-03-26T09:30:00Z"), ("Span.End", end), ("_schema:Timespan", "")]
            .map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()))
    };
    let pairs = [pairs("2026-03-26T09:30:01Z"), pairs("2026-03-26T09:30:01.00005Z")].concat();
    let annotated = annotations::Annotated { trace: 1, span: 2, parent: 0, pairs };
    let mut placing = annotations::Placing::new(&Limits::default(), true);
    let mut batch = SpanBatch::default();
    placing.span(annotated, &mut batch);
    placing.finish(&mut batch);
    let [span] = &batch.spans[..] else { panic!("{:?}", batch.spans) };
    assert_eq!((span.duration_nanos(), span.attributes.0.len()), (1_000_050_000, 1));
}

#[test]
fn a_connection_that_is_no_appdash_is_refused_and_a_bad_packet_is_not_the_end() {
    let mut batch = SpanBatch::default();
    let mut reader = FrameReader::new(&Limits::default());
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\nConnection: close\r\n\r\n";
    assert!(reader.push(request, &mut batch).is_err());

    let bad = b"\x03abc";
    let batch = frames([WIRE, bad, WIRE]);
    // The span without times is one, whose annotations came twice.
    assert_eq!(batch.spans.len(), 9);
    assert_eq!((batch.losses[0].kind, batch.losses[0].count), (LossKind::RequestsRefused, 1));
}

#[test]
fn a_packet_above_the_limit_is_passed_over() {
    let limits = Limits { packet_bytes_max: 140, ..Limits::default() };
    let mut batch = SpanBatch::default();
    let mut reader = FrameReader::new(&limits);
    for piece in WIRE.chunks(50) {
        reader.push(piece, &mut batch).unwrap();
    }
    reader.finish(&mut batch);
    // The packet of 147 bytes with the payload is gone, the rest is not.
    assert_eq!(batch.spans.len(), 5);
    assert_eq!(named(&batch, 0xb2).events.len(), 1);
    assert_eq!(&batch.losses[0].detail, "appdash packets larger than the limit");
}

#[test]
fn few_spans_of_a_connection_wait_for_their_times() {
    let mut batch = SpanBatch::default();
    let mut reader = FrameReader::new(&Limits::default());
    for id in 1..=2 * WAITING_SPANS_MAX as u64 {
        let ids = [&[0x0b, 0x11][..], &1u64.to_le_bytes(), &[0x19], &id.to_le_bytes(), &[0x0c]].concat();
        reader.push(&[&[ids.len() as u8][..], &ids].concat(), &mut batch).unwrap();
    }
    assert_eq!(batch.spans.len(), WAITING_SPANS_MAX, "the others wait, and take no memory that nobody counts");
    assert!(reader.held_bytes() > WAITING_SPANS_MAX * 100, "{}", reader.held_bytes());
    reader.finish(&mut batch);
    assert_eq!(batch.spans.len(), 2 * WAITING_SPANS_MAX);
    assert!(batch.spans.iter().all(|span| span.attributes.get("longpole.unfinished") == Some(&AttributeValue::Bool(true))));
}

#[test]
fn a_connection_that_breaks_off_gives_what_it_sent() {
    let batch = frames([&WIRE[..WIRE.len() - 10]]);
    assert_eq!(batch.spans.len(), 5);
    let root = named(&batch, 0xa1);
    assert_eq!(root.attributes.get("longpole.unfinished"), Some(&AttributeValue::Bool(true)));
    assert!(root.end.unix_nanos() > ORIGIN, "at the last time of the connection");
    assert_eq!(&batch.losses[0].detail, "appdash packets that were cut off by the end of the connection");
}

#[test]
fn times_that_no_timestamp_holds_are_kept_and_marked() {
    let (batch, _) = file(FILE);
    let mut bytes = encode_frames(&batch.spans[..1]);
    let at = bytes.windows(4).position(|window| window == b"2026").unwrap();
    bytes[at..at + 4].copy_from_slice(b"0001");
    let batch = frames([&bytes[..]]);
    assert_eq!(
        (batch.spans[0].start.unix_nanos(), batch.spans[0].attributes.get_str("longpole.time_clamped")),
        (0, Some("0001-03-26T07:30:00Z"))
    );
    assert_eq!(batch.losses, [Loss::new(LossKind::FormatCannotHold, 1, crate::convert::TIMES_MOVED)]);
}

#[test]
fn what_is_written_reads_the_same() {
    let (batch, _) = file(FILE);
    let mut bytes = Vec::new();
    let losses = encode_file(&batch.spans, &mut bytes).unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    let (again, result) = file(&bytes);
    result.unwrap();
    check(&again);
    let sorted = |batch: &SpanBatch| {
        let mut spans = batch.spans.clone();
        spans.sort_by_key(|span| span.span_id);
        for span in &mut spans {
            span.attributes.0.sort_by(|a, b| a.key.cmp(&b.key));
        }
        spans
    };
    assert_eq!(sorted(&again), sorted(&batch));
    assert_eq!(sorted(&frames([&encode_frames(&batch.spans)[..]])), sorted(&batch));
}
