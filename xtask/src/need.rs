//! The tools that tests need beyond Rust and Node: finds each, installs it, or reports why not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::command::run_in;
use crate::paths::root;

/// Whether `env` can give a program the default disposition of every signal (coreutils 8.31 can).
pub(crate) fn default_signals() -> bool {
    let tried = Command::new("env").args(["--default-signal", "true"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Whether the program answers to `--version`.
pub(crate) fn answers(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout.trim_ascii() == b"0")
}

/// Installs packages of a Debian-like distribution, as root; else reports why not.
fn install(packages: &[&str]) -> Result<(), String> {
    if !answers("apt-get") {
        return Err(format!("install {} by hand: there is no apt-get here", packages.join(", ")));
    }
    if !is_root() {
        return Err(format!("needs `sudo apt-get install {}`", packages.join(" ")));
    }
    let apt = |args: &[&str]| {
        eprintln!("$ apt-get {}", args.join(" "));
        Command::new("apt-get")
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(packages);
    if apt(&["update", "-q"]) && apt(&args) { Ok(()) } else { Err(format!("`apt-get install {}` failed", packages.join(" "))) }
}

/// A Chromium for the browser story: `LONGPOLE_CHROMIUM`, a known name, or the distribution's package.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("LONGPOLE_CHROMIUM") {
        return Ok(PathBuf::from(path));
    }
    let known =
        || ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].iter().map(PathBuf::from).find(|p| p.exists());
    if let Some(path) = known() {
        return Ok(path);
    }
    install(&["chromium"]).map_err(|why| format!("no Chromium for the browser story: {why}"))?;
    known().ok_or_else(|| "Chromium was installed but is not where it should be".to_owned())
}

/// `setpriv`, by which tests that run as root become a plain user.
pub(crate) fn setpriv() -> Result<(), String> {
    if answers("setpriv") {
        return Ok(());
    }
    install(&["util-linux"]).map_err(|why| format!("no setpriv to become a plain user: {why}"))
}

/// A C compiler for musl, which links programs that glibc's cannot.
pub(crate) fn musl() -> Result<(), String> {
    if answers("musl-gcc") { Ok(()) } else { install(&["musl-tools"]) }
}

/// `perf`, a peer of benchmarks.
pub(crate) fn perf() -> Result<(), String> {
    if answers("perf") { Ok(()) } else { install(&["linux-perf"]) }
}

/// The causal profiler, which only Debian packages.
pub(crate) fn coz() -> Result<(), String> {
    let is_there = Command::new("coz").arg("--help").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if is_there { Ok(()) } else { install(&["coz-profiler"]) }
}

/// The stock OpenTelemetry SDK of Python, two web frameworks with their instrumentations, and Pyroscope's SDK.
const PYTHON_PACKAGES: [&str; 10] = [
    "opentelemetry-sdk==1.38.0",
    "opentelemetry-exporter-otlp-proto-http==1.38.0",
    "opentelemetry-exporter-otlp-proto-grpc==1.38.0",
    "opentelemetry-distro==0.59b0",
    "opentelemetry-instrumentation-flask==0.59b0",
    "opentelemetry-instrumentation-fastapi==0.59b0",
    "flask==3.1.3",
    "fastapi==0.121.3",
    "uvicorn==0.38.0",
    "pyroscope-io==1.4.0",
];

