//! `/api/recordings/{rec}/whatif?without={handle},{handle}`: what a run would take without some of its poles.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use longpole_analysis::Report;
use longpole_recording::view::WhatIfView;
use serde::Deserialize;

use super::{Answer, ApiError, ReportCache, json};

/// Poles of one question: a page has no more rows.
const POLES_MAX: usize = 100;

#[derive(Deserialize)]
pub(super) struct Without {
    without: String,
}

pub(super) async fn get(
    State(cache): State<Arc<ReportCache>>,
    Path(recording): Path<String>,
    Query(Without { without }): Query<Without>,
) -> Answer {
    let view = move |name, report: &Report| {
        let handles: Vec<&str> = without.split(',').filter(|handle| !handle.is_empty()).collect();
        if handles.len() > POLES_MAX {
            return Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_request", format!("`without` has more than {POLES_MAX} poles")));
        }
        match WhatIfView::new(name, report, &handles) {
            Ok(view) => json(&view),
            Err(handle) => Err(ApiError::no_handle(name, &handle)),
        }
    };
    cache.view(&recording, view).await
}
