//! Spans and processes → one forest, rooted in the run.
//!
//! ```text
//! run make                              node 0: the command's own process, the whole run
//! ├─ process sh            inferred     no spans of its own: its life is a node
//! │  └─ deploy             inferred     said "my parent is the run"; its process lives inside sh
//! │     ├─ create web      declared     parent id
//! │     │  └─ Create       declared     emitted by a provider, whose process is no node: all its spans
//! │     └─ create db       declared     have a parent elsewhere, and its life would only hide the path
//! └─ process cc1           inferred
//! ```
//!
//! A parent id is believed; what has none is placed by the tree of processes and by time, and its edge says so. Arrival
//! order does not matter: siblings are ordered by start, then by id. A parent may be named by the id that it had in legacy
//! tracing, and calls of a provider stand under the registration that waits for them: such rules of a tool come in through
//! [`PlacementRules`]. Times are those of one clock ([`clock_skew`](super::clock_skew)).
//!
//! Which processes are nodes:
//!
//! - the command itself is node 0;
//! - a process without spans, for its life is all that is known of its work;
//! - a process with spans that have no parent: it becomes their parent;
//! - not a process with spans that are all called from elsewhere: a server; nor one without spans that listens where spans of
//!   others call; nor what a tool's rules call served, such as Pulumi's plug-ins, whose spans reach us through Pulumi;
//! - not a fork that never executed a program and either did nothing but wait for its own children (a subshell), or was
//!   over at once without a sample: both are still their parent's program, and its time is the parent's.

mod layout;
mod parents;
mod processes;

use longpole_model::{Recording, SpanHead, TimeRange, Timestamp};

use self::parents::{ParentClaim, ParentRef};
use self::processes::Processes;
use crate::note::Note;
use crate::tree::clock_skew::Shifts;
use crate::tree::emitters::Emitters;
use crate::tree::forest::{Edge, Forest};
use crate::tree::placement::{PlacedSpans, PlacementRules, SpanAliases};
use crate::tree::span_list::SpanList;

/// So far from its run no span was: a day. Clocks of machines that disagree are corrected before; who starts a run finds what began before.
const OUTSIDE_NANOS: i64 = 86_400_000_000_000;

/// The tree while it is built. An *entity* is a span or a process: spans first, then processes, each by its number.
struct Builder<'a> {
    recording: &'a Recording,
    spans: SpanList<'a>,
    run: TimeRange,
    notes: Vec<Note>,
    processes: Processes<'a>,
    /// The process that emitted each span; empty where there are no processes.
    process_of_span: Vec<Option<u32>>,
    /// What each span's parent id says.
    claims: Vec<ParentClaim>,
    /// When each span was, by the corrected clock.
    span_ranges: Vec<TimeRange>,
}

/// The forest of these spans and of the recording's processes. `emitters` are those of the spans; `rules` are those of the tool that
/// made some of them, and then `spans` is the whole list.
pub(crate) fn build(recording: &Recording, spans: SpanList<'_>, emitters: Emitters, rules: Option<&dyn PlacementRules>) -> Forest {
    let mut notes = Vec::new();
    let run = run_range(recording, spans, &mut notes);
    let mut processes = Processes::new(recording, run, &mut notes);
    let process_of_span = processes.of_spans(spans);
    let none = SpanAliases::default();
    let aliases = rules.map_or(&none, |rules| rules.aliases());
    let claims = parents::read(recording, spans, aliases, rules, &mut notes);
    let span_ranges = correct_clocks(recording, spans, emitters, run, &claims, &mut notes);
    processes.choose(&claims, &process_of_span, rules, &mut notes);
    let mut builder = Builder { recording, spans, run, notes, processes, process_of_span, claims, span_ranges };
    let inner = builder.place_processes();

    let count = spans.len();
    let entities = count + recording.processes.len();
    let mut place = vec![ParentRef::Run; entities];
    let mut edge = vec![Edge::Inferred; entities];
    for i in 0..count {
        (place[i], edge[i]) = builder.place_span(i);
    }
    if let (Some(rules), SpanList::Whole(spans)) = (rules, spans) {
        let parent = |i: usize| builder.claims[i].span();
        for it in rules.adoptions(&PlacedSpans { spans, ranges: &builder.span_ranges, parent: &parent }) {
            place[it.span] = ParentRef::Entity(it.parent as u32);
            edge[it.span] = Edge::Inferred;
        }
    }
    place[count..].copy_from_slice(&inner);
    let mut present = vec![true; entities];
    for p in 0..recording.processes.len() {
        present[count + p] = builder.processes.is_inner_node(p);
    }
    let cycle_broken = builder.break_cycles(&mut place, &mut edge, &present);
    builder.lay_out(&place, &edge, &present, &cycle_broken, aliases, rules.is_some())
}

