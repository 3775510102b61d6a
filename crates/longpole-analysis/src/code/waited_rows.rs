//! Which part of each row of a call tree is waits, and what most of them were for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use longpole_model::{Id, IdVec, Recording, StackId, WaitKind};

use crate::code::call_tree::CallTree;
use crate::code::functions::Functions;
use crate::code::paths::{PathId, RowId};

/// The waits of a call tree, by its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitedRows {
    /// What the tree waited for, with its weight, longest first.
    pub kinds: Vec<(WaitKind, u64)>,
    /// Weight of the waits that pass each row.
    pub nanos: Vec<u64>,
    /// The place in `kinds` of what most of them were for; `None` where no wait passes.
    pub kind: Vec<Option<usize>>,
}

impl WaitedRows {
    /// The waits of a tree, which are among the stacks that it was made of.
    pub fn new(
        recording: &Recording,
        functions: &Functions,
        tree: &CallTree,
        waits: impl Iterator<Item = (StackId, WaitKind, u64)>,
    ) -> WaitedRows {
        let paths = functions.paths(recording);
        let mut by_kind: BTreeMap<WaitKind, IdVec<RowId, u64>> = BTreeMap::new();
        for (stack, kind, nanos) in waits {
            let sums = by_kind.entry(kind).or_insert_with(|| IdVec::filled(0, paths.parent_row.len()));
            let path = paths.of_stack.get(stack).copied().unwrap_or(PathId::at(0));
            let sum = &mut sums[paths.row_of_spot[paths.spot[path]]];
            *sum = sum.saturating_add(nanos);
        }
        // Children stand behind their parents.
        for sums in by_kind.values_mut() {
            for row in sums.ids().rev() {
                let nanos = sums[row];
                if let Some(parent) = paths.parent_row[row] {
                    sums[parent] = sums[parent].saturating_add(nanos);
                }
            }
        }
        let mut kinds: Vec<(WaitKind, IdVec<RowId, u64>)> = by_kind.into_iter().collect();
        kinds.sort_by_key(|(kind, sums)| (Reverse(sums[RowId::at(0)]), *kind));
        let mut waited = WaitedRows { nanos: vec![0; tree.len()], kind: vec![None; tree.len()], ..WaitedRows::default() };
        let mut longest = vec![0; tree.len()];
        for (place, (kind, sums)) in kinds.into_iter().enumerate() {
            waited.kinds.push((kind, sums[RowId::at(0)]));
            for (here, &row) in tree.rows.iter().enumerate() {
                let nanos = sums[row];
                waited.nanos[here] = waited.nanos[here].saturating_add(nanos);
                if nanos > longest[here] {
                    longest[here] = nanos;
                    waited.kind[here] = Some(place);
                }
            }
        }
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    #[test]
    fn a_row_has_the_waits_that_pass_it_and_what_most_of_them_were_for() {
        let recording = text::parse(
            "\
run x 0..100ms
wait 10..40ms pid 1 disk main;load;fsync
wait 40..60ms pid 1 lock main;load;take
wait 60..85ms pid 1 lock main;store
sample 90ms x5 pid 1 main;load
",
        )
        .unwrap();
        let functions = Functions::new(&recording);
        let waits = || recording.waits.iter().filter_map(|wait| Some((wait.stack?, wait.kind, wait.nanos())));
        let samples = recording.samples.iter().map(|sample| (sample.stack, sample.weight_nanos));
        let tree = CallTree::new(&recording, &functions, samples.chain(waits().map(|(stack, _, nanos)| (stack, nanos))));
        let waited = WaitedRows::new(&recording, &functions, &tree, waits());
        let millis = |nanos: u64| nanos / 1_000_000;
        let kinds: Vec<(WaitKind, u64)> = waited.kinds.iter().map(|&(kind, nanos)| (kind, millis(nanos))).collect();
        assert_eq!(kinds, [(WaitKind::Lock, 45), (WaitKind::Disk, 30)]);
        let rows: Vec<(&str, u64, u64, Option<WaitKind>)> = (0..tree.len())
            .map(|row| {
                let name = tree.function[row].map_or("all", |function| functions.list[function].function.as_str());
                let kind = waited.kind[row].map(|place| waited.kinds[place].0);
                (name, millis(tree.total_nanos[row]), millis(waited.nanos[row]), kind)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("all", 80, 75, Some(WaitKind::Lock)),
                ("main", 80, 75, Some(WaitKind::Lock)),
                ("load", 55, 50, Some(WaitKind::Disk)),
                ("fsync", 30, 30, Some(WaitKind::Disk)),
                ("take", 20, 20, Some(WaitKind::Lock)),
                ("store", 25, 25, Some(WaitKind::Lock)),
            ]
        );
        let ran = WaitedRows::new(&recording, &functions, &tree, std::iter::empty());
        assert_eq!((ran.kinds.len(), ran.nanos.iter().sum::<u64>(), ran.kind.iter().flatten().count()), (0, 0, 0));
    }
}
