//! Answers while the server reads the logs of an earlier one: it lives, and it is not ready.
//!
//! Only health and the page answer then. Other ports are open, and their clients wait for an answer until the logs are read.

use std::io;
use std::net::TcpListener;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use http::StatusCode;
use http::header::{REFRESH, RETRY_AFTER};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::page_clients::ClientCheck;
use crate::page_connections;

/// How long the answers under way may take when it ends: they are made at once, and everybody waits for the server.
const CLOSE_MAX: Duration = Duration::from_millis(100);

/// What it answers.
const READING: &str = "not ready: reading the logs\n";

/// A server that is not ready yet. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Starting {
    closing: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Starting {
    /// Answers at these ports, which somebody else serves later.
    pub(super) fn serve(listeners: Vec<TcpListener>) -> io::Result<Starting> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners = {
            let _of_runtime = runtime.enter();
            listeners.into_iter().map(tokio::net::TcpListener::from_std).collect::<io::Result<Vec<_>>>()?
        };
        let (closing, mut closed) = watch::channel(false);
        let thread = thread::Builder::new().name("longpole-starting".to_owned()).spawn(move || {
            runtime.block_on(async {
                let serve = |listener| page_connections::serve(listener, ClientCheck::of_everybody(), routes(), closed.clone());
                let served: Vec<_> = listeners.into_iter().map(|listener| tokio::spawn(serve(listener))).collect();
                let _ = closed.wait_for(|closed| *closed).await;
                for served in served {
                    // What is not answered by then is cut: the client sees that the connection ended, as if the server had just begun.
                    let _ = timeout(CLOSE_MAX, served).await;
                }
            });
            runtime.shutdown_background();
        })?;
        Ok(Starting { closing, thread })
    }

    /// Ends it after the answers that are being made.
    pub(super) fn end(self) {
        self.closing.send_replace(true);
        // A panic of it has printed itself.
        let _ = self.thread.join();
    }
}

fn routes() -> Router {
    // A browser comes again by itself.
    let reading = async || (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1"), (REFRESH, "1")], READING).into_response();
    Router::new().route("/livez", get(async || "alive\n")).fallback(reading)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    #[test]
    fn it_lives_and_is_not_ready_until_it_ends() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let starting = Starting::serve(vec![listener.try_clone().unwrap()]).unwrap();
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert!(ask("/livez").starts_with("HTTP/1.1 200 "));
        for path in ["/readyz", "/", "/search", "/api/services", "/metrics"] {
            let answer = ask(path);
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nretry-after: 1\r\n"), "{path}: {answer}");
            assert!(answer.ends_with("not ready: reading the logs\n"), "{path}: {answer}");
        }
        // A connection without a request does not hold up the end, and whoever comes later waits for the next to serve the port.
        let _idle = TcpStream::connect(address).unwrap();
        starting.end();
        let _later = TcpStream::connect(address).unwrap();
        listener.set_nonblocking(false).unwrap();
        assert!(listener.accept().is_ok());
    }
}
