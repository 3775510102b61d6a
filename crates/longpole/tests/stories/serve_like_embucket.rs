//! Story: a server like Embucket's — SQL over HTTP, DataFusion inside, OpenTelemetry 0.33, the span processor chosen by a flag —
//! alone and under `longpole run`.
//! Guarantees: with every span processor and both protocols it starts, answers and stops on SIGTERM within two seconds, with a
//! collector that lives, one that is dead, one that never answers, and none; what the collector lives to see is complete, and
//! the code of a request is tied to its span exactly, whoever made the span.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use clap::Parser;
use longpole_query::datafusion::prelude::SessionContext;
use longpole_sdk::{LevelFilter, Logs, Protocol, SpanProcessor};
use longpole_testing::holds;
use tracing::{Instrument, debug_span, instrument};

use crate::support::{Sandbox, clean, json, longpole, role, target};

/// What is promised of a stop.
const PROMISE: Duration = Duration::from_secs(2);

/// Attempts that must keep it, of all that are made: other tests use the machine, too. A program that hangs misses it each time.
const KEPT_OF_ATTEMPTS: (usize, usize) = (2, 4);

const QUERIES: usize = 3;

/// Share of the samples of a span's work that carry it by record: a sample in the middle of a write is torn.
const RECORD_SHARE_MIN: f64 = 0.95;

/// Embucket's flags.
#[derive(Parser)]
struct Flags {
    #[arg(long, default_value = "info")]
    tracing_level: LevelFilter,
    #[arg(long, default_value_t)]
    tracing_span_processor: SpanProcessor,
    #[arg(long, default_value_t)]
    otel_exporter_otlp_protocol: Protocol,
    #[arg(long, default_value_t)]
    logs: Logs,
}

/// The server.
#[test]
fn serve() {
    let Ok(arguments) = std::env::var("LONGPOLE_STORY_FLAGS") else { return };
    let flags = Flags::parse_from(std::iter::once("embucketd").chain(arguments.split_whitespace()));
    longpole_sdk::builder()
        .service_name("Em")
        .level(flags.tracing_level)
        .logs(flags.logs)
        .span_processor(flags.tracing_span_processor)
        .protocol(flags.otel_exporter_otlp_protocol)
        .run(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(listen()));
    println!("stopped");
}

async fn listen() {
    let router = axum::Router::new().route("/query", get(query)).route("/spin", get(spin)).with_state(SessionContext::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    println!("\nlistening {} {}", listener.local_addr().unwrap().port(), std::process::id());
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            terminated.recv().await;
        })
        .await
        .unwrap();
}

#[derive(serde::Deserialize)]
struct Statement {
    sql: String,
}

