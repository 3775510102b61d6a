//! Programs without spans: the answer is right for whatever runs.

use std::process::Command;

use serde_json::Value;

use crate::support::{Sandbox, c, can_sample, has_program, json, longpole, skip, time_on_path};

#[test]
fn a_script_that_works_and_then_waits_is_named_beside_its_child() {
    if !can_sample("a_script_that_works_and_then_waits_is_named_beside_its_child") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let longpole = || longpole(&store);
    // Less than half of the run is the script's own.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 1";
    let out = longpole().args(["run", "--", "sh", "-c", script]).output().unwrap();
    assert!(out.status.success());
    let summary = json(longpole().args(["show", "--format", "json"]));
    let wall = summary["wall_nanos"].as_i64().unwrap();
    let poles = summary["poles"].as_array().unwrap();
    let names: Vec<&str> = poles.iter().map(|pole| pole["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sleep", "sh"], "{summary}");
    // It cannot save what its child takes.
    let own = &poles[1];
    assert_eq!(own["saves_if_zero_nanos"], own["saves_own_nanos"]);
    assert!(own["saves_if_zero_nanos"][1].as_i64() <= own["on_path_nanos"].as_i64(), "{own}");
    // To the nanosecond, however short the list is.
    assert_eq!(time_on_path(&summary), wall);
    assert_eq!(time_on_path(&json(longpole().args(["poles", "--limit", "1", "--format", "json"]))), wall);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    // A word that only stands for a service is not printed.
    assert!(said.lines().any(|line| line.starts_with("p2 ") && line.contains(" sh  ")) && !said.contains("· "), "{said}");
}

/// A program of three parts, one after the other, which prints how long each took.
const THREE_PARTS: &str = r#"
import json, time

def parse_rules(text):
    return [int(part, 16) % 7 for part in text.split()]

def load():
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        parse_rules("ff " * 2000)

def wait_for_licence():
    time.sleep(0.8)

def render_page(rows):
    return "".join(f"<td>{row}</td>" for row in rows)

def render():
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        render_page(range(2000))

took = {}
for name, part in {"parse_rules": load, "wait_for_licence": wait_for_licence, "render_page": render}.items():
    began = time.monotonic()
    part()
    took[name] = time.monotonic() - began
print(json.dumps(took))
"#;

#[test]
fn the_poles_of_a_lone_process_are_its_functions_and_its_waits() {
    if !can_sample("the_poles_of_a_lone_process_are_its_functions_and_its_waits") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.path("prog.py");
    std::fs::write(&program, THREE_PARTS).unwrap();
    let store = sandbox.path("store");
    let longpole = || longpole(&store);
    let out = longpole().args(["run", "--", "python3"]).arg(&program).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let took: Value = serde_json::from_slice(&out.stdout).unwrap();
    let view = json(longpole().args(["poles", "--format", "json"]));
    let wall = view["wall_nanos"].as_i64().unwrap();
    let poles = view["poles"].as_array().unwrap();
    let functions: Vec<&str> = poles.iter().take(3).filter_map(|pole| pole["part"]["function"].as_str()).collect();
    assert_eq!(functions, ["parse_rules", "wait_for_licence", "render_page"], "{view}");
    assert_eq!(poles[1]["part"]["text"], "wait_for_licence (sleep)");
    for (pole, function) in poles.iter().zip(functions) {
        let millis = |nanos: &Value| nanos.as_i64().unwrap() / 1_000_000;
        let true_gain = (took[function].as_f64().unwrap() * 1e3) as i64;
        let [low, high] = [0, 1].map(|end| millis(&pole["saves_if_zero_nanos"][end]));
        assert!(low <= true_gain * 115 / 100 && high >= true_gain * 85 / 100, "{function} took {true_gain} ms: {low} to {high} ms");
        assert!(pole["part"]["file"].as_str().unwrap().ends_with("/prog.py") && pole["part"]["line"].as_u64() > Some(0), "{pole}");
    }
    // Nobody reads that a lone process saves all of its run, and no time is missing.
    assert!(poles.iter().all(|pole| pole["saves_if_zero_nanos"][1].as_i64().unwrap() < wall * 3 / 4), "{view}");
    assert_eq!(time_on_path(&view), wall);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("python3 › parse_rules") && said.contains("python3 › wait_for_licence (sleep)"), "{said}");
    let together = &poles[2]["saves_with_those_before_nanos"];
    let sum: i64 = poles[..3].iter().map(|pole| pole["saves_if_zero_nanos"][1].as_i64().unwrap()).sum();
    assert_eq!(together[1].as_i64(), Some(sum), "parts of one process do not overlap");
}

