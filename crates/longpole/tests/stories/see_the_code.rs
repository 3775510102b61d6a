//! Story: somebody runs a Python, a Node or a Java program and wants to know which of *its* functions take the time, and which C
//! code they spend it in.
//! Guarantees: an unmodified CPython from 3.8 on, and on x86-64 an unmodified Java from 17 on, show their functions in the flame graph without
//! any flag and without privilege, each with the share of the CPU that the program itself measured, and the native code of a library under
//! the function that called it; a wait of Java has the method that waits; Node shows its functions with `--jit`; missing functions have a
//! reason, and nothing is left behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longpole_testing::holds;
use serde_json::Value;

use crate::support::{Sandbox, ask, ask_with, can_sample, clean, json, longpole, plain_user, rows, skip};

/// A program that burns CPU in known functions, three parts in `burn_three`, one in `burn_one`, and others in C code that only one
/// function calls and that takes no memory from the kernel, whose time a plain user does not see; a thread and a forked process of its
/// own do the same. What each took it measures itself, by the clock of its
/// thread.
const PYTHON: &str = r#"
import hashlib, os, sys, threading, time, zlib

DATA = b"longpole" * 1000
took = {}

def burn_three(until):
    x = 0
    while time.thread_time() < until:
        for i in range(200):
            x = (x * 31 + i) % 1000003

def burn_one(until):
    x = 0
    while time.thread_time() < until:
        for i in range(200):
            x = (x * 31 + i) % 1000003

def hash_it(until):
    while time.thread_time() < until:
        hashlib.sha256(DATA).digest()

def sum_it(until):
    while time.thread_time() < until:
        zlib.crc32(DATA)

def key_of(i):
    x = 0
    for j in range(300):
        x += j * i
    return x

def sort_it(until):
    while time.thread_time() < until:
        sorted(range(20), key=key_of)

def numbers(until):
    while time.thread_time() < until:
        x = 0
        for i in range(300):
            x += i
        yield x

def generate(until):
    for number in numbers(until):
        pass

def in_thread(until):
    burn_three(until)

def in_child(until):
    burn_one(until)

def take(function, seconds):
    start = time.thread_time()
    function(start + seconds)
    key = function.__name__
    took[key] = took.get(key, 0.0) + time.thread_time() - start

def main(rounds):
    for _ in range(rounds):
        take(burn_three, 0.030)
        take(burn_one, 0.010)
        take(hash_it, 0.010)
        take(sum_it, 0.010)
        take(sort_it, 0.010)
        take(generate, 0.010)

rounds = int(sys.argv[1])
thread = threading.Thread(target=take, args=(in_thread, 0.02 * rounds))
thread.start()
main(rounds)
thread.join()
child = os.fork()
if child == 0:
    start = time.thread_time()
    in_child(start + 0.01 * rounds)
    os._exit(0)
os.waitpid(child, 0)
took["in_child"] = 0.01 * rounds
for name, seconds in took.items():
    print(name, seconds)
"#;

/// The lines of `PYTHON` in which a function stands, the first being 1.
fn lines_of(program: &str, function: &str) -> std::ops::RangeInclusive<u64> {
    let start = program.lines().position(|line| line.contains(&format!("def {function}("))).unwrap();
    let body = program.lines().skip(start + 1).take_while(|line| line.starts_with(' ')).count();
    (start as u64 + 1)..=(start + 1 + body) as u64
}

/// One entry of a stack.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    runtime: String,
    /// Path of its binary.
    pub(crate) binary: String,
    pub(crate) function: String,
    pub(crate) file: String,
    line: u64,
}

/// Samples by their stacks, root first.
pub(crate) struct Samples(Vec<(Vec<Entry>, u64)>);

