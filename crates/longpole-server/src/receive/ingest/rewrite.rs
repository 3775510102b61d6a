//! Writes a request anew without what is not to be stored.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use longpole_model::{AttributeValue, Loss, Resource, Scope, Span, SpanBatch, SpanRef, SpanSink};
use longpole_recording::loss_counters::LossBook;
use longpole_wire::redact::Redactor;
use longpole_wire::{otlp, pulumi_payload};

use super::super::connection::Claim;
use super::super::redaction::redact_spans;
use super::empty_parts::{self, Census};
use crate::limits::{CONVERTED_SPANS_MAX, CONVERTED_VALUES_MAX};

/// A request without what is not to be stored.
pub(super) struct Rewritten {
    pub(super) kept: Vec<u8>,
    /// What is handed on where the request itself is not: Pulumi would have sent payloads to nobody but its own bridge.
    pub(super) forwarded: Option<Bytes>,
}

/// Writes spans anew while they are decoded, some at a time: all of them together take many times the bytes of their request in memory.
pub(super) struct Rewrite<'a> {
    redactor: Option<&'a mut Redactor>,
    claims: &'a HashMap<u32, Claim>,
    book: &'a LossBook,
    batch: SpanBatch,
    /// Values of the spans in the batch.
    values: u64,
    kept: Vec<u8>,
    /// `None` without payloads.
    forwarded: Option<Vec<u8>>,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(
        redactor: Option<&'a mut Redactor>,
        claims: &'a HashMap<u32, Claim>,
        payloads: bool,
        book: &'a LossBook,
    ) -> Rewrite<'a> {
        let forwarded = payloads.then(Vec::new);
        Rewrite { redactor, claims, book, batch: SpanBatch::default(), values: 0, kept: Vec::new(), forwarded }
    }

    pub(super) fn finish(mut self) -> Rewritten {
        self.give();
        Rewritten { kept: self.kept, forwarded: self.forwarded.map(Bytes::from) }
    }

    /// Writes the batch. Requests of protobuf behind each other are one request.
    fn give(&mut self) {
        self.values = 0;
        // Counted when the request was checked.
        self.batch.losses.clear();
        if let Some(forwarded) = &mut self.forwarded {
            self.batch.spans.iter_mut().for_each(pulumi_payload::leave_out);
            forwarded.extend(otlp::encode_trace(&self.batch.spans));
        }
        self.batch.spans.iter_mut().for_each(empty_parts::leave_out);
        redact_spans(&mut self.batch, self.redactor.as_deref_mut(), self.book);
        translate(&mut self.batch.spans, self.claims);
        self.kept.extend(otlp::encode_trace(&self.batch.spans));
        self.batch.spans.clear();
    }
}

impl SpanSink for Rewrite<'_> {
    fn resource(&mut self, resource: Resource) {
        self.batch.resource(resource);
    }

    fn scope(&mut self, scope: Scope) {
        self.batch.scope(scope);
    }

    fn span(&mut self, span: SpanRef<'_>) {
        self.values += Census::of(&span).values;
        self.batch.span(span);
        if self.batch.spans.len() >= CONVERTED_SPANS_MAX || self.values >= CONVERTED_VALUES_MAX {
            self.give();
        }
    }

    fn loss(&mut self, _: Loss) {}
}

/// Gives processes the pids that they have here. Their own numbers become `process.vpid`, OpenTelemetry's name for them.
fn translate(spans: &mut [Span], claims: &HashMap<u32, Claim>) {
    let mut translated: HashMap<*const Resource, Arc<Resource>> = HashMap::new();
    // Keeps the old resources alive, because their addresses are the keys of the map.
    let mut old = Vec::new();
    for span in spans {
        let Some(claim) = span.resource.process_pid().and_then(|pid| claims.get(&pid)) else { continue };
        let new = translated.entry(Arc::as_ptr(&span.resource)).or_insert_with(|| {
            old.push(Arc::clone(&span.resource));
            let mut resource = Resource::clone(&span.resource);
            for attribute in resource.attributes.0.iter_mut().filter(|attribute| attribute.key == "process.pid") {
                attribute.key = "process.vpid".into();
            }
            if let Claim::OwnNamespace(pid) = claim {
                resource.attributes.push("process.pid", AttributeValue::Int(i64::from(*pid)));
            }
            Arc::new(resource)
        });
        span.resource = Arc::clone(new);
    }
}
