//! The door against clients that stall, and against those who may not send.

use std::sync::atomic::{AtomicBool, Ordering};

use longpole_model::SpanBatch;
use longpole_wire::Limits;
use opentelemetry_proto::tonic::common::v1::KeyValueList;
use opentelemetry_proto::tonic::trace::v1::span::Event;

use super::*;
use crate::limits::{CLOSED_BODY_BYTES_MAX, CLOSED_MAX, CLOSED_WAITING_MAX, HEAD_FIELDS_MAX, HEAD_TIME_MAX, URI_BYTES_MAX};

const HEAD: &str = "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n";

/// A connection that has sent this and goes on no more.
fn stalled(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn refused(losses: &[Loss], why: &str) -> u64 {
    losses.iter().filter(|loss| loss.kind == LossKind::RequestsRefused && loss.detail.contains(why)).map(|loss| loss.count).sum()
}

#[test]
fn half_requests_make_room_for_whole_ones_and_are_counted() {
    let (receiver, memory) = start();
    let body = spans(&["whole"]).encode_to_vec();
    let half_call = grpc_call(grpc_path_of(Signal::Traces), &body);
    let halves =
        [HEAD.as_bytes(), &format!("{HEAD}Content-Length: 9\r\n\r\nx").into_bytes(), &half_call[..half_call.len() - 1]].map(<[u8]>::to_vec);
    let held: Vec<_> = (0..2 * CONNECTIONS_MAX).map(|i| stalled(receiver.port(), &halves[i % halves.len()])).collect();
    let begun = Instant::now();
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &body).status, 200);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    assert_eq!(memory.kept().len(), 1);
    drop(held);
    let losses = receiver.finish(SOON);
    assert!(refused(&losses, "others needed their connections") > CONNECTIONS_MAX as u64, "{losses:?}");
}

#[test]
fn a_request_does_not_wait_for_a_costly_one() {
    let (receiver, memory) = start();
    // Judging this many texts takes a second.
    let mut large = spans(&["mysql --user=u --execute='select 1' -h db.example"]);
    let all = &mut large.resource_spans[0].scope_spans[0].spans;
    let span = all[0].clone();
    all.extend((1..300_000_u64).map(|id| Span { span_id: (id << 8).to_be_bytes().to_vec(), ..span.clone() }));
    let large = large.encode_to_vec();
    assert!(large.len() < BODY_BYTES_MAX);
    let mut costly = stalled(receiver.port(), &[format!("{HEAD}Content-Length: {}\r\n\r\n", large.len()).as_bytes(), &large].concat());
    let small = spans(&["small"]).encode_to_vec();
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &small).status, 200);
    assert_eq!(memory.kept().len(), 1, "the costly request was kept first");
    assert_eq!(read_answer(&mut costly).status, 200);
    assert_eq!(memory.kept().len(), 2);
}

#[test]
fn what_says_nothing_is_not_kept_and_counted() {
    let (receiver, memory) = start();
    let mut request = spans(&["small"]);
    let without = request.encode_to_vec();
    let span = &mut request.resource_spans[0].scope_spans[0].spans[0];
    span.events = vec![Event::default(); 10_000];
    let map = KeyValueList { values: vec![KeyValue::default(); 10_000] };
    span.attributes.push(attribute("map", Value::KvlistValue(map)));
    let body = request.encode_to_vec();
    assert!(body.len() > 40_000);
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &body).status, 200);
    // More spans than are written anew at once, all of them behind their resource.
    let mut many = spans(&["many"]);
    let all = &mut many.resource_spans[0].scope_spans[0].spans;
    let span = all[0].clone();
    all.extend((1..3000_u64).map(|id| Span { span_id: (id << 8).to_be_bytes().to_vec(), ..span.clone() }));
    all[2999].events = vec![Event::default()];
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &many.encode_to_vec()).status, 200);
    let kept = memory.kept();
    assert!(kept[0].0.len() < without.len() + 100, "{} bytes", kept[0].0.len());
    let mut batch = SpanBatch::default();
    longpole_wire::otlp::trace::decode(&kept[1].0, &Limits::default(), &mut batch).unwrap();
    assert_eq!((batch.spans.len(), batch.spans.iter().filter(|span| span.resource == batch.spans[0].resource).count()), (3000, 3000));
    let losses = receiver.finish(SOON);
    let cut: Vec<_> = losses.iter().filter(|loss| loss.kind == LossKind::AttributesCut).collect();
    assert!(matches!(cut[..], [loss] if loss.count == 20_001 && loss.detail.contains("say nothing")), "{losses:?}");
}

