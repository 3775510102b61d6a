//! What it costs to say which span is current: enter and leave, by the SDK's own guard and through `tracing`.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;

use crate::timing;

/// Enter + leave pairs in a round: long enough that reading the clock does not count.
const PAIRS: u32 = 1_000_000;

const ROUNDS: usize = 21;

/// Prints nanoseconds for one enter + leave.
pub(crate) fn measure() -> Result<()> {
    println!("current span, {ROUNDS} rounds, nanoseconds for one enter and leave");
    longpole_sdk::run(|| {
        row("context record of a guard", || {
            for i in 1..=PAIRS {
                let id = u64::from(i).to_ne_bytes();
                drop(black_box(longpole_sdk::enter_span_context([7; 16], id, 1)));
            }
        });
        let span = tracing::info_span!("work");
        row("a tracing span, with our layer", || {
            for _ in 0..PAIRS {
                drop(black_box(span.enter()));
            }
        });
    });
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

fn row(name: &str, mut round: impl FnMut()) {
    let mut nanos = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round();
        nanos.push(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
    }
    let m = timing::median(&nanos);
    println!("  {name:34} {:6.1}  [{:.1}, {:.1}]", m.value, m.low, m.high);
}
