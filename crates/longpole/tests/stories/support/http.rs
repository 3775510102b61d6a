//! A client of HTTP/1.1: one request on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer takes, so that a story does not hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Its head.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// A header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body of an answer of success as JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.body))
    }
}

/// Gets a path.
pub(crate) fn get(port: u16, path: &str) -> Answer {
    send(port, "GET", path, &[], "").unwrap()
}

/// Posts a body; `None` if the server is not there, or went away.
pub(crate) fn post(port: u16, path: &str, content_type: &str, body: &str) -> Option<Answer> {
    send(port, "POST", path, &[("Content-Type", content_type)], body)
}

/// Sends any request. A `Host` among the headers replaces the own one.
pub(crate) fn send(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Option<Answer> {
    let body = body.as_ref();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head.push_str(&format!("Host: localhost:{port}\r\n"));
    }
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