impl Samples {
    pub(crate) fn of(mut sql: impl FnMut(&str) -> Value) -> Samples {
        let text = |row: &[Value], at: usize| row[at].as_str().unwrap_or_default().to_owned();
        let mut entries: BTreeMap<u64, Entry> = BTreeMap::new();
        // The outermost of inlined functions.
        let locations = sql("SELECT l.location_id, l.kind, l.runtime, m.path, f.function, f.file, f.line FROM locations l \
             LEFT JOIN mappings m ON m.mapping_id = l.mapping_id LEFT JOIN frames f ON f.location_id = l.location_id \
             ORDER BY l.location_id, f.inline_depth");
        for row in rows(&locations) {
            entries.insert(
                row[0].as_u64().unwrap(),
                Entry {
                    kind: text(&row, 1),
                    runtime: text(&row, 2),
                    binary: text(&row, 3),
                    function: text(&row, 4),
                    file: text(&row, 5),
                    line: row[6].as_u64().unwrap_or(0),
                },
            );
        }
        let stacks = sql("SELECT k.location_ids, count(*) FROM samples s JOIN stacks k ON k.stack_id = s.stack_id GROUP BY k.location_ids");
        let stack = |ids: &Value| ids.as_array().unwrap().iter().rev().map(|id| entries[&id.as_u64().unwrap()].clone()).collect();
        Samples(rows(&stacks).map(|row| (stack(&row[0]), row[1].as_u64().unwrap())).collect())
    }

    /// Each stack, root first, and how many samples have it.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = (&[Entry], u64)> {
        self.0.iter().map(|(stack, count)| (stack.as_slice(), *count))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// How many samples have such a stack.
    pub(crate) fn with(&self, is: impl Fn(&[Entry]) -> bool) -> u64 {
        self.0.iter().filter(|(stack, _)| is(stack)).map(|(_, count)| count).sum()
    }

    /// The stacks that are most frequent, for a person who has to find out.
    pub(crate) fn dump(&self) -> String {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let name = |entry: &Entry| format!("{}{}", entry.function, if entry.runtime.is_empty() { "" } else { "*" });
        let lines = all.iter().take(25).map(|(stack, count)| format!("{count} {}", stack.iter().map(name).collect::<Vec<_>>().join(";")));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The functions of a runtime in a stack, root first; without one those of binaries.
pub(crate) fn of_runtime<'a>(stack: &'a [Entry], runtime: &str) -> Vec<&'a Entry> {
    let kind = if runtime.is_empty() { "code" } else { "named" };
    stack.iter().filter(|entry| entry.kind == kind && entry.runtime == runtime).collect()
}

fn has(stack: &[Entry], runtime: &str, function: &str) -> bool {
    of_runtime(stack, runtime).iter().any(|entry| entry.function == function)
}

/// What a program said it took, in seconds, by function.
pub(crate) fn took(stdout: &[u8]) -> BTreeMap<String, f64> {
    let text = String::from_utf8_lossy(stdout);
    let pair = |line: &str| line.split_once(' ').map(|(name, seconds)| (name.to_owned(), seconds.trim().parse().unwrap()));
    text.lines().filter_map(pair).collect()
}

/// Holds shares of samples against what the program measured: by chance they differ by five standard deviations at most, and by two
/// percent for what the measuring itself takes.
#[track_caller]
pub(crate) fn the_shares_are_right(samples: &Samples, runtime: &str, took: &BTreeMap<String, f64>, context: &str) {
    judge_shares(samples, runtime, took, context).unwrap();
}

/// Requires something of what was recorded; else says what is wrong, for the helper that counts how often it holds.
macro_rules! require {
    ($holds:expr, $($wrong:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($wrong)+));
        }
    };
}

