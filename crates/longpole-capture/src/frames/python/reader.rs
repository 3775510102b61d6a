//! The thread that reads interpreters periodically, within its budget.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longpole_symbols::memory::Memory;
use longpole_symbols::python::{AwaitedFrame, CodeId, Codes, EventLoops, Interpreter, ReadError, ThreadRead, Version};

use super::history::{AwaitedMissing, AwaitedReading, History, SeenFrame, SeenStack};
use super::threads::Threads;
use crate::cpu_budget::CpuBudget;
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};
use crate::sys::remote_memory::ProcessMemory;
use crate::sys::thread::{block_signals_of_this_thread, prefer_this_thread};

/// Which part of a CPU reading may take.
const READING_PART: i64 = 16;

/// CPU time that it may take in a burst: a program that starts has hundreds of functions to read.
const READING_NANOS_AT_ONCE: i64 = 40_000_000;

/// Which part of a CPU reading coroutines may take of that, and in a burst: 0.1 to 0.5 ms for each wait of an event loop.
const COROUTINES_PART: i64 = 50;
const COROUTINES_NANOS_AT_ONCE: i64 = 10_000_000;

/// Time between two readings, while something changes: samples show what ran in between.
const PERIOD_NANOS: u64 = 2_000_000;

/// Longest time between two readings, if the last ones found no change.
const PERIOD_NANOS_MAX: u64 = 50_000_000;

/// Readings without a change after which the next one is put off.
const STILL_LOOKS: u32 = 8;

/// Most threads of an interpreter to remember: 2 MB.
const IDENTS_MAX: usize = 1 << 16;

/// Most threads to remember that were found waiting for several descriptors, until the next reading.
const POLLING_MAX: usize = 256;

/// How often reading a process may fail before it is given up: during an exec it always fails.
const REFUSALS_MAX: u32 = 50;

/// An interpreter to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) pid: u32,
    /// When it came: the mapping after an exec, or the fork.
    pub(super) since: u64,
    /// Address of its `_PyRuntime`.
    pub(super) runtime: u64,
    pub(super) version: Version,
}

