//! Story: somebody has a web service in Python, with the instrumentation of OpenTelemetry as it comes, and nothing of ours in it.
//! Guarantees: under load, the flame graph of a route that computes is of the functions of this route; where requests overlap, samples are of
//! the own route, or called ambiguous if nobody can say whose the code is, and not given to the other one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Barrier;

use longpole_testing::{holds, turn};

use crate::support::{Sandbox, ask, can_sample, json, longpole, rows, skip};

/// Functions that burn CPU, each called by one route only, for as long as it says.
const FUNCTIONS: &str = r#"
import time

def burn(until):
    x = 0
    while time.thread_time() < until:
        for i in range(200):
            x = (x * 31 + i) % 1000003
    return x

def find_primes():
    return burn(time.thread_time() + 0.020)

def mix_colours():
    return burn(time.thread_time() + 0.020)

def sort_words():
    return burn(time.thread_time() + 0.002)

def hash_words():
    return burn(time.thread_time() + 0.002)
"#;

/// An app of Flask, which answers each request in a thread of its own.
const FLASK: &str = r#"
from flask import Flask

app = Flask(__name__)

@app.get("/primes")
def primes():
    return str(find_primes())

@app.get("/colours/<int:shade>")
def colours(shade):
    return str(mix_colours())

@app.get("/sorted")
def sorted_words():
    return str([sort_words() for _ in range(20)])

@app.get("/hashed")
def hashed_words():
    return str([hash_words() for _ in range(20)])

app.run(port=0)
"#;

/// An app of FastAPI: requests take turns on one thread, wherever they await.
const FASTAPI: &str = r#"
import asyncio
import uvicorn
from fastapi import FastAPI

app = FastAPI()

@app.get("/primes")
async def primes():
    return find_primes()

@app.get("/colours/{shade}")
async def colours(shade: int):
    return mix_colours()

async def in_turns(function):
    for _ in range(20):
        function()
        await asyncio.sleep(0)
    return 0

@app.get("/sorted")
async def sorted_words():
    return await in_turns(sort_words)

@app.get("/hashed")
async def hashed_words():
    return await in_turns(hash_words)

uvicorn.run(app, port=0)
"#;

/// Requests of each route, one after the other: 30 × 20 ms.
const REQUESTS: usize = 30;

/// Least share of the samples in a function that must be tied to its route where requests do not overlap.
const TIED_SHARE_MIN: f64 = 0.95;

/// Most samples of a function that may be tied to another route. The links are right then, and the functions are not: the frames of Python
/// are read each 2 ms, on a busy machine each few, and a request takes 20.
const WRONG_SHARE_MAX: f64 = 0.05;

/// Least share of a route's flame graph that its function must have: nine tenths of its time by construction, less what was sampled where
/// the frames of Python were not read near enough in time, which is counted.
const OWN_SHARE_MIN: f64 = 0.7;

/// Requests of both routes at a time: 10 × 2 × 40 ms.
const ROUNDS: usize = 10;

/// Where the server listens is the first address of this kind that it tells, on stderr.
const ADDRESS: &str = "http://127.0.0.1:";

#[test]
fn flask_routes_show_their_functions() {
    check("flask", FLASK, ["GET /primes", "GET /colours/<int:shade>", "GET /sorted", "GET /hashed"]);
}

#[test]
fn overlapping_async_requests_are_ambiguous() {
    check("fastapi", FASTAPI, ["GET /primes", "GET /colours/{shade}", "GET /sorted", "GET /hashed"]);
}

fn check(framework: &str, app: &str, names: [&str; 4]) {
    let story = format!("see a web service in {framework}");
    let Some(python) = std::env::var_os("LONGPOLE_PYTHON").map(PathBuf::from) else {
        return skip(&story, "no Python with the OpenTelemetry SDK; `cargo xtask test` makes one where pip works");
    };
    let instrument = python.with_file_name("opentelemetry-instrument");
    if !instrument.exists() {
        return skip(&story, "no opentelemetry-instrument; `cargo xtask test` installs it where pip works");
    }
    if !can_sample(&story) {
        return;
    }
    // Reading the frames of Python takes a CPU, which others may want.
    let _turn = turn();
    holds(2, 4, &story, || serve(framework, app, names, &[&instrument, &python]));
}