fn judge_shares(samples: &Samples, runtime: &str, took: &BTreeMap<String, f64>, context: &str) -> Result<(), String> {
    // Where one was called by another, the time is the caller's.
    let whose =
        |stack: &[Entry]| of_runtime(stack, runtime).iter().map(|entry| entry.function.clone()).find(|name| took.contains_key(name));
    let of = |function: &str| samples.with(|stack| whose(stack).as_deref() == Some(function));
    let all_took: f64 = took.values().sum();
    let all: u64 = took.keys().map(|name| of(name)).sum();
    require!(all >= 200, "{context}: {all} samples of {took:?}\n{}", samples.dump());
    for (name, seconds) in took {
        let (expected, found) = (seconds / all_took, of(name) as f64 / all as f64);
        let chance = (expected * (1.0 - expected) / all as f64).sqrt();
        require!(
            (found - expected).abs() <= 5.0 * chance + 0.02,
            "{context}: {name} took {expected:.3} of the time and has {found:.3} of {all} samples\n{}",
            samples.dump()
        );
    }
    Ok(())
}

/// Pythons of this machine that are known: the system's, and those of pyenv.
pub(crate) fn pythons() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let pyenv = std::fs::read_dir(Path::new(&home).join(".pyenv/versions")).into_iter().flatten().flatten();
    let all = [PathBuf::from("/usr/bin/python3")].into_iter().chain(pyenv.map(|entry| entry.path().join("bin/python3")));
    let mut known: Vec<PathBuf> = all.filter(|path| minor_of(path).is_some_and(|minor| (8..=13).contains(&minor))).collect();
    known.sort();
    known
}

fn minor_of(python: &Path) -> Option<u32> {
    let out = Command::new(python).arg("--version").stdin(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&out.stdout).strip_prefix("Python 3.")?.split('.').next()?.parse().ok()
}

/// What must hold of a recording of [`PYTHON`].
fn python_is_seen(samples: &Samples, stdout: &[u8], context: &str) -> Result<(), String> {
    let took = took(stdout);
    judge_shares(samples, "python", &took, context)?;
    // C code stands below the one function that calls it. An import, which hashes too, is no such function.
    for (function, library) in [("hash_it", "libcrypto"), ("sum_it", "libz.so")] {
        let is_leaf = |stack: &[Entry]| stack.last().is_some_and(|leaf| leaf.binary.contains(library)) && has(stack, "python", "main");
        let all = samples.with(is_leaf);
        let right =
            samples.with(|stack| is_leaf(stack) && of_runtime(stack, "python").last().is_some_and(|leaf| leaf.function == function));
        require!(
            all >= 10 && right * 100 >= all * 95,
            "{context}: {right} of {all} samples in {library} are of {function}\n{}",
            samples.dump()
        );
    }
    // Functions stand between the native frames that called them and those they call, from the module on.
    let is_ordered = |stack: &[Entry]| {
        let module = stack.iter().position(|entry| entry.function == "<module>");
        module.is_some_and(|module| module > 0 && stack[0].kind == "code" && stack[..module].iter().all(|entry| entry.kind == "code"))
    };
    let (ordered, mains) = (samples.with(|s| is_ordered(s) && has(s, "python", "main")), samples.with(|s| has(s, "python", "main")));
    require!(ordered * 100 >= mains * 95, "{context}: {ordered} of {mains} stacks begin natively\n{}", samples.dump());
    // Callbacks of C code, generators, threads and forks.
    let within = |stack: &[Entry], outer: &str, inner: &str| {
        let names: Vec<&str> = of_runtime(stack, "python").iter().map(|entry| entry.function.as_str()).collect();
        names.windows(2).any(|pair| pair == [outer, inner])
    };
    for (outer, inner) in [("sort_it", "key_of"), ("generate", "numbers"), ("in_thread", "burn_three"), ("in_child", "burn_one")] {
        let of_outer = samples.with(|stack| has(stack, "python", outer));
        let nested = samples.with(|stack| within(stack, outer, inner));
        require!(
            nested >= 10 && nested * 100 >= of_outer * 70,
            "{context}: {nested} of {of_outer} of {outer} are in {inner}\n{}",
            samples.dump()
        );
    }
    // Files and lines are those of the program.
    for (stack, _) in &samples.0 {
        for entry in of_runtime(stack, "python").into_iter().filter(|entry| entry.file.ends_with("program.py")) {
            if entry.function.starts_with("burn_") {
                require!(lines_of(PYTHON, &entry.function).contains(&entry.line), "{context}: {entry:?}");
            }
        }
    }
    // Little is missing: the start of a process, and what a machine without a CPU to spare leaves out.
    let unseen = samples.with(|stack| stack.iter().any(|entry| entry.kind == "cut" && entry.function.contains("Python functions")));
    require!(unseen * 10 <= samples.count(), "{context}: {unseen} of {} samples are not wholly seen\n{}", samples.count(), samples.dump());
    Ok(())
}

