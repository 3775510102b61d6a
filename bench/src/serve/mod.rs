//! `longpole serve` beside Jaeger and Zipkin: what a span costs, how soon it is there, how fast questions are answered.
//!
//! ```text
//! longpole-bench serve LONGPOLE [--spans 1000000] [--rounds 3] [--quick] [--jaeger PATH] [--zipkin JAR] [--only WORD] [--large 10000000]
//! ```
//!
//! Each round starts each server anew, on an empty folder, one after the other, in turn from both ends. Bodies are made before the clock starts. Eight
//! connections send them over HTTP, uncompressed: OTLP protobuf, to Zipkin its JSON. The client runs on the same machine, and its CPU time is not counted.

mod client;
mod data;
mod process;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};

use self::client::Client;
use self::data::{Body, DataSet, Generator, SentTrace};
use self::servers::{Contender, Kind, Running, SEGMENT_EVERY, Search};
use crate::{Subject, peers};

/// Connections that send at once.
const CONNECTIONS: usize = 8;

/// The steady load: of these spans a second the acknowledgement is timed.
const STEADY_SPANS_PER_SECOND: usize = 20_000;

/// Questions of each kind in a round.
const QUESTIONS: usize = 50;

/// Slow searches are repeated less, but at least so often.
const SEARCHES_LENGTH: Duration = Duration::from_secs(20);
const SEARCHES_MIN: usize = 3;

/// Traces that are read back to see whether they are whole.
const CHECKED: usize = 200;

/// A server that still works on what it took after this long is measured as it is.
const SETTLE_MAX: Duration = Duration::from_secs(90);

/// Idle for this long before its memory is read.
const IDLE: Duration = Duration::from_secs(3);

/// A trace that is not there after this long is taken for lost.
const VISIBLE_MAX: Duration = Duration::from_secs(20);

/// The spans lie this long before the run, and probes before them.
const AGE_NANOS: u64 = 50 * 60 * 1_000_000_000;
const PROBE_AGE_NANOS: u64 = 5 * 3_600 * 1_000_000_000;

/// Spans that are made and sent at once where all together would not fit into memory.
const CHUNK_SPANS: usize = 500_000;

const SEED: u64 = 20_261_128;

/// What the command line asks for.
#[derive(Debug)]
struct Wish {
    spans: usize,
    rounds: usize,
    steady: Duration,
    jaeger: Option<String>,
    zipkin: Option<String>,
    only: Vec<String>,
    sets: Vec<DataSet>,
    large: Option<usize>,
    keep: Option<PathBuf>,
}

fn wish(arguments: &[&str]) -> Result<Wish> {
    const USAGE: &str = "usage: longpole-bench serve LONGPOLE [--spans N] [--rounds N] [--quick] [--jaeger PATH] [--zipkin JAR] [--set uniform|realistic] [--only longpole|jaeger|badger|zipkin]… [--steady SECONDS] [--large N] [--in FOLDER]";
    let mut wish = Wish {
        spans: 1_000_000,
        rounds: 3,
        steady: Duration::from_secs(20),
        jaeger: None,
        zipkin: None,
        only: Vec::new(),
        sets: vec![DataSet::Uniform, DataSet::Realistic],
        large: None,
        keep: None,
    };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        if *name == "--quick" {
            (wish.spans, wish.rounds, wish.steady) = (100_000, 1, Duration::from_secs(5));
            continue;
        }
        let value = *rest.next().context(USAGE)?;
        let number = || value.replace('_', "").parse::<usize>().context(USAGE);
        match *name {
            "--spans" => wish.spans = number()?,
            "--rounds" => wish.rounds = number()?,
            "--steady" => wish.steady = Duration::from_secs(number()? as u64),
            "--large" => wish.large = Some(number()?),
            "--jaeger" => wish.jaeger = Some(value.to_owned()),
            "--zipkin" => wish.zipkin = Some(value.to_owned()),
            "--only" => wish.only.push(value.to_owned()),
            "--in" => wish.keep = Some(PathBuf::from(value)),
            "--set" => {
                wish.sets = match value {
                    "uniform" => vec![DataSet::Uniform],
                    "realistic" => vec![DataSet::Realistic],
                    _ => bail!(USAGE),
                }
            }
            _ => bail!(USAGE),
        }
    }
    Ok(wish)
}

