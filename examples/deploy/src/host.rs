//! `deploy-host`: the language host. It evaluates the program and tells the engine each resource as it comes to it.

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
    // The engine sends nothing; that it closes means that it has heard everything.
    match reader.read::<rpc::Answer>().await? {
        None => Ok(()),
        Some(answer) => Err(format!("the engine answers what nobody asked: {answer:?}").into()),
    }
}
