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
//! go, nodejs, python    as middle, by a program in that language
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

/// Milliseconds of a resource that is not slow.
const FAST: u64 = 30;

/// Milliseconds of the slow resource. It takes longer than the start of any language: Node loads its SDK for 1.2 to 1.8 s, and a resource
/// that is faster than that is rightly not the first pole.
fn slow(shape: &str) -> u64 {
    if LANGUAGES.iter().any(|(language, _)| *language == shape) { 5_000 } else { 1_500 }
}

/// The slow resource.
const NAME: &str = "slow-db";

const SHAPES: [&str; 9] = ["serial", "fan-out", "middle", "shell", "legacy", "replace", "go", "nodejs", "python"];

/// Shapes whose program is none in YAML: fixtures/pulumi/programs has it, and `Pulumi.yaml` names it so.
const LANGUAGES: [(&str, &str); 3] = [
    ("go", "runtime: { name: go, options: { binary: ./program } }"),
    ("nodejs", "runtime: nodejs"),
    ("python", "runtime: { name: python, options: { virtualenv: venv } }"),
];

/// A way to record: longpole's own flags, and Pulumi's. `HERE` is the folder of the program: Pulumi takes no relative path there.
const WAYS: [(&str, &[&str], &[&str]); 7] = [
    ("no flags", &[], &[]),
    ("pulumi --tracing", &[], &["--tracing=file:./up.trace"]),
    ("pulumi --otel-traces", &[], &["--otel-traces=file://HERE/traces.json"]),
    ("pulumi, both", &[], &["--tracing=file:./up.trace", "--otel-traces=file://HERE/traces.json"]),
    ("longpole --tracing", &["--tracing", "file:./copy.trace"], &[]),
    ("longpole --otel-traces", &["--otel-traces", "file:./copy.json"], &[]),
    ("longpole, both", &["--tracing", "file:./copy.trace", "--otel-traces", "file:./copy.json"], &[]),
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
        std::os::unix::fs::symlink(installation(pulumi)?.join("plugins"), folder.join("home/plugins"))?;
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

    /// The program of a shape: its resources in YAML, or beside a program that reads them.
    fn write(&self, shape: &str, resources: &[Resource]) -> Result<()> {
        let project = self.folder.join("project");
        let Some((language, runtime)) = LANGUAGES.iter().find(|(language, _)| *language == shape) else {
            return std::fs::write(project.join("Pulumi.yaml"), yaml(resources)).context("failed to write the program");
        };
        std::fs::write(project.join("Pulumi.yaml"), format!("name: bench\n{runtime}\n")).context("failed to write Pulumi.yaml")?;
        std::fs::write(project.join("resources.json"), json(resources)).context("failed to write resources.json")?;
        for entry in programs(&self.pulumi)?.join(language).read_dir().context("failed to list the program")? {
            let entry = entry?;
            let link = project.join(entry.file_name());
            if !link.exists() {
                std::os::unix::fs::symlink(entry.path(), link).context("failed to link the program")?;
            }
        }
        Ok(())
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
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PULUMI_")) {
            command.env_remove(name);
        }
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
        ensure!(out.status.success(), "{command:?} ended with {}: {}", out.status, said());
        Ok(start.elapsed().as_secs_f64())
    }
}

const UP: [&str; 6] = ["up", "--yes", "--non-interactive", "--skip-preview", "--stack", "dev"];

/// The folder of `cargo xtask peers pulumi`, which has the command in its `bin`.
fn installation(pulumi: &Path) -> Result<&Path> {
    pulumi.parent().and_then(Path::parent).context("pulumi stands in no folder")
}

/// The programs in other languages than YAML.
fn programs(pulumi: &Path) -> Result<PathBuf> {
    Ok(installation(pulumi)?.join("programs"))
}

/// A resource of a program.
struct Resource {
    name: String,
    /// As YAML writes it: `modern:Step`.
    kind: &'static str,
    label: String,
    millis: u64,
    delete_millis: u64,
    /// The resources that it waits for.
    after: Vec<String>,
}