/// The servers that are on this machine; names the others.
fn contenders(subjects: &[Subject], wish: &Wish) -> Vec<Contender> {
    let mut list = Vec::new();
    for (number, Subject { name, binary }) in subjects.iter().enumerate() {
        list.push(Contender { kind: Kind::Longpole(number), name: (*name).to_owned(), program: binary.clone() });
        list.push(Contender { kind: Kind::LongpoleZipkin(number), name: format!("{name}, Zipkin's JSON"), program: binary.clone() });
    }
    let asked = |word: &str| wish.only.is_empty() || wish.only.iter().any(|only| only == word);
    if (asked("jaeger") || asked("badger"))
        && let Some(jaeger) = wish.jaeger.clone().or_else(|| peers::find("jaeger"))
    {
        if asked("jaeger") {
            list.push(Contender { kind: Kind::JaegerMemory, name: "Jaeger, in memory".to_owned(), program: jaeger.clone() });
        }
        if asked("badger") {
            list.push(Contender { kind: Kind::JaegerBadger, name: "Jaeger, Badger".to_owned(), program: jaeger });
        }
    }
    if asked("zipkin")
        && let Some(jar) = wish.zipkin.clone().or_else(|| peers::find("zipkin.jar"))
    {
        if is_on_path("java") {
            list.push(Contender { kind: Kind::Zipkin, name: "Zipkin, in memory".to_owned(), program: jar });
        } else {
            println!("java: not installed, Zipkin is left out (apt-get install default-jre-headless)");
        }
    }
    list
}

fn is_on_path(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// What one round shows of one server.
#[derive(Debug, Default)]
struct Figures {
    page_millis: f64,
    idle_mib: f64,
    spans: usize,
    body_bytes: usize,
    send_secs: f64,
    /// CPU seconds up to the last answer, and up to the end of the work behind it.
    answered_cpu: f64,
    settled_cpu: f64,
    peak_mib: f64,
    settled_mib: f64,
    disk_bytes: u64,
    /// Traces that are whole, of `CHECKED`.
    whole: usize,
    checked: usize,
    by_id_millis: Vec<f64>,
    few_millis: Vec<f64>,
    few_found: usize,
    many_millis: Vec<f64>,
    steady_millis: Vec<f64>,
    steady_cpu_share: f64,
    visible_by_id: Vec<f64>,
    visible_by_search: Vec<f64>,
    after_kill: Option<AfterKill>,
}

#[derive(Debug, Default)]
struct AfterKill {
    log_bytes: u64,
    page_millis: f64,
    whole: usize,
    checked: usize,
}

/// Prints all figures of all servers.
pub(crate) fn measure(subjects: &[Subject], arguments: &[&str]) -> Result<()> {
    let wish = wish(arguments)?;
    let contenders = contenders(subjects, &wish);
    let own = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    let folder = wish.keep.clone().unwrap_or(own);
    println!(
        "serve, {} spans, {} rounds; segments at least every {SEGMENT_EVERY}; data in {}; load of the machine at the start {}",
        wish.spans,
        wish.rounds,
        folder.display(),
        load()
    );
    for set in &wish.sets {
        let mut figures: Vec<Vec<Figures>> = contenders.iter().map(|_| Vec::new()).collect();
        for round in 0..wish.rounds {
            for place in 0..contenders.len() {
                let place = if round % 2 == 0 { place } else { contenders.len() - 1 - place };
                let contender = &contenders[place];
                let own = folder.join("server");
                fs::remove_dir_all(&own).ok();
                say_progress(&format!("{} set, round {}, {}", set.name(), round + 1, contender.name));
                let seed = SEED + round as u64;
                let measured = one_round(contender, *set, &wish, seed, &own).and_then(|mut measured| {
                    // Once is enough: a peer needs minutes for it.
                    if round == 0 && contender.kind.keeps() {
                        measured.after_kill = Some(kill(contender, *set, wish.spans, seed, &own.join("second"))?);
                    }
                    Ok(measured)
                });
                figures[place].push(measured.with_context(|| contender.name.clone())?);
                fs::remove_dir_all(&own).ok();
            }
        }
        if wish.rounds > 0 {
            print_table(*set, &contenders, &figures);
        }
    }
    if let Some(spans) = wish.large {
        for set in &wish.sets {
            for contender in contenders.iter().filter(|it| matches!(it.kind, Kind::Longpole(_) | Kind::JaegerBadger)) {
                say_progress(&format!("{} set, {spans} spans, {}", set.name(), contender.name));
                let own = folder.join("server");
                fs::remove_dir_all(&own).ok();
                large(contender, *set, spans, &own).with_context(|| contender.name.clone())?;
                fs::remove_dir_all(&own).ok();
            }
        }
    }
    if wish.keep.is_none() {
        fs::remove_dir_all(&folder).ok();
    }
    println!("load of the machine at the end {}", load());
    Ok(())
}

#[allow(clippy::print_stderr, reason = "a run takes half an hour, and its figures go to standard output")]
fn say_progress(what: &str) {
    eprintln!("  … {what}");
}

/// Processes that ran or waited for a CPU during the last minute, as the kernel says it.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

fn unix_nanos() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
    u64::try_from(now.as_nanos()).context("the clock is after 2554")
}

