//! Waits that time out and go on: several steps that are one wait.
//!
//! ```text
//! recorded   |= run =|.. 500 ms ..|.. 500 ms ..|.. 310 ms ..|= run =|      a queue with a timeout, until somebody puts something into it
//! joined     |= run =|..................................... |= run =|
//! ```

use longpole_model::{Nanos, WaitKind};

use super::ties::{Blocked, CANDIDATES_MAX, Ties};
use super::{CLOSE_NANOS, EndedBy, Gap, LineId};
use crate::time::short_waits::SHORT_NANOS;

/// A thread that waits again after a timeout has done no more than this meanwhile.
const POLL_NANOS: Nanos = Nanos(1_000_000);

/// Brief waits that follow a poll which timed out, at most.
const BRIEF_MAX: usize = 4;

impl Ties<'_> {
    /// The waits of a thread, where those that timed out are one with the wait that goes on after them.
    pub(super) fn join(&self, line: LineId, gaps: Vec<Gap>) -> Vec<Gap> {
        let mut joined: Vec<Gap> = Vec::with_capacity(gaps.len());
        let mut gaps = gaps.into_iter().peekable();
        while let Some(mut gap) = gaps.next() {
            if let Some(&[first, last]) = joined.last_chunk() {
                let is_end = gap.may_end_polls(&[first, last], gaps.peek());
                let ended_by = is_end.then(|| self.end_of_polls(line, &last, &gap)).flatten();
                if let Some(ended_by) = ended_by {
                    gap = Gap { ended_by, is_certain: false, waits_in: last.waits_in, takes: true, ..gap };
                } else if let Some(late) = self.late_end(line, &[first, last], &gap) {
                    joined.pop();
                    push_joined(&mut joined, late);
                }
            }
            if let Some((place, whole)) = self.after_poll(line, &joined, gap) {
                joined.truncate(place);
                gap = whole;
            }
            push_joined(&mut joined, gap);
        }
        joined
    }

    /// The thread that ended a wait behind polls that timed out, if it goes on with them: one that was there when the last of them ended.
    fn end_of_polls(&self, line: LineId, last: &Gap, gap: &Gap) -> Option<EndedBy> {
        let it = Blocked { line, from: last.from, to: gap.to, asked: last.asked, kind: Some(WaitKind::Queue), is_guess: false };
        let ended_by = if gap.is_by_another() { gap.ended_by } else { self.let_go(it, None) };
        let is_new = matches!(ended_by, EndedBy::Thread(other) if self.began(other) >= last.to);
        (!is_new).then_some(ended_by)
    }

    /// The second of two polls, if it did not time out: it took longer than the first, a thread ended meanwhile, and the thread does not poll again.
    fn late_end(&self, line: LineId, [first, last]: &[Gap; 2], next: &Gap) -> Option<Gap> {
        let is_late = last.to - last.from > first.to - first.from + POLL_NANOS;
        if !is_late || !first.is_timeout || !first.polls_again(last) || last.sleeps_again(next) {
            return None;
        }
        let before = self.ends.partition_point(|(end, _)| *end <= last.from);
        let ended = self.ends[before..].iter().take_while(|(end, _)| *end <= last.to).take(CANDIDATES_MAX).map(|(_, other)| *other);
        let mut own = ended.filter(|other| *other != line && self.thread(*other).pid == self.thread(line).pid);
        let other = own.next().filter(|_| own.next().is_none())?;
        Some(Gap { ended_by: EndedBy::Thread(other), is_certain: false, is_sleep: false, is_timeout: false, takes: true, ..*last })
    }

    /// The wait for a pipe or the network that ends with this one, and the place of its beginning, a poll that timed out: the thread polled again
    /// at once, briefly, once or several times. A sample that falls into a brief poll hardly shows what the thread waits for.
    fn after_poll(&self, line: LineId, before: &[Gap], gap: Gap) -> Option<(usize, Gap)> {
        let is_poll = |gap: &Gap| gap.is_sleep && !gap.is_timeout && gap.waits_in.is_some_and(|stack| self.polls_in.contains(&stack));
        let is_short = |gap: &Gap| gap.to - gap.from < SHORT_NANOS;
        let mut ran = gap.ran_before;
        let mut follows = |before: &Gap| std::mem::replace(&mut ran, before.ran_before) < POLL_NANOS;
        let mut near = before.iter().enumerate().rev().take(BRIEF_MAX).take_while(|(_, before)| follows(before));
        let (place, poll) = near.find(|(_, before)| is_poll(before) || !is_short(before)).filter(|(_, before)| is_poll(before))?;
        let (asked, ran_before) = (poll.asked, poll.ran_before);
        let whole = Gap { from: poll.from, asked, ran_before, waits_in: poll.waits_in, takes: true, is_certain: false, ..gap };
        if gap.waits_in.is_some() || !is_short(&gap) {
            return (gap.is_by_another() && !gap.is_sleep && poll.waits_where(&gap)).then_some((place, whole));
        }
        let it = Blocked { line, from: poll.from, to: gap.to, asked: poll.asked, kind: Some(WaitKind::Network), is_guess: false };
        let other = self.woke_within(it, CLOSE_NANOS).and_then(|candidates| self.only(it, &candidates))?;
        Some((place, Gap { ended_by: EndedBy::Thread(other), ..whole }))
    }
}

/// Adds a wait to those before it; it goes on with those that timed out in the same place.
fn push_joined(joined: &mut Vec<Gap>, mut gap: Gap) {
    while let Some(timed_out) = joined.pop_if(|before| gap.goes_on_after(before)) {
        gap = Gap { from: timed_out.from, asked: timed_out.asked, ran_before: timed_out.ran_before, ..gap };
    }
    joined.push(gap);
}

impl Gap {
    fn is_by_another(&self) -> bool {
        matches!(self.ended_by, EndedBy::Thread(_) | EndedBy::Somebody)
    }

    /// Whether the next wait timed out in the same place, and the thread did nothing between the two.
    fn polls_again(&self, next: &Gap) -> bool {
        next.is_timeout && self.sleeps_again(next) && next.ran_before < POLL_NANOS
    }

    /// Whether this short wait, or one that nobody sampled, may be one with two waits for others before it, which timed out in one place. The thread
    /// then waits in another place: a loop whose waits all time out may wait for a lock on its way.
    fn may_end_polls(&self, [first, last]: &[Gap; 2], next: Option<&Gap>) -> bool {
        let is_short = self.to - self.from < SHORT_NANOS;
        let may_be_by_another = self.waits_in.is_none() || is_short && self.ended_by != EndedBy::Itself;
        first.polls_again(last) && may_be_by_another && self.ran_before < POLL_NANOS && !next.is_some_and(|next| last.sleeps_again(next))
    }

    /// Whether this wait, which others ended, is one with the wait before it, which timed out: the thread waited for the same thing.
    fn goes_on_after(&self, before: &Gap) -> bool {
        self.is_by_another() && !self.is_sleep && before.is_sleep && before.waits_where(self) && self.ran_before < POLL_NANOS
    }
}
