//! `/api/recordings/{rec}/flame?span={handle}`: the flame graph of a span, of a pole, or of the whole run.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use serde::Deserialize;

use super::{Answer, ApiError, Shelf, json};
use crate::view::FlameView;

#[derive(Deserialize)]
pub(super) struct Parameters {
    span: Option<String>,
}

pub(super) async fn get(
    State(shelf): State<Arc<Shelf>>,
    Path(recording): Path<String>,
    Query(Parameters { span }): Query<Parameters>,
) -> Answer {
    let view = move |name, report: &_| match &span {
        None => json(&FlameView::of_run(name, report)),
        Some(handle) => match FlameView::of_span(name, report, handle) {
            Some(view) => json(&view),
            None => Err(ApiError::no_handle(name, handle)),
        },
    };
    shelf.view(&recording, view).await
}