/// The spans of a run, and where to look for them.
struct Sent {
    from: u64,
    to: u64,
    traces: Vec<SentTrace>,
}

fn one_round(contender: &Contender, set: DataSet, wish: &Wish, seed: u64, folder: &Path) -> Result<Figures> {
    let format = contender.kind.format();
    let begin = unix_nanos()? - AGE_NANOS;
    let (bodies, traces) = Generator::new(set, format, seed, begin).bodies(wish.spans);
    let sent = Sent { from: begin, to: begin + AGE_NANOS, traces };
    let mut figures = Figures {
        spans: bodies.iter().map(|body| body.spans).sum(),
        body_bytes: bodies.iter().map(|body| body.bytes.len()).sum(),
        ..Figures::default()
    };
    let server = contender.start(&folder.join("first"), figures.spans, false)?;
    figures.page_millis = server.page_secs * 1e3;
    std::thread::park_timeout(IDLE);
    figures.idle_mib = server.process.resident_mib()?.0;

    let before = server.process.cpu_secs()?;
    let start = Instant::now();
    send(&server, &bodies)?;
    figures.send_secs = start.elapsed().as_secs_f64();
    figures.answered_cpu = server.process.cpu_secs()? - before;
    drop(bodies);
    settle(&server)?;
    figures.settled_cpu = server.process.cpu_secs()? - before;
    (figures.settled_mib, figures.peak_mib) = server.process.resident_mib()?;
    figures.disk_bytes = process::bytes_below(&servers::data_folder(&folder.join("first")));
    questions(&server, set, &sent, &mut figures)?;
    steady(&server, set, wish.steady, seed, &mut figures)?;
    Ok(figures)
}

/// Sends all bodies over several connections at full speed.
fn send(server: &Running, bodies: &[Body]) -> Result<()> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let mut client = server.ingest()?;
                    while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
                        post(&mut client, server.kind, body)?;
                    }
                    Ok(())
                })
            })
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().expect("a sender came to its end"))
    })
}

fn post(client: &mut Client, kind: Kind, body: &Body) -> Result<()> {
    client.post(kind.ingest_path(), kind.format().content_type(), &body.bytes)
}

/// Waits until all is where it stays: for longpole, in segments.
fn settle(server: &Running) -> Result<()> {
    let start = Instant::now();
    while server.metric("longpole_head_spans")?.unwrap_or(0) > 0 && start.elapsed() < SETTLE_MAX {
        std::thread::park_timeout(Duration::from_millis(500));
    }
    server.process.settle(SETTLE_MAX)
}

