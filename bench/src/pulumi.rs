//! Whether the answer is right for deployments by the real Pulumi: programs of 30 resources with one slow one, recorded in every way that
//! Pulumi's page has, beside runs in which the slow one is as fast as the others.
//!
//! ```text
//! serial     one resource after the other; the slow one stands in the middle
//! fan-out    thirty at once
//! middle     ten at once, then the slow one and its neighbours, then ten more
//! shell      as middle; the slow one's provider leaves the work to a process of its own
//! legacy     as middle; the slow one's provider speaks OpenTracing alone
//! replace    as middle; the slow one is replaced, and deleting the old one is slow
//! ```

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{Subject, peers, timing};

/// Pairs of runs with and without the slow resource.
const PAIRS: usize = 5;

/// Milliseconds of the slow resource, and of the others.
const SLOW: u64 = 1_500;
const FAST: u64 = 30;

/// The slow resource.
const NAME: &str = "slow-db";

const SHAPES: [&str; 6] = ["serial", "fan-out", "middle", "shell", "legacy", "replace"];

/// A way to record: longpole's own flags, and Pulumi's. `HERE` is the folder of the program: Pulumi takes no relative path there.
const WAYS: [(&str, &[&str], &[&str]); 6] = [
    ("no flags", &[], &[]),
    ("pulumi --tracing", &[], &["--tracing=file:./up.trace"]),
    ("pulumi --otel-traces", &[], &["--otel-traces=file://HERE/traces.json"]),
    ("pulumi, both", &[], &["--tracing=file:./up.trace", "--otel-traces=file://HERE/traces.json"]),
    ("longpole --tracing", &["--tracing", "file:./copy.trace"], &[]),
    ("longpole --otel-traces", &["--otel-traces", "file:./copy.json"], &[]),
];

/// A stack with a state of its own in a folder; without account and network.
struct Stack {
    folder: PathBuf,
    pulumi: PathBuf,
}

impl Stack {
    /// A folder in which nothing is deployed yet.
    fn new(folder: PathBuf, pulumi: &Path) -> Result<Stack> {
        for made in ["project", "home", "state"] {
            std::fs::create_dir_all(folder.join(made))?;
        }
        let plugins = pulumi.parent().and_then(Path::parent).context("pulumi stands in no folder")?.join("plugins");
        std::os::unix::fs::symlink(plugins, folder.join("home/plugins"))?;
        let stack = Stack { folder, pulumi: pulumi.to_owned() };
        std::fs::write(stack.folder.join("project/Pulumi.yaml"), "name: bench\nruntime: yaml\n")?;
        stack.run(&mut stack.command(&[], &["stack", "select", "dev", "--create"]))?;
        Ok(stack)
    }

    /// A copy, for a run that begins where this stack is.
    fn copy(&self, folder: PathBuf) -> Result<Stack> {
        let copied = Command::new("cp").arg("-a").arg(&self.folder).arg(&folder).status().context("failed to copy the stack")?;
        ensure!(copied.success(), "failed to copy the stack");
        Ok(Stack { folder, pulumi: self.pulumi.clone() })
    }

    fn write(&self, program: &str) -> Result<()> {
        std::fs::write(self.folder.join("project/Pulumi.yaml"), program).context("failed to write the program")
    }

    /// `up` with these flags.
    fn up(&self, flags: &[&str]) -> Vec<String> {
        let here = self.folder.join("project").to_string_lossy().into_owned();
        UP.iter().chain(flags).map(|word| word.replace("HERE", &here)).collect()
    }