#[test]
fn a_request_that_costs_too_much_is_cut_and_keeps_what_is_judged() {
    let (receiver, memory) = start();
    let mut request = spans(&["first", "costly", "last"]);
    // Each byte of these leads to all that follow, and the texts are most of the request.
    let costly = "pwd=/[{".repeat(300);
    let all = &mut request.resource_spans[0].scope_spans[0].spans;
    all[1].attributes = (0..2000).map(|i| attribute(&format!("key{i}"), Value::StringValue(costly.clone()))).collect();
    all[2].attributes = vec![attribute("number", Value::IntValue(7)), attribute("note", Value::StringValue("harmless".to_owned()))];
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &request.encode_to_vec()).status, 200);
    let mut batch = SpanBatch::default();
    longpole_wire::otlp::trace::decode(&memory.kept()[0].0, &Limits::default(), &mut batch).unwrap();
    let [first, _, last] = &batch.spans[..] else { panic!("{}", batch.spans.len()) };
    assert_eq!((&*first.name, &*last.name), ("first", "[redacted]"));
    assert_eq!(last.attributes.0[0].value, longpole_model::AttributeValue::Int(7));
    assert_eq!(last.attributes.0[1].value.as_str(), Some("[redacted]"));
    let losses = receiver.finish(SOON);
    assert!(losses.iter().any(|loss| loss.kind == LossKind::ValuesRedacted && loss.count > 1000), "{losses:?}");
}

#[test]
fn a_body_that_stalls_gives_its_memory_to_others() {
    let (receiver, memory) = start();
    let half = BODY_BYTES_MAX / 4 * 3;
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", half + 1);
    let held = stalled(receiver.port(), &[head.as_bytes(), &vec![0; half]].concat());
    // More than is left, and no spans.
    let large = vec![0; half];
    let begun = Instant::now();
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &large).status, 400);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    let mut held = held;
    assert_eq!(read_answer(&mut held).status, 503);
    assert_eq!(memory.kept(), []);
    let losses = receiver.finish(SOON);
    assert_eq!(refused(&losses, "while other requests needed its memory"), 1, "{losses:?}");
}

