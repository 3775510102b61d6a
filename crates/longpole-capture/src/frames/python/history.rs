//! Readings of interpreters, by process, thread and time; bounded.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use longpole_symbols::python::{Code, CodeId, FrameRead, ReadError};

use longpole_model::fast_hash::FastMap;

/// Most readings to keep of a thread: 8 seconds of 500 a second, more than the recorder may lag behind.
const READINGS_MAX: usize = 4096;

/// Most coroutines to keep that the event loop of a thread waited for, one for each wait of more than 5 ms.
const AWAITED_MAX: usize = 1024;

/// Most moves of a leaf inside its function in one reading: then another begins, so that old ones can be dropped.
const MOVES_MAX: usize = 256;

/// Most interpreters to keep, including ended ones. Each has its code objects: about 1 MB for a large program.
const INTERPRETERS_MAX: usize = 256;

/// A frame as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenFrame {
    pub(super) address: u64,
    pub(super) code: CodeId,
    /// Bytes from the first instruction.
    pub(super) instruction: i64,
}

/// The frames of a thread at one time, leaf first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SeenStack {
    pub(super) frames: Vec<SeenFrame>,
    /// Which of them ran in the same call of the evaluating function, innermost call first.
    pub(super) calls: Vec<Range<usize>>,
    /// Whether the last frame is the root.
    pub(super) is_whole: bool,
}

impl SeenStack {
    /// From frames as they were read, each with its code.
    pub(super) fn new(read: &[FrameRead], codes: &[CodeId], is_whole: bool) -> SeenStack {
        let mut stack = SeenStack { is_whole, ..SeenStack::default() };
        let mut start = 0;
        for (i, (frame, code)) in read.iter().zip(codes).enumerate() {
            stack.frames.push(SeenFrame { address: frame.address, code: *code, instruction: frame.instruction });
            if frame.begins_call {
                stack.calls.push(start..i + 1);
                start = i + 1;
            }
        }
        if start < stack.frames.len() {
            stack.calls.push(start..stack.frames.len());
        }
        stack
    }

    /// Whether it is the same except for the instruction of its leaf, which samples show better.
    fn is_like(&self, other: &SeenStack) -> bool {
        let place = |frame: &SeenFrame| (frame.address, frame.code);
        self.calls == other.calls
            && self.is_whole == other.is_whole
            && self.frames.first().map(place) == other.frames.first().map(place)
            && self.frames.get(1..) == other.frames.get(1..)
    }
}

/// Successive readings that are the same except for the instruction of the leaf.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// CLOCK_MONOTONIC of the first.
    pub(super) from: u64,
    /// And of the last.
    pub(super) to: u64,
    pub(super) stack: Arc<SeenStack>,
    /// Later instructions of the leaf, and since when.
    moved: Vec<(u64, i64)>,
}

impl Reading {
    /// The instruction of the leaf at a time.
    pub(super) fn leaf_instruction(&self, time: u64) -> Option<i64> {
        let moved = self.moved.partition_point(|(since, _)| *since <= time);
        let last = moved.checked_sub(1).map(|place| self.moved[place].1);
        last.or_else(|| self.stack.frames.first().map(|leaf| leaf.instruction))
    }

    /// Its distance from a time, in nanoseconds.
    pub(super) fn distance(&self, time: u64) -> u64 {
        self.from.saturating_sub(time).max(time.saturating_sub(self.to))
    }
}

/// Readings of one thread in the order of time.
#[derive(Debug, Default)]
pub(super) struct Readings(VecDeque<Reading>);

impl Readings {
    pub(super) fn push(&mut self, time: u64, stack: SeenStack) {
        match self.0.back_mut() {
            Some(last) if last.stack.is_like(&stack) && last.moved.len() < MOVES_MAX => {
                if let Some(leaf) = stack.frames.first().filter(|leaf| last.leaf_instruction(time) != Some(leaf.instruction)) {
                    last.moved.push((time, leaf.instruction));
                }
                last.to = time;
            }
            _ => {
                if self.0.len() >= READINGS_MAX {
                    self.0.pop_front();
                }
                self.0.push_back(Reading { from: time, to: time, stack: Arc::new(stack), moved: Vec::new() });
            }
        }
    }

    /// The thread still stands where it did.
    pub(super) fn extend(&mut self, time: u64) {
        if let Some(last) = self.0.back_mut() {
            last.to = time;
        }
    }

