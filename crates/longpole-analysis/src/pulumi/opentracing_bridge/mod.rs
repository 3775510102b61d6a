//! Legacy (OpenTracing) spans join the tree of the run.
//!
//! With `--tracing` and `--otel-traces` both on, Pulumi's processes make two spans of one call, microseconds apart. The one of
//! OpenTracing knows the resource, the other one its place; children may name either as their parent:
//!
//! ```text
//! OTel     call 0a11  ├──────────────┤
//! legacy   /call 77   ├───────────────┤     pulumi.resource.type=aws:rds:Instance
//! OTel       serve      ├──────────┤        parent 77: an orphan
//!
//! joined   call 0a11  ├──────────────┤      pulumi.resource.type=aws:rds:Instance  longpole.legacy.span_id=77
//!            serve      ├──────────┤        parent 77, which is 0a11
//! ```
//!
//! [`join`] folds the pairs and leaves in the recording what the tree needs; [`aliases`] reads it there, also from a recording
//! that was joined when it was sealed. A legacy span without a partner is kept with its id. If it has no parent either, it
//! hangs under the command's own span where that covers it in the same process; else it is placed like any other span.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::hash::{BuildHasher, RandomState};

use longpole_model::{
    AttributeValue, Id, IdVec, Loss, LossKind, Recording, Span, SpanEvent, SpanId, SpanKind, SpanLink, SpanRow, StatusCode, Text, ThinVec,
    Timestamp, TraceId,
};

use crate::pulumi::span_pairing::{self, Interval, Window};
use crate::tree::placement::SpanAliases;
use crate::tree::span_list::rows;

/// Names of the scopes that our decoders give to legacy spans.
pub const LEGACY_SCOPES: [&str; 2] = ["appdash", "zipkin"];

/// On an OpenTelemetry span: the id of the legacy span that was folded into it.
pub const LEGACY_SPAN_ID: &str = "longpole.legacy.span_id";

/// On a span that was folded into or moved: the trace of the legacy span.
pub const LEGACY_TRACE_ID: &str = "longpole.legacy.trace_id";

/// What the services of Pulumi's own processes begin with.
const PULUMI: &str = "pulumi";

/// The service of the Pulumi command.
pub(crate) const PULUMI_CLI: &str = "pulumi-cli";

/// The two spans of a call start, and end, so close together, or one of the ends is not the call's. Measured: up to 861 µs, and 5.6 ms
/// where four deployments share two CPUs: whoever is interrupted between the two waits for its next turn.
pub const APART_NANOS: i64 = 50_000_000;

/// Which of the two is inside the other is known, except for the whole microseconds of Zipkin's times.
const ROUNDED_NANOS: i64 = 2_000;

/// A legacy root may stick out of the command's span by this much: it is started before, and finished after.
pub const COVER_SLACK_NANOS: i64 = 10_000_000;

/// Open spans of commands that may cover a root. More at once is no Pulumi.
const OPEN_COMMANDS_MAX: usize = 64;

/// Detail of the loss of spans that a legacy tracer sent twice.
const FINISHED_TWICE: &str = "finished twice; the later end is kept";

/// Whether the span was made by OpenTracing.
pub fn is_legacy(span: &Span) -> bool {
    LEGACY_SCOPES.contains(&span.scope.name.as_str())
}

/// Whether any of these spans is Pulumi's or a legacy one: to others nothing of this costs a thing. One of each emitter tells.
pub(crate) fn concerns<'a>(mut spans: impl Iterator<Item = &'a Span>) -> bool {
    spans.any(|span| is_legacy(span) || span.service_name().starts_with(PULUMI))
}

/// What a span is compared by: name without the slash that gRPC's legacy interceptors put before it, and kind. OpenTracing has
/// no word for "internal".
fn operation(span: &Span) -> (&str, SpanKind) {
    let kind = if span.kind == SpanKind::Unspecified { SpanKind::Internal } else { span.kind };
    (span.name.strip_prefix('/').unwrap_or(&span.name), kind)
}

