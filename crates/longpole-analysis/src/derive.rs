//! What is inferred of a recording once, before it is written: which spans are one, what they work on, and whose samples and waits are.
//!
//! A recording that a store holds has all of it; see [`Report::of_derived`](crate::Report::of_derived).

use longpole_model::{Recording, ResourceEvent};

use crate::link::{samples, waits};
use crate::note::Note;
use crate::pulumi::{identity, opentracing_bridge, span_process};
use crate::window;

/// Folds the spans that arrived twice, names their resources and processes, and links samples and waits to spans. Links that the recording
/// brings stay. `events` are what Pulumi's engine said of its resources. Returns notes on operations that had not ended or matched no span.
///
/// A second call changes nothing.
pub fn derive(recording: &mut Recording, events: &[ResourceEvent]) -> Vec<Note> {
    window::keep_to(recording);
    // Which spans there are, and what they are about, is settled before samples are linked to them.
    opentracing_bridge::join(recording);
    let notes = identity::identify(recording, events);
    span_process::place(recording);
    if recording.sample_links.len() != recording.samples.len() {
        recording.sample_links = samples::link(recording);
    }
    waits::name_thread_waits(recording);
    if recording.wait_links.len() != recording.waits.len() {
        recording.wait_links = waits::link(recording);
    }
    waits::name_waits_of_spans(recording);
    notes
}
