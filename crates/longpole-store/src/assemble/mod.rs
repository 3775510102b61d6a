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

use std::collections::{BTreeMap, HashMap, HashSet, hash_map::Entry};
use std::net::SocketAddr;

use longpole_model::process::{CpuSlice, Process, Thread, ThreadTotals};
use longpole_model::run::CaptureMode;
use longpole_model::stack::{Frame, Location, LocationId, LocationKind, Mapping, MappingId, Stack, StackId};
use longpole_model::time::{Clock, ClockAnchor, Monotonic, Timestamp};
use longpole_model::{
    Attributes, Exit, Loss, LossKind, Observation, ProcessUsage, Recording, Resource, Run, Sample, Span, SpanEvent, SpanId, SpanIndex,
    Text, TraceId, Wait,
};

use self::journals::Journals;
use self::rivals::Rivals;
use crate::compact_spans::{PackedRecording, PackedSpans};

/// Shown in place of a stack entry whose definition the recorder could not write.
const UNDEFINED_LOCATION: &str = "the recording lacks the definition of this address";

/// Shown in place of a stack whose definition the recorder could not write.
const UNDEFINED_STACK: &str = "the recording lacks the definition of this stack";

/// Shown in place of an address whose binary the recorder could not write.
const UNDEFINED_MAPPING: &str = "the recording lacks the binary of this address";

mod clock_steps;
mod journals;
mod rivals;

/// A recording under construction. Its spans are packed: there may be a million of them.
#[derive(Debug)]
pub struct Assembler {
    run: Run,
    anchors: Vec<ClockAnchor>,
    /// When it was found out that the machine had slept, and for how long.
    sleeps: Vec<(Monotonic, u64)>,
    spans: PackedSpans,
    span_index: SpanIndex,
    duplicates: u64,
    rivals: Rivals,
    /// Events that came without their spans.
    span_events: Vec<(TraceId, SpanId, SpanEvent)>,
    people: Population,
    cpu_slices: Vec<CpuSlice>,
    journals: Journals,
    process_usage: Vec<ProcessUsage>,
    waits: Vec<Wait>,
    samples: Vec<Sample>,
    mappings: Vec<Mapping>,
    mapping_numbers: HashMap<u32, u32>,
    locations: Vec<Location>,
    location_numbers: HashMap<u32, u32>,
    /// Functions and files of locations that came with them, each once: a function may run at a million addresses.
    names: HashSet<Text>,
    undefined_location: Option<LocationId>,
    /// What stands for a location from some time on.
    replaced: HashMap<u32, Vec<(Monotonic, LocationId)>>,
    stacks: Vec<Stack>,
    stack_numbers: HashMap<u32, u32>,
    undefined_stack: Option<StackId>,
    losses: Vec<Loss>,
}

impl Assembler {
    /// Begins with the run as it was known at its start.
    pub fn new(run: Run) -> Self {
        Assembler {
            people: Population { root_pid: run.root_pid, ..Population::default() },
            run,
            anchors: Vec::new(),
            sleeps: Vec::new(),
            spans: PackedSpans::default(),
            span_index: SpanIndex::default(),
            duplicates: 0,
            rivals: Rivals::default(),
            span_events: Vec::new(),
            cpu_slices: Vec::new(),
            journals: Journals::default(),
            process_usage: Vec::new(),
            waits: Vec::new(),
            samples: Vec::new(),
            mappings: Vec::new(),
            mapping_numbers: HashMap::new(),
            locations: Vec::new(),
            location_numbers: HashMap::new(),
            names: HashSet::new(),
            undefined_location: None,
            replaced: HashMap::new(),
            stacks: Vec::new(),
            stack_numbers: HashMap::new(),
            undefined_stack: None,
            losses: Vec::new(),
        }
    }

    /// Takes a span of which it is not known who sent it.
    pub fn span(&mut self, span: Span) {
        self.span_by(None, span);
    }

