//! The house rules, as a task and as a test. What they are and why: `ARCHITECTURE.md`, "Arrows" and "Invariants".

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths::root;

/// Which of our crates each crate may depend on. Complete: an arrow that is not here does not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("longpole-model", &[]),
    ("longpole-wire", &["longpole-model"]),
    ("longpole-symbols", &["longpole-model"]),
    ("longpole-analysis", &["longpole-model"]),
    ("longpole-store", &["longpole-model"]),
    ("longpole-query", &["longpole-model", "longpole-analysis", "longpole-store"]),
    ("longpole-capture", &["longpole-model", "longpole-symbols"]),
    ("longpole-server", &["longpole-model", "longpole-wire", "longpole-symbols", "longpole-analysis", "longpole-store", "longpole-query"]),
    (
        "longpole",
        &[
            "longpole-model",
            "longpole-wire",
            "longpole-symbols",
            "longpole-analysis",
            "longpole-store",
            "longpole-query",
            "longpole-capture",
            "longpole-server",
            "longpole-sdk",
        ],
    ),
    ("longpole-sdk", &[]),
    ("longpole-testing", &[]),
    ("deploy-example", &["longpole-sdk"]),
    ("shop-example", &["longpole-sdk"]),
    ("longpole-bench", &["longpole-model", "longpole-analysis", "longpole-sdk"]),
    ("xtask", &[]),
];

/// A family of third-party crates has one home. Test-only dependencies are free.
const HOMES: &[(&[&str], &[&str])] = &[
    (&["arrow", "parquet", "rusqlite"], &["longpole-store"]),
    (&["datafusion"], &["longpole-query"]),
    (&["axum", "hyper", "hyper-rustls", "http", "http-body-util", "rust-embed"], &["longpole-server"]),
    // gRPC over TLS needs the one adapter of it.
    (&["hyper-util", "rustls", "tokio-rustls"], &["longpole-server", "longpole-sdk"]),
    (&["tonic"], &["longpole-server", "longpole-sdk"]),
    (&["object", "gimli", "addr2line", "framehop", "rustc-demangle", "cpp_demangle"], &["longpole-symbols"]),
    (&["libc", "perf-event-open-sys2", "linux-perf-event-reader"], &["longpole-capture", "longpole-sdk", "longpole-bench"]),
    (&["rustix"], &["longpole-store"]),
    (&["ruzstd"], &["longpole-wire"]),
    (&["clap", "mimalloc", "jiff"], &["longpole"]),
    (&["anyhow"], &["longpole", "xtask", "longpole-bench"]),
];

/// The only files with `unsafe`: kernel calls and shared memory of the recorder, the record of the SDK, the one method that a subscriber
/// in front of another one cannot do without, and the test programs that must do to themselves what no safe wrapper does.
const UNSAFE_FILES: &[&str] = &[
    "crates/longpole-capture/src/sys/mod.rs",
    "crates/longpole-capture/src/sys/process.rs",
    "crates/longpole-capture/src/sys/perf.rs",
    "crates/longpole-capture/src/sys/parts.rs",
    "crates/longpole-capture/src/perf/ring.rs",
    "crates/longpole-sdk/src/shelter.rs",
    "crates/longpole-sdk/src/thread_context.rs",
];

/// Test code may open `unsafe` here: pseudo-terminals, raw signals, thread-local records.
const UNSAFE_TEST_DIRS: &[&str] = &["crates/longpole/tests/", "crates/longpole-capture/tests/", "crates/longpole-sdk/tests/"];

/// Files that pace themselves on purpose, each says why beside the call; and the programs with scripted waits.
const MAY_SLEEP: &[&str] = &[
    "crates/longpole-capture/src/drain.rs",
    "crates/longpole-capture/tests/recorder.rs",
    // At the exit of a process its owner may be the thread that asks: a lock can only be tried again.
    "crates/longpole-sdk/src/at_exit.rs",
    "crates/longpole/tests/timing/account_for_the_time.rs",
    "crates/longpole/tests/stories/name_who_holds_a_lock.rs",
];

/// Hosts of package registries, split so that this very file does not name one.
const REGISTRIES: &[(&str, &str)] =
    &[("crates", ".io/"), ("npmjs", ".org"), ("pypi", ".org"), ("maven", ".org"), ("proxy.golang", ".org"), ("deb.debian", ".org")];

