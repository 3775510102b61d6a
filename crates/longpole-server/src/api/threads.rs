//! `/api/recordings/{rec}/threads?from={nanos}&to={nanos}`: where the life of each thread went, in all or in a range of time.

use std::sync::Arc;

use axum::extract::{Path, Query, State};

use super::excerpt::ExcerptParameters;
use super::{Answer, ReportCache, json};
use longpole_recording::view::ThreadsView;

pub(super) async fn get(
    State(cache): State<Arc<ReportCache>>,
    Path(recording): Path<String>,
    Query(excerpt): Query<ExcerptParameters>,
) -> Answer {
    cache.view(&recording, move |name, report| json(&ThreadsView::new(name, report, excerpt.range(report)?))).await
}
