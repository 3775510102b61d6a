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
//! [`opentracing_bridge::twins`] decides which two spans are one, here as in sealing. Only old spans and spans below one wait; others are
//! forwarded when they come. Spans that still wait at the end of the run, or beyond a limit, are forwarded without a twin.
//!
//! What came earlier and found no twin then is compared with new spans only, and only if it can be the same call.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use longpole_analysis::pulumi::opentracing_bridge::{self, CallKey, LEGACY_SPAN_ID, LEGACY_TRACE_ID};
use longpole_model::{AttributeValue, Attributes, Id, Resource, Span, SpanId, SpanRow, ThinVec, TraceId};

use super::span_pool::{Arrival, SpanPool};
use crate::limits::{TWIN_IDS_MAX, TWINS_WAITING_MAX};

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
    waiting: SpanPool,
    /// Old spans from here on were compared with nothing yet.
    fresh: Option<Arrival>,
    /// Short forms of the command's spans that were forwarded without a twin: the old span may come a moment later.
    alone: SpanPool,
    /// The spans that old ones are.
    twins: HashMap<SpanId, (TraceId, SpanId)>,
    /// The traces that those of the old tracer are.
    homes: HashMap<TraceId, TraceId>,
    /// Bridged spans whose parent is not known yet, by that.
    below: BTreeMap<SpanId, Vec<Span>>,
    below_count: usize,
    /// Ids that are no old span's.
    ids: HashSet<SpanId>,
}

impl Twins {
    /// Takes spans of the old tracer. Returns those that can wait no longer.
    pub(in crate::receive) fn old(&mut self, spans: Vec<Span>) -> Vec<Span> {
        self.fresh.get_or_insert(self.waiting.next());
        // Some are finished twice, a moment apart; the first one may have its twin by then.
        spans.into_iter().filter(|span| !self.twins.contains_key(&span.span_id)).for_each(|span| self.waiting.push(span));
        let mut over = Vec::new();
        while self.waiting.len() > TWINS_WAITING_MAX {
            let Some(span) = self.waiting.pop() else { break };
            over.push(self.at_home(span));
        }
        over
    }

    /// Takes spans of OpenTelemetry that [`concern`] us. Returns what is to be handed on in their place, or `None` where that is the
    /// request as it came.
    pub(in crate::receive) fn new_spans(&mut self, spans: Vec<Span>) -> Option<Vec<Span>> {
        // Another longpole has handed these on without a twin.
        let (mut out, mut spans): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(opentracing_bridge::is_legacy);
        let mut is_changed = false;
        let mut known = Vec::new();
        if spans.iter().any(is_of_command) {
            is_changed = self.pair(&mut spans, &mut known);
        }
        if self.ids.len() < TWIN_IDS_MAX {
            let parents = spans.iter().filter(|span| !is_bridged(span)).filter_map(|span| span.parent_span_id);
            let first = known.len();
            known.extend(spans.iter().map(|span| span.span_id).chain(parents));
            self.ids.extend(&known[first..]);
        }
        for mut span in spans {
            let parent = span.parent_span_id;
            match self.unknown_parent(&span) {
                Some(unknown) => {
                    is_changed = true;
                    self.below.entry(unknown).or_default().push(span);
                    self.below_count += 1;
                }
                None => {
                    self.place(&mut span);
                    is_changed |= span.parent_span_id != parent;
                    out.push(span);
                }
            }
        }
        for id in known {
            for mut span in self.below.remove(&id).unwrap_or_default() {
                self.below_count -= 1;
                self.place(&mut span);
                is_changed = true;
                out.push(span);
            }
        }
        is_changed.then_some(out)
    }

