//! What a span costs, beside others in the same run:
//! `cargo run --release -p longpole-sdk --all-features --example span_cost`.
//!
//! First the thread that makes it: nanoseconds for one span, or for one enter and exit, as the median of bursts with pauses in
//! between, in which the exporter catches up. The figures of a bare registry stand beside: what is above them is a layer's.
//! Then a program that makes 50,000 spans a second on two threads: processor time of those threads and of all others, and what
//! became of the spans. Then the same at full speed.
//!
//! The journal is measured in a process of its own, for a process has one or has none, in a directory that nobody reads.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use fastrace::local::LocalSpan;
use longpole_sdk::{Guard, SpanProcessor};
use tracing::{Dispatch, info_span};
use tracing_subscriber::prelude::*;

const BURSTS: usize = 400;
const SPANS: usize = 400;

/// The rate of the paced part, of two threads together, and how long it is kept.
const RATE_PER_SECOND: u64 = 50_000;
const PACED: Duration = Duration::from_secs(3);

/// Spans of each of two threads at full speed.
const AT_FULL_SPEED: u64 = 200_000;

fn main() {
    let pair = || drop(longpole_sdk::enter_span_context(black_box([7; 16]), black_box([9; 8]), 1));
    if std::env::var_os("LONGPOLE_JOURNAL_DIR").is_some() {
        report("context record + journal: enter + exit", measure(1, &pair));
        return;
    }
    let endpoint = sink();
    println!("{:<72} {:>7}", "", "ns");
    report("the clock: one reading", measure(1, &|| _ = black_box(Instant::now())));
    report("context record: enter + exit", measure(1, &pair));
    with_journal();
    let outer = longpole_sdk::enter_span_context([7; 16], [8; 8], 1);
    report("context record: enter + exit inside of a span", measure(1, &pair));
    drop(outer);

    println!();
    no_fields("no subscriber", &Dispatch::none());
    let bare = Dispatch::new(tracing_subscriber::registry());
    all("bare registry", &bare);
    let silent = Dispatch::new(tracing_subscriber::registry().with(longpole_sdk::layer_from(|_| None)));
    all("longpole, nobody asks for spans", &silent);
    for processor in [SpanProcessor::Longpole, SpanProcessor::Batch, SpanProcessor::BatchAsyncRuntime] {
        let (dispatch, guard) = build(processor, &endpoint, false);
        all(short(processor), &dispatch);
        println!("{:?}", guard.shutdown());
    }
    let (dispatch, guard) = build(SpanProcessor::Longpole, &endpoint, true);
    all("longpole, context shared with OpenTelemetry", &dispatch);
    drop(guard);
    fastrace();

    println!("\n{RATE_PER_SECOND} spans with 4 fields a second on two threads, ns of processor time for one span");
    println!("{:<46} {:>7} {:>7}  what became of them", "", "caller", "others");
    for processor in [SpanProcessor::Longpole, SpanProcessor::Batch, SpanProcessor::BatchAsyncRuntime] {
        let (dispatch, guard) = build(processor, &endpoint, false);
        busy(short(processor), &dispatch, &guard, true);
    }
    println!("\nthe same at full speed, {} spans", 2 * AT_FULL_SPEED);
    for processor in [SpanProcessor::Longpole, SpanProcessor::Batch, SpanProcessor::BatchAsyncRuntime] {
        let (dispatch, guard) = build(processor, &endpoint, false);
        busy(short(processor), &dispatch, &guard, false);
    }
}

fn short(processor: SpanProcessor) -> &'static str {
    match processor {
        SpanProcessor::Longpole => "longpole",
        SpanProcessor::Batch => "tracing-opentelemetry, BatchSpanProcessor",
        SpanProcessor::BatchAsyncRuntime => "tracing-opentelemetry, async processor",
        _ => "tracing-opentelemetry, simple",
    }
}