    /// Takes a span that this process sent. Of two of one process with the same trace and span id the one that ends later stays (the
    /// first, where they end together), and the other is counted: exporters send again what they did not see acknowledged. No process
    /// takes the place of another's whole span so; which of those stays, [`rivals`] says.
    pub fn span_by(&mut self, sender: Option<u32>, span: Span) {
        match self.span_index.add(self.spans.heads(), span.trace_id, span.span_id) {
            None => {
                self.rivals.note_kept(sender);
                self.spans.push(&span);
            }
            Some(known) => {
                let kept = self.spans.get(known);
                if self.rivals.may_replace(known, &kept, sender, &span) {
                    self.duplicates += 1;
                    if span.end > kept.end {
                        self.rivals.note_replaced(known, sender);
                        self.spans.replace(known, &span);
                    }
                }
            }
        }
    }

    /// How many spans there are so far.
    pub fn span_count(&self) -> u64 {
        (self.spans.len() + self.rivals.len()) as u64
    }

    /// Bytes of what the spans say, as they are packed.
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
            self.loss(Loss::new(LossKind::OtherSignals, strays, "log records of spans that never came"));
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
            Observation::Mapping(mapping) => self.define_mapping(mapping),
            Observation::Location { id, kind } => self.define_location(id, kind),
            Observation::Named { id, runtime, address, function, file, line } => {
                let [function, file] = [function, file].map(|text| self.shared(text));
                self.name_location(id, LocationKind::Named { runtime, address }, Frame { function, file, line, reason: None });
            }
            Observation::Replaced { id, since, by } => self.replace_location(id, since, by),
            Observation::Stack { id, locations } => self.define_stack(id, locations),
            Observation::Sample(sample) => {
                let stack = self.stack(sample.stack);
                self.samples.push(Sample { stack, ..sample });
            }
            Observation::CpuSlice(slice) => self.cpu_slices.push(slice),
            Observation::Wait(wait) => {
                let stack = wait.stack.map(|stack| self.stack(stack));
                self.waits.push(Wait { stack, ..wait });
            }
            Observation::ProcessStarted { pid, parent_pid, time } => self.people.process_started(pid, parent_pid, time),
            Observation::Journal { pid, tid, follows, entries, until } => self.journals.read((pid, tid), follows, entries, until),
            Observation::ProcessExec { pid, time, name, executable, arguments } => {
                self.journals.exec(pid, time);
                self.people.process_exec(pid, time, name, executable, arguments);
            }
            Observation::ProcessExited { pid, time } => self.people.process_exited(pid, time),
            Observation::ProcessStatus { pid, time, exit } => self.people.statuses.push((pid, time, exit)),
            Observation::ProcessListens { pid, address } => self.people.listens.push((pid, address)),
            Observation::ProcessResource { pid, time, attributes } => self.people.resources.push((pid, time, attributes)),
            Observation::ProcessUsage(usage) => self.process_usage.push(usage),
            Observation::ThreadStarted { pid, tid, time } => self.people.thread_started(pid, tid, time),
            Observation::ThreadNamed { pid, tid, name } => self.people.thread_named(pid, tid, name),
            Observation::ThreadExited { pid, tid, time } => self.people.thread_exited(pid, tid, time),
            Observation::ThreadIdent { pid, tid, ident } => self.people.idents.push((pid, tid, ident)),
            Observation::ThreadTotals { pid, tid, totals } => self.people.thread_totals(pid, tid, totals),
            Observation::Loss(loss) => self.loss(loss),
            Observation::RunStarted { pid, start, mode } => {
                self.run.root_pid = Some(pid);
                self.people.root_pid = Some(pid);
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

    fn define_mapping(&mut self, mapping: Mapping) {
        let number = self.mappings.len() as u32;
        if let Entry::Vacant(entry) = self.mapping_numbers.entry(mapping.id.0) {
            entry.insert(number);
            self.mappings.push(Mapping { id: MappingId(number), ..mapping });
        }
    }

    fn define_location(&mut self, id: LocationId, kind: LocationKind) {
        let kind = match kind {
            LocationKind::Code { mapping, address } => match self.mapping_numbers.get(&mapping.0) {
                Some(&number) => LocationKind::Code { mapping: MappingId(number), address },
                None => LocationKind::Cut { reason: UNDEFINED_MAPPING.into() },
            },
            other => other,
        };
        if let Entry::Vacant(entry) = self.location_numbers.entry(id.0) {
            entry.insert(push_location(&mut self.locations, kind).0);
        }
    }

    fn shared(&mut self, name: String) -> Text {
        if let Some(known) = self.names.get(name.as_str()) {
            return known.clone();
        }
        let name = Text::from(name);
        self.names.insert(name.clone());
        name
    }

    /// Defines a location with its frame. One that is known as unmapped gets both: its name is told when its process ends.
    fn name_location(&mut self, id: LocationId, kind: LocationKind, frame: Frame) {
        let at = match self.location_numbers.entry(id.0) {
            Entry::Vacant(entry) => *entry.insert(push_location(&mut self.locations, kind.clone()).0),
            Entry::Occupied(entry) => *entry.get(),
        };
        if let Some(location) = self.locations.get_mut(at as usize)
            && (location.kind == kind && location.frames.is_empty() || matches!(location.kind, LocationKind::Unmapped { .. }))
        {
            location.kind = kind;
            location.frames = vec![frame];
        }
    }

    fn replace_location(&mut self, id: LocationId, since: Monotonic, by: LocationId) {
        if let (Some(number), Some(by)) = (self.location_numbers.get(&id.0), self.location_numbers.get(&by.0)) {
            self.replaced.entry(*number).or_default().push((since, LocationId(*by)));
        }
    }

    /// Gives samples and waits the stacks of their time, where other code came to lie at an address of their stack.
    fn replace_in_stacks(&mut self) {
        if self.replaced.is_empty() {
            return;
        }
        self.replaced.values_mut().for_each(|stretches| stretches.sort_by_key(|(since, _)| *since));
        let (replaced, stacks) = (&self.replaced, &mut self.stacks);
        let concerned: Vec<bool> = stacks.iter().map(|stack| stack.locations.iter().any(|it| replaced.contains_key(&it.0))).collect();
        let mut known: HashMap<Vec<LocationId>, StackId> = HashMap::new();
        let mut at = |stack: StackId, time: Monotonic| {
            if !concerned[stack.0 as usize] {
                return stack;
            }
            let now = |location: &LocationId| {
                let stretches = replaced.get(&location.0).map(Vec::as_slice).unwrap_or_default();
                let begun = stretches.partition_point(|(since, _)| *since <= time);
                begun.checked_sub(1).map_or(*location, |place| stretches[place].1)
            };
            let locations: Vec<LocationId> = stacks[stack.0 as usize].locations.iter().map(now).collect();
            if locations == stacks[stack.0 as usize].locations {
                return stack;
            }
            *known.entry(locations).or_insert_with_key(|locations| push_stack(stacks, locations.clone()))
        };
        for sample in &mut self.samples {
            sample.stack = at(sample.stack, sample.time);
        }
        for wait in &mut self.waits {
            wait.stack = wait.stack.map(|stack| at(stack, wait.start));
        }
    }

    fn define_stack(&mut self, id: StackId, mut locations: Vec<LocationId>) {
        for location in &mut locations {
            *location = match self.location_numbers.get(&location.0) {
                Some(&number) => LocationId(number),
                None => *self
                    .undefined_location
                    .get_or_insert_with(|| push_location(&mut self.locations, LocationKind::Cut { reason: UNDEFINED_LOCATION.into() })),
            };
        }
        if let Entry::Vacant(entry) = self.stack_numbers.entry(id.0) {
            entry.insert(push_stack(&mut self.stacks, locations).0);
        }
    }

    /// The stack of a sample. A sample whose stack is not known still counts: the time was spent.
    fn stack(&mut self, id: StackId) -> StackId {
        if let Some(&number) = self.stack_numbers.get(&id.0) {
            return StackId(number);
        }
        let (stacks, locations) = (&mut self.stacks, &mut self.locations);
        *self.undefined_stack.get_or_insert_with(|| {
            let location = push_location(locations, LocationKind::Cut { reason: UNDEFINED_STACK.into() });
            push_stack(stacks, vec![location])
        })
    }

    /// The recording: in the order of time, without links and without symbols.
    pub fn finish(self) -> Recording {
        self.finish_packed().unpack()
    }

    /// The same, with its spans packed as they are.
    pub fn finish_packed(mut self) -> PackedRecording {
        if self.duplicates > 0 {
            self.loss(Loss::new(LossKind::SpansDuplicate, self.duplicates, "received twice; the one that ends later is kept"));
        }
        if let Some(loss) = std::mem::take(&mut self.rivals).settle(&mut self.spans, &self.people) {
            self.loss(loss);
        }
        self.place_span_events();
        self.replace_in_stacks();
        let clock = self.undo_steps();
        self.samples.sort_by_key(|sample| sample.time);
        self.cpu_slices.sort_by_key(|slice| slice.start);
        self.waits.sort_by_key(|wait| wait.start);
        self.process_usage.sort_by_key(|usage| usage.time);
        self.people.add_unseen(&self.samples, &self.cpu_slices);
        self.people.place_statuses(self.run.exit);
        self.people.place_listens();
        self.people.place_resources();
        self.people.place_idents();
        if let (CaptureMode::Refused { .. }, Some(end)) = (&self.run.mode, self.run.end) {
            self.people.end_by(end, &clock);
        }
        let Population { mut processes, mut threads, .. } = self.people;
        processes.sort_by_key(|process| process.start);
        threads.sort_by_key(|thread| thread.start);
        let current_spans = self.journals.finish(&threads);
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
            stacks: self.stacks,
            locations: self.locations,
            mappings: self.mappings,
            losses: self.losses,
        };
        PackedRecording { rest, spans: self.spans }
    }
}

