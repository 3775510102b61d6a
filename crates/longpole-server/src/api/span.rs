//! `/api/recordings/{rec}/spans/{handle}`: one span, by `s12` or `p1`.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ApiError, Shelf, json};
use crate::view::SpanView;

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path((recording, handle)): Path<(String, String)>) -> Answer {
    let view = move |name, report: &_| match SpanView::new(name, report, &handle) {
        Some(view) => json(&view),
        None => Err(ApiError::no_handle(name, &handle)),
    };
    shelf.view(&recording, view).await
}