/// A thread that nobody waits for burns a CPU; the main thread computes in two functions, and waits for the end of a worker.
const BESIDE: &str = r#"
#include <pthread.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static volatile unsigned long sink;
#define COMPUTE(NAME, SECONDS) \
    __attribute__((noinline)) void NAME(void) { double end = now() + SECONDS; while (now() < end) for (int i = 0; i < 10000; i++) sink += i; }
COMPUTE(background_burn, 60)
COMPUTE(parse_rules, 0.8)
COMPUTE(encode, 1.2)
COMPUTE(render, 0.3)
static void *burn(void *no) { background_burn(); return no; }
static void *worker(void *no) { encode(); return no; }
int main(void) {
    pthread_t beside, joined;
    pthread_create(&beside, 0, burn, 0);
    pthread_detach(beside);
    parse_rules();
    pthread_create(&joined, 0, worker, 0);
    render();
    pthread_join(joined, 0);
    return 0;
}
"#;

#[test]
fn what_runs_beside_the_path_of_a_process_is_not_named() {
    let story = "what_runs_beside_the_path_of_a_process_is_not_named";
    if !can_sample(story) {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = c::compile(&sandbox, story, "beside", BESIDE) else { return };
    let store = sandbox.path("store");
    let out = longpole(&store).args(["run", "--"]).arg(&program).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let view = json(longpole(&store).args(["poles", "--format", "json"]));
    let poles = view["poles"].as_array().unwrap();
    let functions: Vec<&str> = poles.iter().filter_map(|pole| pole["part"]["function"].as_str()).collect();
    assert_eq!(functions[..2], ["encode", "parse_rules"], "{view}");
    // Both ran, and neither would end the run earlier: `render` beside the worker.
    assert!(!functions.contains(&"background_burn") && !functions.contains(&"render"), "{view}");
    assert_eq!(time_on_path(&view), view["wall_nanos"].as_i64().unwrap());
}

/// Waits of five causes in six calls, one after the other, two of them beside a second thread.
const CAUSES: &str = r#"
import asyncio, queue, select, threading, time

def nap_in_epoll():
    asyncio.run(asyncio.sleep(0.62))

def nap_in_select():
    select.select([], [], [], 0.54)

def nap_at_a_condition():
    threading.Event().wait(0.46)

def want_work():
    work = queue.Queue()
    threading.Thread(target=lambda: (time.sleep(0.38), work.put(1))).start()
    work.get()

def want_lock():
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lambda: (time.sleep(0.30), lock.release())).start()
    lock.acquire()

nap_in_epoll()
nap_in_select()
nap_at_a_condition()
want_work()
want_lock()
"#;

/// The wrapper has children of its own, one without a program, before it becomes the program: what a version manager does.
#[test]
fn waits_are_named_by_their_cause_in_any_call() {
    if !can_sample("waits_are_named_by_their_cause_in_any_call") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.path("prog.py");
    std::fs::write(&program, CAUSES).unwrap();
    let store = sandbox.path("store");
    let script = "where=$(echo \"$0\"); ls / >/dev/null; exec python3 \"$where\"";
    let out = longpole(&store).args(["run", "--summary", "none", "sh", "-c", script]).arg(&program).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let view = json(longpole(&store).args(["poles", "--format", "json"]));
    let poles = view["poles"].as_array().unwrap();
    // How long the interpreter takes to start depends on the machine.
    let parts = poles.iter().filter_map(|pole| pole["part"]["text"].as_str()).filter(|part| *part != "the rest");
    let parts: Vec<&str> = parts.take(5).collect();
    // A wait for another thread is what that thread does meanwhile.
    let [give_work, unlock] = ["want_work", "want_lock"].map(|function| format!("{function}.<locals>.<lambda> (sleep)"));
    assert_eq!(parts, ["nap_in_epoll (sleep)", "nap_in_select (sleep)", "nap_at_a_condition (sleep)", &give_work, &unlock], "{view}");
    let span = json(longpole(&store).args(["span", "s1", "--format", "json"]));
    let waits = span["waits"].as_array().unwrap();
    for (function, kind) in [("want_work", "queue"), ("want_lock", "lock")] {
        assert!(waits.iter().any(|wait| wait["function"] == function && wait["kind"] == kind), "{function} in {span}");
    }
    let unaccounted: i64 = poles.iter().map(|pole| pole["states"]["unaccounted_nanos"].as_i64().unwrap()).sum();
    assert!(unaccounted * 20 < view["wall_nanos"].as_i64().unwrap(), "{view}");
}