fn push_location(locations: &mut Vec<Location>, kind: LocationKind) -> LocationId {
    let id = LocationId(locations.len() as u32);
    locations.push(Location { id, kind, frames: Vec::new() });
    id
}

fn push_stack(stacks: &mut Vec<Stack>, locations: Vec<LocationId>) -> StackId {
    let id = StackId(stacks.len() as u32);
    stacks.push(Stack { id, locations });
    id
}

/// The processes and threads of the run, dead and alive.
#[derive(Debug, Default)]
struct Population {
    root_pid: Option<u32>,
    processes: Vec<Process>,
    /// Processes that have not ended, by pid.
    living: HashMap<u32, usize>,
    threads: Vec<Thread>,
    /// Threads that have not ended, by pid and tid: those of a process lie together.
    living_threads: BTreeMap<(u32, u32), usize>,
    /// The last process of each pid and thread of each pid and tid, dead or alive.
    last: HashMap<u32, usize>,
    last_threads: HashMap<(u32, u32), usize>,
    /// How processes ended: pid, when, how.
    statuses: Vec<(u32, Monotonic, Exit)>,
    /// Where processes take connections: pid, address.
    listens: Vec<(u32, SocketAddr)>,
    /// What interpreters call threads: pid, tid, ident.
    idents: Vec<(u32, u32, u64)>,
    /// What processes say of themselves: pid, when it was read, what. It comes before what the kernel's records of that time tell.
    resources: Vec<(u32, Monotonic, Attributes)>,
}

