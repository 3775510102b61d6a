//! What ended each wait of each thread.
//!
//! - *Another thread*: for a lock, a queue or the end of a thread, the one that the futex names, or the only one of the process that was on a
//!   CPU then. For a child, the one that ended. For a pipe, the network and waits that nobody sampled, a process that ended then, or the only
//!   one on a CPU that was woken meanwhile, or that is close in the tree of processes.
//! - *Itself*: a timer, a disk.

use std::collections::{HashMap, HashSet};

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, Nanos, StackId, ThreadKey, Wait, WaitKind};

use super::{ASKED_NANOS, CLOSE_NANOS, EndedBy, Gap, JOIN_NANOS, KILLED_NANOS, LineId, TIE_NANOS, is_main};
use crate::link::wait_order::FUTEX;
use crate::link::waits::is_for_work;
use crate::running::Running;
use crate::schedule::own_work::TimeSet;
use crate::time::blockers::{Blockers, Sources};
use crate::time::short_waits::{SHORT_NANOS, nearest_alike, nearest_short};
use crate::time::timelines::{Slice, ThreadLine, ThreadWait};

/// A shorter wait for a lock, or one that nobody sampled, is no tie: a thread that a timer woke may just have held the lock of an interpreter.
const LOCK_NANOS: Nanos = Nanos(1_000_000);

/// A process that waits for the end of a child has a CPU after that time, at most.
const REAPED_NANOS: Nanos = Nanos(60_000_000);

/// How long before a thread goes on the one that let it was on a CPU: the first of these in which there was one.
const WAKES: [Nanos; 3] = [CLOSE_NANOS, Nanos(3_000_000), Nanos(20_000_000)];

/// Steps from a process to its parent or a child in which it hands on what it writes: a shell starts both ends of a pipe.
const RELATED_STEPS: usize = 3;

/// Threads on CPUs in a moment, and processes that ended in one, among which the one is searched that ended a wait.
pub(super) const CANDIDATES_MAX: usize = 256;

/// A wait of this length was sampled, unless too many threads waited.
const UNSAMPLED_NANOS: Nanos = Nanos(20_000_000);

/// If several threads may have ended a wait, the one did that ran this many times as long as any other meanwhile.
const MOST_FACTOR: i64 = 4;

/// A time in which a thread was blocked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    pub(super) line: LineId,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Since when it may have requested what it waits for.
    pub(super) asked: Nanos,
    /// `None` if nobody sampled it, nor one like it.
    pub(super) kind: Option<WaitKind>,
    /// The kind is that of one like it.
    pub(super) is_guess: bool,
}

/// What ties the threads of one process, or those of all processes of a run.
pub(super) struct Ties<'a> {
    pub(super) sources: &'a Sources<'a>,
    pub(super) blockers: &'a Blockers,
    /// By process and number.
    pub(super) threads: &'a [ThreadLine<'a>],
    /// When each was on a CPU, by its place; nothing if records are missing.
    running: Running,
    /// The ends of all threads, by time.
    pub(super) ends: Vec<(Nanos, LineId)>,
    /// Those of main threads.
    process_ends: Vec<(Nanos, LineId)>,
    /// Those of the children of each process.
    child_ends: FastMap<u32, Vec<(Nanos, LineId)>>,
    /// The parent of each process.
    parents: HashMap<u32, u32>,
    /// For each slice of a thread since when it was busy: where it had to leave its CPU, it was busy all the same.
    busy_since: IdVec<LineId, Vec<Nanos>>,
    /// The same where waits of less than [`TIE_NANOS`] count as busy: a page of its memory had to be copied.
    busy_but_briefly: IdVec<LineId, Vec<Nanos>>,
    /// When each thread was on a CPU.
    cpu: IdVec<LineId, TimeSet>,
    /// The stacks in which each waited for others.
    waits_in: IdVec<LineId, HashSet<StackId>>,
    /// Those in which any waited for a pipe or the network.
    pub(super) polls_in: HashSet<StackId>,
    /// Processes that wait for connections.
    listening: HashSet<u32>,
}

