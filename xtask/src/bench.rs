//! The measured claims: builds the shipped binary, then `longpole-bench`.

use anyhow::Result;

use crate::demo::target_dir;
use crate::{dist, run};

/// Runs the named measurements, or all.
pub(crate) fn bench(names: &[&str]) -> Result<()> {
    dist::dist()?;
    run("cargo", &["build", "--profile", "dist", "-p", "longpole-bench"])?;
    let dir = target_dir().join("dist");
    let (program, longpole) = (dir.join("longpole-bench"), dir.join("longpole"));
    let all = ["startup", "context", "overhead", "answer"];
    for name in if names.is_empty() { &all[..] } else { names } {
        let mut args = vec![*name];
        let longpole = longpole.to_string_lossy();
        if *name != "context" {
            args.push(&longpole);
        }
        run(&program.to_string_lossy(), &args)?;
    }
    Ok(())
}
