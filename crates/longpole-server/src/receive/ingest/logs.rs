//! Log records that name a span become events of it.

use longpole_model::sink::EventRef;
use longpole_model::{Loss, LossKind, Resource, Scope, SpanId, TraceId};
use longpole_wire::otlp::logs::LogSink;
use longpole_wire::redact::Redactor;

use super::super::received_sink::ReceivedSinkError;
use super::super::redaction::CREDENTIALS;
use super::IngestContext;
use super::empty_parts::{EMPTY, leave_out_of_event};

/// Log records of spans that could not be kept.
pub(super) struct Unkept {
    pub(super) records: u64,
    /// Why the first was not.
    pub(super) error: ReceivedSinkError,
    /// Whether no other record of the request is kept.
    pub(super) is_all: bool,
}

/// Keeps log records that name a span.
pub(super) struct Events<'a> {
    pub(super) context: &'a IngestContext<'a>,
    pub(super) redactor: Option<&'a mut Redactor>,
    pub(super) kept: u64,
    /// How many could not be, and why the first was not.
    pub(super) unkept: Option<(u64, ReceivedSinkError)>,
}

impl LogSink for Events<'_> {
    // Whose record it is, its span says.
    fn resource(&mut self, _: Resource) {}

    fn scope(&mut self, _: Scope) {}

    fn event(&mut self, trace_id: TraceId, span_id: SpanId, event: EventRef<'_>) {
        let mut event = event.to_event();
        self.context.book.add(LossKind::AttributesCut, leave_out_of_event(&mut event), EMPTY);
        let taken = self.redactor.as_deref_mut().map_or(0, |redactor| redactor.event(&mut event));
        self.context.book.add(LossKind::ValuesRedacted, taken, CREDENTIALS);
        match self.context.desk().sink.log_event(trace_id, span_id, event) {
            Ok(()) => self.kept += 1,
            Err(error) => self.unkept.get_or_insert((0, error)).0 += 1,
        }
    }

    fn loss(&mut self, loss: Loss) {
        self.context.book.add(loss.kind, loss.count, loss.detail);
    }
}

/// Why a log record is not kept.
pub(super) const NO_SPAN: &str = "log records without a span, which longpole does not keep";
