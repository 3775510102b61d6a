//! How long after the end of the program the answer stands, and what recording cost.

use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::{Subject, load, timing};

const ROUNDS: usize = 7;

/// What the rounds of one longpole came to.
#[derive(Default)]
struct Figures {
    samples: Vec<f64>,
    latencies: Vec<f64>,
    costs: Vec<f64>,
    memory: Vec<f64>,
}

/// Prints the time from the program's last act to the end of `longpole run`, and the recorder's CPU and memory.
pub(crate) fn measure(subjects: &[Subject]) -> Result<()> {
    let me = std::env::current_exe().context("failed to find this program")?.to_string_lossy().into_owned();
    let dir = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("failed to make a temporary folder")?;
    let (end_file, summary) = (dir.join("end"), dir.join("summary.json"));
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let env = [(load::END_FILE.to_owned(), text(&end_file))];
    let mut figures: Vec<Figures> = subjects.iter().map(|_| Figures::default()).collect();
    for _ in 0..ROUNDS {
        for (Subject { name, binary }, figures) in subjects.iter().zip(&mut figures) {
            let store = text(&dir.join(name));
            let run = [binary, "--store", &store, "run", "--summary", &text(&summary), "--summary-format", "json", "--"];
            let argv: Vec<String> = run.into_iter().chain([me.as_str(), "load", "spin", "2500"]).map(str::to_owned).collect();
            timing::once(&argv, &env)?;
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
            let ended: u128 = std::fs::read_to_string(&end_file).context("failed to read the end time")?.parse()?;
            figures.latencies.push((now.as_nanos() - ended) as f64 / 1e6);
            let view: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary)?).context("failed to read the summary")?;
            let taken = view["samples"].as_f64().unwrap_or(f64::NAN);
            figures.samples.push(taken);
            figures.costs.push(view["recorder"]["cpu_nanos"].as_f64().unwrap_or(f64::NAN) / taken / 1e3);
            figures.memory.push(view["recorder"]["rss_bytes_max"].as_f64().unwrap_or(f64::NAN) / 1e6);
        }
    }
    println!("answer, {ROUNDS} interleaved rounds of two busy threads");
    let figure = |what: &str, unit: &str, of: fn(&Figures) -> &[f64]| {
        for (Subject { name, .. }, figures) in subjects.iter().zip(&figures) {
            let m = timing::median(of(figures));
            println!("  {name:8}  {what:34} {:9.1} {unit} [{:.1}, {:.1}]", m.value, m.low, m.high);
        }
    };
    figure("samples", "", |figures| &figures.samples);
    figure("end of the program to the answer", "ms", |figures| &figures.latencies);
    figure("recorder CPU a sample", "µs", |figures| &figures.costs);
    figure("recorder memory, most", "MB", |figures| &figures.memory);
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}
