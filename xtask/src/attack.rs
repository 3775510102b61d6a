//! The attacks of `SECURITY.md`, as each kind of user that could make or suffer them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::run;
use crate::need;
use crate::paths::{root, target_dir};

/// The user that runs longpole, and the surroundings. Safety must not depend on them.
#[derive(Debug, Clone, Copy)]
struct Surroundings {
    plain_user: bool,
    umask: &'static str,
    home: bool,
}

impl std::fmt::Display for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = if self.plain_user { "a plain user" } else { "the user of this shell" };
        write!(f, "{who}, umask {}, {} HOME", self.umask, if self.home { "with" } else { "without" })
    }
}

/// Runs the attacks whose names contain a given word, or all; fails if one succeeds.
pub(crate) fn attack(args: &[&str]) -> Result<()> {
    let (names, binary) = parse(args)?;
    run("cargo", &["build", "-p", "longpole", "-p", "deploy-example", "-p", "shop-example"])?;
    run("cargo", &["test", "-p", "longpole", "--test", "attacks", "--no-run"])?;
    let tests = tests_binary()?;
    let binary = binary.unwrap_or_else(|| target_dir().join("debug/longpole"));
    let stage = Stage::new(&tests, &binary)?;
    let users: &[bool] = match need::setpriv() {
        Ok(()) => &[false, true],
        Err(why) => {
            eprintln!("xtask: skipped the attacks as a plain user: {why}");
            &[false]
        }
    };
    let mut failed = Vec::new();
    for &plain_user in users {
        for umask in ["022", "077"] {
            for home in [true, false] {
                let surroundings = Surroundings { plain_user, umask, home };
                eprintln!("\n== {surroundings}");
                if !stage.run(surroundings, &names)? {
                    failed.push(surroundings.to_string());
                }
            }
        }
    }
    if !failed.is_empty() {
        bail!("attacks succeed for: {}", failed.join("; "));
    }
    Ok(())
}

fn parse<'a>(args: &[&'a str]) -> Result<(Vec<&'a str>, Option<PathBuf>)> {
    let mut names = Vec::new();
    let mut binary = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--binary" => binary = Some(PathBuf::from(args.next().context("--binary needs a path")?)),
            name => names.push(name),
        }
    }
    Ok((names, binary))
}

/// The test binary that cargo has just built.
fn tests_binary() -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["test", "-p", "longpole", "--test", "attacks", "--no-run", "--message-format=json", "--quiet"]);
    let out = cargo.output().context("failed to ask cargo for the test binary")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let of_attacks = text.lines().filter(|line| line.contains("\"name\":\"attacks\""));
    let executable = of_attacks.filter_map(|line| line.split_once("\"executable\":\"")).next_back();
    let (_, rest) = executable.context("cargo names no test binary of the attacks")?;
    Ok(rest.split('"').next().unwrap_or_default().into())
}

/// Copies of both binaries where every user can run them, and a home for each user. Gone at the end.
struct Stage {
    dir: PathBuf,
}

impl Stage {
    fn new(tests: &Path, binary: &Path) -> Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let stage = Stage { dir: std::env::temp_dir().join(format!("longpole-attacks-{}", std::process::id())) };
        for (name, mode) in [("", 0o755), ("home-mine", 0o700), ("home-plain", 0o1777), ("tmp", 0o1777)] {
            let dir = stage.dir.join(name);
            std::fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).context("failed to set permissions")?;
        }
        for (source, name) in [(tests, "attacks"), (binary, "longpole")] {
            std::fs::copy(source, stage.dir.join(name)).with_context(|| format!("failed to copy {}", source.display()))?;
        }
        let examples = target_dir().join("debug");
        for name in ["deploy", "shop"] {
            std::fs::copy(examples.join(name), stage.dir.join(name)).with_context(|| format!("failed to copy the example {name}"))?;
        }
        Ok(stage)
    }

    /// Whether every attack failed in these surroundings.
    fn run(&self, surroundings: Surroundings, names: &[&str]) -> Result<bool> {
        // A shell sets the mask: Rust's standard library cannot.
        let mut shell = vec!["sh".to_owned(), "-c".to_owned(), format!("umask {} && exec \"$0\" \"$@\"", surroundings.umask)];
        shell.push(self.dir.join("attacks").to_string_lossy().into_owned());
        shell.extend(["--include-ignored".to_owned(), "--test-threads=2".to_owned()]);
        shell.extend(names.iter().map(|name| (*name).to_owned()));
        let mut words = Vec::new();
        if surroundings.plain_user {
            words.extend(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"].map(str::to_owned));
            words.extend(["--inh-caps=-all", "--bounding-set=-all"].map(str::to_owned));
        }
        words.extend(shell);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.dir.join("tmp"));
        command.env("TMPDIR", self.dir.join("tmp")).env("LONGPOLE_STORY_BINARY", self.dir.join("longpole"));
        for name in ["HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        if surroundings.home {
            command.env("HOME", self.dir.join(if surroundings.plain_user { "home-plain" } else { "home-mine" }));
        }
        let status = command.status().with_context(|| format!("failed to start {}", words[0]))?;
        Ok(status.success())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }
}
