//! Whom a thread waited for: who held the lock, who was to end, who woke it.
//!
//! ```text
//! thread 7   ===|······· wait at 0x7f10 ·······················|===     a lock
//! thread 8     ==holds==|..asleep..|==holds==|
//! thread 9   ···· wait at 0x7f10 ············|==holds==|..|=|·····     it got it before
//!                                            ^ 9 took it          ^ 7 took it
//! held by        8 until here: the futex named it, or nobody else ran when 9 was woken; then 9
//! ```
//!
//! Some futexes name a thread ([`Futex`](longpole_model::Futex)); the name holds for the part of the wait in which the recorder read
//! it. For the rest, and for other futexes, longpole infers the thread: a thread that unlocks wakes the next one, so the holder was on a
//! CPU at the end of the wait. The candidates are the threads of the process that were on a CPU in the [`WAKE`] before. A single
//! candidate is the holder; among several, the one that took the same lock last. Otherwise the answer is the number of candidates.
//!
//! The locks of Java and of parking_lot have a queue, in which each thread waits at a futex of its own. There the holder at the end of the wait got
//! the lock when its own last wait in the same place ended, and before that the thread held it that ended that wait.
//!
//! A futex that no thread ever held is no lock but a condition, a queue or a semaphore. Then the thread that woke the waiting one counts.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use longpole_model::{Id, IdVec, Monotonic, Nanos, Recording, StackId, ThreadKey, Timestamp, Wait, WaitId, WaitKind, ids};

use crate::link::waits::{self, How};
use crate::time::timelines::Timelines;

/// How long before a thread has its CPU back it may have been woken: an idle CPU takes microseconds, one that others have, up to some
/// turns of theirs. The longer, the more threads may be meant, and the seldomer a wrong one is.
const WAKE: Nanos = Nanos(10_000_000);

/// A thread that waits at the same futex again so soon did not get the lock.
const RETRY_NANOS: u64 = 100_000;

/// Waits of one thread for a lock that are searched for the one in which it got it.
const TRIES_MAX: usize = 64;

/// The age of a wait when the recorder reads its futex. The recorder samples some shorter waits earlier, without their futex.
pub(crate) const PROBE_NANOS: u64 = 5_000_000;

/// How many parts of a wait are kept apart: the longest ones. Where thousands of threads wait for one lock, each of them sees thousands of
/// others get it first. The rest of the wait has no name.
const PARTS_MAX: usize = 256;

/// Threads that got a lock while another one waited for it, that are kept: the last ones.
const TAKERS_MAX: usize = 4096;

/// What another thread was for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// It held the lock.
    Holds,
    /// It was to end.
    Ends,
    /// It woke who waited: no lock was held.
    Wakes,
}

impl Relation {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::Holds => "holds",
            Relation::Ends => "ends",
            Relation::Wakes => "wakes",
        }
    }
}

/// How it is known which thread it was; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockerEvidence {
    /// The futex names it.
    Futex,
    /// It is the only one that can have been, by when threads were on CPUs.
    Inferred,
}

impl BlockerEvidence {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            BlockerEvidence::Futex => "futex",
            BlockerEvidence::Inferred => "inferred",
        }
    }
}

/// The thread that a part of a wait was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockedOn {
    Thread {
        tid: u32,
        evidence: BlockerEvidence,
    },
    /// One of this number of threads.
    OneOf(u32),
    /// No thread of the process that was seen.
    Nobody,
}

/// A part of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockedPart {
    pub(crate) from: Monotonic,
    pub(crate) to: Monotonic,
    pub(crate) who: BlockedOn,
}

/// A futex of a process.
type FutexKey = (u32, u64);

fn futex_key(wait: &Wait) -> Option<FutexKey> {
    wait.futex.map(|futex| (wait.pid, futex.address.0))
}

