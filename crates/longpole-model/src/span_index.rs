//! Where spans stand in a list, by their ids.
//!
//! ```text
//! (trace id, span id) ─ hash ─► slot: tag, place ─► spans[place], whose ids decide
//! ```
//!
//! Ids are not kept a second time. A slot has eight bytes, and at least half of the slots are free; a map with the ids in it takes
//! four times the memory, and hashing them with SipHash was most of the time to find a million parents.

use std::hash::{BuildHasher, Hasher};

use crate::fast_hash::FastState;
use crate::id::{SpanId, TraceId};
use crate::span_head::InTree;

/// The place of an empty slot.
const NONE: u32 = u32::MAX;

/// Slots of the smallest index.
const SLOTS_MIN: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Bits of the hash that the number of the slot does not tell: of a thousand million other spans one has the same.
    tag: u32,
    place: u32,
}

const EMPTY: Slot = Slot { tag: 0, place: NONE };

/// Finds spans by their ids. It knows the spans of one list, which every call brings along; of two with the same ids it
/// knows the first. A list may have up to 2^32 - 1 spans, as many as a recording.
#[derive(Debug, Clone)]
pub struct SpanIndex {
    /// A power of two of them.
    slots: Vec<Slot>,
    known: usize,
    /// Ids come from elsewhere, and whoever makes them must not know where they fall.
    state: FastState,
}

impl Default for SpanIndex {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl SpanIndex {
    /// An empty index with room for this number of spans.
    pub fn with_capacity(spans: usize) -> Self {
        let slots = (2 * spans).next_power_of_two().max(SLOTS_MIN);
        SpanIndex { slots: vec![EMPTY; slots], known: 0, state: FastState::default() }
    }

    /// The index of all these spans.
    pub fn of(spans: &[impl InTree]) -> Self {
        let mut index = Self::with_capacity(spans.len());
        for (place, span) in spans.iter().enumerate() {
            index.add(&spans[..place], span.trace_id(), span.span_id());
        }
        index
    }

    /// How many different ids it knows.
    pub fn len(&self) -> usize {
        self.known
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.known == 0
    }

    /// The place of the span with these ids.
    pub fn get(&self, spans: &[impl InTree], trace: TraceId, span: SpanId) -> Option<usize> {
        self.find(spans, trace, span).ok()
    }

    /// Takes these ids for those of the span that will stand behind `spans`; where one of these has them already, says which,
    /// and that one stays known.
    pub fn add(&mut self, spans: &[impl InTree], trace: TraceId, span: SpanId) -> Option<usize> {
        if 2 * self.known >= self.slots.len() {
            self.grow(spans);
        }
        match self.find(spans, trace, span) {
            Ok(place) => Some(place),
            Err((slot, tag)) => {
                self.slots[slot] = Slot { tag, place: spans.len() as u32 };
                self.known += 1;
                None
            }
        }
    }

    /// The place, or the free slot where it would be looked for next, with its tag.
    fn find(&self, spans: &[impl InTree], trace: TraceId, span: SpanId) -> Result<usize, (usize, u32)> {
        let hash = self.hash(trace, span);
        let (mask, tag) = (self.slots.len() - 1, (hash >> 32) as u32);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.place == NONE {
                return Err((at, tag));
            }
            if slot.tag == tag {
                let known = &spans[slot.place as usize];
                if known.span_id() == span && known.trace_id() == trace {
                    return Ok(slot.place as usize);
                }
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self, spans: &[impl InTree]) {
        let slots = vec![EMPTY; 2 * self.slots.len()];
        let mask = slots.len() - 1;
        for slot in std::mem::replace(&mut self.slots, slots).into_iter().filter(|slot| slot.place != NONE) {
            let span = &spans[slot.place as usize];
            let mut at = self.hash(span.trace_id(), span.span_id()) as usize & mask;
            while self.slots[at].place != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    fn hash(&self, trace: TraceId, span: SpanId) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write(&trace.bytes());
        hasher.write(&span.bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;
    use crate::time::{TimeRange, Timestamp};

    fn span(trace: u64, span: u64) -> Span {
        let trace = TraceId::from_slice(&u128::from(trace).to_be_bytes()).unwrap();
        let range = TimeRange { start: Timestamp(0), end: Timestamp(0) };
        Span::new(trace, SpanId::from_slice(&span.to_be_bytes()).unwrap(), "", range)
    }

    #[test]
    fn every_span_is_found_and_of_two_with_the_same_ids_the_first() {
        // Ids that differ in one byte only, and the same span id in every trace.
        let mut spans: Vec<Span> = (1..=40).flat_map(|trace| (1..=50).map(move |id| span(trace << 56, id))).collect();
        spans.push(span(7 << 56, 7));
        let mut growing = SpanIndex::default();
        for (place, span) in spans.iter().enumerate() {
            let known = growing.add(&spans[..place], span.trace_id, span.span_id);
            assert_eq!(known, (place == 2000).then_some(6 * 50 + 6));
        }
        for index in [growing, SpanIndex::of(&spans)] {
            assert_eq!(index.len(), 2000);
            for (place, span) in spans[..2000].iter().enumerate() {
                assert_eq!(index.get(&spans, span.trace_id, span.span_id), Some(place));
            }
            let stranger = span(41 << 56, 1);
            assert_eq!(index.get(&spans, stranger.trace_id, stranger.span_id), None);
        }
    }
}
