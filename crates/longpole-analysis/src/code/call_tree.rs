//! The call tree of a selection of samples or waits, with weights.

use std::cmp::Reverse;

use longpole_model::{FunctionId, Id, IdVec, Recording, Runtime, StackId};

use crate::code::functions::Functions;
use crate::code::paths::{PathId, RowId, SpotId};
use crate::code::stack_frames::per_stack;
use crate::lists::Lists;

/// The calls in a selection of samples: columns in pre-order. Row 0 is the root and stands for all samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTree {
    /// Row of the caller; `None` for the root.
    pub parent: Vec<Option<usize>>,
    /// Levels below the root.
    pub depth: Vec<u32>,
    /// Index in [`Functions::list`]; `None` for the root.
    pub function: Vec<Option<FunctionId>>,
    /// The line with the most weight among those that the function was at here, 0 where unknown.
    pub line: Vec<u32>,
    /// Where the box starts: the parent's, plus what its elder siblings weigh.
    pub offset_nanos: Vec<u64>,
    /// Weight of the samples that pass here.
    pub total_nanos: Vec<u64>,
    /// Weight of the samples that end here.
    pub self_nanos: Vec<u64>,
    /// Number of samples.
    pub samples: u64,
    /// Samples counted in a row above their own, because the tree had no room for the rest of their stack.
    pub cut: u64,
    /// What each row is among the paths of the recording.
    pub(super) rows: Vec<RowId>,
}

/// A callee holds at least this share of the samples for the answer to go on into it.
const HOT_SHARE_PERCENT: u64 = 50;

/// A function with this share of its time in the kernel only asks it to do something.
const ASKS_PERCENT: u64 = 90;

impl CallTree {
    /// The tree of these samples. Children stand by total, largest first, then by function.
    pub fn new(recording: &Recording, functions: &Functions, samples: impl Iterator<Item = (StackId, u64)>) -> CallTree {
        let paths = functions.paths(recording);
        let rows = paths.parent_row.len();
        let add = |sum: &mut u64, nanos: u64| *sum = sum.saturating_add(nanos);
        let mut on_path: IdVec<PathId, u64> = IdVec::filled(0, paths.parent.len());
        let mut is_there: IdVec<RowId, bool> = IdVec::filled(false, rows);
        let mut own: IdVec<RowId, u64> = IdVec::filled(0, rows);
        let (mut count, mut cut) = (0, 0);
        for (stack, nanos, samples) in per_stack(recording, samples) {
            let path = paths.of_stack.get(stack).copied().unwrap_or(PathId::at(0));
            let row = paths.row_of_spot[paths.spot[path]];
            add(&mut on_path[path], nanos);
            add(&mut own[row], nanos);
            is_there[row] = true;
            count += samples;
            cut += if paths.is_cut.get(stack) == Some(&true) { samples } else { 0 };
        }
        // Children stand behind their parents.
        let mut on_spot: IdVec<SpotId, u64> = IdVec::filled(0, paths.row_of_spot.len());
        for path in on_path.ids().rev() {
            let nanos = on_path[path];
            add(&mut on_spot[paths.spot[path]], nanos);
            if let Some(parent) = paths.parent[path] {
                add(&mut on_path[parent], nanos);
            }
        }
        let mut total: IdVec<RowId, u64> = IdVec::filled(0, rows);
        let mut best: IdVec<RowId, (u64, Reverse<u32>)> = IdVec::filled((0, Reverse(0)), rows);
        for (spot, &nanos) in on_spot.enumerated() {
            let (row, line) = (paths.row_of_spot[spot], paths.line_of_spot[spot]);
            add(&mut total[row], nanos);
            if line > 0 && nanos > 0 {
                best[row] = best[row].max((nanos, Reverse(line)));
            }
        }
        for (row, parent) in paths.parent_row.enumerated().rev() {
            if let Some(parent) = *parent {
                is_there[parent] |= is_there[row];
            }
        }
        // The children of each row that are in the selection, by weight; then rows in pre-order.
        let there = paths.parent_row.enumerated().filter(|(row, _)| is_there[*row]);
        let mut children = Lists::group(rows, there.filter_map(|(row, parent)| Some(((*parent)?, row))));
        for row in total.ids() {
            children.get_mut(row).sort_unstable_by_key(|&child| (Reverse(total[child]), paths.function_of_row[child]));
        }
        let mut tree = CallTree { samples: count, cut, ..CallTree::default() };
        let mut stack = vec![(RowId::at(0), None, 0u32, 0u64)];
        while let Some((row, above, depth, offset)) = stack.pop() {
            let here = tree.parent.len();
            tree.rows.push(row);
            tree.parent.push(above);
            tree.depth.push(depth);
            tree.function.push(paths.function_of_row[row]);
            tree.line.push(best[row].1.0);
            tree.offset_nanos.push(offset);
            tree.total_nanos.push(total[row]);
            tree.self_nanos.push(own[row]);
            let mut after = offset;
            let first = stack.len();
            for &child in children.get(row) {
                stack.push((child, Some(here), depth + 1, after));
                after = after.saturating_add(total[child]);
            }
            stack[first..].reverse();
        }
        tree
    }

