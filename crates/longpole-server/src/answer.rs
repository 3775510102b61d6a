//! The body of an answer.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

/// The body of every answer.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;
