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
mod nested_roots;
mod parents;
mod processes;

use longpole_model::{Id, IdVec, ProcessRow, Recording, SpanRow, TimeRange, Timestamp, ids};

use self::parents::{ParentClaim, ParentRef};
use self::processes::Processes;
use crate::note::Note;
use crate::tree::clock_skew::Shifts;
use crate::tree::emitters::Emitters;
use crate::tree::forest::{Edge, Forest};
use crate::tree::placement::{PlacedSpans, PlacementRules, SpanAliases};
use crate::tree::span_list::{ListedSpan, SpanList};

/// So far from its run no span was: a day. Clocks of machines that disagree are corrected before; who starts a run finds what began before.
const OUTSIDE_NANOS: i64 = 86_400_000_000_000;

ids! {
    /// A span or a process: spans come first, in the order of their list, then processes.
    struct Entity;
}

/// What an entity is made from.
enum MadeFrom {
    Span(ListedSpan),
    Process(ProcessRow),
}

impl Entity {
    fn of_span(span: ListedSpan) -> Entity {
        Entity::at(span.place())
    }

    fn of_process(process: ProcessRow, spans: SpanList<'_>) -> Entity {
        Entity::at(spans.len() + process.place())
    }

    fn made_from(self, spans: SpanList<'_>) -> MadeFrom {
        match self.place().checked_sub(spans.len()) {
            None => MadeFrom::Span(ListedSpan::at(self.place())),
            Some(process) => MadeFrom::Process(ProcessRow::at(process)),
        }
    }
}

/// The tree while it is built.
struct Builder<'a> {
    recording: &'a Recording,
    spans: SpanList<'a>,
    run: TimeRange,
    notes: Vec<Note>,
    processes: Processes<'a>,
    /// The process that emitted each span; empty where there are no processes.
    process_of_span: IdVec<ListedSpan, Option<ProcessRow>>,
    /// What each span's parent id says.
    claims: IdVec<ListedSpan, ParentClaim>,
    /// When each span was, by the corrected clock.
    span_ranges: IdVec<ListedSpan, TimeRange>,
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
    let (inner, maybe) = builder.place_processes();
    // Those of one process stand together.
    let unsure = maybe.chunk_by(|a, b| a.0 == b.0).count();
    builder.notes.extend(Note::counted(unsure, Note::ProcessesUnsure));

    let entities = spans.len() + recording.processes.len();
    let mut place: IdVec<Entity, ParentRef> = IdVec::filled(ParentRef::Run, entities);
    let mut edge: IdVec<Entity, Edge> = IdVec::filled(Edge::Inferred, entities);
    for span in spans.ids() {
        let entity = Entity::of_span(span);
        (place[entity], edge[entity]) = builder.place_span(span);
    }
    let mut note_of_rules = None;
    if let (Some(rules), SpanList::Whole(spans)) = (rules, spans) {
        let parent = |span: SpanRow| builder.claims[ListedSpan::of_row(span)].span().map(ListedSpan::row);
        let range = |span: SpanRow| builder.span_ranges[ListedSpan::of_row(span)];
        let spans = PlacedSpans { spans, range: &range, parent: &parent };
        note_of_rules = rules.note(&spans);
        for it in rules.adoptions(&spans) {
            let [span, parent] = [it.span, it.parent].map(|row| Entity::of_span(ListedSpan::of_row(row)));
            (place[span], edge[span]) = (ParentRef::Entity(parent), Edge::Inferred);
        }
    }
    builder.notes.extend(note_of_rules);
    let nested = builder.nest_roots(&mut place, &mut edge);
    builder.notes.extend(Note::counted(nested, Note::RootsNested));
    let mut present: IdVec<Entity, bool> = IdVec::filled(true, entities);
    for (process, &inside) in inner.enumerated() {
        let entity = Entity::of_process(process, spans);
        place[entity] = inside;
        present[entity] = builder.processes.is_inner_node(process);
    }
    let cycle_broken = builder.break_cycles(&mut place, &mut edge, &present);
    builder.lay_out(&place, &edge, &present, &cycle_broken, &maybe, aliases, rules.is_some())
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
    claims: &IdVec<ListedSpan, ParentClaim>,
    notes: &mut Vec<Note>,
) -> IdVec<ListedSpan, TimeRange> {
    let mut shifts = Shifts::find(recording, spans, &emitters, &|span| claims[span].span());
    notes.extend(shifts.note.take());
    let mut outside = 0;
    let mut corrected = |id: ListedSpan| {
        let (shift, span) = (shifts.of(id), spans.head(id));
        let start = span.start.plus_nanos(shift);
        let recorded = TimeRange { start, end: span.end.plus_nanos(shift).max(start) };
        let range = near(run, recorded);
        outside += usize::from(range != recorded);
        range
    };
    let ranges = spans.ids().map(&mut corrected).collect();
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
    fn process_of(&self, span: ListedSpan) -> Option<ProcessRow> {
        self.process_of_span.get(span).copied().flatten()
    }

    /// When a span or a process started.
    fn start(&self, entity: Entity) -> Timestamp {
        match entity.made_from(self.spans) {
            MadeFrom::Span(span) => self.span_ranges[span].start,
            MadeFrom::Process(process) => self.processes.ranges[process].map_or(self.run.start, |range| range.start),
        }
    }
}

#[cfg(test)]
mod tests;
