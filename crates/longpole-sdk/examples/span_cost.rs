//! What a span costs the thread that makes it: `cargo run --release -p longpole-sdk --example span_cost`.
//!
//! The journal is measured in a process of its own, for a process has one or has none, in a directory that nobody reads.
//!
//! Prints nanoseconds for one span, or for one enter and exit, as the median of bursts with pauses in between, in which the
//! exporter catches up. The figures of a bare registry stand beside: what is above them is ours.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use tracing::{Dispatch, info_span};
use tracing_subscriber::prelude::*;

const BURSTS: usize = 400;
const SPANS: usize = 400;

fn main() {
    let pair = || drop(longpole_sdk::enter_span_context(black_box([7; 16]), black_box([9; 8]), 1));
    if std::env::var_os("LONGPOLE_JOURNAL_DIR").is_some() {
        report("context record + journal: enter + exit", measure(1, &pair));
        return;
    }
    println!("{:<58} {:>7}", "", "ns");
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
    all("layer, nobody asks for spans", &silent);

    let endpoint = sink();
    let layer = longpole_sdk::layer_from(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone()),
        "OTEL_BSP_SCHEDULE_DELAY" => Some("20".into()),
        _ => None,
    });
    let handle = layer.handle();
    let exporting = Dispatch::new(tracing_subscriber::registry().with(layer));
    all("layer, exporting", &exporting);
    let counts = handle.shutdown(Duration::from_secs(10));
    println!("\n{counts:?}");
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
    println!("{name:<58} {nanos:>7.1}");
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
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    endpoint
}