impl Population {
    fn process_started(&mut self, pid: u32, parent_pid: Option<u32>, time: Monotonic) {
        // The kernel gives a pid again only after its process is gone: if the exit went unseen, it was before now.
        self.process_exited(pid, time);
        // A forked process is a copy of its parent until it executes something.
        let parent = parent_pid.and_then(|parent| self.living.get(&parent)).map(|&at| &self.processes[at]);
        let program = parent.map(|it| (it.name.clone(), it.executable.clone(), it.arguments.clone())).unwrap_or_default();
        self.push_process(pid, parent_pid, program, time);
    }

    fn push_process(&mut self, pid: u32, parent_pid: Option<u32>, program: (String, String, Vec<String>), start: Monotonic) {
        let (name, executable, arguments) = program;
        self.living.insert(pid, self.processes.len());
        self.last.insert(pid, self.processes.len());
        self.push_thread(pid, pid, name.clone(), start);
        self.processes.push(Process {
            pid,
            parent_pid,
            name,
            executable,
            arguments,
            start,
            end: None,
            execed: false,
            exit: None,
            listens: Vec::new(),
            resource: Resource::default(),
        });
    }

    fn push_thread(&mut self, pid: u32, tid: u32, name: String, start: Monotonic) {
        self.living_threads.insert((pid, tid), self.threads.len());
        self.last_threads.insert((pid, tid), self.threads.len());
        self.threads.push(Thread { pid, tid, name, start, end: None, totals: None, ident: None });
    }