#[test]
fn what_does_not_go_on_is_cut_also_when_nobody_needs_its_place() {
    let (receiver, _) = start();
    let port = receiver.port();
    let mut body = stalled(port, format!("{HEAD}Content-Length: 9\r\n\r\nx").as_bytes());
    let mut idle = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(raw(&mut idle, &format!("POST /v1/traces HTTP/1.1\r\n{PROTOBUF}"), b"").status, 200);
    let call = grpc_call(grpc_path_of(Signal::Traces), b"");
    let heads = [HEAD.as_bytes(), &b"PRI * HT"[..], &call[..30], &call[..50]];
    let heads: Vec<_> = heads.iter().map(|bytes| stalled(port, bytes)).collect();
    let begun = Instant::now();
    assert_eq!(read_answer(&mut body).status, 408);
    for mut head in heads {
        head.set_read_timeout(Some(SOON)).unwrap();
        let mut rest = Vec::new();
        // A reset ends it as well.
        let _ = head.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
    }
    assert!(begun.elapsed() >= HEAD_TIME_MAX / 2 && begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    assert_eq!(raw(&mut idle, &format!("POST /v1/traces HTTP/1.1\r\n{PROTOBUF}"), b"").status, 200, "who is idle stays");
    drop(idle);
    let losses = receiver.finish(SOON);
    assert_eq!((refused(&losses, "requests whose head did not finish"), refused(&losses, "body too slow")), (4, 1), "{losses:?}");
}

#[test]
fn a_refused_client_gets_the_answer_in_its_protocol() {
    let (receiver, memory) = start();
    let body = spans(&["a"]).encode_to_vec();
    let answer = post(receiver.port(), "/v1/traces", &format!("{PROTOBUF}Origin: https://evil.example\r\n"), &body);
    let (code, message) = answer.rpc_status();
    assert_eq!((answer.status, code), (403, 7));
    assert_eq!(message, "origin https://evil.example: web pages may not send spans");
    assert_eq!(memory.kept(), []);
    // What the recording says is in no words of a page.
    for i in 0..40 {
        assert_eq!(post(receiver.port(), "/v1/traces", &format!("{PROTOBUF}Origin: https://evil{i}.example\r\n"), &body).status, 403);
        let rebound = format!("POST /v1/traces HTTP/1.1\r\nHost: evil{i}.example\r\n{PROTOBUF}Content-Length: 0\r\n\r\n");
        assert_eq!(read_answer(&mut stalled(receiver.port(), rebound.as_bytes())).status, 403);
    }
    let losses = receiver.finish(SOON);
    assert_eq!((losses.len(), refused(&losses, "web pages"), refused(&losses, "another host")), (2, 41, 40), "{losses:?}");
    assert!(!format!("{losses:?}").contains("evil"), "{losses:?}");
}

#[test]
fn who_is_gone_writes_no_word_into_the_recording() {
    let (receiver, memory) = start_run(|_, _| Ok(None));
    let send = |head: &str, body: &[u8]| stalled(receiver.port(), &[head.as_bytes(), body].concat());
    let mut sent = 0;
    for i in 0..20 {
        for headers in [
            format!("/v1/traces HTTP/1.1\r\nHost: evil{i}\r\n{PROTOBUF}"),
            format!("/v1/traces HTTP/1.1\r\nHost: localhost\r\nOrigin: evil{i}\r\n{PROTOBUF}"),
            format!("/v1/evil{i} HTTP/1.1\r\nHost: localhost\r\n{PROTOBUF}"),
            format!("/v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: evil{i}\r\n"),
            format!("/v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: evil{i}\r\n{PROTOBUF}"),
            format!("/v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n{PROTOBUF}"),
        ] {
            let answer = read_answer(&mut send(&format!("POST {headers}Content-Length: 4\r\n\r\n"), b"evil"));
            assert!((400..500).contains(&answer.status), "{headers}");
            sent += 1;
        }
    }
    // A body without its end.
    drop(send(&format!("{HEAD}Content-Length: 9\r\n\r\n"), b"evil"));
    assert_eq!(memory.kept(), []);
    assert_eq!(receiver.finish(SOON), [Loss::new(LossKind::RequestsRefused, sent + 1, UNPROVEN)]);
}

const RUN: &str = "00f067aa0ba902b70000000000000001";

/// Says which run it is, and lets nobody in.
const NAME: &str = "00000000000000000000000000f067aa";

/// A receiver of a run, to which the kernel says this of every client.
fn start_run(ask: AskOwner) -> (ReceiverHandle, Memory) {
    let memory = Memory::default();
    let options = ReceiverOptions {
        senders: AllowedSenders::Run { id: RUN.to_owned(), name: NAME.to_owned() },
        ask_owner: Some(ask),
        ..ReceiverOptions::default()
    };
    (Receiver::start(options, Box::new(memory.clone())).unwrap(), memory)
}

#[test]
fn another_user_is_refused_and_our_own_is_not() {
    let (receiver, memory) = start_run(|_, _| Ok(Some(SocketOwner { uid: 4_000_000_000, inode: 1 })));
    let body = spans(&["a"]).encode_to_vec();
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &body).status, 403);
    assert_eq!(post(receiver.port(), "/api/v2/spans", JSON, b"[]").status, 403);
    let mut appdash = TcpStream::connect(receiver.appdash_endpoint().strip_prefix("tcp://").unwrap()).unwrap();
    assert_eq!(appdash.read(&mut [0]).unwrap_or(0), 0, "closed");
    assert_eq!(memory.kept(), []);
    let losses = receiver.finish(SOON);
    assert_eq!(
        losses,
        [Loss::new(
            LossKind::RequestsRefused,
            3,
            "connections of another user (uid 4000000000), from processes that do not belong to the run"
        )]
    );

    // If the kernel does not answer the quick query, the tables give the same result.
    let (receiver, memory) = start_run(|_, _| Err(std::io::ErrorKind::Unsupported.into()));
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &body).status, 200);
    assert_eq!(memory.kept().len(), 1);
    assert_eq!(receiver.finish(SOON), []);
}

