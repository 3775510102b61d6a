//! Where the time of a span went, as far as it is known.
//!
//! ```text
//! span        ├───────────────────────────────┤
//! children         ├────────┤      ├─────┤            in child: covered by at least one
//! samples      |||||          ||                      on-CPU: each stands for one period of the span's own time
//! rest                          ──        ─────       unaccounted: waiting, or nobody sampled
//! ```
//!
//! The three add up. On-CPU is an estimate: `n` samples stand for `n` periods, give or take `√n`. Threads of one span that
//! run at the same time do not make its wall time longer, so each stretch of [`BIN_PERIODS`] periods of own time can be
//! full only once.

use longpole_model::Recording;

use crate::sample_links::SampleNodes;
use crate::schedule::Schedule;
use crate::trace_tree::Forest;

/// Periods of the sampling clock in a stretch that can be full only once: few enough to follow a change between running
/// and waiting, enough that a sample that falls into the next stretch does not matter.
pub const BIN_PERIODS: i64 = 20;

/// Where time went. The parts sum to what is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// At least one thread ran code of it.
    pub on_cpu_nanos: i64,
    /// A child was there.
    pub in_child_nanos: i64,
    /// Neither is known.
    pub unaccounted_nanos: i64,
}

impl States {
    /// All of it.
    pub fn sum(&self) -> i64 {
        self.on_cpu_nanos + self.in_child_nanos + self.unaccounted_nanos
    }
}

/// How many operations were in flight: nodes that no child of theirs covers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parallelism {
    /// Over the wall time of the run. While nothing but the run itself is open, that counts as one.
    pub mean: f64,
    /// At most.
    pub peak: u32,
}

/// A stretch of a node, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) node: usize,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// What states are made of.
pub(crate) struct Known<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) schedule: &'a Schedule,
    pub(crate) samples: &'a SampleNodes,
    /// When each sample was, from the start of the run.
    pub(crate) sample_offsets: &'a [i64],
}

impl Known<'_> {
    /// The samples of a node in a stretch of it.
    pub(crate) fn samples_in(&self, stretch: Stretch) -> &[u32] {
        let own = self.samples.of(stretch.node);
        let first = own.partition_point(|&s| self.sample_offsets[s as usize] < stretch.from);
        let end = own.partition_point(|&s| self.sample_offsets[s as usize] < stretch.to);
        own.get(first..end).unwrap_or_default()
    }

    /// The states of these stretches together, which stand by time and do not overlap.
    pub(crate) fn states(&self, stretches: impl Iterator<Item = Stretch>) -> States {
        let mut states = States::default();
        // Own time of all stretches, end to end; bins of it fill up with samples.
        let (mut own, mut bin, mut filled, mut bin_length) = (0i64, 0i64, 0i64, i64::MAX);
        let cover = &self.schedule.cover;
        for stretch in stretches {
            let covered_until = |at: i64| cover.covered_before(stretch.node, at);
            let before = covered_until(stretch.from);
            let length = (stretch.to - stretch.from).max(0);
            let in_child = (covered_until(stretch.to) - before).clamp(0, length);
            for &sample in self.samples_in(stretch) {
                let at = self.sample_offsets[sample as usize];
                if cover.contains(stretch.node, at) {
                    continue;
                }
                let weight = i64::try_from(self.recording.samples[sample as usize].weight_nanos).unwrap_or(i64::MAX);
                if bin_length == i64::MAX && weight > 0 {
                    bin_length = weight.saturating_mul(BIN_PERIODS);
                }
                let place = own + (at - stretch.from) - (covered_until(at) - before);
                let this = place / bin_length;
                if this != bin {
                    states.on_cpu_nanos += filled.min(bin_length);
                    (bin, filled) = (this, 0);
                }
                filled = filled.saturating_add(weight);
            }
            states.in_child_nanos += in_child;
            own += length - in_child;
        }
        let last = own.saturating_sub(bin.saturating_mul(bin_length)).clamp(0, bin_length);
        states.on_cpu_nanos = (states.on_cpu_nanos + filled.min(last)).min(own);
        states.unaccounted_nanos = own - states.on_cpu_nanos;
        states
    }

    /// The states of a node from its start to its end.
    pub(crate) fn of_node(&self, node: usize) -> States {
        let (from, to) = (self.schedule.start[node], self.schedule.end[node]);
        self.states(std::iter::once(Stretch { node, from, to }))
    }
}

