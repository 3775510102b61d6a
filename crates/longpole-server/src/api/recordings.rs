//! `/api/recordings`: the recordings of the store, newest first; `/api/server`: whether the server has traces.

use std::sync::Arc;

use axum::extract::State;

use super::{Answer, ReportCache, json};
use longpole_recording::view::RecordingsView;

pub(super) async fn list(State(cache): State<Arc<ReportCache>>) -> Answer {
    cache.store(|store| json(&RecordingsView::new(&store.list()?))).await
}

/// What this server has.
pub(super) async fn server(State(cache): State<Arc<ReportCache>>) -> Answer {
    json(&cache.server_view())
}
