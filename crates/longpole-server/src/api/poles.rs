//! `/api/recordings/{rec}/poles`: all its long poles.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, Shelf, json};
use longpole_recording::view::PolesView;

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path(recording): Path<String>) -> Answer {
    shelf.view(&recording, |name, report| json(&PolesView::new(name, report))).await
}