#[instrument(name = "api_snowflake_rest::query", level = "debug", skip_all)]
async fn query(State(session): State<SessionContext>, Query(statement): Query<Statement>) -> Result<String, (StatusCode, String)> {
    let answer = submit(&session, &statement.sql).await;
    answer.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

#[instrument(name = "ExecutionService::submit", level = "debug", skip(session), err)]
async fn submit(session: &SessionContext, sql: &str) -> longpole_query::datafusion::error::Result<String> {
    let batches = session.sql(sql).await?.collect().await?;
    Ok(batches.iter().map(|batch| batch.num_rows()).sum::<usize>().to_string())
}

/// Iterations that keep a CPU busy for some hundred milliseconds; each request does one of two kinds.
const SPINS: u64 = 60_000_000;

#[derive(serde::Deserialize)]
struct Kind {
    kind: String,
}

#[instrument(name = "api_snowflake_rest::spin", level = "debug", skip_all)]
async fn spin(Query(kind): Query<Kind>) -> String {
    let seed = kind.kind.len() as u64;
    // A task of its own, as queries of DataFusion are: below a handler the stack is deeper than what is copied of it.
    let task = match kind.kind.as_str() {
        "hash" => tokio::spawn(moving(move || spin_hashing(seed)).instrument(debug_span!("hash"))),
        _ => tokio::spawn(moving(move || spin_parsing(seed)).instrument(debug_span!("parse"))),
    };
    task.await.unwrap().to_string()
}

/// Work after an await, on whichever thread.
async fn moving(work: impl FnOnce() -> u64) -> u64 {
    tokio::task::yield_now().await;
    work()
}

#[inline(never)]
fn spin_hashing(seed: u64) -> u64 {
    (0..SPINS).fold(seed, |hash, next| std::hint::black_box(hash.rotate_left(5) ^ next))
}

#[inline(never)]
fn spin_parsing(seed: u64) -> u64 {
    (0..SPINS).fold(seed, |value, next| std::hint::black_box(value.wrapping_mul(10).wrapping_add(next)))
}

/// A server that runs, alone or as a command of `longpole run`.
struct Server {
    child: Child,
    port: String,
    /// The server's own.
    pid: i32,
    rest: std::thread::JoinHandle<String>,
}

impl Server {
    fn start(mut command: Command, flags: &str, vars: &[(&str, &str)]) -> Self {
        clean(&mut command);
        command.env("LONGPOLE_STORY_FLAGS", flags).env_remove("RUST_LOG").envs(vars.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // A reader that does not read stops the writer.
        let mut errors = child.stderr.take().unwrap();
        let rest = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            text
        });
        let mut line = String::new();
        while !line.starts_with("listening ") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{flags}: the server ended before it listened: {}", rest.join().unwrap());
        }
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let mut words = line.split_whitespace().skip(1);
        let (port, pid) = (words.next().unwrap().to_owned(), words.next().unwrap().parse().unwrap());
        Server { child, port, pid, rest }
    }

    fn ask(&self, sql: &str) -> String {
        let request = ureq::get(format!("http://127.0.0.1:{}/query", self.port)).query("sql", sql);
        request.call().unwrap().body_mut().read_to_string().unwrap()
    }

    fn spin(&self, kind: &str) {
        ureq::get(format!("http://127.0.0.1:{}/spin?kind={kind}", self.port)).call().unwrap();
    }

    /// Sends SIGTERM; how long the server lived on, and what it said on stderr.
    fn stop(mut self, how: &str) -> (Duration, String) {
        let asked = Instant::now();
        // SAFETY: a signal to a process of ours that lives: nobody has waited for it.
        assert_eq!(unsafe { libc::kill(self.pid, libc::SIGTERM) }, 0);
        let status = self.child.wait().unwrap();
        let took = asked.elapsed();
        let stderr = self.rest.join().unwrap();
        assert!(status.success(), "{how}: {status}: {stderr}");
        (took, stderr)
    }
}

/// A collector that answers every HTTP request with success, and counts them.
fn live_collector() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || answer(stream, &count));
        }
    });
    (endpoint, requests)
}

fn answer(mut stream: TcpStream, count: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        count.fetch_add(1, Ordering::Relaxed);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
}

fn flags(processor: SpanProcessor, protocol: Protocol) -> String {
    format!("--tracing-level debug --tracing-span-processor {processor} --otel-exporter-otlp-protocol {protocol} --logs json")
}

/// The program without `longpole`.
fn alone() -> Command {
    let program = role("serve_like_embucket::serve");
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    command
}

#[test]
fn a_program_stops_in_time_whatever_its_collector_does() {
    let (live, requests) = live_collector();
    let (silent, _comes) = target::silent();
    let (silent, dead) = (format!("http://{silent}"), format!("http://{}", target::dead()));
    for processor in SpanProcessor::ALL {
        for protocol in [Protocol::Grpc, Protocol::HttpProtobuf] {
            for (far, endpoint) in [("live", live.as_str()), ("silent", &silent), ("dead", &dead), ("none", "")] {
                if far == "live" && protocol == Protocol::Grpc {
                    // The one that lives is `longpole run`, below.
                    continue;
                }
                let how = format!("{processor} over {protocol}, collector {far}");
                let before = requests.load(Ordering::Relaxed);
                let (kept, of) = KEPT_OF_ATTEMPTS;
                holds(kept, of, &format!("{how}: it stops in time"), || {
                    let server = Server::start(alone(), &flags(processor, protocol), &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)]);
                    (0..QUERIES).for_each(|_| assert_eq!(server.ask("select 1 union all select 2"), "2", "{how}"));
                    let (took, stderr) = server.stop(&how);
                    // One line for all that was lost, or that somebody is out of reach and what became of it.
                    let told = stderr.lines().filter(|line| line.starts_with("longpole-sdk: ")).count();
                    let expected = if matches!(far, "silent" | "dead") { 1..=2 } else { 0..=0 };
                    assert!(expected.contains(&told), "{how}: {stderr}");
                    (took <= PROMISE).then_some(()).ok_or_else(|| format!("stopped after {took:?}"))
                });
                assert_eq!(requests.load(Ordering::Relaxed) > before, far == "live", "{how}");
            }
        }
    }
}

