//! Which functions each stack consists of, and how much lies on each stack.

use longpole_model::{FunctionId, Id, IdVec, LocationId, Recording, StackId};

/// The functions of each location of a recording, by their numbers, with their lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StackFrames {
    /// By location; functions of one location stand innermost first. Line 0 is unknown.
    pub(super) of_location: IdVec<LocationId, Vec<(FunctionId, u32)>>,
}

impl StackFrames {
    /// Functions of a stack, innermost first, each with the line that it was at, 0 where unknown.
    pub(super) fn of_stack<'a>(
        &'a self,
        recording: &'a Recording,
        stack: StackId,
    ) -> impl DoubleEndedIterator<Item = (FunctionId, u32)> + 'a {
        let locations = recording.stack(stack).map_or(&[][..], |s| &s.locations);
        locations.iter().flat_map(|&id| self.of_location.get(id).map_or(&[][..], |frames| frames)).copied()
    }

    /// How many frames all stacks of a recording have together.
    pub(super) fn count(&self, recording: &Recording) -> usize {
        let frames = |&id: &LocationId| self.of_location.get(id).map_or(0, |frames| frames.len());
        recording.stacks.iter().flat_map(|stack| &stack.locations).fold(0, |sum: usize, id| sum.saturating_add(frames(id)))
    }
}

/// Weight and number of samples per stack: stacks repeat, so what follows is done once for each. By number.
pub(super) fn per_stack(recording: &Recording, samples: impl Iterator<Item = (StackId, u64)>) -> Vec<(StackId, u64, u64)> {
    // The last one is all that the recording has no stack for.
    let unknown = recording.stacks.len();
    let mut sums = vec![(0u64, 0u64); unknown + 1];
    for (stack, weight) in samples {
        let sum = &mut sums[stack.place().min(unknown)];
        sum.0 = sum.0.saturating_add(weight);
        sum.1 += 1;
    }
    let seen = sums.into_iter().enumerate().filter(|(_, (_, count))| *count > 0);
    seen.map(|(stack, (weight, count))| (StackId::at(stack), weight, count)).collect()
}
