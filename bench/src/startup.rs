//! What `longpole run -- true` costs over `true`, beside otel-cli.

use anyhow::Result;

use crate::{peers, timing};

const ROUNDS: usize = 101;

/// Prints the median of each, interleaved, and what it adds to plain `true`.
pub(crate) fn measure(longpole: &str) -> Result<()> {
    let store = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    let store_text = store.to_string_lossy().into_owned();
    let words = |line: &[&str]| line.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let mut rows = vec![
        ("true", words(&["true"])),
        ("longpole run --no-profile", words(&[longpole, "--store", &store_text, "run", "--no-profile", "--summary", "none", "--", "true"])),
        ("longpole run", words(&[longpole, "--store", &store_text, "run", "--summary", "none", "--", "true"])),
        ("longpole run, with its answer", words(&[longpole, "--store", &store_text, "run", "--", "true"])),
    ];
    if let Some(otel_cli) = peers::find("otel-cli") {
        rows.push(("otel-cli exec", words(&[&otel_cli, "exec", "--service", "bench", "--name", "true", "--", "true"])));
    }
    let mut walls = vec![Vec::with_capacity(ROUNDS); rows.len()];
    for _ in 0..ROUNDS {
        for ((_, argv), wall) in rows.iter().zip(&mut walls) {
            wall.push(timing::once(argv, &[])?.wall_secs * 1e3);
        }
    }
    let base = timing::median(&walls[0]).value;
    println!("start-up, {ROUNDS} interleaved rounds, milliseconds of wall time");
    for ((name, _), wall) in rows.iter().zip(&walls) {
        let m = timing::median(wall);
        println!("  {name:32} {:7.2}  [{:.2}, {:.2}]   over true: {:+.2}", m.value, m.low, m.high, m.value - base);
    }
    std::fs::remove_dir_all(&store).ok();
    Ok(())
}
