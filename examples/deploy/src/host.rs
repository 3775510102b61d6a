//! `deploy-host`: the language host. It evaluates the program and sends each resource to the engine as it reaches it.

use tracing::{Instrument, info_span};

use crate::program::resources;
use crate::rpc::{Connection, Declaration};
use crate::{Result, rpc};

/// Evaluates the program.
pub async fn run() -> Result<()> {
    let Connection { mut reader, mut writer } = Connection::to_engine("deploy-host").await?;
    async {
        for resource in resources() {
            writer.write(&Declaration::Resource(resource)).await?;
        }
        writer.write(&Declaration::End).await
    }
    .instrument(info_span!("evaluate program"))
    .await?;
    // The engine sends nothing; it closes the connection when it has received everything.
    match reader.read::<rpc::Answer>().await? {
        None => Ok(()),
        Some(answer) => Err(format!("unexpected answer from the engine: {answer:?}").into()),
    }
}
