//! Losses of a door while it is open: counted from many tasks, read once at the end.

use std::sync::{Mutex, PoisonError};

use longpole_model::{Loss, LossKind};

use crate::limits::LOSS_DETAILS_MAX;

/// Detail of losses beyond [`LOSS_DETAILS_MAX`] different reasons.
const OTHER_REASONS: &str = "other reasons";

/// A list of losses that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct LossBook(Mutex<Vec<Loss>>);

impl LossBook {
    /// Adds to the book. Reasons come from clients, so their number is bounded.
    pub(crate) fn add(&self, kind: LossKind, count: u64, detail: impl Into<String>) {
        if count == 0 {
            return;
        }
        let mut losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let loss = Loss::new(kind, count, detail);
        let known = losses.iter().any(|l| l.kind == kind && l.detail == loss.detail);
        if known || losses.iter().filter(|l| l.kind == kind).count() < LOSS_DETAILS_MAX {
            loss.merge_into(&mut losses);
        } else {
            Loss::new(kind, count, OTHER_REASONS).merge_into(&mut losses);
        }
    }

    /// Adds one, unless it is there already.
    pub(crate) fn add_once(&self, kind: LossKind, detail: &str) {
        let is_known = |losses: &Vec<Loss>| losses.iter().any(|loss| loss.kind == kind && loss.detail == detail);
        if !is_known(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            self.add(kind, 1, detail);
        }
    }

    /// Everything added so far; the book is empty afterwards.
    pub(crate) fn take(&self) -> Vec<Loss> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
