//! Services and names of all nodes, each text once.

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, IdVec, NodeId, Recording, ids};

use crate::tree::forest::Forest;

ids! {
    /// A service, by its place in [`Labels::services`].
    pub struct ServiceId;
    /// A name, by its place in [`Labels::names`].
    pub struct NameId;
}

/// Services and names of all nodes, each text once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Distinct services, in order of their first node.
    pub services: IdVec<ServiceId, String>,
    /// Distinct names, in order of their first node.
    pub names: IdVec<NameId, String>,
    /// The service of each node.
    pub service: IdVec<NodeId, ServiceId>,
    /// The name of each node.
    pub name: IdVec<NodeId, NameId>,
}

impl Labels {
    /// Those of a forest.
    pub(crate) fn of(recording: &Recording, forest: &Forest) -> Labels {
        fn place<'a, I: Id>(text: &'a str, seen: &mut FastMap<&'a str, I>, list: &mut IdVec<I, String>) -> I {
            *seen.entry(text).or_insert_with(|| list.push(text.to_owned()))
        }
        let mut labels = Labels::default();
        let (mut services, mut names) = (FastMap::default(), FastMap::default());
        for node in forest.ids() {
            labels.service.push(place(forest.service(recording, node), &mut services, &mut labels.services));
            labels.name.push(place(forest.name(recording, node), &mut names, &mut labels.names));
        }
        labels
    }
}