/// The maker of a span. Two spans can belong to one call only if they have the same maker: one service, or Pulumi, whose legacy spans
/// often have no service name. Two other services that call `GET` at one moment made two calls.
fn maker(span: &Span) -> &str {
    let service = span.service_name();
    let nameless = is_legacy(span) && span.resource.attributes.get_str("service.name").is_none_or(str::is_empty);
    if nameless || service.starts_with(PULUMI) { PULUMI } else { service }
}

/// What both spans of a call say alike, beside their times.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallKey {
    maker: String,
    name: String,
    kind: i32,
}

impl CallKey {
    /// That of a span.
    pub fn of(span: &Span) -> CallKey {
        let (maker, name, kind) = call_key(span);
        CallKey { maker: maker.to_owned(), name: name.to_owned(), kind }
    }

    /// Whether it is one of the spans that a process keeps to itself. The command's own span is.
    pub fn is_internal(&self) -> bool {
        self.kind == SpanKind::Internal.to_otlp()
    }
}

fn call_key(span: &Span) -> (&str, &str, i32) {
    let (name, kind) = operation(span);
    (maker(span), name, kind.to_otlp())
}

fn interval(span: &Span) -> Interval {
    Interval { start: span.start.unix_nanos(), end: (span.end > span.start).then_some(span.end.unix_nanos()) }
}

/// Folds legacy spans into the OpenTelemetry spans of the same operations, and moves the others into their trace. If it folds
/// anything, it drops the sample links that the recording has; [`crate::Report`] makes them again.
///
/// A second call changes nothing. It could pair a span that the first one left alone, because the first one's pairs are no longer
/// candidates, so a recording that shows signs of a join stays as it is.
pub fn join(recording: &mut Recording) {
    let legacy: Vec<SpanRow> = recording.span_rows().filter(|&i| is_legacy(&recording.spans[i])).collect();
    let is_joined = |span: &Span| [LEGACY_SPAN_ID, LEGACY_TRACE_ID].iter().any(|key| span.attributes.get(key).is_some());
    if legacy.is_empty() || recording.spans.iter().any(is_joined) {
        return;
    }
    let mut gone: IdVec<SpanRow, bool> = IdVec::filled(false, recording.spans.len());
    merge_double_finishes(recording, &legacy, &mut gone);
    let legacy: Vec<SpanRow> = legacy.into_iter().filter(|&i| !gone[i]).collect();
    let Matches { pairs, hosts } = matches(&recording.spans, &legacy, &have_parents(&recording.spans));
    let homes = homes(&recording.spans, &pairs, &hosts);
    for &(from, into) in &pairs {
        let legacy = recording.spans[from].clone();
        fold(&mut recording.spans[into], legacy);
        gone[from] = true;
    }
    move_home(&mut recording.spans, &legacy, &gone, &homes);
    let mut is_gone = gone.iter();
    recording.spans.retain(|_| !is_gone.next().copied().unwrap_or(false));
    if gone.len() > recording.spans.len() {
        recording.sample_links.clear();
        recording.wait_links.clear();
    }
}

/// What legacy spans are.
struct Matches {
    /// Those that are OpenTelemetry spans, and these.
    pairs: Vec<(SpanRow, SpanRow)>,
    /// The command's own span that covers each root.
    hosts: BTreeMap<SpanRow, SpanRow>,
}

/// The legacy spans among these that are OpenTelemetry spans among these, and which. `has_parent` says whether the parent of a span is known, from the
/// same tracer: without one, a legacy span may be the command's own.
pub fn twins<S: Borrow<Span>>(spans: &[S], has_parent: &dyn Fn(&Span) -> bool) -> Vec<(SpanRow, SpanRow)> {
    let legacy: Vec<SpanRow> = rows(spans).filter(|(_, span)| is_legacy(span)).map(|(i, _)| i).collect();
    matches(spans, &legacy, has_parent).pairs
}

fn matches<S: Borrow<Span>>(spans: &[S], legacy: &[SpanRow], has_parent: &dyn Fn(&Span) -> bool) -> Matches {
    let of = |i: SpanRow| -> &Span { spans[i.place()].borrow() };
    let roots: Vec<SpanRow> = legacy.iter().copied().filter(|&i| !has_parent(of(i))).collect();
    let hosts = hosts(spans, &roots, has_parent);
    let mut pairs = pairs(spans, legacy);
    let mut taken: HashSet<SpanRow> = pairs.iter().map(|p| p.1).collect();
    let paired: HashSet<SpanRow> = pairs.iter().map(|p| p.0).collect();
    // The command's own span starts with its process, its legacy twin when tracing was set up: too late to be paired by time.
    for (&root, &host) in hosts.iter().filter(|(root, _)| !paired.contains(root)) {
        let free = of(host).attributes.get(LEGACY_SPAN_ID).is_none();
        if operation(of(root)) == operation(of(host)) && free && taken.insert(host) {
            pairs.push((root, host));
        }
    }
    Matches { pairs, hosts }
}

