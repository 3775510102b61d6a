//! Losses of a door while it is open: counted from many tasks, read once at the end. Reasons are judged and cut before they are stored.

use std::sync::{Mutex, MutexGuard, PoisonError};

use longpole_model::{Loss, LossKind};
use longpole_wire::redact::Redactor;

/// How long the reason of a loss may be. It quotes what others sent, and all reasons have to fit into what a recording keeps for its end.
pub const LOSS_DETAIL_BYTES_MAX: usize = 512;

/// Different reasons kept for one kind of loss. A hostile client could make up reasons without end.
pub const LOSS_DETAILS_MAX: usize = 16;

/// Detail of losses beyond [`LOSS_DETAILS_MAX`] different reasons.
const OTHER_REASONS: &str = "other reasons";

/// So much of a reason is judged; a credential at the end of it is cut off with what follows.
const JUDGED_BYTES_MAX: usize = 8 * LOSS_DETAIL_BYTES_MAX;

/// A reason as it may be stored: without the credentials in what it quotes, and not longer than [`LOSS_DETAIL_BYTES_MAX`].
pub fn storable(detail: &str) -> String {
    let judged = &detail[..detail.floor_char_boundary(JUDGED_BYTES_MAX)];
    let mut kept = judged.to_owned();
    Redactor::default().string(&mut kept);
    if judged.len() < detail.len() || kept.len() > LOSS_DETAIL_BYTES_MAX {
        kept.truncate(kept.floor_char_boundary(LOSS_DETAIL_BYTES_MAX));
        kept.push('…');
    }
    kept
}

/// The same of all losses of a recording.
pub(crate) fn make_storable(losses: &mut Vec<Loss>) {
    for loss in std::mem::take(losses) {
        Loss { detail: storable(&loss.detail), ..loss }.merge_into(losses);
    }
}

/// A list of losses that several threads add to.
#[derive(Debug, Default)]
pub struct LossBook(Mutex<Vec<Loss>>);

impl LossBook {
    /// What is missing so far.
    pub fn list(&self) -> Vec<Loss> {
        self.lock().clone()
    }

    /// Adds to the book. Reasons come from clients, so their number is bounded.
    pub fn add(&self, kind: LossKind, count: u64, detail: impl Into<String>) {
        if count == 0 {
            return;
        }
        let loss = Loss::new(kind, count, detail);
        // Most are: one that stands there was judged, and spans and log records come by the million.
        let mut losses = self.lock();
        if is_known(&losses, kind, &loss.detail) {
            return loss.merge_into(&mut losses);
        }
        drop(losses);
        let loss = Loss { detail: storable(&loss.detail), ..loss };
        let mut losses = self.lock();
        if is_known(&losses, kind, &loss.detail) || losses.iter().filter(|l| l.kind == kind).count() < LOSS_DETAILS_MAX {
            loss.merge_into(&mut losses);
        } else {
            Loss::new(kind, count, OTHER_REASONS).merge_into(&mut losses);
        }
    }

    /// Adds one, unless it is there already.
    pub fn add_once(&self, kind: LossKind, detail: &str) {
        let is_there = |detail: &str| is_known(&self.lock(), kind, detail);
        if !is_there(detail) && !is_there(&storable(detail)) {
            self.add(kind, 1, detail);
        }
    }

    /// Everything added so far; the book is empty afterwards.
    pub fn take(&self) -> Vec<Loss> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Loss>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_known(losses: &[Loss], kind: LossKind, detail: &str) -> bool {
    losses.iter().any(|loss| loss.kind == kind && loss.detail == detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_quotes_no_credential_and_does_not_crowd_out_others() {
        assert_eq!(storable("unknown path /tok/ghp_0123456789abcdefghijABCDEFGHIJ012345/v1"), "unknown path /tok/[redacted]/v1");
        assert_eq!(storable("no such thing: password=hunter2x"), "no such thing: password=[redacted]");
        let long = storable(&"é".repeat(1 << 20));
        assert_eq!(long.len(), LOSS_DETAIL_BYTES_MAX + '…'.len_utf8());
        let book = LossBook::default();
        book.add_once(LossKind::RequestsRefused, "token=hunter2x");
        book.add_once(LossKind::RequestsRefused, "token=hunter2x");
        assert_eq!(book.take(), [Loss::new(LossKind::RequestsRefused, 1, "token=[redacted]")]);
    }

    #[test]
    fn counts_add_up_and_reasons_are_bounded() {
        let book = LossBook::default();
        for i in 0..100 {
            book.add(LossKind::RequestsRefused, 1, format!("reason {i}"));
            book.add(LossKind::OtherSignals, 2, "metrics");
        }
        let losses = book.take();
        assert_eq!(losses.len(), LOSS_DETAILS_MAX + 2);
        assert_eq!(losses.iter().filter(|l| l.kind == LossKind::RequestsRefused).map(|l| l.count).sum::<u64>(), 100);
        assert!(losses.contains(&Loss::new(LossKind::OtherSignals, 200, "metrics")));
        assert!(losses.contains(&Loss::new(LossKind::RequestsRefused, 84, "other reasons")));
        assert!(book.take().is_empty());
    }
}
