//! `/api/recordings/{rec}/diff?before={rec}&limit={n}`: why a recording took longer than an earlier one, or shorter.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use longpole_recording::view::diff::DiffView;
use serde::Deserialize;

use super::{Answer, ReportCache, json};

/// Operations of an answer without `limit`; 0 for all that differ.
const LIMIT: usize = 50;

#[derive(Deserialize)]
pub(super) struct DiffParameters {
    before: String,
    limit: Option<usize>,
}

pub(super) async fn get(
    State(cache): State<Arc<ReportCache>>,
    Path(recording): Path<String>,
    Query(DiffParameters { before, limit }): Query<DiffParameters>,
) -> Answer {
    let view =
        move |(before, a): (String, &_), (after, b): (String, &_)| json(&DiffView::new((&before, a), (&after, b), limit.unwrap_or(LIMIT)));
    cache.view_of_two(&before, &recording, view).await
}
