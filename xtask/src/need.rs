//! What a machine must have beyond Rust and Node: found, installed, or reported with the reason.

use std::path::PathBuf;
use std::process::{Command, Stdio};

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

/// Installs packages of the distribution, where this is Debian's kind and we are root. Says why not otherwise.
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

/// `perf`, a peer of benchmarks.
pub(crate) fn perf() -> Result<(), String> {
    if answers("perf") { Ok(()) } else { install(&["linux-perf"]) }
}

/// A Python with the stock OpenTelemetry SDK, in the target folder.
pub(crate) fn python(target: &std::path::Path) -> Result<PathBuf, String> {
    let dir = target.join("python");
    let (python, ready) = (dir.join("bin/python"), dir.join("longpole-ready"));
    if ready.exists() {
        return Ok(python);
    }
    let step = |program: &std::path::Path, args: &[&str]| {
        eprintln!("$ {} {}", program.display(), args.join(" "));
        Command::new(program).args(args).stdout(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    if !step("python3".as_ref(), &["-m", "venv", &dir.to_string_lossy()]) {
        return Err("no Python 3 with venv here".to_owned());
    }
    let packages =
        ["opentelemetry-sdk==1.38.0", "opentelemetry-exporter-otlp-proto-http==1.38.0", "opentelemetry-exporter-otlp-proto-grpc==1.38.0"];
    let args: Vec<&str> = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"].into_iter().chain(packages).collect();
    if !step(&python, &args) {
        return Err(format!("pip could not install {}", packages.join(", ")));
    }
    std::fs::write(ready, "").map_err(|error| format!("failed to note that Python is ready: {error}"))?;
    Ok(python)
}