impl<'a> Ties<'a> {
    /// These threads, which stand by process and number, and the parents of their processes.
    pub(super) fn new(
        sources: &'a Sources<'a>,
        blockers: &'a Blockers,
        threads: &'a [ThreadLine<'a>],
        parents: HashMap<u32, u32>,
    ) -> Ties<'a> {
        let lines = || threads.iter().enumerate().map(|(place, line)| (LineId::at(place), line));
        let slices = lines().filter(|_| sources.timelines.has_all_switches()).flat_map(|(id, line)| {
            let place = u32::try_from(id.place()).unwrap_or(u32::MAX);
            line.slices.iter().map(move |slice| (slice.from.0, slice.to.0, place))
        });
        let mut ends: Vec<(Nanos, LineId)> = lines().map(|(id, line)| (line.until, id)).collect();
        ends.sort_unstable();
        let process_ends: Vec<(Nanos, LineId)> = ends.iter().copied().filter(|(_, id)| is_main(threads[id.place()].thread)).collect();
        let mut child_ends: FastMap<u32, Vec<(Nanos, LineId)>> = FastMap::default();
        for &(end, id) in &process_ends {
            if let Some(parent) = parents.get(&threads[id.place()].thread.pid.0) {
                child_ends.entry(*parent).or_default().push((end, id));
            }
        }
        let busy = |brief: Nanos| threads.iter().map(move |line| busy_since(line, brief)).collect();
        let (busy_since, busy_but_briefly) = (busy(Nanos::ZERO), busy(TIE_NANOS));
        let cpu = threads.iter().map(|line| TimeSet::new(line.slices.iter().map(|slice| (slice.from, slice.to)).collect())).collect();
        let waits_in = threads.iter().map(|line| {
            let for_others = line.waits.iter().filter(|wait| matches!(wait.kind, WaitKind::Lock | WaitKind::Queue));
            for_others.filter_map(|wait| sources.recording.waits[wait.wait].stack).collect()
        });
        let (waits_in, running) = (waits_in.collect(), Running::new(slices));
        let of_peers = threads.iter().flat_map(|line| line.waits).filter(|wait| matches!(wait.kind, WaitKind::Network | WaitKind::Pipe));
        let polls_in = of_peers.filter_map(|wait| sources.recording.waits[wait.wait].stack).collect();
        let listens = |line: &&ThreadLine<'_>| line.waits.iter().any(|wait| waits_for_connections(&sources.recording.waits[wait.wait]));
        let listening = threads.iter().filter(listens).map(|line| line.thread.pid.0).collect();
        Ties {
            sources,
            blockers,
            threads,
            running,
            ends,
            process_ends,
            child_ends,
            parents,
            busy_since,
            busy_but_briefly,
            cpu,
            waits_in,
            polls_in,
            listening,
        }
    }

    pub(super) fn line(&self, thread: ThreadKey) -> Option<LineId> {
        self.threads.binary_search_by_key(&thread, |line| line.thread).ok().map(LineId::at)
    }

    pub(super) fn thread(&self, line: LineId) -> ThreadKey {
        self.threads[line.place()].thread
    }

    /// The start of a thread, as far as it was seen.
    pub(super) fn began(&self, line: LineId) -> Nanos {
        let line = &self.threads[line.place()];
        line.born.or_else(|| line.slices.first().map(|slice| slice.from)).unwrap_or(Nanos::MIN)
    }

    /// The other threads that were on a CPU in this time; none if they are more than [`CANDIDATES_MAX`].
    fn on_cpu(&self, line: LineId, from: Nanos, to: Nanos) -> Vec<LineId> {
        let on_cpu = self.running.few_within(from.0, to.0, CANDIDATES_MAX + 1);
        if on_cpu.len() > CANDIDATES_MAX {
            return Vec::new();
        }
        on_cpu.into_iter().map(|place| LineId::at(place as usize)).filter(|other| *other != line).collect()
    }

    /// The thread of a process that started another one: its main thread if that ran, or the only one that did.
    pub(super) fn creator(&self, line: LineId, pid: u32, born: Nanos) -> Option<LineId> {
        let main = self.line(ThreadKey::new(pid, pid))?;
        let mut on_cpu = self.on_cpu(line, born - CLOSE_NANOS, born);
        on_cpu.retain(|other| self.thread(*other).pid.0 == pid);
        Some(if on_cpu.len() == 1 { on_cpu[0] } else { main })
    }

    /// The times in which a thread was blocked.
    pub(super) fn gaps(&self, id: LineId, life: (Nanos, Nanos)) -> Vec<Gap> {
        let line = &self.threads[id.place()];
        let mut gaps: Vec<Gap> = Vec::new();
        // What a thread waited for when its process ended, it waited for until then.
        let nexts = line.slices.iter().skip(1).map(|next| next.from).chain([line.until]);
        let mut ran_before = Nanos::ZERO;
        for (slice, to) in line.slices.iter().zip(nexts) {
            let from = slice.to;
            ran_before += slice.to - slice.from;
            if slice.preempted || from >= to || to <= life.0 || from >= life.1 {
                continue;
            }
            let wait = wait_in(line, (from, to));
            let is_short = to - from < SHORT_NANOS;
            let time = |wait: &ThreadWait| (wait.from, wait.to);
            let nearest = || nearest_short(line.waits, from, time).filter(|_| is_short);
            let like = || nearest_alike(line.waits, (from, to), time).or_else(nearest);
            let kind = wait.or_else(like).map(|wait| wait.kind);
            let asked = asked_since(line.slices, from);
            let ended_by = self.ended_by(Blocked { line: id, from, to, asked, kind, is_guess: wait.is_none() }, wait);
            let waits_in = wait.and_then(|wait| self.sources.recording.waits[wait.wait].stack);
            let is_sleep = wait.is_some_and(|wait| wait.kind == WaitKind::Sleep);
            let is_timeout = is_sleep && wait.is_some_and(|wait| self.sources.recording.waits[wait.wait].syscall == FUTEX);
            let holder = wait.and_then(|wait| self.sources.recording.waits[wait.wait].futex?.holder);
            let is_certain = match ended_by {
                EndedBy::Thread(other) => kind == Some(WaitKind::Child) || holder == Some(self.thread(other).tid.0),
                EndedBy::Itself => true,
                EndedBy::Somebody | EndedBy::Unknown | EndedBy::Killer(..) => false,
            };
            let takes = !matches!(kind, Some(WaitKind::Lock | WaitKind::Join | WaitKind::Child));
            let is_idle = kind == Some(WaitKind::Idle);
            gaps.push(Gap { from, to, ended_by, is_certain, asked, ran_before, waits_in, is_sleep, is_timeout, is_idle, takes });
            ran_before = Nanos::ZERO;
        }
        self.join(id, gaps)
    }

    /// Why a thread went on after a wait of a kind; of one that the process ended, nobody knows what it was for.
    fn ended_by(&self, it: Blocked, wait: Option<&ThreadWait>) -> EndedBy {
        let Blocked { line, from, to, kind, .. } = it;
        let line = &self.threads[line.place()];
        let is_short = to - from < TIE_NANOS;
        let is_over = !is_short && line.slices.last().is_some_and(|last| to <= last.from);
        let other = |otherwise: EndedBy| {
            if !is_over {
                return EndedBy::Unknown;
            }
            let other = self.child_that_ended(it).or_else(|| self.woke(it)).or_else(|| self.closed(it));
            other.map_or(otherwise, EndedBy::Thread)
        };
        match kind {
            Some(WaitKind::Lock | WaitKind::Queue | WaitKind::Join) if to - from >= LOCK_NANOS => self.let_go(it, wait),
            Some(WaitKind::Lock | WaitKind::Queue | WaitKind::Join) => EndedBy::Unknown,
            Some(WaitKind::Child) => {
                self.child_that_ended(it).or_else(|| self.child_left_behind(it)).map_or(EndedBy::Itself, EndedBy::Thread)
            }
            Some(WaitKind::Idle) => other(EndedBy::Somebody),
            Some(WaitKind::Network | WaitKind::Pipe | WaitKind::Other) => other(EndedBy::Unknown),
            Some(_) => EndedBy::Itself,
            // Too short for anybody to have seen it.
            None if to - from < LOCK_NANOS => EndedBy::Itself,
            None => other(EndedBy::Unknown),
        }
    }

    /// The last child that ended while a thread waited, or shortly before: who waits for one goes on then. One that waits for a child waited for
    /// the only one that ended meanwhile, however late it got a CPU.
    fn child_that_ended(&self, Blocked { line, from, to, kind, .. }: Blocked) -> Option<LineId> {
        let ends = self.child_ends.get(&self.thread(line).pid.0)?;
        // The kernel records the end of a process before it tells the parent, and closes its pipes before that.
        let until = if kind == Some(WaitKind::Child) { to } else { to + CLOSE_NANOS };
        let ended = &ends[..ends.partition_point(|(end, _)| *end <= until)];
        let meanwhile = &ended[ended.partition_point(|(end, _)| *end < from - JOIN_NANOS)..];
        let (end, last) = meanwhile.last()?;
        let is_only = kind == Some(WaitKind::Child) && meanwhile.len() == 1;
        (is_only || *end >= to - REAPED_NANOS).then_some(*last)
    }

    /// The child that still ran when a signal ended a wait for one, and the process that waited: of several the last one that started, as a shell
    /// starts what it waits for behind what runs in the background.
    fn child_left_behind(&self, Blocked { line, to, .. }: Blocked) -> Option<LineId> {
        let is_at_its_end = self.threads[line.place()].until - to <= KILLED_NANOS;
        let ends = self.child_ends.get(&self.thread(line).pid.0).filter(|_| is_at_its_end)?;
        let later = &ends[ends.partition_point(|(end, _)| *end <= to)..];
        later
            .iter()
            .take(CANDIDATES_MAX)
            .map(|(_, child)| *child)
            .filter(|child| self.began(*child) < to)
            .max_by_key(|child| self.began(*child))
    }

    /// The only close process that ended when a wait for a pipe or a socket was over: its ends of them were closed.
    fn closed(&self, Blocked { line: id, to, .. }: Blocked) -> Option<LineId> {
        let first = self.process_ends.partition_point(|(end, _)| *end < to - JOIN_NANOS);
        let ended = self.process_ends[first..].iter().take_while(|(end, _)| *end <= to + JOIN_NANOS).map(|(_, other)| *other);
        let is_other = |other: &LineId| self.thread(*other).pid != self.thread(id).pid && self.began(*other) < to;
        let mut ended = ended.take(CANDIDATES_MAX).filter(|other| is_other(other) && self.are_related(*other, id));
        ended.next().filter(|_| ended.next().is_none())
    }

    /// The thread that ended a wait that may have been for something outside: of those on a CPU at its end, the only one that was woken during
    /// the wait, as one that the waiting thread had given something to do. Into a pipe also writes who computed all the time.
    fn woke(&self, it: Blocked) -> Option<LineId> {
        // On a busy machine it got a CPU later. If nothing is known about the wait, that would say too little.
        let is_unknown = it.kind.is_none() && it.to - it.from < UNSAMPLED_NANOS;
        let windows = if is_unknown { &WAKES[..1] } else { &WAKES };
        let candidates = windows.iter().find_map(|before| self.woke_within(it, *before))?;
        self.only(it, &candidates)
    }

    /// Those that may have ended a wait this long before its end at most; `None` if there are none.
    pub(super) fn woke_within(&self, it: Blocked, before: Nanos) -> Option<Vec<LineId>> {
        let Blocked { line: id, from, to, asked, kind, .. } = it;
        let on_cpu = self.on_cpu(id, (to - before).max(from), to);
        let pid = self.thread(id).pid;
        let is_own = |other: &LineId| self.thread(*other).pid == pid;
        let (own, others): (Vec<LineId>, Vec<LineId>) = on_cpu.into_iter().partition(is_own);
        // Short waits of a thread near which none was sampled are for memory and disks.
        let is_unknown = kind.is_none() && to - from < SHORT_NANOS;
        let mut related: Vec<LineId> = others.into_iter().filter(|other| !is_unknown && self.are_related(*other, id)).collect();
        let is_served = kind == Some(WaitKind::Network) && !self.listens(id) && related.iter().any(|other| self.listens(*other));
        if is_served {
            // One end of a connection listens: two clients of a server have none between them.
            related.retain(|other| self.listens(*other));
        }
        // Into a pipe also writes a thread that computed all the time.
        let is_pipe = kind == Some(WaitKind::Pipe);
        let may_be_pipe = own.is_empty() && kind.is_none();
        // A server that has a queue of requests goes from one to the next.
        let may_be_busy = may_be_pipe || is_served;
        // Inside a process any other one may have done it; where another process may have, one that hardly waited did not.
        let busy = if related.is_empty() { &self.busy_since } else { &self.busy_but_briefly };
        let own = own.iter().copied().filter(|other| own.len() == 1 && self.began_to_run(busy, *other, to) >= Some(asked));
        let some = |candidates: Vec<LineId>| (!candidates.is_empty()).then_some(candidates);
        let woken = some(related.iter().copied().filter(|other| is_pipe || self.was_woken(*other, asked, to)).chain(own).collect());
        woken.or_else(|| some(related).filter(|_| may_be_busy))
    }

    /// Whether the process of a thread waits for connections.
    fn listens(&self, line: LineId) -> bool {
        self.listening.contains(&self.thread(line).pid.0)
    }

    /// Whether a thread that was on a CPU before a moment had been woken since another one.
    fn was_woken(&self, line: LineId, since: Nanos, to: Nanos) -> bool {
        self.began_to_run(&self.busy_since, line, to) >= Some(since)
    }

    /// Since when a thread that was on a CPU before a moment was busy.
    fn began_to_run(&self, busy: &IdVec<LineId, Vec<Nanos>>, line: LineId, to: Nanos) -> Option<Nanos> {
        let before = self.threads[line.place()].slices.partition_point(|slice| slice.from < to);
        before.checked_sub(1).and_then(|last| busy[line].get(last)).copied()
    }

    /// The only one of these threads, the one that was on a CPU for most of the time, or the last one if they are of one other process.
    pub(super) fn only(&self, Blocked { line: id, from, to, .. }: Blocked, candidates: &[LineId]) -> Option<LineId> {
        if let [only] = candidates[..] {
            return Some(only);
        }
        let mut ran: Vec<(Nanos, LineId)> = candidates.iter().map(|&line| (self.cpu[line].length_between(from, to), line)).collect();
        ran.sort_unstable();
        let [.., (next, _), (most, line)] = ran[..] else { return None };
        let ran_most = (most / MOST_FACTOR >= next).then_some(line);
        let pid = self.thread(line).pid;
        let is_one_process = pid != self.thread(id).pid && candidates.iter().all(|other| self.thread(*other).pid == pid);
        ran_most.or_else(|| candidates.iter().copied().filter(|_| is_one_process).max_by_key(|other| self.left_cpu(*other, to)))
    }

    /// When a thread was on a CPU before this moment, at the latest.
    fn left_cpu(&self, line: LineId, to: Nanos) -> Option<Nanos> {
        let slices = &self.threads[line.place()].slices;
        slices[..slices.partition_point(|slice| slice.from < to)].last().map(|slice| slice.to.min(to))
    }

    /// The thread that left its CPU last before this moment, if it is one: who lets another thread go on is on a CPU just then.
    fn last_on_cpu(&self, candidates: &[LineId], to: Nanos) -> Option<LineId> {
        let mut left: Vec<(Option<Nanos>, LineId)> = candidates.iter().map(|&line| (self.left_cpu(line, to), line)).collect();
        left.sort_unstable();
        let [.., (before, _), (at, last)] = left[..] else { return None };
        (before < at).then_some(last)
    }

    /// Whether the processes of two threads are few steps apart in the tree of processes.
    fn are_related(&self, a: LineId, b: LineId) -> bool {
        let above = |line: LineId| {
            let steps = std::iter::successors(Some(self.thread(line).pid.0), |pid| self.parents.get(pid).copied());
            steps.take(RELATED_STEPS + 1).enumerate()
        };
        above(a).any(|(up, pid)| above(b).any(|(down, other)| pid == other && up + down <= RELATED_STEPS))
    }

    /// The thread that let another one go on, which had waited for one: the one that is named, or that ended then, or the only one on a CPU at
    /// the end of the wait.
    pub(super) fn let_go(&self, it: Blocked, wait: Option<&ThreadWait>) -> EndedBy {
        let Blocked { line: id, from, to, .. } = it;
        let pid = self.thread(id).pid;
        let last = wait.and_then(|wait| self.blockers.last_thread(self.sources, &self.sources.recording.waits[wait.wait]));
        let named = last.and_then(|tid| self.line(ThreadKey::new(pid.0, tid)));
        let is_own = |other: &LineId| self.thread(*other).pid == pid;
        // Many languages wait for the end of a thread at a lock. On a busy machine, one that waits for an end got a CPU later.
        let ended_within = |(before, after): &(Nanos, Nanos)| {
            let first = self.ends.partition_point(|(end, _)| *end < (to - *before).max(from));
            let ended = self.ends[first..].iter().take_while(|(end, _)| *end <= to + *after).take(CANDIDATES_MAX);
            // One that ended later let the wait end before, on a CPU.
            let let_go = |end: Nanos, other: LineId| end <= to || self.cpu[other].length_between(to - CLOSE_NANOS, to) > Nanos::ZERO;
            let others = ended.filter(|(end, other)| *other != id && is_own(other) && let_go(*end, *other));
            let others: Vec<LineId> = others.map(|(_, other)| *other).collect();
            (!others.is_empty()).then_some(others)
        };
        let is_join = wait.is_some_and(|wait| wait.kind == WaitKind::Join);
        let windows = [(JOIN_NANOS, Nanos::ZERO), (JOIN_NANOS, JOIN_NANOS), (REAPED_NANOS, JOIN_NANOS)];
        let windows = if is_join { &windows[..] } else { &windows[..2] };
        let ended = || match windows.iter().find_map(ended_within)?[..] {
            [only] => Some(only),
            _ => None,
        };
        let ran = || {
            let mut own = self.on_cpu(id, to - CLOSE_NANOS, to);
            own.retain(is_own);
            match own[..] {
                // If nobody sampled the wait, it may have been for something else.
                [other] => Some(other).filter(|other| !it.is_guess || self.was_woken(*other, it.asked, to)),
                // Memory may be shared with other processes.
                [] => self.woke(Blocked { kind: Some(WaitKind::Pipe), ..it }),
                // A thread that was woken meanwhile and waits in the same place at other times contends for the same thing.
                _ => {
                    own.retain(|other| self.was_woken(*other, from, to));
                    let stack = wait.and_then(|wait| self.sources.recording.waits[wait.wait].stack);
                    let contends = |other: &&LineId| stack.is_some_and(|stack| self.waits_in[**other].contains(&stack));
                    let mut contenders = own.iter().filter(contends);
                    let only = contenders.next().filter(|_| contenders.next().is_none()).copied();
                    only.or_else(|| self.only(Blocked { from: to - CLOSE_NANOS, ..it }, &own)).or_else(|| self.last_on_cpu(&own, to))
                }
            }
        };
        named.filter(|other| *other != id).or_else(ended).or_else(ran).map_or(EndedBy::Somebody, EndedBy::Thread)
    }
}

