//! Story: somebody asks of one span, to the microsecond, where its time went: did it compute, wait and for what, or did nobody work for it?
//! Guarantees: of a program that spins, sleeps, waits for a lock, for a file, for its tasks, for its children on the same thread and in
//! another process, each span's states are exact, sum to its duration to the nanosecond, and are within a hundredth, and a little, of what the
//! program measured itself by the clock of its threads; no sample is needed for that.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use longpole_sdk::SpanExt;
use longpole_testing::{holds, turn};
use serde_json::{Value, json};
use tracing::{Instrument, Span, info_span};

use crate::support::{Sandbox, json as ask, longpole, role};

/// Where the program writes what it measured; says that it is to play.
const FIGURES: &str = "LONGPOLE_STORY_FIGURES";

/// A state may differ from what was measured by this share of it, and by this much.
const SHARE: f64 = 0.01;
const SLACK_NANOS: f64 = 300e3;

/// Interrupts that a CPU handles while a thread writes to the disk take at most this share of the thread's CPU time.
const INTERRUPTED_SHARE: f64 = 0.5;

/// Each span is played so often in a run. In a virtual machine the host may take a CPU away, during which the clock of the thread stands
/// still, and nobody in here knows: some rounds are measured wrong.
const ROUNDS: usize = 3;

/// Rounds of each span that must be as measured, of all that are made.
const HELD_OF_ROUNDS: (usize, usize) = (2, 9);

/// What a span did, as the program itself measured it, in nanoseconds.
#[derive(Default)]
struct Measured {
    parts: BTreeMap<&'static str, u64>,
    /// On CPUs, of all threads.
    cpu: u64,
    /// What this thread had of CPUs meanwhile for another span.
    cpu_of_others: u64,
    wall: u64,
    /// What lies between the measured part of the span and the whole span.
    unsure: u64,
}

/// Time that this thread had on CPUs.
fn cpu_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[inline(never)]
fn spin(millis: u64) {
    let until = cpu_nanos() + millis * 1_000_000;
    while cpu_nanos() < until {
        black_box((0..200u64).fold(0, |sum, number| black_box(sum ^ number)));
    }
}

fn nanos_of(body: impl FnOnce()) -> u64 {
    let start = Instant::now();
    body();
    start.elapsed().as_nanos() as u64
}

/// Plays the part of a span that stays on this thread; `body` says what it measured beside the CPU.
fn timed(span: Span, body: impl FnOnce(&mut Measured)) -> Measured {
    let (outside, cpu_outside) = (Instant::now(), cpu_nanos());
    let mut measured = Measured::default();
    let entered = span.entered();
    let (inside, cpu) = (Instant::now(), cpu_nanos());
    body(&mut measured);
    let own_cpu = cpu_nanos() - cpu - measured.cpu_of_others;
    measured.wall = inside.elapsed().as_nanos() as u64;
    drop(entered);
    measured.cpu += own_cpu;
    *measured.parts.entry("on_cpu").or_default() += own_cpu;
    let around = (outside.elapsed().as_nanos() as u64).saturating_sub(measured.wall);
    measured.unsure = around.max((cpu_nanos() - cpu_outside).saturating_sub(own_cpu + measured.cpu_of_others));
    measured
}

/// The other process, which gets requests over a pipe.
struct Server {
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Server {
        let words = role("account_for_the_time::serve");
        let mut command = Command::new(&words[0]);
        let mut child = command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut server = Server { ask: child.stdin.take().unwrap(), answers: BufReader::new(child.stdout.take().unwrap()) };
        server.answer();
        // It ends when nobody can ask it any more.
        std::thread::spawn(move || child.wait());
        server
    }

    /// The next number that it says.
    fn answer(&mut self) -> u64 {
        loop {
            let mut line = String::new();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "the server is gone");
            // Its test harness talks, too.
            if let Some(number) = line.trim().strip_prefix("answer ") {
                return number.parse().unwrap();
            }
        }
    }
}

/// The server: a span for each line, whose parent the line names.
#[test]
fn serve() {
    if std::env::var_os(FIGURES).is_none() {
        return;
    }
    longpole_sdk::run(|| {
        println!("\nanswer 0");
        for line in std::io::stdin().lines() {
            let span = info_span!("serve", otel.kind = "server");
            span.set_parent_traceparent(line.unwrap().trim()).unwrap();
            let served = timed(span, |_| {
                spin(10);
                std::thread::sleep(Duration::from_millis(20));
            });
            println!("answer {}", served.wall);
        }
    });
}