    /// Everything that waits, when nothing more comes.
    pub(in crate::receive) fn finish(mut self) -> Vec<Span> {
        self.pair_all();
        let mut out: Vec<Span> = std::mem::take(&mut self.below).into_values().flatten().collect();
        for span in &mut out {
            self.place(span);
        }
        let mut finished: HashMap<SpanId, usize> = HashMap::new();
        for span in std::mem::take(&mut self.waiting).into_spans() {
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
    /// whether it found any; `known` gets the ids of old spans that have a twin now.
    fn pair(&mut self, spans: &mut [Span], known: &mut Vec<SpanId>) -> bool {
        let (mut waiting, mut alone) = (BTreeSet::new(), BTreeSet::new());
        // Two that came earlier were compared when the second of them came.
        for span in spans.iter() {
            waiting.extend(self.waiting.same_call(span));
            if is_of_command(span) && CallKey::of(span).is_internal() {
                waiting.extend(self.waiting.inside(span));
            }
        }
        for (arrival, span) in self.fresh.take().into_iter().flat_map(|fresh| self.waiting.calls_since(fresh)) {
            waiting.insert(arrival);
            alone.extend(self.alone.same_call(span));
            if CallKey::of(span).is_internal() {
                alone.extend(self.alone.around(span));
            }
        }
        let is_changed = self.pair_these(spans, waiting, alone, known);
        for span in spans.iter().filter(|span| is_of_command(span) && old_id(span).is_none()) {
            self.alone.push(in_short(span));
        }
        while self.alone.len() > TWINS_WAITING_MAX {
            self.alone.pop();
        }
        is_changed
    }

    /// Finds twins among all that came earlier.
    fn pair_all(&mut self) {
        let (waiting, alone) = (self.waiting.calls().collect(), self.alone.calls().collect());
        self.pair_these(&mut [], waiting, alone, &mut Vec::new());
    }

    /// The same as [`Twins::pair`], for these of the waiting spans and of those that were alone.
    fn pair_these(&mut self, spans: &mut [Span], waiting: BTreeSet<Arrival>, alone: BTreeSet<Arrival>, known: &mut Vec<SpanId>) -> bool {
        let (waiting, alone): (Vec<Arrival>, Vec<Arrival>) = (waiting.into_iter().collect(), alone.into_iter().collect());
        let new: HashSet<(TraceId, SpanId)> =
            spans.iter().filter(|span| is_of_command(span)).map(|span| (span.trace_id, span.span_id)).collect();
        let has_parent = |span: &Span| {
            span.parent_span_id.is_some_and(|parent| match opentracing_bridge::is_legacy(span) {
                true => parent != span.span_id && self.waiting.has(span.trace_id, parent),
                false => new.contains(&(span.trace_id, parent)) || self.alone.has(span.trace_id, parent),
            })
        };
        let earlier = alone.iter().filter_map(|arrival| self.alone.get(*arrival));
        let old = waiting.iter().filter_map(|arrival| self.waiting.get(*arrival));
        let all: Vec<&Span> = earlier.chain(&*spans).chain(old).collect();
        let mut pairs = opentracing_bridge::twins(&all, &has_parent);
        pairs.sort_unstable_by_key(|(_, span)| *span);
        let is_changed = !pairs.is_empty();
        let old_from = alone.len() + spans.len();
        let take = |(old, span): (SpanRow, SpanRow)| Some((self.waiting.remove(waiting[old.place() - old_from])?, span.place()));
        let taken: Vec<(Span, usize)> = pairs.into_iter().filter_map(take).collect();
        for (mut old, place) in taken {
            // The other half of a call of Zipkin has this id, too. It waits for nothing any more.
            let call = (old.trace_id, CallKey::of(&old));
            let again = self.waiting.take_id(old.span_id).into_iter().filter(|again| (again.trace_id, CallKey::of(again)) == call);
            again.for_each(|again| opentracing_bridge::merge_finishes(&mut old, again));
            if let Some(mut span) = alone.get(place).and_then(|arrival| self.alone.remove(*arrival)) {
                opentracing_bridge::fold(&mut span, old);
                known.extend(self.note(&span));
            } else if let Some(span) = place.checked_sub(alone.len()).and_then(|place| spans.get_mut(place)) {
                opentracing_bridge::fold(span, old);
            }
        }
        // Another longpole may have found the twins of others.
        for span in spans.iter() {
            if let Some(old) = self.note(span) {
                known.push(old);
                self.waiting.take_id(old);
            }
        }
        is_changed
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

    /// The parent of a bridged span, if it is too early to say what that is.
    fn unknown_parent(&self, span: &Span) -> Option<SpanId> {
        let parent = span.parent_span_id.filter(|_| is_bridged(span) && self.below_count < TWINS_WAITING_MAX)?;
        (!self.twins.contains_key(&parent) && !self.ids.contains(&parent)).then_some(parent)
    }

    /// Puts a bridged span below the twin of its parent.
    fn place(&self, span: &mut Span) {
        let twin = span.parent_span_id.filter(|_| is_bridged(span)).and_then(|parent| self.twins.get(&parent));
        if let Some((_, twin)) = twin.filter(|(trace, _)| *trace == span.trace_id) {
            span.parent_span_id = Some(*twin);
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

fn is_of_command(span: &Span) -> bool {
    span.service_name() == COMMAND
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
    use std::sync::Arc;

    use longpole_model::{SpanBatch, SpanKind, TimeRange, Timestamp};
    use longpole_testing::random::Random;
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

    /// The calls that create resources in a capture: the spans of the old tracer, and those of the command's new one.
    fn calls_of_both() -> (Vec<Span>, Vec<Span>) {
        let is_call = |span: &Span| span.name.ends_with("ResourceProvider/Create");
        let (mut old, mut new): (Vec<Span>, Vec<Span>) = Default::default();
        for came in as_it_came(SMALL) {
            match came {
                Came::Old(spans) => old.extend(spans.into_iter().filter(is_call)),
                Came::New(spans) => new.extend(spans.into_iter().filter(|span| is_call(span) && span.service_name() == COMMAND)),
            }
        }
        (old, new)
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

    /// Each request went through all that waited: 40,000,000 comparisons for these, and 0.4 s for a request with the limit of a real run.
    #[test]
    fn a_request_is_compared_with_those_that_can_be_its_twins() {
        let (old, new) = calls_of_both();
        let (old, new) = (old[0].clone(), new[0].clone());
        // Far from each other, and the old ones from the new ones.
        let at = |span: &Span, number: u64, second: i64| {
            let start = old.start.plus_nanos(second * 1_000_000_000);
            Span { span_id: SpanId::new(number.to_be_bytes()).unwrap(), start, end: start.plus_nanos(1_000_000), ..span.clone() }
        };
        let mut twins = Twins::default();
        let waiting = TWINS_WAITING_MAX as u64;
        assert!(twins.old((1..=waiting).map(|number| at(&old, number, -(number as i64))).collect()).is_empty());
        for number in 1..=20_000 {
            assert!(twins.new_spans(vec![at(&new, waiting + number, number as i64)]).is_none());
        }
        // One of them does have a twin.
        let found = twins.new_spans(vec![at(&new, waiting + 20_001, -7)]).unwrap();
        assert_eq!(old_id(&found[0]), SpanId::new(7_u64.to_be_bytes()));
        assert_eq!(twins.finish().len(), TWINS_WAITING_MAX - 1);
    }

    #[test]
    fn a_span_that_is_finished_twice_and_the_other_half_of_its_call_wait_for_one_twin() {
        let (old, new) = calls_of_both();
        let mut again = old[0].clone();
        again.end = again.end.plus_nanos(50_000);
        again.attributes.push("later", AttributeValue::Bool(true));
        let half = Span { kind: SpanKind::Producer, ..old[0].clone() };
        let twin = Span { start: old[0].start, end: old[0].end, ..new[0].clone() };
        let spans = forwarded([Came::Old(vec![old[0].clone(), again, half]), Came::New(vec![twin])]);
        assert_eq!(spans.len(), 1);
        assert_eq!((old_id(&spans[0]), spans[0].attributes.get("later").is_some()), (Some(old[0].span_id), true));
    }

    #[test]
    fn what_was_given_away_crosswise_before_the_rest_came_is_not_handed_on_twice() {
        let (old, mut new) = calls_of_both();
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

    /// Spans of one name that wait, and those of the command that found none of them: all are compared with all at each request.
    #[derive(Default)]
    struct Searched {
        waiting: Vec<Span>,
        alone: Vec<Span>,
        twins: HashMap<SpanId, (TraceId, SpanId)>,
    }

    impl Searched {
        fn new_spans(&mut self, spans: &[Span]) {
            let mut recording = longpole_recording::import::unseen(Vec::new());
            recording.spans = self.alone.drain(..).chain(spans.iter().cloned()).chain(self.waiting.iter().cloned()).collect();
            opentracing_bridge::join(&mut recording);
            for span in recording.spans.into_iter().filter(|span| !opentracing_bridge::is_legacy(span)) {
                match old_id(&span) {
                    Some(old) => drop(self.twins.insert(old, (span.trace_id, span.span_id))),
                    None => self.alone.push(in_short(&span)),
                }
            }
            self.waiting.retain(|span| !self.twins.contains_key(&span.span_id));
        }
    }

    #[test]
    fn spans_have_the_twins_that_a_comparison_of_all_finds() {
        let trace = TraceId::new([1; 16]).unwrap();
        for seed in 0..2_000 {
            let mut random = Random(seed);
            let mut span = |number: u64| {
                let [start, length] = [400, 300].map(|millis| random.below(millis) as i64);
                let [start, end] = [start, start + length].map(|millis| Timestamp(1_000_000_000_000_000_000 + millis * 1_000_000));
                let mut span = Span::new(trace, SpanId::new(number.to_be_bytes()).unwrap(), "call", TimeRange { start, end });
                span.kind = [SpanKind::Client, SpanKind::Server, SpanKind::Internal][random.below(3)];
                Arc::make_mut(&mut span.resource).attributes.push("service.name", AttributeValue::Str(COMMAND.into()));
                if random.one_in(2) {
                    Arc::make_mut(&mut span.scope).name = "appdash".into();
                }
                span
            };
            let spans: Vec<Span> = (1..=16).map(&mut span).collect();
            let (mut twins, mut searched) = (Twins::default(), Searched::default());
            for spans in spans.chunks(1 + random.below(3)) {
                let (old, new): (Vec<Span>, Vec<Span>) = spans.iter().cloned().partition(opentracing_bridge::is_legacy);
                searched.waiting.extend(old.clone());
                assert!(twins.old(old).is_empty());
                if !new.is_empty() {
                    searched.new_spans(&new);
                    twins.new_spans(new);
                }
            }
            // When nothing more comes, all that are left are compared once.
            searched.new_spans(&[]);
            twins.pair_all();
            assert_eq!(twins.twins, searched.twins, "{seed}");
        }
    }
}
