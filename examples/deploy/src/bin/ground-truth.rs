//! Programs with known code and durations in each span. The stories run them under `longpole run` and compare
//! the recording with the known values.
//!
//! ```text
//! ground-truth async ROUNDS      tasks of four kinds that yield at each step, each kind with its own work function
//! ground-truth sync ROUNDS       threads with nested and very short spans; prints the duration of each
//! ground-truth pace HZ SECONDS   two threads that enter and leave spans: HZ journal entries a second in all
//! ground-truth die               ends by SIGKILL inside a span
//! ```
//!
//! The main thread stays outside `longpole_sdk::run`, so that no copy of the stack reaches its context record.

#![allow(clippy::print_stdout, reason = "a program that prints what it knows")]

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use tokio::task::{spawn_blocking, yield_now};
use tracing::{Instrument, Span, info_span};

/// Steps of a work function between two checks: some 30 µs.
const STEPS: u64 = 20_000;

macro_rules! work {
    ($name:ident, $salt:literal) => {
        #[inline(never)]
        fn $name(times: u64) {
            let mut x: u64 = $salt;
            for _ in 0..times * STEPS {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
            }
            black_box(x);
        }
    };
}

work!(work_alpha, 0xa1);
work!(work_beta, 0xb2);
work!(work_gamma, 0xc3);
work!(work_delta, 0xd4);

#[derive(Debug, Clone, Copy)]
enum Kind {
    Alpha,
    Beta,
    Gamma,
    Delta,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Alpha, Kind::Beta, Kind::Gamma, Kind::Delta];

    fn span(self) -> Span {
        match self {
            Kind::Alpha => info_span!("alpha"),
            Kind::Beta => info_span!("beta"),
            Kind::Gamma => info_span!("gamma"),
            Kind::Delta => info_span!("delta"),
        }
    }

    fn work(self, times: u64) {
        match self {
            Kind::Alpha => work_alpha(times),
            Kind::Beta => work_beta(times),
            Kind::Gamma => work_gamma(times),
            Kind::Delta => work_delta(times),
        }
    }
}

/// Works in its drop, like a cancelled task.
struct WorksWhenDropped(Kind);

impl Drop for WorksWhenDropped {
    fn drop(&mut self) {
        self.0.work(2);
    }
}

/// A task: works a little, lets others work, and continues on another thread.
async fn task(kind: Kind, rounds: u64) {
    for _ in 0..rounds {
        kind.work(2);
        yield_now().await;
    }
}

async fn waits_for_ever(kind: Kind) {
    let _works = WorksWhenDropped(kind);
    loop {
        kind.work(1);
        yield_now().await;
    }
}

async fn steps(count: u64) {
    for _ in 0..count {
        yield_now().await;
    }
}

fn asynchronous(rounds: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    let Ok(runtime) = runtime else { return };
    let tasks: Vec<_> = (0..12).flat_map(|_| Kind::ALL).map(|kind| runtime.spawn(task(kind, rounds).instrument(kind.span()))).collect();
    let blocking = runtime.spawn(
        async move {
            for _ in 0..rounds / 8 {
                let span = Kind::Delta.span();
                // Work on a thread of the pool; this thread does nothing meanwhile.
                let _ = spawn_blocking(move || span.in_scope(|| Kind::Delta.work(8))).await;
                Kind::Gamma.work(1);
            }
        }
        .instrument(Kind::Gamma.span()),
    );
    let cancelled = runtime.spawn(async move {
        for _ in 0..rounds / 8 {
            tokio::select! {
                () = waits_for_ever(Kind::Beta).instrument(Kind::Beta.span()) => {}
                () = steps(4) => {}
            }
        }
    });
    // The main thread works, too, inside a span and a nested one.
    runtime.block_on(
        async move {
            for _ in 0..rounds {
                Kind::Alpha.work(2);
                Kind::Beta.span().in_scope(|| Kind::Beta.work(1));
                yield_now().await;
            }
        }
        .instrument(Kind::Alpha.span()),
    );
    runtime.block_on(async {
        for task in tasks.into_iter().chain([blocking, cancelled]) {
            let _ = task.await;
        }
    });
}

