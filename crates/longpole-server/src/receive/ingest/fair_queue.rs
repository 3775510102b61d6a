//! The requests that wait for the ingester, served fairly among their senders.
//!
//! A request takes a millisecond or, if a program wants it so, seconds. The sender whose requests took the least time is next, so a process that
//! sends costly ones delays another process by one of them, not by all:
//!
//! ```text
//! 10 sends A B C (1 s each), then 11 sends d e     served A d e B C
//! ```

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sender {
    Process(u32),
    /// A connection by its address in memory, as long as nobody needs to find its process.
    Connection(usize),
}

/// Time from which on requests were costly: a search for the process behind a connection is cheap beside it.
pub(super) const COSTLY_MIN: Duration = Duration::from_millis(100);

/// The requests of a sender with their numbers, and the time that its earlier ones took.
type Waiting<T> = (VecDeque<(u64, T)>, Duration);

/// Requests that wait.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// For each sender its requests, numbered in the order of arrival, and the time that its earlier ones took. All stay until nothing waits.
    senders: HashMap<Sender, Waiting<T>>,
    arrived: u64,
    len: usize,
    spent: Duration,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue { senders: HashMap::new(), arrived: 0, len: 0, spent: Duration::ZERO }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it matters who sent a request.
    pub(super) fn is_busy(&self) -> bool {
        self.spent >= COSTLY_MIN
    }

    /// Appends a request. A new sender begins like the one with the least time, so that it does not overtake those that wait as long.
    pub(super) fn push(&mut self, sender: Sender, request: T) {
        let waiting = self.senders.values().filter(|(waiting, _)| !waiting.is_empty());
        let least = if self.senders.contains_key(&sender) { None } else { waiting.map(|(_, spent)| *spent).min() };
        let (waiting, _) = self.senders.entry(sender).or_insert_with(|| (VecDeque::new(), least.unwrap_or_default()));
        waiting.push_back((self.arrived, request));
        self.arrived += 1;
        self.len += 1;
    }

    /// The request that is next.
    pub(super) fn pop(&mut self) -> Option<T> {
        let next = |(sender, (waiting, spent)): (&Sender, &Waiting<T>)| Some((*spent, waiting.front()?.0, *sender));
        let (_, _, sender) = self.senders.iter().filter_map(next).min_by_key(|(spent, arrived, _)| (*spent, *arrived))?;
        let (_, request) = self.senders.get_mut(&sender)?.0.pop_front()?;
        self.len -= 1;
        Some(request)
    }

    /// Notes the time that a request took.
    pub(super) fn charge(&mut self, sender: Sender, time: Duration) {
        if self.is_empty() {
            self.senders.clear();
            self.spent = Duration::ZERO;
            return;
        }
        self.spent += time;
        self.senders.entry(sender).or_default().1 += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_of_costly_requests_delays_others_by_one() {
        let mut queue = FairQueue::default();
        let [costly, other, third] = [10, 11, 12].map(Sender::Process);
        ["A", "B", "C"].into_iter().for_each(|request| queue.push(costly, (costly, request)));
        let first = queue.pop().unwrap();
        // These come while the first one is served.
        ["d", "e"].into_iter().for_each(|request| queue.push(other, (other, request)));
        queue.push(third, (third, "f"));
        queue.charge(first.0, Duration::from_secs(1));
        assert!(queue.is_busy());
        let mut served = String::new();
        while let Some((sender, request)) = queue.pop() {
            served.push_str(request);
            queue.charge(sender, Duration::from_millis(1));
        }
        assert_eq!((first.1, served.as_str()), ("A", "dfeBC"));
        assert!(queue.is_empty() && !queue.is_busy());
    }
}
