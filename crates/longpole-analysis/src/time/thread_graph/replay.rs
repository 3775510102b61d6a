//! What of the path is gone if parts of what the threads did take no time.
//!
//! ```text
//! recorded   main    |=start=|..... joins both ........................|=write=|
//!            long            |======== encode ========|=== upload ======|
//!            short           |======== index ==============|
//! without encode             |=== upload ======|            main waits for short: encode saves less than it took
//! ```
//!
//! All ties are kept: a thread goes on when it is ready and the one that it waited for has come as far as when it let it go on. A thread that
//! joins another one has joined all that it started and that have ended by then.

use std::cell::OnceCell;
use std::collections::HashMap;

use longpole_model::{IdVec, Nanos, Pid};

use super::job_slots::Handout;
use super::{EndedBy, Gap, GraphThread, JOIN_NANOS, LineId, ThreadGraph, is_main};
use crate::intervals;
use crate::schedule::own_work::TimeSet;
use crate::schedule::saving::Saving;

/// How long the end of a process, or of a thread, may take.
const EXIT_NANOS: Nanos = Nanos(10_000_000);

/// CPUs that other programs had say something of a saving from this part of it on.
const LENT_PART: i64 = 10;

/// Replays of the slots: each takes from the one before how long the jobs take, so that slots inside slots settle.
const SLOT_ROUNDS: usize = 2;

/// What happens at a moment; at the same one in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Born(LineId),
    /// The next wait of a thread for another one ends.
    GoesOn(LineId),
    /// The end of a thread from which another one took something: the last of that, at the earliest.
    LastTaken(LineId, LineId),
    /// A stretch of the path, by its place.
    Ends(usize),
    Starts(usize),
}

/// How far a thread has come: a moment of the recording, and when that is in the replay.
struct Progress {
    old: Nanos,
    new: Nanos,
    /// The first of its waits for others that has not ended, by its place among those.
    next_tie: usize,
}

/// What all replays of a graph have in common.
#[derive(Debug)]
pub(super) struct Plan {
    /// All that a replay goes through, by time.
    steps: Vec<(Nanos, Step)>,
    /// The waits of each thread for others, by time.
    ties: IdVec<LineId, Vec<(Gap, LineId)>>,
    /// The threads that each one started, by their end.
    started: IdVec<LineId, Vec<LineId>>,
    /// Whether each is there until the process that started it ends: nobody waits for it before.
    stays: IdVec<LineId, bool>,
}

struct Replay<'a> {
    graph: &'a ThreadGraph,
    plan: &'a Plan,
    removed: &'a IdVec<LineId, TimeSet>,
    /// What is left of that is as much as what is gone.
    is_half: bool,
    progress: IdVec<LineId, Progress>,
    /// For each thread how many of those that it started have ended, the latest of these ends in the replay, and whose it is.
    joined: IdVec<LineId, (usize, Nanos, Option<LineId>)>,
    /// How many of those each has started.
    begun: IdVec<LineId, usize>,
    /// When each thread starts.
    started: IdVec<LineId, Nanos>,
    /// Which jobs take which slots, once it is known how long they take.
    handout: Option<Handout>,
    /// What held up each thread, by time; only where somebody asks.
    held_up: Option<IdVec<LineId, Vec<HeldUp>>>,
}

/// A thread goes on at a moment of the recording, because another one came to a moment of its.
#[derive(Debug, Clone, Copy)]
struct HeldUp {
    at: Nanos,
    by: LineId,
    by_at: Nanos,
}

/// Times of threads that are taken out of a run: replays of it share them.
pub(crate) struct Removal<'a> {
    graph: &'a ThreadGraph,
    times: IdVec<LineId, TimeSet>,
    /// What of them programs outside the run had the CPUs for, and the rest: what is gone on a free machine.
    free: OnceCell<(Nanos, IdVec<LineId, TimeSet>)>,
}