/// On threads of a runtime, by turns: works, then nobody works for it.
fn asynchronous(runtime: &tokio::runtime::Runtime, span: Span, waits: &'static str) -> Measured {
    let outside = Instant::now();
    let task = async move {
        let mut measured = Measured::default();
        let inside = Instant::now();
        for _ in 0..4 {
            let cpu = cpu_nanos();
            spin(5);
            measured.cpu += cpu_nanos() - cpu;
            let start = Instant::now();
            tokio::time::sleep(Duration::from_millis(15)).await;
            *measured.parts.entry(waits).or_default() += start.elapsed().as_nanos() as u64;
        }
        measured.wall = inside.elapsed().as_nanos() as u64;
        measured
    };
    let mut measured = runtime.block_on(runtime.spawn(task.instrument(span))).unwrap();
    measured.parts.insert("on_cpu", measured.cpu);
    measured.unsure = (outside.elapsed().as_nanos() as u64).saturating_sub(measured.wall);
    measured
}

/// Waits for a lock that another thread gives back late.
fn wait_for_lock(measured: &mut Measured) {
    let lock = Mutex::new(());
    let (held, holds) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = lock.lock().unwrap();
            held.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(40));
            drop(guard);
        });
        let waits_for_holder = nanos_of(|| holds.recv().unwrap());
        let waits = nanos_of(|| drop(lock.lock().unwrap()));
        measured.parts.insert("lock", waits_for_holder + waits);
    });
}

/// The program.
#[test]
fn perform() {
    let Some(path) = std::env::var_os(FIGURES) else { return };
    let file = Path::new(&path).with_extension("data");
    let mut server = Server::start();
    let mut all: Vec<(&str, Measured)> = Vec::new();
    longpole_sdk::run(|| (0..ROUNDS).for_each(|_| play(&file, &mut server, &mut all)));
    let figures: Vec<Value> = all
        .into_iter()
        .map(|(name, it)| json!({ "name": name, "parts": it.parts, "cpu": it.cpu, "wall": it.wall, "unsure": it.unsure }))
        .collect();
    std::fs::write(&path, serde_json::to_vec(&figures).unwrap()).unwrap();
}