#[test]
fn a_user_who_floods_keeps_no_other_from_a_check() {
    static UID: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(4_000_000_000);
    let (receiver, memory) = start_run(|_, _| Ok(Some(SocketOwner { uid: UID.load(Ordering::SeqCst), inode: 1 })));
    let mut held: Vec<_> = (0..100).map(|_| stalled(receiver.port(), b"")).collect();
    // The last of them was accepted, and closed at once: there is no place for it.
    assert_eq!(held.last_mut().unwrap().read(&mut [0]).unwrap_or(0), 0);
    UID.store(4_000_000_001, Ordering::SeqCst);
    let body = spans(&["a"]).encode_to_vec();
    for _ in 0..8 {
        assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &body).status, 403, "the receiver checked it");
    }
    assert_eq!(memory.kept(), []);
    drop(held);
    let losses = receiver.finish(SOON);
    assert_eq!(
        refused(&losses, "connections of another user (uid 4000000001), from processes that do not belong to the run"),
        8,
        "{losses:?}"
    );
    let (judged, others) = (refused(&losses, "(uid 4000000000), from processes that do not"), refused(&losses, refusal::UNCHECKED));
    assert!(judged > 0 && others > 50 && judged + others <= 100, "{losses:?}");
}

#[test]
fn connections_of_others_do_not_hold_up_the_end() {
    // Connections of another user's living process, and closed ones.
    let asks: [AskOwner; 2] = [|_, _| Ok(Some(SocketOwner { uid: 4_000_000_000, inode: 1 })), |_, _| Ok(None)];
    for ask in asks {
        let (receiver, memory) = start_run(ask);
        let port = receiver.port();
        let over = AtomicBool::new(false);
        let (took, losses) = std::thread::scope(|scope| {
            for _ in 0..4 {
                // Until the port is closed, and as fast as it goes.
                scope.spawn(|| {
                    let mut last = Ok(());
                    while !over.load(Ordering::SeqCst) && last.is_ok() {
                        last = TcpStream::connect(("127.0.0.1", port)).map(drop);
                    }
                });
            }
            drop(stalled(port, b""));
            let begun = Instant::now();
            let losses = receiver.finish(Duration::from_secs(30));
            over.store(true, Ordering::SeqCst);
            (begun.elapsed(), losses)
        });
        assert!(took < Duration::from_secs(10), "{took:?}: {losses:?}");
        assert_eq!(memory.kept(), []);
        assert!(losses.iter().all(|loss| loss.kind == LossKind::RequestsRefused), "nothing was still being sent: {losses:?}");
    }
}

#[test]
fn spans_of_who_is_gone_are_taken_if_they_name_the_run() {
    let (receiver, memory) = start_run(|_, _| Ok(None));
    let run = |id: &str| vec![attribute("longpole.run.id", Value::StringValue(id.to_owned()))];
    let send = |request: &ExportTraceServiceRequest| post(receiver.port(), "/v1/traces", PROTOBUF, &request.encode_to_vec()).status;
    assert_eq!(send(&request_of(&["of the run"], run(RUN))), 200);
    assert_eq!(send(&request_of(&["of another"], run("00f067aa0ba902b70000000000000002"))), 403);
    assert_eq!(send(&spans(&["of nobody"])), 403);
    let mut both = request_of(&["of the run"], run(RUN));
    both.resource_spans.extend(spans(&["beside it"]).resource_spans);
    assert_eq!(send(&both), 403);
    assert_eq!(post(receiver.port(), "/v1/logs", PROTOBUF, &logs(1).encode_to_vec()).status, 403);
    assert_eq!(post(receiver.port(), "/api/v2/spans", JSON, b"[]").status, 403);
    // Nobody is looked for: the address may be another's by now.
    let pids: Vec<_> = memory.kept().into_iter().map(|(_, _, pid)| pid).collect();
    assert_eq!(pids, [None]);
    let losses = receiver.finish(SOON);
    assert_eq!(refused(&losses, "closed their connection before longpole could identify them"), 5, "{losses:?}");
}