#[test]
fn a_compiler_is_named_by_the_file_that_it_compiles() {
    const STORY: &str = "a_compiler_is_named_by_the_file_that_it_compiles";
    if !can_sample(STORY) || !has_program(STORY, "gcc") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let body =
        |number: u32| format!("int f{number}(int *p, int n) {{ for (int j = 0; j < n; j++) p[j] ^= p[j % 7] * {number}; return n; }}\n");
    std::fs::write(sandbox.path("rules.c"), (0..400).map(body).collect::<String>()).unwrap();
    std::fs::write(sandbox.path("main.c"), "int main(void) { return 0; }\n").unwrap();
    let script = r#"cd "$1"; for file in main.c rules.c main.c; do gcc -O2 -c $file; done"#;
    let out = longpole(&store).args(["run", "--", "sh", "-c", script, "sh"]).arg(sandbox.path("")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let summary = json(longpole(&store).args(["show", "--format", "json"]));
    let pole = &summary["poles"][0];
    assert_eq!(pole["name"], "cc1", "{summary}");
    let why = pole["reason"]["text"].as_str().unwrap();
    assert!(why.contains("(cc1 … rules.c") && why.contains("the longest of 3 of this name"), "{why}");
}

#[test]
fn what_costs_most_is_the_first_line_of_quality() {
    const STORY: &str = "what_costs_most_is_the_first_line_of_quality";
    if !can_sample(STORY) {
        return;
    }
    if cfg!(not(target_arch = "x86_64")) {
        return skip(STORY, "its machine code is of x86-64");
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    // Copies a loop into memory of its own, which has no name anywhere, and runs it.
    let source = r#"
#include <string.h>
#include <sys/mman.h>
#include <time.h>
/* push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret */
static const unsigned char CODE[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
int main(void) {
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, CODE, sizeof CODE);
  while (clock() < 0.7 * CLOCKS_PER_SEC) ((void (*)(unsigned long))page)(1000000);
  return 0;
}
"#;
    let Some(program) = c::compile(&sandbox, STORY, "nameless", source) else { return };
    let out = longpole(&store).args(["run", "--"]).arg(&program).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let first = said.lines().find(|line| line.starts_with("quality")).unwrap();
    assert!(first.contains("missing functions"), "its code has no names, and that comes first: {said}");
    assert!(said.contains("jit-PID.dump"), "with what is missing: {said}");
    let all = longpole(&store).args(["show", "--quality"]).output().unwrap().stdout;
    let count = json(longpole(&store).args(["show", "--format", "json"]))["quality"].as_array().unwrap().len();
    let all = String::from_utf8_lossy(&all).into_owned();
    assert!(
        all.lines().next().is_some_and(|line| line.starts_with("quality") && line.contains("missing functions"))
            && !all.contains("LONG POLES")
            && all.lines().count() >= count,
        "{all}"
    );
}

/// Computes, and nothing else.
const CRUNCH: &str = r#"
static volatile unsigned long sink;
__attribute__((noinline)) static unsigned long crunch(unsigned long rounds) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++) sum += (i * i) ^ (sum >> 3);
    return sum;
}
int main(void) { sink = crunch(300000000ul); return 0; }
"#;

