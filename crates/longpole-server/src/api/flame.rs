//! `/api/recordings/{rec}/flame?span={handle}&time={on_cpu|off_cpu|wall}&threads={all}`: the flame graph of a span, of a pole, or of the whole run.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use longpole_analysis::report::FlameTime;
use serde::Deserialize;

use super::{Answer, ApiError, Shelf, json};
use crate::view::FlameView;

#[derive(Deserialize)]
pub(super) struct Parameters {
    span: Option<String>,
    time: Option<String>,
    threads: Option<String>,
}

pub(super) async fn get(
    State(shelf): State<Arc<Shelf>>,
    Path(recording): Path<String>,
    Query(Parameters { span, time, threads }): Query<Parameters>,
) -> Answer {
    let time = match time.as_deref() {
        None => FlameTime::default(),
        Some(word) => FlameTime::from_word(word).ok_or_else(|| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "bad_request",
                format!("`{word}` is no time of a flame graph; there are: on_cpu, off_cpu, wall"),
            )
        })?,
    };
    let all_threads = match threads.as_deref() {
        None => false,
        Some("all") if span.is_none() => true,
        Some(_) => return Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_request", "`threads` may be `all`, without `span`".to_owned())),
    };
    let view = move |name, report: &_| match &span {
        None => json(&FlameView::of_run(name, report, time, all_threads)),
        Some(handle) => match FlameView::of_span(name, report, handle, time) {
            Some(view) => json(&view),
            None => Err(ApiError::no_handle(name, handle)),
        },
    };
    shelf.view(&recording, view).await
}
