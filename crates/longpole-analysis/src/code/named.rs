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

/// The function to name for samples with these stacks: the one of the program's own in which half of them are, in what it calls of others, from
/// however many places it is called; else the one that holds half of them ([`CallTree::hot_function`]). `None` where they are spread.
pub(crate) fn named<I: Iterator<Item = (StackId, u64)>>(
    recording: &Recording,
    functions: &Functions,
    stacks: impl Fn() -> I,
) -> Option<Named> {
    let hot = CallTree::new(recording, functions, stacks()).hot_function(functions);
    let is_own = |function: &FunctionId| functions.list[*function].whose == CodeOrigin::Program;
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
        let mostly_in = hot.filter(|_| in_hot.saturating_mul(2) >= nanos);
        return Some(match mostly_in.filter(is_own) {
            Some(function) => Named { function, mostly_in: None },
            None => Named { function: own, mostly_in },
        });
    }
    hot.filter(|hot| is_own(hot) || in_own.saturating_mul(2) < all).map(|function| Named { function, mostly_in: None })
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    #[test]
    fn what_recursive_callers_call_is_named_before_them() {
        let rows = "run x 0..100ms\nsample 0ms x30 pid 1 tid 1 main;merge;compare\nsample 30ms x30 pid 1 tid 1 main;merge;merge;compare\n";
        let recording = text::parse(&format!("{rows}sample 60ms x30 pid 1 tid 1 main;merge;merge\n")).unwrap();
        let functions = Functions::new(&recording);
        let stacks = || recording.samples.iter().map(|sample| (sample.stack, sample.weight_nanos));
        let named = named(&recording, &functions, stacks).unwrap();
        assert_eq!((&*functions.list[named.function].function, named.mostly_in), ("compare", None));
    }
}