    /// `pulumi WORDS` behind other words.
    fn command(&self, before: &[&str], words: &[impl AsRef<str>]) -> Command {
        let all: Vec<&str> = before.iter().copied().chain(["pulumi"]).chain(words.iter().map(AsRef::as_ref)).collect();
        let mut command = Command::new(all[0]);
        let bin = self.pulumi.parent().unwrap_or(Path::new("/"));
        let path =
            std::env::join_paths([bin.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())));
        command
            .args(&all[1..])
            .current_dir(self.folder.join("project"))
            .env("PATH", path.unwrap_or_default())
            .env("PULUMI_HOME", self.folder.join("home"))
            .env("PULUMI_BACKEND_URL", format!("file://{}", self.folder.join("state").display()))
            .env("PULUMI_CONFIG_PASSPHRASE", "x")
            .env("PULUMI_SKIP_UPDATE_CHECK", "true")
            .env("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end; its wall time in seconds.
    fn run(&self, command: &mut Command) -> Result<f64> {
        let start = Instant::now();
        let out = command.output().context("failed to start the command")?;
        let said = || format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        ensure!(out.status.success(), "{command:?}: {}", said());
        Ok(start.elapsed().as_secs_f64())
    }
}

const UP: [&str; 6] = ["up", "--yes", "--non-interactive", "--skip-preview", "--stack", "dev"];

/// The program of a shape: thirty resources and the slow one, which takes `slow` milliseconds.
fn program(shape: &str, slow: u64, version: u32) -> String {
    let mut text = "name: bench\nruntime: yaml\nresources:\n".to_owned();
    let mut resource = |name: &str, kind: &str, millis: u64, more: &str, after: &[String]| {
        let after: Vec<String> = after.iter().map(|name| format!("\"${{{name}.done}}\"")).collect();
        let _ = write!(
            text,
            "  {name}:\n    type: {kind}\n    properties: {{ label: {name}-{version}, millis: {millis}{more}, after: [{}] }}\n",
            after.join(", ")
        );
    };
    let name = |i: usize| format!("res-{i}");
    match shape {
        "serial" => {
            for i in 0..30 {
                let before: Vec<String> = if i == 0 { Vec::new() } else { vec![if i == 15 { NAME.to_owned() } else { name(i - 1) }] };
                if i == 15 {
                    resource(NAME, "modern:Step", slow, "", &[name(14)]);
                }
                resource(&name(i), "modern:Step", FAST, "", &before);
            }
        }
        "fan-out" => {
            for i in 0..30 {
                resource(&name(i), if i % 2 == 0 { "modern:Step" } else { "legacy:Step" }, FAST, "", &[]);
            }
            resource(NAME, "modern:Step", slow, "", &[]);
        }
        _ => {
            let first: Vec<String> = (0..10).map(name).collect();
            for one in &first {
                resource(one, "modern:Step", FAST, "", &[]);
            }
            for i in 10..20 {
                resource(&name(i), "legacy:Step", FAST, "", &first[..2]);
            }
            match shape {
                "shell" => resource(NAME, "modern:Shell", slow, "", &first[..2]),
                "legacy" => resource(NAME, "legacy:Step", slow, "", &first[..2]),
                "replace" => resource(NAME, "modern:Step", FAST, &format!(", deleteMillis: {slow}"), &first[..2]),
                _ => resource(NAME, "modern:Step", slow, "", &first[..2]),
            }
            for i in 20..30 {
                resource(&name(i), "modern:Step", FAST, "", &[NAME.to_owned()]);
            }
        }
    }
    text
}

/// Prints for each shape and way what the first pole is, what it promises, and what a run without it gains.
pub(crate) fn measure(subjects: &[Subject], shapes: &[&str]) -> Result<()> {
    let shapes = if shapes.is_empty() { &SHAPES[..] } else { shapes };
    if let Some(unknown) = shapes.iter().find(|shape| !SHAPES.contains(shape)) {
        bail!("{unknown} is no shape: there are {}", SHAPES.join(", "));
    }
    let Some(pulumi) = peers::find("pulumi") else { bail!("no pulumi here: `cargo xtask peers pulumi` installs it") };
    let folder = std::env::temp_dir().join(format!("longpole-bench-pulumi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("failed to make a temporary folder")?;
    let measured = shapes.iter().try_for_each(|shape| of_shape(&subjects[0], shape, Path::new(&pulumi), &folder));
    std::fs::remove_dir_all(&folder).ok();
    measured
}

fn of_shape(subject: &Subject, shape: &str, pulumi: &Path, folder: &Path) -> Result<()> {
    let fresh = Stack::new(folder.join(shape), pulumi)?;
    let mut copies = 0;
    // Where something is replaced, something is deployed before.
    let mut ready = |slow: u64| -> Result<Stack> {
        copies += 1;
        let stack = fresh.copy(folder.join(format!("{shape}-{copies}")))?;
        if shape == "replace" {
            stack.write(&program(shape, slow, 1))?;
            stack.run(&mut stack.command(&[], &UP))?;
        }
        stack.write(&program(shape, slow, 2))?;
        Ok(stack)
    };
    let mut gains = Vec::new();
    for _ in 0..PAIRS {
        let mut wall = |slow| {
            let stack = ready(slow)?;
            stack.run(&mut stack.command(&[], &UP))
        };
        gains.push(wall(SLOW)? - wall(FAST)?);
    }
    let gain = timing::median(&gains);
    println!("{shape}: without the slow resource the deployment ends {:.2} s earlier ({PAIRS} pairs)", gain.value);
    for (way, own, flags) in WAYS {
        let stack = ready(SLOW)?;
        let store = stack.folder.join("store").to_string_lossy().into_owned();
        let before = [&[subject.binary.as_str(), "--store", &store, "run", "--summary", "none"], own, &["--"]].concat();
        stack.run(&mut stack.command(&before, &stack.up(flags)))?;
        print_row(way, &answer(subject, &["--store", &store, "show", "last"])?, gain.value);
    }
    // With both flags, each file holds a part.
    for (way, flags, name) in [("up.trace alone", WAYS[1].2, "up.trace"), ("traces.json alone", WAYS[2].2, "traces.json")] {
        let stack = ready(SLOW)?;
        stack.run(&mut stack.command(&[], &stack.up(flags)))?;
        let file = stack.folder.join("project").join(name).to_string_lossy().into_owned();
        print_row(way, &answer(subject, &["show", &file])?, gain.value);
    }
    let stack = ready(SLOW)?;
    stack.run(&mut stack.command(&[], &stack.up(WAYS[3].2)))?;
    let file = |name: &str| stack.folder.join("project").join(name).to_string_lossy().into_owned();
    let (trace, traces, store) = (file("up.trace"), file("traces.json"), file("store"));
    let import = Command::new(&subject.binary).args(["--store", &store, "import", "--together", &traces, &trace]).output()?;
    ensure!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    print_row("both files", &answer(subject, &["--store", &store, "show", "last"])?, gain.value);
    Ok(())
}

fn answer(subject: &Subject, words: &[&str]) -> Result<Value> {
    let out = Command::new(&subject.binary).args(words).args(["--format", "json"]).output().context("failed to start longpole")?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).context("the answer is no JSON")
}

/// `no flags   named right   saves 1.46–1.50 s, p1 Create modern:index:Step slow-db`. Right is a saving within 10 % of the gain, in a range no wider
/// than half of itself.
fn print_row(way: &str, answer: &Value, gain: f64) {
    let pole = &answer["poles"][0];
    let text = |key: &str| pole[key].as_str().unwrap_or_default().to_owned();
    let seconds = |end: usize| pole["saves_if_zero_nanos"][end].as_f64().unwrap_or_default() / 1e9;
    let (low, high) = (seconds(0), seconds(1));
    let is_named = text("context").contains(NAME) || text("resource").contains(NAME);
    let is_right = low <= gain * 1.1 && gain * 0.9 <= high && high - low <= high / 2.0;
    println!(
        "  {way:24} {:5} {:6} saves {low:.2}–{high:.2} s, p1 {} {}",
        if is_named { "named" } else { "WRONG" },
        if is_right { "right" } else { "WRONG" },
        text("name"),
        text("context")
    );
}
