//! Which nodes work on which cloud resources, and which resources had to be there first: to the schedule as good as span links. What is
//! deleted had to outlive those that need it:
//!
//! ```text
//! create base ──► create database ──► create service      delete service ──► delete database ──► delete base
//! ```

use std::collections::{HashMap, HashSet};

use longpole_model::resource_event::DEPENDENCIES;
use longpole_model::{IdVec, Nanos, NodeId, Recording, ids};

use crate::pulumi::call::Call;
use crate::pulumi::urn::{needs_of, urn_of};
use crate::tree::forest::Forest;

ids! {
    /// A cloud resource.
    struct ResourceId;
}

/// Which nodes of a forest work on which resources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    /// For each resource the outermost nodes that work on it, by end.
    units: IdVec<ResourceId, Vec<(Nanos, NodeId)>>,
    /// For each resource those it needs.
    needs: IdVec<ResourceId, Vec<ResourceId>>,
    /// For each resource those that need it.
    needed_by: IdVec<ResourceId, Vec<ResourceId>>,
    /// The outermost nodes and their resource.
    of_node: HashMap<NodeId, ResourceId>,
    /// Those of them that delete it.
    deletes: HashSet<NodeId>,
}

impl Resources {
    /// Reads the attributes of the forest's spans. `end` holds the end of each node.
    pub(crate) fn of(recording: &Recording, forest: &Forest, end: &IdVec<NodeId, Nanos>) -> Resources {
        let mut out = Resources::default();
        if !forest.has_placement_rules() {
            return out;
        }
        // Pulumi's events do not say what depends on what; its payloads do. Where nobody does, parents and providers alone would
        // say that nothing else was waited for.
        if !recording.spans.iter().any(|span| span.attributes.get(DEPENDENCIES).is_some()) {
            return out;
        }
        let mut known: HashMap<&str, ResourceId> = HashMap::new();
        let mut needs: IdVec<ResourceId, Vec<&str>> = IdVec::default();
        // The resource of each node, where it or the nearest node above it that works on one says so.
        let mut inside: IdVec<NodeId, Option<ResourceId>> = IdVec::filled(None, forest.len());
        for node in forest.ids() {
            let above = forest[node].parent.and_then(|p| inside[p]);
            inside[node] = above;
            let Some((span, urn)) = forest.span(recording, node).and_then(|s| Some((s, urn_of(s)?))) else { continue };
            let resource = *known.entry(urn).or_insert_with(|| {
                out.units.push(Vec::new());
                needs.push(Vec::new())
            });
            inside[node] = Some(resource);
            needs[resource].extend(needs_of(span));
            if above != Some(resource) {
                out.units[resource].push((end[node], node));
                out.of_node.insert(node, resource);
                if Call::of(&span.name) == Some(Call::Delete) {
                    out.deletes.insert(node);
                }
            }
        }
        for unit in out.units.iter_mut() {
            unit.sort_unstable();
        }
        // A provider is named by its URN with an id behind it.
        let find = |urn: &&str| known.get(urn).or_else(|| known.get(urn.rsplit_once("::")?.0)).copied();
        out.needs = needs
            .enumerated()
            .map(|(resource, urns)| {
                let mut list: Vec<ResourceId> = urns.iter().filter_map(find).filter(|&r| r != resource).collect();
                list.sort_unstable();
                list.dedup();
                list
            })
            .collect();
        out.needed_by = IdVec::filled(Vec::new(), out.needs.len());
        for (resource, needs) in out.needs.enumerated() {
            needs.iter().for_each(|&needed| out.needed_by[needed].push(resource));
        }
        out
    }

    /// The nodes that may have waited for a resource.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.of_node.keys().copied()
    }

    /// What a node that starts then waited for: of each resource it needs, or, if it deletes one, of each that needs this, the last work that
    /// had ended, and where there is any, of its own too.
    pub(crate) fn waited_for(&self, node: NodeId, start: Nanos) -> Vec<NodeId> {
        let Some(&resource) = self.of_node.get(&node) else { return Vec::new() };
        let last = |&r: &ResourceId| {
            let ended = self.units[r].partition_point(|&(end, _)| end <= start);
            ended.checked_sub(1).map(|last| self.units[r][last].1).filter(|&x| x != node)
        };
        let awaited = if self.deletes.contains(&node) { &self.needed_by } else { &self.needs };
        let mut out: Vec<NodeId> = awaited[resource].iter().filter_map(last).collect();
        if !out.is_empty() {
            out.extend(last(&resource));
        }
        out
    }
}
