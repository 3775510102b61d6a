//! The real peers that benchmarks compare with, installed into a folder outside the repository.

use anyhow::{Context, Result, bail};

use crate::command::{run, run_in};
use crate::paths::peers_dir;
use crate::{need, pulumi};

/// The peers of the published figures, in the versions that those name.
const PEERS: &[&str] = &["samply", "otel-cli", "perf", "py-spy", "coz", "pulumi", "jaeger", "zipkin"];

/// Installs the named peers, or all; fails at the end with those that could not be installed.
pub(crate) fn peers(names: &[&str]) -> Result<()> {
    let mut missing = Vec::new();
    for name in if names.is_empty() { PEERS } else { names } {
        let done = match *name {
            "samply" => samply(),
            "otel-cli" => otel_cli(),
            "perf" => need::perf().map_err(anyhow::Error::msg),
            "py-spy" => py_spy(),
            "coz" => need::coz().map_err(anyhow::Error::msg),
            "pulumi" => pulumi::with_languages(),
            "jaeger" => jaeger(),
            "zipkin" => zipkin(),
            other => bail!("no recipe for `{other}`; known: {}", PEERS.join(", ")),
        };
        if let Err(error) = done {
            missing.push(format!("{name}: {error:#}"));
        }
    }
    if missing.is_empty() { Ok(()) } else { bail!("could not be installed:\n  {}", missing.join("\n  ")) }
}

fn samply() -> Result<()> {
    let root = peers_dir().to_string_lossy().into_owned();
    run("cargo", &["install", "samply", "--version", "0.13.1", "--locked", "--root", &root])
}

fn py_spy() -> Result<()> {
    let dir = peers_dir().join("build/py-spy");
    run("python3", &["-m", "venv", &dir.to_string_lossy()])?;
    run(&dir.join("bin/python").to_string_lossy(), &["-m", "pip", "install", "-q", "py-spy==0.4.3"])?;
    let bin = peers_dir().join("bin");
    std::fs::create_dir_all(&bin).context("failed to make the peers' folder")?;
    std::fs::copy(dir.join("bin/py-spy"), bin.join("py-spy")).context("failed to copy py-spy")?;
    Ok(())
}

/// A throw-away module, because `go install` refuses modules with `replace` lines.
fn otel_cli() -> Result<()> {
    let cache = peers_dir();
    let dir = cache.join("build/otel-cli");
    std::fs::create_dir_all(&dir).context("failed to make a folder to build in")?;
    std::fs::create_dir_all(cache.join("bin")).context("failed to make the peers' folder")?;
    let module = "module m\n\ngo 1.26\n\nrequire github.com/equinix-labs/otel-cli v0.4.5\n";
    std::fs::write(dir.join("go.mod"), module).context("failed to write go.mod")?;
    let out = cache.join("bin/otel-cli").to_string_lossy().into_owned();
    run_in(&dir, "go", &["build", "-mod=mod", "-o", &out, "github.com/equinix-labs/otel-cli"], &[])
}

/// Jaeger 2.13, which its module calls 1.76.0. The module has no page: Jaeger shows a placeholder.
fn jaeger() -> Result<()> {
    const PROGRAM: &str = "github.com/jaegertracing/jaeger/cmd/jaeger";
    let cache = peers_dir();
    let dir = cache.join("build/jaeger");
    std::fs::create_dir_all(&dir).context("failed to make a folder to build in")?;
    std::fs::create_dir_all(cache.join("bin")).context("failed to make the peers' folder")?;
    std::fs::write(dir.join("go.mod"), "module m\n\ngo 1.26\n").context("failed to write go.mod")?;
    // `go get -tool` also brings what the program needs.
    run_in(&dir, "go", &["get", "-tool", &format!("{PROGRAM}@v1.76.0")], &[])?;
    run_in(&dir, "go", &["build", "-o", &cache.join("bin/jaeger").to_string_lossy(), PROGRAM], &[])
}

/// The server of Zipkin as one jar; Maven fetches it.
fn zipkin() -> Result<()> {
    let bin = peers_dir().join("bin");
    std::fs::create_dir_all(&bin).context("failed to make the peers' folder")?;
    let output = format!("-DoutputDirectory={}", bin.display());
    let plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
    run("mvn", &["-q", "-B", plugin, "-Dartifact=io.zipkin:zipkin-server:3.5.1:jar:exec", &output])?;
    std::fs::rename(bin.join("zipkin-server-3.5.1-exec.jar"), bin.join("zipkin.jar")).context("failed to name the jar")
}
