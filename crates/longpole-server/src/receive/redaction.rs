//! Redaction of spans before they are kept.

use longpole_model::{LossKind, SpanBatch};
use longpole_recording::loss_counters::LossBook;
use longpole_wire::redact::Redactor;

/// Takes credentials out of spans that are to be kept, and counts them.
pub(super) fn redact_spans(batch: &mut SpanBatch, redactor: Option<&mut Redactor>, book: &LossBook) {
    let Some(redactor) = redactor else { return };
    let taken = redactor.spans(&mut batch.spans);
    book.add(LossKind::ValuesRedacted, taken, CREDENTIALS);
}

/// Which values are taken out.
pub(super) const CREDENTIALS: &str = "values whose name or format looks like a credential; run --redact off keeps them";
