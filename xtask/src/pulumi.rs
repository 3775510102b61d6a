//! The real Pulumi, from Go modules: the command, the language host of YAML, and two providers of ours (fixtures/pulumi); with the SDKs of
//! Go, Node and Python, and a language host of ours that starts their programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::run_in;
use crate::need::{self, answers, made_from};
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

/// The SDK of Go: a module, which has the script that starts a Python program, too.
const SDK: &str = "github.com/pulumi/pulumi/sdk/v3";

/// A language, and what makes its program ready in a folder.
type Language = (&'static str, fn(&Path) -> Result<()>);

const LANGUAGES: [Language; 3] = [("go", go_program), ("nodejs", node_program), ("python", python_program)];

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

/// [`pulumi`] with the programs in other languages. Reports and leaves out a language that this machine cannot have.
pub(crate) fn with_languages() -> Result<()> {
    let dir = pulumi()?;
    for (language, make) in LANGUAGES {
        let program = dir.join("programs").join(language);
        let made = host(language, &dir).and_then(|()| make(&program));
        if let Err(error) = made {
            // The benchmark takes a folder for a program that runs.
            std::fs::remove_dir_all(&program).ok();
            eprintln!("pulumi: no programs in {language}, and the benchmark leaves them out: {error:#}");
        }
    }
    Ok(())
}

/// Our language host, under the name by which the command finds it.
fn host(language: &str, dir: &Path) -> Result<()> {
    go_build("./host", &dir.join(format!("bin/pulumi-language-{language}")))
}

fn go_program(dir: &Path) -> Result<()> {
    go_build("./go", &dir.join("program"))
}

fn go_build(package: &str, out: &Path) -> Result<()> {
    run_in(&sources(), "go", &["build", "-trimpath", "-o", &out.to_string_lossy(), package], &[])
}

fn node_program(dir: &Path) -> Result<()> {
    made_from("pulumi/programs/nodejs", &["package-lock.json", "package.json", ".npmrc", "index.js"], dir, |dir| {
        ensure!(answers("npm"), "no npm here");
        run_in(dir, "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"], &[])
    })
}

fn python_program(dir: &Path) -> Result<()> {
    made_from("pulumi/programs/python", &["requirements.txt", "__main__.py"], dir, |dir| {
        run_in(dir, "python3", &["-m", "venv", "venv"], &[])?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        run_in(dir, &dir.join("venv/bin/python").to_string_lossy(), &pip, &[])
    })?;
    let listed =
        Command::new("go").args(["list", "-m", "-f", "{{.Dir}}", SDK]).current_dir(sources()).output().context("failed to start go")?;
    ensure!(listed.status.success(), "go lists no {SDK}: {}", String::from_utf8_lossy(&listed.stderr));
    let script = Path::new(String::from_utf8_lossy(&listed.stdout).trim()).join("python/cmd/pulumi-language-python-exec");
    // Modules cannot be written to; what `fs::copy` makes could not be replaced.
    let text = std::fs::read(&script).with_context(|| format!("failed to read {}", script.display()))?;
    std::fs::write(dir.join("pulumi-language-python-exec"), text).context("failed to write the script that starts a program")
}

/// The module of our language host and of the program in Go.
fn sources() -> PathBuf {
    root().join("fixtures/pulumi/programs")
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
    without_clouds(&build)?;
    // Without debug information, which nobody reads and the linker spends seconds on.
    let flags = format!("-s -w -X {version_symbol}={version}");
    // An interrupted build leaves no note, and runs again.
    run_in(&build, "go", &["build", "-trimpath", "-ldflags", &flags, "-o", &installed.to_string_lossy(), package], &[])?;
    std::fs::write(&note, version).with_context(|| format!("failed to write {}", note.display()))
}

/// Copies the source of all modules to `vendor`, where Go looks first, and replaces what drives clouds: 40 % of what would be compiled.
fn without_clouds(build: &Path) -> Result<()> {
    run_in(build, "go", &["mod", "vendor"], &[])?;
    let stubs = root().join("fixtures/pulumi/without-clouds");
    let mut folders = vec![stubs.clone()];
    while let Some(folder) = folders.pop() {
        let package = folder.strip_prefix(&stubs).context("a folder outside the stubs")?;
        let vendored = build.join("vendor").join(package);
        let entries = entries(&folder)?;
        let files = entries.iter().filter(|entry| entry.extension().is_some_and(|is| is == "go"));
        // A program that does not need the package has none.
        if vendored.is_dir() {
            if folder.join("only.go").exists() {
                std::fs::remove_dir_all(&vendored).with_context(|| format!("failed to remove {}", vendored.display()))?;
                std::fs::create_dir(&vendored).with_context(|| format!("failed to make {}", vendored.display()))?;
            }
            for file in files {
                let to = vendored.join(file.file_name().context("a file without a name")?);
                std::fs::copy(file, &to).with_context(|| format!("failed to write {}", to.display()))?;
            }
        }
        folders.extend(entries.into_iter().filter(|entry| entry.is_dir()));
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    listed.map(|entry| Ok(entry?.path())).collect()
}
