//! The HTTP/1.1 that the services need: a server of a few threads, and the common parts of all requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use longpole_sdk::SpanExt;
use tracing::{Span, info_span};

use crate::{Error, Result};

/// Threads that answer. Further requests wait.
const WORKERS: usize = 4;

/// Maximum bytes of the lines before a body, and of a body. Ours have some hundred.
const HEAD_BYTES_MAX: u64 = 16 << 10;
const BODY_BYTES_MAX: u64 = 64 << 10;

/// Timeout of a silent connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Debug, Default)]
pub struct Request {
    /// `POST`.
    pub method: String,
    /// `/charge`.
    pub path: String,
    /// Span that waits for the answer.
    pub traceparent: Option<String>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// The span of a service that answers this request.
    pub fn span(&self) -> Result<Span> {
        let name = format!("{} {}", self.method, self.path);
        let span = info_span!("request", otel.name = name, otel.kind = "server", http.request.method = self.method, url.path = self.path);
        if let Some(traceparent) = &self.traceparent {
            span.set_parent_traceparent(traceparent)?;
        }
        Ok(span)
    }
}

/// The span of a call to another service.
pub fn client_span(name: &str, server: SocketAddr) -> Span {
    info_span!("call", otel.name = name, otel.kind = "client", server.address = %server.ip(), server.port = server.port())
}

/// The `traceparent` to send: that of the current span.
pub fn traceparent() -> String {
    longpole_sdk::current_traceparent().unwrap_or_default()
}

/// Answers requests until standard input ends; the starter of the service holds it. The first line on standard output is its
/// address.
pub fn serve(answer: impl Fn(&Request) -> Result<String> + Send + Sync + 'static) -> Result<()> {
    let listener = Arc::new(TcpListener::bind(("127.0.0.1", 0))?);
    let answer = Arc::new(answer);
    for number in 0..WORKERS {
        let (listener, answer) = (Arc::clone(&listener), Arc::clone(&answer));
        std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // Answer a bad request, or one that was cut off, as far as possible.
                let _ = serve_one(&stream, &*answer);
            }
        })?;
    }
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

fn serve_one(stream: &TcpStream, answer: impl Fn(&Request) -> Result<String>) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let (status, body) = match read_request(stream) {
        Ok(request) => match answer(&request) {
            Ok(body) => ("200 OK", body),
            Err(error) => ("500 Internal Server Error", error.to_string()),
        },
        Err(error) => ("400 Bad Request", error.to_string()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let mut writer = stream;
    writer.write_all((head + &body).as_bytes())?;
    Ok(())
}

fn read_request(stream: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = (&mut reader).take(HEAD_BYTES_MAX);
    let mut next = || -> Result<String> {
        let mut line = String::new();
        head.read_line(&mut line)?;
        line.ends_with('\n').then(|| line.trim_end().to_owned()).ok_or_else(|| Error::from("the request ends in its head"))
    };
    let first = next()?;
    let mut words = first.split(' ').map(str::to_owned);
    let mut request = Request { method: words.next().unwrap_or_default(), path: words.next().unwrap_or_default(), ..Request::default() };
    let mut length = 0;
    loop {
        let line = next()?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { return Err("a header has no colon".into()) };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(|_| "Content-Length is no number")?,
            "traceparent" => request.traceparent = Some(value.trim().to_owned()).filter(|value| !value.is_empty()),
            _ => {}
        }
    }
    if length > BODY_BYTES_MAX {
        return Err(format!("a body of {length} bytes is too long").into());
    }
    reader.take(length).read_to_end(&mut request.body)?;
    Ok(request)
}
