//! stub
use anyhow::Result;
pub(crate) fn measure() -> Result<()> { Ok(()) }
