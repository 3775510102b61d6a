//! `/api/recordings`: what is in the store, newest first.

use std::sync::Arc;

use axum::extract::State;

use super::{Answer, Shelf, json};
use longpole_recording::view::RecordingsView;

pub(super) async fn list(State(shelf): State<Arc<Shelf>>) -> Answer {
    shelf.store(|store| json(&RecordingsView::new(&store.list()?))).await
}
