//! Checks a request before anything of it is kept.

use std::net::SocketAddr;

use longpole_analysis::time::callees::{self, Called};
use longpole_model::sink::ValueRef;
use longpole_model::{Loss, LossKind, Resource, Scope, SpanBatch, SpanRef, SpanSink};
use longpole_wire::redact::Redactor;
use longpole_wire::{DecodeError, Limits, otlp, pulumi_payload};

use super::super::allowed_senders::says_run;
use super::super::pulumi::span_dedup;
use super::empty_parts::Census;
use crate::limits::{CALLED_PER_REQUEST_MAX, CLAIMS_MAX};
use crate::otlp_request::Encoding;

/// Checks a request before anything of it is kept.
#[derive(Debug, Default)]
pub(super) struct Check<'a> {
    pub(super) redactor: Option<&'a mut Redactor>,
    /// It has payloads of Pulumi.
    pub(super) payloads: bool,
    /// It has credentials, which must not be kept.
    pub(super) credentials: bool,
    /// It has spans that may come again by Pulumi's other tracer.
    pub(super) twins: bool,
    pub(super) spans: u64,
    /// Parts of spans that say nothing, which must not be kept.
    pub(super) empty: u64,
    pub(super) losses: Vec<Loss>,
    /// The resource of the spans that follow does not say its process.
    pub(super) resource_without_pid: bool,
    /// Such spans came.
    pub(super) pid_missing: bool,
    /// The run that resources must name, if the connection proves nothing.
    pub(super) run_id: Option<&'a str>,
    /// The resource of the spans that follow does not.
    pub(super) is_of_another: bool,
    /// Such a resource or such spans came.
    pub(super) unproven: bool,
    /// Addresses that spans call.
    pub(super) called: Vec<SocketAddr>,
    /// Processes that resources say they are.
    pub(super) claims: Vec<u32>,
    /// Whether somebody searches for the listeners at addresses that spans call.
    pub(super) wants_called: bool,
    /// The spans, for a sink that wants them: else the sink would decode the request again. `None` from the first part on that must not be
    /// kept, because then the request is written anew, and what must not be kept may be millions of parts.
    pub(super) batch: Option<SpanBatch>,
}

impl Check<'_> {
    /// Decodes all of it. A request that is kept as it came includes parts that the decoder does not read, so it inspects those, too.
    pub(super) fn request(&mut self, bytes: &[u8], encoding: Encoding, limits: &Limits) -> Result<(), DecodeError> {
        match encoding {
            Encoding::Protobuf => {
                let unread = otlp::trace::decode_and_say_unread(bytes, limits, self)?;
                self.inspect(|redactor| unread.unknown || unread.texts.into_iter().any(|range| redactor.concerns_bytes(&bytes[range])));
            }
            Encoding::Json => {
                let unread = otlp::json::decode_and_say_unread(bytes, limits, self)?;
                // The positions of such members are unknown, so this searches the whole text. Nothing judged the omitted parts.
                self.inspect(|redactor| unread.left_out || unread.unknown && redactor.concerns_bytes(bytes));
            }
        }
        // Whatever the decoder left out, cut or replaced was not judged. What the emitter dropped never came.
        let left_out = self.losses.iter().any(|loss| loss.kind != LossKind::DroppedByEmitter);
        self.inspect(|_| left_out);
        self.drop_what_is_rewritten();
        Ok(())
    }

    fn drop_what_is_rewritten(&mut self) {
        if self.payloads || self.credentials || self.empty > 0 {
            self.batch = None;
        }
    }

    fn inspect(&mut self, concerns: impl FnOnce(&mut Redactor) -> bool) {
        if let Some(redactor) = self.redactor.as_deref_mut().filter(|_| !self.credentials) {
            self.credentials = concerns(redactor);
        }
    }
}

impl SpanSink for Check<'_> {
    fn resource(&mut self, resource: Resource) {
        let pid = resource.process_pid();
        self.resource_without_pid = pid.is_none();
        self.claims.extend(pid.filter(|pid| self.claims.len() < CLAIMS_MAX && !self.claims.contains(pid)));
        self.is_of_another = self.run_id.is_some_and(|id| !says_run(&resource, id));
        // Also without spans: an unproven resource must not be kept beside a proven one.
        self.unproven |= self.is_of_another;
        self.twins |= span_dedup::concern(&resource);
        self.inspect(|redactor| redactor.concerns_resource(&resource));
        if let Some(batch) = &mut self.batch {
            batch.resource(resource);
        }
    }

    fn scope(&mut self, scope: Scope) {
        self.inspect(|redactor| redactor.concerns_scope(&scope));
        if let Some(batch) = &mut self.batch {
            batch.scope(scope);
        }
    }

    fn span(&mut self, span: SpanRef<'_>) {
        self.payloads = self.payloads || pulumi_payload::is_in(&span);
        self.spans += 1;
        self.empty += Census::of(&span).empty;
        // Then it is written anew, and judged when it is.
        let is_rewritten = self.empty > 0;
        self.inspect(|redactor| is_rewritten || redactor.concerns_span(&span));
        self.pid_missing |= self.resource_without_pid;
        self.unproven |= self.is_of_another;
        if self.wants_called
            && let Some(address) = called_by(&span)
        {
            note_called(&mut self.called, address);
        }
        self.drop_what_is_rewritten();
        if let Some(batch) = &mut self.batch {
            batch.span(span);
        }
    }

    fn loss(&mut self, loss: Loss) {
        loss.merge_into(&mut self.losses);
    }
}

pub(super) fn note_called(called: &mut Vec<SocketAddr>, address: SocketAddr) {
    if called.len() < CALLED_PER_REQUEST_MAX && !called.contains(&address) {
        called.push(address);
    }
}

/// The address that a span calls.
fn called_by(span: &SpanRef<'_>) -> Option<SocketAddr> {
    if !callees::calls(span.kind) {
        return None;
    }
    let mut called = Called::default();
    for (key, value) in span.attributes {
        match value {
            ValueRef::Str(text) => called.add(key, Some(text), None),
            ValueRef::Int(number) => called.add(key, None, Some(*number)),
            _ => {}
        }
    }
    called.address()
}
