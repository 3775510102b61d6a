//! What it costs to say which span is current: enter and leave, by the SDK's own guard and through `tracing`, in the context record alone
//! and in a journal as well. A process has journals or has none, so those are measured in a second one; nobody reads them.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::timing;

/// Enter + leave pairs in a round: long enough that reading the clock does not count.
const PAIRS: u32 = 1_000_000;

const ROUNDS: usize = 21;

/// Where journals go; it makes this program measure them.
const JOURNALS: &str = "LONGPOLE_JOURNAL_DIR";

/// Prints nanoseconds for one enter + leave.
pub(crate) fn measure() -> Result<()> {
    if std::env::var_os(JOURNALS).is_some() {
        with_layer(" and journal");
        return Ok(());
    }
    println!("current span, {ROUNDS} rounds, nanoseconds for one enter and leave");
    row("the clock, one reading", || {
        for _ in 0..PAIRS {
            black_box(Instant::now());
        }
    });
    with_layer("");
    with_journal()?;
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        let span = tracing::info_span!("work");
        row("a tracing span, bare registry", || {
            for _ in 0..PAIRS {
                drop(black_box(span.enter()));
            }
        });
    });
    Ok(())
}

/// The same once more, in a process that keeps journals.
fn with_journal() -> Result<()> {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = base.join(format!("longpole-bench-journals-{}", std::process::id()));
    std::fs::create_dir(&directory).with_context(|| format!("failed to create {}", directory.display()))?;
    let measured =
        std::env::current_exe().and_then(|me| Command::new(me).args(std::env::args_os().skip(1)).env(JOURNALS, &directory).status());
    std::fs::remove_dir_all(&directory).ok();
    measured.context("failed to measure in a second process")?;
    Ok(())
}

fn with_layer(journal: &str) {
    longpole_sdk::run(|| {
        row(&format!("context record{journal}, of a guard"), || {
            for i in 1..=PAIRS {
                let id = u64::from(i).to_ne_bytes();
                drop(black_box(longpole_sdk::enter_span_context([7; 16], id, 1)));
            }
        });
        let span = tracing::info_span!("work");
        row(&format!("context record{journal}, of a tracing span"), || {
            for _ in 0..PAIRS {
                drop(black_box(span.enter()));
            }
        });
    });
}

fn row(name: &str, mut round: impl FnMut()) {
    let mut nanos = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round();
        nanos.push(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
    }
    let m = timing::median(&nanos);
    println!("  {name:46} {:6.1}  [{:.1}, {:.1}]", m.value, m.low, m.high);
}
