//! `/api/recordings/{rec}/tree`: its tree, in columns.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::{Answer, Shelf, json};
use longpole_recording::view::TreeView;

pub(super) async fn get(State(shelf): State<Arc<Shelf>>, Path(recording): Path<String>) -> Answer {
    shelf.view(&recording, |name, report| json(&TreeView::new(name, report))).await
}