/// By id, and by a service and an attribute; the time until the answer is read.
fn questions(server: &Running, set: DataSet, sent: &Sent, figures: &mut Figures) -> Result<()> {
    let mut client = server.queries()?;
    (figures.whole, figures.checked) = whole(server, &mut client, &sent.traces)?;
    let step = (sent.traces.len() / QUESTIONS).max(1);
    for trace in sent.traces.iter().step_by(step).take(QUESTIONS) {
        let start = Instant::now();
        server.spans_of(&mut client, trace)?;
        figures.by_id_millis.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let mut searches = vec![(set.few(), false)];
    searches.extend(set.many().map(|many| (many, true)));
    for ((service, key, value), is_many) in searches {
        let search = Search { service, attribute: Some((key, value)), from: sent.from, to: sent.to };
        let first = Instant::now();
        for number in 0..QUESTIONS / 5 {
            if number >= SEARCHES_MIN && first.elapsed() > SEARCHES_LENGTH {
                break;
            }
            let start = Instant::now();
            let body = server.search(&mut client, search)?;
            let millis = start.elapsed().as_secs_f64() * 1e3;
            if is_many {
                figures.many_millis.push(millis);
            } else {
                figures.few_millis.push(millis);
                figures.few_found = server.traces_in(&body);
            }
        }
    }
    Ok(())
}

/// How many of some traces are whole, and how many were read.
fn whole(server: &Running, client: &mut Client, traces: &[SentTrace]) -> Result<(usize, usize)> {
    let step = (traces.len() / CHECKED).max(1);
    let (mut whole, mut checked) = (0, 0);
    for trace in traces.iter().step_by(step).take(CHECKED) {
        checked += 1;
        whole += usize::from(server.spans_of(client, trace)? == trace.spans);
    }
    Ok((whole, checked))
}

/// The steady load, and beside it single traces, which are looked for after their answer.
fn steady(server: &Running, set: DataSet, length: Duration, seed: u64, figures: &mut Figures) -> Result<()> {
    let format = server.kind.format();
    let spans = STEADY_SPANS_PER_SECOND * usize::try_from(length.as_secs()).unwrap_or(1);
    let (bodies, _) = Generator::new(set, format, seed ^ 0xffff, unix_nanos()? - AGE_NANOS / 2).bodies(spans);
    let mut probes = Generator::new(set, format, seed ^ 0xabcd, unix_nanos()? - PROBE_AGE_NANOS);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    // When each body is due: as many spans before it as the load has.
    let mut due = Vec::with_capacity(bodies.len());
    let mut sum = 0;
    for body in &bodies {
        due.push(Duration::from_secs_f64(sum as f64 / STEADY_SPANS_PER_SECOND as f64));
        sum += body.spans;
    }
    let before = server.process.cpu_secs()?;
    let start = Instant::now();
    let (steady, visible) = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| -> Result<Vec<f64>> {
                    let mut client = server.ingest()?;
                    let mut millis = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(body) = bodies.get(number) else { return Ok(millis) };
                        while let Some(early) = due[number].checked_sub(start.elapsed()).filter(|early| !early.is_zero()) {
                            std::thread::park_timeout(early);
                        }
                        // From when it was due, so that a server that holds up the client does not hide it.
                        post(&mut client, server.kind, body)?;
                        millis.push((start.elapsed() - due[number]).as_secs_f64() * 1e3);
                    }
                })
            })
            .collect();
        let prober = scope.spawn(|| probe(server, &mut probes, &is_over));
        let steady: Result<Vec<Vec<f64>>> = senders.into_iter().map(|sender| sender.join().expect("a sender came to its end")).collect();
        is_over.store(true, Ordering::Relaxed);
        (steady, prober.join().expect("the prober came to its end"))
    });
    figures.steady_millis = steady?.concat();
    figures.steady_cpu_share = (server.process.cpu_secs()? - before) / start.elapsed().as_secs_f64();
    (figures.visible_by_id, figures.visible_by_search) = visible?;
    Ok(())
}

/// Milliseconds from the last answer for a trace until it is found whole by its id, and until a search finds it.
fn probe(server: &Running, probes: &mut Generator, is_over: &AtomicBool) -> Result<(Vec<f64>, Vec<f64>)> {
    /// Around the start of a probe, whose neighbours start 10 ms away.
    const WINDOW_NANOS: u64 = 5_000_000;
    let (mut ingest, mut queries) = (server.ingest()?, server.queries()?);
    let (mut by_id, mut by_search) = (Vec::new(), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let (bodies, trace) = probes.one_trace();
        for body in &bodies {
            post(&mut ingest, server.kind, body)?;
        }
        let answered = Instant::now();
        let wait = |is_there: &mut dyn FnMut() -> Result<bool>| -> Result<f64> {
            while !is_there()? {
                ensure!(answered.elapsed() < VISIBLE_MAX, "trace {} is not there {} s after its answer", trace.id, VISIBLE_MAX.as_secs());
                std::thread::park_timeout(Duration::from_millis(1));
            }
            Ok(answered.elapsed().as_secs_f64() * 1e3)
        };
        by_id.push(wait(&mut || Ok(server.spans_of(&mut queries, &trace)? == trace.spans))?);
        let (from, to) = (trace.start.saturating_sub(WINDOW_NANOS), trace.start + WINDOW_NANOS);
        let search = Search { service: &trace.service, attribute: None, from, to };
        by_search.push(wait(&mut || {
            let body = server.search(&mut queries, search)?;
            Ok(String::from_utf8_lossy(&body).contains(&trace.id))
        })?);
        std::thread::park_timeout(Duration::from_millis(250));
    }
    Ok((by_id, by_search))
}

