//! The measured claims: builds the shipped binary, then `longpole-bench`.

use anyhow::Result;

use crate::command::{run, run_in};
use crate::dist;
use crate::paths::{peers_dir, root, target_dir};

/// Runs the named measurements, or all; with `--before PATH` beside the longpole of an earlier commit.
pub(crate) fn bench(names: &[&str]) -> Result<()> {
    dist::dist()?;
    run("cargo", &["build", "--profile", "dist", "-p", "longpole-bench"])?;
    let dir = target_dir().join("dist");
    let (program, longpole) = (dir.join("longpole-bench"), dir.join("longpole"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let peers = [peers_dir().join("bin"), peers_dir().join("pulumi/bin")];
    let path = std::env::join_paths(peers.into_iter().chain(std::env::split_paths(&path)))?;
    let path = path.to_string_lossy();
    if let ["gen", arguments @ ..] = names {
        let mut args = vec!["gen"];
        args.extend(arguments);
        return run_in(&root(), &program.to_string_lossy(), &args, &[]);
    }
    if let [name @ ("pulumi" | "serve" | "truth"), arguments @ ..] = names {
        let longpole = longpole.to_string_lossy();
        let args: Vec<&str> = [*name, &longpole].into_iter().chain(arguments.iter().copied()).collect();
        return run_in(&root(), &program.to_string_lossy(), &args, &[("PATH", &path)]);
    }
    let (names, before) = match names.iter().position(|name| *name == "--before") {
        Some(at) => (&names[..at], &names[at..]),
        None => (names, &names[..0]),
    };
    let all = ["startup", "context", "states", "flame", "overhead", "answer", "import"];
    for name in if names.is_empty() { &all[..] } else { names } {
        let mut args = vec![*name];
        let longpole = longpole.to_string_lossy();
        if !["context", "states", "flame"].contains(name) {
            args.push(&longpole);
            args.extend(before);
        }
        run_in(&root(), &program.to_string_lossy(), &args, &[("PATH", &path)])?;
    }
    Ok(())
}
