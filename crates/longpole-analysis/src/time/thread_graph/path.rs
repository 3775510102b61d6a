//! The thread that mattered, from the end of a process backwards.

use longpole_model::Nanos;

use super::{EndedBy, LineId, ThreadGraph};

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
    /// From the end of the main thread to its start.
    pub(super) fn find_path(&self, main: LineId) -> Vec<PathStretch> {
        let (start, end) = self.life;
        let mut path = Vec::new();
        let (mut line, mut at) = (main, end);
        for _ in 0..STEPS_MAX {
            let (since, next) = match self.last_tie(line, at) {
                Some((since, other)) => (since, Some(other)),
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
            (line, at) = (next, since);
        }
        // What too many steps leave out is the main thread's, as far as anybody knows.
        if let Some(first) = path.last().map(|stretch| stretch.from).filter(|first| *first > start) {
            path.push(PathStretch { from: start, to: first, line: main });
        }
        path.reverse();
        path
    }

    /// The last wait of a thread that another one ended before this moment.
    fn last_tie(&self, line: LineId, at: Nanos) -> Option<(Nanos, LineId)> {
        let line = &self.lines[line];
        let born = line.born.map_or(Nanos::MIN, |(born, _)| born);
        let before = line.gaps.partition_point(|gap| gap.to < at);
        line.gaps[..before].iter().rev().take_while(|gap| gap.to > born).find_map(|gap| match gap.ended_by {
            EndedBy::Thread(other) => Some((gap.to, other)),
            EndedBy::Itself | EndedBy::Unknown => None,
        })
    }
}
