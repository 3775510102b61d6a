//! Adds the Python functions that an unmodified CPython runs to the stacks of its samples.
//!
//! ```text
//! mappings, forks ──► Pythons ──order──► reader thread ── process_vm_readv ──► interpreters
//! samples ──► mix ◄── readings by thread and time ◄──┘
//! ```
//!
//! The interpreter needs no option and is never stopped. The reader thread exists only once a process has mapped an interpreter, and takes at
//! most a sixteenth of a CPU.

mod history;
mod merge;
mod reader;
mod threads;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use longpole_model::stack::Runtime;
use longpole_model::{Loss, LossKind, MappingId};
use longpole_symbols::hang_timeout::Waited;
use longpole_symbols::python::{CodeId, ReadError, Version};
use longpole_symbols::unwind::{Code, Frame, Place};

use self::history::{AwaitedMissing, PlaceId, Seen};
pub(crate) use self::merge::NativeStack;
use self::merge::{Call, Merged};
use self::reader::{Order, Shared};
use crate::execs::Execs;
use crate::frames::stacks::{FrameLocation, MissingFunctions, Name, Stacks, Truncation};
use crate::perf::record::{Body, MapRecord, Record};
use crate::worker::Worker;
use longpole_model::fast_hash::FastMap;

/// For how long to keep readings of a time that has been processed.
const READINGS_KEPT_NANOS: u64 = 2_000_000_000;

/// Most names to remember by code and line.
const NAMES_AT_HAND_MAX: usize = 1 << 16;

/// The time for which a stack holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// At one moment, while the thread ran.
    At(u64),
    /// The time of a wait, with a probe at `at`.
    Asleep { since: u64, end: u64, at: u64, ends: Ends },
}

/// How a wait ended, as far as it matters to an event loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// It is none of an event loop.
    Unasked,
    /// Its time ran out.
    ByTimer,
    /// Otherwise.
    ByEvent,
}

/// The interpreter of a process.
#[derive(Debug, Clone, Copy)]
struct Home {
    since: u64,
    runtime: u64,
    version: Version,
    /// It came with a fork.
    is_copy: bool,
}

/// The interpreters of a recording.
pub(crate) struct Pythons {
    shared: Arc<Shared>,
    thread: Option<Worker<u64>>,
    /// Whether it was abandoned.
    is_hung: bool,
    /// Processes with an interpreter, among the records that have arrived.
    homes: FastMap<u32, Home>,
    /// The evaluating function, by mapping.
    eval: FastMap<u32, Vec<Range<u64>>>,
    /// Names by interpreter, code and line.
    names: HashMap<(u32, CodeId, u32), FrameLocation>,
    /// Samples of interpreted code with unknown functions, by reason.
    not_seen: HashMap<Missed, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Missed {
    MissingFunctions(MissingFunctions),
    ReadError(ReadError),
    /// Coroutines that wait.
    Awaited(AwaitedMissing),
}

impl Pythons {
    pub(crate) fn new() -> Pythons {
        Pythons {
            shared: Arc::default(),
            thread: None,
            is_hung: false,
            homes: FastMap::default(),
            eval: FastMap::default(),
            names: HashMap::new(),
            not_seen: HashMap::new(),
        }
    }

    /// A record of the tracker has arrived, possibly out of order. `execs` has taken it.
    pub(crate) fn arrived(&mut self, record: &Record<'_>, execs: &Execs) {
        match record.body {
            Body::Comm { exec: true, .. } => {
                let last = execs.last(record.pid);
                if self.homes.get(&record.pid).is_some_and(|home| home.since < last) {
                    self.homes.remove(&record.pid);
                    self.shared.lock().history.exec(record.pid, last);
                }
            }
            Body::Fork { pid, parent_pid, .. } if pid != parent_pid => {
                // It has a copy of its parent's memory, with the interpreter, unless this record comes behind what the process did since.
                let known = self.homes.get(&pid).map_or(0, |home| home.since).max(execs.last(pid));
                if let Some(home) = self.homes.get(&parent_pid).copied().filter(|_| known < record.time) {
                    self.order(pid, Home { since: record.time, is_copy: true, ..home });
                }
            }
            Body::Exit { pid, tid } if pid == tid => {
                self.homes.remove(&pid);
            }
            _ => {}
        }
    }

