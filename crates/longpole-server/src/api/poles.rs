//! `/api/recordings/{rec}/poles`: all its long poles.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ReportCache};
use longpole_recording::view::PolesView;

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path(recording): Path<String>) -> Answer {
    cache.kept_view(&recording, PolesView::new).await
}
