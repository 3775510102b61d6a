//! The parameters `from`, `to` (nanoseconds from the start of the run) and `thread` of views that show a part of a recording.

use axum::http::StatusCode;
use longpole_analysis::Report;
use longpole_analysis::report::Excerpt;
use longpole_model::Nanos;
use serde::Deserialize;

use super::ApiError;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ExcerptParameters {
    from: Option<i64>,
    to: Option<i64>,
    thread: Option<u32>,
}

impl ExcerptParameters {
    /// The range; `None` for the whole run.
    pub(super) fn range(&self, report: &Report) -> Result<Option<(Nanos, Nanos)>, ApiError> {
        report.range(self.from.map(Nanos), self.to.map(Nanos)).map_err(|(from, to)| {
            ApiError::new(StatusCode::BAD_REQUEST, "bad_request", format!("`from` {} is not before `to` {}", from.0, to.0))
        })
    }

    pub(super) fn excerpt(&self, report: &Report) -> Result<Excerpt, ApiError> {
        if let Some(tid) = self.thread.filter(|&tid| !report.has_thread(tid)) {
            return Err(ApiError::not_found(format!("the recording has no thread {tid}")));
        }
        Ok(Excerpt { range: self.range(report)?, tid: self.thread })
    }
}