    /// Number of rows; the root alone is one.
    #[allow(clippy::len_without_is_empty, reason = "a tree has its root, always")]
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// The function to name when one has to be named: from the root down along the heaviest callee as long as that holds at
    /// least half of all samples. It is one of the program: what it has the kernel do is its own doing, and what does nothing but
    /// ask the kernel (`read`) says less than its caller. `None` where even the first level is split.
    pub fn hot_function(&self, functions: &Functions) -> Option<FunctionId> {
        let all = *self.total_nanos.first()?;
        let mut hot = None;
        // In pre-order the heaviest child of a row is the row after it.
        for row in 1..self.len() {
            let heavy = self.total_nanos[row] > 0 && self.total_nanos[row].saturating_mul(100) >= all.saturating_mul(HOT_SHARE_PERCENT);
            if self.parent[row] != Some(row - 1) || !heavy {
                break;
            }
            let in_kernel = self.function[row].is_some_and(|f| functions.list[f].runtime == Some(Runtime::Kernel));
            if in_kernel && hot.is_some() {
                let asks_only = self.total_nanos[row].saturating_mul(100) >= self.total_nanos[row - 1].saturating_mul(ASKS_PERCENT);
                let caller = self.parent[row - 1].and_then(|caller| self.function[caller]);
                return if asks_only { caller.or(hot) } else { hot };
            }
            hot = self.function[row];
        }
        hot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::stack::LocationKind;
    use longpole_model::text;

    fn all(recording: &Recording) -> impl Iterator<Item = (StackId, u64)> + '_ {
        recording.samples.iter().map(|s| (s.stack, s.weight_nanos))
    }

    #[test]
    fn where_there_are_too_many_paths_the_stacks_with_the_most_time_have_theirs() {
        let recording = text::parse(
            "\
run x 0..100ms
sample 1ms pid 1 tid 1 [-] main;a;b
sample 2ms pid 1 tid 1 [-] main;c;d
sample 3ms pid 1 tid 1 [-] main;c;d
sample 4ms pid 1 tid 1 [-] other
",
        )
        .unwrap();
        // The root, and three more.
        let functions = Functions::new(&recording);
        functions.limit_paths(&recording, 4);
        let tree = CallTree::new(&recording, &functions, all(&recording));
        let rows: Vec<(&str, u64)> = (1..tree.len())
            .map(|row| (functions.list[tree.function[row].unwrap()].function.as_str(), tree.self_nanos[row] / 1_000_000))
            .collect();
        assert_eq!(rows, [("main", 1), ("c", 0), ("d", 2)]);
        // `a;b` ends in `main`, and `other` in all.
        assert_eq!((tree.cut, tree.samples, tree.total_nanos[0], tree.self_nanos[0]), (2, 4, 4_000_000, 1_000_000));
    }

    fn printed(recording: &Recording) -> String {
        let functions = Functions::new(recording);
        let tree = CallTree::new(recording, &functions, all(recording));
        let mut out = String::new();
        for row in 0..tree.len() {
            let name = tree.function[row].map_or("all", |f| functions.list[f].function.as_str());
            let millis = |nanos: u64| nanos / 1_000_000;
            out.push_str(&format!(
                "{}{name} {}..{} self {}\n",
                "  ".repeat(tree.depth[row] as usize),
                millis(tree.offset_nanos[row]),
                millis(tree.offset_nanos[row] + tree.total_nanos[row]),
                millis(tree.self_nanos[row])
            ));
        }
        out
    }

    #[test]
    fn stacks_become_a_tree_with_the_heaviest_first() {
        let recording =
            text::parse("sample 0ms x2 main;parse\nsample 2ms x5 main;compress|hash\nsample 7ms main;compress\nsample 8ms x2 idle\n")
                .unwrap();
        assert_eq!(
            printed(&recording),
            "\
all 0..10 self 0
  main 0..8 self 0
    compress 0..6 self 1
      hash 0..5 self 5
    parse 6..8 self 2
  idle 8..10 self 2
"
        );
    }

    #[test]
    fn the_hot_function_is_the_last_that_holds_half_of_the_samples() {
        let hot = |text: &str| {
            let recording = text::parse(text).unwrap();
            let functions = Functions::new(&recording);
            let tree = CallTree::new(&recording, &functions, all(&recording));
            tree.hot_function(&functions).map(|f| functions.list[f].function.clone())
        };
        assert_eq!(hot("sample 0ms x6 main;burn;mul\nsample 6ms x5 main;burn;add\nsample 11ms x1 main\n").as_deref(), Some("mul"));
        assert_eq!(hot("sample 0ms x3 main;burn;mul\nsample 3ms x3 main;burn;add\nsample 6ms x3 main;burn\n").as_deref(), Some("burn"));
        assert_eq!(hot("sample 0ms a\nsample 1ms b\nsample 2ms c\n"), None);
        assert_eq!(hot("a 0..1ms"), None);
        let in_kernel = |text: &str| {
            let mut recording = text::parse(text).unwrap();
            for location in recording.locations.iter_mut().filter(|location| location.frames[0].function.starts_with("k_")) {
                location.kind = LocationKind::Named { runtime: Runtime::Kernel, address: None };
            }
            let functions = Functions::new(&recording);
            let tree = CallTree::new(&recording, &functions, all(&recording));
            tree.hot_function(&functions).map(|f| functions.list[f].function.clone())
        };
        assert_eq!(in_kernel("sample 0ms x9 main;fill;read;k_read;k_copy\n").as_deref(), Some("fill"));
        assert_eq!(in_kernel("sample 0ms x6 main;fill;k_fault\nsample 6ms x3 main;fill\n").as_deref(), Some("fill"));
        assert_eq!(in_kernel("sample 0ms x6 k_exec;k_map\n").as_deref(), Some("k_exec"));
    }
}
