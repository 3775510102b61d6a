//! `/api/recordings/{rec}`: the answer of a recording.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, Shelf, json};
use longpole_recording::view::SummaryView;

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path(recording): Path<String>) -> Answer {
    shelf.view(&recording, |name, report| json(&SummaryView::new(name, report))).await
}
