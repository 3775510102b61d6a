//! What the run saves if nodes get faster.

use longpole_model::{Nanos, NodeId, PoleId};

use crate::report::Report;
use crate::schedule::own_work::OwnWork;
use crate::schedule::poles::{LimitedBy, Pole, Replays, Savings};
use crate::schedule::saving::{Change, Saving};

impl Report {
    /// What the run saves if this node alone is fixed.
    pub fn savings(&self, node: NodeId) -> Savings {
        self.savings_of(&[node])
    }

    /// The outermost operation beside this pole that the node which limits its saving is a part of; `None` if that is little longer than the node.
    pub fn limit_is_in(&self, pole: &Pole) -> Option<NodeId> {
        let LimitedBy::Node(node) = pole.limited_by? else { return None };
        let forest = &self.forest;
        let holds_pole = |above: NodeId| {
            let first = pole.nodes.partition_point(|&n| n < above);
            pole.nodes.get(first).is_some_and(|&n| n < forest[above].subtree_end)
        };
        let above = std::iter::successors(forest[node].parent, |&above| forest[above].parent);
        let outermost = above.take_while(|&above| above != NodeId::RUN && !holds_pole(above)).last()?;
        (forest[outermost].range.nanos() / 2 > forest[node].range.nanos()).then_some(outermost)
    }

    /// What the run saves if these nodes are fixed, all at once.
    pub fn savings_of(&self, nodes: &[NodeId]) -> Savings {
        let run = self.run_replay();
        Savings::of(self.replays(run.as_ref()), nodes).at_most(self.savable())
    }

    /// For each of the first `poles` poles: what the run saves if that pole and all before it took no time. Savings do not add
    /// up where poles run at the same time, or one contains another.
    pub fn saves_with_those_before(&self, poles: usize) -> Vec<Saving> {
        let ids: Vec<PoleId> = self.poles().ids().take(poles).collect();
        let mut most = Saving { low: Nanos::ZERO, high: Nanos::ZERO };
        let mut saves = |count: usize| {
            let saving = self.saves_without(&ids[..count]);
            // What fewer poles save for sure, more of them save as well.
            most = Saving { low: most.low.max(saving.low), high: most.high.max(saving.high) };
            most
        };
        (1..=ids.len()).map(&mut saves).collect()
    }

    /// What the run saves if all of these poles took no time.
    pub fn saves_without(&self, poles: &[PoleId]) -> Saving {
        let (mut nodes, mut of_threads, mut work) = (Vec::new(), Vec::new(), Vec::new());
        for pole in poles.iter().filter_map(|pole| self.poles().get(*pole)) {
            match &pole.part {
                Some(part) => {
                    of_threads.extend_from_slice(&part.of_threads);
                    work.extend(part.work.pieces());
                }
                None => nodes.extend_from_slice(&pole.nodes),
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        let saving = match self.run_replay() {
            Some(run) => run.saves_together(&nodes, &of_threads),
            None => self.replay.saves_together(&nodes, &self.gone_without(OwnWork::new(work.into_iter()), &of_threads)),
        };
        saving.at_most(self.savable())
    }

    /// One of the three savings.
    pub fn saves(&self, nodes: &[NodeId], change: Change) -> Saving {
        match self.run_replay() {
            Some(run) => {
                let [if_zero, if_half, own] = run.saves_all(nodes);
                match change {
                    Change::Zero => if_zero,
                    Change::Half => if_half,
                    Change::OwnZero => own,
                }
            }
            None => self.replay.saves(nodes, change),
        }
    }
}
