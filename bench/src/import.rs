//! How fast files become answers: a million spans of OTLP JSON lines into a recording, an `up.trace` of a deployment to its poles.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{generate, peers, timing};

const ROUNDS: usize = 5;

/// Spans of the file of OTLP JSON lines.
const OTLP_SPANS: usize = 1_000_000;

/// Spans of the `up.trace`: with its duplication, 80 to 100 MB.
const UP_TRACE_SPANS: usize = 12_000;

/// How often the memory of a child is looked at; its largest is kept by the kernel, so this decides only how much of the end is missed.
const LOOK: Duration = Duration::from_millis(2);

/// Prints spans a second and core, wall time and memory, beside Pulumi's converter where it is installed.
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
    row("longpole import spans.jsonl", Some(OTLP_SPANS), &[longpole, "--store", &store, "import", &lines], &[])?;
    row("longpole poles up.trace", Some(UP_TRACE_SPANS), &[longpole, "--store", &store, "poles", &trace], &[])?;
    row("longpole convert-trace up.trace", None, &[longpole, "convert-trace", &trace], &[])?;
    match peers::find("pulumi") {
        Some(pulumi) => row(
            "pulumi convert-trace up.trace",
            None,
            &[&pulumi, "convert-trace", &trace],
            &[("PULUMI_DEBUG_COMMANDS", "true"), ("PULUMI_SKIP_UPDATE_CHECK", "true")],
        ),
        None => {
            println!("  pulumi is not installed: cargo xtask peers pulumi");
            Ok(())
        }
    }
}

/// Rounds of one command: wall and CPU time, memory and, where the spans are known, spans a second of CPU time, which a busy machine
/// changes least.
fn row(name: &str, spans: Option<usize>, argv: &[&str], env: &[(&str, &str)]) -> Result<()> {
    let (mut walls, mut cpus, mut rates, mut memories) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = timing::children_cpu_secs()?;
        let (wall_secs, memory) = watched(argv, env)?;
        let cpu_secs = timing::children_cpu_secs()? - before;
        walls.push(wall_secs * 1e3);
        cpus.push(cpu_secs * 1e3);
        memories.push(memory);
        rates.push(spans.unwrap_or_default() as f64 / cpu_secs.max(0.01) / 1e3);
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

/// Wall seconds of a command and the most memory it had, in MB.
fn watched(argv: &[&str], env: &[(&str, &str)]) -> Result<(f64, f64)> {
    let start = Instant::now();
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("failed to start {}", argv[0]))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut kilobytes = 0.0;
    let status = loop {
        if let Some(peak) = std::fs::read_to_string(&status_file).ok().and_then(|text| peak_kilobytes(&text)) {
            kilobytes = peak;
        }
        if let Some(status) = child.try_wait().context("failed to wait")? {
            break status;
        }
        std::thread::park_timeout(LOOK);
    };
    ensure!(status.success(), "{} ended with {status}", argv.join(" "));
    Ok((start.elapsed().as_secs_f64(), kilobytes * 1024.0 / 1e6))
}

fn peak_kilobytes(status: &str) -> Option<f64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}
