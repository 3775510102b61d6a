//! The function to name for some samples, when one has to be named.

use std::cmp::Reverse;

use longpole_model::fast_hash::FastMap;
use longpole_model::{FunctionId, Recording, StackId};

use crate::code::call_tree::CallTree;
use crate::code::functions::Functions;
use crate::code::origin::CodeOrigin;

/// The function to name for some samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// One of the program's own code, where there is one.
    pub function: FunctionId,
    /// The function of a library, or of the language, that is called there and holds most of it.
    pub mostly_in: Option<FunctionId>,
}

/// The function to name for samples with these stacks: the one that holds half of them ([`CallTree::hot_function`]) where it is the
/// program's own; else the one of the program's own in which half of them are, in what it calls of others. `None` where they are spread.
pub(crate) fn named<I: Iterator<Item = (StackId, u64)>>(
    recording: &Recording,
    functions: &Functions,
    stacks: impl Fn() -> I,
) -> Option<Named> {
    let hot = CallTree::new(recording, functions, stacks()).hot_function(functions);
    if let Some(hot) = hot.filter(|&hot| functions.list[hot].whose == CodeOrigin::Program) {
        return Some(Named { function: hot, mostly_in: None });
    }
    // For each function of the program: the time in it, and the part of that in the hot one as well.
    let mut sums: FastMap<FunctionId, (u64, u64)> = FastMap::default();
    let (mut all, mut in_own) = (0u64, 0u64);
    for (stack, nanos) in stacks() {
        all = all.saturating_add(nanos);
        let Some((own, _)) = functions.own_of_stack(recording, stack) else { continue };
        in_own = in_own.saturating_add(nanos);
        let sum = sums.entry(own).or_default();
        sum.0 = sum.0.saturating_add(nanos);
        let mut below = functions.of_stack(recording, stack).take_while(|function| *function != own);
        if below.any(|function| Some(function) == hot) {
            sum.1 = sum.1.saturating_add(nanos);
        }
    }
    let most = sums.into_iter().max_by_key(|(own, (nanos, _))| (*nanos, Reverse(*own)));
    if let Some((own, (nanos, in_hot))) = most.filter(|(_, (nanos, _))| *nanos > 0 && nanos.saturating_mul(2) >= all) {
        return Some(Named { function: own, mostly_in: hot.filter(|_| in_hot.saturating_mul(2) >= nanos) });
    }
    hot.filter(|_| in_own.saturating_mul(2) < all).map(|function| Named { function, mostly_in: None })
}