#[test]
fn every_python_shows_python_and_native_functions() {
    if !can_sample("every_python_shows_python_and_native_functions") {
        return;
    }
    let pythons = pythons();
    if pythons.is_empty() {
        return skip("every_python_shows_python_and_native_functions", "there is no CPython from 3.8 to 3.13");
    }
    for python in pythons {
        // Reading the frames of Python takes a CPU, which others may want.
        holds(2, 4, &format!("{} shows its own functions", python.display()), || {
            let sandbox = Sandbox::new();
            let (store, program) = (sandbox.path("store"), sandbox.path("program.py"));
            std::fs::write(&program, PYTHON).unwrap();
            let out = longpole(&store).args(["run", "--"]).arg(&python).arg(&program).arg("12").stdin(Stdio::null()).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            python_is_seen(&Samples::of(ask(&store)), &out.stdout, &python.display().to_string())
        });
    }
}

#[test]
fn a_plain_user_sees_python_functions() {
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "a_plain_user_sees_python_functions") else { return };
    let python = Path::new("/usr/bin/python3");
    if !can_sample("a_plain_user_sees_python_functions") || !pythons().contains(&python.to_owned()) {
        return skip("a_plain_user_sees_python_functions", "there is no /usr/bin/python3 from 3.8 to 3.13");
    }
    let program = sandbox.path("program.py");
    std::fs::write(&program, PYTHON).unwrap();
    holds(2, 4, "Python shows its own functions to a plain user", || {
        let store = sandbox.path("store");
        let mut run = user.with_store(&store);
        let out = run.args(["run", "--"]).arg(python).arg(&program).arg("20").stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        python_is_seen(&Samples::of(ask_with(|| user.with_store(&store))), &out.stdout, "as a plain user")
    });
}

#[test]
fn the_terminal_shows_file_and_line_of_script_functions() {
    if !can_sample("the_terminal_shows_file_and_line_of_script_functions") || pythons().is_empty() {
        return;
    }
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("program.py"));
    std::fs::write(&program, PYTHON).unwrap();
    let run = longpole(&store).args(["run", "--"]).arg(&pythons()[0]).arg(&program).arg("5").stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success());
    let flame = longpole(&store).arg("flame").output().unwrap();
    let text = String::from_utf8(flame.stdout).unwrap();
    let lines = lines_of(PYTHON, "burn_three");
    assert!(lines.clone().any(|line| text.contains(&format!("burn_three (program.py:{line})"))), "{text}");
    let view = json(longpole(&store).args(["flame", "--format", "json"]));
    let frame = view["frames"].as_array().unwrap().iter().find(|frame| frame["function"] == "burn_three").unwrap().clone();
    assert_eq!((frame["runtime"].as_str(), frame["file"].as_str()), (Some("python"), program.to_str()));
    assert!(lines.contains(&frame["line"].as_u64().unwrap()), "{frame}");
}

/// Computes in one line of a function, then sleeps in another, then in a third.
const PAUSES: &str = "import time

def pause():
    x = 0
    for i in range(200000): x = (x * 31 + i) % 1000003
    time.sleep(0.02)
    y = x + 1
    time.sleep(0.04)
    return y

