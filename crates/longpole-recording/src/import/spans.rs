//! The spans of a file are packed one by one, without the credentials in them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use longpole_model::sink::SpanRef;
use longpole_model::{Loss, LossKind, Resource, Scope, Span, SpanHead, SpanSink, Texts, TimeRange, Timestamp};
use longpole_store::{Assembler, CompactRecording, CompactSpans};
use longpole_wire::pulumi_payload;
use longpole_wire::redact::Redactor;

use super::unseen::{command_of, unseen_run};
use crate::loss_counters::LossBook;

/// Takes the spans of a file.
pub(super) struct Intake {
    pub(super) assembler: Assembler,
    redactor: Redactor,
    redacted: u64,
    resources: Shared<Resource>,
    scopes: Shared<Scope>,
    /// Resources that a file says once and its spans name in any order, by where each is, with what is kept for it. To hold on to one
    /// keeps its place.
    known: HashMap<usize, (Arc<Resource>, Arc<Resource>)>,
    texts: Texts,
    /// The emitter of the next spans.
    resource: Arc<Resource>,
    scope: Arc<Scope>,
    losses: LossBook,
    pub(super) spans: u64,
    /// Whether times of a span were moved into what can be counted.
    any_clamped: bool,
}

impl SpanSink for Intake {
    fn resource(&mut self, mut resource: Resource) {
        self.redacted += self.redactor.resource(&mut resource);
        self.resource = self.resources.share(resource);
        // Spans that share all of their emitter are packed as one example and what differs.
        self.scope = self.scopes.share(Scope::default());
    }

    fn shared_resource(&mut self, resource: &Arc<Resource>) {
        // Nobody else holds it: it comes once.
        if Arc::strong_count(resource) < 2 {
            return self.resource((**resource).clone());
        }
        let place = Arc::as_ptr(resource) as usize;
        match self.known.get(&place) {
            Some((_, known)) => {
                self.resource = Arc::clone(known);
                self.scope = self.scopes.share(Scope::default());
            }
            None => {
                self.resource((**resource).clone());
                self.known.insert(place, (Arc::clone(resource), Arc::clone(&self.resource)));
            }
        }
    }

    fn scope(&mut self, mut scope: Scope) {
        self.redacted += self.redactor.scope(&mut scope);
        self.scope = self.scopes.share(scope);
    }

    fn span(&mut self, span: SpanRef<'_>) {
        span.dropped().into_iter().for_each(|loss| self.loss(loss));
        // A pid is one of the recording machine, and nobody knows where these spans were made.
        let mut owned = span.to_span(&mut self.texts, Arc::clone(&self.resource), Arc::clone(&self.scope), None);
        if pulumi_payload::is_in(&span) {
            pulumi_payload::leave_out(&mut owned);
        }
        if self.redactor.concerns_span(&span) {
            self.redacted += self.redactor.span(&mut owned);
        }
        self.spans += 1;
        self.any_clamped |= is_clamped(&owned);
        self.assembler.span(owned);
    }

    fn loss(&mut self, loss: Loss) {
        self.losses.add(loss.kind, loss.count, loss.detail);
    }
}

impl Intake {
    pub(super) fn new(path: &Path) -> Self {
        Intake::of_command(command_of([path.to_string_lossy().into_owned()]))
    }

    /// For spans that stand for this command.
    pub(super) fn of_command(command: Vec<String>) -> Self {
        Intake {
            assembler: Assembler::new(unseen_run(command)),
            redactor: Redactor::default(),
            redacted: 0,
            resources: Shared::default(),
            scopes: Shared::default(),
            known: HashMap::new(),
            texts: Texts::default(),
            resource: Arc::default(),
            scope: Arc::default(),
            losses: LossBook::default(),
            spans: 0,
            any_clamped: false,
        }
    }

    pub(super) fn finish(mut self) -> CompactRecording {
        self.losses.take().into_iter().for_each(|loss| self.assembler.loss(loss));
        if self.redacted > 0 {
            self.assembler.loss(Loss::new(LossKind::ValuesRedacted, self.redacted, "values whose name or format looks like a credential"));
        }
        let caller = self.assembler.caller();
        let mut packed = self.assembler.finish_compact();
        let run = &mut packed.rest.run;
        if let Some(TimeRange { start, end }) = range(&packed.spans, self.any_clamped) {
            run.start = start;
            run.end = Some(end);
        }
        if let Some((trace_id, span_id)) = caller {
            run.trace_id = trace_id;
            run.root_span_id = span_id;
        }
        packed
    }
}

/// A trace that begins so late has spans of a clock, and 0 is none of its moments: a year.
const OF_A_CLOCK_NANOS: i64 = 365 * 86_400_000_000_000;

/// First start to last end. Times that were moved into what can be counted say nothing about when the trace was, nor does a start of 0,
/// which is what OTLP calls unknown.
fn range(spans: &CompactSpans, any_clamped: bool) -> Option<TimeRange> {
    let first = spans.heads().iter().map(|head| head.start).filter(|start| *start != Timestamp(0)).min();
    let unknown = first.filter(|first| first.unix_nanos() > OF_A_CLOCK_NANOS);
    let start = |head: &SpanHead| unknown.filter(|_| head.start == Timestamp(0)).unwrap_or(head.start);
    let of = |heads: &mut dyn Iterator<Item = &SpanHead>| {
        heads
            .map(|head| TimeRange { start: start(head), end: head.end.max(start(head)) })
            .reduce(|a, b| TimeRange { start: a.start.min(b.start), end: a.end.max(b.end) })
    };
    // To take a million spans out takes a second, and of hardly any file it is needed.
    let is_told = |index: usize| !any_clamped || !is_clamped(&spans.get(index));
    let mut told = spans.heads().iter().enumerate().filter(|(index, _)| is_told(*index)).map(|(_, head)| head);
    of(&mut told).or_else(|| of(&mut spans.heads().iter()))
}

fn is_clamped(span: &Span) -> bool {
    span.attributes.get("longpole.time_clamped").is_some()
}

/// Resources, and scopes, that are kept to be shared: exporters repeat them with each request. A file of more emitters than
/// this in turns is read as well, only larger in memory.
pub(super) const SHARED_MAX: usize = 64;

/// Values that come again and again, each kept once.
struct Shared<T>(Vec<Arc<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared(Vec::new())
    }
}

impl<T: PartialEq> Shared<T> {
    fn share(&mut self, value: T) -> Arc<T> {
        let Some(at) = self.0.iter().position(|known| **known == value) else {
            if self.0.len() == SHARED_MAX {
                self.0.pop();
            }
            self.0.insert(0, Arc::new(value));
            return Arc::clone(&self.0[0]);
        };
        // Those in use stay in front, and the search is short.
        self.0[..=at].rotate_right(1);
        Arc::clone(&self.0[0])
    }
}
