//! An AppDash collector: frames on one TCP connection, in one direction only.
//!
//! The protocol has no acknowledgement, so what was written is not yet delivered. A collector reads to the end of the stream
//! and then closes: when we have said that nothing more comes and its own end arrives, it has read all. Where the connection
//! breaks before, nobody knows what of it arrived, and everything that was written to it is counted as undelivered.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

use super::account::Account;
use super::queue::Requests;
use super::target::ForwardTarget;
use super::{convert, http};
use crate::limits::{FORWARD_BACKOFF_MAX, FORWARD_BACKOFF_MIN, FORWARD_TRY_MAX};

/// Why everything written to a connection that ended early is counted.
const IN_DOUBT: &str = "the connection broke, so they may not have arrived";

/// Serves the queue until it is closed and empty.
pub(super) async fn run(mut queue: Requests, target: &ForwardTarget, account: &Arc<Account>) {
    let mut line = TargetConnection { target, account, stream: None, written: 0 };
    while let Some(waiting) = queue.recv().await {
        let parcel = waiting.parcel.clone();
        let delivered = match convert::beside(move || convert::appdash_frames(&parcel)).await {
            Ok(frames) => line.write(&frames).await,
            Err(reason) => Err(reason),
        };
        match delivered {
            Ok(()) => line.written += waiting.parcel.items,
            Err(reason) => account.undelivered(waiting.parcel.items, &reason),
        }
    }
    line.end().await;
}

struct TargetConnection<'a> {
    target: &'a ForwardTarget,
    account: &'a Account,
    stream: Option<TcpStream>,
    /// Items that were written to the stream and are pending until its end.
    written: u64,
}

impl TargetConnection<'_> {
    /// Writes frames that begin a packet and end one, all of them or none that is not counted.
    async fn write(&mut self, frames: &[u8]) -> Result<(), String> {
        let give_up = Instant::now() + FORWARD_TRY_MAX;
        let mut closing = self.account.closing.clone();
        let mut pause = FORWARD_BACKOFF_MIN;
        loop {
            let reason = match timeout(self.target.timeout, self.try_write(frames)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("it accepted nothing within {} ms", self.target.timeout.as_millis()),
            };
            // Frames may have been written in part: only a new connection begins with a frame.
            self.hang_up();
            let end = *closing.borrow_and_update();
            let until = Instant::now() + http::jittered(pause);
            if until > end.map_or(give_up, |end| end.last_tries_end) {
                return Err(reason);
            }
            self.account.note(&reason, false);
            pause = (pause * 2).min(FORWARD_BACKOFF_MAX);
            if end.is_some() {
                tokio::time::sleep_until(until.into()).await;
            } else if timeout_at(until.into(), closing.changed()).await.is_ok_and(|changed| changed.is_err()) {
                return Err(reason);
            }
        }
    }

    async fn try_write(&mut self, frames: &[u8]) -> io::Result<()> {
        // A collector sends nothing; that its end can be read means that the connection is over.
        if self
            .stream
            .as_ref()
            .is_some_and(|stream| !matches!(stream.try_read(&mut [0; 64]), Err(error) if error.kind() == io::ErrorKind::WouldBlock))
        {
            self.hang_up();
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let address = self.target.url.strip_prefix("tcp://").unwrap_or(&self.target.url);
                self.stream.insert(TcpStream::connect(address).await?)
            }
        };
        stream.write_all(frames).await
    }

    /// The connection is of no more use.
    fn hang_up(&mut self) {
        self.stream = None;
        self.account.undelivered(std::mem::take(&mut self.written), IN_DOUBT);
    }

    /// Says that nothing more comes, and waits until the collector has read all. The lane has a deadline for it.
    async fn end(mut self) {
        let Some(mut stream) = self.stream.take() else { return };
        let read_all = stream.shutdown().await.and(read_to_end(&stream).await);
        // A reset that came with the end is an error of the socket, not of the read.
        match read_all.and_then(|()| stream.take_error()) {
            Ok(None) => self.account.delivered(self.written),
            Ok(Some(_)) | Err(_) => self.hang_up(),
        }
    }
}

async fn read_to_end(stream: &TcpStream) -> io::Result<()> {
    loop {
        stream.readable().await?;
        match stream.try_read(&mut [0; 1024]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