for _ in range(15):
    pause()
";

#[test]
fn a_wait_has_the_line_of_the_script() {
    if !can_sample("a_wait_has_the_line_of_the_script") || pythons().is_empty() {
        return;
    }
    for python in pythons() {
        let sandbox = Sandbox::new();
        let (store, program) = (sandbox.path("store"), sandbox.path("program.py"));
        std::fs::write(&program, PAUSES).unwrap();
        let run = longpole(&store).args(["run", "--"]).arg(&python).arg(&program).stdin(Stdio::null()).output().unwrap();
        assert!(run.status.success());
        let waits = ask(&store)(
            "SELECT f.line, sum(w.nanos) FROM (SELECT unnest(k.location_ids) AS id, w.end_time_monotonic_nano - \
             w.start_time_monotonic_nano AS nanos FROM waits w JOIN stacks k ON k.stack_id = w.stack_id) w \
             JOIN frames f ON f.location_id = w.id WHERE f.function = 'pause' GROUP BY f.line",
        );
        let time_at: BTreeMap<u64, u64> = rows(&waits).map(|row| (row[0].as_u64().unwrap(), row[1].as_u64().unwrap())).collect();
        let at = |line: u64| time_at.get(&line).copied().unwrap_or(0);
        let all: u64 = time_at.values().sum();
        assert!(at(6) + at(8) >= all / 100 * 95 && all > 0, "{}: {time_at:?}", python.display());
        // The flame graphs say in which line a function computes, and in which it waits longest.
        for (time, expected) in [("--off-cpu", 8), ("--wall", 8)] {
            let flame = String::from_utf8(longpole(&store).args(["flame", time]).output().unwrap().stdout).unwrap();
            assert!(flame.contains(&format!("pause (program.py:{expected})")), "{}: {flame}", python.display());
        }
        let flame = String::from_utf8(longpole(&store).arg("flame").output().unwrap().stdout).unwrap();
        assert!(flame.contains("pause (program.py:5)"), "{}: {flame}", python.display());
    }
}

/// CPython makes a trampoline for each function with its support for perf. They have no unwind information and no frame pointer;
/// stacks go through them all the same, and no function is shown twice.
#[test]
fn python_with_perf_support_looks_the_same() {
    let python = pythons().into_iter().find(|python| minor_of(python).is_some_and(|minor| minor >= 12));
    let Some(python) = python.filter(|_| can_sample("python_with_perf_support_looks_the_same")) else {
        return skip("python_with_perf_support_looks_the_same", "there is no CPython 3.12 or 3.13");
    };
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("program.py"));
    std::fs::write(&program, PYTHON).unwrap();
    let mut run = longpole(&store);
    run.args(["run", "--"]).arg(&python).args(["-X", "perf"]).arg(&program).arg("6");
    let out = run.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    // The user turned these on.
    for row in rows(&ask(&store)("SELECT pid FROM processes")) {
        std::fs::remove_file(format!("/tmp/perf-{}.map", row[0])).ok();
    }
    let samples = Samples::of(ask(&store));
    let of_main = samples.with(|stack| has(stack, "python", "main"));
    let whole = samples.with(|stack| {
        let names: Vec<&str> = of_runtime(stack, "python").iter().map(|entry| entry.function.as_str()).collect();
        let is_once = names.iter().filter(|name| **name == "main").count() == 1 && names.first() == Some(&"<module>");
        is_once && stack.iter().all(|entry| entry.kind != "cut") && stack[0].kind == "code"
    });
    assert!(of_main >= 100 && whole * 100 >= of_main * 90, "{whole} of {of_main}\n{}", samples.dump());
}

