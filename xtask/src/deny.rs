//! Licences, bans, sources and known vulnerabilities of every dependency, by `cargo deny`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::run_in;
use crate::need;
use crate::paths::{root, target_dir};

/// The version that `deny.toml` is written for. A newer one may name licences differently and fail without a change here.
const VERSION: &str = "0.20.2";

/// Checks the workspace and the fuzz targets, which have a lock file of their own. A check that cannot run goes to `skip`
/// with the reason; a violation is an error.
pub(crate) fn deny(mut skip: impl FnMut(&str, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let program = match program() {
        Ok(program) => program,
        Err(why) => return skip("licences, sources and advisories of dependencies", &why),
    };
    let program = program.to_string_lossy();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        run_in(&root(), &program, &["--manifest-path", manifest, "check", "licenses", "bans", "sources"], &[])?;
    }
    // The database of advisories is a git repository. A machine that cannot reach it skips the check: the change is not at fault.
    let fetched = Command::new(&*program).args(["fetch", "db"]).current_dir(root()).output();
    match fetched {
        Ok(out) if out.status.success() => run_in(&root(), &program, &["check", "advisories"], &[]),
        _ => skip("advisories of dependencies", "the RustSec database cannot be fetched from here"),
    }
}

/// `cargo-deny` from the path or from the target folder; builds it if both lack it.
fn program() -> Result<PathBuf, String> {
    if need::answers("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let tools = target_dir().join("tools");
    let program = tools.join("bin/cargo-deny");
    if need::answers(&program.to_string_lossy()) {
        return Ok(program);
    }
    // Unoptimised: it is built once and runs for seconds.
    let args = ["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--quiet", "--root", &tools.to_string_lossy()];
    let target = target_dir().join("tools/build");
    let built = run_in(&root(), "cargo", &args, &[("CARGO_TARGET_DIR", &target.to_string_lossy())]);
    remove(&target);
    built.map(|()| program).map_err(|error| format!("no cargo-deny, and {error:#}"))
}

/// Removes the files of the build. A failure leaves them there, which does no harm.
fn remove(dir: &Path) {
    std::fs::remove_dir_all(dir).ok();
}