/// Records a service and its requests; says what is not as it should be.
fn serve(framework: &str, app: &str, names: [&str; 4], python: &[&PathBuf; 2]) -> Result<(), String> {
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("app.py"));
    std::fs::write(&program, FUNCTIONS.to_owned() + app).unwrap();
    let mut service = Service::start(&store, &[python[0], python[1], &program]);
    for number in 0..REQUESTS {
        service.get("/primes");
        service.get(&format!("/colours/{number}"));
    }
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        for path in ["/sorted", "/hashed"] {
            let (service, both) = (&service, &both);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    both.wait();
                    service.get(path);
                }
            });
        }
    });
    let told = service.stop();
    let functions = ["find_primes", "mix_colours", "sort_words", "hash_words"];
    for (function, name) in functions.into_iter().zip(names) {
        let Tied { all, right, ambiguous, wrong } = Tied::of(&store, function, name);
        let context =
            format!("{framework}: {function} of {name}: {all} samples, {right} tied, {ambiguous} ambiguous, {wrong} wrong\n{told}");
        let is_right = if function == "find_primes" || function == "mix_colours" {
            the_flame_is_its_own(&store, name, function, &functions)?;
            right as f64 >= all as f64 * TIED_SHARE_MIN
        } else {
            (ambiguous + right) * 2 >= all
        };
        if all < 100 || wrong as f64 > all as f64 * WRONG_SHARE_MAX || !is_right {
            return Err(context);
        }
    }
    Ok(())
}

/// How the samples of a function are tied.
struct Tied {
    all: u64,
    right: u64,
    ambiguous: u64,
    wrong: u64,
}

impl Tied {
    fn of(store: &Path, function: &str, name: &str) -> Tied {
        let query = format!(
            "SELECT s.evidence, coalesce(p.name, '') AS name, count(*) AS n FROM samples s
             LEFT JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id
             WHERE s.stack_id IN (
               SELECT k.stack_id FROM (SELECT stack_id, unnest(location_ids) AS location_id FROM stacks) k
               JOIN frames f ON f.location_id = k.location_id WHERE f.function = '{function}')
             GROUP BY s.evidence, p.name"
        );
        let mut tied = Tied { all: 0, right: 0, ambiguous: 0, wrong: 0 };
        for row in rows(&ask(store)(&query)) {
            let n = row[2].as_u64().unwrap();
            tied.all += n;
            match (row[0].as_str().unwrap(), row[1].as_str().unwrap()) {
                // The span of the route, or that of sending its answer, which begins where the function ends.
                ("inferred", found) if found.starts_with(name) => tied.right += n,
                ("ambiguous", _) => tied.ambiguous += n,
                // What ran at the very border of its span.
                ("none", _) => {}
                _ => tied.wrong += n,
            }
        }
        tied
    }
}

/// The flame graph of a name has the function in nearly all of it, and hardly any of another route.
fn the_flame_is_its_own(store: &Path, name: &str, function: &str, all: &[&str]) -> Result<(), String> {
    let flame = json(longpole(store).args(["flame", "--name", name, "--format", "json"]));
    assert_eq!((&flame["name"], &flame["few_samples"]), (&name.into(), &false.into()), "{}", flame["title"]);
    let frames = flame["frames"].as_array().unwrap();
    let columns = |name: &str| flame["nodes"][name].as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect::<Vec<i64>>();
    let boxes: Vec<(i64, i64)> = columns("frame").into_iter().zip(columns("total_nanos")).collect();
    let nanos_in = |function: &str| -> i64 {
        let place = frames.iter().position(|frame| frame["function"] == function);
        boxes.iter().filter(|(frame, _)| place.is_some_and(|place| place as i64 == *frame)).map(|(_, nanos)| nanos).sum()
    };
    let whole = flame["weight_nanos"].as_i64().unwrap() as f64;
    for other in all {
        let share = nanos_in(other) as f64 / whole;
        let is_right = if *other == function { share >= OWN_SHARE_MIN } else { share <= WRONG_SHARE_MAX };
        if !is_right {
            return Err(format!("{other} has {share:.3} of the flame graph of {name}"));
        }
    }
    Ok(())
}

/// A service that runs under longpole.
struct Service {
    recorder: Child,
    address: String,
    told: std::thread::JoinHandle<String>,
}

impl Service {
    fn start(store: &Path, command: &[&PathBuf]) -> Service {
        let mut recorder = longpole(store)
            .args(["run", "--summary", "none", "--"])
            .args(command)
            .env("OTEL_SERVICE_NAME", "web")
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut told = String::new();
        let address = lines.by_ref().find_map(|line| {
            told.push_str(&line);
            told.push('\n');
            let (_, rest) = line.split_once(ADDRESS)?;
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            (!port.is_empty()).then(|| format!("127.0.0.1:{port}"))
        });
        let address = address.unwrap_or_else(|| panic!("the service does not start:\n{told}"));
        // It tells of each request: somebody has to read that.
        let told = std::thread::spawn(move || told + &lines.collect::<Vec<_>>().join("\n"));
        Service { recorder, address, told }
    }

    fn get(&self, path: &str) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }

    /// Ctrl-C, and what it told.
    fn stop(&mut self) -> String {
        // SAFETY: a signal to the group of a child that was not waited for.
        unsafe { libc::kill(-(self.recorder.id() as i32), libc::SIGINT) };
        self.recorder.wait().unwrap();
        std::mem::replace(&mut self.told, std::thread::spawn(String::new)).join().unwrap()
    }
}
