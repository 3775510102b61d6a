//! Observations and spans → a recording under construction. Pure: no file, no clock.
//!
//! ```text
//! replayed frames ─┬─ Observations ──────────────────────► observe ─┐
//!                  ├─ Loss ──────────────────────────────► loss     ├─► finish ─► Recording
//!                  └─ OTLP bodies ─► wire (not here) ────► span     ┘
//! ```
//!
//! What the recorder promises may be broken by a full disk or an overrun ring: a definition can be missing, a fork can go
//! unseen. So nothing here trusts a number: mappings, locations and stacks are numbered anew in the order they are
//! defined (which gives the same numbers where nothing is missing), and what refers to nothing gets a placeholder that
//! says so.

use std::collections::BTreeMap;

use longpole_model::process::CpuSlice;
use longpole_model::run::CaptureMode;
use longpole_model::stack::{Frame, LocationKind};
use longpole_model::time::{ClockAnchor, Monotonic};
use longpole_model::{
    Loss, LossKind, Observation, ProcessUsage, Recording, Run, Sample, Span, SpanEvent, SpanId, SpanIndex, TraceId, Wait,
};

use self::current_spans::CurrentSpansBuilder;
use self::duplicate_spans::DuplicateSpans;
use self::processes::ProcessesBuilder;
use self::stack_tables::StackTables;
use crate::compact_spans::{CompactRecording, CompactSpans};

mod clock_steps;
mod current_spans;
mod duplicate_spans;
mod processes;
mod stack_tables;

/// A recording under construction. Its spans are compact: there may be a million of them.
#[derive(Debug)]
pub struct Assembler {
    run: Run,
    anchors: Vec<ClockAnchor>,
    /// When it was found out that the machine had slept, and for how long.
    sleeps: Vec<(Monotonic, u64)>,
    spans: CompactSpans,
    span_index: SpanIndex,
    duplicates: u64,
    duplicate_spans: DuplicateSpans,
    /// Events that came without their spans.
    span_events: Vec<(TraceId, SpanId, SpanEvent)>,
    processes: ProcessesBuilder,
    cpu_slices: Vec<CpuSlice>,
    current_spans: CurrentSpansBuilder,
    process_usage: Vec<ProcessUsage>,
    waits: Vec<Wait>,
    samples: Vec<Sample>,
    stack_tables: StackTables,
    losses: Vec<Loss>,
}

impl Assembler {
    /// Begins with the run as it was known at its start.
    pub fn new(run: Run) -> Self {
        Assembler {
            processes: ProcessesBuilder::of(run.root_pid),
            run,
            anchors: Vec::new(),
            sleeps: Vec::new(),
            spans: CompactSpans::default(),
            span_index: SpanIndex::default(),
            duplicates: 0,
            duplicate_spans: DuplicateSpans::default(),
            span_events: Vec::new(),
            cpu_slices: Vec::new(),
            current_spans: CurrentSpansBuilder::default(),
            process_usage: Vec::new(),
            waits: Vec::new(),
            samples: Vec::new(),
            stack_tables: StackTables::default(),
            losses: Vec::new(),
        }
    }

    /// Takes a span from an unknown sender. The same span (ids, start, name and service) stays once, as it ended later; another span
    /// with its ids gets an id of its own.
    pub fn span(&mut self, mut span: Span) {
        let is_free = |this: &Self, span: &Span| match this.span_index.get(this.spans.heads(), span.trace_id, span.span_id) {
            None => true,
            Some(known) => this.spans.is_same(known, span) || this.spans.is_unfinished(known) && this.spans.is_called(known, span),
        };
        if !is_free(self, &span) {
            let mut duplicates = std::mem::take(&mut self.duplicate_spans);
            duplicates.move_aside(&mut span, |span| is_free(self, span));
            self.duplicate_spans = duplicates;
        }
        self.span_by(None, span);
    }

