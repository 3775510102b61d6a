//! The door of a server: clients whose processes nobody looks for, and queries.

use axum::routing::get;
use longpole_wire::otlp::decode_retry_delay;

use super::super::connection::{Connection, Speech, Stranger};
use super::*;
use crate::limits::{APPDASH_CONNECTIONS_MAX, MEMORY_BYTES_MAX};

const PACKETS: &[u8] = include_bytes!("../testdata/appdash.wire");

/// Bytes of a large answer.
const ANSWER_BYTES: usize = 8 << 20;

fn server_clients() -> Clients {
    let local = || SocketAddr::from(([127, 0, 0, 1], 0));
    let queries = Router::new().route("/large", get(async || vec![7; ANSWER_BYTES]));
    Clients::Anybody {
        tokens: None,
        http: vec![HttpPort { address: local(), queries: Some(queries) }],
        udp: Vec::new(),
        appdash: vec![local()],
        any_host: false,
        origins: AllowedOrigins::default(),
    }
}

fn start_server() -> (ReceiverHandle, Memory, Arc<MemoryAccount>) {
    let (sink, memory) = (Memory::default(), Arc::<MemoryAccount>::default());
    let options = ReceiverOptions { clients: server_clients(), memory: Arc::clone(&memory), ..ReceiverOptions::default() };
    (Receiver::start(options, Box::new(sink.clone())).unwrap(), sink, memory)
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < SOON);
        thread::yield_now();
    }
}

fn answers(memory: &MemoryAccount) -> u64 {
    memory.shares().into_iter().find(|(of, _)| *of == "answers").unwrap().1
}

#[test]
fn idle_appdash_connections_make_room_for_others_whoever_has_them() {
    let (receiver, kept, _) = start_server();
    let address = receiver.appdash_endpoint().strip_prefix("tcp://").unwrap().to_owned();
    let connect = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(PACKETS).unwrap();
        stream
    };
    let mut open = Vec::new();
    for count in 1..=2 * APPDASH_CONNECTIONS_MAX {
        open.push(connect());
        wait_until(|| kept.kept().len() >= count);
    }
    assert_eq!(open[0].read(&mut [0]).unwrap_or(0), 0, "the longest idle one is closed");
    let newest = open.last_mut().unwrap();
    newest.set_nonblocking(true).unwrap();
    assert_eq!(newest.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(open);
    let losses = receiver.finish(SOON);
    let cut = losses.iter().find(|loss| loss.detail.contains("idle longest")).map(|loss| loss.count);
    assert_eq!(cut, Some(APPDASH_CONNECTIONS_MAX as u64), "{losses:?}");
}

/// The largest frame of HTTP/2 that a client takes without saying more.
const FRAME_BYTES_MAX: usize = 16 << 10;

#[test]
fn an_answer_that_nobody_reads_counts_and_is_cut_also_in_http_2() {
    let (receiver, _, memory) = start_server();
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let get = b"\x82\x86\x04\x06/large\x41\x09localhost";
    // Two streams, with the window that each client has at the beginning.
    let requests = [frame(4, 0, 0, b""), frame(1, 5, 1, get), frame(1, 5, 3, get)].concat();
    let mut stream = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &requests].concat()).unwrap();
    wait_until(|| answers(&memory) >= 2 * ANSWER_BYTES as u64);
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut received = Vec::new();
    // What the window allows, and then the end.
    let _ = stream.read_to_end(&mut received);
    assert!(received.len() < (64 << 10) + 2 * FRAME_BYTES_MAX, "{}", received.len());
    wait_until(|| answers(&memory) == 0);
    // Others read theirs whole, in HTTP/1 and slowly.
    let mut reader = TcpStream::connect(("127.0.0.1", receiver.port())).unwrap();
    reader.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    wait_until(|| answers(&memory) > 0);
    let mut received = Vec::new();
    reader.read_to_end(&mut received).unwrap();
    assert!(received.ends_with(&[7; 100]) && received.len() > ANSWER_BYTES);
    wait_until(|| answers(&memory) == 0);
}