#[test]
fn what_who_is_gone_sends_beside_proven_spans_is_not_kept() {
    let (receiver, memory) = start_run(|_, _| Ok(None));
    let run = || vec![attribute("longpole.run.id", Value::StringValue(RUN.to_owned()))];
    let send = |headers: &str, body: &[u8]| post(receiver.port(), "/v1/traces", &format!("{PROTOBUF}{headers}"), body).status;
    let filler = || vec![attribute("x", Value::StringValue("y".repeat(1 << 10)))];
    // Resources without a span: of nobody, and of the run; a field that nobody knows; a resource of nobody beside a span of the run.
    assert_eq!(send("", &request_of(&[], filler()).encode_to_vec()), 403);
    assert_eq!(send("", &request_of(&[], run()).encode_to_vec()), 403);
    assert_eq!(send("", &[&[0x7a, 32][..], RUN.as_bytes()].concat()), 403);
    assert_eq!(send("", b""), 403);
    let mut beside = request_of(&["of the run"], run());
    beside.resource_spans.extend(request_of(&[], filler()).resource_spans);
    assert_eq!(send("", &beside.encode_to_vec()), 403);
    // More than a last batch, as sent and as inflated.
    let large = request_of(&["large"], [run(), vec![attribute("x", Value::StringValue("y".repeat(CLOSED_BODY_BYTES_MAX)))]].concat());
    let large = large.encode_to_vec();
    assert_eq!(send("Content-Encoding: gzip\r\n", &gzip(&large)), 413);
    // Nothing more of it is read.
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", CLOSED_BODY_BYTES_MAX + 1);
    assert_eq!(read_answer(&mut stalled(receiver.port(), head.as_bytes())).status, 413);
    assert_eq!(memory.kept(), []);
    let mut appdash = TcpStream::connect(receiver.appdash_endpoint().strip_prefix("tcp://").unwrap()).unwrap();
    assert_eq!(appdash.read(&mut [0]).unwrap_or(0), 0, "closed at once");
    let losses = receiver.finish(SOON);
    assert_eq!(refused(&losses, "closed their connection before longpole could identify them"), 8, "{losses:?}");
}

#[test]
fn clients_that_are_gone_have_places_of_their_own() {
    static ARE_GONE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);
    let are_gone = |gone| ARE_GONE.store(gone, Ordering::SeqCst);
    let (receiver, memory) = start_run(|_, _| {
        let gone = ARE_GONE.load(Ordering::SeqCst);
        Ok((!gone).then_some(SocketOwner { uid: 0, inode: 1 }))
    });
    let half = HEAD.as_bytes();
    let held: Vec<_> = (0..CLOSED_MAX + CLOSED_WAITING_MAX).map(|_| stalled(receiver.port(), half)).collect();
    for _ in 0..CONNECTIONS_MAX {
        let mut over = stalled(receiver.port(), b"");
        assert_eq!(over.read(&mut [0]).unwrap_or(0), 0, "closed at once");
    }
    are_gone(false);
    let body = spans(&["own"]).encode_to_vec();
    let own: Vec<_> = (0..CONNECTIONS_MAX - CLOSED_MAX).map(|_| stalled(receiver.port(), half)).collect();
    for mut stream in own {
        write!(stream, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body).unwrap();
        assert_eq!(read_answer(&mut stream).status, 200);
    }
    assert_eq!(memory.kept().len(), CONNECTIONS_MAX - CLOSED_MAX);
    drop(held);
    let losses = receiver.finish(SOON);
    assert_eq!(refused(&losses, "closed their connection before longpole could identify them"), CONNECTIONS_MAX as u64, "{losses:?}");
    assert_eq!(refused(&losses, "others needed their connections"), 0, "nobody's place was needed: {losses:?}");
}

#[test]
fn what_is_kept_names_the_run_and_not_its_secret() {
    let (receiver, memory) = start_run(|_, _| Ok(Some(SocketOwner { uid: 0, inode: 1 })));
    let run = vec![attribute("longpole.run.id", Value::StringValue(RUN.to_owned()))];
    let request = request_of(&["a"], run);
    let json = serde_json::to_vec(&request).unwrap();
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &request.encode_to_vec()).status, 200);
    assert_eq!(post(receiver.port(), "/v1/traces", &format!("{JSON}Content-Encoding: gzip\r\n"), &gzip(&json)).status, 200);
    let zipkin = V2_OF_THE_RUN.replace("RUN", RUN);
    assert_eq!(post(receiver.port(), "/api/v2/spans", JSON, zipkin.as_bytes()).status, 202);
    assert_eq!(receiver.finish(SOON), []);
    let kept = memory.kept();
    assert_eq!(kept.len(), 3);
    for (bytes, ..) in kept {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(RUN) && text.contains("longpole.run.id") && text.contains(NAME), "{text}");
    }
}

/// A span whose tags are what OpenTelemetry's exporter for Zipkin makes of its resource.
const V2_OF_THE_RUN: &str = r#"[{"traceId":"5b6794d1b1db5ba6","id":"6c9d6a3ef7b4d6cf","name":"get","timestamp":1000,"duration":5,
    "tags":{"longpole.run.id":"RUN"}}]"#;

