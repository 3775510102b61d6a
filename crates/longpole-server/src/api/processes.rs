//! `/api/recordings/{rec}/processes`: the processes and what they used.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, Shelf, json};
use longpole_recording::view::ProcessesView;

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path(recording): Path<String>) -> Answer {
    shelf.view(&recording, |name, report| json(&ProcessesView::new(name, report))).await
}