    /// The last reading within a wait: it holds for the whole wait.
    pub(super) fn within(&self, since: u64, end: u64) -> Option<u64> {
        let after = self.0.partition_point(|reading| reading.from <= end);
        let last = self.0.get(after.checked_sub(1)?)?;
        (last.to >= since).then(|| last.to.min(end))
    }

    fn forget(&mut self, before: u64) {
        while self.0.front().is_some_and(|reading| reading.to < before) {
            self.0.pop_front();
        }
    }

    /// The readings, nearest in time first.
    pub(super) fn nearest(&self, time: u64) -> impl Iterator<Item = &Reading> {
        let mut after = self.0.partition_point(|reading| reading.from <= time);
        let mut before = after;
        std::iter::from_fn(move || {
            let older = before.checked_sub(1).and_then(|place| self.0.get(place));
            let newer = self.0.get(after);
            let takes_older = match (older, newer) {
                (Some(older), Some(newer)) => older.distance(time) <= newer.distance(time),
                (older, _) => older.is_some(),
            };
            if takes_older {
                before -= 1;
                older
            } else {
                after += 1;
                newer
            }
        })
    }
}

/// Why it is not known for which coroutine an event loop waited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum AwaitedMissing {
    /// It could not be read.
    ReadError(ReadError),
    /// There was no CPU time left to read it.
    NoTime,
    /// The wait ended too soon.
    TooShort,
}

impl fmt::Display for AwaitedMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AwaitedMissing::ReadError(error) => error.fmt(f),
            AwaitedMissing::NoTime => f.write_str("longpole spends at most 2 % of a CPU on reading them"),
            AwaitedMissing::TooShort => f.write_str("the wait ended before longpole had read them"),
        }
    }
}

/// What an event loop waited for, as read during one of its waits.
#[derive(Debug, Clone)]
pub(super) struct AwaitedReading {
    /// CLOCK_MONOTONIC before it was read.
    pub(super) from: u64,
    /// And after.
    pub(super) to: u64,
    /// The frames of the coroutines, leaf first; if the wait ends by a timer, and if it does not.
    pub(super) outcome: Result<(Vec<SeenFrame>, Vec<SeenFrame>), AwaitedMissing>,
}

/// What the event loop of one thread waited for, in the order of time.
#[derive(Debug, Default)]
pub(super) struct AwaitedReadings(VecDeque<AwaitedReading>);

impl AwaitedReadings {
    pub(super) fn push(&mut self, reading: AwaitedReading) {
        if self.0.len() >= AWAITED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(reading);
    }

    /// The last one that was begun and ended within a wait: nothing changed meanwhile.
    pub(super) fn within(&self, since: u64, end: u64) -> Option<&AwaitedReading> {
        let before_end = self.0.partition_point(|reading| reading.to <= end);
        self.0.get(before_end.checked_sub(1)?).filter(|reading| reading.from >= since)
    }

    fn forget(&mut self, before: u64) {
        while self.0.front().is_some_and(|reading| reading.to < before) {
            self.0.pop_front();
        }
    }
}

/// Id of a range of instructions: of one code object, or up to CPython 3.10 of several equal ones, which share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceId(usize);

/// Addresses of the instructions of code objects, as last read.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Start, end and number, by start; they do not overlap.
    ranges: Vec<(u64, u64, PlaceId)>,
    codes: Vec<Vec<CodeId>>,
}

impl Places {
    /// A code object was read. It replaces other instructions at its addresses.
    pub(super) fn add(&mut self, range: &Range<u64>, code: CodeId) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|(_, end, _)| *end <= range.start);
        let last = self.ranges.partition_point(|(start, ..)| *start < range.end).max(first);
        if let [(start, end, place)] = self.ranges[first..last]
            && (start..end) == *range
        {
            self.codes[place.0].push(code);
            return;
        }
        let place = PlaceId(self.codes.len());
        self.codes.push(vec![code]);
        self.ranges.splice(first..last, [(range.start, range.end, place)]);
    }

    /// The instructions at this address, and the offset of the address in them, in bytes.
    pub(super) fn find(&self, address: u64) -> Option<(PlaceId, i64)> {
        // Most words of a stack are no such address.
        let (lowest, highest) = (self.ranges.first()?.0, self.ranges.last()?.1);
        if address < lowest || address >= highest {
            return None;
        }
        let after = self.ranges.partition_point(|(start, ..)| *start <= address);
        let (start, end, place) = *self.ranges.get(after.checked_sub(1)?)?;
        (address < end).then(|| (place, (address - start).cast_signed()))
    }

    /// The code objects whose instructions these are, the oldest first.
    pub(super) fn codes(&self, place: PlaceId) -> &[CodeId] {
        self.codes.get(place.0).map_or(&[], Vec::as_slice)
    }
}

