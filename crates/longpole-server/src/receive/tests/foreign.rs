//! The doors that do not speak OTLP: Zipkin, AppDash and Pulumi's events. Bytes of real clients stand in `testdata`: what the
//! reference encoders in Go wrote.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Frame};
use longpole_model::{AttributeValue, ResourceStep, TimeRange, Timestamp};
use longpole_wire::appdash::encode_frames;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as ProtoKind;

use super::*;
use crate::limits::{APPDASH_CONNECTIONS_MAX, BODIES_IN_MEMORY_BYTES_MAX, CONVERTED_SPANS_MAX};

/// The spans that were kept, with the name of their scope.
fn kept_spans(memory: &Memory) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    for (bytes, encoding, _) in memory.kept() {
        assert_eq!(encoding, Encoding::Protobuf, "the log has one format");
        for of_resource in ExportTraceServiceRequest::decode(&bytes[..]).unwrap().resource_spans {
            for of_scope in of_resource.scope_spans {
                let scope = of_scope.scope.unwrap_or_default().name;
                found.extend(of_scope.spans.into_iter().map(|span| (scope.clone(), span)));
            }
        }
    }
    found
}

const V2: &str = r#"[{"traceId":"5b6794d1b1db5ba6","id":"6c9d6a3ef7b4d6cf","name":"get","kind":"CLIENT","timestamp":1000,"duration":5,
    "localEndpoint":{"serviceName":"web"},"tags":{"a":"b"}}]"#;
const V1: &str = r#"[{"traceId":"5b6794d1b1db5ba6","id":"6c9d6a3ef7b4d6cf","name":"get","timestamp":1000,"duration":5,
    "annotations":[{"timestamp":1000,"value":"cs","endpoint":{"serviceName":"web"}},{"timestamp":1005,"value":"cr","endpoint":{"serviceName":"web"}}],
    "binaryAnnotations":[{"key":"a","value":"b","endpoint":{"serviceName":"web"}}]}]"#;
const THRIFT: &[u8] = include_bytes!("../testdata/zipkin_v1_client.thrift");

#[test]
fn zipkin_is_taken_at_its_paths_in_every_format() {
    let (receiver, memory) = start();
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Level::fast());
    zlib.write_all(V2.as_bytes()).unwrap();
    let zlib = zlib.finish().unwrap();
    let mut check = |path: &str, headers: &str, body: &[u8], name: &str| {
        let before = memory.kept().len();
        let answer = raw(&mut stream, &format!("POST {path} HTTP/1.1\r\n{headers}"), body);
        assert_eq!((answer.status, &answer.body[..]), (202, &b""[..]), "{path} {headers} {:?}", String::from_utf8_lossy(&answer.body));
        let kept = memory.kept();
        assert_eq!((kept.len(), kept.last().unwrap().2), (before + 1, Some(std::process::id())), "{path} {headers}");
        let (scope, span) = kept_spans(&memory).pop().unwrap();
        assert_eq!((scope.as_str(), span.name.as_str(), span.kind()), ("zipkin", name, ProtoKind::Client), "{path} {headers}");
        assert_eq!(span.span_id, [0x6c, 0x9d, 0x6a, 0x3e, 0xf7, 0xb4, 0xd6, 0xcf]);
        assert_eq!(span.trace_id[8..], [0x5b, 0x67, 0x94, 0xd1, 0xb1, 0xdb, 0x5b, 0xa6]);
    };
    let json = "Content-Type: application/json\r\n";
    check("/api/v2/spans", json, V2.as_bytes(), "get");
    check("/api/v2/spans", "", V2.as_bytes(), "get");
    // As Pulumi's Node programs do it.
    check("/api/v1/spans", json, V2.as_bytes(), "get");
    check("/api/v1/spans", json, V1.as_bytes(), "get");
    check("/api/v1/spans", "Content-Type: application/x-thrift\r\n", THRIFT, "/pulumirpc.ResourceProvider/Create");
    check("/api/v2/spans", &format!("{json}Content-Encoding: gzip\r\n"), &gzip(V2.as_bytes()), "get");
    check("/api/v2/spans", &format!("{json}Content-Encoding: deflate\r\n"), &zlib, "get");
    let decoded = memory.0.0.lock().unwrap().decoded;
    assert_eq!(decoded, memory.kept().len());
    drop(stream);
    assert_eq!(receiver.finish(SOON), []);
}

