//! Queries that come as the body of a request. They are small, and arrive in milliseconds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes of a question.
pub(super) const QUESTION_BYTES_MAX: usize = 64 << 10;

/// How long it may take to arrive.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(5);

/// Questions that are read at once: together they take 16 MiB.
const QUESTIONS_MAX: usize = if cfg!(test) { 2 } else { 256 };

/// Those that are being read, the oldest first. Where too many are under way, the oldest is cut.
static QUESTIONS: Mutex<VecDeque<Arc<Notify>>> = Mutex::new(VecDeque::new());

/// Why there is no question.
#[derive(Debug, thiserror::Error)]
pub(super) enum QuestionError {
    /// Another one needed its place.
    #[error("the message was slow, and others needed its place")]
    Cut,
    /// It did not arrive in time.
    #[error("the message did not arrive in time")]
    Late,
    /// It is too large, or broke off.
    #[error("cannot read the message: {0}")]
    Unreadable(axum::Error),
}

/// Reads the body of a request.
pub(super) async fn read(body: Body) -> Result<Bytes, QuestionError> {
    let place = ReadingPlace::take();
    let read = tokio::select! {
        read = timeout(QUESTION_TIME_MAX, to_bytes(body, QUESTION_BYTES_MAX)) => read,
        () = place.0.notified() => return Err(QuestionError::Cut),
    };
    read.map_err(|_| QuestionError::Late)?.map_err(QuestionError::Unreadable)
}

/// The place of a question that is being read.
struct ReadingPlace(Arc<Notify>);

impl ReadingPlace {
    fn take() -> ReadingPlace {
        let place = Arc::new(Notify::new());
        let mut all = QUESTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        while all.len() >= QUESTIONS_MAX {
            all.pop_front().iter().for_each(|oldest| oldest.notify_one());
        }
        all.push_back(Arc::clone(&place));
        ReadingPlace(place)
    }
}

impl Drop for ReadingPlace {
    fn drop(&mut self) {
        QUESTIONS.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn the_oldest_of_those_that_never_end_is_cut() {
        let endless = || Body::from_stream(futures_util::stream::once(pending::<Result<Bytes, std::io::Error>>()));
        let oldest = tokio::spawn(read(endless()));
        while QUESTIONS.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let others: Vec<_> = (0..QUESTIONS_MAX).map(|_| tokio::spawn(read(endless()))).collect();
        assert!(matches!(oldest.await.unwrap(), Err(QuestionError::Cut)));
        others.into_iter().for_each(|other| other.abort());
        assert_eq!(read(Body::from("labels")).await.unwrap(), "labels");
    }
}
