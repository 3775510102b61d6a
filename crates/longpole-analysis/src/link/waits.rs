//! Waits × spans → whose wait it was.
//!
//! A thread that published a span, or keeps a journal that names one, waits for that span. Where nothing was published, a wait says something about a span only if the
//! process has one thread that does its work: that of a program with one thread, or the one that ran [`MAIN_SHARE_PERCENT`] of the
//! process's time on CPUs, or one that its spans say they are on. Workers of a pool that wait for work wait for nobody's span ([`IDLE`]).
//! A server is idle while it waits to be called, but not while a span of it is open: then it waits for what that span needs.
//! Where several threads do the work, it waits while all of them do ([`crate::link::process_idle`]).
//!
//! ```text
//! thread 7   ==handle==|······ recvfrom ······|==handle==     the wait belongs to the span open where it began
//! thread 8   |··················· idle worker ··········|     nobody's
//! ```

use std::collections::{HashMap, HashSet};

use longpole_model::stack::LocationKind;
use longpole_model::{
    AddNanos, ContextRecord, Evidence, Frame, Id, IdVec, Location, LossKind, Nanos, NodeId, Recording, Runtime, SampleLink, StackId,
    SumNanos, ThreadKey, Wait, WaitId, WaitKind,
};

use crate::code::origin::{self, CodeOrigin};
use crate::interval_index::{IntervalIndex, Timed};
use crate::link::current_spans::CurrentSpans;
use crate::link::process_idle::{self, ProcessIdle};
use crate::link::samples;
use crate::link::span_threads::SpanThreads;
use crate::link::wait_order::FUTEX;
use crate::tree::forest::Forest;

/// A thread that ran this much of its process's time on CPUs is the one that does its work.
const MAIN_SHARE_PERCENT: u64 = 80;

/// Functions in whose callees a thread waits for work to be given to it, and whether they run the program's timers, too: until a timer runs out,
/// the program sleeps.
const IDLE: [(&str, bool); 19] = [
    ("runtime.findRunnable", true),
    ("runtime.stopm", false),
    ("runtime.sysmon", false),
    ("runtime.gcBgMarkWorker", false),
    ("tokio::runtime::scheduler::multi_thread::worker::Context::park", true),
    ("tokio::runtime::scheduler::multi_thread::park::Parker::park", true),
    ("tokio::runtime::blocking::pool::Inner::run", false),
    ("tokio::runtime::park::", true),
    ("async_io::driver::block_on", true),
    ("tokio::runtime::time::Driver::park_internal", true),
    ("rayon_core::sleep::Sleep::sleep", false),
    ("rayon_core::registry::WorkerThread::wait_until_cold", false),
    ("std::thread::park", true),
    ("uv__io_poll", true),
    ("java.lang.ref.Reference$ReferenceHandler.run", false),
    ("java.lang.ref.Finalizer$FinalizerThread.run", false),
    ("jdk.internal.ref.CleanerImpl.run", false),
    ("java.util.concurrent.ThreadPoolExecutor.getTask", false),
    ("java.util.concurrent.ForkJoinPool.awaitWork", false),
];

/// The library of a Java virtual machine. A thread that runs nothing but its code, and that of the C library, compiles, collects or serves the
/// machine in another way.
const JAVA_MACHINE: &str = "libjvm.so";

/// Libraries in which any thread starts and waits.
const THREAD_LIBRARIES: [&str; 4] = ["libc.so", "libc-", "libpthread", "[vdso]"];

/// Functions by which a thread takes a lock, or a part of their names.
const LOCKS: [&str; 8] = [
    "lock_contended",
    "read_contended",
    "write_contended",
    "pthread_mutex_",
    "pthread_rwlock_",
    "lll_lock_wait",
    "PyThread_acquire_lock",
    "take_gil",
];

/// The same where the lock has a queue, in which each thread waits at a futex of its own: parking_lot and Java.
const QUEUED_LOCKS: [&str; 6] = [
    "lock_slow",
    "lock_shared_slow",
    "lock_exclusive_slow",
    "ObjectMonitor::enter",
    "java.util.concurrent.locks.Reentrant",
    "java.util.concurrent.locks.StampedLock",
];

/// Functions by which a thread waits for another one to go on, or a part of their names, and where they stand.
const HAND_OVERS: [(&str, &str); 12] = [
    ("pthread_cond_", ""),
    ("pthread_barrier_", ""),
    ("Condvar::wait", ""),
    ("condition_variable::wait", ""),
    ("thread::park", ""),
    ("Parker::park", ""),
    ("sem_wait", ""),
    ("sem_timedwait", ""),
    ("sem_clockwait", ""),
    ("Condition.wait", "/threading.py"),
    ("Event.wait", "/threading.py"),
    ("Queue.get", "/queue.py"),
];

