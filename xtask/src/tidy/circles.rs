//! Floors: files and folders beside each other in one crate depend on each other in one direction only.
//!
//! The modules of a crate and the paths between them are read from the source text. A path counts for the file in which its item stands, however many
//! `pub use` lead there. Then, folder by folder, each child with all below it is one node:
//!
//! ```text
//! src/report/select.rs: use crate::tree::forest::Node    src: report → tree
//! src/report/select.rs: use super::handle::Handle        src/report: select → handle
//! ```
//!
//! A folder's `mod.rs` and its children may know each other; tests may know everything.

use std::collections::{BTreeMap, BTreeSet};

use super::House;
use super::source::Source;

/// The path of a module in its crate, as `["report", "select"]`.
type ModulePath = Vec<String>;

/// One file of the crate.
struct Module {
    file: String,
    /// What stands in it, by name.
    items: BTreeSet<String>,
    /// Names that a `use` brings in, and the path behind each; `self::` and `super::` are resolved.
    imports: BTreeMap<String, ModulePath>,
    /// The paths of `use …::*`.
    globs: Vec<ModulePath>,
    /// Every path that is written in it, with its line.
    paths: Vec<(usize, ModulePath)>,
}

/// An arrow between two children of one folder, and where it is drawn first.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// One finding for each set of files and folders that all reach each other.
pub(super) fn circles(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for krate in house.crates() {
        let modules = modules(house, &krate);
        for (folder, arrows) in arrows(&modules) {
            for circle in circles_of(&arrows) {
                found.push(describe(&krate, &folder, &circle, &arrows));
            }
        }
    }
    found
}

/// The modules of the crate in `krate` (`crates/longpole-model`) but those that only tests have.
fn modules(house: &House, krate: &str) -> BTreeMap<ModulePath, Module> {
    let src = format!("{krate}/src/");
    let mut sources: BTreeMap<ModulePath, (&str, Source)> = BTreeMap::new();
    for file in house.rust() {
        if let Some(path) = file.path.strip_prefix(&src).and_then(module_path) {
            sources.insert(path, (&file.path, Source::new(&file.text).without_tests()));
        }
    }
    let tests: Vec<ModulePath> =
        sources.iter().flat_map(|(path, (_, source))| source.test_modules.iter().map(|name| child(path, name))).collect();
    sources.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    let known: BTreeSet<ModulePath> = sources.keys().cloned().collect();
    sources.into_iter().map(|(path, (file, source))| (path.clone(), Module::new(file, &path, &source, &known))).collect()
}

/// `report/select.rs` and `report/mod.rs` as modules; no programs beside the crate's own.
fn module_path(file: &str) -> Option<ModulePath> {
    let path = file.strip_suffix(".rs")?;
    if path.starts_with("bin/") {
        return None;
    }
    let mut path: ModulePath = path.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    Some(path)
}

fn child(path: &[String], name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

impl Module {
    fn new(file: &str, here: &[String], source: &Source, known: &BTreeSet<ModulePath>) -> Module {
        let mut module =
            Module { file: file.to_owned(), items: items(&source.code), imports: BTreeMap::new(), globs: Vec::new(), paths: Vec::new() };
        let words = words(&source.code);
        // Modules inside the file that are open at the word: their names, and the depth of their braces.
        let (mut inside, mut depth): (Vec<(&str, usize)>, usize) = (Vec::new(), 0);
        let mut at = 0;
        while at < words.len() {
            let (offset, word) = words[at];
            match word {
                "mod" if words.get(at + 2).is_some_and(|(_, brace)| *brace == "{") => inside.push((words[at + 1].1, depth)),
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    inside.pop_if(|(_, outside)| *outside == depth);
                }
                _ => {}
            }
            let is_use = word == "use";
            let begins_a_path = words.get(at + 1).is_some_and(|(_, next)| *next == "::") && !(at > 0 && words[at - 1].1 == "::");
            if !is_use && !begins_a_path {
                at += 1;
                continue;
            }
            let mut leaves = Vec::new();
            at = tree(&words, at + usize::from(is_use), &[], is_use, &mut leaves);
            let line = source.line(offset);
            let here: ModulePath = here.iter().cloned().chain(inside.iter().map(|(name, _)| (*name).to_owned())).collect();
            for Leaf { path, name } in leaves {
                let Some(path) = absolute(&path, &here, known) else { continue };
                match name.as_deref() {
                    Some("*") => module.globs.push(path.clone()),
                    Some(name) => drop(module.imports.insert(name.to_owned(), path.clone())),
                    None => {}
                }
                module.paths.push((line, path));
            }
        }
        module
    }
}