/// The waits at each futex, and what they say about its holders.
#[derive(Debug, Default)]
pub(crate) struct Blockers {
    /// Waits at each futex, by end.
    at: HashMap<FutexKey, Vec<WaitId>>,
    /// Those of each thread, by start.
    of_thread: HashMap<(FutexKey, u32), Vec<WaitId>>,
    /// Waits of each thread for locks, by end.
    for_locks: HashMap<ThreadKey, Vec<WaitId>>,
    /// Futexes that named a holder once: they are locks.
    named: HashSet<FutexKey>,
    /// What the stacks of those waits say.
    how: HashMap<StackId, How>,
    /// Ends of threads, by process, and there by thread and time.
    ends: HashMap<u32, Vec<(u32, Monotonic)>>,
    /// The threads that got each lock, filled in for the first query.
    takers: HashMap<FutexKey, OnceLock<Takers>>,
}

ids! {
    /// A thread that got a lock, by its place in time.
    struct TakerId;
}

/// The threads that got a lock that they had waited for, by time.
#[derive(Debug, Default)]
struct Takers {
    list: IdVec<TakerId, Taker>,
    /// The threads that ran when each of them got it, after the first query: all that waited meanwhile share it.
    ran: IdVec<TakerId, OnceLock<Option<Ran>>>,
}

#[derive(Debug, Clone, Copy)]
struct Taker {
    end: Monotonic,
    tid: u32,
    /// Its wait for the lock, which ended when it got it.
    wait: WaitId,
    /// The last one before it that is another thread; if there is none, the first of its own.
    other: TakerId,
}

impl Takers {
    fn new(waits: impl Iterator<Item = (WaitId, u32, Monotonic)>) -> Takers {
        let mut list: IdVec<TakerId, Taker> = IdVec::default();
        for (wait, tid, end) in waits {
            let other = match list.enumerated().next_back() {
                None => list.next_id(),
                Some((id, last)) if last.tid != tid => id,
                Some((_, last)) => last.other,
            };
            list.push(Taker { end, tid, wait, other });
        }
        let ran = std::iter::repeat_with(OnceLock::new).take(list.len()).collect();
        Takers { list, ran }
    }

    /// The taker before this one.
    fn before(&self, id: TakerId) -> Option<&Taker> {
        self.list.between(TakerId::at(0), id).last()
    }

    /// Those that got it while a thread waited, up to the last one before its wait ended.
    fn during(&self, wait: &Wait) -> (TakerId, TakerId) {
        // A wait of a broken file may end before it begins.
        let first = TakerId::at(self.list.partition_point(|taker| taker.end <= wait.start));
        (first, TakerId::at(self.list.partition_point(|taker| taker.end < wait.end)).max(first))
    }

    /// The last taker before this one that is not this thread.
    fn last_other(&self, before: TakerId, tid: u32) -> Option<TakerId> {
        let last = TakerId::at(before.place().checked_sub(1)?);
        [last, self.list[last].other].into_iter().find(|&other| self.list[other].tid != tid)
    }

    /// Which thread that is.
    fn last_but(&self, before: TakerId, tid: u32) -> Option<u32> {
        self.last_other(before, tid).map(|other| self.list[other].tid)
    }
}

/// The threads that ran when a wait was over: how many, and who where there are few. A list for each of a million waits would be too long.
#[derive(Debug, Clone, Copy)]
struct Ran {
    threads: u32,
    first: [u32; 2],
    /// When, from the origin, and who waited: it is none of them.
    at: Nanos,
    but: u32,
}

/// Where one looks for who it was.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) timelines: &'a Timelines,
    /// What the offsets of the timelines count from.
    pub(crate) origin: Timestamp,
}