#[test]
fn who_does_not_read_its_answers_makes_room_for_others() {
    let (receiver, memory) = start();
    let request = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let requests = request.repeat(2_000);
    // Small buffers, which are soon full.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connect = async || {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        socket.connect(([127, 0, 0, 1], receiver.port()).into()).await.unwrap().into_std().unwrap()
    };
    let held: Vec<_> = (0..CONNECTIONS_MAX).map(|_| runtime.block_on(connect())).collect();
    // Until nobody's requests are taken any more, for a time that is long on loopback.
    let (mut sent, mut quiet) = (vec![0; held.len()], Instant::now());
    while quiet.elapsed() < Duration::from_millis(100) {
        for (stream, sent) in held.iter().zip(&mut sent) {
            if let Ok(length) = (&*stream).write(&requests[*sent % request.len()..]) {
                *sent += length;
                quiet = Instant::now();
            }
        }
    }
    let begun = Instant::now();
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &spans(&["whole"]).encode_to_vec()).status, 200);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
    assert_eq!(memory.kept().len(), 1);
    drop(held);
    receiver.finish(SOON);
}

/// Connections that send these bytes again and again, until the value is dropped.
fn busy(port: u16, first: &'static [u8], again: &[u8]) -> (Arc<AtomicBool>, thread::JoinHandle<()>) {
    let again = again.repeat(1_000);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let mut streams: Vec<_> = (0..CONNECTIONS_MAX).map(|_| (stalled(port, first), 0)).collect();
    streams.iter().for_each(|(stream, _)| stream.set_nonblocking(true).unwrap());
    let sending = thread::spawn(move || {
        let mut answers = vec![0; 1 << 16];
        while !is_over.load(Ordering::Relaxed) {
            for (stream, sent) in &mut streams {
                if let Ok(length) = stream.write(&again[*sent..]) {
                    *sent = (*sent + length) % again.len();
                }
                let _ = stream.read(&mut answers);
            }
        }
    });
    (over, sending)
}

#[test]
fn heads_with_too_many_fields_and_frames_without_requests_are_refused() {
    let (receiver, memory) = start();
    let fields: String = (0..HEAD_FIELDS_MAX + 1).map(|number| format!("x-{number}: 1\r\n")).collect();
    let answer = post(receiver.port(), "/v1/traces", &format!("{PROTOBUF}{fields}"), &spans(&["many fields"]).encode_to_vec());
    assert_eq!(answer.status, 431, "{}", answer.head);
    let path = format!("/v1/traces?{}", "x".repeat(URI_BYTES_MAX));
    assert_eq!(post(receiver.port(), &path, PROTOBUF, b"").status, 414);
    // A refusal quotes no whole path.
    let path = format!("/{}", "x".repeat(URI_BYTES_MAX / 2));
    let answer = post(receiver.port(), &path, PROTOBUF, b"");
    assert!(answer.status == 404 && answer.body.len() < 2_000, "{}", answer.body.len());
    // PING without an end.
    let ping = b"\0\0\x08\x06\0\0\0\0\0longpole".repeat(100);
    let mut stream = stalled(receiver.port(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    stream.set_nonblocking(true).unwrap();
    let (begun, mut answers) = (Instant::now(), vec![0; 1 << 16]);
    let is_open = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    while stream.write(&ping).map_or_else(|error| is_open(&error), |_| true) {
        while stream.read(&mut answers).is_ok_and(|length| length > 0) {}
        assert!(begun.elapsed() < SOON, "it goes on");
    }
    assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &spans(&["whole"]).encode_to_vec()).status, 200);
    assert_eq!(memory.kept().len(), 1);
    let losses = receiver.finish(SOON);
    assert_eq!((refused(&losses, "too large a head"), refused(&losses, "without requests")), (1, 1), "{losses:?}");
}

#[test]
fn busy_connections_of_one_process_make_room_for_others() {
    // Frames of HTTP/2 (PRIORITY) without a request; requests without a pause.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let priority = b"\0\0\x05\x02\0\0\0\0\x63\0\0\0\0\x10";
    let metrics = b"POST /v1/metrics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    for (first, again) in [(&preface[..], &priority[..]), (b"", metrics)] {
        let (receiver, memory) = start();
        let (over, sending) = busy(receiver.port(), first, again);
        let begun = Instant::now();
        assert_eq!(post(receiver.port(), "/v1/traces", PROTOBUF, &spans(&["whole"]).encode_to_vec()).status, 200);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert_eq!(memory.kept().len(), 1);
        over.store(true, Ordering::Relaxed);
        sending.join().unwrap();
        let losses = receiver.finish(SOON);
        assert!(refused(&losses, "they were cut") > 0, "{losses:?}");
    }
}