/// Since when a thread that waits from this moment may have given another one something to do: as long as it has run for [`ASKED_NANOS`]. On a
/// busy machine it had to leave its CPU meanwhile.
fn asked_since(slices: &[Slice], from: Nanos) -> Nanos {
    let before = &slices[..slices.partition_point(|slice| slice.from < from)];
    let mut left = ASKED_NANOS;
    let mut since = from;
    for (place, slice) in before.iter().enumerate().rev() {
        if place + 1 < before.len() && !slice.preempted {
            break;
        }
        let ran = (slice.to.min(since) - slice.from).min(left);
        left -= ran;
        since = slice.to.min(since) - ran;
        if left <= Nanos::ZERO {
            break;
        }
    }
    since.min(from - CLOSE_NANOS)
}

/// For each slice of a thread since when it was busy; shorter waits than `brief` count as busy.
fn busy_since(line: &ThreadLine<'_>, brief: Nanos) -> Vec<Nanos> {
    let first = line.slices.first().map_or(Nanos::ZERO, |slice| slice.from);
    let mut since = line.born.unwrap_or(first);
    let (mut was_preempted, mut left) = (true, first);
    let of = |slice: &Slice| {
        let waited = slice.from - std::mem::replace(&mut left, slice.to);
        if !std::mem::replace(&mut was_preempted, slice.preempted) && waited >= brief {
            since = slice.from;
        }
        since
    };
    line.slices.iter().map(of).collect()
}

/// Whether a server waits to be called, and not a worker for work, nor a shell for a line.
fn waits_for_connections(wait: &Wait) -> bool {
    is_for_work(wait) && wait.syscall != FUTEX && wait.syscall != "read"
}

/// The wait of a thread that was sampled in this time.
fn wait_in<'a>(line: &ThreadLine<'a>, (from, to): (Nanos, Nanos)) -> Option<&'a ThreadWait> {
    let first = line.waits.partition_point(|wait| wait.to <= from);
    line.waits.get(first).filter(|wait| wait.from < to)
}