/// Known exceptions, each with its reason and an end. Empty is how it should be.
const DEBT: &[(&str, &str)] = &[];

/// Prints what breaks a rule; fails where something does.
pub(crate) fn report() -> Result<()> {
    let broken = broken_rules()?;
    for line in &broken {
        eprintln!("tidy: {line}");
    }
    if broken.is_empty() {
        eprintln!("tidy: the house is in order");
        Ok(())
    } else {
        bail!("{} house rules are broken", broken.len())
    }
}

fn broken_rules() -> Result<Vec<String>> {
    let root = root();
    let mut broken = Vec::new();
    check_manifests(&root, &mut broken)?;
    check_features(&root, &mut broken)?;
    check_names(&root, &mut broken);
    let mut files = Vec::new();
    for dir in ["crates", "examples", "xtask", "bench", "fuzz", "web/src", "web/stories", "docs"] {
        list(&root.join(dir), &mut files);
    }
    for name in ["README.md", "ARCHITECTURE.md", "STYLE.md", "CHANGELOG.md"] {
        files.push(root.join(name));
    }
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let path = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
        check_text(&root, &path, &text, &mut broken);
    }
    broken.retain(|line| !DEBT.iter().any(|(known, _reason)| line.starts_with(known)));
    Ok(broken)
}

/// What is built for the product is what is built for its tests: a dependency below DataFusion with other features makes it, and
/// all above, be built twice.
fn check_features(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let tree = |what: &[&str]| -> Result<BTreeMap<String, BTreeSet<String>>> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).args(["tree", "--quiet", "--prefix", "none", "-f", "{p}\t{f}"]).args(what);
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
    for package in below.keys() {
        if let (Some(product), Some(tests)) = (product.get(package), tests.get(package))
            && product != tests
        {
            broken.push(format!("Cargo.toml: {package} is built as {product:?} and for tests as {tests:?}: pin its features"));
        }
    }
    Ok(())
}

/// Names of files go to terminals, archives and other systems: printable ASCII. Where there is no git, there is nothing that it tracks.
fn check_names(root: &Path, broken: &mut Vec<String>) {
    let Ok(out) = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output() else { return };
    let is_plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    for name in out.stdout.split(|byte| *byte == 0).filter(|name| !is_plain(name)) {
        broken.push(format!("{}: its name is not printable ASCII", name.escape_ascii()));
    }
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

/// The names under each dependency section of a manifest.
fn dependencies(manifest: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.rsplit('.').next().unwrap_or(name).to_owned();
        } else if section.ends_with("dependencies")
            && !line.starts_with('#')
            && let Some(name) = line.split(['.', '=', ' ']).next().filter(|n| !n.is_empty())
        {
            found.entry(section.clone()).or_default().push(name.to_owned());
        }
    }
    found
}

fn check_manifests(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates")).context("failed to list crates")?.flatten().map(|e| e.path()).collect();
    dirs.extend([root.join("examples/deploy"), root.join("examples/shop"), root.join("xtask"), root.join("bench")]);
    for dir in dirs {
        let Ok(manifest) = std::fs::read_to_string(dir.join("Cargo.toml")) else { continue };
        let Some(name) = manifest.lines().find_map(|l| l.strip_prefix("name = \"")).and_then(|n| n.strip_suffix('"')) else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            broken.push(format!("{name}: a room without a line in the arrow table"));
            continue;
        };
        let all = dependencies(&manifest);
        for used in all.get("dependencies").into_iter().flatten() {
            if used.starts_with("longpole") && !allowed.contains(&used.as_str()) {
                broken.push(format!("{name}: the arrow to {used} is not in the table"));
            }
            for (family, homes) in HOMES {
                if family.contains(&used.as_str()) && !homes.contains(&name) {
                    broken.push(format!("{name}: {used} lives in {}", homes.join(", ")));
                }
            }
        }
    }
    Ok(())
}

