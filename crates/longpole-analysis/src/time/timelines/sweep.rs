//! One sweep over the spans of a process with one thread: whose the thread was when.

use longpole_model::Nanos;

use super::NONE;

/// One pass over the spans of a process with one thread: whose the thread was when.
pub(super) struct Sweep {
    /// For each node its process; [`NONE`] where the sweep does not cover that process.
    pub(super) process: Vec<u32>,
    open: Vec<bool>,
    open_children: Vec<u32>,
}

impl Sweep {
    pub(super) fn new(nodes: usize) -> Sweep {
        Sweep { process: vec![NONE; nodes], open: vec![false; nodes], open_children: vec![0; nodes] }
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.open[node] && self.open_children[node] == 0
    }

    /// Tells `give` of each time in the life of the process whose it was: a span's, or nobody's but the process's. Returns the spans
    /// that could have had the thread while another one could, too.
    pub(super) fn run(
        &mut self,
        nodes: impl Iterator<Item = (usize, (Nanos, Nanos))>,
        parent: impl Fn(usize) -> Option<usize>,
        life: (Nanos, Nanos),
        mut give: impl FnMut(Option<usize>, Nanos, Nanos),
    ) -> Vec<u32> {
        // At one moment ends come before starts: spans are half open.
        let mut events: Vec<(Nanos, bool, u32)> = Vec::new();
        for (node, (start, end)) in nodes.filter(|(_, (start, end))| start < end) {
            events.extend([(start, true, node as u32), (end, false, node as u32)]);
        }
        events.sort_unstable();
        let mut ambiguous = Vec::new();
        // How many spans could have it, and the sum of their numbers, which is the number itself where there is one.
        let (mut leaves, mut sum) = (0u32, 0u64);
        let mut at = life.0;
        for batch in events.chunk_by(|a, b| a.0 == b.0) {
            let now = batch[0].0;
            if at < now && leaves < 2 {
                give((leaves == 1).then_some(sum as usize), at, now);
            }
            at = at.max(now);
            let before = (leaves == 1).then_some(sum as usize);
            for &(_, starts, node) in batch {
                let node = node as usize;
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
                        (false, true) => (leaves, sum) = (leaves + 1, sum + changed as u64),
                        (true, false) => (leaves, sum) = (leaves - 1, sum - changed as u64),
                        _ => {}
                    }
                }
            }
            if leaves > 1 {
                let touched = batch.iter().flat_map(|&(_, _, node)| [Some(node as usize), parent(node as usize)]).flatten();
                ambiguous.extend(touched.chain(before).filter(|&node| self.is_leaf(node)).map(|node| node as u32));
            }
        }
        if at < life.1 && leaves == 0 {
            give(None, at, life.1);
        }
        ambiguous
    }
}
