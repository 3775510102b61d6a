//! A socket that tells its connection whether everything that arrived was read, and holds back the end of the stream.
//!
//! A process that exits right after it wrote a request leaves the request and the end of its stream in our buffers at the
//! same time. HTTP machines take the end as "nobody wants the answer" and drop what they have not begun (h2 drops even whole
//! requests that it has read), but a request of spans is wanted for itself. So the end is shown only when everything before
//! it was taken: after a few turns, in which requests are handed out and bodies read, and never while one is being kept.
//! For the same reason nobody learns that an answer could not be written: reading ends soon enough, and says the same.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connections::Connection;

/// Turns of the connection's task between the end of the stream and its being shown: one in which requests are handed out,
/// one in which their bodies are read, and one more.
const TURNS_BEFORE_END: u32 = 3;

/// A stream whose reads are noted in its [`Connection`].
#[derive(Debug)]
pub(super) struct WatchedIo {
    stream: TcpStream,
    connection: Arc<Connection>,
    turns_since_end: u32,
    nobody_listens: bool,
}

impl WatchedIo {
    pub(super) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        WatchedIo { stream, connection, turns_since_end: 0, nobody_listens: false }
    }

    /// What a write came to, with errors taken for success.
    fn or_swallowed<T>(&mut self, polled: Poll<io::Result<T>>, success: T) -> Poll<io::Result<T>> {
        polled.map(|result| {
            self.nobody_listens |= result.is_err();
            Ok(result.unwrap_or(success))
        })
    }
}

impl AsyncRead for WatchedIo {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let more = matches!(polled, Poll::Ready(Ok(()))) && (buffer.filled().len() > filled || buffer.remaining() == 0);
        self.connection.note_read(polled.is_pending());
        if polled.is_pending() || more {
            return polled;
        }
        // The end, or a reset, which ends as well.
        if self.turns_since_end < TURNS_BEFORE_END {
            self.turns_since_end += 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.connection.keeps(context.waker()) {
            return Poll::Pending;
        }
        polled
    }
}

impl AsyncWrite for WatchedIo {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.nobody_listens {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.or_swallowed(polled, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.or_swallowed(polled, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.or_swallowed(polled, ())
    }
}