/// The resources of a shape: thirty and the slow one, which takes `slow` milliseconds.
fn resources(shape: &str, slow: u64, version: u32) -> Vec<Resource> {
    let mut all = Vec::new();
    let mut resource = |name: &str, kind: &'static str, millis: u64, after: &[String]| {
        let (name, label) = (name.to_owned(), format!("{name}-{version}"));
        let (millis, delete_millis) = if shape == "replace" && name == NAME { (FAST, slow) } else { (millis, 0) };
        all.push(Resource { name, kind, label, millis, delete_millis, after: after.to_vec() });
    };
    let name = |i: usize| format!("res-{i}");
    match shape {
        "serial" => {
            for i in 0..30 {
                let before: Vec<String> = if i == 0 { Vec::new() } else { vec![if i == 15 { NAME.to_owned() } else { name(i - 1) }] };
                if i == 15 {
                    resource(NAME, "modern:Step", slow, &[name(14)]);
                }
                resource(&name(i), "modern:Step", FAST, &before);
            }
        }
        "fan-out" => {
            for i in 0..30 {
                resource(&name(i), if i % 2 == 0 { "modern:Step" } else { "legacy:Step" }, FAST, &[]);
            }
            resource(NAME, "modern:Step", slow, &[]);
        }
        _ => {
            let first: Vec<String> = (0..10).map(name).collect();
            for one in &first {
                resource(one, "modern:Step", FAST, &[]);
            }
            for i in 10..20 {
                resource(&name(i), "legacy:Step", FAST, &first[..2]);
            }
            let kind = match shape {
                "shell" => "modern:Shell",
                "legacy" => "legacy:Step",
                _ => "modern:Step",
            };
            resource(NAME, kind, slow, &first[..2]);
            for i in 20..30 {
                resource(&name(i), "modern:Step", FAST, &[NAME.to_owned()]);
            }
        }
    }
    all
}

/// A program in YAML.
fn yaml(resources: &[Resource]) -> String {
    let mut text = "name: bench\nruntime: yaml\nresources:\n".to_owned();
    for Resource { name, kind, label, millis, delete_millis, after } in resources {
        let after: Vec<String> = after.iter().map(|name| format!("\"${{{name}.done}}\"")).collect();
        let more = if *delete_millis == 0 { String::new() } else { format!(", deleteMillis: {delete_millis}") };
        let _ = write!(
            text,
            "  {name}:\n    type: {kind}\n    properties: {{ label: {label}, millis: {millis}{more}, after: [{}] }}\n",
            after.join(", ")
        );
    }
    text
}

/// What a program in another language reads. Only YAML completes `modern:Step` to `modern:index:Step`.
fn json(resources: &[Resource]) -> String {
    let object = |Resource { name, kind, label, millis, delete_millis, after }: &Resource| {
        let kind = kind.replace(':', ":index:");
        serde_json::json!({ "name": name, "type": kind, "label": label, "millis": millis, "deleteMillis": delete_millis, "after": after })
    };
    Value::Array(resources.iter().map(object).collect()).to_string()
}