impl ThreadGraph {
    /// Takes these times of threads out of the run.
    pub(crate) fn without(&self, times: impl Iterator<Item = (LineId, Nanos, Nanos)>) -> Removal<'_> {
        let mut of_thread: IdVec<LineId, Vec<(Nanos, Nanos)>> = IdVec::filled(Vec::new(), self.lines.len());
        times.for_each(|(line, from, to)| of_thread[line].push((from, to)));
        Removal { graph: self, times: of_thread.into_iter().map(TimeSet::new).collect(), free: OnceCell::new() }
    }

    fn replay<'a>(&'a self, removed: &'a IdVec<LineId, TimeSet>, is_half: bool) -> Replay<'a> {
        let plan = self.plan.get_or_init(|| self.plan_replays());
        let (progress, joined, begun, started) = Default::default();
        Replay { graph: self, plan, removed, is_half, progress, joined, begun, started, handout: None, held_up: None }
    }

    fn ends_earlier(&self, removed: &IdVec<LineId, TimeSet>, is_half: bool) -> Saving {
        let mut replay = self.replay(removed, is_half);
        let earlier = |(_, end): (Vec<(Nanos, Nanos)>, Nanos)| (self.life.1 - end).or_zero();
        let certain = earlier(replay.run_with_slots(true));
        if self.jobs.pools(true) == self.jobs.pools(false) {
            return Saving { low: certain, high: certain };
        }
        let maybe = earlier(replay.run_with_slots(false));
        Saving { low: certain.min(maybe), high: certain.max(maybe) }
    }

    /// What of these times programs outside the run had the CPUs for, and the rest.
    fn on_a_free_machine(&self, removed: &IdVec<LineId, TimeSet>) -> (Nanos, IdVec<LineId, TimeSet>) {
        let mut all_lent = Nanos::ZERO;
        let rest = |(line, times): (LineId, &TimeSet)| {
            let all = || times.between(Nanos::MIN, Nanos::MAX);
            let Some(lent) = self.lent.get(line) else { return times.clone() };
            all_lent += all().map(|(from, to)| lent.length_between(from, to)).sum::<Nanos>();
            TimeSet::new(all().flat_map(|(from, to)| lent.gaps(from, to)).collect())
        };
        let rest = removed.enumerated().map(rest).collect();
        (all_lent, rest)
    }

    fn plan_replays(&self) -> Plan {
        let ties: IdVec<LineId, Vec<(Gap, LineId)>> = self.lines.enumerated().map(|(id, _)| self.ties(id).collect()).collect();
        let mut started: IdVec<LineId, Vec<LineId>> = IdVec::filled(Vec::new(), self.lines.len());
        let ends = self.lines.iter().filter(|line| is_main(line.thread)).map(|line| (line.thread.pid, line.until));
        let ends: HashMap<Pid, Nanos> = ends.collect();
        let stays = |line: &GraphThread| {
            let creator = line.born.map(|(_, creator)| self.lines[creator].thread.pid);
            creator.and_then(|pid| ends.get(&pid)).is_some_and(|end| line.until > *end - EXIT_NANOS)
        };
        let stays: IdVec<LineId, bool> = self.lines.iter().map(stays).collect();
        let mut steps = Vec::new();
        for (id, line) in self.lines.enumerated() {
            if let Some((born, creator)) = line.born {
                started[creator].extend(line.is_joined.then_some(id));
                steps.push((born, Step::Born(id)));
            }
            steps.extend(ties[id].iter().map(|(gap, _)| (gap.to, Step::GoesOn(id))));
            let ended = |other: LineId| self.lines[other].until;
            let has_more = |other: LineId, at: Nanos| at < ended(other) - JOIN_NANOS && ended(other) < line.until;
            let taken = ties[id].iter().filter(|(gap, other)| gap.takes && has_more(*other, gap.to));
            // A thread that its process ended may have given the last of it at any time before.
            let was_ended = |other: &LineId| stays[*other] && self.lines[*other].thread.pid == line.thread.pid;
            let mut taken: Vec<LineId> = taken.map(|(_, other)| *other).filter(|other| !was_ended(other)).collect();
            taken.sort_unstable();
            taken.dedup();
            steps.extend(taken.into_iter().map(|other| (ended(other), Step::LastTaken(id, other))));
        }
        for (place, stretch) in self.path.iter().enumerate() {
            steps.extend([(stretch.from, Step::Starts(place)), (stretch.to, Step::Ends(place))]);
        }
        steps.sort_unstable();
        started.iter_mut().for_each(|threads| threads.sort_by_key(|&thread| self.lines[thread].until));
        Plan { steps, ties, started, stays }
    }

    /// The waits of a thread for others, by time. Where nothing tells which one it was, the thread goes on with the one that mattered then.
    fn ties(&self, id: LineId) -> impl Iterator<Item = (Gap, LineId)> {
        let line = &self.lines[id];
        let born = line.born.map_or(Nanos::MIN, |(born, _)| born);
        line.gaps.iter().filter(move |gap| gap.to > born).filter_map(move |gap| match gap.ended_by {
            EndedBy::Thread(other) => Some((*gap, other)),
            EndedBy::Somebody => self.that_matters_at(gap.to).filter(|other| *other != id).map(|other| (*gap, other)),
            EndedBy::Killer(other, _) => Some((*gap, other)),
            EndedBy::Itself | EndedBy::Unknown => None,
        })
    }

    fn that_matters_at(&self, at: Nanos) -> Option<LineId> {
        let next = self.path.partition_point(|stretch| stretch.to < at);
        self.path.get(next).filter(|stretch| stretch.from <= at).map(|stretch| stretch.line)
    }
}