/// One round of the program.
fn play(file: &Path, server: &mut Server, all: &mut Vec<(&str, Measured)>) {
    all.push(("spins", timed(info_span!("spins"), |_| spin(50))));
    all.push((
        "sleeps",
        timed(info_span!("sleeps"), |measured| {
            spin(5);
            measured.parts.insert("sleep", nanos_of(|| std::thread::sleep(Duration::from_millis(40))));
        }),
    ));
    all.push(("waits for a lock", timed(info_span!("waits for a lock"), wait_for_lock)));
    all.push((
        "writes a file",
        timed(info_span!("writes a file"), |measured| {
            let bytes = vec![7; 8 << 20];
            let (cpu, start) = (cpu_nanos(), Instant::now());
            let mut file = File::create(file).unwrap();
            file.write_all(&bytes).unwrap();
            file.sync_all().unwrap();
            let waits = (start.elapsed().as_nanos() as u64).saturating_sub(cpu_nanos() - cpu);
            measured.parts.insert("file", waits);
        }),
    ));
    all.push((
        "calls a function",
        timed(info_span!("calls a function"), |measured| {
            spin(10);
            let (start, cpu) = (Instant::now(), cpu_nanos());
            timed(info_span!("is called"), |inner| {
                spin(10);
                inner.parts.insert("sleep", nanos_of(|| std::thread::sleep(Duration::from_millis(10))));
            });
            measured.parts.insert("in_child", start.elapsed().as_nanos() as u64);
            measured.cpu_of_others = cpu_nanos() - cpu;
            spin(5);
        }),
    ));
    all.push((
        "calls a process",
        timed(info_span!("calls a process", otel.kind = "client"), |measured| {
            spin(5);
            let mut served = 0;
            let waits = nanos_of(|| {
                writeln!(server.ask, "{}", longpole_sdk::current_traceparent().unwrap()).unwrap();
                served = server.answer();
            });
            measured.parts.insert("in_child", served);
            measured.parts.insert("pipe", waits.saturating_sub(served));
        }),
    ));
    all.push((
        "has two threads",
        timed(info_span!("has two threads"), |measured| {
            let span = Span::current();
            let other = std::thread::spawn(move || {
                span.in_scope(|| {
                    let cpu = cpu_nanos();
                    spin(30);
                    cpu_nanos() - cpu
                })
            });
            spin(20);
            let waits = nanos_of(|| measured.cpu += other.join().unwrap());
            measured.parts.insert("join", waits);
        }),
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    all.push(("awaits", asynchronous(&runtime, info_span!("awaits"), "awaiting")));
    all.push(("is remote", asynchronous(&runtime, info_span!("is remote", otel.kind = "client"), "remote")));
}

/// All parts of the states, by name; those of what it was blocked on by themselves.
fn parts(states: &Value) -> BTreeMap<String, f64> {
    let mut parts = BTreeMap::new();
    for (name, value) in states.as_object().unwrap() {
        match (name.strip_suffix("_nanos"), value.as_f64()) {
            (Some("blocked"), _) => {
                parts.extend(value.as_object().unwrap().iter().map(|(kind, nanos)| (kind.clone(), nanos.as_f64().unwrap())));
            }
            (Some("cpu"), _) | (None, _) => {}
            (Some(name), nanos) => drop(parts.insert(name.to_owned(), nanos.unwrap())),
        }
    }
    parts
}

/// Compares the view of a span with what the program measured.
fn judge(span: &Value, figure: &Value) -> Result<(), String> {
    let (states, all) = (&span["states"], &span["states_with_descendants"]);
    let told = format!("{} is {states}, and the program measured {figure}", span["name"]);
    let (own, below) = (parts(states), parts(all));
    let duration = span["duration_nanos"].as_f64().unwrap();
    assert_eq!((own.values().sum::<f64>(), below.values().sum::<f64>()), (duration, duration), "{told}");
    assert_eq!((&states["evidence"], &states["exact"]), (&json!("journal"), &json!(true)), "{told}");
    let number = |key: &str| figure[key].as_f64().unwrap();
    let (cpu, measured_cpu) = (states["cpu_nanos"].as_f64().unwrap(), number("cpu"));
    let cpu_slack = measured_cpu * SHARE + SLACK_NANOS + number("unsure");
    assert!(cpu >= measured_cpu - cpu_slack, "less CPU time than the thread's own clock says: {told}");
    let check = |what: &str, is: f64, measured: f64, slack: f64| {
        if (is - measured).abs() <= slack { Ok(()) } else { Err(format!("{what} is {is} and not {measured}: {told}")) }
    };
    // The disk interrupts who writes to it, and a thread's own clock does not count interrupts.
    let interrupted = if figure["parts"]["file"].is_number() { measured_cpu * INTERRUPTED_SHARE } else { 0.0 };
    check("CPU time", cpu, measured_cpu, cpu_slack + interrupted)?;
    let unseen = own["blocked_unseen"];
    for (part, nanos) in figure["parts"].as_object().unwrap() {
        let nanos = nanos.as_f64().unwrap();
        let is = match part.as_str() {
            // Short waits have no kind.
            kind @ ("sleep" | "pipe") => own[kind] + unseen,
            "lock" => own["lock"] + own["queue"] + unseen,
            "file" => own["disk"] + own["other"] + own["page_fault"] + own["lock"] + unseen,
            // The other thread may be on a CPU while this one waits for it.
            "on_cpu" if figure["parts"]["join"].is_number() => own["on_cpu"].min(nanos),
            "join" => nanos,
            state => own[state],
        };
        // A thread that others keep from its CPU while the program asks for the time is runnable, and nothing else.
        check(part, is, nanos, nanos * SHARE + SLACK_NANOS + number("unsure") + own["runnable"] + interrupted)?;
    }
    Ok(())
}

#[test]
fn span_states_match_what_the_program_measured() {
    let _turn = turn();
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut rounds = judged_rounds(&store, &sandbox.path("figures"));
    let names: Vec<String> = rounds.keys().cloned().collect();
    let (held, of) = HELD_OF_ROUNDS;
    for name in names {
        holds(held, of, &format!("the states of a span that {name}"), || {
            if rounds[&name].is_empty() {
                rounds = judged_rounds(&store, &sandbox.path("figures"));
            }
            rounds.get_mut(&name).and_then(Vec::pop).expect("each run plays each span")
        });
    }
    let tree = ask(longpole(&store).args(["tree", "--format", "json"]));
    let text = String::from_utf8(longpole(&store).args(["span", &handles_of(&tree, "awaits")[0]]).output().unwrap().stdout).unwrap();
    assert!(text.contains("STATES  exact, from span journals and context switches"), "{text}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("awaiting ")), "{text}");
}

/// Runs the program, and holds each span of each round against what was measured.
fn judged_rounds(store: &Path, figures: &Path) -> BTreeMap<String, Vec<Result<(), String>>> {
    let run = longpole(store)
        .args(["run", "--"])
        .args(role("account_for_the_time::perform"))
        .env(FIGURES, figures)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let figures: Vec<Value> = serde_json::from_slice(&std::fs::read(figures).unwrap()).unwrap();
    let tree = ask(longpole(store).args(["tree", "--format", "json"]));
    let mut judged: BTreeMap<String, Vec<Result<(), String>>> = BTreeMap::new();
    for figure in &figures {
        let name = figure["name"].as_str().unwrap();
        let of_name = judged.entry(name.to_owned()).or_default();
        let span = ask(longpole(store).args(["span", &handles_of(&tree, name)[of_name.len()], "--format", "json"]));
        of_name.push(judge(&span, figure));
    }
    assert!(judged.values().all(|rounds| rounds.len() == ROUNDS));
    judged
}

/// The handles of the spans with this name, in the order of the tree.
fn handles_of(tree: &Value, name: &str) -> Vec<String> {
    let name = tree["names"].as_array().unwrap().iter().position(|known| known == name).unwrap_or_else(|| panic!("no span {name}"));
    let rows = tree["spans"]["name"].as_array().unwrap().iter().enumerate();
    rows.filter(|(_, row)| **row == json!(name)).map(|(row, _)| format!("s{}", row + 1)).collect()
}
