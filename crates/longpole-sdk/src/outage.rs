//! The lines on stderr about a collector that does not answer: one when the outage begins, one when it is over.

use crate::diagnostic::tell;
use crate::span_counts::SpanCounts;

/// An outage, and what was reported of it.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Why the last attempt failed; `None` while all is well.
    why: Option<String>,
    /// Lost spans that were reported.
    told_lost: u64,
}

impl Outage {
    /// Tells of the first failure of a row; the others follow from it.
    pub(crate) fn begin(&mut self, url: &str, why: String, consequence: &str) {
        if self.why.is_none() {
            tell(&format!("cannot send spans to {url}: {why}; {consequence}"));
        }
        self.why = Some(why);
    }

    /// Keeps the reason for the last word about it.
    pub(crate) fn note(&mut self, why: String) {
        self.why = Some(why);
    }

    /// All is well again; says whether it was not.
    pub(crate) fn end(&mut self) -> bool {
        self.why.take().is_some()
    }

    /// Tells how many spans are lost, if that is news.
    pub(crate) fn tell_losses(&mut self, url: &str, counts: &SpanCounts) {
        let lost = counts.lost();
        if lost > self.told_lost {
            self.told_lost = lost;
            let full = if counts.queue_full > 0 { format!("; {} found the queue full", counts.queue_full) } else { String::new() };
            let why = self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let refused = if counts.refused > 0 { format!("; {} could not be made", counts.refused) } else { String::new() };
            let late = if counts.late > 0 { format!("; {} ended after the shutdown", counts.late) } else { String::new() };
            tell(&format!("{lost} of {} spans were lost on the way to {url}{why}{full}{late}{refused}", counts.emitted));
        }
    }
}