    /// The code of a mapping was read.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, map: &MapRecord<'_>, code: &Code, execs: &Execs) {
        let Code::Mapped { mapping, binary: Some(binary) } = code else { return };
        let Some(symbols) = binary.python() else { return };
        let MappingId(mapping) = *mapping;
        self.eval.entry(mapping).or_insert_with(|| symbols.eval.clone());
        // A process that maps an interpreter beside the copy of its parent's has executed a program; that record comes later.
        let is_known = self.homes.get(&pid).is_some_and(|home| !home.is_copy || time < home.since);
        if time < execs.last(pid) || is_known {
            return;
        }
        let Some(runtime) = binary.address_in_process(symbols.runtime, map.start, map.file_offset) else { return };
        // Version 0.0 stands for an unknown one.
        let version = symbols.version.or_else(|| Version::from_path(map.path)).unwrap_or(Version { major: 0, minor: 0 });
        self.order(pid, Home { since: time, runtime: runtime.0, version, is_copy: false });
    }

    fn order(&mut self, pid: u32, home: Home) {
        self.homes.insert(pid, home);
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            // Without a thread, samples show that nothing was read.
            self.thread = Worker::spawn("longpole-python", Arc::default(), move || reader::run(&shared)).ok();
        }
        self.shared.order(Order { pid, since: home.since, runtime: home.runtime, version: home.version });
    }

    /// A thread was found blocked: its interpreter shows now what it waits in. `polling` has threads that may run an event loop,
    /// each with its process.
    pub(crate) fn look_soon(&self, polling: &[(u32, u32)]) {
        if self.thread.is_some() {
            self.shared.look_soon(polling.iter().copied().filter(|(pid, _)| self.homes.contains_key(pid)));
        }
    }

    /// Merges the functions that the interpreter ran into a native stack; `false` if the process has no interpreter.
    ///
    /// `locations` is emptied and filled, leaf first. Each native frame becomes what `native_location` says.
    pub(crate) fn merge(
        &mut self,
        (pid, tid, when): (u32, u32, When),
        native: &NativeStack<'_>,
        stacks: &mut Stacks,
        native_location: impl Fn(&Frame) -> FrameLocation,
        cut: Option<Truncation>,
        locations: &mut Vec<FrameLocation>,
    ) -> bool {
        if self.eval.is_empty() {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        let (When::At(time) | When::Asleep { at: time, .. }) = when;
        let Some(seen) = state.history.at(pid, time) else { return false };
        let calls = merge::calls(native, &seen.places, |frame| is_eval(&self.eval, frame));
        if calls.is_empty() && cut.is_none() {
            return false;
        }
        let no_readings = Default::default();
        let readings = seen.threads.get(&tid);
        // A reading of a sleeping thread holds. For a running one the words of its stack show its instruction better.
        let standing = match when {
            When::At(_) => None,
            When::Asleep { since, end, .. } => readings.and_then(|readings| readings.within(since, end)),
        };
        let time = standing.unwrap_or(time);
        let merged = merge::merge(native, &seen.places, calls, readings.unwrap_or(&no_readings), time);
        let missing = match (&seen.read_error, readings) {
            (Some(_), _) => MissingFunctions::Unreadable,
            (None, None) => MissingFunctions::NoThread,
            (None, Some(_)) => MissingFunctions::NotNear,
        };
        let mut missed = None;
        locations.clear();
        if let When::Asleep { since, end, ends, .. } = when {
            self.push_awaited(seen, (tid, since, end, ends), stacks, locations);
        }
        let mut next = 0;
        for call in &merged.calls {
            locations.extend(native.frames[next..call.frame].iter().map(&native_location));
            next = call.frame + 1;
            match (&call.ran, exact(seen, call)) {
                (Some(ran), _) => {
                    let words = if standing.is_some() { &[][..] } else { &call.candidates };
                    self.push_frames(seen, &merged, ran.clone(), words, stacks, locations);
                    // A call from anonymous memory is a trampoline that CPython made for perf; the function is there already.
                    if native.frames.get(next).is_some_and(|caller| caller.place == Place::Anonymous) {
                        next += 1;
                    }
                }
                (None, Some((code, instruction))) => {
                    locations.push(self.name(seen, code, instruction, stacks));
                    if !seen.calls_are_frames {
                        let callers = if missing == MissingFunctions::Unreadable { missing } else { MissingFunctions::Callers };
                        locations.push(FrameLocation::Truncation(Truncation::MissingFunctions(callers)));
                        missed = missed.or(Some(callers));
                    }
                }
                (None, None) => {
                    locations.push(FrameLocation::Truncation(Truncation::MissingFunctions(missing)));
                    locations.push(native_location(&native.frames[call.frame]));
                    missed = Some(missing);
                }
            }
        }
        locations.extend(native.frames[next..].iter().map(&native_location));
        locations.extend(cut.map(FrameLocation::Truncation));
        self.push_frames(seen, &merged, merged.beyond.clone(), &[], stacks, locations);
        if let Some(missed) = missed {
            self.miss(seen, missed);
        }
        true
    }

    /// Adds the frames of the coroutine for which the event loop of a thread waited: it called them and will go on with them.
    fn push_awaited(
        &mut self,
        seen: &Seen,
        (tid, since, end, ends): (u32, u64, u64, Ends),
        stacks: &mut Stacks,
        locations: &mut Vec<FrameLocation>,
    ) {
        let Some(readings) = seen.awaited.get(&tid).filter(|_| ends != Ends::Unasked) else { return };
        let outcome = readings.within(since, end).map_or(&Err(AwaitedMissing::TooShort), |reading| &reading.outcome);
        match outcome {
            Ok((timer, event)) => {
                let frames = if ends == Ends::ByTimer { timer } else { event };
                for frame in frames {
                    locations.push(self.name(seen, frame.code, frame.instruction, stacks));
                }
            }
            Err(missing) => *self.not_seen.entry(Missed::Awaited(missing.clone())).or_insert(0) += 1,
        }
    }

    /// Counts a sample with unknown functions.
    fn miss(&mut self, seen: &Seen, missed: MissingFunctions) {
        let missed = match (&seen.read_error, missed) {
            (Some(error), MissingFunctions::Unreadable) => Missed::ReadError(error.clone()),
            (_, reason) => Missed::MissingFunctions(reason),
        };
        *self.not_seen.entry(missed).or_insert(0) += 1;
    }

    /// Adds the frames of a reading that ran in one call, with the innermost at the instruction of the sample.
    fn push_frames(
        &mut self,
        seen: &Seen,
        merged: &Merged<'_>,
        range: Range<usize>,
        candidates: &[(PlaceId, i64)],
        stacks: &mut Stacks,
        locations: &mut Vec<FrameLocation>,
    ) {
        let Some(reading) = merged.reading else { return };
        let is_cut = !reading.is_whole && !range.is_empty() && range.end == reading.frames.len();
        let first = range.start;
        for (place, frame) in reading.frames.get(range).unwrap_or_default().iter().enumerate() {
            let read = merged.leaf_instruction.filter(|_| first + place == 0).unwrap_or(frame.instruction);
            let is_own = |(own, next): &&(PlaceId, i64)| place == 0 && *next > 0 && seen.places.codes(*own).contains(&frame.code);
            let own = candidates.iter().find(is_own);
            let instruction = own.map_or(read, |(_, next)| before(*next));
            locations.push(self.name(seen, frame.code, instruction, stacks));
        }
        if is_cut {
            locations.push(FrameLocation::Truncation(Truncation::MissingFunctions(MissingFunctions::TooDeep)));
        }
    }

    fn name(&mut self, seen: &Seen, code: CodeId, instruction: i64, stacks: &mut Stacks) -> FrameLocation {
        let Some(object) = seen.codes.get(code.0 as usize) else {
            return FrameLocation::Truncation(Truncation::MissingFunctions(MissingFunctions::NotNear));
        };
        let line = object.line(instruction);
        let key = (seen.serial, code, line);
        if let Some(location) = self.names.get(&key) {
            return *location;
        }
        let name = Name { runtime: Runtime::Python, function: object.name.clone(), file: object.file.clone(), line };
        let location = stacks.name(name);
        if self.names.len() >= NAMES_AT_HAND_MAX {
            self.names.clear();
        }
        self.names.insert(key, location);
        location
    }

    /// All records before this time have been processed.
    pub(crate) fn forget(&mut self, horizon: u64) {
        if self.thread.is_some() {
            let mut state = self.shared.lock();
            let read = std::mem::take(&mut state.read);
            state.history.forget(horizon.saturating_sub(READINGS_KEPT_NANOS), |pid, since| !read.contains(&(pid, since)));
            state.read = read;
        }
    }

    /// Thread idents of interpreters, not yet reported: process, thread, ident.
    pub(crate) fn idents(&mut self) -> Vec<(u32, u32, u64)> {
        std::mem::take(&mut self.shared.lock().idents)
    }

    /// What is missing and not yet reported.
    pub(crate) fn losses(&mut self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for (missed, count) in self.not_seen.drain() {
            let detail = match missed {
                Missed::MissingFunctions(reason) => reason.to_string(),
                Missed::ReadError(error) => format!("Python functions; {error}"),
                Missed::Awaited(missing) => format!("coroutines that wait: {missing}"),
            };
            losses.push(Loss::new(LossKind::FunctionsNotSeen, count, detail));
        }
        losses.sort_by(|a, b| a.detail.cmp(&b.detail));
        let lineless = std::mem::take(&mut self.shared.lock().lineless);
        if lineless > 0 {
            losses.push(Loss::new(
                LossKind::SymbolsUnreadable,
                lineless,
                "lines of Python functions: their tables are larger than longpole keeps",
            ));
        }
        if std::mem::take(&mut self.is_hung) {
            let detail = "Python functions: the reader did not end, because a file system does not answer or its work takes more than 30 s, \
                 so longpole read no other interpreter";
            losses.push(Loss::new(LossKind::FunctionsNotSeen, 1, detail));
        }
        losses
    }

    /// Ends the reader. Returns its CPU time, in nanoseconds.
    pub(crate) fn finish(&mut self) -> u64 {
        self.shared.end();
        match self.thread.take().map(Worker::wait) {
            Some(Waited::Done(cpu_nanos)) => cpu_nanos,
            Some(Waited::Hung) => {
                self.is_hung = true;
                0
            }
            Some(Waited::Failed) | None => 0,
        }
    }
}

