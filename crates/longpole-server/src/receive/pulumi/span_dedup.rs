//! Merges the spans of Pulumi's two tracers for the targets that get copies.
//!
//! A run switches on both tracers of Pulumi, because only the old one names the resource of a call. Each call of the command then comes
//! twice, and the spans of its plug-ins, which come through Pulumi's own bridge, name the old span as their parent. Sealing folds the two
//! in the recording; a collector that got them as they came would show every call twice, and orphans below.
//!
//! ```text
//! old tracer   /call 77 ─ waits ─┐
//! OTLP         call 0a11 ────────┴─ the same call ─► 0a11, with what 77 knows of its resource
//! OTLP         serve, parent 77 ─── waits for 77 ──► serve, parent 0a11
//! ```
//!
//! [`opentracing_bridge::join`] decides which two spans are one, here as in sealing. Only old spans and spans below one wait; others are
//! forwarded when they come. Spans that still wait at the end of the run, or beyond a limit, are forwarded without a twin.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use longpole_analysis::pulumi::opentracing_bridge::{self, LEGACY_SPAN_ID, LEGACY_TRACE_ID};
use longpole_model::{AttributeValue, Attributes, Resource, Span, SpanId, ThinVec, TraceId};

use crate::limits::{TWIN_IDS_MAX, TWINS_WAITING_MAX};
use longpole_recording::import;

/// What the services of Pulumi's own processes begin with.
const PULUMI: &str = "pulumi";

/// The service of the command, the one process that has both tracers.
const COMMAND: &str = "pulumi-cli";

/// Services that Pulumi's bridge makes up for what its plug-ins send by the old tracer.
const BRIDGED: [&str; 3] = ["pulumi-resource-provider", "pulumi-language-host", "opentracing-plugin"];

/// Whether spans of this emitter have to pass through [`Twins`].
pub(in crate::receive) fn concern(resource: &Resource) -> bool {
    let service = resource.attributes.get_str("service.name").unwrap_or_default();
    service.starts_with(PULUMI) || BRIDGED.contains(&service)
}

/// The spans and ids of a run that later spans may refer to.
#[derive(Debug, Default)]
pub(in crate::receive) struct Twins {
    /// Old spans whose twin has not come yet.
    waiting: VecDeque<Span>,
    /// Short forms of the command's spans that were forwarded without a twin: the old span may come a moment later.
    alone: VecDeque<Span>,
    /// The spans that old ones are.
    twins: HashMap<SpanId, (TraceId, SpanId)>,
    /// The traces that those of the old tracer are.
    homes: HashMap<TraceId, TraceId>,
    /// Bridged spans whose parent is not known yet.
    below: Vec<Span>,
    /// Ids that are no old span's.
    ids: HashSet<SpanId>,
}

impl Twins {
    /// Takes spans of the old tracer. Returns those that can wait no longer.
    pub(in crate::receive) fn old(&mut self, spans: Vec<Span>) -> Vec<Span> {
        // Some are finished twice, a moment apart; the first one may have its twin by then.
        self.waiting.extend(spans.into_iter().filter(|span| !self.twins.contains_key(&span.span_id)));
        let over = self.waiting.len().saturating_sub(TWINS_WAITING_MAX);
        self.waiting.drain(..over).collect::<Vec<_>>().into_iter().map(|span| self.at_home(span)).collect()
    }

    /// Takes spans of OpenTelemetry that [`concern`] us. Returns what is to be handed on in their place, or `None` where that is the
    /// request as it came.
    pub(in crate::receive) fn new_spans(&mut self, spans: Vec<Span>) -> Option<Vec<Span>> {
        // Another longpole has handed these on without a twin.
        let (mut out, mut spans): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(opentracing_bridge::is_legacy);
        let mut is_changed = false;
        if spans.iter().any(|span| span.service_name() == COMMAND) {
            (spans, is_changed) = self.pair(spans);
        }
        if self.ids.len() < TWIN_IDS_MAX {
            self.ids.extend(spans.iter().map(|span| span.span_id));
            self.ids.extend(spans.iter().filter(|span| !is_bridged(span)).filter_map(|span| span.parent_span_id));
        }
        let earlier = std::mem::take(&mut self.below);
        for mut span in spans {
            let parent = span.parent_span_id;
            let placed = self.place(&mut span);
            is_changed |= !placed || span.parent_span_id != parent;
            if placed { &mut out } else { &mut self.below }.push(span);
        }
        for mut span in earlier {
            let placed = self.place(&mut span);
            is_changed |= placed;
            if placed { &mut out } else { &mut self.below }.push(span);
        }
        is_changed.then_some(out)
    }

