//! What nodes did while they were on the critical path.

use std::sync::OnceLock;

use longpole_model::{IdVec, Nanos, NodeId, SampleId, StateKind, WaitId};

use crate::pulumi::deployment::{self, DeploymentTime, ProviderCpu};
use crate::report::Report;
use crate::schedule::poles::{PartKind, Pole};
use crate::time::activity::Stretch;
use crate::time::states::States;

impl Report {
    /// Where the time went that these nodes have on the path; sums to it.
    pub fn states_on_path(&self, nodes: &[NodeId]) -> States {
        self.activity_on_path().states(self.stretches_on_path(nodes).into_iter())
    }

    /// These nodes' own samples while they were on the path: indices into `recording.samples`.
    pub fn samples_on_path(&self, nodes: &[NodeId]) -> Vec<SampleId> {
        self.samples_in(self.stretches_on_path(nodes))
    }

    /// Where the time of a pole on the path went; sums to it.
    pub fn states_of_pole(&self, pole: &Pole) -> States {
        let compute = || self.activity_on_path().states(self.stretches_of_pole(pole).into_iter());
        // The reason, the states and the waits of a pole all begin with them.
        let known = || self.pole_states.get_or_init(|| self.poles.poles.iter().map(|_| OnceLock::new()).collect());
        let place = self.poles.poles.iter().position(|own| std::ptr::eq(own, pole));
        place.map_or_else(compute, |place| *known()[place].get_or_init(compute))
    }

    /// The samples of a pole on the path: indices into `recording.samples`.
    pub fn samples_of_pole(&self, pole: &Pole) -> Vec<SampleId> {
        self.samples_in(self.stretches_of_pole(pole))
    }

    /// The samples of a pole that is a part of operations, while it was on the path, ascending.
    pub fn samples_of_part(&self, pole: &Pole) -> Vec<SampleId> {
        let mut samples = self.samples_of_pole(pole);
        samples.sort_unstable();
        samples.dedup();
        samples
    }

    /// The waits of such a pole that were on the path, ascending: all of each.
    pub fn waits_of_part(&self, pole: &Pole) -> Vec<WaitId> {
        let kind = match pole.part.as_ref().map(|part| part.kind) {
            Some(PartKind::Waits(kind, _)) => Some(kind),
            Some(PartKind::Computes(_)) => return Vec::new(),
            Some(PartKind::Rest | PartKind::Busy) | None => None,
        };
        let activity = self.activity_on_path();
        let of = |stretch| activity.waits_in(stretch).map(|it| it.wait).collect::<Vec<_>>();
        let mut waits: Vec<WaitId> = self.stretches_of_pole(pole).into_iter().flat_map(of).collect();
        waits.retain(|&wait| kind.is_none_or(|kind| self.recording.waits[wait].kind == kind));
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    fn samples_in(&self, stretches: Vec<Stretch>) -> Vec<SampleId> {
        if self.recording.samples.is_empty() {
            return Vec::new();
        }
        let activity = self.activity_on_path();
        stretches.into_iter().flat_map(|stretch| activity.telling_samples(stretch)).collect()
    }

    /// When a pole is on the path: by time.
    pub(super) fn stretches_of_pole(&self, pole: &Pole) -> Vec<Stretch> {
        match &pole.part {
            Some(part) => part.on_path.iter().map(|&(node, from, to)| Stretch { node, from, to }).collect(),
            None => self.stretches_on_path(&pole.nodes),
        }
    }

    /// For each node how much of its time on the critical path a thread of it was on a CPU.
    pub fn path_cpu(&self) -> IdVec<NodeId, Nanos> {
        let mut out = IdVec::filled(Nanos::ZERO, self.forest.len());
        if self.recording.samples.is_empty() && self.recording.cpu_slices.is_empty() {
            return out;
        }
        let activity = self.activity_on_path();
        let mut by_node: Vec<Stretch> = self.path_stretches(|_| true).collect();
        // Stable: the stretches of a node stay in order of time.
        by_node.sort_by_key(|s| s.node);
        for same in by_node.chunk_by(|a, b| a.node == b.node) {
            out[same[0].node] = activity.states(same.iter().copied()).of(StateKind::OnCpu);
        }
        out
    }

    pub(super) fn split_deployment(&self) -> Option<DeploymentTime> {
        let parts = deployment::parts(&self.recording, &self.forest)?;
        let cpu = ProviderCpu::new(&self.recording, &self.forest, &self.sample_offsets);
        let stretches = self.path_stretches(|_| true).map(|s| (parts[s.node], s.to - s.from, cpu.between(s.from, s.to)));
        Some(deployment::add_up(stretches))
    }

    pub(super) fn path_stretches(&self, wanted: impl Fn(NodeId) -> bool) -> impl Iterator<Item = Stretch> {
        let origin = self.origin();
        self.path.segments.iter().filter(move |s| wanted(s.node)).map(move |s| Stretch {
            node: s.node,
            from: Nanos(s.range.start.nanos_since(origin)),
            to: Nanos(s.range.end.nanos_since(origin)),
        })
    }

    pub(super) fn stretches_on_path(&self, nodes: &[NodeId]) -> Vec<Stretch> {
        let mut is_of: IdVec<NodeId, bool> = IdVec::filled(false, self.forest.len());
        nodes.iter().for_each(|&node| is_of[node] = true);
        self.path_stretches(|node| is_of[node]).collect()
    }
}