/// An interpreter of a process, from an exec or a fork on.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) pid: u32,
    /// When it came.
    pub(super) since: u64,
    /// When its process executed another program, if it did.
    until: u64,
    /// A number of its own, for caches.
    pub(super) serial: u32,
    /// Whether each frame has a call of its own.
    pub(super) calls_are_frames: bool,
    pub(super) codes: Vec<Arc<Code>>,
    pub(super) places: Places,
    pub(super) threads: FastMap<u32, Readings>,
    /// What the event loops of threads waited for, by thread.
    pub(super) awaited: FastMap<u32, AwaitedReadings>,
    /// Why it cannot be read, if it cannot.
    pub(super) read_error: Option<ReadError>,
}

impl Seen {
    pub(super) fn new(pid: u32, since: u64, serial: u32) -> Seen {
        Seen {
            pid,
            since,
            until: u64::MAX,
            serial,
            calls_are_frames: false,
            codes: Vec::new(),
            places: Places::default(),
            threads: FastMap::default(),
            awaited: FastMap::default(),
            read_error: None,
        }
    }
}

/// All interpreters.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first.
    interpreters: Vec<Seen>,
    next_serial: u32,
}

impl History {
    /// Begins with another interpreter.
    pub(super) fn begin(&mut self, pid: u32, since: u64) {
        if self.interpreters.len() >= INTERPRETERS_MAX {
            self.interpreters.remove(0);
        }
        self.interpreters.push(Seen::new(pid, since, self.next_serial));
        self.next_serial += 1;
    }

    /// The interpreter of a process at a time.
    pub(super) fn at(&self, pid: u32, time: u64) -> Option<&Seen> {
        self.interpreters.iter().rfind(|seen| seen.pid == pid && seen.since <= time).filter(|seen| time < seen.until)
    }

    /// A process executed a program: its interpreter ends.
    pub(super) fn exec(&mut self, pid: u32, time: u64) {
        for seen in self.interpreters.iter_mut().filter(|seen| seen.pid == pid && seen.since < time) {
            seen.until = seen.until.min(time);
        }
    }

    /// The one that came at this time.
    pub(super) fn of(&mut self, pid: u32, since: u64) -> Option<&mut Seen> {
        self.interpreters.iter_mut().rfind(|seen| seen.pid == pid && seen.since == since)
    }