/// The state that both threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) history: History,
    orders: Vec<Order>,
    /// Interpreters being read.
    pub(super) read: Vec<(u32, u64)>,
    /// Thread idents of interpreters, not yet reported: process, thread, ident.
    pub(super) idents: Vec<(u32, u32, u64)>,
    /// Functions without lines, not yet reported.
    pub(super) lineless: u64,
    /// Threads whose frames changed during a reading, and all readings.
    pub(super) torn: u64,
    pub(super) looks: u64,
    /// A reading is worth more now than later.
    is_urgent: bool,
    /// Threads that wait for several descriptors, as event loops do: process, thread.
    polling: Vec<(u32, u32)>,
    is_over: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders an interpreter to be read. It replaces an earlier one of the same process.
    pub(super) fn order(&self, order: Order) {
        let mut state = self.lock();
        state.orders.push(order);
        state.read.push((order.pid, order.since));
        state.history.begin(order.pid, order.since);
        self.changed.notify_all();
    }

    /// Orders a reading at once, and of these threads also what their event loops wait for.
    pub(super) fn look_soon(&self, polling: impl Iterator<Item = (u32, u32)>) {
        let mut state = self.lock();
        state.is_urgent = true;
        let room = POLLING_MAX.saturating_sub(state.polling.len());
        state.polling.extend(polling.take(room));
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

/// One interpreter that is read.
struct Watched {
    order: Order,
    memory: ProcessMemory,
    interpreter: Option<Interpreter>,
    codes: Codes,
    event_loops: EventLoops,
    /// Threads that run one.
    loop_threads: HashSet<u32>,
    /// How many of the codes the other thread has.
    published: usize,
    threads: Threads,
    /// Threads whose idents were reported.
    told: HashSet<(u32, u64)>,
    refusals: u32,
}

/// Reads until the end. Returns its CPU time, in nanoseconds.
pub(super) fn run(shared: &Arc<Shared>) -> u64 {
    block_signals_of_this_thread();
    prefer_this_thread();
    let mut watched: Vec<Watched> = Vec::new();
    let mut reads: Vec<ThreadRead> = Vec::new();
    let mut still = 0u32;
    let mut budget = CpuBudget::new(READING_PART, READING_NANOS_AT_ONCE);
    let mut of_coroutines = CpuBudget::new(COROUTINES_PART, COROUTINES_NANOS_AT_ONCE);
    loop {
        let putting_off = u64::from(still / STILL_LOOKS) + 1;
        let owed = budget.wait_nanos(monotonic_nanos());
        let period = (PERIOD_NANOS * putting_off).min(PERIOD_NANOS_MAX).max(owed);
        let patience = (!watched.is_empty()).then_some(Duration::from_nanos(period));
        let Some((orders, polling)) = wait(shared, patience, owed == 0) else { break };
        for order in orders {
            watched.retain(|it| it.order.pid != order.pid);
            watched.push(Watched::new(order));
            still = 0;
        }
        let before = thread_cpu_nanos();
        let mut changed = false;
        watched.retain_mut(|it| match it.look(shared, &mut reads, (&polling, &mut of_coroutines)) {
            Ok(has_changed) => {
                changed |= has_changed;
                true
            }
            Err(error) => {
                it.give_up(shared, error);
                false
            }
        });
        still = if changed { 0 } else { still.saturating_add(1) };
        budget.spend(thread_cpu_nanos().saturating_sub(before));
        publish_living(shared, &watched);
    }
    thread_cpu_nanos()
}

/// Threads that wait for several descriptors, and the budget for reading their coroutines.
type Polling<'a> = (&'a [(u32, u32)], &'a mut CpuBudget);

/// New interpreters, and threads that wait for several descriptors.
type Orders = (Vec<Order>, Vec<(u32, u32)>);

/// Waits for the next reading, or for orders; `None` at the end. An urgent reading comes at once if it may.
fn wait(shared: &Shared, patience: Option<Duration>, may_hurry: bool) -> Option<Orders> {
    let state = shared.lock();
    let idle = |state: &mut State| state.orders.is_empty() && !state.is_over && !(state.is_urgent && may_hurry);
    let mut state = match patience {
        Some(patience) => shared.changed.wait_timeout_while(state, patience, idle).unwrap_or_else(PoisonError::into_inner).0,
        None => shared.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner),
    };
    state.is_urgent = false;
    (!state.is_over).then(|| (std::mem::take(&mut state.orders), std::mem::take(&mut state.polling)))
}

fn publish_living(shared: &Shared, watched: &[Watched]) {
    let mut state = shared.lock();
    let State { read, orders, looks, .. } = &mut *state;
    *looks += 1;
    let is_living = |key: &(u32, u64)| {
        let all = watched.iter().map(|it| &it.order).chain(orders.iter());
        all.map(|order| (order.pid, order.since)).any(|it| it == *key)
    };
    read.retain(is_living);
}

impl Watched {
    fn new(order: Order) -> Watched {
        Watched {
            order,
            memory: ProcessMemory { pid: order.pid },
            interpreter: None,
            codes: Codes::default(),
            event_loops: EventLoops::default(),
            loop_threads: HashSet::new(),
            published: 0,
            threads: Threads::default(),
            told: HashSet::new(),
            refusals: 0,
        }
    }

    /// Reads once; whether something changed. An error ends the readings of this interpreter.
    fn look(&mut self, shared: &Shared, reads: &mut Vec<ThreadRead>, polling: Polling<'_>) -> Result<bool, ReadError> {
        let outcome = self.try_look(shared, reads, polling);
        self.interpreter.iter_mut().for_each(Interpreter::end_look);
        match outcome {
            // An exec replaces its memory, and torn frames may be whole the next time.
            Err(ReadError::Closed | ReadError::Torn) if self.refusals < REFUSALS_MAX => {
                self.refusals += 1;
                Ok(true)
            }
            Err(ReadError::Torn) => Ok(true),
            outcome => outcome,
        }
    }

