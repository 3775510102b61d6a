//! What a deployment by Pulumi spent its time on.

use longpole_analysis::pulumi::deployment::DeploymentTime;
use serde::{Deserialize, Serialize};

/// Where the time of a deployment by Pulumi went, along the critical path; the parts sum to `wall_nanos` of the run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DeploymentView {
    /// A provider waited for the cloud.
    pub cloud_wait_nanos: i64,
    /// A provider ran its own code.
    pub provider_nanos: i64,
    /// Pulumi's engine.
    pub engine_nanos: i64,
    /// The language host and the program.
    pub language_host_nanos: i64,
    /// Finding, installing, starting and configuring plug-ins.
    pub plugin_start_nanos: i64,
    /// Reading and writing the state.
    pub state_backend_nanos: i64,
    /// Compiling the program.
    pub compile_nanos: i64,
    /// Nothing of the deployment was running.
    pub idle_nanos: i64,
}

impl DeploymentView {
    pub(super) fn new(time: DeploymentTime) -> Self {
        DeploymentView {
            cloud_wait_nanos: time.cloud_wait.0,
            provider_nanos: time.provider.0,
            engine_nanos: time.engine.0,
            language_host_nanos: time.language_host.0,
            plugin_start_nanos: time.plugin_start.0,
            state_backend_nanos: time.state_backend.0,
            compile_nanos: time.compile.0,
            idle_nanos: time.idle.0,
        }
    }
}