    /// Takes a span that this process sent. When one process sends two with the same trace and span id, the one that ends later stays (the
    /// first, where they end together) and the other is counted: exporters send again what they did not see acknowledged. Between whole
    /// spans of several processes [`duplicate_spans`] decides.
    pub fn span_by(&mut self, sender: Option<u32>, span: Span) {
        match self.span_index.add(self.spans.heads(), span.trace_id, span.span_id) {
            None => {
                self.duplicate_spans.note_kept(sender);
                self.spans.push(&span);
            }
            Some(known) => {
                if self.duplicate_spans.may_replace(known, &mut self.spans, sender, &span) {
                    self.duplicates += 1;
                    if span.end > self.spans.heads()[known].end {
                        self.duplicate_spans.note_replaced(known, sender);
                        self.spans.replace(known, &span);
                    }
                }
            }
        }
    }

    /// How many spans there are so far.
    pub fn span_count(&self) -> u64 {
        (self.spans.len() + self.duplicate_spans.len()) as u64
    }

    /// Bytes of what the spans say, as they stand in memory.
    pub fn span_body_bytes(&self) -> u64 {
        self.spans.body_bytes()
    }

    /// How many samples there are so far.
    pub fn sample_count(&self) -> u64 {
        self.samples.len() as u64
    }

    /// The one span that is named as a parent and has not come; `None` where all have, or several have not.
    pub fn caller(&self) -> Option<(TraceId, SpanId)> {
        let heads = self.spans.heads();
        let parents = heads.iter().filter_map(|span| Some((span.trace_id, span.parent_span_id?)));
        let mut missing = parents.filter(|(trace_id, span_id)| self.span_index.get(heads, *trace_id, *span_id).is_none());
        let first = missing.next()?;
        missing.all(|other| other == first).then_some(first)
    }

