//! `/api/recordings/{rec}/threads`: where the life of each thread went.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ReportCache, json};
use longpole_recording::view::ThreadsView;

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path(recording): Path<String>) -> Answer {
    cache.view(&recording, |name, report| json(&ThreadsView::new(name, report))).await
}
