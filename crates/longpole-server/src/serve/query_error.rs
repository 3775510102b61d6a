//! Why a query has no answer.

use http::StatusCode;
use longpole_store::StoreError;

use crate::api::status_of_store;
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
    /// A trace of the answer is too large.
    #[error("{0}")]
    TooLarge(String),
    /// The store could not be read.
    #[error("failed to {0}")]
    Store(#[from] StoreError),
    /// It ended without a result.
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
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
            QueryError::TooLarge(_) => StatusCode::UNPROCESSABLE_ENTITY,
            QueryError::Unfinished(Unfinished::Panicked) => StatusCode::INTERNAL_SERVER_ERROR,
            QueryError::Unfinished(_) => StatusCode::SERVICE_UNAVAILABLE,
            QueryError::Store(error) => status_of_store(error),
        }
    }

    /// Whether the same query may have an answer soon.
    pub(super) fn may_come_again(&self) -> bool {
        matches!(self, QueryError::Unfinished(Unfinished::NoPlace) | QueryError::Store(StoreError::MemoryShort))
    }
}
