//! The page: installed from its lock file, checked, built into `web/dist`.

use anyhow::{Context, Result, ensure};

use crate::{need, root, run_in};

/// Installs what `web/package-lock.json` names, unless that very file was installed already.
pub(crate) fn install() -> Result<()> {
    ensure!(need::answers("npm"), "the page needs Node.js 20 or later with npm, and there is no npm here");
    let web = root().join("web");
    let lock = std::fs::read(web.join("package-lock.json")).context("failed to read web/package-lock.json")?;
    let installed = web.join("node_modules/.longpole-lock");
    if std::fs::read(&installed).is_ok_and(|known| known == lock) {
        return Ok(());
    }
    run_in(&web, "npm", &["ci", "--no-audit", "--no-fund"], &[])?;
    std::fs::write(installed, lock).context("failed to note what was installed")
}

/// Builds the page.
pub(crate) fn build() -> Result<()> {
    install()?;
    run_in(&root().join("web"), "npm", &["run", "build"], &[])
}

/// Type check, imports, lint and unit tests of the page.
pub(crate) fn check() -> Result<()> {
    install()?;
    run_in(&root().join("web"), "npm", &["run", "check"], &[])
}
