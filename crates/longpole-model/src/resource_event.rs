//! What Pulumi's engine says about its resources while it works: one line of its event stream.
//!
//! A "resource" here is a cloud resource that a deployment manages; OpenTelemetry's, the emitter of spans, is
//! [`Resource`](crate::Resource).

use crate::time::Timestamp;

/// Attribute of a span: URN of the resource that it works on.
pub const URN: &str = "pulumi.resource.urn";
/// Attribute of a span: type token of that resource, or token of the function that it calls.
pub const TYPE: &str = "pulumi.resource.type";
/// Attribute of a span: URN of the parent of that resource.
pub const PARENT: &str = "pulumi.parent";
/// Attribute of a span: provider of that resource, a URN with the provider's id behind it.
pub const PROVIDER: &str = "pulumi.provider";
/// Attribute of a span: URNs of the resources that it depends on, a list, or a text with commas.
pub const DEPENDENCIES: &str = "pulumi.dependencies";

/// Names of the logs in which legacy tracing writes what an engine and its plug-ins said to each other.
pub const PAYLOAD_LOGS: [&str; 2] = ["gRPC request", "gRPC response"];

/// Where in the work on a resource the event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceStep {
    /// The engine is about to act (`resourcePreEvent`).
    Pre,
    /// It has acted (`resOutputsEvent`).
    Outputs,
    /// It has failed (`resOpFailedEvent`).
    Failed,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceEvent {
    /// When it arrived: Pulumi's own time has whole seconds only.
    pub time: Timestamp,
    /// Before or after.
    pub step: ResourceStep,
    /// What the engine does: `create`, `update`, `delete`, `read`, `same`, `replace`, …
    pub op: String,
    /// Name of the resource, unique in its stack: `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::assets`.
    pub urn: String,
    /// Its type: `aws:s3/bucket:Bucket`.
    pub resource_type: String,
    /// URNs of what it depends on.
    pub dependencies: Vec<String>,
    /// URN of its parent, where it has one.
    pub parent: Option<String>,
    /// Its provider, a URN with the provider's id behind it, if the event names one.
    pub provider: Option<String>,
}
