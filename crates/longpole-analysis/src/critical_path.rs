//! The chain of work and gaps that fixed when the run ended.
//!
//! Walked from the end of the run backwards: the run ended because its last child ended, that one because of its own last
//! child, which started because of the thing it had waited for, and so on to the start of the run.
//!
//! ```text
//! run      ├──────────────────────────────────────┤
//!   deploy   ├────────────────────────────────┤
//!     web      ├──────────┤
//!     db                    ├────────────────┤          db carries a link to web
//!     dns      ├─────┤
//! path     rrdd wwwwwwwwww dd bbbbbbbbbbbbbbbb d rrrrr
//! ```
//!
//! What started a span is declared by its links, or else taken from order inside the same parent. The time between the
//! last thing waited for and what it let start is the parent's own.

use longpole_model::{Recording, TimeRange};

use crate::schedule::{Schedule, Waited};
use crate::trace_tree::Forest;

/// A stretch of the path and the node that fixed the time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The node.
    pub node: usize,
    /// When.
    pub range: TimeRange,
}

/// The path of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// Stretches by time; each starts where the one before ends, and together they are the run. Neighbours differ.
    pub segments: Vec<Segment>,
    /// For each node, nanoseconds of the path in which it was the innermost.
    pub on_path_nanos: Vec<i64>,
}

impl CriticalPath {
    /// The path of this recording.
    pub fn new(recording: &Recording, forest: &Forest) -> CriticalPath {
        Self::of(&Schedule::new(recording, forest), forest)
    }

    pub(crate) fn of(schedule: &Schedule, forest: &Forest) -> CriticalPath {
        let run = forest.run_range();
        let mut path = CriticalPath { segments: Vec::new(), on_path_nanos: vec![0; forest.len()] };
        let mut until = run.nanos();
        let mut at = Waited::End(0);
        loop {
            // The owner is whose work lies between the event and what it waited for.
            let (before, owner) = match at {
                Waited::Start(0) => break,
                Waited::Start(node) => {
                    let before = schedule.start_waited_for(node);
                    let owner = if schedule.is_declared(node) { schedule.anchor[node] } else { schedule.host[node] };
                    (before, owner as usize)
                }
                Waited::End(node) => (schedule.end_waited_for(node), node),
            };
            let since = match before {
                Waited::Start(node) => schedule.start[node],
                Waited::End(node) => schedule.end[node],
            };
            path.push(forest, owner, since.clamp(0, until), until);
            until = until.min(since.max(0));
            at = before;
        }
        // Before the run itself nothing can have happened; spans of a skewed clock may say so.
        path.push(forest, 0, 0, until);
        path.segments.reverse();
        path
    }

    /// Segments come last first.
    fn push(&mut self, forest: &Forest, node: usize, from: i64, to: i64) {
        if from >= to {
            return;
        }
        self.on_path_nanos[node] += to - from;
        let origin = forest.run_range().start;
        let range = TimeRange { start: origin.plus_nanos(from), end: origin.plus_nanos(to) };
        match self.segments.last_mut() {
            Some(later) if later.node == node && later.range.start == range.end => later.range.start = range.start,
            _ => self.segments.push(Segment { node, range }),
        }
    }
}
