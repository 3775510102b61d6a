//! `/api/recordings`: what is in the store, newest first.

use std::sync::Arc;

use axum::extract::State;

use super::{Answer, ReportCache, json};
use longpole_recording::view::RecordingsView;

pub(super) async fn list(State(cache): State<Arc<ReportCache>>) -> Answer {
    cache.store(|store| json(&RecordingsView::new(&store.list()?))).await
}
