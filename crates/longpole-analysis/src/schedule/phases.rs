//! What work on a resource waited for besides other resources: a phase of its program.
//!
//! ```text
//! program  ├──────────────────────────────────────┤
//!   stack    ├──┤
//!   schema      ├────────┤
//!   schema                ├───────┤
//!   bucket                         ├─────────┤         needs stack
//! ```
//!
//! `bucket` could have started when `stack` was there. But it started just after `schema` had ended, when nothing else ran: the program
//! was busy with that.

use std::collections::BTreeMap;

use longpole_model::{IdVec, Nanos, NodeId};

use crate::tree::forest::Forest;

/// A start so soon after a phase, as a part of the time since all it needs was there, waited for the phase; by chance it would follow with
/// less than this probability.
const WAIT_PART: i64 = 20;

/// Waits beside those for the resources that a node needs: the node that waited, and the one it waited for. What has no `end_host` nobody
/// waits for.
pub(super) fn waits(
    needed: &[(NodeId, NodeId)],
    forest: &Forest,
    end_host: &IdVec<NodeId, Option<NodeId>>,
    (start, end): (&IdVec<NodeId, Nanos>, &IdVec<NodeId, Nanos>),
) -> Vec<(NodeId, NodeId)> {
    let mut since: BTreeMap<NodeId, Nanos> = BTreeMap::new();
    for &(node, other) in needed {
        let since = since.entry(node).or_insert(Nanos::ZERO);
        *since = (*since).max(end[other]);
    }
    let mut children: BTreeMap<NodeId, Vec<NodeId>> = since.keys().filter_map(|&node| Some((forest[node].parent?, Vec::new()))).collect();
    children.iter_mut().for_each(|(&parent, children)| children.extend(forest.children(parent)));
    let mut out = Vec::new();
    for siblings in children.values_mut() {
        siblings.sort_by_key(|&node| (start[node], node));
        // The last end of all before, and at the last moment at which nothing ran.
        let (mut last, mut phase): (Option<NodeId>, Option<NodeId>) = (None, None);
        for &node in siblings.iter() {
            if last.is_some_and(|last| end[last] <= start[node]) {
                phase = last;
            }
            if let (Some(phase), Some(&since)) = (phase, since.get(&node))
                && end[phase] > since
                && start[node] - end[phase] <= (start[node] - since) / WAIT_PART
            {
                out.push((node, phase));
            }
            if end_host[node].is_some() && last.is_none_or(|last| end[node] > end[last]) {
                last = Some(node);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use crate::Report;

    /// Milliseconds of the path in `schema`, if the bucket is registered then.
    fn schema_on_path(registered: &str) -> i64 {
        let urn = |name: &str| format!("pulumi.resource.urn=urn:pulumi:dev::shop::a:b:C::{name}");
        let report = Report::new(
            text::parse(&format!(
                "\
run pulumi up  0..1000ms
  program  1..990ms  pulumi-cli
    pulumirpc.ResourceMonitor/RegisterResource  10..20ms  pulumi-cli  {stack}
    schema  15..400ms  pulumi-cli
    schema  401..800ms  pulumi-cli
    pulumirpc.ResourceMonitor/RegisterResource  {registered}  pulumi-cli  {bucket} pulumi.dependencies=urn:pulumi:dev::shop::a:b:C::stack
",
                stack = urn("stack"),
                bucket = urn("bucket"),
            ))
            .unwrap(),
        );
        report.poles().iter().filter(|pole| pole.name == "schema").map(|pole| pole.on_path.0 / 1_000_000).sum()
    }

    #[test]
    fn work_that_starts_just_after_a_phase_of_its_program_waited_for_it() {
        assert_eq!(schema_on_path("805..980ms"), 784);
        // So late it may have started by itself, and so early it did.
        assert_eq!([schema_on_path("900..980ms"), schema_on_path("790..980ms")], [0, 0]);
    }
}
