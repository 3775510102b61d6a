//! The house rules, as a task and as a test. What they are and why: `ARCHITECTURE.md`, "Arrows" and "Invariants", and `STYLE.md`.

mod circles;
mod crate_arrows;
mod debt;
mod english;
mod features;
mod file_names;
mod links;
mod modules;
mod registries;
mod screen;
mod source;
mod type_names;
mod unsafe_files;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::paths::root;

/// A house rule.
struct Rule {
    name: &'static str,
    check: fn(&House) -> Result<Vec<Finding>>,
    debt: debt::Debt,
}

const RULES: &[Rule] = &[
    Rule { name: "crate arrows", check: crate_arrows::crate_arrows, debt: &[] },
    Rule { name: "features", check: features::features, debt: &[] },
    Rule { name: "file names", check: |house| Ok(file_names::file_names(house)), debt: &[] },
    Rule { name: "unsafe files", check: |house| Ok(unsafe_files::unsafe_files(house)), debt: &[] },
    Rule { name: "waits", check: |house| Ok(waits::waits(house)), debt: &[] },
    Rule { name: "screen", check: |house| Ok(screen::screen(house)), debt: &[] },
    Rule { name: "registries", check: |house| Ok(registries::registries(house)), debt: &[] },
    Rule { name: "links", check: |house| Ok(links::links(house)), debt: &[] },
    Rule { name: "circles", check: |house| Ok(circles::circles(house)), debt: debt::CIRCLES },
    Rule { name: "module convention", check: |house| Ok(modules::conventions(house)), debt: debt::CONVENTIONS },
    Rule { name: "file length", check: |house| Ok(modules::lengths(house)), debt: debt::LENGTHS },
    Rule { name: "type names", check: |house| Ok(type_names::type_names(house)), debt: debt::TYPE_NAMES },
    Rule { name: "plain English", check: |house| Ok(english::english(house)), debt: debt::ENGLISH },
];

/// What breaks a rule.
struct Finding {
    /// A crate, a folder at the root, or a page of the root.
    room: String,
    /// Where, and what is wrong.
    text: String,
}

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

    /// The crate of a file in `crates` or `examples`, else the folder at the root, or the file itself.
    fn room(&self) -> &str {
        House::room(&self.path)
    }

    fn finding(&self, line: usize, wrong: &str) -> Finding {
        Finding { room: self.room().to_owned(), text: format!("{}:{line}: {wrong}", self.path) }
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

    fn room(path: &str) -> &str {
        let mut parts = path.split('/');
        match (parts.next(), parts.next()) {
            (Some("crates" | "examples"), Some(krate)) => krate,
            (Some(folder), _) => folder,
            (None, _) => path,
        }
    }
}

/// Prints what breaks a rule and how much is owed; fails where something breaks one.
pub(crate) fn report() -> Result<()> {
    let judged = judge(&House::read(root()))?;
    for owed in &judged.owed {
        eprintln!("tidy: {owed}");
    }
    for line in &judged.broken {
        eprintln!("tidy: {line}");
    }
    if judged.broken.is_empty() {
        eprintln!("tidy: the house is in order");
        Ok(())
    } else {
        bail!("{} house rules are broken", judged.broken.len())
    }
}

/// What the rules find.
#[derive(Default)]
struct Judged {
    /// One line a finding that no debt covers.
    broken: Vec<String>,
    /// One line a rule with debts.
    owed: Vec<String>,
}

fn judge(house: &House) -> Result<Judged> {
    let mut judged = Judged::default();
    for rule in RULES {
        let mut rooms: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for Finding { room, text } in (rule.check)(house)? {
            rooms.entry(room).or_default().push(text);
        }
        let mut owed = Vec::new();
        for (room, found) in rooms {
            let allowed = rule.debt.iter().find(|(name, _)| *name == room).map_or(0, |(_, count)| *count);
            if found.len() > allowed {
                judged.broken.push(format!("{}: {} in {room}, {allowed} allowed:", rule.name, found.len()));
                judged.broken.extend(found);
            } else {
                let lower = if found.len() < allowed { format!(" (lower the {allowed} in xtask/src/tidy/debt.rs)") } else { String::new() };
                owed.push((found.len(), format!("{room} {}{lower}", found.len())));
            }
        }
        if !owed.is_empty() {
            let sum: usize = owed.iter().map(|(count, _)| count).sum();
            let rooms: Vec<String> = owed.into_iter().map(|(_, room)| room).collect();
            judged.owed.push(format!("{}: {sum} owed: {}", rule.name, rooms.join(", ")));
        }
    }
    Ok(judged)
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
        let broken = judge(&House::read(root())).unwrap().broken;
        assert!(broken.is_empty(), "broken house rules:\n{}", broken.join("\n"));
    }
}