/// Parts of the names of functions by which a thread of Python waits for its interpreter, and how the files with that begin.
const INTERPRETER_WAITS: [&str; 2] = ["pthread_cond_timedwait", "pthread_cond_clockwait"];
const INTERPRETERS: [&str; 2] = ["python3", "libpython3"];

/// Functions by which a thread waits for another one to end, or a part of their names, and where they stand.
const JOINS: [(&str, &str); 8] = [
    ("pthread_join", ""),
    ("pthread_clockjoin", ""),
    ("pthread_timedjoin", ""),
    ("std::thread::scoped::scope", ""),
    ("join", "/threading.py"),
    ("_wait_for_tstate_lock", "/threading.py"),
    ("_shutdown", "/threading.py"),
    ("java.lang.Thread.join", ""),
];

/// Calls in which a server waits to be called.
const ACCEPTS: [&str; 2] = ["accept", "accept4"];

/// Whether a server waits to be called, or a worker for work. Recordings of older versions say `network` for both.
pub(crate) fn is_for_work(wait: &Wait) -> bool {
    wait.kind == WaitKind::Idle || ACCEPTS.contains(&wait.syscall.as_str())
}

/// Calls in which a client may look around now and again while it waits for an answer, as curl does.
const POLLS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// Whether a thread may wait for the answer of another process.
pub(crate) fn is_call(wait: &Wait) -> bool {
    wait.kind == WaitKind::Network || (wait.kind == WaitKind::Sleep && POLLS.contains(&wait.syscall.as_str()))
}

/// How a thread waits for others, as far as its stack says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It wants a lock; in a queue, if its futex is its own and not the lock's.
    Lock { in_queue: bool },
    /// It waits for another one to go on.
    HandOver,
    /// It waits for another one to end.
    Join,
}

/// What the stack says: the outermost of the functions between the kernel and the program's own, for conditions are made of locks, and
/// locks of conditions. In the stack of a script its interpreter stands between, too.
pub(crate) fn how(recording: &Recording, stack: StackId) -> Option<How> {
    let of = |frame: &Frame| {
        let is = |(part, file): &(&str, &str)| frame.function.contains(part) && frame.file.ends_with(file);
        if JOINS.iter().any(is) {
            Some(How::Join)
        } else if HAND_OVERS.iter().any(is) {
            Some(How::HandOver)
        } else {
            let has = |list: &[&str]| list.iter().any(|part| frame.function.contains(part));
            let in_queue = has(&QUEUED_LOCKS);
            (in_queue || has(&LOCKS)).then_some(How::Lock { in_queue })
        }
    };
    let is_script = |location: &Location| matches!(&location.kind, LocationKind::Named { runtime, .. } if *runtime != Runtime::Kernel);
    let of_script = locations(recording, stack).any(is_script);
    let is_own = |location: &Location, frame: &Frame| {
        let is_program = origin::whose(recording, location, &frame.function, &frame.file) == CodeOrigin::Program;
        is_program && is_script(location) == of_script && of(frame).is_none()
    };
    if of_script && wants_interpreter(recording, stack) {
        return Some(How::Lock { in_queue: false });
    }
    placed_frames(recording, stack).take_while(|(location, frame)| !is_own(location, frame)).filter_map(|(_, frame)| of(frame)).last()
}

/// Whether a thread wants the lock of Python's interpreter, by a stack without the name of the function that takes it: Python's own locks and
/// conditions are semaphores.
fn wants_interpreter(recording: &Recording, stack: StackId) -> bool {
    let is_wait = |frame: &Frame| INTERPRETER_WAITS.iter().any(|part| frame.function.contains(part));
    let is_condition = |location: &Location| location.frames.iter().any(is_wait);
    let is_python = |location: &Location| INTERPRETERS.iter().any(|name| binary(recording, location).starts_with(name));
    let frames: Vec<&Location> = locations(recording, stack).collect();
    frames.windows(2).any(|pair| is_condition(pair[0]) && is_python(pair[1]))
}

/// The name of the file that a location is in.
fn binary<'a>(recording: &'a Recording, location: &Location) -> &'a str {
    match location.kind {
        LocationKind::Code { mapping, .. } => {
            recording.mapping(mapping).map_or("", |mapping| mapping.path.rsplit('/').next().unwrap_or(""))
        }
        _ => "",
    }
}

