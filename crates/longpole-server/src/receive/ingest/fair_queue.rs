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

use super::super::connection::Stranger;

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sender {
    Process(u32),
    /// A connection by its address in memory, as long as nobody needs to find its process, or if longpole cannot.
    Connection(usize),
    /// A client of a server, whatever its connections.
    Stranger(Stranger),
    /// Everybody who closed the connection: no process holds it, and nobody waits for the answer. Each of them would begin as one that took
    /// no time.
    Nobody,
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

    /// The request that is next. Requests that came while nothing was costly wait under their connections. A process can have any
    /// number of those, so as soon as it matters, `sender_of` finds their process before they are served.
    pub(super) fn pop(&mut self, mut sender_of: impl FnMut(&T) -> Sender) -> Option<T> {
        loop {
            let next = |(sender, (waiting, spent)): (&Sender, &Waiting<T>)| Some((*spent, waiting.front()?.0, *sender));
            let (_, _, sender) = self.senders.iter().filter_map(next).min_by_key(|(spent, arrived, _)| (*spent, *arrived))?;
            let (waiting, _) = self.senders.get_mut(&sender)?;
            if self.spent >= COSTLY_MIN && matches!(sender, Sender::Connection(_)) {
                let found = sender_of(&waiting.front()?.1);
                if found != sender {
                    self.give(sender, found);
                    continue;
                }
            }
            let (_, request) = waiting.pop_front()?;
            self.len -= 1;
            return Some(request);
        }
    }

    /// Gives the requests of a connection to its process, among whose own they stand in the order of arrival.
    fn give(&mut self, connection: Sender, process: Sender) {
        let Some((given, spent)) = self.senders.remove(&connection) else { return };
        let (waiting, _) = self.senders.entry(process).or_insert_with(|| (VecDeque::new(), spent));
        waiting.extend(given);
        waiting.make_contiguous().sort_unstable_by_key(|(arrived, _)| *arrived);
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
        let first = queue.pop(|(sender, _)| *sender).unwrap();
        // These come while the first one is served.
        ["d", "e"].into_iter().for_each(|request| queue.push(other, (other, request)));
        queue.push(third, (third, "f"));
        queue.charge(first.0, Duration::from_secs(1));
        assert!(queue.is_busy());
        let mut served = String::new();
        while let Some((sender, request)) = queue.pop(|(sender, _)| *sender) {
            served.push_str(request);
            queue.charge(sender, Duration::from_millis(1));
        }
        assert_eq!((first.1, served.as_str()), ("A", "dfeBC"));
        assert!(queue.is_empty() && !queue.is_busy());
    }

    #[test]
    fn requests_that_came_before_the_costly_one_count_for_their_process_whatever_their_connections() {
        let [costly, other] = [10, 11].map(Sender::Process);
        let connection = |request: &str| Sender::Connection(request.as_bytes()[0].into());
        let mut queue = FairQueue::default();
        // All of these came while nobody looked for processes, each by a connection of its own.
        ["A", "B", "C", "D"].into_iter().for_each(|request| queue.push(connection(request), (costly, request)));
        let mut served = String::new();
        while let Some((sender, request)) = queue.pop(|(sender, _)| *sender) {
            served.push_str(request);
            if request == "A" {
                queue.push(connection("e"), (other, "e"));
                queue.push(other, (other, "f"));
            }
            queue.charge(sender, Duration::from_millis(if sender == costly { 500 } else { 1 }));
        }
        assert_eq!(served, "AefBCD");
        // All processes that closed their connections are one sender. A connection whose process is not found is one, too.
        ["A", "B", "C"].into_iter().for_each(|request| queue.push(connection(request), (Sender::Nobody, request)));
        queue.push(connection("h"), (connection("h"), "h"));
        let mut served = String::new();
        while let Some((sender, request)) = queue.pop(|(sender, _)| *sender) {
            served.push_str(request);
            queue.charge(sender, Duration::from_millis(500));
        }
        assert_eq!(served, "AhBC");
    }
}
