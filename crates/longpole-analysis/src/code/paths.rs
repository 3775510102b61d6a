//! The paths of all stacks of a recording from the outermost function to the innermost, without weights.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use longpole_model::Recording;
use longpole_model::fast_hash::FastMap;

use crate::code::stack_frames::{StackFrames, per_stack};

/// The calls in all stacks of the recording, without weights. Made once: each query adds how much
/// of a selection lies where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paths {
    /// A path of functions and the lines they were at; parents stand before children, 0 is the root.
    pub(super) parent: Vec<u32>,
    /// The spot each path ends at.
    pub(super) spot: Vec<u32>,
    /// A row and one of its lines.
    pub(super) row_of_spot: Vec<u32>,
    pub(super) line_of_spot: Vec<u32>,
    /// A path of functions; its parent stands before it, 0 is the root.
    pub(super) parent_row: Vec<u32>,
    pub(super) function_of_row: Vec<u32>,
    /// The path that each stack is.
    pub(super) of_stack: Vec<u32>,
    /// Whether each stack is longer than its path.
    pub(super) is_cut: Vec<bool>,
}

/// The most paths a tree has: 2 million, about 180 bytes each. An hour of recording has some hundred thousand. A file of 66 KB can have
/// 32 million: 8,000 stacks of 4,096 frames that differ at the root.
pub(super) const PATHS_MAX: usize = 1 << 21;

impl Paths {
    /// Where there are more, the stacks with the most time have theirs, and of the others what was outermost.
    pub(super) fn new(recording: &Recording, frames: &StackFrames, paths_max: usize) -> Paths {
        let mut paths = Paths {
            parent: vec![0],
            spot: vec![0],
            row_of_spot: vec![0],
            line_of_spot: vec![0],
            parent_row: vec![0],
            function_of_row: vec![0],
            of_stack: vec![0; recording.stacks.len()],
            is_cut: vec![false; recording.stacks.len()],
        };
        let mut order: Vec<usize> = (0..recording.stacks.len()).collect();
        if frames.count(recording) > paths_max {
            let mut weights = vec![0; recording.stacks.len() + 1];
            let samples = recording.samples.iter().map(|sample| (sample.stack, sample.weight_nanos));
            let waits = recording.waits.iter().filter_map(|wait| Some((wait.stack?, wait.nanos())));
            for (stack, nanos, _) in per_stack(recording, samples.chain(waits)) {
                weights[stack.0 as usize] = nanos;
            }
            order.sort_by_key(|&stack| Reverse(weights[stack]));
        }
        let mut known: FastMap<(u32, u32, u32), u32> = FastMap::default();
        let mut spots: FastMap<(u32, u32), u32> = FastMap::default();
        let mut rows: FastMap<(u32, u32), u32> = FastMap::default();
        for number in order {
            let mut at = 0;
            for (function, line) in frames.of_stack(recording, recording.stacks[number].id).rev() {
                let next = paths.parent.len() as u32;
                let path = match known.entry((at, function as u32, line)) {
                    Entry::Occupied(path) => *path.get(),
                    Entry::Vacant(_) if paths.parent.len() >= paths_max => {
                        paths.is_cut[number] = true;
                        break;
                    }
                    Entry::Vacant(path) => *path.insert(next),
                };
                if path == next {
                    let above = paths.row_of_spot[paths.spot[at as usize] as usize];
                    let next_row = paths.parent_row.len() as u32;
                    let row = *rows.entry((above, function as u32)).or_insert(next_row);
                    if row == next_row {
                        paths.parent_row.push(above);
                        paths.function_of_row.push(function as u32);
                    }
                    let next_spot = paths.row_of_spot.len() as u32;
                    let spot = *spots.entry((row, line)).or_insert(next_spot);
                    if spot == next_spot {
                        paths.row_of_spot.push(row);
                        paths.line_of_spot.push(line);
                    }
                    paths.parent.push(at);
                    paths.spot.push(spot);
                }
                at = path;
            }
            paths.of_stack[number] = at;
        }
        paths
    }
}
