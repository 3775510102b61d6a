//! `/api/recordings/{rec}/tree`: its tree, in columns.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ReportCache, json};
use longpole_recording::view::TreeView;

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path(recording): Path<String>) -> Answer {
    cache.long_view(&recording, |name, report| json(&TreeView::new(name, report))).await
}