/// Full speed, then `kill -9` right after the last answer, then a start on what it left.
fn kill(contender: &Contender, set: DataSet, spans: usize, seed: u64, folder: &Path) -> Result<AfterKill> {
    let (bodies, traces) = Generator::new(set, contender.kind.format(), seed, unix_nanos()? - AGE_NANOS).bodies(spans);
    let mut server = contender.start(folder, spans, true)?;
    send(&server, &bodies)?;
    server.process.kill()?;
    drop(bodies);
    let data = servers::data_folder(folder);
    let log_bytes = if contender.kind.is_longpole() { process::bytes_below(&data.join("node")) } else { process::bytes_below(&data) };
    let server = contender.start(folder, spans, true)?;
    let (whole, checked) = whole(&server, &mut server.queries()?, &traces)?;
    Ok(AfterKill { log_bytes, page_millis: server.page_secs * 1e3, whole, checked })
}

/// Questions to a server with many more spans.
fn large(contender: &Contender, set: DataSet, spans: usize, folder: &Path) -> Result<()> {
    let begin = unix_nanos()? - 10 * AGE_NANOS;
    let mut generator = Generator::new(set, contender.kind.format(), SEED, begin);
    let server = contender.start(folder, spans, false)?;
    let mut figures = Figures::default();
    let mut sent = Sent { from: begin, to: begin + 10 * AGE_NANOS, traces: Vec::new() };
    let before = server.process.cpu_secs()?;
    while figures.spans < spans {
        let (bodies, traces) = generator.bodies(CHUNK_SPANS.min(spans - figures.spans));
        send(&server, &bodies)?;
        figures.spans += bodies.iter().map(|body| body.spans).sum::<usize>();
        sent.traces.extend(traces);
    }
    settle(&server)?;
    figures.settled_cpu = server.process.cpu_secs()? - before;
    let (resident, peak) = server.process.resident_mib()?;
    let bytes = process::bytes_below(&servers::data_folder(folder));
    questions(&server, set, &sent, &mut figures)?;
    let after = server.process.resident_mib()?.0;
    println!("{} set, {} spans, {}", set.name(), figures.spans, contender.name);
    println!("  spans per CPU second   {:.0} k", figures.spans as f64 / figures.settled_cpu / 1e3);
    println!("  bytes a span           {:.1}", bytes as f64 / figures.spans as f64);
    println!("  memory                 {resident:.0} MiB, at most {peak:.0} before the questions; {after:.0} after them");
    println!("  by id                  {}", spread(&figures.by_id_millis, "ms"));
    println!("  search, few match      {}, {} traces", spread(&figures.few_millis, "ms"), figures.few_found);
    if !figures.many_millis.is_empty() {
        println!("  search, many match     {}", spread(&figures.many_millis, "ms"));
    }
    println!("  whole traces           {} of {}", figures.whole, figures.checked);
    Ok(())
}

/// The value below which this share of the values is; NaN of none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let place = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// `1.2 ms median, 3.4 p99, 5.6 at most`.
fn spread(values: &[f64], unit: &str) -> String {
    format!(
        "{} {unit} median, {} p99, {} at most",
        short(quantile(values, 0.5)),
        short(quantile(values, 0.99)),
        short(quantile(values, 1.0))
    )
}

