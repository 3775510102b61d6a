//! What the layer keeps with an open span.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::config::Limits;
use crate::encode::{self, Value};
use crate::propagation::Carried;
use crate::span_context::SpanContext;

/// Most bytes that attributes, events and links of one span take; what is more is counted as dropped. A span that lives as long
/// as the program and gets an event per request would otherwise grow without end where the count limits were lifted.
pub(super) const MAX_SPAN_BYTES: usize = 1 << 20;

/// What we keep with an open span.
pub(super) struct SpanState {
    pub(super) context: SpanContext,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) parent_is_remote: bool,
    /// Somebody has taken our ids as its parent's.
    pub(super) has_children: AtomicBool,
    /// Whether fields, events and links are kept. A local root keeps them even where it is not sampled: a remote parent, whose
    /// decision it would follow, may be set later.
    pub(super) keeps_fields: bool,
    pub(super) start: i64,
    pub(super) unix_offset: i64,
    /// What came along with the ids of a remote parent, for its descendants.
    pub(super) carried: Option<Arc<Carried>>,
    pub(super) overrides: Overrides,
    /// Fields of OTLP's `Span`: attributes, events and links, in the order they came.
    pub(super) fields: Vec<u8>,
    /// One bit per field of the macro whose value is kept.
    pub(super) recorded: u64,
    pub(super) kept: Tally,
    pub(super) dropped: Tally,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) attributes: u32,
    pub(super) events: u32,
    pub(super) links: u32,
}

/// The fields that are not attributes, as `tracing-opentelemetry` spells them.
#[derive(Default)]
pub(super) struct Overrides {
    pub(super) name: Option<Box<str>>,
    pub(super) kind: u8,
    pub(super) status: u8,
    pub(super) status_message: Option<Box<str>>,
}

impl SpanState {
    pub(super) fn has_room(&self, more: usize) -> bool {
        self.fields.len() + more <= MAX_SPAN_BYTES
    }

    pub(super) fn add_link(&mut self, to: &SpanContext, flags: u32, limits: &Limits) {
        if !self.keeps_fields {
            return;
        }
        if self.kept.links >= limits.links || !self.has_room(64) {
            self.dropped.links += 1;
            return;
        }
        self.kept.links += 1;
        encode::span_link(&mut self.fields, &to.trace_id, &to.span_id, flags);
    }

    /// Completes the fields of OTLP's `Span`.
    pub(super) fn finish(&self, mut fields: Vec<u8>, name: &str, end: i64) -> Vec<u8> {
        use encode::span;
        let out = &mut fields;
        encode::bytes(out, span::TRACE_ID, &self.context.trace_id);
        encode::bytes(out, span::SPAN_ID, &self.context.span_id);
        if let Some(parent) = &self.parent {
            encode::bytes(out, span::PARENT_SPAN_ID, parent);
        }
        if let Some(state) = self.carried.as_ref().and_then(|carried| carried.tracestate.as_deref()) {
            encode::bytes(out, span::TRACE_STATE, state.as_bytes());
        }
        encode::bytes(out, span::NAME, self.overrides.name.as_deref().unwrap_or(name).as_bytes());
        encode::uint(out, span::KIND, u64::from(self.overrides.kind));
        encode::fixed64(out, span::START_TIME, (self.start + self.unix_offset) as u64);
        encode::fixed64(out, span::END_TIME, (end + self.unix_offset) as u64);
        encode::status(out, self.overrides.status, self.overrides.status_message.as_deref().unwrap_or(""));
        encode::fixed32(out, span::FLAGS, otlp_flags(self.context.flags, self.parent_is_remote));
        let dropped = [
            (span::DROPPED_ATTRIBUTES, self.dropped.attributes),
            (span::DROPPED_EVENTS, self.dropped.events),
            (span::DROPPED_LINKS, self.dropped.links),
        ];
        for (field, count) in dropped {
            if count > 0 {
                encode::uint(out, field, u64::from(count));
            }
        }
        fields
    }
}

pub(super) fn otlp_flags(flags: u8, is_remote: bool) -> u32 {
    u32::from(flags) | encode::FLAG_HAS_IS_REMOTE | if is_remote { encode::FLAG_IS_REMOTE } else { 0 }
}

impl Overrides {
    /// Takes the value of `otel.<name>`; says whether that is one of the special ones.
    pub(super) fn set(&mut self, name: &str, value: Value<'_>) -> bool {
        let Value::Str(text) = value else { return false };
        match name {
            "name" => self.name = Some(text.into()),
            "kind" => {
                let kinds = ["internal", "server", "client", "producer", "consumer"];
                self.kind = kinds.iter().position(|kind| text.eq_ignore_ascii_case(kind)).map_or(self.kind, |at| at as u8 + 1);
            }
            "status_code" => {
                let codes = ["unset", "ok", "error"];
                self.status = codes.iter().position(|code| text.eq_ignore_ascii_case(code)).map_or(self.status, |at| at as u8);
            }
            "status_description" | "status_message" => self.status_message = Some(text.into()),
            _ => return false,
        }
        true
    }

    /// Takes over what was set later.
    pub(super) fn merge(&mut self, later: Overrides) {
        if later.name.is_some() {
            self.name = later.name;
        }
        if later.kind != 0 {
            self.kind = later.kind;
        }
        if later.status != 0 {
            self.status = later.status;
        }
        if later.status_message.is_some() {
            self.status_message = later.status_message;
        }
    }
}
