//! `/api/recordings/{rec}/threads`: where the life of each thread went.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, Shelf, json};
use longpole_recording::view::ThreadsView;

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path(recording): Path<String>) -> Answer {
    shelf.view(&recording, |name, report| json(&ThreadsView::new(name, report))).await
}