impl Sources<'_> {
    /// The other threads of the process that may have woken this one when its wait was over; `None` where that is not known, or it was
    /// not over.
    fn wakers(&self, wait: &Wait) -> Option<Vec<u32>> {
        let at = Nanos(self.recording.clock.to_unix(wait.end)?.nanos_since(self.origin));
        if !self.timelines.is_switched_in(wait.thread(), at) {
            return None;
        }
        let mut ran = self.timelines.on_cpu_in(wait.pid, at - WAKE, at)?;
        ran.retain(|tid| *tid != wait.tid);
        Some(ran)
    }

    /// The same, in short.
    fn ran(&self, over: &Wait) -> Option<Ran> {
        self.in_short(over, &self.wakers(over)?)
    }

    /// The same, where it does not matter how many more than two there are.
    fn few_ran(&self, over: &Wait) -> Option<Ran> {
        let at = Nanos(self.recording.clock.to_unix(over.end)?.nanos_since(self.origin));
        if !self.timelines.is_switched_in(over.thread(), at) {
            return None;
        }
        // Three, and the one that waited.
        let mut ran = self.timelines.few_on_cpu_in(over.pid, at - WAKE, at, 4)?;
        ran.retain(|tid| *tid != over.tid);
        self.in_short(over, &ran)
    }

    fn in_short(&self, over: &Wait, wakers: &[u32]) -> Option<Ran> {
        let at = Nanos(self.recording.clock.to_unix(over.end)?.nanos_since(self.origin));
        let first = [wakers.first(), wakers.get(1)].map(|tid| tid.copied().unwrap_or_default());
        Some(Ran { threads: number(wakers.len()), first, at, but: over.tid })
    }

    /// Whether a thread is one of those that ran when the wait of another one was over.
    fn has_run(&self, pid: u32, tid: u32, ran: &Ran) -> bool {
        match ran.threads {
            threads @ 0..=2 => ran.first[..threads as usize].contains(&tid),
            _ => tid != ran.but && self.timelines.was_on_cpu_in(ThreadKey::new(pid, tid), ran.at - WAKE, ran.at),
        }
    }
}

impl Blockers {
    pub(crate) fn of(recording: &Recording) -> Blockers {
        let mut out = Blockers::default();
        for (id, wait) in recording.wait_ids().zip(&recording.waits) {
            let Some(futex) = futex_key(wait) else { continue };
            out.at.entry(futex).or_default().push(id);
            if wait.kind == WaitKind::Lock {
                out.for_locks.entry(wait.thread()).or_default().push(id);
            }
            out.takers.entry(futex).or_default();
            out.of_thread.entry((futex, wait.tid)).or_default().push(id);
            if wait.kind == WaitKind::Lock && wait.futex.is_some_and(|futex| futex.holder.is_some()) {
                out.named.insert(futex);
            }
            if let Some(stack) = wait.stack
                && !out.how.contains_key(&stack)
                && let Some(how) = waits::how(recording, stack)
            {
                out.how.insert(stack, how);
            }
        }
        let by_end = |waits: &mut Vec<WaitId>| waits.sort_by_key(|&wait| (recording.waits[wait].end, wait));
        out.at.values_mut().chain(out.for_locks.values_mut()).for_each(by_end);
        for thread in &recording.threads {
            if let Some(end) = thread.end {
                out.ends.entry(thread.pid).or_default().push((thread.tid, end));
            }
        }
        out.ends.values_mut().for_each(|ends| ends.sort_unstable());
        out
    }

    /// What other threads are for this wait; `None` where it is no wait for one, or nothing tells.
    pub(crate) fn relation(&self, wait: &Wait) -> Option<Relation> {
        match wait.kind {
            WaitKind::Join => Some(Relation::Ends),
            WaitKind::Lock | WaitKind::Queue => {
                let futex = futex_key(wait)?;
                let is_lock = self.named.contains(&futex) || matches!(self.how(wait), Some(How::Lock { .. }));
                Some(if is_lock { Relation::Holds } else { Relation::Wakes })
            }
            _ => None,
        }
    }

    /// What the stack of a wait says.
    fn how(&self, wait: &Wait) -> Option<How> {
        wait.stack.and_then(|stack| self.how.get(&stack)).copied()
    }

    /// The thread that each part of a wait was for; the parts are the whole.
    pub(crate) fn parts(&self, sources: &Sources<'_>, wait: &Wait) -> Vec<BlockedPart> {
        let whole = |who| vec![BlockedPart { from: wait.start, to: wait.end, who }];
        match self.relation(wait) {
            None => Vec::new(),
            Some(Relation::Holds) => self.holders(sources, wait),
            Some(Relation::Wakes) => whole(one_of(sources.wakers(wait).unwrap_or_default())),
            Some(Relation::Ends) => match wait.futex.and_then(|futex| futex.holder) {
                Some(tid) => whole(BlockedOn::Thread { tid, evidence: BlockerEvidence::Futex }),
                None => whole(self.who_ended(sources, wait)),
            },
        }
    }

