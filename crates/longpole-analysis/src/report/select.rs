//! Choosing nodes: by handle, by name, by trace.

use longpole_model::{Id, IdVec, NodeId, SpanId, TraceId};

use crate::pulumi::urn::{name_of_urn, title_of_urn};
use crate::report::{Handle, Report};
use crate::tree::labels::{NameId, method_of_call};

impl Report {
    /// The node that a handle names: itself, or the first of the pole.
    pub fn node_of(&self, handle: Handle) -> Option<NodeId> {
        match handle {
            Handle::Node(node) => self.forest.nodes.get(node).map(|_| node),
            Handle::Pole(pole) => self.poles().get(pole).and_then(|p| p.nodes.first()).copied(),
            Handle::Function(_) => None,
        }
    }

    /// The node of the span with this id: of several, which only different traces can have, the first.
    pub fn node_of_span_id(&self, id: SpanId) -> Option<NodeId> {
        let run = &self.recording.run;
        if run.root_span_id == id {
            return self.forest.node_of_id(&self.recording, run.trace_id, id);
        }
        let span = self.recording.spans.iter().find(|span| span.span_id == id)?;
        self.forest.node_of_id(&self.recording, span.trace_id, id)
    }

    /// The nodes of this name. If no operation has it, those that work on the cloud resource that has it (by its name, its type and name as
    /// answers write it, or its URN), else the calls of this method: `Create` of `/pulumirpc.ResourceProvider/Create`.
    pub fn nodes_of_name(&self, name: &str) -> Vec<NodeId> {
        let labels = self.labels();
        let Some(wanted) = labels.names.iter().position(|known| known == name).map(NameId::at) else {
            let is_of_resource = |&node: &NodeId| self.resource(node).is_some_and(|urn| is_called(urn, name));
            let of_resource: Vec<NodeId> = self.forest.ids().filter(is_of_resource).collect();
            if !of_resource.is_empty() {
                return of_resource;
            }
            let is_method: IdVec<NameId, bool> = labels.names.iter().map(|known| method_of_call(known) == Some(name)).collect();
            return self.forest.ids().filter(|&node| is_method[labels.name[node]]).collect();
        };
        self.forest.ids().filter(|&node| labels.name[node] == wanted).collect()
    }

    /// The name that this text means: itself (an operation, a resource or a method), or the only name that contains it, whatever the case.
    /// Without any of these, the names of operations and resources that contain it.
    pub fn names_like<'a>(&'a self, text: &'a str) -> (Option<&'a str>, Vec<&'a str>) {
        let names = &self.labels().names;
        if let Some(exact) = names.iter().find(|name| *name == text) {
            return (Some(exact), Vec::new());
        }
        let mut urns: Vec<&str> = self.forest.ids().filter_map(|node| self.resource(node)).collect();
        urns.sort_unstable();
        urns.dedup();
        if urns.iter().any(|urn| is_called(urn, text)) || names.iter().any(|name| method_of_call(name) == Some(text)) {
            return (Some(text), Vec::new());
        }
        let wanted = text.to_lowercase();
        let resources = urns.iter().map(|urn| name_of_urn(urn));
        let mut similar: Vec<&str> =
            names.iter().map(String::as_str).chain(resources).filter(|name| name.to_lowercase().contains(&wanted)).collect();
        similar.dedup();
        if let [only] = similar[..] { (Some(only), Vec::new()) } else { (None, similar) }
    }

    /// The spans of this trace, as nodes.
    pub fn nodes_of_trace(&self, trace: TraceId) -> Vec<NodeId> {
        let is_of = |&node: &NodeId| self.forest.span(&self.recording, node).is_some_and(|span| span.trace_id == trace);
        self.forest.ids().filter(is_of).collect()
    }

    /// Those of these nodes, which stand in tree order, that are not below another of them.
    pub fn outermost(&self, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
        let mut covered = NodeId::RUN;
        nodes.retain(|&node| (node >= covered).then(|| covered = self.forest[node].subtree_end).is_some());
        nodes
    }
}

/// Whether people call the resource of this URN so.
fn is_called(urn: &str, name: &str) -> bool {
    urn == name || name_of_urn(urn) == name || title_of_urn(urn) == name
}

#[cfg(test)]
mod tests {
    use longpole_model::{NodeId, text};

    use crate::Report;

    #[test]
    fn operations_on_a_resource_are_found_by_its_name() {
        let urn = "urn:pulumi:dev::shop::my:Site$aws:s3:Bucket::web";
        let input = format!(
            "up 0..50ms\n  Register 1..9ms pulumi.resource.urn={urn}\n    Create 2..5ms pulumi.resource.urn={urn}\n  web-hook 20..30ms\n"
        );
        let report = Report::new(text::parse(&input).unwrap());
        for name in ["web", "aws:s3:Bucket web", urn] {
            let names: Vec<&str> = report.nodes_of_name(name).into_iter().map(|node| report.name(node)).collect();
            assert_eq!(names, ["Register", "Create"], "{name}");
            assert!(report.names_like(name).0.is_some(), "{name}");
        }
        let calls = Report::new(text::parse("/a.B/Get 0..9ms\n  a.B/Get 1..8ms\n    Getter 2..3ms\n").unwrap());
        assert_eq!(calls.nodes_of_name("Get").len(), 2);
        assert_eq!(calls.names_like("Get"), (Some("Get"), Vec::new()));
        assert_eq!(report.names_like("hook"), (Some("web-hook"), Vec::new()));
        assert_eq!(report.names_like("we"), (None, vec!["web-hook", "web"]));
    }

    #[test]
    fn spans_are_found_by_name_and_by_trace_and_none_counts_twice() {
        let report = Report::new(text::parse("a 0..50ms svc\n  b 1..9ms svc\n    a 2..5ms svc\ntrace 2\na 60..70ms svc\n").unwrap());
        let starts = |nodes: Vec<NodeId>| -> Vec<i64> {
            nodes.iter().map(|&node| report.forest()[node].range.start.nanos_since(report.origin()) / 1_000_000).collect()
        };
        assert_eq!(starts(report.nodes_of_name("a")), [0, 2, 60]);
        assert_eq!(starts(report.outermost(report.nodes_of_name("a"))), [0, 60]);
        assert!(report.nodes_of_name("c").is_empty());
        let trace = report.recording().spans.last().unwrap().trace_id;
        assert_eq!(starts(report.outermost(report.nodes_of_trace(trace))), [60]);
    }
}