/// Bounds of the time that a span was current.
#[derive(Debug, Default, Clone, Copy)]
struct Took {
    least: Duration,
    most: Duration,
    spans: u64,
}

impl Took {
    fn add(&mut self, other: Took) {
        self.least += other.least;
        self.most += other.most;
        self.spans += other.spans;
    }

    /// Without the time of nested spans.
    fn without(self, inside: Took) -> Took {
        Took { least: self.least.saturating_sub(inside.most), most: self.most.saturating_sub(inside.least), spans: self.spans }
    }
}

/// Works in a span; returns its duration.
fn timed(span: Span, body: impl FnOnce()) -> Took {
    let outside = Instant::now();
    let entered = span.entered();
    let inside = Instant::now();
    body();
    let least = inside.elapsed();
    drop(entered);
    Took { least, most: outside.elapsed(), spans: 1 }
}

/// Self time of each kind of span, without nested ones.
#[derive(Debug, Default, Clone, Copy)]
struct Truth {
    outer: Took,
    middle: Took,
    short: Took,
}

fn nested(rounds: u64) -> Truth {
    let mut truth = Truth::default();
    for _ in 0..rounds {
        let mut middles = Took::default();
        let outer = timed(info_span!("outer"), || {
            work_alpha(2);
            for _ in 0..2 {
                let mut shorts = Took::default();
                let middle = timed(info_span!("middle"), || {
                    work_beta(4);
                    for _ in 0..5 {
                        shorts.add(timed(info_span!("short"), || {
                            black_box((0..200u64).fold(0, |sum, number| black_box(sum ^ number)));
                        }));
                    }
                });
                middles.add(middle);
                truth.middle.add(middle.without(shorts));
                truth.short.add(shorts);
            }
            work_alpha(1);
        });
        truth.outer.add(outer.without(middles));
    }
    truth
}

fn synchronous(rounds: u64) {
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(move || nested(rounds))).collect();
    let mut all = nested(rounds);
    for truth in threads.into_iter().filter_map(|thread| thread.join().ok()) {
        all.outer.add(truth.outer);
        all.middle.add(truth.middle);
        all.short.add(truth.short);
    }
    for (name, took) in [("outer", all.outer), ("middle", all.middle), ("short", all.short)] {
        println!("{name} {} {} {}", took.least.as_nanos(), took.most.as_nanos(), took.spans);
    }
}

/// Enters and leaves spans at a given rate: a short pause, then all that are due.
fn pace(hz: u64, seconds: u64) {
    let start = Instant::now();
    let mut made = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        let due = (start.elapsed().as_nanos() * u128::from(hz) / 4 / 1_000_000_000) as u64;
        while made < due {
            drop(longpole_sdk::enter_span_context([7; 16], (made + 1).to_be_bytes(), 1));
            made += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    println!("entries {}", made * 2);
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(10);
    let _guard = longpole_sdk::init();
    if let Ok(journals) = std::env::var("LONGPOLE_JOURNAL_DIR") {
        println!("journals {journals}");
    }
    match words.first().map(String::as_str) {
        Some("async") => asynchronous(number(1)),
        Some("sync") => synchronous(number(1)),
        Some("pace") => {
            let (hz, seconds) = (number(1), number(2));
            let other = std::thread::spawn(move || pace(hz, seconds));
            pace(hz, seconds);
            let _ = other.join();
        }
        Some("die") => {
            let _span = info_span!("last").entered();
            work_alpha(100);
            let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
        }
        _ => return ExitCode::from(2),
    }
    longpole_sdk::shutdown(longpole_sdk::SHUTDOWN_DEADLINE);
    ExitCode::SUCCESS
}
