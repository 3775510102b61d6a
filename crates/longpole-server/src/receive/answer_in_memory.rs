//! An answer to a query, which counts as memory until its client has read it.
//!
//! HTTP/2 takes a whole frame of a body as soon as its client allows one byte of it, so the answer is given in pieces, and its bytes hold
//! their memory wherever they are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::connection::Connection;
use super::memory::{Charge, MemoryAccount, NoMemory};
use crate::answer::AnswerBody;
use crate::limits::{ANSWER_PIECE_BYTES, ANSWER_WAIT_MAX};

/// The bytes of an answer, and their memory.
#[derive(Debug)]
struct ChargedBytes {
    bytes: Bytes,
    /// Held for as long as a piece is somewhere.
    _charge: Arc<Charge>,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of such an answer.
#[derive(Debug)]
struct Pieces {
    /// None of them is empty.
    rest: VecDeque<Bytes>,
    charge: Arc<Charge>,
}

/// The body of an answer with these bytes, when there is memory for it. They come in parts as they were made: joined, they would be there twice.
pub(super) async fn body(parts: Vec<Bytes>, account: &MemoryAccount, connection: &Connection) -> Result<AnswerBody, NoMemory> {
    let length: usize = parts.iter().map(Bytes::len).sum();
    let mut charge = Charge::new(&account.answers, Arc::clone(&connection.cut));
    charge.up_to(length.min(account.answers.limit()), ANSWER_WAIT_MAX).await?;
    let charge = Arc::new(charge);
    let charged = |bytes| Bytes::from_owner(ChargedBytes { bytes, _charge: Arc::clone(&charge) });
    let rest = parts.into_iter().filter(|part| !part.is_empty()).map(charged).collect();
    Ok(Pieces { rest, charge }.boxed_unsync())
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(mut part) = self.rest.pop_front() else { return Poll::Ready(None) };
        // The client has read the piece before.
        self.charge.set_progress(Some(Instant::now()));
        let piece = part.split_to(part.len().min(ANSWER_PIECE_BYTES));
        if !part.is_empty() {
            self.rest.push_front(part);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.iter().map(|part| part.len() as u64).sum())
    }
}