impl Removal<'_> {
    /// The times of the path that are gone if these take no time.
    pub(crate) fn gone(&self) -> Vec<(Nanos, Nanos)> {
        self.replay().0
    }

    /// Which times of the path are gone, and when it ends.
    pub(super) fn replay(&self) -> (Vec<(Nanos, Nanos)>, Nanos) {
        self.graph.replay(&self.times, false).run_with_slots(true)
    }

    /// How much earlier the path ends if these take no time, or half. A range where jobs may share slots, and where programs outside the run had the
    /// CPUs for much of these times: on a free machine the run would not have lost that.
    pub(crate) fn ends_earlier(&self, is_half: bool) -> Saving {
        let saving = self.graph.ends_earlier(&self.times, is_half);
        if saving.high == Nanos::ZERO {
            return saving;
        }
        let (lent, rest) = self.free.get_or_init(|| self.graph.on_a_free_machine(&self.times));
        if *lent * LENT_PART < saving.high {
            return saving;
        }
        let free = self.graph.ends_earlier(rest, is_half);
        Saving { low: saving.low.min(free.low), high: saving.high }
    }

    /// Whether any of them is one of this thread.
    pub(super) fn has(&self, line: LineId) -> bool {
        !self.times[line].is_empty()
    }

    /// The thread beside the recorded path that holds up the end if these take no time: the last one, from the end backwards.
    pub(super) fn limit(&self) -> Option<LineId> {
        let graph = self.graph;
        let mut replay = graph.replay(&self.times, false);
        replay.held_up = Some(IdVec::filled(Vec::new(), graph.lines.len()));
        replay.run_with_slots(true);
        let held_up = replay.held_up?;
        let (mut line, mut at) = (graph.main, graph.life.1);
        loop {
            let before = held_up[line].partition_point(|it| it.at <= at).checked_sub(1);
            let (next, next_at) = match before.map(|last| held_up[line][last]) {
                Some(it) if it.at > graph.life.0 => (it.by, it.by_at),
                _ => graph.lines[line].born.map(|(born, creator)| (creator, born))?,
            };
            if next_at >= at {
                return None;
            }
            (line, at) = (next, next_at);
            if graph.that_matters_at(at) != Some(line) {
                return Some(line);
            }
        }
    }
}

impl GraphThread {
    /// Whether a thread only ends from this moment on; if other threads took its CPU, that took longer.
    fn is_at_its_end(&self, at: Nanos) -> bool {
        let waits_again = self.gaps.last().is_some_and(|last| last.from > at);
        self.until <= at + JOIN_NANOS || self.until <= at + EXIT_NANOS && !waits_again
    }
}