/// Mean and peak of the operations in flight.
pub fn parallelism(forest: &Forest) -> Parallelism {
    let run = forest.run_range();
    // Ends before starts: what follows at once does not overlap.
    let mut events: Vec<(i64, bool, usize)> = Vec::with_capacity(2 * forest.len());
    for (i, node) in forest.nodes.iter().enumerate().skip(1) {
        let (start, end) = (node.range.start.max(run.start), node.range.end.min(run.end));
        if start < end {
            events.push((start.nanos_since(run.start), true, i));
            events.push((end.nanos_since(run.start), false, i));
        }
    }
    events.sort_unstable();
    let mut open = vec![false; forest.len()];
    let mut open_children = vec![0u32; forest.len()];
    let (mut leaves, mut peak, mut area, mut since) = (0u32, 0u32, 0i128, 0i64);
    for (at, starts, i) in events {
        if at > since {
            peak = peak.max(leaves);
            area += i128::from(at - since) * i128::from(leaves.max(1));
            since = at;
        }
        open[i] = starts;
        let parent = forest.nodes[i].parent.filter(|&p| p != 0);
        if starts {
            leaves += u32::from(open_children[i] == 0);
            if let Some(p) = parent {
                leaves -= u32::from(open[p] && open_children[p] == 0);
                open_children[p] += 1;
            }
        } else {
            leaves -= u32::from(open_children[i] == 0);
            if let Some(p) = parent {
                open_children[p] -= 1;
                leaves += u32::from(open[p] && open_children[p] == 0);
            }
        }
    }
    area += i128::from((run.nanos() - since).max(0));
    let wall = run.nanos();
    Parallelism { mean: if wall > 0 { area as f64 / wall as f64 } else { 0.0 }, peak: peak.max(u32::from(wall > 0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use longpole_model::text;

    fn millis(states: States) -> [i64; 3] {
        [states.on_cpu_nanos, states.in_child_nanos, states.unaccounted_nanos].map(|nanos| nanos / 1_000_000)
    }

    fn node(report: &Report, name: &str) -> usize {
        (0..report.forest().len()).find(|&i| report.name(i) == name).unwrap()
    }

    #[test]
    fn a_span_runs_waits_and_has_children() {
        let report = Report::new(
            text::parse(
                "run x 0..100ms\n  work 0..100ms svc pid 1\n    call 40..70ms svc\nsample 1ms x30 pid 1 [work] m\nsample 45ms x20 pid 1 [call] m\n",
            )
            .unwrap(),
        );
        assert_eq!(millis(report.node_states(node(&report, "work"))), [30, 30, 40]);
        assert_eq!(millis(report.node_states(node(&report, "call"))), [20, 0, 10]);
        assert_eq!(millis(report.path_states()), [50, 0, 50]);
    }

    #[test]
    fn threads_that_run_at_the_same_time_do_not_make_a_span_longer_nor_hide_that_it_waits() {
        let two = "sample 0ms x40 pid 1 tid 1 [work] m\nsample 0ms x40 pid 1 tid 2 [work] m\n";
        let report = Report::new(text::parse(&format!("run x 0..100ms\n  work 0..100ms svc pid 1\n{two}")).unwrap());
        assert_eq!(millis(report.node_states(1)), [40, 0, 60]);
    }

    #[test]
    fn own_time_in_many_short_pieces_is_estimated_without_bias() {
        // Own time in pieces of 0.2 ms between children; one piece in five gets a sample of 1 ms: busy all the time.
        let mut text = "run x 0..1s\n  loop 0..100ms svc pid 1\n".to_owned();
        for i in 0..100 {
            text.push_str(&format!("    child {}..{}us svc\n", i * 1000 + 200, i * 1000 + 1000));
            if i % 5 == 0 {
                text.push_str(&format!("sample {}us pid 1 [loop] m\n", i * 1000 + 100));
            }
        }
        // Samples stand between spans in the text; the notation wants spans together.
        let (samples, spans): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("sample"));
        let report = Report::new(text::parse(&format!("{}\n{}", spans.join("\n"), samples.join("\n"))).unwrap());
        assert_eq!(millis(report.node_states(1)), [20, 80, 0]);
    }

    #[test]
    fn operations_in_flight_are_the_innermost_ones() {
        let of = |text: &str| parallelism(&Forest::build(&text::parse(text).unwrap()));
        assert_eq!(of("run x 0..10ms\n"), Parallelism { mean: 1.0, peak: 1 });
        assert_eq!(of("run x 0..10ms\n  p 0..10ms\n    a 0..5ms\n    b 0..5ms\n"), Parallelism { mean: 1.5, peak: 2 });
        assert_eq!(of("run x 0..10ms\n  a 0..5ms\n  b 5..10ms\n"), Parallelism { mean: 1.0, peak: 1 });
        assert_eq!(of("run x 0..0ms\n"), Parallelism { mean: 0.0, peak: 0 });
    }
}