/// Tells locks from other waits of threads for each other, which look the same to the kernel: the stack says that it is a join, a queue or a
/// lock; else it is a lock where the futex named a holder at any time. A thread that wants a lock and wakes every few milliseconds to try again (Python's
/// GIL) does not sleep. Workers of a pool are idle.
pub fn name_thread_waits(recording: &mut Recording) {
    let mut known: HashMap<StackId, Option<How>> = HashMap::new();
    let at = |wait: &Wait| wait.futex.map(|futex| (wait.pid, futex.address));
    let with_holders = recording.waits.iter().filter(|wait| wait.futex.is_some_and(|futex| futex.holder.is_some()));
    let named: HashSet<_> = with_holders.filter_map(at).collect();
    let mut how = |wait: &Wait| wait.stack.and_then(|stack| *known.entry(stack).or_insert_with(|| how(recording, stack)));
    let mut kind = |wait: &Wait| match wait.kind {
        WaitKind::Lock => match how(wait) {
            Some(How::Join) => WaitKind::Join,
            Some(How::HandOver) => WaitKind::Queue,
            None if at(wait).is_some_and(|futex| !named.contains(&futex)) => WaitKind::Queue,
            Some(How::Lock { .. }) | None => WaitKind::Lock,
        },
        WaitKind::Sleep if wait.syscall == FUTEX && matches!(how(wait), Some(How::Lock { .. })) => WaitKind::Lock,
        kind => kind,
    };
    let mut pools: HashMap<StackId, bool> = HashMap::new();
    let mut in_pool = |wait: &Wait| wait.stack.is_some_and(|stack| *pools.entry(stack).or_insert_with(|| waits_in_pool(recording, stack)));
    let mut of = |wait: &Wait| match kind(wait) {
        WaitKind::Lock | WaitKind::Queue | WaitKind::Sleep | WaitKind::Other if in_pool(wait) => WaitKind::Idle,
        kind => kind,
    };
    let kinds: Vec<WaitKind> = recording.waits.iter().map(&mut of).collect();
    for (wait, kind) in recording.waits.iter_mut().zip(kinds) {
        wait.kind = kind;
    }
}

/// A server that waits to be called while a span of it is open waits for what that span needs, unless the thread itself says that the wait is
/// the span's.
pub(crate) fn name_waits_of_spans(recording: &mut Recording) {
    for (wait, link) in recording.waits.iter_mut().zip(&recording.wait_links) {
        if wait.kind == WaitKind::Idle && link.span.is_some() && !matches!(wait.context, ContextRecord::Span { .. }) {
            wait.kind = WaitKind::Network;
        }
    }
}

/// Which waits say something about a span or process, in the order of the waits; `idle` says which are those of workers.
fn telling(recording: &Recording, idle: &IdVec<WaitId, bool>, workers: &HashSet<ThreadKey>) -> IdVec<WaitId, bool> {
    let mut current_spans = CurrentSpans::of(recording);
    let tells = |(wait, &idle): (&Wait, &bool)| match wait.context {
        ContextRecord::Span { .. } => true,
        ContextRecord::NoSpan => false,
        ContextRecord::Absent | ContextRecord::Torn => match current_spans.at(wait.thread(), wait.start) {
            Some(current) => current.is_some(),
            None => workers.contains(&wait.thread()) && !idle,
        },
    };
    recording.waits.iter().zip(idle).map(tells).collect()
}

/// Which waits are those of workers that wait for work, in the order of the waits.
pub(crate) fn idle(recording: &Recording) -> IdVec<WaitId, bool> {
    let idle: IdVec<StackId, Option<Idle>> = (0..recording.stacks.len()).map(|stack| idle_in(recording, StackId::at(stack))).collect();
    let of = |wait: &Wait| match wait.stack.and_then(|stack| idle.get(stack).copied().flatten()) {
        None => false,
        Some(Idle { has_timers }) => match wait.kind {
            // A thread that waits for others to end has work that they do.
            WaitKind::Join => false,
            WaitKind::Sleep => !has_timers,
            _ => true,
        },
    };
    recording.waits.iter().map(of).collect()
}