    /// The living process of this pid. One whose fork went unseen is taken for a child of the command, because
    /// everything the recorder sees descends from it; which program it runs is not known.
    fn process(&mut self, pid: u32, time: Monotonic) -> &mut Process {
        if !self.living.contains_key(&pid) {
            let parent_pid = self.root_pid.filter(|root| *root != pid);
            self.push_process(pid, parent_pid, Default::default(), time);
        }
        &mut self.processes[self.living[&pid]]
    }

    fn thread(&mut self, pid: u32, tid: u32, time: Monotonic) -> &mut Thread {
        let name = self.process(pid, time).name.clone();
        if !self.living_threads.contains_key(&(pid, tid)) {
            self.push_thread(pid, tid, name, time);
        }
        &mut self.threads[self.living_threads[&(pid, tid)]]
    }

    fn process_exec(&mut self, pid: u32, time: Monotonic, name: String, executable: String, arguments: Vec<String>) {
        let process = self.process(pid, time);
        // The command itself begins with its first exec: what it did before was ours (waiting for the gate).
        let begins = process.parent_pid.is_none() && !process.execed;
        if begins {
            process.start = time;
        }
        process.name.clone_from(&name);
        process.executable = executable;
        process.arguments = arguments;
        process.execed = true;
        let main = self.thread(pid, pid, time);
        main.name = name;
        if begins {
            main.start = time;
        }
    }

    /// Where ends were found by looking, the last look comes after the run: what it found had ended by then.
    fn end_by(&mut self, end: Timestamp, clock: &Clock) {
        let lives = self.processes.iter_mut().map(|process| (process.start, &mut process.end));
        for (start, life_end) in lives.chain(self.threads.iter_mut().map(|thread| (thread.start, &mut thread.end))) {
            let Some(at) = life_end else { continue };
            let late = clock.to_unix(*at).map_or(0, |at| at.nanos_since(end));
            *at = Monotonic(at.0.saturating_sub(late.max(0).cast_unsigned())).max(start);
        }
    }

    fn process_exited(&mut self, pid: u32, time: Monotonic) {
        let Some(at) = self.living.remove(&pid) else { return };
        self.processes[at].end = Some(time);
        let own: Vec<((u32, u32), usize)> = self.living_threads.range((pid, 0)..=(pid, u32::MAX)).map(|(id, at)| (*id, *at)).collect();
        for (id, at) in own {
            self.threads[at].end = Some(time);
            self.living_threads.remove(&id);
        }
    }

    fn thread_started(&mut self, pid: u32, tid: u32, time: Monotonic) {
        // The main thread came with its process.
        if tid != pid {
            self.thread_exited(pid, tid, time);
        }
        self.thread(pid, tid, time);
    }

    fn thread_named(&mut self, pid: u32, tid: u32, name: String) {
        // Where none lives, the last that did.
        match self.last_threads.get(&(pid, tid)).copied() {
            Some(at) => self.threads[at].name.clone_from(&name),
            None => {
                // A rename has no time. The start of its process is the earliest the thread can have begun.
                let start = self.living.get(&pid).map_or(Monotonic(0), |&at| self.processes[at].start);
                self.thread(pid, tid, start).name.clone_from(&name);
            }
        }
        if pid == tid
            && let Some(process) = self.last.get(&pid).and_then(|at| self.processes.get_mut(*at))
        {
            process.name = name;
        }
    }

