//! Spans of several processes with the same trace and span id.
//!
//! Ids stand in `TRACEPARENT` and in every request to another service, so a called service can send a span with its caller's ids. The
//! receiver knows which process sent each span, whatever its resource says.
//!
//! ```text
//! sent by 10, whose resource says 10    its own
//! sent by 12, whose resource says 10    12 forwards spans of 10, or claims to; so does a fork
//! ```

use longpole_model::{Loss, LossKind, Span};

use super::processes::ProcessesBuilder;
use crate::compact_spans::CompactSpans;

/// The loss of the spans that lose their ids to another one.
const DETAIL: &str = "spans that another process sent with the ids of a kept span; longpole keeps the first, unless the span's own process \
                      or one of its ancestors sent another";

/// The senders of spans, and the spans with the ids of a kept one.
#[derive(Debug, Default)]
pub(super) struct DuplicateSpans {
    /// The sender of each span that is kept; 0 where it is unknown.
    senders: Vec<u32>,
    spans: CompactSpans,
    /// The place that each of them wants, and its sender.
    claims: Vec<(usize, u32)>,
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
    pub(super) fn settle(mut self, kept: &mut CompactSpans, processes: &ProcessesBuilder) -> Option<Loss> {
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
        let count = self.claims.len() as u64;
        (count > 0).then(|| Loss::new(LossKind::SpansDuplicate, count, DETAIL))
    }
}
