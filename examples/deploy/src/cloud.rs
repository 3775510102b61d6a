//! `provider-cloud`: requests resources from an imitated cloud and polls until they are ready, as providers do.

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

    /// Pole 3: for a certificate, this waits for 0.8 s without work.
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

/// A resource that a remote machine is creating. Here it is the time at which the resource is ready.
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

    /// Polls start on schedule, however long one takes.
    fn next_poll(&self, polls: u32) -> Instant {
        self.begun + (timing::CLOUD_POLL * polls).min(self.takes)
    }
}