    /// The thread that the last part of a wait was for: who let it go on. `None` if nothing tells.
    pub(crate) fn last_thread(&self, sources: &Sources<'_>, wait: &Wait) -> Option<u32> {
        let who = match self.relation(wait)? {
            Relation::Holds => self.last_holder(sources, wait),
            Relation::Ends | Relation::Wakes => self.parts(sources, wait).last().map(|part| part.who),
        };
        match who? {
            BlockedOn::Thread { tid, .. } => Some(tid),
            BlockedOn::OneOf(_) | BlockedOn::Nobody => None,
        }
    }

    /// The thread that ended when the wait did; a language may say so shortly before the thread is gone.
    fn who_ended(&self, sources: &Sources<'_>, wait: &Wait) -> BlockedOn {
        let Some(mut wakers) = sources.wakers(wait) else { return BlockedOn::Nobody };
        let (from, to) = (Monotonic(wait.end.0.saturating_sub(WAKE.to_u64())), Monotonic(wait.end.0.saturating_add(WAKE.to_u64())));
        let ends = self.ends.get(&wait.pid).map_or(&[][..], |ends| ends);
        // Few threads ran, but in a file of others a hundred thousand may have ended.
        wakers.retain(|tid| ends.get(ends.partition_point(|end| *end < (*tid, from))).is_some_and(|end| *end <= (*tid, to)));
        one_of(wakers)
    }

    /// The holders of the lock: a part ends where another thread that waited for it got it.
    fn holders(&self, sources: &Sources<'_>, wait: &Wait) -> Vec<BlockedPart> {
        let Some(futex) = futex_key(wait) else { return Vec::new() };
        if !self.named.contains(&futex) && self.how(wait) == Some(How::Lock { in_queue: true }) {
            return self.holders_in_turn(sources, futex, wait);
        }
        let takers = self.takers(sources, futex);
        let (first, end) = takers.during(wait);
        let near = TakerId::at(end.place().saturating_sub(TAKERS_MAX)).max(first);
        let others = || near.until(end).filter(|&i| takers.list[i].tid != wait.tid);
        let mut is_searched = is_searched(near.until(end).len(), wait, || others().map(|i| takers.list[i].end));
        let mut parts: Vec<BlockedPart> = Vec::with_capacity(first.until(end).len().min(PARTS_MAX) + 1);
        let (mut from, mut taker, mut is_first) = (wait.start, takers.last_but(near, wait.tid), true);
        if let Some(before) = takers.before(near).filter(|_| first < near) {
            (from, is_first) = (before.end, false);
            parts.push(BlockedPart { from: wait.start, to: from, who: BlockedOn::Nobody });
        }
        for over in others().map(Some).chain([None]) {
            let (to, tid) = over.map_or((wait.end, wait.tid), |i| (takers.list[i].end, takers.list[i].tid));
            if from < to && is_searched(to.0 - from.0) {
                let waited = over.map_or(wait, |i| &sources.recording.waits[takers.list[i].wait]);
                let ran = || over.map_or_else(|| sources.ran(wait), |i| *takers.ran[i].get_or_init(|| sources.ran(waited)));
                let who = self.holder(sources, futex, (from, to), (wait, waited), (taker, is_first), ran);
                parts.push(BlockedPart { from, to, who });
            } else if from < to {
                match parts.last_mut().filter(|last| last.who == BlockedOn::Nobody && last.to == from) {
                    Some(last) => last.to = to,
                    None => parts.push(BlockedPart { from, to, who: BlockedOn::Nobody }),
                }
            }
            (from, taker, is_first) = (to, Some(tid), false);
        }
        parts
    }

