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
//! Some futexes name a thread ([`Futex`](longpole_model::Futex)); that is so for the part of the wait in which it was looked at. For
//! the rest, and where none is named, it is inferred: who unlocks wakes the next one, so at the end of the wait the holder was on a CPU.
//! Of the threads of the process those count that were on one in the [`WAKE_NANOS`] before; where that is one thread, it is the one.
//! Where there are more, and one of them had got the same lock last, that one is. Else it is said how many there are.
//!
//! A futex that nobody ever held is no lock: a condition, a queue, a semaphore. Then the one that counts is who woke the thread.

use std::collections::{HashMap, HashSet};

use longpole_model::{Monotonic, Recording, Timestamp, Wait, WaitKind};

use crate::timelines::Timelines;
use crate::waits::{self, How};

/// How long before a thread has its CPU back it may have been woken: an idle CPU takes microseconds, one that others have, up to some
/// turns of theirs. The longer, the more threads may be meant, and the seldomer a wrong one is.
const WAKE_NANOS: i64 = 10_000_000;

/// A thread that waits at the same futex again so soon did not get the lock.
const RETRY_NANOS: u64 = 100_000;

/// So long a wait has lasted when it is looked at, if it lasts so long: what its futex says, it said then. Of shorter waits some are looked at
/// earlier, and their futexes are not asked.
pub(crate) const LOOK_NANOS: u64 = 5_000_000;

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
pub enum Evidence {
    /// The futex names it.
    Futex,
    /// It is the only one that can have been, by when threads were on CPUs.
    Inferred,
}

impl Evidence {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Futex => "futex",
            Evidence::Inferred => "inferred",
        }
    }
}

/// Who it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Thread {
        tid: u32,
        evidence: Evidence,
    },
    /// One of so many.
    OneOf(u32),
    /// No thread of the process that was seen.
    Nobody,
}

/// A part of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) from: Monotonic,
    pub(crate) to: Monotonic,
    pub(crate) who: Who,
}

/// A futex of a process.
type Place = (u32, u64);

fn place(wait: &Wait) -> Option<Place> {
    wait.futex.map(|futex| (wait.pid, futex.address.0))
}

/// Who waited where.
#[derive(Debug, Default)]
pub(crate) struct Blockers {
    /// Waits at each futex, by end.
    at: HashMap<Place, Vec<u32>>,
    /// Those of each thread, by start.
    of_thread: HashMap<(Place, u32), Vec<u32>>,
    /// Futexes that named a holder once: they are locks.
    named: HashSet<Place>,
    /// What the stacks of those waits say.
    how: HashMap<u32, How>,
    /// Ends of threads, by process, and there by time.
    ends: HashMap<u32, Vec<(Monotonic, u32)>>,
}

/// Where one looks for who it was.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) timelines: &'a Timelines,
    /// What the offsets of the timelines count from.
    pub(crate) origin: Timestamp,
}

impl Seen<'_> {
    /// The other threads of the process that may have woken this one when its wait was over; `None` where that is not known, or it was
    /// not over.
    fn wakers(&self, wait: &Wait) -> Option<Vec<u32>> {
        let at = self.recording.clock.to_unix(wait.end)?.nanos_since(self.origin);
        if !self.timelines.is_switched_in(wait.pid, wait.tid, at) {
            return None;
        }
        let mut ran = self.timelines.on_cpu_in(wait.pid, at.saturating_sub(WAKE_NANOS), at)?;
        ran.retain(|tid| *tid != wait.tid);
        Some(ran)
    }
}

impl Blockers {
    pub(crate) fn of(recording: &Recording) -> Blockers {
        let mut out = Blockers::default();
        for (i, wait) in recording.waits.iter().enumerate() {
            let Some(place) = place(wait) else { continue };
            out.at.entry(place).or_default().push(i as u32);
            out.of_thread.entry((place, wait.tid)).or_default().push(i as u32);
            if wait.kind == WaitKind::Lock && wait.futex.is_some_and(|futex| futex.holder.is_some()) {
                out.named.insert(place);
            }
            if let Some(stack) = wait.stack
                && !out.how.contains_key(&stack.0)
                && let Some(how) = waits::how(recording, stack)
            {
                out.how.insert(stack.0, how);
            }
        }
        out.at.values_mut().for_each(|waits| waits.sort_by_key(|&wait| (recording.waits[wait as usize].end, wait)));
        for thread in &recording.threads {
            if let Some(end) = thread.end {
                out.ends.entry(thread.pid).or_default().push((end, thread.tid));
            }
        }
        out.ends.values_mut().for_each(|ends| ends.sort_unstable());
        out
    }

    /// What other threads are for this wait; `None` where it is no wait for one, or nothing tells.
    pub(crate) fn relation(&self, wait: &Wait) -> Option<Relation> {
        match wait.kind {
            WaitKind::Join => Some(Relation::Ends),
            WaitKind::Lock => {
                let place = place(wait)?;
                let how = wait.stack.and_then(|stack| self.how.get(&stack.0));
                let is_lock = self.named.contains(&place) || how == Some(&How::Lock);
                Some(if is_lock { Relation::Holds } else { Relation::Wakes })
            }
            _ => None,
        }
    }

