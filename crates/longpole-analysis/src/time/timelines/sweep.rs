//! One sweep over the spans of a process with one thread: whose the thread was when.

use longpole_model::{IdVec, Nanos, NodeId, ProcessRow};

use crate::leaves::Leaves;

/// One pass over the spans of a process with one thread: whose the thread was when.
pub(super) struct Sweep {
    /// The process of each node; `None` where the sweep does not cover it.
    pub(super) process: IdVec<NodeId, Option<ProcessRow>>,
    open: IdVec<NodeId, bool>,
    open_children: IdVec<NodeId, u32>,
}

impl Sweep {
    pub(super) fn new(nodes: usize) -> Sweep {
        Sweep { process: IdVec::filled(None, nodes), open: IdVec::filled(false, nodes), open_children: IdVec::filled(0, nodes) }
    }

    fn is_leaf(&self, node: NodeId) -> bool {
        self.open[node] && self.open_children[node] == 0
    }

    /// Tells `give` of each time in the life of the process whose it was: a span's, or nobody's but the process's. Returns the spans
    /// that could have had the thread while another one could, too.
    pub(super) fn run(
        &mut self,
        nodes: impl Iterator<Item = (NodeId, (Nanos, Nanos))>,
        parent: impl Fn(NodeId) -> Option<NodeId>,
        life: (Nanos, Nanos),
        mut give: impl FnMut(Option<NodeId>, Nanos, Nanos),
    ) -> Vec<NodeId> {
        // At one moment ends come before starts: spans are half open.
        let mut events: Vec<(Nanos, bool, NodeId)> = Vec::new();
        for (node, (start, end)) in nodes.filter(|(_, (start, end))| start < end) {
            events.extend([(start, true, node), (end, false, node)]);
        }
        events.sort_unstable();
        let mut ambiguous = Vec::new();
        // The spans that could have it.
        let mut leaves = Leaves::default();
        let mut at = life.0;
        for batch in events.chunk_by(|a, b| a.0 == b.0) {
            let now = batch[0].0;
            if at < now && leaves.count < 2 {
                give(leaves.only(), at, now);
            }
            at = at.max(now);
            let before = leaves.only();
            for &(_, starts, node) in batch {
                let same = parent(node).filter(|&parent| self.process[parent] == self.process[node]);
                for changed in [Some(node), same].into_iter().flatten() {
                    let was = self.is_leaf(changed);
                    if changed == node {
                        self.open[node] = starts;
                    } else if starts {
                        self.open_children[changed] += 1;
                    } else {
                        self.open_children[changed] -= 1;
                    }
                    match (was, self.is_leaf(changed)) {
                        (false, true) => leaves.add(changed),
                        (true, false) => leaves.remove(changed),
                        _ => {}
                    }
                }
            }
            if leaves.count > 1 {
                let touched = batch.iter().flat_map(|&(_, _, node)| [Some(node), parent(node)]).flatten();
                ambiguous.extend(touched.chain(before).filter(|&node| self.is_leaf(node)));
            }
        }
        if at < life.1 && leaves.count == 0 {
            give(None, at, life.1);
        }
        ambiguous
    }
}
