//! Views of a sealed recording that are computed once and kept beside it.
//!
//! A recording with a million spans takes seconds to be read and analysed, and its answer is a page of text. Only the longpole that made a view
//! reads it again: a newer one, or one that was built from changed sources, may answer otherwise.

use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use longpole_store::{RecordingName, RecordingState, Store, StoredRecording};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::view::{PolesView, SummaryView};

/// A view that is worth keeping: it is small, and needs the whole recording.
pub trait KeptView: Serialize + DeserializeOwned {
    /// What the store calls it.
    const NAME: &'static str;
    /// Where a server has it, behind the address of a recording.
    const PATH: &'static str;

    /// The same for a recording that is called otherwise here.
    fn called(self, recording: &str) -> Self;
}

impl KeptView for SummaryView {
    const NAME: &'static str = "summary";
    const PATH: &'static str = "";

    fn called(self, recording: &str) -> Self {
        SummaryView { recording: recording.to_owned(), ..self }
    }
}

impl KeptView for PolesView {
    const NAME: &'static str = "poles";
    const PATH: &'static str = "/poles";

    fn called(self, recording: &str) -> Self {
        PolesView { recording: recording.to_owned(), ..self }
    }
}

/// The view of a recording, if this longpole kept it and nothing changed since. Damage of the recording is for its reader to report.
pub fn kept<V: KeptView>(store: &Store, name: RecordingName) -> Option<V> {
    let bytes = sealed(store, name)?.kept_view(V::NAME, maker()?).ok()??;
    serde_json::from_slice(&bytes).inspect_err(|error| tracing::warn!(%name, view = V::NAME, %error, "a kept view is none")).ok()
}

/// Keeps a view for later. One that cannot be written is computed again.
pub fn keep<V: KeptView>(store: &Store, name: RecordingName, view: &V) {
    let (Some(stored), Some(maker), Ok(bytes)) = (sealed(store, name), maker(), serde_json::to_vec(view)) else { return };
    if let Err(error) = stored.keep_view(V::NAME, maker, &bytes) {
        tracing::warn!(%name, view = V::NAME, %error, "a view was not kept");
    }
}

fn sealed(store: &Store, name: RecordingName) -> Option<StoredRecording> {
    store.recording(name).ok().filter(|stored| matches!(stored.state, RecordingState::Sealed { .. }))
}

/// This very program: its version, and the size and age of its file. `None` where it cannot be known, and then nothing is kept.
fn maker() -> Option<&'static str> {
    static MAKER: OnceLock<Option<String>> = OnceLock::new();
    let of_program = || {
        let file = std::fs::metadata("/proc/self/exe").ok()?;
        Some(format!("{} {} {}.{:09}", env!("CARGO_PKG_VERSION"), file.len(), file.mtime(), file.mtime_nsec()))
    };
    MAKER.get_or_init(of_program).as_deref()
}
