//! The function to name for some samples, when one has to be named.

use std::cmp::Reverse;

use longpole_model::fast_hash::FastMap;
use longpole_model::stack::Runtime;
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

/// A function of an interpreter is named if it spends this part of its time itself.
const OWN_PART: u64 = 4;

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
        // Half of this function need not be half of all.
        let mostly_in = mostly_in.or_else(|| most_below(recording, functions, stacks(), own, nanos));
        return Some(match mostly_in.filter(is_own) {
            Some(function) => Named { function, mostly_in: None },
            None => Named { function: own, mostly_in },
        });
    }
    let tells = |hot: &FunctionId| in_own.saturating_mul(2) < all && !only_calls(recording, functions, stacks(), *hot);
    hot.filter(|hot| is_own(hot) || tells(hot)).map(|function| Named { function, mostly_in: None })
}

/// Whether a function is one of an interpreter's own that hardly does anything but call others, as `node::Start` does: what it calls is spread.
fn only_calls(recording: &Recording, functions: &Functions, stacks: impl Iterator<Item = (StackId, u64)>, function: FunctionId) -> bool {
    let it = &functions.list[function];
    if it.runtime.is_some() || matches!(it.whose, CodeOrigin::Program | CodeOrigin::Library) {
        return false;
    }
    let (mut total, mut own) = (0u64, 0u64);
    for (stack, nanos) in stacks {
        let mut of_stack = functions.of_stack(recording, stack);
        if of_stack.next() == Some(function) {
            own = own.saturating_add(nanos);
            total = total.saturating_add(nanos);
        } else if of_stack.any(|other| other == function) {
            total = total.saturating_add(nanos);
        }
    }
    own.saturating_mul(OWN_PART) < total
}

/// The innermost function that is called in this one, `own` of the program, and holds half of its time, from however many places it is called.
/// What the program has the kernel do is its own doing.
fn most_below(
    recording: &Recording,
    functions: &Functions,
    stacks: impl Iterator<Item = (StackId, u64)>,
    own: FunctionId,
    nanos: u64,
) -> Option<FunctionId> {
    let mut sums: FastMap<FunctionId, u64> = FastMap::default();
    let mut seen: Vec<FunctionId> = Vec::new();
    for (stack, nanos) in stacks {
        if functions.own_of_stack(recording, stack).is_none_or(|(function, _)| function != own) {
            continue;
        }
        seen.clear();
        for function in functions.of_stack(recording, stack).take_while(|function| *function != own) {
            // A recursive function is in a stack several times.
            if functions.list[function].runtime != Some(Runtime::Kernel) && !seen.contains(&function) {
                seen.push(function);
                let sum = sums.entry(function).or_default();
                *sum = sum.saturating_add(nanos);
            }
        }
    }
    // What a function calls has no more time than it has itself.
    let halves = sums.into_iter().filter(|(_, sum)| *sum > 0 && sum.saturating_mul(2) >= nanos);
    halves.min_by_key(|(function, sum)| (*sum, *function)).map(|(function, _)| function)
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    #[test]
    fn the_library_function_holds_half_of_the_named_one_and_not_of_all() {
        let rows = "run x 0..100ms\nsample 0ms x22 pid 1 tid 1 main;merge;std::compare\nsample 22ms x23 pid 1 tid 1 main;merge;merge;std::compare\n\
                    sample 45ms x25 pid 1 tid 1 main;merge\n";
        let recording = text::parse(&format!("{rows}sample 70ms x30 pid 1 tid 1 main;read\n")).unwrap();
        let functions = Functions::new(&recording);
        let stacks = || recording.samples.iter().map(|sample| (sample.stack, sample.weight_nanos));
        let named = named(&recording, &functions, stacks).unwrap();
        let name = |function| &*functions.list[function].function;
        assert_eq!((name(named.function), named.mostly_in.map(name)), ("merge", Some("std::compare")));
    }

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
