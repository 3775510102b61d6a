//! `/api/recordings/{rec}/spans/{handle}`: one span, by `s12` or `p1`; `/names/{name}`: all spans of a name.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ApiError, ReportCache, json};
use longpole_recording::view::{Chosen, SpanView, SpansView};

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path((recording, handle)): Path<(String, String)>) -> Answer {
    let view = move |name, report: &_| match SpanView::new(name, report, &handle) {
        Some(view) => json(&view),
        None => Err(ApiError::no_handle(name, &handle)),
    };
    cache.view(&recording, view).await
}

pub(super) async fn of_name(State(cache): State<Arc<ReportCache>>, Path((recording, name)): Path<(String, String)>) -> Answer {
    let view = move |recording, report: &_| match SpansView::new(recording, report, &name) {
        Some(view) => json(&view),
        None => Err(ApiError::no_handle(recording, &Chosen::Name(&name).to_string())),
    };
    cache.view(&recording, view).await
}
