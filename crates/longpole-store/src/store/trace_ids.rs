//! The traces by which a recording is found.

use std::collections::HashSet;

use longpole_model::{Recording, TraceId};

use crate::compact_spans::CompactRecording;

/// Traces of one recording that the catalog knows. A file with more is one of many requests, which nobody finds by one of them.
const TRACES_MAX: usize = 10_000;

/// The traces of a recording: its own, and the first 10,000 of its spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceIds(Vec<TraceId>);

impl TraceIds {
    /// Those of a recording.
    pub fn of(recording: &Recording) -> TraceIds {
        TraceIds::first(recording.run.trace_id, recording.spans.iter().map(|span| span.trace_id))
    }

    /// The same of one whose spans are compact.
    pub fn of_compact(recording: &CompactRecording) -> TraceIds {
        TraceIds::first(recording.rest.run.trace_id, recording.spans.heads().iter().map(|head| head.trace_id))
    }

    fn first(own: TraceId, of_spans: impl Iterator<Item = TraceId>) -> TraceIds {
        let (mut seen, mut last) = (HashSet::from([own]), None);
        let mut ids = vec![own];
        // The spans of a trace mostly follow each other.
        for id in of_spans.filter(|id| last.replace(*id) != Some(*id)) {
            if ids.len() > TRACES_MAX {
                break;
            }
            if seen.insert(id) {
                ids.push(id);
            }
        }
        TraceIds(ids)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = TraceId> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> TraceId {
        TraceId::from_slice(&(number as u128 + 1).to_be_bytes()).unwrap()
    }

    #[test]
    fn a_recording_is_known_by_its_own_trace_and_by_the_first_ones_of_its_spans() {
        let few = TraceIds::first(id(7), [1, 1, 2, 1, 7].into_iter().map(id));
        assert_eq!(few.iter().collect::<Vec<_>>(), [id(7), id(1), id(2)]);
        assert_eq!(TraceIds::first(id(0), (1..2 * TRACES_MAX).map(id)).iter().count(), TRACES_MAX + 1);
    }
}