/// When the run was; where its end was not recorded, until the last thing that was.
fn run_range(recording: &Recording, spans: SpanList<'_>, notes: &mut Vec<Note>) -> TimeRange {
    let start = recording.run.start;
    let wall = |at| recording.clock.to_unix(at);
    let seen = || {
        let spans = spans.heads().map(|s| s.end.max(s.start)).max();
        let processes = recording.processes.iter().filter_map(|p| wall(p.end.unwrap_or(p.start))).max();
        let samples = recording.samples.last().and_then(|s| wall(s.time));
        let slices = recording.cpu_slices.iter().map(|s| s.end).max().and_then(wall);
        [spans, processes, samples, slices].into_iter().flatten().max().unwrap_or(start)
    };
    if recording.run.end.is_none() {
        notes.push(Note::UnfinishedRun);
    }
    TimeRange { start, end: recording.run.end.unwrap_or_else(seen).max(start) }
}

/// The times of all spans by one clock, those far away moved to the run.
fn correct_clocks(
    recording: &Recording,
    spans: SpanList<'_>,
    emitters: Emitters,
    run: TimeRange,
    claims: &[ParentClaim],
    notes: &mut Vec<Note>,
) -> Vec<TimeRange> {
    let mut shifts = Shifts::find(recording, spans, &emitters, &|i| claims[i].span());
    notes.extend(shifts.note.take());
    let mut outside = 0;
    let mut corrected = |(i, span): (usize, SpanHead)| {
        let shift = shifts.of(i);
        let start = span.start.plus_nanos(shift);
        let recorded = TimeRange { start, end: span.end.plus_nanos(shift).max(start) };
        let range = near(run, recorded);
        outside += usize::from(range != recorded);
        range
    };
    let ranges = spans.heads().enumerate().map(&mut corrected).collect();
    notes.extend(Note::counted(outside, Note::TimesOutsideRun));
    ranges
}

/// A span's times, those far away moved to the end of the run that is nearer: a span that says no start would make work of 56 years of it.
fn near(run: TimeRange, recorded: TimeRange) -> TimeRange {
    let moved = |at: Timestamp| {
        if run.start.nanos_since(at) > OUTSIDE_NANOS {
            run.start
        } else if at.nanos_since(run.end) > OUTSIDE_NANOS {
            run.end
        } else {
            at
        }
    };
    let range = TimeRange { start: moved(recorded.start), end: moved(recorded.end) };
    if range.start <= range.end {
        return range;
    }
    // One of them is far away and the other, on the same side of the run, is not: the one that was moved holds.
    let at = if range.start == recorded.start { range.end } else { range.start };
    TimeRange { start: at, end: at }
}

impl Builder<'_> {
    /// The process that emitted a span.
    fn process_of(&self, span: usize) -> Option<usize> {
        self.process_of_span.get(span).copied().flatten().map(|process| process as usize)
    }

    /// When a span or a process started.
    fn start(&self, entity: usize) -> Timestamp {
        match self.span_ranges.get(entity) {
            Some(range) => range.start,
            None => self.processes.ranges[entity - self.span_ranges.len()].map_or(self.run.start, |range| range.start),
        }
    }
}

#[cfg(test)]
mod tests;
