//! The real Pulumi, from Go modules: the command, the language host of YAML, and two providers of ours (fixtures/pulumi).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::run_in;
use crate::need;
use crate::paths::{peers_dir, root};

/// The command and the language host, each with the symbol that the linker sets to its version; without it they report a wrong one.
const PROGRAMS: [Program; 2] = [
    Program {
        name: "pulumi",
        version: "v3.259.0",
        package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        version_symbol: "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version",
    },
    Program {
        name: "pulumi-language-yaml",
        version: "v1.38.1",
        package: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
        version_symbol: "github.com/pulumi/pulumi-yaml/pkg/version.Version",
    },
];

/// Packages of our providers, and the module file each is built with: with OpenTelemetry, and with OpenTracing alone.
const PROVIDERS: [(&str, &str); 2] = [("modern", "go.mod"), ("legacy", "legacy.mod")];

struct Program {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    version_symbol: &'static str,
}

/// Builds what is missing. Returns a folder with `bin` for a PATH and `plugins` for a PULUMI_HOME.
pub(crate) fn pulumi() -> Result<PathBuf> {
    need::go().map_err(anyhow::Error::msg)?;
    let dir = peers_dir().join("pulumi");
    for program in &PROGRAMS {
        install(program, &dir).with_context(|| format!("failed to build {}", program.name))?;
    }
    for (name, module) in PROVIDERS {
        // Go itself rebuilds only after a change.
        let out = dir.join(format!("plugins/resource-{name}-v0.1.0/pulumi-resource-{name}"));
        let (flags, module, out) = (format!("-X main.name={name}"), format!("-modfile={module}"), out.to_string_lossy());
        let source = root().join("fixtures/pulumi/provider");
        run_in(&source, "go", &["build", "-trimpath", &module, "-ldflags", &flags, "-o", &out, "."], &[])?;
    }
    Ok(dir)
}

/// A throw-away module, because `go install` refuses modules with `replace` lines.
fn install(program: &Program, dir: &Path) -> Result<()> {
    let Program { name, version, package, version_symbol } = program;
    let installed = dir.join("bin").join(name);
    let note = dir.join("bin").join(format!(".{name}.version"));
    if installed.exists() && std::fs::read_to_string(&note).is_ok_and(|noted| noted == *version) {
        return Ok(());
    }
    let build = peers_dir().join("build").join(format!("{name}-{version}"));
    for made in [&build, &dir.join("bin")] {
        std::fs::create_dir_all(made).with_context(|| format!("failed to make {}", made.display()))?;
    }
    std::fs::write(build.join("go.mod"), "module m\n\ngo 1.26\n").context("failed to write go.mod")?;
    run_in(&build, "go", &["get", "-tool", &format!("{package}@{version}")], &[])?;
    let flags = format!("-X {version_symbol}={version}");
    // An interrupted build leaves no note, and runs again.
    run_in(&build, "go", &["build", "-trimpath", "-ldflags", &flags, "-o", &installed.to_string_lossy(), package], &[])?;
    std::fs::write(&note, version).with_context(|| format!("failed to write {}", note.display()))
}