/// Three digits, or as many as it has before the point.
fn short(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "–".to_owned(),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// One figure of a round, and what it is called.
struct Row {
    name: &'static str,
    aim: &'static str,
    /// The ratio to longpole says something.
    compares: bool,
    of: fn(&Figures) -> f64,
}

const ROWS: &[Row] = &[
    Row { name: "first page after the start, ms", aim: "≤ 300", compares: true, of: |it| it.page_millis },
    Row { name: "memory, idle, MiB", aim: "≤ 40", compares: true, of: |it| it.idle_mib },
    Row { name: "k spans per CPU second, when answered", aim: "≥ 100", compares: true, of: |it| it.spans as f64 / it.answered_cpu / 1e3 },
    Row { name: "k spans per CPU second, all work done", aim: "≥ 100", compares: true, of: |it| it.spans as f64 / it.settled_cpu / 1e3 },
    Row { name: "k spans per second, client beside it", aim: "", compares: true, of: |it| it.spans as f64 / it.send_secs / 1e3 },
    Row { name: "memory with these spans, MiB", aim: "", compares: true, of: |it| it.settled_mib },
    Row { name: "memory at most, MiB", aim: "", compares: true, of: |it| it.peak_mib },
    Row {
        name: "bytes a span on the disk",
        aim: "",
        compares: true,
        of: |it| if it.disk_bytes == 0 { f64::NAN } else { it.disk_bytes as f64 / it.spans as f64 },
    },
    Row { name: "bytes a span in the request", aim: "", compares: false, of: |it| it.body_bytes as f64 / it.spans as f64 },
    Row { name: "whole traces of 100 sent", aim: "100", compares: false, of: |it| 100.0 * it.whole as f64 / it.checked.max(1) as f64 },
    Row { name: "by id, ms, median", aim: "", compares: true, of: |it| quantile(&it.by_id_millis, 0.5) },
    Row { name: "by id, ms, p99", aim: "", compares: true, of: |it| quantile(&it.by_id_millis, 0.99) },
    Row { name: "search, few match, ms, median", aim: "", compares: true, of: |it| quantile(&it.few_millis, 0.5) },
    Row { name: "  traces it finds", aim: "", compares: false, of: |it| it.few_found as f64 },
    Row { name: "search, many match, ms, median", aim: "", compares: true, of: |it| quantile(&it.many_millis, 0.5) },
    Row { name: "20 k spans/s: answer, ms, median", aim: "", compares: true, of: |it| quantile(&it.steady_millis, 0.5) },
    Row { name: "20 k spans/s: answer, ms, p99", aim: "", compares: true, of: |it| quantile(&it.steady_millis, 0.99) },
    Row { name: "20 k spans/s: share of one CPU, %", aim: "", compares: true, of: |it| 100.0 * it.steady_cpu_share },
    Row { name: "found by id after the answer, ms, at most", aim: "≤ 1000", compares: true, of: |it| quantile(&it.visible_by_id, 1.0) },
    Row { name: "found by search after it, ms, at most", aim: "≤ 1000", compares: true, of: |it| quantile(&it.visible_by_search, 1.0) },
    Row {
        name: "kill -9: MB it left to read",
        aim: "",
        compares: false,
        of: |it| it.after_kill.as_ref().map_or(f64::NAN, |it| it.log_bytes as f64 / 1e6),
    },
    Row { name: "kill -9: first page, ms", aim: "", compares: true, of: |it| it.after_kill.as_ref().map_or(f64::NAN, |it| it.page_millis) },
    Row {
        name: "kill -9: whole traces of 100 answered",
        aim: "100",
        compares: false,
        of: |it| it.after_kill.as_ref().map_or(f64::NAN, |it| 100.0 * it.whole as f64 / it.checked.max(1) as f64),
    },
];

/// A table in Markdown: a row for each figure, a column for each server, the median of the rounds with the least and the most, and the ratio to longpole.
fn print_table(set: DataSet, contenders: &[Contender], figures: &[Vec<Figures>]) {
    println!("\n{} set\n", set.name());
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
    println!("| | aim | {} |", names.join(" | "));
    println!("|---|---|{}", "---|".repeat(names.len()));
    for row in ROWS {
        let medians: Vec<f64> = figures.iter().map(|rounds| quantile(&rounds.iter().map(row.of).collect::<Vec<_>>(), 0.5)).collect();
        let cells: Vec<String> = figures
            .iter()
            .zip(&medians)
            .enumerate()
            .map(|(place, (rounds, median))| {
                if median.is_nan() {
                    return "–".to_owned();
                }
                let values: Vec<f64> = rounds.iter().map(row.of).collect();
                let range = match values.iter().filter(|value| !value.is_nan()).count() {
                    1 => String::new(),
                    _ => format!(" [{}, {}]", short(quantile(&values, 0.0)), short(quantile(&values, 1.0))),
                };
                let ratio = if place > 0 && row.compares && medians[0] > 0.0 {
                    format!(", {}×", short(median / medians[0]))
                } else {
                    String::new()
                };
                format!("{}{range}{ratio}", short(*median))
            })
            .collect();
        println!("| {} | {} | {} |", row.name, row.aim, cells.join(" | "));
    }
}
