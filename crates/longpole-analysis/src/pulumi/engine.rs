//! What Pulumi's engine does beside its plan: it writes the state after each step, stops plug-ins, loads the next snapshot.
//!
//! These spans are siblings of the plan, or of the plan before, and what they wait for ends deep inside of it:
//!
//! ```text
//! pulumi  ├──────────────────────────────────────────────────────────┤
//!   pulumi-plan  ├─────────────────────────────────────────┤
//!     …/Create      ├───────────┤    …/Create   ├────────┤
//!   blob.NewWriter               ├─┤                      ├─┤             each waits for the Create before it,
//!   …/Cancel                                                 ├─┤          and for the sibling before it, if that ended later
//! ```
//!
//! No link says so, but the engine's way of working does: one thing after the other, on behalf of the plan. Measured on Pulumi
//! 3.259 (`fixtures/pulumi`): each state write follows the end of a step by 0.1 to 2 ms.

use longpole_model::{IdVec, Nanos, NodeId, Recording};

use crate::pulumi::call::is_measurement;
use crate::pulumi::opentracing_bridge::PULUMI_CLI;
use crate::tree::forest::Forest;

/// The engine's span around the work on a stack: once for the preview, once for the update.
const PLAN: &str = "pulumi-plan";

/// What siblings of a plan waited for, by the one who waited: the last that ended inside the plan, and the last sibling that ended.
pub(crate) fn waits(
    recording: &Recording,
    forest: &Forest,
    start: &IdVec<NodeId, Nanos>,
    end: &IdVec<NodeId, Nanos>,
) -> Vec<(NodeId, NodeId)> {
    let mut out = Vec::new();
    if !forest.has_placement_rules() {
        return out;
    }
    let is_plan = |node: NodeId| forest.name(recording, node) == PLAN && forest.service(recording, node) == PULUMI_CLI;
    let mut commands: Vec<NodeId> = forest.ids().skip(1).filter(|&node| is_plan(node)).filter_map(|node| forest[node].parent).collect();
    commands.dedup();
    commands.sort_unstable();
    commands.dedup();
    for command in commands {
        let works = |&node: &NodeId| !forest.span(recording, node).is_none_or(is_measurement);
        let children: Vec<NodeId> = forest.children(command).filter(works).collect();
        let mut siblings: Vec<NodeId> = children.clone();
        let mut inside: Vec<NodeId> =
            children.iter().filter(|&&node| is_plan(node)).flat_map(|&plan| forest.subtree(plan).skip(1)).collect();
        for list in [&mut siblings, &mut inside] {
            list.sort_by_key(|&node| end[node]);
        }
        let last = |list: &[NodeId], node: NodeId| {
            let ended = list.partition_point(|&other| end[other] <= start[node]);
            // What takes no time ended when it started.
            list[..ended].iter().rev().copied().find(|&other| other != node)
        };
        for &node in &children {
            let inside = last(&inside, node).filter(|_| !is_plan(node));
            // A sibling that was over before the step ended was not in the way.
            let in_the_way = |other: &NodeId| inside.is_none_or(|step| end[*other] >= end[step]);
            let sibling = last(&siblings, node).filter(in_the_way);
            out.extend(inside.into_iter().chain(sibling).map(|other| (node, other)));
        }
    }
    out
}
