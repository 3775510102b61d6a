//! Two sums of profiles side by side, each as parts of its whole: two ranges of time, two versions, slow requests beside the rest.

use std::collections::BTreeMap;

use longpole_model::Text;

use super::tree::{FunctionSum, ProfileTree};

/// A function in both.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionChange {
    /// Its name.
    pub function: Text,
    /// How much it had in each: with what it called.
    pub totals: [i64; 2],
    /// Itself.
    pub owns: [i64; 2],
    /// Its own part of the whole in each, from 0 to 1.
    pub shares: [f64; 2],
}

impl FunctionChange {
    /// How much larger its own part of the whole is in the second.
    pub fn share_change(&self) -> f64 {
        self.shares[1] - self.shares[0]
    }
}

/// Both, function by function.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileDiff {
    /// How much each had.
    pub totals: [i64; 2],
    /// Every function, the one whose own part of the whole changed most first.
    pub functions: Vec<FunctionChange>,
}

/// The part of a whole; none of nothing.
fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl ProfileDiff {
    /// Compares two trees.
    pub fn new(before: &ProfileTree, after: &ProfileTree) -> ProfileDiff {
        ProfileDiff::of_sums([before.total(), after.total()], [before.functions(), after.functions()])
    }

    /// Compares functions; those of one name are one. `totals` are the wholes.
    pub fn of_sums(totals: [i64; 2], sides: [Vec<FunctionSum>; 2]) -> ProfileDiff {
        // With what it called, and itself, in each.
        let mut sums: BTreeMap<Text, [(i64, i64); 2]> = BTreeMap::new();
        for (which, functions) in sides.into_iter().enumerate() {
            for FunctionSum { function, total, own, .. } in functions {
                let sum = &mut sums.entry(function).or_default()[which];
                *sum = (sum.0.saturating_add(total), sum.1.saturating_add(own));
            }
        }
        let change = |(function, sides): (Text, [(i64, i64); 2])| FunctionChange {
            function,
            totals: sides.map(|(total, _)| total),
            owns: sides.map(|(_, own)| own),
            shares: [share(sides[0].1, totals[0]), share(sides[1].1, totals[1])],
        };
        let mut functions: Vec<FunctionChange> = sums.into_iter().map(change).collect();
        // By name among equals: the map has that order, and the sort keeps it.
        functions.sort_by(|a, b| b.share_change().abs().total_cmp(&a.share_change().abs()));
        ProfileDiff { totals, functions }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn functions_are_compared_by_their_part_of_the_whole() {
        let diff = ProfileDiff::new(
            &tree(&[("main;parse", 50), ("main;render", 50)]),
            &tree(&[("main;parse", 150), ("main;render", 25), ("main;trim", 25)]),
        );
        let changes: Vec<(&str, f64)> = diff.functions.iter().map(|it| (it.function.as_str(), it.share_change())).collect();
        assert_eq!(changes, [("render", -0.375), ("parse", 0.25), ("trim", 0.125), ("main", 0.0)]);
        assert_eq!(diff.totals, [100, 200]);
    }

    #[test]
    fn nothing_beside_nothing_is_no_change() {
        assert_eq!(ProfileDiff::new(&tree(&[]), &tree(&[])), ProfileDiff { totals: [0, 0], functions: Vec::new() });
    }
}