#[test]
fn every_query_is_in_the_recording() {
    let sandbox = Sandbox::new();
    for processor in SpanProcessor::ALL {
        for protocol in [Protocol::Grpc, Protocol::HttpProtobuf] {
            let how = format!("{processor} over {protocol}");
            let store = sandbox.path(&how.replace(['/', ' '], "-"));
            let mut command = longpole(&store);
            command.args(["run", "--summary", "none", "--no-profile", "--"]).args(role("serve_like_embucket::serve"));
            let server = Server::start(command, &flags(processor, protocol), &[]);
            (0..QUERIES).for_each(|_| assert_eq!(server.ask("select 1 union all select 2"), "2", "{how}"));
            server.stop(&how);
            let view = json(longpole(&store).args(["tree", "--format", "json"]));
            let columns = &view["spans"];
            let name_of = |row: usize| view["names"][columns["name"][row].as_u64().unwrap() as usize].as_str().unwrap();
            let rows = columns["parent"].as_array().unwrap().len();
            let parents: Vec<&str> = (0..rows)
                .filter(|row| name_of(*row) == "ExecutionService::submit")
                .map(|row| name_of(usize::try_from(columns["parent"][row].as_i64().unwrap()).unwrap()))
                .collect();
            assert_eq!(parents, ["api_snowflake_rest::query"; QUERIES], "{how}");
        }
    }
}

#[test]
fn code_is_linked_to_spans_of_every_sdk() {
    let sandbox = Sandbox::new();
    for processor in SpanProcessor::ALL {
        let store = sandbox.path(processor.name());
        let mut command = longpole(&store);
        command.args(["run", "--summary", "none", "--"]).args(role("serve_like_embucket::serve"));
        let server = Server::start(command, &flags(processor, Protocol::HttpProtobuf), &[]);
        // Two at a time, so that time and process alone do not say whose a sample is.
        std::thread::scope(|scope| {
            for kind in ["hash", "parse"] {
                let server = &server;
                scope.spawn(move || (0..2).for_each(|_| server.spin(kind)));
            }
        });
        server.stop(processor.name());
        for (function, span) in [("spin_hashing", "hash"), ("spin_parsing", "parse")] {
            let query = format!(
                "SELECT s.evidence AS evidence, p.name AS name, count(*) AS n
                 FROM samples s
                 LEFT JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id
                 WHERE s.stack_id IN (
                   SELECT k.stack_id FROM (SELECT stack_id, unnest(location_ids) AS location_id FROM stacks) k
                   JOIN frames f ON f.location_id = k.location_id WHERE f.function LIKE '%{function}%')
                 GROUP BY s.evidence, p.name"
            );
            let rows = json(longpole(&store).args(["sql", "--format", "json", &query]));
            let rows = rows["rows"].as_array().unwrap();
            let count = |of: &dyn Fn(&serde_json::Value) -> bool| -> f64 {
                rows.iter().filter(|row| of(row)).map(|row| row["n"].as_f64().unwrap()).sum()
            };
            let is_exact = |row: &serde_json::Value| row["evidence"] == "record" || row["evidence"] == "journal";
            let (all, exact) = (count(&|_| true), count(&is_exact));
            let wrong = count(&|row| is_exact(row) && row["name"] != span);
            if all == 0.0 {
                return crate::support::skip("code of a server with OpenTelemetry's processors", "nothing is sampled here");
            }
            assert_eq!(wrong, 0.0, "{processor}: samples of {function} carry a wrong span as exact: {rows:?}");
            assert!(exact / all >= RECORD_SHARE_MIN, "{processor}: only {exact} of {all} samples of {function} are exact: {rows:?}");
        }
    }
}
