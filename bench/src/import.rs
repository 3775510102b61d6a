//! How fast files become answers: a million spans of OTLP JSON lines into a recording, an `up.trace` of a deployment to its poles.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{generate, peers, timing};

const ROUNDS: usize = 5;

/// Spans of the file of OTLP JSON lines.
const OTLP_SPANS: usize = 1_000_000;

/// Spans of the `up.trace`: with its duplication, 80 to 100 MB.
const UP_TRACE_SPANS: usize = 12_000;

/// How often the memory of a child is looked at; its largest is kept by the kernel, so this decides only how much of the end is missed.
const LOOK: Duration = Duration::from_millis(2);

/// Prints wall and CPU time, memory, and spans a second and core, beside Pulumi's commands where it is installed.
pub(crate) fn measure(longpole: &str) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("failed to make a temporary folder")?;
    let measured = in_folder(longpole, &dir);
    std::fs::remove_dir_all(&dir).ok();
    measured
}

fn in_folder(longpole: &str, dir: &Path) -> Result<()> {
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let (store, lines, trace) = (path("store"), path("spans.jsonl"), path("up.trace"));
    generate::generate(&["--spans", &OTLP_SPANS.to_string(), "--shape", "many", "-o", &lines])?;
    generate::generate(&["--spans", &UP_TRACE_SPANS.to_string(), "--format", "up.trace", "-o", &trace])?;
    let megabytes = |file: &str| std::fs::metadata(file).map(|data| data.len() as f64 / 1e6);
    println!(
        "import, {ROUNDS} rounds: {OTLP_SPANS} spans of OTLP JSON lines ({:.0} MB), {UP_TRACE_SPANS} spans of an up.trace ({:.0} MB)",
        megabytes(&lines)?,
        megabytes(&trace)?
    );
    row("longpole import spans.jsonl", Some(OTLP_SPANS), &|| watched(&[longpole, "--store", &store, "import", &lines], &[]))?;
    row("longpole poles up.trace", Some(UP_TRACE_SPANS), &|| watched(&[longpole, "--store", &store, "poles", &trace], &[]))?;
    row("longpole convert-trace up.trace", None, &|| watched(&[longpole, "convert-trace", &trace], &[]))?;
    row("longpole view-trace up.trace", None, &|| served(&[longpole, "view-trace", "--no-browser", &trace], &[]))?;
    let Some(pulumi) = peers::find("pulumi") else { return Ok(()) };
    let env = [("PULUMI_DEBUG_COMMANDS", "true"), ("PULUMI_SKIP_UPDATE_CHECK", "true")];
    row("pulumi convert-trace up.trace", None, &|| watched(&[&pulumi, "convert-trace", &trace], &env))?;
    row("pulumi view-trace up.trace", None, &|| served(&[&pulumi, "view-trace", &trace], &env))
}

/// What one execution took.
struct Taken {
    wall_secs: f64,
    cpu_secs: f64,
    /// The most memory that it had.
    megabytes: f64,
}

/// Rounds of one command: wall and CPU time, memory and, where the spans are known, spans a second of CPU time, which a busy machine
/// changes least.
fn row(name: &str, spans: Option<usize>, once: &dyn Fn() -> Result<Taken>) -> Result<()> {
    let (mut walls, mut cpus, mut rates, mut memories) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let taken = once()?;
        walls.push(taken.wall_secs * 1e3);
        cpus.push(taken.cpu_secs * 1e3);
        memories.push(taken.megabytes);
        rates.push(spans.unwrap_or_default() as f64 / taken.cpu_secs.max(0.01) / 1e3);
    }
    let (wall, cpu) = (timing::median(&walls), timing::median(&cpus));
    let (memory, rate) = (timing::median(&memories), timing::median(&rates));
    let rate = spans.map(|_| format!("   {:7.0} k spans/s/core [{:.0}, {:.0}]", rate.value, rate.low, rate.high)).unwrap_or_default();
    println!(
        "  {name:34} {:8.0} ms [{:.0}, {:.0}]   CPU {:6.0} ms [{:.0}, {:.0}]   {:5.0} MB{rate}",
        wall.value, wall.low, wall.high, cpu.value, cpu.low, cpu.high, memory.value
    );
    Ok(())
}

/// A command from its start to its end.
fn watched(argv: &[&str], env: &[(&str, &str)]) -> Result<Taken> {
    let before = timing::children_cpu_secs()?;
    let start = Instant::now();
    let mut child = start_quietly(argv, env)?;
    let mut megabytes = 0.0;
    let status = loop {
        megabytes = timing::peak_megabytes(child.id()).unwrap_or(megabytes);
        if let Some(status) = child.try_wait().context("failed to wait")? {
            break status;
        }
        std::thread::park_timeout(LOOK);
    };
    ensure!(status.success(), "{} ended with {status}", argv.join(" "));
    Ok(Taken { wall_secs: start.elapsed().as_secs_f64(), cpu_secs: timing::children_cpu_secs()? - before, megabytes })
}

/// A command that serves a page, from its start until somebody can connect to it.
fn served(argv: &[&str], env: &[(&str, &str)]) -> Result<Taken> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("failed to find a free port")?;
    let port = address.port().to_string();
    let start = Instant::now();
    let mut child = start_quietly(&[argv, &["--port", &port]].concat(), env)?;
    while TcpStream::connect(address).is_err() {
        if let Some(status) = child.try_wait().context("failed to wait")? {
            bail!("{} ended with {status} before it served anything", argv.join(" "));
        }
        std::thread::park_timeout(LOOK);
    }
    let wall_secs = start.elapsed().as_secs_f64();
    let megabytes = timing::peak_megabytes(child.id());
    let cpu_secs = timing::cpu_secs_of(child.id());
    // As Ctrl-C would, so that it takes away what it wrote.
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().context("failed to interrupt it")?;
    child.wait().context("failed to wait")?;
    Ok(Taken { wall_secs, cpu_secs: cpu_secs?, megabytes: megabytes.context("failed to read its memory")? })
}

fn start_quietly(argv: &[&str], env: &[(&str, &str)]) -> Result<Child> {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).envs(env.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("failed to start {}", argv[0]))
}