/// Takes this much back of the end of what is gone.
fn take_back(gone: &mut Vec<(Nanos, Nanos)>, mut waits: Nanos) {
    while waits > Nanos::ZERO {
        let Some((from, to)) = gone.pop() else { return };
        if to - from > waits {
            gone.push((from, to - waits));
            return;
        }
        waits -= to - from;
    }
}

impl Replay<'_> {
    /// The same for a schedule whose jobs share slots: each replay takes from the one before how long they take.
    fn run_with_slots(&mut self, only_certain: bool) -> (Vec<(Nanos, Nanos)>, Nanos) {
        self.handout = None;
        let mut replayed = self.run();
        for _ in 0..SLOT_ROUNDS.min(self.graph.jobs.pools(only_certain)) {
            let ends = self.graph.lines.enumerated().map(|(id, line)| (id, line.until));
            let durations = ends.map(|(id, until)| self.reach(id, until) - self.started[id]).collect();
            self.handout = Some(Handout::new(&self.graph.jobs, only_certain, durations));
            replayed = self.run();
        }
        replayed
    }

    /// From the start: nobody has come anywhere.
    fn reset(&mut self) {
        let lines = &self.graph.lines;
        let at = |line: &GraphThread| line.born.map_or(self.graph.life.0, |(born, _)| born);
        self.progress = lines.iter().map(|line| Progress { old: at(line), new: at(line), next_tie: 0 }).collect();
        self.started = lines.iter().map(at).collect();
        self.joined = IdVec::filled((0, Nanos::MIN, None), lines.len());
        self.begun = IdVec::filled(0, lines.len());
        if let Some(held_up) = &mut self.held_up {
            held_up.iter_mut().for_each(Vec::clear);
        }
    }

    /// Which times of the path are gone, and when it ends.
    fn run(&mut self) -> (Vec<(Nanos, Nanos)>, Nanos) {
        self.reset();
        let plan = self.plan;
        let mut gone: Vec<(Nanos, Nanos)> = Vec::new();
        let mut ended = self.graph.life.0;
        for &(at, step) in &plan.steps {
            match step {
                Step::Born(line) => {
                    let Some((_, creator)) = self.graph.lines[line].born else { continue };
                    let new = self.start(creator, line, at);
                    let new = self.start_in_slot(creator, line, at, new);
                    (self.progress[line].new, self.started[line]) = (new, new);
                }
                Step::GoesOn(line) => self.go_on(line),
                Step::LastTaken(line, from) => self.take_last(line, from, at),
                Step::Ends(stretch) => {
                    let line = self.graph.path[stretch].line;
                    ended = self.reach(line, at);
                    if stretch + 1 == self.graph.path.len() {
                        // What ends so shortly before the process was ended by it.
                        let until = at.min(self.graph.lines[line].until);
                        let joined = self.all_joined(line, until - EXIT_NANOS) + (at - until);
                        if joined > ended {
                            self.note(line, at, self.last_joined(line));
                        }
                        take_back(&mut gone, joined - ended);
                        ended = ended.max(joined);
                    }
                }
                Step::Starts(stretch) => {
                    let stretch = &self.graph.path[stretch];
                    // As long as it waits for something beside the path, nothing is gained.
                    take_back(&mut gone, self.advance(stretch.line, at) - ended);
                    gone.extend(self.removed[stretch.line].between(stretch.from, stretch.to));
                }
            }
        }
        (intervals::union(gone), ended)
    }

    /// When a thread is as far as it was at this moment of the recording, or at the start of the wait for another one that it is in.
    fn advance(&mut self, line: LineId, at: Nanos) -> Nanos {
        let progress = &mut self.progress[line];
        let next = self.plan.ties[line].get(progress.next_tie);
        let at = next.map_or(at, |(gap, _)| at.min(gap.from)).min(self.graph.lines[line].until);
        if at > progress.old {
            let removed = self.removed[line].length_between(progress.old, at);
            progress.new += (at - progress.old) - if self.is_half { removed / 2 } else { removed };
            progress.old = at;
        }
        progress.new
    }

    /// When a thread has come to this moment of the recording; behind its end, or in a wait of its, it is as late as it was.
    fn reach(&mut self, line: LineId, at: Nanos) -> Nanos {
        let new = self.advance(line, at);
        new + (at - self.progress[line].old).or_zero()
    }

    /// When a thread starts another one. If all that it started before had ended by then, except those that stay, it has joined them.
    fn start(&mut self, creator: LineId, line: LineId, at: Nanos) -> Nanos {
        let joined = self.all_joined(creator, at);
        let all_ended = self.joined[creator].0 >= self.begun[creator];
        self.begun[creator] += usize::from(self.graph.lines[line].is_joined && !self.plan.stays[line]);
        let now = self.reach(creator, at);
        if all_ended && joined > now {
            self.progress[creator].new = joined;
            self.note(creator, at, self.last_joined(creator));
            return joined;
        }
        now
    }

    /// When a job starts that would start at this moment if it took no slot. What started it is no later than that.
    fn start_in_slot(&mut self, creator: LineId, line: LineId, at: Nanos, otherwise: Nanos) -> Nanos {
        let Some(handout) = &mut self.handout else { return otherwise };
        let removed = &self.removed[creator];
        let work = |gap: Nanos| {
            let gone = removed.length_between(at - gap, at);
            gap - if self.is_half { gone / 2 } else { gone }
        };
        let Some((start, whose)) = handout.start(&self.graph.jobs, line, otherwise, work) else { return otherwise };
        if let Some(whose) = whose {
            let progress = &mut self.progress[creator];
            progress.new = start - (at - progress.old).or_zero();
            self.note(creator, at, Some((whose, self.graph.lines[whose].until)));
        }
        start
    }

    fn go_on(&mut self, line: LineId) {
        let next_tie = self.progress[line].next_tie;
        let Some(&(gap, other)) = self.plan.ties[line].get(next_tie) else { return };
        let own = self.advance(line, gap.from);
        let mut new = own.max(self.reach(other, gap.to));
        let mut held_up_by = (new > own).then_some((other, gap.to.min(self.graph.lines[other].until)));
        if self.graph.lines[other].is_at_its_end(gap.to) {
            let joined = self.all_joined(line, gap.to);
            if joined > new {
                (new, held_up_by) = (joined, self.last_joined(line));
            }
        }
        self.note(line, gap.to, held_up_by);
        self.progress[line] = Progress { old: gap.to, new, next_tie: next_tie + 1 };
    }

    /// A thread that took something from another one has not taken the last of it before that has ended, whether it had to wait for it or not.
    fn take_last(&mut self, line: LineId, from: LineId, at: Nanos) {
        let last = self.reach(from, at);
        if last > self.advance(line, at) && self.progress[line].old == at {
            self.progress[line].new = last;
            self.note(line, at, Some((from, at)));
        }
    }

    /// The last that a thread has joined, and its end.
    fn last_joined(&self, line: LineId) -> Option<(LineId, Nanos)> {
        let last = self.joined[line].2?;
        Some((last, self.graph.lines[last].until))
    }

    fn note(&mut self, line: LineId, at: Nanos, held_up_by: Option<(LineId, Nanos)>) {
        if let (Some(held_up), Some((by, by_at))) = (&mut self.held_up, held_up_by) {
            held_up[line].push(HeldUp { at, by, by_at });
        }
    }

    /// When all threads that a thread started, and that had ended by this moment of the recording, have ended: it joins those that end first
    /// without a wait, so no record tells.
    fn all_joined(&mut self, line: LineId, at: Nanos) -> Nanos {
        while let Some(&thread) = self.plan.started[line].get(self.joined[line].0) {
            let until = self.graph.lines[thread].until;
            if until > at {
                break;
            }
            let ended = self.advance(thread, until);
            let (place, latest, whose) = self.joined[line];
            self.joined[line] = (place + 1, latest.max(ended), if ended > latest { Some(thread) } else { whose });
        }
        self.joined[line].1
    }
}
