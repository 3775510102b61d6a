//! For which coroutine an event loop of `asyncio` waits.
//!
//! A coroutine that waits has no frame on any stack: its frame lies in the coroutine itself, and a task keeps that. The thread stands in `select`,
//! called by `_run_once`, and its frames lead to the loop and to the task that the program runs:
//!
//! ```text
//! run_until_complete ─ future ─► Task ─► coroutine ─► frame ─ top ─► coroutine ─► … ─► frame ─ top ─► Future
//!                                                     main                             gather           │ _children
//!                                 Task ─► coroutine ─► frame ─► … ─► Future ◄──────────────────────── Task, Task
//!                                                     ask_ledger       ▲
//! _run_once ─ self ─► loop ─ _scheduled ─► TimerHandle ─ _args ────────┘  ends the wait
//! select
//! ```
//!
//! So the tasks on which the program itself waits are found from it downwards, and those at the ends explain the wait. Which of several: the one
//! whose timer comes first if the wait ends by that timer, else the one that was started last of those that have no timer, as their waits end by
//! something outside. A task that waits at a queue or a lock of `asyncio` waits for other tasks: those in the variables of its functions count.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use super::code::{Code, CodeId, Codes};
use super::interpreter::{FrameRead, Interpreter};
use super::objects::{ObjectKind, Objects, Types};
use super::read_error::ReadError;
use crate::memory::Memory;

/// Most tasks whose coroutines are read, and most of those that are waited for together.
const TASKS_MAX: usize = 128;
const TASKS_AT_ONCE_MAX: usize = 16;

/// Most tasks that one task waits for together.
const TOGETHER_MAX: usize = 1024;

/// Most tasks of a collection in a variable, and most items of a tuple.
const COLLECTED_MAX: u64 = 64;

/// Most frames of a chain of coroutines, of all tasks that wait for each other.
const FRAMES_MAX: usize = 256;

/// Timers that are read: the first of the heap ends the wait, and those beside it are those that come next.
const TIMERS_MAX: u64 = 3;

/// The frames of the loop: `select`, `_run_once`, `run_forever`, `run_until_complete`, and those of a loop that is derived from it.
const LOOP_FRAMES: usize = 8;

/// A frame of a coroutine and its code.
pub type AwaitedFrame = (FrameRead, CodeId);

/// The coroutines that explain the wait of an event loop, each as the frames from it to the root of what the program runs, leaf first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Awaited {
    /// If the wait ends by a timer.
    pub timer: Vec<AwaitedFrame>,
    /// If it ends otherwise.
    pub event: Vec<AwaitedFrame>,
}

/// Why a task waits, the least telling first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    /// For other tasks.
    Others,
    /// For something outside.
    Outside,
    /// For a timer that is due then.
    Timer(f64),
}

/// A task that waits for no other one that is known.
struct Leaf {
    /// Outermost first.
    frames: Rc<[AwaitedFrame]>,
    cause: Cause,
}

/// A task, and the frames that wait for it, outermost first. All tasks that one waits for share them: they may be a thousand.
type Followed = (u64, Rc<[AwaitedFrame]>);

/// The coroutines of a task.
struct Chain {
    /// The frames that wait for it, outermost first.
    callers: Rc<[AwaitedFrame]>,
    /// Outermost first.
    frames: Vec<FrameRead>,
    /// What the innermost one waits for; 0 if that is no future.
    future: u64,
}

/// A timer of the loop.
struct LoopTimer {
    when: f64,
    /// What the loop passes to the function that it calls then. The future that the function completes is one of them.
    arguments: Vec<u64>,
    /// The task that goes on then, of the first timer.
    task: Option<u64>,
}

/// Reads what event loops of one interpreter wait for.
#[derive(Default)]
pub struct EventLoops {
    types: Types,
}

impl std::fmt::Debug for EventLoops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventLoops").finish_non_exhaustive()
    }
}

