//! Every third-party crate has one set of features, whatever is built.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::House;

/// What each task builds, as arguments of cargo: a third-party crate that two of them build with other features is built twice, and so are all
/// crates above it. The tests come first, for they build the most.
const BUILDS: [(&str, &[&str]); 3] = [
    ("tests", &["--workspace", "-e", "normal,build,dev"]),
    ("demo", &["-p", "longpole", "-p", "deploy-example", "--no-default-features", "-e", "normal,build"]),
    ("product", &["-p", "longpole", "-p", "deploy-example", "-p", "xtask", "-e", "normal,build"]),
];

/// The feature sets of each package; two where a build script or a macro needs it as well.
type Built = BTreeMap<String, BTreeSet<String>>;

pub(super) fn features(house: &House) -> Result<Vec<String>> {
    let tests = built(house, BUILDS[0].1)?;
    let mut found = Vec::new();
    for (name, what) in &BUILDS[1..] {
        for (package, sets) in built(house, what)? {
            // Our own crates have features to differ in.
            let is_ours = package.contains(" (/");
            let of_tests = tests.get(&package);
            if !is_ours && of_tests.is_none_or(|of_tests| !sets.is_subset(of_tests)) {
                found.push(format!("Cargo.toml: the {name} builds {package} with {sets:?}, the tests with {of_tests:?}: pin its features"));
            }
        }
    }
    Ok(found)
}

fn built(house: &House, what: &[&str]) -> Result<Built> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&house.root).args(["tree", "--quiet", "--prefix", "none", "-f", "{p}\t{f}"]).args(what);
    let out = cargo.output().context("failed to run cargo tree")?;
    if !out.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let mut found = Built::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let (package, features) = line.split_once('\t').unwrap_or((line, ""));
        found.entry(package.to_owned()).or_default().insert(features.trim_end_matches(" (*)").to_owned());
    }
    Ok(found)
}