#[tokio::test]
async fn requests_are_refused_before_memory_is_short_and_may_come_again() {
    let (receiver, kept, memory) = start_server();
    let (port, endpoint) = (receiver.port(), receiver.endpoint());
    memory.note_store(MEMORY_BYTES_MAX / 10 * 9);
    let body = spans(&["later"]).encode_to_vec();
    let send = move || post(port, "/v1/traces", PROTOBUF, &body);
    // Each of them gets another time.
    for (expected, path) in (1..).zip(["/v1/traces", "/api/v2/spans", "/api/traces"]) {
        let kind = if path == "/api/traces" { "Content-Type: application/x-thrift\r\n" } else { PROTOBUF };
        let answer = tokio::task::spawn_blocking(move || post(port, path, kind, b"x")).await.unwrap();
        let secs: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert_eq!(answer.status, 429, "{path}");
        assert_eq!(secs, expected, "{path}");
    }
    let mut client = TraceServiceClient::connect(endpoint).await.unwrap();
    let refused = client.export(spans(&["later"])).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("try again"), "{refused:?}");
    let details = refused.metadata().get_bin("grpc-status-details-bin").map(|details| details.as_encoded_bytes().to_vec());
    let details = details.unwrap_or_default();
    let delay = decode_retry_delay(std::str::from_utf8(&details).unwrap());
    assert!(delay.is_some_and(|delay| delay >= Duration::from_secs(1)) || !refused.details().is_empty(), "{refused:?}");
    assert_eq!((kept.kept().len(), memory.refused()), (0, 4));
    memory.note_store(0);
    assert_eq!(tokio::task::spawn_blocking(send).await.unwrap().status, 200);
    assert_eq!(kept.kept().len(), 1);
    drop(client);
    let losses = tokio::task::spawn_blocking(move || receiver.finish(SOON)).await.unwrap();
    assert_eq!(count_of(&losses, LossKind::RequestsRefused), 4, "{losses:?}");
}

#[test]
fn requests_of_a_server_count_for_the_process_whatever_its_connections() {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let ours = listener.local_addr().unwrap();
    let mut finder = crate::peer_process::PeerFinder::new(crate::peer_process::CommandProcess::default());
    let mut sender_of = |peer: SocketAddr| {
        let nobody = super::super::allowed_senders::Sender { owner: None, is_gone: false };
        let connection = Connection::new(Speech::Http, [peer, ours], nobody, Arc::default());
        assert_eq!(connection.stranger(&mut finder), None, "the receiver of a run finds the processes itself");
        connection.has_no_process();
        connection.stranger(&mut finder).unwrap()
    };
    let clients = [0, 1].map(|_| TcpStream::connect(ours).unwrap());
    for client in &clients {
        assert_eq!(sender_of(client.local_addr().unwrap()), Stranger::Process(std::process::id()));
    }
    // Others count for their addresses.
    let elsewhere = SocketAddr::from(([192, 0, 2, 7], 4000));
    assert_eq!(sender_of(elsewhere), Stranger::Address(elsewhere.ip()));
}

#[test]
fn who_connects_before_the_receiver_starts_is_answered_when_it_does() {
    let options = ReceiverOptions { clients: server_clients(), ..ReceiverOptions::default() };
    let ports = OpenPorts::of(&options.clients).unwrap();
    let port = ports.another_listener(0).unwrap().local_addr().unwrap().port();
    let mut early = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = spans(&["early"]).encode_to_vec();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    early.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    let kept = Memory::default();
    let receiver = Receiver::start_at(ports, options, Box::new(kept.clone())).unwrap();
    assert_eq!((receiver.port(), read_answer(&mut early).status), (port, 200));
    assert_eq!(kept.kept().len(), 1);
}
