//! Every third-party crate has one set of features, whatever is built.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Finding, House};

/// What is built for the product is what is built for its tests: a dependency below DataFusion with other features makes it, and
/// all above, be built twice.
pub(super) fn features(house: &House) -> Result<Vec<Finding>> {
    let tree = |what: &[&str]| -> Result<BTreeMap<String, BTreeSet<String>>> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&house.root).args(["tree", "--quiet", "--prefix", "none", "-f", "{p}\t{f}"]).args(what);
        let out = cargo.output().context("failed to run cargo tree")?;
        if !out.status.success() {
            bail!("cargo tree: {}", String::from_utf8_lossy(&out.stderr).trim());
        }
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            let (package, features) = line.split_once('\t').unwrap_or((line, ""));
            found.entry(package.to_owned()).or_default().insert(features.trim_end_matches(" (*)").to_owned());
        }
        Ok(found)
    };
    let below = tree(&["-p", "longpole-query", "-e", "normal,build"])?;
    let product = tree(&["-p", "longpole", "-p", "deploy-example", "-p", "xtask", "-e", "normal,build"])?;
    let tests = tree(&["--workspace", "-e", "normal,build,dev"])?;
    let mut found = Vec::new();
    for package in below.keys() {
        if let (Some(product), Some(tests)) = (product.get(package), tests.get(package))
            && product != tests
        {
            let text = format!("Cargo.toml: {package} is built as {product:?} and for tests as {tests:?}: pin its features");
            found.push(Finding { room: "Cargo.toml".to_owned(), text });
        }
    }
    Ok(found)
}