    /// Drops readings that no sample needs any more. `is_over` says which interpreters are not read any more.
    pub(super) fn forget(&mut self, before: u64, is_over: impl Fn(u32, u64) -> bool) {
        self.interpreters.retain_mut(|seen| {
            seen.threads.retain(|_, readings| {
                readings.forget(before);
                !readings.0.is_empty()
            });
            seen.awaited.retain(|_, readings| {
                readings.forget(before);
                !readings.0.is_empty()
            });
            !seen.threads.is_empty() || seen.since >= before || !is_over(seen.pid, seen.since)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(address: u64, code: u32, instruction: i64, begins_call: bool) -> (FrameRead, CodeId) {
        (FrameRead { address, code: 0, instruction, begins_call }, CodeId(code))
    }

    fn stack(frames: &[(FrameRead, CodeId)]) -> SeenStack {
        let (read, codes): (Vec<_>, Vec<_>) = frames.iter().copied().unzip();
        SeenStack::new(&read, &codes, true)
    }

    #[test]
    fn frames_are_grouped_by_the_calls_they_ran_in() {
        let read = stack(&[frame(1, 5, 0, false), frame(2, 6, 0, true), frame(3, 7, 0, true), frame(4, 8, 0, false)]);
        assert_eq!(read.calls, [0..2, 2..3, 3..4]);
        assert_eq!(stack(&[]).calls, []);
    }

    #[test]
    fn a_reading_lasts_while_nothing_but_the_leafs_instruction_changes() {
        let mut readings = Readings::default();
        readings.push(10, stack(&[frame(1, 5, 2, true), frame(2, 6, 8, true)]));
        readings.push(20, stack(&[frame(1, 5, 4, true), frame(2, 6, 8, true)]));
        readings.extend(30);
        readings.push(40, stack(&[frame(1, 5, 4, true), frame(2, 6, 10, true)]));
        readings.push(50, stack(&[frame(2, 6, 12, true)]));
        let spans = |time| -> Vec<(u64, u64)> { readings.nearest(time).map(|it| (it.from, it.to)).collect() };
        assert_eq!(spans(29), [(10, 30), (40, 40), (50, 50)]);
        assert_eq!(spans(46), [(50, 50), (40, 40), (10, 30)]);
        assert_eq!(spans(0), [(10, 30), (40, 40), (50, 50)]);
        assert_eq!(Readings::default().nearest(5).count(), 0);
    }

    #[test]
    fn a_reading_knows_at_which_instruction_its_leaf_was_and_a_wait_what_was_read_in_it() {
        let mut readings = Readings::default();
        for (time, instruction) in [(10, 2), (20, 4), (30, 4), (40, 6)] {
            readings.push(time, stack(&[frame(1, 5, instruction, true)]));
        }
        readings.extend(60);
        assert_eq!(readings.0.len(), 1);
        let at = |time| readings.0[0].leaf_instruction(time);
        assert_eq!([at(5), at(19), at(20), at(39), at(60)], [Some(2), Some(2), Some(4), Some(4), Some(6)]);
        assert_eq!(readings.within(41, 55), Some(55), "it stood there all the time");
        assert_eq!(readings.within(25, 35), Some(35));
        assert_eq!(readings.within(61, 70), None, "nobody looked");
        assert_eq!(readings.within(1, 5), None);
        assert_eq!(Readings::default().within(0, 9), None);
    }

    #[test]
    fn what_was_read_within_a_wait_is_what_its_event_loop_waited_for() {
        let mut readings = AwaitedReadings::default();
        for (from, to) in [(10, 12), (20, 23), (40, 44)] {
            readings.push(AwaitedReading { from, to, outcome: Err(AwaitedMissing::NoTime) });
        }
        let within = |since, end| readings.within(since, end).map(|reading| reading.from);
        assert_eq!([within(5, 30), within(20, 23), within(15, 22), within(21, 30)], [Some(20), Some(20), None, None]);
        assert_eq!([within(5, 11), within(41, 90), AwaitedReadings::default().within(0, 9).map(|it| it.from)], [None; 3]);
        for from in 100..100 + 2 * AWAITED_MAX as u64 {
            readings.push(AwaitedReading { from, to: from, outcome: Err(AwaitedMissing::NoTime) });
        }
        assert_eq!(readings.0.len(), AWAITED_MAX);
    }

    #[test]
    fn an_address_belongs_to_the_code_that_was_seen_there_last() {
        let mut places = Places::default();
        places.add(&(100..200), CodeId(1));
        places.add(&(300..400), CodeId(2));
        places.add(&(0..0), CodeId(9));
        let find = |places: &Places, address| places.find(address).map(|(place, at)| (places.codes(place).to_vec(), at));
        assert_eq!([find(&places, 100), find(&places, 199)], [Some((vec![CodeId(1)], 0)), Some((vec![CodeId(1)], 99))]);
        assert_eq!([find(&places, 99), find(&places, 200), find(&places, 400)], [None, None, None]);
        places.add(&(150..320), CodeId(3));
        assert_eq!(find(&places, 310), Some((vec![CodeId(3)], 160)));
        assert_eq!([find(&places, 120), find(&places, 350)], [None, None]);
        places.add(&(150..320), CodeId(4));
        assert_eq!(find(&places, 150), Some((vec![CodeId(3), CodeId(4)], 0)), "functions that are alike share their instructions");
    }

    #[test]
    fn old_readings_and_ended_interpreters_are_forgotten() {
        let mut history = History::default();
        history.begin(7, 100);
        history.begin(7, 500);
        history.of(7, 100).unwrap().threads.entry(7).or_default().push(200, SeenStack::default());
        assert_eq!(history.at(7, 400).map(|seen| seen.since), Some(100));
        assert_eq!(history.at(7, 600).map(|seen| seen.since), Some(500));
        assert!(history.at(7, 50).is_none() && history.at(8, 600).is_none());
        history.exec(7, 450);
        assert!(history.at(7, 449).is_some() && history.at(7, 450).is_none() && history.at(7, 600).is_some());
        history.forget(300, |_, since| since == 100);
        assert!(history.at(7, 400).is_none());
        assert!(history.at(7, 600).is_some());
    }
}
