//! Where the time of nodes went, by state.

use longpole_model::NodeId;

use crate::report::Report;
use crate::time::activity::Stretch;
use crate::time::states::States;

impl Report {
    /// Where the time of the critical path went; sums to the run.
    pub fn path_states(&self) -> States {
        self.path_states
    }

    /// Where the time of a node went; sums to its duration.
    pub fn node_states(&self, node: NodeId) -> States {
        self.activity().of_node(node)
    }

    /// Where the time of these nodes went, added up.
    pub fn states_of_nodes(&self, nodes: &[NodeId]) -> States {
        let schedule = self.replay.schedule();
        self.activity().states(nodes.iter().map(|&node| Stretch { node, from: schedule.start[node], to: schedule.end[node] }))
    }

    /// Where the time of a node went, by what it and its descendants did; sums to its duration.
    pub fn node_states_with_descendants(&self, node: NodeId) -> States {
        self.activity().with_descendants(node)
    }
}
