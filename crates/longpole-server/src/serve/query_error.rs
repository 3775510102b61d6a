//! Why a query has no answer.

use http::StatusCode;
use longpole_store::StoreError;

use crate::off_the_reactor::Panicked;

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
            QueryError::Store(_) | QueryError::Bug => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Panicked> for QueryError {
    fn from(_: Panicked) -> Self {
        QueryError::Bug
    }
}