/// What a path of a `use` ends in: the path, and the name it has here; none for a path that no `use` is for.
struct Leaf {
    path: ModulePath,
    name: Option<String>,
}

/// Reads a path, or the tree of a `use`, from word `at`; gives the word behind it.
fn tree(words: &[(usize, &str)], mut at: usize, before: &[String], is_use: bool, leaves: &mut Vec<Leaf>) -> usize {
    let mut path = before.to_vec();
    let word = |at: usize| words.get(at).map_or("", |(_, word)| *word);
    loop {
        match word(at) {
            "::" => {
                at += 1;
                continue;
            }
            "{" if is_use => {
                at += 1;
                while !matches!(word(at), "}" | "") {
                    at = if word(at) == "," { at + 1 } else { tree(words, at, &path, is_use, leaves) };
                }
                return at + 1;
            }
            "*" if is_use => {
                leaves.push(Leaf { path, name: Some("*".to_owned()) });
                return at + 1;
            }
            name if is_name(name) => {
                if name != "self" || path.is_empty() {
                    path.push(name.to_owned());
                }
                at += 1;
            }
            _ => return at + 1,
        }
        if word(at) != "::" {
            break;
        }
    }
    let mut name = path.last().cloned();
    if is_use && word(at) == "as" {
        name = Some(word(at + 1).to_owned());
        at += 2;
    }
    leaves.push(Leaf { path, name: name.filter(|_| is_use) });
    at
}

/// The path from the root of this crate, or none where it leads out of it.
fn absolute(path: &[String], here: &[String], known: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let mut base = here.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            base.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            base.truncate(base.len().saturating_sub(ups));
            rest = &path[ups..];
        }
        // A child by its name alone.
        name if known.contains(&child(here, name)) => {}
        _ => return None,
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The module in which the item of the path stands.
fn home(path: &[String], modules: &BTreeMap<ModulePath, Module>, depth: usize) -> Option<ModulePath> {
    // Deeper than imports lead through each other; two globs may be a circle.
    const DEPTH_MAX: usize = 8;
    if depth > DEPTH_MAX {
        return None;
    }
    let inside = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]))?;
    let (module_path, rest) = path.split_at(inside);
    let module = &modules[module_path];
    let Some(name) = rest.first() else { return Some(module_path.to_vec()) };
    if module.items.contains(name) {
        return Some(module_path.to_vec());
    }
    if let Some(import) = module.imports.get(name) {
        let path: ModulePath = import.iter().chain(&rest[1..]).cloned().collect();
        return home(&path, modules, depth + 1);
    }
    module.globs.iter().find_map(|glob| {
        let home = home(&child(glob, name), modules, depth + 1)?;
        modules[&home].items.contains(name).then_some(home)
    })
}

/// The arrows between the children of each folder.
fn arrows(modules: &BTreeMap<ModulePath, Module>) -> BTreeMap<ModulePath, Arrows> {
    let mut all: BTreeMap<ModulePath, Arrows> = BTreeMap::new();
    for (from, module) in modules {
        for (line, path) in &module.paths {
            let Some(to) = home(path, modules, 0) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                let arrows = all.entry(from[..shared].to_vec()).or_default();
                let place = format!("{}:{line}", module.file.rsplit_once("src/").map_or(module.file.as_str(), |(_, file)| file));
                arrows.entry(a.clone()).or_default().entry(b.clone()).or_insert(place);
            }
        }
    }
    all
}