/// The thread that does the work of each process, where there is one.
fn workers(recording: &Recording) -> HashSet<ThreadKey> {
    let mut threads: HashMap<u32, HashMap<u32, u64>> = HashMap::new();
    for thread in &recording.threads {
        threads
            .entry(thread.pid)
            .or_default()
            .entry(thread.tid)
            .or_default()
            .add_nanos(thread.totals.map_or(0, |totals| totals.on_cpu_nanos));
    }
    for slice in &recording.cpu_slices {
        threads.entry(slice.pid).or_default().entry(slice.tid).or_default().add_nanos(slice.end.nanos_since(slice.start));
    }
    for wait in &recording.waits {
        threads.entry(wait.pid).or_default().entry(wait.tid).or_default();
    }
    let worker = |(pid, threads): (u32, HashMap<u32, u64>)| {
        let all: u64 = threads.values().sum_nanos();
        let (tid, most) = threads.iter().max_by_key(|(tid, nanos)| (**nanos, std::cmp::Reverse(**tid)))?;
        (threads.len() == 1 || (all > 0 && u128::from(*most) * 100 >= u128::from(all) * u128::from(MAIN_SHARE_PERCENT)))
            .then(|| ThreadKey::new(pid, *tid))
    };
    threads.into_iter().filter_map(worker).collect()
}

/// A thread waits for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Idle {
    /// Or for a timer of the program.
    has_timers: bool,
}

/// Whether a stack is that of a thread that waits for work. If one of its functions runs no timers of the program, none does: a pool may be
/// built on what an event loop is built on.
fn idle_in(recording: &Recording, stack: StackId) -> Option<Idle> {
    idle_functions(recording, stack)
        .map(|(_, has_timers)| has_timers)
        .reduce(|one, other| one && other)
        .map(|has_timers| Idle { has_timers })
}

/// The innermost function of a stack in which threads of a known pool wait for work.
pub(crate) fn pool(recording: &Recording, stack: StackId) -> Option<&'static str> {
    idle_functions(recording, stack).next().map(|(function, _)| function)
}

/// Which of [`IDLE`] a stack has.
fn idle_functions(recording: &Recording, stack: StackId) -> impl Iterator<Item = (&'static str, bool)> {
    frames(recording, stack).filter_map(|frame| IDLE.iter().find(|(function, _)| frame.function.starts_with(function)).copied())
}

/// Whether a stack is that of a thread that serves a Java virtual machine.
fn serves_java(recording: &Recording, stack: StackId) -> bool {
    let is_of_kernel = |location: &Location| matches!(location.kind, LocationKind::Named { runtime: Runtime::Kernel, .. });
    let is_of_library = |location: &Location| THREAD_LIBRARIES.iter().any(|name| binary(recording, location).starts_with(name));
    let is_of_machine = |location: &Location| binary(recording, location) == JAVA_MACHINE;
    locations(recording, stack).any(is_of_machine)
        && locations(recording, stack).all(|location| is_of_machine(location) || is_of_library(location) || is_of_kernel(location))
}

/// Whether a stack is that of a worker of a pool without timers that has no work: no function of the program stands between the pool and the wait.
fn waits_in_pool(recording: &Recording, stack: StackId) -> bool {
    let is_pool = |frame: &Frame| IDLE.iter().any(|(function, has_timers)| !has_timers && frame.function.starts_with(function));
    let is_program =
        |location: &Location, frame: &Frame| origin::whose(recording, location, &frame.function, &frame.file) == CodeOrigin::Program;
    let nearest = placed_frames(recording, stack).find(|(location, frame)| is_pool(frame) || is_program(location, frame));
    nearest.is_some_and(|(_, frame)| is_pool(frame)) || serves_java(recording, stack)
}

/// The locations of a stack, innermost first.
fn locations(recording: &Recording, stack: StackId) -> impl Iterator<Item = &Location> {
    let locations = recording.stack(stack).map_or(&[][..], |stack| &stack.locations);
    locations.iter().filter_map(|&id| recording.location(id))
}

/// The frames of a stack with their locations, innermost first.
fn placed_frames(recording: &Recording, stack: StackId) -> impl Iterator<Item = (&Location, &Frame)> {
    locations(recording, stack).flat_map(|location| location.frames.iter().map(move |frame| (location, frame)))
}

/// The frames of a stack, innermost first.
fn frames(recording: &Recording, stack: StackId) -> impl Iterator<Item = &Frame> {
    locations(recording, stack).flat_map(|location| &location.frames)
}

/// The link of each wait, in the order of the waits.
pub fn link(recording: &Recording) -> Vec<SampleLink> {
    let idle = idle(recording);
    let telling = telling(recording, &idle, &workers(recording));
    let threads = SpanThreads::of(recording);
    let asked = recording.wait_ids().zip(&recording.waits).map(|(i, wait)| {
        // In a pool that a span can be on, all threads but one wait for work.
        let tells = telling[i] || (!idle[i] && threads.is_alone(wait.thread()));
        let context = if tells { wait.context } else { ContextRecord::NoSpan };
        samples::ThreadMoment { thread: wait.thread(), time: wait.start, context }
    });
    samples::link_all(recording, &threads, asked)
}

