//! Where a function ran: nodes, operations, and what belongs to no node.

use std::cmp::Reverse;
use std::collections::HashMap;

use longpole_model::{Evidence, FunctionId, Id, NodeId, UnsignedNanos};

use crate::report::Report;
use crate::report::waits::is_on;
use crate::tree::labels::{NameId, ServiceId};

/// A node whose own samples or waits contain a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FunctionInNode {
    /// The node.
    pub node: NodeId,
    /// Its own samples with the function.
    pub samples: u64,
    /// Their weight.
    pub total: UnsignedNanos,
    /// Its own waits with the function.
    pub waited: UnsignedNanos,
    /// The samples' share of the node's own samples.
    pub share: f64,
    /// The waits' share of the time of the node's own waits.
    pub waited_share: f64,
}

/// Where a function ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FunctionNodes {
    /// Largest weight first.
    pub nodes: Vec<FunctionInNode>,
    /// Operations that these nodes are of, largest weight first.
    pub operations: Vec<FunctionInOperation>,
    /// Samples with the function that belong to no node.
    pub unlinked_samples: u64,
    /// Those among them that could belong to several spans.
    pub ambiguous_samples: u64,
    /// Waits with the function, whomever they belong to.
    pub waits: u64,
    /// How long they were.
    pub waited: UnsignedNanos,
    /// Those of them that belong to no node.
    pub unlinked_waited: UnsignedNanos,
}

/// Nodes of one service and name whose own samples contain a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FunctionInOperation {
    /// One of them.
    pub example: NodeId,
    /// How many there are.
    pub nodes: u64,
    /// Their own samples with the function.
    pub samples: u64,
    /// Their weight.
    pub total: UnsignedNanos,
    /// Their own waits with the function.
    pub waited: UnsignedNanos,
    /// The samples' share of the own samples of all nodes of the operation.
    pub share: f64,
    /// The waits' share of the time of the own waits of all nodes of the operation.
    pub waited_share: f64,
}

impl Report {
    /// Where a function ran.
    pub fn nodes_with(&self, function: FunctionId) -> FunctionNodes {
        let holds = self.functions.stacks_with(&self.recording, function);
        let mut sums: HashMap<NodeId, FunctionInNode> = HashMap::new();
        let zero = UnsignedNanos::ZERO;
        let none = |node: NodeId| FunctionInNode { node, samples: 0, total: zero, waited: zero, share: 0.0, waited_share: 0.0 };
        let mut out = FunctionNodes::default();
        for (i, sample) in self.recording.sample_ids().zip(&self.recording.samples) {
            if !holds.get(sample.stack).copied().unwrap_or(false) {
                continue;
            }
            match self.samples.node(i) {
                Some(node) => {
                    let sum = sums.entry(node).or_insert_with(|| none(node));
                    sum.samples += 1;
                    sum.total += UnsignedNanos(sample.weight_nanos);
                }
                None => {
                    out.unlinked_samples += 1;
                    let is_ambiguous = matches!(self.recording.sample_links[i.place()].evidence, Evidence::Ambiguous { .. });
                    out.ambiguous_samples += u64::from(is_ambiguous);
                }
            }
        }
        for wait in self.waits_on(&holds).map(|wait| &self.recording.waits[wait]) {
            out.waits += 1;
            out.waited += UnsignedNanos(wait.nanos());
        }
        out.unlinked_waited = out.waited;
        for node in self.forest.ids() {
            let waits = self.waits.whole_of_node(node).iter().map(|&wait| &self.recording.waits[wait]);
            for wait in waits.filter(|wait| is_on(&holds, wait)) {
                let sum = sums.entry(node).or_insert_with(|| none(node));
                sum.waited += UnsignedNanos(wait.nanos());
                out.unlinked_waited -= UnsignedNanos(wait.nanos());
            }
        }
        let share = |sum: FunctionInNode| FunctionInNode {
            share: sum.samples as f64 / self.samples.of(sum.node).len().max(1) as f64,
            waited_share: share_of(sum.waited, self.waited_in(sum.node)),
            ..sum
        };
        out.nodes = sums.into_values().map(share).collect();
        out.nodes.sort_by_key(|n| (Reverse(n.total + n.waited), n.node));
        out.operations = self.operations_of(&out.nodes);
        out
    }