/// The sets of two nodes and more that all reach each other.
fn circles_of(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = arrows
        .keys()
        .map(|start| {
            let mut seen = BTreeSet::new();
            let mut open = vec![start];
            while let Some(node) = open.pop() {
                open.extend(arrows.get(node).into_iter().flat_map(BTreeMap::keys).filter(|next| seen.insert(*next)));
            }
            (start, seen)
        })
        .collect();
    let mut circles = BTreeSet::new();
    for (start, seen) in &reached {
        if seen.contains(start) {
            let circle = seen.iter().filter(|node| reached.get(*node).is_some_and(|back| back.contains(start)));
            circles.insert(circle.map(|node| (*node).clone()).collect::<BTreeSet<_>>());
        }
    }
    circles.into_iter().collect()
}

/// `crates/longpole-query/src: engine → sql (engine.rs:12), sql → engine (sql.rs:4)`.
fn describe(krate: &str, folder: &[String], circle: &BTreeSet<String>, arrows: &Arrows) -> String {
    let mut drawn = Vec::new();
    for (from, to) in arrows.iter().filter(|(from, _)| circle.contains(*from)) {
        drawn.extend(to.iter().filter(|(to, _)| circle.contains(*to)).map(|(to, place)| format!("{from} → {to} ({place})")));
    }
    let folder: String = folder.iter().map(|name| format!("/{name}")).collect();
    format!("{krate}/src{folder}: a circle of {}: {}", circle.len(), drawn.join(", "))
}

/// Names, `::`, and every other character that is no blank, each with its offset.
fn words(code: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let length = if name > 0 {
            name
        } else if rest.starts_with("::") {
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        if !rest.starts_with(char::is_whitespace) {
            words.push((at, &rest[..length]));
        }
        at += length;
    }
    words
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names of the items in the code.
fn items(code: &str) -> BTreeSet<String> {
    let words = words(code);
    let kinds = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"];
    let mut names: BTreeSet<String> =
        words.windows(2).filter(|pair| kinds.contains(&pair[0].1) && is_name(pair[1].1)).map(|pair| pair[1].1.to_owned()).collect();
    names.extend(words.windows(3).filter(|three| three[0].1 == "macro_rules" && three[1].1 == "!").map(|three| three[2].1.to_owned()));
    // A module in a file of its own is no item of its parent: paths lead into it.
    for three in words.windows(3).filter(|three| three[0].1 == "mod" && three[2].1 == ";") {
        names.remove(three[1].1);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::File;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| File::new(format!("crates/c/src/{path}"), (*text).to_owned())).collect();
        circles(&House { root: std::path::PathBuf::new(), files })
    }

    #[test]
    fn siblings_that_use_each_other_are_a_circle() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;\nstruct A;"), ("b.rs", "struct B;\nfn f(_: super::a::A) {}")];
        assert_eq!(found(&files), ["crates/c/src: a circle of 2: a → b (a.rs:1), b → a (b.rs:2)"]);
    }

    #[test]
    fn a_folder_is_one_node_of_its_parent() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod x; mod y; pub(crate) use x::{self, X as Z};"),
            ("a/x.rs", "struct X;"),
            ("a/y.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::Z; struct B;"),
        ];
        assert_eq!(found(&files), ["crates/c/src: a circle of 2: a → b (a/y.rs:1), b → a (b.rs:1)"]);
    }

    #[test]
    fn a_parent_and_its_child_and_tests_are_none() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b.rs", "use crate::A; struct B; // crate::a"),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn what_a_parent_lends_is_its_child_s() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::*; pub use b::B;"),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "use crate::A; pub struct B;"),
        ];
        assert_eq!(found(&files).len(), 1);
    }
}
