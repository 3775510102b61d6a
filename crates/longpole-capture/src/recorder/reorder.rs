//! Puts records in order of time.
//!
//! Rings are read one after the other, so records of different CPUs come out of order. A round's records are held until the next round
//! has begun: by then every record that is older than this round's beginning has been read.
//!
//! ```text
//! round 1 │ cpu 0: 10 30 │ cpu 1: 20 25 │                  nothing is ready yet
//! round 2 │ cpu 0: 50    │ cpu 1: 35    │ begun at 40      ready: 10 20 25 30 35
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use longpole_symbols::unwind::Code;

use crate::perf::record::Source;

/// A record that waits for its turn.
pub(super) struct Pending {
    pub(super) time: u64,
    pub(super) source: Source,
    /// Where it begins in the bytes of its round.
    pub(super) at: usize,
    /// What was found in a mapping when its record arrived.
    pub(super) code: Option<Code>,
}

/// The records that wait, and the bytes they lie in.
#[derive(Default)]
pub(super) struct Reorder {
    /// Rounds that still have records in `pending`, oldest first, and the number of the oldest.
    rounds: VecDeque<Vec<u8>>,
    first_round: u64,
    /// By time, each with the number of its round.
    pending: Vec<(u64, Pending)>,
    /// Beginning of the last round.
    horizon: u64,
}

impl Reorder {
    /// The time up to which all records have had their turn.
    pub(super) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Takes what a round brought, whose first ring was read after `before`. Returns the time up to which all is in order now.
    pub(super) fn add(&mut self, bytes: Vec<u8>, records: Vec<Pending>, before: u64, is_last: bool) -> u64 {
        let round = self.first_round + self.rounds.len() as u64;
        self.rounds.push_back(bytes);
        self.pending.extend(records.into_iter().map(|record| (round, record)));
        // Mostly sorted already, in as many runs as there are rings; the sort is stable, so equal times keep their order.
        self.pending.sort_by_key(|(_, record)| record.time);
        let in_order = if is_last { u64::MAX } else { self.horizon };
        self.horizon = before;
        in_order
    }

    /// Hands out the records up to a time, each with the bytes from its beginning on.
    pub(super) fn take_until(&mut self, time: u64, mut each: impl FnMut(Pending, &[u8])) {
        let ready = self.pending.partition_point(|(_, record)| record.time <= time);
        for (round, record) in self.pending.drain(..ready) {
            let round = self.rounds.get((round - self.first_round) as usize);
            if let Some(bytes) = round.and_then(|bytes| bytes.get(record.at..)) {
                each(record, bytes);
            }
        }
    }

    /// The bytes of rounds without waiting records.
    pub(super) fn take_spent(&mut self) -> impl Iterator<Item = Vec<u8>> {
        let next = self.first_round + self.rounds.len() as u64;
        let oldest = self.pending.iter().map(|(round, _)| *round).min().unwrap_or(next);
        let spent: Range<usize> = 0..(oldest - self.first_round) as usize;
        self.first_round = oldest;
        self.rounds.drain(spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of records whose only byte is their time, and whether it is the last.
    fn add(reorder: &mut Reorder, times: &[u8], before: u64, is_last: bool) -> u64 {
        let record = |(at, time): (usize, &u8)| Pending { time: u64::from(*time), source: Source::Sampler, at, code: None };
        reorder.add(times.to_vec(), times.iter().enumerate().map(record).collect(), before, is_last)
    }

    fn ready(reorder: &mut Reorder, until: u64) -> Vec<u8> {
        let mut out = Vec::new();
        reorder.take_until(until, |record, bytes| {
            assert_eq!(u64::from(bytes[0]), record.time);
            out.push(bytes[0]);
        });
        out
    }

    #[test]
    fn records_of_two_rings_come_out_in_order_one_round_later() {
        let mut reorder = Reorder::default();
        let until = add(&mut reorder, &[10, 30, 20, 25, 41], 40, false);
        assert_eq!((ready(&mut reorder, until), reorder.take_spent().count()), (vec![], 0));
        let until = add(&mut reorder, &[50, 35], 60, false);
        assert_eq!(until, 40);
        assert_eq!(ready(&mut reorder, until), [10, 20, 25, 30, 35]);
        assert_eq!(reorder.take_spent().count(), 0, "41 is still in the first round");
        let until = add(&mut reorder, &[], 80, true);
        assert_eq!(ready(&mut reorder, until), [41, 50]);
        assert_eq!(reorder.take_spent().collect::<Vec<_>>(), [vec![10, 30, 20, 25, 41], vec![50, 35], vec![]]);
    }

    #[test]
    fn records_of_one_time_keep_their_order() {
        let mut reorder = Reorder::default();
        let record = |at, source| Pending { time: 7, source, at, code: None };
        let until = reorder.add(vec![1, 2], vec![record(0, Source::Tracker), record(1, Source::Sampler)], 9, true);
        let mut out = Vec::new();
        reorder.take_until(until, |record, bytes| out.push((record.source, bytes[0])));
        assert_eq!(out, [(Source::Tracker, 1), (Source::Sampler, 2)]);
    }
}