impl Drop for Pythons {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The function that a call was running, and the instruction, if the sample alone shows them.
fn exact(seen: &Seen, call: &Call) -> Option<(CodeId, i64)> {
    let (place, next) = call.candidates.first().filter(|_| call.is_sure)?;
    match seen.places.codes(*place) {
        [code] => Some((*code, before(*next))),
        // If several functions share their instructions, no word shows which one it was.
        _ => None,
    }
}

/// The instruction before the one at `next`: a call keeps the address of the one that comes next. Each has two bytes.
fn before(next: i64) -> i64 {
    next - 2
}

fn is_eval(eval: &FastMap<u32, Vec<Range<u64>>>, frame: &Frame) -> bool {
    match frame.place {
        Place::Code { mapping, address } => {
            eval.get(&mapping.0).is_some_and(|ranges| ranges.iter().any(|range| range.contains(&address.0)))
        }
        Place::Anonymous | Place::Made(_) | Place::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_that_arrives_late_changes_no_interpreter() {
        let (mut pythons, mut execs) = (Pythons::new(), Execs::default());
        // No process has such an id.
        let (parent, copy, program) = (u32::MAX - 3, u32::MAX - 2, u32::MAX - 1);
        let home = |since, runtime| Home { since, runtime, version: Version { major: 3, minor: 11 }, is_copy: false };
        pythons.homes.insert(parent, home(0, 0x1000));
        let record = |pid, time, body| Record { pid, tid: pid, time, cpu: 0, body };
        let fork = |pid, time| record(pid, time, Body::Fork { pid, tid: pid, parent_pid: parent, parent_tid: parent });
        let of = |pythons: &Pythons, pid| pythons.homes.get(&pid).map(|home| (home.since, home.runtime));
        pythons.arrived(&fork(copy, 10), &execs);
        assert_eq!(of(&pythons, copy), Some((10, 0x1000)), "a copy of its parent's");
        // The child's records of its exec and its mapping come from another CPU, before that of the fork.
        let exec = record(program, 30, Body::Comm { exec: true, name: b"python3" });
        execs.arrived(&exec);
        pythons.arrived(&exec, &execs);
        pythons.homes.insert(program, home(31, 0x2000));
        pythons.arrived(&fork(program, 20), &execs);
        assert_eq!(of(&pythons, program), Some((31, 0x2000)));
        pythons.homes.remove(&program);
        pythons.arrived(&fork(program, 20), &execs);
        assert_eq!(of(&pythons, program), None, "it runs a program without an interpreter");
    }

    #[test]
    fn functions_without_lines_are_counted_once() {
        let mut pythons = Pythons::new();
        pythons.shared.lock().lineless = 2;
        let detail = "lines of Python functions: their tables are larger than longpole keeps";
        assert_eq!(pythons.losses(), [Loss::new(LossKind::SymbolsUnreadable, 2, detail)]);
        assert_eq!(pythons.losses(), []);
    }
}