    /// Takes an event that came without its span, which may come before or after it.
    pub fn span_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) {
        self.span_events.push((trace_id, span_id, event));
    }

    /// Gives events that came by themselves to their spans, in the order of time.
    fn place_span_events(&mut self) {
        let (mut events_of, mut strays) = (BTreeMap::new(), 0);
        for (trace_id, span_id, event) in std::mem::take(&mut self.span_events) {
            match self.span_index.get(self.spans.heads(), trace_id, span_id) {
                Some(row) => events_of.entry(row).or_insert_with(Vec::new).push(event),
                None => strays += 1,
            }
        }
        for (row, events) in events_of {
            let mut span = self.spans.get(row);
            span.events.extend(events);
            span.events.sort_by_key(|event| event.time);
            self.spans.replace(row, &span);
        }
        if strays > 0 {
            self.loss(Loss::new(LossKind::OtherSignals, strays, "log records of spans that never arrived"));
        }
    }

    /// Takes a loss.
    pub fn loss(&mut self, loss: Loss) {
        loss.merge_into(&mut self.losses);
    }

    /// Takes what the recorder saw.
    pub fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Clock(anchor) => self.anchors.push(anchor),
            Observation::Slept { time, nanos } => self.sleeps.push((time, nanos)),
            Observation::Mapping(mapping) => self.stack_tables.define_mapping(mapping),
            Observation::Location { id, kind } => self.stack_tables.define_location(id, kind),
            Observation::Named { id, runtime, address, function, file, line } => {
                let [function, file] = [function, file].map(|text| self.stack_tables.shared(text));
                self.stack_tables.name_location(id, LocationKind::Named { runtime, address }, Frame { function, file, line, reason: None });
            }
            Observation::Replaced { id, since, by } => self.stack_tables.replace_location(id, since, by),
            Observation::Stack { id, locations } => self.stack_tables.define_stack(id, locations),
            Observation::Sample(sample) => {
                let stack = self.stack_tables.stack(sample.stack);
                self.samples.push(Sample { stack, ..sample });
            }
            Observation::CpuSlice(slice) => self.cpu_slices.push(slice),
            Observation::Wait(wait) => {
                let stack = wait.stack.map(|stack| self.stack_tables.stack(stack));
                self.waits.push(Wait { stack, ..wait });
            }
            Observation::ProcessStarted { pid, parent_pid, time } => self.processes.process_started(pid, parent_pid, time),
            Observation::Journal { pid, tid, follows, entries, until } => self.current_spans.read((pid, tid), follows, entries, until),
            Observation::ProcessExec { pid, time, name, executable, arguments } => {
                self.current_spans.exec(pid, time);
                self.processes.process_exec(pid, time, name, executable, arguments);
            }
            Observation::ProcessExited { pid, time } => self.processes.process_exited(pid, time),
            Observation::ProcessStatus { pid, time, exit } => self.processes.statuses.push((pid, time, exit)),
            Observation::ProcessListens { pid, address } => self.processes.listens.push((pid, address)),
            Observation::ProcessResource { pid, time, attributes } => self.processes.resources.push((pid, time, attributes)),
            Observation::ProcessUsage(usage) => self.process_usage.push(usage),
            Observation::ThreadStarted { pid, tid, time } => self.processes.thread_started(pid, tid, time),
            Observation::ThreadNamed { pid, tid, name } => self.processes.thread_named(pid, tid, name),
            Observation::ThreadExited { pid, tid, time } => self.processes.thread_exited(pid, tid, time),
            Observation::ThreadIdent { pid, tid, ident } => self.processes.idents.push((pid, tid, ident)),
            Observation::ThreadTotals { pid, tid, totals } => self.processes.thread_totals(pid, tid, totals),
            Observation::Loss(loss) => self.loss(loss),
            Observation::RunStarted { pid, start, mode } => {
                self.run.root_pid = Some(pid);
                self.processes.root_pid = Some(pid);
                self.run.start = start;
                if matches!(mode, CaptureMode::Refused { .. }) {
                    self.run.rate_hz = 0;
                }
                self.run.mode = mode;
            }
            Observation::RunEnded { end, exit, cpu_nanos } => {
                self.run.end = Some(end);
                self.run.exit = Some(exit);
                self.run.cpu_nanos = cpu_nanos;
            }
            Observation::RunUsage(usage) => self.run.usage = Some(usage),
            Observation::RunLeft { end } => self.run.end = Some(end),
            Observation::RecorderCost(cost) => self.run.recorder_cost = Some(cost),
        }
    }

    /// The recording: in the order of time, without links and without symbols.
    pub fn finish(self) -> Recording {
        self.finish_compact().unpack()
    }

    /// The same, with its spans as compact as they are.
    pub fn finish_compact(mut self) -> CompactRecording {
        if self.duplicates > 0 {
            self.loss(Loss::new(LossKind::SpansDuplicate, self.duplicates, "received twice; the one that ends later is kept"));
        }
        for loss in std::mem::take(&mut self.duplicate_spans).settle(&mut self.spans, &self.processes) {
            self.loss(loss);
        }
        self.place_span_events();
        self.stack_tables.replace_in_stacks(&mut self.samples, &mut self.waits);
        let clock = self.undo_steps();
        self.samples.sort_by_key(|sample| sample.time);
        self.cpu_slices.sort_by_key(|slice| slice.start);
        self.waits.sort_by_key(|wait| wait.start);
        self.process_usage.sort_by_key(|usage| usage.time);
        self.processes.add_unseen(&self.samples, &self.cpu_slices);
        self.processes.place_statuses(self.run.exit);
        self.processes.place_listens();
        self.processes.place_resources();
        self.processes.place_idents();
        if let (CaptureMode::Refused { .. }, Some(end)) = (&self.run.mode, self.run.end) {
            self.processes.end_by(end, &clock);
        }
        let ProcessesBuilder { mut processes, mut threads, .. } = self.processes;
        processes.sort_by_key(|process| process.start);
        threads.sort_by_key(|thread| thread.start);
        let current_spans = self.current_spans.finish(&threads);
        let rest = Recording {
            run: self.run,
            clock,
            spans: Vec::new(),
            processes,
            threads,
            cpu_slices: self.cpu_slices,
            current_spans,
            process_usage: self.process_usage,
            samples: self.samples,
            sample_links: Vec::new(),
            waits: self.waits,
            wait_links: Vec::new(),
            stacks: self.stack_tables.stacks,
            locations: self.stack_tables.locations,
            mappings: self.stack_tables.mappings,
            losses: self.losses,
        };
        CompactRecording { rest, spans: self.spans }
    }
}

#[cfg(test)]
mod tests;