    /// The holders of the lock that a thread waited for at a futex of its own: a part begins where the wait of its holder for the lock ended.
    fn holders_in_turn(&self, sources: &Sources<'_>, futex: FutexKey, wait: &Wait) -> Vec<BlockedPart> {
        let mut parts = Vec::new();
        let mut over = self.last_try(sources.recording, futex, wait);
        let mut to = over.end;
        while wait.start < to {
            if parts.len() == PARTS_MAX {
                parts.push(BlockedPart { from: wait.start, to, who: BlockedOn::Nobody });
                break;
            }
            let who = self.holder(sources, futex, (wait.start, to), (wait, over), (None, true), || sources.ran(over));
            let before = match who {
                BlockedOn::Thread { tid, .. } => self.lock_got_before(sources.recording, ThreadKey::new(wait.pid, tid), to),
                BlockedOn::OneOf(_) | BlockedOn::Nobody => None,
            };
            let before = before.filter(|before| wait.start < before.end);
            parts.push(BlockedPart { from: before.map_or(wait.start, |before| before.end), to, who });
            let Some(before) = before else { break };
            to = before.end;
            if before.stack != wait.stack {
                // It waited for another lock, as far as one can tell.
                parts.push(BlockedPart { from: wait.start, to, who: BlockedOn::Nobody });
                break;
            }
            over = before;
        }
        parts.reverse();
        let clip = |part: &mut BlockedPart| {
            part.to = part.to.min(wait.end);
            part.from < part.to
        };
        parts.retain_mut(clip);
        parts
    }

    /// The wait in which the thread got the lock: this one, or one that followed at once.
    fn last_try<'a>(&self, recording: &'a Recording, futex: FutexKey, wait: &'a Wait) -> &'a Wait {
        let own = &self.of_thread[&(futex, wait.tid)];
        let of = |i: &WaitId| &recording.waits[*i];
        let following = &own[own.partition_point(|i| of(i).start < wait.end)..];
        let mut last = wait;
        for next in following.iter().map(of).take(TRIES_MAX) {
            if next.start.nanos_since(last.end) >= RETRY_NANOS {
                break;
            }
            last = next;
        }
        last
    }

