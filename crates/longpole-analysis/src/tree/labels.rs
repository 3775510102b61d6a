//! Services and names of all nodes, each text once.

use longpole_model::Recording;
use longpole_model::fast_hash::FastMap;

use crate::tree::forest::Forest;

/// Services and names of all nodes, each text once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Distinct services, in order of their first node.
    pub services: Vec<String>,
    /// Distinct names, in order of their first node.
    pub names: Vec<String>,
    /// For each node its place in `services`.
    pub service: Vec<u32>,
    /// For each node its place in `names`.
    pub name: Vec<u32>,
}

impl Labels {
    /// Those of a forest.
    pub(crate) fn of(recording: &Recording, forest: &Forest) -> Labels {
        fn place<'a>(text: &'a str, seen: &mut FastMap<&'a str, u32>, list: &mut Vec<String>) -> u32 {
            *seen.entry(text).or_insert_with(|| {
                list.push(text.to_owned());
                list.len() as u32 - 1
            })
        }
        let mut labels = Labels::default();
        let (mut services, mut names) = (FastMap::default(), FastMap::default());
        for node in 0..forest.len() {
            labels.service.push(place(forest.service(recording, node), &mut services, &mut labels.services));
            labels.name.push(place(forest.name(recording, node), &mut names, &mut labels.names));
        }
        labels
    }
}
