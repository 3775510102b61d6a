//! Which crate may depend on which, and which third-party family lives in which crate.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::House;

/// Which of our crates each crate may depend on. Complete: an arrow that is not here does not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("longpole-model", &[]),
    ("longpole-wire", &["longpole-model"]),
    ("longpole-symbols", &["longpole-model"]),
    ("longpole-analysis", &["longpole-model"]),
    ("longpole-store", &["longpole-model"]),
    ("longpole-query", &["longpole-model", "longpole-analysis", "longpole-store"]),
    ("longpole-capture", &["longpole-model", "longpole-symbols"]),
    ("longpole-recording", &["longpole-model", "longpole-wire", "longpole-symbols", "longpole-analysis", "longpole-store"]),
    ("longpole-server", &["longpole-model", "longpole-wire", "longpole-analysis", "longpole-store", "longpole-recording"]),
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
            "longpole-recording",
            "longpole-server",
            "longpole-sdk",
        ],
    ),
    ("longpole-sdk", &[]),
    ("longpole-testing", &[]),
    ("deploy-example", &["longpole-sdk"]),
    ("shop-example", &["longpole-sdk"]),
    ("longpole-bench", &["longpole-model", "longpole-analysis", "longpole-sdk", "longpole-testing"]),
    (
        "longpole-fuzz-targets",
        &[
            "longpole-model",
            "longpole-wire",
            "longpole-symbols",
            "longpole-analysis",
            "longpole-store",
            "longpole-capture",
            "longpole-recording",
        ],
    ),
    ("xtask", &[]),
];

/// A family of third-party crates has one home. Test-only dependencies are free.
const HOMES: &[(&[&str], &[&str])] = &[
    (&["arrow-array", "arrow-schema", "arrow-select", "parquet", "rusqlite"], &["longpole-store"]),
    (&["datafusion"], &["longpole-query"]),
    (&["axum", "hyper", "hyper-rustls", "http", "http-body-util", "rust-embed"], &["longpole-server"]),
    // gRPC over TLS needs the one adapter of it.
    (&["hyper-util", "rustls", "tokio-rustls"], &["longpole-server", "longpole-sdk"]),
    (&["tonic"], &["longpole-server", "longpole-sdk"]),
    (&["object", "gimli", "framehop", "cpp_demangle"], &["longpole-symbols"]),
    // The SDK names the functions of its own program.
    (&["rustc-demangle"], &["longpole-symbols", "longpole-sdk"]),
    (&["libc", "perf-event-open-sys2", "linux-perf-event-reader"], &["longpole-capture", "longpole-sdk", "longpole-bench"]),
    (&["rustix"], &["longpole-store"]),
    // Two write OTLP's JSON, which has bytes as base64; the server reads users and passwords of HTTP.
    (&["base64"], &["longpole-wire", "longpole-store", "longpole-server"]),
    // Headers of answers and addresses; OTEL_RESOURCE_ATTRIBUTES.
    (&["percent-encoding"], &["longpole-capture", "longpole-server", "longpole"]),
    (&["crc32fast"], &["longpole-symbols"]),
    // The one third-party name in the nouns: the hash of their maps.
    (&["foldhash"], &["longpole-model"]),
    (&["ruzstd"], &["longpole-wire", "longpole-server"]),
    (&["clap", "mimalloc", "jiff", "toml"], &["longpole"]),
    (&["anyhow"], &["longpole", "xtask", "longpole-bench"]),
];

/// Every manifest of the workspace against both tables.
pub(super) fn crate_arrows(house: &House) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for krate in house.crates() {
        let path = house.root.join(&krate).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let name = name.with_context(|| format!("{}: no name", path.display()))?;
        let mut broken = |text: String| found.push(text);
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            broken(format!("{name}: has no line in the arrow table"));
            continue;
        };
        for used in dependencies(&manifest).get("dependencies").into_iter().flatten() {
            if used.starts_with("longpole") && !allowed.contains(&used.as_str()) {
                broken(format!("{name}: the arrow to {used} is not in the table"));
            }
            for (family, homes) in HOMES {
                if family.contains(&used.as_str()) && !homes.contains(&name) {
                    broken(format!("{name}: {used} lives in {}", homes.join(", ")));
                }
            }
        }
    }
    Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_section_by_section() {
        let found = dependencies(
            "[dependencies]\nlibc.workspace = true\n[target.'cfg(unix)'.dependencies]\nhttp = \"1\"\n[dev-dependencies]\nclap = \"4\"\n",
        );
        assert_eq!(found["dependencies"], ["libc", "http"]);
        assert_eq!(found["dev-dependencies"], ["clap"]);
    }
}