    /// The last wait of a thread before this time in which it got a lock.
    fn lock_got_before<'a>(&self, recording: &'a Recording, thread: ThreadKey, to: Monotonic) -> Option<&'a Wait> {
        let own = self.for_locks.get(&thread)?;
        let waits = own[..own.partition_point(|&wait| recording.waits[wait].end < to)].iter().rev().map(|&wait| &recording.waits[wait]);
        waits.take(TRIES_MAX).find(|wait| futex_key(wait).is_some_and(|futex| self.got_it(recording, futex, wait)))
    }

    /// The holder in the last part of [`Blockers::holders`]; of several, not how many.
    fn last_holder(&self, sources: &Sources<'_>, wait: &Wait) -> Option<BlockedOn> {
        let futex = futex_key(wait)?;
        let takers = self.takers(sources, futex);
        let (first, end) = takers.during(wait);
        let other = takers.last_other(end, wait.tid);
        let within = other.filter(|&other| other >= first);
        let from = within.map_or(wait.start, |other| takers.list[other].end);
        let taker = other.map(|other| takers.list[other].tid);
        let ran = || sources.few_ran(wait);
        (from < wait.end).then(|| self.holder(sources, futex, (from, wait.end), (wait, wait), (taker, within.is_none()), ran))
    }

    /// The threads that got a lock.
    fn takers(&self, sources: &Sources<'_>, futex: FutexKey) -> &Takers {
        self.takers[&futex].get_or_init(|| {
            let got_it = self.at[&futex].iter().map(|&i| (i, &sources.recording.waits[i]));
            Takers::new(got_it.filter(|(_, it)| self.got_it(sources.recording, futex, it)).map(|(i, it)| (i, it.tid, it.end)))
        })
    }

    /// Whether the wait ended because the lock was got.
    fn got_it(&self, recording: &Recording, futex: FutexKey, wait: &Wait) -> bool {
        let own = &self.of_thread[&(futex, wait.tid)];
        let of = |i: &WaitId| &recording.waits[*i];
        let next = own.get(own.partition_point(|i| of(i).start < wait.end));
        next.is_none_or(|next| of(next).start.nanos_since(wait.end) >= RETRY_NANOS)
    }

    /// Whether a thread waited there itself for some of this time.
    fn waits_there(&self, recording: &Recording, futex: FutexKey, tid: u32, (from, to): (Monotonic, Monotonic)) -> bool {
        let Some(own) = self.of_thread.get(&(futex, tid)) else { return false };
        let of = |i: &WaitId| &recording.waits[*i];
        let before = own.partition_point(|i| of(i).start < to);
        before.checked_sub(1).is_some_and(|last| of(&own[last]).end > from)
    }

    /// The holder in a part of `wait` that ended when the wait `over` did. `taker` got it last, at the beginning of the part or before.
    fn holder(
        &self,
        sources: &Sources<'_>,
        futex: FutexKey,
        (from, to): (Monotonic, Monotonic),
        (wait, over): (&Wait, &Wait),
        (taker, is_first): (Option<u32>, bool),
        ran: impl FnOnce() -> Option<Ran>,
    ) -> BlockedOn {
        let waits_itself = |tid: u32| tid != wait.tid && self.waits_there(sources.recording, futex, tid, (from, to));
        for looked_at in [wait, over] {
            let at = looked_at.start.0.saturating_add(PROBE_NANOS);
            let is_here = at < to.0 && (from.0 <= at || (is_first && looked_at.start <= from));
            let named = looked_at.futex.and_then(|futex| futex.holder).filter(|tid| is_here && !waits_itself(*tid));
            if let Some(tid) = named {
                return BlockedOn::Thread { tid, evidence: BlockerEvidence::Futex };
            }
        }
        let ran = ran();
        // How many of them are not the one that waits, and who it is where it is one.
        let others = ran.map_or(0, |ran| ran.threads - u32::from(sources.has_run(wait.pid, wait.tid, &ran)));
        if let Some(ran) = ran.filter(|_| others == 1) {
            let tid = if ran.first[0] == wait.tid { ran.first[1] } else { ran.first[0] };
            return BlockedOn::Thread { tid, evidence: BlockerEvidence::Inferred };
        }
        // The thread that got it at the beginning of this part can have had it for all of it; an earlier one, only if it was there at the end.
        let is_believed = |tid: &u32| match ran {
            None => !is_first,
            Some(_) if others == 0 => !is_first,
            Some(ran) => sources.has_run(wait.pid, *tid, &ran),
        };
        match (taker.filter(is_believed), others) {
            (Some(tid), _) => BlockedOn::Thread { tid, evidence: BlockerEvidence::Inferred },
            (None, 0) => BlockedOn::Nobody,
            (None, others) => BlockedOn::OneOf(others),
        }
    }
}

/// Whether somebody is looked for in a part of a wait, by its length: in each, unless there are more than [`PARTS_MAX`]; then in the longest.
fn is_searched<Ends: Iterator<Item = Monotonic>>(most: usize, wait: &Wait, ends: impl Fn() -> Ends) -> impl FnMut(u64) -> bool {
    let (mut shortest, mut as_short) = (0, usize::MAX);
    if most >= PARTS_MAX {
        let mut from = wait.start;
        let length = |to: Monotonic| to.0.saturating_sub(std::mem::replace(&mut from, to).0);
        let mut lengths: Vec<u64> = ends().chain([wait.end]).map(length).collect();
        if let Some(unsearched) = lengths.len().checked_sub(PARTS_MAX) {
            let (_, nth, longer) = lengths.select_nth_unstable(unsearched);
            shortest = *nth;
            as_short = PARTS_MAX - longer.iter().filter(|length| **length > shortest).count();
        }
    }
    move |length| {
        if length == shortest && as_short > 0 {
            as_short -= 1;
            return true;
        }
        length > shortest
    }
}

/// A number of threads.
fn number(threads: usize) -> u32 {
    u32::try_from(threads).unwrap_or(u32::MAX)
}

fn one_of(threads: Vec<u32>) -> BlockedOn {
    match threads[..] {
        [] => BlockedOn::Nobody,
        [tid] => BlockedOn::Thread { tid, evidence: BlockerEvidence::Inferred },
        _ => BlockedOn::OneOf(number(threads.len())),
    }
}

#[cfg(test)]
mod tests;