    /// Everything that waits, when nothing more comes.
    pub(in crate::receive) fn finish(mut self) -> Vec<Span> {
        self.pair(Vec::new());
        let mut out = std::mem::take(&mut self.below);
        for span in &mut out {
            self.place(span);
        }
        let mut finished: HashMap<SpanId, usize> = HashMap::new();
        for span in std::mem::take(&mut self.waiting) {
            match finished.entry(span.span_id) {
                Entry::Vacant(slot) => {
                    slot.insert(out.len());
                    out.push(self.at_home(span));
                }
                Entry::Occupied(known) => {
                    let known = &mut out[*known.get()];
                    known.end = known.end.max(span.end);
                }
            }
        }
        out
    }

    /// Finds twins of the waiting spans among these and those that were alone, and adds the old tracer's attributes to them. Returns
    /// whether it found any.
    fn pair(&mut self, spans: Vec<Span>) -> (Vec<Span>, bool) {
        let (mut out, mut found) = (spans, HashSet::new());
        if !self.waiting.is_empty() {
            let earlier = self.alone.len();
            let mut recording = import::unseen(Vec::new());
            recording.spans = self.alone.drain(..).chain(out.drain(..)).chain(self.waiting.iter().cloned()).collect();
            opentracing_bridge::join(&mut recording);
            // The join removes no OpenTelemetry span, so they keep their order.
            for (at, span) in recording.spans.into_iter().filter(|span| !opentracing_bridge::is_legacy(span)).enumerate() {
                let twin = self.note(&span);
                found.extend(twin);
                if at >= earlier {
                    out.push(span);
                } else if twin.is_none() {
                    self.alone.push_back(span);
                }
            }
            self.waiting.retain(|span| !found.contains(&span.span_id));
        }
        let alone = |span: &&Span| span.service_name() == COMMAND && old_id(span).is_none();
        self.alone.extend(out.iter().filter(alone).map(in_short));
        let over = self.alone.len().saturating_sub(TWINS_WAITING_MAX);
        self.alone.drain(..over);
        (out, !found.is_empty())
    }

    /// Remembers which old span was folded into this one, if any was.
    fn note(&mut self, span: &Span) -> Option<SpanId> {
        let old = old_id(span)?;
        if self.twins.len() < TWIN_IDS_MAX {
            self.twins.insert(old, (span.trace_id, span.span_id));
        }
        if let Some(trace) = span.attributes.get_str(LEGACY_TRACE_ID).and_then(|id| id.parse().ok()) {
            self.homes.entry(trace).or_insert(span.trace_id);
        }
        Some(old)
    }

    /// Puts a bridged span below the twin of its parent; `false` where it is too early to say what its parent is.
    fn place(&self, span: &mut Span) -> bool {
        let Some(parent) = span.parent_span_id.filter(|_| is_bridged(span)) else { return true };
        match self.twins.get(&parent) {
            Some((trace, twin)) => {
                if *trace == span.trace_id {
                    span.parent_span_id = Some(*twin);
                }
                true
            }
            None => self.ids.contains(&parent) || self.below.len() >= TWINS_WAITING_MAX,
        }
    }