    /// The same by operation.
    fn operations_of(&self, nodes: &[FunctionInNode]) -> Vec<FunctionInOperation> {
        let labels = self.labels();
        let operation = |node: NodeId| (labels.service[node], labels.name[node]);
        let mut sums: HashMap<(ServiceId, NameId), FunctionInOperation> = HashMap::new();
        for part in nodes {
            let zero = UnsignedNanos::ZERO;
            let none =
                FunctionInOperation { example: part.node, nodes: 0, samples: 0, total: zero, waited: zero, share: 0.0, waited_share: 0.0 };
            let sum = sums.entry(operation(part.node)).or_insert(none);
            sum.nodes += 1;
            sum.samples += part.samples;
            sum.total += part.total;
            sum.waited += part.waited;
        }
        let mut own: HashMap<(ServiceId, NameId), (usize, UnsignedNanos)> =
            sums.keys().map(|operation| (*operation, (0, UnsignedNanos::ZERO))).collect();
        for node in self.forest.ids() {
            if let Some((samples, waited)) = own.get_mut(&operation(node)) {
                *samples += self.samples.of(node).len();
                *waited += self.waited_in(node);
            }
        }
        let share = |(operation, sum): (_, FunctionInOperation)| FunctionInOperation {
            share: sum.samples as f64 / own[&operation].0.max(1) as f64,
            waited_share: share_of(sum.waited, own[&operation].1),
            ..sum
        };
        let mut list: Vec<FunctionInOperation> = sums.into_iter().map(share).collect();
        list.sort_by_key(|it| (Reverse(it.total + it.waited), it.example));
        list
    }

    /// Time of a node's own waits.
    fn waited_in(&self, node: NodeId) -> UnsignedNanos {
        self.waits.whole_of_node(node).iter().map(|&wait| UnsignedNanos(self.recording.waits[wait].nanos())).sum()
    }
}

/// 0 to 1; 0 of nothing.
fn share_of(part: UnsignedNanos, whole: UnsignedNanos) -> f64 {
    part.0 as f64 / whole.0.max(1) as f64
}

#[cfg(test)]
mod tests {
    use longpole_model::{Id, NodeId, SampleId, text};

    use crate::Report;
    use crate::report::{Excerpt, FlameTime};

    fn report(text: &str) -> Report {
        Report::new(text::parse(text).unwrap())
    }

    #[test]
    fn a_function_of_many_spans_leads_to_their_operation() {
        let report = report(
            "\
a 0..10ms svc pid 1
a 10..20ms svc pid 1
a 20..30ms svc pid 1
sample 1ms x4  pid 1 main;hash
sample 11ms x2 pid 1 main;hash
sample 14ms x2 pid 1 main
sample 21ms x2 pid 1 main
",
        );
        let hash = report.functions().named("hash")[0];
        let found: Vec<_> = report.nodes_with(hash).operations.iter().map(|it| (it.nodes, it.samples, it.share)).collect();
        assert_eq!(found, [(2, 6, 0.6)]);
    }

    #[test]
    fn a_span_leads_to_its_functions_and_a_function_to_its_spans() {
        let report = report(
            "\
run x  0..100ms
  a  0..50ms   svc  pid 1
    b  10..40ms  svc
  c  50..99ms  svc  pid 1
sample 1ms x4   pid 1 [a] main;io
sample 11ms x20 pid 1 [b] main;hash
sample 60ms x10 pid 1 [c] main;hash
sample 80ms x10 pid 1 [c] main;io
sample 99.5ms   pid 9 [~] other
",
        );
        let a = report.flame(Some(&[NodeId::at(1)]), FlameTime::OnCpu, Excerpt::default());
        assert_eq!((a.tree.samples, a.links.record, a.few_samples()), (24, 24, false));
        let functions = &report.functions().list;
        let names = |samples: &[SampleId]| -> Vec<&str> {
            report.top_functions(samples).iter().map(|f| functions[f.function].function.as_str()).collect()
        };
        assert_eq!(names(report.own_samples(NodeId::at(2))), ["hash", "main"]);
        assert_eq!(names(report.own_samples(NodeId::at(3))), ["hash", "io", "main"]);
        let hash = report.functions().named("hash")[0];
        let spans = report.nodes_with(hash);
        let found: Vec<(&str, u64, f64)> = spans.nodes.iter().map(|n| (report.name(n.node), n.samples, n.share)).collect();
        assert_eq!(found, [("b", 20, 1.0), ("c", 10, 0.5)]);
        let found: Vec<(&str, u64, f64)> = spans.operations.iter().map(|it| (report.name(it.example), it.nodes, it.share)).collect();
        assert_eq!(found, [("b", 1, 1.0), ("c", 1, 0.5)]);
        let other = report.functions().named("other")[0];
        assert_eq!(report.nodes_with(other).unlinked_samples, 1);
        assert_eq!(report.link_counts(report.all_samples()).none, 1);
    }
}
