//! Clocks that disagree: by how much the times of each emitter are moved so that calls lie inside their callers.
//!
//! ```text
//! client, host a     ├──────────────────┤              a call that ends before it began: host b is behind by about 9
//! server, host b   ├──────────┤
//! moved               ├──────────┤                     as far from the start as from the end: the network takes as long both ways
//! ```
//!
//! All processes of the recording machine share one clock, whatever they say. Elsewhere a clock is a host, or where no host is
//! named an emitter. A clock is moved only where most of the calls between it and another one contradict causality by more than
//! [`SKEW_NANOS`]: a single odd parent is no clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::sync::Arc;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, Nanos, Recording, Span, SpanHead, SpanKind, TimeRange, ids};

use crate::note::{ClockName, ClockShift, Note};
use crate::tree::emitters::{EmitterId, Emitters};
use crate::tree::span_list::{ListedSpan, SpanList};

/// A child that starts earlier than its parent by more is a sign of clocks that disagree; less is rounding of emitters.
pub(crate) const SKEW_NANOS: i64 = 1_000_000;

ids! {
    /// A clock, by its place among the names of all.
    struct ClockId;
}

/// The clock of each span.
type Clocks = IdVec<ListedSpan, ClockId>;

/// The clock of a span.
fn clock_of(recording: &Recording, span: &Span, local: &HashSet<u32>) -> ClockName {
    let said = |key| span.resource.attributes.get_str(key).unwrap_or_default();
    let host = said("host.name");
    if !host.is_empty() && host != recording.run.host {
        ClockName::Host(host.to_owned())
    } else if !host.is_empty() || span.pid.is_some_and(|pid| local.contains(&pid)) {
        ClockName::Recorder
    } else {
        let (service, instance) = (span.service_name().to_owned(), said("service.instance.id").to_owned());
        ClockName::Emitter { service, instance, pid: span.pid }
    }
}

/// What the calls between two clocks say about the second, relative to the first.
#[derive(Debug, Clone)]
struct Between {
    /// It must be moved by at least this, for no call may start before its caller.
    low: i64,
    /// And by at most this, for a call that is waited for does not end after it.
    high: i64,
    calls: u32,
    /// Calls that contradict causality as they are.
    odd: u32,
}

impl Between {
    /// How far the second clock is moved.
    fn shift(&self) -> i64 {
        if self.odd == 0 || self.odd.saturating_mul(2) < self.calls {
            return 0;
        }
        match (self.low, self.high) {
            (i64::MIN, high) => high,
            (low, i64::MAX) => low,
            // Also where they contradict each other, because a clock drifts: the middle is wrong by the least.
            (low, high) => low.saturating_add(high.saturating_sub(low) / 2),
        }
    }
}

/// How far the times of each span are moved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shifts {
    /// Empty where nothing is moved.
    of_span: IdVec<ListedSpan, i64>,
    pub(crate) note: Option<Note>,
}

impl Shifts {
    pub(crate) fn of(&self, span: ListedSpan) -> i64 {
        self.of_span.get(span).copied().unwrap_or_default()
    }

    /// Finds the shifts. `parent` holds the span that each span names as its parent.
    pub(crate) fn find(
        recording: &Recording,
        spans: SpanList<'_>,
        emitters: &Emitters,
        parent: &dyn Fn(ListedSpan) -> Option<ListedSpan>,
    ) -> Shifts {
        let (clock, names) = clocks(recording, spans, emitters);
        if names.len() < 2 {
            return Shifts::default();
        }
        let between = calls_between(spans, &clock, parent);
        if between.values().all(|b| b.shift() == 0) {
            return Shifts::default();
        }
        // Right is the recorder, then whoever began.
        let mut began: IdVec<ClockId, i64> = IdVec::filled(i64::MAX, names.len());
        for span in spans.ids().filter(|&span| parent(span).is_none()) {
            let began = &mut began[clock[span]];
            *began = (*began).min(spans.head(span).start.unix_nanos());
        }
        let mut trusted: Vec<ClockId> = names.ids().collect();
        trusted.sort_by_key(|&c| (names[c] != ClockName::Recorder, began[c], c));
        let shift = spread(&between, &trusted);
        let of_span: IdVec<ListedSpan, i64> = clock.iter().map(|&c| shift[c]).collect();
        let moved = of_span.iter().filter(|s| **s != 0).count() as u64;
        let mut clocks: Vec<ClockId> = names.ids().filter(|&c| shift[c] != 0).collect();
        clocks.sort_by_key(|&c| (Reverse(shift[c].unsigned_abs()), c));
        let clocks = clocks.into_iter().map(|c| ClockShift { clock: names[c].clone(), nanos: Nanos(shift[c]) }).collect();
        Shifts { of_span, note: (moved > 0).then_some(Note::ClockShifted { spans: moved, clocks }) }
    }
}

/// The clock of each span, and the clocks.
fn clocks(recording: &Recording, spans: SpanList<'_>, emitters: &Emitters) -> (Clocks, IdVec<ClockId, ClockName>) {
    let local: HashSet<u32> = recording.processes.iter().map(|p| p.pid).collect();
    // A resource may have a hundred thousand scopes, and its names 16 KB.
    let (mut places, mut of_place): (FastMap<_, usize>, Vec<ClockName>) = (FastMap::default(), Vec::new());
    let place = |span: &Span| {
        *places.entry((Arc::as_ptr(&span.resource) as usize, span.pid)).or_insert_with(|| {
            of_place.push(clock_of(recording, span, &local));
            of_place.len() - 1
        })
    };
    let of_emitter: Vec<usize> = emitters.examples(spans).map(place).collect();
    let mut names = of_place.clone();
    names.sort();
    names.dedup();
    // Every name is among them.
    let clock = |name: &ClockName| ClockId::at(names.binary_search(name).unwrap_or_default());
    let of_place: Vec<ClockId> = of_place.iter().map(clock).collect();
    let of_emitter: IdVec<EmitterId, ClockId> = of_emitter.iter().map(|place| of_place[*place]).collect();
    (emitters.of_span.iter().map(|&emitter| of_emitter[emitter]).collect(), names.into())
}

