//! Flame graphs that the tests of both of their writers share.

use super::querier::{FlameGraph, FlameGraphDiff};

/// A function below the root that has all of the total.
pub(super) fn graph(function: &str, total: i64) -> FlameGraph {
    FlameGraph {
        names: vec!["total".to_owned(), function.to_owned()],
        levels: vec![vec![0, total, 0, 0], vec![0, total, total, 1]],
        total,
        max_self: total,
    }
}

/// Only the root: 5 on the left, 7 on the right.
pub(super) fn graph_diff() -> FlameGraphDiff {
    FlameGraphDiff {
        names: vec!["total".to_owned()],
        levels: vec![vec![0, 5, 0, 0, 7, 0, 0]],
        total: 12,
        max_self: 0,
        left_ticks: 5,
        right_ticks: 7,
    }
}