/// A process that nobody may look into: it shows its interpreter, and why not more.
#[test]
fn an_unreadable_python_is_reported() {
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "an_unreadable_python_is_reported") else { return };
    let python = Path::new("/usr/bin/python3");
    if !can_sample("an_unreadable_python_is_reported") || !pythons().contains(&python.to_owned()) {
        return;
    }
    // PR_SET_DUMPABLE is 4. What it runs afterwards nobody has seen before.
    let program = "
import ctypes, time
def secret():
    x = 0
    while time.process_time() < 0.8:
        x += 1
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
secret()
";
    let store = sandbox.path("store");
    let mut run = user.command(&user.longpole());
    let out = run.arg("--store").arg(&store).args(["run", "--"]).arg(python).args(["-c", program]).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("lack Python functions") && said.contains("longpole may not read the interpreter's memory"), "{said}");
    let ask = |query: &str| json(user.command(&user.longpole()).arg("--store").arg(&store).args(["sql", query, "--format", "json"]));
    let samples = Samples::of(ask);
    let told =
        samples.with(|stack| stack.iter().any(|entry| entry.kind == "cut" && entry.function.contains("could not read the interpreter")));
    assert!(told * 2 >= samples.count(), "{told} of {} samples\n{}", samples.count(), samples.dump());
}

/// Burns CPU as [`PYTHON`] does.
const NODE: &str = r#"
const { createHash } = require('crypto');
const took = {};
const now = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
const data = Buffer.alloc(20000, 'longpole');
function burnThree(until) { let x = 0; while (now() < until) { for (let i = 0; i < 200000; i++) x = (x * 31 + i) % 1000003; } return x; }
function burnOne(until) { let x = 0; while (now() < until) { for (let i = 0; i < 200000; i++) x = (x * 31 + i) % 1000003; } return x; }
function hashIt(until) { while (now() < until) { for (let i = 0; i < 20; i++) createHash('sha256').update(data).digest(); } }
function take(f, seconds) { const start = now(); f(start + seconds); took[f.name] = (took[f.name] ?? 0) + now() - start; }
function main(rounds) { for (let i = 0; i < rounds; i++) { take(burnThree, 0.045); take(burnOne, 0.015); take(hashIt, 0.015); } }
main(Number(process.argv[2]));
for (const [name, seconds] of Object.entries(took)) console.log(name, seconds);
console.log('options', process.env.NODE_OPTIONS);
"#;

#[test]
fn node_shows_its_functions_with_jit_and_without() {
    if !can_sample("node_shows_its_functions_with_jit_and_without") {
        return;
    }
    if Command::new("node").arg("--version").stdin(Stdio::null()).output().is_err() {
        return skip("node_shows_its_functions_with_jit_and_without", "there is no node");
    }
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("program.js"));
    std::fs::write(&program, NODE).unwrap();
    let folder = sandbox.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let run = |flags: &[&str]| {
        let mut command = longpole(&store);
        command.arg("run").args(flags).args(["--", "node"]).arg(&program).arg("15").env("NODE_OPTIONS", "--max-old-space-size=500");
        command.current_dir(&folder);
        let out = command.stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        out
    };
    let seen = |stdout: &str| {
        let samples = Samples::of(ask(&store));
        the_shares_are_right(&samples, "node", &took(stdout.as_bytes()), "node");
        // node has OpenSSL within itself; what computes the hash stands below the function that calls it.
        let is_hashing = |stack: &[Entry]| stack.last().is_some_and(|leaf| leaf.kind == "code" && leaf.function.contains("sha256_block"));
        let hashing = samples.with(is_hashing);
        let right = samples.with(|stack| is_hashing(stack) && has(stack, "node", "hashIt"));
        assert!(hashing >= 10 && right * 100 >= hashing * 95, "{right} of {hashing}\n{}", samples.dump());
        let places = samples.0.iter().flat_map(|(stack, _)| of_runtime(stack, "node"));
        let place = places.into_iter().find(|entry| entry.function == "burnThree").unwrap();
        assert!(program.to_str() == Some(&place.file) && place.line == 6, "{place:?}");
        samples
    };
    let out = run(&["--jit", "node"]);
    let stdout = String::from_utf8(out.stdout).unwrap();
    let (took_lines, options) = stdout.split_once("options ").unwrap();
    assert!(options.starts_with("--max-old-space-size=500 --perf-basic-prof-only-functions"), "{options}");
    seen(took_lines);
    nothing_is_left_behind(&store);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "a file was left in the working directory");

    // Without `--jit` it is unchanged, and its functions are read from its memory.
    let out = run(&[]);
    let stdout = String::from_utf8(out.stdout).unwrap();
    let (took_lines, options) = stdout.split_once("options ").unwrap();
    assert_eq!(options, "--max-old-space-size=500\n");
    let samples = seen(took_lines);
    // From the function down to where its thread begins.
    let of_burning = |stack: &[Entry]| has(stack, "node", "burnThree");
    let whole = |stack: &[Entry]| {
        of_burning(stack) && has(stack, "node", "take") && has(stack, "node", "main") && stack.iter().all(|entry| entry.kind != "cut")
    };
    let (burning, whole) = (samples.with(of_burning), samples.with(whole));
    assert!(whole * 100 >= burning * 95, "{whole} of {burning}\n{}", samples.dump());
    let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!said.contains("--jit node"), "{said}");
}