    /// Who it was, in each part of a wait; the parts are the whole.
    pub(crate) fn parts(&self, seen: &Seen<'_>, wait: &Wait) -> Vec<Part> {
        let whole = |who| vec![Part { from: wait.start, to: wait.end, who }];
        match self.relation(wait) {
            None => Vec::new(),
            Some(Relation::Holds) => self.holders(seen, wait),
            Some(Relation::Wakes) => whole(one_of(seen.wakers(wait).unwrap_or_default())),
            Some(Relation::Ends) => match wait.futex.and_then(|futex| futex.holder) {
                Some(tid) => whole(Who::Thread { tid, evidence: Evidence::Futex }),
                None => whole(self.who_ended(seen, wait)),
            },
        }
    }

    /// The thread that ended when the wait did; a language may say so shortly before the thread is gone.
    fn who_ended(&self, seen: &Seen<'_>, wait: &Wait) -> Who {
        let Some(wakers) = seen.wakers(wait) else { return Who::Nobody };
        let (from, to) = (Monotonic(wait.end.0.saturating_sub(WAKE_NANOS as u64)), Monotonic(wait.end.0.saturating_add(WAKE_NANOS as u64)));
        let ends = self.ends.get(&wait.pid).map_or(&[][..], |ends| ends);
        let first = ends.partition_point(|(end, _)| *end < from);
        let ended = ends[first..].iter().take_while(|(end, _)| *end <= to).map(|(_, tid)| *tid);
        one_of(ended.filter(|tid| wakers.contains(tid)).collect())
    }

    /// Who held the lock: a part ends where another one that waited for it got it.
    fn holders(&self, seen: &Seen<'_>, wait: &Wait) -> Vec<Part> {
        let Some(place) = place(wait) else { return Vec::new() };
        let all = &self.at[&place];
        let of = |i: &u32| &seen.recording.waits[*i as usize];
        let ended_by = |time: Monotonic| all.partition_point(|i| of(i).end <= time);
        let takers = |range: std::ops::Range<usize>| {
            let others = all[range].iter().filter(|i| of(i).tid != wait.tid);
            others.filter(|i| self.got_it(seen.recording, place, of(i))).map(of).collect::<Vec<_>>()
        };
        // A wait of a broken file may end before it begins.
        let first = ended_by(wait.start);
        let within = takers(first..all.partition_point(|i| of(i).end < wait.end).max(first));
        let mut parts = Vec::with_capacity(within.len() + 1);
        let mut from = wait.start;
        let mut taker = takers(0..first).last().map(|last| last.tid);
        let mut is_first = true;
        for over in within.into_iter().chain([wait]) {
            let to = over.end;
            if from < to {
                let who = self.holder(seen, place, (from, to), (wait, over), (taker, is_first));
                parts.push(Part { from, to, who });
            }
            (from, taker, is_first) = (to, Some(over.tid), false);
        }
        parts
    }

    /// Whether the wait ended because the lock was got.
    fn got_it(&self, recording: &Recording, place: Place, wait: &Wait) -> bool {
        let own = &self.of_thread[&(place, wait.tid)];
        let of = |i: &u32| &recording.waits[*i as usize];
        let next = own.get(own.partition_point(|i| of(i).start < wait.end));
        next.is_none_or(|next| of(next).start.nanos_since(wait.end) >= RETRY_NANOS)
    }

    /// Whether a thread waited there itself for some of this time.
    fn waits_there(&self, recording: &Recording, place: Place, tid: u32, (from, to): (Monotonic, Monotonic)) -> bool {
        let Some(own) = self.of_thread.get(&(place, tid)) else { return false };
        let of = |i: &u32| &recording.waits[*i as usize];
        let before = own.partition_point(|i| of(i).start < to);
        before.checked_sub(1).is_some_and(|last| of(&own[last]).end > from)
    }

    /// Who held it in a part of `wait` that ended when the wait `over` did. `taker` got it last, at the beginning of the part or before.
    fn holder(
        &self,
        seen: &Seen<'_>,
        place: Place,
        (from, to): (Monotonic, Monotonic),
        (wait, over): (&Wait, &Wait),
        (taker, is_first): (Option<u32>, bool),
    ) -> Who {
        let waits_itself = |tid: u32| tid != wait.tid && self.waits_there(seen.recording, place, tid, (from, to));
        for looked_at in [wait, over] {
            let at = looked_at.start.0.saturating_add(LOOK_NANOS);
            let is_here = at < to.0 && (from.0 <= at || (is_first && looked_at.start <= from));
            let named = looked_at.futex.and_then(|futex| futex.holder).filter(|tid| is_here && !waits_itself(*tid));
            if let Some(tid) = named {
                return Who::Thread { tid, evidence: Evidence::Futex };
            }
        }
        let wakers = seen.wakers(over).map(|mut wakers| {
            wakers.retain(|tid| *tid != wait.tid);
            wakers
        });
        // Who got it at the beginning of this part can have had it for all of it; who got it before, only if it was there at the end.
        let believed = |tid: &u32| wakers.as_ref().map_or(!is_first, |wakers| wakers.contains(tid) || (wakers.is_empty() && !is_first));
        match (taker.filter(believed), wakers) {
            (_, Some(wakers)) if wakers.len() == 1 => one_of(wakers),
            (Some(tid), _) => Who::Thread { tid, evidence: Evidence::Inferred },
            (None, wakers) => one_of(wakers.unwrap_or_default()),
        }
    }
}

fn one_of(threads: Vec<u32>) -> Who {
    match threads[..] {
        [] => Who::Nobody,
        [tid] => Who::Thread { tid, evidence: Evidence::Inferred },
        _ => Who::OneOf(threads.len() as u32),
    }
}

#[cfg(test)]
mod tests;
