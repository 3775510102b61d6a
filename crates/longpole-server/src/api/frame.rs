//! `/api/recordings/{rec}/frames/{handle}`: one function, by `f12`, and where it ran; and `/source`, its lines.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, ApiError, Shelf, json};
use crate::view::{FrameView, SourceView};

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path((recording, handle)): Path<(String, String)>) -> Answer {
    let view = move |name, report: &_| match FrameView::new(name, report, &handle) {
        Some(view) => json(&view),
        None => Err(ApiError::no_handle(name, &handle)),
    };
    shelf.view(&recording, view).await
}

pub(super) async fn source(State(shelf): State<Arc<Shelf>>, Path((recording, handle)): Path<(String, String)>) -> Answer {
    let view = move |name, report: &_| match SourceView::new(name, report, &handle) {
        Some(view) => json(&view),
        None => Err(ApiError::no_handle(name, &handle)),
    };
    shelf.view(&recording, view).await
}