    /// An old span without a twin, where the others of its trace went.
    fn at_home(&self, mut span: Span) -> Span {
        if let Some(home) = self.homes.get(&span.trace_id) {
            let old = std::mem::replace(&mut span.trace_id, *home);
            span.attributes.push(LEGACY_TRACE_ID, AttributeValue::Str(old.to_string().into()));
            let twin = span.parent_span_id.and_then(|parent| self.twins.get(&parent));
            span.parent_span_id = twin.filter(|(trace, _)| trace == home).map(|(_, twin)| *twin).or(span.parent_span_id);
        }
        span
    }
}

fn old_id(span: &Span) -> Option<SpanId> {
    span.attributes.get_str(LEGACY_SPAN_ID)?.parse().ok()
}

fn is_bridged(span: &Span) -> bool {
    BRIDGED.contains(&span.service_name())
}

/// What pairing asks of a span.
fn in_short(span: &Span) -> Span {
    Span { attributes: Attributes::default(), events: ThinVec::default(), links: ThinVec::default(), ..span.clone() }
}

#[cfg(test)]
mod tests {
    use longpole_model::SpanBatch;
    use longpole_wire::{Limits, appdash, otlp};

    use super::*;

    const SMALL: [&[u8]; 2] =
        [include_bytes!("../../../../../fixtures/pulumi/both-otlp.bin"), include_bytes!("../../../../../fixtures/pulumi/both-appdash.bin")];
    const DEPLOYMENT: [&[u8]; 2] = [
        include_bytes!("../../../../../fixtures/pulumi/deployment-otlp.bin"),
        include_bytes!("../../../../../fixtures/pulumi/deployment-appdash.bin"),
    ];

    /// What came, and when.
    enum Came {
        Old(Vec<Span>),
        New(Vec<Span>),
    }

