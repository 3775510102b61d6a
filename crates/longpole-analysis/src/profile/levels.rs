//! A tree of calls as levels of bars, as flame graphs of Pyroscope are sent.
//!
//! ```text
//! level 0   total 46                 0 46 0 0             distance from the bar before, total, own, number of the name
//! level 1    main 46                 0 46 10 1
//! level 2     handle 36              0 36 0 2
//! level 3      parse 31, render 5    0 31 31 3   0 5 5 4
//! ```

use std::collections::HashMap;

use super::tree::ProfileTree;

/// Bars by level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Levels {
    /// Names by number; the first is `total`.
    pub names: Vec<String>,
    /// Bars of each level, the root first. A bar of one tree is four numbers: the distance from the end of the bar before it, total, own, and the
    /// number of its name. A bar of two trees is seven: the first three of each tree, then the number.
    pub bars: Vec<Vec<i64>>,
    /// The most that a bar had itself.
    pub own_max: i64,
}

/// Gives names their numbers.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, i64>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> i64 {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let next = i64::try_from(self.names.len()).unwrap_or(i64::MAX);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), next);
        next
    }
}

/// Where the next bar of each level begins, and where the last one of it ended.
#[derive(Default)]
struct BarPlaces {
    next: Vec<i64>,
    ended: Vec<i64>,
}

impl BarPlaces {
    /// The distance of a bar from the one before it on its level. Its children begin where it does.
    fn distance(&mut self, depth: usize, total: i64) -> i64 {
        self.next.resize(self.next.len().max(depth + 2), 0);
        self.ended.resize(self.ended.len().max(depth + 1), 0);
        let begins = self.next[depth];
        let distance = begins.saturating_sub(self.ended[depth]);
        self.next[depth + 1] = begins;
        self.next[depth] = begins.saturating_add(total);
        self.ended[depth] = self.next[depth];
        distance
    }
}

impl Levels {
    /// Those of a tree.
    pub fn of(tree: &ProfileTree) -> Levels {
        let (mut names, mut places, mut levels) = (Names::default(), BarPlaces::default(), Levels::default());
        for node in tree.nodes() {
            let bar = [places.distance(node.depth, node.total), node.total, node.own, names.number(node.name)];
            levels.push(node.depth, &bar);
            levels.own_max = levels.own_max.max(node.own);
        }
        levels.names = names.names;
        levels
    }

    /// Those of two trees in one: a function that only one of them has is there with nothing in the other.
    pub fn of_two(left: &ProfileTree, right: &ProfileTree) -> Levels {
        let (mut names, mut levels) = (Names::default(), Levels::default());
        let mut places = [BarPlaces::default(), BarPlaces::default()];
        for node in left.beside(right) {
            let mut bar = Vec::with_capacity(7);
            for ((total, own), places) in node.sides.into_iter().zip(&mut places) {
                bar.extend([places.distance(node.depth, total), total, own]);
                levels.own_max = levels.own_max.max(own);
            }
            bar.push(names.number(&node.name));
            levels.push(node.depth, &bar);
        }
        levels.names = names.names;
        levels
    }

    fn push(&mut self, depth: usize, bar: &[i64]) {
        self.bars.resize(self.bars.len().max(depth + 1), Vec::new());
        self.bars[depth].extend_from_slice(bar);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn bars_stand_below_what_called_them() {
        let levels = Levels::of(&tree(&[("main;handle;parse", 31), ("main;handle;render", 5), ("main", 10), ("init;parse", 2)]));
        assert_eq!(levels.names, ["total", "init", "parse", "main", "handle", "render"]);
        let expected: [&[i64]; 4] = [&[0, 48, 0, 0], &[0, 2, 0, 1, 0, 46, 10, 3], &[0, 2, 2, 2, 0, 36, 0, 4], &[2, 31, 31, 2, 0, 5, 5, 5]];
        assert_eq!(levels.bars, expected);
        assert_eq!(levels.own_max, 31);
    }

    #[test]
    fn two_trees_have_the_bars_of_both() {
        let levels = Levels::of_two(&tree(&[("main;parse", 3), ("main;trim", 1)]), &tree(&[("main;parse", 5), ("init", 2)]));
        assert_eq!(levels.names, ["total", "init", "main", "parse", "trim"]);
        let expected: [&[i64]; 3] =
            [&[0, 4, 0, 0, 7, 0, 0], &[0, 0, 0, 0, 2, 2, 1, 0, 4, 0, 0, 5, 0, 2], &[0, 3, 3, 2, 5, 5, 3, 0, 1, 1, 0, 0, 0, 4]];
        assert_eq!(levels.bars, expected);
    }
}
