//! The house rules, as a task and as a test. What they are and why: `ARCHITECTURE.md`, "Arrows" and "Invariants", and `STYLE.md`.

mod circles;
mod crate_arrows;
mod english;
mod features;
mod file_names;
mod file_sizes;
mod links;
mod modules;
mod registries;
mod screen;
mod source;
mod type_names;
mod unsafe_files;
mod waits;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::paths::root;

/// A house rule.
struct Rule {
    name: &'static str,
    check: fn(&House) -> Result<Vec<String>>,
}

const RULES: &[Rule] = &[
    Rule { name: "crate arrows", check: crate_arrows::crate_arrows },
    Rule { name: "features", check: features::features },
    Rule { name: "file names", check: |house| Ok(file_names::file_names(house)) },
    Rule { name: "file sizes", check: |house| Ok(file_sizes::file_sizes(house)) },
    Rule { name: "unsafe files", check: |house| Ok(unsafe_files::unsafe_files(house)) },
    Rule { name: "waits", check: |house| Ok(waits::waits(house)) },
    Rule { name: "screen", check: |house| Ok(screen::screen(house)) },
    Rule { name: "registries", check: |house| Ok(registries::registries(house)) },
    Rule { name: "links", check: |house| Ok(links::links(house)) },
    Rule { name: "circles", check: |house| Ok(circles::circles(house)) },
    Rule { name: "module convention", check: |house| Ok(modules::conventions(house)) },
    Rule { name: "file length", check: |house| Ok(modules::lengths(house)) },
    Rule { name: "type names", check: |house| Ok(type_names::type_names(house)) },
    Rule { name: "plain English", check: |house| Ok(english::english(house)) },
];

/// A file that the rules read.
struct File {
    /// From the root of the repository.
    path: String,
    text: String,
}

impl File {
    fn new(path: String, text: String) -> File {
        File { path, text }
    }

    /// What breaks a rule, and where.
    fn finding(&self, line: usize, wrong: &str) -> String {
        format!("{}:{line}: {wrong}", self.path)
    }
}

/// The repository as the rules see it.
struct House {
    root: PathBuf,
    files: Vec<File>,
}

impl House {
    /// Reads what is ours and text: sources, pages, manifests.
    fn read(root: PathBuf) -> House {
        let mut paths = Vec::new();
        for dir in ["crates", "examples", "xtask", "bench", "fuzz", "web/src", "web/stories", "docs"] {
            list(&root.join(dir), &mut paths);
        }
        paths.extend(["README.md", "ARCHITECTURE.md", "STYLE.md", "CHANGELOG.md", "SECURITY.md", "Cargo.toml"].map(|name| root.join(name)));
        paths.sort_unstable();
        let files = paths.into_iter().filter_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some(File::new(path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned(), text))
        });
        House { files: files.collect(), root }
    }

    /// The files of Rust.
    fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The folders of the workspace's crates, from the root.
    fn crates(&self) -> BTreeSet<String> {
        let sources = self.files.iter().filter_map(|file| file.path.split_once("/src/"));
        sources.map(|(krate, _)| krate.to_owned()).filter(|krate| krate != "web").collect()
    }
}

/// Prints what breaks a rule; fails if something does.
pub(crate) fn report() -> Result<()> {
    let broken = broken(&House::read(root()))?;
    for line in &broken {
        eprintln!("tidy: {line}");
    }
    if broken.is_empty() {
        eprintln!("tidy: the house is in order");
        Ok(())
    } else {
        bail!("{} places break a house rule", broken.len())
    }
}

/// One line for each place that breaks a rule.
fn broken(house: &House) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for rule in RULES {
        broken.extend((rule.check)(house)?.into_iter().map(|found| format!("{}: {found}", rule.name)));
    }
    Ok(broken)
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !matches!(name.as_ref(), "target" | "node_modules" | "dist" | "corpus" | "artifacts") {
                list(&path, files);
            }
        } else if ["rs", "ts", "tsx", "mjs", "md", "toml", "css"].iter().any(|end| name.ends_with(&format!(".{end}"))) {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_rules_hold() {
        let broken = broken(&House::read(root())).unwrap();
        assert!(broken.is_empty(), "broken house rules:\n{}", broken.join("\n"));
    }
}
