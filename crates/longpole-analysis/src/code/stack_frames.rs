//! Which functions each stack consists of, and how much lies on each stack.

use longpole_model::{Recording, StackId};

/// The functions of each location of a recording, by their numbers, with their lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StackFrames {
    /// By location; functions of one location stand innermost first. Line 0 is unknown.
    pub(super) of_location: Vec<Vec<(u32, u32)>>,
}

impl StackFrames {
    /// Functions of a stack, innermost first, each with the line that it was at, 0 where unknown.
    pub(super) fn of_stack<'a>(&'a self, recording: &'a Recording, stack: StackId) -> impl DoubleEndedIterator<Item = (usize, u32)> + 'a {
        let locations = recording.stacks.get(stack.0 as usize).map_or(&[][..], |s| &s.locations);
        let of = |id: &longpole_model::LocationId| self.of_location.get(id.0 as usize).map_or(&[][..], |f| f);
        locations.iter().flat_map(move |id| of(id).iter().map(|&(function, line)| (function as usize, line)))
    }

    /// How many frames all stacks of a recording have together.
    pub(super) fn count(&self, recording: &Recording) -> usize {
        let frames = |id: &longpole_model::LocationId| self.of_location.get(id.0 as usize).map_or(0, |frames| frames.len());
        recording.stacks.iter().flat_map(|stack| &stack.locations).fold(0, |sum: usize, id| sum.saturating_add(frames(id)))
    }
}

/// Weight and number of samples per stack: stacks repeat, so what follows is done once for each. By number.
pub(super) fn per_stack(recording: &Recording, samples: impl Iterator<Item = (StackId, u64)>) -> Vec<(StackId, u64, u64)> {
    // The last one is all that the recording has no stack for.
    let unknown = recording.stacks.len();
    let mut sums = vec![(0u64, 0u64); unknown + 1];
    for (stack, weight) in samples {
        let sum = &mut sums[(stack.0 as usize).min(unknown)];
        sum.0 = sum.0.saturating_add(weight);
        sum.1 += 1;
    }
    let seen = sums.into_iter().enumerate().filter(|(_, (_, count))| *count > 0);
    seen.map(|(stack, (weight, count))| (StackId(stack as u32), weight, count)).collect()
}
