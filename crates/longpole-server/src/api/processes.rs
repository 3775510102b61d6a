//! `/api/recordings/{rec}/processes`: the processes and what they used.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ReportCache, json};
use longpole_recording::view::ProcessesView;

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path(recording): Path<String>) -> Answer {
    cache.view(&recording, |name, report| json(&ProcessesView::new(name, report))).await
}
