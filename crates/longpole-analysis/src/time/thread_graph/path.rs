//! The thread that mattered, from the end of a process backwards.

use longpole_model::Nanos;

use super::{ASKED_NANOS, EndedBy, Gap, LineId, ThreadGraph};

/// Steps from thread to thread, at most.
const STEPS_MAX: usize = 200_000;

/// A time in which one thread mattered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathStretch {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) line: LineId,
}

impl ThreadGraph {
    /// From the end of the main thread to its start, and whether all that led from thread to thread is certain.
    pub(super) fn find_path(&self, main: LineId) -> (Vec<PathStretch>, bool) {
        let (start, end) = self.life;
        let mut path = Vec::new();
        let mut is_certain = true;
        let (mut line, mut at) = (main, end);
        // The thread that waits for this one, and its wait.
        let mut waiting: Option<(LineId, Gap)> = None;
        for _ in 0..STEPS_MAX {
            if let Some((killer, since)) = self.killed(line, at) {
                path.push(PathStretch { from: since.max(start), to: at, line });
                (line, at, waiting) = (killer, since.max(start), None);
                continue;
            }
            let tie = self.last_tie(line, at, waiting);
            let (since, next) = match tie {
                // Until it has a CPU, the thread that waited for one that has ended is late by itself.
                Some((gap, other)) => (gap.to.min(self.lines[other].until).max(gap.from), Some(other)),
                None => match self.lines[line].born.filter(|(born, _)| *born < at) {
                    Some((born, creator)) if creator != line => (born, Some(creator)),
                    _ => (start, None),
                },
            };
            let since = since.max(start);
            if since < at {
                path.push(PathStretch { from: since, to: at, line });
            }
            let Some(next) = next.filter(|_| since > start) else { break };
            is_certain &= tie.is_none_or(|(gap, _)| gap.is_certain);
            waiting = tie.filter(|(gap, _)| matches!(gap.ended_by, EndedBy::Thread(_))).map(|(gap, _)| (line, gap));
            (line, at) = (next, since);
        }
        // What too many steps leave out is the main thread's, as far as anybody knows.
        if let Some(first) = path.last().map(|stretch| stretch.from).filter(|first| *first > start) {
            path.push(PathStretch { from: start, to: first, line: main });
        }
        path.reverse();
        (path, is_certain)
    }

    /// The last wait of a thread that another one ended before this moment. Where nothing tells which one, a thread that began to wait for this one
    /// then had asked it.
    fn last_tie(&self, line: LineId, at: Nanos, waiting: Option<(LineId, Gap)>) -> Option<(Gap, LineId)> {
        let line = &self.lines[line];
        let born = line.born.map_or(Nanos::MIN, |(born, _)| born);
        let before = line.gaps.partition_point(|gap| gap.to < at);
        line.gaps[..before].iter().rev().take_while(|gap| gap.to > born).find_map(|gap| match gap.ended_by {
            // One that had ended before did not hold this one up.
            EndedBy::Thread(other) => (self.lines[other].until > gap.from).then_some((*gap, other)),
            EndedBy::Somebody => {
                let has_asked = |(other, wait): &(LineId, Gap)| {
                    let is_born = self.lines[*other].born.is_none_or(|(born, _)| born < gap.to);
                    is_born && wait.asked <= gap.to && gap.from <= wait.from + ASKED_NANOS
                };
                waiting.filter(has_asked).map(|(other, _)| (*gap, other))
            }
            EndedBy::Itself | EndedBy::Unknown | EndedBy::Killer(..) => None,
        })
    }

    /// The thread that ended the process of another one, and since when it waited for its end.
    fn killed(&self, line: LineId, at: Nanos) -> Option<(LineId, Nanos)> {
        match self.lines[line].gaps.last()? {
            Gap { to, ended_by: EndedBy::Killer(killer, since), .. } if *to <= at && *since < at => Some((*killer, *since)),
            _ => None,
        }
    }
}
