//! `provider-cloud`: asks an imitated cloud for resources and looks again and again until they are ready, as providers do.

use std::time::Duration;

use tokio::time::Instant;
use tracing::info;

use crate::program::Resource;
use crate::rpc::Provider;
use crate::{Result, timing};

/// The provider.
pub struct Cloud;

impl Provider for Cloud {
    const NAME: &'static str = "cloud";

    /// Pole 3: for a certificate, this waits for 0.8 s and does nothing.
    async fn create(&self, resource: &Resource) -> Result<String> {
        let operation = RemoteOperation::begin(resource)?;
        let mut polls = 0;
        while !operation.is_ready() {
            polls += 1;
            tokio::time::sleep_until(operation.next_poll(polls)).await;
        }
        info!(polls, "{} is ready", resource.name);
        Ok(format!("cloud-{}", resource.name))
    }
}

/// Something that a machine far away is working on. Here it is a time at which it will be ready.
struct RemoteOperation {
    begun: Instant,
    takes: Duration,
}

impl RemoteOperation {
    fn begin(resource: &Resource) -> Result<Self> {
        let takes = timing::cloud(&resource.resource_type);
        let takes = takes.ok_or_else(|| format!("the cloud knows no resources of type {}", resource.resource_type))?;
        Ok(Self { begun: Instant::now(), takes })
    }

    fn is_ready(&self) -> bool {
        self.begun.elapsed() >= self.takes
    }

    /// Polls keep to their times, whatever a poll takes.
    fn next_poll(&self, polls: u32) -> Instant {
        self.begun + (timing::CLOUD_POLL * polls).min(self.takes)
    }
}