/// No process of the last recording has left a map of names behind.
#[track_caller]
fn nothing_is_left_behind(store: &Path) {
    for row in rows(&ask(store)("SELECT pid FROM processes")) {
        let map = format!("/tmp/perf-{}.map", row[0]);
        assert!(!Path::new(&map).exists(), "{map}");
    }
}

/// Burns CPU as [`PYTHON`] does, by the clock of its thread.
const JAVA: &str = r#"
import java.lang.management.ManagementFactory;

public class Program {
    static double now() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9;
    }
    static long burnThree(double until) {
        long x = 0;
        while (now() < until) x = mixThree(x);
        return x;
    }
    static long burnOne(double until) {
        long x = 0;
        while (now() < until) x = mixOne(x);
        return x;
    }
    static long mixThree(long x) {
        for (int i = 0; i < 100000; i++) x = (x * 31 + i) % 1000003;
        return x;
    }
    static long mixOne(long x) {
        for (int i = 0; i < 100000; i++) x = (x * 31 + i) % 1000003;
        return x;
    }
    public static void main(String[] arguments) {
        double three = 0, one = 0;
        long x = 0;
        for (int i = 0; i < 20; i++) {
            double start = now();
            x += burnThree(start + 0.045);
            three += now() - start;
            start = now();
            x += burnOne(start + 0.015);
            one += now() - start;
        }
        System.out.println("Program.mixThree " + three);
        System.out.println("Program.mixOne " + one);
        if (x == 42) System.out.println("x");
    }
}
"#;

/// A thread that sleeps in a method while it holds a lock, and one that waits for the lock in another method.
const JAVA_WAITS: &str = r#"
public class Program {
    static final Object lock = new Object();

    static void callBank() throws Exception { Thread.sleep(400); }

    static void hold() throws Exception {
        synchronized (lock) { callBank(); }
    }
    static void queue() {
        synchronized (lock) { System.out.println("had it"); }
    }
    public static void main(String[] arguments) throws Exception {
        Thread holder = new Thread(() -> {
            try { hold(); } catch (Exception e) { throw new RuntimeException(e); }
        });
        holder.start();
        Thread.sleep(100);
        Thread second = new Thread(Program::queue);
        second.start();
        holder.join();
        second.join();
    }
}
"#;