/// Whether the parent of a span is among these: of a legacy one a legacy span, else a span of the command.
fn have_parents<S: Borrow<Span>>(spans: &[S]) -> impl Fn(&Span) -> bool {
    let ids = |are: &dyn Fn(&Span) -> bool| -> HashSet<(TraceId, SpanId)> {
        rows(spans).filter(|(_, span)| are(span)).map(|(_, span)| (span.trace_id, span.span_id)).collect()
    };
    let legacy = ids(&is_legacy);
    let of_command = ids(&|span| span.service_name() == PULUMI_CLI && !is_legacy(span));
    move |span| {
        span.parent_span_id.is_some_and(|parent| {
            let parent = (span.trace_id, parent);
            if is_legacy(span) { parent.1 != span.span_id && legacy.contains(&parent) } else { of_command.contains(&parent) }
        })
    }
}

/// Pulumi finishes some spans twice, 40 to 60 µs apart. Zipkin's client and server halves of one call share an id; those are two.
fn merge_double_finishes(recording: &mut Recording, legacy: &[SpanRow], gone: &mut IdVec<SpanRow, bool>) {
    // By a hash of the name: a hundred thousand spans may share a long one, and their rows are changed meanwhile.
    let names = RandomState::new();
    let mut first: HashMap<(TraceId, SpanId, SpanKind, u64), SpanRow> = HashMap::new();
    let mut merged = 0;
    for &i in legacy {
        let span = &recording.spans[i];
        let (name, kind) = operation(span);
        match first.entry((span.trace_id, span.span_id, kind, names.hash_one(name))) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(i);
            }
            std::collections::hash_map::Entry::Occupied(known) => {
                let later = span.clone();
                merge_finishes(&mut recording.spans[*known.get()], later);
                gone[i] = true;
                merged += 1;
            }
        }
    }
    if merged > 0 {
        Loss::new(LossKind::SpansDuplicate, merged, FINISHED_TWICE).merge_into(&mut recording.losses);
    }
}

/// Each legacy span and the OpenTelemetry span of the same operation.
fn pairs<S: Borrow<Span>>(spans: &[S], legacy: &[SpanRow]) -> Vec<(SpanRow, SpanRow)> {
    let of = |i: SpanRow| -> &Span { spans[i.place()].borrow() };
    type Sides = (Vec<SpanRow>, Vec<SpanRow>);
    let mut groups: BTreeMap<(&str, &str, i32), Sides> = BTreeMap::new();
    let key = |i: SpanRow| call_key(of(i));
    for &i in legacy {
        groups.entry(key(i)).or_default().0.push(i);
    }
    for (i, span) in rows(spans).filter(|(_, span)| !is_legacy(span)) {
        if let Some(group) = groups.get_mut(&key(i))
            && span.attributes.get(LEGACY_SPAN_ID).is_none()
        {
            group.1.push(i);
        }
    }
    let mut out = Vec::new();
    for ((.., kind), (mut left, mut right)) in groups {
        // Equals are paired in an order that does not depend on arrival.
        for side in [&mut left, &mut right] {
            side.sort_by_key(|&i| (of(i).start, of(i).trace_id, of(i).span_id));
        }
        // What is left when each was given to the closest may have been given away crosswise: then one of them sticks out.
        for window in [window(kind, ROUNDED_NANOS), window(kind, APART_NANOS)] {
            let list = |side: &[SpanRow]| -> Vec<Interval> { side.iter().map(|&i| interval(of(i))).collect() };
            let pairs = span_pairing::pair(&list(&left), &list(&right), &window);
            out.extend(pairs.iter().map(|&(l, r)| (left[l], right[r])));
            let (lefts, rights): (HashSet<usize>, HashSet<usize>) = pairs.into_iter().unzip();
            left = left.iter().enumerate().filter(|(l, _)| !lefts.contains(l)).map(|(_, &i)| i).collect();
            right = right.iter().enumerate().filter(|(r, _)| !rights.contains(r)).map(|(_, &i)| i).collect();
        }
    }
    out
}

