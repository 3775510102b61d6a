//! Samples and waits of nodes.

use longpole_model::{Id, Nanos, NodeId, SampleId, SampleLink, WaitId};

use crate::link::samples::LinkCounts;
use crate::report::Report;

impl Report {
    /// Samples of the node itself.
    pub fn own_samples(&self, node: NodeId) -> &[SampleId] {
        self.samples.of(node)
    }

    /// Whether samples have no times, as sums of other tools have none.
    pub(super) fn are_samples_untimed(&self) -> bool {
        self.sample_offsets.get(SampleId::at(0)) == Some(&Nanos::MIN)
    }

    /// Samples of the node and of everything below it.
    pub fn subtree_samples(&self, node: NodeId) -> impl Iterator<Item = SampleId> + '_ {
        self.forest.subtree(node).flat_map(|n| self.samples.of(n).iter().copied())
    }

    /// Samples of these nodes and of everything below them, ascending; without nodes, all of the recording.
    pub fn samples_below(&self, roots: Option<&[NodeId]>) -> Vec<SampleId> {
        let Some(roots) = roots else { return self.all_samples().collect() };
        let mut samples: Vec<SampleId> = roots.iter().flat_map(|&root| self.subtree_samples(root)).collect();
        samples.sort_unstable();
        samples
    }

    /// Waits of these nodes and of everything below them, ascending; without nodes, of the whole run. A process that sends no spans has those
    /// of all its threads. Workers that wait for work, and threads without a known node, wait for no node.
    pub fn waits_below(&self, roots: Option<&[NodeId]>) -> Vec<WaitId> {
        let nodes = roots.unwrap_or(&[NodeId::RUN]).iter().flat_map(|&root| self.forest.subtree(root));
        let mut waits: Vec<WaitId> = nodes.flat_map(|node| self.waits.whole_of_node(node)).copied().collect();
        waits.sort_unstable();
        waits
    }

    /// The link of a sample.
    pub fn sample_link(&self, sample: SampleId) -> SampleLink {
        self.recording.sample_links[sample.place()]
    }

    /// How these samples are tied to their spans.
    pub fn link_counts(&self, samples: impl Iterator<Item = SampleId>) -> LinkCounts {
        LinkCounts::of(samples.map(|sample| self.sample_link(sample)))
    }
}
