//! The README's first command: the main job, on an example of four processes.

use anyhow::Result;

use crate::command::{run, run_in};
use crate::paths::{root, target_dir};
use crate::web;

/// Builds, records `examples/deploy`, prints its long pole and leaves the recording to `longpole open last`.
pub(crate) fn demo() -> Result<()> {
    // The page comes first: the binary embeds it. Without Node the answer in the terminal is still whole.
    if let Err(error) = web::build() {
        eprintln!("xtask: the page is left out ({error:#}); the answer in the terminal does not need it");
    }
    // The query engine would take two thirds of the time, and nothing here queries; optimizing others' crates half of the rest.
    run("cargo", &["build", "--profile", "demo", "--no-default-features", "-p", "longpole", "-p", "deploy-example"])?;
    let root = root();
    let target = target_dir();
    let longpole = target.join("demo/longpole");
    let deploy = target.join("demo/deploy");
    eprintln!();
    run_in(&root, &longpole.to_string_lossy(), &["run", "--", &deploy.to_string_lossy()], &[])?;
    let shown = longpole.strip_prefix(&root).unwrap_or(&longpole).display();
    eprintln!("\nThe recording is kept. See it in the browser:\n\n    {shown} open last\n");
    Ok(())
}
