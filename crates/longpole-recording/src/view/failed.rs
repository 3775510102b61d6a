//! Spans that failed.

use longpole_analysis::Report;
use longpole_analysis::tree::forest::NodeSource;
use longpole_model::{NodeId, Span, StatusCode};
use serde::{Deserialize, Serialize};

use super::shared::{listed, node_handle};

/// Spans that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedSpansView {
    /// How many.
    pub count: usize,
    /// Where it began: the first to end of those without a failed child; null if none failed.
    pub first: Option<FailedSpanView>,
}

/// A span that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedSpanView {
    /// Handle, such as `s3`.
    pub handle: String,
    /// Its name.
    pub name: String,
    /// Its service.
    pub service: String,
    /// What it says of the failure; empty if nothing.
    pub message: String,
}

impl FailedSpansView {
    /// Those of a report.
    pub(super) fn new(report: &Report) -> Self {
        let forest = report.forest();
        let failed = |node: NodeId| -> Option<&Span> {
            let NodeSource::Span(span) = forest[node].source else { return None };
            Some(&report.recording().spans[span]).filter(|span| span.status.code == StatusCode::Error)
        };
        let has_failed_child = |node: NodeId| forest.children(node).any(|child| failed(child).is_some());
        let all = || forest.ids().filter_map(|node| Some((node, failed(node)?)));
        let first = all().filter(|(node, _)| !has_failed_child(*node)).min_by_key(|(node, _)| forest[*node].range.end);
        FailedSpansView {
            count: all().count(),
            first: first.map(|(node, span)| FailedSpanView {
                handle: node_handle(node),
                name: listed(report.name(node)),
                service: listed(report.service(node)),
                message: listed(&span.status.message),
            }),
        }
    }
}
