//! How long after the end of the program the answer stands, and what recording cost.

use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::{load, timing};

const ROUNDS: usize = 7;

/// Prints the time from the program's last act to the end of `longpole run`, and the recorder's CPU and memory.
pub(crate) fn measure(longpole: &str) -> Result<()> {
    let me = std::env::current_exe().context("failed to find this program")?.to_string_lossy().into_owned();
    let dir = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("failed to make a temporary folder")?;
    let (end_file, summary) = (dir.join("end"), dir.join("summary.json"));
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let argv: Vec<String> =
        [longpole, "--store", &text(&dir.join("store")), "run", "--summary", &text(&summary), "--summary-format", "json", "--"]
            .iter()
            .map(|w| (*w).to_owned())
            .chain([me, "load".to_owned(), "spin".to_owned(), "2500".to_owned()])
            .collect();
    let env = [(load::END_FILE.to_owned(), text(&end_file))];
    let (mut latencies, mut costs, mut memory, mut samples) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        timing::once(&argv, &env)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
        let ended: u128 = std::fs::read_to_string(&end_file).context("failed to read the end time")?.parse()?;
        latencies.push((now.as_nanos() - ended) as f64 / 1e6);
        let view: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary)?).context("failed to read the summary")?;
        let taken = view["samples"].as_f64().unwrap_or(f64::NAN);
        samples.push(taken);
        costs.push(view["recorder"]["cpu_nanos"].as_f64().unwrap_or(f64::NAN) / taken / 1e3);
        memory.push(view["recorder"]["rss_bytes_max"].as_f64().unwrap_or(f64::NAN) / 1e6);
    }
    println!("answer, {ROUNDS} rounds of two busy threads");
    for (name, values, unit) in [
        ("samples", &samples, ""),
        ("end of the program to the answer", &latencies, "ms"),
        ("recorder CPU a sample", &costs, "µs"),
        ("recorder memory, most", &memory, "MB"),
    ] {
        let m = timing::median(values);
        println!("  {name:34} {:9.1} {unit} [{:.1}, {:.1}]", m.value, m.low, m.high);
    }
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}