impl EventLoops {
    /// What a thread waits for that has these frames, leaf first, as the last look of this interpreter found them; `None` if it stands in no event
    /// loop, or its loop has no task that is known.
    ///
    /// # Errors
    ///
    /// [`ReadError::Gone`] and [`ReadError::Closed`] if the memory cannot be read, [`ReadError::Torn`] if code changed meanwhile.
    pub fn awaited(
        &mut self,
        memory: &dyn Memory,
        interpreter: &mut Interpreter,
        codes: &mut Codes,
        frames: &[FrameRead],
    ) -> Result<Option<Awaited>, ReadError> {
        let objects = Objects::new(memory, *interpreter.layout(), &mut self.types);
        let mut search =
            TaskSearch { memory, interpreter, objects, codes, leaves: Vec::new(), last_caller: Rc::default(), seen: HashSet::new() };
        let frames = &frames[..frames.len().min(LOOP_FRAMES)];
        let [select, run_once, outer @ ..] = frames else { return Ok(None) };
        if !search.runs(select, "select", "selectors.py")? || !search.runs(run_once, "_run_once", LOOP_FILE)? {
            return Ok(None);
        }
        let mut main = None;
        for frame in outer {
            if search.runs(frame, "run_until_complete", LOOP_FILE)? {
                main = search.objects.first_locals(frame, 2)?.get(1).copied();
                break;
            }
        }
        let event_loop = search.objects.first_locals(run_once, 1)?;
        let timers = search.timers(event_loop.first().copied().unwrap_or(0))?;
        search.descend(main.into_iter().map(|task| (task, Rc::default())).collect(), &timers)?;
        search.choose(&timers)
    }
}

const LOOP_FILE: &str = "asyncio/base_events.py";

/// Files whose functions wait for tasks that they have in their variables, as `asyncio.wait` does.
const LIBRARIES: [&str; 2] = ["/asyncio/", "/anyio/"];

/// Files whose functions wait for what other tasks do.
const HAND_OVERS: [&str; 2] = ["asyncio/queues.py", "asyncio/locks.py"];

/// A search for the tasks that explain one wait.
struct TaskSearch<'a> {
    memory: &'a dyn Memory,
    interpreter: &'a mut Interpreter,
    objects: Objects<'a>,
    codes: &'a mut Codes,
    leaves: Vec<Leaf>,
    /// The frames of the last task that waits for others.
    last_caller: Rc<[AwaitedFrame]>,
    seen: HashSet<u64>,
}

