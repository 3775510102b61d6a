//! Which nodes work on which cloud resources, and which resources had to be there first: to the schedule as good as span links. What is
//! deleted had to outlive those that need it:
//!
//! ```text
//! create base ──► create database ──► create service      delete service ──► delete database ──► delete base
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use longpole_model::resource_event::DEPENDENCIES;
use longpole_model::{IdVec, Nanos, NodeId, Recording, ids};

use crate::pulumi::call::Call;
use crate::pulumi::urn::{needs_of, urn_of};
use crate::tree::forest::Forest;

ids! {
    /// A cloud resource.
    struct ResourceId;
}

/// The end of a node that works on a resource, and the node.
type Work = (Nanos, NodeId);

/// Which nodes of a forest work on which resources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    /// For each resource the outermost nodes that work on it, by end.
    units: IdVec<ResourceId, Vec<Work>>,
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

    /// How many nodes may have waited for a resource.
    pub(crate) fn count(&self) -> usize {
        self.of_node.len()
    }

    /// The node that waited, and the one it waited for: for each resource it needs, or, if it deletes one, for each that needs this, the last work
    /// that had ended, and where there is any, the last on its own too. A node has the `most` waits for what ended last.
    pub(crate) fn waits(&self, start: &IdVec<NodeId, Nanos>, most: usize) -> Vec<(NodeId, NodeId)> {
        let mut asking: Vec<(ResourceId, bool, Nanos, NodeId)> =
            self.of_node.iter().map(|(&node, &resource)| (resource, self.deletes.contains(&node), start[node], node)).collect();
        asking.sort_unstable();
        let mut out = Vec::new();
        for same in asking.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (resource, deletes, ..) = same[0];
            let awaited = if deletes { &self.needed_by[resource] } else { &self.needs[resource] };
            self.waits_of(same, (resource, awaited), most, &mut out);
        }
        out
    }

    /// The waits of nodes that work on one resource, by start. Where several of them waited for the same work on another resource, that is found
    /// once:
    ///
    /// ```text
    /// needed      ├──┤ ├──┤ ├──┤                        ├──┤
    /// asking                     ├──┤  ├──┤  ├──┤              ├──┤      two of its ends are new to those that ask
    /// ```
    fn waits_of(
        &self,
        asking: &[(ResourceId, bool, Nanos, NodeId)],
        (resource, awaited): (ResourceId, &[ResourceId]),
        most: usize,
        out: &mut Vec<(NodeId, NodeId)>,
    ) {
        let ended_by = |r: ResourceId, at: Nanos| self.units[r].partition_point(|&(end, _)| end <= at);
        // Work on others that had ended: the place of the first node that starts after it, the work, and what it replaces.
        let mut news: Vec<(usize, Work, Option<Work>)> = Vec::new();
        for &r in awaited {
            let (mut place, mut before) = (0, None);
            while let Some(&(.., at, _)) = asking.get(place) {
                let ended = ended_by(r, at);
                let last = ended.checked_sub(1).map(|last| self.units[r][last]);
                if let Some(last) = last {
                    news.push((place, last, before.replace(last)));
                }
                let Some(&(next, _)) = self.units[r].get(ended) else { break };
                place = asking.partition_point(|&(.., at, _)| at < next);
            }
        }
        news.sort_unstable();
        let mut news = news.into_iter().peekable();
        let mut last_of_each: BTreeSet<Work> = BTreeSet::new();
        for (place, &(.., at, node)) in asking.iter().enumerate() {
            while let Some((_, work, replaced)) = news.next_if(|&(since, ..)| since <= place) {
                last_of_each.insert(work);
                if let Some(replaced) = replaced {
                    last_of_each.remove(&replaced);
                }
            }
            if last_of_each.is_empty() {
                continue;
            }
            let own = ended_by(resource, at).checked_sub(1).map(|last| self.units[resource][last]).filter(|&(_, own)| own != node);
            let mut latest: Vec<Work> = last_of_each.iter().rev().take(most).copied().chain(own).collect();
            latest.sort_unstable_by_key(|&work| Reverse(work));
            out.extend(latest.into_iter().take(most).map(|(_, other)| (node, other)));
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::Id;
    use proptest::prelude::*;

    use super::*;

    /// Nodes by their number: resource, start, end, whether they delete it. `needs` are pairs of resources.
    fn resources(count: usize, nodes: &[(usize, i64, i64, bool)], needs: &[(usize, usize)]) -> (Resources, IdVec<NodeId, Nanos>) {
        let lists = || IdVec::filled(Vec::new(), count);
        let mut out = Resources { units: IdVec::filled(Vec::new(), count), needs: lists(), needed_by: lists(), ..Resources::default() };
        for (number, &(resource, _, end, deletes)) in nodes.iter().enumerate() {
            let (node, resource) = (NodeId::at(number), ResourceId::at(resource));
            out.units[resource].push((Nanos(end), node));
            out.of_node.insert(node, resource);
            out.deletes.extend(deletes.then_some(node));
        }
        out.units.iter_mut().for_each(|units| units.sort_unstable());
        for &(resource, needed) in needs {
            out.needs[ResourceId::at(resource)].push(ResourceId::at(needed));
            out.needed_by[ResourceId::at(needed)].push(ResourceId::at(resource));
        }
        (out, nodes.iter().map(|&(_, start, ..)| Nanos(start)).collect())
    }

    /// What one node waited for, by a search through all that its resource needs.
    fn searched(resources: &Resources, node: NodeId, start: Nanos, most: usize) -> Vec<(NodeId, NodeId)> {
        let resource = resources.of_node[&node];
        let last = |&r: &ResourceId| resources.units[r].iter().copied().filter(|&(end, _)| end <= start).max().filter(|&(_, x)| x != node);
        let awaited = if resources.deletes.contains(&node) { &resources.needed_by } else { &resources.needs };
        let mut out: Vec<Work> = awaited[resource].iter().filter_map(last).collect();
        if !out.is_empty() {
            out.extend(last(&resource));
        }
        out.sort_unstable_by_key(|&work| Reverse(work));
        out.into_iter().take(most).map(|(_, other)| (node, other)).collect()
    }

    proptest! {
        #[test]
        fn a_node_waits_for_what_a_search_through_all_finds(
            nodes in proptest::collection::vec((0_usize..5, 0_i64..40, 0_i64..15, any::<bool>()), 0..40),
            needs in proptest::collection::btree_set((0_usize..5, 0_usize..5), 0..12),
            most in 1_usize..5,
        ) {
            let nodes: Vec<_> = nodes.into_iter().map(|(resource, start, length, deletes)| (resource, start, start + length, deletes)).collect();
            let needs: Vec<_> = needs.into_iter().filter(|(resource, needed)| resource != needed).collect();
            let (resources, start) = resources(5, &nodes, &needs);
            let mut found = resources.waits(&start, most);
            let mut expected: Vec<_> = start.enumerated().flat_map(|(node, &start)| searched(&resources, node, start, most)).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }

    /// A search through all that the resource needs, for each node that works on it, took 400,000,000 steps here.
    #[test]
    fn a_resource_of_many_nodes_that_needs_many_others_costs_as_much_as_they_are() {
        const MANY: usize = 20_000;
        let needed = (1..=MANY).map(|resource| (resource, 0, resource as i64, false));
        let asking = (0..MANY as i64).map(|number| (0, MANY as i64 + number, i64::MAX, false));
        let nodes: Vec<_> = needed.chain(asking).collect();
        let needs: Vec<_> = (1..=MANY).map(|needed| (0, needed)).collect();
        let (resources, start) = resources(MANY + 1, &nodes, &needs);
        let waits = resources.waits(&start, 16);
        assert_eq!(waits.len(), MANY * 16);
        assert!(waits.iter().all(|(node, other)| node.place() >= MANY && (MANY - 16..MANY).contains(&other.place())));
    }
}