fn check_text(root: &Path, path: &str, text: &str, broken: &mut Vec<String>) {
    for (host, end) in REGISTRIES {
        if text.contains(&format!("{host}{end}")) {
            broken.push(format!("{path}: names a package registry ({host})"));
        }
    }
    if path.ends_with(".rs") {
        check_rust(root, path, text, broken);
    }
    if path.ends_with(".md") {
        check_links(root, path, text, broken);
    }
}

/// The one file of the binary that writes to a terminal: it escapes what it writes.
const SCREEN: &str = "crates/longpole/src/screen.rs";

/// What writes to a terminal past it.
const PAST_THE_SCREEN: [&str; 6] = ["io::stdout", "io::stderr", "print!(", "println!(", "eprint!(", "eprintln!("];

fn check_rust(root: &Path, path: &str, text: &str, broken: &mut Vec<String>) {
    let is_library = path.starts_with("crates/") && path.ends_with("src/lib.rs");
    let opens_unsafe = path.starts_with("crates/longpole-capture/") || path.starts_with("crates/longpole-sdk/");
    if is_library && !opens_unsafe && !text.contains("#![forbid(unsafe_code)]") {
        broken.push(format!("{path}: does not forbid unsafe code"));
    }
    let may_be_unsafe = UNSAFE_FILES.contains(&path) || UNSAFE_TEST_DIRS.iter().any(|dir| path.starts_with(dir));
    let sleep = format!("thread::{}(", "sleep");
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let code = without_strings(code);
        if !may_be_unsafe
            && (code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl") || code.contains("unsafe extern"))
        {
            broken.push(format!("{path}:{number}: unsafe outside its files"));
        }
        if path.starts_with("crates/") && !path.contains("/examples/") && code.contains(&sleep) && !MAY_SLEEP.contains(&path) {
            broken.push(format!("{path}:{number}: waits for a time; wait for a condition"));
        }
        let writes = PAST_THE_SCREEN.iter().any(|call| code.contains(call));
        if path.starts_with("crates/longpole/src/") && path != SCREEN && writes {
            broken.push(format!("{path}:{number}: writes past the screen; names steer terminals: print, say or to_output"));
        }
        check_paths(root, path, number, comment, broken);
    }
}

/// The code of a line with what stands between quotes blanked.
fn without_strings(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut inside = false;
    for c in code.chars() {
        if c == '"' {
            inside = !inside;
        }
        out.push(if inside { ' ' } else { c });
    }
    out
}

/// A comment that points to a file points to one that is there.
fn check_paths(root: &Path, path: &str, number: usize, comment: &str, broken: &mut Vec<String>) {
    for word in comment.split(|c: char| c.is_whitespace() || "`()[],;\"'".contains(c)) {
        let word = word.trim_end_matches(['.', ':']);
        let is_path = ["docs/", "crates/", "examples/", "fixtures/", "xtask/", "fuzz/", "bench/"].iter().any(|dir| word.starts_with(dir));
        if is_path
            && word.rsplit('/').next().is_some_and(|name| name.contains('.'))
            && !word.contains(['*', '<', '{', '…'])
            && !root.join(word).exists()
        {
            broken.push(format!("{path}:{number}: points to {word}, which is not there"));
        }
    }
}

/// A relative link of a page leads somewhere.
fn check_links(root: &Path, path: &str, text: &str, broken: &mut Vec<String>) {
    let here = root.join(path);
    let dir = here.parent().unwrap_or(root);
    for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
        let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:") || target.contains(' ');
        if !outside && !dir.join(target).exists() {
            broken.push(format!("{path}: links to {target}, which is not there"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_rules_hold() {
        let broken = broken_rules().unwrap();
        assert!(broken.is_empty(), "broken house rules:\n{}", broken.join("\n"));
    }

    #[test]
    fn a_manifest_is_read_section_by_section() {
        let found = dependencies(
            "[dependencies]\nlibc.workspace = true\n[target.'cfg(unix)'.dependencies]\nhttp = \"1\"\n[dev-dependencies]\nclap = \"4\"\n",
        );
        assert_eq!(found["dependencies"], ["libc", "http"]);
        assert_eq!(found["dev-dependencies"], ["clap"]);
    }

    #[test]
    fn unsafe_in_a_string_is_no_unsafe() {
        let line = format!("let text = \"{} {{ }}\";", "unsafe");
        assert!(!without_strings(&line).contains("unsafe"));
    }
}
