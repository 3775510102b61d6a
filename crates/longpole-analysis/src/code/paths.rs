//! The paths of all stacks of a recording from the outermost function to the innermost, without weights.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use longpole_model::fast_hash::FastMap;
use longpole_model::{FunctionId, Id, IdVec, Recording, StackId, ids};

use crate::code::stack_frames::{StackFrames, per_stack};

ids! {
    /// A path of functions and the lines they were at; parents stand before children.
    pub(super) struct PathId;
    /// A row and one of its lines.
    pub(super) struct SpotId;
    /// A path of functions; its parent stands before it.
    pub(super) struct RowId;
}

/// The calls in all stacks of the recording, without weights. Made once: each query adds how much
/// of a selection lies where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paths {
    /// `None` for the root, which is the first.
    pub(super) parent: IdVec<PathId, Option<PathId>>,
    /// The spot each path ends at.
    pub(super) spot: IdVec<PathId, SpotId>,
    pub(super) row_of_spot: IdVec<SpotId, RowId>,
    pub(super) line_of_spot: IdVec<SpotId, u32>,
    /// `None` for the root, which is the first.
    pub(super) parent_row: IdVec<RowId, Option<RowId>>,
    /// `None` for the root.
    pub(super) function_of_row: IdVec<RowId, Option<FunctionId>>,
    /// The path that each stack is.
    pub(super) of_stack: IdVec<StackId, PathId>,
    /// Whether each stack is longer than its path.
    pub(super) is_cut: IdVec<StackId, bool>,
}

/// The most paths a tree has: 2 million, about 180 bytes each. An hour of recording has some hundred thousand. A file of 66 KB can have
/// 32 million: 8,000 stacks of 4,096 frames that differ at the root.
pub(super) const PATHS_MAX: usize = 1 << 21;

impl Paths {
    /// Where there are more, the stacks with the most time have theirs, and of the others what was outermost.
    pub(super) fn new(recording: &Recording, frames: &StackFrames, paths_max: usize) -> Paths {
        let (root, stacks) = (PathId::at(0), recording.stacks.len());
        let mut paths = Paths {
            parent: IdVec::filled(None, 1),
            spot: IdVec::filled(SpotId::at(0), 1),
            row_of_spot: IdVec::filled(RowId::at(0), 1),
            line_of_spot: IdVec::filled(0, 1),
            parent_row: IdVec::filled(None, 1),
            function_of_row: IdVec::filled(None, 1),
            of_stack: IdVec::filled(root, stacks),
            is_cut: IdVec::filled(false, stacks),
        };
        let mut order: Vec<StackId> = (0..stacks).map(StackId::at).collect();
        if frames.count(recording) > paths_max {
            let mut weights: IdVec<StackId, u64> = IdVec::filled(0, stacks + 1);
            let samples = recording.samples.iter().map(|sample| (sample.stack, sample.weight_nanos));
            let waits = recording.waits.iter().filter_map(|wait| Some((wait.stack?, wait.nanos())));
            for (stack, nanos, _) in per_stack(recording, samples.chain(waits)) {
                weights[stack] = nanos;
            }
            order.sort_by_key(|&stack| Reverse(weights[stack]));
        }
        let mut known: FastMap<(PathId, FunctionId, u32), PathId> = FastMap::default();
        let mut spots: FastMap<(RowId, u32), SpotId> = FastMap::default();
        let mut rows: FastMap<(RowId, FunctionId), RowId> = FastMap::default();
        for stack in order {
            let mut at = root;
            for (function, line) in frames.of_stack(recording, stack).rev() {
                let next = paths.parent.next_id();
                let path = match known.entry((at, function, line)) {
                    Entry::Occupied(path) => *path.get(),
                    Entry::Vacant(_) if paths.parent.len() >= paths_max => {
                        paths.is_cut[stack] = true;
                        break;
                    }
                    Entry::Vacant(path) => *path.insert(next),
                };
                if path == next {
                    let above = paths.row_of_spot[paths.spot[at]];
                    let next_row = paths.parent_row.next_id();
                    let row = *rows.entry((above, function)).or_insert(next_row);
                    if row == next_row {
                        paths.parent_row.push(Some(above));
                        paths.function_of_row.push(Some(function));
                    }
                    let next_spot = paths.row_of_spot.next_id();
                    let spot = *spots.entry((row, line)).or_insert(next_spot);
                    if spot == next_spot {
                        paths.row_of_spot.push(row);
                        paths.line_of_spot.push(line);
                    }
                    paths.parent.push(Some(at));
                    paths.spot.push(spot);
                }
                at = path;
            }
            paths.of_stack[stack] = at;
        }
        paths
    }
}