    /// A capture in the order in which it came: an old span is written when it ends.
    fn as_it_came([requests, frames]: [&[u8]; 2]) -> Vec<Came> {
        let mut came: Vec<(i64, Came)> = Vec::new();
        let mut rest = requests;
        while let Some((time, behind)) = rest.split_first_chunk() {
            let (length, behind) = behind.split_first_chunk().unwrap();
            let (body, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
            let mut batch = SpanBatch::default();
            otlp::trace::decode(body, &Limits::default(), &mut batch).unwrap();
            came.push((i64::from_be_bytes(*time), Came::New(batch.spans)));
            rest = behind;
        }
        let mut batch = SpanBatch::default();
        let mut reader = appdash::FrameReader::new(&Limits::default());
        reader.push(frames, &mut batch).unwrap();
        reader.finish(&mut batch);
        came.extend(batch.spans.into_iter().map(|span| (span.end.unix_nanos(), Came::Old(vec![span]))));
        came.sort_by_key(|(time, _)| *time);
        came.into_iter().map(|(_, came)| came).collect()
    }

    /// All spans that are forwarded if these come in this order.
    fn forwarded(came: impl IntoIterator<Item = Came>) -> Vec<Span> {
        let mut twins = Twins::default();
        let mut out = Vec::new();
        for came in came {
            match came {
                Came::Old(spans) => out.extend(twins.old(spans)),
                Came::New(spans) => out.extend(twins.new_spans(spans.clone()).unwrap_or(spans)),
            }
        }
        out.extend(twins.finish());
        out
    }

    /// Every call comes once, with its parent, except for the one span that called them all.
    #[track_caller]
    fn check(spans: &[Span], count: usize) {
        let ids: HashSet<_> = spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
        assert_eq!((spans.len(), ids.len()), (count, count));
        assert!(!spans.iter().any(opentracing_bridge::is_legacy));
        let orphans = spans.iter().filter_map(|span| Some((span.trace_id, span.parent_span_id?))).filter(|parent| !ids.contains(parent));
        assert_eq!(orphans.collect::<HashSet<_>>().len(), 1);
    }

    #[test]
    fn a_collector_gets_every_call_once_and_nothing_below_an_old_span_in_any_order() {
        for (capture, count, calls) in [(SMALL, 159, 46), (DEPLOYMENT, 619, 223)] {
            let spans = forwarded(as_it_came(capture));
            check(&spans, count);
            let known: Vec<&Span> = spans.iter().filter(|span| old_id(span).is_some()).collect();
            assert_eq!(known.len(), calls, "each call knows what the old tracer knew of it");
            let created = known.iter().filter(|span| span.name == "pulumirpc.ResourceProvider/Create");
            assert!(created.clone().count() > 0);
            assert!(created.into_iter().all(|span| span.attributes.get("pulumi-decorator").is_some()));

            for old_first in [true, false] {
                let (first, second): (Vec<Came>, Vec<Came>) =
                    as_it_came(capture).into_iter().partition(|came| matches!(came, Came::Old(_)) == old_first);
                check(&forwarded(first.into_iter().chain(second)), count);
            }
        }
    }

    #[test]
    fn without_the_other_tracer_everything_is_handed_on_as_it_came() {
        let (mut old, mut new): (Vec<Span>, Vec<Span>) = Default::default();
        for came in as_it_came(DEPLOYMENT) {
            match came {
                Came::Old(spans) => old.extend(spans),
                Came::New(spans) => new.extend(spans),
            }
        }
        // An older Pulumi; two of its spans are finished twice.
        let finished: HashSet<_> = old.iter().map(|span| (span.trace_id, span.span_id)).collect();
        assert_eq!(forwarded([Came::Old(old)]).len(), finished.len());

        // A Pulumi whose old tracer sends elsewhere: only the spans below its spans wait, to the end.
        let mut twins = Twins::default();
        let bridged = new.iter().filter(|span| is_bridged(span)).count();
        assert_eq!(twins.new_spans(new.clone()).unwrap().len(), new.len() - bridged);
        let (mut left, mut expected) = (twins.finish(), new);
        expected.retain(is_bridged);
        left.sort_by_key(|span| span.span_id);
        expected.sort_by_key(|span| span.span_id);
        assert_eq!(left, expected);
    }

    #[test]
    fn what_waits_is_bounded_and_goes_on_by_itself() {
        let mut twins = Twins::default();
        let Some(Came::Old(spans)) = as_it_came(SMALL).into_iter().find(|came| matches!(came, Came::Old(_))) else { panic!() };
        let many =
            (1..=TWINS_WAITING_MAX as u64 + 5).map(|id| Span { span_id: SpanId::new(id.to_be_bytes()).unwrap(), ..spans[0].clone() });
        assert_eq!(twins.old(many.collect()).len(), 5);
        assert_eq!(twins.finish().len(), TWINS_WAITING_MAX);
    }

    #[test]
    fn what_was_given_away_crosswise_before_the_rest_came_is_not_handed_on_twice() {
        let is_call = |span: &Span| span.name.ends_with("ResourceProvider/Create");
        let (mut old, mut new): (Vec<Span>, Vec<Span>) = Default::default();
        for came in as_it_came(SMALL) {
            match came {
                Came::Old(spans) => old.extend(spans.into_iter().filter(is_call)),
                Came::New(spans) => new.extend(spans.into_iter().filter(|span| is_call(span) && span.service_name() == COMMAND)),
            }
        }
        let at = |span: &Span, number: u64, [start, end]: [i64; 2]| {
            let [start, end] = [start, end].map(|millis| span.start.plus_nanos(millis * 1_000_000));
            Span { span_id: SpanId::new(number.to_be_bytes()).unwrap(), start, end, ..span.clone() }
        };
        new[0].start = old[0].start;
        // Only the new tracer's span of the second call is here when the first call's old span searches for its twin.
        let came = [
            Came::Old(vec![at(&old[0], 1, [0, 60])]),
            Came::New(vec![at(&new[0], 4, [21, 40])]),
            Came::Old(vec![at(&old[0], 2, [20, 41])]),
            Came::New(vec![at(&new[0], 3, [1, 59])]),
        ];
        let ids: Vec<SpanId> = forwarded(came).iter().map(|span| span.span_id).collect();
        assert_eq!(ids, [4, 3_u64].map(|number| SpanId::new(number.to_be_bytes()).unwrap()));
    }
}