    fn thread_exited(&mut self, pid: u32, tid: u32, time: Monotonic) {
        if let Some(at) = self.living_threads.remove(&(pid, tid)) {
            self.threads[at].end = Some(time);
        }
    }

    fn thread_totals(&mut self, pid: u32, tid: u32, totals: ThreadTotals) {
        if let Some(at) = self.living_threads.get(&(pid, tid)) {
            self.threads[*at].totals = Some(totals);
        }
    }

    /// Says of processes how they ended. It may be told before their end is, or long after; of those with one pid it is the last that
    /// had started. How the command ended is known in any case.
    fn place_statuses(&mut self, exit: Option<Exit>) {
        let mut of_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, process) in self.processes.iter().enumerate() {
            of_pid.entry(process.pid).or_default().push(at);
        }
        for (pid, time, exit) in std::mem::take(&mut self.statuses) {
            let started = of_pid.get(&pid).into_iter().flatten().rev().find(|at| self.processes[**at].start <= time);
            if let Some(&at) = started {
                self.processes[at].exit = Some(exit);
            }
        }
        let root = self.processes.iter_mut().find(|process| Some(process.pid) == self.root_pid && process.parent_pid.is_none());
        if let Some(root) = root {
            root.exit = root.exit.or(exit);
        }
    }

    /// Says of processes where they take connections. What is told of a pid holds for whichever process with it lives when a span calls.
    fn place_listens(&mut self) {
        for (pid, address) in std::mem::take(&mut self.listens) {
            for process in self.processes.iter_mut().filter(|process| process.pid == pid && !process.listens.contains(&address)) {
                process.listens.push(address);
            }
        }
    }

    /// Says of processes what they say of themselves, the last of it.
    fn place_resources(&mut self) {
        for (pid, time, attributes) in std::mem::take(&mut self.resources) {
            let lived = |process: &&mut Process| process.pid == pid && process.start <= time && process.end.is_none_or(|end| time <= end);
            if let Some(process) = self.processes.iter_mut().rfind(lived) {
                process.resource = Resource { attributes };
            }
        }
    }

    /// Says of threads what their interpreter calls them, the first of it.
    fn place_idents(&mut self) {
        let mut known: HashMap<(u32, u32), u64> = HashMap::new();
        for (pid, tid, ident) in std::mem::take(&mut self.idents) {
            known.entry((pid, tid)).or_insert(ident);
        }
        for thread in &mut self.threads {
            thread.ident = known.get(&(thread.pid, thread.tid)).copied();
        }
    }

    /// Adds processes and threads that were sampled or switched without ever having been announced.
    ///
    /// Only here at the end: while observations still come, one that is a little out of order is no stranger.
    fn add_unseen(&mut self, samples: &[Sample], slices: &[CpuSlice]) {
        let mut known: HashSet<(u32, u32)> = self.threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
        let known_pids: HashSet<u32> = self.processes.iter().map(|process| process.pid).collect();
        let mut first_seen: Vec<(Monotonic, u32, u32)> = Vec::new();
        let seen = slices.iter().map(|it| (it.start, it.pid, it.tid)).chain(samples.iter().map(|it| (it.time, it.pid, it.tid)));
        for (time, pid, tid) in seen {
            if known.insert((pid, tid)) {
                first_seen.push((time, pid, tid));
            }
        }
        first_seen.sort_by_key(|(time, ..)| *time);
        for (time, pid, tid) in first_seen {
            if known_pids.contains(&pid) {
                // Its process may have ended meanwhile; the thread is added without waking it.
                let name = self.last.get(&pid).map_or(String::new(), |at| self.processes[*at].name.clone());
                self.threads.push(Thread { pid, tid, name, start: time, end: None, totals: None, ident: None });
            } else {
                self.thread(pid, tid, time);
            }
        }
    }
}

#[cfg(test)]
mod tests;
