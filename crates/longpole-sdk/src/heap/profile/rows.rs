//! Samples with the same stack and the same span become one row, each sample with its weight.

use std::collections::BTreeMap;

use super::super::recorder::{self, Allocated, HeapSample};
use crate::span_context::ContextWords;

/// A row of the profile: estimates, rounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeapRow {
    pub(super) stack: u32,
    pub(super) span: Span,
    /// `alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space`.
    pub(super) values: [i64; 4],
}

/// The span of a row; all zero for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Span {
    pub(super) trace_id: [u64; 2],
    pub(super) span_id: u64,
    pub(super) name: u32,
}

impl Span {
    fn of(sample: &HeapSample) -> Self {
        let ContextWords { trace_id, span_id, tail } = sample.context;
        if tail == 0 { Span::default() } else { Span { trace_id, span_id, name: sample.name } }
    }
}

/// The rows of a profile. `allocated` are those samples of `totals` whose span is known, as far as there are any; what `totals` has beyond them is in
/// rows without a span. So the sums by stack are always those of `totals`.
pub(super) fn add_up(live: &[HeapSample], allocated: &[HeapSample], totals: &[Allocated], rate: u64) -> Vec<HeapRow> {
    let mut sums: BTreeMap<(u32, Span), [f64; 4]> = BTreeMap::new();
    let mut rest = totals.to_vec();
    let estimate = |sample: &HeapSample| {
        let objects = recorder::objects(sample.bytes, rate);
        [objects, objects * sample.bytes as f64]
    };
    for sample in allocated {
        let [objects, bytes] = estimate(sample);
        if let Some(rest) = rest.get_mut(sample.stack as usize) {
            rest.objects -= objects;
            rest.bytes -= bytes;
        }
        let sum = sums.entry((sample.stack, Span::of(sample))).or_default();
        sum[0] += objects;
        sum[1] += bytes;
    }
    for sample in live {
        let [objects, bytes] = estimate(sample);
        let sum = sums.entry((sample.stack, Span::of(sample))).or_default();
        sum[2] += objects;
        sum[3] += bytes;
    }
    for (stack, rest) in (0..).zip(&rest) {
        // Less than half an object is what the additions of fractions left behind.
        if rest.objects > 0.5 {
            let sum = sums.entry((stack, Span::default())).or_default();
            sum[0] += rest.objects;
            sum[1] += rest.bytes;
        }
    }
    let rows = sums.into_iter().map(|((stack, span), sum)| HeapRow { stack, span, values: sum.map(|value| value.round() as i64) });
    rows.collect()
}

/// What was allocated since `before`.
pub(super) fn difference(totals: &[Allocated], before: &[Allocated]) -> Vec<Allocated> {
    let before = before.iter().copied().chain(std::iter::repeat(Allocated::default()));
    let since =
        |(now, before): (&Allocated, Allocated)| Allocated { objects: now.objects - before.objects, bytes: now.bytes - before.bytes };
    totals.iter().zip(before).map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: u64 = 1;

    fn sample(stack: u32, span_id: u64, bytes: usize) -> HeapSample {
        HeapSample { bytes, stack, name: 0, context: ContextWords { trace_id: [7, 7], span_id, tail: u64::from(span_id > 0) } }
    }

    fn total(objects: f64, bytes: f64) -> Allocated {
        Allocated { objects, bytes }
    }

    /// With a rate of 1 byte each sample stands for itself.
    #[test]
    fn spans_are_kept_apart_and_the_rest_counts_by_stack() {
        let live = [sample(1, 8, 100), sample(1, 8, 50), sample(1, 9, 10), sample(2, 0, 5)];
        let totals = [total(0.0, 0.0), total(5.0, 460.0), total(1.0, 5.0)];
        let shown: Vec<String> = add_up(&live, &live, &totals, WHOLE)
            .iter()
            .map(|row| format!("{}/{}: {:?}", row.stack, row.span.span_id, row.values))
            .collect();
        assert_eq!(shown, ["1/0: [2, 300, 0, 0]", "1/8: [2, 150, 2, 150]", "1/9: [1, 10, 1, 10]", "2/0: [1, 5, 1, 5]"]);
    }

    #[test]
    fn an_interval_has_what_came_in_it() {
        let before = [total(1.0, 10.0), total(2.0, 20.0)];
        let now = [total(1.0, 10.0), total(2.5, 25.0), total(4.0, 40.0)];
        assert_eq!(difference(&now, &before), [total(0.0, 0.0), total(0.5, 5.0), total(4.0, 40.0)]);
    }

    #[test]
    fn estimates_are_rounded_once_for_each_row() {
        let rows = add_up(&vec![sample(1, 0, 512 << 10); 100], &[], &[], 512 << 10);
        // 100 samples of 1.58 blocks each.
        assert_eq!(rows[0].values, [0, 0, 158, 82_941_140]);
    }
}