/// Compiles a class `Program`; `None` if that cannot be done here.
fn compiled_java(sandbox: &Sandbox, test: &str, text: &str) -> Option<()> {
    let program = sandbox.path("Program.java");
    std::fs::write(&program, text).unwrap();
    let mut compile = Command::new("javac");
    compile.arg("-d").arg(sandbox.path("")).arg(&program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    clean(&mut compile);
    if !compile.status().is_ok_and(|status| status.success()) {
        skip(test, "there is no javac, or it is of no use");
        return None;
    }
    Some(())
}

/// Records this program in a Java virtual machine that longpole reads: the folder of the recording, and what the run printed; `None` if that
/// cannot be shown here.
fn recorded_java(test: &str, text: &str) -> Option<(Sandbox, std::path::PathBuf, std::process::Output)> {
    if !can_sample(test) {
        return None;
    }
    if !cfg!(target_arch = "x86_64") {
        skip(test, "longpole reads virtual machines on x86-64 only");
        return None;
    }
    let sandbox = Sandbox::new();
    compiled_java(&sandbox, test, text)?;
    let store = sandbox.path("store");
    let mut run = longpole(&store);
    run.args(["run", "--", "java", "-cp"]).arg(sandbox.path("")).arg("Program");
    let out = run.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some((sandbox, store, out))
}

#[test]
fn java_shows_its_methods_without_a_flag() {
    let Some((_sandbox, store, out)) = recorded_java("java_shows_its_methods_without_a_flag", JAVA) else { return };
    let samples = Samples::of(ask(&store));
    the_shares_are_right(&samples, "jvm", &took(&out.stdout), "java");
    let in_java = samples.with(|stack| !of_runtime(stack, "jvm").is_empty());
    let whole = samples.with(|stack| {
        let methods = of_runtime(stack, "jvm");
        methods.iter().any(|entry| entry.function == "Program.main" && entry.file == "Program.java" && entry.line > 0)
    });
    assert!(whole * 10 >= in_java * 8, "{whole} of {in_java} stacks with Java lead to its main method");
}

#[test]
fn a_wait_of_java_has_the_method_that_waits() {
    let Some((_sandbox, store, _)) = recorded_java("a_wait_of_java_has_the_method_that_waits", JAVA_WAITS) else { return };
    let waits = ask(&store)(
        "SELECT DISTINCT f.function FROM (SELECT unnest(k.location_ids) AS location_id FROM waits w \
         JOIN stacks k ON k.stack_id = w.stack_id WHERE w.duration_nanos > 100000000) u JOIN frames f ON f.location_id = u.location_id",
    );
    let functions: Vec<String> = rows(&waits).filter_map(|row| row[0].as_str().map(str::to_owned)).collect();
    for method in ["Program.callBank", "Program.hold", "Program.queue", "Program.main", "java.lang.Thread.run"] {
        assert!(functions.iter().any(|function| function == method), "{method} is not among {functions:?}");
    }
}

#[test]
fn java_shows_its_methods_with_jit() {
    if !can_sample("java_shows_its_methods_with_jit") {
        return;
    }
    let sandbox = Sandbox::new();
    let (store, program) = (sandbox.path("store"), sandbox.path("Program.java"));
    std::fs::write(&program, JAVA).unwrap();
    let mut compile = Command::new("javac");
    compile.arg("-d").arg(sandbox.path("")).arg(&program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    clean(&mut compile);
    if !compile.status().is_ok_and(|status| status.success()) {
        return skip("java_shows_its_methods_with_jit", "there is no javac, or it is of no use");
    }
    let mut run = longpole(&store);
    run.args(["run", "--jit", "node,java", "--", "java", "-cp"]).arg(sandbox.path("")).arg("Program");
    let out = run.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let samples = Samples::of(ask(&store));
    if samples.with(|stack| !of_runtime(stack, "jvm").is_empty()) == 0 {
        return skip("java_shows_its_methods_with_jit", "this Java writes no names down: it is older than 17");
    }
    the_shares_are_right(&samples, "jvm", &took(&out.stdout), "java");
    nothing_is_left_behind(&store);
}