impl TaskSearch<'_> {
    /// Whether code is that of a function of this name, which stands in a file whose path ends so.
    fn is_function(&self, code: CodeId, name: &str, file: &str) -> bool {
        // From 3.11 on the name of a method begins with that of its class.
        let is = |code: &Arc<Code>| code.name.rsplit('.').next() == Some(name) && code.file.ends_with(file);
        self.codes.list().get(code.0 as usize).is_some_and(is)
    }

    /// The same of a frame that runs a function of a loop: its code stays as long as the program runs.
    fn runs(&mut self, frame: &FrameRead, name: &str, file: &str) -> Result<bool, ReadError> {
        let code = self.codes.identify(self.memory, self.interpreter, frame, true)?;
        Ok(self.is_function(code, name, file))
    }

    fn is_sleep(&self, code: CodeId) -> bool {
        self.is_function(code, "sleep", "asyncio/tasks.py")
    }

    fn identify(&mut self, frame: &FrameRead) -> Result<CodeId, ReadError> {
        self.codes.identify(self.memory, self.interpreter, frame, false)
    }

    /// Copies the code objects of frames at once, which are identified next.
    fn expect_code<'f>(&mut self, frames: impl Iterator<Item = &'f FrameRead>) -> Result<(), ReadError> {
        let bytes = self.interpreter.layout().code_bytes();
        for frame in frames {
            if !self.interpreter.copies.has(frame.code, bytes) {
                self.interpreter.copies.expect(frame.code, bytes);
            }
        }
        self.interpreter.copies.fetch(self.memory)
    }

    fn file(&self, code: CodeId) -> &str {
        self.codes.list().get(code.0 as usize).map_or("", |code| code.file.as_str())
    }

    /// The first timers of a loop.
    fn timers(&mut self, event_loop: u64) -> Result<Vec<LoopTimer>, ReadError> {
        let attributes = self.objects.attributes(event_loop)?;
        let mut items = Vec::new();
        // It has one list: the heap of its timers.
        if let Some(list) = self.objects.first_of_kind(event_loop, &attributes, ObjectKind::List)? {
            items = self.objects.items(list, TIMERS_MAX)?;
        }
        let mut timers: Vec<LoopTimer> = Vec::new();
        for timer in self.objects.of_kind(&items, ObjectKind::Timer)? {
            let Some(when) = self.objects.field(timer, ObjectKind::Float)? else { continue };
            let when = self.objects.number(when)?;
            let Some(tuple) = self.objects.field(timer, ObjectKind::Tuple)? else { continue };
            let arguments = self.objects.items(tuple, COLLECTED_MAX)?;
            // The first one ends the wait.
            let mut task = None;
            if timers.is_empty()
                && let Some(future) = self.objects.first_of_kind(tuple, &arguments, ObjectKind::Future)?
            {
                task = self.woken(future)?;
            }
            timers.push(LoopTimer { when, arguments, task });
        }
        Ok(timers)
    }

    /// The task that goes on when a future is done.
    fn woken(&mut self, future: u64) -> Result<Option<u64>, ReadError> {
        match self.objects.field(future, ObjectKind::Wakeup)? {
            Some(wakeup) => self.objects.field(wakeup, ObjectKind::Task),
            None => Ok(None),
        }
    }

    /// Follows tasks, each with the frames that wait for it, to those that wait for no other one: first all of them, then all that these wait for.
    fn descend(&mut self, mut tasks: Vec<Followed>, timers: &[LoopTimer]) -> Result<(), ReadError> {
        let mut read = 0;
        while !tasks.is_empty() && read < TASKS_MAX {
            // The one of the first timer, then what was started last.
            let rank = |task: u64| timers.iter().all(|timer| timer.task != Some(task));
            tasks.reverse();
            tasks.sort_by_key(|(task, _)| rank(*task));
            let rest = tasks.split_off(tasks.len().min(TASKS_AT_ONCE_MAX));
            read += tasks.len();
            tasks.retain(|(task, _)| self.seen.insert(*task));
            let chains = self.chains(std::mem::take(&mut tasks))?;
            if chains.is_empty() {
                // They are over.
                tasks = rest;
                tasks.reverse();
                continue;
            }
            for Chain { callers, frames: found, future } in chains {
                let mut frames = callers.to_vec();
                for frame in &found {
                    frames.push((*frame, self.identify(frame)?));
                }
                let frames: Rc<[AwaitedFrame]> = frames.into();
                let cause = self.cause(future, &frames, timers);
                let (others, is_waiting_for_them) = self.others(future, &frames, cause)?;
                if is_waiting_for_them {
                    self.last_caller = Rc::clone(&frames);
                } else {
                    self.leaves.push(Leaf { frames: Rc::clone(&frames), cause });
                }
                tasks.extend(others.into_iter().map(|other| (other, Rc::clone(&frames))));
            }
        }
        Ok(())
    }

    /// The chains of the coroutines of tasks that have begun and are not over. Each step reads what it needs of all of them at once.
    fn chains(&mut self, tasks: Vec<Followed>) -> Result<Vec<Chain>, ReadError> {
        self.objects.fetch(tasks.iter().map(|(task, _)| *task))?;
        let mut chains = Vec::new();
        // What each of them waits for; 0 at the end.
        let mut awaited = Vec::new();
        for (task, callers) in tasks {
            if let Some(coroutine) = self.objects.coroutine_of(task)? {
                chains.push(Chain { callers, frames: Vec::new(), future: 0 });
                awaited.push(coroutine);
            }
        }
        for _ in 0..FRAMES_MAX {
            self.objects.fetch(awaited.iter().copied())?;
            let mut frames = Vec::new();
            for object in &awaited {
                let is_coroutine = self.objects.kind(*object)? == Some(ObjectKind::Coroutine);
                frames.push(if is_coroutine { self.objects.coroutine_frame(*object)? } else { None });
            }
            self.objects.fetch(frames.iter().flatten().copied())?;
            for ((chain, object), frame) in chains.iter_mut().zip(&mut awaited).zip(frames) {
                *object = match (self.objects.kind(*object)?, frame) {
                    (Some(ObjectKind::Coroutine), Some(at)) if chain.callers.len() + chain.frames.len() < FRAMES_MAX => {
                        let Some(frame) = self.objects.frame(at)? else {
                            *object = 0;
                            continue;
                        };
                        chain.frames.push(frame);
                        self.objects.frame_values(at)?.last().copied().unwrap_or(0)
                    }
                    (Some(ObjectKind::Awaitable), _) => self.objects.first(*object)?,
                    (Some(ObjectKind::FutureAwaitable), _) => {
                        chain.future = self.objects.first(*object)?;
                        0
                    }
                    _ => 0,
                };
            }
            if awaited.iter().all(|object| *object == 0) {
                break;
            }
        }
        chains.retain(|chain| !chain.frames.is_empty());
        self.objects.fetch(chains.iter().map(|chain| chain.future))?;
        self.expect_code(chains.iter().flat_map(|chain| &chain.frames))?;
        Ok(chains)
    }

    /// Why a task with these frames waits, as long as no other task is known that it waits for.
    fn cause(&self, future: u64, frames: &[AwaitedFrame], timers: &[LoopTimer]) -> Cause {
        if let Some(timer) = timers.iter().find(|timer| timer.arguments.contains(&future)) {
            return Cause::Timer(timer.when);
        }
        if frames.last().is_some_and(|(_, code)| self.is_sleep(*code)) {
            return Cause::Timer(f64::INFINITY);
        }
        let hands_over = |(_, code): &AwaitedFrame| HAND_OVERS.iter().any(|file| self.file(*code).ends_with(file));
        if frames.iter().rev().take(2).any(hands_over) { Cause::Others } else { Cause::Outside }
    }

    /// The tasks that a task with these frames waits for, in the order in which they were started as far as that is known, and whether it waits for
    /// them alone.
    fn others(&mut self, future: u64, frames: &[AwaitedFrame], cause: Cause) -> Result<(Vec<u64>, bool), ReadError> {
        match self.objects.kind(future)? {
            Some(ObjectKind::Task) => return Ok((vec![future], true)),
            Some(ObjectKind::Gathering) => {
                let attributes = self.objects.attributes(future)?;
                let mut children = Vec::new();
                // A program can give it attributes of its own, all of them one list.
                let mut lists = HashSet::new();
                for list in self.objects.of_kind(&attributes, ObjectKind::List)? {
                    let room = TOGETHER_MAX.saturating_sub(children.len());
                    if room > 0 && lists.insert(list) {
                        // Whether they are tasks is found out if they are followed.
                        children.extend(self.objects.items(list, room as u64)?);
                    }
                }
                return Ok((children, true));
            }
            _ => {}
        }
        let Some((innermost, code)) = frames.last().filter(|(_, code)| !self.is_sleep(*code)) else { return Ok((Vec::new(), false)) };
        if cause == Cause::Others {
            let mut tasks = Vec::new();
            for (frame, code) in frames {
                let is_library = LIBRARIES.iter().any(|library| self.file(*code).contains(library));
                tasks.extend(self.tasks_of_frame(frame.address, is_library)?);
                // `as_completed` is a generator, in the values of the function that iterates over it (to 3.12).
                let values = self.objects.frame_values(frame.address)?;
                for generator in self.objects.of_kind(&values, ObjectKind::Coroutine)? {
                    if let Some(frame) = self.objects.coroutine_frame(generator)? {
                        tasks.extend(self.tasks_of_frame(frame, false)?);
                    }
                }
            }
            return Ok((tasks, false));
        }
        if LIBRARIES.iter().any(|library| self.file(*code).contains(library)) {
            let tasks = self.tasks_of_frame(innermost.address, true)?;
            let are_some = !tasks.is_empty();
            return Ok((tasks, are_some));
        }
        Ok((Vec::new(), false))
    }

    /// The tasks in the variables of a frame that is suspended, and in collections there; with `attributes` also in collections of their instances.
    fn tasks_of_frame(&mut self, frame: u64, attributes: bool) -> Result<Vec<u64>, ReadError> {
        let values = self.objects.frame_values(frame)?;
        self.objects.fetch(values.iter().copied())?;
        let mut tasks = Vec::new();
        for value in values {
            match self.objects.kind(value)? {
                Some(ObjectKind::Task) => tasks.push(value),
                Some(ObjectKind::List | ObjectKind::Tuple | ObjectKind::Set) => tasks.extend(self.tasks_in(value)?),
                Some(ObjectKind::Cell) => {
                    let content = self.objects.first(value)?;
                    tasks.extend(self.objects.of_kind(&[content], ObjectKind::Task)?);
                    tasks.extend(self.tasks_in(content)?);
                }
                Some(ObjectKind::Other) if attributes => {
                    let attributes = self.objects.attributes(value)?;
                    for set in self.objects.of_kind(&attributes, ObjectKind::Set)? {
                        tasks.extend(self.tasks_in(set)?);
                    }
                }
                _ => {}
            }
        }
        Ok(tasks)
    }

    fn tasks_in(&mut self, collection: u64) -> Result<Vec<u64>, ReadError> {
        let items = self.objects.items(collection, COLLECTED_MAX)?;
        self.objects.of_kind(&items, ObjectKind::Task)
    }

    /// The tasks that explain the wait, among those that were found.
    fn choose(mut self, timers: &[LoopTimer]) -> Result<Option<Awaited>, ReadError> {
        if self.leaves.is_empty() && !self.last_caller.is_empty() {
            // It waits for futures that are no tasks, such as those of threads.
            self.leaves.push(Leaf { frames: Rc::clone(&self.last_caller), cause: Cause::Outside });
        }
        let due = |leaf: &&Leaf| if let Cause::Timer(when) = leaf.cause { Some(when) } else { None };
        let earliest = |leaves: &[Leaf]| {
            let timed = leaves.iter().filter(|leaf| due(leaf).is_some());
            timed.min_by(|a, b| due(a).partial_cmp(&due(b)).unwrap_or(std::cmp::Ordering::Equal)).map(|leaf| Rc::clone(&leaf.frames))
        };
        let mut timer = earliest(&self.leaves);
        let mut event = self.leaves.iter().find(|leaf| leaf.cause == Cause::Outside).map(|leaf| Rc::clone(&leaf.frames));
        if timer.is_none() && event.is_none() {
            // The program itself waits for other tasks, and none of them is known; or it has none that it waits for.
            let first = timers.iter().min_by(|a, b| a.when.partial_cmp(&b.when).unwrap_or(std::cmp::Ordering::Equal));
            event = std::mem::take(&mut self.leaves).into_iter().next().map(|leaf| leaf.frames);
            let callers = event.clone().unwrap_or_default();
            let tasks = first.and_then(|first| first.task).map(|task| (task, callers)).into_iter().collect();
            self.descend(tasks, timers)?;
            timer = earliest(&self.leaves);
        }
        let leaf_first = |frames: Option<&Rc<[AwaitedFrame]>>| frames.map_or(Vec::new(), |frames| frames.iter().rev().copied().collect());
        let awaited =
            Awaited { timer: leaf_first(timer.as_ref().or(event.as_ref())), event: leaf_first(event.as_ref().or(timer.as_ref())) };
        Ok((!awaited.timer.is_empty()).then_some(awaited))
    }
}