/// How far OpenTelemetry's span of a call may lie from the legacy one: in a client it is inside the legacy one, in a server outside,
/// and elsewhere it starts inside. It may stick out by so much.
fn window(kind: i32, by: i64) -> Window {
    let (after, before) = (-by..=APART_NANOS, -APART_NANOS..=by);
    let (start, end) = match SpanKind::from_otlp(kind) {
        SpanKind::Server => (before, after),
        SpanKind::Client => (after, before),
        _ => (after, -APART_NANOS..=APART_NANOS),
    };
    Window { start, end, by_start: true }
}

/// For each of these spans the command's own span that covers it in the same process: the one that started last.
fn hosts<S: Borrow<Span>>(spans: &[S], roots: &[SpanRow], has_parent: &dyn Fn(&Span) -> bool) -> BTreeMap<SpanRow, SpanRow> {
    let of = |i: SpanRow| -> &Span { spans[i.place()].borrow() };
    let top =
        |span: &Span| span.service_name() == PULUMI_CLI && !is_legacy(span) && operation(span).1 == SpanKind::Internal && !has_parent(span);
    // At one moment spans open first, then roots ask, then spans close.
    let mut events: Vec<(Timestamp, u8, SpanRow)> = Vec::new();
    for (i, span) in rows(spans).filter(|(_, span)| top(span)) {
        events.push((span.start.plus_nanos(-COVER_SLACK_NANOS), 0, i));
        events.push((span.end.max(span.start).plus_nanos(COVER_SLACK_NANOS), 2, i));
    }
    if events.is_empty() {
        return BTreeMap::new();
    }
    events.extend(roots.iter().filter(|&&i| maker(of(i)) == PULUMI).map(|&i| (of(i).start, 1, i)));
    events.sort_by_key(|&(at, kind, i)| (at, kind, of(i).trace_id, of(i).span_id));
    let mut open: BTreeMap<(Timestamp, SpanId), SpanRow> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for (_, kind, i) in events {
        let span = of(i);
        match kind {
            0 => {
                open.insert((span.start, span.span_id), i);
            }
            1 => {
                let covers = |host: &Span| {
                    let same_process = host.pid.is_none() || span.pid.is_none() || host.pid == span.pid;
                    same_process && span.end <= host.end.plus_nanos(COVER_SLACK_NANOS)
                };
                if let Some(&host) = open.values().rev().take(OPEN_COMMANDS_MAX).find(|&&h| covers(of(h))) {
                    out.insert(i, host);
                }
            }
            _ => {
                open.remove(&(span.start, span.span_id));
            }
        }
    }
    out
}

/// For each legacy trace the trace that its first span with a partner or a host leads to.
fn homes(spans: &[Span], pairs: &[(SpanRow, SpanRow)], hosts: &BTreeMap<SpanRow, SpanRow>) -> HashMap<TraceId, TraceId> {
    let mut first: HashMap<TraceId, (Timestamp, SpanId, TraceId)> = HashMap::new();
    for (from, into) in pairs.iter().copied().chain(hosts.iter().map(|(&root, &host)| (root, host))) {
        let lead = (spans[from].start, spans[from].span_id, spans[into].trace_id);
        first.entry(spans[from].trace_id).and_modify(|known| *known = lead.min(*known)).or_insert(lead);
    }
    first.into_iter().map(|(legacy, (.., home))| (legacy, home)).collect()
}

/// Events or links of one moment, or to one span, that are compared with each other; of more the others count as different.
const ALIKE_MAX: usize = 64;

/// Adds to one span what only the other one knows.
fn add_what_lacks(into: &mut Span, from: Span) {
    let Span { attributes, events, links, status, .. } = from;
    let mut known: HashSet<Text> = into.attributes.0.iter().map(|attribute| attribute.key.clone()).collect();
    into.attributes.0.extend(attributes.0.into_iter().filter(|attribute| known.insert(attribute.key.clone())));
    add_others(&mut into.events, events, |event: &SpanEvent| (event.time, event.name.clone()));
    add_others(&mut into.links, links, |link: &SpanLink| (link.trace_id, link.span_id));
    if into.status.code == StatusCode::Unset {
        into.status = status;
    }
}