fn build(processor: SpanProcessor, endpoint: &str, shares_context: bool) -> (Dispatch, Guard) {
    longpole_sdk::builder()
        .default_endpoint(endpoint)
        .span_processor(processor)
        .opentelemetry_context(shares_context)
        .level(longpole_sdk::LevelFilter::INFO)
        .shutdown_within(Duration::from_secs(10))
        .variables(|name| (name == "OTEL_BSP_SCHEDULE_DELAY").then(|| "20".into()))
        .build()
}

/// `fastrace` has no levels and no fields of types; its spans are handed to a reporter that looks at nothing.
fn fastrace() {
    struct Nobody;
    impl fastrace::collector::Reporter for Nobody {
        fn report(&mut self, spans: Vec<fastrace::prelude::SpanRecord>) {
            drop(black_box(spans));
        }
    }
    fastrace::set_reporter(Nobody, fastrace::collector::Config::default());
    let four = || {
        let properties = || [("a", "1"), ("b", "two"), ("c", "true"), ("d", "4.0")];
        drop(black_box(LocalSpan::enter_with_local_parent("s").with_properties(properties)));
    };
    println!();
    // A root per burst: its spans are collected with it.
    let burst = |work: &dyn Fn()| {
        let mut bursts: Vec<f64> = (0..BURSTS)
            .map(|_| {
                let start = Instant::now();
                let root = fastrace::Span::root("root", fastrace::prelude::SpanContext::random());
                let entered = root.set_local_parent();
                (0..SPANS).for_each(|_| work());
                drop(entered);
                drop(root);
                let nanos = start.elapsed().as_nanos() as f64 / SPANS as f64;
                std::thread::sleep(Duration::from_millis(1));
                nanos
            })
            .collect();
        bursts.sort_by(f64::total_cmp);
        bursts[BURSTS / 2]
    };
    report("fastrace: local span", burst(&|| drop(black_box(LocalSpan::enter_with_local_parent("s")))));
    report("fastrace: local span with 4 properties", burst(&four));
    fastrace::flush();
}

/// Nanoseconds that threads of this process have run, by their numbers.
fn run_nanos() -> std::collections::HashMap<String, u64> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let tasks = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        Some((task.file_name().to_string_lossy().into_owned(), stat.split_whitespace().next()?.parse().ok()?))
    });
    tasks.collect()
}

fn own_run_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

/// Two threads that make spans, paced or not, and whoever sends them.
fn busy(name: &str, dispatch: &Dispatch, guard: &Guard, paced: bool) {
    /// Spans in a row, then a pause that keeps the rate.
    const ROW: u64 = 50;
    let make = |count: u64| (0..count).for_each(|_| drop(black_box(info_span!("s", a = 1, b = "two", c = true, d = 4.0))));
    let work = || {
        tracing::dispatcher::with_default(dispatch, || {
            let before = own_run_nanos();
            let (started, mut made) = (Instant::now(), 0);
            while if paced { started.elapsed() < PACED } else { made < AT_FULL_SPEED } {
                make(ROW);
                made += ROW;
                if paced {
                    let due = Duration::from_nanos(made * 2 * 1_000_000_000 / RATE_PER_SECOND);
                    std::thread::sleep(due.saturating_sub(started.elapsed()));
                }
            }
            (own_run_nanos() - before, made)
        })
    };
    let before = run_nanos();
    let (callers, made) = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        let done = threads.map(|thread| thread.join().unwrap_or_default());
        (done.iter().map(|(nanos, _)| nanos).sum::<u64>(), done.iter().map(|(_, made)| made).sum::<u64>())
    });
    // What is left is sent; the threads that do it must still live when their CPU time is read.
    let until = Instant::now() + Duration::from_secs(5);
    while guard.counts().outstanding > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
        if !paced {
            break;
        }
    }
    // The collector's own threads are named so, and are not whom we mean.
    let others: u64 = run_nanos()
        .into_iter()
        .filter(|(task, _)| {
            let path = format!("/proc/self/task/{task}/comm");
            std::fs::read_to_string(path).is_ok_and(|name| !name.starts_with("sink") && !name.starts_with("span_cost"))
        })
        .map(|(task, nanos)| nanos - before.get(&task).copied().unwrap_or(0))
        .sum();
    let counts = guard.shutdown();
    println!(
        "{name:<46} {:>7.0} {:>7.0}  {} emitted = {} exported + {} counted as lost",
        callers as f64 / made as f64,
        others as f64 / made as f64,
        counts.emitted,
        counts.exported,
        counts.lost()
    );
}

