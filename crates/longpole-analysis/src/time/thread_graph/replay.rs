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

use longpole_model::{IdVec, Nanos};

use super::{EndedBy, Gap, JOIN_NANOS, LineId, ThreadGraph};
use crate::intervals;
use crate::schedule::own_work::TimeSet;

/// How long the end of a process may take.
const EXIT_NANOS: Nanos = Nanos(10_000_000);

/// What happens at a moment; at the same one in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Born(LineId),
    /// The next wait of a thread for another one ends.
    GoesOn(LineId),
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
}

struct Replay<'a> {
    graph: &'a ThreadGraph,
    plan: &'a Plan,
    removed: IdVec<LineId, TimeSet>,
    progress: IdVec<LineId, Progress>,
    /// For each thread how many of those that it started have ended, and the latest of these ends in the replay.
    joined: IdVec<LineId, (usize, Nanos)>,
}

impl ThreadGraph {
    /// The times of the path that are gone if these times of threads take no time.
    pub(crate) fn gone(&self, times: impl Iterator<Item = (LineId, Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
        let (start, _) = self.life;
        let mut of_thread: IdVec<LineId, Vec<(Nanos, Nanos)>> = IdVec::filled(Vec::new(), self.lines.len());
        times.for_each(|(line, from, to)| of_thread[line].push((from, to)));
        let removed: IdVec<LineId, TimeSet> = of_thread.into_iter().map(TimeSet::new).collect();
        let progress = self.lines.iter().map(|line| {
            let at = line.born.map_or(start, |(born, _)| born);
            Progress { old: at, new: at, next_tie: 0 }
        });
        let joined = IdVec::filled((0, Nanos::MIN), self.lines.len());
        let plan = self.plan.get_or_init(|| self.plan_replays());
        let mut replay = Replay { graph: self, plan, removed, progress: progress.collect(), joined };
        let mut gone: Vec<(Nanos, Nanos)> = Vec::new();
        let mut ended = start;
        for &(at, step) in &plan.steps {
            match step {
                Step::Born(line) => {
                    let Some((_, creator)) = self.lines[line].born else { continue };
                    replay.progress[line].new = replay.advance(creator, at);
                }
                Step::GoesOn(line) => replay.go_on(line),
                Step::Ends(stretch) => {
                    let line = self.path[stretch].line;
                    ended = replay.advance(line, at);
                    if stretch + 1 == self.path.len() {
                        // What ends so shortly before the process was ended by it.
                        take_back(&mut gone, replay.all_joined(line, at - EXIT_NANOS) - ended);
                    }
                }
                Step::Starts(stretch) => {
                    let stretch = &self.path[stretch];
                    // As long as it waits for something beside the path, nothing is gained.
                    take_back(&mut gone, replay.advance(stretch.line, at) - ended);
                    gone.extend(replay.removed[stretch.line].between(stretch.from, stretch.to));
                }
            }
        }
        intervals::union(gone)
    }

    fn plan_replays(&self) -> Plan {
        let ties: IdVec<LineId, Vec<(Gap, LineId)>> = self.lines.enumerated().map(|(id, _)| self.ties(id).collect()).collect();
        let mut started: IdVec<LineId, Vec<LineId>> = IdVec::filled(Vec::new(), self.lines.len());
        let mut steps = Vec::new();
        for (id, line) in self.lines.enumerated() {
            if let Some((born, creator)) = line.born {
                started[creator].push(id);
                steps.push((born, Step::Born(id)));
            }
            steps.extend(ties[id].iter().map(|(gap, _)| (gap.to, Step::GoesOn(id))));
        }
        for (place, stretch) in self.path.iter().enumerate() {
            steps.extend([(stretch.from, Step::Starts(place)), (stretch.to, Step::Ends(place))]);
        }
        steps.sort_unstable();
        started.iter_mut().for_each(|threads| threads.sort_by_key(|&thread| self.lines[thread].until));
        Plan { steps, ties, started }
    }

    /// The waits of a thread for others, by time. Where nothing tells which one it was, the thread goes on with the one that mattered then.
    fn ties(&self, id: LineId) -> impl Iterator<Item = (Gap, LineId)> {
        let line = &self.lines[id];
        let born = line.born.map_or(Nanos::MIN, |(born, _)| born);
        line.gaps.iter().filter(move |gap| gap.to > born).filter_map(move |gap| match gap.ended_by {
            EndedBy::Thread(other) => Some((*gap, other)),
            EndedBy::Somebody => self.that_matters_at(gap.to).filter(|other| *other != id).map(|other| (*gap, other)),
            EndedBy::Itself | EndedBy::Unknown => None,
        })
    }

    fn that_matters_at(&self, at: Nanos) -> Option<LineId> {
        let next = self.path.partition_point(|stretch| stretch.to < at);
        self.path.get(next).filter(|stretch| stretch.from <= at).map(|stretch| stretch.line)
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
    /// When a thread is as far as it was at this moment of the recording, or at the start of the wait for another one that it is in.
    fn advance(&mut self, line: LineId, at: Nanos) -> Nanos {
        let progress = &mut self.progress[line];
        let next = self.plan.ties[line].get(progress.next_tie);
        let at = next.map_or(at, |(gap, _)| at.min(gap.from)).min(self.graph.lines[line].until);
        if at > progress.old {
            progress.new += (at - progress.old) - self.removed[line].length_between(progress.old, at);
            progress.old = at;
        }
        progress.new
    }

    fn go_on(&mut self, line: LineId) {
        let next_tie = self.progress[line].next_tie;
        let Some(&(gap, other)) = self.plan.ties[line].get(next_tie) else { return };
        let mut new = self.advance(line, gap.from).max(self.advance(other, gap.to));
        if self.graph.lines[other].until <= gap.to + JOIN_NANOS {
            new = new.max(self.all_joined(line, gap.to));
        }
        self.progress[line] = Progress { old: gap.to, new, next_tie: next_tie + 1 };
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
            let (place, latest) = self.joined[line];
            self.joined[line] = (place + 1, latest.max(ended));
        }
        self.joined[line].1
    }
}
