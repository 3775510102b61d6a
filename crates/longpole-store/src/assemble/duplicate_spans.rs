//! Spans of several processes with the same trace and span id.
//!
//! Ids stand in `TRACEPARENT` and in every request to another service, so a called service can send a span with its caller's ids. The
//! receiver knows which process sent each span, whatever its resource says.
//!
//! ```text
//! sent by 10, whose resource says 10    its own
//! sent by 12, whose resource says 10    12 forwards spans of 10, or claims to; so does a fork
//! ```

use std::hash::Hasher;

use longpole_model::{Loss, LossKind, Span, SpanId};
use siphasher::sip::SipHasher13;

use super::processes::ProcessesBuilder;
use crate::compact_spans::CompactSpans;

/// The loss of the spans that lose their ids to another one.
const DETAIL: &str = "spans that another process sent with the ids of a kept span; longpole keeps the first, unless the span's own process \
                      or one of its ancestors sent another";

/// The loss of the spans that got other ids.
const MOVED: &str = "spans with the id of another span but another name or time; both are kept, with ids of their own";

/// How often an id is searched that no other span has.
const IDS_TRIED: u8 = 8;

/// An id for a span whose own another one has: the same for the same span each time.
fn id_beside(span: &Span, attempt: u8) -> Option<SpanId> {
    let mut hasher = SipHasher13::new();
    hasher.write(&span.span_id.bytes());
    hasher.write_u8(attempt);
    hasher.write_i64(span.start.unix_nanos());
    for text in [span.name.as_str(), span.service_name()] {
        hasher.write_usize(text.len());
        hasher.write(text.as_bytes());
    }
    SpanId::new(hasher.finish().to_be_bytes())
}

/// The senders of spans, and the spans with the ids of a kept one.
#[derive(Debug, Default)]
pub(super) struct DuplicateSpans {
    /// The sender of each span that is kept; 0 where it is unknown.
    senders: Vec<u32>,
    spans: CompactSpans,
    /// The place that each of them wants, and its sender.
    claims: Vec<(usize, u32)>,
    /// How many got ids of their own.
    moved: u64,
}

impl DuplicateSpans {
    /// Notes the sender of the next span that is kept.
    pub(super) fn note_kept(&mut self, sender: Option<u32>) {
        self.senders.push(sender.unwrap_or(0));
    }

    /// Notes the sender of a span that took the place of one.
    pub(super) fn note_replaced(&mut self, at: usize, sender: Option<u32>) {
        self.senders[at] = sender.unwrap_or(0);
    }

    /// Gives a span of an unknown sender an id that no kept span has, or that of a kept one which is the same. Clients of a server
    /// know each other's ids; no span may disappear behind one that another client sent.
    pub(super) fn move_aside(&mut self, span: &mut Span, is_free: impl Fn(&Span) -> bool) {
        self.moved += 1;
        let ids: Vec<SpanId> = (0..IDS_TRIED).filter_map(|attempt| id_beside(span, attempt)).collect();
        for id in ids {
            span.span_id = id;
            if is_free(span) {
                return;
            }
        }
    }

    /// How many spans wait.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Says what to do with a span whose ids another one has already: whether they are of one process, so that it may simply take the
    /// place. Where they are not, it waits here.
    pub(super) fn may_replace(&mut self, at: usize, kept: &mut CompactSpans, sender: Option<u32>, span: &Span) -> bool {
        let sender = sender.unwrap_or(0);
        let of_one = (kept.pid(at), self.senders[at]) == (span.pid, sender);
        if of_one || kept.is_unfinished(at) || kept.says(at, span) {
            return true;
        }
        self.spans.push(span);
        self.claims.push((at, sender));
        false
    }

    /// Gives places to those that have a better claim than who has them, and counts the others.
    pub(super) fn settle(mut self, kept: &mut CompactSpans, processes: &ProcessesBuilder) -> Vec<Loss> {
        for (index, (at, sender)) in self.claims.iter().enumerate() {
            let (pid, first_pid, first_sender) = (self.spans.pid(index), kept.pid(*at), self.senders[*at]);
            let is_own = |pid: Option<u32>, sender: u32| sender != 0 && pid == Some(sender);
            let comes_home = first_pid == pid && is_own(pid, *sender) && !is_own(first_pid, first_sender);
            let whose = if first_sender == 0 { first_pid } else { Some(first_sender) };
            let is_above = is_own(pid, *sender) && whose.is_some_and(|pid| processes.is_above(*sender, pid));
            if !self.spans.is_unfinished(index) && (comes_home || is_above) {
                kept.replace(*at, &self.spans.get(index));
                self.senders[*at] = *sender;
            }
        }
        let losses = [(self.claims.len() as u64, DETAIL), (self.moved, MOVED)].into_iter().filter(|(count, _)| *count > 0);
        losses.map(|(count, detail)| Loss::new(LossKind::SpansDuplicate, count, detail)).collect()
    }
}