/// Prints for each shape and way what the first pole is, what it promises, and what a run without it gains. Copies the folder of each
/// wrong row to `keep`: the store or the files, under the row's name.
pub(crate) fn measure(subjects: &[Subject], shapes: &[&str], keep: Option<&Path>) -> Result<()> {
    let shapes = if shapes.is_empty() { &SHAPES[..] } else { shapes };
    if let Some(unknown) = shapes.iter().find(|shape| !SHAPES.contains(shape)) {
        bail!("{unknown} is no shape: there are {}", SHAPES.join(", "));
    }
    let Some(pulumi) = peers::find("pulumi") else { bail!("no pulumi here: `cargo xtask peers pulumi` installs it") };
    let folder = std::env::temp_dir().join(format!("longpole-bench-pulumi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("failed to make a temporary folder")?;
    let pulumi = Path::new(&pulumi);
    let measured = shapes.iter().try_for_each(|shape| {
        let is_missing = LANGUAGES.iter().any(|(language, _)| language == shape) && !programs(pulumi)?.join(shape).is_dir();
        if is_missing {
            println!("{shape}: no program here, left out (cargo xtask peers pulumi)");
            return Ok(());
        }
        of_shape(&subjects[0], shape, pulumi, &folder, keep)
    });
    std::fs::remove_dir_all(&folder).ok();
    measured
}

fn of_shape(subject: &Subject, shape: &str, pulumi: &Path, folder: &Path, keep: Option<&Path>) -> Result<()> {
    let slow = slow(shape);
    let fresh = Stack::new(folder.join(shape), pulumi)?;
    let mut copies = 0;
    // Where something is replaced, something is deployed before.
    let mut ready = |millis: u64| -> Result<Stack> {
        copies += 1;
        let stack = fresh.copy(folder.join(format!("{shape}-{copies}")))?;
        if shape == "replace" {
            stack.write(shape, &resources(shape, millis, 1))?;
            stack.run(&mut stack.command(&[], &UP))?;
        }
        stack.write(shape, &resources(shape, millis, 2))?;
        Ok(stack)
    };
    let mut gains = Vec::new();
    for _ in 0..PAIRS {
        let mut wall = |millis| {
            let stack = ready(millis)?;
            stack.run(&mut stack.command(&[], &UP))
        };
        gains.push(wall(slow)? - wall(FAST)?);
    }
    let gain = timing::median(&gains);
    println!("{shape}: without the slow resource the deployment ends {:.2} s earlier ({PAIRS} pairs)", gain.value);
    let row = |way: &str, stack: Stack, words: &[&str]| -> Result<()> {
        let is_right = print_row(way, &answer(subject, words)?, gain.value);
        let Some(keep) = keep.filter(|_| !is_right) else { return Ok(()) };
        std::fs::create_dir_all(keep).with_context(|| format!("failed to make {}", keep.display()))?;
        let kept = keep.join(format!("{shape}-{}", way.replace(", ", "-").replace(' ', "-")));
        if kept.exists() {
            println!("  not kept: {} is there", kept.display());
            return Ok(());
        }
        stack.copy(kept).map(drop)
    };
    for (way, own, flags) in WAYS {
        let stack = ready(slow)?;
        let store = stack.folder.join("store").to_string_lossy().into_owned();
        let before = [&[subject.binary.as_str(), "--store", &store, "run", "--summary", "none"], own, &["--"]].concat();
        stack.run(&mut stack.command(&before, &stack.up(flags)))?;
        row(way, stack, &["--store", &store, "show", "last"])?;
    }
    // With both flags, each file holds a part.
    for (way, flags, name) in [("up.trace alone", WAYS[1].2, "up.trace"), ("traces.json alone", WAYS[2].2, "traces.json")] {
        let stack = ready(slow)?;
        stack.run(&mut stack.command(&[], &stack.up(flags)))?;
        let file = stack.folder.join("project").join(name).to_string_lossy().into_owned();
        row(way, stack, &["show", &file])?;
    }
    let stack = ready(slow)?;
    stack.run(&mut stack.command(&[], &stack.up(WAYS[3].2)))?;
    let file = |name: &str| stack.folder.join("project").join(name).to_string_lossy().into_owned();
    let (trace, traces, store) = (file("up.trace"), file("traces.json"), file("store"));
    let import = Command::new(&subject.binary).args(["--store", &store, "import", "--together", &traces, &trace]).output()?;
    ensure!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    row("both files", stack, &["--store", &store, "show", "last"])
}

fn answer(subject: &Subject, words: &[&str]) -> Result<Value> {
    let out = Command::new(&subject.binary).args(words).args(["--format", "json"]).output().context("failed to start longpole")?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).context("the answer is no JSON")
}

/// `no flags   named right   saves 1.46–1.50 s, p1 Create modern:index:Step slow-db`. Right is a saving within 10 % of the gain, in a range no wider
/// than half of itself, and the parts of the deployment's time sum to its wall time. Returns whether all of the row is.
fn print_row(way: &str, answer: &Value, gain: f64) -> bool {
    let pole = &answer["poles"][0];
    let text = |key: &str| pole[key].as_str().unwrap_or_default().to_owned();
    let seconds = |end: usize| pole["saves_if_zero_nanos"][end].as_f64().unwrap_or_default() / 1e9;
    let (low, high) = (seconds(0), seconds(1));
    let is_named = text("context").contains(NAME) || text("resource").contains(NAME);
    let is_right = low <= gain * 1.1 && gain * 0.9 <= high && high - low <= high / 2.0;
    let parts = answer["deployment"].as_object().map(|parts| parts.values().filter_map(Value::as_u64).sum::<u64>());
    let wall = answer["wall_nanos"].as_u64();
    if parts != wall {
        println!("  {way:24} WRONG  the parts of the deployment are {parts:?} ns, its wall time is {wall:?} ns");
    }
    println!(
        "  {way:24} {:5} {:6} saves {low:.2}–{high:.2} s, p1 {} {}",
        if is_named { "named" } else { "WRONG" },
        if is_right { "right" } else { "WRONG" },
        text("name"),
        text("context")
    );
    is_named && is_right && parts == wall
}
