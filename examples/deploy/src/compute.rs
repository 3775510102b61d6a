//! `provider-compute`: bundles web assets, starts services and keeps their state file.

use std::sync::Arc;

use tracing::{Instrument, Span, info};

use crate::bundle::bundle;
use crate::program::{BUNDLE, Resource, SERVICE};
use crate::rpc::Provider;
use crate::state::StateFile;
use crate::{Result, timing};

/// The provider.
pub struct Compute {
    state: Arc<StateFile>,
}

impl Compute {
    /// Opens the state file.
    pub fn new() -> Result<Self> {
        Ok(Self { state: Arc::new(StateFile::create()?) })
    }
}

impl Provider for Compute {
    const NAME: &'static str = "compute";

    async fn create(&self, resource: &Resource) -> Result<String> {
        match resource.resource_type.as_str() {
            BUNDLE => {
                // Pole 1: this burns 1.2 s of CPU.
                let bundle = bundle(timing::BUNDLING).await;
                info!(input_bytes = bundle.input_bytes, output_bytes = bundle.output_bytes, "bundled {}", resource.name);
                Ok(format!("bundle-{:08x}", bundle.checksum))
            }
            SERVICE => {
                // Pole 2: this waits for the state's lock for 0.6 s.
                self.state.begin_checkpoint().await?;
                let (state, name) = (Arc::clone(&self.state), resource.name.clone());
                let span = Span::current();
                // A std lock blocks its thread, which must not be one of the runtime's.
                tokio::task::spawn_blocking(move || span.in_scope(|| state.record(&name))).in_current_span().await??;
                Ok(format!("service-{}", resource.name))
            }
            other => Err(format!("no resources of type {other} are made here").into()),
        }
    }
}
