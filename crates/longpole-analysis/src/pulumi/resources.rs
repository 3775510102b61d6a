//! Which nodes work on which cloud resources, and which resources had to be there first: to the schedule as good as span links.

use std::collections::HashMap;

use longpole_model::resource_event::DEPENDENCIES;
use longpole_model::{Nanos, Recording};

use crate::pulumi::urn::{needs_of, urn_of};
use crate::tree::forest::Forest;

/// Which nodes of a forest work on which resources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    /// For each resource the outermost nodes that work on it, by end.
    units: Vec<Vec<(Nanos, usize)>>,
    /// For each resource those it needs.
    needs: Vec<Vec<usize>>,
    /// The outermost nodes and their resource.
    of_node: HashMap<usize, usize>,
}

impl Resources {
    /// Reads the attributes of the forest's spans. `end` holds the end of each node.
    pub(crate) fn of(recording: &Recording, forest: &Forest, end: &[Nanos]) -> Resources {
        let mut out = Resources::default();
        if !forest.has_placement_rules() {
            return out;
        }
        // Pulumi's events do not say what depends on what; its payloads do. Where nobody does, parents and providers alone would
        // say that nothing else was waited for.
        if !recording.spans.iter().any(|span| span.attributes.get(DEPENDENCIES).is_some()) {
            return out;
        }
        let mut number: HashMap<&str, usize> = HashMap::new();
        let mut needs: Vec<Vec<&str>> = Vec::new();
        // The resource of each node, where it or the nearest node above it that works on one says so.
        let mut inside: Vec<Option<usize>> = vec![None; forest.len()];
        for node in 0..forest.len() {
            let above = forest.nodes[node].parent().and_then(|p| inside[p]);
            inside[node] = above;
            let Some((span, urn)) = forest.span(recording, node).and_then(|s| Some((s, urn_of(s)?))) else { continue };
            let resource = *number.entry(urn).or_insert_with(|| {
                needs.push(Vec::new());
                out.units.push(Vec::new());
                needs.len() - 1
            });
            inside[node] = Some(resource);
            needs[resource].extend(needs_of(span));
            if above != Some(resource) {
                out.units[resource].push((end[node], node));
                out.of_node.insert(node, resource);
            }
        }
        for unit in &mut out.units {
            unit.sort_unstable();
        }
        // A provider is named by its URN with an id behind it.
        let find = |urn: &&str| number.get(urn).or_else(|| number.get(urn.rsplit_once("::")?.0)).copied();
        out.needs = needs
            .iter()
            .enumerate()
            .map(|(resource, urns)| {
                let mut list: Vec<usize> = urns.iter().filter_map(find).filter(|&r| r != resource).collect();
                list.sort_unstable();
                list.dedup();
                list
            })
            .collect();
        out
    }

    /// The nodes that may have waited for a resource.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.of_node.keys().copied()
    }

    /// What a node that starts then waited for: of each resource it needs the last work that had ended, and where there is any,
    /// of its own too.
    pub(crate) fn waited_for(&self, node: usize, start: Nanos) -> Vec<usize> {
        let Some(&resource) = self.of_node.get(&node) else { return Vec::new() };
        let last = |&r: &usize| {
            let ended = self.units[r].partition_point(|&(end, _)| end <= start);
            ended.checked_sub(1).map(|last| self.units[r][last].1).filter(|&x| x != node)
        };
        let mut out: Vec<usize> = self.needs[resource].iter().filter_map(last).collect();
        if !out.is_empty() {
            out.extend(last(&resource));
        }
        out
    }
}