/// A wait of a node, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeWait {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) wait: WaitId,
}

impl Timed for NodeWait {
    type Time = Nanos;

    fn start(&self) -> Nanos {
        self.from
    }

    fn end(&self) -> Nanos {
        self.to
    }
}

/// The waits of each node, by start.
#[derive(Debug)]
pub(crate) struct NodeWaits {
    of_node: IntervalIndex<NodeId, NodeWait>,
    /// Those that mattered, of processes whose threads tell.
    that_mattered: IntervalIndex<NodeId, NodeWait>,
    /// These processes.
    tell: HashSet<NodeId>,
    /// The waits that belong to it as a whole, as threads spent them.
    whole: HashMap<NodeId, Vec<WaitId>>,
    idle: IdVec<WaitId, bool>,
}

impl NodeWaits {
    /// Gives the waits to the nodes: by the recording's links, and where nothing was open to the node of their process. A process without
    /// spans has those of all its threads, but it rests only while all that do its work wait.
    pub(crate) fn of(recording: &Recording, forest: &Forest) -> NodeWaits {
        let idle = idle(recording);
        let workers = workers(recording);
        let telling = telling(recording, &idle, &workers);
        let origin = forest.run_range().start;
        let with_spans: HashSet<u32> = recording.spans.iter().filter_map(|span| span.pid).collect();
        let mut of_node: Vec<(NodeId, NodeWait)> = Vec::new();
        let mut whole: HashMap<NodeId, Vec<WaitId>> = HashMap::new();
        for (i, (wait, link)) in recording.wait_ids().zip(recording.waits.iter().zip(&recording.wait_links)) {
            let (Some(start), Some(end)) = (recording.clock.to_unix(wait.start), recording.clock.to_unix(wait.end)) else { continue };
            let process = || forest.process_at(wait.pid, start).and_then(|p| forest.node_of_process(p));
            let node = match (link.span, link.evidence) {
                (Some((trace, span)), _) => forest.node_of_id(recording, trace, span),
                (None, Evidence::None) if telling[i] || (wait.kind == WaitKind::Idle && workers.contains(&wait.thread())) => process(),
                (None, _) => None,
            };
            let is_of_process = !idle[i] && !is_for_work(wait) && !with_spans.contains(&wait.pid);
            if let Some(node) = node.or_else(|| if is_of_process { process() } else { None }) {
                whole.entry(node).or_default().push(i);
            }
            if let Some(node) = node {
                let (from, to) = (Nanos(start.nanos_since(origin)), Nanos(end.nanos_since(origin)));
                of_node.push((node, NodeWait { from, to, wait: i }));
            }
        }
        of_node.extend(process_idles(recording, forest, &idle, &workers));
        of_node.sort_by_key(|(node, wait)| (*node, wait.from, wait.wait));
        let that_mattered = IntervalIndex::new(forest.len(), &[]);
        NodeWaits { of_node: IntervalIndex::new(forest.len(), &of_node), that_mattered, tell: HashSet::new(), whole, idle }
    }

    /// Sets which waits of these nodes mattered: node, wait, from and to.
    pub(crate) fn set_that_mattered(&mut self, nodes: HashSet<NodeId>, waits: impl Iterator<Item = (NodeId, WaitId, Nanos, Nanos)>) {
        let wait = |(node, wait, from, to)| (node, NodeWait { from, to, wait });
        let mut waits: Vec<(NodeId, NodeWait)> = waits.map(wait).collect();
        waits.sort_by_key(|(node, wait)| (*node, wait.from, wait.wait));
        self.that_mattered = IntervalIndex::new(self.of_node.len(), &waits);
        self.tell = nodes;
    }

    /// Those of a node that touch this time; of a process that rested also the parts of waits.
    pub(crate) fn of_node_within(&self, node: NodeId, time: (Nanos, Nanos)) -> impl Iterator<Item = &NodeWait> {
        self.of_node.within(node, time)
    }

    /// Whether the threads of the process tell which of its waits mattered.
    pub(crate) fn threads_tell(&self, node: NodeId) -> bool {
        self.tell.contains(&node)
    }

    /// Those of them that mattered: all, unless the threads of the process tell.
    pub(crate) fn that_mattered_within(&self, node: NodeId, time: (Nanos, Nanos)) -> impl Iterator<Item = &NodeWait> {
        let waits = if self.threads_tell(node) { &self.that_mattered } else { &self.of_node };
        waits.within(node, time)
    }

