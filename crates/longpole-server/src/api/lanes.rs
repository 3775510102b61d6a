//! `/api/recordings/{rec}/lanes?from={nanos}&to={nanos}&bins={n}&limit={n}`: what the threads that matter most did over a range of time.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use longpole_model::Nanos;
use longpole_recording::view::LanesView;
use serde::Deserialize;

use super::excerpt::ExcerptParameters;
use super::{Answer, ReportCache, json};

/// Pieces of an answer without `bins`, and at most: a screen has no more pixels.
const BINS: usize = 600;
const BINS_MAX: usize = 4_000;

/// Threads of an answer without `limit`, and at most.
const LIMIT: usize = 8;
const LIMIT_MAX: usize = 200;

#[derive(Deserialize)]
pub(super) struct Parameters {
    bins: Option<usize>,
    limit: Option<usize>,
}

pub(super) async fn get(
    State(cache): State<Arc<ReportCache>>,
    Path(recording): Path<String>,
    Query(excerpt): Query<ExcerptParameters>,
    Query(Parameters { bins, limit }): Query<Parameters>,
) -> Answer {
    let bins = bins.unwrap_or(BINS).clamp(1, BINS_MAX);
    let limit = limit.unwrap_or(LIMIT).min(LIMIT_MAX);
    let view = move |name, report: &longpole_analysis::Report| {
        let whole = (Nanos::ZERO, report.wall().max(Nanos(1)));
        let range = excerpt.range(report)?.unwrap_or(whole);
        json(&LanesView::new(name, report, range, bins, limit))
    };
    cache.view(&recording, view).await
}