/// Measures in a process that has a journal.
fn with_journal() {
    let memory = std::path::Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = base.join(format!("longpole-span-cost-{}", std::process::id()));
    if std::fs::create_dir(&directory).is_ok() {
        let measured = std::env::current_exe().and_then(|me| Command::new(me).env("LONGPOLE_JOURNAL_DIR", &directory).status());
        if let Err(error) = measured {
            println!("context record + journal: not measured: {error}");
        }
        let _ = std::fs::remove_dir_all(&directory);
    }
}

fn all(name: &str, dispatch: &Dispatch) {
    no_fields(name, dispatch);
    tracing::dispatcher::with_default(dispatch, || {
        let four = || drop(black_box(info_span!("s", a = 1, b = "two", c = true, d = 4.0)));
        let eight = || drop(black_box(info_span!("s", a = 1, b = "two", c = true, d = 4.0, e = 1, f = "two", g = true, h = 4.0)));
        let shown = || drop(black_box(info_span!("s", a = %1, b = ?"two")));
        report(&format!("{name}: span with 4 fields"), measure(1, &four));
        report(&format!("{name}: span with 8 fields"), measure(1, &eight));
        report(&format!("{name}: span with 2 formatted fields"), measure(1, &shown));
        let root = info_span!("root").entered();
        report(&format!("{name}: child with 4 fields"), measure(1, &four));
        drop(root);
        let span = info_span!("s");
        report(&format!("{name}: enter + exit of a span"), measure(1, &|| drop(span.enter())));
    });
    let per_thread = |dispatch: &Dispatch| {
        tracing::dispatcher::with_default(dispatch, || {
            measure(1, &|| drop(black_box(info_span!("s", a = 1, b = "two", c = true, d = 4.0))))
        })
    };
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| per_thread(dispatch));
        per_thread(dispatch).max(other.join().unwrap_or(f64::NAN))
    });
    report(&format!("{name}: span with 4 fields, 2 threads"), both);
}

fn no_fields(name: &str, dispatch: &Dispatch) {
    tracing::dispatcher::with_default(dispatch, || {
        report(&format!("{name}: span"), measure(1, &|| drop(black_box(info_span!("s")))));
    });
}

fn report(name: &str, nanos: f64) {
    println!("{name:<72} {nanos:>7.1}");
}

/// Nanoseconds for one call, median of the bursts.
fn measure(pause_millis: u64, work: &dyn Fn()) -> f64 {
    let mut bursts: Vec<f64> = (0..BURSTS)
        .map(|_| {
            let start = Instant::now();
            (0..SPANS).for_each(|_| work());
            let nanos = start.elapsed().as_nanos() as f64 / SPANS as f64;
            std::thread::sleep(Duration::from_millis(pause_millis));
            nanos
        })
        .collect();
    bursts.sort_by(f64::total_cmp);
    bursts[BURSTS / 2]
}

/// A collector that takes everything and looks at nothing.
fn sink() -> String {
    fn serve(stream: TcpStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                if line == "\r\n" {
                    break;
                }
            }
            std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
            writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        }
    }
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { return String::new() };
    let endpoint = listener.local_addr().map(|address| format!("http://{address}")).unwrap_or_default();
    let spawn = |work: Box<dyn FnOnce() + Send>| drop(std::thread::Builder::new().name("sink".into()).spawn(work));
    spawn(Box::new(move || {
        for stream in listener.incoming().flatten() {
            spawn(Box::new(move || drop(serve(stream))));
        }
    }));
    endpoint
}
