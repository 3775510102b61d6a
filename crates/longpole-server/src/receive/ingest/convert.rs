//! Spans of another format become requests of ours.

use std::net::SocketAddr;

use longpole_analysis::time::callees;
use longpole_model::{Loss, Resource, Scope, SpanBatch, SpanRef, SpanSink};
use longpole_wire::otlp::{self, is_whole_in_otlp};
use longpole_wire::redact::Redactor;

use super::super::received_sink::ReceivedSinkError;
use super::super::redaction::redact_spans;
use super::IngestContext;
use super::check::note_called;
use crate::limits::CONVERTED_SPANS_MAX;
use crate::otlp_request::{Encoding, Parcel};

/// Keeps spans of another format as requests of ours while they are decoded, so that they never stand in memory all together.
pub(super) struct Convert<'a> {
    pub(super) context: &'a IngestContext<'a>,
    pub(super) redactor: Option<&'a mut Redactor>,
    pub(super) peer_pid: Option<u32>,
    pub(super) batch: SpanBatch,
    /// Addresses that the spans call.
    pub(super) called: Vec<SocketAddr>,
    /// Why nothing more is kept: the client is to send all of it again.
    pub(super) failed: Option<ReceivedSinkError>,
}

impl Convert<'_> {
    pub(super) fn give(&mut self) {
        redact_spans(&mut self.batch, self.redactor.as_deref_mut(), self.context.book);
        for loss in self.batch.losses.drain(..) {
            self.context.book.add(loss.kind, loss.count, loss.detail);
        }
        let spans = std::mem::take(&mut self.batch.spans);
        if self.context.wants_listeners {
            spans.iter().filter_map(callees::address_of).for_each(|address| note_called(&mut self.called, address));
        }
        if spans.is_empty() || self.failed.is_some() {
            return;
        }
        let body = otlp::encode_trace(&spans);
        let count = spans.len() as u64;
        // Whoever decodes the body cuts what is too long.
        let are_whole = self.context.wants_spans && spans.iter().all(|span| is_whole_in_otlp(&span.resource, &span.scope));
        let mut desk = self.context.desk();
        let kept = if are_whole {
            desk.sink.decoded_traces(&body, Encoding::Protobuf, spans, self.peer_pid)
        } else {
            desk.sink.traces(&body, Encoding::Protobuf, self.peer_pid)
        };
        drop(desk);
        match kept {
            Ok(()) => self.context.forwarder.send(&Parcel::converted(body.into(), count)),
            Err(error) => self.failed = Some(error),
        }
    }
}

impl SpanSink for Convert<'_> {
    fn resource(&mut self, resource: Resource) {
        self.batch.resource(resource);
    }

    fn scope(&mut self, scope: Scope) {
        self.batch.scope(scope);
    }

    fn span(&mut self, span: SpanRef<'_>) {
        self.batch.span(span);
        if self.batch.spans.len() >= CONVERTED_SPANS_MAX {
            self.give();
        }
    }

    fn loss(&mut self, loss: Loss) {
        self.batch.loss(loss);
    }
}