/// A Python with the stock OpenTelemetry SDK, in the target folder.
pub(crate) fn python(target: &Path) -> Result<PathBuf, String> {
    let dir = target.join("python");
    let (python, ready) = (dir.join("bin/python"), dir.join("longpole-ready"));
    let packages = PYTHON_PACKAGES.join("\n");
    if std::fs::read_to_string(&ready).is_ok_and(|made_of| made_of == packages) {
        return Ok(python);
    }
    let step = |program: &Path, args: &[&str]| {
        eprintln!("$ {} {}", program.display(), args.join(" "));
        Command::new(program).args(args).stdout(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    if !step("python3".as_ref(), &["-m", "venv", &dir.to_string_lossy()]) {
        return Err("no Python 3 with venv here".to_owned());
    }
    let args: Vec<&str> = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"].into_iter().chain(PYTHON_PACKAGES).collect();
    if !step(&python, &args) {
        return Err(format!("pip could not install {}", PYTHON_PACKAGES.join(", ")));
    }
    std::fs::write(ready, packages).map_err(|error| format!("failed to note that Python is ready: {error}"))?;
    Ok(python)
}

/// The viewers of fixtures/viewers that read what we write, in the target folder: the folder of their packages.
pub(crate) fn viewers(target: &Path) -> Result<PathBuf, String> {
    if !answers("npm") {
        return Err("no npm here".to_owned());
    }
    let dir = target.join("viewers");
    let made = made_from("viewers", &["package-lock.json", "package.json", ".npmrc"], &dir, |dir| {
        run_in(dir, "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"], &[])
    });
    made.map(|()| dir.join("node_modules")).map_err(|error| format!("{error:#}"))
}

/// The programs of fixtures/sdk/node beside the stock OpenTelemetry SDK and Jaeger's client, in the target folder.
pub(crate) fn node_sdk(target: &Path) -> Result<PathBuf, String> {
    if !answers("npm") {
        return Err("no npm here".to_owned());
    }
    let dir = target.join("sdk/node");
    let program = dir.join("emit.mjs");
    let made =
        made_from("sdk/node", &["package-lock.json", "package.json", ".npmrc", "emit.mjs", "jaeger.mjs", "zipkin.mjs"], &dir, |dir| {
            // The one script among the packages prints an advertisement.
            run_in(dir, "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"], &[])
        });
    made.map(|()| program).map_err(|error| format!("{error:#}"))
}

/// The programs of fixtures/sdk/java compiled beside the jars of the stock OpenTelemetry SDK and of Jaeger's client, in the target folder: their class path.
pub(crate) fn java_sdk(target: &Path) -> Result<PathBuf, String> {
    for program in ["mvn", "javac"] {
        if !answers(program) {
            return Err(format!("no {program} here"));
        }
    }
    let dir = target.join("sdk/java");
    let made = made_from("sdk/java", &["pom.xml", "Emit.java", "Jaeger.java"], &dir, |dir| {
        run_in(dir, "mvn", &["--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=lib"], &[])?;
        run_in(dir, "javac", &["-cp", "lib/*", "-d", "lib/classes", "Emit.java", "Jaeger.java"], &[])
    });
    made.map(|()| dir.join("lib")).map_err(|error| format!("{error:#}"))
}

/// The programs of fixtures/sdk/go beside the stock OpenTelemetry SDK, Jaeger's client and Pyroscope's SDK, in the target folder.
pub(crate) fn go_sdk(target: &Path) -> Result<PathBuf, String> {
    go()?;
    let program = target.join("sdk/go/emit");
    let beside = |name: &str| program.with_file_name(name);
    let packages =
        [(program.clone(), "."), (beside("jaeger"), "./jaeger"), (beside("pyroscope"), "./pyroscope"), (beside("scraped"), "./scraped")];
    for (out, package) in packages {
        let build = ["build", "-o", &out.to_string_lossy(), package];
        run_in(&root().join("fixtures/sdk/go"), "go", &build, &[]).map_err(|error| format!("{error:#}"))?;
    }
    Ok(program)
}

/// Go, which knows no `--version`.
pub(crate) fn go() -> Result<(), String> {
    let there = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if there { Ok(()) } else { Err("no Go here".to_owned()) }
}

/// Copies files of a folder of fixtures to `dir` and runs `make` there, unless `dir` holds the same files already.
pub(crate) fn made_from(fixture: &str, files: &[&str], dir: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let from = root().join("fixtures").join(fixture);
    let ready = dir.join("longpole-ready");
    let is_the_same =
        |file: &&str| std::fs::read(from.join(file)).is_ok_and(|new| std::fs::read(dir.join(file)).is_ok_and(|old| old == new));
    if ready.exists() && files.iter().all(is_the_same) {
        return Ok(());
    }
    // Results of other files must not mix with the new ones.
    std::fs::remove_dir_all(dir).ok();
    std::fs::create_dir_all(dir).with_context(|| format!("failed to make {}", dir.display()))?;
    for file in files {
        std::fs::copy(from.join(file), dir.join(file)).with_context(|| format!("failed to copy {file} of {}", from.display()))?;
    }
    make(dir)?;
    std::fs::write(&ready, "").with_context(|| format!("failed to write {}", ready.display()))
}