/// Adds to a legacy span what only its second finish knows.
pub fn merge_finishes(first: &mut Span, second: Span) {
    first.end = first.end.max(second.end);
    add_what_lacks(first, second);
}

/// Adds those that are not there. Equal ones have the same key.
fn add_others<T: PartialEq, K: Eq + Hash>(into: &mut ThinVec<T>, from: ThinVec<T>, key: impl Fn(&T) -> K) {
    let mut places: HashMap<K, Vec<usize>> = HashMap::new();
    for (place, known) in into.iter().enumerate() {
        places.entry(key(known)).or_default().push(place);
    }
    for new in from {
        let alike = places.entry(key(&new)).or_default();
        if !alike.iter().take(ALIKE_MAX).any(|&place| into[place] == new) {
            alike.push(into.len());
            into.push(new);
        }
    }
}

/// Adds to an OpenTelemetry span what only its legacy twin knows, and the ids of that.
pub fn fold(into: &mut Span, legacy: Span) {
    let (trace, id) = (legacy.trace_id, legacy.span_id);
    add_what_lacks(into, legacy);
    into.attributes.push(LEGACY_SPAN_ID, AttributeValue::Str(id.to_string().into()));
    into.attributes.push(LEGACY_TRACE_ID, AttributeValue::Str(trace.to_string().into()));
}

/// Spans without a partner go to the trace of the others, with their ids, where those are free there.
fn move_home(spans: &mut [Span], legacy: &[SpanRow], gone: &IdVec<SpanRow, bool>, homes: &HashMap<TraceId, TraceId>) {
    let mut ids: HashSet<(TraceId, SpanId)> = rows(spans).filter(|(i, _)| !gone[*i]).map(|(_, s)| (s.trace_id, s.span_id)).collect();
    for &i in legacy.iter().filter(|&&i| !gone[i]) {
        let span = &mut spans[i];
        let Some(&home) = homes.get(&span.trace_id).filter(|home| **home != span.trace_id) else { continue };
        if ids.insert((home, span.span_id)) {
            span.attributes.push(LEGACY_TRACE_ID, AttributeValue::Str(span.trace_id.to_string().into()));
            span.trace_id = home;
        }
    }
}

/// The other ids of spans, as the tree wants them. They are looked up without their trace, because a legacy parent id stands in spans of
/// OpenTelemetry's trace too; an id of two spans says nothing. Hosts are spans of the command.
pub(crate) fn aliases(recording: &Recording) -> SpanAliases {
    let mut out = SpanAliases::default();
    let mut ambiguous = HashSet::new();
    let mut legacy = Vec::new();
    for (i, span) in rows(&recording.spans) {
        let parsed = |key| span.attributes.get_str(key);
        let folded: Option<SpanId> = parsed(LEGACY_SPAN_ID).and_then(|id| id.parse().ok());
        if is_legacy(span) {
            legacy.push(i);
        } else if folded.is_none() {
            continue;
        }
        out.pairs += u64::from(folded.is_some());
        let id = folded.unwrap_or(span.span_id);
        if out.by_id.insert(id, i).is_some() {
            ambiguous.insert(id);
        }
        if let Some(trace) = parsed(LEGACY_TRACE_ID).and_then(|trace| trace.parse().ok()) {
            out.ids.push(((trace, id), i));
        }
    }
    out.by_id.retain(|id, _| !ambiguous.contains(id));
    let placed = |i: &SpanRow| {
        let span = &recording.spans[*i];
        span.parent_span_id.is_some_and(|p| p != span.span_id && out.by_id.contains_key(&p))
    };
    let has_parent = have_parents(&recording.spans);
    let roots: Vec<SpanRow> = legacy.into_iter().filter(|i| !has_parent(&recording.spans[*i]) && !placed(i)).collect();
    out.hosts = hosts(&recording.spans, &roots, &has_parent);
    out
}

#[cfg(test)]
mod tests;
