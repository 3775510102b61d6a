//! What the run saves if nodes get faster.

use longpole_model::NodeId;

use crate::report::Report;
use crate::schedule::own_work::OwnWork;
use crate::schedule::poles::{Pole, Savings};
use crate::schedule::saving::{Change, Saving};

impl Report {
    /// What the run saves if this node alone is fixed.
    pub fn savings(&self, node: NodeId) -> Savings {
        self.savings_of(&[node])
    }

    /// What the run saves if these nodes are fixed, all at once.
    pub fn savings_of(&self, nodes: &[NodeId]) -> Savings {
        Savings::of(&self.replay, nodes)
    }

    /// For each of the first `poles` poles: what the run saves if that pole and all before it took no time. Savings do not add
    /// up where poles run at the same time, or one contains another.
    pub fn saves_with_those_before(&self, poles: usize) -> Vec<Saving> {
        let mut nodes = Vec::new();
        let mut work = OwnWork::default();
        let mut of_threads = Vec::new();
        let saves = |pole: &Pole| {
            match &pole.part {
                Some(part) => {
                    of_threads.extend_from_slice(&part.of_threads);
                    work = self.gone_without(OwnWork::new(work.pieces().chain(part.work.pieces())), &of_threads);
                }
                None => {
                    nodes.extend_from_slice(&pole.nodes);
                    nodes.sort_unstable();
                    nodes.dedup();
                }
            }
            self.replay.saves_together(&nodes, &work)
        };
        self.poles().iter().take(poles).map(saves).collect()
    }

    /// One of the three savings.
    pub fn saves(&self, nodes: &[NodeId], change: Change) -> Saving {
        self.replay.saves(nodes, change)
    }
}