#[test]
fn a_bad_zipkin_request_is_refused_in_words() {
    let (receiver, memory) = start();
    let check = |headers: &str, body: &[u8], status: u16, message: &str| {
        let answer = post(receiver.port(), "/api/v2/spans", headers, body);
        let text = String::from_utf8(answer.body.clone()).unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (status, Some("text/plain; charset=utf-8")), "{text}");
        assert!(text.contains(message), "{text:?} does not say {message:?}");
        answer
    };
    check(JSON, b"[{\"traceId\":", 400, "at line 1 column");
    check("Content-Type: application/x-thrift\r\n", &THRIFT[..THRIFT.len() - 1], 400, "thrift");
    check(&format!("{JSON}Content-Encoding: gzip\r\n"), V2.as_bytes(), 400, "cannot decompress the body: ");
    check(&format!("{JSON}Content-Encoding: br\r\n"), V2.as_bytes(), 415, "content encoding br");
    // What a web page may send without asking.
    check("Content-Type: text/plain;charset=UTF-8\r\n", V2.as_bytes(), 415, "content type text/plain: expected application/json");
    check("Content-Type: application/x-www-form-urlencoded\r\n", V2.as_bytes(), 415, "content type application/x-www-form-urlencoded");
    check(JSON, &vec![b' '; BODY_BYTES_MAX + 1], 413, "64 MiB");
    check(&format!("{JSON}Content-Encoding: gzip\r\n"), &gzip(&vec![b' '; INFLATED_BYTES_MAX + 1]), 413, "64 MiB after decompression");
    memory.set(|state| state.broken = true);
    let answer = check(JSON, V2.as_bytes(), 503, "no space left on device");
    assert_eq!(answer.header("retry-after"), Some("1"));
    for path in ["/", "/spans", "/zipkin/api/v2/spans", "/api/v2/spans/"] {
        let answer = post(receiver.port(), path, JSON, V2.as_bytes());
        assert_eq!((answer.status, answer.rpc_status().0), (404, 5), "{path}");
        assert!(answer.rpc_status().1.contains("/api/v2/spans or /api/v1/spans of Zipkin"), "{answer:?}");
    }
    assert_eq!(memory.kept(), []);
    let losses = receiver.finish(SOON);
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 13, "{losses:?}");
}

