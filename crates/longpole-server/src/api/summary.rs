//! `/api/recordings/{rec}`: the answer of a recording.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ReportCache};
use longpole_recording::view::SummaryView;

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path(recording): Path<String>) -> Answer {
    cache.kept_view(&recording, SummaryView::new).await
}
