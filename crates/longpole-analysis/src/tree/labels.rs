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

/// The method of a gRPC call, `package.Service/Method`, with a slash in front or not. `None` for any other name, a route of a web service
/// among them.
pub fn method_of_call(name: &str) -> Option<&str> {
    let (service, method) = name.trim_start_matches('/').split_once('/')?;
    (service.contains('.') && !service.contains(' ') && !method.contains('/')).then_some(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_a_method_and_routes_have_none() {
        assert_eq!(method_of_call("/pulumirpc.ResourceProvider/Create"), Some("Create"));
        assert_eq!(method_of_call("grpc.health.v1.Health/Check"), Some("Check"));
        for whole in ["GET /api/v1.2/users", "/v1.2/users/7", "plain", "/users"] {
            assert_eq!(method_of_call(whole), None, "{whole}");
        }
    }
}