#[test]
fn a_zipkin_request_of_many_spans_is_kept_in_parts_and_what_has_no_id_is_counted() {
    let (receiver, memory) = start();
    let count = 3 * CONVERTED_SPANS_MAX + 7;
    let mut spans: Vec<String> =
        (1..=count).map(|i| format!(r#"{{"traceId":"1","id":"{i:x}","name":"s{i}","timestamp":1,"duration":1}}"#)).collect();
    spans.push(r#"{"traceId":"0","id":"0","name":"nobody"}"#.to_owned());
    let body = format!("[{}]", spans.join(","));
    assert_eq!(post(receiver.port(), "/api/v2/spans", JSON, body.as_bytes()).status, 202);
    assert_eq!((kept_spans(&memory).len(), memory.kept().len()), (count, 4));
    let losses = receiver.finish(SOON);
    assert_eq!((count_of(&losses, LossKind::SpansInvalid), losses.len()), (1, 1), "{losses:?}");
}

/// Five spans in sixteen packets: a root, a client and a server span, an orphan, and one without its times.
const PACKETS: &[u8] = include_bytes!("../testdata/appdash.wire");

fn start_with(limits: Limits) -> (ReceiverHandle, Memory, String) {
    let memory = Memory::default();
    let receiver = Receiver::start(ReceiverOptions { limits, ..ReceiverOptions::default() }, Box::new(memory.clone())).unwrap();
    let address = receiver.appdash_endpoint().strip_prefix("tcp://").unwrap().to_owned();
    (receiver, memory, address)
}

fn names(memory: &Memory) -> Vec<String> {
    let mut names: Vec<_> = kept_spans(memory)
        .into_iter()
        .map(|(_, span)| {
            let unfinished = span.attributes.iter().any(|attribute| attribute.key == "longpole.unfinished");
            if unfinished { format!("{} (unfinished)", span.name) } else { span.name }
        })
        .collect();
    names.sort();
    names
}

const FIVE: [&str; 5] = [
    "/pulumirpc.Engine/Log",
    "/pulumirpc.ResourceProvider/Create",
    "/pulumirpc.ResourceProvider/Create",
    "newPlugin (unfinished)",
    "pulumi",
];

#[test]
fn appdash_packets_become_spans_however_they_are_cut_and_the_unfinished_one_at_the_end() {
    for part in [1, 7, 100, PACKETS.len()] {
        let (receiver, memory, address) = start_with(Limits::default());
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_nodelay(true).unwrap();
        for bytes in PACKETS.chunks(part) {
            stream.write_all(bytes).unwrap();
        }
        // The process at the other end is known as long as it is there.
        memory.wait_until(|state| !state.kept.is_empty());
        drop(stream);
        let losses = receiver.finish(SOON);
        assert_eq!((count_of(&losses, LossKind::SpansUnfinished), losses.len()), (1, 1), "{losses:?}");
        assert_eq!(names(&memory), FIVE, "in parts of {part}");
        assert!(memory.kept().iter().all(|(.., pid)| *pid == Some(std::process::id())));
        assert!(kept_spans(&memory).iter().all(|(scope, _)| scope == "appdash"));
    }
}

#[test]
fn the_end_of_the_run_ends_an_appdash_connection_that_stays_open() {
    let (receiver, memory, address) = start_with(Limits::default());
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(PACKETS).unwrap();
    let _idle = TcpStream::connect(&address).unwrap();
    let begun = Instant::now();
    let losses = receiver.finish(SOON);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    assert_eq!(names(&memory), FIVE);
    let counts = [LossKind::DrainTimedOut, LossKind::SpansUnfinished].map(|kind| count_of(&losses, kind));
    assert_eq!((counts, losses.len()), ([2, 1], 2), "two connections outlive the command: {losses:?}");
}

fn span(id: u64, name: &str) -> longpole_model::Span {
    let range = TimeRange { start: Timestamp(1_700_000_000_000_000_000), end: Timestamp(1_700_000_000_000_001_000) };
    let trace_id = TraceId::new(u128::from(1_u64).to_be_bytes()).unwrap();
    longpole_model::Span::new(trace_id, SpanId::new(id.to_be_bytes()).unwrap(), name, range)
}

#[test]
fn an_appdash_client_is_never_held_up_by_a_disk_that_hangs() {
    let (receiver, memory, address) = start_with(Limits::default());
    memory.set(|state| state.held = true);
    let mut large = span(1, "large");
    large.attributes.push("x", AttributeValue::Str("y".repeat(64 << 10).into()));
    let frames = encode_frames(&[large]);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_write_timeout(Some(SOON)).unwrap();
    // More than all buffers of the kernel, and more than all memory for bodies.
    let rounds = 2 * BODIES_IN_MEMORY_BYTES_MAX / frames.len();
    for _ in 0..rounds {
        stream.write_all(&frames).unwrap();
    }
    drop(stream);
    memory.set(|state| state.held = false);
    let losses = receiver.finish(SOON);
    let lost = count_of(&losses, LossKind::RequestsRefused);
    assert!(
        lost > 0 && losses.iter().all(|loss| loss.detail == "appdash spans that arrived faster than longpole could store them"),
        "{losses:?}"
    );
    assert_eq!(kept_spans(&memory).len() as u64 + lost, rounds as u64, "each is kept or counted");
}

#[test]
fn an_appdash_packet_that_is_too_large_is_left_out_and_the_others_are_kept() {
    let limits = Limits { packet_bytes_max: 1 << 10, ..Limits::default() };
    let (receiver, memory, address) = start_with(limits);
    let mut large = span(1, "large");
    large.attributes.push("x", AttributeValue::Str("y".repeat(2 << 10).into()));
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(&encode_frames(&[large, span(2, "small")])).unwrap();
    drop(stream);
    let losses = receiver.finish(SOON);
    assert_eq!(names(&memory), ["large", "small"], "only the one annotation is missing");
    assert_eq!(losses.iter().map(|loss| loss.count).sum::<u64>(), 1, "{losses:?}");
}

#[test]
fn what_is_no_appdash_ends_its_own_connection_only() {
    let (receiver, memory, address) = start_with(Limits::default());
    let mut wrong = TcpStream::connect(&address).unwrap();
    let mut right = TcpStream::connect(&address).unwrap();
    wrong.write_all(&[&[0x05][..], b"GET / HTTP/1.1\r\n\r\n"].concat()).unwrap();
    assert_eq!(wrong.read(&mut [0]).unwrap_or(0), 0, "closed");
    right.write_all(PACKETS).unwrap();
    drop(right);
    let losses = receiver.finish(SOON);
    assert_eq!(names(&memory), FIVE);
    let details: Vec<_> = losses.iter().map(|loss| (loss.count, loss.detail.as_str())).collect();
    let [(1, refused), (1, rest), (1, unfinished)] = &details[..] else { panic!("{losses:?}") };
    assert!(
        refused.starts_with("appdash packet: ") && rest.contains("cut off") && unfinished.contains("shown up to the last time known"),
        "{losses:?}"
    );
}

#[test]
fn more_appdash_connections_than_there_are_places_for_are_closed_at_once() {
    let (receiver, _, address) = start_with(Limits::default());
    let mut open: Vec<_> = (0..APPDASH_CONNECTIONS_MAX).map(|_| TcpStream::connect(&address).unwrap()).collect();
    assert_eq!(TcpStream::connect(&address).unwrap().read(&mut [0]).unwrap_or(0), 0);
    for stream in &mut open {
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
    drop(open);
    assert_eq!(count_of(&receiver.finish(SOON), LossKind::RequestsRefused), 1);
}

#[test]
fn idle_appdash_connections_of_one_process_make_room_for_others() {
    let (receiver, memory, address) = start_with(Limits::default());
    let connect = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(PACKETS).unwrap();
        stream
    };
    let mut open = Vec::new();
    for count in 1..=APPDASH_CONNECTIONS_MAX {
        open.push(connect());
        // Then its process is known, too.
        let begun = Instant::now();
        while memory.kept().len() < count {
            assert!(begun.elapsed() < SOON);
            thread::yield_now();
        }
    }
    open.push(connect());
    let begun = Instant::now();
    while memory.kept().len() <= APPDASH_CONNECTIONS_MAX {
        assert!(begun.elapsed() < SOON, "the new one is served");
        thread::yield_now();
    }
    assert_eq!(open[0].read(&mut [0]).unwrap_or(0), 0, "the longest idle one is closed");
    open[1].set_nonblocking(true).unwrap();
    assert_eq!(open[1].read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(open);
    let losses = receiver.finish(SOON);
    assert!(losses.iter().any(|loss| loss.count == 1 && loss.detail.contains("of a process that had the most")), "{losses:?}");
}

/// A body of a request that is sent piece by piece.
struct Pieces(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// One message of the stream, as the engine sends it.
fn event(json: &str) -> Bytes {
    #[derive(prost::Message)]
    struct EventRequest {
        #[prost(string, tag = "1")]
        event: String,
    }
    grpc_frame(&EventRequest { event: format!("{json}\n") }.encode_to_vec(), false)
}

const PRE: &str = r#"{"sequence":7,"timestamp":1774510200,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:dev::proj::a:b:C::n",
    "type":"a:b:C","old":null,"new":{"type":"a:b:C","urn":"urn:pulumi:dev::proj::a:b:C::n","parent":"urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev",
    "inputs":{"password":"hunter2"},"outputs":{"token":"hunter3"},"provider":"urn:pulumi:dev::proj::pulumi:providers:a::default::id"}}}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pulumis_event_stream_is_read_as_it_comes_and_answered_at_its_end() {
    let (receiver, memory) = start();
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", receiver.port())).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (pieces, body) = tokio::sync::mpsc::unbounded_channel();
    let request = http::Request::post("http://localhost/pulumirpc.Events/StreamEvents")
        .header("content-type", "application/grpc")
        .body(Pieces(body))
        .unwrap();
    let answer = tokio::spawn(async move { sender.send_request(request).await.unwrap() });
    // An event in two pieces, one that says nothing of a resource, and one that is no event.
    let pre = event(PRE);
    pieces.send(pre.slice(..9)).unwrap();
    pieces.send(pre.slice(9..)).unwrap();
    memory.wait_until(|state| state.resource_events.len() == 1);
    pieces.send(event(r#"{"sequence":8,"timestamp":1774510200,"stdoutEvent":{"message":"hello","color":"never"}}"#)).unwrap();
    pieces.send(event("{")).unwrap();
    assert!(!answer.is_finished(), "the answer comes at the end");
    drop(pieces);
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), 200);
    let collected = answer.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap().get("grpc-status").unwrap(), "0");
    assert_eq!(collected.to_bytes(), grpc_frame(b"", false), "google.protobuf.Empty");

    let losses = tokio::task::spawn_blocking(move || receiver.finish(SOON)).await.unwrap();
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 1, "{losses:?}");
    let events = memory.0.0.lock().unwrap().resource_events.clone();
    let [kept] = &events[..] else { panic!("{events:?}") };
    assert!(!format!("{kept:?}").contains("hunter"), "{kept:?}");
    assert_eq!((kept.step, kept.op.as_str()), (ResourceStep::Pre, "create"), "{kept:?}");
    assert_eq!((kept.resource_type.as_str(), kept.urn.as_str()), ("a:b:C", "urn:pulumi:dev::proj::a:b:C::n"));
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let received = Duration::from_nanos(kept.time.unix_nanos().unsigned_abs());
    assert!(now.saturating_sub(received) < SOON, "{kept:?}");
}

#[test]
fn an_event_stream_of_a_process_that_lives_on_does_not_hold_up_the_end_and_one_that_was_cut_is_counted() {
    let (receiver, memory) = start();
    // The call without its end, cut inside its second event: first by nobody, then by the end of the process.
    let mut call = grpc_call("/pulumirpc.Events/StreamEvents", b"");
    let (event, cut) = (event(PRE), event(PRE).slice(..20));
    call.truncate(call.len() - 14);
    for piece in [event, cut] {
        call.extend((piece.len() as u32).to_be_bytes()[1..].iter());
        call.extend([0, 0, 0, 0, 0, 1]);
        call.extend(piece);
    }
    let mut lives = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    lives.write_all(&call).unwrap();
    TcpStream::connect(("127.0.0.1", receiver.port())).unwrap().write_all(&call).unwrap();
    memory.wait_until(|state| state.resource_events.len() == 2);
    let begun = Instant::now();
    let losses = receiver.finish(SOON);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 1, "{losses:?}");
    assert_eq!(count_of(&losses, LossKind::DrainTimedOut), 1, "{losses:?}");
}