    fn try_look(&mut self, shared: &Shared, reads: &mut Vec<ThreadRead>, (polling, budget): Polling<'_>) -> Result<bool, ReadError> {
        let memory: &dyn Memory = &self.memory;
        let interpreter = match &mut self.interpreter {
            Some(interpreter) => interpreter,
            none => none.insert(Interpreter::attach(memory, self.order.runtime, self.order.version)?),
        };
        let torn_before = interpreter.torn();
        let started = monotonic_nanos();
        interpreter.read(memory, reads)?;
        let time = started + (monotonic_nanos() - started) / 2;
        self.refusals = 0;
        self.threads.forget_all_but(reads);
        let mut stacks: Vec<(u32, Option<SeenStack>)> = Vec::new();
        let mut awaited: Vec<(u32, AwaitedReading)> = Vec::new();
        let mut idents = Vec::new();
        let mut torn = interpreter.torn() - torn_before;
        for thread in reads.iter() {
            let Some(tid) = self.threads.id(memory, self.order.pid, thread) else { continue };
            if self.told.insert((tid, thread.pthread)) {
                idents.push((self.order.pid, tid, thread.pthread));
            }
            if polling.contains(&(self.order.pid, tid)) {
                let has_time = budget.has_some(monotonic_nanos());
                let outcome = if has_time || !self.loop_threads.contains(&tid) {
                    let before = thread_cpu_nanos();
                    let outcome = self.event_loops.awaited(memory, interpreter, &mut self.codes, &thread.frames);
                    budget.spend(thread_cpu_nanos().saturating_sub(before));
                    let outcome = outcome.map(|awaited| awaited.map(|it| (seen_frames(&it.timer), seen_frames(&it.event))));
                    // A thread of a loop that waits elsewhere misses nothing.
                    let elsewhere = self.loop_threads.contains(&tid).then(Default::default);
                    outcome.map(|awaited| awaited.or(elsewhere)).map_err(AwaitedMissing::ReadError).transpose()
                } else {
                    Some(Err(AwaitedMissing::NoTime))
                };
                if let Some(outcome) = outcome {
                    self.loop_threads.insert(tid);
                    awaited.push((tid, AwaitedReading { from: started, to: monotonic_nanos(), outcome }));
                }
            }
            if thread.is_still {
                stacks.push((tid, None));
                continue;
            }
            match identify(&mut self.codes, memory, interpreter, thread) {
                Ok(codes) => stacks.push((tid, Some(SeenStack::new(&thread.frames, &codes, thread.is_whole)))),
                Err(ReadError::Torn) => torn += 1,
                Err(error) => return Err(error),
            }
        }
        let changed = stacks.iter().any(|(_, stack)| stack.is_some());
        let calls_are_frames = interpreter.has_a_call_for_each_frame();
        let mut state = shared.lock();
        state.torn += torn;
        state.idents.append(&mut idents);
        if self.told.len() > IDENTS_MAX {
            // Threads that live are reported again.
            self.told.clear();
            self.loop_threads.clear();
        }
        let State { history, lineless, .. } = &mut *state;
        let Some(seen) = history.of(self.order.pid, self.order.since) else { return Ok(changed) };
        seen.calls_are_frames = calls_are_frames;
        for (number, code) in self.codes.list().iter().enumerate().skip(self.published) {
            seen.places.add(&code.instructions, CodeId(number as u32));
            seen.codes.push(Arc::clone(code));
            *lineless += u64::from(code.lacks_lines);
        }
        self.published = self.codes.list().len();
        for (tid, reading) in awaited {
            seen.awaited.entry(tid).or_default().push(reading);
        }
        for (tid, stack) in stacks {
            let readings = seen.threads.entry(tid).or_default();
            match stack {
                Some(stack) => readings.push(time, stack),
                None => readings.extend(time),
            }
        }
        Ok(changed)
    }

    fn give_up(&self, shared: &Shared, error: ReadError) {
        if error != ReadError::Gone
            && let Some(seen) = shared.lock().history.of(self.order.pid, self.order.since)
        {
            seen.read_error = Some(error);
        }
    }
}

fn seen_frames(frames: &[AwaitedFrame]) -> Vec<SeenFrame> {
    let seen = |(frame, code): &AwaitedFrame| SeenFrame { address: frame.address, code: *code, instruction: frame.instruction };
    frames.iter().map(seen).collect()
}

/// The code of each frame of a thread.
fn identify(codes: &mut Codes, memory: &dyn Memory, interpreter: &mut Interpreter, thread: &ThreadRead) -> Result<Vec<CodeId>, ReadError> {
    let new = thread.frames.len().saturating_sub(thread.kept);
    let identified = |(place, frame)| codes.identify(memory, interpreter, frame, place >= new);
    thread.frames.iter().enumerate().map(identified).collect()
}
