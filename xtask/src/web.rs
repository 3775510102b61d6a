//! The page: installed from its lock file, checked, built into `web/dist`.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use crate::command::run_in;
use crate::need;
use crate::paths::root;

/// The folders in `web/` that a build writes.
const MADE: [&str; 3] = ["dist", "node_modules", ".tsbuild"];

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

/// Builds the page if a file of it changed: with a new `dist`, cargo embeds it and links the shipped binary again, which takes minutes.
pub(crate) fn build() -> Result<()> {
    install()?;
    let web = root().join("web");
    // The last file that a build writes. A checkout may share `node_modules` with another, but not its `dist`.
    let built = web.join("dist/index.html.br");
    let is_newer = |built| changed(&web).is_ok_and(|changed| changed < built);
    if std::fs::metadata(built).and_then(|it| it.modified()).is_ok_and(is_newer) {
        return Ok(());
    }
    run_in(&web, "npm", &["run", "build"], &[])
}

/// The last time that a source file of the page was written, added or removed.
fn changed(dir: &Path) -> std::io::Result<SystemTime> {
    let mut last = SystemTime::UNIX_EPOCH;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if MADE.iter().any(|made| name == *made) {
            continue;
        }
        last = last.max(entry.metadata()?.modified()?);
        if entry.file_type()?.is_dir() {
            last = last.max(changed(&entry.path())?);
        }
    }
    Ok(last)
}

/// Type check, imports, lint and unit tests of the page.
pub(crate) fn check() -> Result<()> {
    install()?;
    run_in(&root().join("web"), "npm", &["run", "check"], &[])
}
