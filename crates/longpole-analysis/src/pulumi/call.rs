//! What a span does in a deployment, by its name.

use longpole_model::Span;

use crate::pulumi::opentracing_bridge::PULUMI_CLI;

/// The engine's span around the program.
pub(crate) const RUN_PROGRAM: &str = "run-program";

/// The call in it, as its client names it.
pub(crate) const RUN_PROGRAM_CALL: &str = "pulumirpc.LanguageRuntime/Run";

/// A measurement in the form of a span: from the start of the process to its first output. Nothing waits for it.
const FIRST_PRINT: &str = "time-to-first-print";

/// Whether the span is a measurement, and no work.
pub(crate) fn is_measurement(span: &Span) -> bool {
    span.name == FIRST_PRINT && span.service_name() == PULUMI_CLI
}

/// The name of a call as OpenTelemetry writes it; OpenTracing has a slash in front.
pub(crate) fn method(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// What a span does in a deployment, told by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    /// A program registers a resource, and waits until it is there.
    Register,
    /// A program reads a resource that is not its own, and waits.
    ReadResource,
    /// A provider makes it.
    Create,
    /// A provider reads it.
    Read,
    /// A provider changes it.
    Update,
    /// A provider removes it.
    Delete,
    /// A provider reads data or runs a method of a resource.
    Invoke,
    /// A provider looks at inputs, without the cloud.
    Check,
    /// A provider compares.
    Diff,
}

impl Call {
    /// The call that a span of this name is.
    pub(crate) fn of(name: &str) -> Option<Call> {
        let (service, method) = method(name).strip_prefix("pulumirpc.")?.split_once('/')?;
        Some(match (service, method) {
            ("ResourceMonitor", "RegisterResource") => Call::Register,
            ("ResourceMonitor", "ReadResource") => Call::ReadResource,
            ("ResourceProvider", "Create") => Call::Create,
            ("ResourceProvider", "Read") => Call::Read,
            ("ResourceProvider", "Update") => Call::Update,
            ("ResourceProvider", "Delete") => Call::Delete,
            ("ResourceProvider", "Invoke" | "StreamInvoke" | "Call") => Call::Invoke,
            ("ResourceProvider", "Check") => Call::Check,
            ("ResourceProvider", "Diff") => Call::Diff,
            _ => return None,
        })
    }

    /// Whether a program waits in it for the work on the resource.
    pub(crate) fn waits_for_work(self) -> bool {
        matches!(self, Call::Register | Call::ReadResource)
    }

    /// Whether a registration ends with it.
    pub(super) fn is_awaited(self) -> bool {
        matches!(self, Call::Create | Call::Read | Call::Update)
    }

    /// The calls that an operation of the engine makes: of a provider, and the registration around it.
    pub(super) fn of_operation(op: &str) -> (Option<Call>, Option<Call>) {
        match op {
            "create" | "create-replacement" => (Some(Call::Create), Some(Call::Register)),
            "update" => (Some(Call::Update), Some(Call::Register)),
            "read" | "read-replacement" => (Some(Call::Read), Some(Call::ReadResource)),
            "refresh" => (Some(Call::Read), None),
            "import" | "import-replacement" => (Some(Call::Read), Some(Call::Register)),
            "delete" | "delete-replaced" => (Some(Call::Delete), None),
            "same" => (None, Some(Call::Register)),
            _ => (None, None),
        }
    }
}
