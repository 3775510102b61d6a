//! Why a query has no answer.

use http::StatusCode;
use longpole_store::StoreError;

use crate::limits::{QUERIES_AT_ONCE_MAX, QUERY_TIME_MAX};
use crate::off_the_reactor::Unfinished;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    /// A parameter is wrong.
    #[error("{0}")]
    Bad(String),
    /// What it asks for is not there.
    #[error("{0}")]
    NotFound(String),
    /// The store could not be read.
    #[error("failed to {0}")]
    Store(#[from] StoreError),
    /// It took too long.
    #[error("the query took longer than {} s: search a shorter time, one service, or for fewer traces", QUERY_TIME_MAX.as_secs())]
    TimedOut,
    /// Others took all places.
    #[error("more than {QUERIES_AT_ONCE_MAX} queries at the same time: try again")]
    NoPlace,
    /// The thread of the query ended.
    #[error("longpole has a bug: it failed to answer this request")]
    Bug,
}

impl From<String> for QueryError {
    fn from(reason: String) -> Self {
        QueryError::Bad(reason)
    }
}

impl From<&str> for QueryError {
    fn from(reason: &str) -> Self {
        QueryError::Bad(reason.to_owned())
    }
}

impl QueryError {
    /// The status of its answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            QueryError::Bad(_) => StatusCode::BAD_REQUEST,
            QueryError::NotFound(_) => StatusCode::NOT_FOUND,
            QueryError::TimedOut | QueryError::NoPlace => StatusCode::SERVICE_UNAVAILABLE,
            QueryError::Store(_) | QueryError::Bug => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Unfinished> for QueryError {
    fn from(unfinished: Unfinished) -> Self {
        match unfinished {
            Unfinished::Panicked => QueryError::Bug,
            Unfinished::TimedOut => QueryError::TimedOut,
            Unfinished::NoPlace => QueryError::NoPlace,
        }
    }
}