#[test]
fn who_waits_for_a_cpu_is_named_by_its_function() {
    const STORY: &str = "who_waits_for_a_cpu_is_named_by_its_function";
    if !can_sample(STORY) {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(program) = c::compile(&sandbox, STORY, "crunch", CRUNCH) else { return };
    let others: Vec<_> = (0..2)
        .map(|_| Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn().expect("taskset of util-linux"))
        .collect();
    let store = sandbox.path("store");
    let out = longpole(&store).args(["run", "--", "taskset", "-c", "0"]).arg(&program).output().unwrap();
    for mut other in others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    assert!(out.status.success());
    let summary = json(longpole(&store).args(["show", "--format", "json"]));
    let first = &summary["poles"][0];
    assert_eq!(first["part"]["function"], "crunch", "{summary}");
    let nanos = |state: &str| first["states"][state].as_i64().unwrap();
    // A third of one CPU is its own.
    assert!(nanos("runnable_nanos") > nanos("on_cpu_nanos"), "{first}");
    let why = first["reason"]["text"].as_str().unwrap();
    assert!(why.contains("on-CPU and") && why.contains("runnable"), "{why}");
}

#[test]
fn a_long_job_saves_what_the_free_slots_give() {
    if !can_sample("a_long_job_saves_what_the_free_slots_give") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    // Nine jobs beside and behind a long one: without it, two slots take them in half the time.
    let run = |long: &str| {
        let jobs = ["0.2", "0.2", "0.2", long, "0.2", "0.2", "0.2", "0.2", "0.2", "0.2"].join("\n");
        let script = format!("printf '{jobs}' | xargs -P 2 -n 1 sleep");
        let out = longpole(&store).args(["run", "--", "sh", "-c", &script]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        json(longpole(&store).args(["show", "--format", "json"]))
    };
    let (slow, fixed) = (run("2"), run("0"));
    let wall = |summary: &Value| summary["wall_nanos"].as_f64().unwrap();
    let gained = wall(&slow) - wall(&fixed);
    let pole = &slow["poles"][0];
    assert_eq!(pole["name"], "sleep", "{slow}");
    for end in [0, 1] {
        let promised = pole["saves_if_zero_nanos"][end].as_f64().unwrap();
        assert!((promised - gained).abs() < 0.15 * gained, "promised {promised}, gained {gained}: {pole}");
    }
}

/// A server whose pages cost CPU time: the port's file and that time are its arguments.
const PAGES: &str = r#"
import http.server, sys, time

def render(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/page":
            render(float(sys.argv[2]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *unused):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
with open(sys.argv[1], "w") as port:
    print(server.server_port, file=port)
server.serve_forever()
"#;

#[test]
fn a_server_is_named_that_clients_with_timeouts_call_at_once() {
    const STORY: &str = "a_server_is_named_that_clients_with_timeouts_call_at_once";
    if !can_sample(STORY) || !has_program(STORY, "curl") {
        return;
    }
    let sandbox = Sandbox::new();
    let (store, program, port) = (sandbox.path("store"), sandbox.path("pages.py"), sandbox.path("port"));
    std::fs::write(&program, PAGES).unwrap();
    let script = r#"
        python3 "$1" "$2" 0.15 & server=$!
        until [ -s "$2" ]; do sleep 0.05; done
        read port <"$2"
        until curl -s -m 1 -o /dev/null "http://127.0.0.1:$port/"; do sleep 0.05; done
        for round in 1 2 3; do
            clients=
            for client in 1 2 3 4; do
                curl -s --max-time 20 -o /dev/null "http://127.0.0.1:$port/page" & clients="$clients $!"
            done
            wait $clients
        done
        kill $server
        wait $server || true
    "#;
    let out = longpole(&store).args(["run", "--", "sh", "-c", script, "sh"]).args([&program, &port]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let summary = json(longpole(&store).args(["show", "--format", "json"]));
    let pole = &summary["poles"][0];
    assert_eq!(pole["part"]["function"], "render", "{summary}");
    // Twelve pages of 0.15 s, one after the other. On a machine that is busy with other programs they take longer.
    let millis = |end: usize| pole["saves_if_zero_nanos"][end].as_i64().unwrap() / 1_000_000;
    assert!((1_000..=2_200).contains(&millis(0)) && millis(1) >= 1_550, "{pole}");
}

#[test]
fn a_build_that_is_ended_is_named_by_what_it_ran() {
    const STORY: &str = "a_build_that_is_ended_is_named_by_what_it_ran";
    if !can_sample(STORY) {
        return;
    }
    let sandbox = Sandbox::new();
    let endless = CRUNCH.replace("300000000ul", "300000000000ul");
    let Some(program) = c::compile(&sandbox, STORY, "crunch", &endless) else { return };
    let store = sandbox.path("store");
    let out = longpole(&store).args(["run", "--", "timeout", "2", "sh", "-c", r#""$0"; true"#]).arg(&program).output().unwrap();
    assert_eq!(out.status.code(), Some(124), "{out:?}");
    let summary = json(longpole(&store).args(["show", "--format", "json"]));
    let (pole, wall) = (&summary["poles"][0], summary["wall_nanos"].as_i64().unwrap());
    assert_eq!(pole["part"]["function"], "crunch", "{summary}");
    assert!(pole["on_path_nanos"].as_i64().unwrap() > wall / 10 * 8, "{pole}");
    assert!(pole["saves_if_zero_nanos"][1].as_i64().unwrap() > wall / 10 * 8, "{pole}");
}
