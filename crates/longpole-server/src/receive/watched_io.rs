//! A socket that reports to its connection whether everything that arrived was read, and holds back the end of the stream.
//!
//! A process that exits right after it wrote a request leaves the request and the end of its stream in our buffers at the
//! same time. HTTP machines take the end as "nobody wants the answer" and drop what they have not begun (h2 drops even whole
//! requests that it has read), but a request of spans is wanted for itself. So the end is shown only when everything before
//! it was taken: after a few turns, in which requests are handed out and bodies read, and never while one is being kept.
//! For the same reason a failed write is no error here: reading ends soon enough, with the same result.
//!
//! It also ends a connection that stays inside the head of a request, or inside a frame, for longer than [`HEAD_TIME_MAX`], because hyper
//! does not report a request whose head is not complete. Bodies have limits of their own.

use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::connection::Connection;
use super::heads::Heads;
use crate::limits::{
    CONTROL_FRAMES_FREE, CONTROL_FRAMES_PER_REQUEST, CONTROL_FRAMES_PER_SECOND, HEAD_TIME_MAX, SENT_BYTES_PER_CONTROL_FRAME,
};

/// Turns of the connection's task between the end of the stream and its being shown: one in which requests are handed out,
/// one in which their bodies are read, and one more.
const TURNS_BEFORE_END: u32 = 3;

/// Pause between looks at a connection that has bytes to be read.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// A stream whose reads are noted in its [`Connection`].
#[derive(Debug)]
pub(super) struct WatchedIo {
    /// Shared with the queries of the connection, which look whether their client is still there.
    stream: Arc<TcpStream>,
    connection: Arc<Connection>,
    turns_since_end: u32,
    nobody_listens: bool,
    heads: Heads,
    /// Requests that had begun at the last read.
    requests: u64,
    /// When the head or frame began that is not whole yet.
    inside_since: Option<Instant>,
    /// Made when a read finds nothing while inside one.
    timer: Option<Pin<Box<Sleep>>>,
    begun: Instant,
    /// Bytes that were written.
    sent: u64,
}

impl WatchedIo {
    pub(super) fn new(stream: Arc<TcpStream>, connection: Arc<Connection>) -> Self {
        WatchedIo {
            stream,
            connection,
            turns_since_end: 0,
            nobody_listens: false,
            heads: Heads::default(),
            requests: 0,
            inside_since: None,
            timer: None,
            begun: Instant::now(),
            sent: 0,
        }
    }

    /// Notes the bytes of a read, maybe none.
    fn watch_heads(&mut self, bytes: &[u8]) {
        let ended = self.heads.push(bytes);
        let requests = self.connection.requests();
        if ended || requests != self.requests {
            self.inside_since = None;
        }
        self.requests = requests;
        // In HTTP/1, bytes that come while no request is under way begin one.
        let inside = self.heads.is_inside().unwrap_or_else(|| {
            let is_between = !self.connection.has_requests();
            is_between && (self.inside_since.is_some() || !bytes.is_empty())
        });
        if !inside {
            self.inside_since = None;
        } else if self.inside_since.is_none() {
            self.inside_since = Some(Instant::now());
        }
        if bytes.is_empty() {
            // All that arrived was read, so the connection stays inside this part until more arrives.
            self.connection.note_inside(self.inside_since);
        }
    }

    /// Whether it has been inside a head or frame for too long; if not, a timer wakes the task when it will be.
    fn is_too_slow(&mut self, context: &mut Context<'_>) -> bool {
        let Some(since) = self.inside_since else {
            self.timer = None;
            return false;
        };
        let at = since + HEAD_TIME_MAX;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(context).is_ready()
    }

    /// Whether it sends frames without heads and bodies, and nothing that they could be for.
    fn is_flooding(&self) -> bool {
        let frames = self.heads.control_frames();
        if frames <= CONTROL_FRAMES_FREE {
            return false;
        }
        let for_requests = self.requests.saturating_mul(CONTROL_FRAMES_PER_REQUEST);
        let for_time = self.begun.elapsed().as_secs().saturating_mul(CONTROL_FRAMES_PER_SECOND);
        frames - CONTROL_FRAMES_FREE > for_requests.saturating_add(for_time).saturating_add(self.sent / SENT_BYTES_PER_CONTROL_FRAME)
    }

    /// The result of a write, with success for an error.
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
        let polled = poll_read(&self.stream, context, buffer);
        let more = matches!(polled, Poll::Ready(Ok(()))) && (buffer.filled().len() > filled || buffer.remaining() == 0);
        self.connection.note_read(polled.is_pending());
        self.watch_heads(&buffer.filled()[filled..]);
        if more && self.is_flooding() {
            self.connection.note_flood();
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if polled.is_pending() && self.is_too_slow(context) {
            self.connection.note_too_slow();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
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
        let polled = poll_write(&self.stream, context, bytes);
        self.connection.note_blocked(polled.is_pending());
        if let Poll::Ready(Ok(written)) = polled {
            self.sent += written as u64;
        }
        self.or_swallowed(polled, bytes.len())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket holds nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A shared stream has no call for this. Without a descriptor for it the socket is closed in a moment.
        let shut_down = self.stream.as_fd().try_clone_to_owned().and_then(|own| std::net::TcpStream::from(own).shutdown(Shutdown::Write));
        self.or_swallowed(Poll::Ready(shut_down), ())
    }
}

/// What [`AsyncRead`] does, for a stream that is shared.
fn poll_read(stream: &TcpStream, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    loop {
        ready!(stream.poll_read_ready(context))?;
        match stream.try_read_buf(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return Poll::Ready(read.map(drop)),
        }
    }
}

/// The same of [`AsyncWrite`].
fn poll_write(stream: &TcpStream, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(context))?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return Poll::Ready(written),
        }
    }
}

/// Waits until the client has closed its end, or only its sending half, which nobody does who waits for the answer to a query.
pub(super) async fn client_left(stream: &Weak<TcpStream>) {
    while let Some(stream) = stream.upgrade() {
        match stream.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {}
            _ => return,
        }
        // The next request, say, which is not read yet.
        drop(stream);
        sleep(LOOK_PAUSE).await;
    }
}