    /// Those that belong to a node as a whole, by their place in `recording.waits`.
    pub(crate) fn whole_of_node(&self, node: NodeId) -> &[WaitId] {
        self.whole.get(&node).map_or(&[], |waits| waits)
    }

    /// Which waits are those of workers for work, in the order of the waits.
    pub(crate) fn idle(&self) -> &IdVec<WaitId, bool> {
        &self.idle
    }
}

/// The idle times of processes with several worker threads, and what each waited for. Each names its node: the only span that is open
/// in the process, else the process itself.
fn process_idles(
    recording: &Recording,
    forest: &Forest,
    idle: &IdVec<WaitId, bool>,
    workers: &HashSet<ThreadKey>,
) -> Vec<(NodeId, NodeWait)> {
    let is_whole = !recording.losses.iter().any(|loss| loss.kind == LossKind::SamplesLost && loss.count > 0);
    let has_times = !recording.cpu_slices.is_empty() || recording.threads.iter().any(|thread| thread.totals.is_some());
    if !is_whole || !has_times {
        return Vec::new();
    }
    let one_works: HashSet<u32> = workers.iter().map(|thread| thread.pid.0).collect();
    let journaled: HashSet<u32> = recording.current_spans.iter().map(|current| current.pid).collect();
    let pids = recording.waits.iter().map(|wait| wait.pid);
    let pids: HashSet<u32> = pids.filter(|pid| !one_works.contains(pid) && !journaled.contains(pid)).collect();
    let intervals = process_idle::intervals(recording, &pids, idle, |stack| pool(recording, stack));
    let of = |wait: WaitId| &recording.waits[wait];
    let asked = intervals.iter().map(|interval| samples::ThreadMoment {
        thread: of(interval.wait).thread(),
        time: interval.from,
        context: ContextRecord::Absent,
    });
    let links = samples::link_all(recording, &SpanThreads::of(recording), asked);
    let origin = forest.run_range().start;
    let node = |(interval, link): (&ProcessIdle, &SampleLink)| {
        let wall = |at| Some(Nanos(recording.clock.to_unix(at)?.nanos_since(origin)));
        let (from, to) = (recording.clock.to_unix(interval.from)?, wall(interval.to)?);
        let node = match (link.span, link.evidence) {
            (Some((trace, span)), _) if interval.works && !idle[interval.wait] => forest.node_of_id(recording, trace, span)?,
            (None, Evidence::None) => forest.process_at(of(interval.wait).pid, from).and_then(|p| forest.node_of_process(p))?,
            _ => return None,
        };
        Some((node, NodeWait { from: Nanos(from.nanos_since(origin)), to, wait: interval.wait }))
    };
    intervals.iter().zip(&links).filter_map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::names::NamedWait;
    use crate::report::reason::{Cause, OffCpu, WaitShare};
    use longpole_model::{CurrentSpan, StateKind, text};

    #[test]
    fn a_wait_belongs_to_the_span_of_its_thread_and_idle_workers_wait_for_nobody() {
        let recording = text::parse(
            "\
run x 0..100ms
  web 0..100ms svc pid 1
    call 10..60ms svc
wait 12..50ms pid 1 network main;fetch;recv
wait 70..90ms pid 1 tid 1 sleep main;pause
wait 0..99ms pid 2 tid 3 lock start;worker
wait 0..99ms pid 2 tid 4 lock start;worker
wait 5..9ms pid 9 lock main;std::thread::park;futex_wait
wait 5..9ms pid 1 tid 8 lock [web] main;join
",
        )
        .unwrap();
        let links = link(&recording);
        let name = |link: &SampleLink| {
            let span = link.span.and_then(|(_, id)| recording.spans.iter().find(|span| span.span_id == id));
            format!("{} {}", span.map_or("-", |span| span.name.as_str()), link.evidence.as_str())
        };
        let found: Vec<String> = links.iter().map(name).collect();
        // Thread 8 of process 1 makes thread 1 one of two without a share of the CPU: nobody does its work.
        assert_eq!(found, ["- none", "- none", "- none", "web record", "- none", "- none"]);
        let alone: Vec<Wait> = recording.waits.iter().filter(|wait| wait.tid != 8).cloned().collect();
        let recording = Recording { waits: alone, ..recording.clone() };
        let found: Vec<String> = link(&recording).iter().map(name).collect();
        assert_eq!(found, ["- none", "- none", "- none", "call inferred", "web inferred"]);
    }

    #[test]
    fn a_thread_that_serves_a_java_machine_is_idle_and_one_that_runs_java_is_not() {
        let text = "\
run x 0..100ms
wait 0..10ms pid 1 tid 2 sleep thread_native_entry;VMThread::run;pthread_cond_timedwait
wait 0..10ms pid 1 tid 3 lock thread_native_entry;Orders.main;java.lang.Thread.join;pthread_cond_wait
";
        let mut recording = text::parse(text).unwrap();
        for mapping in &mut recording.mappings {
            mapping.path = "/usr/lib/jvm/lib/server/libjvm.so".to_owned();
        }
        for location in &mut recording.locations {
            if ["Orders.", "java."].iter().any(|class| location.frames[0].function.starts_with(class)) {
                location.kind = LocationKind::Named { runtime: Runtime::Jvm, address: None };
            }
        }
        name_thread_waits(&mut recording);
        let kinds: Vec<&str> = recording.waits.iter().map(|wait| wait.kind.as_str()).collect();
        assert_eq!(kinds, ["idle", "join"]);
    }

    #[test]
    fn a_thread_of_python_without_symbols_wants_the_interpreter() {
        let text = "\
run x 0..100ms
wait 0..10ms pid 1 tid 2 sleep in futex render;python3.11+0x4f92c0;___pthread_cond_timedwait64
wait 0..10ms pid 1 tid 3 sleep in futex render;blas_thread;___pthread_cond_timedwait64
";
        let mut recording = text::parse(text).unwrap();
        for mapping in &mut recording.mappings {
            mapping.path = "/usr/bin/python3.11".to_owned();
        }
        for location in &mut recording.locations {
            let is_library = location.frames[0].function == "blas_thread";
            if location.frames[0].function == "render" || is_library {
                let runtime = if is_library { Runtime::Other } else { Runtime::Python };
                location.kind = LocationKind::Named { runtime, address: None };
            }
        }
        name_thread_waits(&mut recording);
        let kinds: Vec<&str> = recording.waits.iter().map(|wait| wait.kind.as_str()).collect();
        assert_eq!(kinds, ["lock", "sleep"]);
    }

    #[test]
    fn waits_for_threads_and_for_timers_differ() {
        let text = "\
run x 0..100ms
wait 0..10ms pid 1 tid 2 lock main;take;pthread_mutex_lock
wait 0..10ms pid 1 tid 2 lock main;get;pthread_cond_wait
wait 0..10ms pid 1 tid 2 lock main;stop;pthread_join
wait 0..10ms pid 1 tid 2 sleep main;run;take_gil;pthread_cond_timedwait
wait 0..10ms pid 1 tid 2 sleep main;nap;pthread_cond_timedwait
wait 0..10ms pid 1 tid 2 lock main;unknown
wait 0..10ms pid 1 tid 3 sleep main;uv_run;uv__io_poll
wait 0..10ms pid 1 tid 3 queue main;uv_run;uv__io_poll
wait 0..10ms pid 1 tid 4 sleep start;tokio::runtime::blocking::pool::Inner::run;std::thread::park_timeout
wait 0..10ms pid 1 tid 4 lock start;tokio::runtime::blocking::pool::Inner::run;task;std::sync::Mutex::lock_contended
";
        let mut recording = text::parse(text).unwrap();
        for wait in &mut recording.waits {
            wait.syscall = FUTEX.to_owned();
        }
        // Nothing is known about the last lock, except that it names nobody.
        recording.waits[5].futex = Some(longpole_model::Futex { address: longpole_model::AbsAddr(8), holder: None });
        name_thread_waits(&mut recording);
        let kinds: Vec<&str> = recording.waits.iter().map(|wait| wait.kind.as_str()).collect();
        assert_eq!(kinds, ["lock", "queue", "join", "lock", "sleep", "queue", "sleep", "queue", "idle", "lock"]);
        let idle: Vec<bool> = idle(&recording).iter().copied().collect();
        assert_eq!(idle, [false, false, false, false, false, false, false, true, true, true]);
    }

    #[test]
    fn a_process_whose_work_is_split_is_blocked_while_all_its_workers_are() {
        let text = "\
run x 0..100ms
  web 0..100ms svc pid 1
    call 15..75ms svc
process build 0..100ms pid 2 under 1
cpu 0..10ms pid 1 tid 7
cpu 10..20ms pid 1 tid 8
cpu 60..70ms pid 1 tid 7
cpu 80..90ms pid 1 tid 8
wait 10..60ms pid 1 tid 7 disk m;load
wait 20..80ms pid 1 tid 8 lock m;join
cpu 0..10ms pid 2 tid 3
cpu 0..10ms pid 2 tid 4
cpu 90..99ms pid 2 tid 3
cpu 90..99ms pid 2 tid 4
wait 10..90ms pid 2 tid 3 network m;fetch
wait 10..90ms pid 2 tid 4 lock m;get
";
        let report = crate::Report::new(text::parse(text).unwrap());
        let of = |name: &str| {
            let node = report.forest().ids().find(|&node| report.name(node) == name).unwrap();
            let millis = |sum: &crate::report::WaitSum<'_>| format!("{} {}", sum.wait.kind.as_str(), sum.nanos.0 / 1_000_000);
            report.node_waits(node).iter().map(millis).collect::<Vec<_>>()
        };
        assert_eq!((of("call"), of("web"), of("build")), (vec!["disk 40".into(), "lock 5".into()], vec![], vec!["network 80".to_owned()]));
        let build = report.forest().ids().find(|&node| report.name(node) == "build").unwrap();
        let states = report.node_states(build);
        let times = [StateKind::OnCpu, StateKind::Blocked(WaitKind::Network), StateKind::Unaccounted].map(|state| states.of(state).0);
        let millis = [times[0], times[1], times[2], states.cpu.0];
        assert_eq!((millis.map(|nanos| nanos / 1_000_000), states.sum().0), ([19, 80, 1, 38], 100_000_000));
        assert_eq!(report.node_states_with_descendants(build).blocked(), states.blocked());
        // Its first thread does the work: what the other one runs meanwhile counts, too.
        let one = text.replace("cpu 90..99ms pid 2 tid 4", "cpu 80..82ms pid 2 tid 4").replace("cpu 0..10ms pid 2 tid 4\n", "");
        let states = crate::Report::new(text::parse(&one).unwrap()).node_states(build);
        let times = [StateKind::OnCpu, StateKind::Blocked(WaitKind::Network), StateKind::Unaccounted].map(|state| states.of(state).0);
        let millis = [times[0], times[1], times[2], states.cpu.0];
        assert_eq!((millis.map(|nanos| nanos / 1_000_000), states.sum().0), ([21, 78, 1, 21], 100_000_000));
        // What is only partly a span's is in no flame graph; what threads of a process without spans wait for is the process's.
        let whose = |wait: &WaitId| report.recording().waits[*wait].pid;
        assert_eq!(report.waits_below(None).iter().map(whose).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(report.waits_below(Some(&[build])).len(), 2);
    }

    #[test]
    fn a_program_that_only_waits_has_no_samples_and_an_answer() {
        let text = "\
run x 0..500ms
process lock 0..500ms pid 1
cpu 0..1ms pid 1 tid 1
cpu 0..1ms pid 1 tid 2
cpu 499..500ms pid 1 tid 1
wait 1..499ms pid 1 tid 2 sleep m;write_all
wait 1..499ms pid 1 tid 1 lock m;update
";
        let mut recording = text::parse(text).unwrap();
        recording.run.rate_hz = 999;
        let report = crate::Report::new(recording);
        let pole = report.poles().iter().next().unwrap();
        let wait = NamedWait { kind: WaitKind::Sleep, relation: None, function: Some("write_all") };
        assert_eq!(report.reason(pole).cause, Cause::Waits(OffCpu::Wait(WaitShare { percent: 100, wait })));
    }

    #[test]
    fn a_journal_says_whose_wait_it_was_where_no_record_was_found() {
        let text = "run x 0..100ms\n  web 0..100ms svc pid 1\nwait 12..50ms pid 1 tid 3 lock m\nwait 60..70ms pid 1 tid 3 lock m\nwait 80..90ms pid 1 tid 4 lock m\n";
        let mut recording = text::parse(text).unwrap();
        let web = recording.spans.iter().find(|span| span.name.as_str() == "web").map(|span| (span.trace_id, span.span_id));
        let stretch = |from: usize, to: usize, span| CurrentSpan {
            pid: 1,
            tid: 3,
            start: recording.waits[from].start,
            end: recording.waits[to].end,
            span,
            is_sent: false,
        };
        recording.current_spans = vec![stretch(0, 0, web), stretch(1, 1, None)];
        let words: Vec<&str> = link(&recording).iter().map(|link| link.evidence.as_str()).collect();
        assert_eq!(words, ["journal", "none", "none"]);
        assert_eq!(telling(&recording, &idle(&recording), &workers(&recording)), vec![true, false, false].into());
    }
}
