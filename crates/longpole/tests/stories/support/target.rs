//! Targets of other people that are not what they should be: each a port, and what somebody does who connects to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

/// What every connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A port that nobody listens at. One that was bound and given back would be somebody else's soon.
pub(crate) fn dead() -> String {
    "127.0.0.1:1".to_owned()
}

/// A port at which each connection is served by a thread of its own.
pub(crate) fn serving(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A port that takes everything, never says a word and never hangs up; it tells when bytes came.
pub(crate) fn silent() -> (String, Receiver<()>) {
    let (came, comes) = mpsc::channel();
    let came = Mutex::new(came);
    let address = serving(move |mut stream| {
        let came: Sender<()> = came.lock().unwrap().clone();
        let mut buffer = [0; 1 << 16];
        while let Ok(1..) = stream.read(&mut buffer) {
            // Nobody may want to know any more.
            came.send(()).ok();
        }
        loop {
            thread::park();
        }
    });
    (address, comes)
}

/// A port where each request of HTTP gets this answer: a status line and headers.
pub(crate) fn answering(head: &'static str) -> String {
    serving(move |stream| serve_http(stream, head))
}

/// Answers the requests of one connection. All of them come with their length.
pub(crate) fn serve_http(mut stream: impl Read + Write, head: &str) {
    loop {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            let Ok(1) = stream.read(&mut byte) else { return };
            request.push(byte[0]);
        }
        let request = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let length = request.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0").parse().unwrap();
        if stream.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        if stream.write_all(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n").as_bytes()).is_err() {
            return;
        }
    }
}

/// A port where each call of gRPC gets this status.
pub(crate) fn grpc(status: u8) -> String {
    serving(move |stream| serve_grpc(stream, status))
}

/// As much of HTTP/2 as a call of gRPC needs: its frames are read by their lengths, its headers not at all.
pub(crate) fn serve_grpc(mut stream: impl Read + Write, status: u8) {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    const ACK: u8 = 1;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }
    fn header(name: &str, value: &str) -> Vec<u8> {
        let mut out = vec![0, name.len() as u8];
        out.extend(name.bytes());
        out.push(value.len() as u8);
        out.extend(value.bytes());
        out
    }
    let mut preface = [0; PREFACE.len()];
    if stream.read_exact(&mut preface).is_err() || preface != PREFACE {
        return;
    }
    let mut answer = frame(SETTINGS, 0, 0, &[]);
    loop {
        let mut head = [0; 9];
        if stream.write_all(&answer).is_err() || stream.flush().is_err() || stream.read_exact(&mut head).is_err() {
            return;
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        if stream.read_exact(&mut payload).is_err() {
            return;
        }
        let (kind, flags, id) = (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        answer = match kind {
            SETTINGS if flags & ACK == 0 => frame(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(PING, ACK, 0, &payload),
            DATA if !payload.is_empty() => frame(WINDOW_UPDATE, 0, 0, &(payload.len() as u32).to_be_bytes()),
            _ => Vec::new(),
        };
        if (kind == DATA || kind == HEADERS) && flags & END_STREAM != 0 {
            // `:status: 200` has a number of its own.
            let first = [vec![0x88], header("content-type", "application/grpc")].concat();
            let outcome = header("grpc-status", &status.to_string());
            if status == 0 {
                answer.extend(frame(HEADERS, END_HEADERS, id, &first));
                answer.extend(frame(DATA, 0, id, &[0; 5]));
                answer.extend(frame(HEADERS, END_HEADERS | END_STREAM, id, &outcome));
            } else {
                answer.extend(frame(HEADERS, END_HEADERS | END_STREAM, id, &[first, outcome].concat()));
            }
        }
    }
}
