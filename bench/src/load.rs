//! The programs under measurement: fixed work, so that wall time is the only thing that moves.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};

/// Printed before the wall time of a load's own work, in nanoseconds.
pub(crate) const OWN_NANOS: &str = "own_nanos ";

/// Printed before the CPU time of its threads, in nanoseconds.
pub(crate) const OWN_CPU_NANOS: &str = "own_cpu_nanos ";

/// Threads of `burst`, and how long each sleeps after its work.
const BURSTY_THREADS: u64 = 200;
const BETWEEN_BURSTS: Duration = Duration::from_millis(30);

/// File to which the program writes the wall time at which its work ended, for `answer`.
pub(crate) const END_FILE: &str = "LONGPOLE_BENCH_END_FILE";

/// Runs a load: `one N` burns N million steps on one thread, `spin N` on each of two; `switch N` passes a byte to and fro N times;
/// `burst N` has two hundred threads work for some tenths of a millisecond and sleep, N times. Prints its own times at the end.
pub(crate) fn run(kind: &str, amount: u64) -> Result<()> {
    let start = Instant::now();
    match kind {
        "one" => spin(1, amount),
        "spin" => spin(2, amount),
        "switch" => switch(amount)?,
        "burst" => burst(amount),
        _ => bail!("load is `one`, `spin`, `switch` or `burst`"),
    }
    println!("{OWN_NANOS}{}", start.elapsed().as_nanos());
    count_cpu();
    println!("{OWN_CPU_NANOS}{}", CPU_NANOS.load(Ordering::Relaxed));
    if let Some(path) = std::env::var_os(END_FILE) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
        std::fs::write(path, now.as_nanos().to_string()).context("failed to write the end time")?;
    }
    Ok(())
}

/// Time on a CPU of the threads that have ended.
static CPU_NANOS: AtomicU64 = AtomicU64::new(0);

/// Adds this thread's CPU time; each thread calls it once, at its end.
fn count_cpu() {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0);
    CPU_NANOS.fetch_add(nanos, Ordering::Relaxed);
}

fn spin(threads: u64, millions: u64) {
    let work = move |seed| {
        std::hint::black_box(burn(seed, millions * 1_000_000));
        count_cpu();
    };
    let threads: Vec<_> = (0..threads).map(|seed| std::thread::spawn(move || work(seed))).collect();
    for thread in threads {
        // A panic of a worker has printed itself, and makes the figure worthless.
        thread.join().expect("a worker burned to its end");
    }
}

fn burst(times: u64) {
    let work = move |seed| {
        for _ in 0..times {
            std::hint::black_box(burn(std::hint::black_box(seed), 60_000));
            std::thread::park_timeout(BETWEEN_BURSTS);
        }
        count_cpu();
    };
    let threads: Vec<_> = (0..BURSTY_THREADS).map(|seed| std::thread::spawn(move || work(seed))).collect();
    for thread in threads {
        thread.join().expect("a worker came to its end");
    }
}

#[inline(never)]
fn burn(seed: u64, steps: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

fn switch(times: u64) -> Result<()> {
    let (mut here, mut there) = UnixStream::pair().context("failed to make a socket pair")?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0u8];
        for _ in 0..times {
            there.read_exact(&mut byte)?;
            there.write_all(&byte)?;
        }
        count_cpu();
        Ok(())
    });
    let mut byte = [7u8];
    for _ in 0..times {
        here.write_all(&byte)?;
        here.read_exact(&mut byte)?;
        // A little work between the waits, as a real program has.
        std::hint::black_box(burn(u64::from(byte[0]), 10_000));
    }
    echo.join().expect("the echo thread came to its end")?;
    Ok(())
}

/// Keeps CPUs busy until the process ends, as other programs of a machine do.
pub(crate) fn keep_busy(threads: u64) {
    for seed in 0..threads {
        std::thread::spawn(move || {
            loop {
                std::hint::black_box(burn(seed, 1_000_000));
            }
        });
    }
}
