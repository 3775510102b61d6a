//! Rounds, medians and their intervals; CPU time of children as the kernel adds it up.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::load::{OWN_CPU_NANOS, OWN_NANOS};

/// Clock ticks a second in `/proc/PID/stat`: 100 on every Linux that Rust's std runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// One execution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Wall time in seconds.
    pub(crate) wall_secs: f64,
    /// Wall time of the work alone, where the program says it, in seconds.
    pub(crate) own_secs: f64,
    /// Time that its threads had on a CPU, where the program says it, in seconds.
    pub(crate) own_cpu_secs: f64,
    /// User and system time of the command and what it waited for, in seconds.
    pub(crate) cpu_secs: f64,
}

/// Largest resident memory of a process so far; `None` where it has none any more.
pub(crate) fn peak_megabytes(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?;
    Some(kilobytes.trim().parse::<f64>().ok()? * 1024.0 / 1e6)
}

/// That of this process.
pub(crate) fn own_peak_megabytes() -> Result<f64> {
    peak_megabytes(std::process::id()).context("failed to read the memory of this process")
}

/// Runs a command, and reads the time of its own work from what it prints.
pub(crate) fn once(argv: &[String], env: &[(String, String)]) -> Result<Round> {
    let cpu_before = children_cpu_secs()?;
    let start = Instant::now();
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .envs(env.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("failed to start {}", argv[0]))?;
    let wall_secs = start.elapsed().as_secs_f64();
    ensure!(output.status.success(), "{} ended with {}", argv.join(" "), output.status);
    let said = String::from_utf8_lossy(&output.stdout);
    let own_secs =
        |what: &str| said.lines().find_map(|line| line.strip_prefix(what)?.parse::<f64>().ok()).map_or(f64::NAN, |nanos| nanos / 1e9);
    let (own_secs, own_cpu_secs) = (own_secs(OWN_NANOS), own_secs(OWN_CPU_NANOS));
    Ok(Round { wall_secs, own_secs, own_cpu_secs, cpu_secs: children_cpu_secs()? - cpu_before })
}

/// CPU time of all children that were waited for so far, in seconds.
pub(crate) fn children_cpu_secs() -> Result<f64> {
    cpu_fields("/proc/self/stat", 16)
}

/// CPU time of a living process, in seconds.
pub(crate) fn cpu_secs_of(pid: u32) -> Result<f64> {
    cpu_fields(&format!("/proc/{pid}/stat"), 14)
}

/// The same, with its children that ended and that it waited for.
pub(crate) fn cpu_secs_with_children_of(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    Ok(cpu_fields(&path, 14)? + cpu_fields(&path, 16)?)
}

/// User and system time, in seconds: two fields of proc(5) that follow each other, the first with this number.
fn cpu_fields(path: &str, first: usize) -> Result<f64> {
    let stat = std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?;
    // Behind the name stands the state, which is field 3.
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: f64 = after_name.split(' ').skip(first - 3).take(2).filter_map(|f| f.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}

/// The median, and the interval that holds the true one with about 95 % confidence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Median {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Median of the values; the interval is the pair of order statistics at n/2 ± 0.98·√n (normal approximation of the binomial).
pub(crate) fn median(values: &[f64]) -> Median {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return Median { value: f64::NAN, low: f64::NAN, high: f64::NAN };
    }
    let spread = 0.98 * (n as f64).sqrt();
    let low = (n as f64 / 2.0 - spread).floor().max(0.0) as usize;
    let high = ((n as f64 / 2.0 + spread).ceil() as usize).min(n - 1);
    let value = if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 };
    Median { value, low: sorted[low], high: sorted[high] }
}