/// What the calls say, for each two clocks, the smaller id first.
fn calls_between(
    spans: SpanList<'_>,
    clock: &Clocks,
    parent: &dyn Fn(ListedSpan) -> Option<ListedSpan>,
) -> BTreeMap<(ClockId, ClockId), Between> {
    let mut out: BTreeMap<(ClockId, ClockId), Between> = BTreeMap::new();
    for i in spans.ids() {
        let Some(p) = parent(i).filter(|&p| clock[p] != clock[i]) else { continue };
        let (child, caller) = (spans.head(i), spans.head(p));
        let (kind, caller_kind) = (spans.example(i).kind, spans.example(p).kind);
        let length = |head: SpanHead| TimeRange { start: head.start, end: head.end }.nanos();
        let low = caller.start.nanos_since(child.start);
        let waited_for = length(child) <= length(caller) && kind != SpanKind::Consumer;
        let is_call = caller_kind == SpanKind::Client && kind == SpanKind::Server;
        let until = caller.end.nanos_since(child.end);
        // A child that starts in time and ends late is asynchronous work, unless a client waited for it.
        let odd = low > SKEW_NANOS || (is_call && waited_for && until < -SKEW_NANOS);
        // The latest a child may be moved to is its caller's end, but only a client is known to have waited so long.
        let high = if is_call && waited_for { until } else { i64::MAX };
        let (own, callers) = (clock[i], clock[p]);
        let (key, low, high) = if callers < own {
            ((callers, own), low, high)
        } else {
            ((own, callers), if high == i64::MAX { i64::MIN } else { high.saturating_neg() }, low.saturating_neg())
        };
        let between = out.entry(key).or_insert(Between { low: i64::MIN, high: i64::MAX, calls: 0, odd: 0 });
        between.low = between.low.max(low);
        between.high = between.high.min(high);
        between.calls = between.calls.saturating_add(1);
        between.odd = between.odd.saturating_add(u32::from(odd));
    }
    out
}

/// The shift of each clock: from the most trusted of each group of clocks that call each other, over the edges with the most
/// calls.
fn spread(between: &BTreeMap<(ClockId, ClockId), Between>, trusted: &[ClockId]) -> IdVec<ClockId, i64> {
    let count = trusted.len();
    let mut edges: IdVec<ClockId, Vec<(u32, ClockId, i64)>> = IdVec::filled(Vec::new(), count);
    for (&(a, b), between) in between {
        let shift = between.shift();
        edges[a].push((between.calls, b, shift));
        edges[b].push((between.calls, a, shift.saturating_neg()));
    }
    let mut shift: IdVec<ClockId, i64> = IdVec::filled(0, count);
    let mut done: IdVec<ClockId, bool> = IdVec::filled(false, count);
    for &first in trusted {
        let mut heap = BinaryHeap::from([(u32::MAX, Reverse(first), 0i64)]);
        while let Some((_, Reverse(c), moved)) = heap.pop() {
            if std::mem::replace(&mut done[c], true) {
                continue;
            }
            shift[c] = moved;
            heap.extend(
                edges[c].iter().filter(|e| !done[e.1]).map(|&(calls, other, by)| (calls, Reverse(other), moved.saturating_add(by))),
            );
        }
    }
    shift
}

#[cfg(test)]
mod tests {
    use crate::tree::forest::Forest;
    use crate::words;
    use longpole_model::text;

    /// Each node as `name from..to` in milliseconds, then notes.
    fn check(input: &str, expected: &[&str]) {
        let recording = text::parse(input).unwrap();
        let forest = Forest::build(&recording);
        let millis = |at: longpole_model::Timestamp| at.nanos_since(text::ORIGIN) as f64 / 1e6;
        let mut drawn: Vec<String> = forest
            .nodes
            .enumerated()
            .skip(1)
            .map(|(i, n)| format!("{} {}..{}", forest.name(&recording, i), millis(n.range.start), millis(n.range.end)))
            .collect();
        drawn.extend(forest.notes.iter().map(|n| format!("{} {}: {}", n.code(), n.count(), words::note(n))));
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_call_is_moved_into_its_caller() {
        check(
            "\
run x  0..100ms
  call  20..40ms  shop  kind client
    serve  11..21ms  bank  kind server
      work  12..20ms  bank
",
            &["call 20..40", "serve 25..35", "work 26..34", "clock_shifted 2: calls now lie inside their callers: bank by +14.0ms"],
        );
    }

    #[test]
    fn the_machine_that_recorded_is_right_and_hosts_share_a_clock() {
        check(
            "\
run x  0..100ms
  call  20..40ms  shop  pid 1  kind client
    serve  30..50ms  bank  pid -  kind server
",
            &["call 20..40", "serve 20..40", "clock_shifted 1: calls now lie inside their callers: bank by -10.0ms"],
        );
    }

    #[test]
    fn one_odd_parent_and_late_ends_move_no_clock() {
        check(
            "\
run x  0..100ms
  post  20..40ms  shop
    deliver  30..50ms  bank
    again    31..33ms  bank
    wrong    10..12ms  bank
",
            &["post 20..40", "wrong 10..12", "deliver 30..50", "again 31..33", "clock_skew 1: two clocks disagree, or a parent is wrong"],
        );
    }
}
